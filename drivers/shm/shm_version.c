/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_version - nonic processes whose rings have another layout than ours.
 *
 * A layout is part of the name that a process listens on, so builds that would misread one another
 * never share a ring. But the user is to be told that a program cannot be reached for this reason.
 */
#include <stdio.h>
#include <string.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/lines.h"

/* Builds of layout 3, the first ones, had only the GID in the name. */
#define FIRST_LAYOUT 3u
/* The most listeners that are tried when any one is enough: those of other users do not answer
 * us. */
#define TRIES_MAX  32
#define LISTENS    " 00010000 " /* As /proc/net/unix says it. */
#define GID_DIGITS 32

struct local_name shm_name(uint32_t layout, const struct gid *gid, int slot)
{
    char purpose[32] = "";
    CHECK(slot >= LOCAL_NO_SLOT);
    if (layout != FIRST_LAYOUT) {
        snprintf(purpose, sizeof(purpose), "layout-%u/", layout);
    }
    return local_name(purpose, gid, slot);
}

static pid_t who_listens(uint32_t layout, const struct gid *gid, int slot)
{
    const struct local_name name = shm_name(layout, gid, slot);
    pid_t pid = 0;
    CHECK(layout != SHM_LAYOUT); /* That would be one of ours. */
    const int socket = local_dial(&name, &pid);
    descriptor_close(socket);
    return socket >= 0 ? pid : 0;
}

/* The layout in a line of /proc/net/unix, which ends with the name; 0: the line has none. */
static uint32_t layout_in(const char *line, const char *name)
{
    const char *found = strstr(line, " @nonic/layout-");
    unsigned int layout;
    char rest[128];
    if (found == NULL || sscanf(found, " @nonic/layout-%u/%127s", &layout, rest) != 2) {
        return 0;
    }
    return strcmp(rest, name) == 0 ? layout : 0;
}

pid_t shm_find_other_layout(const struct gid *gid, int slot)
{
    const pid_t first = who_listens(FIRST_LAYOUT, gid, slot);
    if (first != 0) {
        return first;
    }
    struct lines list;
    const struct local_name bare = shm_name(FIRST_LAYOUT, gid, slot);
    char line[512], name[sizeof(bare.address.sun_path)] = "";
    /* Without the zero in front and "nonic/". */
    const size_t prefix = sizeof("nonic/");
    const size_t bytes = bare.bytes - offsetof(struct sockaddr_un, sun_path) - prefix;
    CHECK(bytes < sizeof(name)); /* The \0 behind it stays. */
    memcpy(name, bare.address.sun_path + prefix, bytes);
    pid_t found = 0;
    lines_open(&list, AT_FDCWD, "/proc/net/unix");
    while (found == 0 && lines_next(&list, line, sizeof(line))) {
        const uint32_t layout = layout_in(line, name);
        if (layout != 0 && layout != SHM_LAYOUT) {
            found = who_listens(layout, gid, slot);
        }
    }
    (void)lines_close(&list);
    return found;
}

/* Is `name`, which follows "nonic/", that of a listener of another layout: the layout (the first
 * one has none), then the digits of a GID, and the slot of a process that shares it? */
static bool is_of_other_layout(const char *name)
{
    unsigned int layout, slot;
    int read = 0;
    if (sscanf(name, "layout-%u/%n", &layout, &read) == 1 && read > 0) {
        if (layout == SHM_LAYOUT) {
            return false;
        }
        name += read;
    }
    if (strspn(name, "0123456789abcdef") != GID_DIGITS) {
        return false;
    }
    name += GID_DIGITS;
    read = 0;
    return *name == '\0' || (sscanf(name, "/%u%n", &slot, &read) == 1 && name[read] == '\0');
}

static pid_t who_has(const char *text)
{
    struct local_name name = {.address = {.sun_family = AF_UNIX}};
    pid_t pid = 0;
    const size_t bytes = strlen(text);
    if (bytes >= sizeof(name.address.sun_path)) {
        return 0;
    }
    memcpy(name.address.sun_path + 1, text, bytes);
    name.bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + bytes);
    const int socket = local_dial(&name, &pid);
    descriptor_close(socket);
    return socket >= 0 ? pid : 0;
}

pid_t shm_find_any_other_layout(void)
{
    struct lines list;
    char line[512];
    pid_t found = 0;
    int tries = 0;
    lines_open(&list, AT_FDCWD, "/proc/net/unix");
    while (found == 0 && tries < TRIES_MAX && lines_next(&list, line, sizeof(line))) {
        const char *name = strstr(line, " @nonic/");
        line[strcspn(line, "\n")] = '\0';
        if (name != NULL && strstr(line, LISTENS) != NULL &&
            is_of_other_layout(name + sizeof(" @nonic/") - 1)) {
            tries++;
            found = who_has(name + 2);
        }
    }
    (void)lines_close(&list);
    return found;
}
