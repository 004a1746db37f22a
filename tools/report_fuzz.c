/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No packets of a capture make `nonic report` read outside of them, count more than there
 *         is, or write a page that is not whole.
 * Method  libFuzzer gives packets, each in a buffer of exactly its size: with the bytes of its
 *         headers, or behind right headers of IP and UDP, with or without a right ICRC, cut or
 *         whole. The page is written one time in eight.
 */
#include <pcap/dlt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "tests/fuzz/input.h"
#include "tools/report.h"
#include "wire/icrc.h"

enum {
    FRAMES_MAX = 64,
    PAYLOAD_MAX = 512,
    IS_RAW = 1, /* The input has all headers. */
    IS_BACK = 2,
    IS_SEALED = 4,
    IS_CUT = 8,
    NO_PAGE = 0x70, /* Bits of the first byte: writing takes longer than all else. */
};

static struct report_frame frames[FRAMES_MAX];
static uint8_t *buffers[FRAMES_MAX];

static uint32_t make_datagram(struct input *input, uint8_t flags, uint8_t *out)
{
    uint8_t payload[PAYLOAD_MAX + 4];
    const uint32_t ends[2] = {0x7f000001, 0x7f000002};
    const bool back = (flags & IS_BACK) != 0;
    const struct inet_flow flow =
        inet_flow_ipv4(ends[back], ROCE_UDP_PORT, ends[!back], ROCE_UDP_PORT);
    size_t count = take_bytes(input, payload, take_number(input, 2) % PAYLOAD_MAX);
    if ((flags & IS_SEALED) != 0 && count >= ROCE_BTH_BYTES) {
        store_le32(payload + count, icrc_compute(&flow, 0, payload, count, NULL, 0));
        count += 4;
    }
    const size_t headers = inet_encode(out, &flow, 0, payload, count);
    memcpy(out + headers, payload, count);
    return (uint32_t)(headers + count);
}

static void make_frame(struct input *input, uint32_t number, uint64_t *at_ns)
{
    uint8_t bytes[INET_HEADERS_BYTES_MAX + PAYLOAD_MAX + 4];
    const uint8_t flags = take(input);
    const uint32_t there = (flags & IS_RAW) != 0 ? (uint32_t)take_bytes(input, bytes, take(input))
                                                 : make_datagram(input, flags, bytes);
    const uint32_t kept = (flags & IS_CUT) != 0 ? take(input) % (there + 1) : there;
    *at_ns += take_number(input, 2);
    free(buffers[number]);
    buffers[number] = malloc(kept + (kept == 0));
    CHECK(buffers[number] != NULL);
    memcpy(buffers[number], bytes, kept);
    frames[number] = (struct report_frame){.number = number + 1,
                                           .at_ns = *at_ns,
                                           .bytes = buffers[number],
                                           .kept_bytes = kept,
                                           .bytes_on_wire = there};
}

static void check_counts(const struct report *report, uint32_t count)
{
    uint64_t packets = 0;
    for (uint32_t i = 0; i < report->half_count; i++) {
        const struct report_half *half = &report->halves[i];
        packets += half->packets;
        CHECK(half->messages <= half->packets && half->again <= half->packets);
        CHECK(half->partner == REPORT_NONE || report->halves[half->partner].partner == i);
    }
    CHECK(report->packets == count && packets <= count);
}

static void check_page(const struct report *report)
{
    static const char end[] = "</body></html>\n";
    char *text = NULL;
    size_t bytes = 0;
    FILE *page = open_memstream(&text, &bytes);
    CHECK(page != NULL);
    report_page(page, report, "capture", NULL);
    CHECK(fclose(page) == 0);
    CHECK(bytes > sizeof(end) && strcmp(text + bytes - strlen(end), end) == 0);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static const int links[] = {DLT_RAW, DLT_EN10MB, DLT_LINUX_SLL, DLT_NULL};
    struct input input = {bytes, count};
    struct report report;
    struct report_packet packet;
    uint64_t at_ns = 0;
    uint32_t made = 0;
    const uint8_t first = take(&input);
    const int link = links[first % COUNT_OF(links)];
    while (made < FRAMES_MAX && input.count > 0) {
        make_frame(&input, made++, &at_ns);
    }
    CHECK(report_open(&report));
    for (uint32_t i = 0; i < made; i++) {
        report_read_packet(link, &frames[i], &packet);
        report_learn(&report, &packet);
    }
    report_pair(&report);
    for (uint32_t i = 0; i < made; i++) {
        report_read_packet(link, &frames[i], &packet);
        report_count(&report, &packet);
    }
    check_counts(&report, made);
    if ((first & NO_PAGE) == 0) {
        check_page(&report);
    }
    report_close(&report);
    return 0;
}
