/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/memory.h"

#include <errno.h>
#include <linux/mman.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "drivers/system/guard.h"
#include "drivers/system/system.h"

/* Did the kernel refuse the call without looking at the memory? It was short of memory itself, or a
 * filter forbids the call. Then we copy ourselves, which bears a fault. */
static bool was_refused(ssize_t count)
{
    return count < 0 && errno != EFAULT;
}

static bool copy_through_kernel(uint64_t address, const uint8_t *from, uint32_t bytes)
{
    /* The last bytes are a copy of their own, so that they land last. */
    const uint32_t tail = bytes < 8 ? bytes : 8;
    const struct iovec local[2] = {
        {(void *)(uintptr_t)from, bytes - tail},
        {(void *)(uintptr_t)(from + bytes - tail), tail},
    };
    const struct iovec remote[2] = {
        {(void *)(uintptr_t)address, bytes - tail},
        {(void *)(uintptr_t)(address + bytes - tail), tail},
    };
    const ssize_t count = process_vm_writev(getpid(), local, 2, remote, 2, 0);
    return count == (ssize_t)bytes ||
           (was_refused(count) && guard_copy((uint8_t *)(uintptr_t)address, from, bytes));
}

static bool put(const struct segment *segment, uint32_t offset, const uint8_t *from, uint32_t bytes)
{
    const uint64_t address = segment->address + offset;
    if (segment->may_fault) {
        return copy_through_kernel(address, from, bytes);
    }
    return guard_copy((uint8_t *)(uintptr_t)address, from, bytes);
}

/* Writes prefix and payload, one behind the other, over the segments. */
static bool scatter(const struct nic_move *move)
{
    const uint8_t *payload = move->payload;
    uint32_t prefix_left = move->prefix_bytes;
    const uint8_t *prefix = move->prefix;
    for (uint32_t i = 0; i < move->segment_count; i++) {
        const struct segment *segment = &move->segments[i];
        const uint32_t head = prefix_left < segment->bytes ? prefix_left : segment->bytes;
        if (head > 0) {
            if (!put(segment, 0, prefix, head)) {
                return false;
            }
            prefix += head;
            prefix_left -= head;
        }
        const uint32_t rest = segment->bytes - head;
        if (rest > 0) {
            if (!put(segment, head, payload, rest)) {
                return false;
            }
            payload += rest;
        }
    }
    return true;
}

/* The kernel makes an on-demand page present and writable before the processor's own atomic touches
 * it. If the kernel does not know the advice (before Linux 5.14), or refuses it for now, the atomic
 * itself bears a fault. */
static bool page_present(const struct segment *segment)
{
    if (!segment->may_fault) {
        return true;
    }
    const uint64_t bytes = system_page_bytes(), page = segment->address & ~(bytes - 1);
    return system_advise((void *)(uintptr_t)page, bytes, MADV_POPULATE_WRITE) == 0 ||
           (errno != EFAULT && errno != ENOMEM);
}

/* The processor's compare and swap makes every kind of atomic: the value that a compare expects is
 * the first guess of the value in memory, and a wrong guess returns the right one. */
static bool atomic(struct nic_move *move)
{
    if (!page_present(&move->segments[0])) {
        return false;
    }
    uint64_t *target = (uint64_t *)(uintptr_t)move->segments[0].address;
    uint64_t guess = move->compare;
    for (;;) {
        move->original = guess;
        if (!guard_compare_swap(target, &move->original, nic_atomic_result(move, guess))) {
            return false;
        }
        if (move->original == guess) {
            return true;
        }
        guess = move->original;
    }
}

/* Stores that the processor still holds back become visible to all. The pages of a range that is to
 * be persistent go to the file that is mapped there, and the kernel waits for its device. */
static bool flush(const struct nic_move *move)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!move->flush.persistent || move->flush.range.bytes == 0) {
        return true;
    }
    const uint64_t page = system_page_bytes();
    const uint64_t start = move->flush.range.address & ~(page - 1);
    const uint64_t bytes = move->flush.range.address - start + move->flush.range.bytes;
    return system_msync((void *)(uintptr_t)start, bytes) == 0;
}

/* The prefix of a move has its place in the segments; an atomic has one place of 8 bytes. */
static void move_check(const struct nic_move *move)
{
    uint64_t bytes = 0;
    CHECK(move->segment_count <= COUNT_OF(move->segments));
    for (uint32_t i = 0; i < move->segment_count; i++) {
        bytes += move->segments[i].bytes;
    }
    CHECK(move->kind != NIC_MOVE_SCATTER || bytes >= move->prefix_bytes);
    CHECK(move->kind != NIC_MOVE_ATOMIC || (move->segment_count == 1 && bytes == 8));
}

enum nic_move_result memory_move(struct nic_move *move)
{
    bool good = true;
    INVARIANTS(move_check(move));
    if (LIKELY(move->kind == NIC_MOVE_SCATTER && move->segment_count == 1 &&
               move->prefix_bytes == 0)) { /* Most moves. */
        return put(&move->segments[0], 0, move->payload, move->segments[0].bytes)
                   ? NIC_MOVED
                   : NIC_MOVE_FAULTED;
    }
    switch (move->kind) {
    case NIC_MOVE_NOTHING: break;
    case NIC_MOVE_SCATTER: good = scatter(move); break;
    case NIC_MOVE_ATOMIC: good = atomic(move); break;
    case NIC_MOVE_FLUSH: good = flush(move); break;
    }
    return good ? NIC_MOVED : NIC_MOVE_FAULTED;
}

bool memory_is_there(const struct segment *segments, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *from = (const uint8_t *)(uintptr_t)segments[i].address;
        if (segments[i].bytes > 0 &&
            !(guard_touch(from) && guard_touch(from + segments[i].bytes - 1))) {
            return false;
        }
    }
    return true;
}

bool memory_gather(const struct segment *segments, uint32_t count, uint8_t *to)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct segment *segment = &segments[i];
        void *from = (void *)(uintptr_t)segment->address;
        if (segment->may_fault) {
            const struct iovec local = {to, segment->bytes};
            const struct iovec remote = {from, segment->bytes};
            const ssize_t moved = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
            if (moved != (ssize_t)segment->bytes &&
                !(was_refused(moved) && guard_copy(to, from, segment->bytes))) {
                return false;
            }
        } else if (!guard_copy(to, from, segment->bytes)) {
            return false;
        }
        to += segment->bytes;
    }
    return true;
}
