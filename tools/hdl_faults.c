/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_faults.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "drivers/fault_words.h"

#define PS_PER_NS_WHOLE UINT64_C(1000)

/* Keeps the times in order. */
static bool add_reset(struct sim_design_fault_rates *rates, uint64_t at_ps)
{
    if (rates->resets == SIM_DESIGN_RESETS_MAX) {
        return false;
    }
    uint32_t i = rates->resets++;
    for (; i > 0 && rates->reset_ps[i - 1] > at_ps; i--) {
        rates->reset_ps[i] = rates->reset_ps[i - 1];
    }
    rates->reset_ps[i] = at_ps;
    return true;
}

static bool read_reset(struct sim_design_fault_rates *rates, const char *value)
{
    const char *end;
    uint64_t ns;
    if (fault_time(value, &end, &ns)) {
        return *end == '\0' && add_reset(rates, ns * PS_PER_NS_WHOLE);
    }
    return fault_probability(value, &rates->reset_ppm);
}

static bool read_word(void *owner, const char *word, const char *value)
{
    struct sim_design_fault_rates *rates = owner;
    return strcmp(word, "badfcs") == 0     ? fault_probability(value, &rates->badfcs_ppm)
           : strcmp(word, "truncate") == 0 ? fault_probability(value, &rates->truncate_ppm)
           : strcmp(word, "reset") == 0    ? read_reset(rates, value)
                                           : false;
}

bool hdl_read_faults(const char *text, struct sim_design_fault_rates *rates)
{
    static const char valid[] = "badfcs=P, truncate=P, reset=P with P a probability such as 0.01; "
                                "reset=TIME with TIME such "
                                "as 100us, up to 16 of them";
    char error[320];
    if (!fault_words_read(text, read_word, rates, valid, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return false;
    }
    return true;
}

static bool is_of_hardware(const char *word)
{
    static const char *const names[] = {"badfcs=", "truncate=", "reset="};
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        if (strncmp(word, names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

static void append(char *text, size_t bytes, const char *word, int length)
{
    const size_t used = strlen(text);
    snprintf(text + used, bytes - used, "%s%.*s", used > 0 ? "," : "", length, word);
}

bool hdl_split_faults(const char *text, struct sim_design_fault_rates *rates, char *network,
                      size_t bytes)
{
    char own[256] = "";
    if (strlen(text) >= sizeof(own) || strlen(network) + 1 + strlen(text) >= bytes) {
        fprintf(stderr, "nonic: fault specification is too long\n");
        return false;
    }
    for (const char *word = text; *word != '\0';) {
        const int length = (int)strcspn(word, ",");
        const bool ours = is_of_hardware(word);
        append(ours ? own : network, ours ? sizeof(own) : bytes, word, length);
        word += length + (word[length] == ',');
    }
    return own[0] == '\0' || hdl_read_faults(own, rates);
}

void hdl_print_faults(const char *name, const struct sim_design *design)
{
    const struct sim_design_faults *faults = &design->faults;
    uint64_t lost[2] = {0, 0};
    for (uint32_t i = 0; i < design->port_count; i++) {
        for (uint32_t way = 0; way < 2 && design->ports[i] != NULL; way++) {
            lost[way] += hdl_port_counters(design->ports[i])->lost_in_reset[way];
        }
    }
    if (faults->badfcs + faults->truncated + faults->resets > 0) {
        printf("faults of %s: %" PRIu64 " frames with a wrong FCS, %" PRIu64 " cut; %" PRIu64
               " resets, in which %" PRIu64 " frames under way from it and %" PRIu64
               " to it were lost\n",
               name, faults->badfcs, faults->truncated, faults->resets, lost[0], lost[1]);
    }
}
