/* SPDX-License-Identifier: BSD-2-Clause
 *
 * files - what stands in the place of files that tell of this machine and this moment.
 */
#ifndef BOX_FILES_H
#define BOX_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A folder that programs of the box can read, and that nothing else uses: walls.h mounts it. */
#define FILES_FOLDER "/proc/driver/"

struct stand_in {
    const char *path, *text;
};
extern const struct stand_in stand_ins[];
extern const size_t stand_in_count;

/* Where programs of a machine begin, outside of its nodes; and a node, by its number. */
#define HEAD_NAME "head"
#define NODE_NAME "node%u"

/* The names of a machine's nodes, and their addresses, are known. False: errno says why not. */
bool node_files_make(uint32_t nodes);

#endif
