/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic hdl - hardware descriptions: a design compiled, and frames that go through it.
 */
#include "tools/hdl.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "tools/nonic.h"

static const struct {
    const char *name, *says;
    int (*act)(int argc, char **argv);
} commands[] = {
    {"build", "compiles a Verilog design that has a nonic_axis", hdl_build},
    {"compare", "tells the first frame in which two captures differ", hdl_compare_captures},
    {"filter", NULL, hdl_filter_pipe},
    {"lab", "puts designs into the laboratory's network, with its clock", hdl_lab},
    {"live", "puts a design on the network of this machine", hdl_live},
    {"replay", "sends the frames of a capture through a design", hdl_replay},
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: nonic hdl COMMAND [OPTION]... ; --help after a COMMAND says more\n\n");
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        if (commands[i].says != NULL) {
            fprintf(to, "  %-9s %s\n", commands[i].name, commands[i].says);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "--help") == 0) {
        print_help(stdout);
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(commands) && argc >= 2; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].act(argc - 1, argv + 1);
        }
    }
    if (argc >= 2) {
        fprintf(stderr, "nonic: there is no 'hdl %s'\n", argv[1]);
    }
    print_help(stderr);
    return EXIT_USAGE;
}
