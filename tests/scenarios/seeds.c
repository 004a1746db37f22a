/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/scenarios/seeds.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The command that runs the current world again; empty between worlds. */
static char replay[512];

static void tell(void)
{
    if (replay[0] != '\0') {
        const ssize_t ignored = write(STDERR_FILENO, replay, strlen(replay));
        (void)ignored;
    }
}

/* A CHECK failed. */
static void on_abort(int number)
{
    tell();
    signal(number, SIG_DFL);
    raise(number);
}

/* A sanitizer ends the program: there is one in some builds. */
extern void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t number(const char *program, const char *text)
{
    char *end;
    const uint64_t value = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0') {
        fprintf(stderr, "%s: %s is not a number\n", program, text);
        exit(2);
    }
    return value;
}

struct seeds seeds_from_arguments(int argc, char **argv, uint64_t usual)
{
    struct seeds seeds = {.program = argv[0], .first = 1, .last = usual};
    for (int i = 1; i < argc; i++) {
        const int left = argc - 1 - i;
        if (strcmp(argv[i], "--seed") == 0 && left >= 1) {
            seeds.first = seeds.last = number(argv[0], argv[++i]);
        } else if (strcmp(argv[i], "--seeds") == 0 && left >= 2) {
            seeds.first = number(argv[0], argv[++i]);
            seeds.last = number(argv[0], argv[++i]);
        } else if (strcmp(argv[i], "--seconds") == 0 && left >= 1) {
            seeds.seconds = number(argv[0], argv[++i]);
            seeds.last = UINT64_MAX;
        } else if (strcmp(argv[i], "--minutes") == 0 && left >= 1) {
            seeds.seconds = 60 * number(argv[0], argv[++i]);
            seeds.last = UINT64_MAX;
        } else if (strcmp(argv[i], "--from") == 0 && left >= 1) {
            seeds.first = number(argv[0], argv[++i]);
        } else {
            fprintf(stderr,
                    "usage: %s [--seed N | --seeds FIRST LAST | --seconds S | --minutes M] "
                    "[--from SEED]\n",
                    argv[0]);
            exit(2);
        }
    }
    if (seeds.seconds == 0 && seeds.last == UINT64_MAX) {
        seeds.seconds = 1;
    }
    seeds.next = seeds.first;
    seeds.deadline_ns = now_ns() + seeds.seconds * 1000000000u;
    signal(SIGABRT, on_abort);
    if (__sanitizer_set_death_callback != NULL) {
        __sanitizer_set_death_callback(tell);
    }
    return seeds;
}

bool seeds_next(struct seeds *seeds, uint64_t *seed)
{
    replay[0] = '\0';
    const bool late = seeds->seconds != 0 && seeds->count > 0 && now_ns() >= seeds->deadline_ns;
    if (late || seeds->next < seeds->first || seeds->next > seeds->last) {
        return false;
    }
    *seed = seeds->next++;
    seeds->count++;
    snprintf(replay, sizeof(replay), "replay: %s --seed %llu\n", seeds->program,
             (unsigned long long)*seed);
    return true;
}

int seeds_finish(const struct seeds *seeds, int failures)
{
    if (failures != 0) {
        tell();
    } else if (seeds->seconds != 0) {
        printf("%llu worlds from seed %llu on\n", (unsigned long long)seeds->count,
               (unsigned long long)seeds->first);
    }
    return failures;
}
