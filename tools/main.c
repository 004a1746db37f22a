/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic - an RDMA NIC made of software: the command.
 */
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/nonic.h"

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"run", command_run, "run a program on nonic"},
    {"info", command_info, "show the device and limits a program will see, and why"},
    {"stat", command_stat, "show the counters of running programs"},
    {"lab", command_lab, "run models of published NICs under a virtual clock"},
    {"bench", command_bench, "measure one process with many connections"},
};

static void print_help(FILE *to)
{
    fprintf(to, "nonic - an RDMA NIC made of software\n\n"
                "usage: nonic COMMAND [OPTIONS]\n\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        fprintf(to, "  %-6s %s\n", commands[i].name, commands[i].what);
    }
    fprintf(to, "\n'nonic COMMAND --help' says more. 'nonic --version' prints the version.\n\n"
                "Try, in two terminals:\n"
                "  nonic run -- ib_write_bw\n"
                "  nonic run -- ib_write_bw 127.0.0.1\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("nonic %s\n", NONIC_VERSION);
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "nonic: there is no command '%s'; valid are run, info, stat, lab and bench\n",
            argv[1]);
    return EXIT_USAGE;
}
