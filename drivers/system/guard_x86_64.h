/* SPDX-License-Identifier: BSD-2-Clause
 *
 * guard_x86_64 - the instructions of guard.h for x86-64, which it includes.
 *
 * The processor keeps the order of stores by itself (total store order). A string instruction may
 * reorder its own, but not with those behind it.
 */
#ifndef DRIVERS_GUARD_X86_64_H
#define DRIVERS_GUARD_X86_64_H

/* String instructions are the fastest way from GUARD_STRING_BYTES on. The last GUARD_TAIL_BYTES are
 * copied after them, by ordinary stores. */
#define GUARD_STRING_BYTES 2048u
#define GUARD_TAIL_BYTES   64u

#define GUARD_COPIES_IN_ORDER true

/* Copies the bytes that fit into `register`, by a load and a store. */
#define GUARDED_MOVE(load, store, register)                                                        \
    __asm__ goto(GUARDED(load " (%1), " register "\n\t" store " " register ", (%0)")               \
                 :                                                                                 \
                 : "r"(to), "r"(from)                                                              \
                 : "memory", "rax", "xmm0"                                                         \
                 : gone)

static inline bool guard_copy(uint8_t *to, const uint8_t *from, uint32_t bytes)
{
    if (bytes >= GUARD_STRING_BYTES && guard_fast_strings) {
        const uint64_t string_bytes = bytes - GUARD_TAIL_BYTES;
        __asm__ goto("movq %0, %%rdi\n\t"
                     "movq %1, %%rsi\n\t"
                     "movq %2, %%rcx\n\t" GUARDED("rep movsb")
                     :
                     : "r"(to), "r"(from), "r"(string_bytes)
                     : "memory", "rdi", "rsi", "rcx"
                     : gone);
        to += string_bytes;
        from += string_bytes;
        bytes = GUARD_TAIL_BYTES;
    }
    while (bytes > 64) {
        __asm__ goto(GUARDED("movdqu (%1), %%xmm0\n\t"
                             "movdqu 16(%1), %%xmm1\n\t"
                             "movdqu 32(%1), %%xmm2\n\t"
                             "movdqu 48(%1), %%xmm3\n\t"
                             "movdqu %%xmm0, (%0)\n\t"
                             "movdqu %%xmm1, 16(%0)\n\t"
                             "movdqu %%xmm2, 32(%0)\n\t"
                             "movdqu %%xmm3, 48(%0)")
                     :
                     : "r"(to), "r"(from)
                     : "memory", "xmm0", "xmm1", "xmm2", "xmm3"
                     : gone);
        to += 64;
        from += 64;
        bytes -= 64;
    }
    for (; bytes > 16; to += 16, from += 16, bytes -= 16) {
        GUARDED_MOVE("movdqu", "movdqu", "%%xmm0");
    }
    for (; bytes >= 8; to += 8, from += 8, bytes -= 8) {
        GUARDED_MOVE("movq", "movq", "%%rax");
    }
    for (; bytes > 0; to++, from++, bytes--) {
        GUARDED_MOVE("movb", "movb", "%%al");
    }
    return true;
gone:
    return false;
}

static inline bool guard_touch(const uint8_t *at)
{
    __asm__ goto(GUARDED("movb (%0), %%al") : : "r"(at) : "rax" : gone);
    return true;
gone:
    return false;
}

static inline bool guard_compare_swap(uint64_t *at, uint64_t *expected, uint64_t wanted)
{
    __asm__ goto(GUARDED("movq (%1), %%rax\n\t"
                         "lock cmpxchgq %2, (%0)\n\t"
                         "movq %%rax, (%1)")
                 :
                 : "r"(at), "r"(expected), "r"(wanted)
                 : "memory", "rax", "cc"
                 : gone);
    return true;
gone:
    return false;
}

/* One word of a lane: each step can be undone, so that one word that differs is always seen. The
 * factor is odd, and the turn brings its highest bits back to where they matter. */
#define LANE_STEP(at, lane)                                                                        \
    "xorq " at "(%%rsi), " lane "\n\t"                                                             \
    "imulq %3, " lane "\n\t"                                                                       \
    "rolq $29, " lane "\n\t"

/* Four chains that do not wait for each other, since a multiplication takes three cycles. */
static inline bool guard_sum_blocks(const uint8_t *from, uint64_t blocks, uint64_t *lanes)
{
    __asm__ goto("movq %1, %%rsi\n\t"
                 "movq %2, %%rcx\n\t"
                 "movq (%0), %%r8\n\t"
                 "movq 8(%0), %%r9\n\t"
                 "movq 16(%0), %%r10\n\t"
                 "movq 24(%0), %%r11\n\t" GUARDED(
                     "1:\n\t" LANE_STEP("0", "%%r8") LANE_STEP("8", "%%r9") LANE_STEP("16", "%%r10")
                         LANE_STEP("24", "%%r11") "addq $32, %%rsi\n\t"
                                                  "decq %%rcx\n\t"
                                                  "jnz 1b") "\n\t"
                                                            "movq %%r8, (%0)\n\t"
                                                            "movq %%r9, 8(%0)\n\t"
                                                            "movq %%r10, 16(%0)\n\t"
                                                            "movq %%r11, 24(%0)"
                 :
                 : "r"(lanes), "r"(from), "r"(blocks), "r"(UINT64_C(0x9e3779b97f4a7c15))
                 : "memory", "cc", "rsi", "rcx", "r8", "r9", "r10", "r11"
                 : gone);
    return true;
gone:
    return false;
}

#endif
