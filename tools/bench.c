/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic bench - measurements that need no other program: each is one of its own, beside the
 * library.
 */
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/nonic.h"

static void print_help(FILE *to)
{
    fprintf(to, "usage: nonic bench connections [OPTIONS]\n\n"
                "  connections  message rate, latency and memory of one process with many\n"
                "               connections; --help says more\n\n"
                "example: nonic bench connections --wire udp --qps 16,51200 --baseline\n");
}

/* The program lies beside the command where it was built, or in ../lib/nonic where installed. */
static bool find_program(const char *name, char *path, size_t bytes)
{
    static const char *const places[] = {"", "/tools", "/../lib/nonic"};
    char self[PATH_MAX];
    const ssize_t count = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (count < 0) {
        return false;
    }
    self[count] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        snprintf(path, bytes, "%s%s/nonic-%s", self, places[i], name);
        if (access(path, X_OK) == 0) {
            return true;
        }
    }
    return false;
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
    char path[PATH_MAX + 64];
    if (!find_program("connections", path, sizeof(path))) {
        fprintf(stderr, "nonic: nonic-connections is not beside the command; was it built?\n");
        return 1;
    }
    execv(path, argv + 1);
    fprintf(stderr, "nonic: cannot run %s: %s\n", path, strerror(errno));
    return 1;
}
