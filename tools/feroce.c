/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic feroce - a detector's front end and its receiver, as ordinary processes.
 */
#include <stdio.h>
#include <string.h>

#include "tools/feroce.h"
#include "tools/nonic.h"

int command_feroce(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "board") != 0) {
        fprintf(stderr, "usage: nonic feroce board [OPTIONS]\n");
        return EXIT_USAGE;
    }
    return feroce_board_main(argc - 1, argv + 1);
}
