/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No bytes that a program sends to the netlink socket make nldev read outside them, and
 *         whatever it answers is whole messages that fit datagrams; nor does any line that another
 *         process says of its objects, and what is understood of it comes back from its text.
 * Method  libFuzzer gives the bytes in a buffer of exactly their size. The first says which of the
 *         two they are, and whether there is a device.
 */
#include <linux/netlink.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "kernel/nldev.h"

#define PORT_ID 77
#define ROOM    (8 * NLDEV_DATAGRAM_BYTES)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static const struct nldev_counter counters[] = {{"sent", 7}, {"rare", 0}, {"odd", 9}};
static const struct nldev_resource objects[] = {
    {.pid = 1, .present = 0xff, .values = {1, 2, 3, 4, 5, 2, 7, 8}},
    {.pid = 2, .present = ~0u, .values = {2, 1, 1, 1, 1, 10, 7, 8, 9, 2, 7}},
};
static const struct nldev_device device = {
    .name = "nonic0",
    .firmware = "1",
    .protocol = "roce",
    .interface_index = 1,
    .interface_name = "lo",
    .verbs_name = "uverbs0",
    .resources = objects,
    .resource_count = COUNT_OF(objects),
    .counters = counters,
    .counter_count = COUNT_OF(counters),
    .lasting_counters = 1,
};

static void check_messages(const struct nldev_out *out)
{
    for (size_t at = 0; at < out->used;) {
        struct nlmsghdr header;
        CHECK(out->used - at >= sizeof(header));
        memcpy(&header, out->bytes + at, sizeof(header));
        CHECK(header.nlmsg_len >= sizeof(header) && header.nlmsg_len <= NLDEV_DATAGRAM_BYTES);
        CHECK(header.nlmsg_pid == PORT_ID);
        at += (header.nlmsg_len + 3u) & ~3u;
        CHECK(at <= out->used);
    }
    for (size_t at = 0; at < out->used;) {
        const size_t bytes = nldev_datagram(out->bytes + at, out->used - at);
        CHECK(bytes >= sizeof(struct nlmsghdr) && bytes <= NLDEV_DATAGRAM_BYTES);
        at += bytes;
    }
}

static void check_request(const uint8_t *bytes, size_t count, const struct nldev_device *of)
{
    static uint8_t room[ROOM];
    struct nldev_out out = {.bytes = room, .room = ROOM, .port_id = PORT_ID};
    struct nldev_request request;
    enum nldev_kind kind = NLDEV_KINDS;
    for (size_t at = 0; nldev_next(bytes, count, &at, &request);) {
        CHECK(at <= count);
        CHECK(!nldev_wants_objects(&request, &kind) || kind < NLDEV_KINDS);
        CHECK(!nldev_wants_totals(&request) || !nldev_wants_counters(&request));
        if (!nldev_answer(&request, of, &out)) {
            break;
        }
    }
    check_messages(&out);
}

static void check_line(const uint8_t *bytes, size_t count)
{
    char text[NLDEV_LINE_BYTES];
    struct nldev_resource one, again;
    char *line = malloc(count + 1);
    memcpy(line, bytes, count);
    line[count] = '\0';
    if (nldev_parse(line, &one)) {
        const size_t length = nldev_print(&one, text, sizeof(text));
        CHECK(length > 0 && text[length - 1] == '\n');
        text[length - 1] = '\0';
        CHECK(nldev_parse(text, &again) && memcmp(&again, &one, sizeof(one)) == 0);
    }
    free(line);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (count == 0) {
        return 0;
    }
    uint8_t *exact = malloc(count);
    memcpy(exact, bytes + 1, count - 1);
    if (bytes[0] == 'o') {
        check_line(exact, count - 1);
    } else {
        check_request(exact, count - 1, bytes[0] & 1 ? &device : NULL);
    }
    free(exact);
    return 0;
}
