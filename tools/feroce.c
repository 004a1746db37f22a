/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic feroce - the choice between its three parts; starts the receiver, a program of its own.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/live/live.h"
#include "tools/feroce.h"
#include "tools/nonic.h"

#define RECEIVER "nonic-feroce-receive"

static void print_help(FILE *to)
{
    fprintf(to,
            "usage: nonic feroce board|receive|ctl [OPTIONS]\n\n"
            "A FERoCE front end sends detector data by RoCEv2, and can do nothing else.\n\n"
            "  board    is such a front end, without the FPGA\n"
            "  receive  takes what a front end sends, on nonic or on any other RDMA device\n"
            "  ctl      tells a front end to send test data, and opens or closes queue pairs\n\n"
            "'nonic feroce receive --help' and its like say more. In three terminals:\n"
            "  nonic feroce board --address 127.0.0.10\n"
            "  nonic feroce receive --active --remote 127.0.0.10\n"
            "  nonic feroce ctl --remote 127.0.0.10 tx-meta --length 4096 --count 1000\n");
}

/* The value of `--name value` or `--name=value` at argv[at], and how many words it took (0: it is
 * another word). */
static int value_of(int argc, char **argv, int at, const char *name, const char **value)
{
    const size_t length = strlen(name);
    if (strncmp(argv[at], name, length) != 0) {
        return 0;
    }
    if (argv[at][length] == '=') {
        *value = argv[at] + length + 1;
        return 1;
    }
    if (argv[at][length] != '\0' || at + 1 >= argc) {
        return 0;
    }
    *value = argv[at + 1];
    return 2;
}

/* Takes those words from the command line that nonic's library needs to know before it is loaded.
 * With another library --device names an RDMA device, and stays. Returns the number of words that
 * are left. */
static int take_device(int argc, char **argv, const char **device, bool *own_library)
{
    int left = 0;
    *own_library = true;
    for (int i = 1; i < argc; i++) {
        *own_library &= strcmp(argv[i], "--system-verbs") != 0;
    }
    for (int i = 0; i < argc;) {
        const int words = *own_library ? value_of(argc, argv, i, "--device", device) : 0;
        i += words;
        if (words == 0) {
            argv[left++] = argv[i++];
        }
    }
    argv[left] = NULL;
    return left;
}

static int receive(int argc, char **argv)
{
    const char *device = NULL;
    bool own_library = true;
    char error[600];
    struct live_config config;
    take_device(argc, argv, &device, &own_library);
    if (device != NULL) {
        setenv("NONIC_DEVICE", device, 1);
    }
    if (own_library && !live_config_from_environment(&config, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return EXIT_USAGE;
    }
    if (own_library && !preload_library()) {
        return 1;
    }
    return run_part(RECEIVER, argv);
}

int command_feroce(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help(stdout);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "board") == 0) {
        return feroce_board_main(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "receive") == 0) {
        return receive(argc - 1, argv + 1);
    }
    if (argc > 1 && strcmp(argv[1], "ctl") == 0) {
        return feroce_ctl_main(argc - 1, argv + 1);
    }
    fprintf(stderr, "nonic: 'feroce' is one of board, receive and ctl; usage: nonic feroce "
                    "board|receive|ctl [OPTIONS]\n");
    return EXIT_USAGE;
}
