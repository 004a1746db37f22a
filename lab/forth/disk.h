/* SPDX-License-Identifier: BSD-2-Clause
 *
 * disk - a block device over the NIC: one node asks, the other one has the disk.
 *
 * Purpose    Storage workloads as the document ran them: requests and completions are small remote
 *            writes with notifications, data are remote writes of whole pages.
 * Inputs     forth_disk_read, forth_disk_write: synchronous, as a program with direct I/O waits.
 * Ownership  The disk owns its pages and its machine.
 * Time       Of the bus and the links; the disk itself takes none.
 * Limits     FORTH_DISK_REQUEST_PAGES a request.
 * Source     TR376 4.1, for what was run. The protocol is our choice; so is that the driver cuts
 *            pages: one is one packet between two nodes, nine through the switch.
 */
#ifndef LAB_FORTH_DISK_H
#define LAB_FORTH_DISK_H

#include "lab/forth/driver.h"
#include "lab/forth/machine.h"

#define FORTH_DISK_PAGE_BYTES    4096u
#define FORTH_DISK_REQUEST_PAGES 256u

enum forth_disk_operation {
    FORTH_DISK_READ = 1,
    FORTH_DISK_WRITE = 2,
    FORTH_DISK_PUSH = 3, /* To the initiator: the target is ready for the data of a write. */
    FORTH_DISK_DONE = 4,
    FORTH_DISK_SENT = 5, /* To the target: so is the data that it waits for. */
};

/* The message that both write into each other's mailboxes: 64 bytes, little-endian words. */
struct forth_disk_message {
    uint64_t operation, page, pages, tag, spare[4];
};

struct forth_disk_side {
    struct forth_disk *disk;
    struct forth_driver driver;
    uint32_t arrived_qwords; /* QWords that have arrived of the data that is expected. */
    struct forth_disk_message sent, asked;
};

struct forth_disk {
    struct forth_machine machine;
    uint64_t page_count;
    uint8_t **pages; /* NULL: never written, reads as zeros. */
    struct forth_disk_side initiator, target;
    bool done;
    bool dead;                 /* A request was never answered: no more are sent. */
    uint64_t tag, asked_pages; /* The request that is under way. */
    uint64_t requests, bytes_read, bytes_written, wrong;
};

void forth_disk_open(struct forth_disk *disk, struct lab_run *run, bool switched,
                     uint64_t page_count);
/* True: every request was answered, all at the right address. */
void forth_disk_close(struct forth_disk *disk);

/* Moves `pages` pages from `page` on, which lie within the disk. Runs the world until that is done;
 * false if it never is. */
bool forth_disk_read(struct forth_disk *disk, uint64_t page, uint32_t pages, void *bytes);
bool forth_disk_write(struct forth_disk *disk, uint64_t page, uint32_t pages, const void *bytes);

#endif
