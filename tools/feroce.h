/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce - the parts of `nonic feroce`; each gets its own arguments, argv[0] being its name.
 */
#ifndef TOOLS_FEROCE_H
#define TOOLS_FEROCE_H

int feroce_board_main(int argc, char **argv);

#endif
