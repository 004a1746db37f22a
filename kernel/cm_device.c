/* SPDX-License-Identifier: BSD-2-Clause */
#include "kernel/cm_device.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "drivers/system/descriptor.h"
#include "drivers/system/raced.h"
#include "drivers/system/system.h"
#include "kernel/cm_internal.h"

/* Descriptors of this number and above are not given out: no program has as many as that. */
#define FILES_MAX 65536

/* A close waits for at most READER_STEPS pauses for a thread that is about to wait for an event. */
#define READER_STEPS   50
#define READER_STEP_NS 100000

/* Untouched pages of these arrays take no memory. Files change under the mutex. Owners are looked
 * up without it, for every descriptor that a program writes to. */
static struct cm_file *files[FILES_MAX];
static _Atomic(pid_t)
    owners[FILES_MAX]; /* 0: no file. A child of fork owns none of its parent's. */
#define PARENTS ((pid_t)-1)
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static atomic_int files_open;

/* -- Calls as the kernel does them --------------------------------------------------------------*/

/* The state of a thread before it entered the device. */
struct outside {
    int cancellation;
    sigset_t signals;
};

/* Nothing comes in between while a kernel executes a command: a thread is cancelled, and its signal
 * handlers run, before that, after it, or while it waits. So must it be with us: we hold locks, and
 * a handler may leave us for good, by exit() or longjmp(). Signals that tell of errors of the
 * thread itself cannot wait. The mutex of the files orders no two threads of the program. */
static void enter_device(struct outside *outside)
{
    sigset_t all;
    sigfillset(&all);
    const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        sigdelset(&all, own[i]);
    }
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &outside->cancellation);
    pthread_sigmask(SIG_BLOCK, &all, &outside->signals);
    race_enter();
}

static void leave_device(const struct outside *outside)
{
    const int reason = errno;
    race_leave();
    pthread_sigmask(SIG_SETMASK, &outside->signals, NULL);
    pthread_setcancelstate(outside->cancellation, NULL);
    errno = reason;
}

static void count_up(int fd, uint64_t count)
{
    if (count > 0) {
        system_count_up(fd, count);
    }
}

/* -- Files --------------------------------------------------------------------------------------*/

/* (locked) Threads wait only as long as there is no event. */
static void file_check(const struct cm_file *file)
{
    CHECK(file->fd >= 0 && file->fd < FILES_MAX && file->wait_fd >= 0 && file->live != NULL);
    list_check(&file->ids);
    CHECK(file->closed || file->waiters == 0 || !file->readable);
}

bool cm_device_is(int fd)
{
    const pid_t owner =
        fd < 0 || fd >= FILES_MAX ? 0 : atomic_load_explicit(&owners[fd], memory_order_acquire);
    return owner != 0 && owner == getpid();
}

bool cm_device_was(int fd)
{
    return fd >= 0 && fd < FILES_MAX &&
           atomic_load_explicit(&owners[fd], memory_order_acquire) == PARENTS;
}

/* The file stays until it is dropped, even if another thread closes the descriptor meanwhile. */
static struct cm_file *hold(int fd)
{
    pthread_mutex_lock(&mutex);
    struct cm_file *file = cm_device_is(fd) ? files[fd] : NULL;
    if (file != NULL) {
        CHECK(file->fd == fd && file->users > 0);
        file->users++;
    }
    pthread_mutex_unlock(&mutex);
    return file;
}

static void drop(struct cm_file *file)
{
    pthread_mutex_lock(&mutex);
    CHECK(file->users > 0);
    const bool last = --file->users == 0;
    pthread_mutex_unlock(&mutex);
    if (last) {
        CHECK(list_empty(&file->ids)); /* They went when it was closed. */
        race_forget(file->wait_fd);
        descriptor_close(file->wait_fd);
        free(file);
    }
}

static void publish(struct cm_file *file)
{
    pthread_mutex_lock(&mutex);
    files[file->fd] = file;
    atomic_store_explicit(&owners[file->fd], getpid(), memory_order_release);
    pthread_mutex_unlock(&mutex);
    files_open++;
}

/* Takes the file from its descriptor. The caller becomes its last user. NULL: another thread has
 * taken it. */
static struct cm_file *withdraw(int fd)
{
    pthread_mutex_lock(&mutex);
    struct cm_file *file = cm_device_is(fd) ? files[fd] : NULL;
    if (file != NULL) {
        files[fd] = NULL;
        atomic_store_explicit(&owners[fd], 0, memory_order_release);
        files_open--;
    }
    pthread_mutex_unlock(&mutex);
    return file;
}

struct cm_file *cm_file_of(int fd)
{
    pthread_mutex_lock(&mutex);
    struct cm_file *file = cm_device_is(fd) ? files[fd] : NULL;
    pthread_mutex_unlock(&mutex);
    return file;
}

/* Only we read and write the counter, with the lock held: it holds our 1. If the program has read
 * it, this call does not wait for another 1. */
static void count_down(int fd)
{
    struct pollfd readable = {.fd = fd, .events = POLLIN};
    uint64_t one;
    if (poll(&readable, 1, 0) == 1) {
        (void)!system_read(fd, &one, sizeof(one));
    }
}

/* Called, locked, when events came or went. */
static void on_changed(struct rdma_channel *channel)
{
    struct cm_file *file = CONTAINER_OF(channel, struct cm_file, channel);
    const bool wanted = rdma_channel_peek(channel) != NULL;
    if (wanted && !file->readable) {
        count_up(file->fd, 1);
    } else if (!wanted && file->readable) {
        count_down(file->fd);
    }
    file->readable = wanted;
    if (wanted) {
        count_up(file->wait_fd, file->waiters);
        file->waiters = 0;
    }
    INVARIANTS(file_check(file));
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

static struct rdma_id *make_id(void)
{
    struct cm_id *id = cm_id_make();
    return id == NULL ? NULL : &id->core;
}

static void on_released(struct rdma_id *core)
{
    free(CONTAINER_OF(core, struct cm_id, core));
}

static int open_device(int flags)
{
    struct live *live = process_live_started();
    struct cm_file *file = live == NULL ? NULL : calloc(1, sizeof(*file));
    if (file == NULL) {
        return -1; /* errno says why. */
    }
    file->live = live;
    file->users = 1;
    rdma_channel_init(&file->channel);
    list_init(&file->ids);
    file->fd = system_eventfd((flags & O_CLOEXEC ? EFD_CLOEXEC : 0) |
                              (flags & O_NONBLOCK ? EFD_NONBLOCK : 0));
    file->wait_fd = descriptor_own(system_eventfd(EFD_CLOEXEC | EFD_SEMAPHORE));
    if (file->fd < 0 || file->fd >= FILES_MAX || file->wait_fd < 0) {
        const int reason = file->fd < FILES_MAX ? errno : EMFILE;
        descriptor_close(file->fd);
        descriptor_close(file->wait_fd);
        free(file);
        errno = reason;
        return -1;
    }
    static const struct live_cm_listener listener = {
        .make_id = make_id, .on_released = on_released, .on_changed = on_changed};
    live_lock(live);
    live_cm_listen(live, &listener);
    live_unlock(live);
    publish(file);
    return file->fd;
}

int cm_device_open(int flags)
{
    struct outside outside;
    enter_device(&outside);
    const int fd = open_device(flags);
    leave_device(&outside);
    return fd;
}

void cm_id_check(const struct cm_file *file, const struct cm_id *id)
{
    CHECK(id->core.channel == &file->channel);
    CHECK(id->core.handle != 0 && cm_handle_find(id->core.handle, CM_HANDLE_ID) == id);
    list_check(&id->node);
    CHECK(!list_empty(&id->node));
    list_check(&id->multicasts);
    /* It claims a port while it is bound to one. */
    CHECK(id->service == NULL || id->core.source.port != 0);
}

void cm_id_destroy(struct live *live, struct cm_id *id)
{
    while (!list_empty(&id->multicasts)) {
        struct cm_multicast *multicast =
            CONTAINER_OF(list_pop(&id->multicasts), struct cm_multicast, node);
        CHECK(multicast->core.id == &id->core);
        rdma_multicast_leave(live_cm(live), &multicast->core);
        cm_handle_give(multicast->core.handle);
        free(multicast);
    }
    if (id->service != NULL) {
        live_cm_unclaim(id->service);
        id->service = NULL;
    }
    cm_handle_give(id->core.handle);
    list_remove(&id->node);
    rdma_id_release(live_cm(live), &id->core, live_now(live));
}

/* Also requests that the program has not answered: their ids are in no list but the events'. */
static void destroy_ids(struct cm_file *file, bool closing)
{
    live_lock(file->live);
    if (closing) {
        file->closed = true;
        file->flags = fcntl(file->fd, F_GETFL);
    }
    while (!list_empty(&file->ids)) {
        INVARIANTS(cm_id_check(file, CONTAINER_OF(file->ids.next, struct cm_id, node)));
        cm_id_destroy(file->live, CONTAINER_OF(file->ids.next, struct cm_id, node));
        /* Room for last words is limited: these are sent before the next id goes. */
        live_cm_settle(file->live);
    }
    rdma_channel_forget(&file->channel);
    INVARIANTS(file_check(file));
    live_unlock(file->live);
}

/* Has the file other users than the descriptor and the thread that closes it? */
static bool in_use(struct cm_file *file)
{
    pthread_mutex_lock(&mutex);
    CHECK(file->users >= 1);
    const bool used = file->users > 2;
    pthread_mutex_unlock(&mutex);
    return used;
}

/* A thread that was just told of the last event is about to wait for the next. The kernel takes so
 * long to destroy ids that it is there when the channel is closed; so must we. */
static void let_reader_return(struct cm_file *file)
{
    const struct timespec pause = {.tv_nsec = READER_STEP_NS};
    live_lock(file->live);
    const pid_t reader = file->reader;
    live_unlock(file->live);
    for (int i = 0; i < READER_STEPS && reader != 0 && reader != gettid() && !in_use(file) &&
                    syscall(SYS_tgkill, getpid(), reader, 0) == 0;
         i++) {
        nanosleep(&pause, NULL);
    }
}

/* A thread that waits for an event goes on waiting, as with the kernel: programs close the channel
 * under their waiting thread, which would take an error for the end of the world. */
void cm_device_close(int fd)
{
    struct outside outside;
    if (cm_device_was(fd)) {
        owners[fd] = 0;
        return;
    }
    enter_device(&outside);
    struct cm_file *file = hold(fd);
    if (file != NULL) {
        let_reader_return(file);
        if (withdraw(fd) == file) {
            destroy_ids(file, true);
            drop(file);
        }
        drop(file);
    }
    leave_device(&outside);
}

void cm_device_leave(void)
{
    for (int fd = 0; files_open > 0 && fd < FILES_MAX; fd++) {
        struct cm_file *file = hold(fd);
        if (file != NULL) {
            destroy_ids(file, false);
            drop(file);
        }
    }
}

void cm_device_in_child(void)
{
    pthread_mutex_init(&mutex, NULL);
    for (int fd = 0, left = files_open; left > 0 && fd < FILES_MAX; fd++) {
        const pid_t owner = owners[fd];
        if (owner != 0 && owner != PARENTS) {
            owners[fd] = PARENTS;
            left--;
        }
    }
    files_open = 0;
}

/* -- Commands -----------------------------------------------------------------------------------*/

/* The word that orders all that a thread did before a command before all that follows an event, for
 * ThreadSanitizer: a message may have come from this process. */
static const char commanded;

static int execute(struct cm_file *file, uint32_t number, struct cm_command *command)
{
    race_release(&commanded);
    live_lock(file->live);
    live_now(file->live);
    int failure = ENOMEM;
    if (file->closed) {
        /* A thread that waits for an event began before the file was closed, and will never find
         * one. */
        failure = number == RDMA_USER_CM_CMD_GET_EVENT ? EAGAIN : EBADF;
    } else if (live_cm_prepare(file->live)) {
        INVARIANTS(file_check(file));
        failure = cm_execute(number, command);
        live_cm_settle(file->live);
        INVARIANTS(file_check(file));
    }
    live_unlock(file->live);
    if (failure == 0 && number == RDMA_USER_CM_CMD_GET_EVENT) {
        race_acquire(&commanded);
    }
    return failure;
}

/* Blocks in the kernel, where a signal or a cancellation may end it, and without the lock. */
static bool wait_for_event(struct cm_file *file, const struct outside *outside)
{
    live_lock(file->live);
    /* Until it is closed the number is the file's, so that its flags can be asked for. */
    const int flags = file->closed ? file->flags : fcntl(file->fd, F_GETFL);
    const bool empty = rdma_channel_peek(&file->channel) == NULL;
    const bool waits = empty && !(flags & O_NONBLOCK);
    file->waiters += waits;
    file->reader = waits ? gettid() : file->reader;
    INVARIANTS(file_check(file));
    live_unlock(file->live);
    if (!waits) {
        errno = EAGAIN;
        return !empty;
    }
    uint64_t count;
    struct outside as_before;
    leave_device(outside);
    const bool woken = read(file->wait_fd, &count, sizeof(count)) == (ssize_t)sizeof(count);
    const int reason = errno;
    enter_device(&as_before);
    errno = reason;
    return woken;
}

static ssize_t write_command(struct cm_file *file, const void *bytes, size_t count,
                             const struct outside *outside)
{
    struct rdma_ucm_cmd_hdr header;
    if (count < sizeof(header)) {
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
    struct rdma_ucm_destroy_id destroy;
    if (header.cmd == RDMA_USER_CM_CMD_DESTROY_ID &&
        cm_read_in(&command, &destroy, sizeof(destroy))) {
        cm_let_reader_take(file, destroy.id);
    }
    int failure;
    while ((failure = execute(file, header.cmd, &command)) == EAGAIN) {
        if (!wait_for_event(file, outside)) {
            return -1;
        }
    }
    if (failure != 0) {
        errno = failure;
        return -1;
    }
    return (ssize_t)count;
}

static void drop_cancelled(void *file)
{
    struct outside outside;
    enter_device(&outside);
    drop(file);
    leave_device(&outside);
}

ssize_t cm_device_write(int fd, const void *bytes, size_t count)
{
    ssize_t written;
    struct outside outside;
    pthread_testcancel();
    enter_device(&outside);
    struct cm_file *file = hold(fd);
    if (file == NULL) {
        leave_device(&outside);
        errno = EBADF;
        return -1;
    }
    pthread_cleanup_push(drop_cancelled, file);
    written = write_command(file, bytes, count, &outside);
    pthread_cleanup_pop(1);
    leave_device(&outside);
    return written;
}
