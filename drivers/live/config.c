/* SPDX-License-Identifier: BSD-2-Clause
 *
 * config - the settings that `nonic run` gives the library, through the environment.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/faults.h"
#include "drivers/live/live.h"
#include "drivers/odd.h"
#include "nic/routes.h"

/* A program with more rights than its user (set-user-ID) ignores the user's environment: a capture
 * could overwrite any file. */
static const char *value_of(const char *name)
{
    const char *value = secure_getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

/* The number of the word `text`; -1: it is none of them. */
static int word_of(const char *text, const char *const words[], int count)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return -1;
}

static bool parse_nic(const char *text, enum live_personality *nic)
{
    static const char *const words[] = {[LIVE_ROCE] = "roce", [LIVE_EFA] = "efa"};
    const int word = text == NULL ? LIVE_ROCE : word_of(text, words, COUNT_OF(words));
    *nic = (enum live_personality)word;
    return word >= 0;
}

static bool parse_wire(const char *text, enum live_wire *wire)
{
    static const char *const words[] = {
        [LIVE_WIRE_AUTO] = "auto", [LIVE_WIRE_UDP] = "udp", [LIVE_WIRE_SHM] = "shm"};
    const int word = text == NULL ? LIVE_WIRE_AUTO : word_of(text, words, COUNT_OF(words));
    *wire = (enum live_wire)word;
    return word >= 0;
}

static bool parse_transport(const char *text, enum nic_transport *transport)
{
    static const char *const words[] = {
        [NIC_TRANSPORT_RC] = "rc", [NIC_TRANSPORT_BLOCK] = "block", [NIC_TRANSPORT_AUTO] = "auto"};
    const int word = text == NULL ? NIC_TRANSPORT_AUTO : word_of(text, words, COUNT_OF(words));
    *transport = (enum nic_transport)word;
    return word >= 0;
}

static bool parse_map(const char *text, enum live_map *map)
{
    static const char *const words[] = {
        [LIVE_MAP_AUTO] = "auto", [LIVE_MAP_NOW] = "now", [LIVE_MAP_NEVER] = "never"};
    const int word = text == NULL ? LIVE_MAP_AUTO : word_of(text, words, COUNT_OF(words));
    *map = (enum live_map)word;
    return word >= 0;
}

static bool parse_switch(const char *text, bool *on)
{
    *on = text != NULL && strcmp(text, "1") == 0;
    return text == NULL || *on || strcmp(text, "0") == 0;
}

#define BATCH_USUAL 32
#define BATCH_MAX   256

/* strtoul takes signs and spaces, and makes a large number of a negative one. */
static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* A number from 1 on; without a text, the usual number. */
static bool parse_number(const char *text, uint32_t usual, uint32_t most, uint32_t *number)
{
    char *end = NULL;
    const unsigned long value = text == NULL ? usual : strtoul(text, &end, 10);
    *number = (uint32_t)value;
    return text == NULL || (is_digit(text[0]) && *end == '\0' && value >= 1 && value <= most);
}

static enum live_personality chosen;

static void choose_personality(void)
{
    chosen = parse_nic(value_of("NONIC_NIC"), &chosen) ? chosen : LIVE_ROCE;
}

enum live_personality live_personality(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, choose_personality);
    return chosen;
}

/* Nothing is asked of an EFA device that only RoCE's rules can judge. */
static bool config_nic(struct live_config *config, char *error, size_t error_bytes)
{
    static const char *const roce_only[][2] = {
        {"NONIC_STRICT", "--strict"}, {"NONIC_CHECK", "--check"}, {"NONIC_ODD", "--odd"}};
    const char *nic = value_of("NONIC_NIC");
    if (!parse_nic(nic, &config->nic)) {
        snprintf(error, error_bytes, "--nic (NONIC_NIC) is '%s'; valid are roce and efa", nic);
        return false;
    }
    for (size_t i = 0; config->nic == LIVE_EFA && i < COUNT_OF(roce_only); i++) {
        const char *value = value_of(roce_only[i][0]);
        if (value != NULL && strcmp(value, "0") != 0) {
            snprintf(error, error_bytes, "%s (%s) knows the rules of RoCE, not those of --nic efa",
                     roce_only[i][1], roce_only[i][0]);
            return false;
        }
    }
    return true;
}

/* Faults are opened again when the NIC is. */
static bool judge_faults(const char *words, char *error, size_t error_bytes)
{
    if (words == NULL) {
        return true;
    }
    char reason[512];
    struct faults *faults = faults_open(words, reason, sizeof(reason));
    if (faults == NULL) {
        snprintf(error, error_bytes, "--fault (NONIC_FAULT): %s", reason);
        return false;
    }
    faults_close(faults);
    return true;
}

bool live_config_from_environment(struct live_config *config, char *error, size_t error_bytes)
{
    const char *wire = value_of("NONIC_WIRE");
    *config = (struct live_config){
        .device = value_of("NONIC_DEVICE"),
        .capture = value_of("NONIC_CAPTURE"),
        .fault = value_of("NONIC_FAULT"),
        .odd = value_of("NONIC_ODD"),
    };
    if (!config_nic(config, error, error_bytes)) {
        return false;
    }
    if (!parse_wire(wire, &config->wire)) {
        snprintf(error, error_bytes, "--wire (NONIC_WIRE) is '%s'; valid are auto, udp and shm",
                 wire);
        return false;
    }
    const char *transport = value_of("NONIC_TRANSPORT");
    if (!parse_transport(transport, &config->transport)) {
        snprintf(error, error_bytes,
                 "--transport (NONIC_TRANSPORT) is '%s'; valid are rc, block and auto", transport);
        return false;
    }
    if (!parse_number(value_of("NONIC_BATCH"), BATCH_USUAL, BATCH_MAX, &config->batch)) {
        snprintf(error, error_bytes, "NONIC_BATCH is '%s'; valid are 1 to 256",
                 value_of("NONIC_BATCH"));
        return false;
    }
    if (!parse_number(value_of("NONIC_PATHS"), 0, NIC_ROUTES_MAX, &config->paths)) {
        snprintf(error, error_bytes, "--paths (NONIC_PATHS) is '%s'; valid are 1 to %d",
                 value_of("NONIC_PATHS"), NIC_ROUTES_MAX);
        return false;
    }
    if (!parse_map(value_of("NONIC_MAP_MEMORY"), &config->map_memory)) {
        snprintf(error, error_bytes,
                 "--map-memory (NONIC_MAP_MEMORY) is '%s'; valid are auto, now and never",
                 value_of("NONIC_MAP_MEMORY"));
        return false;
    }
    if (!parse_switch(value_of("NONIC_MAP_QUEUES"), &config->map_queues) ||
        (config->map_queues && config->nic != LIVE_EFA)) {
        snprintf(error, error_bytes,
                 "--map-queues (NONIC_MAP_QUEUES) is '%s'; valid are 0, and 1 with --nic efa",
                 value_of("NONIC_MAP_QUEUES"));
        return false;
    }
    if (!parse_switch(value_of("NONIC_STATS"), &config->stats)) {
        snprintf(error, error_bytes, "--stats (NONIC_STATS) is '%s'; valid are 0 and 1",
                 value_of("NONIC_STATS"));
        return false;
    }
    if (!parse_switch(value_of("NONIC_STRICT"), &config->strict)) {
        snprintf(error, error_bytes, "--strict (NONIC_STRICT) is '%s'; valid are 0 and 1",
                 value_of("NONIC_STRICT"));
        return false;
    }
    return odd_begin(config->odd, error, error_bytes) &&
           judge_faults(config->fault, error, error_bytes);
}

struct live *live_claim_from_environment(char *error, size_t error_bytes)
{
    struct live_config config;
    return live_config_from_environment(&config, error, error_bytes)
               ? live_claim(&config, error, error_bytes)
               : NULL;
}
