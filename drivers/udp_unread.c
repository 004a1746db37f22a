/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/udp_unread.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "drivers/uncancelled.h"
#include "wire/inet.h"
#include "wire/roce.h"

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

bool udp_unread_at(const struct gid *peer)
{
    char wanted[64], line[512], address[64];
    print_address(peer, wanted);
    const int cancellation = uncancelled_begin();
    FILE *file = fopen(inet_is_ipv4(peer->bytes) ? "/proc/net/udp" : "/proc/net/udp6", "re");
    bool unread = false;
    while (file != NULL && !unread && fgets(line, sizeof(line), file) != NULL) {
        unsigned long waiting;
        unread = sscanf(line, " %*u: %63s %*s %*x %*x:%lx", address, &waiting) == 2 &&
                 waiting > 0 && strcmp(address, wanted) == 0;
    }
    const int reason = file == NULL ? errno : ferror(file) ? EAGAIN : 0;
    if (file != NULL) {
        fclose(file);
    }
    uncancelled_end(cancellation);
    errno = reason;
    return unread;
}
