/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_objects - the objects that programs made, for who asks by netlink.
 *
 * Purpose    Those of this process's NIC, and those of the other nonic programs of this user, which
 *            are asked over the socket of `nonic stat` (drivers/stat_server.h).
 * Inputs     A kind; a reader's wish.
 * Outputs    Objects, and how many there are altogether.
 * Ownership  The caller's.
 * Threads    Any; others_* may wait some seconds for programs that do not answer.
 * Time       See drivers/stat_ask.h.
 * Units      Objects.
 * Limits     NLDEV_OBJECTS_MAX of a kind; the rest is counted only.
 */
#ifndef KERNEL_NLDEV_OBJECTS_H
#define KERNEL_NLDEV_OBJECTS_H

#include <sys/types.h>

#include "kernel/nldev.h"

#define NLDEV_OBJECTS_MAX 1024

/* Wishes of another process: one of these, or the name of a kind. */
#define NLDEV_WISH_TOTALS "totals"
/* Lines of what it is told: "total KIND NUMBER", and nldev_print's. */
#define NLDEV_TOTAL "total"

struct live;

/* Where objects of this process's NIC `live` are put. */
struct objects_collection {
    struct live *live;
    pid_t pid;
    struct nldev_resource *to;
    size_t room;
    uint64_t total;
    struct nldev_resource spare; /* The place of those for which there is no room. */
};

/* One more, of that number. Returns its place. */
struct nldev_resource *objects_add(struct objects_collection *collection, uint64_t number);

/* (locked) Puts objects of this process to `to`, as far as there is `*room`, which shrinks. Returns
 * how many there are. */
uint64_t objects_collect(struct live *live, enum nldev_kind kind, struct nldev_resource *to,
                         size_t *room);

/* Those of other programs, behind which `to` ends with `*room` free places. */
uint64_t others_collect(enum nldev_kind kind, struct nldev_resource *to, size_t *room);
void others_total(uint64_t totals[NLDEV_KINDS]);
void others_count(struct nldev_counter *counters, size_t count);

/* (locked) What another process's others_* are told, as text; called by the NIC's thread. Keys are
 * told to root alone, as by a kernel. Returns its length; 0: the wish is none that we know;
 * SIZE_MAX: there is no memory for it. */
size_t objects_tell(struct live *live, const char *wish, bool root, char *text, size_t bytes);

#endif
