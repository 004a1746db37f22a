/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The document's arbiter: plain round robin, behind the input that was served last.
 *
 * Source: TR376 3.2.3.
 */
#include "hardware/forth/scheduler.h"

int forth_arbiter_round_robin(const struct forth_output_scheduler *scheduler)
{
    return forth_round_robin(scheduler->eligible, scheduler->last, scheduler->ports);
}
