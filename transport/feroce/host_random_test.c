/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A host and a board come to agree on bad networks, whoever opens and whoever closes.
 * Method  The board's own engine at the other end of a channel that loses, repeats, delays and so
 *         reorders; a seed decides all of it. After each step what both ends hold true is compared.
 *         FER-21 (an OPEN that is repeated takes another queue pair of the board's), FER-109, 110.
 */
#include "base/prng.h"
#include "transport/feroce/host.h"
#include "transport/feroce/test_board.h"

#define MS       UINT64_C(1000000)
#define IN_WAY   256
#define STREAMS  8
#define HOST_QPN 0x1000u /* Stream 0's in its first life; each life of a stream has another one. */

struct datagram {
    bool to_board;
    uint16_t port;
    uint64_t at;
    uint8_t bytes[FEROCE_CM_BYTES];
};

struct world {
    struct prng prng;
    struct feroce_host host;
    struct feroce_board *board;
    uint64_t now;
    struct datagram way[IN_WAY];
    uint32_t count;
    uint32_t loss, repeat; /* Millionths. */
    uint32_t delay_ms;
    uint32_t lives[STREAMS];
    bool is_up[STREAMS];          /* As the world was told. */
    uint32_t board_qpn[STREAMS];  /* The other end's. */
    uint64_t ready_at[STREAMS];   /* ACCEPT came: when the queue pair will be ready. */
    uint64_t stopped_at[STREAMS]; /* PEER_CLOSED came. */
    uint32_t connected, refused, closed, gave_up, peer_closed, accepted;
    uint32_t lost, repeated, overtook;
    uint64_t last_answer[STREAMS]; /* To an OPEN of the stream's board. */
    uint32_t opens_taken;
};

static void begin(struct world *world, uint64_t seed, uint32_t loss, uint32_t repeat)
{
    const struct feroce_board_config config = test_config();
    /* A way that loses nothing is short enough for the board's patience of 2 * 310 ms. */
    *world = (struct world){.loss = loss, .repeat = repeat, .delay_ms = loss == 0 ? 100 : 400};
    prng_init(&world->prng, seed);
    world->board = test_begin(&config);
    feroce_host_init(&world->host, &(struct feroce_host_config){.cm_version = FEROCE_CM_3,
                                                                .ip = TEST_HOST_IP,
                                                                .port = FEROCE_PORT_CM});
    for (uint32_t i = 0; i < STREAMS; i++) {
        world->ready_at[i] = UINT64_MAX;
        world->stopped_at[i] = UINT64_MAX;
        world->board_qpn[i] = FEROCE_FIRST_QPN;
    }
}

/* The queue pair of the stream's present life. */
static struct feroce_side side_of(const struct world *world, uint32_t index)
{
    return (struct feroce_side){.qpn = HOST_QPN + 0x100 * world->lives[index] + index,
                                .rkey = 7 + index,
                                .address = TEST_ADDRESS};
}

/* -- The channel --------------------------------------------------------------------------------*/

static void put(struct world *world, bool to_board, uint16_t port, const uint8_t *bytes)
{
    const uint32_t copies = prng_chance(&world->prng, world->repeat) ? 2 : 1;
    world->repeated += copies == 2;
    for (uint32_t i = 0; i < copies; i++) {
        if (prng_chance(&world->prng, world->loss) || world->count == IN_WAY) {
            world->lost++;
            continue;
        }
        struct datagram *datagram = &world->way[world->count++];
        *datagram =
            (struct datagram){.to_board = to_board,
                              .port = port,
                              .at = world->now + MS * prng_below(&world->prng, world->delay_ms)};
        memcpy(datagram->bytes, bytes, FEROCE_CM_BYTES);
    }
}

/* FER-109, seen from outside: answers to the OPENs of one queue pair are 100 ms apart. */
static void note_answer(struct world *world, const uint8_t *bytes)
{
    struct feroce_cm message;
    assert_true(feroce_cm_decode(FEROCE_CM_3, bytes, FEROCE_CM_BYTES, &message));
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (message.request == FEROCE_OPEN_QP && message.ack_valid && message.ack == FEROCE_ACK &&
            message.local.qpn == side_of(world, i).qpn) {
            assert_true(world->last_answer[i] == 0 ||
                        world->now >= world->last_answer[i] + 100 * MS);
            world->last_answer[i] = world->now;
        }
    }
}

static void pump(struct world *world)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    uint32_t ip;
    uint16_t port;
    while (feroce_host_next(&world->host, test_at(world->now), bytes, &ip, &port)) {
        assert_int_equal(ip, TEST_BOARD_IP);
        note_answer(world, bytes);
        put(world, true, port, bytes);
    }
    while (feroce_board_next_cm(world->board, test_at(world->now), bytes, &ip, &port)) {
        assert_int_equal(ip, TEST_HOST_IP);
        put(world, false, port, bytes);
    }
}

/* -- Reports of the two ends --------------------------------------------------------------------*/

/* The host says that it is connected: the board's queue pair is open, and leads back. */
static void now_up(struct world *world, uint32_t index, const struct feroce_side *remote)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        assert_false(world->is_up[i] && world->board_qpn[i] == remote->qpn);
    }
    const struct feroce_context *context =
        &world->board->table.contexts[remote->qpn - FEROCE_FIRST_QPN];
    assert_int_equal(context->state, FEROCE_RTS);
    assert_int_equal(context->remote.qpn, side_of(world, index).qpn);
    assert_int_equal(context->remote.rkey, 7 + index);
    assert_int_equal(context->remote.ip, TEST_HOST_IP);
    world->is_up[index] = true;
    world->board_qpn[index] = remote->qpn;
}

static void take_event(struct world *world, const struct feroce_host_event *event)
{
    const uint32_t i = event->index;
    switch (event->kind) {
    case FEROCE_HOST_ACCEPT:
        world->accepted++;
        world->board_qpn[i] = event->remote.qpn;
        world->ready_at[i] = world->now + MS * prng_below(&world->prng, 300);
        return;
    case FEROCE_HOST_CONNECTED:
        world->connected++;
        now_up(world, i, &event->remote);
        return;
    case FEROCE_HOST_PEER_CLOSED:
        world->peer_closed++;
        world->stopped_at[i] = world->now + MS * prng_below(&world->prng, 300);
        return;
    case FEROCE_HOST_REFUSED: world->refused++; break;
    case FEROCE_HOST_CLOSED: {
        /* Closed means that the board has given it back: nobody else had it in between. */
        const struct feroce_context *context =
            &world->board->table.contexts[world->board_qpn[i] - FEROCE_FIRST_QPN];
        assert_true(context->state == FEROCE_RESET || context->remote.qpn != side_of(world, i).qpn);
        world->closed++;
        break;
    }
    case FEROCE_HOST_GAVE_UP: world->gave_up++; break;
    }
    world->is_up[i] = false;
    world->lives[i]++;
    world->last_answer[i] = 0;
}

static void take_events(struct world *world)
{
    struct feroce_host_event event;
    while (feroce_host_next_event(&world->host, &event)) {
        take_event(world, &event);
    }
    struct feroce_event happened;
    while (feroce_board_next_event(world->board, &happened)) {
        world->opens_taken += happened.kind == FEROCE_EVENT_OPENED;
    }
}

static void queue_pairs(struct world *world)
{
    for (uint32_t i = 0; i < STREAMS; i++) {
        if (world->now >= world->ready_at[i]) {
            world->ready_at[i] = UINT64_MAX;
            world->is_up[i] = true;
            feroce_host_ready(&world->host, i, test_at(world->now));
        }
        if (world->now >= world->stopped_at[i]) {
            world->stopped_at[i] = UINT64_MAX;
            world->is_up[i] = false;
            feroce_host_stopped(&world->host, i);
            world->lives[i]++;
            world->last_answer[i] = 0;
        }
    }
}

/* -- Time ---------------------------------------------------------------------------------------*/

static void deliver(struct world *world, uint32_t at)
{
    const struct datagram datagram = world->way[at];
    for (uint32_t i = 0; i < at; i++) {
        world->overtook += world->way[i].to_board == datagram.to_board;
    }
    memmove(&world->way[at], &world->way[at + 1], (--world->count - at) * sizeof(world->way[0]));
    if (datagram.to_board) {
        feroce_board_on_cm(world->board, datagram.bytes, FEROCE_CM_BYTES, TEST_BOARD_IP,
                           datagram.port, FEROCE_PORT_CM);
    } else {
        feroce_host_on_cm(&world->host, datagram.bytes, FEROCE_CM_BYTES, TEST_BOARD_IP,
                          FEROCE_PORT_CM_FROM, test_at(world->now));
    }
    take_events(world);
    pump(world);
}

/* Until nothing is under way any more. False: it is quiet. */
static bool step(struct world *world)
{
    uint64_t next = feroce_host_deadline(&world->host).ns;
    const uint64_t board = feroce_board_deadline(world->board).ns;
    next = board < next ? board : next;
    for (uint32_t i = 0; i < world->count; i++) {
        next = world->way[i].at < next ? world->way[i].at : next;
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        next = world->ready_at[i] < next ? world->ready_at[i] : next;
        next = world->stopped_at[i] < next ? world->stopped_at[i] : next;
    }
    if (next == UINT64_MAX) {
        return false;
    }
    world->now = next > world->now ? next : world->now;
    for (uint32_t i = 0; i < world->count; i++) {
        if (world->way[i].at <= world->now) {
            deliver(world, i);
            return true;
        }
    }
    queue_pairs(world);
    feroce_host_on_time(&world->host, test_at(world->now));
    feroce_board_on_time(world->board, test_at(world->now));
    take_events(world);
    pump(world);
    return true;
}

static void settle(struct world *world)
{
    pump(world);
    for (int steps = 0; step(world); steps++) {
        assert_true(steps < 10000);
    }
    assert_int_equal(world->count, 0);
}

/* -- The tests ----------------------------------------------------------------------------------*/

/* Counts the queue pairs that are open at the board, and those of them that a stream of the host
 * knows. */
static void compare(const struct world *world, uint32_t *open, uint32_t *known)
{
    *open = 0;
    *known = 0;
    for (uint32_t q = 0; q < STREAMS; q++) {
        *open += world->board->table.contexts[q].state == FEROCE_RTS;
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        const struct feroce_context *context =
            &world->board->table.contexts[world->board_qpn[i] - FEROCE_FIRST_QPN];
        *known += world->is_up[i] && context->state == FEROCE_RTS &&
                  context->remote.qpn == side_of(world, i).qpn;
    }
}

struct totals {
    uint64_t lost, repeated, overtook, leaked, connected, gave_up, refused, closed, accepted,
        peer_closed;
};

static void add(struct totals *totals, const struct world *world)
{
    totals->lost += world->lost;
    totals->repeated += world->repeated;
    totals->overtook += world->overtook;
    totals->connected += world->connected;
    totals->gave_up += world->gave_up;
    totals->refused += world->refused;
    totals->closed += world->closed;
    totals->accepted += world->accepted;
    totals->peer_closed += world->peer_closed;
}

/* The host opens all streams and closes all. Each stream that the host takes for open is open at
 * the board. The board has one more queue pair for each OPEN whose answer the host did not get. */
static void host_opens(uint64_t seed, uint32_t loss, uint32_t repeat, struct totals *totals)
{
    struct world world;
    uint32_t open, known, streams = 1 + (uint32_t)(seed % 6);
    begin(&world, seed, loss, repeat);
    for (uint32_t i = 0; i < streams; i++) {
        const struct feroce_side side = side_of(&world, i);
        feroce_host_open(&world.host, i, &side, TEST_BOARD_IP, FEROCE_PORT_CM);
    }
    settle(&world);
    assert_int_equal(world.connected + world.refused + world.gave_up, streams);
    compare(&world, &open, &known);
    assert_int_equal(known, world.connected);
    assert_int_equal(open, world.opens_taken);
    assert_true(open >= known);
    totals->leaked += open - known;
    if (loss == 0 && repeat == 0) {
        assert_int_equal(world.connected, streams);
        assert_int_equal(open, streams);
    }
    const uint32_t leaked = open - known, gave_up_opening = world.gave_up;
    for (uint32_t i = 0; i < streams; i++) {
        feroce_host_close(&world.host, i, false);
    }
    settle(&world);
    compare(&world, &open, &known);
    assert_int_equal(known, 0);
    assert_int_equal(world.closed + world.gave_up - gave_up_opening, world.connected);
    /* These queue pairs still leak, and so may those whose CLOSE the board never got. */
    assert_true(open >= leaked && open <= leaked + world.gave_up - gave_up_opening);
    add(totals, &world);
    test_end(world.board);
}

/* The board opens one after another and closes them. */
static void board_opens(uint64_t seed, uint32_t loss, uint32_t repeat, struct totals *totals)
{
    struct world world;
    uint32_t open, known, streams = 1 + (uint32_t)(seed % 6), ok = 0;
    struct feroce_master *master = NULL;
    begin(&world, seed, loss, repeat);
    master = &world.board->master;
    for (uint32_t i = 0; i < STREAMS; i++) {
        const struct feroce_side side = side_of(&world, i);
        feroce_host_offer(&world.host, i, &side);
    }
    for (uint32_t i = 0; i < streams; i++) {
        assert_int_equal(
            feroce_master_open(master, &world.board->table, TEST_HOST_IP, FEROCE_PORT_CM),
            FEROCE_STATUS_PENDING);
        settle(&world);
        ok += master->status == FEROCE_STATUS_OK;
        compare(&world, &open, &known);
        assert_int_equal(open, ok);
        /* The host knows each queue pair that the board takes for open. */
        assert_int_equal(known, ok);
    }
    if (loss == 0) {
        assert_int_equal(ok, streams);
    }
    for (uint32_t q = 0; q < STREAMS; q++) {
        if (world.board->table.contexts[q].state == FEROCE_RTS) {
            assert_int_equal(feroce_master_close(master, &world.board->table, FEROCE_FIRST_QPN + q,
                                                 FEROCE_PORT_CM),
                             FEROCE_STATUS_PENDING);
            settle(&world);
            ok -= master->status == FEROCE_STATUS_OK;
            compare(&world, &open, &known);
            assert_int_equal(open, ok);
            assert_true(known <= ok); /* A CLOSE whose answers are lost: the host's end is gone. */
        }
    }
    add(totals, &world);
    test_end(world.board);
}

static void test_host_opens(void **state)
{
    (void)state;
    struct totals totals = {0};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        host_opens(seed, seed % 3 == 0 ? 0 : 300000, seed % 4 == 0 ? 0 : 200000, &totals);
    }
    assert_true(totals.lost > 1000 && totals.repeated > 1000 && totals.overtook > 1000);
    assert_true(totals.leaked > 100 && totals.refused > 10 && totals.gave_up > 100);
    assert_true(totals.connected > 3000 && totals.closed > 1000);
}

static void test_board_opens(void **state)
{
    (void)state;
    struct totals totals = {0};
    for (uint64_t seed = 0; seed < 3000; seed++) {
        board_opens(seed, seed % 3 == 0 ? 0 : 300000, seed % 4 == 0 ? 0 : 200000, &totals);
    }
    assert_true(totals.lost > 1000 && totals.repeated > 1000 && totals.overtook > 1000);
    assert_true(totals.accepted > 3000 && totals.peer_closed > 1000);
}

/* A datagram that may be anything, but mostly is nearly something. */
static size_t scribble(struct prng *prng, uint8_t bytes[FEROCE_CM_BYTES + 1])
{
    struct feroce_cm message = {
        .request = (uint8_t)prng_below(prng, 8),
        .ack = (uint8_t)prng_below(prng, 8),
        .info_valid = true,
        .ack_valid = prng_chance(prng, 500000),
        .local = {.qpn = (uint32_t)prng_below(prng, 8), .ip = TEST_BOARD_IP},
        .remote = {.qpn = HOST_QPN + (uint32_t)prng_below(prng, 8), .ip = TEST_HOST_IP},
        .listening_port = FEROCE_PORT_CM,
    };
    if (prng_chance(prng, 700000)) {
        message.request = prng_chance(prng, 500000) ? FEROCE_OPEN_QP : FEROCE_CLOSE_QP;
    }
    feroce_cm_encode(FEROCE_CM_3, &message, bytes);
    for (uint64_t flips = prng_below(prng, 3); flips > 0; flips--) {
        bytes[prng_below(prng, FEROCE_CM_BYTES)] ^= (uint8_t)(1u << prng_below(prng, 8));
    }
    return prng_chance(prng, 50000) ? FEROCE_CM_BYTES - 1 + 2 * prng_below(prng, 2)
                                    : FEROCE_CM_BYTES;
}

/* The world obeys each event at once. */
static void obey(struct feroce_host *host, struct prng *prng, uint64_t now)
{
    struct feroce_host_event event;
    while (feroce_host_next_event(host, &event)) {
        if (event.kind == FEROCE_HOST_ACCEPT && prng_chance(prng, 800000)) {
            feroce_host_ready(host, event.index, test_at(now));
        } else if (event.kind == FEROCE_HOST_ACCEPT) {
            feroce_host_refuse(host, event.index);
        } else if (event.kind == FEROCE_HOST_PEER_CLOSED) {
            feroce_host_stopped(host, event.index);
        }
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        const struct feroce_side side = {.qpn = HOST_QPN + i};
        if (host->streams[i].state == FEROCE_STREAM_UNUSED && i % 2 == 0) {
            feroce_host_offer(host, i, &side);
        } else if (host->streams[i].state == FEROCE_STREAM_UNUSED) {
            feroce_host_open(host, i, &side, TEST_BOARD_IP, FEROCE_PORT_CM);
        } else if (host->streams[i].state != FEROCE_STREAM_CLOSING && prng_chance(prng, 10000)) {
            feroce_host_close(host, i, prng_chance(prng, 500000));
        }
    }
}

/* Any datagram is answered, dropped or counted, each by its reason; then a good OPEN is answered as
 * ever. Each call checks the invariants. */
static void test_any_datagram(void **state)
{
    (void)state;
    struct prng prng;
    struct feroce_host host;
    const uint32_t count = 300000;
    uint8_t bytes[FEROCE_CM_BYTES + 1] = {0};
    uint32_t ip;
    uint16_t port;
    uint64_t sum = 0, now = 0;
    prng_init(&prng, 11);
    feroce_host_init(&host, &(struct feroce_host_config){.cm_version = FEROCE_CM_3,
                                                         .ip = TEST_HOST_IP,
                                                         .port = FEROCE_PORT_CM});
    for (uint32_t i = 0; i < count; i++) {
        obey(&host, &prng, now);
        const size_t length = scribble(&prng, bytes);
        now += prng_below(&prng, 50 * MS);
        feroce_host_on_cm(&host, bytes, length,
                          TEST_BOARD_IP + (prng_chance(&prng, 200000) ? 1 : 0), FEROCE_PORT_CM_FROM,
                          test_at(now));
        obey(&host, &prng, now);
        feroce_host_on_time(&host, test_at(now));
        obey(&host, &prng, now);
        /* Now and then nobody looks for a while, and answers pile up. */
        while (i % 4000 > 1000 && feroce_host_next(&host, test_at(now), bytes, &ip, &port)) {
            assert_true(ip == TEST_BOARD_IP || ip == TEST_BOARD_IP + 1);
        }
    }
    for (int i = 0; i < FEROCE_HOST_ARRIVALS; i++) {
        assert_true(host.arrivals[i] > 0);
        sum += host.arrivals[i];
    }
    assert_true(sum >= count); /* An answer that is lost counts beside the datagram. */
    while (feroce_host_next(&host, test_at(now), bytes, &ip, &port)) {
    }
    const struct feroce_side side = {.qpn = 0x999};
    struct feroce_cm open = test_request(FEROCE_OPEN_QP, 0xabcde, 0);
    feroce_host_offer(&host, STREAMS, &side);
    for (uint32_t i = 0; i < STREAMS; i += 2) { /* The others that are idle come first. */
        if (host.streams[i].state == FEROCE_STREAM_IDLE) {
            feroce_host_close(&host, i, true);
        }
    }
    feroce_cm_encode(FEROCE_CM_3, &open, bytes);
    assert_int_equal(feroce_host_on_cm(&host, bytes, FEROCE_CM_BYTES, TEST_BOARD_IP,
                                       FEROCE_PORT_CM_FROM, test_at(now)),
                     FEROCE_HOST_TAKEN);
    feroce_host_ready(&host, STREAMS, test_at(now));
    assert_true(feroce_host_next(&host, test_at(now), bytes, &ip, &port));
    assert_true(feroce_cm_decode(FEROCE_CM_3, bytes, FEROCE_CM_BYTES, &open));
    assert_int_equal(open.local.qpn, 0x999);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_opens),
        cmocka_unit_test(test_board_opens),
        cmocka_unit_test(test_any_datagram),
    };
    return cmocka_run_group_tests_name("feroce_host_random", tests, NULL, NULL);
}
