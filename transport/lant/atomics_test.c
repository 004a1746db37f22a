/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An atomic request is done once, however often it comes, and each answer brings what
 *         memory held then; what may not be done is answered with the reason.
 * Method  Cases by hand; then initiators (shm.h) that add, swap and compare by chance over a
 *         network that loses, doubles and delays packets, against a model that does each request
 *         once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "transport/lant/atomics.h"
#include "transport/lant/shm.h"

#define NODE     9u
#define LIFETIME 60000u
#define ENTRIES  512u

struct rig {
    struct lant_atomics atomics;
    struct lant_ranges ranges;
    struct lant_atomic_work work;
    struct lant_packet answer;
    uint64_t memory[ENTRIES * 8];
};

static void start(struct rig *rig, uint32_t entries)
{
    const struct lant_atomics_config config = {
        .node = NODE, .entries = entries, .lifetime = LIFETIME};
    assert_true(lant_shm_recent_bytes(entries) <= sizeof(rig->memory));
    lant_atomics_init(&rig->atomics, &config, rig->memory);
    rig->ranges = (struct lant_ranges){
        .count = 3,
        .ranges = {{.base = 0x1000, .bytes = 0x1000, .may_read = true, .may_write = true},
                   {.base = 0x4000, .bytes = 0x1000, .may_read = true},
                   {.base = 0x6000, .bytes = 0x1000, .may_write = true}}};
}

static struct lant_packet request(enum lant_atomic what, uint32_t sequence, uint64_t address)
{
    return (struct lant_packet){
        .header = {.destination = NODE,
                   .type = LANT_ATOMIC,
                   .payload = what == LANT_COMPARE_SWAP ? 2 : 1,
                   .packets = (uint16_t)what,
                   .address = address,
                   .strobe = 0xff,
                   .size = 3},
        .footer = {.source = 3, .class = LANT_CLASS_SHM, .row = 5, .offset = sequence},
        .payload = {7, 40}};
}

static enum lant_atomic_action arrive(struct rig *rig, const struct lant_packet *packet,
                                      uint64_t now)
{
    lant_atomics_on_request(&rig->atomics, &rig->ranges, packet, now, &rig->work);
    return (enum lant_atomic_action)rig->work.action;
}

static void expect_answer(struct rig *rig, struct lant_packet packet, uint64_t now,
                          enum lant_response response, uint64_t data)
{
    assert_int_equal(arrive(rig, &packet, now), LANT_ATOMIC_ANSWER);
    assert_int_equal(rig->work.answer.header.type, LANT_R);
    assert_int_equal(rig->work.answer.header.destination, 3);
    assert_int_equal(rig->work.answer.header.payload, !lant_response_is_nack(response));
    assert_int_equal(rig->work.answer.footer.source, NODE);
    assert_int_equal(rig->work.answer.footer.offset, packet.footer.offset);
    assert_int_equal(rig->work.answer.footer.response, response);
    assert_int_equal(rig->work.answer.payload[0], data);
}

/* LNI-W-4: what each does. */
static void test_results(void **state)
{
    (void)state;
    assert_int_equal(lant_atomic_result(LANT_FETCH_ADD, 40, 2, 99), 42);
    assert_int_equal(lant_atomic_result(LANT_FETCH_ADD, UINT64_MAX, 1, 0), 0);
    assert_int_equal(lant_atomic_result(LANT_SWAP, 40, 2, 99), 2);
    assert_int_equal(lant_atomic_result(LANT_COMPARE_SWAP, 40, 2, 40), 2);
    assert_int_equal(lant_atomic_result(LANT_COMPARE_SWAP, 40, 2, 41), 40);
}

/* LNI-W-4: done once; until it is, copies are dropped, and afterwards answered as the first one,
 * though the memory be withdrawn. */
static void test_once(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, ENTRIES);
    struct lant_packet packet = request(LANT_COMPARE_SWAP, 1, 0x1008);
    assert_int_equal(arrive(&rig, &packet, 10), LANT_ATOMIC_DO);
    assert_int_equal(rig.work.what, LANT_COMPARE_SWAP);
    assert_int_equal(rig.work.address, 0x1008);
    assert_int_equal(rig.work.operand, 7);
    assert_int_equal(rig.work.compare, 40);
    const uint32_t tag = rig.work.tag;
    packet.footer.attempt = 1;
    assert_int_equal(arrive(&rig, &packet, 11), LANT_ATOMIC_DROP);
    lant_atomics_on_memory(&rig.atomics, tag, &packet.footer, 40, &rig.answer);
    assert_int_equal(rig.answer.footer.response, LANT_OKAY);
    assert_int_equal(rig.answer.payload[0], 40);
    rig.ranges.count = 0;
    expect_answer(&rig, packet, 12, LANT_OKAY, 40);
    expect_answer(&rig, packet, 9 + LIFETIME, LANT_OKAY, 40);
    assert_int_equal(rig.atomics.counters.done, 1);
    assert_int_equal(rig.atomics.counters.repeated, 2);
    assert_int_equal(rig.atomics.counters.under_way, 1);
}

/* LNI-W-4: no room to remember is no reason to forget. */
static void test_room(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 2);
    for (uint32_t i = 0; i < 2; i++) {
        const struct lant_packet packet = request(LANT_SWAP, i, 0x1000);
        assert_int_equal(arrive(&rig, &packet, i), LANT_ATOMIC_DO);
        lant_atomics_on_memory(&rig.atomics, rig.work.tag, &packet.footer, i, &rig.answer);
    }
    const struct lant_packet third = request(LANT_SWAP, 2, 0x1000);
    expect_answer(&rig, third, LIFETIME - 1, LANT_NACK_BUSY, 0);
    expect_answer(&rig, request(LANT_SWAP, 0, 0x1000), LIFETIME - 1, LANT_OKAY, 0);
    assert_int_equal(lant_atomics_deadline(&rig.atomics), LIFETIME);
    assert_int_equal(arrive(&rig, &third, LIFETIME), LANT_ATOMIC_DO);
    assert_int_equal(rig.atomics.recent.evicted, 0);
}

/* LNI-W-4: what is switched off, not there, not allowed, or makes no sense. */
static void test_refusals(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, ENTRIES);
    struct lant_packet packet = request(LANT_FETCH_ADD, 1, 0x3000);
    expect_answer(&rig, packet, 0, LANT_DECERR, 0);
    packet.header.address = 0x4000;
    expect_answer(&rig, packet, 0, LANT_SLVERR, 0);
    packet.header.address = 0x6000;
    expect_answer(&rig, packet, 0, LANT_SLVERR, 0);
    packet.header.address = 0x1004;
    expect_answer(&rig, packet, 0, LANT_SLVERR, 0);
    packet.header.address = 0x1000;
    packet.header.size = 2;
    expect_answer(&rig, packet, 0, LANT_SLVERR, 0);
    packet.header.size = 3;
    packet.header.strobe = 0x7f;
    expect_answer(&rig, packet, 0, LANT_SLVERR, 0);
    packet.header.strobe = 0xff;
    packet.header.destination++;
    expect_answer(&rig, packet, 0, LANT_DECERR, 0);
    packet.header.destination--;
    packet.footer.class = LANT_CLASS_RDMA;
    assert_int_equal(arrive(&rig, &packet, 0), LANT_ATOMIC_DROP);
    assert_int_equal(rig.atomics.counters.done, 0);
    assert_int_equal(rig.atomics.counters.refused, 7);
    packet.footer.class = LANT_CLASS_SHM;
    start(&rig, 0);
    expect_answer(&rig, packet, 0, LANT_DECERR, 0);
    assert_int_equal(rig.atomics.counters.switched_off, 1);
    assert_int_equal(lant_atomics_deadline(&rig.atomics), LANT_NEVER);
}

/* -- The initiator ------------------------------------------------------------------------------*/

static const struct lant_shm_request swap = {.address =
                                                 (uint64_t)NODE << LANT_ADDRESS_BITS | 0x1000,
                                             .data = 7,
                                             .compare = 40,
                                             .size = 3,
                                             .strobe = 0xff,
                                             .atomic = LANT_COMPARE_SWAP};

static void ask_one(struct lant_shm *shm, struct lant_packet *packet)
{
    struct lant_shm_config config = LANT_SHM_DEFAULTS;
    config.node = 3;
    lant_shm_init(shm, &config);
    assert_int_equal(lant_shm_request(shm, &swap, 0), LANT_SHM_ISSUED);
    assert_true(lant_shm_next_packet(shm, packet));
    lant_shm_sent(shm, &packet->footer, 0);
}

static void start_errors(struct lant_errors *errors)
{
    const struct lant_errors_config config = {.node = 3, .in_charge = 3};
    lant_errors_init(errors, &config);
}

/* LNI-W-4: the packet; and a machine that does not know it, and so answers with B, is understood;
 * but then nothing else than DECERR. */
static void test_asking(void **state)
{
    (void)state;
    struct lant_shm shm;
    struct lant_errors errors;
    struct lant_packet packet, got;
    struct lant_shm_done done;
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    uint32_t repaired;
    start_errors(&errors);
    ask_one(&shm, &packet);
    assert_int_equal(lant_decode(flits, lant_encode(&packet, flits), &got, &repaired), LANT_WHOLE);
    assert_int_equal(got.header.type, LANT_ATOMIC);
    assert_int_equal(got.header.packets, LANT_COMPARE_SWAP);
    assert_int_equal(got.payload[0], 7);
    assert_int_equal(got.payload[1], 40);
    struct lant_packet answer = {.header = {.destination = 3, .type = LANT_B},
                                 .footer = packet.footer};
    answer.footer.source = NODE;
    assert_int_equal(lant_shm_on_answer(&shm, &errors, &answer, 1), LANT_SHM_ANSWER_MALFORMED);
    answer.footer.response = LANT_DECERR;
    assert_int_equal(lant_shm_on_answer(&shm, &errors, &answer, 1), LANT_SHM_ANSWER_DONE);
    assert_true(lant_shm_next_done(&shm, 1, &done));
    assert_int_equal(done.kind, LANT_SHM_GENUINE);
    assert_int_equal(done.response, LANT_DECERR);
}

/* LNI-W-4: nobody answers: a bus error, and no data that somebody made up. */
static void test_giving_up(void **state)
{
    (void)state;
    struct lant_shm shm;
    struct lant_errors errors;
    struct lant_packet packet;
    struct lant_shm_done done;
    start_errors(&errors);
    ask_one(&shm, &packet);
    for (uint64_t now = lant_shm_deadline(&shm, 0); now != LANT_NEVER;
         now = lant_shm_deadline(&shm, now)) {
        lant_shm_on_time(&shm, &errors, now);
        if (lant_shm_next_packet(&shm, &packet)) {
            lant_shm_sent(&shm, &packet.footer, now);
        }
    }
    assert_true(lant_shm_next_done(&shm, 0, &done));
    assert_int_equal(done.kind, LANT_SHM_FAILED);
    assert_int_equal(done.response, LANT_SLVERR);
    assert_int_equal(done.attempts, 4);
    assert_false(done.fake);
    assert_int_equal(done.data, 0);
}

/* LNI-W-4: an atomic is of 8 bytes, and nothing else besides. */
static void test_shapes(void **state)
{
    (void)state;
    struct lant_shm shm;
    struct lant_packet packet;
    ask_one(&shm, &packet);
    struct lant_shm_request wrong = swap;
    wrong.atomic = LANT_COMPARE_SWAP + 1;
    assert_int_equal(lant_shm_request(&shm, &wrong, 0), LANT_SHM_ATOMIC_WRONG);
    wrong = swap;
    wrong.store = true;
    assert_int_equal(lant_shm_request(&shm, &wrong, 0), LANT_SHM_ATOMIC_WRONG);
    wrong = swap;
    wrong.lock = true;
    assert_int_equal(lant_shm_request(&shm, &wrong, 0), LANT_SHM_ATOMIC_WRONG);
    wrong = swap;
    wrong.size = 2;
    wrong.strobe = 0x0f;
    assert_int_equal(lant_shm_request(&shm, &wrong, 0), LANT_SHM_ATOMIC_WRONG);
    assert_int_equal(shm.counters.refused, 4);
}

/* -- Over a network that is no good -------------------------------------------------------------*/

enum {
    INITIATORS = 3,
    REQUESTS = 300,
    WORDS = 4,
    ON_THE_WAY = 64,
};

struct on_the_way {
    bool used;
    uint64_t at;
    struct lant_packet packet;
};

struct world {
    struct prng prng;
    struct rig rig;
    struct lant_shm shm[INITIATORS];
    struct lant_errors errors[INITIATORS];
    uint32_t asked[INITIATORS], answered[INITIATORS];
    struct on_the_way ways[ON_THE_WAY];
    uint64_t now;
    uint64_t words[WORDS];
    uint64_t model[WORDS]; /* By the requests, each once, in the order in which they were done. */
    /* The word that memory held before the request, by token; */
    uint64_t held[INITIATORS][REQUESTS];
    bool done[INITIATORS][REQUESTS]; /* and whether the model did it. */
    struct lant_shm_request requests[INITIATORS][REQUESTS];
};

static void put(struct world *world, const struct lant_packet *packet)
{
    const uint32_t copies = prng_chance(&world->prng, 200000) ? 2 : 1;
    for (uint32_t copy = 0, i = 0; copy < copies && i < ON_THE_WAY; i++) {
        if (!world->ways[i].used) {
            copy++;
            world->ways[i] = (struct on_the_way){.used = !prng_chance(&world->prng, 150000),
                                                 .at = world->now + prng_below(&world->prng, 900),
                                                 .packet = *packet};
        }
    }
}

static void ask(struct world *world, uint32_t i)
{
    static const enum lant_atomic whats[] = {LANT_FETCH_ADD, LANT_SWAP, LANT_COMPARE_SWAP};
    const uint32_t token = world->asked[i];
    if (token == REQUESTS) {
        return;
    }
    const struct lant_shm_request request = {
        .address = lant_global(NODE, 0x1000 + 8 * prng_below(&world->prng, WORDS)),
        .data = prng_below(&world->prng, 4),
        .compare = prng_below(&world->prng, 4),
        .token = token,
        .size = 3,
        .strobe = 0xff,
        .atomic = (uint8_t)whats[prng_below(&world->prng, 3)]};
    if (!lant_shm_is_held(lant_shm_request(&world->shm[i], &request, world->now))) {
        world->requests[i][token] = request;
        world->asked[i]++;
    }
}

/* The target is done with a request: the model does it, unless it did it before. */
static void do_it(struct world *world, const struct lant_packet *packet)
{
    struct lant_packet answer;
    const uint32_t word = (uint32_t)(world->rig.work.address - 0x1000) / 8;
    const uint32_t i = packet->footer.source;
    const uint32_t token = world->shm[i].rows[packet->footer.row].request.token;
    const uint64_t old = world->words[word];
    const struct lant_shm_request *request = &world->requests[i][token];
    world->words[word] = lant_atomic_result((enum lant_atomic)world->rig.work.what, old,
                                            world->rig.work.operand, world->rig.work.compare);
    assert_false(world->done[i][token]);
    world->done[i][token] = true;
    world->held[i][token] = world->model[word];
    world->model[word] = request->atomic == LANT_FETCH_ADD ? world->model[word] + request->data
                         : request->atomic == LANT_SWAP    ? request->data
                         : world->model[word] == request->compare ? request->data
                                                                  : world->model[word];
    lant_atomics_on_memory(&world->rig.atomics, world->rig.work.tag, &packet->footer, old, &answer);
    put(world, &answer);
}

static void come(struct world *world, const struct lant_packet *packet)
{
    if (packet->header.type == LANT_R) {
        const uint32_t i = packet->header.destination;
        (void)lant_shm_on_answer(&world->shm[i], &world->errors[i], packet, world->now);
        return;
    }
    switch (arrive(&world->rig, packet, world->now)) {
    case LANT_ATOMIC_DO: do_it(world, packet); break;
    case LANT_ATOMIC_ANSWER: put(world, &world->rig.work.answer); break;
    case LANT_ATOMIC_DROP: break;
    }
}

static void take_done(struct world *world, uint32_t i)
{
    struct lant_shm_done done;
    while (lant_shm_next_done(&world->shm[i], world->now, &done)) {
        assert_int_equal(done.kind, LANT_SHM_GENUINE);
        assert_int_equal(done.response, LANT_OKAY);
        assert_true(world->done[i][done.token]);
        assert_int_equal(done.data, world->held[i][done.token]);
        world->answered[i]++;
    }
}

static void step(struct world *world)
{
    struct lant_packet packet;
    world->now += 1 + prng_below(&world->prng, 60);
    for (uint32_t i = 0; i < INITIATORS; i++) {
        ask(world, i);
        while (lant_shm_next_packet(&world->shm[i], &packet)) {
            lant_shm_sent(&world->shm[i], &packet.footer, world->now);
            put(world, &packet);
        }
        lant_shm_on_time(&world->shm[i], &world->errors[i], world->now);
        take_done(world, i);
    }
    for (uint32_t i = 0; i < ON_THE_WAY; i++) {
        if (world->ways[i].used && world->ways[i].at <= world->now) {
            packet = world->ways[i].packet;
            world->ways[i].used = false;
            come(world, &packet);
        }
    }
    lant_atomics_on_time(&world->rig.atomics, world->now);
}

static void open_world(struct world *world, uint64_t seed)
{
    memset(world, 0, sizeof(*world));
    prng_init(&world->prng, seed);
    start(&world->rig, ENTRIES);
    for (uint32_t i = 0; i < INITIATORS; i++) {
        const struct lant_errors_config errors = {.node = i, .in_charge = i};
        struct lant_shm_config config = LANT_SHM_DEFAULTS;
        config.node = i;
        config.rows = 4;
        config.timeout = 2000;
        config.retries = LANT_RETRIES_MAX;
        lant_shm_init(&world->shm[i], &config);
        lant_errors_init(&world->errors[i], &errors);
    }
}

/* LNI-W-4: 15 of 100 packets are lost, 20 come twice, and they overtake each other. */
static void test_random(void **state)
{
    (void)state;
    static struct world world;
    uint64_t repeated = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        open_world(&world, seed);
        uint32_t answered = 0;
        for (uint32_t steps = 0; answered < INITIATORS * REQUESTS; steps++) {
            assert_true(steps < 1000000);
            step(&world);
            answered = 0;
            for (uint32_t i = 0; i < INITIATORS; i++) {
                answered += world.answered[i];
            }
        }
        assert_memory_equal(world.words, world.model, sizeof(world.words));
        assert_int_equal(world.rig.atomics.counters.done, INITIATORS * REQUESTS);
        repeated += world.rig.atomics.counters.repeated;
    }
    assert_true(repeated > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results), cmocka_unit_test(test_once),
        cmocka_unit_test(test_room),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_asking),  cmocka_unit_test(test_giving_up),
        cmocka_unit_test(test_shapes),  cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
