/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic - an RDMA NIC made of software: the command.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/nonic.h"

/* The laboratory is a program of its own, so that what runs programs has no models in it. */
static int command_lab(int argc, char **argv)
{
    (void)argc;
    return run_part("nonic-lab", argv);
}

/* So that the command needs nothing of what designs need. */
static int command_hdl(int argc, char **argv)
{
    (void)argc;
    return run_part("nonic-hdl", argv);
}

/* So that the command needs no library for screens. */
static int command_top(int argc, char **argv)
{
    (void)argc;
    return run_part("nonic-top", argv);
}

/* So that the command needs no library for captures. */
static int command_report(int argc, char **argv)
{
    (void)argc;
    return run_part("nonic-report", argv);
}

/* So that the command needs no decoder of instructions, which the box has. */
static int command_repeat(int argc, char **argv)
{
    (void)argc;
    if (!VIRTUAL_TIME) {
        fprintf(stderr, "nonic: programs run in virtual time on x86-64 alone\n");
        return 1;
    }
    return run_part("nonic-box", argv);
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *what;
} commands[] = {
    {"run", command_run, "run a program on nonic"},
    {"repeat", command_repeat, "run programs in virtual time: the same run every time, by a seed"},
    {"replay", command_repeat, "make a recorded run of 'repeat' again"},
    {"at", command_at, "run a command on a node of the machine of 'repeat', as ssh does"},
    {"info", command_info, "show the device and limits a program will see, and why"},
    {"stat", command_stat, "show the counters of running programs"},
    {"top", command_top, "what moves between running programs, as htop shows processes"},
    {"report", command_report, "make a page of a capture"},
    {"lab", command_lab, "run models of published NICs under a virtual clock"},
    {"bench", command_bench, "measure one process with many connections"},
    {"feroce", command_feroce, "be a FERoCE front end, or receive what one sends"},
    {"hdl", command_hdl, "run a hardware design in virtual time, or on the network"},
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
                "  nonic run -- ib_write_bw 127.0.0.1\n"
                "or, by address and port:\n"
                "  nonic run -- rping -s\n"
                "  nonic run -- rping -c -a 127.0.0.1 -v -C 3\n");
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EXIT_USAGE;
    }
    const bool help = strcmp(argv[1], "help") == 0;
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || (help && argc == 2)) {
        print_help(stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("nonic %s\n", NONIC_VERSION);
        return 0;
    }
    const char *name = argv[help ? 2 : 1];
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (strcmp(name, commands[i].name) == 0) {
            char *say_more[] = {argv[help ? 2 : 1], (char[]){"--help"}, NULL};
            return help ? commands[i].run(2, say_more) : commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "nonic: there is no command '%s'; valid are", name);
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        fprintf(stderr, "%s%s", i == 0 ? " " : ", ", commands[i].name);
    }
    fputc('\n', stderr);
    return EXIT_USAGE;
}
