/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bytes - whether a request's bytes are still those that were posted.
 */
#include <inttypes.h>

#include "checker/internal.h"

void judge_bytes(struct checker *checker, const struct checked_qp *qp, const struct posted *posted,
                 const char *until)
{
    uint32_t now;
    if (posted->summed && checker->memory->sum(posted->segments, posted->sge_count, &now) &&
        now != posted->sum) {
        tell(checker, repeats(qp) ? CHECKER_SEND_CHANGED : CHECKER_DATAGRAM_CHANGED,
             qp->object.number, posted,
             "the %u bytes of a %s (wr_id %#" PRIx64
             ") were changed between its post and %s, by the program or by what came from a peer: "
             "the peer gets the old or the new ones, or some of each",
             posted->bytes, kind_name(posted->kind), posted->wr_id, until);
    }
}

static bool overlap(const struct segment *one, const struct segment *other)
{
    return one->address < other->address + other->bytes &&
           other->address < one->address + one->bytes;
}

void judge_reuse(struct checker *checker, const struct checked_qp *qp, const struct posted *next)
{
    if (ring_count(&qp->sends) == 0 || next->sge_count == 0) {
        return;
    }
    struct posted *before = ring_at(&qp->sends, qp->sends.tail - 1);
    if (before->summed && !before->freed && before->gone_key == 0 &&
        overlap(&before->segments[0], &next->segments[0])) {
        judge_bytes(checker, qp, before, "the post of another request that names them");
        before->summed = false;
    }
}
