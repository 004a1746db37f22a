/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A load or store that arrives reaches memory if and only if it may, once, and its answer
 *         repeats what it said; what cannot be done is answered with the reason.
 * Method  Cases by hand, with packets made here and memory's answers at will; then requests by
 *         chance against a model that keeps every request for ever.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/shm_target.h"

#define NODE 9u

struct rig {
    struct lant_shm_target target;
    struct lant_inbound inbound;
    struct lant_ranges ranges;
    struct lant_shm_work work;
    struct lant_packet answer;
    uint64_t memory[16384];
};

static void start(struct rig *rig, uint32_t recent, bool strict)
{
    const struct lant_shm_target_config config = {.node = NODE,
                                                  .recent = recent,
                                                  .lifetime = 1000,
                                                  .lock_lifetime = 200,
                                                  .strict_thesis = strict};
    const struct lant_inbound_config inbound = LANT_INBOUND_DEFAULTS;
    assert_true(lant_shm_recent_bytes(recent) <= sizeof(rig->memory));
    lant_shm_target_init(&rig->target, &config, rig->memory);
    lant_inbound_init(&rig->inbound, &inbound);
    rig->ranges = (struct lant_ranges){
        .count = 3,
        .ranges = {{.base = 0x1000, .bytes = 0x1000, .may_read = true, .may_write = true},
                   {.base = 0x4000, .bytes = 0x1000, .may_read = true},
                   {.base = 0x6000, .bytes = 0x0ffc, .may_write = true}}};
}

static struct lant_packet request(uint8_t type, uint32_t source, uint32_t sequence,
                                  uint64_t address)
{
    return (struct lant_packet){
        .header = {.destination = NODE,
                   .type = type,
                   .payload = type == LANT_AW,
                   .address = address,
                   .strobe = 0xff,
                   .size = 3},
        .footer = {.source = source,
                   .class = LANT_CLASS_SHM,
                   .row = 13,
                   .generation = 201,
                   .bus_id = 77,
                   .operation = (uint16_t)(sequence >> 17),
                   .offset = sequence & 0x1ffff,
                   .attempt = 2},
        .payload = {UINT64_C(0x1122334455667788)},
    };
}

static struct lant_packet exclusive(uint8_t type, uint32_t source, uint32_t sequence)
{
    struct lant_packet packet = request(type, source, sequence, 0x1000);
    packet.header.lock = true;
    return packet;
}

static enum lant_shm_action arrive(struct rig *rig, const struct lant_packet *packet, uint64_t now)
{
    lant_shm_target_on_request(&rig->target, &rig->inbound, &rig->ranges, packet, now, &rig->work);
    return (enum lant_shm_action)rig->work.action;
}

/* Memory answers the oldest access of the local ID. */
static enum lant_response remember(struct rig *rig, uint8_t type, enum lant_response response,
                                   uint64_t data)
{
    struct lant_inbound_record record;
    assert_true(lant_inbound_on_memory(&rig->inbound, type == LANT_AW ? LANT_WRITES : LANT_READS,
                                       rig->work.local_id, response, &record));
    lant_shm_target_on_memory(&rig->target, &record, data, &rig->answer);
    return (enum lant_response)rig->answer.footer.response;
}

/* The packet is refused with this response. */
static void expect_refusal(struct rig *rig, struct lant_packet packet, enum lant_response response)
{
    assert_int_equal(arrive(rig, &packet, 0), LANT_SHM_ANSWER);
    assert_int_equal(rig->work.answer.footer.response, response);
    assert_int_equal(rig->work.answer.header.type, packet.header.type == LANT_AW ? LANT_B : LANT_R);
    assert_true(lant_inbound_idle(&rig->inbound));
}

/* LNI-28, LNI-29, LNI-18: what goes to memory, and what comes back. */
static void test_load_and_store(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 256, false);
    struct lant_packet store = request(LANT_AW, 3, 0x1abcdef0, 0x1012);
    store.header.size = 1;
    store.header.strobe = 0x0c;
    assert_int_equal(arrive(&rig, &store, 0), LANT_SHM_WRITE);
    assert_int_equal(rig.work.address, 0x1010);
    assert_int_equal(rig.work.strobe, 0x0c);
    assert_int_equal(rig.work.data, store.payload[0]);
    assert_int_equal(remember(&rig, LANT_AW, LANT_OKAY, 99), LANT_OKAY);
    assert_int_equal(rig.answer.header.type, LANT_B);
    assert_int_equal(rig.answer.header.payload, 0);
    assert_int_equal(rig.answer.header.destination, 3);
    const struct lant_footer *footer = &rig.answer.footer;
    assert_int_equal(footer->source, NODE);
    assert_int_equal(footer->class, LANT_CLASS_SHM);
    assert_int_equal(footer->row, 13);
    assert_int_equal(footer->generation, 201);
    assert_int_equal(footer->bus_id, 77);
    assert_int_equal(lant_sequence_of(footer), 0x1abcdef0);
    assert_int_equal(footer->attempt, 2);

    struct lant_packet load = request(LANT_AR, 3, 4, 0x1024);
    load.header.size = 2;
    load.header.strobe = 0xf0;
    assert_int_equal(arrive(&rig, &load, 0), LANT_SHM_READ);
    assert_int_equal(rig.work.address, 0x1020);
    assert_int_equal(remember(&rig, LANT_AR, LANT_OKAY, UINT64_C(0x123456789abcdef0)), LANT_OKAY);
    assert_int_equal(rig.answer.header.type, LANT_R);
    assert_int_equal(rig.answer.header.payload, 1);
    /* Not a byte that was not asked for: it may be nobody's business. */
    assert_int_equal(rig.answer.payload[0], UINT64_C(0x1234567800000000));
}

/* DECERR: nothing there; SLVERR: not so; and what makes no sense. */
static void test_refusals(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 256, false);
    expect_refusal(&rig, request(LANT_AR, 3, 1, 0x3000), LANT_DECERR);
    expect_refusal(&rig, request(LANT_AW, 3, 1, 0x0ff8), LANT_DECERR);
    expect_refusal(&rig, request(LANT_AW, 3, 1, 0x4000), LANT_SLVERR);
    expect_refusal(&rig, request(LANT_AR, 3, 1, 0x6000), LANT_SLVERR);
    expect_refusal(&rig, request(LANT_AW, 3, 1, 0x6ff8), LANT_DECERR); /* Its end is outside. */
    struct lant_packet packet = request(LANT_AW, 3, 1, 0x1000);
    packet.header.destination = NODE + 1;
    expect_refusal(&rig, packet, LANT_DECERR);
    packet = request(LANT_AW, 3, 1, 0x1004);
    expect_refusal(&rig, packet, LANT_SLVERR);
    packet.header.size = 2;
    expect_refusal(&rig, packet, LANT_SLVERR);
    packet.header.strobe = 0xf0;
    packet.header.size = 4;
    expect_refusal(&rig, packet, LANT_SLVERR);
    packet.header.size = 2;
    packet.footer.class = LANT_CLASS_RDMA;
    assert_int_equal(arrive(&rig, &packet, 0), LANT_SHM_DROP);
    assert_int_equal(rig.target.counters.stores + rig.target.counters.loads, 0);
    assert_int_equal(rig.target.recent.count, 0);
    packet.footer.class = LANT_CLASS_SHM;
    lant_shm_refuse(NODE, &packet, LANT_NACK_CRC, &rig.answer);
    assert_int_equal(rig.answer.header.payload, 0);
    assert_int_equal(rig.answer.footer.response, LANT_NACK_CRC);
}

/* LNI-17: nothing of a held packet is remembered, not even its lock. */
static void test_held(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 256, false);
    for (uint32_t i = 0; i < 8; i++) {
        const struct lant_packet packet = request(LANT_AR, 20 + i, 0, 0x1000);
        assert_int_equal(arrive(&rig, &packet, 0), LANT_SHM_READ);
    }
    const struct lant_packet load = exclusive(LANT_AR, 3, 7);
    assert_int_equal(arrive(&rig, &load, 0), LANT_SHM_HOLD);
    assert_int_equal(lant_exclusive_count(&rig.target.exclusive), 0);
    assert_int_equal(rig.target.recent.count, 0);
    assert_int_equal(remember(&rig, LANT_AR, LANT_OKAY, 0), LANT_OKAY);
    assert_int_equal(arrive(&rig, &load, 1), LANT_SHM_READ);
    assert_int_equal(remember(&rig, LANT_AR, LANT_OKAY, 0), LANT_EXOKAY);
}

/* A store that comes again is done once: while it is under way, afterwards, and until it is
 * forgotten; in the strict mode it is done again. */
static void test_repeated_store(void **state)
{
    (void)state;
    for (uint32_t strict = 0; strict < 2; strict++) {
        struct rig rig;
        start(&rig, 256, strict != 0);
        const struct lant_packet store = request(LANT_AW, 3, 7, 0x1000);
        struct lant_packet again = store;
        again.footer.attempt = 3;
        assert_int_equal(arrive(&rig, &store, 0), LANT_SHM_WRITE);
        assert_int_equal(arrive(&rig, &again, 1), strict != 0 ? LANT_SHM_WRITE : LANT_SHM_DROP);
        assert_int_equal(remember(&rig, LANT_AW, LANT_SLVERR, 0), LANT_SLVERR);
        assert_int_equal(arrive(&rig, &again, 2), strict != 0 ? LANT_SHM_WRITE : LANT_SHM_ANSWER);
        if (strict == 0) {
            assert_int_equal(rig.work.answer.footer.response, LANT_SLVERR);
            assert_int_equal(rig.work.answer.footer.attempt, 3);
            assert_int_equal(arrive(&rig, &again, 999), LANT_SHM_ANSWER);
            assert_int_equal(arrive(&rig, &again, 1000), LANT_SHM_WRITE);
        }
    }
}

/* A request that was done stays done, though the memory was withdrawn before its copy came. Its
 * sender hears so, and is not told that there is no such memory. */
static void test_repeated_after_withdrawal(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 256, false);
    const struct lant_packet store = request(LANT_AW, 3, 7, 0x1000);
    assert_int_equal(arrive(&rig, &store, 0), LANT_SHM_WRITE);
    assert_int_equal(remember(&rig, LANT_AW, LANT_OKAY, 0), LANT_OKAY);
    rig.ranges.count = 0;
    assert_int_equal(arrive(&rig, &store, 1), LANT_SHM_ANSWER);
    assert_int_equal(rig.work.answer.footer.response, LANT_OKAY);
    assert_int_equal(rig.target.counters.repeated, 1);
    expect_refusal(&rig, request(LANT_AW, 3, 8, 0x1000), LANT_DECERR);
}

/* A load is just done again. */
static void test_repeated_load(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 256, false);
    const struct lant_packet load = request(LANT_AR, 3, 7, 0x1000);
    assert_int_equal(arrive(&rig, &load, 0), LANT_SHM_READ);
    assert_int_equal(arrive(&rig, &load, 0), LANT_SHM_READ);
    assert_int_equal(rig.target.recent.count, 0);
}

/* LNI-36, LNI-39: the pair of an exclusive access, each packet twice; both answers are equal. */
static void test_exclusive_pair(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 256, false);
    const struct lant_packet load = exclusive(LANT_AR, 3, 7), store = exclusive(LANT_AW, 3, 8);
    const struct lant_packet other = exclusive(LANT_AR, 4, 7), wrong = exclusive(LANT_AW, 4, 8);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(arrive(&rig, &load, i), LANT_SHM_READ);
        assert_int_equal(remember(&rig, LANT_AR, LANT_OKAY, 5), LANT_EXOKAY);
        expect_refusal(&rig, other, LANT_LOCKED);
        assert_int_equal(rig.work.answer.header.payload, 1); /* No NACK: LNI-38. */
        expect_refusal(&rig, wrong, LANT_LOCKED);
    }
    assert_int_equal(arrive(&rig, &store, 2), LANT_SHM_WRITE);
    assert_int_equal(arrive(&rig, &store, 2), LANT_SHM_DROP);
    assert_int_equal(remember(&rig, LANT_AW, LANT_OKAY, 0), LANT_EXOKAY);
    assert_int_equal(lant_exclusive_count(&rig.target.exclusive), 0);
    expect_refusal(&rig, store, LANT_EXOKAY);
    /* A late copy of the load does not lock again; the refused load stays refused. */
    assert_int_equal(arrive(&rig, &load, 3), LANT_SHM_READ);
    assert_int_equal(remember(&rig, LANT_AR, LANT_OKAY, 6), LANT_EXOKAY);
    assert_int_equal(lant_exclusive_count(&rig.target.exclusive), 0);
    expect_refusal(&rig, other, LANT_LOCKED);
    /* Its initiator's next try has a new number, and succeeds. */
    const struct lant_packet next = exclusive(LANT_AR, 4, 9);
    assert_int_equal(arrive(&rig, &next, 4), LANT_SHM_READ);
    assert_int_equal(remember(&rig, LANT_AR, LANT_OKAY, 0), LANT_EXOKAY);
    assert_int_equal(lant_shm_target_deadline(&rig.target), 204); /* LNI-40. */
    lant_shm_target_on_time(&rig.target, 204);
    assert_int_equal(lant_exclusive_count(&rig.target.exclusive), 0);
}

/* Memory refuses the load: there is no lock. */
static void test_exclusive_error(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 256, false);
    const struct lant_packet load = exclusive(LANT_AR, 3, 7);
    assert_int_equal(arrive(&rig, &load, 0), LANT_SHM_READ);
    assert_int_equal(remember(&rig, LANT_AR, LANT_SLVERR, 5), LANT_SLVERR);
    assert_int_equal(rig.answer.payload[0], 0);
    assert_int_equal(lant_exclusive_count(&rig.target.exclusive), 0);
    expect_refusal(&rig, load, LANT_SLVERR);
}

/* A sequence that is used again too early is taken for a duplicate. If the target forgets
 * after T, and met the request only with its last attempt, T after it was made, the sequence is
 * free after 2 T and not after T. */
static void test_lifetime_twice(void **state)
{
    (void)state;
    struct rig rig;
    start(&rig, 256, false);
    const struct lant_packet store = request(LANT_AW, 3, 7, 0x1000);
    struct lant_packet later = request(LANT_AW, 3, 7, 0x1008);
    assert_int_equal(arrive(&rig, &store, 999), LANT_SHM_WRITE);
    (void)remember(&rig, LANT_AW, LANT_OKAY, 0);
    assert_int_equal(arrive(&rig, &later, 1000), LANT_SHM_ANSWER); /* Not written! */
    assert_int_equal(arrive(&rig, &later, 2000), LANT_SHM_WRITE);
}

/* -- By chance ----------------------------------------------------------------------------------*/

#define MODEL_REQUESTS 1500u

/* The state of each sequence number, for ever: -2 not done, -1 under way, else its response. */
struct model {
    int done[MODEL_REQUESTS];
    uint32_t holder; /* The node that has the one address that is locked; 0: none. */
};

/* Answers by the model's rules: -3 means that memory is asked. */
static int expected_of(const struct model *model, const struct lant_packet *packet,
                       uint32_t sequence)
{
    const bool store = packet->header.type == LANT_AW;
    const int before = model->done[sequence];
    if (before == -1) {
        return -1;
    }
    if (before >= 0) {
        return !store && before == LANT_EXOKAY ? -3 : before;
    }
    if (!packet->header.lock) {
        return -3;
    }
    const bool mine = model->holder == packet->footer.source;
    return store ? (mine ? -3 : LANT_LOCKED) : (mine || model->holder == 0 ? -3 : LANT_LOCKED);
}

/* The packet of a sequence is always the same. */
static struct lant_packet packet_of(uint32_t sequence)
{
    const uint32_t source = 3 + sequence % 2, kind = sequence / 2 % 4;
    return kind == 0 ? request(LANT_AW, source, sequence, 0x1800)
                     : exclusive(kind == 1 ? LANT_AW : LANT_AR, source, sequence);
}

static void one_request(struct prng *prng, struct rig *rig, struct model *model, uint32_t newest)
{
    /* New ones, and any of the last 40 again. */
    const uint32_t back = prng_chance(prng, 400000) ? 0 : (uint32_t)prng_below(prng, 40);
    const uint32_t sequence = newest - (back < newest ? back : newest);
    const struct lant_packet packet = packet_of(sequence);
    const int expected = expected_of(model, &packet, sequence);
    const bool first = model->done[sequence] == -2;
    const bool store = packet.header.type == LANT_AW;
    const enum lant_shm_action action = arrive(rig, &packet, newest / 10);
    if (expected == -1) {
        assert_int_equal(action, LANT_SHM_DROP);
        return;
    }
    if (expected >= 0) {
        assert_int_equal(action, LANT_SHM_ANSWER);
        assert_int_equal(rig->work.answer.footer.response, expected);
        model->done[sequence] = expected;
        return;
    }
    assert_int_equal(action, store ? LANT_SHM_WRITE : LANT_SHM_READ);
    model->done[sequence] = first ? -1 : model->done[sequence];
    if (first && packet.header.lock && !store) {
        model->holder = packet.footer.source;
    }
    /* A copy while memory has not answered. */
    if (first && prng_chance(prng, 300000)) {
        const uint8_t local_id = rig->work.local_id;
        assert_int_equal(arrive(rig, &packet, newest / 10), LANT_SHM_DROP);
        rig->work.local_id = local_id;
    }
    const enum lant_response response =
        remember(rig, packet.header.type, LANT_OKAY, UINT64_C(0x55));
    assert_int_equal(response, packet.header.lock ? LANT_EXOKAY : LANT_OKAY);
    if (first && store && packet.header.lock) {
        model->holder = 0;
    }
    model->done[sequence] = (int)response;
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct prng prng;
        static struct rig rig;
        struct model model = {0};
        prng_init(&prng, seed);
        start(&rig, 2048, false);
        for (uint32_t i = 0; i < MODEL_REQUESTS; i++) {
            model.done[i] = -2;
        }
        for (uint32_t newest = 0; newest < MODEL_REQUESTS; newest++) {
            one_request(&prng, &rig, &model, newest);
        }
        assert_true(lant_inbound_idle(&rig.inbound));
        assert_int_equal(rig.target.recent.evicted, 0);
        const struct lant_shm_target_counters *counters = &rig.target.counters;
        assert_true(counters->repeated > 50 && counters->locked > 20 && counters->under_way > 20);
        assert_true(rig.target.exclusive.counters.written > 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_and_store),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_held),
        cmocka_unit_test(test_repeated_store),
        cmocka_unit_test(test_repeated_after_withdrawal),
        cmocka_unit_test(test_repeated_load),
        cmocka_unit_test(test_exclusive_pair),
        cmocka_unit_test(test_exclusive_error),
        cmocka_unit_test(test_lifetime_twice),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
