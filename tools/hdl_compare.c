/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic hdl compare - two captures, up to the first frame that differs.
 */
#include "tools/hdl_compare.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "tools/hdl.h"
#include "tools/hdl_design.h"
#include "tools/nonic.h"

static const char help[] = "usage: nonic hdl compare A.pcapng B.pcapng [--frames]\n\n"
                           "Compares two captures of Ethernet, frame by frame: bytes, and times to "
                           "the ns. The first frame\n"
                           "that differs is told, with its number, its times and the first byte "
                           "that differs; status 1.\n\n"
                           "  --frames   bytes alone\n";

/* -- Captures -----------------------------------------------------------------------------------*/

pcap_t *hdl_open_capture(const char *path)
{
    char error[PCAP_ERRBUF_SIZE];
    pcap_t *capture =
        pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
    if (capture == NULL) {
        fprintf(stderr, "nonic: %s\n", error);
    } else if (pcap_datalink(capture) != DLT_EN10MB) {
        fprintf(stderr, "nonic: %s: its packets are not frames of Ethernet\n", path);
        pcap_close(capture);
        capture = NULL;
    }
    return capture;
}

uint64_t hdl_time_ps(const struct pcap_pkthdr *header)
{
    return ((uint64_t)header->ts.tv_sec * 1000000000 + (uint64_t)header->ts.tv_usec) * SIM_NS;
}

/* -- Comparing ----------------------------------------------------------------------------------*/

static void print_bytes(const char *name, const uint8_t *bytes, uint32_t count, uint32_t from)
{
    printf("  %s, %u bytes, from byte %u:", name, count, from);
    for (uint32_t i = from; i < count && i < from + 16; i++) {
        printf(" %02x", bytes[i]);
    }
    printf("\n");
}

/* The first byte that differs; the length of both if none does. */
static uint32_t first_difference(const uint8_t *a, uint32_t a_bytes, const uint8_t *b,
                                 uint32_t b_bytes)
{
    uint32_t same = 0;
    while (same < a_bytes && same < b_bytes && a[same] == b[same]) {
        same++;
    }
    return same;
}

void hdl_compare(struct hdl_comparison *comparison, uint64_t at_ps, const uint8_t *bytes,
                 uint32_t count)
{
    struct pcap_pkthdr *header;
    const uint8_t *data;
    const double us = (double)at_ps / PS_PER_US;
    if (comparison->capture == NULL || comparison->differs != 0) {
        return;
    }
    const uint64_t number = ++comparison->count;
    if (pcap_next_ex(comparison->capture, &header, &data) != 1) {
        comparison->differs = number;
        printf("frame %" PRIu64 " at %.3f us: the other capture has no more\n", number, us);
        return;
    }
    const uint32_t same = first_difference(bytes, count, data, header->caplen);
    const bool differs = same < count || same < header->caplen;
    if (differs || (comparison->times && at_ps != hdl_time_ps(header))) {
        comparison->differs = number;
        printf("frame %" PRIu64 " at %.3f us differs%s; the other one is at %.3f us\n", number, us,
               differs ? "" : " in its time alone", (double)hdl_time_ps(header) / PS_PER_US);
    }
    if (differs) {
        print_bytes(comparison->name, bytes, count, same);
        print_bytes("the other one", data, header->caplen, same);
    }
}

void hdl_compare_end(struct hdl_comparison *comparison)
{
    struct pcap_pkthdr *header;
    const uint8_t *data;
    if (comparison->capture != NULL && comparison->differs == 0 &&
        pcap_next_ex(comparison->capture, &header, &data) == 1) {
        comparison->differs = comparison->count + 1;
        printf("frame %" PRIu64 ", at %.3f us in the other capture: %s end before it\n",
               comparison->differs, (double)hdl_time_ps(header) / PS_PER_US, comparison->name);
    }
}

/* -- The command line ---------------------------------------------------------------------------*/

static int compare(const char *a, const char *b, bool times)
{
    struct pcap_pkthdr *header;
    const uint8_t *data;
    struct hdl_comparison comparison = {.name = "the first one's frames", .times = times};
    pcap_t *first = hdl_open_capture(a);
    if (first == NULL || (comparison.capture = hdl_open_capture(b)) == NULL) {
        return 1;
    }
    int found;
    while ((found = pcap_next_ex(first, &header, &data)) == 1) {
        hdl_compare(&comparison, hdl_time_ps(header), data, header->caplen);
    }
    hdl_compare_end(&comparison);
    if (found == PCAP_ERROR) {
        fprintf(stderr, "nonic: %s is broken: %s\n", a, pcap_geterr(first));
        return 1;
    }
    if (comparison.differs == 0) {
        printf("%" PRIu64 " frames, all the same\n", comparison.count);
    }
    return comparison.differs != 0;
}

int hdl_compare_captures(int argc, char **argv)
{
    static const struct option options[] = {
        {"frames", no_argument, NULL, 'f'}, {"help", no_argument, NULL, 'h'}, {0}};
    bool times = true;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'f': times = false; break;
        case 'h': printf("%s", help); return 0;
        default: fprintf(stderr, "%s", help); return EXIT_USAGE;
        }
    }
    if (argc - optind != 2) {
        fprintf(stderr, "nonic: two captures are needed\n%s", help);
        return EXIT_USAGE;
    }
    return compare(argv[optind], argv[optind + 1], times);
}
