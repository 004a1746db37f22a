/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A queue pair takes receives of a shared queue with the memory that the queue's own
 *         protection domain opens, and the queue tells once that few are left (IBTA 10.2).
 * Method  Messages that arrive at a queue pair whose protection domain is another one.
 */
#include "nic/ibta/test_bench.h"

enum {
    RECEIVES = 4,
};

struct shared {
    struct bench *bench;
    struct qp *first; /* The bench's own. */
    struct pd pd;
    struct region region; /* In `pd`. */
    struct srq srq;
    void *receives, *memory;
    uint32_t sent;
};

static struct shared *begin_shared(void)
{
    struct shared *shared = zeroed(sizeof(*shared));
    struct bench *bench = shared->bench = begin(QP_RC, QP_RTS);
    const struct region_request all = {.address = (uintptr_t)bench->memory,
                                       .bytes = sizeof(bench->memory),
                                       .access = ACCESS_LOCAL_WRITE};
    assert_int_equal(region_add(nic_regions(bench->nic), &shared->pd, &all, &shared->region),
                     STATUS_OK);
    shared->receives = zeroed(receive_queue_bytes(RECEIVES, 1));
    srq_init(&shared->srq, &shared->pd, RECEIVES, 1, shared->receives);
    struct qp_request request = {.type = QP_RC,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .srq = &shared->srq};
    shared->memory = zeroed(qp_bytes(QP_RC, &request.capacity, true));
    shared->first = bench->qp;
    assert_int_equal(qp_create(bench->nic, &request, shared->memory, &bench->qp), STATUS_OK);
    receive_ready(bench);
    return shared;
}

static void end_shared(struct shared *shared)
{
    qp_destroy(shared->bench->qp);
    shared->bench->qp = shared->first;
    end(shared->bench);
    free(shared->receives);
    free(shared->memory);
    free(shared);
}

static void receive_by(struct shared *shared, uint32_t key)
{
    const struct sge sge = {0, MTU, key};
    assert_int_equal(srq_post_receive(&shared->srq, 1, &sge, 1), STATUS_OK);
}

static void send(struct shared *shared)
{
    deliver(shared->bench, (struct roce_packet){.opcode = ROCE_SEND_ONLY,
                                                .psn = PEER_PSN + shared->sent++,
                                                .payload_bytes = 8});
}

static void test_memory_of_the_queue(void **state)
{
    (void)state;
    struct shared *shared = begin_shared();
    receive_by(shared, shared->region.key);
    receive_by(shared, shared->bench->region.key);
    send(shared);
    expect(shared->bench, 1, COMPLETION_SUCCESS);
    send(shared);
    expect(shared->bench, 1, COMPLETION_LOCAL_PROTECTION);
    end_shared(shared);
}

/* How often the queue says that fewer receives are left than its limit. */
static uint32_t told(struct shared *shared)
{
    struct nic_event event;
    uint32_t count = 0;
    while (nic_next_event(shared->bench->nic, &event)) {
        count += event.kind == NIC_EVENT_SRQ_LIMIT_REACHED && event.srq == &shared->srq;
    }
    return count;
}

static void test_limit(void **state)
{
    (void)state;
    for (uint32_t limit = 0; limit <= RECEIVES; limit++) {
        struct shared *shared = begin_shared();
        for (uint32_t i = 0; i < RECEIVES; i++) {
            receive_by(shared, shared->region.key);
        }
        shared->srq.limit_armed = limit;
        for (uint32_t left = RECEIVES; left-- > 0;) {
            send(shared);
            assert_int_equal(told(shared), left + 1 == limit);
            assert_int_equal(shared->srq.limit_armed, left < limit ? 0 : limit);
        }
        end_shared(shared);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_of_the_queue),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
