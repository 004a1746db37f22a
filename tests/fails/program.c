/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fails/program.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/fails/wrap.h"

static unsigned excused;

/* The errnos by which manual pages name a shortage. */
static const int shortages[] = {ENOMEM, EMFILE, ENFILE, EAGAIN, ENOBUFS, ENOSPC};

uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void must(bool good, const char *what, int reason)
{
    if (!good) {
        fprintf(stderr, "program: %s: %d (%s)\n", what, reason, strerror(reason));
        fails_record();
        _exit(2);
    }
}

bool has_ipv4(const struct program *p)
{
    return p->gid.raw[10] == 0xff && p->gid.raw[11] == 0xff;
}

bool has_groups(const struct program *p)
{
    static const uint8_t loopback[16] = {[15] = 1};
    return memcmp(p->gid.raw, loopback, sizeof(loopback)) != 0;
}

/* One call that failed under us excuses one that fails. */
static void excuse(const char *what, int reason)
{
    must(fails_struck() > excused, what, reason);
    excused = fails_struck();
}

void judge(const char *call, int reason)
{
    bool told = fails_tells(reason);
    for (size_t i = 0; i < sizeof(shortages) / sizeof(*shortages); i++) {
        told = told || reason == shortages[i];
    }
    excuse(call, reason);
    must(told, call, reason);
    fprintf(stderr, "told: %s: %s\n", call, strerror(reason));
}

void judge_outcome(const char *what, int outcome)
{
    excuse(what, outcome);
    fprintf(stderr, "told: %s: %d\n", what, outcome);
}

/* -- Descriptors that are left ------------------------------------------------------------------*/

/* The kind of each descriptor, in the order of their numbers. */
static void print_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    struct dirent *entry;
    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char path[300], target[256];
        snprintf(path, sizeof(path), "/proc/self/fd/%s", entry->d_name);
        const ssize_t bytes = readlink(path, target, sizeof(target) - 1);
        if (bytes > 0 && atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(directory)) {
            target[bytes] = '\0';
            target[strcspn(target, ":")] = '\0';
            printf("descriptor %s\n", target);
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
}

static void print_mappings(void)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512];
    while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
        char *name = strstr(line, "/memfd:");
        if (name != NULL) {
            name[strcspn(name, " \n")] = '\0';
            printf("mapping %s\n", name);
        }
    }
    if (maps != NULL) {
        fclose(maps);
    }
}

/* Connections that were closed just now are let go by our thread. */
static void settle(void)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    nanosleep(&moment, NULL);
}

int main(void)
{
    struct program p = {0};
    start_other();
    open_program(&p);
    look_at_files();
    make_objects(&p);
    move_data(&p);
    call_nobody(&p);
    take_events(&p);
    leave_events(&p);
    use_manager(&p);
    watch_port(&p);
    talk_to_other(&p);
    ask_netlink();
    ask_counters();
    use_fork();
    end_other();
    close_program(&p);
    settle();
    printf("struck %u\n", fails_struck());
    print_descriptors();
    print_mappings();
    return 0;
}
