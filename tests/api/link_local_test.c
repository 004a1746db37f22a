/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Behind a device's IPv4 loopback address stands a link-local GID, which is as good
 *         wherever a program may name a GID: queue pairs, address handles, queries, files. Mixed
 *         with the first one it works as well. A GID that only looks like such a one is refused.
 * Method  An ordinary verbs program. With the argument "shared" at an address that is named, with
 *         "ipv6" at ::1, whose GID has no other name.
 */
#include "tests/api/api.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <netinet/in.h>

#include "base/check.h"

#define PORT_FILES "/sys/class/infiniband/nonic0/ports/1/"

enum {
    GRH_BYTES = 40,
    MESSAGE_BYTES = 3000,
    QKEY = 0x11111111,
    SKIPPED = 77 /* Meson takes this status for a skipped test. */
};

int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t bytes);

static union ibv_gid gid_of(const struct api *api, int index)
{
    union ibv_gid gid;
    assert_int_equal(ibv_query_gid(api->context, 1, index, &gid), 0);
    return gid;
}

/* fe80::5efe: and these four bytes. */
static union ibv_gid link_local(const uint8_t ipv4[4])
{
    union ibv_gid gid = {.raw = {0xfe, 0x80, [10] = 0x5e, 0xfe}};
    memcpy(gid.raw + 12, ipv4, 4);
    return gid;
}

static void assert_gid(const union ibv_gid *gid, const union ibv_gid *expected)
{
    assert_memory_equal(gid, expected, sizeof(*gid));
}

/* -- The table ----------------------------------------------------------------------------------*/

static void expect_file(const char *name, const char *content)
{
    char text[64];
    assert_true(ibv_read_sysfs_file(PORT_FILES, name, text, sizeof(text)) > 0);
    assert_string_equal(text, content);
}

static void expect_files(const union ibv_gid *gid, const char *interface)
{
    char text[64];
    int used = 0;
    for (int i = 0; i < 16; i += 2) {
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%02x%02x", i == 0 ? "" : ":",
                         gid->raw[i], gid->raw[i + 1]);
    }
    expect_file("gids/1", text);
    expect_file("gid_attrs/types/1", "RoCE v2");
    expect_file("gid_attrs/ndevs/1", interface);
}

/* As Linux has it: a file for each entry, also for those that are empty. Of these the GID is zeros,
 * and neither type nor interface can be read (NCCL looks for EINVAL, and not at open). */
static void expect_empty(uint32_t index)
{
    static const char *const attributes[] = {"types", "ndevs"};
    char name[64], byte;
    snprintf(name, sizeof(name), "gids/%u", index);
    expect_file(name, "0000:0000:0000:0000:0000:0000:0000:0000");
    for (size_t i = 0; i < COUNT_OF(attributes); i++) {
        snprintf(name, sizeof(name), PORT_FILES "gid_attrs/%s/%u", attributes[i], index);
        const int fd = open(name, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0);
        assert_int_equal(read(fd, &byte, 1), -1);
        assert_int_equal(errno, EINVAL);
        close(fd);
        FILE *file = fopen(name, "re");
        assert_non_null(file);
        assert_int_equal(fgetc(file), EOF);
        assert_true(ferror(file));
        fclose(file);
    }
}

static void expect_table(struct ibv_context *context, uint32_t used)
{
    struct ibv_port_attr attr;
    assert_int_equal(ibv_query_port(context, 1, &attr), 0);
    for (uint32_t i = used; i < (uint32_t)attr.gid_tbl_len; i++) {
        expect_empty(i);
    }
    char name[64];
    snprintf(name, sizeof(name), PORT_FILES "gids/%d", attr.gid_tbl_len);
    assert_int_equal(access(name, F_OK), -1);
}

static void test_table(void **state)
{
    struct api *api = *state;
    struct ibv_gid_entry entries[16], entry;
    char interface[IF_NAMESIZE];
    const union ibv_gid name = link_local(api->gid.raw + 12), second = gid_of(api, 1);
    assert_gid(&second, &name);
    assert_int_equal(ibv_query_gid_table(api->context, entries, COUNT_OF(entries), 0), 2);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(ibv_query_gid_ex(api->context, 1, i, &entry, 0), 0);
        assert_memory_equal(&entry, &entries[i], sizeof(entry));
        assert_int_equal(entry.gid_index, i);
        assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
        assert_string_equal(if_indextoname(entry.ndev_ifindex, interface), "lo");
        assert_gid(&entry.gid, i == 0 ? &api->gid : &name);
    }
    assert_int_equal(ibv_query_gid_ex(api->context, 1, 2, &entry, 0), ENODATA);
    expect_files(&name, "lo");
    expect_table(api->context, 2);
}

/* -- Connections --------------------------------------------------------------------------------*/

static void exchange(struct api *api, struct ibv_qp *const qps[2], uint8_t byte)
{
    memset(api->memory[0], byte, MESSAGE_BYTES);
    memset(api->memory[1], 0, 2 * MESSAGE_BYTES);
    assert_int_equal(api_post_receive(qps[1], api_sge(api->mrs[1], 0, MESSAGE_BYTES)), 0);
    assert_int_equal(api_post(qps[0], IBV_WR_SEND, api_sge(api->mrs[0], 0, MESSAGE_BYTES), 0, 0),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_int_equal(api_expect(api->cqs[1], IBV_WC_SUCCESS).byte_len, MESSAGE_BYTES);
    assert_int_equal(api_post(qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, MESSAGE_BYTES),
                              (uintptr_t)api->memory[1] + MESSAGE_BYTES, api->mrs[1]->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    for (int i = 0; i < 2; i++) {
        assert_memory_equal(api->memory[1] + i * MESSAGE_BYTES, api->memory[0], MESSAGE_BYTES);
    }
}

/* Each end by either GID, to either GID; what is asked is what was said. */
static void test_connections(void **state)
{
    struct api *api = *state;
    for (int kind = 0; kind < 16; kind++) {
        struct ibv_qp *qps[2];
        for (int i = 0; i < 2; i++) {
            qps[i] = api_create_qp(api, IBV_QPT_RC, api->cqs[i], NULL);
        }
        for (int i = 0; i < 2; i++) {
            const int words = kind >> 2 * i;
            const struct ibv_global_route route = {.sgid_index = (uint8_t)(words & 1),
                                                   .dgid = gid_of(api, words >> 1 & 1),
                                                   .hop_limit = 64};
            struct ibv_qp_attr attr;
            struct ibv_qp_init_attr init;
            api_connect_by(api, qps[i], qps[1 - i], &route);
            assert_int_equal(ibv_query_qp(qps[i], &attr, IBV_QP_AV, &init), 0);
            assert_int_equal(attr.ah_attr.grh.sgid_index, route.sgid_index);
            assert_gid(&attr.ah_attr.grh.dgid, &route.dgid);
        }
        exchange(api, qps, (uint8_t)(kind + 1));
        for (int i = 0; i < 2; i++) {
            assert_int_equal(ibv_destroy_qp(qps[i]), 0);
        }
    }
}

/* -- Datagrams ----------------------------------------------------------------------------------*/

static struct ibv_ah *handle(struct api *api, uint8_t index, union ibv_gid to)
{
    struct ibv_ah_attr attr = {
        .is_global = 1, .grh = {.sgid_index = index, .dgid = to, .hop_limit = 64}, .port_num = 1};
    return ibv_create_ah(api->pd, &attr);
}

/* By a handle, which is destroyed. The receiver sees the IPv4 header that the packet had, or would
 * have had. */
static struct ibv_wc send_one(struct api *api, struct ibv_qp *const qps[2], struct ibv_ah *ah)
{
    assert_non_null(ah);
    struct ibv_sge sge = api_sge(api->mrs[0], 0, 100);
    struct ibv_send_wr *bad,
        wr = {
            .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = qps[1]->qp_num;
    wr.wr.ud.remote_qkey = QKEY;
    memset(api->memory[0], ++api->memory[0][0], 100);
    memset(api->memory[1], 0, GRH_BYTES + 100);
    assert_int_equal(api_post_receive(qps[1], api_sge(api->mrs[1], 0, GRH_BYTES + 100)), 0);
    assert_int_equal(ibv_post_send(qps[0], &wr, &bad), 0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    const struct ibv_wc wc = api_expect(api->cqs[1], IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, GRH_BYTES + 100);
    assert_memory_equal(api->memory[1] + GRH_BYTES, api->memory[0], 100);
    const uint8_t *grh = api->memory[1];
    assert_int_equal(grh[20], 0x45);
    assert_memory_equal(grh + 32, api->gid.raw + 12, 4);
    assert_memory_equal(grh + 36, api->gid.raw + 12, 4);
    assert_int_equal(ibv_destroy_ah(ah), 0);
    return wc;
}

/* An answer goes to where the datagram came from, by either GID of ours. */
static void test_datagrams(void **state)
{
    struct api *api = *state;
    struct ibv_qp *qps[2];
    for (int i = 0; i < 2; i++) {
        qps[i] = api_create_qp(api, IBV_QPT_UD, api->cqs[i], NULL);
        api_connect(api, qps[i], qps[i]);
    }
    for (int kind = 0; kind < 4; kind++) {
        struct ibv_ah_attr back;
        struct ibv_grh *grh = (struct ibv_grh *)(void *)api->memory[1];
        struct ibv_wc wc = send_one(api, qps, handle(api, kind & 1, gid_of(api, kind >> 1)));
        assert_int_equal(ibv_init_ah_from_wc(api->context, 1, &wc, grh, &back), 0);
        assert_int_equal(back.grh.sgid_index, 0);
        assert_gid(&back.grh.dgid, &api->gid);
        send_one(api, qps, ibv_create_ah_from_wc(api->pd, &wc, grh, 1));
        send_one(api, qps, handle(api, 1, back.grh.dgid));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(ibv_destroy_qp(qps[i]), 0);
    }
}

/* A program that makes up a GRH of link-local GIDs means what it says. */
static void test_made_up_grh(void **state)
{
    struct api *api = *state;
    const uint8_t elsewhere[4] = {127, 9, 8, 7};
    struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
    struct ibv_grh grh = {.version_tclass_flow = htonl(6u << 28),
                          .sgid = link_local(elsewhere),
                          .dgid = gid_of(api, 1)};
    struct ibv_ah_attr attr;
    assert_int_equal(ibv_init_ah_from_wc(api->context, 1, &wc, &grh, &attr), 0);
    assert_int_equal(attr.grh.sgid_index, 1);
    assert_gid(&attr.grh.dgid, &grh.sgid);
}

static void test_groups(void **state)
{
    struct api *api = *state;
    const union ibv_gid ipv4 = {.raw = {[10] = 0xff, 0xff, 239, 77, 3, 4}};
    const union ibv_gid ipv6 = {.raw = {0xff, 0x12, [15] = 1}};
    for (int i = 0; i < 2; i++) {
        struct ibv_ah *ah = handle(api, 1, i == 0 ? ipv4 : ipv6);
        assert_non_null(ah);
        assert_int_equal(ibv_destroy_ah(ah), 0);
    }
}

/* -- GIDs that are none of these ----------------------------------------------------------------*/

static int connect_to(struct api *api, uint8_t index, union ibv_gid to)
{
    struct ibv_qp *qp = api_create_qp(api, IBV_QPT_UC, api->cqs[0], NULL);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    assert_int_equal(
        ibv_modify_qp(qp, &attr,
                      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
        0);
    attr =
        (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_1024,
                             .dest_qp_num = qp->qp_num,
                             .ah_attr = {.is_global = 1,
                                         .grh = {.sgid_index = index, .dgid = to, .hop_limit = 64},
                                         .port_num = 1}};
    const int status = ibv_modify_qp(
        qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN);
    assert_int_equal(ibv_destroy_qp(qp), 0);
    return status;
}

static void expect_refused(struct api *api, uint8_t index, union ibv_gid to)
{
    errno = 0;
    assert_null(handle(api, index, to));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(connect_to(api, index, to), EINVAL);
}

static void test_refused(void **state)
{
    struct api *api = *state;
    static const uint8_t wrong[][4] = {
        {126, 0, 0, 1}, {128, 0, 0, 1}, {10, 0, 0, 1}, {224, 0, 0, 1}, {0, 0, 0, 0}};
    for (uint8_t index = 0; index < 2; index++) {
        for (size_t i = 0; i < COUNT_OF(wrong); i++) {
            expect_refused(api, index, link_local(wrong[i]));
        }
        /* One bit beside: of a real interface, or of nobody. The lowest makes it a group's. */
        for (unsigned bit = 1; bit < 96; bit++) {
            union ibv_gid odd = gid_of(api, 1);
            odd.raw[bit / 8] ^= (uint8_t)(1u << bit % 8);
            expect_refused(api, index, odd);
        }
    }
    expect_refused(api, 2, gid_of(api, 1));
}

/* An address that nobody has: by its own name or by the other one makes no difference. */
static void test_nobody(void **state)
{
    struct api *api = *state;
    const uint8_t nobody[4] = {127, 3, 2, 1};
    const union ibv_gid address = {.raw = {[10] = 0xff, 0xff, 127, 3, 2, 1}};
    struct ibv_ah *handles[2] = {handle(api, 0, address), handle(api, 1, link_local(nobody))};
    assert_int_equal(handles[0] == NULL, handles[1] == NULL);
    assert_int_equal(connect_to(api, 1, link_local(nobody)), connect_to(api, 0, address));
    for (int i = 0; i < 2 && handles[i] != NULL; i++) {
        assert_int_equal(ibv_destroy_ah(handles[i]), 0);
    }
}

/* -- At ::1 -------------------------------------------------------------------------------------*/

static void test_ipv6(void **state)
{
    struct api *api = *state;
    struct ibv_gid_entry entries[16];
    const union ibv_gid loopback = {.raw = {[15] = 1}};
    const uint8_t ipv4[4] = {127, 3, 2, 1};
    assert_int_equal(ibv_query_gid_table(api->context, entries, COUNT_OF(entries), 0), 1);
    assert_gid(&entries[0].gid, &loopback);
    expect_refused(api, 0, link_local(ipv4));
    expect_refused(api, 1, loopback);
}

static bool has_ipv6(void)
{
    const struct sockaddr_in6 at = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const int fd = socket(AF_INET6, SOCK_DGRAM, 0);
    const bool has = fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof(at)) == 0;
    close(fd);
    return has;
}

static int at_ipv6(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ipv6, api_open, api_close),
    };
    if (!has_ipv6()) {
        return SKIPPED;
    }
    setenv("NONIC_DEVICE", "::1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv)
{
    const char *place = argc > 1 ? argv[1] : "";
    char address[32];
    if (strcmp(place, "ipv6") == 0) {
        return at_ipv6();
    }
    if (strcmp(place, "shared") == 0) {
        snprintf(address, sizeof(address), "127.62.%d.%d", getpid() / 250 % 256,
                 1 + getpid() % 250);
        setenv("NONIC_DEVICE", address, 1);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_table, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_connections, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_datagrams, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_made_up_grh, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_groups, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_refused, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_nobody, api_open, api_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
