/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/plan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/prng.h"
#include "sim/pattern.h"
#include "sim/traffic.h"
#include "sim/traffic_trace.h"

#define ERROR_BYTES 200u

/* The words of the parameter "pattern" that are more than a pattern's name. */
enum word {
    INCAST = 2,
    HOTSPOT = 3,
};

/* -- Texts --------------------------------------------------------------------------------------*/

/* Text holds instead of these parameters, so that nobody sets them in vain. */
static const struct {
    enum lab_text_kind kind;
    const char *text, *name;
} replaced[] = {
    {LAB_PATTERN, "pattern", "pattern"},  {LAB_PATTERN, "pattern", "hot"},
    {LAB_TRAFFIC, "traffic", "pattern"},  {LAB_TRAFFIC, "traffic", "hot"},
    {LAB_TRAFFIC, "traffic", "senders"},  {LAB_TRAFFIC, "traffic", "sends"},
    {LAB_TRAFFIC, "traffic", "bytes"},    {LAB_TRAFFIC, "traffic", "bytes_most"},
    {LAB_TRAFFIC, "traffic", "interval"}, {LAB_TRAFFIC, "traffic", "arrivals"},
};

static bool texts_fit(struct lab_run *run, bool any_network)
{
    for (uint32_t i = 0; i < COUNT_OF(replaced); i++) {
        if (run->texts[replaced[i].kind].name != NULL && lab_is_set(run, replaced[i].name)) {
            lab_fail(run, "the %s that is given as text says what %s is: it cannot be set as well",
                     replaced[i].text, replaced[i].name);
        }
    }
    if (run->texts[LAB_PATTERN].name != NULL && run->texts[LAB_TRAFFIC].name != NULL) {
        lab_fail(run,
                 "a trace of traffic says where packets go: a pattern cannot be given as well");
    }
    if (run->texts[LAB_TOPOLOGY].name != NULL && !any_network) {
        lab_fail(run, "the network of %s is its document's, and no text can change it",
                 run->experiment->name);
    }
    return run->failure[0] == '\0';
}

/* Errors in a file have its name in front of them. */
static bool refuse(struct lab_run *run, enum lab_text_kind kind, const char *error)
{
    const struct lab_text *text = &run->texts[kind];
    lab_fail(run, "%s%s%s", text->text != NULL ? text->name : "", text->text != NULL ? ": " : "",
             error);
    return false;
}

/* -- By parameters ------------------------------------------------------------------------------*/

struct wishes {
    uint32_t senders, sends, least, most;
    uint64_t interval_ps;
    bool regular, incast;
    double hot;
    uint32_t word; /* The parameter "pattern". */
};

static struct wishes wishes_of(struct lab_run *run, uint32_t nodes)
{
    const uint32_t senders = (uint32_t)lab_value(run, "senders");
    const uint32_t least = (uint32_t)lab_value(run, "bytes");
    const uint32_t most = (uint32_t)lab_value(run, "bytes_most");
    const uint32_t word = lab_word(run, "pattern");
    return (struct wishes){
        .senders = senders == 0 || senders > nodes ? nodes : senders,
        .sends = (uint32_t)lab_value(run, "sends"),
        .least = least,
        .most = most > least ? most : least,
        .interval_ps = lab_ps(run, "interval"),
        .regular = lab_word(run, "arrivals") != 0,
        .hot = lab_value(run, "hot"),
        .word = word,
        .incast = word == INCAST && run->texts[LAB_PATTERN].name == NULL,
    };
}

static bool judge(struct lab_run *run, const struct wishes *wishes)
{
    const uint32_t most = (uint32_t)lab_value(run, "bytes_most");
    if (most != 0 && most < wishes->least) {
        lab_fail(run, "bytes_most=%u is less than bytes=%u", most, wishes->least);
    } else if (fabs(wishes->hot * 1000 - round(wishes->hot * 1000)) > 1e-6) {
        lab_fail(run, "hot has at most three decimal places");
    }
    return run->failure[0] == '\0';
}

static bool open_pattern(struct pattern *pattern, struct lab_run *run, const struct wishes *wishes,
                         uint32_t nodes)
{
    const struct lab_text *given = &run->texts[LAB_PATTERN];
    char name[64], error[ERROR_BYTES] = "";
    struct prng prng;
    prng_init(&prng, run->seed);
    if (given->text != NULL) {
        return pattern_parse(pattern, given->text, given->bytes, nodes, error, sizeof(error)) ||
               refuse(run, LAB_PATTERN, error);
    }
    if (given->name != NULL) {
        snprintf(name, sizeof(name), "%s", given->name);
    } else if (wishes->word == HOTSPOT) {
        snprintf(name, sizeof(name), "hotspot:%.3f", wishes->hot);
    } else {
        const struct lab_experiment *experiment = run->experiment;
        const char *nearest;
        const int index = lab_parameter_index(experiment, "pattern", &nearest);
        lab_value_text(&experiment->parameters[index], wishes->word, name, sizeof(name));
    }
    return pattern_open(pattern, wishes->incast ? "uniform" : name, nodes, &prng, error,
                        sizeof(error)) ||
           refuse(run, LAB_PATTERN, error);
}

static uint32_t sends_of(const struct pattern *pattern, const struct wishes *wishes, uint32_t node)
{
    const bool silent = node >= wishes->senders || (wishes->incast && node == pattern->nodes - 1);
    return silent ? 0 : (uint32_t)llround(wishes->sends * pattern_load(pattern, node));
}

static uint32_t rounded(uint64_t bytes, uint32_t unit)
{
    return (uint32_t)((bytes + unit - 1) / unit * unit);
}

/* A generator for each node: what one draws does not depend on how much others send. */
static void fill_node(struct lab_plan *plan, const struct pattern *pattern,
                      const struct wishes *wishes, uint32_t node, uint64_t seed, uint32_t unit)
{
    struct prng prng;
    uint64_t at_ps = 0;
    prng_init(&prng, seed * UINT64_C(0x9e3779b97f4a7c15) + node);
    for (uint32_t i = plan->first[node]; i < plan->first[node + 1]; i++) {
        const uint64_t more = prng_below(&prng, (uint64_t)wishes->most - wishes->least + 1);
        plan->messages[i] = (struct lab_plan_message){
            .at_ps = at_ps,
            .to = wishes->incast ? plan->nodes - 1 : pattern_destination(pattern, &prng, node),
            .bytes = rounded(wishes->least + more, unit),
        };
        CHECK(plan->messages[i].to < plan->nodes && plan->messages[i].to != node);
        if (wishes->interval_ps > 0) {
            at_ps +=
                wishes->regular ? wishes->interval_ps : sim_poisson_gap(&prng, wishes->interval_ps);
        }
    }
}

static void allocate(struct lab_plan *plan, uint32_t count)
{
    plan->messages = calloc(count == 0 ? 1 : count, sizeof(plan->messages[0]));
    CHECK(plan->messages != NULL);
}

static bool fill_by_pattern(struct lab_plan *plan, struct lab_run *run, uint32_t unit)
{
    const struct wishes wishes = wishes_of(run, plan->nodes);
    struct pattern pattern;
    if (!judge(run, &wishes) || !open_pattern(&pattern, run, &wishes, plan->nodes)) {
        return false;
    }
    uint64_t count = 0;
    for (uint32_t node = 0; node < plan->nodes; node++) {
        count += sends_of(&pattern, &wishes, node);
        plan->first[node + 1] = (uint32_t)count;
    }
    if (count == 0 || count > LAB_PLAN_MESSAGES_MAX) {
        lab_fail(run, count == 0 ? "nobody sends anything" : "more than %u messages",
                 LAB_PLAN_MESSAGES_MAX);
        pattern_close(&pattern);
        return false;
    }
    allocate(plan, (uint32_t)count);
    for (uint32_t node = 0; node < plan->nodes; node++) {
        fill_node(plan, &pattern, &wishes, node, run->seed, unit);
    }
    plan->timed = wishes.interval_ps > 0;
    pattern_close(&pattern);
    return true;
}

/* -- By a trace ---------------------------------------------------------------------------------*/

/* The trace is in the order of time, and so each node's part of it is, too. */
static void fill_from(struct lab_plan *plan, const struct traffic_trace *trace, uint32_t unit)
{
    uint32_t *next = calloc(plan->nodes, sizeof(next[0]));
    CHECK(next != NULL);
    for (uint32_t i = 0; i < trace->count; i++) {
        plan->first[trace->messages[i].from + 1]++;
    }
    for (uint32_t node = 0; node < plan->nodes; node++) {
        plan->first[node + 1] += plan->first[node];
        next[node] = plan->first[node];
    }
    for (uint32_t i = 0; i < trace->count; i++) {
        const struct traffic_message *message = &trace->messages[i];
        plan->messages[next[message->from]++] = (struct lab_plan_message){
            .at_ps = message->at_ps, .to = message->to, .bytes = rounded(message->bytes, unit)};
    }
    free(next);
}

static bool fill_by_trace(struct lab_plan *plan, struct lab_run *run,
                          const struct lab_plan_limits *limits)
{
    const struct lab_text *given = &run->texts[LAB_TRAFFIC];
    struct traffic_trace trace;
    char error[ERROR_BYTES] = "";
    if (!traffic_trace_parse(&trace, given->text, given->bytes, plan->nodes, error,
                             sizeof(error))) {
        return refuse(run, LAB_TRAFFIC, error);
    }
    bool fits = trace.count <= LAB_PLAN_MESSAGES_MAX;
    for (uint32_t i = 0; i < trace.count; i++) {
        fits &= trace.messages[i].bytes <= limits->bytes_most;
    }
    if (fits) {
        allocate(plan, trace.count);
        fill_from(plan, &trace, limits->unit);
        plan->timed = true;
    } else {
        snprintf(error, sizeof(error),
                 "a message has more than %u bytes, or there are more than "
                 "%u",
                 limits->bytes_most, LAB_PLAN_MESSAGES_MAX);
        (void)refuse(run, LAB_TRAFFIC, error);
    }
    traffic_trace_close(&trace);
    return fits;
}

/* -- Both ---------------------------------------------------------------------------------------*/

bool lab_plan_open(struct lab_plan *plan, struct lab_run *run, const struct lab_plan_limits *limits)
{
    *plan = (struct lab_plan){.nodes = limits->nodes};
    if (!texts_fit(run, limits->any_network)) {
        return false;
    }
    plan->first = calloc((size_t)limits->nodes + 1, sizeof(plan->first[0]));
    CHECK(plan->first != NULL);
    const bool filled = run->texts[LAB_TRAFFIC].name != NULL
                            ? fill_by_trace(plan, run, limits)
                            : fill_by_pattern(plan, run, limits->unit);
    if (!filled) {
        lab_plan_close(plan);
        return false;
    }
    for (uint32_t i = 0; i < lab_plan_count(plan); i++) {
        const uint32_t bytes = plan->messages[i].bytes;
        plan->longest = bytes > plan->longest ? bytes : plan->longest;
    }
    if (plan->longest > limits->bytes_most) {
        lab_fail(run, "a message of %u bytes is longer than %u, the most here", plan->longest,
                 limits->bytes_most);
        lab_plan_close(plan);
        return false;
    }
    return true;
}

void lab_plan_close(struct lab_plan *plan)
{
    free(plan->first);
    free(plan->messages);
    *plan = (struct lab_plan){.nodes = 0};
}
