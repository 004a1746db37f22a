/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic feroce ctl - the command line: the message and its fields.
 */
#include "tools/feroce_ctl.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/feroce.h"
#include "tools/feroce_text.h"
#include "tools/nonic.h"

#define SECOND_NS     UINT64_C(1000000000)
#define CLOCK_HZ      322265000u /* The board's at 100G. */
#define REPLY_PORT    0xbeef
#define QPN_MOST      0xffffffu
#define BOARD_QPN     0x100u
#define BOARD_QPN_END 0x110u /* A board has 16 queue pairs at most. */

enum action {
    TX_META = 1,
    OPEN = 2,
    CLOSE = 4,
    MODIFY = 8,
    REQUESTS = OPEN | CLOSE | MODIFY,
    ALL = TX_META | REQUESTS,
};

struct ctl {
    struct ctl_wish wish;
    enum action action;
    uint64_t rate, clock;
    bool has_remote, has_local_ip, dry_run, force;
    uint64_t qpn, local_qpn, psn, rkey, address, length, count, port;
    uint32_t local_ip;
};

static void print_help(void)
{
    printf(
        "usage: nonic feroce ctl --remote A[:PORT] tx-meta|open|close|modify [OPTIONS]\n\n"
        "Sends one message to the connection manager of a FERoCE front end; port: 0x4321.\n\n"
        "  tx-meta  lets the front end's generator send test data; there is no reply\n"
        "    --qpn Q          of the front end; default: 0x100, its first\n"
        "    --length BYTES   of a message; multiples of 4; default: 4096\n"
        "    --count N        messages; default: 1\n"
        "    --rate HZ        messages a second; 0, the default: as fast as it can\n"
        "    --clock HZ       of the front end; default: 322265000\n"
        "    --write          RDMA WRITE; default: SEND\n"
        "    --immediate      with immediate data\n"
        "  open     takes a queue pair of the front end's for one of ours\n"
        "    --local-qpn, --psn, --rkey, --base-address N\n"
        "                     what it shall send to; default: 0\n"
        "  close    gives the queue pair --qpn back; --local-qpn and the others as for open\n"
        "  modify   asks for the step to RTS of --qpn; a published front end has always done it\n\n"
        "  --local-ip A       our address in the message; default: by which we speak to it\n"
        "  --bind A           the address to send from and to listen at; default: any\n"
        "  --listening-port P where the reply shall go; default: 0xbeef\n"
        "  --cm-version 3|2   2: little-endian, before February 2026; default: 3\n"
        "  --force            --qpn outside 0x100 to 0x10f: it stops a published front end\n"
        "  --dry-run          prints the 64 octets, and sends nothing\n\n"
        "Exit status: 0 if the front end says ACK, or needs to say nothing; else 1.\n\n"
        "example: nonic feroce ctl --remote 127.0.0.10 tx-meta --length 16384 --count 10000\n");
}

static const struct {
    const char *name;
    enum action action;
} actions[] = {{"tx-meta", TX_META}, {"open", OPEN}, {"close", CLOSE}, {"modify", MODIFY}};

static const struct option options[] = {{"remote", required_argument, NULL, 'r'},
                                        {"qpn", required_argument, NULL, 'q'},
                                        {"length", required_argument, NULL, 'l'},
                                        {"count", required_argument, NULL, 'n'},
                                        {"rate", required_argument, NULL, 'R'},
                                        {"clock", required_argument, NULL, 'C'},
                                        {"write", no_argument, NULL, 'w'},
                                        {"immediate", no_argument, NULL, 'i'},
                                        {"local-qpn", required_argument, NULL, 'Q'},
                                        {"psn", required_argument, NULL, 'P'},
                                        {"rkey", required_argument, NULL, 'k'},
                                        {"base-address", required_argument, NULL, 'a'},
                                        {"local-ip", required_argument, NULL, 'L'},
                                        {"bind", required_argument, NULL, 'b'},
                                        {"listening-port", required_argument, NULL, 'p'},
                                        {"cm-version", required_argument, NULL, 'v'},
                                        {"force", no_argument, NULL, 'f'},
                                        {"dry-run", no_argument, NULL, 'd'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

/* The actions that have this option. */
static enum action users_of(int option)
{
    switch (option) {
    case 'q': return (enum action)(TX_META | CLOSE | MODIFY);
    case 'l':
    case 'n':
    case 'R':
    case 'C':
    case 'w':
    case 'i': return TX_META;
    case 'Q':
    case 'P':
    case 'k':
    case 'a':
    case 'L':
    case 'p': return REQUESTS;
    default: return ALL;
    }
}

/* Takes an option about the message. Returns NULL, or the values that it accepts. */
static const char *take_field(struct ctl *ctl, int option, const char *text)
{
    bool good = true;
    const char *valid = "a number of 32 bits";
    switch (option) {
    case 'q':
        good = text_number(text, 0, QPN_MOST, &ctl->qpn);
        valid = "a QPN: 0 to 0xffffff";
        break;
    case 'Q':
        good = text_number(text, 0, QPN_MOST, &ctl->local_qpn);
        valid = "a QPN: 0 to 0xffffff";
        break;
    case 'P':
        good = text_number(text, 0, QPN_MOST, &ctl->psn);
        valid = "a PSN: 0 to 0xffffff";
        break;
    case 'l':
        good = text_number(text, 4, UINT32_MAX, &ctl->length) && ctl->length % 4 == 0;
        valid = "a multiple of 4 up to 4294967292 bytes";
        break;
    case 'n':
        good = text_number(text, 1, UINT32_MAX, &ctl->count);
        valid = "1 to 4294967295 messages";
        break;
    case 'R':
        good = text_number(text, 0, UINT32_MAX, &ctl->rate);
        valid = "messages a second, 0 for as many as it can";
        break;
    case 'C':
        good = text_number(text, 1, UINT32_MAX, &ctl->clock);
        valid = "a frequency in Hz";
        break;
    case 'k': good = text_number(text, 0, UINT32_MAX, &ctl->rkey); break;
    case 'a':
        good = text_number(text, 0, UINT64_MAX, &ctl->address);
        valid = "an address of 64 bits";
        break;
    case 'w': ctl->wish.message.meta.write = true; break;
    case 'i': ctl->wish.message.meta.immediate = true; break;
    default: break;
    }
    return good ? NULL : valid;
}

/* Likewise an option about where it goes. */
static const char *take_option(struct ctl *ctl, int option, const char *text)
{
    struct ctl_wish *wish = &ctl->wish;
    uint64_t version = wish->version;
    switch (option) {
    case 'r':
        ctl->has_remote = text_door(text, &wish->remote_ip, &wish->remote_port);
        return ctl->has_remote ? NULL : "an IPv4 address, and a port if it is not 0x4321";
    case 'L':
        ctl->has_local_ip = text_ip(text, &ctl->local_ip);
        return ctl->has_local_ip ? NULL : "an IPv4 address";
    case 'b': return text_ip(text, &wish->bind_ip) ? NULL : "an IPv4 address";
    case 'p': return text_number(text, 1, UINT16_MAX, &ctl->port) ? NULL : "a port: 1 to 65535";
    case 'v':
        if (!text_number(text, FEROCE_CM_2, FEROCE_CM_3, &version)) {
            return "3 or 2";
        }
        wish->version = (enum feroce_cm_version)version;
        return NULL;
    case 'f': ctl->force = true; return NULL;
    case 'd': ctl->dry_run = true; return NULL;
    default: return take_field(ctl, option, text);
    }
}

static int refuse(const char *what)
{
    fprintf(stderr, "nonic: %s; see nonic feroce ctl --help\n", what);
    return EXIT_USAGE;
}

static int find_action(struct ctl *ctl, int argc, char **argv)
{
    if (optind >= argc) {
        return refuse("ctl needs one of tx-meta, open, close and modify");
    }
    if (optind + 1 < argc) {
        fprintf(stderr, "nonic: what is '%s'? See nonic feroce ctl --help\n", argv[optind + 1]);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < COUNT_OF(actions); i++) {
        if (strcmp(argv[optind], actions[i].name) == 0) {
            ctl->action = actions[i].action;
            return 0;
        }
    }
    fprintf(stderr, "nonic: ctl has no '%s'; valid are tx-meta, open, close and modify\n",
            argv[optind]);
    return EXIT_USAGE;
}

/* 0: go on. -1: help was printed. */
static int parse(struct ctl *ctl, int argc, char **argv)
{
    int option, index = 0, used[COUNT_OF(options)] = {0};
    while ((option = getopt_long(argc, argv, "h", options, &index)) != -1) {
        if (option == 'h') {
            print_help();
            return -1;
        }
        if (option == '?') {
            return refuse("that is no option of ctl");
        }
        const char *valid = take_option(ctl, option, optarg);
        if (valid != NULL) {
            fprintf(stderr, "nonic: --%s is '%s'; valid is %s\n", options[index].name, optarg,
                    valid);
            return EXIT_USAGE;
        }
        used[index] = option;
    }
    const int status = find_action(ctl, argc, argv);
    if (status != 0) {
        return status;
    }
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        if (used[i] != 0 && (users_of(used[i]) & ctl->action) == 0) {
            fprintf(stderr, "nonic: --%s is nothing that '%s' has; see nonic feroce ctl --help\n",
                    options[i].name, argv[optind]);
            return EXIT_USAGE;
        }
    }
    return ctl->has_remote ? 0 : refuse("ctl needs --remote, the address of the front end");
}

/* Chooses the address that the board shall answer, and send to. */
static void make_local(struct ctl *ctl)
{
    struct ctl_wish *wish = &ctl->wish;
    uint32_t ip = ctl->has_local_ip ? ctl->local_ip : wish->bind_ip;
    if (ip == 0) {
        ip = ctl_address_towards(wish->remote_ip);
    }
    wish->message.local = (struct feroce_side){.qpn = (uint32_t)ctl->local_qpn,
                                               .psn = (uint32_t)ctl->psn,
                                               .rkey = (uint32_t)ctl->rkey,
                                               .address = ctl->address,
                                               .ip = ip};
    wish->message.listening_port = (uint16_t)ctl->port;
}

static void make_message(struct ctl *ctl)
{
    struct ctl_wish *wish = &ctl->wish;
    struct feroce_cm *message = &wish->message;
    message->info_valid = true;
    if (ctl->action == TX_META) {
        message->remote.qpn = (uint32_t)ctl->qpn;
        message->meta.valid = true;
        message->meta.start = true;
        message->meta.length = (uint32_t)ctl->length;
        message->meta.count = (uint32_t)ctl->count;
        message->meta.frequency = ctl->rate == 0 ? 0 : (uint32_t)(ctl->clock / ctl->rate);
        return;
    }
    make_local(ctl);
    wish->attempts = 3;
    wish->attempt_ns = SECOND_NS;
    if (ctl->action == OPEN) {
        /* Each attempt may take a queue pair. */
        message->request = FEROCE_OPEN_QP;
        wish->attempts = 2;
        wish->attempt_ns = 2 * SECOND_NS;
        return;
    }
    message->request = ctl->action == CLOSE ? FEROCE_CLOSE_QP : FEROCE_MODIFY_QP_RTS;
    message->remote = (struct feroce_side){.qpn = (uint32_t)ctl->qpn, .ip = wish->remote_ip};
}

static int print_octets(const struct ctl_wish *wish)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    feroce_cm_encode(wish->version, &wish->message, bytes);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        printf("%02x", bytes[i]);
    }
    printf("\n");
    return 0;
}

int feroce_ctl_main(int argc, char **argv)
{
    struct ctl ctl = {
        .wish = {.version = FEROCE_CM_3, .remote_port = FEROCE_PORT_CM},
        .clock = CLOCK_HZ,
        .qpn = BOARD_QPN,
        .length = 4096,
        .count = 1,
        .port = REPLY_PORT,
    };
    const int status = parse(&ctl, argc, argv);
    if (status != 0) {
        return status < 0 ? 0 : status;
    }
    if (ctl.action == MODIFY && !ctl.force && (ctl.qpn < BOARD_QPN || ctl.qpn >= BOARD_QPN_END)) {
        return refuse("a MODIFY of such a QPN stops a published front end until it is reset "
                      "(--force sends it)");
    }
    make_message(&ctl);
    return ctl.dry_run ? print_octets(&ctl.wish) : ctl_exchange(&ctl.wish);
}
