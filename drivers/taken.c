/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/taken.h"

#include <stdio.h>
#include <string.h>

#include "drivers/system/lines.h"
#include "drivers/system/system.h"
#include "wire/roce.h"

/* The kernel lists its own sockets, too. */
static bool any_address_in(const char *path, const char *any)
{
    struct lines list;
    char line[512], local[64], wanted[64];
    bool found = false;
    snprintf(wanted, sizeof(wanted), "%s:%04X", any, ROCE_UDP_PORT);
    lines_open(&list, AT_FDCWD, path);
    while (!found && lines_next(&list, line, sizeof(line))) {
        found = sscanf(line, "%*s %63s", local) == 1 && strcmp(local, wanted) == 0;
    }
    (void)lines_close(&list);
    return found;
}

bool taken_everywhere(char *text, size_t text_bytes)
{
    const bool ipv4 = any_address_in("/proc/net/udp", "00000000");
    if (!ipv4 && !any_address_in("/proc/net/udp6", "00000000000000000000000000000000")) {
        return false;
    }
    if (system_has("/sys/module/rdma_rxe")) {
        snprintf(
            text, text_bytes,
            "the kernel's rdma_rxe is loaded and has UDP port %d (%s:%d): modprobe -r rdma_rxe, "
            "or use nonic with --wire shm and without --device",
            ROCE_UDP_PORT, ipv4 ? "0.0.0.0" : "[::]", ROCE_UDP_PORT);
    } else {
        snprintf(text, text_bytes, "UDP port %d is taken by another program (%s:%d)", ROCE_UDP_PORT,
                 ipv4 ? "0.0.0.0" : "[::]", ROCE_UDP_PORT);
    }
    return true;
}
