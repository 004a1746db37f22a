/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/udp/udp_unread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drivers/system/lines.h"
#include "wire/inet.h"
#include "wire/roce.h"

/* The kernel gives out the list in pieces of at most PIECE_BYTES, and goes on at the number of the
 * next line: where a socket is closed meanwhile, another one is left out. If many are, the one that
 * is looked for may be left out of one list in three. A socket that is in none of LOOKS lists is
 * not there, and neither is one that is not in a list of one piece. */
#define LOOKS       32
#define PIECE_BYTES 4096

/* The address as the kernel prints it: words of 32 bits in host order, then the port. */
static void print_address(const struct gid *peer, char text[64])
{
    const bool ipv4 = inet_is_ipv4(peer->bytes);
    uint32_t words[4];
    memcpy(words, peer->bytes, sizeof(words));
    if (ipv4) {
        snprintf(text, 64, "%08" PRIX32 ":%04X", words[3], (unsigned)ROCE_UDP_PORT);
    } else {
        snprintf(text, 64, "%08" PRIX32 "%08" PRIX32 "%08" PRIX32 "%08" PRIX32 ":%04X", words[0],
                 words[1], words[2], words[3], (unsigned)ROCE_UDP_PORT);
    }
}

/* The socket that is looked for, and the one that was found. */
struct search {
    char address[64];
    const struct udp_owner *owner; /* The owner whose socket has unread datagrams; NULL: any
                                      socket. */
    bool shared;
    bool found;
    struct udp_owner finding;
    size_t bytes; /* The length of the list, as far as it was read. */
};

static bool is_it(const struct search *search, const char *address, unsigned long unread,
                  const struct udp_owner *found)
{
    const struct udp_owner *owner = search->owner;
    return strcmp(address, search->address) == 0 &&
           (owner == NULL || (unread > 0 && found->uid == owner->uid &&
                              (search->shared || found->inode == owner->inode)));
}

/* Searches a list. 0, or an errno: the list cannot be read. */
static int look_for(const char *list, struct search *search)
{
    char line[512], address[64];
    struct lines lines;
    lines_open(&lines, AT_FDCWD, list);
    search->bytes = 0;
    while (!search->found && lines_next(&lines, line, sizeof(line))) {
        search->bytes += strlen(line) + 1;
        unsigned long unread;
        struct udp_owner *found = &search->finding;
        search->found = sscanf(line, " %*u: %63s %*s %*x %*x:%lx %*x:%*x %*x %u %*u %lu", address,
                               &unread, &found->uid, &found->inode) == 4 &&
                        is_it(search, address, unread, found);
    }
    return lines_close(&lines);
}

static void look(const struct gid *peer, struct search *search)
{
    const char *list = inet_is_ipv4(peer->bytes) ? "/proc/net/udp" : "/proc/net/udp6";
    int reason = 0;
    print_address(peer, search->address);
    bool again = true;
    for (int looks = 0; looks < LOOKS && again; looks++) {
        reason = look_for(list, search);
        again = !search->found && reason == 0 && search->bytes > PIECE_BYTES / 2;
    }
    errno = reason;
}

bool udp_find_owner(const struct gid *peer, struct udp_owner *owner)
{
    struct search search = {.owner = NULL};
    look(peer, &search);
    *owner = search.finding;
    return search.found;
}

bool udp_unread_at(const struct gid *peer, const struct udp_owner *owner, bool shared)
{
    struct search search = {.owner = owner, .shared = shared};
    look(peer, &search);
    return search.found;
}
