/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Many runs at once: each core, and each MPI rank, takes the next one.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/lab.h"
#include "tools/nonic.h"

#define MODULE "nonic-mpi.so"

struct lab_run *lab_runs_open(uint32_t count)
{
    struct lab_run *runs = mmap(NULL, count * sizeof(*runs), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(runs != MAP_FAILED);
    return runs;
}

void lab_runs_close(struct lab_run *runs, uint32_t count)
{
    munmap(runs, count * sizeof(*runs));
}

/* -- Cores --------------------------------------------------------------------------------------*/

/* State that the processes of this rank share. */
struct queue {
    atomic_uint next, finished;
};

typedef void (*lab_finished)(const struct lab_run *run, uint32_t number, uint32_t count);

/* Takes this rank's runs one after the other until none is left. */
static void work(struct queue *queue, struct lab_run *runs, uint32_t count,
                 const struct lab_ranks *ranks, lab_finished finished)
{
    const uint32_t size = (uint32_t)ranks->size, rank = (uint32_t)ranks->rank;
    while (true) {
        const uint32_t index = atomic_fetch_add(&queue->next, 1) * size + rank;
        if (index >= count) {
            return;
        }
        (void)lab_execute(&runs[index]);
        const uint32_t number = atomic_fetch_add(&queue->finished, 1) + 1;
        if (finished != NULL) {
            finished(&runs[index], number, (count - rank + size - 1) / size);
        }
    }
}

static bool work_in_children(struct queue *queue, struct lab_run *runs, uint32_t count,
                             const struct lab_ranks *ranks, lab_finished finished, long cores)
{
    bool good = true;
    for (long child = 0; child < cores; child++) {
        const pid_t pid = fork();
        if (pid < 0) {
            good = false;
            break;
        }
        if (pid == 0) {
            work(queue, runs, count, ranks, finished);
            _exit(0);
        }
    }
    int status;
    while (wait(&status) > 0) {
        good &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    return good;
}

/* -- Ranks --------------------------------------------------------------------------------------*/

static void *load_module(char *error, size_t error_bytes)
{
    char path[PATH_MAX], reason[3 * PATH_MAX];
    if (!find_part(MODULE, path, sizeof(path), reason, sizeof(reason))) {
        snprintf(error, error_bytes, "started under mpirun, but %s", reason);
        return NULL;
    }
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (module == NULL) {
        snprintf(error, error_bytes, "started under mpirun, but %s cannot be loaded: %s", path,
                 dlerror());
    }
    return module;
}

static bool open_ranks(struct lab_ranks *ranks, char *error, size_t error_bytes)
{
    *ranks = (struct lab_ranks){.rank = 0, .size = 1};
    if (getenv("OMPI_COMM_WORLD_SIZE") == NULL && getenv("PMI_SIZE") == NULL) {
        return true;
    }
    void *module = load_module(error, error_bytes);
    if (module == NULL) {
        return false;
    }
    void (*open)(struct lab_ranks *);
    *(void **)&open = dlsym(module, "lab_mpi_open");
    CHECK(open != NULL);
    open(ranks);
    return true;
}

/* -- All of it ----------------------------------------------------------------------------------*/

/* Another rank's pointers mean nothing here. */
static void gather(const struct lab_ranks *ranks, struct lab_run *runs, uint32_t count)
{
    const struct lab_experiment **experiments = calloc(count, sizeof(*experiments));
    CHECK(experiments != NULL);
    for (uint32_t i = 0; i < count; i++) {
        experiments[i] = runs[i].experiment;
    }
    ranks->gather(runs, count);
    ranks->finish();
    for (uint32_t i = 0; i < count; i++) {
        runs[i].experiment = experiments[i];
    }
    free(experiments);
}

bool lab_runs_execute(struct lab_run *runs, uint32_t count, lab_finished finished, char *error,
                      size_t error_bytes)
{
    struct lab_ranks ranks;
    struct queue *queue =
        mmap(NULL, sizeof(*queue), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(queue != MAP_FAILED);
    error[0] = '\0';
    if (!open_ranks(&ranks, error, error_bytes)) {
        munmap(queue, sizeof(*queue));
        return false;
    }
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    bool good = true;
    if (count == 1) {
        work(queue, runs, count, &ranks, finished);
    } else {
        good = work_in_children(queue, runs, count, &ranks, finished,
                                ranks.size > 1 || cores < 1 ? 1 : cores);
    }
    munmap(queue, sizeof(*queue));
    if (ranks.size > 1) {
        gather(&ranks, runs, count);
    }
    if (!good) {
        snprintf(error, error_bytes, "a process that ran a part of the runs has ended early");
    }
    return good && ranks.rank == 0;
}
