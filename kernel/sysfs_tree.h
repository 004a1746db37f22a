/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs_tree (internal) - how trees of virtual files are written down, and what they share: the
 * files of a port.
 */
#ifndef KERNEL_SYSFS_TREE_H
#define KERNEL_SYSFS_TREE_H

#include <stddef.h>

#include "kernel/describe.h"
#include "kernel/sysfs_values.h"
#include "world/world.h"

#define DIRECTORY(called, of)                                                                      \
    {                                                                                              \
        .name = called, .kind = SYSFS_DIRECTORY, .entries = of                                     \
    }
#define SHARED(called, of)                                                                         \
    {                                                                                              \
        .name = called, .kind = SYSFS_DIRECTORY, .shared = true, .entries = of                     \
    }
#define TABLE(called, of)                                                                          \
    {                                                                                              \
        .name = called, .kind = SYSFS_DIRECTORY, .table = &of                                      \
    }
#define VALUE(called, function)                                                                    \
    {                                                                                              \
        .name = called, .kind = SYSFS_FILE, .value = function                                      \
    }
#define TEXT(called, content)                                                                      \
    {                                                                                              \
        .name = called, .kind = SYSFS_FILE, .text = content "\n"                                   \
    }
#define LINK(called, target)                                                                       \
    {                                                                                              \
        .name = called, .kind = SYSFS_LINK, .text = target                                         \
    }
#define DEVICE(called, number)                                                                     \
    {                                                                                              \
        .name = called, .kind = SYSFS_DEVICE, .text = number                                       \
    }
#define WRITTEN(number) #number
#define STRING(number)  WRITTEN(number)
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }

/* The directory of a device's ports. */
extern const struct sysfs_entry sysfs_ports[];
/* Management datagrams have no device here: there is the version that readers of the files of a
 * port (libibumad) look for, and nothing to open. */
extern const struct sysfs_entry sysfs_class_mad[];

/* The roots of the trees: of a RoCE device, and of an EFA device. */
extern const struct sysfs_entry sysfs_root_roce, sysfs_root_efa;

#endif
