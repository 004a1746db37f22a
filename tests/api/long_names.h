/* SPDX-License-Identifier: BSD-2-Clause
 *
 * long_names - a libc whose directories have long names.
 */
#ifndef API_LONG_NAMES_H
#define API_LONG_NAMES_H

#define LONG_NAME_BYTES 600

/* The number of entries that directories still have. */
extern int long_names_left;

#endif
