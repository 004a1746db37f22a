/* SPDX-License-Identifier: BSD-2-Clause
 *
 * memory - rules about the memory that requests name.
 */
#include <inttypes.h>
#include <stdio.h>

#include "checker/internal.h"

/* Why the key does not open the memory; false: it does. */
static bool find_flaw(enum reach_verdict verdict, uint64_t start, uint64_t bytes, char *why,
                      size_t why_bytes)
{
    if (verdict == REACH_UNKNOWN_KEY) {
        snprintf(why, why_bytes, "which is the key of no region");
    } else if (verdict == REACH_WRONG_DOMAIN) {
        snprintf(why, why_bytes, "whose region is of another protection domain");
    } else if (verdict == REACH_OUT_OF_BOUNDS) {
        snprintf(why, why_bytes, "whose region has %" PRIu64 " bytes from %#" PRIx64 " on", bytes,
                 start);
    } else if (verdict == REACH_FORBIDDEN) {
        snprintf(why, why_bytes, "whose region lacks IBV_ACCESS_LOCAL_WRITE: data come to it");
    } else {
        return false;
    }
    return true;
}

void judge_keys(struct checker *checker, uint32_t qpn, const struct pd *domain,
                struct posted *posted, bool writes)
{
    const struct checker_memory *memory = checker->memory;
    for (uint32_t i = 0; i < posted->sge_count; i++) {
        const struct sge *sge = &posted->sges[i];
        struct checker_reach reach = {.bytes = 0};
        char why[160];
        const enum reach_verdict verdict = memory->judge(domain, sge, writes, &reach);
        posted->segments[i] = reach.segment;
        if (find_flaw(verdict, reach.start, reach.bytes, why, sizeof(why))) {
            tell(checker, CHECKER_BAD_KEY, qpn, posted,
                 "an SGE of %u bytes at %#" PRIx64 " has the lkey %#x, %s", sge->bytes,
                 sge->address, sge->key, why);
        }
    }
}

static bool overlap(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

static bool share_memory(const struct posted *a, const struct posted *b)
{
    for (uint32_t i = 0; i < a->sge_count; i++) {
        for (uint32_t j = 0; j < b->sge_count; j++) {
            const struct sge *one = &a->sges[i], *other = &b->sges[j];
            if (one->key == other->key &&
                overlap(one->address, one->bytes, other->address, other->bytes)) {
                return true;
            }
        }
    }
    return false;
}

void judge_order(struct checker *checker, const struct checked_qp *qp, const struct posted *posted)
{
    if ((posted->flags & WORK_FENCE) || brings_data(posted)) {
        return;
    }
    const bool writes = work_kind_in(work_kinds(WORK_IS_WRITE), posted->kind);
    for (uint32_t at = qp->sends.head; at != qp->sends.tail; at++) {
        const struct posted *earlier = ring_at(&qp->sends, at);
        if (!brings_data(earlier)) {
            continue;
        }
        if (share_memory(earlier, posted)) {
            tell(checker, CHECKER_FENCE, qp->object.number, earlier,
                 "a %s sends memory to which a %s before it brings data, and does not wait for it",
                 kind_name(posted->kind), kind_name(earlier->kind));
            return;
        }
        if (writes && earlier->kind == WORK_READ && earlier->remote_key == posted->remote_key &&
            overlap(earlier->remote_address, earlier->bytes, posted->remote_address,
                    posted->bytes)) {
            tell(checker, CHECKER_READ_OVERTAKEN, qp->object.number, earlier,
                 "a WRITE goes to memory of the peer that a READ before it reads, and does not "
                 "wait for it");
            return;
        }
    }
}
