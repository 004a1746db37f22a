/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A right program is never accused, whatever order its requests complete in; each rule is
 *         told when it is broken, once, and of the request that breaks it.
 * Method  Random programs that keep all rules, with queue pairs that fail and are reset; then a
 *         table of mistakes. tests/zoo makes the same mistakes with real programs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "checker/checker.h"

enum {
    QPN = 17,
    CQ = 3,
    SRQ = 5,
    SENDS = 8,
    RECEIVES = 4,
    KEY = 0x100,
    READ_ONLY = 0x200,
    MEMORY = 4096,
    STEPS = 20000,
    SEEDS = 20,
};

static uint8_t memory[MEMORY];

/* The address is an offset in `memory`. */
static bool sum(const struct segment *segments, uint32_t count, uint32_t *result)
{
    *result = 1;
    for (uint32_t i = 0; i < count; i++) {
        assert_true(segments[i].address + segments[i].bytes <= MEMORY);
        for (uint32_t at = 0; at < segments[i].bytes; at++) {
            *result = *result * 31 + memory[segments[i].address + at];
        }
    }
    return true;
}

static enum reach_verdict judge(const struct pd *domain, const struct sge *sge, bool writes,
                                struct checker_reach *reach)
{
    (void)domain;
    reach->bytes = MEMORY;
    if (sge->key != KEY && sge->key != READ_ONLY) {
        return REACH_UNKNOWN_KEY;
    }
    if (sge->address + sge->bytes > MEMORY) {
        return REACH_OUT_OF_BOUNDS;
    }
    reach->segment = (struct segment){.address = sge->address, .bytes = sge->bytes};
    return writes && sge->key == READ_ONLY ? REACH_FORBIDDEN : REACH_ALLOWED;
}

static struct checker_frame frame_of_memory; /* All of it; `stack` is 0: none. */
static bool has_returned;

static bool on_stack(const struct segment *segment, struct checker_frame *frame)
{
    (void)segment;
    *frame = frame_of_memory;
    return frame->stack != 0;
}

static bool may_be_live(const struct checker_frame *frame)
{
    assert_int_equal(frame->stack, frame_of_memory.stack);
    return !has_returned;
}

static const struct checker_memory world = {
    .sum = sum, .judge = judge, .on_stack = on_stack, .may_be_live = may_be_live};

static void *room(size_t bytes)
{
    void *memory_of = calloc(1, bytes);
    assert_non_null(memory_of);
    return memory_of;
}

static struct checker *make_with(const struct checker_memory *told, enum qp_type type, uint32_t srq,
                                 uint32_t entries)
{
    struct checker *checker = checker_init(room(checker_bytes()), told);
    const struct checker_qp_request request = {.qpn = QPN,
                                               .type = type,
                                               .capacity = {.sends = SENDS,
                                                            .receives = RECEIVES,
                                                            .send_sges = 2,
                                                            .receive_sges = 1,
                                                            .inline_bytes = 16},
                                               .send_cq = CQ,
                                               .receive_cq = CQ,
                                               .srq = srq};
    checker_cq_made(checker, CQ, entries, room(checker_cq_bytes()));
    checker_qp_made(checker, &request, room(checker_qp_bytes(&request)));
    return checker;
}

static struct checker *make(enum qp_type type, uint32_t srq, uint32_t entries)
{
    return make_with(&world, type, srq, entries);
}

static void unmake(struct checker *checker)
{
    free(checker_qp_gone(checker, QPN));
    free(checker_cq_gone(checker, CQ));
    free(checker_srq_gone(checker, SRQ));
    free(checker);
}

/* Exactly this rule was told, `count` times. */
static void expect(struct checker *checker, enum checker_rule rule, int count)
{
    struct checker_finding finding;
    for (; count > 0; count--) {
        assert_true(checker_take(checker, &finding));
        assert_string_equal(checker_rules[finding.rule].name, checker_rules[rule].name);
        assert_true(finding.text[0] != '\0');
    }
    if (checker_take(checker, &finding)) {
        fail_msg("%s: %s", checker_rules[finding.rule].name, finding.text);
    }
}

static void expect_nothing(struct checker *checker)
{
    expect(checker, CHECKER_RULE_COUNT, 0);
}

/* -- Programs that keep all rules ---------------------------------------------------------------*/

/* The requests that are posted and not polled, as the program knows them. */
struct model {
    uint64_t wr_ids[SENDS];
    bool signaled[SENDS];
    uint32_t first, count;
    uint64_t receives[RECEIVES];
    uint32_t first_receive, receive_count;
    uint64_t serial;
};

static void post_some(struct checker *checker, struct model *model, struct prng *prng)
{
    /* Each has memory of its own, in turn. The last free slot is for one that is signaled. */
    const struct sge sge = {.address = 64 * (model->serial % SENDS), .bytes = 64, .key = KEY};
    static const enum work_kind kinds[] = {WORK_SEND, WORK_WRITE, WORK_READ};
    const bool signaled = model->count == SENDS - 1 || prng_chance(prng, 300000);
    const struct send_request request = {.wr_id = model->serial % 3,
                                         .kind = kinds[prng_below(prng, COUNT_OF(kinds))],
                                         .flags = (signaled ? WORK_SIGNALED : 0) | WORK_FENCE,
                                         .sges = &sge,
                                         .sge_count = 1,
                                         .remote_address = 64 * (model->serial % SENDS),
                                         .remote_key = 1};
    const uint32_t at = (model->first + model->count++) % SENDS;
    model->wr_ids[at] = request.wr_id;
    model->signaled[at] = signaled;
    model->serial++;
    checker_send(checker, QPN, &request, 1);
    if (prng_chance(prng, 50000)) { /* The NIC refuses it. */
        checker_unsend(checker, QPN, 1);
        model->count--;
        model->serial--;
    }
}

static void poll_one(struct checker *checker, struct model *model)
{
    uint32_t covered = 0;
    while (covered < model->count && !model->signaled[(model->first + covered) % SENDS]) {
        covered++;
    }
    if (covered == model->count) {
        return;
    }
    const struct completion completion = {.wr_id = model->wr_ids[(model->first + covered) % SENDS],
                                          .qpn = QPN};
    checker_polled(checker, &completion);
    /* From now on the program may write there. */
    for (uint32_t i = 0; i <= covered; i++) {
        memory[64 * ((model->serial - model->count + i) % SENDS)]++;
    }
    model->first = (model->first + covered + 1) % SENDS;
    model->count -= covered + 1;
}

static void receive_some(struct checker *checker, struct model *model, struct prng *prng)
{
    const struct sge sge = {.address = 2048, .bytes = 64, .key = KEY};
    if (model->receive_count < RECEIVES && prng_chance(prng, 500000)) {
        const uint64_t wr_id = prng_below(prng, 3);
        checker_receive(checker, QPN, 0, wr_id, &sge, 1, 2);
        model->receives[(model->first_receive + model->receive_count++) % RECEIVES] = wr_id;
    } else if (model->receive_count > 0) {
        const struct completion completion = {
            .wr_id = model->receives[model->first_receive], .qpn = QPN, .kind = COMPLETION_RECEIVE};
        checker_polled(checker, &completion);
        model->first_receive = (model->first_receive + 1) % RECEIVES;
        model->receive_count--;
    }
}

static void reset(struct checker *checker, struct model *model, struct prng *prng)
{
    const struct qp_attributes attributes = {.state =
                                                 prng_chance(prng, 500000) ? QP_ERR : QP_RESET};
    checker_modified(checker, QPN, &attributes, QP_ATTR_STATE, STATUS_OK, 0, 0);
    if (attributes.state == QP_ERR) { /* All that is posted comes back, signaled or not. */
        for (; model->count > 0; model->count--) {
            const struct completion completion = {
                .wr_id = model->wr_ids[model->first], .qpn = QPN, .status = COMPLETION_FLUSHED};
            checker_polled(checker, &completion);
            model->first = (model->first + 1) % SENDS;
        }
        const struct qp_attributes back = {.state = QP_RESET};
        checker_modified(checker, QPN, &back, QP_ATTR_STATE, STATUS_OK, 0, 0);
    }
    model->count = model->receive_count = 0;
}

static void test_right_programs(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct prng prng;
        struct model model = {.serial = 0};
        struct checker *checker = make(QP_RC, 0, SENDS + RECEIVES);
        prng_init(&prng, seed);
        for (int step = 0; step < STEPS; step++) {
            if (prng_chance(&prng, 500000) && model.count < SENDS) {
                post_some(checker, &model, &prng);
            } else if (prng_chance(&prng, 2000)) {
                reset(checker, &model, &prng);
            } else {
                poll_one(checker, &model);
            }
            receive_some(checker, &model, &prng);
            expect_nothing(checker);
        }
        unmake(checker);
    }
}

/* -- Mistakes -----------------------------------------------------------------------------------*/

static void post(struct checker *checker, enum work_kind kind, uint32_t flags, uint64_t address,
                 uint32_t key)
{
    const struct sge sge = {.address = address, .bytes = 64, .key = key};
    const struct send_request request = {.wr_id = 7,
                                         .kind = kind,
                                         .flags = flags,
                                         .sges = &sge,
                                         .sge_count = 1,
                                         .remote_address = 1000,
                                         .remote_key = 1};
    checker_send(checker, QPN, &request, 1);
}

static void complete(struct checker *checker, uint8_t status)
{
    const struct completion completion = {.wr_id = 7, .qpn = QPN, .status = status};
    checker_polled(checker, &completion);
}

static void test_memory(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    post(checker, WORK_SEND, 0, 0, KEY);
    post(checker, WORK_SEND, WORK_SIGNALED, 64, KEY);
    memory[5]++; /* The first request sends it, and the completion of the second covers both. */
    complete(checker, COMPLETION_SUCCESS);
    expect(checker, CHECKER_SEND_CHANGED, 1);

    post(checker, WORK_SEND, WORK_SIGNALED | WORK_INLINE, 0, 1);
    memory[5]++;
    complete(checker, COMPLETION_SUCCESS);
    expect_nothing(checker);

    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    memory[5]++; /* It is posted anew, and nobody ever polls. */
    post(checker, WORK_SEND, WORK_SIGNALED, 32, KEY);
    expect(checker, CHECKER_SEND_CHANGED, 1);
    memory[5]++; /* Not of the second one, but the first was told already. */
    complete(checker, COMPLETION_SUCCESS);
    complete(checker, COMPLETION_SUCCESS);
    expect_nothing(checker);
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    memory[70]++;
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    post(checker, WORK_SEND, WORK_SIGNALED, 64, KEY);
    expect_nothing(checker);
    for (int i = 0; i < 3; i++) {
        complete(checker, COMPLETION_SUCCESS);
    }
    expect_nothing(checker);

    post(checker, WORK_SEND, WORK_SIGNALED, 0, 1);
    expect(checker, CHECKER_BAD_KEY, 1);
    post(checker, WORK_SEND, WORK_SIGNALED, MEMORY - 63, KEY);
    expect(checker, CHECKER_BAD_KEY, 1);
    post(checker, WORK_SEND, WORK_SIGNALED, 128, READ_ONLY);
    expect_nothing(checker);
    post(checker, WORK_READ, WORK_SIGNALED, 256, READ_ONLY);
    expect(checker, CHECKER_BAD_KEY, 1);
    unmake(checker);
}

static void test_regions(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    checker_region_gone(checker, READ_ONLY);
    checker_region_gone(checker, KEY);
    expect_nothing(checker);
    complete(checker, COMPLETION_SUCCESS);
    expect(checker, CHECKER_REGION_GONE, 1);
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    checker_region_gone(checker, KEY);
    complete(checker, COMPLETION_FLUSHED); /* The program has closed the connection. */
    expect_nothing(checker);
    unmake(checker);
}

static uint32_t given_back;

static void count_back(const void *slot)
{
    assert_non_null(slot);
    given_back++;
}

/* Memory whose region goes is told to be the program's, whether the queue pair has failed or not;
 * and once more when the request ends. */
static void test_region_gives_back(void **state)
{
    (void)state;
    struct checker_memory counted = world;
    counted.give_back = count_back;
    for (int failed = 0; failed < 2; failed++) {
        struct checker *checker = make_with(&counted, QP_RC, 0, 64);
        given_back = 0;
        post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
        post(checker, WORK_SEND, WORK_SIGNALED, 128, READ_ONLY);
        if (failed) {
            complete(checker, COMPLETION_FLUSHED);
            assert_int_equal(given_back, 1);
            post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
        }
        const uint32_t before = given_back;
        checker_region_gone(checker, KEY);
        assert_int_equal(given_back, before + 1);
        unmake(checker);
        assert_int_equal(given_back, before + 3);
    }
}

/* Memory that is freed under a request, by bytes that touch its first or its last one. */
static void test_freed(void **state)
{
    (void)state;
    static const struct {
        uint64_t address, bytes;
        bool told;
    } rows[] = {{0, 1, true}, {63, 1, true}, {64, MEMORY - 64, false}, {0, MEMORY, true}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct checker *checker = make(QP_RC, 0, 64);
        struct checker_finding finding;
        assert_false(checker_may_be_lent(checker, 0, MEMORY));
        post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
        assert_true(checker_may_be_lent(checker, 0, 1));
        assert_false(checker_may_be_lent(checker, MEMORY, MEMORY));
        checker_freed(checker, rows[i].address, rows[i].bytes, 5);
        expect_nothing(checker); /* The program may still close the connection. */
        complete(checker, COMPLETION_SUCCESS);
        assert_int_equal(rows[i].told, checker_take(checker, &finding));
        if (rows[i].told) {
            assert_int_equal(finding.rule, CHECKER_FREED);
            assert_int_equal(finding.freed, 5);
        }
        assert_false(checker_may_be_lent(checker, 0, MEMORY));
        unmake(checker);
    }
}

/* The variable of a function that has returned, and one of a function that has not. */
static void test_stack(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    frame_of_memory.stack = 1;
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    complete(checker, COMPLETION_SUCCESS);
    expect_nothing(checker);
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    has_returned = true;
    complete(checker, COMPLETION_SUCCESS);
    expect(checker, CHECKER_STACK_GONE, 1);
    frame_of_memory.stack = 0;
    has_returned = false;
    unmake(checker);
}

static void test_order(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    post(checker, WORK_READ, WORK_SIGNALED, 0, KEY);
    post(checker, WORK_SEND, WORK_FENCE, 32, KEY);
    post(checker, WORK_SEND, 0, 64, KEY);
    expect_nothing(checker);
    post(checker, WORK_SEND, 0, 63, KEY);
    expect(checker, CHECKER_FENCE, 1);
    post(checker, WORK_WRITE, 0, 256, KEY);
    expect(checker, CHECKER_READ_OVERTAKEN, 1);
    complete(checker, COMPLETION_SUCCESS);
    post(checker, WORK_WRITE, 0, 0, KEY);
    expect_nothing(checker);
    unmake(checker);
}

static void test_slots(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    for (int i = 0; i < SENDS; i++) {
        post(checker, WORK_SEND, 0, 0, KEY);
    }
    expect_nothing(checker);
    post(checker, WORK_SEND, 0, 0, KEY);
    expect(checker, CHECKER_NEVER_SIGNALED, 1);
    for (int i = 0; i < 10 * SENDS; i++) { /* More than there is an account for. */
        post(checker, WORK_SEND, i == 0 ? WORK_SIGNALED : 0, 0, KEY);
    }
    expect_nothing(checker); /* It was told. */
    unmake(checker);

    checker = make(QP_RC, 0, 64);
    for (int i = 0; i <= SENDS; i++) {
        post(checker, WORK_SEND, i == 2 ? WORK_SIGNALED : 0, 0, KEY);
    }
    expect(checker, CHECKER_SEND_SLOTS, 1);
    unmake(checker);

    checker = make(QP_RC, 0, 3);
    const struct sge sge = {.address = 0, .bytes = 64, .key = KEY};
    for (int i = 0; i < 3; i++) {
        checker_receive(checker, QPN, 0, 1, &sge, 1, 1);
    }
    expect_nothing(checker);
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    expect(checker, CHECKER_CQ_ROOM, 1);
    checker_receive(checker, QPN, 0, 1, &sge, 1, 1);
    expect_nothing(checker);
    checker_receive(checker, QPN, 0, 1, &sge, 1, 1);
    expect(checker, CHECKER_RECEIVE_SLOTS, 1);
    unmake(checker);
}

/* A thousand requests, four at a time: all of them signaled, or one in four. */
static void test_signals(void **state)
{
    (void)state;
    for (int all = 0; all < 2; all++) {
        struct checker *checker = make(QP_RC, 0, 64);
        for (int i = 1; i <= 1000; i++) {
            post(checker, WORK_SEND, all || i % 4 == 0 ? WORK_SIGNALED : 0, 0, KEY);
            for (int j = 0; i % 4 == 0 && j < (all ? 4 : 1); j++) {
                complete(checker, COMPLETION_SUCCESS);
            }
        }
        void *left = checker_qp_gone(checker, QPN);
        expect(checker, CHECKER_SIGNAL_EACH, all);
        free(left);
        unmake(checker);
    }
}

static void test_empty_receive(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    const struct sge sge = {.key = KEY};
    checker_receive(checker, QPN, 0, 1, &sge, 0, 1);
    expect_nothing(checker);
    checker_receive(checker, QPN, 0, 1, &sge, 1, 1);
    expect(checker, CHECKER_EMPTY_SGE, 1);
    unmake(checker);
}

/* Receives of a shared queue complete in any order. */
static void test_shared_receives(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, SRQ, 64);
    const struct checker_srq_request shape = {.number = SRQ, .receives = RECEIVES, .sges = 1};
    const struct sge sge = {.address = 0, .bytes = 64, .key = KEY};
    checker_srq_made(checker, &shape, room(checker_srq_bytes(&shape)));
    for (uint64_t round = 0; round < 100; round++) {
        for (uint64_t i = 0; i < RECEIVES; i++) {
            checker_receive(checker, 0, SRQ, i, &sge, 1, 1);
        }
        for (uint64_t i = 0; i < RECEIVES; i++) {
            const struct completion completion = {
                .wr_id = (i * 3 + round) % RECEIVES, .qpn = QPN, .kind = COMPLETION_RECEIVE};
            checker_polled(checker, &completion);
        }
        expect_nothing(checker);
    }
    /* The first lasts, while the others come and go. */
    checker_receive(checker, 0, SRQ, 99, &sge, 1, 1);
    for (uint64_t i = 0; i < 100; i++) {
        const struct completion completion = {.wr_id = i, .qpn = QPN, .kind = COMPLETION_RECEIVE};
        checker_receive(checker, 0, SRQ, i, &sge, 1, 1);
        checker_polled(checker, &completion);
    }
    expect_nothing(checker);
    for (uint64_t i = 0; i <= RECEIVES; i++) {
        checker_receive(checker, 0, SRQ, i, &sge, 1, 1);
    }
    expect(checker, CHECKER_RECEIVE_SLOTS, 1);
    unmake(checker);
}

/* Receives of a shared queue outlast its size: their memory is the NIC's until they are polled. */
static void test_shared_queue_that_is_resized(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, SRQ, 64);
    struct checker_srq_request shape = {.number = SRQ, .receives = RECEIVES, .sges = 1};
    const struct sge sge = {.address = 8, .bytes = 64, .key = KEY};
    checker_srq_made(checker, &shape, room(checker_srq_bytes(&shape)));
    for (uint64_t i = 0; i < RECEIVES; i++) {
        checker_receive(checker, 0, SRQ, i, &sge, 1, 1);
    }
    for (uint64_t i = RECEIVES; i > 1; i--) { /* The oldest one is the last, over all sizes. */
        const struct completion completion = {
            .wr_id = i - 1, .qpn = QPN, .kind = COMPLETION_RECEIVE};
        checker_polled(checker, &completion);
        shape.receives = i % 2 == 0 ? 2 : 300;
        free(checker_srq_resized(checker, &shape, room(checker_srq_bytes(&shape))));
        assert_true(checker_may_be_lent(checker, 8, 64));
    }
    checker_freed(checker, 8, 64, 7);
    const struct completion completion = {.wr_id = 0, .qpn = QPN, .kind = COMPLETION_RECEIVE};
    checker_polled(checker, &completion);
    expect(checker, CHECKER_FREED, 1);
    assert_false(checker_may_be_lent(checker, 8, 64));
    unmake(checker);
}

static void test_datagrams_that_change(void **state)
{
    (void)state;
    struct checker *checker = make(QP_UD, 0, 64);
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    memory[5]++;
    complete(checker, COMPLETION_SUCCESS);
    expect(checker, CHECKER_DATAGRAM_CHANGED, 1);
    post(checker, WORK_SEND, WORK_SIGNALED, 0, KEY);
    checker_region_gone(checker, KEY);
    complete(checker, COMPLETION_SUCCESS);
    expect(checker, CHECKER_DATAGRAM_GONE, 1);
    unmake(checker);
}

static void test_failures(void **state)
{
    (void)state;
    static const struct {
        enum completion_status status;
        bool told;
    } rows[] = {{COMPLETION_LOCAL_PROTECTION, true},
                {COMPLETION_REMOTE_ACCESS, true},
                {COMPLETION_REMOTE_INVALID_REQUEST, true},
                {COMPLETION_LOCAL_LENGTH, true},
                {COMPLETION_RNR_RETRY_EXCEEDED, true},
                {COMPLETION_RETRY_EXCEEDED, false},
                {COMPLETION_FLUSHED, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct checker *checker = make(QP_RC, 0, 64);
        post(checker, WORK_SEND, 0, 0, KEY); /* Not signaled: it fails visibly all the same. */
        complete(checker, (uint8_t)rows[i].status);
        expect(checker, CHECKER_REQUEST_FAILED, rows[i].told);
        unmake(checker);
    }
}

static void refuse(struct checker *checker, enum qp_state state, struct send_request request,
                   uint32_t bytes)
{
    const struct sge sges[3] = {{.bytes = bytes, .key = KEY}};
    request.sges = sges;
    request.sge_count = request.sge_count == 0 ? 1 : request.sge_count;
    checker_send_refused(checker, QPN, state, &request, STATUS_INVALID);
}

static void test_refusals(void **state)
{
    (void)state;
    struct checker *checker = make(QP_UC, 0, 64);
    refuse(checker, QP_INIT, (struct send_request){.kind = WORK_SEND}, 8);
    expect(checker, CHECKER_POST_STATE, 1);
    refuse(checker, QP_RTS, (struct send_request){.kind = WORK_READ}, 8);
    expect(checker, CHECKER_POST_KIND, 1);
    refuse(checker, QP_RTS, (struct send_request){.kind = WORK_SEND, .flags = WORK_INLINE}, 17);
    expect(checker, CHECKER_INLINE_LENGTH, 1);
    refuse(checker, QP_RTS, (struct send_request){.kind = WORK_SEND, .sge_count = 3}, 8);
    expect(checker, CHECKER_SGE_COUNT, 1);
    refuse(checker, QP_RTS, (struct send_request){.kind = WORK_SEND}, 8);
    expect(checker, CHECKER_POST_REFUSED, 1);
    unmake(checker);
    checker = make(QP_RC, 0, 64);
    refuse(checker, QP_RTS, (struct send_request){.kind = WORK_FETCH_ADD, .remote_address = 4}, 8);
    expect(checker, CHECKER_ATOMIC_SHAPE, 1);
    refuse(checker, QP_RTS, (struct send_request){.kind = WORK_READ, .flags = WORK_INLINE}, 8);
    expect(checker, CHECKER_INLINE_LENGTH, 1);
    checker_receive_refused(checker, QPN, QP_RESET, 1, STATUS_INVALID);
    expect(checker, CHECKER_POST_STATE, 1);
    checker_receive_refused(checker, QPN, QP_RTS, 2, STATUS_INVALID);
    expect(checker, CHECKER_SGE_COUNT, 1);
    checker_receive_refused(checker, QPN, QP_RTS, 1, STATUS_FULL);
    expect(checker, CHECKER_POST_FULL, 1);
    unmake(checker);
}

static void test_events(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    checker_waits(checker, CQ, 0, true);
    checker_waits(checker, CQ, 3, false);
    expect_nothing(checker);
    checker_waits(checker, CQ, 3, true);
    expect(checker, CHECKER_LOST_WAKEUP, 1);
    checker_event_taken(checker, CQ);
    checker_event_taken(checker, CQ);
    checker_events_acked(checker, CQ, 1);
    checker_cq_ends(checker, CQ);
    expect(checker, CHECKER_EVENTS_UNACKED, 1);
    checker_events_acked(checker, CQ, 1);
    checker_cq_ends(checker, CQ);
    expect_nothing(checker);
    checker_events_acked(checker, CQ, 1);
    expect(checker, CHECKER_EVENTS_OVERACKED, 1);
    checker_waits_unarmed(checker);
    expect(checker, CHECKER_NOT_ARMED, 1);
    checker_waits_for_async(checker, "ibv_destroy_qp", 1);
    expect(checker, CHECKER_ASYNC_UNACKED, 1);
    checker_poll_failed(checker, CQ);
    expect(checker, CHECKER_CQ_OVERRUN, 1);
    checker_poll_failed(checker, CQ);
    expect(checker, CHECKER_POLL_FAILED, 1);
    unmake(checker);
}

static void test_attributes(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    struct checker_finding finding;
    const struct qp_attributes wanted = {.state = QP_RTS, .rnr_retry = 7};
    checker_modified(checker, QPN, &wanted, QP_ATTR_STATE, STATUS_INVALID,
                     QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT, QP_ATTR_PORT);
    assert_true(checker_take(checker, &finding));
    assert_string_equal(finding.text, "ibv_modify_qp is refused: it lacks IBV_QP_TIMEOUT, "
                                      "IBV_QP_SQ_PSN; it takes no IBV_QP_PORT");
    checker_modified(checker, QPN, &wanted, QP_ATTR_STATE | QP_ATTR_TIMEOUT, STATUS_OK, 0, 0);
    expect(checker, CHECKER_TIMEOUT_ZERO, 1);
    checker_modified(checker, QPN, &wanted, QP_ATTR_RETRY_CNT, STATUS_OK, 0, 0);
    expect(checker, CHECKER_RETRY_ZERO, 1);
    checker_modified(checker, QPN, &wanted, QP_ATTR_RNR_RETRY, STATUS_OK, 0, 0);
    expect(checker, CHECKER_RNR_ENDLESS, 1);
    checker_modified(checker, QPN, &wanted, QP_ATTR_MIN_RNR_TIMER, STATUS_OK, 0, 0);
    expect(checker, CHECKER_RNR_TIMER, 1);
    checker_ended(checker);
    expect(checker, CHECKER_LEFT_OVER, 1);
    unmake(checker);
}

static void test_datagrams(void **state)
{
    (void)state;
    struct checker *checker = make(QP_UD, 0, 64);
    const struct nic_av handles[2] = {{.hop_limit = 1}, {.hop_limit = 2}};
    const struct sge sge = {.bytes = 39, .key = KEY};
    struct send_request request = {
        .wr_id = 7, .kind = WORK_SEND, .flags = WORK_SIGNALED, .av = &handles[0]};
    checker_send(checker, QPN, &request, 1);
    checker_handle_gone(checker, &handles[1]);
    complete(checker, COMPLETION_SUCCESS);
    expect_nothing(checker);
    checker_handle_gone(checker, &handles[0]); /* Its datagram is over. */
    checker_send(checker, QPN, &request, 1);
    complete(checker, COMPLETION_SUCCESS);
    expect_nothing(checker);
    checker_send(checker, QPN, &request, 1);
    checker_handle_gone(checker, &handles[0]);
    complete(checker, COMPLETION_SUCCESS);
    expect(checker, CHECKER_HANDLE_GONE, 1);
    checker_receive(checker, QPN, 0, 1, &sge, 1, 1);
    expect(checker, CHECKER_UD_ROOM, 1);
    checker_counted(checker, &(struct checker_counts){.rnr_naks = 0});
    expect_nothing(checker);
    checker_counted(checker, &(struct checker_counts){.rnr_naks = 1});
    expect(checker, CHECKER_RNR_SEEN, 1);
    checker_counted(checker, &(struct checker_counts){.rnr_sent = 1});
    expect(checker, CHECKER_RNR_SENT, 1);
    checker_counted(checker, &(struct checker_counts){.wrong_qkeys = 1});
    expect(checker, CHECKER_QKEY, 1);
    checker_counted(checker, &(struct checker_counts){.no_receives = 1});
    expect(checker, CHECKER_NO_RECEIVE, 1);
    checker_waits_for_psn(checker, QPN, 1, 2);
    expect(checker, CHECKER_PSN, 1);
    unmake(checker);
}

/* Objects that the checker does not know, and more findings than it has room for, do no harm. */
static void test_unknown_objects(void **state)
{
    (void)state;
    struct checker *checker = make(QP_RC, 0, 64);
    struct checker_finding finding;
    const struct completion completion = {.qpn = 99, .kind = COMPLETION_RECEIVE};
    const struct qp_attributes attributes = {.state = QP_RTS};
    int count = 0;
    checker_polled(checker, &completion);
    checker_modified(checker, 99, &attributes, QP_ATTR_STATE, STATUS_INVALID, 1, 1);
    checker_unsend(checker, QPN, 5);
    checker_unreceive(checker, QPN, 0, 5);
    checker_poll_failed(checker, 99);
    assert_null(checker_qp_gone(checker, 99));
    expect_nothing(checker);
    void *left = checker_qp_gone(checker, QPN), *queue = checker_cq_gone(checker, CQ);
    checker_forget(checker);
    post(checker, WORK_SEND, 0, 0, 1); /* To a queue pair that it does not know. */
    expect_nothing(checker);
    free(left);
    free(queue);
    for (int i = 0; i < 100; i++) {
        checker_busy(checker, "thing");
    }
    while (checker_take(checker, &finding)) {
        count++;
    }
    assert_in_range(count, 1, 99);
    unmake(checker);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_programs),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_region_gives_back),
        cmocka_unit_test(test_freed),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_empty_receive),
        cmocka_unit_test(test_shared_receives),
        cmocka_unit_test(test_shared_queue_that_is_resized),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_events),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_unknown_objects),
        cmocka_unit_test(test_datagrams),
        cmocka_unit_test(test_datagrams_that_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
