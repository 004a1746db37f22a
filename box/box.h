/* SPDX-License-Identifier: BSD-2-Clause
 *
 * box - runs unmodified programs in virtual time, one thread of all of them at a time, so that a
 * seed gives one run.
 *
 * Purpose: the kernel is a passive store of bytes (sockets, pipes, shared memory). Calls that wait,
 * tell time or are drawn by lot are answered here, and so is the question which thread runs next.
 * Limits: docs/decisions/0054 says what repeats and why, call by call.
 */
#ifndef BOX_BOX_H
#define BOX_BOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* One of the files of a run: the paths of the files whose code ran, a line each. */
#define BOX_CODE_FILES "code-files"

enum {
    BOX_HOLDS_MAX = 4096,
};

/* Names the time `count`, from 0 on, that thread `thread` is held back. */
static inline uint64_t box_hold(uint32_t thread, uint32_t count)
{
    return (uint64_t)thread << 32 | count;
}

struct roce_config;

struct box_options {
    uint64_t seed;   /* 0: nothing is drawn; all costs are exact, and ties go to the lower number */
    unsigned jitter; /* thousandths that a call may cost more; with seed 0 nothing */
    uint64_t hold_ns; /* the longest time for which a thread is held back; 0: none is */
    /* Threads are held back these times only (box_hold); NULL: whenever it is drawn. */
    const uint64_t *holds;
    size_t hold_count;
    bool tell_holds;    /* The result tells where. */
    uint64_t until_ns;  /* the virtual time at which the run ends; 0: it may go on */
    unsigned processor; /* for all threads: 0, 1, ... of those that the caller may use */
    unsigned tick_us;   /* how often the box looks at a thread that makes no calls */
    bool reference;     /* Every call is stopped; else programs read clocks by themselves. */
    bool memory;        /* The digest has all memory of each process at its end. */
    bool no_ties;       /* Ties go to the lower number with every seed. */
    /* Each line that a program writes comes here, without its end: `which` is 0 for standard output
     * and 1 for standard error. A line of more than 1,000 bytes comes in pieces. */
    void (*on_line)(void *context, int which, const char *line);
    void *context;
    bool quiet;            /* The programs' output is not passed on to our own. */
    const char *directory; /* where files of the run go, with a slash at its end; NULL: none */
    /* At `halt_ns`, before a turn of thread `halt_thread` (-1: any), the run ends; its process is
     * left to a debugger that this calls: stopped, and traced by nobody. NULL: it does not. */
    void (*on_halt)(void *context, pid_t process, pid_t thread, int number, uint64_t at_ns);
    uint64_t halt_ns;
    int halt_thread;
    /* Programs' NICs and their network are this machine's; NULL: they are live ones. Programs are
     * to load another library then. */
    const struct roce_config *machine;
    const char *capture; /* The machine's packets are written into this file; NULL: they are not. */
    const char *vdso;    /* path of the object that stands in for Linux' vDSO */
};

enum box_end {
    BOX_ENDED,    /* The first program ended; `status` is its exit status, or 128 and its signal. */
    BOX_DEADLOCK, /* Nobody can go on, or nobody got on for still_ns. */
    BOX_LATE,     /* until_ns is over. */
    BOX_HALTED,   /* halt_ns came. */
    BOX_STOPPED,  /* A person ended it (SIGINT, SIGTERM). */
    BOX_FAILED,   /* The box itself could not go on: `error` says why. */
};

struct box_result {
    enum box_end end;
    int status;
    uint64_t digest, virtual_ns;
    uint64_t still_ns; /* of BOX_DEADLOCK: threads still looked, in vain; 0: nobody can go on */
    uint64_t calls, answered, switches, loops, steps;
    int threads, processes;
    char error[400];              /* of BOX_FAILED */
    char unrepeatable[400];       /* why the run may be another one next time; empty: it repeats */
    unsigned holds;               /* times that threads were held back, or would have been: */
    uint64_t hold[BOX_HOLDS_MAX]; /* the first of them */
    char held[8000];              /* where that was, if it is to be told */
    char nics[4000];              /* what a machine's NICs have counted; empty: nothing */
    char report[16000];           /* of ends that are none of the program's: who waits for what */
};

/* Runs what `start` starts, until the first process has ended; others are killed then. `start` is
 * called in the first process, whose standard input is empty; it becomes the program (execve), or
 * returns the exit status. The caller is the first process of a pid namespace (walls.h) with one
 * thread, and has no other children. */
void box_run(const struct box_options *options, int (*start)(void *), void *context,
             struct box_result *result);

#endif
