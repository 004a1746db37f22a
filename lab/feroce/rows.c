/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rows about every world of FERoCE (A37).
 */
#include "lab/feroce/rows.h"

void feroce_sums_add(struct feroce_sums *sums, const struct feroce_machine *machine)
{
    const struct feroce_receiver *receiver = &machine->receiver;
    sums->compared += receiver->compared;
    sums->wrong += receiver->wrong;
    sums->icrcs += receiver->icrcs;
    sums->bad_icrcs += receiver->bad_icrcs;
}

/* A load without an end of its own has to be acknowledged whole: else no rate is one. */
static void expect_done(struct lab_run *run, const struct feroce_machine *machine,
                        const struct feroce_result *result)
{
    if (result->done || machine->load.until_ps != 0) {
        return;
    }
    uint64_t fewest = UINT64_MAX;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        fewest = machine->nodes[i].messages < fewest ? machine->nodes[i].messages : fewest;
    }
    lab_fail(run, "a board had %llu of its %u messages acknowledged; %llu packets were lost",
             (unsigned long long)fewest, machine->load.messages, (unsigned long long)result->lost);
}

struct feroce_result feroce_run_in(struct lab_run *run, struct feroce_sums *sums,
                                   const struct feroce_setup *setup, const struct feroce_load *load)
{
    struct feroce_machine *machine = feroce_machine_open(run, setup, load);
    if (machine == NULL) {
        return (struct feroce_result){.done = false};
    }
    feroce_machine_run(machine);
    const struct feroce_result result = feroce_machine_result(machine);
    expect_done(run, machine, &result);
    feroce_sums_add(sums, machine);
    feroce_machine_close(machine);
    return result;
}

static double share(uint64_t bad, uint64_t all)
{
    return all == 0 ? 0 : (double)(all - bad) / (double)all;
}

void feroce_sums_rows(struct lab_run *run, const struct feroce_sums *sums, const char *bytes_id,
                      const char *icrcs_id)
{
    lab_judge_absolute(lab_add_row(run, bytes_id, "", "right bytes of payload, of %.3g compared",
                                   (double)sums->compared),
                       1, share(sums->wrong, sums->compared), 0);
    lab_judge_absolute(
        lab_add_row(run, icrcs_id, "", "right ICRCs, of %.3g checked", (double)sums->icrcs), 1,
        share(sums->bad_icrcs, sums->icrcs), 0);
}
