/* SPDX-License-Identifier: BSD-2-Clause
 *
 * reorder - see reorder.h.
 */
#include "transport/lant/reorder.h"

#include "base/check.h"

void lant_reorder_init(struct lant_reorder *reorder, uint32_t slots)
{
    CHECK(slots >= 1 && slots <= LANT_REORDER_MAX);
    *reorder = (struct lant_reorder){.slots = slots};
}

static bool has_ended(const struct lant_reorder *reorder, uint64_t key)
{
    const uint32_t count =
        reorder->ended_count < LANT_REORDER_ENDED ? reorder->ended_count : LANT_REORDER_ENDED;
    for (uint32_t i = 0; i < count; i++) {
        if (reorder->ended[i] == key) {
            return true;
        }
    }
    return false;
}

enum lant_reorder_verdict lant_reorder_put(struct lant_reorder *reorder,
                                           const struct lant_packet *packet)
{
    const struct lant_header *header = &packet->header;
    const uint64_t key =
        lant_operation_key(packet->footer.source, lant_operation_of(&packet->footer));
    if (header->sequence >= header->total) {
        return LANT_REORDER_WRONG;
    }
    if (has_ended(reorder, key)) {
        return LANT_REORDER_KNOWN;
    }
    if (!reorder->owned) {
        reorder->owned = true;
        reorder->owner = key;
        reorder->next = 0;
        reorder->total = header->total;
    }
    if (reorder->owner != key) {
        return LANT_REORDER_BUSY;
    }
    if (reorder->total != header->total) {
        return LANT_REORDER_WRONG;
    }
    const uint32_t slot = header->sequence % reorder->slots;
    if (header->sequence < reorder->next) {
        return LANT_REORDER_KNOWN;
    }
    if (header->sequence - reorder->next >= reorder->slots) {
        return LANT_REORDER_FAR;
    }
    if (reorder->full[slot]) {
        return LANT_REORDER_KNOWN;
    }
    reorder->full[slot] = true;
    reorder->packets[slot] = *packet;
    reorder->held++;
    return LANT_REORDER_TAKEN;
}

bool lant_reorder_next(struct lant_reorder *reorder, struct lant_packet *packet)
{
    const uint32_t slot = reorder->next % reorder->slots;
    if (!reorder->owned || !reorder->full[slot]) {
        return false;
    }
    *packet = reorder->packets[slot];
    reorder->full[slot] = false;
    reorder->held--;
    reorder->next++;
    if (reorder->next == reorder->total) {
        reorder->owned = false;
        reorder->ended[reorder->ended_count++ % LANT_REORDER_ENDED] = reorder->owner;
    }
    return true;
}
