/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_design.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/hdl_icarus.h"

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

bool hdl_waves_option(struct hdl_waves *waves, int option, const char *value)
{
    switch (option) {
    case HDL_WAVES_FROM: return hdl_read_number("trace-from", value, 0, 1e12, &waves->from_us);
    case HDL_WAVES_FOR: return hdl_read_number("trace-for", value, 0, 1e12, &waves->for_us);
    default: waves->path = value; return true;
    }
}

bool hdl_trace(struct sim_design *design, const struct hdl_waves *waves)
{
    const uint64_t from_ps = (uint64_t)(waves->from_us * PS_PER_US);
    if (waves->path != NULL &&
        !design->config.ops->trace(design->model, waves->path, from_ps,
                                   from_ps + (uint64_t)(waves->for_us * PS_PER_US))) {
        fprintf(stderr, "nonic: cannot write %s\n", waves->path);
        return false;
    }
    return true;
}

uint64_t hdl_print_violations(struct sim_design *design)
{
    uint64_t broken = 0;
    for (uint32_t i = 0; i < design->port_count; i++) {
        struct hdl_port *port = design->ports[i];
        struct hdl_violation violation;
        while (port != NULL && hdl_port_violation(port, &violation)) {
            const struct hdl_rule_text *text = hdl_rule_text(violation.rule);
            printf("port %u, edge %" PRIu64 ", %.4f us, frame %" PRIu64 ": %s: %s (%s)\n", i,
                   violation.edge, (double)violation.at_ps / PS_PER_US, violation.frame, text->name,
                   text->says, text->clause);
        }
        for (int rule = 0; port != NULL && rule < HDL_RULES; rule++) {
            broken += hdl_port_counters(port)->rules[rule];
        }
    }
    return broken;
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
