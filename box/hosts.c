/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hosts - the names of a machine's nodes: /etc/hosts, and that of the host on which a run begins.
 */
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/box_address.h"
#include "box/files.h"

bool node_files_make(uint32_t nodes)
{
    uint8_t address[16];
    FILE *to = fopen(FILES_FOLDER "hosts", "we");
    if (to == NULL) {
        return false;
    }
    fprintf(to, "127.0.0.1 localhost " HEAD_NAME "\n::1 localhost\n");
    for (uint32_t i = 0; i < nodes; i++) {
        box_address(i, 0, address);
        fprintf(to, "%u.%u.%u.%u " NODE_NAME "\n", address[12], address[13], address[14],
                address[15], (unsigned)i);
    }
    return fclose(to) == 0 && sethostname(HEAD_NAME, strlen(HEAD_NAME)) == 0 &&
           (access("/etc/hosts", F_OK) != 0 ||
            mount(FILES_FOLDER "hosts", "/etc/hosts", NULL, MS_BIND, NULL) == 0);
}
