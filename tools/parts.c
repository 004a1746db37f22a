/* SPDX-License-Identifier: BSD-2-Clause
 *
 * parts - finds the command's other parts, its library and its programs, and starts the latter.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/nonic.h"

/* A part lies beside the command, in the rooms of a build, or in ../lib/nonic where installed. The
 * kernel says where the command is, whatever link it was started by; nothing says where it was
 * meant to be, so that an installed tree can be moved. */
bool find_part(const char *name, char *path, size_t bytes, char *error, size_t error_bytes)
{
    static const char *const places[] = {"",        "/verbs",        "/tools", "/../verbs",
                                         "/../box", "/../lib/nonic", "/.."};
    char self[PATH_MAX];
    const ssize_t count = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (count < 0) {
        snprintf(error, error_bytes,
                 "/proc is not mounted, and nonic needs it to find its parts; mount it (mount -t "
                 "proc proc /proc)");
        return false;
    }
    self[count] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(error, error_bytes,
             "%s is neither beside the command nor in ../lib/nonic; was it built and installed?",
             name);
    /* In the folder above lie only parts with a folder of their own, as "virtual/libibverbs.so.1"
     * does in a build. */
    const size_t count_of_places = COUNT_OF(places) - (strchr(name, '/') == NULL);
    for (size_t i = 0; i < count_of_places; i++) {
        char candidate[2 * PATH_MAX];
        snprintf(candidate, sizeof(candidate), "%s%s/%s", self, places[i], name);
        if (faccessat(AT_FDCWD, candidate, R_OK, AT_EACCESS) == 0) {
            char *real = realpath(candidate, NULL);
            snprintf(path, bytes, "%s", real == NULL ? candidate : real);
            free(real);
            return true;
        }
        if (errno == EACCES) {
            snprintf(error, error_bytes,
                     "this user may not read %s; let its owner allow it (chmod a+rX, the folders "
                     "too)",
                     candidate);
        }
    }
    return false;
}

int run_part(const char *name, char **argv)
{
    char path[PATH_MAX], error[3 * PATH_MAX];
    if (!find_part(name, path, sizeof(path), error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return 1;
    }
    execv(path, argv);
    fprintf(stderr, "nonic: cannot run %s: %s\n", path, strerror(errno));
    return 1;
}
