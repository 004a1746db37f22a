/* SPDX-License-Identifier: BSD-2-Clause
 *
 * stat_ask - questions to running programs for their counters, or for other texts over the same
 * socket.
 *
 * A program listens on an abstract socket (drivers/stat_server.h), and any user of the machine can
 * take such a name. So the kernel is asked who listens (SO_PEERCRED) before anything is read, and
 * all programs are asked side by side, within a time that no listener can lengthen.
 */
#ifndef DRIVERS_STAT_ASK_H
#define DRIVERS_STAT_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum stat_outcome {
    STAT_ASKING,   /* Not known yet. */
    STAT_ANSWERED, /* `text` is what the program said. */
    STAT_GONE,     /* Nobody listens under this name. */
    STAT_FOREIGN,  /* Another user listens, and we are not root; or it is not known which one. */
    STAT_SILENT,   /* No answer in time: a stopped program, or a queue that others keep full. */
};

struct stat_program {
    int pid; /* The number in the name; the process that listens is `process`. */
    enum stat_outcome outcome;
    pid_t process; /* The process that listens, as the kernel says; 0: one outside our PID
                      namespace. */
    uid_t user;
    char *text; /* Anything that a socket said: not to be printed as it is. NULL unless it
                   answered. */
    /* While it is asked. */
    const char *wish;
    int socket;       /* -1: not connected. */
    int64_t asked_at; /* In ns; 0: not asked yet. */
};

/* The names under which programs listen on this machine, each once. The caller owns *programs (to
 * be given back with stat_forget). Returns how many there are; 0 also if there is no memory. */
size_t stat_find(struct stat_program **programs);

/* Asks all of them, for 5 seconds at most, and 1 second each. `all`: also for the lines about each
 * connection that follow the counters in `text`. `wish`, which may be NULL: for something else
 * instead (stat_server.h); a program of an earlier build says its counters all the same. */
void stat_ask(struct stat_program *programs, size_t count, bool all, const char *wish);

/* Frees the texts and the array. */
void stat_forget(struct stat_program *programs, size_t count);

#endif
