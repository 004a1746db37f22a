/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_design - calls that the commands of `nonic hdl` share, around a compiled design. They print
 *              errors.
 */
#ifndef TOOLS_HDL_DESIGN_H
#define TOOLS_HDL_DESIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/parts/design.h"

#define PS_PER_US 1000000.0

/* The object stays loaded. NULL: it is no design. */
const struct hdl_model_ops *hdl_load(const char *path);
/* The waves that a user wants. */
struct hdl_waves {
    const char *path; /* NULL: none. */
    double from_us, for_us;
};
#define HDL_WAVES_ALL                                                                              \
    {                                                                                              \
        .for_us = 1e12                                                                             \
    }

bool hdl_trace(struct sim_design *design, const struct hdl_waves *waves);
/* Takes --trace, --trace-from and --trace-for. */
#define HDL_WAVES_OPTIONS                                                                          \
    {"trace", required_argument, NULL, HDL_WAVES_PATH},                                            \
        {"trace-from", required_argument, NULL, HDL_WAVES_FROM},                                   \
    {                                                                                              \
        "trace-for", required_argument, NULL, HDL_WAVES_FOR                                        \
    }
enum {
    HDL_WAVES_PATH = 256,
    HDL_WAVES_FROM,
    HDL_WAVES_FOR
};
#define HDL_WAVES_HELP                                                                             \
    "  --trace FILE.fst      all signals, for GTKWave\n"                                           \
    "  --trace-from US       not before this time (0)\n"                                           \
    "  --trace-for US        for this time (to the end)\n"
/* False: the value is wrong. */
bool hdl_waves_option(struct hdl_waves *waves, int option, const char *value);
/* Prints the first violations of each port that were not printed yet. Returns how many rules were
 * broken in all. */
uint64_t hdl_print_violations(struct sim_design *design);
/* The value of the option --name. */
bool hdl_read_number(const char *name, const char *text, double least, double most, double *value);

#endif
