/* SPDX-License-Identifier: BSD-2-Clause
 *
 * processor_clock - programs that read the processor's clock (rdtsc, rdtscp) get virtual time.
 *
 * Linux can let the instruction fault (PR_SET_TSC), but not every virtual machine honours that. So
 * the instruction is replaced where code is mapped, by one that always faults (ud2, of the same
 * length), and what faults there is answered by the box. Bytes that look like the instruction but
 * lie within another one stay: x86 code that is decoded from a few places before them nearly always
 * finds the borders of its instructions, and most of the places have to agree.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "box/calls.h"

enum {
    BEFORE = 96,    /* bytes before a candidate that are decoded */
    STARTS = 8,     /* places from which */
    AGREE = 5,      /* of which have to meet the candidate */
    PART = 1 << 20, /* bytes that are looked at in one piece */
};

static bool meets(const uint8_t *code, size_t start, size_t candidate)
{
    size_t at = start;
    while (at < candidate) {
        const size_t bytes = access_bytes(code + at, candidate + ACCESS_CODE_MAX - at);
        at += bytes == 0 ? 1 : bytes;
    }
    return at == candidate;
}

static bool is_instruction(const uint8_t *code, size_t candidate)
{
    const size_t first = candidate > BEFORE ? candidate - BEFORE : 0;
    int agree = 0, starts = 0;
    for (size_t start = first; start < candidate && starts < STARTS; start++, starts++) {
        agree += meets(code, start, candidate);
    }
    return agree >= AGREE || starts < STARTS;
}

static void note(struct process *process, uint64_t address)
{
    uint64_t *grown =
        realloc(process->clock_code, ((size_t)process->clock_codes + 1) * sizeof(*grown));
    CHECK(grown != NULL);
    process->clock_code = grown;
    process->clock_code[process->clock_codes++] = address;
}

/* Code that ends with the part is looked at again with the next one. */
static void replace_part(struct process *process, int memory, uint64_t address, const uint8_t *code,
                         size_t bytes)
{
    static const uint8_t fault = 0x0b; /* the second byte of ud2, whose first one is the same */
    for (size_t i = 0; i + ACCESS_CODE_MAX < bytes; i++) {
        const uint8_t *found = memchr(code + i, 0x0f, bytes - ACCESS_CODE_MAX - i);
        if (found == NULL) {
            return;
        }
        i = (size_t)(found - code);
        if (access_clock_bytes(found, ACCESS_CODE_MAX) != 0 && is_instruction(code, i) &&
            pwrite(memory, &fault, 1, (off_t)(address + i + 1)) == 1) {
            note(process, address + i);
        }
    }
}

static void processor_clock_replace(struct process *process, uint64_t from, uint64_t to)
{
    static uint8_t code[PART];
    char name[40];
    snprintf(name, sizeof(name), "/proc/%d/mem", (int)process->pid);
    const int memory = open(name, O_RDWR | O_CLOEXEC);
    while (memory >= 0 && from < to) {
        const size_t bytes = to - from < PART ? (size_t)(to - from) : PART;
        if (!tracee_read(process->pid, from, code, bytes)) {
            break;
        }
        replace_part(process, memory, from, code, bytes);
        from += bytes < PART ? bytes : bytes - BEFORE - ACCESS_CODE_MAX;
    }
    if (memory >= 0) {
        close(memory);
    }
}

void processor_clock_replace_all(struct box *box, struct process *process)
{
    char line[700];
    process->clock_codes = 0;
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)process->pid);
    FILE *file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unsigned long from, to;
        char rights[8];
        if (sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && rights[2] == 'x' &&
            from < BOX_PAGE_ADDRESS) {
            processor_clock_replace(process, from, to);
            line[strcspn(line, "\n")] = '\0';
            code_file_note(box, line + strcspn(line, "/"));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static bool is_replaced(const struct process *process, uint64_t address)
{
    for (int i = 0; i < process->clock_codes; i++) {
        if (process->clock_code[i] == address) {
            return true;
        }
    }
    return false;
}

bool processor_clock_answer(struct box *box, struct thread *thread, bool is_replacement)
{
    registers at;
    uint8_t code[3] = {0};
    if (!tracee_registers(thread->id, &at) ||
        !tracee_read(thread->id, at.rip, code, sizeof(code)) ||
        (is_replacement && !is_replaced(thread->process, at.rip))) {
        return false;
    }
    const int bytes =
        is_replacement ? (code[2] == 0xf9 ? 3 : 2) : access_clock_bytes(code, sizeof(code));
    if (bytes == 0) {
        return false;
    }
    const uint64_t ticks =
        page_clock_shows(CLOCK_MONOTONIC, page_read_clock(box->page, CLOCK_MONOTONIC));
    at.rax = (uint32_t)ticks;
    at.rdx = ticks >> 32;
    at.rcx = bytes == 3 ? 0 : at.rcx;
    at.rip += (unsigned)bytes;
    return tracee_set_registers(thread->id, &at);
}

ENTER(enter_mmap)
{
    (void)box;
    return (thread->call.argument[2] & PROT_EXEC) && !(thread->call.argument[3] & MAP_ANONYMOUS)
               ? CALL_KERNEL
               : CALL_PASSES;
}

LEAVE(leave_mmap)
{
    if ((uint64_t)*result < (uint64_t)-4095) {
        code_file_note_descriptor(box, thread->process, (int)thread->call.argument[4]);
        processor_clock_replace(thread->process, (uint64_t)*result,
                                (uint64_t)*result + thread->call.argument[1]);
    }
    return CALL_ANSWERED;
}
