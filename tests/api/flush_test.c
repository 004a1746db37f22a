/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    ibv_wr_flush does what its page says over every wire: it completes when what was written
 *         before is in the peer's memory, and with persistence in the peer's file; what the peer
 *         has not allowed is refused, and what makes no sense is not posted.
 * Method  An ordinary verbs program that is its own peer, with the newer declarations of its own.
 *         Whether a page of a file is on its medium the kernel says (/proc/self/smaps).
 */
#include "tests/api/api.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/newer.h"

#define BYTES       16384
#define LOCAL       IBV_ACCESS_LOCAL_WRITE
#define WRITABLE    (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
#define FLUSHES     (IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT)
#define SEND_OPS    (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_READ)
#define ALL_OF_A_QP (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | FLUSHES)

/* -- Queue pairs --------------------------------------------------------------------------------*/

static struct ibv_qp *try_qp(struct api *api, enum ibv_qp_type type, struct ibv_cq *cq,
                             uint64_t send_ops)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq,
        .recv_cq = cq,
        .cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
        .qp_type = type,
        .sq_sig_all = 1,
        .pd = api->pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = send_ops,
    };
    errno = 0;
    return ibv_create_qp_ex(api->context, &init);
}

/* Two connected queue pairs; the second one grants its peer `granted`. */
static void connect_pair(struct api *api, uint64_t send_ops, unsigned granted)
{
    for (int i = 0; i < 2; i++) {
        if (api->qps[i] != NULL) {
            assert_int_equal(ibv_destroy_qp(api->qps[i]), 0);
        }
        api->qps[i] = try_qp(api, IBV_QPT_RC, api->cqs[i], send_ops);
        assert_non_null(api->qps[i]);
    }
    api_connect(api, api->qps[0], api->qps[1]);
    api_connect(api, api->qps[1], api->qps[0]);
    struct ibv_qp_attr attr = {.qp_access_flags = granted};
    assert_int_equal(ibv_modify_qp(api->qps[1], &attr, IBV_QP_ACCESS_FLAGS), 0);
}

static int open_pair(void **state)
{
    api_open(state);
    connect_pair(*state, SEND_OPS | IBV_QP_EX_WITH_FLUSH, ALL_OF_A_QP);
    return 0;
}

static void wr_flush(struct ibv_qp_ex *ex, const struct ibv_mr *mr, uint64_t address, size_t bytes,
                     uint8_t type, uint8_t level)
{
    ex->wr_id = 5;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ((struct qp_ex_45 *)(void *)ex)->wr_flush(ex, mr->rkey, address, bytes, type, level);
}

static int post_flush(struct api *api, const struct ibv_mr *mr, uint64_t address, size_t bytes,
                      uint8_t type, uint8_t level)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(api->qps[0]);
    ibv_wr_start(ex);
    wr_flush(ex, mr, address, bytes, type, level);
    return ibv_wr_complete(ex);
}

/* A WRITE of 64 bytes and a FLUSH, posted together. */
static void write_and_flush(struct api *api, const struct ibv_mr *mr, uint64_t address,
                            uint8_t type, uint8_t level)
{
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(api->qps[0]);
    ibv_wr_start(ex);
    ex->wr_id = 4;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_rdma_write(ex, mr->rkey, address);
    ibv_wr_set_sge(ex, api->mrs[0]->lkey, (uintptr_t)api->memory[0], 64);
    wr_flush(ex, mr, address, 64, type, level);
    assert_int_equal(ibv_wr_complete(ex), 0);
    assert_int_equal(api_expect(api->cqs[0], IBV_WC_SUCCESS).opcode, IBV_WC_RDMA_WRITE);
    const struct ibv_wc wc = api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(wc.opcode, IBV_WC_FLUSH);
    assert_int_equal(wc.wr_id, 5);
}

/* -- Global visibility --------------------------------------------------------------------------*/

static void test_capabilities(void **state)
{
    struct api *api = *state;
    struct ibv_device_attr_ex attr;
    assert_int_equal(ibv_query_device_ex(api->context, NULL, &attr), 0);
    const uint64_t flags = DEVICE_FLUSH_GLOBAL | DEVICE_FLUSH_PERSISTENT;
    assert_true((attr.device_cap_flags_ex & flags) == flags);
    assert_true(attr.odp_caps.per_transport_caps.rc_odp_caps & ODP_SUPPORT_FLUSH);
    assert_false(attr.odp_caps.per_transport_caps.uc_odp_caps & ODP_SUPPORT_FLUSH);
}

/* Rights of a region that any memory can have: plain, on-demand, and through a window. */
static void test_placed(void **state)
{
    struct api *api = *state;
    uint8_t *memory = aligned_alloc(4096, BYTES);
    memset(memory, 0, BYTES);
    for (int i = 0; i < 4; i++) {
        const int access = WRITABLE | IBV_ACCESS_FLUSH_GLOBAL | (i % 2 ? IBV_ACCESS_ON_DEMAND : 0);
        struct ibv_mr *mr = ibv_reg_mr(api->pd, memory, BYTES, access);
        assert_non_null(mr);
        memset(api->memory[0], 0x11 * (i + 1), 64);
        write_and_flush(api, mr, (uintptr_t)memory + 100 * i, IBV_FLUSH_GLOBAL,
                        i / 2 ? IBV_FLUSH_MR : IBV_FLUSH_RANGE);
        assert_memory_equal(memory + 100 * i, api->memory[0], 64);
        assert_int_equal(ibv_dereg_mr(mr), 0);
    }
    free(memory);
}

static void test_window(void **state)
{
    struct api *api = *state;
    struct ibv_mr *mr = ibv_reg_mr(api->pd, api->memory[1], BYTES,
                                   WRITABLE | IBV_ACCESS_MW_BIND | IBV_ACCESS_FLUSH_GLOBAL);
    struct ibv_mw *mw = ibv_alloc_mw(api->pd, IBV_MW_TYPE_1);
    struct ibv_mw_bind bind = {
        .send_flags = IBV_SEND_SIGNALED,
        .bind_info = {.mr = mr,
                      .addr = (uintptr_t)api->memory[1] + 4096,
                      .length = 4096,
                      .mw_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_FLUSH_GLOBAL}};
    assert_int_equal(ibv_bind_mw(api->qps[1], mw, &bind), 0);
    api_expect(api->cqs[1], IBV_WC_SUCCESS);
    const struct ibv_mr named = {.rkey = mw->rkey};
    memset(api->memory[0], 0x77, 64);
    write_and_flush(api, &named, (uintptr_t)api->memory[1] + 5000, IBV_FLUSH_GLOBAL,
                    IBV_FLUSH_RANGE);
    write_and_flush(api, &named, (uintptr_t)api->memory[1] + 5000, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
    assert_memory_equal(api->memory[1] + 5000, api->memory[0], 64);
    /* A window cannot have a right that its region has not: such a bind ends the queue pair. */
    bind.bind_info.mw_access_flags |= IBV_ACCESS_FLUSH_PERSISTENT;
    assert_int_equal(ibv_bind_mw(api->qps[1], mw, &bind), 0);
    api_expect(api->cqs[1], IBV_WC_MW_BIND_ERR);
    assert_int_equal(ibv_dealloc_mw(mw), 0);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* A peer that is not made for FLUSH takes one, and reaches a queue pair that is made for it. Such a
 * queue pair always speaks RC. */
static void test_peer_that_sends_none(void **state)
{
    struct api *api = *state;
    assert_int_equal(ibv_destroy_qp(api->qps[1]), 0);
    api->qps[1] = api_create_qp(api, IBV_QPT_RC, api->cqs[1], NULL);
    struct ibv_qp *first = try_qp(api, IBV_QPT_RC, api->cqs[0], SEND_OPS | IBV_QP_EX_WITH_FLUSH);
    assert_int_equal(ibv_destroy_qp(api->qps[0]), 0);
    api->qps[0] = first;
    api_connect(api, api->qps[0], api->qps[1]);
    api_connect(api, api->qps[1], api->qps[0]);
    struct ibv_qp_attr attr = {.qp_access_flags = ALL_OF_A_QP};
    assert_int_equal(ibv_modify_qp(api->qps[1], &attr, IBV_QP_ACCESS_FLAGS), 0);
    struct ibv_mr *mr =
        ibv_reg_mr(api->pd, api->memory[1], BYTES, WRITABLE | IBV_ACCESS_FLUSH_GLOBAL);
    for (uint32_t i = 0; i < 20; i++) {
        memset(api->memory[0], (int)i + 1, 64);
        write_and_flush(api, mr, (uintptr_t)api->memory[1], IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
        assert_memory_equal(api->memory[1], api->memory[0], 64);
        memset(api->memory[1], 0xee, 64);
        assert_int_equal(api_post(api->qps[1], IBV_WR_RDMA_WRITE, api_sge(api->mrs[1], 0, 64),
                                  (uintptr_t)api->memory[0], api->mrs[0]->rkey),
                         0);
        api_expect(api->cqs[1], IBV_WC_SUCCESS);
        assert_memory_equal(api->memory[0], api->memory[1], 64);
    }
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

/* -- Refusals -----------------------------------------------------------------------------------*/

static void test_refused_by_the_peer(void **state)
{
    struct api *api = *state;
    const uint64_t send_ops = SEND_OPS | IBV_QP_EX_WITH_FLUSH;
    const uint64_t at = (uintptr_t)api->memory[1];
    struct ibv_mr *good =
        ibv_reg_mr(api->pd, api->memory[1], BYTES, WRITABLE | IBV_ACCESS_FLUSH_GLOBAL);
    const struct ibv_mr unknown = {.rkey = good->rkey ^ 0x100};
    const struct {
        unsigned granted;
        const struct ibv_mr *mr;
        uint64_t address;
        size_t bytes;
        uint8_t type, level;
        enum ibv_wc_status status;
    } cases[] = {
        {ALL_OF_A_QP, good, at, BYTES, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_SUCCESS},
        {ALL_OF_A_QP, good, 7, SIZE_MAX, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, IBV_WC_SUCCESS},
        {ALL_OF_A_QP, good, at, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_SUCCESS},
        {ALL_OF_A_QP, good, at + 1, BYTES, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
         IBV_WC_REM_ACCESS_ERR},
        {ALL_OF_A_QP, good, at, BYTES, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE,
         IBV_WC_REM_ACCESS_ERR},
        {ALL_OF_A_QP, api->mrs[1], at, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
         IBV_WC_REM_ACCESS_ERR},
        {ALL_OF_A_QP, &unknown, at, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE, IBV_WC_REM_ACCESS_ERR},
        {ALL_OF_A_QP, &unknown, at, 0, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR, IBV_WC_REM_ACCESS_ERR},
        {IBV_ACCESS_REMOTE_WRITE, good, at, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE,
         IBV_WC_REM_INV_REQ_ERR},
        {IBV_ACCESS_FLUSH_GLOBAL, good, at, 64, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT,
         IBV_FLUSH_RANGE, IBV_WC_REM_INV_REQ_ERR},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        connect_pair(api, send_ops, cases[i].granted);
        assert_int_equal(post_flush(api, cases[i].mr, cases[i].address, cases[i].bytes,
                                    cases[i].type, cases[i].level),
                         0);
        api_expect(api->cqs[0], cases[i].status);
    }
    assert_int_equal(ibv_dereg_mr(good), 0);
}

static void test_not_posted(void **state)
{
    struct api *api = *state;
    const struct ibv_mr *mr = api->mrs[1];
    const uint64_t at = (uintptr_t)api->memory[1];
    assert_int_equal(post_flush(api, mr, at, 8, 0, IBV_FLUSH_RANGE), EINVAL);
    assert_int_equal(post_flush(api, mr, at, 8, 4, IBV_FLUSH_RANGE), EINVAL);
    assert_int_equal(post_flush(api, mr, at, 8, IBV_FLUSH_GLOBAL, 2), EINVAL);
    assert_int_equal(post_flush(api, mr, at, UINT64_C(1) << 31, IBV_FLUSH_GLOBAL, 0), EINVAL);
    assert_int_equal(post_flush(api, mr, at, UINT64_C(1) << 32, IBV_FLUSH_GLOBAL, 0), EINVAL);
    struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(api->qps[0]);
    ibv_wr_start(ex);
    wr_flush(ex, mr, at, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
    ibv_wr_set_sge(ex, api->mrs[0]->lkey, (uintptr_t)api->memory[0], 8);
    assert_int_equal(ibv_wr_complete(ex), EINVAL); /* It carries nothing. */
    /* struct ibv_send_wr has no place for what it asks for. */
    assert_int_equal(api_post(api->qps[0], (enum ibv_wr_opcode)IBV_WR_FLUSH,
                              api_sge(api->mrs[0], 0, 0), at, mr->rkey),
                     EOPNOTSUPP);
    connect_pair(api, SEND_OPS, ALL_OF_A_QP); /* Not made for it. */
    assert_int_equal(post_flush(api, mr, at, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE), EOPNOTSUPP);
    static const enum ibv_qp_type types[] = {IBV_QPT_UC, IBV_QPT_UD};
    for (int i = 0; i < 2; i++) {
        assert_null(try_qp(api, types[i], api->cqs[0], IBV_QP_EX_WITH_FLUSH));
        assert_int_equal(errno, EOPNOTSUPP);
    }
}

/* -- Persistence --------------------------------------------------------------------------------*/

/* Kilobytes of the mapping at `address` that are not on their medium yet. */
static unsigned dirty_kb(const void *address)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    assert_non_null(maps);
    char line[512];
    bool here = false;
    unsigned sum = 0, kb;
    while (fgets(line, sizeof(line), maps) != NULL) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            here = from == (unsigned long)(uintptr_t)address;
        } else if (here && (sscanf(line, "Shared_Dirty: %u kB", &kb) == 1 ||
                            sscanf(line, "Private_Dirty: %u kB", &kb) == 1)) {
            sum += kb;
        }
    }
    fclose(maps);
    return sum;
}

static void *map(int file, int flags)
{
    void *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, flags, file, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void expect_not_persistent(struct api *api, void *memory)
{
    errno = 0;
    assert_null(ibv_reg_mr(api->pd, memory, BYTES, LOCAL | IBV_ACCESS_FLUSH_PERSISTENT));
    assert_int_equal(errno, EINVAL);
    struct ibv_mr *mr = ibv_reg_mr(api->pd, memory, BYTES, LOCAL | IBV_ACCESS_FLUSH_GLOBAL);
    assert_non_null(mr);
    assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, LOCAL | FLUSHES),
                     IBV_REREG_MR_ERR_INPUT);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    assert_int_equal(munmap(memory, BYTES), 0);
}

/* Memory of no file, of a copy of one, of one that is deleted, and of one without a medium. */
static void test_not_persistent(void **state)
{
    struct api *api = *state;
    char path[] = "flush_test.XXXXXX";
    const int file = mkstemp(path), nowhere = memfd_create("flush_test", 0);
    assert_true(file >= 0 && nowhere >= 0);
    assert_int_equal(ftruncate(file, BYTES), 0);
    assert_int_equal(ftruncate(nowhere, BYTES), 0);
    expect_not_persistent(api, map(-1, MAP_PRIVATE | MAP_ANONYMOUS));
    expect_not_persistent(api, map(-1, MAP_SHARED | MAP_ANONYMOUS));
    expect_not_persistent(api, map(file, MAP_PRIVATE));
    expect_not_persistent(api, map(nowhere, MAP_SHARED));
    uint8_t *both = map(file, MAP_SHARED); /* A page of it is of no file. */
    assert_ptr_equal(mmap(both + 4096, 4096, PROT_READ | PROT_WRITE,
                          MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     both + 4096);
    expect_not_persistent(api, both);
    errno = 0; /* Such memory may be other memory each time. */
    void *memory = map(file, MAP_SHARED);
    assert_null(ibv_reg_mr(api->pd, memory, BYTES, LOCAL | FLUSHES | IBV_ACCESS_ON_DEMAND));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(unlink(path), 0);
    expect_not_persistent(api, memory);
    close(file);
    close(nowhere);
}

static void test_persistent(void **state)
{
    struct api *api = *state;
    char path[] = "flush_test.XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, BYTES), 0);
    uint8_t *memory = map(file, MAP_SHARED);
    memset(memory, 1, BYTES);
    assert_int_equal(fsync(file), 0);
    if (dirty_kb(memory) != 0) {
        expect_not_persistent(api, memory); /* The tests run on a file system without a medium. */
        unlink(path);
        close(file);
        return;
    }
    struct ibv_mr *mr = ibv_reg_mr(api->pd, memory, BYTES, WRITABLE | FLUSHES);
    assert_non_null(mr);
    for (int i = 0; i < 4; i++) {
        const uint8_t level = i % 2 ? IBV_FLUSH_MR : IBV_FLUSH_RANGE;
        const uint64_t at = (uintptr_t)memory + 4096 * i + 4064; /* Over the end of a page. */
        memset(api->memory[0], 0x30 + i, 64);
        if (i == 3) { /* Visible to all is not yet persistent. */
            write_and_flush(api, mr, (uintptr_t)memory, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR);
            assert_true(dirty_kb(memory) > 0);
            break;
        }
        write_and_flush(api, mr, at, IBV_FLUSH_GLOBAL | IBV_FLUSH_PERSISTENT, level);
        assert_memory_equal(memory + 4096 * i + 4064, api->memory[0], 64);
        if (level == IBV_FLUSH_MR) {
            assert_int_equal(dirty_kb(memory), 0);
        }
    }
    uint8_t read_back[64];
    assert_int_equal(pread(file, read_back, 64, 4064), 64);
    assert_memory_equal(read_back, memory + 4064, 64);
    /* The file is gone under its region: the peer is not told that anything is kept. */
    assert_int_equal(munmap(memory, BYTES), 0);
    assert_int_equal(post_flush(api, mr, (uintptr_t)memory, 64, IBV_FLUSH_PERSISTENT, 0), 0);
    api_expect(api->cqs[0], IBV_WC_REM_OP_ERR);
    assert_int_equal(ibv_dereg_mr(mr), 0);
    unlink(path);
    close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_capabilities, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_placed, open_pair, api_close),
        cmocka_unit_test_setup_teardown(test_window, open_pair, api_close),
        cmocka_unit_test_setup_teardown(test_peer_that_sends_none, open_pair, api_close),
        cmocka_unit_test_setup_teardown(test_refused_by_the_peer, open_pair, api_close),
        cmocka_unit_test_setup_teardown(test_not_posted, open_pair, api_close),
        cmocka_unit_test_setup_teardown(test_not_persistent, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_persistent, open_pair, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
