/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_receive_options - the command line of `nonic feroce receive`.
 */
#include <getopt.h>
#include <string.h>

#include "base/check.h"
#include "tools/feroce_receive.h"
#include "tools/feroce_text.h"

#define EXIT_USAGE   2
#define BUF_SIZE_MAX (1u << 28)
#define NUM_BUF_MAX  16384u
#define MEMORY_MAX   (UINT64_C(1) << 34) /* All streams together. */

static void print_help(void)
{
    printf("usage: nonic feroce receive [OPTIONS]\n\n"
           "Takes what FERoCE front ends send, and compares every byte with their test data.\n\n"
           "  --active --remote A[:PORT]\n"
           "                    opens queue pairs at this front end; default: waits to be opened\n"
           "  --streams N       queue pairs, 1 to 64; default: 1\n"
           "  --buf-size BYTES  the longest message; default: 8192\n"
           "  --num-buf N       receives posted in each stream, up to 16384; default: 64\n"
           "  --write-ring      for RDMA WRITE without immediate data, of --buf-size bytes each:\n"
           "                    looks for the last word of each message (--check counter)\n"
           "                    and has fewer receives than messages fit into the ring\n"
           "  --stack 2026|2024 2024: offsets of WRITEs begin anew after 256 KB, not 64 KB\n"
           "  --check counter|feroce-rs|none\n"
           "                    which test data; default: counter, what front ends generate\n"
           "  --max-messages N  ends after N in each stream\n"
           "  --dump FILE       writes the payload; with several streams to FILE's stem.NNN.ext\n"
           "  --stats-csv FILE  a line for each stream and second\n"
           "  --pmtu BYTES      256 to 4096, as the front end has it; default: the port's\n"
           "  --device D        nonic: the interface or address, as of 'nonic run'; else the name\n"
           "                    of the RDMA device\n"
           "  --gid-index I     default: the first GID of RoCE v2 and IPv4\n"
           "  --bind A          address of the connection manager; default: that of the GID\n"
           "  --cm-port PORT    of the connection manager; default: 0x4321\n"
           "  --cm-version 3|2  2: little-endian, before February 2026; default: 3\n"
           "  --system-verbs    the system's libibverbs: Soft-RoCE, hardware\n"
           "  --gpu             says whether the device would take a GPU's memory (dma-buf)\n\n"
           "Exit status: 1 if a byte is wrong, missing or repeated, or a stream failed.\n\n"
           "example: nonic feroce receive --active --remote 127.0.0.10 --streams 8\n");
}

static const struct option options[] = {{"active", no_argument, NULL, 'A'},
                                        {"remote", required_argument, NULL, 'r'},
                                        {"streams", required_argument, NULL, 's'},
                                        {"buf-size", required_argument, NULL, 'b'},
                                        {"num-buf", required_argument, NULL, 'n'},
                                        {"write-ring", no_argument, NULL, 'w'},
                                        {"stack", required_argument, NULL, 'k'},
                                        {"check", required_argument, NULL, 'c'},
                                        {"max-messages", required_argument, NULL, 'm'},
                                        {"dump", required_argument, NULL, 'd'},
                                        {"stats-csv", required_argument, NULL, 't'},
                                        {"pmtu", required_argument, NULL, 'p'},
                                        {"device", required_argument, NULL, 'D'},
                                        {"gid-index", required_argument, NULL, 'g'},
                                        {"bind", required_argument, NULL, 'B'},
                                        {"cm-port", required_argument, NULL, 'P'},
                                        {"cm-version", required_argument, NULL, 'v'},
                                        {"system-verbs", no_argument, NULL, 'S'},
                                        {"gpu", no_argument, NULL, 'G'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

static bool take_number(const char *text, uint64_t least, uint64_t most, uint32_t *to)
{
    uint64_t value = 0;
    const bool good = text_number(text, least, most, &value);
    *to = good ? (uint32_t)value : *to;
    return good;
}

static bool take_check(struct wishes *wishes, const char *text)
{
    static const char *const words[] = {[FEROCE_CHECK_NONE] = "none",
                                        [FEROCE_CHECK_COUNTER] = "counter",
                                        [FEROCE_CHECK_NUMBER] = "feroce-rs"};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (strcmp(text, words[i]) == 0) {
            wishes->check = (enum feroce_check)i;
            return true;
        }
    }
    return false;
}

/* Takes an option about addresses and versions. Returns NULL, or the values that it accepts. */
static const char *take_place(struct wishes *wishes, int option, const char *text)
{
    uint32_t value = 0;
    switch (option) {
    case 'r':
        return text_door(text, &wishes->remote_ip, &wishes->remote_port) && wishes->remote_ip != 0
                   ? NULL
                   : "an IPv4 address, and a port if it is not 0x4321";
    case 'B': return text_ip(text, &wishes->bind_ip) ? NULL : "an IPv4 address";
    case 'P':
        if (!take_number(text, 1, UINT16_MAX, &value)) {
            return "a port: 1 to 65535";
        }
        wishes->cm_port = (uint16_t)value;
        return NULL;
    case 'v':
        if (!take_number(text, FEROCE_CM_2, FEROCE_CM_3, &value)) {
            return "3 or 2";
        }
        wishes->cm_version = (enum feroce_cm_version)value;
        return NULL;
    case 'g':
        if (!take_number(text, 0, 255, &value)) {
            return "an index: 0 to 255";
        }
        wishes->gid_index = (int)value;
        return NULL;
    case 'k':
        wishes->wrap = strcmp(text, "2024") == 0 ? 1u << 18 : 1u << 16;
        return strcmp(text, "2024") == 0 || strcmp(text, "2026") == 0 ? NULL : "2026 or 2024";
    default: return NULL;
    }
}

static const char *take_option(struct wishes *wishes, int option, const char *text)
{
    switch (option) {
    case 's': return take_number(text, 1, FEROCE_STREAMS_MAX, &wishes->streams) ? NULL : "1 to 64";
    case 'b':
        return take_number(text, 4, BUF_SIZE_MAX, &wishes->buf_size) && wishes->buf_size % 4 == 0
                   ? NULL
                   : "a multiple of 4 up to 268435456 bytes";
    case 'n': return take_number(text, 1, NUM_BUF_MAX, &wishes->num_buf) ? NULL : "1 to 16384";
    case 'c': return take_check(wishes, text) ? NULL : "counter, feroce-rs or none";
    case 'm':
        return text_number(text, 1, UINT64_MAX, &wishes->max_messages) ? NULL : "a number above 0";
    case 'p':
        return take_number(text, 256, 4096, &wishes->pmtu) &&
                       (wishes->pmtu & (wishes->pmtu - 1)) == 0
                   ? NULL
                   : "256, 512, 1024, 2048 or 4096";
    case 'A': wishes->active = true; return NULL;
    case 'w': wishes->write_ring = true; return NULL;
    case 'G': wishes->gpu = true; return NULL;
    case 'd': wishes->dump = text; return NULL;
    case 't': wishes->stats_csv = text; return NULL;
    case 'D': wishes->device = text; return NULL;
    default: return take_place(wishes, option, text);
    }
}

static int refuse(const char *what)
{
    fprintf(stderr, "nonic: %s; see nonic feroce receive --help\n", what);
    return EXIT_USAGE;
}

static int judge(const struct wishes *wishes)
{
    const uint64_t stream =
        (uint64_t)wishes->wrap + wishes->buf_size + (uint64_t)wishes->num_buf * wishes->buf_size;
    if (wishes->active != (wishes->remote_ip != 0)) {
        return refuse(wishes->active ? "--active needs --remote, the address of the front end"
                                     : "--remote is for --active; without it front ends open");
    }
    if (wishes->streams * stream > MEMORY_MAX) {
        return refuse("--streams, --num-buf and --buf-size make more than 16 GB together");
    }
    return 0;
}

/* Each immediate takes a receive, so receives keep the writer from messages that are not read yet.
 * While one message is read, as many others as there are receives may be written. */
static void bound_receives(struct wishes *wishes)
{
    const uint32_t room = wishes->wrap / wishes->buf_size;
    const uint32_t most = room > 2 ? room - 1 : 1;
    if (wishes->write_ring && wishes->num_buf > most) {
        wishes->num_buf = most;
    }
}

int wishes_parse(struct wishes *wishes, int argc, char **argv)
{
    int option, index = 0;
    *wishes = (struct wishes){.gid_index = -1,
                              .cm_port = FEROCE_PORT_CM,
                              .cm_version = FEROCE_CM_3,
                              .remote_port = FEROCE_PORT_CM,
                              .streams = 1,
                              .buf_size = 8192,
                              .num_buf = 64,
                              .wrap = 1u << 16,
                              .check = FEROCE_CHECK_COUNTER};
    while ((option = getopt_long(argc, argv, "h", options, &index)) != -1) {
        if (option == 'h') {
            print_help();
            return -1;
        }
        if (option == '?') {
            return refuse("that is no option of receive");
        }
        const char *valid = take_option(wishes, option, optarg);
        if (valid != NULL) {
            fprintf(stderr, "nonic: --%s is '%s'; valid is %s\n", options[index].name, optarg,
                    valid);
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "nonic: what is '%s'? See nonic feroce receive --help\n", argv[optind]);
        return EXIT_USAGE;
    }
    const int status = judge(wishes);
    bound_receives(wishes);
    return status;
}
