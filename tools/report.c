/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic report - a capture as one HTML page. `nonic report` becomes this program.
 */
#include "tools/report.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <pcap/pcap.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/nonic.h"

static const char help[] =
    "usage: nonic report FILE.pcapng [-o DIRECTORY]\n\n"
    "Writes a page about a capture: the connections, their packets as a chart, throughput and\n"
    "what was sent again over time, and what is odd, with the rule that it breaks. A browser "
    "shows\n"
    "it without a server. FILE is of 'nonic run --capture', tcpdump or Wireshark.\n\n"
    "  -o, --output DIRECTORY   where index.html is written (report)\n";

static void print_error(const char *path, const char *what)
{
    fprintf(stderr, "nonic: %s: %s\n", path, what);
}

/* -- Reading ------------------------------------------------------------------------------------*/

/* NULL: it is no capture that can be read, and why is printed. */
static pcap_t *open_capture(const char *path)
{
    char error[PCAP_ERRBUF_SIZE];
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        print_error(path, "it is not a regular file, and it has to be read twice");
        return NULL;
    }
    pcap_t *capture =
        pcap_open_offline_with_tstamp_precision(path, PCAP_TSTAMP_PRECISION_NANO, error);
    if (capture == NULL) {
        /* libpcap names the file if it cannot be opened, and not if it is no capture. */
        const bool names_it = strncmp(error, path, strlen(path)) == 0;
        fprintf(stderr, "nonic: %s%s%s\n", names_it ? "" : path, names_it ? "" : ": ", error);
    } else if (!report_reads_link(pcap_datalink(capture))) {
        const char *name = pcap_datalink_val_to_name(pcap_datalink(capture));
        fprintf(stderr, "nonic: %s: its packets are of the link type %s, which cannot be read\n",
                path, name == NULL ? "?" : name);
        pcap_close(capture);
        capture = NULL;
    }
    return capture;
}

/* Returns 1, or why there is none: libpcap's code. */
static int next_packet(pcap_t *capture, uint64_t number, struct report_packet *packet)
{
    struct pcap_pkthdr *header;
    const uint8_t *bytes;
    const int found = pcap_next_ex(capture, &header, &bytes);
    if (found != 1) {
        return found;
    }
    const struct report_frame frame = {
        .number = number,
        .at_ns = (uint64_t)header->ts.tv_sec * 1000000000 + (uint64_t)header->ts.tv_usec,
        .bytes = bytes,
        .kept_bytes = header->caplen,
        .bytes_on_wire = header->len,
    };
    report_read_packet(pcap_datalink(capture), &frame, packet);
    return 1;
}

/* Looks at all packets, or at the first `most`. Returns how many there were; `broken` says why the
 * rest could not be read, if it could not. */
static uint64_t look(struct report *report, pcap_t *capture, uint64_t most,
                     void (*see)(struct report *report, const struct report_packet *packet),
                     char broken[PCAP_ERRBUF_SIZE])
{
    struct report_packet packet;
    uint64_t count = 0;
    int found = 1;
    broken[0] = '\0';
    while (count < most && (found = next_packet(capture, count + 1, &packet)) == 1) {
        see(report, &packet);
        count++;
    }
    if (found == PCAP_ERROR) {
        snprintf(broken, PCAP_ERRBUF_SIZE, "%s", pcap_geterr(capture));
    }
    return count;
}

/* False: why is printed. */
static bool read_capture(struct report *report, const char *path, char broken[PCAP_ERRBUF_SIZE])
{
    char again[PCAP_ERRBUF_SIZE];
    pcap_t *capture = open_capture(path);
    if (capture == NULL) {
        return false;
    }
    const uint64_t count = look(report, capture, UINT64_MAX, report_learn, broken);
    pcap_close(capture);
    report_pair(report);
    capture = open_capture(path);
    if (capture == NULL) {
        return false;
    }
    const uint64_t counted = look(report, capture, count, report_count, again);
    pcap_close(capture);
    if (counted < count) {
        print_error(path, "it became shorter while it was read");
    }
    return counted == count;
}

/* -- Writing ------------------------------------------------------------------------------------*/

static bool write_page(const struct report *report, const char *directory, const char *name,
                       const char *broken)
{
    char path[PATH_MAX];
    if (mkdir(directory, 0755) != 0 && errno != EEXIST) {
        print_error(directory, strerror(errno));
        return false;
    }
    if (snprintf(path, sizeof(path), "%s/index.html", directory) >= (int)sizeof(path)) {
        print_error(directory, strerror(ENAMETOOLONG));
        return false;
    }
    FILE *page = fopen(path, "we");
    if (page == NULL) {
        print_error(path, strerror(errno));
        return false;
    }
    report_page(page, report, name, broken);
    const bool good = ferror(page) == 0;
    if (fclose(page) != 0 || !good) {
        print_error(path, strerror(errno));
        return false;
    }
    printf("%s: %" PRIu64 " packets of %s\n", path, report->packets, name);
    return true;
}

static int make(const char *path, const char *directory)
{
    char broken[PCAP_ERRBUF_SIZE];
    struct report report;
    if (!report_open(&report)) {
        print_error(path, strerror(ENOMEM));
        report_close(&report);
        return 1;
    }
    const char *slash = strrchr(path, '/');
    const bool good = read_capture(&report, path, broken) &&
                      write_page(&report, directory, slash == NULL ? path : slash + 1,
                                 broken[0] == '\0' ? NULL : broken);
    if (good && broken[0] != '\0') {
        fprintf(stderr, "nonic: %s: broken behind packet %" PRIu64 ": %s\n", path, report.packets,
                broken);
    }
    report_close(&report);
    return good && broken[0] == '\0' ? 0 : 1;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'}, {"help", no_argument, NULL, 'h'}, {0}};
    const char *directory = "report";
    int option;
    while ((option = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
        switch (option) {
        case 'o': directory = optarg; break;
        case 'h': printf("%s", help); return 0;
        default: fprintf(stderr, "%s", help); return EXIT_USAGE;
        }
    }
    if (argc - optind != 1) {
        fprintf(stderr, "nonic: one capture is needed\n%s", help);
        return EXIT_USAGE;
    }
    return make(argv[optind], directory);
}
