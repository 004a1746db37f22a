/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/csrna_experiments.h"
#include "lab/forth_experiments.h"

const struct lab_experiment *const lab_experiments[] = {
    &forth_one_way, &forth_to_itself,    &forth_three_to_one, &forth_sizes,      &forth_round_trip,
    &forth_direct,  &forth_ping_pong,    &forth_cut_through,  &forth_all_to_all, &forth_saturation,
    &forth_soak,    &forth_xdd,          &forth_postmark,     &forth_files,      &csrna_rates,
    &csrna_latency, &csrna_out_of_order, &csrna_placement,    &csrna_on_chip,    &csrna_one,
    NULL,
};
