/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_machine - `nonic repeat --machine`: programs' NICs are those of the laboratory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "lab/roce/roce.h"
#include "tools/lab.h"
#include "tools/repeat.h"
#include "tools/repeat_csrna.h"

/* Each process that opens a NIC is a node of its own, as long as there are nodes. */
#define TOPOLOGY "star:32"

/* Machines of the laboratory that no verbs program can run on, and why. */
static const struct {
    const char *name, *why;
} others[] = {
    {"lant", "its NICs have no queue pairs and no completion queues: programs load and store in "
             "windows of global memory, which verbs programs do not"},
    {"forth", "its NICs only write, to physical addresses that a request names itself: they have "
              "no queue pairs, keys, READs and SENDs"},
    {"exanest", "not yet: verbs would need nonic's blocks on channels of its processes"},
    {"feroce", "its board is a machine of its own, which 'nonic feroce' drives"},
    {"network", "it has switches and no NICs; 'roce' has both"},
};

bool repeat_choose_machine(struct repeat *repeat, const char *name)
{
    repeat->machine = name;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        if (strcmp(name, others[i].name) == 0) {
            fprintf(stderr, "nonic: programs cannot run on the machine %s: %s\n", name,
                    others[i].why);
        }
    }
    return strcmp(name, "roce") == 0 || strcmp(name, "csrna") == 0;
}

void repeat_note_setting(struct repeat *repeat, const char *setting)
{
    repeat->settings =
        realloc(repeat->settings, ((size_t)repeat->setting_count + 1) * sizeof(char *));
    CHECK(repeat->settings != NULL);
    repeat->settings[repeat->setting_count++] = setting;
}

static bool refuse(const char *option, const char *why)
{
    fprintf(stderr, "nonic: --%s%s\n", option, why);
    return false;
}

/* Options that only a machine has. */
static bool judge_without(const struct repeat *repeat)
{
    static const char why[] = " is for a --machine, and there is none";
    if (repeat->setting_count > 0) {
        return refuse("set", why);
    }
    return repeat->topology == NULL || refuse("topology", why);
}

/* A network in words, or a file's text, which stays until the end of the run. Opens it once, so
 * that what is wrong with it is told before the run. */
static bool take_topology(struct roce_config *config, const char *topology)
{
    static struct lab_text text;
    static struct sim sim;
    char error[2 * ROCE_TEXT_BYTES + 400] = "";
    snprintf(config->topology, sizeof(config->topology), "%s", topology);
    if (strlen(topology) >= sizeof(config->topology)) {
        return refuse("topology", " is too long");
    }
    if (!lab_text_read(&text, LAB_TOPOLOGY, topology, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return false;
    }
    config->text = text.text;
    config->text_bytes = text.bytes;
    sim_init(&sim, 0);
    struct roce *roce = roce_open(&sim, config, error, sizeof(error));
    if (roce == NULL) {
        fprintf(stderr, "nonic: --topology %s: %s\n", topology, error);
        return false;
    }
    roce_close(roce);
    return true;
}

/* The settings of either machine, in the order of the command line. */
static bool take_settings(struct roce_config *config, const struct repeat *repeat)
{
    char error[600];
    if (strcmp(repeat->machine, "csrna") == 0) {
        const bool is_right =
            repeat_csrna(config, repeat->settings, repeat->setting_count, error, sizeof(error));
        return is_right || (fprintf(stderr, "nonic: %s\n", error), false);
    }
    struct roce_settings settings = roce_settings_default();
    for (int i = 0; i < repeat->setting_count; i++) {
        if (!roce_set(&settings, repeat->settings[i], error, sizeof(error))) {
            fprintf(stderr, "nonic: --set %s: %s\n", repeat->settings[i], error);
            return false;
        }
    }
    *config = roce_config_of(&settings);
    return true;
}

/* An option of 'nonic run' as it was passed on ("--name" or "--name=value"): a machine has few. */
static bool is_option(const char *option, const char *name)
{
    return strncmp(option, name, strlen(name)) == 0 && strchr("=", option[strlen(name)]) != NULL;
}

/* The machine captures by itself: the program is not told. */
static bool take_options_of_run(struct repeat *repeat)
{
    int kept = 1, at = 1;
    for (; at < repeat->argc && strcmp(repeat->argv[at], "--") != 0; at++) {
        char *option = repeat->argv[at];
        if (is_option(option, "--capture")) {
            repeat->box.capture = strchr(option, '=') + 1;
        } else if (is_option(option, "--strict") || is_option(option, "--check")) {
            repeat->argv[kept++] = option;
        } else {
            fprintf(stderr,
                    "nonic: with --machine there is no %.*s: its NICs are not live ones; of the "
                    "options of 'nonic run' it takes --strict, --check and --capture\n",
                    (int)strcspn(option, "="), option);
            return false;
        }
    }
    memmove(&repeat->argv[kept], &repeat->argv[at],
            (size_t)(repeat->argc - at + 1) * sizeof(char *));
    repeat->argc -= at - kept;
    return true;
}

bool repeat_judge_machine(struct repeat *repeat)
{
    static struct roce_config config;
    if (repeat->machine == NULL) {
        return judge_without(repeat);
    }
    if (!take_settings(&config, repeat) ||
        !take_topology(&config, repeat->topology == NULL ? TOPOLOGY : repeat->topology)) {
        return false;
    }
    repeat->box.machine = &config;
    return take_options_of_run(repeat);
}
