/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs - the files and directories that a kernel's RDMA device would have in /sys and /dev.
 *
 * Purpose    Programs read some of them directly: UCX its GID types, MPI its locality, ibstat all.
 * Inputs     Paths, absolute, as programs name them.
 * Outputs    What is there, and what a file holds now. Nothing is opened or kept.
 * Ownership  Everything returned is static or the caller's.
 * Threads    Any. Contents of the NIC take the process's and the live lock; finding most paths
 *            takes none and makes no NIC.
 * Limits     SYSFS_PATH_BYTES for a path of ours; SYSFS_VALUE_BYTES for what a file holds.
 * Source     Linux Documentation/ABI/stable/sysfs-class-infiniband.
 */
#ifndef KERNEL_SYSFS_H
#define KERNEL_SYSFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYSFS_PATH_BYTES  1024
#define SYSFS_VALUE_BYTES 1024
#define SYSFS_NAME_BYTES  64

struct live;

enum sysfs_kind {
    SYSFS_KERNEL, /* Not ours: the kernel answers. */
    SYSFS_ABSENT, /* Ours, and not there: `error` says why. */
    SYSFS_DIRECTORY,
    SYSFS_FILE,
    SYSFS_LINK,
    SYSFS_DEVICE, /* A character device: `value` is "major:minor". */
};

/* A directory's entries that are counted: the entries of a GID table, counters. */
struct sysfs_table {
    enum sysfs_kind kind;
    uint32_t (*count)(void);
    /* False: there is no such entry any more. */
    bool (*name)(uint32_t index, char name[SYSFS_NAME_BYTES]);
    bool (*value)(uint32_t index, char value[SYSFS_VALUE_BYTES]);
};

struct sysfs_entry {
    const char *name; /* NULL: the end of a directory's entries. */
    enum sysfs_kind kind;
    bool shared; /* The kernel may have this directory too, with entries of its own. */
    const struct sysfs_entry *entries; /* The entries of a directory. */
    const struct sysfs_table *table;   /* Further entries of a directory. */
    /* The content of a file, or the target of a link; or text. False: the NIC cannot be made. */
    bool (*value)(char value[SYSFS_VALUE_BYTES]);
    const char *text;
};

/* The node that a path leads to. */
struct sysfs_node {
    enum sysfs_kind kind;
    int error;                       /* ABSENT */
    const struct sysfs_entry *entry; /* NULL: entry `index` of `table`. */
    const struct sysfs_table *table;
    uint32_t index;
    /* Without links, "." and "..". KERNEL: set if a link of ours leads to the kernel's files.
     * Otherwise it is empty, and the kernel should be asked for the program's path. */
    char path[SYSFS_PATH_BYTES];
};

/* Every call asks this first: false for nearly all paths there are. */
static inline bool sysfs_plausible(const char *path)
{
    while (path != NULL && path[0] == '/' && path[1] == '/') {
        path++; /* "//sys" is "/sys". */
    }
    return path != NULL && path[0] == '/' &&
           ((path[1] == 's' && path[2] == 'y' && path[3] == 's' && path[4] == '/') ||
            (path[1] == 'd' && path[2] == 'e' && path[3] == 'v' &&
             (path[4] == '\0' || (path[4] == '/' && (path[5] == 'i' || path[5] == '\0')))));
}

/* `follow`: the last component, too, if it is a link. */
void sysfs_find(const char *path, bool follow, struct sysfs_node *node);

/* The content of a file, the target of a link, or the number of a device. False: errno says why. */
bool sysfs_read(const struct sysfs_node *node, char value[SYSFS_VALUE_BYTES]);

/* The kernel may have entries of its own in this directory. */
bool sysfs_shared(const struct sysfs_node *node);

/* The entries of a directory, from 0; SYSFS_ABSENT behind the last. */
enum sysfs_kind sysfs_list(const struct sysfs_node *node, uint32_t index,
                           char name[SYSFS_NAME_BYTES]);

#endif
