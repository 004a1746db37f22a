/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rtnetlink_fuzz - datagrams that a kernel, or whoever stands in for one, makes of interfaces.
 *
 * Goal    Nothing behind a datagram's end is read, every datagram comes to an end, and whatever it
 *         says, what is known of interfaces stays consistent: a change is told if and only if what
 *         a program sees has changed.
 * Method  The bytes are the datagram, in memory of exactly its size, for a device with a loopback
 *         address and one of each family.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "drivers/system/interfaces.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const struct interfaces first = {
    .count = 3,
    .addresses = {{.gid = {{[10] = 0xff, 0xff, 127, 0, 0, 1}},
                   .interface_index = 1,
                   .unlisted = true,
                   .present = true},
                  {.gid = {{[10] = 0xff, 0xff, 10, 77, 0, 1}},
                   .interface_index = 2,
                   .present = true,
                   .up = true,
                   .carrier = true},
                  {.gid = {{0xfd, 0x77, [15] = 1}}, .interface_index = 2}},
};

static uint32_t present(const struct interfaces *interfaces)
{
    uint32_t bits = 0;
    for (uint32_t i = 0; i < interfaces->count; i++) {
        bits |= (uint32_t)interfaces->addresses[i].present << i;
    }
    return bits;
}

static void check_changes(uint32_t changes, const struct interfaces *before,
                          const struct interfaces *after)
{
    const bool was = interfaces_port(before) == LIVE_PORT_ACTIVE;
    const bool is = interfaces_port(after) == LIVE_PORT_ACTIVE;
    CHECK(((changes & LIVE_CHANGE_PORT_DOWN) != 0) == (was && !is));
    CHECK(((changes & LIVE_CHANGE_PORT_UP) != 0) == (!was && is));
    CHECK(((changes & LIVE_CHANGE_GIDS) != 0) == (present(before) != present(after)));
    CHECK(after->addresses[0].present); /* Loopback. */
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct interfaces told = first, fresh;
    struct rtnetlink_message message;
    size_t at = 0, before = 0;
    uint8_t *exact = malloc(count + 1);
    memcpy(exact + 1, bytes, count);
    interfaces_begin(&fresh, &told);
    while (rtnetlink_next(exact + 1, count, &at, &message) == RTNETLINK_MESSAGE) {
        const struct interfaces old = told;
        CHECK(at > before && at <= count);
        before = at;
        const uint32_t changes = interfaces_apply(&told, &message);
        check_changes(changes, &old, &told);
        CHECK(memcmp(&old, &told, sizeof(old)) == 0 || interfaces_concern(&old, &message) ||
              interfaces_concern(&told, &message));
        interfaces_read(&fresh, &message);
    }
    const struct interfaces old = told;
    check_changes(interfaces_replace(&told, &fresh), &old, &told);
    free(exact);
    return 0;
}
