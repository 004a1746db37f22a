/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The input that has most packets for the output; of several, the first one behind the input that
 * was served last.
 *
 * Source: our choice: longest queue first, as switches with queues at inputs have it.
 */
#include "hardware/forth/scheduler.h"

int forth_arbiter_longest(const struct forth_output_scheduler *scheduler)
{
    uint64_t longest = 0;
    uint32_t most = 0;
    for (uint64_t left = scheduler->eligible; left != 0; left &= left - 1) {
        const uint32_t input = (uint32_t)__builtin_ctzll(left);
        const uint32_t waiting = scheduler->waiting[input];
        longest = waiting > most ? 0 : longest;
        most = waiting > most ? waiting : most;
        longest |= waiting == most ? UINT64_C(1) << input : 0;
    }
    return forth_round_robin(longest, scheduler->last, scheduler->ports);
}
