/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/udp_unread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drivers/uncancelled.h"
#include "wire/inet.h"
#include "wire/roce.h"

/* The kernel gives out the list in pieces, and goes on at the number of the next line: where a
 * socket is closed meanwhile, another one is left out. What is in none of so many lists is not
 * there. */
#define LOOKS 8

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

/* 0 or an errno: the list cannot be read. */
static int look_for(const char *list, const char *wanted, bool *unread)
{
    char line[512], address[64];
    FILE *file = fopen(list, "re");
    if (file == NULL) {
        return errno;
    }
    while (!*unread && fgets(line, sizeof(line), file) != NULL) {
        unsigned long waiting;
        *unread = sscanf(line, " %*u: %63s %*s %*x %*x:%lx", address, &waiting) == 2 &&
                  waiting > 0 && strcmp(address, wanted) == 0;
    }
    const int reason = ferror(file) ? EAGAIN : 0;
    fclose(file);
    return reason;
}

bool udp_unread_at(const struct gid *peer)
{
    const char *list = inet_is_ipv4(peer->bytes) ? "/proc/net/udp" : "/proc/net/udp6";
    char wanted[64];
    bool unread = false;
    int reason = 0;
    print_address(peer, wanted);
    const int cancellation = uncancelled_begin();
    for (int look = 0; look < LOOKS && !unread && reason == 0; look++) {
        reason = look_for(list, wanted, &unread);
    }
    uncancelled_end(cancellation);
    errno = reason;
    return unread;
}
