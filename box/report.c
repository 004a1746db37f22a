/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report - who waits for what, and where, for a person to read.
 */
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/box_ask.h"
#include "box/calls.h"

enum {
    FRAMES_MAX = 12,
    REGION_BYTES = 200,
    QPS_BYTES = 6000,
};

struct text {
    const struct box *box;
    char *into;
    size_t bytes, used;
    int frames;
};

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *text, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int said = vsnprintf(text->into + text->used, text->bytes - text->used, format, values);
    va_end(values);
    text->used +=
        (size_t)said < text->bytes - text->used ? (size_t)said : text->bytes - text->used - 1;
}

void process_name(pid_t pid, char *into, size_t bytes)
{
    char path[48];
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? 0 : read(file, into, bytes - 1);
    if (file >= 0) {
        close(file);
    }
    into[got > 0 ? got - 1 : 0] = '\0';
}

static uint32_t nics(const struct box *box)
{
    return box->page->nics < BOX_NICS_MAX ? box->page->nics : BOX_NICS_MAX;
}

static bool say_region(struct text *text, pid_t pid, uint64_t address)
{
    char region[REGION_BYTES];
    for (uint32_t i = 0; i < nics(text->box); i++) {
        if (text->box->page->nic[i].process == pid) {
            ask_nic(text->box, &text->box->page->nic[i], address, region, sizeof(region));
            if (region[0] != '\0') {
                say(text, ", %s", region);
                return true;
            }
        }
    }
    return false;
}

/* The memory region or the mapping in which an address lies, and how far from its beginning. */
static void say_place(struct text *text, pid_t pid, uint64_t address)
{
    char line[600];
    if (say_region(text, pid, address)) {
        return;
    }
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(line, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unsigned long from, to;
        int name = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &from, &to, &name) == 2 && address >= from &&
            address < to) {
            line[strcspn(line, "\n")] = '\0';
            say(text, ", byte %lu of %s", (unsigned long)(address - from),
                name > 0 && line[name] != '\0' ? line + name : "memory without a name");
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

static void say_loop(struct text *text, const struct thread *thread)
{
    const struct loop *loop = &thread->loop;
    say(text,
        "reads memory again and again (a loop of %d instructions), which nobody will change:\n",
        loop->steps);
    for (int i = 0; i < loop->words; i++) {
        const struct loop_word *word = &loop->word[i];
        say(text, "      0x%llx, %u byte%s:", (unsigned long long)word->address, word->bytes,
            word->bytes == 1 ? "" : "s");
        for (uint32_t byte = 0; byte < word->bytes && byte < 16; byte++) {
            say(text, " %02x", word->value[byte]);
        }
        say_place(text, thread->process->pid, word->address);
        say(text, "\n");
    }
}

static void say_wait(struct text *text, const struct thread *thread)
{
    const uint64_t *argument = thread->call.argument;
    const char *call = thread->row == NULL ? "no call" : thread->row->name;
    switch (thread->wait.kind) {
    case WAIT_LOOP: say_loop(text, thread); break;
    case WAIT_FUTEX:
        say(text, "%s: waits for the word at 0x%llx (a lock, a condition, or the end of a thread)",
            call, (unsigned long long)argument[0]);
        say_place(text, thread->process->pid, argument[0]);
        say(text, "\n");
        break;
    case WAIT_POLLS:
        say(text, "%s again and again: there is never anything\n",
            thread->row->number == BOX_ASK ? "polls a completion queue" : call);
        break;
    case WAIT_DESCRIPTORS:
        if (thread->row->flags & CALL_RESTARTS) {
            say(text, "%s: waits for descriptor %d\n", call, (int)argument[0]);
        } else {
            say(text, "%s: waits for %d of its descriptors\n", call, thread->wait.descriptors);
        }
        break;
    case WAIT_SLEEP:
    case WAIT_PROGRESS:
    case WAIT_VFORK:
    case WAIT_SIGNAL: say(text, "%s: waits\n", call); break;
    case WAIT_NEWS: say(text, "waits for events of its NIC\n"); break;
    }
    if (thread->wait.deadline_ns != NEVER) {
        say(text, "      until %.9f s\n", (double)thread->wait.deadline_ns / 1e9);
    }
}

static int on_frame(Dwfl_Frame *frame, void *context)
{
    struct text *text = context;
    Dwarf_Addr at;
    bool is_activation;
    if (!dwfl_frame_pc(frame, &at, &is_activation)) {
        return DWARF_CB_ABORT;
    }
    Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(frame));
    const Dwarf_Addr code = at - (is_activation ? 0 : 1);
    Dwfl_Module *module = dwfl_addrmodule(dwfl, code);
    const char *name = module == NULL ? NULL : dwfl_module_addrname(module, code);
    Dwfl_Line *line = module == NULL ? NULL : dwfl_module_getsrc(module, code);
    int number = 0;
    const char *source = line == NULL ? NULL : dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);
    say(text, "      in %s", name == NULL ? "?" : name);
    if (source != NULL) {
        say(text, " (%s:%d)\n", source, number);
    } else {
        const char *file = module == NULL
                               ? NULL
                               : dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
        say(text, " (%s, 0x%llx)\n", file == NULL ? "?" : file, (unsigned long long)code);
    }
    return ++text->frames < FRAMES_MAX ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static void say_frames(struct text *text, const struct thread *thread)
{
    static char *debug_path;
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .debuginfo_path = &debug_path};
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (dwfl == NULL) {
        return;
    }
    text->frames = 0;
    if (dwfl_linux_proc_report(dwfl, thread->process->pid) == 0 &&
        dwfl_report_end(dwfl, NULL, NULL) == 0 &&
        dwfl_linux_proc_attach(dwfl, thread->process->pid, true) == 0) {
        dwfl_getthread_frames(dwfl, thread->id, on_frame, text);
    }
    dwfl_end(dwfl);
}

void report_hold(const struct box *box, const struct thread *thread, char *into, size_t bytes)
{
    struct text text = {box, into, bytes, strlen(into), 0};
    char name[64];
    process_name(thread->process->pid, name, sizeof(name));
    say(&text, "  thread %d (%s, process %d), until %.9f s, behind %s:\n", thread->number, name,
        thread->process->pid, (double)box->page->clock_ns / 1e9,
        thread->row == NULL ? "no call" : thread->row->name);
    say_frames(&text, thread);
}

static void say_nics(struct text *text)
{
    static char all[QPS_BYTES];
    for (uint32_t i = 0; i < nics(text->box); i++) {
        const struct box_nic *nic = &text->box->page->nic[i];
        ask_nic(text->box, nic, 0, all, sizeof(all));
        char *rest = all;
        if (all[0] != '\0') {
            say(text, "  NIC of process %d:\n", nic->process);
        }
        for (const char *line; (line = strsep(&rest, "\n")) != NULL && line[0] != '\0';) {
            say(text, "      %s\n", line);
        }
    }
}

void report_write(const struct box *box, char *into, size_t bytes)
{
    struct text text = {box, into, bytes, 0, 0};
    into[0] = '\0';
    for (int i = 0; i < box->threads; i++) {
        const struct thread *thread = box->thread[i];
        char name[64];
        if (thread->state == THREAD_GONE) {
            continue;
        }
        process_name(thread->process->pid, name, sizeof(name));
        say(&text, "  thread %d (%s, process %d) at %.9f s: ", thread->number, name,
            thread->process->pid, (double)thread->clock_ns / 1e9);
        if (thread->process->is_stopped) {
            say(&text, "its process is stopped\n");
        } else if (thread->state == THREAD_WAITS) {
            say_wait(&text, thread);
        } else if (barren_is_idle(box, thread)) {
            say(&text, "asks again and again, and finds nothing\n");
        } else {
            say(&text, "could run\n");
        }
        say_frames(&text, thread);
    }
    say_nics(&text);
}
