/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The lowest input first, always.
 *
 * Source: our choice, to compare with.
 */
#include "hardware/forth/scheduler.h"

int forth_arbiter_fixed(const struct forth_output_scheduler *scheduler)
{
    return forth_round_robin(scheduler->eligible, scheduler->ports - 1, scheduler->ports);
}
