/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An EFA device says what such a device says of itself (SRD-2, SRD-3), and refuses what it
 *         does not have.
 * Method  Each query in each of its forms, and each call that would make an object of RoCE's.
 */
#include "tests/api/efa_program.h"

#include <errno.h>
#include <string.h>

static void test_name(void **state)
{
    (void)state;
    int count;
    struct ibv_device **list = ibv_get_device_list(&count);
    assert_int_equal(count, 1);
    assert_string_equal(ibv_get_device_name(list[0]), "rdmap0s31");
    assert_int_equal(list[0]->node_type, IBV_NODE_UNSPECIFIED);
    assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_UNSPECIFIED);
    assert_string_equal(list[0]->ibdev_path, "/sys/class/infiniband/rdmap0s31");
    assert_int_equal(ibv_get_device_guid(list[0]), 0);
    ibv_free_device_list(list);
}

/* -- Queries ------------------------------------------------------------------------------------*/

static void test_device(void **state)
{
    struct efa *efa = *state;
    struct ibv_device_attr_ex ex;
    struct ibv_device_attr attr;
    assert_int_equal(ibv_query_device(efa->context, &attr), 0);
    const struct ibv_device_attr expected = {.fw_ver = "0.0.0.0",
                                             .max_mr_size = UINT64_MAX,
                                             .page_size_cap = ~UINT64_C(0xfff),
                                             .vendor_id = 0x1d0f,
                                             .vendor_part_id = 0xefa1,
                                             .hw_ver = 0xefa0,
                                             .max_qp = 250,
                                             .max_qp_wr = 4096,
                                             .max_sge = 2,
                                             .max_sge_rd = 1,
                                             .max_cq = 65536,
                                             .max_cqe = 1 << 20,
                                             .max_mr = 1 << 17,
                                             .max_pd = 65536,
                                             .atomic_cap = IBV_ATOMIC_NONE,
                                             .max_ah = 65535,
                                             .max_pkeys = 1,
                                             .phys_port_cnt = 1};
    assert_memory_equal(&attr, &expected, sizeof(attr));
    memset(&ex, 0xff, sizeof(ex));
    assert_int_equal(ibv_query_device_ex(efa->context, NULL, &ex), 0);
    assert_memory_equal(&ex.orig_attr, &expected, sizeof(attr));
    assert_int_equal(ex.phys_port_cnt_ex, 1);
    ex.phys_port_cnt_ex = 0;
    memset(&ex.orig_attr, 0, sizeof(ex.orig_attr));
    const struct ibv_device_attr_ex nothing = {0};
    assert_memory_equal(&ex, &nothing, sizeof(ex));
}

static void test_port(void **state)
{
    struct efa *efa = *state;
    struct ibv_port_attr port;
    assert_int_equal(ibv_query_port(efa->context, 1, &port), 0);
    assert_int_equal(port.state, IBV_PORT_ACTIVE);
    assert_int_equal(port.max_mtu, IBV_MTU_4096);
    assert_int_equal(port.active_mtu, IBV_MTU_4096);
    assert_int_equal(port.gid_tbl_len, 1);
    assert_int_equal(port.pkey_tbl_len, 1);
    assert_int_equal(port.port_cap_flags, 0);
    assert_int_equal(port.lid, 0);
    assert_int_equal(port.lmc, 1);
    assert_int_equal(port.max_vl_num, 1);
    assert_int_equal(port.active_width, 2);  /* Four lanes, ... */
    assert_int_equal(port.active_speed, 32); /* ... of EDR. */
    assert_int_equal(port.max_msg_sz, 8192);
    assert_int_equal(port.link_layer, IBV_LINK_LAYER_UNSPECIFIED);
    assert_int_equal(port.flags, 0);
    assert_int_equal(ibv_query_port(efa->context, 2, &port), EINVAL);
}

static void test_gids(void **state)
{
    struct efa *efa = *state;
    static const union ibv_gid nobody;
    struct ibv_gid_entry entry, entries[2];
    union ibv_gid gid;
    assert_int_equal(ibv_query_gid(efa->context, 1, 0, &gid), 0);
    assert_memory_not_equal(&gid, &nobody, sizeof(gid));
    assert_int_equal(ibv_query_gid(efa->context, 1, 1, &gid), -1);
    assert_int_equal(ibv_query_gid_ex(efa->context, 1, 0, &entry, 0), 0);
    assert_memory_equal(&entry.gid, &gid, sizeof(gid));
    assert_int_equal(entry.gid_type, IBV_GID_TYPE_IB);
    assert_int_equal(entry.ndev_ifindex, 0);
    assert_int_equal(ibv_query_gid_ex(efa->context, 1, 1, &entry, 0), EINVAL);
    assert_int_equal(ibv_query_gid_table(efa->context, entries, 2, 0), 1);
    __be16 pkey;
    assert_int_equal(ibv_query_pkey(efa->context, 1, 0, &pkey), 0);
    assert_int_equal(pkey, 0xffff);
    assert_int_equal(ibv_query_pkey(efa->context, 1, 1, &pkey), -1);
}

/* -- Refusals -----------------------------------------------------------------------------------*/

static void test_queue_pairs_refused(void **state)
{
    struct efa *efa = *state;
    static const enum ibv_qp_type types[] = {IBV_QPT_RC,       IBV_QPT_UC,         IBV_QPT_XRC_SEND,
                                             IBV_QPT_XRC_RECV, IBV_QPT_RAW_PACKET, IBV_QPT_DRIVER};
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = efa->cq, .recv_cq = efa->cq, .cap = {1, 1, 1, 1, 0}, .qp_type = types[i]};
        assert_refused(ibv_create_qp(efa->pd, &attr), EOPNOTSUPP);
        struct ibv_qp_init_attr_ex ex = {.send_cq = efa->cq,
                                         .recv_cq = efa->cq,
                                         .cap = {1, 1, 1, 1, 0},
                                         .qp_type = types[i],
                                         .comp_mask = IBV_QP_INIT_ATTR_PD,
                                         .pd = efa->pd};
        assert_refused(ibv_create_qp_ex(efa->context, &ex), EOPNOTSUPP);
    }
}

static void test_objects_refused(void **state)
{
    struct efa *efa = *state;
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
    struct ibv_srq_init_attr_ex srq_ex = {.comp_mask = IBV_SRQ_INIT_ATTR_PD, .pd = efa->pd};
    struct ibv_xrcd_init_attr xrcd = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1};
    struct ibv_alloc_dm_attr dm = {.length = 64};
    struct ibv_qp_open_attr open = {0};
    struct ibv_values_ex values = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK};
    assert_refused(ibv_create_srq(efa->pd, &srq), EOPNOTSUPP);
    assert_refused(ibv_create_srq_ex(efa->context, &srq_ex), EOPNOTSUPP);
    assert_refused(ibv_open_xrcd(efa->context, &xrcd), EOPNOTSUPP);
    assert_refused(ibv_open_qp(efa->context, &open), EOPNOTSUPP);
    assert_refused(ibv_alloc_mw(efa->pd, IBV_MW_TYPE_1), EOPNOTSUPP);
    assert_refused(ibv_alloc_mw(efa->pd, IBV_MW_TYPE_2), EOPNOTSUPP);
    assert_refused(ibv_alloc_dm(efa->context, &dm), EOPNOTSUPP);
    assert_refused(ibv_alloc_null_mr(efa->pd), EOPNOTSUPP);
    assert_refused(ibv_import_device(efa->context->cmd_fd), EOPNOTSUPP);
    assert_refused(ibv_import_pd(efa->context, efa->pd->handle), EOPNOTSUPP);
    assert_refused(ibv_import_mr(efa->pd, 1), EOPNOTSUPP);
    assert_int_equal(ibv_resize_cq(efa->cq, 32), EOPNOTSUPP);
    assert_int_equal(ibv_query_rt_values_ex(efa->context, &values), EOPNOTSUPP);
    assert_int_equal(ibv_advise_mr(efa->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, NULL, 0), EOPNOTSUPP);
    struct ibv_parent_domain_init_attr domain = {
        .pd = efa->pd, .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS};
    assert_refused(ibv_alloc_parent_domain(efa->context, &domain), EOPNOTSUPP);
    struct ibv_cq_init_attr_ex cq = {.cqe = 1, .wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP};
    assert_refused(ibv_create_cq_ex(efa->context, &cq), EOPNOTSUPP);
}

/* Optional bits may be ignored; no right is granted that is of no use. */
static void test_regions(void **state)
{
    struct efa *efa = *state;
    static uint8_t memory[4096];
    static const int refused[] = {IBV_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_MW_BIND,
                                  IBV_ACCESS_ZERO_BASED, IBV_ACCESS_ON_DEMAND, IBV_ACCESS_HUGETLB};
    for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        assert_refused(
            ibv_reg_mr(efa->pd, memory, sizeof(memory), IBV_ACCESS_LOCAL_WRITE | refused[i]),
            EOPNOTSUPP);
    }
    struct ibv_mr *mr = ibv_reg_mr(efa->pd, memory, sizeof(memory),
                                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_RELAXED_ORDERING);
    assert_non_null(mr);
    errno = 0;
    assert_int_not_equal(
        ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE), 0);
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void test_multicast_refused(void **state)
{
    struct efa *efa = *state;
    const union ibv_gid group = {.raw = {0xff, 0x0e, [15] = 1}};
    struct ibv_qp_init_attr attr = {
        .send_cq = efa->cq, .recv_cq = efa->cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_UD};
    struct ibv_qp *qp = ibv_create_qp(efa->pd, &attr);
    assert_non_null(qp);
    assert_int_equal(ibv_attach_mcast(qp, &group, 0), EOPNOTSUPP);
    assert_int_equal(ibv_detach_mcast(qp, &group, 0), EOPNOTSUPP);
    assert_int_equal(ibv_destroy_qp(qp), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_name),
        cmocka_unit_test(test_device),
        cmocka_unit_test(test_port),
        cmocka_unit_test(test_gids),
        cmocka_unit_test(test_queue_pairs_refused),
        cmocka_unit_test(test_objects_refused),
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_multicast_refused),
    };
    return cmocka_run_group_tests(tests, efa_open, efa_close);
}
