/* SPDX-License-Identifier: BSD-2-Clause
 *
 * barren - a thread that only reads clocks, or asks and finds nothing, gets ahead faster and
 * faster.
 *
 * Programs poll a completion queue until something comes, and look at the clock now and then. If
 * nothing ever comes, virtual time would creep: a poll costs the machine more than it costs in
 * virtual time. A clock may be read late, so the cost of a reading doubles again and again while no
 * NIC counts a packet and the thread does nothing else. So a hang comes to its timers, and to its
 * report. Polls of a machine's NIC have another way to get ahead (call_nic.c), since its next event
 * is known: clocks between them cost what they cost.
 */
#include <sys/syscall.h>

#include "box/internal.h"

enum {
    BARREN_READS = 100000, /* clocks that are read in vain, before costs grow */
    READS_TO_DOUBLE = 4000,
    READS_OF_CALL = 400, /* the worth of a call that finds nothing, */
    READS_OF_YIELD = 40, /* of one that lets others go first */
    DOUBLINGS_MAX =
        13, /* A clock costs 0.2 ms then; nonic takes a poller for one up to 1 ms for 16 rounds. */
    GRANT_NS = 1000000, /* between two looks at a thread that only reads clocks, */
    GRANT_READS = 64,   /* or its readings */
    VAIN_POLLS = 1000,
};

static uint64_t nic_work(const struct box *box)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < box->page->nics && i < BOX_NICS_MAX; i++) {
        uint64_t counters[512];
        const uint32_t count = box->page->nic[i].counters;
        if (count <= COUNT_OF(counters) &&
            tracee_read(box->page->nic[i].process, box->page->nic[i].address, counters,
                        count * sizeof(counters[0]))) {
            for (uint32_t counter = 0; counter < count; counter++) {
                sum += counters[counter];
            }
        }
    }
    return sum;
}

static unsigned doublings(const struct thread *thread)
{
    if (thread->barren < BARREN_READS) {
        return 0;
    }
    const uint64_t doubled = (thread->barren - BARREN_READS) / READS_TO_DOUBLE;
    return doubled < DOUBLINGS_MAX ? (unsigned)doubled : DOUBLINGS_MAX;
}

static void set_cost(struct box *box, const struct thread *thread)
{
    box->page->clock_cost_ns = (uint32_t)BOX_CLOCK_COST_NS << doublings(thread);
}

void barren_begin(struct box *box, struct thread *thread)
{
    thread->reads_before = box->page->clock_reads;
    box->page->last_clock = thread->last_clock;
    box->page->was_another = thread->was_another;
    set_cost(box, thread);
}

void barren_end(struct box *box, struct thread *thread)
{
    thread->last_clock = box->page->last_clock;
    thread->was_another = box->page->was_another;
    thread->barren += box->page->clock_reads - thread->reads_before;
    thread->reads_before = box->page->clock_reads;
    if (thread->barren < BARREN_READS) {
        return;
    }
    const uint64_t work = nic_work(box);
    if (work != box->nic_work) {
        box->nic_work = work;
        box->progress++;
        box->deeds++;
        thread->barren = 0;
    }
}

void barren_found_nothing(struct thread *thread)
{
    thread->barren += thread->call.number == SYS_sched_yield ? READS_OF_YIELD : READS_OF_CALL;
}

void barren_polled(struct box *box, struct thread *thread)
{
    const uint64_t polls = thread->vain_polls;
    barren_over(box, thread);
    thread->vain_polls = polls + 1;
}

void barren_over(struct box *box, struct thread *thread)
{
    thread->barren = 0;
    thread->vain_polls = 0;
    thread->reads_before = box->page->clock_reads;
    set_cost(box, thread);
}

bool barren_is_idle(const struct box *box, const struct thread *thread)
{
    /* A program without a NIC that reads clocks for long only lets time go by. */
    return box->page->nics > 0 &&
           (doublings(thread) == DOUBLINGS_MAX || thread->vain_polls >= VAIN_POLLS);
}

uint64_t barren_cost(const struct thread *thread, uint64_t cost_ns)
{
    return cost_ns << doublings(thread) / 2;
}

uint64_t barren_grant_ns(const struct thread *thread)
{
    const uint64_t reads_ns = (uint64_t)GRANT_READS * BOX_CLOCK_COST_NS << doublings(thread);
    return reads_ns > GRANT_NS ? reads_ns : GRANT_NS;
}
