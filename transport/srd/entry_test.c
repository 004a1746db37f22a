/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A tag opens a flow at an age of 7.9 s and not at 8.1 s, and only if it is newer than that
 *         of every flow of its source before it; no flow is opened twice (SRD-22, SRD-29).
 * Method  Single tags at each edge; then random challenges and packets, copies of old ones among
 *         them, beside a table of all flows that were ever open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/srd/entry.h"

#define S     UINT64_C(1000000000)
#define FLOWS 400

static const struct siphash_key key = {{3, 4}};
static const struct srd_source source = {{1, 2, 3}, 9};

static enum srd_entry_verdict judge(const struct srd_entry *entry, uint32_t flow, uint64_t tag,
                                    uint64_t now_ns)
{
    return srd_entry_judge(entry, &key, &source, flow, tag, (struct instant){now_ns});
}

static uint64_t tag_at(uint32_t flow, uint64_t ns)
{
    return srd_tag_make(&key, &source, flow, srd_ticks((struct instant){ns}));
}

static void test_age(void **state)
{
    (void)state;
    const struct srd_entry nobody = {.known = false};
    const uint64_t begin = 20000 * S, tag = tag_at(5, begin);
    assert_int_equal(judge(&nobody, 5, tag, begin), SRD_ENTRY_OPENS);
    assert_int_equal(judge(&nobody, 5, tag, begin + 79 * S / 10), SRD_ENTRY_OPENS);
    assert_int_equal(judge(&nobody, 5, tag, begin + 81 * S / 10), SRD_ENTRY_STALE);
    assert_int_equal(judge(&nobody, 6, tag, begin), SRD_ENTRY_STALE);
    assert_int_equal(judge(&nobody, 5, tag + 1, begin), SRD_ENTRY_STALE);
    /* The 24 bits of its time come again after 4.55 hours. */
    assert_int_equal(judge(&nobody, 5, tag, begin + (UINT64_C(1) << 24) * SRD_TICK_NS),
                     SRD_ENTRY_STALE);
}

static void test_order(void **state)
{
    (void)state;
    struct srd_entry entry = {.known = false};
    const uint64_t begin = 20000 * S;
    const uint64_t older = tag_at(1, begin), same = tag_at(2, begin), open = tag_at(3, begin),
                   newer = tag_at(4, begin + 2 * SRD_TICK_NS);
    srd_entry_open(&entry, 3, open, (struct instant){begin + S});
    assert_int_equal(judge(&entry, 3, open, begin + 100 * S), SRD_ENTRY_KNOWN);
    assert_int_equal(judge(&entry, 3, open ^ 1, begin + S), SRD_ENTRY_WRONG_TAG);
    assert_int_equal(judge(&entry, 1, older, begin + S), SRD_ENTRY_STALE);
    assert_int_equal(judge(&entry, 2, same, begin + S), SRD_ENTRY_STALE);
    assert_int_equal(judge(&entry, 4, newer, begin + S), SRD_ENTRY_OPENS);
    /* The flow is forgotten, but not which one was the newest. */
    entry.known = false;
    assert_int_equal(judge(&entry, 3, open, begin + S), SRD_ENTRY_STALE);
    assert_int_equal(judge(&entry, 4, newer, begin + S), SRD_ENTRY_OPENS);
}

/* Packets of all flows at all times; the entry goes SRD_FORGET_NS after the last good one. */
static void test_never_twice(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct prng prng;
        struct srd_entry entry = {.known = false};
        uint64_t tags[FLOWS], now = 30000 * S, last = 0;
        bool ended[FLOWS] = {false};
        uint32_t issued = 0, opened = 0, open = FLOWS;
        prng_init(&prng, seed);
        while (issued < FLOWS) {
            now += prng_below(&prng, prng_below(&prng, 4) ? S / 1000 : 5 * S);
            if (prng_below(&prng, 3) == 0) {
                tags[issued] = tag_at(issued, now);
                issued++;
            }
            if (now - last >= SRD_FORGET_NS && prng_below(&prng, 2)) {
                entry = (struct srd_entry){.known = false};
            } else if (now - last >= SRD_FORGET_NS) {
                entry.known = false;
            }
            if (!entry.known && open != FLOWS) {
                ended[open] = true;
                open = FLOWS;
            }
            if (issued == 0) {
                continue;
            }
            const uint32_t flow =
                prng_below(&prng, 2) ? issued - 1 : (uint32_t)prng_below(&prng, issued);
            switch (judge(&entry, flow, tags[flow], now)) {
            case SRD_ENTRY_OPENS:
                assert_false(ended[flow]);
                if (open != FLOWS) {
                    ended[open] = true;
                }
                srd_entry_open(&entry, flow, tags[flow], (struct instant){now});
                open = flow;
                opened++;
                last = now;
                break;
            case SRD_ENTRY_KNOWN:
                assert_int_equal(flow, open);
                last = now;
                break;
            case SRD_ENTRY_STALE:
            case SRD_ENTRY_WRONG_TAG: break;
            }
        }
        assert_true(opened > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_age), cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_never_twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
