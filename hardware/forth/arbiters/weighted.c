/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Round robin in which input 0 keeps its turn for `weight` packets, as long as it has them; all
 * others have turns of one packet.
 *
 * Source: our choice: the document's future work names weighted fairness (5).
 */
#include "hardware/forth/scheduler.h"

int forth_arbiter_weighted(const struct forth_output_scheduler *scheduler)
{
    const bool keeps = scheduler->last == 0 && scheduler->in_row < scheduler->weight &&
                       (scheduler->eligible & 1) != 0;
    return keeps ? 0 : forth_round_robin(scheduler->eligible, scheduler->last, scheduler->ports);
}
