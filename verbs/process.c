/* SPDX-License-Identifier: BSD-2-Clause
 *
 * process - this process's NIC: made when a program first asks for devices, gone when it ends.
 *
 * Nothing happens before that: a preloaded library reaches every child of a program, and most never
 * call verbs. A child of fork gets a NIC of its own.
 */
#include <stdio.h>
#include <unistd.h>

#include "verbs/cm_device.h"
#include "verbs/internal.h"

static struct {
    pthread_mutex_t mutex;
    struct live *live;
    pid_t owner;  /* The process that made `live`. */
    bool refused; /* It could not be made: said once. */
} process = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void complain(const char *reason)
{
    fprintf(stderr, "nonic: %s\n", reason);
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

/* Of a process that shares its address. Only what is allowed between fork and exec. */
static void in_child(void)
{
    if (process.live != NULL) {
        live_forked(process.live);
    }
}

/* Others want to join by way of us, whether our program opens the device or not. */
static bool share(struct live *live, char *error, size_t error_bytes)
{
    static bool told;
    if (!live_is_shared(live)) {
        return true;
    }
    told = told || pthread_atfork(NULL, NULL, in_child) == 0;
    return live_start(live, error, error_bytes);
}

static struct live *claim(void)
{
    char error[600];
    struct live_config config;
    struct live *live = NULL;
    if (live_config_from_environment(&config, error, sizeof(error))) {
        live = live_claim(&config, error, sizeof(error));
    }
    if (live == NULL) {
        complain(error);
        process.refused = true;
        return NULL;
    }
    const struct live_listener listener = {.on_completion_event = event_on_completion,
                                           .on_async_event = event_on_async,
                                           .on_leaving = cm_device_leave};
    live_listen(live, &listener);
    if (!share(live, error, sizeof(error))) {
        complain(error);
        process.refused = true;
        live_close(live);
        return NULL;
    }
    return live;
}

struct live *process_live(void)
{
    pthread_mutex_lock(&process.mutex);
    forget_parent();
    if (process.live == NULL && !process.refused) {
        process.live = claim();
    }
    struct live *live = process.live;
    pthread_mutex_unlock(&process.mutex);
    if (live == NULL) {
        errno = ENODEV;
    }
    return live;
}

struct live *process_live_started(void)
{
    struct live *live = process_live();
    if (live == NULL) {
        return NULL;
    }
    char error[256];
    pthread_mutex_lock(&process.mutex);
    const bool started = live_start(live, error, sizeof(error));
    pthread_mutex_unlock(&process.mutex);
    if (!started) {
        complain(error);
        errno = ENOMEM;
        return NULL;
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
