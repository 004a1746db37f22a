/* SPDX-License-Identifier: BSD-2-Clause
 *
 * internal - the state of a run: processes, threads, what each waits for.
 */
#ifndef BOX_INTERNAL_H
#define BOX_INTERNAL_H

#include <poll.h>
#include <signal.h>

#include "base/box_page.h"
#include "base/check.h"
#include "base/prng.h"
#include "box/box.h"
#include "box/loop.h"
#include "box/tracee.h"

#define NEVER UINT64_MAX

enum {
    BOX_THREADS_MAX = 4096,
    BOX_NUMBERS_MAX = 8192,
    FIRST_INODE = 5000, /* Files that were not there before the run begin here. */
    BOX_TIMERS_MAX = 256,
};

/* Seconds before a run is called stuck; only the person who waits notices. */
enum {
    ASLEEP_US =
        50000, /* A call sleeps in the kernel: longer than any that the box lets go there. */
};

struct process {
    pid_t pid, parent;
    int descriptor;       /* pidfd */
    int threads;          /* alive */
    uint64_t restarts;    /* signals whose handlers want calls made again (SA_RESTART), by number */
    uint64_t *clock_code; /* where the processor's clock is read: processor_clock.c */
    int clock_codes;
    uint64_t program[2];     /* where its own code begins and ends, */
    uint64_t loader[2];      /* and that of the loader; zeroes: it has none */
    bool is_running_program; /* It became a program: virtual time counts. */
    bool is_stopped;         /* SIGSTOP */
    bool is_ending;          /* All its threads end, because one has called exit_group. */
    int node;                /* the machine's on which it was started; -1: on none */
};

enum thread_state {
    THREAD_RUNS,    /* in its own code, or at the end of a call */
    THREAD_AT_CALL, /* at the beginning of a call that is not answered */
    THREAD_WAITS,   /* for `wait` */
    THREAD_ASLEEP,  /* in the kernel, where it should not be */
    THREAD_GONE,
};

enum wait_kind {
    WAIT_SLEEP, /* its deadline */
    WAIT_FUTEX,
    WAIT_DESCRIPTORS, /* one is ready */
    WAIT_PROGRESS,    /* anybody did something that others can see */
    WAIT_POLLS,       /* It asks again and again: as WAIT_PROGRESS, or its deadline. */
    WAIT_LOOP,        /* a word that its loop reads */
    WAIT_VFORK,       /* its child's execve or end */
    WAIT_SIGNAL,
    WAIT_NEWS, /* Its NIC, a machine's, has events or notifications. */
};

struct wait {
    enum wait_kind kind;
    uint64_t deadline_ns; /* NEVER: none */
    int64_t late;         /* the call's answer at the deadline */
    uint64_t seen;        /* the box's progress when it was last judged */
    uint64_t mask;        /* WAIT_SIGNAL: the signals that end it; 0: any that is taken */
    bool has_blocked;     /* While it waits `blocked` are blocked, in place of the thread's own. */
    uint64_t blocked;
    struct pollfd *ready; /* WAIT_DESCRIPTORS: duplicates of what it waits for */
    int descriptors;
    uint64_t futex_space, futex_address, futex_order;
    uint32_t futex_bits;
    pid_t child;
};

/* A call as the program made it. */
struct call {
    long number;
    uint64_t argument[6];
    registers at; /* its beginning; rax is the number */
};

/* A call that found nothing, to notice that it is made again and again. */
struct empty_poll {
    registers at;
    uint64_t clock_reads, calls;
};

/* How far a thread goes behind the end of its call: short ways are as likely as long ones; half of
 * them end between two statements of the program, where its assumptions are. */
struct way {
    int steps, returns;
};

enum hold_kind {
    HOLD_BEHIND_CALL,
    HOLD_BEHIND_VERB,
    HOLD_KINDS
};

struct hold_stream {
    struct prng draws;
    uint32_t drawn;
    uint64_t at; /* The next one is behind this call, or this verb, of the thread. */
};

struct hold {
    uint64_t held_ns;
    struct way way;
};

struct thread {
    pid_t id;
    int number;
    struct process *process;
    enum thread_state state;
    uint64_t clock_ns;
    uint64_t grant_ns; /* It runs on while its clock is less. */
    struct wait wait;
    struct call call;
    const struct call_row *row; /* of `call`, from its beginning to its end */
    bool in_kernel;             /* The kernel answers the call; its end is awaited. */
    bool is_answered;           /* Its call ends with `answer` when it runs. */
    int64_t answer;
    bool again;      /* The call is made again, and was paid for. */
    bool has_waited; /* in this call */
    bool is_within; /* The call is of an eventfd, by which threads of a process wake one another. */
    bool is_blocking_borrowed;  /* The descriptor's O_NONBLOCK is ours. */
    int borrowed;               /* a duplicate of the call's descriptor; -1: none */
    uint64_t done;              /* bytes that the call has written before it was made again */
    uint64_t first_deadline_ns; /* of a call that is made again */
    uint8_t sets[3][128];       /* select's descriptors, as the program named them */
    uint64_t clear_address; /* A word that is cleared, and woken, when the thread ends; 0: none. */
    int signal;             /* to be handed on when it runs */
    bool has_status;        /* It stopped or ended while another one was awaited. */
    int status;
    struct loop loop;
    struct empty_poll empty;
    uint64_t seen_changes;   /* of its NIC, when it last found nothing */
    uint64_t vain_polls;     /* of its NIC, in a row */
    uint64_t polls_since_ns; /* when it began to find nothing */
    uint64_t calls;
    uint64_t site_rip, site_rsp;      /* of the last call at which it gave way or waited */
    unsigned at_site;                 /* how often in a row */
    uint64_t barren;                  /* clocks that it read in vain: barren.c */
    uint64_t reads_before;            /* clocks that were read before its turn */
    uint32_t last_clock, was_another; /* box_page's, while others have their turn */
    struct hold_stream holds[HOLD_KINDS];
    uint64_t verbs;        /* that it has ended, when it was last stopped; box_page.verbs_left */
    uint32_t verbs_given;  /* was this then */
    uint64_t ran_until_ns; /* where its timeline ends, and what it waits for since then; */
    const char *waits_for; /* NULL: nothing */
    bool is_named;         /* there */
    uint64_t nap_ns;       /* WAIT_POLLS: how long it waits the next time */
    uint64_t idle_at;      /* the deeds at which `idles` began */
    unsigned idles;        /* how often it went on since, only because a time was over */
};

enum timer_kind {
    TIMER_NONE,
    TIMER_ALARM,
    TIMER_DESCRIPTOR,
    TIMER_POSIX
};

struct timer {
    enum timer_kind kind;
    pid_t process;
    int descriptor; /* TIMER_DESCRIPTOR: ours, which becomes readable */
    int number;     /* TIMER_POSIX: the program's, */
    int signal;     /* its signal (0: none), */
    pid_t thread;   /* the thread that gets it (0: any of the process), */
    uint64_t value; /* and what it carries */
    uint64_t next_ns, period_ns;
};

/* Numbers that the kernel gives are told as numbers by first sight. */
struct numbers {
    uint64_t seen[BOX_NUMBERS_MAX][2];
    int count;
};

struct box {
    struct box_options options;
    struct box_result *result;
    struct box_page *page;
    int page_file;
    struct thread *thread[BOX_THREADS_MAX];
    int threads, alive;
    struct thread *running;
    uint64_t now_ns;
    uint64_t progress;   /* counts what others can see */
    uint64_t deeds;      /* counts that part of it which shows that the run gets on */
    uint64_t judged;     /* the progress at which waits were judged */
    uint64_t nic_work;   /* what all NICs have counted, when it was last looked at */
    uint64_t idle_ns;    /* since when nobody did what others can see */
    uint64_t idle_deeds; /* the deeds of that time */
    uint64_t futex_order;
    struct prng entropy, ties, strays;
    bool draws_ties, draws_holds;
    struct numbers inodes, cookies, mounts;
    struct timer timer[BOX_TIMERS_MAX];
    struct machine *machine; /* NULL: NICs are live ones. */
    uint16_t next_port;
    pid_t first; /* the first process */
    bool has_first_ended;
    bool has_begun;   /* A program was started: calls count. */
    bool has_signals; /* Somebody may have got one: waits are judged by it. */
    int output[2];    /* what programs write: ends of pipes */
    FILE *output_file[2], *calls, *timeline, *code_files;
    char **code_file; /* the paths in it */
    size_t code_file_count;
    unsigned events; /* in the timeline */
    char line[2][1000];
    size_t line_bytes[2];
    struct {
        pid_t id;
        int status;
    } early[64]; /* stops of threads that nobody knows yet */
    int earlies;
    /* of the kernel's clock for files: what is as old or younger was made in the run */
    struct timespec started;
};

static inline unsigned tick_us(const struct box *box)
{
    return box->options.tick_us == 0 ? 1000 : box->options.tick_us;
}

/* tick.c: a timer interrupts the box, so that it looks at the thread that runs. */
void ticks_begin(const struct box *box);
void ticks_end(void);
/* A person wants the run to end: nobody waits any longer. */
bool ticks_are_over(void);

/* doubt.c. Says that the run may be another one next time, if nothing was said yet. */
void box_doubt(struct box *box, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* schedule.c: who runs next. */
struct thread *schedule_next(struct box *box, uint64_t *at_ns);
/* The time until which a thread that runs from now on need not ask: another one is due then. */
uint64_t schedule_grant(struct box *box, const struct thread *thread);
/* wake.c. A waiting thread goes on at `at_ns`, or now. */
void schedule_wake(struct box *box, struct thread *thread, uint64_t at_ns);

/* It goes on likewise, and its call has this result. */
void schedule_finish(struct box *box, struct thread *thread, uint64_t at_ns, int64_t result);

/* thread.c: processes and threads. */
struct thread *thread_new(struct box *box, pid_t id, struct process *process, uint64_t clock_ns);
struct thread *thread_find(struct box *box, pid_t id);
struct process *process_new(pid_t pid, pid_t parent);
/* The child gets what fork leaves to it. */
void process_inherit(struct process *child, const struct process *parent);
/* It has ended; `status` is waitpid's. */
void thread_ended(struct box *box, struct thread *thread, int status);
/* Waits until all threads of the process have ended. */
void process_await_end(struct box *box, struct process *process);

/* turn.c: a thread runs until it has to wait, or until its grant is over. */
void turn(struct box *box, struct thread *thread);
/* answer.c. The next time `thread` runs, its call has this result. */
void turn_answer(struct thread *thread, int64_t result);
/* The next time it runs, it makes its call again. */
void turn_again(struct thread *thread);
/* The arguments of the call are in the registers again. */
void turn_restore(const struct thread *thread, registers *at);
/* Whether a call with this result found nothing, and did not wait for it. */
bool turn_found_nothing(const struct thread *thread, int64_t result);
/* The end of a call: digest, log. */
void turn_called(struct box *box, struct thread *thread, int64_t result);

/* processor_clock.c: all code that the process has asks the box. */
void processor_clock_replace_all(struct box *box, struct process *process);
/* The thread got a signal: if it read the clock, it is answered. */
bool processor_clock_answer(struct box *box, struct thread *thread, bool is_replacement);

/* barren.c: a turn begins, and ends; a call found nothing; the thread did something else. */
void barren_begin(struct box *box, struct thread *thread);
void barren_end(struct box *box, struct thread *thread);
void barren_found_nothing(struct thread *thread);
void barren_over(struct box *box, struct thread *thread);
/* It polled a machine's NIC in vain. */
void barren_polled(struct box *box, struct thread *thread);
/* It has done nothing else for very long. */
bool barren_is_idle(const struct box *box, const struct thread *thread);
/* The cost of a call that may find nothing. */
uint64_t barren_cost(const struct thread *thread, uint64_t cost_ns);
/* How long the thread may run on while it reads clocks. */
uint64_t barren_grant_ns(const struct thread *thread);

/* idle.c: whether nobody will ever go on. To be asked before a thread's turn. */
bool idle_for_ever(struct box *box, struct thread *next);

/* futex.c */
int64_t futex_call(struct box *box, struct thread *thread, bool *waits);
/* A thread has ended: its word, and what it held. */
void futex_thread_ended(struct box *box, struct thread *thread);

/* descriptor.c */
int descriptor_borrow(const struct thread *thread, int descriptor);
void descriptor_return(struct thread *thread);
void descriptors_watch(struct thread *thread, const struct pollfd *wanted, int count);
bool descriptors_ready(struct thread *thread);
void descriptors_forget(struct thread *thread);

/* code_files.c: without a folder for files of the run these do nothing. */
void code_files_open(struct box *box, const char *directory);
void code_files_close(struct box *box);
void code_file_note(struct box *box, const char *path);
void code_file_note_descriptor(struct box *box, const struct process *process, int descriptor);

/* signals.c */
/* A signal that the thread would take now under this mask of blocked ones; 0: none. */
int signal_pending(const struct thread *thread, bool with_mask, uint64_t mask, bool *restarts);
/* Lets a thread that stands before a signal go to its handler, and stand there, with a frame that
 * is the same in each run. False: it has no handler, or the signal tells of a fault of its own. */
bool signal_hand_on(struct thread *thread, int signal);
/* The news of a child that ended says how much of this machine it used: no more. */
void signal_clear_usage(siginfo_t *info);
/* Ends the waits of threads for which signals have come. */
void signals_judge(struct box *box);

/* timers.c */
uint64_t timers_next(const struct box *box);
void timers_run(struct box *box);
/* The process ended, or became another program, which keeps its alarm. */
void timers_forget(struct box *box, pid_t process, bool with_alarm);

/* entropy.c */
void entropy_fill(struct box *box, void *into, size_t bytes);
uint64_t number_of(struct numbers *numbers, uint64_t major, uint64_t minor);

/* exec.c: a process became a program. */
void exec_prepare(struct box *box, struct thread *thread);

/* netlink.c: the call has received `bytes` from the kernel. */
void netlink_clear(struct thread *thread, int64_t bytes);

/* files.c: a process' own `file` of /proc that does not tell of this machine; its path is in the
 * page. False: there is no such file. */
bool own_file_write(struct box *box, pid_t process, const char *file);
/* Likewise the file of this path, if it is another one on each node (-1: none). */
bool node_file_write(struct box *box, int node, const char *path);

/* memory.c */
void memory_digest(struct box *box, struct process *process);

/* output.c */
bool output_open(struct box *box, int ends[2]);
void output_drain(struct box *box);
void output_end(struct box *box);

/* ask.c: what a NIC says of its queue pairs (`address` 0), or of the memory region in which the
 * address lies; perhaps nothing. The run is over: a thread of the NIC's process is used for it. */
void ask_nic(const struct box *box, const struct box_nic *nic, uint64_t address, char *into,
             size_t bytes);

/* holds.c: whether the thread is held back behind the call that is over, and how. */
void holds_begin(const struct box *box, struct thread *thread);
bool holds_draw(struct box *box, struct thread *thread, struct hold *drawn);
struct way draw_way(struct prng *from, unsigned most_log);
/* The call only asks for what is drawn: nobody else has a turn by it if that is left out. */
bool holds_is_asked(const struct box *box, const struct thread *thread);
/* The running thread's verbs make no call, but for the one behind which it may be held back. */
void holds_give_verbs(struct box *box, struct thread *thread);
void holds_count_verbs(const struct box *box, struct thread *thread);

/* halt.c: whether the run stops before the turn of `next`; its process is left to a debugger. */
bool halt_is_due(const struct box *box, const struct thread *next, uint64_t at_ns);
void halt(struct box *box, const struct thread *next);

/* timeline.c: a turn that began at `from_ns` is over; in it the thread was held back until now. */
void timeline_open(struct box *box, const char *directory);
void timeline_turn(struct box *box, struct thread *thread, uint64_t from_ns);
void timeline_hold(struct box *box, const struct thread *thread, uint64_t held_ns);
void timeline_close(struct box *box);

/* report.c: the name of the program that a process runs; empty if it is gone. */
void process_name(pid_t pid, char *into, size_t bytes);
/* The threads, and what each waits for, as text. */
void report_write(const struct box *box, char *into, size_t bytes);
/* Appends where a thread stands that is held back. */
void report_hold(const struct box *box, const struct thread *thread, char *into, size_t bytes);

#endif
