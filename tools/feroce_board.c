/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic feroce board - FERoCE's front end as an ordinary process: the command line.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "tools/feroce.h"
#include "tools/feroce_board.h"
#include "tools/nonic.h"

static void print_help(void)
{
    printf(
        "usage: nonic feroce board [OPTIONS]\n\n"
        "FERoCE's front end without the FPGA: a RoCEv2 sender that others open queue pairs on. "
        "Byte\n"
        "for byte from the UDP header on; without privileges.\n\n"
        "  --address A         its IPv4 address, one of this machine's that nobody else uses;\n"
        "                      default: 127.0.0.10\n"
        "  --qps N             queue pairs: 2, 4, 8 or 16; default: 8\n"
        "  --pmtu BYTES        256, 512, 1024, 2048 or 4096, and the receiver's path MTU must be "
        "the\n"
        "                      same; default: 4096\n"
        "  --buffer-bits W     memory of 2^W bytes for all queue pairs, 12 to 28; default: 21\n"
        "  --stack YEAR        2026, or 2024: one queue pair, WRITE only, nothing is sent again\n"
        "  --cm-version V      of the connection manager's messages: 3, or 2 (little-endian)\n"
        "  --class C           priority class 0 to 7: DSCP is 8 times it\n"
        "  --timeout TIME      until packets go again, such as 46.5us (the default);\n"
        "  --timeout-cycles N  or in cycles of --clock\n"
        "  --clock HZ          of the board; default: 322265625\n"
        "  --time-scale K      the timeout is K times that: software answers later than hardware;\n"
        "                      default: 1000; 1 is the board\n"
        "  --retry N           timeouts in a row after which packets go again, 0 to 7 (default); "
        "the\n"
        "                      next one gives the queue pair up\n"
        "  --rnr-retry N       likewise waits for a receiver without buffers; 7 (default): for "
        "ever\n"
        "  --quirks WORDS      what the RTL does by mistake: none, rtl (all), or some of\n"
        "                      rkey0,stale-error,stall,ack-order,mr-rnr,latch,uncounted,busy,\n"
        "                      lost-strobe\n\n"
        "  --start LENGTH[,COUNT[,FREQUENCY]][,write][,imm]\n"
        "                      what each queue pair sends once it is opened: COUNT messages "
        "(default:\n"
        "                      1; of a file: all) of LENGTH bytes, one each FREQUENCY + 1 cycles;\n"
        "                      SEND, or WRITE; with immediate data. Otherwise it waits for a host "
        "to\n"
        "                      say so (nonic feroce ctl tx-meta)\n"
        "  --wait-open         --start's messages begin when all --qps queue pairs are open\n"
        "  --data WHAT         counter (default), zero, random:SEED, file:PATH, or fd:N\n"
        "  --rate BITS         of the line in a second, such as 10G; default: unlimited\n"
        "  --open HOST[:PORT]  opens a queue pair at a host that listens there (default: 0x4322)\n"
        "  --pace exact|fast   a datagram a call without UDP checksum (default), or many a call "
        "with\n"
        "                      one\n"
        "  --exact-ip          IP headers are the board's, too: the identification counts\n"
        "                      (needs CAP_NET_RAW)\n"
        "  --fault SPEC        a bad network, as nonic run --fault says it\n"
        "  --capture FILE      the frames that the board would send, and what came back\n"
        "  --stats             all counters at the end\n"
        "  --once              ends when all that was to be sent is acknowledged (--stack 2024:\n"
        "                      has left), and the queue pairs are closed or a second has passed\n"
        "  --polite            sends CLOSE for each queue pair at the end\n\n"
        "Exit status: 0; 1 if it could not start, could not read its data, or gave a queue pair\n"
        "up; 2 for a wrong command line.\n");
}

static int refuse(const char *option, const char *text, const char *valid)
{
    fprintf(stderr, "nonic: --%s is '%s'; valid is %s\n", option, text, valid);
    return EXIT_USAGE;
}

/* -- Values -------------------------------------------------------------------------------------*/

/* A whole number, decimal or 0x. */
static bool parse_whole(const char *text, uint64_t least, uint64_t most, uint64_t *value)
{
    char *end;
    if (text[0] < '0' || text[0] > '9') {
        return false;
    }
    *value = strtoull(text, &end, 0);
    return *end == '\0' && *value >= least && *value <= most;
}

/* A number above 0 with one of the units' names behind it, or none. */
static bool parse_scaled(const char *text, const char *const *units, const double *factors,
                         double most, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || !(*value > 0)) {
        return false;
    }
    for (size_t i = 0; units[i] != NULL; i++) {
        if (strcmp(end, units[i]) == 0) {
            *value *= factors[i];
            return *value <= most;
        }
    }
    return false;
}

static bool parse_time(const char *text, double *ns)
{
    static const char *const units[] = {"ns", "us", "ms", "s", NULL};
    static const double factors[] = {1, 1e3, 1e6, 1e9};
    return parse_scaled(text, units, factors, 3.6e12, ns) && *ns >= 1;
}

static bool parse_rate(const char *text, uint64_t *bits)
{
    static const char *const units[] = {"", "k", "M", "G", NULL};
    static const double factors[] = {1, 1e3, 1e6, 1e9};
    double value = 0;
    const bool good = parse_scaled(text, units, factors, 1e12, &value) && value >= 1;
    *bits = good ? (uint64_t)value : 0;
    return good;
}

static bool parse_ip(const char *text, uint32_t *ip)
{
    struct in_addr address;
    if (inet_pton(AF_INET, text, &address) != 1) {
        return false;
    }
    *ip = ntohl(address.s_addr);
    return *ip != 0;
}

static bool parse_host(const char *text, uint32_t *ip, uint16_t *port)
{
    char host[64];
    const char *colon = strchr(text, ':');
    const size_t bytes = colon != NULL ? (size_t)(colon - text) : strlen(text);
    uint64_t number = FEROCE_PORT_CM_MASTER;
    if (bytes >= sizeof(host) ||
        (colon != NULL && !parse_whole(colon + 1, 1, UINT16_MAX, &number))) {
        return false;
    }
    memcpy(host, text, bytes);
    host[bytes] = '\0';
    *port = (uint16_t)number;
    return parse_ip(host, ip);
}

static bool parse_quirks(const char *text, uint32_t *quirks)
{
#define QUIRK_WORD(name, bit, word, what) word,
    static const char *const words[] = {FEROCE_QUIRKS(QUIRK_WORD)};
    char copy[256];
    *quirks = 0;
    if (strcmp(text, "none") == 0) {
        return true;
    }
    if (strcmp(text, "rtl") == 0) {
        *quirks = FEROCE_QUIRKS_ALL;
        return true;
    }
    if (strlen(text) >= sizeof(copy)) {
        return false;
    }
    strcpy(copy, text);
    char *place = NULL;
    for (char *word = strtok_r(copy, ",", &place); word != NULL;
         word = strtok_r(NULL, ",", &place)) {
        size_t i = 0;
        while (i < COUNT_OF(words) && strcmp(words[i], word) != 0) {
            i++;
        }
        if (i == COUNT_OF(words)) {
            return false;
        }
        *quirks |= 1u << i;
    }
    return *quirks != 0;
}

static bool parse_data(const char *text, struct feroce_wishes *wishes)
{
    uint64_t number = 0;
    if (strcmp(text, "counter") == 0) {
        wishes->data = FEROCE_DATA_COUNTER;
    } else if (strcmp(text, "zero") == 0) {
        wishes->data = FEROCE_DATA_ZERO;
    } else if (strncmp(text, "random:", 7) == 0) {
        wishes->data = FEROCE_DATA_RANDOM;
        return parse_whole(text + 7, 0, UINT64_MAX, &wishes->seed);
    } else if (strncmp(text, "file:", 5) == 0) {
        wishes->data = FEROCE_DATA_FILE;
        wishes->path = text + 5;
        return wishes->path[0] != '\0';
    } else if (strncmp(text, "fd:", 3) == 0) {
        wishes->data = FEROCE_DATA_FD;
        const bool good = parse_whole(text + 3, 0, INT32_MAX, &number);
        wishes->fd = (int)number;
        /* One that is not open would be a socket of the board's own before long. */
        return good && fcntl(wishes->fd, F_GETFD) >= 0;
    } else {
        return false;
    }
    return true;
}

/* LENGTH[,COUNT[,FREQUENCY]][,write][,imm]; the words may also stand between the numbers. */
static bool parse_start(const char *text, struct feroce_meta *meta, bool *has_count)
{
    char copy[128];
    uint32_t *const numbers[] = {&meta->length, &meta->count, &meta->frequency};
    size_t given = 0;
    if (strlen(text) >= sizeof(copy)) {
        return false;
    }
    strcpy(copy, text);
    *meta = (struct feroce_meta){.valid = true, .start = true};
    char *place = NULL;
    for (char *word = strtok_r(copy, ",", &place); word != NULL;
         word = strtok_r(NULL, ",", &place)) {
        uint64_t value = 0;
        if (strcmp(word, "write") == 0) {
            meta->write = true;
        } else if (strcmp(word, "imm") == 0) {
            meta->immediate = true;
        } else if (given < COUNT_OF(numbers) && parse_whole(word, 0, UINT32_MAX, &value)) {
            *numbers[given++] = (uint32_t)value;
        } else {
            return false;
        }
    }
    *has_count = given > 1;
    return given > 0 && meta->length >= 4 && meta->length % 4 == 0;
}

/* -- The command line ---------------------------------------------------------------------------*/

struct line {
    struct feroce_wishes wishes;
    double timeout_ns, clock_hz;
    uint64_t timeout_cycles; /* 0: not given. */
    bool has_qps, has_count;
};

static const struct option options[] = {{"address", required_argument, NULL, 'a'},
                                        {"qps", required_argument, NULL, 'n'},
                                        {"pmtu", required_argument, NULL, 'm'},
                                        {"buffer-bits", required_argument, NULL, 'w'},
                                        {"class", required_argument, NULL, 'c'},
                                        {"cm-version", required_argument, NULL, 'v'},
                                        {"stack", required_argument, NULL, 'y'},
                                        {"timeout", required_argument, NULL, 't'},
                                        {"timeout-cycles", required_argument, NULL, 'T'},
                                        {"clock", required_argument, NULL, 'C'},
                                        {"time-scale", required_argument, NULL, 'k'},
                                        {"retry", required_argument, NULL, 'r'},
                                        {"rnr-retry", required_argument, NULL, 'R'},
                                        {"quirks", required_argument, NULL, 'q'},
                                        {"data", required_argument, NULL, 'd'},
                                        {"rate", required_argument, NULL, 'b'},
                                        {"start", required_argument, NULL, 's'},
                                        {"open", required_argument, NULL, 'o'},
                                        {"wait-open", no_argument, NULL, 'W'},
                                        {"pace", required_argument, NULL, 'p'},
                                        {"fault", required_argument, NULL, 'f'},
                                        {"capture", required_argument, NULL, 'F'},
                                        {"stats", no_argument, NULL, 'S'},
                                        {"once", no_argument, NULL, '1'},
                                        {"polite", no_argument, NULL, 'P'},
                                        {"exact-ip", no_argument, NULL, 'x'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

/* Options whose value is a whole number. NULL: taken; else the valid values. */
static const char *take_number(struct line *line, int option, const char *text)
{
    struct feroce_retransmission_config *window = &line->wishes.board.window;
    uint64_t value = 0;
    switch (option) {
    case 'n':
        line->has_qps = true;
        if (!parse_whole(text, 2, FEROCE_QPS_MAX, &value) || (value & (value - 1)) != 0) {
            return "2, 4, 8 or 16";
        }
        window->qps = (uint32_t)value;
        return NULL;
    case 'm':
        if (!parse_whole(text, 256, 4096, &value) || (value & (value - 1)) != 0) {
            return "256, 512, 1024, 2048 or 4096";
        }
        window->pmtu = (uint32_t)value;
        return NULL;
    case 'w':
        if (!parse_whole(text, 12, 28, &value)) {
            return "12 to 28";
        }
        window->buffer_bits = (uint32_t)value;
        return NULL;
    case 'c':
        if (!parse_whole(text, 0, 7, &value)) {
            return "0 to 7";
        }
        line->wishes.port.service_class = (uint8_t)value;
        return NULL;
    case 'v':
        if (!parse_whole(text, 2, 3, &value)) {
            return "3 or 2";
        }
        line->wishes.board.cm_version = (enum feroce_cm_version)value;
        return NULL;
    default:
        if (!parse_whole(text, 0, 7, &value)) {
            return "0 to 7";
        }
        *(option == 'r' ? &window->retry_limit : &window->rnr_limit) = (uint8_t)value;
        return NULL;
    }
}

static const char *take_time(struct line *line, int option, const char *text)
{
    uint64_t value = 0;
    char *end;
    switch (option) {
    case 't': return parse_time(text, &line->timeout_ns) ? NULL : "a time such as 46.5us or 2ms";
    case 'T':
        return parse_whole(text, 1, UINT32_MAX, &line->timeout_cycles) ? NULL : "1 or more cycles";
    case 'C':
        if (!parse_whole(text, 1000000, 10000000000, &value)) {
            return "a frequency in Hz, such as 322265625";
        }
        line->clock_hz = (double)value;
        return NULL;
    default:
        line->wishes.time_scale = strtod(text, &end);
        return end != text && *end == '\0' && line->wishes.time_scale >= 1 &&
                       line->wishes.time_scale <= 1e6
                   ? NULL
                   : "1 to 1000000";
    }
}

static const char *take_word(struct line *line, int option, const char *text)
{
    struct feroce_wishes *wishes = &line->wishes;
    const bool is_first = strcmp(text, option == 'y' ? "2026" : "exact") == 0;
    switch (option) {
    case 'y':
        wishes->board.stack = is_first ? FEROCE_STACK_2026 : FEROCE_STACK_2024;
        return is_first || strcmp(text, "2024") == 0 ? NULL : "2026 or 2024";
    case 'p':
        wishes->port.segmenting = !is_first;
        return is_first || strcmp(text, "fast") == 0 ? NULL : "exact or fast";
    case 'q':
        return parse_quirks(text, &wishes->board.window.quirks)
                   ? NULL
                   : "none, rtl, or words out of rkey0,stale-error,stall,ack-order,mr-rnr,latch,"
                     "uncounted,busy,lost-strobe";
    case 'd':
        return parse_data(text, wishes) ? NULL
                                        : "counter, zero, random:SEED, file:PATH, or fd:N, which "
                                          "is open";
    case 's':
        return parse_start(text, &wishes->meta, &line->has_count)
                   ? NULL
                   : "LENGTH[,COUNT[,FREQUENCY]][,write][,imm], LENGTH a multiple of 4 above 0";
    case 'b': return parse_rate(text, &wishes->rate) ? NULL : "bits a second, such as 10G or 500M";
    case 'a': return parse_ip(text, &wishes->board.ip) ? NULL : "an IPv4 address of this machine";
    default:
        return parse_host(text, &wishes->open_ip, &wishes->open_port)
                   ? NULL
                   : "an IPv4 address, and perhaps a port: 10.0.0.1:0x4321";
    }
}

static const char *take_option(struct line *line, int option, const char *text)
{
    switch (option) {
    case 'W': line->wishes.waits_for_all = true; return NULL;
    case 'S': line->wishes.stats = true; return NULL;
    case '1': line->wishes.once = true; return NULL;
    case 'P': line->wishes.polite = true; return NULL;
    case 'x': line->wishes.port.exact_ip = true; return NULL;
    case 'f': line->wishes.port.fault = text; return NULL;
    case 'F': line->wishes.port.capture = text; return NULL;
    case 't':
    case 'T':
    case 'C':
    case 'k': return take_time(line, option, text);
    case 'n':
    case 'm':
    case 'w':
    case 'c':
    case 'v':
    case 'r':
    case 'R': return take_number(line, option, text);
    default: return take_word(line, option, text);
    }
}

/* Judges the options together. NULL, or the reason why they make no board. */
static const char *settle(struct line *line)
{
    struct feroce_wishes *wishes = &line->wishes;
    struct feroce_retransmission_config *window = &wishes->board.window;
    if (wishes->board.stack == FEROCE_STACK_2024) {
        if (line->has_qps) {
            return "the board of 2024 has one queue pair: leave out --qps";
        }
        window->qps = 1;
        window->sends_once = true;
        if (wishes->meta.valid && !wishes->meta.write) {
            return "the board of 2024 knows WRITE only: say --start ...,write";
        }
    }
    if (wishes->port.exact_ip && wishes->port.segmenting) {
        return "--exact-ip is of --pace exact: the system numbers what it segments";
    }
    if (wishes->waits_for_all && !wishes->meta.valid) {
        return "--wait-open says when --start's messages begin: there is no --start";
    }
    if (wishes->meta.valid && !line->has_count) {
        const bool is_file = wishes->data == FEROCE_DATA_FILE || wishes->data == FEROCE_DATA_FD;
        wishes->meta.count = is_file ? UINT32_MAX : 1;
    }
    if (line->timeout_cycles != 0) {
        line->timeout_ns = (double)line->timeout_cycles / line->clock_hz * 1e9;
    }
    window->rto_ns = (uint64_t)(line->timeout_ns * wishes->time_scale);
    wishes->port.ip = wishes->board.ip;
    wishes->port.stack = wishes->board.stack;
    return feroce_board_refuses(&wishes->board);
}

int feroce_board_main(int argc, char **argv)
{
    struct line line = {
        .wishes = {.board = {.stack = FEROCE_STACK_2026,
                             .cm_version = FEROCE_CM_3,
                             .ip = 0x7f00000a,
                             .window = {.qps = 8,
                                        .pmtu = 4096,
                                        .buffer_bits = 21,
                                        .retry_limit = 7,
                                        .rnr_limit = FEROCE_RNR_FOR_EVER},
                             .master_timeout_ns = 310000000},
                   .time_scale = 1000,
                   .open_port = FEROCE_PORT_CM_MASTER,
                   .fd = -1},
        .timeout_ns = 46548, /* 15,000 cycles of 322.265625 MHz. */
        .clock_hz = 322265625,
    };
    int option, index = 0;
    opterr = 0;
    optind = 1;
    while ((option = getopt_long(argc, argv, "+:h", options, &index)) != -1) {
        if (option == 'h') {
            print_help();
            return 0;
        }
        if (option == '?' || option == ':') {
            fprintf(stderr, "nonic: %s '%s'; see nonic feroce board --help\n",
                    option == ':' ? "no value behind" : "there is no option", argv[optind - 1]);
            return EXIT_USAGE;
        }
        const char *valid = take_option(&line, option, optarg);
        if (valid != NULL) {
            return refuse(options[index].name, optarg, valid);
        }
    }
    if (optind < argc) {
        fprintf(stderr, "nonic: 'feroce board' takes options alone, not '%s'\n", argv[optind]);
        return EXIT_USAGE;
    }
    const char *reason = settle(&line);
    if (reason != NULL) {
        fprintf(stderr, "nonic: %s\n", reason);
        return EXIT_USAGE;
    }
    return feroce_board_run(&line.wishes);
}
