/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_machine - `nonic repeat --machine`: programs' NICs are those of the laboratory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "lab/roce/roce.h"
#include "tools/repeat.h"

/* Each process that opens a NIC is a node of its own, as long as there are nodes. */
#define TOPOLOGY "star:32"

bool repeat_choose_machine(struct repeat *repeat, const char *name)
{
    repeat->machine = name;
    return strcmp(name, "roce") == 0;
}

void repeat_note_setting(struct repeat *repeat, const char *setting)
{
    repeat->settings =
        realloc(repeat->settings, ((size_t)repeat->setting_count + 1) * sizeof(char *));
    CHECK(repeat->settings != NULL);
    repeat->settings[repeat->setting_count++] = setting;
}

bool repeat_judge_machine(struct repeat *repeat)
{
    char error[400];
    if (repeat->machine == NULL) {
        if (repeat->setting_count > 0) {
            fprintf(stderr, "nonic: --set is for a --machine, and there is none\n");
        }
        return repeat->setting_count == 0;
    }
    struct roce_settings settings = roce_settings_default();
    for (int i = 0; i < repeat->setting_count; i++) {
        if (!roce_set(&settings, repeat->settings[i], error, sizeof(error))) {
            fprintf(stderr, "nonic: --set %s: %s\n", repeat->settings[i], error);
            return false;
        }
    }
    static struct roce_config config;
    config = roce_config_of(&settings);
    snprintf(config.topology, sizeof(config.topology), TOPOLOGY);
    repeat->box.machine = &config;
    for (int i = 1; i < repeat->argc && strcmp(repeat->argv[i], "--") != 0; i++) {
        const size_t bytes = strcspn(repeat->argv[i], "=");
        if (strcmp(repeat->argv[i], "--strict") != 0 &&
            (bytes != 7 || strncmp(repeat->argv[i], "--check", bytes) != 0)) {
            fprintf(stderr,
                    "nonic: with --machine there is no %.*s: its NICs are not live ones; of the "
                    "options of 'nonic run' it takes --strict and --check\n",
                    (int)bytes, repeat->argv[i]);
            return false;
        }
    }
    return true;
}
