/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever a network does, a receiver gets every packet once and in order, or the queue
 *         pair ends in ERROR; and in the end everything is acknowledged.
 * Method  Boards with random limits and sizes send to a receiver that is the plain model: it knows
 *         which PSN it expects and nothing else. The network loses, delays, repeats and reorders
 *         in both directions; the receiver is not ready now and then, acknowledges each packet or
 *         some. 10^4 seeds.
 *         Behaviours FER-34, FER-80, FER-82.
 */
#include "base/prng.h"
#include "transport/feroce/test_board.h"

#define IN_FLIGHT_MAX 512u

struct parcel {
    uint64_t at_ns;
    uint32_t queue, psn, value;
    uint8_t syndrome; /* An answer's. */
    bool is_answer;
};

struct receiver {
    uint32_t expected, first_psn;
    uint32_t received; /* Packets in order: the next one must carry this number. */
    bool has_asked;    /* A NAK is out, and nothing that was expected came since. */
    uint32_t unanswered;
    uint64_t rnr_until_ns;
};

struct world {
    struct prng prng;
    struct feroce_board *board;
    struct parcel parcels[IN_FLIGHT_MAX];
    uint32_t count;
    uint64_t now_ns;
    struct receiver receivers[4];
    uint32_t stored[4], wanted[4], left_of_message[4], packets[4];
    bool failed[4];
    uint32_t loss, twice, late; /* Millionths. */
    uint32_t coalesces;
    uint64_t lost, reordered, repeated, rnrs, resent;
};

static void put_parcel(struct world *world, struct parcel parcel)
{
    if (prng_chance(&world->prng, world->loss)) {
        world->lost++;
        return;
    }
    const bool twice = prng_chance(&world->prng, world->twice);
    world->repeated += twice;
    for (int copy = 0; copy <= twice && world->count < IN_FLIGHT_MAX; copy++) {
        parcel.at_ns = world->now_ns + 1000;
        if (prng_chance(&world->prng, world->late)) {
            parcel.at_ns += prng_below(&world->prng, 4000);
            world->reordered++;
        }
        world->parcels[world->count++] = parcel;
    }
}

/* The earliest that is due. */
static bool take_parcel(struct world *world, struct parcel *parcel)
{
    uint32_t best = world->count;
    for (uint32_t i = 0; i < world->count; i++) {
        if (world->parcels[i].at_ns <= world->now_ns &&
            (best == world->count || world->parcels[i].at_ns < world->parcels[best].at_ns)) {
            best = i;
        }
    }
    if (best == world->count) {
        return false;
    }
    *parcel = world->parcels[best];
    /* In order among those of one time. */
    memmove(&world->parcels[best], &world->parcels[best + 1],
            (world->count - best - 1) * sizeof(*parcel));
    world->count--;
    return true;
}

static void answer(struct world *world, uint32_t queue, uint8_t syndrome, uint32_t psn)
{
    put_parcel(world,
               (struct parcel){
                   .queue = queue, .psn = psn & PSN_MASK, .syndrome = syndrome, .is_answer = true});
}

/* The receiver answers like any responder (IBTA 9.7.5). */
static void receive(struct world *world, const struct parcel *parcel)
{
    struct receiver *receiver = &world->receivers[parcel->queue];
    const int32_t ahead = psn_distance(psn_of(receiver->expected), psn_of(parcel->psn));
    if (ahead < 0) {
        answer(world, parcel->queue, ROCE_AETH_ACK, receiver->expected - 1);
        return;
    }
    if (world->now_ns < receiver->rnr_until_ns) {
        return;
    }
    if (ahead > 0) {
        if (!receiver->has_asked) {
            receiver->has_asked = true;
            answer(world, parcel->queue, ROCE_NAK_PSN_SEQUENCE, receiver->expected);
        }
        return;
    }
    if (prng_chance(&world->prng, 5000)) {
        world->rnrs++;
        receiver->rnr_until_ns = world->now_ns + 10000;
        answer(world, parcel->queue, ROCE_AETH_RNR_NAK | 1, receiver->expected);
        return;
    }
    receiver->has_asked = false;
    assert_int_equal(parcel->value, receiver->received);
    receiver->received++;
    receiver->expected = (receiver->expected + 1) & PSN_MASK;
    if (++receiver->unanswered >= world->coalesces) {
        receiver->unanswered = 0;
        answer(world, parcel->queue, ROCE_AETH_ACK, receiver->expected - 1);
    }
}

static void store_some(struct world *world, uint32_t queue)
{
    static uint8_t payload[256];
    const struct feroce_message message = {.length = 256};
    while (world->stored[queue] < world->wanted[queue] &&
           feroce_board_has_room(world->board, queue) && prng_chance(&world->prng, 700000)) {
        if (world->left_of_message[queue] == 0) {
            world->left_of_message[queue] = 1 + (uint32_t)prng_below(&world->prng, 5);
        }
        const bool is_last =
            world->left_of_message[queue] == 1 || world->stored[queue] + 1 == world->wanted[queue];
        store_le32(payload, world->stored[queue]);
        const enum feroce_store verdict = feroce_board_store(world->board, queue, &message, payload,
                                                             256, is_last, test_at(world->now_ns));
        if (verdict == FEROCE_STORE_NOT_OPEN) {
            return;
        }
        assert_int_equal(verdict, FEROCE_STORED);
        world->stored[queue]++;
        world->left_of_message[queue] = is_last ? 0 : world->left_of_message[queue] - 1;
    }
}

static void send_some(struct world *world)
{
    struct feroce_packet packet;
    struct feroce_event event;
    for (int i = 0;
         i < 4 && feroce_board_next_packet(world->board, test_at(world->now_ns), &packet); i++) {
        world->resent += packet.resent;
        put_parcel(world, (struct parcel){.queue = packet.qpn - 256,
                                          .psn = packet.psn.value,
                                          .value = load_le32(packet.payload)});
    }
    while (feroce_board_next_event(world->board, &event)) {
        assert_int_equal(event.kind, FEROCE_EVENT_FAILED);
        world->failed[event.index] = true;
    }
}

static bool is_done(const struct world *world)
{
    for (uint32_t i = 0; i < 4; i++) {
        const struct feroce_window *window = &world->board->window.windows[i];
        if (!world->failed[i] &&
            (world->stored[i] < world->wanted[i] || !psn_equal(window->acked, window->written))) {
            return false;
        }
    }
    return true;
}

static void step(struct world *world)
{
    struct parcel parcel;
    world->now_ns += 100 + prng_below(&world->prng, 400);
    const struct instant now = test_at(world->now_ns);
    feroce_board_on_time(world->board, now);
    while (take_parcel(world, &parcel)) {
        if (parcel.is_answer) {
            test_answer(world->board, parcel.queue, parcel.syndrome, parcel.psn, now);
        } else {
            receive(world, &parcel);
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        store_some(world, i);
    }
    send_some(world);
    /* A receiver that acknowledges some packets acknowledges the last one in time. */
    for (uint32_t i = 0; i < 4; i++) {
        struct receiver *receiver = &world->receivers[i];
        if (receiver->unanswered > 0 && prng_chance(&world->prng, 100000)) {
            receiver->unanswered = 0;
            answer(world, i, ROCE_AETH_ACK, receiver->expected - 1);
        }
    }
}

static void begin(struct world *world, uint64_t seed)
{
    struct feroce_board_config config = test_config();
    *world = (struct world){0};
    prng_init(&world->prng, seed);
    config.window.qps = 4;
    config.window.pmtu = 256;
    config.window.buffer_bits = 14 + (uint32_t)prng_below(&world->prng, 3);
    config.window.retry_limit = (uint8_t)(5 + prng_below(&world->prng, 3));
    config.window.rto_ns = 20000 + prng_below(&world->prng, 30000);
    world->board = test_begin(&config);
    world->loss = (uint32_t)prng_below(&world->prng, 4) * 10000;
    world->twice = (uint32_t)prng_below(&world->prng, 3) * 20000;
    world->late = (uint32_t)prng_below(&world->prng, 3) * 30000;
    world->coalesces = 1 + (uint32_t)prng_below(&world->prng, 8);
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t psn = prng_chance(&world->prng, 500000)
                                 ? PSN_MASK - 10
                                 : (uint32_t)prng_below(&world->prng, 1 << 24);
        assert_int_equal(test_open(world->board, psn), i);
        world->receivers[i].expected = world->receivers[i].first_psn = psn;
        world->wanted[i] = 20 + (uint32_t)prng_below(&world->prng, 100);
    }
}

/* FER-82. */
static void test_schedules(void **state)
{
    (void)state;
    uint64_t lost = 0, reordered = 0, repeated = 0, rnrs = 0, resent = 0, failed = 0;
    static struct world world;
    for (uint64_t seed = 1; seed <= 10000; seed++) {
        begin(&world, seed);
        uint32_t steps = 0;
        for (; !is_done(&world); steps++) {
            assert_true(steps < 100000); /* It ends. */
            step(&world);
        }
        for (uint32_t i = 0; i < 4; i++) {
            assert_true(world.failed[i] || world.receivers[i].received == world.wanted[i]);
            assert_int_equal(world.board->table.contexts[i].state,
                             world.failed[i] ? FEROCE_ERROR : FEROCE_RTS);
            failed += world.failed[i];
        }
        assert_int_equal(world.board->window.overwritten, 0);
        lost += world.lost;
        reordered += world.reordered;
        repeated += world.repeated;
        rnrs += world.rnrs;
        resent += world.resent;
        test_end(world.board);
    }
    assert_true(lost > 10000 && reordered > 10000 && repeated > 10000 && rnrs > 1000);
    assert_true(resent > lost / 2);
    assert_true(failed < 400); /* In 40,000. */
}

/* FER-34: what the context says is sent next equals the packets of all finished messages. */
static void test_psn_of_context(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    struct feroce_board_config config = test_config();
    config.window.pmtu = 256;
    struct feroce_board *board = test_begin(&config);
    test_open(board, PSN_MASK - 1000);
    static const uint8_t payload[256];
    uint64_t packets = 0;
    for (int i = 0; i < 100000; i++) {
        const uint32_t count = 1 + (uint32_t)prng_below(&prng, 20);
        const struct feroce_message message = {.length = count * 256};
        for (uint32_t at = 1; at <= count; at++) {
            assert_int_equal(board->table.contexts[0].remote.psn,
                             (PSN_MASK - 1000 + packets) & PSN_MASK);
            assert_int_equal(
                feroce_board_store(board, 0, &message, payload, 256, at == count, test_at(0)),
                FEROCE_STORED);
            test_sent(board, test_at(0));
        }
        packets += count;
        test_answer(board, 0, 0, (uint32_t)(PSN_MASK - 1001 + packets) & PSN_MASK, test_at(0));
    }
    assert_int_equal(board->window.sent, packets);
    assert_int_equal(board->table.contexts[0].remote.psn, (PSN_MASK - 1000 + packets) & PSN_MASK);
    test_end(board);
}

/* FER-80: all queue pairs busy: none sends one percent more than another. */
static void test_round_robin(void **state)
{
    (void)state;
    const struct feroce_board_config config = test_config();
    struct feroce_board *board = test_begin(&config);
    uint32_t sent[8] = {0}, stored[8] = {0};
    for (uint32_t i = 0; i < 8; i++) {
        test_open(board, 0);
    }
    for (int visit = 0; visit < 1000; visit++) {
        for (uint32_t i = 0; i < 8; i++) {
            while (feroce_board_has_room(board, i)) {
                test_store(board, i, 1, test_at(0));
                stored[i]++;
            }
        }
        struct feroce_packet packet;
        bool rewound = false;
        assert_int_equal(feroce_board_visit(board, test_at(0), &packet, &rewound),
                         FEROCE_VISIT_PACKET);
        sent[packet.qpn - 256]++;
        test_answer(board, packet.qpn - 256, 0, packet.psn.value, test_at(0));
    }
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(sent[i], 125);
        assert_true(stored[i] > sent[i]);
    }
    test_end(board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_psn_of_context),
        cmocka_unit_test(test_round_robin),
    };
    return cmocka_run_group_tests_name("feroce_random", tests, NULL, NULL);
}
