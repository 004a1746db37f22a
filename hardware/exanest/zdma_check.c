/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/zdma.h"

static void check_buffers(const struct exanest_zdma *zdma)
{
    CHECK(zdma->asked - zdma->left <= zdma->made - zdma->left);
    CHECK(zdma->read - zdma->left <= zdma->asked - zdma->left + (zdma->asked_bytes > 0));
    CHECK(zdma->made - zdma->left <= EXANEST_ZDMA_BUFFERS);
    for (uint32_t i = zdma->left; i != zdma->made; i++) {
        const struct exanest_zdma_buffer *buffer = &zdma->buffers[i % EXANEST_ZDMA_BUFFERS];
        CHECK((zdma->free >> buffer->slot & 1) == 0 && !zdma->slots[buffer->slot].waits);
        CHECK(buffer->filled <= buffer->bytes && buffer->bytes <= zdma->config.packet);
        CHECK((buffer->filled == buffer->bytes) == (i - zdma->left < zdma->read - zdma->left));
    }
}

void exanest_zdma_check(const struct exanest_zdma *zdma)
{
    uint32_t waiting = 0;
    for (uint32_t s = 0; s < zdma->config.outstanding; s++) {
        waiting += zdma->slots[s].waits;
        CHECK(!zdma->slots[s].waits || (zdma->free >> s & 1) == 0);
    }
    CHECK(waiting == zdma->waiting);
    CHECK((zdma->free & ~exanest_zdma_slots(zdma)) == 0);
    /* Each slot that is not free is of a buffer, of the packet that leaves, or waits. */
    CHECK((uint32_t)__builtin_popcountll(exanest_zdma_slots(zdma) & ~zdma->free) ==
          waiting + (zdma->made - zdma->left) + (zdma->count > 0));
    CHECK(zdma->cut <= zdma->transfer.bytes && zdma->state.answered <= zdma->cut);
    CHECK(zdma->sent <= zdma->count && zdma->count <= EXANEST_PACKET_WORDS_MAX);
    CHECK(zdma->state.phase == EXANEST_ZDMA_ACTIVE || zdma->free == exanest_zdma_slots(zdma));
    check_buffers(zdma);
    CHECK(zdma->arrived - zdma->answered <= EXANEST_ZDMA_ARRIVALS);
    CHECK(zdma->written - zdma->answered <= zdma->arrived - zdma->answered);
    /* Room for the answers was there when the packets came. */
    CHECK(zdma->arrived - zdma->answered <= exanest_replies_room(&zdma->replies));
    exanest_replies_check(&zdma->replies);
}
