/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/system/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/system/processor.h"
#include "wire/crc32c.h"

bool guard_fast_strings;

/* Each field is a distance from itself, so that the loader has nothing to relocate. */
struct guard_entry {
    int32_t begin, end, landing;
};

/* The linker's names for the ends of the section. */
extern const struct guard_entry entries_begin[] __asm__("__start_nonic_guard")
    __attribute__((visibility("hidden")));
extern const struct guard_entry entries_end[] __asm__("__stop_nonic_guard")
    __attribute__((visibility("hidden")));

static struct sigaction program_segv, program_bus; /* The handlers before ours. */
static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;

static uintptr_t place(const int32_t *distance)
{
    return (uintptr_t)distance + (uintptr_t)(intptr_t)*distance;
}

/* The place to go on at; 0: it is no instruction of ours that may fault. */
static uintptr_t landing_of(uintptr_t instruction)
{
    for (const struct guard_entry *entry = entries_begin; entry < entries_end; entry++) {
        if (instruction >= place(&entry->begin) && instruction < place(&entry->end)) {
            return place(&entry->landing);
        }
    }
    return 0;
}

/* Removes the handler: the instruction faults again, or the signal that a process sent comes again,
 * and this time ends the program. */
static void end_program(int signal, const siginfo_t *info)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigemptyset(&usual.sa_mask);
    sigaction(signal, &usual, NULL);
    if (info->si_code <= 0) {
        syscall(SYS_tgkill, getpid(), (pid_t)syscall(SYS_gettid), signal);
    }
}

static void pass_on(int signal, siginfo_t *info, void *context)
{
    struct sigaction *kept = signal == SIGSEGV ? &program_segv : &program_bus;
    const struct sigaction program = *kept;
    const bool sent = info->si_code <= 0; /* By kill and the like; a fault can't be ignored. */
    if ((unsigned)program.sa_flags & SA_RESETHAND) {
        kept->sa_handler = SIG_DFL;
        kept->sa_flags = 0;
    }
    if (program.sa_flags & SA_SIGINFO) {
        program.sa_sigaction(signal, info, context);
    } else if (program.sa_handler == SIG_DFL || (program.sa_handler == SIG_IGN && !sent)) {
        end_program(signal, info);
    } else if (program.sa_handler != SIG_IGN) {
        program.sa_handler(signal);
    }
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
    ucontext_t *thread = context;
    const uintptr_t landing =
        info->si_code > 0 ? landing_of(processor_next_instruction(thread)) : 0;
    if (landing != 0) {
        processor_go_on_at(thread, landing);
        return;
    }
    const int reason = errno;
    pass_on(signal, info, context);
    errno = reason;
}

/* The program's handler, if it has one, runs as it would without us: same mask, stack and flags. */
static void install(int signal, struct sigaction *program)
{
    struct sigaction before;
    if (sigaction(signal, NULL, &before) != 0 ||
        ((before.sa_flags & SA_SIGINFO) && before.sa_sigaction == on_fault)) {
        return;
    }
    const bool handled = (before.sa_flags & SA_SIGINFO) ||
                         (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN);
    struct sigaction ours = before;
    ours.sa_sigaction = on_fault;
    const unsigned theirs = (unsigned)before.sa_flags & ~(unsigned)SA_RESETHAND;
    ours.sa_flags = SA_SIGINFO | (handled ? (int)theirs : SA_ONSTACK);
    *program = before;
    sigaction(signal, &ours, NULL);
}

/* This happens once: a handler that was installed later may have kept ours as the one before it,
 * and the two would pass faults to each other without end. */
void guard_install(void)
{
    static bool installed;
    pthread_mutex_lock(&installing);
    if (!installed) {
        installed = true;
        guard_fast_strings = processor_has_fast_strings();
        install(SIGSEGV, &program_segv);
        install(SIGBUS, &program_bus);
    }
    pthread_mutex_unlock(&installing);
}

/* -- Sums ---------------------------------------------------------------------------------------*/

enum {
    LANES = 4,
    BLOCK_BYTES = 8 * LANES,
};

bool guard_sum(const uint8_t *from, uint32_t bytes, uint32_t *sum)
{
    uint64_t lanes[LANES] = {bytes};
    uint8_t rest[BLOCK_BYTES] = {0};
    const uint32_t blocks = bytes / BLOCK_BYTES, left = bytes % BLOCK_BYTES;
    if ((blocks > 0 && !guard_sum_blocks(from, blocks, lanes)) ||
        !guard_copy(rest, from + (bytes - left), left) || !guard_sum_blocks(rest, 1, lanes)) {
        return false;
    }
    *sum = crc32c(*sum, lanes, sizeof(lanes));
    return true;
}
