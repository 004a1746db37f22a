/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/order.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void exanest_order_open(struct exanest_order *order, const uint8_t size[3])
{
    *order = (struct exanest_order){.senders = 4u * size[0] * size[1] * size[2]};
    memcpy(order->size, size, sizeof(order->size));
    order->blocks = calloc((size_t)order->senders * EXANEST_TIDS, sizeof(*order->blocks));
    CHECK(order->blocks != NULL);
}

void exanest_order_close(struct exanest_order *order)
{
    free(order->blocks);
}

static uint32_t sender_of(const struct exanest_order *order, uint32_t coordinate)
{
    const struct exanest_place place = exanest_place(coordinate);
    return 4 * (((uint32_t)place.z * order->size[1] + place.y) * order->size[0] + place.x) +
           place.fpga;
}

void exanest_order_note(struct exanest_order *order, const struct exanest_header *header,
                        const struct exanest_footer *footer)
{
    const uint32_t sender = sender_of(order, footer->source);
    if (header->type != EXANEST_WRITE || header->priority || sender >= order->senders) {
        return;
    }
    struct exanest_order_block *block = &order->blocks[(size_t)sender * EXANEST_TIDS + footer->tid];
    const uint8_t line =
        (uint8_t)(header->target.va / EXANEST_PAYLOAD_BYTES_MAX % EXANEST_BLOCK_PACKETS_MAX);
    order->packets++;
    order->late += !footer->first && (block->sequence != footer->sequence || line <= block->line);
    *block = (struct exanest_order_block){.sequence = footer->sequence, .line = line};
}
