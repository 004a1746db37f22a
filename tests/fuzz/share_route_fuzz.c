/* SPDX-License-Identifier: BSD-2-Clause
 *
 * share_route_fuzz - packets and MADs that a stranger makes up, at an address that is shared.
 *
 * Goal    Every packet is ours, another slot's or nobody's, and nothing behind its end is read.
 * Method  The first byte is our slot, the rest the packet, in memory of exactly its size.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "drivers/share.h"
#include "drivers/share_route.h"
#include "wire/roce.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_route(uint32_t own, struct share_route route)
{
    CHECK(!(route.mine && route.nobody));
    CHECK(route.mine || route.nobody || (route.slot < SHARE_SLOTS && route.slot != own));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (count < 1 + ROCE_BTH_BYTES) {
        return 0;
    }
    const uint32_t own = bytes[0];
    const size_t packet_bytes = count - 1;
    uint8_t *packet = malloc(packet_bytes);
    CHECK(packet != NULL);
    memcpy(packet, bytes + 1, packet_bytes);
    check_route(own, share_route(own, packet, packet_bytes));
    check_route(own, share_route_mad(own, packet, packet_bytes));
    free(packet);
    return 0;
}
