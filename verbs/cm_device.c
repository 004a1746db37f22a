/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/cm_device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/clock.h"
#include "verbs/cm_internal.h"

/* Descriptors above are not given out: nobody has so many. */
#define FILES_MAX 65536

/* Untouched pages of it are no memory. */
static _Atomic(struct cm_file *) files[FILES_MAX];
static atomic_int files_open;

/* Past the C library, whose write() is ours (interpose_descriptor.c). */
static void count_up(int fd, uint64_t count)
{
    while (count > 0 && syscall(SYS_write, fd, &count, sizeof(count)) < 0 && errno == EINTR) {
    }
}

/* -- Files --------------------------------------------------------------------------------------*/

struct cm_file *cm_file_of(int fd)
{
    if (fd < 0 || fd >= FILES_MAX) {
        return NULL;
    }
    struct cm_file *file = atomic_load_explicit(&files[fd], memory_order_acquire);
    return file != NULL && file->owner == getpid() ? file : NULL;
}

bool cm_device_is(int fd)
{
    return cm_file_of(fd) != NULL;
}

/* Called, locked, when events came or went. */
static void on_changed(void *unused, struct rdma_channel *channel)
{
    (void)unused;
    struct cm_file *file = CONTAINER_OF(channel, struct cm_file, channel);
    const bool wanted = !list_empty(&channel->events);
    if (wanted && !file->readable) {
        count_up(file->fd, 1);
    } else if (!wanted && file->readable) {
        /* Only we read and write it, locked: it holds our 1. */
        uint64_t one;
        (void)!read(file->fd, &one, sizeof(one));
    }
    file->readable = wanted;
    if (wanted) {
        count_up(file->wait_fd, file->waiters);
        file->waiters = 0;
    }
}

struct cm_id *cm_id_make(void)
{
    struct cm_id *id = calloc(1, sizeof(*id));
    if (id == NULL) {
        return NULL;
    }
    list_init(&id->node);
    list_init(&id->multicasts);
    return id;
}

static struct rdma_id *make_id(void *unused)
{
    (void)unused;
    struct cm_id *id = cm_id_make();
    return id == NULL ? NULL : &id->core;
}

static void on_released(void *unused, struct rdma_id *core)
{
    (void)unused;
    free(CONTAINER_OF(core, struct cm_id, core));
}

int cm_device_open(int flags)
{
    struct live *live = process_live_started();
    struct cm_file *file = live == NULL ? NULL : calloc(1, sizeof(*file));
    if (file == NULL) {
        errno = live == NULL ? ENODEV : ENOMEM;
        return -1;
    }
    file->live = live;
    file->owner = getpid();
    rdma_channel_init(&file->channel);
    list_init(&file->ids);
    file->fd =
        eventfd(0, (flags & O_CLOEXEC ? EFD_CLOEXEC : 0) | (flags & O_NONBLOCK ? EFD_NONBLOCK : 0));
    file->wait_fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    if (file->fd < 0 || file->fd >= FILES_MAX || file->wait_fd < 0) {
        close(file->fd);
        close(file->wait_fd);
        free(file);
        errno = EMFILE;
        return -1;
    }
    static const struct live_cm_listener listener = {
        .make_id = make_id, .on_released = on_released, .on_changed = on_changed};
    live_lock(live);
    live_cm_listen(live, &listener);
    live_unlock(live);
    files_open++;
    atomic_store_explicit(&files[file->fd], file, memory_order_release);
    return file->fd;
}

void cm_id_destroy(struct live *live, struct cm_id *id)
{
    while (!list_empty(&id->multicasts)) {
        struct cm_multicast *multicast =
            CONTAINER_OF(list_pop(&id->multicasts), struct cm_multicast, node);
        rdma_multicast_leave(live_cm(live), &multicast->core);
        cm_handle_give(multicast->core.handle);
        free(multicast);
    }
    if (id->service != NULL) {
        services_release(id->service);
        id->service = NULL;
    }
    cm_handle_give(id->core.handle);
    list_remove(&id->node);
    rdma_id_release(live_cm(live), &id->core, live_now(live));
}

/* Also requests that the program has not answered: their ids are in no list but the events'. */
static void destroy_ids(struct cm_file *file)
{
    live_lock(file->live);
    while (!list_empty(&file->ids)) {
        cm_id_destroy(file->live, CONTAINER_OF(file->ids.next, struct cm_id, node));
    }
    live_cm_settle(file->live);
    rdma_channel_forget(&file->channel);
    live_unlock(file->live);
}

void cm_device_close(int fd)
{
    struct cm_file *file = cm_file_of(fd);
    atomic_store_explicit(&files[fd], NULL, memory_order_release);
    files_open--;
    destroy_ids(file);
    close(file->wait_fd);
    free(file);
}

void cm_device_leave(void)
{
    for (int fd = 0; files_open > 0 && fd < FILES_MAX; fd++) {
        struct cm_file *file = cm_file_of(fd);
        if (file != NULL) {
            destroy_ids(file);
        }
    }
}

/* -- Commands -----------------------------------------------------------------------------------*/

static int execute(struct cm_file *file, uint32_t number, struct cm_command *command)
{
    live_lock(file->live);
    live_now(file->live);
    int failure = ENOMEM;
    if (live_cm_prepare(file->live)) {
        failure = cm_execute(number, command);
        live_cm_settle(file->live);
    }
    live_unlock(file->live);
    return failure;
}

/* Blocks in the kernel, where a signal or a cancellation may end it, and without the lock. */
static bool wait_for_event(struct cm_file *file)
{
    const int flags = fcntl(file->fd, F_GETFL);
    if (flags < 0 || (flags & O_NONBLOCK)) {
        errno = EAGAIN;
        return false;
    }
    live_lock(file->live);
    const bool empty = list_empty(&file->channel.events);
    file->waiters += empty;
    live_unlock(file->live);
    uint64_t count;
    return !empty || read(file->wait_fd, &count, sizeof(count)) == (ssize_t)sizeof(count);
}

ssize_t cm_device_write(int fd, const void *bytes, size_t count)
{
    struct cm_file *file = cm_file_of(fd);
    struct rdma_ucm_cmd_hdr header;
    if (file == NULL || count < sizeof(header)) {
        errno = EINVAL;
        return -1;
    }
    memcpy(&header, bytes, sizeof(header));
    if (header.in > count - sizeof(header)) {
        errno = EINVAL;
        return -1;
    }
    struct cm_command command = {.file = file,
                                 .in = (const uint8_t *)bytes + sizeof(header),
                                 .in_bytes = header.in,
                                 .out_bytes = header.out};
    int failure;
    while ((failure = execute(file, header.cmd, &command)) == EAGAIN) {
        if (!wait_for_event(file)) {
            return -1;
        }
    }
    if (failure != 0) {
        errno = failure;
        return -1;
    }
    return (ssize_t)count;
}
