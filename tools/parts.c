/* SPDX-License-Identifier: BSD-2-Clause
 *
 * parts - where the command's other parts are: its library, its programs.
 */
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
bool find_part(const char *name, char *path, size_t bytes)
{
    static const char *const places[] = {"", "/verbs", "/tools", "/../verbs", "/../lib/nonic"};
    char self[PATH_MAX];
    const ssize_t count = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (count < 0) {
        return false;
    }
    self[count] = '\0';
    *strrchr(self, '/') = '\0';
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        char candidate[2 * PATH_MAX];
        snprintf(candidate, sizeof(candidate), "%s%s/%s", self, places[i], name);
        char *real = realpath(candidate, NULL);
        if (real != NULL) {
            snprintf(path, bytes, "%s", real);
            free(real);
            return true;
        }
    }
    return false;
}
