/* SPDX-License-Identifier: BSD-2-Clause
 *
 * guard_arm64 - the instructions of guard.h for arm64, which it includes.
 *
 * The processor lets others see stores in any order. A barrier (dmb ishst) in front of each store
 * to the last 1 to 8 bytes makes them come after all that this thread has stored before, and in
 * ascending order: also after an earlier packet, if these bytes are all there is.
 */
#ifndef DRIVERS_GUARD_ARM64_H
#define DRIVERS_GUARD_ARM64_H

#define GUARD_COPIES_IN_ORDER false

/* Copies the bytes that fit into `register`, by a load and a store. */
#define GUARDED_MOVE(load, store, register)                                                        \
    __asm__ goto(GUARDED(load " " register ", [%1]\n\t" store " " register ", [%0]")               \
                 :                                                                                 \
                 : "r"(to), "r"(from)                                                              \
                 : "memory", "x9", "v0"                                                            \
                 : gone)

/* The same behind a barrier. */
#define GUARDED_LAST(load, store, register)                                                        \
    __asm__ volatile("dmb ishst" : : : "memory");                                                  \
    GUARDED_MOVE(load, store, register)

/* 1 to 8 bytes: one store if they are 1, 2, 4 or 8. */
static inline bool guard_copy_last(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    if (bytes == 8) {
        GUARDED_LAST("ldr", "str", "x9");
        return true;
    }
    if (bytes & 4) {
        GUARDED_LAST("ldr", "str", "w9");
        to += 4;
        from += 4;
    }
    if (bytes & 2) {
        GUARDED_LAST("ldrh", "strh", "w9");
        to += 2;
        from += 2;
    }
    if (bytes & 1) {
        GUARDED_LAST("ldrb", "strb", "w9");
    }
    return true;
gone:
    return false;
}

static inline bool guard_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    for (; bytes > 64; to += 64, from += 64, bytes -= 64) {
        __asm__ goto(GUARDED("ldp q0, q1, [%1]\n\t"
                             "ldp q2, q3, [%1, #32]\n\t"
                             "stp q0, q1, [%0]\n\t"
                             "stp q2, q3, [%0, #32]")
                     :
                     : "r"(to), "r"(from)
                     : "memory", "v0", "v1", "v2", "v3"
                     : gone);
    }
    for (; bytes > 16; to += 16, from += 16, bytes -= 16) {
        GUARDED_MOVE("ldr", "str", "q0");
    }
    if (bytes > 8) {
        GUARDED_MOVE("ldr", "str", "x9");
        to += 8;
        from += 8;
        bytes -= 8;
    }
    return guard_copy_last(to, from, bytes);
gone:
    return false;
}

static inline bool guard_touch(const uint8_t *at)
{
    __asm__ goto(GUARDED("ldrb w9, [%0]") : : "r"(at) : "x9" : gone);
    return true;
gone:
    return false;
}

/* As Linux' own: a release in the store and a full barrier behind it. The pair of exclusives is of
 * the first arm64, which every processor has. */
static inline bool guard_compare_swap(uint64_t *at, uint64_t *expected, uint64_t wanted)
{
    __asm__ goto("ldr x9, [%1]\n\t" GUARDED("651:\n\t"
                                            "ldxr x10, [%0]\n\t"
                                            "cmp x10, x9\n\t"
                                            "b.ne 652f\n\t"
                                            "stlxr w11, %2, [%0]\n\t"
                                            "cbnz w11, 651b\n"
                                            "652:") "\n\t"
                                                    "dmb ish\n\t"
                                                    "str x10, [%1]"
                 :
                 : "r"(at), "r"(expected), "r"(wanted)
                 : "memory", "x9", "x10", "x11", "cc"
                 : gone);
    return true;
gone:
    return false;
}

/* One word of a lane: each step can be undone, so that one word that differs is always seen. The
 * factor is odd, and the turn brings its highest bits back to where they matter. */
#define LANE_STEP(at, lane)                                                                        \
    "ldr x15, [x13, " at "]\n\t"                                                                   \
    "eor " lane ", " lane ", x15\n\t"                                                              \
    "mul " lane ", " lane ", %3\n\t"                                                               \
    "ror " lane ", " lane ", #35\n\t"

/* Four chains that do not wait for each other, since a multiplication takes some cycles. */
static inline bool guard_sum_blocks(const uint8_t *from, uint64_t blocks, uint64_t *lanes)
{
    __asm__ goto("mov x13, %1\n\t"
                 "mov x14, %2\n\t"
                 "ldp x9, x10, [%0]\n\t"
                 "ldp x11, x12, [%0, #16]\n\t" GUARDED(
                     "1:\n\t" LANE_STEP("#0", "x9") LANE_STEP("#8", "x10") LANE_STEP("#16", "x11")
                         LANE_STEP("#24", "x12") "add x13, x13, #32\n\t"
                                                 "subs x14, x14, #1\n\t"
                                                 "b.ne 1b") "\n\t"
                                                            "stp x9, x10, [%0]\n\t"
                                                            "stp x11, x12, [%0, #16]"
                 :
                 : "r"(lanes), "r"(from), "r"(blocks), "r"(UINT64_C(0x9e3779b97f4a7c15))
                 : "memory", "cc", "x9", "x10", "x11", "x12", "x13", "x14", "x15"
                 : gone);
    return true;
gone:
    return false;
}

#endif
