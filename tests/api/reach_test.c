/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What is read and written straight out of and into a local peer's memory is what the verbs
 *         say: the right bytes, in any sizes and pieces, in step with the packets before and after;
 *         and nothing that the peer has not opened, or has closed again.
 * Method  Transfers beside a model of plain copies. That a READ went without responses is seen at
 *         the port's counters, over shared memory. Then a connection for each thing that is wrong.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/prng.h"

#define LARGE_BYTES (5u << 20) /* More than one READ request asks for. */
#define EVERYTHING                                                                                 \
    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |                   \
     IBV_ACCESS_REMOTE_ATOMIC)

static uint64_t sent(void)
{
    return api_counter("hw_counters/sent_pkts");
}

/* Over shared memory, and unless a filter forbids it. */
static bool reaches_directly(void)
{
    const char *wire = getenv("NONIC_WIRE");
    uint8_t from = 1, to = 0;
    const struct iovec local = {&to, 1}, remote = {&from, 1};
    return wire != NULL && strcmp(wire, "shm") == 0 &&
           process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1;
}

static uint8_t *random_bytes(size_t count, uint64_t seed)
{
    uint8_t *bytes = malloc(count);
    assert_non_null(bytes);
    struct prng prng;
    prng_init(&prng, seed);
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)prng_next(&prng);
    }
    return bytes;
}

/* -- Memory that is open ------------------------------------------------------------------------*/

/* Ours and the peer's memory, and what the model says should be in ours. */
struct regions {
    uint8_t *ours, *theirs, *model;
    struct ibv_mr *our_mr, *their_mr;
};

static void open_regions(struct api *api, struct regions *regions)
{
    regions->ours = random_bytes(LARGE_BYTES, 1);
    regions->model = random_bytes(LARGE_BYTES, 1);
    regions->theirs = random_bytes(LARGE_BYTES, 2);
    regions->our_mr = ibv_reg_mr(api->pd, regions->ours, LARGE_BYTES, EVERYTHING);
    regions->their_mr = ibv_reg_mr(api->pd, regions->theirs, LARGE_BYTES, EVERYTHING);
    assert_non_null(regions->our_mr);
    assert_non_null(regions->their_mr);
}

static void close_regions(struct regions *regions)
{
    assert_int_equal(ibv_dereg_mr(regions->our_mr), 0);
    assert_int_equal(ibv_dereg_mr(regions->their_mr), 0);
    free(regions->ours);
    free(regions->theirs);
    free(regions->model);
}

/* One READ into up to four pieces of our memory, and into the model. */
static void read_scattered(struct api *api, struct regions *regions, struct prng *prng,
                           uint32_t bytes_max)
{
    const uint32_t pieces = 1 + (uint32_t)prng_below(prng, 4);
    const uint32_t from = (uint32_t)prng_below(prng, LARGE_BYTES - 4 * bytes_max);
    struct ibv_sge sges[4];
    uint32_t total = 0, at = 0;
    for (uint32_t i = 0; i < pieces; i++) {
        const uint32_t bytes = 1 + (uint32_t)prng_below(prng, bytes_max);
        at += (uint32_t)prng_below(prng, 100);
        sges[i] = api_sge(regions->our_mr, at, bytes);
        memcpy(regions->model + at, regions->theirs + from + total, bytes);
        at += bytes;
        total += bytes;
    }
    struct ibv_send_wr *bad, wr = {.sg_list = sges,
                                   .num_sge = (int)pieces,
                                   .opcode = IBV_WR_RDMA_READ,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {.remote_addr = (uintptr_t)regions->theirs + from,
                                               .rkey = regions->their_mr->rkey}};
    assert_int_equal(ibv_post_send(api->qps[0], &wr, &bad), 0);
    assert_int_equal(api_expect(api->cqs[0], IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_READ);
}

/* A SEND shows that both sides agree about the PSN. */
static void expect_in_step(struct api *api)
{
    memset(api->memory[0], 0x5a, 8);
    memset(api->memory[1], 0, 8);
    assert_int_equal(api_post_receive(api->qps[1], api_sge(api->mrs[1], 0, 8)), 0);
    assert_int_equal(api_post(api->qps[0], IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_memory_equal(api->memory[0], api->memory[1], 8);
}

static void test_scattered_reads(void **state)
{
    struct api *api = *state;
    struct regions regions;
    struct prng prng;
    prng_init(&prng, 3);
    open_regions(api, &regions);
    for (int i = 0; i < 400; i++) {
        read_scattered(api, &regions, &prng, i % 4 == 0 ? 64 : 100000);
        if (i % 16 == 15) {
            expect_in_step(api);
        }
    }
    assert_memory_equal(regions.ours, regions.model, LARGE_BYTES);
    close_regions(&regions);
}

static void test_a_large_read_has_no_responses(void **state)
{
    struct api *api = *state;
    struct regions regions;
    open_regions(api, &regions);
    expect_in_step(api); /* And all acknowledgements are on their way. */
    struct ibv_wc wc;
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(ibv_poll_cq(api->cqs[0], 1, &wc), 0);
    }
    const uint64_t before = sent();
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_READ,
                              api_sge(regions.our_mr, 0, LARGE_BYTES), (uintptr_t)regions.theirs,
                              regions.their_mr->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    const uint64_t packets = sent() - before;
    assert_true(reaches_directly() ? packets <= 16 : packets > LARGE_BYTES / 4096);
    assert_memory_equal(regions.ours, regions.theirs, LARGE_BYTES);
    expect_in_step(api);
    close_regions(&regions);
}

/* More than is fetched at once, of a program that posts and sleeps. */
static void test_reads_of_a_sleeper(void **state)
{
    struct api *api = *state;
    struct regions regions;
    open_regions(api, &regions);
    struct ibv_comp_channel *channel = ibv_create_comp_channel(api->context);
    assert_non_null(channel);
    struct ibv_cq *cq = ibv_create_cq(api->context, 16, NULL, channel, 0);
    assert_non_null(cq);
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, cq, NULL);
    struct ibv_qp *target = api_create_qp(api, IBV_QPT_RC, api->cqs[1], NULL);
    api_connect(api, target, qp);
    api_connect(api, qp, target);
    enum {
        READS = 6
    };
    assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
    for (uint32_t i = 0; i < READS; i++) {
        assert_int_equal(api_post(qp, IBV_WR_RDMA_READ, api_sge(regions.our_mr, i, LARGE_BYTES - i),
                                  (uintptr_t)regions.theirs + i, regions.their_mr->rkey),
                         0);
    }
    struct pollfd event = {.fd = channel->fd, .events = POLLIN};
    for (uint32_t i = 0; i < READS;) {
        struct ibv_wc wc;
        const int got = ibv_poll_cq(cq, 1, &wc);
        assert_true(got >= 0);
        assert_true(got == 0 || wc.status == IBV_WC_SUCCESS);
        i += (uint32_t)got;
        struct ibv_cq *which;
        void *context;
        if (got == 0) {
            assert_int_equal(poll(&event, 1, 20000), 1);
            assert_int_equal(ibv_get_cq_event(channel, &which, &context), 0);
            ibv_ack_cq_events(cq, 1);
            assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
        }
    }
    assert_memory_equal(regions.ours, regions.theirs, LARGE_BYTES);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_qp(target), 0);
    assert_int_equal(ibv_destroy_cq(cq), 0);
    assert_int_equal(ibv_destroy_comp_channel(channel), 0);
    close_regions(&regions);
}

/* A READ returns what the WRITE before it wrote, though it goes another way: both in one post, so
 * that the READ finds the WRITE under way. */
static void test_a_read_behind_a_write(void **state)
{
    struct api *api = *state;
    struct regions regions;
    struct prng prng;
    prng_init(&prng, 4);
    open_regions(api, &regions);
    for (int i = 0; i < 200; i++) {
        const uint32_t bytes = 1 + (uint32_t)prng_below(&prng, MEMORY_BYTES);
        struct ibv_sge from = api_sge(api->mrs[0], 0, bytes);
        struct ibv_sge to = api_sge(regions.our_mr, 0, bytes);
        memset(api->memory[0], i, bytes);
        struct ibv_send_wr *bad, read = {.sg_list = &to,
                                         .num_sge = 1,
                                         .opcode = IBV_WR_RDMA_READ,
                                         .send_flags = IBV_SEND_SIGNALED,
                                         .wr.rdma = {.remote_addr = (uintptr_t)regions.theirs,
                                                     .rkey = regions.their_mr->rkey}};
        struct ibv_send_wr write = read;
        write.next = &read;
        write.sg_list = &from;
        write.opcode = i % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_WRITE_WITH_IMM;
        if (i % 2 != 0) {
            assert_int_equal(api_post_receive(api->qps[1], api_sge(api->mrs[1], 0, 1)), 0);
        }
        assert_int_equal(ibv_post_send(api->qps[0], &write, &bad), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        if (i % 2 != 0) {
            api_expect(api->cqs[1], IBV_WC_SUCCESS);
        }
        assert_memory_equal(regions.ours, api->memory[0], bytes);
    }
    close_regions(&regions);
}

/* READs wait for unsignaled SENDs before them, which nothing but the READ asks an answer of: nobody
 * waits for a timer. */
static void test_reads_among_sends(void **state)
{
    struct api *api = *state;
    struct regions regions;
    struct prng prng;
    prng_init(&prng, 5);
    open_regions(api, &regions);
    const uint64_t timeouts = api_counter("hw_counters/timeouts");
    for (int i = 0; i < 300; i++) {
        const uint32_t bytes = 1 + (uint32_t)prng_below(&prng, 60000);
        const uint32_t from = (uint32_t)prng_below(&prng, LARGE_BYTES - bytes);
        struct ibv_sge word = api_sge(api->mrs[0], 0, 8);
        struct ibv_sge to = api_sge(regions.our_mr, 0, bytes);
        struct ibv_send_wr *bad,
            read = {.sg_list = &to,
                    .num_sge = 1,
                    .opcode = IBV_WR_RDMA_READ,
                    .send_flags = IBV_SEND_SIGNALED,
                    .wr.rdma = {(uintptr_t)regions.theirs + from, regions.their_mr->rkey}};
        struct ibv_send_wr second = {
            .next = &read, .sg_list = &word, .num_sge = 1, .opcode = IBV_WR_SEND};
        struct ibv_send_wr first = second;
        first.next = &second;
        for (int k = 0; k < 2; k++) {
            assert_int_equal(api_post_receive(api->qps[1], api_sge(api->mrs[1], 0, 8)), 0);
        }
        assert_int_equal(ibv_post_send(api->qps[0], &first, &bad), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        api_expect(api->cqs[1], IBV_WC_SUCCESS);
        api_expect(api->cqs[1], IBV_WC_SUCCESS);
        assert_memory_equal(regions.ours, regions.theirs + from, bytes);
    }
    assert_int_equal(api_counter("hw_counters/timeouts"), timeouts);
    close_regions(&regions);
}

/* -- Memory that is not -------------------------------------------------------------------------*/

struct attempt {
    enum ibv_wr_opcode opcode;
    uint32_t offset, bytes; /* In their region. */
    uint32_t rkey;
};

/* On a connection of its own, since it ends with it. The peer's memory is as before; ours may hold
 * what requests for earlier parts of a READ brought. */
static void expect_refused(struct api *api, const struct regions *regions, struct attempt attempt,
                           unsigned target_access)
{
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    struct ibv_qp *target = api_create_qp(api, IBV_QPT_RC, api->cqs[1], NULL);
    api_connect(api, target, qp);
    api_connect(api, qp, target);
    struct ibv_qp_attr attr = {.qp_access_flags = target_access};
    assert_int_equal(ibv_modify_qp(target, &attr, IBV_QP_ACCESS_FLAGS), 0);
    uint8_t *theirs = malloc(LARGE_BYTES);
    assert_non_null(theirs);
    memcpy(theirs, regions->theirs, LARGE_BYTES);
    assert_int_equal(api_post(qp, attempt.opcode, api_sge(regions->our_mr, 0, attempt.bytes),
                              (uintptr_t)regions->theirs + attempt.offset, attempt.rkey),
                     0);
    const struct ibv_wc wc = api_wait(api->cqs[0]);
    assert_true(wc.status == IBV_WC_REM_ACCESS_ERR || wc.status == IBV_WC_REM_INV_REQ_ERR);
    assert_memory_equal(regions->theirs, theirs, LARGE_BYTES);
    free(theirs);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_qp(target), 0);
}

/* READs and WRITEs of sizes that would go directly, and of which nothing is open: nothing comes. */
static void expect_both_refused(struct api *api, const struct regions *regions, uint32_t offset,
                                uint32_t rkey, unsigned target_access)
{
    static const uint32_t sizes[] = {1, 4096, 60000};
    uint8_t *ours = malloc(LARGE_BYTES);
    assert_non_null(ours);
    memcpy(ours, regions->ours, LARGE_BYTES);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct attempt read = {IBV_WR_RDMA_READ, offset, sizes[i], rkey};
        const struct attempt write = {IBV_WR_RDMA_WRITE, offset, sizes[i], rkey};
        expect_refused(api, regions, read, target_access);
        expect_refused(api, regions, write, target_access);
    }
    assert_memory_equal(regions->ours, ours, LARGE_BYTES);
    free(ours);
}

static void test_what_is_closed(void **state)
{
    struct api *api = *state;
    struct regions regions;
    open_regions(api, &regions);
    const uint32_t key = regions.their_mr->rkey;
    const unsigned read_write = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    expect_both_refused(api, &regions, 0, key ^ 0x5500u, read_write); /* Nobody's key. */
    expect_both_refused(api, &regions, LARGE_BYTES, key, read_write); /* Behind the end. */
    expect_both_refused(api, &regions, UINT32_MAX, key, read_write);  /* Far behind. */
    expect_both_refused(api, &regions, 0, key, 0);                    /* A closed queue pair. */
    const uint32_t edge = LARGE_BYTES - 59999;
    const struct attempt across[] = {{IBV_WR_RDMA_READ, edge, 60000, key},
                                     {IBV_WR_RDMA_WRITE, edge, 60000, key},
                                     {IBV_WR_RDMA_READ, 1, LARGE_BYTES, key}};
    for (size_t i = 0; i < sizeof(across) / sizeof(across[0]); i++) {
        expect_refused(api, &regions, across[i], read_write);
    }
    close_regions(&regions);
}

/* Each right opens its own door only, of a region and of a queue pair. */
static void test_one_right_is_not_the_other(void **state)
{
    struct api *api = *state;
    struct regions regions;
    open_regions(api, &regions);
    const struct {
        enum ibv_wr_opcode opcode;
        unsigned other;
    } cases[] = {{IBV_WR_RDMA_READ, IBV_ACCESS_REMOTE_WRITE},
                 {IBV_WR_RDMA_WRITE, IBV_ACCESS_REMOTE_READ}};
    for (size_t i = 0; i < 2; i++) {
        const struct attempt by_queue_pair = {cases[i].opcode, 0, 50000, regions.their_mr->rkey};
        expect_refused(api, &regions, by_queue_pair, cases[i].other);
        struct ibv_mr *mr = ibv_reg_mr(api->pd, regions.theirs, LARGE_BYTES,
                                       (int)(IBV_ACCESS_LOCAL_WRITE | cases[i].other));
        assert_non_null(mr);
        const struct attempt by_region = {cases[i].opcode, 0, 50000, mr->rkey};
        expect_refused(api, &regions, by_region, EVERYTHING);
        assert_memory_equal(regions.ours, regions.model, LARGE_BYTES);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    close_regions(&regions);
}

static void test_what_was_closed_again(void **state)
{
    struct api *api = *state;
    struct regions regions;
    open_regions(api, &regions);
    struct ibv_mr *mr = ibv_reg_mr(api->pd, regions.theirs, LARGE_BYTES, EVERYTHING);
    assert_non_null(mr);
    const uint32_t key = mr->rkey;
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_READ, api_sge(regions.our_mr, 0, 60000),
                              (uintptr_t)regions.theirs, key),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    expect_both_refused(api, &regions, 0, key, EVERYTHING);
    /* A region in another protection domain than the queue pair's. */
    struct ibv_pd *pd = ibv_alloc_pd(api->context);
    mr = ibv_reg_mr(pd, regions.theirs, LARGE_BYTES, EVERYTHING);
    assert_non_null(mr);
    expect_both_refused(api, &regions, 0, mr->rkey, EVERYTHING);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(pd), 0);
    close_regions(&regions);
}

/* A bound window keeps its region from being changed: the refusal leaves nothing behind that would
 * outlive the region. */
static void test_what_was_refused_to_change(void **state)
{
    struct api *api = *state;
    struct regions regions;
    open_regions(api, &regions);
    struct ibv_mr *mr =
        ibv_reg_mr(api->pd, regions.theirs, LARGE_BYTES, EVERYTHING | IBV_ACCESS_MW_BIND);
    assert_non_null(mr);
    struct ibv_mw *mw = ibv_alloc_mw(api->pd, IBV_MW_TYPE_1);
    assert_non_null(mw);
    struct ibv_mw_bind bind = {.send_flags = IBV_SEND_SIGNALED,
                               .bind_info = {.mr = mr,
                                             .addr = (uintptr_t)regions.theirs,
                                             .length = 4096,
                                             .mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
    assert_int_equal(ibv_bind_mw(api->qps[0], mw, &bind), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    const int access = EVERYTHING | IBV_ACCESS_MW_BIND;
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access),
                             0);
        assert_int_equal(errno, EBUSY);
    }
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access), 0);
    const uint32_t key = mr->rkey;
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 8),
                              (uintptr_t)regions.theirs, key),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    expect_both_refused(api, &regions, 0, key, EVERYTHING);
    close_regions(&regions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_scattered_reads, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_a_large_read_has_no_responses, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_reads_of_a_sleeper, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_a_read_behind_a_write, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_reads_among_sends, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_what_is_closed, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_one_right_is_not_the_other, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_what_was_closed_again, api_open_rc, api_close),
        cmocka_unit_test_setup_teardown(test_what_was_refused_to_change, api_open_rc, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
