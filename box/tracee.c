/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/tracee.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define DIRECTION_FLAG 0x400ull

enum {
    LOOKS_MAX = 1000,
    LOOK_US = 1000,
};

bool tracee_registers(pid_t thread, registers *into)
{
    return ptrace(PTRACE_GETREGS, thread, NULL, into) == 0;
}

bool tracee_set_registers(pid_t thread, const registers *from)
{
    return ptrace(PTRACE_SETREGS, thread, NULL, from) == 0;
}

bool tracee_read(pid_t thread, uint64_t address, void *into, size_t bytes)
{
    const struct iovec here = {into, bytes}, there = {(void *)(uintptr_t)address, bytes};
    return process_vm_readv(thread, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

bool tracee_write(pid_t thread, uint64_t address, const void *from, size_t bytes)
{
    const struct iovec here = {(void *)(uintptr_t)from, bytes},
                       there = {(void *)(uintptr_t)address, bytes};
    return process_vm_writev(thread, &here, 1, &there, 1, 0) == (ssize_t)bytes;
}

bool tracee_read_text(pid_t thread, uint64_t address, char *into, size_t bytes)
{
    /* A text may end just before a page that is not there. */
    for (size_t i = 0; i < bytes;) {
        const size_t page_left = 4096 - (size_t)((address + i) & 4095);
        const size_t part = page_left < bytes - i ? page_left : bytes - i;
        if (!tracee_read(thread, address + i, into + i, part)) {
            return false;
        }
        if (memchr(into + i, '\0', part) != NULL) {
            return true;
        }
        i += part;
    }
    return false;
}

bool tracee_wait(pid_t thread, int *status)
{
    pid_t got;
    do {
        got = waitpid(thread, status, __WALL);
    } while (got < 0 && errno == EINTR);
    return got == thread;
}

/* A debugger may write where the program may not: the process gets a copy of the page. */
static bool poke_code(pid_t thread, uint64_t address, const void *code, size_t bytes)
{
    char name[40];
    snprintf(name, sizeof(name), "/proc/%d/mem", (int)thread);
    const int file = open(name, O_RDWR | O_CLOEXEC);
    const bool done = file >= 0 && pwrite(file, code, bytes, (off_t)address) == (ssize_t)bytes;
    if (file >= 0) {
        close(file);
    }
    return done;
}

/* To the end of the call whose code the thread is about to run: an entry stop, perhaps the
 * filter's, and an exit stop. */
static bool run_call(pid_t thread)
{
    int status, stops = 0;
    while (stops < 2) {
        if (ptrace(PTRACE_SYSCALL, thread, NULL, NULL) != 0 || !tracee_wait(thread, &status) ||
            !WIFSTOPPED(status)) {
            return false;
        }
        stops += WSTOPSIG(status) == (SIGTRAP | 0x80);
    }
    return true;
}

int64_t tracee_call(pid_t thread, long number, const uint64_t arguments[6])
{
    static const uint8_t syscall_code[2] = {0x0f, 0x05};
    registers before, call;
    uint8_t code[sizeof(syscall_code)];
    if (!tracee_registers(thread, &before) ||
        !tracee_read(thread, before.rip, code, sizeof(code)) ||
        !poke_code(thread, before.rip, syscall_code, sizeof(syscall_code))) {
        return -ESRCH;
    }
    call = before;
    call.rax = (unsigned long)number;
    call.orig_rax = (unsigned long)-1;
    call.rdi = arguments[0];
    call.rsi = arguments[1];
    call.rdx = arguments[2];
    call.r10 = arguments[3];
    call.r8 = arguments[4];
    call.r9 = arguments[5];
    registers after;
    const bool done = tracee_set_registers(thread, &call) && run_call(thread) &&
                      tracee_registers(thread, &after) &&
                      poke_code(thread, before.rip, code, sizeof(code)) &&
                      tracee_set_registers(thread, &before);
    return done ? (int64_t)after.rax : -ESRCH;
}

/* Until it stops by SIGSEGV. */
static bool await_fault(pid_t thread)
{
    int status;
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        const pid_t got = waitpid(thread, &status, __WALL | WNOHANG);
        if (got == thread && (!WIFSTOPPED(status) || WSTOPSIG(status) == SIGSEGV)) {
            return WIFSTOPPED(status);
        }
        /* Another stop was due. */
        if (got == thread) {
            ptrace(PTRACE_CONT, thread, NULL, NULL);
        } else {
            usleep(LOOK_US);
        }
    }
    ptrace(PTRACE_INTERRUPT, thread, NULL, NULL);
    (void)tracee_wait(thread, &status);
    return false;
}

bool tracee_run(pid_t thread, uint64_t function, const uint64_t arguments[4], uint64_t stack,
                uint64_t *result)
{
    static const uint64_t nowhere; /* It returns there, which is a fault. */
    registers before, at, after;
    /* As behind a call instruction, which has pushed where to return. */
    const uint64_t top = (stack & ~UINT64_C(15)) - sizeof(nowhere);
    if (!tracee_registers(thread, &before) ||
        !tracee_write(thread, top, &nowhere, sizeof(nowhere))) {
        return false;
    }
    at = before;
    at.rip = function;
    at.rsp = top;
    at.rax = 0;
    at.orig_rax = (unsigned long)-1;
    at.rdi = arguments[0];
    at.rsi = arguments[1];
    at.rdx = arguments[2];
    at.rcx = arguments[3];
    at.eflags &= ~DIRECTION_FLAG;
    const bool done = tracee_set_registers(thread, &at) &&
                      ptrace(PTRACE_CONT, thread, NULL, NULL) == 0 && await_fault(thread) &&
                      tracee_registers(thread, &after) && after.rip == nowhere;
    tracee_set_registers(thread, &before);
    *result = done ? after.rax : 0;
    return done;
}

size_t tracee_vectors(pid_t thread, void *into, size_t bytes)
{
    struct iovec vector = {into, bytes};
    return ptrace(PTRACE_GETREGSET, thread, NT_X86_XSTATE, &vector) == 0 ? vector.iov_len : 0;
}
