/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_design - calls that the commands of `nonic hdl` share, around a compiled design. They print
 *              errors.
 */
#ifndef TOOLS_HDL_DESIGN_H
#define TOOLS_HDL_DESIGN_H

#include <stdbool.h>
#include <stdint.h>

#include "hdl/bridge.h"
#include "sim/parts/design.h"

#define PS_PER_US       1000000.0
#define PS_PER_NS       1000.0
#define HDL_BITS_PER_FS 8e6 /* A byte at 1 Gb/s. */

/* The object stays loaded. NULL: it is no design. */
const struct hdl_model_ops *hdl_load(const char *path);

/* The wishes of a user about a run, by the options that the commands have in common. */
struct hdl_wishes {
    const char *trace; /* NULL: none. */
    double trace_from_us, trace_for_us;
    double period_ns, period2_ns, rate_gbps, seed;
    double ready, gap; /* Probabilities: tready in a cycle, a gap between two beats. */
    bool strict, cut_through;
};
extern const struct hdl_wishes hdl_plain_wishes;

enum {
    HDL_OPTION_TRACE = 256, /* The short options are below. */
    HDL_OPTION_TRACE_FROM,
    HDL_OPTION_TRACE_FOR,
    HDL_OPTION_PERIOD,
    HDL_OPTION_PERIOD2,
    HDL_OPTION_RATE,
    HDL_OPTION_READY,
    HDL_OPTION_GAP,
    HDL_OPTION_SEED,
    HDL_OPTION_STRICT,
    HDL_OPTION_CUT_THROUGH,
};
/* clang-format off */
#define HDL_OPTIONS                                                                                \
    {"trace", required_argument, NULL, HDL_OPTION_TRACE},                                          \
    {"trace-from", required_argument, NULL, HDL_OPTION_TRACE_FROM},                                \
    {"trace-for", required_argument, NULL, HDL_OPTION_TRACE_FOR},                                  \
    {"period", required_argument, NULL, HDL_OPTION_PERIOD},                                        \
    {"period2", required_argument, NULL, HDL_OPTION_PERIOD2},                                      \
    {"rate", required_argument, NULL, HDL_OPTION_RATE},                                            \
    {"ready", required_argument, NULL, HDL_OPTION_READY},                                          \
    {"gap", required_argument, NULL, HDL_OPTION_GAP},                                              \
    {"seed", required_argument, NULL, HDL_OPTION_SEED},                                            \
    {"strict", no_argument, NULL, HDL_OPTION_STRICT},                                              \
    {"cut-through", no_argument, NULL, HDL_OPTION_CUT_THROUGH},                                    \
    {"help", no_argument, NULL, 'h'},                                                              \
    {0}
/* clang-format on */
#define HDL_TRACE_HELP                                                                             \
    "  --trace FILE.fst      all signals, for GTKWave, which shows those of the ports by "         \
    "FILE.gtkw"                                                                                    \
    "\n"                                                                                           \
    "  --trace-from US       not before this time (0)\n"                                           \
    "  --trace-for US        for this time (to the end)\n"
/* False: it is none of these, and `help` is printed; or its value is wrong. */
bool hdl_read_option(struct hdl_wishes *wishes, int option, const char *value, const char *help);

/* The periods of clk and of clk2, of which 0 was not given. */
void hdl_periods(const struct hdl_wishes *wishes, uint64_t *period_fs);
/* A design with a MAC's port, whose line is busy for no other reason. */
struct sim_design_config hdl_config(const struct hdl_model_ops *ops,
                                    const struct hdl_wishes *wishes);
/* Opens it, and its trace. False: it cannot be used, or has no port 0. */
bool hdl_open(struct sim_design *design, struct sim *sim, const struct sim_design_config *config,
              const struct hdl_wishes *wishes);
/* Begins the trace, if one is wanted, with a view for GTKWave beside it (hdl_waves.h). */
bool hdl_trace(struct sim_design *design, const struct hdl_wishes *wishes);

/* Prints the first violations of each port that were not printed yet. If `traced` has a trace, its
 * view is at the first one from now on. Returns how many rules were broken in all. */
uint64_t hdl_print_violations(struct sim_design *design, const struct hdl_wishes *traced);
/* A line with the frames that were dropped, by name; none if none was. */
void hdl_print_dropped(const struct bridge *bridge);
/* The value of the option --name. */
bool hdl_read_number(const char *name, const char *text, double least, double most, double *value);

#endif
