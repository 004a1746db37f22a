/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exec - a process has become a program: before its first instruction it gets the shared page, our
 * object for the time, and numbers that do not differ from run to run.
 */
#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/calls.h"
#include "box/files.h"
#include "box/machine.h"

enum {
    TEXT_BELOW_STACK = 1024, /* where a path may stand before the program runs */
};

static bool map_file(pid_t id, uint64_t stack, const char *path, uint64_t address, uint64_t bytes,
                     int rights, int flags)
{
    const uint64_t text = stack - TEXT_BELOW_STACK;
    if (!tracee_write(id, text, path, strlen(path) + 1)) {
        return false;
    }
    const int64_t file = tracee_call(
        id, SYS_openat,
        (uint64_t[6]){(uint64_t)AT_FDCWD, text, rights & PROT_WRITE ? O_RDWR : O_RDONLY});
    if (file < 0) {
        return false;
    }
    const int64_t mapped =
        tracee_call(id, SYS_mmap,
                    (uint64_t[6]){address, bytes, (uint64_t)rights, (uint64_t)(flags | MAP_FIXED),
                                  (uint64_t)file, 0});
    tracee_call(id, SYS_close, (uint64_t[6]){(uint64_t)file});
    /* No rest of ours stays on its stack. */
    const char nothing[256] = {0};
    tracee_write(id, text, nothing, strlen(path) + 1);
    return mapped == (int64_t)address;
}

/* Linux' own object shows the machine's time, and lies elsewhere in each run. */
static void unmap_kernels(pid_t id)
{
    char line[600];
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)id);
    FILE *file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unsigned long from, to;
        if ((strstr(line, "[vdso]") != NULL || strstr(line, "[vvar") != NULL) &&
            sscanf(line, "%lx-%lx", &from, &to) == 2) {
            tracee_call(id, SYS_munmap, (uint64_t[6]){from, to - from});
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* Where the program's own code lies: that of the file that was started. A program whose first
 * instruction, at `entry`, lies elsewhere begins in its loader. */
static void find_code(struct process *process, uint64_t entry)
{
    char link[48], name[512], line[700];
    snprintf(link, sizeof(link), "/proc/%d/exe", (int)process->pid);
    const ssize_t bytes = readlink(link, name, sizeof(name) - 1);
    name[bytes < 0 ? 0 : bytes] = '\0';
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)process->pid);
    FILE *file = fopen(line, "re");
    memset(process->loader, 0, sizeof(process->loader));
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unsigned long from, to;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) != 3 || rights[2] != 'x') {
            continue;
        }
        if (bytes > 0 && strstr(line, name) != NULL) {
            process->program[0] = from;
            process->program[1] = to;
        } else if (entry >= from && entry < to) {
            process->loader[0] = from;
            process->loader[1] = to;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* The auxiliary vector, behind the environment: where the object is, and 16 random bytes. */
static void patch_auxiliary(struct box *box, const struct thread *thread, uint64_t stack)
{
    uint64_t count, word, pair[2], drawn[2];
    if (!tracee_read(thread->id, stack, &count, sizeof(count))) {
        return;
    }
    uint64_t at = stack + 8 * (count + 2);
    do {
        if (!tracee_read(thread->id, at, &word, sizeof(word))) {
            return;
        }
        at += 8;
    } while (word != 0);
    for (; tracee_read(thread->id, at, pair, sizeof(pair)) && pair[0] != AT_NULL;
         at += sizeof(pair)) {
        if (pair[0] == AT_SYSINFO_EHDR) {
            pair[1] = BOX_VDSO_ADDRESS;
            tracee_write(thread->id, at, pair, sizeof(pair));
        } else if (pair[0] == AT_RANDOM) {
            entropy_fill(box, drawn, sizeof(drawn));
            tracee_write(thread->id, pair[1], drawn, sizeof(drawn));
        }
    }
}

void exec_prepare(struct box *box, struct thread *thread)
{
    registers at;
    int status;
    /* From the event to the end of execve. */
    do {
        if (ptrace(PTRACE_SYSCALL, thread->id, NULL, NULL) != 0 ||
            !tracee_wait(thread->id, &status) || !WIFSTOPPED(status)) {
            return;
        }
    } while (WSTOPSIG(status) != (SIGTRAP | 0x80));
    thread->in_kernel = false;
    if (!tracee_registers(thread->id, &at)) {
        return;
    }
    timers_forget(box, thread->process->pid, false);
    machine_leave(box, thread->process);
    unmap_kernels(thread->id);
    processor_clock_replace_all(box, thread->process);
    find_code(thread->process, at.rip);
    patch_auxiliary(box, thread, at.rsp);
    if (!map_file(thread->id, at.rsp, FILES_FOLDER "page", BOX_PAGE_ADDRESS, BOX_PAGE_BYTES,
                  PROT_READ | PROT_WRITE, MAP_SHARED) ||
        !map_file(thread->id, at.rsp, FILES_FOLDER "vdso", BOX_VDSO_ADDRESS, BOX_VDSO_BYTES,
                  PROT_READ | PROT_EXEC, MAP_PRIVATE)) {
        box_doubt(box, "process %d has no page of the box (an x86 program of 32 bits?)",
                  thread->process->pid);
    }
    if (thread->row != NULL && thread->call.number == SYS_execve) {
        turn_called(box, thread, 0);
    }
}
