/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever a program has in memory as an answer of netlink, netlink_mask stays within it,
 *         makes 0 of bytes or leaves them, and leaves every header; done again, it finds nothing.
 * Method  libFuzzer gives the answer, in a buffer of exactly its size.
 */
#include <linux/netlink.h>
#include <stdlib.h>

#include "base/check.h"
#include "box/netlink_mask.h"
#include "tests/fuzz/input.h"

static void check_headers(const uint8_t *before, const uint8_t *after, size_t count)
{
    struct nlmsghdr header;
    for (size_t at = 0; at + sizeof(header) <= count; at += NLMSG_ALIGN(header.nlmsg_len)) {
        memcpy(&header, before + at, sizeof(header));
        CHECK(memcmp(&header, after + at, sizeof(header)) == 0);
        if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > count - at) {
            return;
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    uint8_t *once = malloc(count + (count == 0)), *twice = malloc(count + (count == 0));
    memcpy(once, bytes, count);
    netlink_mask(once, count);
    for (size_t i = 0; i < count; i++) {
        CHECK(once[i] == bytes[i] || once[i] == 0);
    }
    check_headers(bytes, once, count);
    memcpy(twice, once, count);
    netlink_mask(twice, count);
    CHECK(memcmp(once, twice, count) == 0);
    free(twice);
    free(once);
    return 0;
}
