/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Slots are counted as hardware counts them, however requests end: a completion that the
 *         program polls frees its own slot, and in a send queue all before it.
 * Method  Random posting, sending, failing and polling beside a model that knows each request by a
 *         serial number; for shared queues, each event that must give a slot back.
 */
#include "nic/ibta/test_bench.h"
#include "nic/slots.h"

enum {
    SENDS = 16,
    RECEIVES = 4,
    STEPS = 200000,
};

/* Serial numbers from 1 on: sends are even, receives odd. */
struct model {
    uint64_t sends_posted, sends_freed, receives_posted, receives_freed;
};

static void post_some(struct bench *bench, struct model *model, struct prng *prng)
{
    /* Now and then a request fails. */
    const struct sge sge = {0, 8, bench->region.key + prng_chance(prng, 20000)};
    struct send_request requests[3];
    const uint32_t count = 1 + (uint32_t)prng_below(prng, 3);
    for (uint32_t i = 0; i < count; i++) {
        requests[i] = (struct send_request){.wr_id = 2 * (model->sends_posted + i + 1),
                                            .kind = WORK_SEND,
                                            .flags = prng_chance(prng, 300000) ? WORK_SIGNALED : 0,
                                            .sges = &sge,
                                            .sge_count = 1};
    }
    const bool fits = model->sends_posted - model->sends_freed + count <= SENDS;
    assert_int_equal(slots_post_sends(bench->qp, requests, count), fits ? STATUS_OK : STATUS_FULL);
    model->sends_posted += fits ? count : 0;
}

static void post_receive(struct bench *bench, struct model *model)
{
    const struct sge sge = {0, 8, bench->region.key};
    const bool fits = model->receives_posted - model->receives_freed < RECEIVES;
    assert_int_equal(slots_post_receive(bench->qp, 2 * model->receives_posted + 1, &sge, 1),
                     fits ? STATUS_OK : STATUS_FULL);
    model->receives_posted += fits;
}

static void poll_some(struct bench *bench, struct model *model, struct prng *prng)
{
    struct completion completions[8];
    const uint32_t count =
        cq_poll(&bench->cq, completions, 1 + (uint32_t)prng_below(prng, COUNT_OF(completions)));
    slots_polled(bench->nic, completions, count);
    for (uint32_t i = 0; i < count; i++) {
        if (completions[i].wr_id % 2 == 1) {
            model->receives_freed++;
        } else {
            model->sends_freed = completions[i].wr_id / 2;
        }
    }
}

static void reset(struct bench *bench, struct model *model)
{
    modify(bench, QP_RESET, 0);
    receive_ready(bench);
    modify(bench, QP_RTS, QP_ATTR_SQ_PSN);
    model->sends_freed = model->sends_posted;
    model->receives_freed = model->receives_posted;
}

static void step(struct bench *bench, struct model *model, struct prng *prng, uint32_t *psn)
{
    switch (prng_below(prng, 8)) {
    case 0:
    case 1: post_some(bench, model, prng); return;
    case 2: post_receive(bench, model); return;
    case 3:
        deliver(bench, (struct roce_packet){
                           .opcode = ROCE_SEND_ONLY, .psn = PEER_PSN + *psn, .payload_bytes = 8});
        ++*psn;
        return;
    case 4: pull(bench, NULL); return;
    case 5:
        if (bench->qp->state == QP_SQE && prng_chance(prng, 100000)) {
            modify(bench, QP_RTS, 0);
        }
        return;
    case 6:
        if (prng_chance(prng, 5000)) {
            reset(bench, model);
            *psn = 0;
        }
        return;
    default: poll_some(bench, model, prng); return;
    }
}

static void test_against_model(void **state)
{
    (void)state;
    struct bench *bench = begin(QP_UC, QP_RTS);
    bench->qp->signal_all = false;
    struct model model = {0};
    struct prng prng;
    uint32_t psn = 0;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < STEPS; i++) {
        step(bench, &model, &prng, &psn);
        assert_false(bench->cq.overrun);
    }
    assert_true(model.sends_freed > STEPS / 20 && model.receives_freed > STEPS / 20);
    end(bench);
}

/* -- Shared receive queues ----------------------------------------------------------------------*/

struct shared {
    struct bench *bench;
    struct srq srq;
    struct xrcd xrcd;
    struct qp *first; /* The bench's own. */
    void *receives, *memory;
};

static enum status post_shared(struct shared *shared)
{
    const struct sge sge = {0, sizeof(shared->bench->memory), shared->bench->region.key};
    return slots_post_shared(&shared->srq, 1, &sge, 1);
}

/* A queue of which all slots are in use, and a queue pair that receives from it. */
static struct shared *begin_shared(enum qp_type type)
{
    struct shared *shared = zeroed(sizeof(*shared));
    struct bench *bench = shared->bench = begin(QP_RC, QP_RTS);
    const bool xrc = type == QP_XRC_TARGET;
    shared->receives = zeroed(receive_queue_bytes(RECEIVES, 1));
    srq_init(&shared->srq, &bench->pd, RECEIVES, 1, shared->receives);
    struct qp_request request = {.type = type};
    if (xrc) {
        shared->srq.xrcd = request.xrcd = &shared->xrcd;
        shared->srq.cq = &bench->cq;
        assert_int_equal(srq_enter(bench->nic, &shared->srq), STATUS_OK);
    } else {
        request.pd = &bench->pd;
        request.send_cq = request.receive_cq = &bench->cq;
        request.srq = &shared->srq;
    }
    shared->memory = zeroed(qp_bytes(type, &request.capacity, !xrc));
    shared->first = bench->qp;
    assert_int_equal(qp_create(bench->nic, &request, shared->memory, &bench->qp), STATUS_OK);
    receive_ready(bench);
    for (uint32_t i = 0; i < RECEIVES; i++) {
        assert_int_equal(post_shared(shared), STATUS_OK);
    }
    assert_int_equal(post_shared(shared), STATUS_FULL);
    return shared;
}

static void destroy_qp(struct shared *shared)
{
    qp_destroy(shared->bench->qp);
    shared->bench->qp = shared->first;
}

static void end_shared(struct shared *shared)
{
    if (shared->bench->qp != shared->first) {
        destroy_qp(shared);
    }
    if (shared->srq.number != 0) {
        srq_leave(shared->bench->nic, &shared->srq);
    }
    end(shared->bench);
    free(shared->receives);
    free(shared->memory);
    free(shared);
}

static void send(struct shared *shared, enum roce_operation operation, uint32_t psn, uint32_t bytes)
{
    deliver(shared->bench, (struct roce_packet){.opcode = (uint8_t)operation,
                                                .psn = PEER_PSN + psn,
                                                .xrc = {.srqn = shared->srq.number},
                                                .payload_bytes = bytes});
}

static void poll_one(struct shared *shared)
{
    struct completion completion;
    assert_int_equal(cq_poll(&shared->bench->cq, &completion, 1), 1);
    slots_polled(shared->bench->nic, &completion, 1);
}

/* Exactly one slot is free. */
static void expect_one(struct shared *shared)
{
    assert_int_equal(post_shared(shared), STATUS_OK);
    assert_int_equal(post_shared(shared), STATUS_FULL);
}

static void test_shared_queue(void **state)
{
    (void)state;
    static const enum qp_type types[] = {QP_RC, QP_XRC_TARGET};
    for (uint32_t i = 0; i < COUNT_OF(types); i++) {
        struct shared *shared = begin_shared(types[i]);
        send(shared, ROCE_SEND_ONLY, 0, 8);
        send(shared, ROCE_SEND_ONLY, 1, 8);
        assert_int_equal(post_shared(shared), STATUS_FULL);
        poll_one(shared);
        expect_one(shared);
        /* The receive of a message that is cut off is nobody's any more. */
        send(shared, ROCE_SEND_FIRST, 2, MTU);
        assert_int_equal(post_shared(shared), STATUS_FULL);
        modify(shared->bench, QP_RESET, 0);
        if (types[i] == QP_RC) { /* And the completion that was not polled is forgotten. */
            assert_int_equal(post_shared(shared), STATUS_OK);
        } else {
            poll_one(shared);
            assert_int_equal(post_shared(shared), STATUS_OK);
        }
        expect_one(shared);
        end_shared(shared);
    }
}

static void test_queue_pair_goes(void **state)
{
    (void)state;
    struct shared *shared = begin_shared(QP_RC);
    send(shared, ROCE_SEND_ONLY, 0, 8);
    send(shared, ROCE_SEND_FIRST, 1, MTU);
    assert_int_equal(qp_forget_completions(shared->bench->qp), 1);
    expect_one(shared);
    destroy_qp(shared);
    expect_one(shared);
    end_shared(shared);

    /* Completions of a target are its shared queue's, and stay. */
    shared = begin_shared(QP_XRC_TARGET);
    send(shared, ROCE_SEND_ONLY, 0, 8);
    assert_int_equal(qp_forget_completions(shared->bench->qp), 0);
    destroy_qp(shared);
    assert_int_equal(post_shared(shared), STATUS_FULL);
    poll_one(shared);
    expect_one(shared);
    end_shared(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_shared_queue),
        cmocka_unit_test(test_queue_pair_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
