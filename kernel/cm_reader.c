/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_reader - the thread that takes a channel's events, when another destroys what they are about.
 *
 * Such a thread sleeps in poll() until the channel is readable, and then asks for the event without
 * looking again. If another destroys the id in between, the event is gone, and it waits for one
 * that nobody will raise: rping does not end then. The kernel is as merciless, but takes so long to
 * destroy an id that the thread has been there before.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "drivers/system/lines.h"
#include "kernel/cm_internal.h"

/* A destroy looks LOOKS_RUNNABLE times at a thread that could take the event now if it had a
 * processor. It looks LOOKS_ASLEEP times at a thread that sleeps, because this may be about to come
 * out of our lock. */
#define LOOKS_RUNNABLE 2000
#define LOOKS_ASLEEP   5
#define LOOK_NS        100000
/* The most looks, for the threads of one channel, by a thread that destroys its ids: about a
 * second. */
#define LOOKS_OF_FILE 8000

/* As the kernel has it: on a processor, or waiting for one. */
static bool is_runnable(pid_t thread)
{
    char path[64], text[256];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
    lines_read(AT_FDCWD, path, text, sizeof(text));
    const char *name_end = strrchr(text, ')'); /* A thread may be called anything. */
    return name_end != NULL && strncmp(name_end, ") R", 3) == 0;
}

/* The thread that an event of the id waits for; 0: there is none, of either. */
static pid_t awaited_reader(struct cm_file *file, uint32_t handle)
{
    live_lock(file->live);
    const struct cm_id *id = file->closed ? NULL : cm_handle_find(handle, CM_HANDLE_ID);
    const bool waits =
        id != NULL && id->core.channel == &file->channel && rdma_id_has_events(&id->core);
    const bool blocks = waits && !(fcntl(file->fd, F_GETFL) & O_NONBLOCK);
    const pid_t reader = blocks && file->taker != gettid() ? file->taker : 0;
    live_unlock(file->live);
    return reader;
}

void cm_let_reader_take(struct cm_file *file, uint32_t handle)
{
    const struct timespec pause = {.tv_nsec = LOOK_NS};
    pid_t reader;
    uint32_t asleep = 0;
    for (uint32_t look = 0;
         look < LOOKS_RUNNABLE && asleep < LOOKS_ASLEEP && file->looks < LOOKS_OF_FILE &&
         (reader = awaited_reader(file, handle)) != 0;
         look++) {
        asleep = is_runnable(reader) ? 0 : asleep + 1;
        file->looks++;
        nanosleep(&pause, NULL);
    }
}
