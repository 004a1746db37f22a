/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic bench - measurements that need no foreign program: each is a program of nonic, beside
 * the library.
 */
#include <stdio.h>
#include <string.h>

#include "tools/nonic.h"

static void print_help(FILE *to)
{
    fprintf(to, "usage: nonic bench connections [OPTIONS]\n\n"
                "  connections  message rate, latency and memory of one process with many\n"
                "               connections; --help says more\n\n"
                "example: nonic bench connections --wire udp --qps 16,51200 --baseline\n");
}

/* getopt takes the beginning of an option as well, from the letter on that no other one has. */
static bool is_system_verbs(const char *word)
{
    return strlen(word) > strlen("--s") && word[3] == 'y' &&
           strncmp("--system-verbs", word, strlen(word)) == 0;
}

/* An ordinary verbs program: it is loaded with nonic's libibverbs or with the system's. */
static int connections(char **argv)
{
    bool own_library = true;
    for (char **word = argv + 1; *word != NULL; word++) {
        own_library &= !is_system_verbs(*word);
    }
    if (own_library && !preload_library()) {
        return 1;
    }
    return run_part("nonic-connections", argv);
}

int command_bench(int argc, char **argv)
{
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help(stdout);
        return 0;
    }
    if (argc < 2 || strcmp(argv[1], "connections") != 0) {
        fprintf(stderr, "nonic: 'bench' measures connections; usage: nonic bench connections "
                        "[OPTIONS]\n");
        return EXIT_USAGE;
    }
    return connections(argv + 1);
}
