/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic at - runs a command on a node of the machine of `nonic repeat --machine`, as ssh runs it on
 * another computer.
 */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "base/box_address.h"
#include "base/box_ask.h"
#include "base/check.h"
#include "tools/nonic.h"

static void print_help(void)
{
    printf(
        "usage: nonic at NODE COMMAND [ARGS...]\n\n"
        "Runs a command on a node of the machine of 'nonic repeat --machine': it, and all that it\n"
        "starts, has the node's name, its NIC and its address. NODE is node0, node1 and so on, or\n"
        "a node's address. The words are joined and given to a shell, as ssh does it, so that\n"
        "this stands in for ssh where a launcher starts processes on many nodes.\n\n"
        "  -x                     nothing: MPICH gives it to ssh\n"
        "  --help                 print this\n\n"
        "Exit status: the command's; 2: wrong words; 255: there is no such node.\n\n"
        "examples:\n"
        "  nonic repeat --machine roce -- sh -c \\\n"
        "      'nonic at node0 rping -s -C 3 & sleep 1; nonic at node1 rping -c -a node0 -C 3'\n"
        "  nonic repeat --machine roce -- mpirun --mca plm_rsh_agent 'nonic at' -H node0:2,node1:2 "
        "\\\n"
        "      ./app\n");
}

/* By its name or its address. False: it is neither. */
static bool read_node(const char *text, uint32_t *node)
{
    uint8_t address[16] = {[10] = 0xff, [11] = 0xff};
    char rest;
    uint32_t function;
    if (inet_pton(AF_INET, text, address + 12) == 1) {
        return box_address_read(address, node, &function);
    }
    return strncmp(text, "node", 4) == 0 && text[4] >= '0' && text[4] <= '9' &&
           sscanf(text + 4, "%u%c", node, &rest) == 1;
}

static char *join(char **words)
{
    size_t bytes = 1;
    for (char **word = words; *word != NULL; word++) {
        bytes += strlen(*word) + 1;
    }
    char *text = calloc(1, bytes), *end = text;
    CHECK(text != NULL);
    for (char **word = words; *word != NULL; word++) {
        end += sprintf(end, word == words ? "%s" : " %s", *word);
    }
    return text;
}

static int refuse(const char *node, int reason)
{
    if (reason == ENOSYS) {
        fprintf(stderr, "nonic: 'at' is for programs of 'nonic repeat --machine': there are no "
                        "nodes here\n");
    } else {
        fprintf(stderr, "nonic: the machine has no node '%s' (--topology says how many)\n", node);
    }
    return 255; /* As ssh has it. */
}

int command_at(int argc, char **argv)
{
    static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
    uint32_t node;
    int option;
    while ((option = getopt_long(argc, argv, "+hx", options, NULL)) != -1) {
        if (option == 'h') {
            print_help();
            return 0;
        }
        if (option != 'x') { /* MPICH gives it to ssh: no windows. */
            return EXIT_USAGE;
        }
    }
    if (argc - optind < 2) {
        fprintf(stderr, "nonic: usage: nonic at NODE COMMAND [ARGS...]\n");
        return EXIT_USAGE;
    }
    if (!read_node(argv[optind], &node)) {
        return refuse(argv[optind], ENODEV);
    }
    if (syscall(BOX_ASK, BOX_ASK_PLACE, 0, (unsigned long)node) != 0) {
        return refuse(argv[optind], errno);
    }
    execl("/bin/sh", "sh", "-c", join(argv + optind + 1), (char *)NULL);
    fprintf(stderr, "nonic: /bin/sh: %s\n", strerror(errno));
    return 255;
}
