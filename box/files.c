/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/files.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "box/internal.h"

#define MEMORY                                                                                     \
    "MemTotal:       16777216 kB\nMemFree:         8388608 kB\nMemAvailable:   12582912 kB\n"      \
    "Buffers:               0 kB\nCached:                0 kB\nSwapCached:            0 kB\n"      \
    "Active:                0 kB\nInactive:              0 kB\nSwapTotal:             0 kB\n"      \
    "SwapFree:              0 kB\nShmem:                 0 kB\nHugePages_Total:       0\n"         \
    "HugePages_Free:        0\nHugePages_Rsvd:        0\nHugePages_Surp:        0\nHugepagesize: " \
    "      2048 kB\n"

/* One tick of the processor's clock is a nanosecond (turn.c). */
#define PROCESSOR                                                                                  \
    "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\nmodel name\t: "    \
    "nonic @ 1.00GHz\n"                                                                            \
    "stepping\t: 1\ncpu MHz\t\t: 1000.000\ncache size\t: 32768 KB\nphysical id\t: 0\nsiblings\t: " \
    "1\ncore id\t\t: 0\n"                                                                          \
    "cpu cores\t: 1\napicid\t\t: 0\nfpu\t\t: yes\ncpuid level\t: 13\nwp\t\t: yes\n"                \
    "flags\t\t: fpu tsc msr cx8 cmov mmx fxsr sse sse2 rdtscp lm constant_tsc "                    \
    "nonstop_tsc\nbogomips\t: 2000.00\n"                                                           \
    "clflush size\t: 64\ncache_alignment\t: 64\naddress sizes\t: 46 bits physical, 48 bits "       \
    "virtual\n\n"

const struct stand_in stand_ins[] = {
    {"/proc/meminfo", MEMORY},
    {"/proc/cpuinfo", PROCESSOR},
    {"/proc/uptime", "1000.00 1000.00\n"},
    {"/proc/loadavg", "1.00 1.00 1.00 1/100 100\n"},
    {"/proc/stat",
     "cpu  1000 0 1000 100000 0 0 0 0 0 0\ncpu0 1000 0 1000 100000 0 0 0 0 0 0\nintr 0\nctxt 0\n"
     "btime 1767224600\nprocesses 100\nprocs_running 1\nprocs_blocked 0\n"},
    {"/proc/vmstat", "nr_free_pages 2097152\n"},
    {"/proc/interrupts", "           CPU0\n"},
    {"/proc/softirqs", "                    CPU0\n"},
    {"/proc/diskstats", ""},
    {"/proc/kallsyms", ""},
    {"/proc/buddyinfo", ""},
    {"/proc/zoneinfo", ""},
    {"/proc/sys/kernel/random/uuid", "5eed5eed-5eed-4eed-8eed-5eed5eed5eed\n"},
    {"/proc/sys/kernel/random/boot_id", "5eed5eed-5eed-4eed-8eed-5eed5eed5eed\n"},
    {"/proc/sys/kernel/random/entropy_avail", "256\n"},
    {"/proc/sys/fs/file-nr", "1000\t0\t1000000\n"},
    {"/sys/devices/system/node/node0/meminfo",
     "Node 0 MemTotal:       16777216 kB\nNode 0 MemFree:         8388608 kB\n"
     "Node 0 MemUsed:         8388608 kB\nNode 0 HugePages_Total:     0\n"
     "Node 0 HugePages_Free:      0\nNode 0 HugePages_Surp:      0\n"},
    {"/sys/devices/system/node/node0/vmstat", "nr_free_pages 2097152\n"},
    {"/sys/devices/system/node/node0/numastat", "numa_hit 0\n"},
    {"/sys/devices/system/cpu/online", "0\n"},
    {"/sys/devices/system/cpu/possible", "0\n"},
    {"/sys/devices/system/cpu/present", "0\n"},
};
const size_t stand_in_count = COUNT_OF(stand_ins);

/* The fields of /proc/PID/stat that count use: of the 52, by number from 1. */
static bool counts_use(int field)
{
    return (field >= 10 && field <= 17) || field == 22 || field == 23 || field == 24 ||
           (field >= 26 && field <= 30) || field == 36 || field == 37 || field >= 39;
}

/* Every thread is stopped while the box looks. A program is told whether it would run; NULL: it is
 * none of a program's. */
static const char *state_of(struct box *box, pid_t process, const char *file)
{
    int id = process;
    sscanf(file, "task/%d/", &id);
    const struct thread *thread = thread_find(box, id);
    if (thread == NULL) {
        return NULL;
    }
    return thread->process->is_stopped     ? "T (stopped)"
           : thread->state == THREAD_WAITS ? "S (sleeping)"
                                           : "R (running)";
}

static void write_stat(const char *text, const char *state, FILE *to)
{
    const char *rest = strrchr(text, ')');
    if (rest == NULL) {
        return;
    }
    fprintf(to, "%.*s)", (int)(rest - text), text);
    int field = 3;
    for (const char *word = rest + 1; *word != '\0' && *word != '\n'; field++) {
        int begin = 0, end = 0;
        sscanf(word, " %n%*s%n", &begin, &end);
        if (end == 0) {
            break;
        }
        if (field == 3 && state != NULL) {
            fprintf(to, " %c", state[0]);
        } else {
            fprintf(to, counts_use(field) ? " 0" : " %.*s", end - begin, word + begin);
        }
        word += end;
    }
    fputc('\n', to);
}

static void write_status(const char *text, const char *state, FILE *to)
{
    for (const char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const int bytes = (int)(end - line);
        const char *colon = memchr(line, ':', (size_t)bytes);
        const bool is_use = strncmp(line, "Vm", 2) == 0 || strncmp(line, "Rss", 3) == 0 ||
                            strncmp(line, "voluntary", 9) == 0 ||
                            strncmp(line, "nonvoluntary", 12) == 0;
        if (is_use && colon != NULL) {
            fprintf(to, "%.*s:\t%s\n", (int)(colon - line), line,
                    line[0] == 'V' || line[0] == 'R' ? "    4096 kB" : "1");
        } else if (strncmp(line, "SigQ:", 5) == 0) {
            fprintf(to, "SigQ:\t0/96000\n");
        } else if (strncmp(line, "State:", 6) == 0 && state != NULL) {
            fprintf(to, "State:\t%s\n", state);
        } else if (strncmp(line, "TracerPid:", 10) == 0) {
            fprintf(to, "TracerPid:\t0\n");
        } else {
            fprintf(to, "%.*s\n", bytes, line);
        }
    }
}

/* A line of /proc/PID/maps. A file system of this run has a number of this moment, and its files'
 * numbers are those that stat tells. */
static void write_mapping(struct box *box, const char *line, FILE *to)
{
    unsigned major, minor;
    unsigned long inode;
    int device = 0, rest = 0;
    if (sscanf(line, "%*s %*s %*s %n%x:%x %lu%n", &device, &major, &minor, &inode, &rest) == 3 &&
        major == 0 && minor != 0) {
        const uint64_t number = FIRST_INODE + number_of(&box->inodes, makedev(major, minor), inode);
        fprintf(to, "%.*s00:01 %llu%s", device, line, (unsigned long long)number, line + rest);
    } else {
        fputs(line, to);
    }
}

/* A line of /proc/PID/mountinfo, likewise. Mounts are numbered in the order of their telling. */
static void write_mount(struct box *box, const char *line, FILE *to)
{
    unsigned long mount, parent;
    unsigned major, minor;
    int rest = 0;
    if (sscanf(line, "%lu %lu %u:%u%n", &mount, &parent, &major, &minor, &rest) != 4) {
        return;
    }
    const uint64_t upper = number_of(&box->mounts, 0, parent),
                   own = number_of(&box->mounts, 0, mount);
    fprintf(to, "%llu %llu %u:%u%s", (unsigned long long)own + 1, (unsigned long long)upper + 1,
            major, major == 0 ? 1 : minor, line + rest);
}

static void write_lines(struct box *box, FILE *from, FILE *to,
                        void (*write)(struct box *box, const char *line, FILE *to))
{
    char line[4352];
    while (fgets(line, sizeof(line), from) != NULL) {
        write(box, line, to);
    }
}

/* The kernel's file without what counts use, and without numbers of this moment. */
static void write_own(struct box *box, pid_t process, const char *file, FILE *from, FILE *to)
{
    static char text[16384];
    const char *slash = strrchr(file, '/');
    const char *name = slash == NULL ? file : slash + 1;
    if (strcmp(name, "maps") == 0) {
        write_lines(box, from, to, write_mapping);
        return;
    }
    if (strcmp(name, "mountinfo") == 0) {
        write_lines(box, from, to, write_mount);
        return;
    }
    text[fread(text, 1, sizeof(text) - 1, from)] = '\0';
    if (strcmp(name, "stat") == 0) {
        write_stat(text, state_of(box, process, file), to);
    } else if (strcmp(name, "status") == 0) {
        write_status(text, state_of(box, process, file), to);
    } else if (strcmp(name, "statm") == 0) {
        fputs("4096 1024 512 16 0 1024 0\n", to);
    }
}

/* The file that stands in for what is opened just now; its path is in the page. */
static FILE *begin(struct box *box)
{
    snprintf(box->page->path, sizeof(box->page->path), FILES_FOLDER "own");
    unlink(box->page->path);
    return fopen(box->page->path, "we");
}

bool own_file_write(struct box *box, pid_t process, const char *file)
{
    char real[160];
    snprintf(real, sizeof(real), "/proc/%d/%s", process, file);
    FILE *from = fopen(real, "re");
    if (from == NULL) {
        return false;
    }
    FILE *to = begin(box);
    if (to != NULL) {
        write_own(box, process, file, from, to);
        fclose(to);
    }
    fclose(from);
    return to != NULL;
}

/* -- Nodes --------------------------------------------------------------------------------------*/

bool node_file_write(struct box *box, int node, const char *path)
{
    const bool is_name = strcmp(path, "/proc/sys/kernel/hostname") == 0;
    if (node < 0 || (!is_name && strcmp(path, "/proc/sys/kernel/random/boot_id") != 0)) {
        return false;
    }
    FILE *to = begin(box);
    if (to == NULL) {
        return false;
    }
    if (is_name) {
        fprintf(to, NODE_NAME "\n", (unsigned)node);
    } else {
        fprintf(to, "5eed5eed-5eed-4eed-8eed-%012x\n", (unsigned)node + 1);
    }
    return fclose(to) == 0;
}
