/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Many runs of one experiment: which values, on which core, and their results in order.
 */
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/lab.h"

#define VALUES_MAX 10000u

/* -- Values -------------------------------------------------------------------------------------*/

static bool add_value(struct lab_sweep *sweep, double value)
{
    if (sweep->count == VALUES_MAX) {
        return false;
    }
    sweep->values[sweep->count++] = value;
    return true;
}

/* "lo..hi:xF" or "lo..hi:+S". */
static bool parse_range(struct lab_sweep *sweep, const struct lab_parameter *parameter,
                        const char *text, char *error, size_t error_bytes)
{
    char low[64];
    const char *dots = strstr(text, "..");
    const char *colon = strrchr(text, ':');
    if (colon == NULL || colon < dots || (colon[1] != 'x' && colon[1] != '+')) {
        snprintf(error, error_bytes, "'%s' is no range: %s=LOW..HIGH:xFACTOR or %s=LOW..HIGH:+STEP",
                 text, parameter->name, parameter->name);
        return false;
    }
    char high[64];
    snprintf(low, sizeof(low), "%.*s", (int)(dots - text), text);
    snprintf(high, sizeof(high), "%.*s", (int)(colon - dots - 2), dots + 2);
    double from;
    double to;
    if (!lab_parse_value(parameter, low, &from, error, error_bytes) ||
        !lab_parse_value(parameter, high, &to, error, error_bytes)) {
        return false;
    }
    char *end;
    const double step = strtod(colon + 2, &end);
    const bool factor = colon[1] == 'x';
    if (*end != '\0' || !isfinite(step) || (factor ? step <= 1 || from <= 0 : step <= 0) ||
        from > to) {
        snprintf(error, error_bytes, "'%s' is no rising range: a factor is above 1, a step above 0",
                 text);
        return false;
    }
    /* The limit lies slightly beyond the end, for steps that are no binary fractions. */
    for (double value = from; value <= to * (1 + 1e-12);
         value = factor ? value * step : value + step) {
        if (!add_value(sweep, value)) {
            snprintf(error, error_bytes, "'%s' has more than %u values", text, VALUES_MAX);
            return false;
        }
    }
    return true;
}

static bool parse_list(struct lab_sweep *sweep, const struct lab_parameter *parameter,
                       const char *text, char *error, size_t error_bytes)
{
    while (true) {
        char one[64];
        const size_t length = strcspn(text, ",");
        double value;
        snprintf(one, sizeof(one), "%.*s", (int)length, text);
        if (!lab_parse_value(parameter, one, &value, error, error_bytes)) {
            return false;
        }
        if (!add_value(sweep, value)) {
            snprintf(error, error_bytes, "%s has more than %u values", parameter->name, VALUES_MAX);
            return false;
        }
        if (text[length] == '\0') {
            return true;
        }
        text += length + 1;
    }
}

bool lab_sweep_parse(struct lab_job *job, const char *text, char *error, size_t error_bytes)
{
    char name[64];
    const char *nearest;
    const char *equals = strchr(text, '=');
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof(name)) {
        snprintf(error, error_bytes, "'%s' is not NAME=VALUES", text);
        return false;
    }
    if (job->sweep_count == LAB_SWEEPS_MAX) {
        snprintf(error, error_bytes, "more than %d sweeps", LAB_SWEEPS_MAX);
        return false;
    }
    snprintf(name, sizeof(name), "%.*s", (int)(equals - text), text);
    const int index = lab_parameter_index(job->experiment, name, &nearest);
    if (index < 0) {
        snprintf(error, error_bytes, "%s has no parameter '%s'; the nearest is '%s'",
                 job->experiment->name, name, nearest);
        return false;
    }
    struct lab_sweep *sweep = &job->sweeps[job->sweep_count++];
    const struct lab_parameter *parameter = &job->experiment->parameters[index];
    *sweep = (struct lab_sweep){.parameter = (uint32_t)index};
    sweep->values = calloc(VALUES_MAX, sizeof(sweep->values[0]));
    CHECK(sweep->values != NULL);
    return strstr(equals, "..") != NULL
               ? parse_range(sweep, parameter, equals + 1, error, error_bytes)
               : parse_list(sweep, parameter, equals + 1, error, error_bytes);
}

uint32_t lab_job_points(const struct lab_job *job)
{
    uint32_t points = 1;
    for (uint32_t i = 0; i < job->sweep_count; i++) {
        points *= job->sweeps[i].count;
    }
    return points;
}

bool lab_job_prepare(const struct lab_job *job, uint32_t point, struct lab_run *run, char *error,
                     size_t error_bytes)
{
    lab_prepare(run, job->experiment, job->seed);
    for (uint32_t i = 0; i < job->set_count; i++) {
        if (!lab_set(run, job->sets[i], error, error_bytes)) {
            return false;
        }
    }
    for (uint32_t i = job->sweep_count; i > 0; i--) {
        const struct lab_sweep *sweep = &job->sweeps[i - 1];
        if (!lab_set_value(run, sweep->parameter, sweep->values[point % sweep->count], error,
                           error_bytes)) {
            return false;
        }
        point /= sweep->count;
    }
    return true;
}

void lab_job_free(struct lab_job *job)
{
    for (uint32_t i = 0; i < job->sweep_count; i++) {
        free(job->sweeps[i].values);
    }
}

/* -- Cores --------------------------------------------------------------------------------------*/

/* On a terminal, prints a line that says how far a longer run is. */
static void show_progress(const struct lab_run *run, double share)
{
    static double shown;
    if (share < shown) {
        shown = 0;
    }
    if (isatty(STDERR_FILENO) && share - shown >= 0.01) {
        shown = share;
        fprintf(stderr, "\r%s: %3.0f %%%s", run->experiment->name, share * 100,
                share >= 1 ? "\r\033[K" : "");
    }
}

static void execute_one(const struct lab_job *job, struct lab_run *run, uint32_t point,
                        uint32_t points)
{
    char error[LAB_TEXT_BYTES];
    CHECK(lab_job_prepare(job, point, run, error, sizeof(error)));
    if (point == 0) {
        run->trace_path = job->trace_path;
        run->capture_path = job->capture_path;
    }
    run->progress = job->quiet || points > 1 ? NULL : show_progress;
    (void)lab_execute(run);
}

/* Runs this process's share of the points in `children` processes, which leave their results in
 * shared memory. */
static bool execute_in_children(const struct lab_job *job, struct lab_run *runs, uint32_t points,
                                const struct lab_ranks *ranks, uint32_t children)
{
    bool good = true;
    for (uint32_t child = 0; child < children; child++) {
        const pid_t pid = fork();
        if (pid < 0) {
            good = false;
            break;
        }
        if (pid == 0) {
            const uint32_t stride = (uint32_t)ranks->size * children;
            for (uint32_t i = (uint32_t)ranks->rank + child * (uint32_t)ranks->size; i < points;
                 i += stride) {
                execute_one(job, &runs[i], i, points);
            }
            _exit(0);
        }
    }
    int status;
    while (wait(&status) > 0) {
        good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
}

struct lab_run *lab_job_execute(const struct lab_job *job, char *error, size_t error_bytes)
{
    struct lab_ranks ranks;
    const uint32_t points = lab_job_points(job);
    struct lab_run *shared = mmap(NULL, points * sizeof(*shared), PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct lab_run *runs = calloc(points, sizeof(*runs));
    CHECK(shared != MAP_FAILED && runs != NULL);
    if (!lab_ranks_open(&ranks, error, error_bytes)) {
        free(runs);
        munmap(shared, points * sizeof(*shared));
        return NULL;
    }
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    bool good = true;
    if (points == 1) {
        if (ranks.rank == 0) {
            execute_one(job, &shared[0], 0, 1);
        }
    } else {
        good = execute_in_children(job, shared, points, &ranks,
                                   ranks.size > 1 || cores < 1 ? 1 : (uint32_t)cores);
    }
    memcpy(runs, shared, points * sizeof(*runs));
    munmap(shared, points * sizeof(*shared));
    if (ranks.size > 1) {
        ranks.gather(runs, points);
        ranks.finish();
    }
    if (!good) {
        snprintf(error, error_bytes, "a process that ran a part of the sweep has ended early");
    }
    if (!good || ranks.rank != 0) {
        free(runs);
        return NULL;
    }
    for (uint32_t i = 0; i < points; i++) {
        runs[i].experiment = job->experiment; /* Another rank's pointer means nothing here. */
    }
    return runs;
}

/* -- Ranks --------------------------------------------------------------------------------------*/

/* The directory of this program, then the one it is installed beside. */
static void *load_module(char *error, size_t error_bytes)
{
    static const char *const beside[] = {"nonic-mpi.so", "../lib/nonic/nonic-mpi.so",
                                         "tools/nonic-mpi.so"};
    char self[512];
    const ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length <= 0) {
        snprintf(error, error_bytes, "cannot tell where this program is: %s", strerror(errno));
        return NULL;
    }
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    slash[1] = '\0';
    for (size_t i = 0; i < COUNT_OF(beside); i++) {
        char path[600];
        snprintf(path, sizeof(path), "%s%s", self, beside[i]);
        void *module = access(path, R_OK) == 0 ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
        if (module != NULL) {
            return module;
        }
    }
    snprintf(error, error_bytes,
             "started under mpirun, but nonic-mpi.so is not beside %s or "
             "cannot be loaded",
             self);
    return NULL;
}

bool lab_ranks_open(struct lab_ranks *ranks, char *error, size_t error_bytes)
{
    *ranks = (struct lab_ranks){.rank = 0, .size = 1};
    if (getenv("OMPI_COMM_WORLD_SIZE") == NULL && getenv("PMI_SIZE") == NULL) {
        return true;
    }
    void *module = load_module(error, error_bytes);
    if (module == NULL) {
        return false;
    }
    void (*open_ranks)(struct lab_ranks *);
    *(void **)&open_ranks = dlsym(module, "lab_mpi_open");
    CHECK(open_ranks != NULL);
    open_ranks(ranks);
    return true;
}
