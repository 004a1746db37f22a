/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    For every queue pair and every key, the rule says whether an access is allowed, whether a
 *         local peer may make it directly, and if not, why.
 * Method  Every queue pair there can be, with every right that an access can take, beside the model
 *         of tests/reach_model.h; the reasons are told one by one. The same for keys, around both
 *         ends of a range. region_test tries the tables of regions and windows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/reach_model.h"

enum {
    RIGHTS = 0x10, /* Local write, remote write, read, atomic: all combinations. */
    NUMBER = 77,
    NAME = 5,
    DOMAIN = 9,
    OTHER = 10,
};

static const enum qp_type types[] = {QP_RC, QP_UC, QP_UD, QP_XRC_INITIATOR, QP_XRC_TARGET};

static struct reach_qp view_of(const struct modelled_qp *qp)
{
    const uint32_t refused =
        qp->reads == 0 && qp->type != QP_UC ? ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC : 0;
    return (struct reach_qp){.type = qp->type,
                             .state = qp->state,
                             .granted = qp->access & ~refused,
                             .user = {(uint64_t)qp->domain, (uint64_t)qp->name},
                             .peer = {{[15] = qp->peer}},
                             .peer_number = qp->peer_number,
                             .terms = {qp->mtu_bytes, qp->reads}};
}

static const struct modelled_key everything = {
    .live = true,
    .domain = DOMAIN,
    .owner = NONE,
    .asked = {.address = 0x5000, .start = 0x1000, .bytes = 0x100, .access = ACCESS_REMOTE | 1}};
static const struct reach_region everything_view = {.open = true,
                                                    .access = ACCESS_REMOTE | 1,
                                                    .domain = DOMAIN,
                                                    .start = 0x1000,
                                                    .bytes = 0x100,
                                                    .memory = 0x5000};

/* Returns the verdict, which is the model's. */
static enum reach_verdict ask(const struct modelled_qp *qp, const struct modelled_access *asked)
{
    struct segment segment;
    const struct reach_qp view = view_of(qp);
    const struct reach_source source = {{{[15] = asked->source}},
                                        asked->source_number,
                                        {asked->source_mtu_bytes, asked->source_reads}};
    const struct reach_access access = {asked->address, asked->bytes, asked->rights, asked->bytes};
    const enum reach_verdict verdict = reach_judge(&view, &source, &everything_view, &access);
    assert_int_equal(verdict, model_judge(qp, &everything, asked, &segment));
    assert_int_equal(reach_judge_direct_qp(&view) == REACH_ALLOWED, model_qp_is_direct(qp));
    return verdict;
}

static void test_queue_pairs(void **state)
{
    (void)state;
    uint32_t seen[REACH_VERDICT_COUNT] = {0};
    for (uint32_t i = 0; i < COUNT_OF(types) * (QP_ERR + 1); i++) {
        for (uint32_t access = 0; access < RIGHTS * 2; access++) {
            const struct modelled_qp qp = {.type = types[i / (QP_ERR + 1)],
                                           .state = (enum qp_state)(i % (QP_ERR + 1)),
                                           .access = access % RIGHTS,
                                           .reads = access / RIGHTS,
                                           .domain = DOMAIN,
                                           .name = NAME,
                                           .peer = 1,
                                           .peer_number = NUMBER,
                                           .mtu_bytes = 256};
            for (uint32_t rights = 0; rights < RIGHTS * 4; rights++) {
                const struct modelled_access asked = {.address = 0x1010,
                                                      .bytes = 8,
                                                      .rights = rights % RIGHTS,
                                                      .source = rights & 0x10 ? 2 : 1,
                                                      .source_number =
                                                          rights & 0x20 ? NUMBER + 1 : NUMBER,
                                                      .source_mtu_bytes = 256};
                seen[ask(&qp, &asked)]++;
            }
        }
    }
    for (enum reach_verdict i = REACH_WRONG_SERVICE; i <= REACH_NO_RIGHT; i++) {
        assert_true(seen[i] > 1000);
    }
    assert_true(seen[REACH_ALLOWED] > 1000);
}

/* Every two path MTUs with messages around their edges, and every two numbers of READs. */
static void test_terms(void **state)
{
    (void)state;
    uint32_t seen[REACH_VERDICT_COUNT] = {0};
    struct modelled_qp qp = {.type = QP_RC,
                             .state = QP_RTS,
                             .access = ACCESS_REMOTE,
                             .domain = DOMAIN,
                             .name = NAME,
                             .peer = 1,
                             .peer_number = NUMBER};
    struct modelled_access asked = {
        .address = 0x1000, .source = 1, .source_number = NUMBER, .rights = ACCESS_REMOTE_READ};
    for (uint32_t i = 0; i < 5 * 5 * 4 * 4 * 2; i++) {
        qp.mtu_bytes = 8u << i % 5; /* The region is small. */
        asked.source_mtu_bytes = 8u << i / 5 % 5;
        qp.reads = 1 + i / 25 % 4;
        asked.source_reads = 1 + i / 100 % 4;
        asked.rights = i / 400 ? ACCESS_REMOTE_WRITE : ACCESS_REMOTE_READ;
        for (asked.bytes = 0; asked.bytes <= 0x100; asked.bytes++) {
            seen[ask(&qp, &asked)]++;
        }
    }
    assert_true(seen[REACH_ALLOWED] > 1000 && seen[REACH_OTHER_MTU] > 1000);
    assert_true(seen[REACH_OTHER_READS] > 1000);
}

/* Every byte of a GID counts. */
static void test_peers(void **state)
{
    (void)state;
    for (uint32_t bit = 0; bit < 128; bit++) {
        struct gid peer = {{0xfd, [15] = 1}}, other = peer;
        other.bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_true(reach_is_peer(&peer, &peer));
        assert_false(reach_is_peer(&peer, &other));
    }
}

static enum reach_verdict ask_key(const struct reach_user *user, const struct reach_region *region,
                                  uint64_t address, uint32_t bytes, uint32_t rights)
{
    const struct reach_access access = {address, bytes, rights, bytes};
    return reach_judge_key(user, region, &access);
}

static void test_bounds(void **state)
{
    (void)state;
    static const uint64_t starts[] = {0, 0x1000, 1ull << 63, UINT64_MAX - 32};
    const struct reach_user user = {.domain = DOMAIN};
    for (size_t i = 0; i < COUNT_OF(starts); i++) {
        for (uint32_t size = 0; size <= 32; size++) {
            const struct modelled_key key = {
                .live = true,
                .domain = DOMAIN,
                .owner = NONE,
                .asked = {.address = 0x5000, .start = starts[i], .bytes = size}};
            const struct reach_region view = {.open = true,
                                              .domain = DOMAIN,
                                              .start = starts[i],
                                              .bytes = size,
                                              .memory = 0x5000};
            for (uint32_t at = 0; at <= 40; at++) {
                for (uint32_t bytes = 0; bytes <= 36; bytes++) {
                    const struct modelled_access asked = {.address = starts[i] + at - 4,
                                                          .bytes = bytes};
                    struct segment segment;
                    const enum reach_verdict expected =
                        model_judge_key(&key, DOMAIN, NONE, &asked, &segment);
                    assert_int_equal(ask_key(&user, &view, asked.address, bytes, 0), expected);
                    if (expected == REACH_ALLOWED && bytes != 0) {
                        assert_int_equal(reach_memory(&view, asked.address), segment.address);
                    }
                }
            }
        }
    }
}

/* One reason after the other, each before those that come later. */
static void test_reasons_of_keys(void **state)
{
    (void)state;
    const struct reach_user peer = {DOMAIN, NAME}, program = {DOMAIN, 0}, stranger = {OTHER, NAME};
    struct reach_region region = everything_view;
    region.access = ACCESS_REMOTE_READ;
    assert_int_equal(ask_key(&peer, &region, 0x1000, 8, ACCESS_REMOTE_READ), REACH_ALLOWED);
    assert_int_equal(ask_key(&peer, &region, 0x1000, 8, ACCESS_REMOTE_WRITE), REACH_FORBIDDEN);
    assert_int_equal(ask_key(&peer, &region, 0x10f9, 8, ACCESS_REMOTE_WRITE), REACH_OUT_OF_BOUNDS);
    assert_int_equal(ask_key(&stranger, &region, 0x10f9, 8, ACCESS_REMOTE_WRITE),
                     REACH_WRONG_DOMAIN);
    region.open = false;
    assert_int_equal(ask_key(&stranger, &region, 0x10f9, 8, ACCESS_REMOTE_WRITE),
                     REACH_UNKNOWN_KEY);
    assert_int_equal(ask_key(&stranger, &region, 0x10f9, 0, ACCESS_REMOTE_WRITE), REACH_ALLOWED);

    region = everything_view;
    region.kind = REGION_WINDOW_TYPE_1;
    assert_int_equal(ask_key(&peer, &region, 0x1000, 8, ACCESS_REMOTE_READ), REACH_ALLOWED);
    assert_int_equal(ask_key(&stranger, &region, 0x1000, 8, ACCESS_REMOTE_READ),
                     REACH_WRONG_DOMAIN);
    assert_int_equal(ask_key(&program, &region, 0x1000, 8, ACCESS_REMOTE_READ), REACH_FORBIDDEN);
    assert_int_equal(ask_key(&peer, &region, 0x1000, 8, ACCESS_LOCAL_WRITE), REACH_FORBIDDEN);
    region.kind = REGION_WINDOW_TYPE_2;
    region.owner = NAME;
    assert_int_equal(ask_key(&stranger, &region, 0x1000, 8, ACCESS_REMOTE_READ), REACH_ALLOWED);
    region.owner = NAME + 1;
    assert_int_equal(ask_key(&peer, &region, 0x1000, 8, ACCESS_REMOTE_READ), REACH_WRONG_DOMAIN);

    region = (struct reach_region){
        .open = true, .null = true, .domain = DOMAIN, .access = ACCESS_LOCAL_WRITE};
    assert_int_equal(ask_key(&program, &region, UINT64_MAX, 8, ACCESS_LOCAL_WRITE), REACH_ALLOWED);
    assert_int_equal(ask_key(&peer, &region, 0, 8, ACCESS_REMOTE_READ), REACH_FORBIDDEN);
}

/* -- Directly -----------------------------------------------------------------------------------*/

static void test_what_is_not_direct(void **state)
{
    (void)state;
    struct reach_qp qp = {.type = QP_RC, .state = QP_RTS, .granted = ACCESS_REMOTE_READ};
    assert_int_equal(reach_judge_direct_qp(&qp), REACH_ALLOWED);
    qp.granted = ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE;
    assert_int_equal(reach_judge_direct_qp(&qp), REACH_NO_RIGHT);
    qp.state = QP_SQD;
    assert_int_equal(reach_judge_direct_qp(&qp), REACH_WRONG_STATE);
    for (size_t i = 1; i < COUNT_OF(types); i++) {
        qp.type = types[i];
        assert_int_equal(reach_judge_direct_qp(&qp), REACH_WRONG_SERVICE);
    }
    struct reach_region region = everything_view;
    assert_int_equal(reach_judge_direct_region(&region), REACH_ALLOWED);
    region.access |= ACCESS_ZERO_BASED;
    assert_int_equal(reach_judge_direct_region(&region), REACH_ALLOWED);
    region.access = ACCESS_REMOTE_ATOMIC | ACCESS_LOCAL_WRITE | ACCESS_MW_BIND;
    assert_int_equal(reach_judge_direct_region(&region), REACH_FORBIDDEN);
    region.access = ACCESS_REMOTE_READ | ACCESS_ON_DEMAND;
    assert_int_equal(reach_judge_direct_region(&region), REACH_ON_DEMAND);
    for (enum region_kind i = REGION_WINDOW_TYPE_1; i <= REGION_WINDOW_TYPE_2; i++) {
        region.kind = i;
        assert_int_equal(reach_judge_direct_region(&region), REACH_WINDOW);
    }
    region.open = false;
    assert_int_equal(reach_judge_direct_region(&region), REACH_UNKNOWN_KEY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_pairs),     cmocka_unit_test(test_terms),
        cmocka_unit_test(test_peers),           cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_reasons_of_keys), cmocka_unit_test(test_what_is_not_direct),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
