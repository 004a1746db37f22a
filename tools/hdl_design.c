/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_design.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/hdl_icarus.h"
#include "tools/hdl_waves.h"

#define FS_PER_NS   1000000.0
#define FRAMES_WAIT 256

const struct hdl_model_ops *hdl_load(const char *path)
{
    if (hdl_is_icarus(path)) {
        return hdl_load_icarus(path);
    }
    char real[PATH_MAX];
    void *object = dlopen(realpath(path, real) != NULL ? real : path, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL) {
        fprintf(stderr, "nonic: %s\n", dlerror());
        return NULL;
    }
    hdl_model_entry entry;
    *(void **)&entry = dlsym(object, HDL_MODEL_ENTRY);
    if (entry == NULL) {
        fprintf(stderr, "nonic: %s is no design that `nonic hdl build` has made\n", path);
        return NULL;
    }
    return entry();
}

const struct hdl_wishes hdl_plain_wishes = {
    .trace_for_us = 1e12, .period_ns = 6.4, .rate_gbps = 10, .seed = 1, .ready = 1};

bool hdl_read_option(struct hdl_wishes *wishes, int option, const char *value, const char *help)
{
    switch (option) {
    case HDL_OPTION_TRACE: wishes->trace = value; return true;
    case HDL_OPTION_TRACE_FROM:
        return hdl_read_number("trace-from", value, 0, 1e12, &wishes->trace_from_us);
    case HDL_OPTION_TRACE_FOR:
        return hdl_read_number("trace-for", value, 0, 1e12, &wishes->trace_for_us);
    case HDL_OPTION_PERIOD: return hdl_read_number("period", value, 0.1, 1e6, &wishes->period_ns);
    case HDL_OPTION_PERIOD2:
        return hdl_read_number("period2", value, 0.1, 1e6, &wishes->period2_ns);
    case HDL_OPTION_RATE: return hdl_read_number("rate", value, 0, 1000, &wishes->rate_gbps);
    case HDL_OPTION_READY: return hdl_read_number("ready", value, 0.001, 1, &wishes->ready);
    case HDL_OPTION_GAP: return hdl_read_number("gap", value, 0, 0.999, &wishes->gap);
    case HDL_OPTION_SEED: return hdl_read_number("seed", value, 0, 1e15, &wishes->seed);
    case HDL_OPTION_STRICT: wishes->strict = true; return true;
    case HDL_OPTION_CUT_THROUGH: wishes->cut_through = true; return true;
    default: fprintf(stderr, "%s", help); return false;
    }
}

void hdl_periods(const struct hdl_wishes *wishes, uint64_t *period_fs)
{
    period_fs[0] = (uint64_t)(wishes->period_ns * FS_PER_NS);
    period_fs[1] = (uint64_t)(wishes->period2_ns * FS_PER_NS);
}

struct sim_design_config hdl_config(const struct hdl_model_ops *ops,
                                    const struct hdl_wishes *wishes)
{
    const double byte_fs = wishes->rate_gbps > 0 ? HDL_BITS_PER_FS / wishes->rate_gbps : 0;
    struct sim_design_config config = {.ops = ops,
                                       .port = {.frame_bytes = HDL_FRAME_BYTES_MAX,
                                                .frames = FRAMES_WAIT,
                                                .line_fs_per_byte = (uint64_t)byte_fs,
                                                .ready_ppm = (uint32_t)(wishes->ready * 1e6),
                                                .gap_ppm = (uint32_t)(wishes->gap * 1e6),
                                                .cut_through = wishes->cut_through},
                                       .reset_edges = SIM_DESIGN_RESET_EDGES,
                                       .seed = (uint64_t)wishes->seed};
    hdl_periods(wishes, config.period_fs);
    return config;
}

bool hdl_open(struct sim_design *design, struct sim *sim, const struct sim_design_config *config,
              const struct hdl_wishes *wishes)
{
    if (!sim_design_open(design, sim, config)) {
        fprintf(stderr, "nonic: %s\n", design->error);
        return false;
    }
    if (design->ports[0] == NULL) {
        fprintf(stderr, "nonic: %s has no port 0\n", config->ops->name);
        return false;
    }
    return hdl_trace(design, wishes);
}

static uint64_t trace_from_ps(const struct hdl_wishes *wishes)
{
    return (uint64_t)(wishes->trace_from_us * PS_PER_US);
}

static uint64_t trace_to_ps(const struct hdl_wishes *wishes)
{
    return trace_from_ps(wishes) + (uint64_t)(wishes->trace_for_us * PS_PER_US);
}

static bool is_traced(const struct hdl_wishes *wishes, uint64_t at_ps)
{
    return wishes->trace != NULL && at_ps >= trace_from_ps(wishes) && at_ps < trace_to_ps(wishes);
}

static bool write_view(const struct sim_design *design, const char *trace, uint64_t marked_ps)
{
    char name[PATH_MAX] = "";
    (void)hdl_waves_name(trace, name, sizeof(name));
    if (!hdl_waves_write(design, trace, marked_ps)) {
        fprintf(stderr, "nonic: cannot write %s\n", name);
        return false;
    }
    return true;
}

bool hdl_trace(struct sim_design *design, const struct hdl_wishes *wishes)
{
    const uint64_t from_ps = trace_from_ps(wishes), to_ps = trace_to_ps(wishes);
    if (wishes->trace == NULL) {
        return true;
    }
    if (!design->config.ops->trace(design->model, wishes->trace, from_ps, to_ps)) {
        fprintf(stderr, "nonic: cannot write %s\n", wishes->trace);
        return false;
    }
    return write_view(design, wishes->trace, from_ps);
}

uint64_t hdl_print_violations(struct sim_design *design, const struct hdl_wishes *traced)
{
    uint64_t broken = 0, first_ps = UINT64_MAX;
    for (uint32_t i = 0; i < design->port_count; i++) {
        struct hdl_port *port = design->ports[i];
        struct hdl_violation violation;
        while (port != NULL && hdl_port_violation(port, &violation)) {
            const struct hdl_rule_text *text = hdl_rule_text(violation.rule);
            printf("port %u, edge %" PRIu64 ", %.4f us, frame %" PRIu64 ": %s: %s (%s)\n", i,
                   violation.edge, (double)violation.at_ps / PS_PER_US, violation.frame, text->name,
                   text->says, text->clause);
            if (is_traced(traced, violation.at_ps) && violation.at_ps < first_ps) {
                first_ps = violation.at_ps;
            }
        }
        for (int rule = 0; port != NULL && rule < HDL_RULES; rule++) {
            broken += hdl_port_counters(port)->rules[rule];
        }
    }
    if (first_ps != UINT64_MAX) {
        (void)write_view(design, traced->trace, first_ps);
    }
    return broken;
}

void hdl_print_dropped(const struct bridge *bridge)
{
    const char *before = "dropped: ";
    for (enum bridge_verdict i = 0; i < BRIDGE_VERDICT_COUNT; i++) {
        if (bridge_is_dropped(i) && bridge->counts[i] > 0) {
            printf("%s%" PRIu64 " %s", before, bridge->counts[i], bridge_verdict_text(i));
            before = "; ";
        }
    }
    printf(before[0] == ';' ? "\n" : "");
}

bool hdl_read_number(const char *name, const char *text, double least, double most, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end == text || *end != '\0' || !(*value >= least && *value <= most)) {
        fprintf(stderr, "nonic: --%s takes a number from %g to %g, not '%s'\n", name, least, most,
                text);
        return false;
    }
    return true;
}
