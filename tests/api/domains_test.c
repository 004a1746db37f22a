/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Device memory, parent and thread domains and imported objects do what their man pages
 *         say, refuse what those refuse, and are gone when they are freed, not before.
 * Method  An ordinary verbs program that is its own peer; allocators count what they gave.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct ibv_dm *alloc_dm(struct api *api, size_t bytes)
{
    struct ibv_alloc_dm_attr attr = {.length = bytes};
    return ibv_alloc_dm(api->context, &attr);
}

static void test_device_memory(void **state)
{
    struct api *api = *state;
    struct ibv_device_attr_ex limits;
    assert_int_equal(ibv_query_device_ex(api->context, NULL, &limits), 0);
    errno = 0;
    assert_null(alloc_dm(api, limits.max_dm_size + 1));
    assert_int_equal(errno, EINVAL);
    struct ibv_dm *all = alloc_dm(api, limits.max_dm_size);
    assert_non_null(all);
    errno = 0;
    assert_null(alloc_dm(api, 64));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(ibv_free_dm(all), 0);

    struct ibv_dm *dm = alloc_dm(api, 4096);
    assert_non_null(dm);
    char text[8] = "abcdefg", back[8];
    assert_int_equal(ibv_memcpy_to_dm(dm, 2, text, 8), EFAULT);
    assert_int_equal(ibv_memcpy_to_dm(dm, 4, text, 7), EFAULT);
    assert_int_equal(ibv_memcpy_to_dm(dm, 4092, text, 8), EFAULT);
    assert_int_equal(ibv_memcpy_to_dm(dm, 4088, text, 8), 0);
    assert_int_equal(ibv_memcpy_from_dm(back, dm, 4088, 8), 0);
    assert_memory_equal(text, back, 8);
    assert_int_equal(ibv_free_dm(dm), 0);
}

/* A peer writes to an offset, and finds the region's end. */
static void test_device_memory_region(void **state)
{
    struct api *api = *state;
    struct ibv_dm *dm = alloc_dm(api, 4096);
    const unsigned int access =
        IBV_ACCESS_ZERO_BASED | IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    errno = 0;
    assert_null(ibv_reg_dm_mr(api->pd, dm, 0, 4096, access & ~IBV_ACCESS_ZERO_BASED));
    assert_int_equal(errno, EINVAL);
    assert_null(ibv_reg_dm_mr(api->pd, dm, 1024, 4096, access));
    struct ibv_mr *mr = ibv_reg_dm_mr(api->pd, dm, 1024, 1024, access);
    assert_non_null(mr);
    assert_int_equal(ibv_free_dm(dm), EBUSY);
    memset(api->memory[0], 0x77, 64);
    assert_int_equal(
        api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 64), 16, mr->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    uint8_t back[64];
    assert_int_equal(ibv_memcpy_from_dm(back, dm, 1024 + 16, 64), 0);
    assert_memory_equal(back, api->memory[0], 64);
    assert_int_equal(
        api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 64), 1000, mr->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_free_dm(dm), 0);
}

/* Bytes that go nowhere, and zeros from nowhere, in the middle of a message. */
static void test_null_region(void **state)
{
    struct api *api = *state;
    struct ibv_mr *null = ibv_alloc_null_mr(api->pd);
    assert_non_null(null);
    for (int round = 0; round < 2; round++) {
        memset(api->memory[0], 0x11, 20000);
        memset(api->memory[1], 0x22, 20000);
        struct ibv_sge to[3] = {api_sge(api->mrs[1], 0, 1000),
                                {.addr = 0xdead0000, .length = 9000, .lkey = null->lkey},
                                api_sge(api->mrs[1], 1000, 5000)};
        struct ibv_sge from[3] = {api_sge(api->mrs[0], 0, 11000),
                                  {.addr = 5, .length = 2000, .lkey = null->lkey},
                                  api_sge(api->mrs[0], 11000, 2000)};
        struct ibv_recv_wr *bad_receive, receive = {.sg_list = to, .num_sge = 3};
        struct ibv_send_wr *bad_send, send = {.sg_list = from,
                                              .num_sge = 3,
                                              .opcode = IBV_WR_SEND,
                                              .send_flags = IBV_SEND_SIGNALED};
        assert_int_equal(ibv_post_recv(api->qps[1], &receive, &bad_receive), 0);
        assert_int_equal(ibv_post_send(api->qps[0], &send, &bad_send), 0);
        api_expect(api->cqs[0], IBV_WC_SUCCESS);
        assert_int_equal(api_expect(api->cqs[1], IBV_WC_SUCCESS).byte_len, 15000);
        for (uint32_t i = 0; i < 6000; i++) {
            const uint32_t at = i < 1000 ? i : i + 9000; /* In the message. */
            const uint8_t expected = at < 15000 && !(at >= 11000 && at < 13000) ? 0x11 : 0;
            assert_int_equal(api->memory[1][i], expected);
        }
        assert_int_equal(api->memory[1][6000], 0x22);
    }
    /* It is no peer's. */
    assert_int_equal(
        api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 8), 0, null->rkey), 0);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(ibv_dereg_mr(null), 0);
}

/* -- Parent domains -----------------------------------------------------------------------------*/

struct allocator {
    uint32_t given, taken_back, bytes;
    bool empty;
};

static void *give(struct ibv_pd *pd, void *context, size_t bytes, size_t alignment, uint64_t kind)
{
    (void)pd;
    (void)kind;
    struct allocator *allocator = context;
    if (allocator->empty) {
        return NULL;
    }
    allocator->given++;
    allocator->bytes += (uint32_t)bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) & ~(alignment - 1));
}

static void take_back(struct ibv_pd *pd, void *context, void *memory, uint64_t kind)
{
    (void)pd;
    (void)kind;
    struct allocator *allocator = context;
    allocator->taken_back++;
    free(memory);
}

static void test_parent_domain(void **state)
{
    struct api *api = *state;
    struct allocator allocator = {0};
    struct ibv_td_init_attr none = {0};
    struct ibv_td *td = ibv_alloc_td(api->context, &none);
    assert_non_null(td);
    struct ibv_parent_domain_init_attr attr = {.pd = api->pd,
                                               .td = td,
                                               .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                                                            IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
                                               .alloc = give,
                                               .free = take_back,
                                               .pd_context = &allocator};
    struct ibv_pd *parent = ibv_alloc_parent_domain(api->context, &attr);
    assert_non_null(parent);
    assert_int_equal(ibv_dealloc_td(td), EBUSY);
    assert_int_equal(ibv_dealloc_pd(api->pd), EBUSY);

    struct ibv_cq_init_attr_ex cq_attr = {
        .cqe = 16, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = parent};
    struct ibv_cq_ex *cq = ibv_create_cq_ex(api->context, &cq_attr);
    assert_non_null(cq);
    struct ibv_pd *plain = api->pd;
    api->pd = parent;
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(parent, &srq_attr);
    assert_non_null(srq);
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_RC, ibv_cq_ex_to_cq(cq), srq);
    api->pd = plain;
    assert_int_equal(allocator.given, 3);
    assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 64), 0);
    assert_int_equal(allocator.given, 4);
    assert_int_equal(allocator.taken_back, 1);
    struct ibv_srq_attr larger = {.max_wr = 64};
    assert_int_equal(ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(allocator.given, 5);
    assert_int_equal(allocator.taken_back, 2);
    allocator.empty = true;
    assert_int_equal(ibv_modify_srq(srq, &larger, IBV_SRQ_MAX_WR), ENOMEM);
    assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(cq), 128), ENOMEM);
    errno = 0;
    assert_null(ibv_create_srq(parent, &srq_attr));
    assert_int_equal(errno, ENOMEM);

    assert_int_equal(ibv_dealloc_pd(parent), EBUSY);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
    assert_int_equal(allocator.taken_back, allocator.given);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    assert_int_equal(ibv_dealloc_td(td), 0);
}

/* A parent domain protects nothing of its own: its objects are those of the domain below. */
static void test_parent_domain_is_its_domain(void **state)
{
    struct api *api = *state;
    struct ibv_parent_domain_init_attr attr = {.pd = api->pd};
    struct ibv_pd *parent = ibv_alloc_parent_domain(api->context, &attr);
    struct ibv_mr *mr =
        ibv_reg_mr(parent, api->memory[1], 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    assert_non_null(mr);
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 64),
                              (uintptr_t)api->memory[1], mr->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(parent), 0);
    attr.pd = NULL;
    errno = 0;
    assert_null(ibv_alloc_parent_domain(api->context, &attr));
    assert_int_equal(errno, EINVAL);
}

/* The receives of a shared queue lie in the queue's domain, also if the queue pair has another
 * one. */
static void test_pool_of_another_domain(void **state)
{
    struct api *api = *state;
    struct ibv_pd *other = ibv_alloc_pd(api->context);
    assert_non_null(other);
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
    struct ibv_srq *srq = ibv_create_srq(other, &init);
    struct ibv_mr *mr = ibv_reg_mr(other, api->memory[1], MEMORY_BYTES, IBV_ACCESS_LOCAL_WRITE);
    struct ibv_qp *receiver = api_create_qp(api, IBV_QPT_RC, api->cqs[1], srq);
    struct ibv_qp *sender = api_create_qp(api, IBV_QPT_RC, api->cqs[0], NULL);
    api_connect(api, receiver, sender);
    api_connect(api, sender, receiver);

    struct ibv_sge good = api_sge(mr, 0, 8), foreign = api_sge(api->mrs[1], 0, 8);
    struct ibv_recv_wr *bad, second = {.wr_id = 2, .sg_list = &foreign, .num_sge = 1},
                             first = {.wr_id = 1, .next = &second, .sg_list = &good, .num_sge = 1};
    assert_int_equal(ibv_post_srq_recv(srq, &first, &bad), 0);
    memcpy(api->memory[0], "the pool", 8);
    assert_int_equal(api_post(sender, IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api_expect(api->cqs[1], IBV_WC_SUCCESS).wr_id, 1);
    assert_memory_equal(api->memory[1], "the pool", 8);
    assert_int_equal(api_post(sender, IBV_WR_SEND, api_sge(api->mrs[0], 0, 8), 0, 0), 0);
    api_expect(api->cqs[0], IBV_WC_REM_OP_ERR);
    assert_int_equal(api_expect(api->cqs[1], IBV_WC_LOC_PROT_ERR).wr_id, 2);

    assert_int_equal(ibv_destroy_qp(receiver), 0);
    assert_int_equal(ibv_destroy_qp(sender), 0);
    assert_int_equal(ibv_destroy_srq(srq), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(other), 0);
}

/* -- Import -------------------------------------------------------------------------------------*/

static void test_import(void **state)
{
    struct api *api = *state;
    struct ibv_context *context = ibv_import_device(dup(api->context->cmd_fd));
    assert_non_null(context);
    struct ibv_pd *pd = ibv_import_pd(context, api->pd->handle);
    assert_non_null(pd);
    struct ibv_mr *mr = ibv_import_mr(pd, api->mrs[1]->handle);
    assert_non_null(mr);
    assert_int_equal(mr->rkey, api->mrs[1]->rkey);
    assert_int_equal(mr->length, MEMORY_BYTES);
    struct ibv_dm *dm = alloc_dm(api, 64);
    struct ibv_dm *same = ibv_import_dm(context, dm->handle);
    assert_non_null(same);
    uint32_t word = 0x12345678, back = 0;
    assert_int_equal(ibv_memcpy_to_dm(dm, 8, &word, 4), 0);
    assert_int_equal(ibv_memcpy_from_dm(&back, same, 8, 4), 0);
    assert_int_equal(back, word);
    errno = 0;
    assert_null(ibv_import_pd(context, 0x7fffffff));
    assert_int_equal(errno, EINVAL);
    errno = 0;
    assert_null(ibv_import_mr(pd, 1));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_dealloc_pd(api->pd), EBUSY);
    ibv_unimport_dm(same);
    assert_int_equal(ibv_free_dm(dm), 0);
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    assert_int_equal(ibv_close_device(context), 0);
}

/* ibv_import_mr(3): ibv_dereg_mr by any handle takes the region away, and the others are
 * unimported; what takes the region's own handle is refused. */
static void test_imported_region_goes(void **state)
{
    struct api *api = *state;
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_MW_BIND;
    struct ibv_mr *own = ibv_reg_mr(api->pd, api->memory[1], 64, access);
    assert_non_null(own);
    struct ibv_mr *imported = ibv_import_mr(api->pd, own->handle);
    struct ibv_mr *another = ibv_import_mr(api->pd, own->handle);
    assert_non_null(imported);
    assert_non_null(another);
    errno = 0;
    assert_int_not_equal(ibv_rereg_mr(imported, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access),
                         0);
    assert_int_equal(errno, EINVAL);
    struct ibv_mw *mw = ibv_alloc_mw(api->pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {
        .bind_info = {.mr = imported, .addr = (uintptr_t)api->memory[1], .length = 8}};
    assert_int_equal(ibv_bind_mw(api->qps[1], mw, &bind), EOPNOTSUPP);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    const uint32_t rkey = own->rkey;
    assert_int_equal(ibv_dereg_mr(imported), 0);
    assert_int_equal(ibv_dereg_mr(another), EINVAL);
    ibv_unimport_mr(another);
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, 8),
                              (uintptr_t)api->memory[1], rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
    ibv_unimport_mr(own);
}

/* -- Two threads --------------------------------------------------------------------------------*/

struct deregistration {
    pthread_barrier_t *start;
    struct ibv_mr *mr;
    int answer;
};

static void *take_away(void *argument)
{
    struct deregistration *one = argument;
    pthread_barrier_wait(one->start);
    one->answer = ibv_dereg_mr(one->mr);
    return NULL;
}

/* Two threads deregister the region by their handles at the same time. The region goes once, and
 * the later thread gets an error. The other thread's handle is still there when the library reads
 * it (sanitizers). */
static void test_region_goes_by_two_handles_at_once(void **state)
{
    struct api *api = *state;
    pthread_barrier_t start;
    assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
    for (int lap = 0; lap < 2000; lap++) {
        struct deregistration own = {.start = &start}, other = {.start = &start};
        own.mr = ibv_reg_mr(api->pd, api->memory[1], 64, IBV_ACCESS_LOCAL_WRITE);
        assert_non_null(own.mr);
        other.mr = ibv_import_mr(api->pd, own.mr->handle);
        assert_non_null(other.mr);
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, take_away, &other), 0);
        take_away(&own);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(own.answer, 0); /* By this one, or by the other one before. */
        assert_true(other.answer == 0 || other.answer == EINVAL);
        if (other.answer != 0) {
            ibv_unimport_mr(other.mr);
        }
    }
    pthread_barrier_destroy(&start);
}

/* ibv_import_mr(3), ibv_import_dm(3): a handle may go before the others, and any one of them takes
 * the object away. */
static void test_first_handle_goes_first(void **state)
{
    struct api *api = *state;
    struct ibv_dm *dm = alloc_dm(api, 64);
    struct ibv_mr *own =
        ibv_reg_dm_mr(api->pd, dm, 0, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED);
    assert_non_null(own);
    struct ibv_mr *imported = ibv_import_mr(api->pd, own->handle);
    assert_non_null(imported);
    ibv_unimport_mr(own);
    struct ibv_dm *same = ibv_import_dm(api->context, dm->handle);
    assert_non_null(same);
    ibv_unimport_dm(dm);
    assert_int_equal(ibv_free_dm(same), EBUSY); /* The region is there. */
    assert_int_equal(ibv_dereg_mr(imported), 0);
    const uint32_t handle = same->handle;
    struct ibv_dm *another = ibv_import_dm(api->context, handle);
    assert_non_null(another);
    assert_int_equal(ibv_free_dm(same), 0);
    errno = 0;
    assert_null(ibv_import_dm(api->context, handle));
    assert_int_equal(errno, EINVAL);
    assert_null(
        ibv_reg_dm_mr(api->pd, another, 0, 64, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED));
    ibv_unimport_dm(another);
}

/* ibv_import_pd(3), likewise. */
static void test_handles_of_a_domain(void **state)
{
    struct api *api = *state;
    struct ibv_pd *first = ibv_alloc_pd(api->context);
    assert_non_null(first);
    const uint32_t handle = first->handle;
    struct ibv_pd *second = ibv_import_pd(api->context, handle);
    assert_non_null(second);
    assert_int_equal(second->handle, handle);
    ibv_unimport_pd(first);
    struct ibv_mr *mr = ibv_reg_mr(second, api->memory[1], 64, IBV_ACCESS_LOCAL_WRITE);
    assert_non_null(mr);
    struct ibv_pd *third = ibv_import_pd(api->context, handle);
    assert_non_null(third);
    assert_int_equal(ibv_dealloc_pd(third), EBUSY);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(ibv_dealloc_pd(third), 0);
    errno = 0;
    assert_null(ibv_import_pd(api->context, handle));
    assert_int_equal(errno, EINVAL);
    ibv_unimport_pd(second);
}

static void test_import_of_strangers(void **state)
{
    struct api *api = *state;
    struct ibv_context *other = ibv_open_device(api->context->device);
    errno = 0;
    assert_null(ibv_import_device(-1));
    assert_int_equal(errno, EBADF);
    errno = 0;
    assert_null(ibv_import_device(STDERR_FILENO));
    assert_int_equal(errno, EOPNOTSUPP);
    /* A context that was opened by itself shares nothing. */
    errno = 0;
    assert_null(ibv_import_pd(other, api->pd->handle));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_close_device(other), 0);
}

/* -- Eight bytes at once ------------------------------------------------------------------------*/

static void test_atomic_write(void **state)
{
    struct api *api = *state;
    const uint64_t target = (uintptr_t)api->memory[1];
    memset(api->memory[0], 0x3c, 16);
    assert_int_equal(api_post(api->qps[0], IBV_WR_ATOMIC_WRITE, api_sge(api->mrs[0], 0, 8),
                              target + 8, api->mrs[1]->rkey),
                     0);
    assert_int_equal(api_expect(api->cqs[0], IBV_WC_SUCCESS).opcode, IBV_WC_ATOMIC_WRITE);
    assert_memory_equal(api->memory[1] + 8, api->memory[0], 8);
    assert_int_equal(api->memory[1][7], 0);
    assert_int_equal(api->memory[1][16], 0);
    assert_int_equal(api_post(api->qps[0], IBV_WR_ATOMIC_WRITE, api_sge(api->mrs[0], 0, 16), target,
                              api->mrs[1]->rkey),
                     EINVAL);
    assert_int_equal(api_post(api->qps[0], IBV_WR_ATOMIC_WRITE, api_sge(api->mrs[0], 0, 8),
                              target + 4, api->mrs[1]->rkey),
                     EINVAL);
    assert_int_equal(api_post(api->qps[0], IBV_WR_ATOMIC_WRITE, api_sge(api->mrs[0], 0, 8), target,
                              api->mrs[1]->rkey ^ 0x100),
                     0);
    api_expect(api->cqs[0], IBV_WC_REM_ACCESS_ERR);
}

static void test_gid_table_has_empty_entries(void **state)
{
    struct api *api = *state;
    struct ibv_port_attr port;
    struct ibv_gid_entry entries[64], entry;
    assert_int_equal(ibv_query_port(api->context, 1, &port), 0);
    const ssize_t count = ibv_query_gid_table(api->context, entries, 64, 0);
    assert_true(count > 0 && count < port.gid_tbl_len);
    union ibv_gid gid, empty = {0};
    assert_int_equal(ibv_query_gid(api->context, 1, (int)count, &gid), 0);
    assert_memory_equal(&gid, &empty, sizeof(gid));
    assert_int_equal(ibv_query_gid_ex(api->context, 1, (uint32_t)count, &entry, 0), ENODATA);
    assert_int_equal(ibv_query_gid_ex(api->context, 1, (uint32_t)port.gid_tbl_len, &entry, 0),
                     EINVAL);
}

#define RC_TEST(test) cmocka_unit_test_setup_teardown(test, api_open_rc, api_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RC_TEST(test_device_memory),
        RC_TEST(test_device_memory_region),
        RC_TEST(test_null_region),
        RC_TEST(test_parent_domain),
        RC_TEST(test_parent_domain_is_its_domain),
        RC_TEST(test_pool_of_another_domain),
        RC_TEST(test_import),
        RC_TEST(test_imported_region_goes),
        RC_TEST(test_region_goes_by_two_handles_at_once),
        RC_TEST(test_first_handle_goes_first),
        RC_TEST(test_handles_of_a_domain),
        RC_TEST(test_import_of_strangers),
        RC_TEST(test_atomic_write),
        RC_TEST(test_gid_table_has_empty_entries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
