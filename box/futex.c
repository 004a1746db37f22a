/* SPDX-License-Identifier: BSD-2-Clause
 *
 * futex - threads that wait for a word of memory, and those who wake them: futex(2), without the
 * kernel.
 *
 * A word is known by its process and address, or, in memory that processes share, by its file and
 * place there. The thread that waited first is woken first.
 */
#include <errno.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "box/calls.h"

enum {
    WAKE_NS = 1500,
    OPERATION = 127, /* without its flags */
};

struct key {
    uint64_t space, address;
};

/* The file that is mapped at the address, if other processes may map it, too. */
static bool shared_key(const struct thread *thread, uint64_t address, struct key *key)
{
    char line[600];
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)thread->process->pid);
    FILE *file = fopen(line, "re");
    bool is_found = false;
    while (file != NULL && !is_found && fgets(line, sizeof(line), file) != NULL) {
        unsigned long from, to, offset, inode;
        unsigned major, minor;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu", &from, &to, rights, &offset, &major, &minor,
                   &inode) == 7 &&
            address >= from && address < to) {
            is_found = rights[3] == 's';
            *key = (struct key){1ull << 63 | (uint64_t)major << 52 | (uint64_t)minor << 40 | inode,
                                offset + address - from};
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return is_found;
}

static struct key key_of(const struct thread *thread, uint64_t address, bool is_private)
{
    struct key key;
    if (is_private || !shared_key(thread, address, &key)) {
        key = (struct key){(uint64_t)thread->process->pid, address};
    }
    return key;
}

/* The one that waits longest of those that came after number `after`. */
static struct thread *first_waiter(const struct box *box, struct key key, uint32_t bits,
                                   uint64_t after)
{
    struct thread *first = NULL;
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        const struct wait *wait = &thread->wait;
        if (thread->state == THREAD_WAITS && wait->kind == WAIT_FUTEX &&
            wait->futex_space == key.space && wait->futex_address == key.address &&
            (wait->futex_bits & bits) != 0 && wait->futex_order > after &&
            (first == NULL || wait->futex_order < first->wait.futex_order)) {
            first = thread;
        }
    }
    return first;
}

/* Like Linux, it wakes one if it is to wake none. */
static int wake(struct box *box, struct key key, uint32_t bits, int count)
{
    int woken = 0;
    const uint64_t now_ns = box->running != NULL ? box->page->clock_ns : box->now_ns;
    struct thread *thread;
    while ((woken == 0 || woken < count) && (thread = first_waiter(box, key, bits, 0)) != NULL) {
        schedule_finish(box, thread, now_ns + WAKE_NS, 0);
        woken++;
    }
    return woken;
}

static int64_t wait_for(struct box *box, struct thread *thread, struct key key, bool has_bits,
                        bool *waits)
{
    const uint64_t *argument = thread->call.argument;
    const uint32_t bits = has_bits ? (uint32_t)argument[5] : UINT32_MAX;
    uint32_t value;
    struct timespec time = {0};
    if (argument[3] != 0 && !tracee_read(thread->id, argument[3], &time, sizeof(time))) {
        return -EFAULT;
    }
    if (time.tv_sec < 0 || time.tv_nsec < 0 || time.tv_nsec >= 1000000000 || bits == 0) {
        return -EINVAL;
    }
    if (!tracee_read(thread->id, argument[0], &value, sizeof(value))) {
        return -EFAULT;
    }
    if (value != (uint32_t)argument[2]) {
        return -EAGAIN;
    }
    uint64_t deadline_ns = NEVER;
    if (argument[3] != 0) {
        const uint64_t ns = (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
        const uint64_t begins =
            argument[1] & FUTEX_CLOCK_REALTIME ? BOX_REALTIME_NS : BOX_MONOTONIC_NS;
        /* FUTEX_WAIT has a span, FUTEX_WAIT_BITSET a time. */
        deadline_ns = !has_bits ? box->page->clock_ns + ns : ns > begins ? ns - begins : 0;
    }
    *waits = true;
    thread->wait = (struct wait){.kind = WAIT_FUTEX,
                                 .deadline_ns = deadline_ns,
                                 .late = -ETIMEDOUT,
                                 .futex_space = key.space,
                                 .futex_address = key.address,
                                 .futex_order = ++box->futex_order,
                                 .futex_bits = bits};
    return 0;
}

/* Those that are moved wait behind those that wait there already. */
static int64_t requeue(struct box *box, struct thread *thread, struct key key, bool is_private)
{
    const uint64_t *argument = thread->call.argument;
    const int to_wake = (int)argument[2], to_move = (int)argument[3];
    if (to_wake < 0 || to_move < 0) {
        return -EINVAL;
    }
    const struct key to = key_of(thread, argument[4], is_private);
    const bool moves = to.space != key.space || to.address != key.address;
    const int woken = to_wake > 0 ? wake(box, key, UINT32_MAX, to_wake) : 0;
    int moved = 0;
    uint64_t after = 0;
    struct thread *waiter;
    while (moved < to_move && (waiter = first_waiter(box, key, UINT32_MAX, after)) != NULL) {
        after = waiter->wait.futex_order;
        waiter->wait.futex_space = to.space;
        waiter->wait.futex_address = to.address;
        waiter->wait.futex_order = moves ? ++box->futex_order : after;
        moved++;
    }
    return woken + moved;
}

static uint32_t changed(uint32_t old, int operation, uint32_t by)
{
    switch (operation) {
    case FUTEX_OP_SET: return by;
    case FUTEX_OP_ADD: return old + by;
    case FUTEX_OP_OR: return old | by;
    case FUTEX_OP_ANDN: return old & ~by;
    default: return old ^ by;
    }
}

static bool compares(int32_t old, int comparison, int32_t with)
{
    switch (comparison) {
    case FUTEX_OP_CMP_EQ: return old == with;
    case FUTEX_OP_CMP_NE: return old != with;
    case FUTEX_OP_CMP_LT: return old < with;
    case FUTEX_OP_CMP_LE: return old <= with;
    case FUTEX_OP_CMP_GT: return old > with;
    default: return old >= with;
    }
}

/* FUTEX_WAKE_OP: changes the second word, and wakes its waiters if it was as the operation says. */
static int64_t wake_and_change(struct box *box, struct thread *thread, struct key key,
                               bool is_private)
{
    const uint64_t *argument = thread->call.argument;
    const uint32_t encoded = (uint32_t)argument[5];
    const int operation = (int)(encoded >> 28 & 7), comparison = (int)(encoded >> 24 & 15);
    const int32_t by = (int32_t)(encoded << 8) >> 20, with = (int32_t)(encoded << 20) >> 20;
    const uint32_t operand = encoded >> 31 ? 1u << (by & 31) : (uint32_t)by;
    uint32_t old;
    if (!tracee_read(thread->id, argument[4], &old, sizeof(old))) {
        return -EFAULT;
    }
    const uint32_t now = changed(old, operation, operand);
    if (!tracee_write(thread->id, argument[4], &now, sizeof(now))) {
        return -EFAULT;
    }
    int woken = wake(box, key, UINT32_MAX, (int)argument[2]);
    if (compares((int32_t)old, comparison, with)) {
        woken += wake(box, key_of(thread, argument[4], is_private), UINT32_MAX, (int)argument[3]);
    }
    return woken;
}

int64_t futex_call(struct box *box, struct thread *thread, bool *waits)
{
    const uint64_t *argument = thread->call.argument;
    const int operation = (int)argument[1] & OPERATION;
    const bool is_private = (argument[1] & FUTEX_PRIVATE_FLAG) != 0;
    const bool has_second =
        operation == FUTEX_REQUEUE || operation == FUTEX_CMP_REQUEUE || operation == FUTEX_WAKE_OP;
    const struct key key = key_of(thread, argument[0], is_private);
    uint32_t value;
    *waits = false;
    if (argument[0] % sizeof(value) != 0 || (has_second && argument[4] % sizeof(value) != 0)) {
        return -EINVAL;
    }
    switch (operation) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
        return wait_for(box, thread, key, operation == FUTEX_WAIT_BITSET, waits);
    case FUTEX_WAKE: return wake(box, key, UINT32_MAX, (int)argument[2]);
    case FUTEX_WAKE_BITSET:
        return (uint32_t)argument[5] == 0 ? -EINVAL
                                          : wake(box, key, (uint32_t)argument[5], (int)argument[2]);
    case FUTEX_CMP_REQUEUE:
        if (!tracee_read(thread->id, argument[0], &value, sizeof(value))) {
            return -EFAULT;
        }
        return value != (uint32_t)argument[5] ? -EAGAIN : requeue(box, thread, key, is_private);
    case FUTEX_REQUEUE: return requeue(box, thread, key, is_private);
    case FUTEX_WAKE_OP: return wake_and_change(box, thread, key, is_private);
    default:
        box_doubt(box,
                  "futex operation %d is not offered (priority inheritance): thread %d got ENOSYS",
                  operation, thread->number);
        return -ENOSYS;
    }
}

/* A robust mutex of a dead thread says so in its word; a thread that waits for it, and did not know
 * that, is told. */
static void wake_of_dead_owner(struct box *box)
{
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        uint32_t value;
        if (thread->state == THREAD_WAITS && thread->wait.kind == WAIT_FUTEX &&
            tracee_read(thread->id, thread->call.argument[0], &value, sizeof(value)) &&
            (value & ~thread->call.argument[2] & FUTEX_OWNER_DIED) != 0) {
            schedule_finish(box, thread, box->now_ns + WAKE_NS, 0);
        }
    }
}

void futex_thread_ended(struct box *box, struct thread *thread)
{
    if (thread->clear_address != 0) {
        wake(box, (struct key){(uint64_t)thread->process->pid, thread->clear_address}, UINT32_MAX,
             INT32_MAX);
    }
    wake_of_dead_owner(box);
}
