/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_extent - memory of this process that its peers map: the owner's side.
 *
 * A peer that has spent more time on accesses through the kernel than a mapping costs asks for the
 * memory of a region (shm_view.c). Memory that is shared already (MAP_SHARED) has a file, of which
 * the peer gets a descriptor. Private memory has none: the caller exchanges its pages first
 * (backing.h), when the program cannot write into them, and exchanges them back before the region
 * is given back. Such a range of addresses is an extent. Its number stands on the board, with each
 * region that lies within: a peer that maps the extent looks at the board for each access, as
 * before, and reaches the memory by a copy of its own in place of the kernel's.
 *
 * Pages behind a region are exchanged only while no peer is in there: its entry is off the board,
 * and windows that were open are closed. So a peer that finds the number on the board
 * in its window writes where the program reads.
 */
#include <sys/prctl.h>

#include "drivers/shm/shm_internal.h"
#include "drivers/system/backing.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/lines.h"
#include "drivers/system/mapping.h"
#include "drivers/system/system.h"

/* Private memory that is exchanged at a time: a child of fork makes it be exchanged back. */
#define PRIVATE_BYTES_MAX (UINT64_C(256) << 20)
/* Memory that was exchanged, and back, stays a mapping of its own, of which a process may have some
 * ten thousands. */
#define EXCHANGES_MAX 4096

static struct shm_extent *find_numbered(struct shm_port *port, uint64_t number)
{
    for (uint32_t i = 0; i < port->extent_count; i++) {
        if (port->extents[i].number == number) {
            return &port->extents[i];
        }
    }
    return NULL;
}

static bool covers(const struct shm_extent *extent, uint64_t start, uint64_t bytes)
{
    return start >= extent->start && bytes <= extent->bytes &&
           start - extent->start <= extent->bytes - bytes;
}

/* NULL: no room. The descriptor is the extent's. */
static struct shm_extent *add(struct shm_port *port, const struct shm_extent *extent)
{
    CHECK(extent->fd >= 0 && extent->bytes > 0);
    if (port->extent_count == SHM_EXTENTS) {
        return NULL;
    }
    struct shm_extent *added = &port->extents[port->extent_count++];
    *added = *extent;
    added->number = ++port->extent_numbers;
    return added;
}

/* Peers that map it keep its memory until they hear that it is gone. */
static void tell_gone(const struct shm_port *port, const struct shm_extent *extent)
{
    const struct shm_offer gone = {.mark = shm_mark_of(sizeof(gone)), .extent = extent->number};
    for (uint32_t i = 0; i < port->inbound_count; i++) {
        (void)!local_send(port->inbound[i]->socket, &gone, sizeof(gone), NULL, 0);
    }
}

static void drop(struct shm_port *port, struct shm_extent *extent)
{
    if (extent->offered) {
        tell_gone(port, extent);
    }
    descriptor_close(extent->fd);
    *extent = port->extents[--port->extent_count];
}

/* -- On the board -------------------------------------------------------------------------------*/

static void attach(struct shm_board_region *entry, struct shm_extent *extent)
{
    CHECK(atomic_load_explicit(&entry->extent, memory_order_relaxed) == 0);
    extent->regions++;
    atomic_store_explicit(&entry->extent, extent->number, memory_order_release);
}

static void leave(struct shm_port *port, struct shm_board_region *entry)
{
    const uint64_t number = atomic_load_explicit(&entry->extent, memory_order_relaxed);
    struct shm_extent *extent = number == 0 ? NULL : find_numbered(port, number);
    atomic_store_explicit(&entry->extent, 0, memory_order_relaxed);
    if (extent == NULL) {
        return;
    }
    CHECK(extent->regions > 0);
    extent->regions--;
    if (extent->regions == 0 && !extent->exchanged) {
        drop(port, extent);
    }
}

void shm_port_withdraw_region(struct shm_port *port, const struct region *region)
{
    struct shm_board_region *entry;
    while ((entry = shm_board_region(port->board, region->key)) != NULL) {
        atomic_store_explicit(&entry->key, 0, memory_order_release);
        leave(port, entry);
    }
    shm_note_withdrawal(port);
}

/* -- Memory that is shared already --------------------------------------------------------------*/

static bool maps_the_same(const struct shm_extent *extent, const struct mapping *mapping)
{
    return extent->device == mapping->device && extent->inode == mapping->inode &&
           extent->start - mapping->start == extent->offset - mapping->offset;
}

/* An extent that has the memory, and stands for what is mapped there now. */
static struct shm_extent *find_known(struct shm_port *port, const struct mapping *mapping,
                                     uint64_t start, uint64_t bytes)
{
    for (uint32_t i = 0; i < port->extent_count; i++) {
        struct shm_extent *extent = &port->extents[i];
        if (covers(extent, start, bytes) && maps_the_same(extent, mapping)) {
            return extent;
        }
    }
    return NULL;
}

static struct shm_extent *extent_of_file(struct shm_port *port, const struct mapping *mapping)
{
    const int fd = mapping_descriptor(mapping);
    struct shm_extent *extent =
        fd < 0 ? NULL
               : add(port, &(struct shm_extent){.start = mapping->start,
                                                .bytes = mapping->end - mapping->start,
                                                .offset = mapping->offset,
                                                .device = mapping->device,
                                                .inode = mapping->inode,
                                                .fd = fd});
    if (extent == NULL) {
        descriptor_close(fd);
    }
    return extent;
}

/* Pages that were exchanged for another region, with which this one shares some. */
static bool is_exchanged(const struct shm_port *port, const struct mapping *mapping)
{
    for (uint32_t i = 0; i < port->extent_count; i++) {
        const struct shm_extent *extent = &port->extents[i];
        if (extent->exchanged && extent->device == mapping->device &&
            extent->inode == mapping->inode) {
            return true;
        }
    }
    return false;
}

/* The extent of the region's memory, if it is shared. NULL: there is none, which is counted unless
 * the memory is `*private`. */
static struct shm_extent *find_shared(struct shm_port *port, uint64_t start, uint64_t bytes,
                                      bool *private)
{
    struct mapping mapping;
    const bool there = mapping_find(start, &mapping);
    const bool whole = there && mapping_has(&mapping, start, bytes);
    struct shm_extent *extent = whole ? find_known(port, &mapping, start, bytes) : NULL;
    *private = extent == NULL && there && (!mapping.shared || is_exchanged(port, &mapping));
    if (extent == NULL && !*private) {
        extent = whole ? extent_of_file(port, &mapping) : NULL;
        port->extent.refused[SHM_REFUSED_KIND] += extent == NULL;
        port->extent.shared += extent != NULL;
    }
    return extent;
}

/* -- Being asked --------------------------------------------------------------------------------*/

/* A descriptor must not give a peer what the kernel would not: it could read this process's memory
 * as well. */
static bool may_reach_us(const struct shm_inbound *inbound)
{
    char scope[8] = "";
    (void)lines_read(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope));
    return inbound->pid > 0 && (scope[0] == '\0' || scope[0] == '0') && prctl(PR_GET_DUMPABLE) == 1;
}

static void offer(struct shm_port *port, const struct shm_inbound *inbound,
                  struct shm_extent *extent)
{
    const struct shm_offer offer = {.mark = shm_mark_of(sizeof(offer)),
                                    .extent = extent->number,
                                    .start = extent->start,
                                    .bytes = extent->bytes,
                                    .offset = extent->offset};
    extent->offered = true;
    port->extent.offered += local_send(inbound->socket, &offer, sizeof(offer), &extent->fd, 1);
}

void shm_extent_asked(struct shm_port *port, const struct shm_inbound *inbound, uint32_t key)
{
    struct shm_board_region *entry = key == 0 ? NULL : shm_board_region(port->board, key);
    if (entry == NULL || !port->lends) {
        return;
    }
    if (!may_reach_us(inbound)) {
        port->extent.refused[SHM_REFUSED_PEER]++;
        return;
    }
    bool private = false;
    const uint64_t number = atomic_load_explicit(&entry->extent, memory_order_relaxed);
    struct shm_extent *extent = number != 0
                                    ? find_numbered(port, number)
                                    : find_shared(port, entry->memory, entry->bytes, &private);
    if (extent == NULL) {
        port->wanted = private ? key : port->wanted;
        return;
    }
    if (number == 0) {
        attach(entry, extent);
    }
    offer(port, inbound, extent);
}

uint32_t shm_port_wanted(const struct shm_port *port)
{
    return port->wanted;
}

/* -- Private memory -----------------------------------------------------------------------------*/

/* Regions that lie in the same pages: more of them are not worth it. */
#define HIDDEN_MAX 64

/* Entries that are off the board while the pages behind their memory are exchanged. */
struct hidden {
    struct shm_board_region *entry[HIDDEN_MAX];
    uint32_t key[HIDDEN_MAX];
    uint32_t count;
};

static bool overlaps(const struct shm_board_region *entry, uint64_t start, uint64_t bytes)
{
    const uint64_t memory = atomic_load_explicit(&entry->memory, memory_order_relaxed);
    const uint64_t its = atomic_load_explicit(&entry->bytes, memory_order_relaxed);
    return atomic_load_explicit(&entry->key, memory_order_relaxed) != 0 && memory < start + bytes &&
           start < memory + its;
}

static void show(const struct hidden *hidden)
{
    for (uint32_t i = 0; i < hidden->count; i++) {
        atomic_store_explicit(&hidden->entry[i]->key, hidden->key[i], memory_order_release);
    }
}

/* False: there are too many, or a peer does not come out of the memory; all are shown. Entries that
 * left the board before this were withdrawn by somebody who noted that. */
static bool hide(struct shm_port *port, uint64_t start, uint64_t bytes, struct hidden *hidden)
{
    bool all = true;
    hidden->count = 0;
    for (uint32_t i = 0; i < SHM_BOARD_REGIONS; i++) {
        struct shm_board_region *entry = &port->board->regions[i];
        if (!overlaps(entry, start, bytes)) {
            continue;
        }
        if (hidden->count == HIDDEN_MAX) {
            all = false;
            break;
        }
        hidden->entry[hidden->count] = entry;
        hidden->key[hidden->count++] = atomic_load_explicit(&entry->key, memory_order_relaxed);
        atomic_store_explicit(&entry->key, 0, memory_order_release);
    }
    if (hidden->count > 0) {
        shm_note_withdrawal(port);
    }
    if (!all || !shm_port_settled(port, port->withdrawals)) {
        show(hidden);
        return false;
    }
    return true;
}

static struct shm_extent *exchange(struct shm_port *port, uint64_t start, uint64_t bytes)
{
    struct stat file;
    const int fd = backing_share(start, bytes);
    if (fd < 0 || system_status(fd, &file) != 0) {
        CHECK(fd < 0 || backing_return(start, bytes, fd));
        descriptor_close(fd);
        return NULL;
    }
    port->extent.exchanged++;
    port->exchanged_bytes += bytes;
    return add(port, &(struct shm_extent){.start = start,
                                          .bytes = bytes,
                                          .device = file.st_dev,
                                          .inode = file.st_ino,
                                          .fd = fd,
                                          .exchanged = true});
}

static enum shm_refusal judge_private(const struct shm_port *port, uint64_t start, uint64_t bytes)
{
    if (port->extent_count == SHM_EXTENTS || port->extent.exchanged == EXCHANGES_MAX ||
        bytes > PRIVATE_BYTES_MAX - port->exchanged_bytes) {
        return SHM_REFUSED_LIMIT;
    }
    return backing_is_ordinary(start, bytes) ? SHM_REFUSED_NOT : SHM_REFUSED_KIND;
}

/* Whole pages around the region: its neighbours there come along. Those that were exchanged for
 * another region are exchanged once more, with the others. */
static enum shm_refusal lend(struct shm_port *port, const struct shm_board_region *region)
{
    const uint64_t memory = atomic_load_explicit(&region->memory, memory_order_relaxed);
    const uint64_t end = memory + atomic_load_explicit(&region->bytes, memory_order_relaxed);
    const uint64_t page = system_page_bytes(), start = memory & ~(page - 1);
    const uint64_t bytes = ((end + page - 1) & ~(page - 1)) - start;
    if (!shm_port_take_back(port, start, bytes, false)) {
        return SHM_REFUSED_BUSY;
    }
    const enum shm_refusal refusal = judge_private(port, start, bytes);
    struct hidden hidden;
    if (refusal != SHM_REFUSED_NOT) {
        return refusal;
    }
    if (!hide(port, start, bytes, &hidden)) {
        return SHM_REFUSED_BUSY;
    }
    struct shm_extent *extent = exchange(port, start, bytes);
    for (uint32_t i = 0; extent != NULL && i < hidden.count; i++) {
        struct shm_board_region *entry = hidden.entry[i];
        if (covers(extent, entry->memory, entry->bytes)) {
            leave(port, entry);
            attach(entry, extent);
        }
    }
    show(&hidden);
    return extent == NULL ? SHM_REFUSED_LIMIT : SHM_REFUSED_NOT;
}

void shm_port_lend(struct shm_port *port, uint32_t key, bool alone)
{
    struct shm_board_region *entry = key == 0 ? NULL : shm_board_region(port->board, key);
    if (port->wanted == key) {
        port->wanted = 0;
    }
    if (entry == NULL || !port->lends ||
        atomic_load_explicit(&entry->extent, memory_order_relaxed) != 0) {
        return;
    }
    bool private;
    struct shm_extent *shared = find_shared(port, entry->memory, entry->bytes, &private);
    if (shared != NULL) {
        attach(entry, shared);
    } else if (private) {
        const enum shm_refusal refusal = alone ? lend(port, entry) : SHM_REFUSED_THREADS;
        port->extent.refused[refusal]++;
    }
}

/* Its regions are reached through the kernel from now on. False: a peer is in there. */
static bool take_back(struct shm_port *port, struct shm_extent *extent)
{
    struct hidden hidden;
    if (!hide(port, extent->start, extent->bytes, &hidden)) {
        return false;
    }
    const bool returned = backing_return(extent->start, extent->bytes, extent->fd);
    for (uint32_t i = 0; returned && i < hidden.count; i++) {
        if (atomic_load_explicit(&hidden.entry[i]->extent, memory_order_relaxed) ==
            extent->number) {
            atomic_store_explicit(&hidden.entry[i]->extent, 0, memory_order_relaxed);
        }
    }
    if (returned) {
        port->extent.returned++;
        port->exchanged_bytes -= extent->bytes;
        drop(port, extent);
    }
    show(&hidden);
    return true;
}

bool shm_port_has_lent(const struct shm_port *port)
{
    return port->exchanged_bytes > 0;
}

bool shm_port_take_back(struct shm_port *port, uint64_t start, uint64_t bytes, bool idle)
{
    bool all = true;
    for (uint32_t i = port->extent_count; i-- > 0;) {
        struct shm_extent *extent = &port->extents[i];
        if (extent->exchanged && (!idle || extent->regions == 0) && extent->start < start + bytes &&
            start < extent->start + extent->bytes) {
            all &= take_back(port, extent);
        }
    }
    return all;
}

/* -- The whole ----------------------------------------------------------------------------------*/

void shm_port_set_lending(struct shm_port *port, bool lends)
{
    port->lends = lends;
}

const struct shm_extent_counters *shm_port_extents(const struct shm_port *port)
{
    return &port->extent;
}

void shm_extents_close(struct shm_port *port)
{
    while (port->extent_count > 0) {
        drop(port, &port->extents[0]);
    }
}
