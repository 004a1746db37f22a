/* SPDX-License-Identifier: BSD-2-Clause
 *
 * process - nothing happens before a program asks for devices: a preloaded library reaches every
 * child of a program, and most never call verbs.
 */
#include "kernel/process.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "drivers/system/shortage.h"
#include "drivers/system/system.h"
#include "kernel/cm_device.h"
#include "kernel/nldev_objects.h"

static struct {
    pthread_mutex_t mutex;
    struct live *live;
    pid_t owner;  /* The process that made `live`. */
    bool refused; /* It could not be made: said once. */
} process = {.mutex = PTHREAD_MUTEX_INITIALIZER};
static _Atomic(const struct process_library *) attached;

/* (mutex) A NIC is this process's, and there is none where it was refused. */
static void process_check(void)
{
    CHECK(process.owner == getpid());
    CHECK(process.live == NULL || !process.refused);
    CHECK(process.live == NULL || !live_is_inherited(process.live));
}

void process_attach(const struct process_library *library)
{
    const struct process_library *before = atomic_exchange(&attached, library);
    CHECK(before == NULL || before == library); /* Its objects are the only ones that we know. */
}

const struct process_library *process_attached(void)
{
    return atomic_load(&attached);
}

void process_complain(const char *reason)
{
    const int before = errno;
    fprintf(stderr, "nonic: %s\n", reason);
    errno = before;
}

/* A child's copy of its parent's NIC is never touched: its threads are not here, and its sockets
 * are the parent's. */
static void forget_parent(void)
{
    if (process.owner != getpid()) {
        process.live = NULL;
        process.refused = false;
        process.owner = getpid();
    }
}

static __thread bool held_for_fork;

/* A child gets the NIC as it is between two calls, not in the middle of another thread's. */
static void before_fork(void)
{
    held_for_fork =
        process.live != NULL && process.owner == getpid() && live_lock_unless_held(process.live);
    if (held_for_fork && atomic_load_explicit(&live_has_lent, memory_order_relaxed)) {
        live_take_back(process.live, 0, UINT64_MAX);
    }
    if (held_for_fork) {
        live_forks(process.live);
    }
}

void process_take_back(uint64_t start, uint64_t bytes)
{
    const int before = errno;
    if (process.live != NULL && process.owner == getpid() && live_lock_unless_held(process.live)) {
        live_take_back(process.live, start, bytes);
        live_unlock(process.live);
    }
    errno = before;
}

static void in_parent(void)
{
    if (held_for_fork) {
        live_goes_on(process.live);
        live_unlock(process.live);
    }
}

/* Makes only calls that are allowed between fork and exec. A thread that held our locks is not in
 * the child, so the locks are free. */
static void in_child(void)
{
    const struct process_library *library = process_attached();
    if (process.live != NULL) {
        live_forked(process.live);
    }
    pthread_mutex_init(&process.mutex, NULL);
    cm_device_in_child();
    if (library != NULL) {
        library->in_child(held_for_fork ? process.live : NULL);
    }
}

static void *fail(int reason)
{
    errno = reason;
    return NULL;
}

/* A shortage may pass: the next time there may be more. Everything else stays as it is, and is said
 * once. */
static struct live *refuse(const char *error, int reason)
{
    process_complain(error);
    CHECK(process.live == NULL);
    process.refused = !shortage_is(reason);
    return fail(process.refused ? ENODEV : reason);
}

/* Others want to join by way of us, whether our program opens the device or not. */
static bool share(struct live *live, char *error, size_t error_bytes)
{
    return !live_is_shared(live) || live_start(live, error, error_bytes);
}

static struct live *claim(void)
{
    char error[600];
    static bool told;
    told = told || pthread_atfork(before_fork, in_parent, in_child) == 0;
    if (!told) {
        process_complain("no memory to be told of children");
        return fail(ENOMEM);
    }
    errno = 0;
    struct live *live = live_claim_from_environment(error, sizeof(error));
    if (live == NULL) {
        return refuse(error, errno);
    }
    const struct live_owner owner = {.on_leaving = cm_device_leave, .on_wish = objects_tell};
    live_set_owner(live, &owner);
    if (!share(live, error, sizeof(error))) {
        const int reason = errno;
        live_close(live);
        return refuse(error, reason);
    }
    return live;
}

struct live *process_live(void)
{
    const int cancellation = uncancelled_begin();
    pthread_mutex_lock(&process.mutex);
    forget_parent();
    const int before = errno;
    errno = ENODEV;
    INVARIANTS(process_check());
    if (process.live == NULL && !process.refused) {
        process.live = claim();
    }
    INVARIANTS(process_check());
    struct live *live = process.live;
    pthread_mutex_unlock(&process.mutex);
    uncancelled_end(cancellation);
    errno = live == NULL ? errno : before;
    CHECK(live != NULL || errno != 0);
    return live;
}

struct live *process_live_started(void)
{
    struct live *live = process_live();
    if (live == NULL) {
        return NULL;
    }
    char error[256];
    const int cancellation = uncancelled_begin();
    pthread_mutex_lock(&process.mutex);
    errno = 0;
    const bool started = live_start(live, error, sizeof(error));
    const int reason = errno;
    pthread_mutex_unlock(&process.mutex);
    uncancelled_end(cancellation);
    if (!started) {
        process_complain(error);
        return fail(reason != 0 ? reason : ENOMEM);
    }
    return live;
}

/* The last completions of a program that just ends have been acknowledged when this returns. */
__attribute__((destructor)) static void close_at_exit(void)
{
    if (process.live != NULL && process.owner == getpid()) {
        live_leave(process.live);
    }
}
