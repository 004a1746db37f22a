/* SPDX-License-Identifier: BSD-2-Clause
 *
 * box_page - what the box (box/) and the programs in it share: some memory, at one address in
 * each process.
 *
 * Threads: one thread of all programs runs at a time, so that the memory is always that thread's.
 */
#ifndef BASE_BOX_PAGE_H
#define BASE_BOX_PAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/box_ask.h"

/* They lie between the memory that mmap gives out (below) and the stack, and sanitizers' shadows
 * are elsewhere. The second address has the object that libc calls for the time (vdso.c). */
#define BOX_PAGE_ADDRESS UINT64_C(0x7ffff8010000)
#define BOX_VDSO_ADDRESS UINT64_C(0x7ffff8020000)
#define BOX_VDSO_BYTES   4096
#define BOX_PAGE_BYTES   8192

/* Virtual clocks begin at these, in nanoseconds: 2026-01-01 00:00:00 UTC, and 1,000 s after the
 * machine was started. */
#define BOX_REALTIME_NS  UINT64_C(1767225600000000000)
#define BOX_MONOTONIC_NS UINT64_C(1000000000000)

enum {
    BOX_NICS_MAX = 128,
    BOX_CLOCK_COST_NS = 22, /* the least */
};

/* A NIC, in the memory of process `process`. While it counts no packet, a program that polls waits
 * in vain. Of a program that hangs `account` tells what the NIC knows: see box_account. */
struct box_nic {
    int32_t process; /* as the box numbers it */
    uint32_t counters;
    uint64_t address; /* of the first one; 8 bytes each */
    uint64_t account, nic;
};

/* Writes a text, and returns its bytes without the 0 at its end. `address` 0: what the NIC's queue
 * pairs have to do; else the memory region in which the address lies (nothing: in none). All
 * threads of the process are stopped, perhaps within a call of the NIC. */
typedef uint64_t box_account(const void *nic, uint64_t address, char *text, uint64_t bytes);

/* Where a NIC of the machine is. */
struct box_place {
    uint32_t link;           /* The way there (nic_av.link); 0: there was none. */
    uint16_t node, function; /* box_address.h */
};

struct box_page {
    uint64_t clock_ns;      /* of the thread that runs: since the programs began */
    uint64_t grant_ns;      /* It answers itself while its clock is less; 0: never. */
    uint64_t digest;        /* of all calls, in the order in which they were answered */
    uint64_t draws;         /* the generator from which costs are drawn */
    uint64_t clock_reads;   /* by all threads */
    uint32_t jitter;        /* A call costs up to so many thousandths more, as drawn. */
    uint32_t thread;        /* the number of the thread that runs */
    uint32_t clock_cost_ns; /* A clock is read; less than nothing else costs. */
    uint32_t nics;          /* that processes have opened */
    uint64_t due_ns;        /* Another thread, or the machine, is due: it makes a call soon. */
    uint32_t machine;       /* Programs' NICs are the box's (base/box_ask.h): 1; else 0. */
    uint32_t verbs_left;    /* until the thread asks for its turn; 0: it never does */
    uint32_t last_clock;    /* The one that was read last, */
    uint32_t was_another;   /* and whether the one before was another one: 1; else 0. */
    uint64_t zero[2];       /* a time-out that is over at once */
    char path[128];         /* names a file that stands in for another one */
    struct box_nic nic[BOX_NICS_MAX];
    struct box_place place[BOX_ARENAS_MAX]; /* By the numbers of the machine's NICs. */
};
_Static_assert(sizeof(struct box_page) <= BOX_PAGE_BYTES, "processes map no more");

static inline uint64_t page_mixed(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x100000001b3);
    return digest ^ (digest >> 29);
}

/* The cost of a call, of which `base_ns` is the least. */
static inline uint64_t page_cost(struct box_page *page, uint64_t base_ns)
{
    if (page->jitter == 0) {
        return base_ns;
    }
    uint64_t drawn = (page->draws += UINT64_C(0x9e3779b97f4a7c15));
    drawn = (drawn ^ (drawn >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    drawn = (drawn ^ (drawn >> 27)) * UINT64_C(0x94d049bb133111eb);
    return base_ns + base_ns * ((drawn ^ (drawn >> 31)) % page->jitter) / 1000;
}

/* Reads a clock: its cost is charged, and the digest learns of it. Both engines answer by it: the
 * one in the process (vdso.c), and the one that stops every call (call_time.c). Returns the time
 * since the programs began. */
static inline uint64_t page_read_clock(struct box_page *page, uint64_t clock_id)
{
    /* A program that has read one clock again and again, and now reads another, measures it by the
     * first. */
    const uint32_t is_another = clock_id != page->last_clock;
    const uint32_t measures = is_another & ~page->was_another;
    page->last_clock = (uint32_t)clock_id;
    page->was_another = is_another;
    page->clock_reads++;
    page->clock_ns += page_cost(page, measures != 0 ? BOX_CLOCK_COST_NS : page->clock_cost_ns);
    page->digest =
        page_mixed(page->digest, page->clock_ns ^ clock_id << 56 ^ (uint64_t)page->thread << 40);
    return page->clock_ns;
}

/* The time that `clock_id` (CLOCK_...) shows when the programs have run for `ns`. */
static inline uint64_t page_clock_shows(uint64_t clock_id, uint64_t ns)
{
    switch (clock_id) {
    case 0: /* CLOCK_REALTIME */
    case 5: /* CLOCK_REALTIME_COARSE */
    case 8: /* CLOCK_REALTIME_ALARM */
    case 11: /* CLOCK_TAI */ return BOX_REALTIME_NS + ns;
    case 1: /* CLOCK_MONOTONIC */
    case 4: /* CLOCK_MONOTONIC_RAW */
    case 6: /* CLOCK_MONOTONIC_COARSE */
    case 7: /* CLOCK_BOOTTIME */
    case 9: /* CLOCK_BOOTTIME_ALARM */ return BOX_MONOTONIC_NS + ns;
    default: return ns; /* the time that a process or a thread has used */
    }
}

/* A verb ends. True: the thread is to ask for its turn (BOX_ASK_TURN), as seeds want. */
static inline bool page_verb_ended(struct box_page *page)
{
    return page->verbs_left != 0 && --page->verbs_left == 0;
}

/* Tells the box, if there is one, of a NIC. `vdso` is where the process has its object for the time
 * (getauxval(AT_SYSINFO_EHDR)), by which it knows that it is in a box. */
static inline void page_tell_nic(uint64_t vdso, const struct box_nic *nic)
{
    struct box_page *page = (struct box_page *)BOX_PAGE_ADDRESS;
    if (vdso == BOX_VDSO_ADDRESS && page->nics < BOX_NICS_MAX) {
        page->nic[page->nics++] = *nic;
    }
}

/* The NIC goes; its place stays empty. */
static inline void page_forget_nic(uint64_t vdso, int32_t process, const void *nic)
{
    struct box_page *page = (struct box_page *)BOX_PAGE_ADDRESS;
    for (uint32_t i = 0; vdso == BOX_VDSO_ADDRESS && i < page->nics && i < BOX_NICS_MAX; i++) {
        if (page->nic[i].process == process && page->nic[i].nic == (uint64_t)(uintptr_t)nic) {
            page->nic[i] = (struct box_nic){0};
        }
    }
}

#endif
