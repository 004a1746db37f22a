/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/api/long_names.h"

#include <dirent.h>
#include <stddef.h>
#include <string.h>

int long_names_left;

struct dirent *readdir(DIR *stream)
{
    static union {
        struct dirent entry;
        char bytes[sizeof(struct dirent) + LONG_NAME_BYTES];
    } found;
    char *name = found.bytes + offsetof(struct dirent, d_name);
    (void)stream;
    if (long_names_left == 0) {
        return NULL;
    }
    long_names_left--;
    memset(&found, 0, sizeof(found));
    memset(name, 'x', LONG_NAME_BYTES);
    found.entry.d_ino = 1;
    found.entry.d_reclen = (offsetof(struct dirent, d_name) + LONG_NAME_BYTES + 1 + 7) & ~7u;
    return &found.entry;
}

struct dirent64 *readdir64(DIR *stream)
{
    return (struct dirent64 *)(void *)readdir(stream);
}
