/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    What a board says is what its owner put up there, and nothing of what was taken off.
 * Method  A board without a port around it, of a NIC without a network.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/shm_internal.h"
#include "nic/nic.h"

#define REMOTE (ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE)

struct bench {
    struct shm_port port;
    struct nic *nic;
    struct cq cq;
    struct completion ring[4];
    struct pd pd;
    struct qp *qp;
    void *qp_memory, *resources;
};

static const struct gid peer = {{0xfd, [15] = 1}};

enum {
    PEER_NUMBER = 77,
};

static void *zeroed(size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    return memset(aligned_alloc(64, bytes), 0, bytes);
}

static void modify(struct bench *bench, enum qp_state state, uint32_t mask)
{
    const struct qp_attributes attributes = {
        .state = state,
        .port = 1,
        .access = REMOTE,
        .path_mtu = PATH_MTU_1024,
        .path = {.destination = peer},
        .destination_qpn = PEER_NUMBER,
        .max_reads_in = 1,
    };
    assert_int_equal(
        qp_modify(bench->qp, &attributes, mask | QP_ATTR_STATE, (struct instant){1000}), STATUS_OK);
}

static void make_qp(struct bench *bench)
{
    struct qp_request request = {.type = QP_RC,
                                 .pd = &bench->pd,
                                 .send_cq = &bench->cq,
                                 .receive_cq = &bench->cq,
                                 .capacity = {1, 1, 1, 1, 0}};
    bench->qp_memory = zeroed(qp_bytes(QP_RC, &request.capacity, false));
    assert_int_equal(qp_create(bench->nic, &request, bench->qp_memory, &bench->qp), STATUS_OK);
    bench->resources = zeroed(qp_resources_bytes(1));
    assert_null(qp_give_resources(bench->qp, bench->resources, 1));
    modify(bench, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS);
    modify(bench, QP_RTR,
           QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
               QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER);
}

static int setup(void **state)
{
    static const struct nic_limits limits = {.qps = 4,
                                             .qpn_base = SHM_BOARD_QPS,
                                             .qpn_span = 8,
                                             .regions = 4,
                                             .sends_per_qp = 4,
                                             .receives_per_qp = 4,
                                             .sges = 1,
                                             .inline_bytes = 64,
                                             .reads_per_qp = 1,
                                             .cq_entries = 4,
                                             .mtu = PATH_MTU_1024};
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->port.board = zeroed(sizeof(struct shm_board));
    bench->nic = nic_init(&limits, 3, zeroed(nic_bytes(&limits)));
    cq_init(&bench->cq, COUNT_OF(bench->ring), bench->ring);
    make_qp(bench);
    *state = bench;
    return 0;
}

static int teardown(void **state)
{
    struct bench *bench = *state;
    free(qp_take_resources(bench->qp));
    qp_destroy(bench->qp);
    free(bench->qp_memory);
    free(bench->nic);
    free(bench->port.board);
    free(bench);
    return 0;
}

static bool admitted(const struct bench *bench, uint32_t number, uint32_t key, uint64_t address)
{
    uint64_t memory;
    const struct shm_reach reach = {.number = number,
                                    .from_number = PEER_NUMBER,
                                    .from = peer,
                                    .address = address,
                                    .key = key,
                                    .bytes = 8,
                                    .access = ACCESS_REMOTE_WRITE};
    return shm_board_admits(bench->port.board, &reach, &memory);
}

/* -- What was taken off -------------------------------------------------------------------------*/

/* A place that is free has the key 0, or the number 0, and is nothing to a peer that asks for 0. */
static void test_nothing_is_0(void **state)
{
    struct bench *bench = *state;
    const uint32_t number = qp_number(bench->qp);
    assert_int_equal(number & (SHM_BOARD_QPS - 1), 0); /* The first place where 0 is looked for. */
    shm_port_publish_qp(&bench->port, bench->qp);
    for (uint32_t i = 1; i <= SHM_BOARD_REGIONS; i++) { /* Some of them at the first place. */
        struct region region = {.kind = REGION_MEMORY,
                                .key = i << 8,
                                .pd = &bench->pd,
                                .start = 0x1000,
                                .bytes = 0x1000,
                                .access = REMOTE};
        shm_port_publish_region(&bench->port, &region);
        assert_true(admitted(bench, number, region.key, 0x1800));
        if (i == SHM_BOARD_REGIONS) {
            shm_port_withdraw_qp(&bench->port, bench->qp);
            assert_false(admitted(bench, number, region.key, 0x1800));
            assert_false(admitted(bench, 0, region.key, 0x1800));
            shm_port_publish_qp(&bench->port, bench->qp);
        }
        shm_port_withdraw_region(&bench->port, &region);
        assert_false(admitted(bench, number, region.key, 0x1800));
        assert_false(admitted(bench, number, 0, 0x1800));
    }
}

#define BOARD_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOARD_TEST(test_nothing_is_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
