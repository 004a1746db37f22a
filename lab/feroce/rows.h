/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rows - row A37, which every experiment with a machine has: the compared bytes are right.
 */
#ifndef LAB_FEROCE_ROWS_H
#define LAB_FEROCE_ROWS_H

#include "lab/feroce/machine.h"

/* Sums over all worlds of a run. */
struct feroce_sums {
    uint64_t compared, wrong; /* Bytes of payload. */
    uint64_t icrcs, bad_icrcs;
};

void feroce_sums_add(struct feroce_sums *sums, const struct feroce_machine *machine);
/* feroce_run, added to the sums. */
struct feroce_result feroce_run_in(struct lab_run *run, struct feroce_sums *sums,
                                   const struct feroce_setup *setup,
                                   const struct feroce_load *load);
/* Shares of 1, of more than nothing. */
void feroce_sums_rows(struct lab_run *run, const struct feroce_sums *sums, const char *bytes_id,
                      const char *icrcs_id);

/* Two claims of an experiment, which calls itself `name`. */
#define FEROCE_SUM_CLAIMS(name)                                                                    \
    {.id = "FER-A37.bytes." name,                                                                  \
     .reference = LAB_PREDICTED,                                                                   \
     .ground = LAB_MECHANISM,                                                                      \
     .source = "OC: the receiver knows what the boards send",                                      \
     .broken_by = "flip=payload",                                                                  \
     .because = "one bit is wrong that no ICRC sees"},                                             \
    {                                                                                              \
        .id = "FER-A37.icrcs." name, .reference = LAB_PREDICTED, .ground = LAB_MECHANISM,          \
        .source = "IBTA 9.2", .broken_by = "flip=icrc", .because = "one ICRC is wrong"             \
    }

#endif
