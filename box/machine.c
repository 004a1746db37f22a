/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/box_address.h"
#include "box/files.h"
#include "box/machine_internal.h"
#include "nic/inventory.h"

/* 200 days: a machine counts picoseconds by 64 bits. */
#define MACHINE_NS_MAX (UINT64_C(200) * 86400 * 1000000000)
_Static_assert(MACHINE_NS_MAX + BOX_MONOTONIC_NS < UINT64_MAX / SIM_NS, "its clock holds them");

/* -- Time ---------------------------------------------------------------------------------------*/

/* Engines count as CLOCK_MONOTONIC does, because completions have times of that clock. */
static uint64_t ps_of(uint64_t ns)
{
    return (BOX_MONOTONIC_NS + ns) * SIM_NS;
}

static uint64_t ns_of(uint64_t ps)
{
    return (ps + SIM_NS - 1) / SIM_NS - BOX_MONOTONIC_NS;
}

uint64_t machine_next_ns(const struct box *box)
{
    const uint64_t ps = box->machine == NULL ? UINT64_MAX : sim_next_ps(&box->machine->sim);
    return ps == UINT64_MAX ? NEVER : ns_of(ps);
}

void machine_reach(struct box *box, uint64_t at_ns)
{
    if (box->machine != NULL && ps_of(at_ns) >= box->machine->sim.now_ps) {
        sim_run_until(&box->machine->sim, ps_of(at_ns));
    }
}

void machine_catch_up(struct box *box)
{
    const uint64_t now_ns = ns_of(box->machine->sim.now_ps);
    box->page->clock_ns = box->page->clock_ns < now_ns ? now_ns : box->page->clock_ns;
    machine_reach(box, box->page->clock_ns);
}

/* -- Opening ------------------------------------------------------------------------------------*/

static bool open_capture(const struct box *box, struct machine *machine)
{
    struct box_result *result = box->result;
    if (box->options.capture == NULL) {
        return true;
    }
    machine->capture = sim_capture_open_ns(box->options.capture, PCAPNG_LINK_IP, result->error,
                                           sizeof(result->error));
    roce_capture(machine->roce, machine->capture);
    return machine->capture != NULL;
}

/* Their names, too. */
static bool open_nodes(const struct box *box, struct machine *machine)
{
    struct box_result *result = box->result;
    const uint32_t nodes = roce_nodes(machine->roce);
    if (nodes > BOX_NODES_MAX) {
        snprintf(result->error, sizeof(result->error), "%u nodes are more than have addresses",
                 (unsigned)nodes);
        return false;
    }
    if (!node_files_make(nodes)) {
        snprintf(result->error, sizeof(result->error), "the names of nodes: %s", strerror(errno));
        return false;
    }
    machine->is_named = calloc(nodes, sizeof(machine->is_named[0]));
    CHECK(machine->is_named != NULL);
    return true;
}

bool machine_open(struct box *box)
{
    struct box_result *result = box->result;
    if (box->options.machine == NULL) {
        return true;
    }
    struct machine *machine = calloc(1, sizeof(*machine));
    CHECK(machine != NULL);
    if (box->options.until_ns == 0 || box->options.until_ns > MACHINE_NS_MAX) {
        box->options.until_ns = MACHINE_NS_MAX;
    }
    sim_init(&machine->sim, box->options.seed);
    sim_run_until(&machine->sim, ps_of(0));
    machine->roce =
        roce_open(&machine->sim, box->options.machine, result->error, sizeof(result->error));
    if (machine->roce == NULL) {
        free(machine);
        return false;
    }
    if (!open_capture(box, machine) || !open_nodes(box, machine)) {
        roce_close(machine->roce);
        free(machine);
        return false;
    }
    box->machine = machine;
    box->page->machine = 1;
    return true;
}

void machine_close(struct box *box)
{
    struct machine *machine = box->machine;
    if (machine == NULL) {
        return;
    }
    pid_t owners[BOX_ARENAS_MAX];
    for (uint32_t i = 0; i < machine->seats; i++) {
        owners[i] = machine->seat[i].process->pid;
        machine_detach(box, &machine->seat[i]);
    }
    machine_say(machine->roce, owners, machine->seats, box->result->nics,
                sizeof(box->result->nics));
    box->page->digest = page_mixed(box->page->digest, machine->sim.digest);
    roce_close(machine->roce);
    free(machine->is_named);
    if (machine->capture != NULL &&
        !sim_capture_close(machine->capture, box->result->error, sizeof(box->result->error))) {
        box->result->end = BOX_FAILED;
    }
    free(machine);
    box->machine = NULL;
}

/* -- NICs ---------------------------------------------------------------------------------------*/

static void arena_path(char *into, size_t bytes, uint32_t number)
{
    snprintf(into, bytes, BOX_ARENA_PATH, (unsigned)number);
}

/* A file of holes, which the process opens and maps, too. */
static struct box_arena *make_arena(uint32_t number)
{
    char path[64];
    arena_path(path, sizeof(path), number);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0) {
        return NULL;
    }
    void *arena = ftruncate(file, (off_t)BOX_ARENA_BYTES) != 0
                      ? MAP_FAILED
                      : mmap((void *)(uintptr_t)BOX_ARENA_ADDRESS(number), BOX_ARENA_BYTES,
                             PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED_NOREPLACE | MAP_NORESERVE, file, 0);
    const int reason = errno;
    close(file);
    if (arena == MAP_FAILED) {
        unlink(path);
        errno = reason;
        return NULL;
    }
    return arena;
}

/* It is a NIC's, or was one's: peers know its address. */
static bool is_used(const struct seat *seat)
{
    return seat->arena != NULL || seat->was_attached;
}

/* How many NICs the node has, or had. */
static uint32_t seats_of(const struct machine *machine, const struct box_page *page, uint32_t node)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < machine->seats; i++) {
        count += is_used(&machine->seat[i]) && page->place[i].node == node;
    }
    return count;
}

/* A process that was started on no node gets a free one, as long as there are such. */
static uint32_t node_for(const struct box *box, const struct process *process, uint32_t number)
{
    const struct machine *machine = box->machine;
    const uint32_t nodes = roce_nodes(machine->roce);
    if (process->node >= 0) {
        return (uint32_t)process->node;
    }
    for (uint32_t i = 0; i < nodes; i++) {
        if (!machine->is_named[i] && seats_of(machine, box->page, i) == 0) {
            return i;
        }
    }
    return number % nodes;
}

static bool is_at(const struct box *box, uint32_t node, uint32_t function)
{
    const struct machine *machine = box->machine;
    for (uint32_t i = 0; i < machine->seats; i++) {
        const struct box_place *place = &box->page->place[i];
        if (is_used(&machine->seat[i]) && place->node == node && place->function == function) {
            return true;
        }
    }
    return false;
}

static struct box_place place_for(const struct box *box, const struct process *process,
                                  uint32_t number)
{
    const uint32_t node = node_for(box, process, number);
    uint32_t function = 0;
    while (is_at(box, node, function)) {
        function++;
    }
    return (struct box_place){.node = (uint16_t)node, .function = (uint16_t)function};
}

bool machine_start_on(const struct box *box, struct process *process, uint64_t node)
{
    const bool is_there = node < roce_nodes(box->machine->roce);
    if (is_there) {
        process->node = (int)node;
        box->machine->is_named[node] = true;
    }
    return is_there;
}

int64_t machine_make(struct box *box, struct process *process)
{
    struct machine *machine = box->machine;
    uint32_t number = 0;
    while (number < machine->seats && is_used(&machine->seat[number])) {
        number++;
    }
    if (number == BOX_ARENAS_MAX) {
        return -EMFILE;
    }
    struct box_arena *arena = make_arena(number);
    if (arena == NULL) {
        return -(int64_t)errno;
    }
    entropy_fill(box, &arena->seed, sizeof(arena->seed));
    box->page->place[number] = place_for(box, process, number);
    machine->seat[number] = (struct seat){
        .box = box, .process = process, .number = number, .arena = arena, .alarm_ns = NEVER};
    machine->seats += number == machine->seats;
    return number;
}

struct seat *machine_seat(const struct box *box, const struct process *process, uint64_t number)
{
    struct machine *machine = box->machine;
    if (machine == NULL || number >= machine->seats) {
        return NULL;
    }
    struct seat *seat = &machine->seat[number];
    return seat->process == process && seat->arena != NULL ? seat : NULL;
}

static bool is_in_arena(const struct seat *seat, uint64_t address, size_t bytes)
{
    const uint64_t from = (uintptr_t)seat->arena;
    return address >= from && bytes <= BOX_ARENA_BYTES && address - from <= BOX_ARENA_BYTES - bytes;
}

/* The first thread of a process may be gone before the others. */
static pid_t thread_of(const struct seat *seat)
{
    for (int i = 0; i < seat->box->threads; i++) {
        const struct thread *thread = seat->box->thread[i];
        if (thread->process == seat->process && thread->state != THREAD_GONE) {
            return thread->id;
        }
    }
    return seat->process->pid;
}

static bool read_memory(void *context, uint64_t address, void *into, size_t bytes)
{
    const struct seat *seat = context;
    if (is_in_arena(seat, address, bytes)) {
        memcpy(into, (const void *)(uintptr_t)address, bytes);
        return true;
    }
    return bytes == 0 || tracee_read(thread_of(seat), address, into, bytes);
}

static bool write_memory(void *context, uint64_t address, const void *from, size_t bytes)
{
    const struct seat *seat = context;
    if (is_in_arena(seat, address, bytes)) {
        return false; /* Only the program's own wish could have named it: it holds engines. */
    }
    return bytes == 0 || tracee_write(thread_of(seat), address, from, bytes);
}

static void on_change(void *context)
{
    struct seat *seat = context;
    seat->changes++;
    seat->box->progress++;
    seat->box->deeds++;
}

int64_t machine_attach(struct box *box, struct seat *seat, uint64_t engine)
{
    struct roce *roce = box->machine->roce;
    struct box_place *place = &box->page->place[seat->number];
    const struct roce_host host = {.context = seat,
                                   .read = read_memory,
                                   .write = write_memory,
                                   .on_change = on_change,
                                   .on_datagram = seat_on_datagram};
    if (seat->function != NULL || engine % 64 != 0 || !is_in_arena(seat, engine, 64)) {
        return -EINVAL;
    }
    struct nic *nic = (struct nic *)(uintptr_t)engine;
    if (nic_limits(nic)->qps > BOX_QPS_MAX || nic_limits(nic)->srd.peers > 0) {
        return -EINVAL;
    }
    seat->function = roce_attach(roce, place->node, nic, &host);
    if (seat->function == NULL) {
        return -EMFILE;
    }
    seat->engine = nic;
    seat->was_attached = true;
    place->link = roce_number(seat->function) + 1;
    return 0;
}

/* A thread that waits for its news gets none any more. */
static void end_waits(struct box *box, const struct process *process)
{
    for (int i = 0; i < box->threads; i++) {
        struct thread *thread = box->thread[i];
        if (thread->process == process && thread->state == THREAD_WAITS &&
            thread->wait.kind == WAIT_NEWS) {
            schedule_finish(box, thread, box->now_ns, -EBADF);
        }
    }
}

void machine_detach(struct box *box, struct seat *seat)
{
    char path[64];
    if (seat->arena == NULL) {
        return;
    }
    if (seat->function != NULL) {
        roce_detach(seat->function);
    }
    seat_tell_end(seat);
    ports_forget(&box->machine->ports, seat->number);
    end_waits(box, seat->process);
    arena_path(path, sizeof(path), seat->number);
    unlink(path);
    munmap(seat->arena, BOX_ARENA_BYTES);
    seat->arena = NULL;
    seat->function = NULL;
    seat->engine = NULL;
}

void machine_leave(struct box *box, const struct process *process)
{
    for (uint32_t i = 0; box->machine != NULL && i < box->machine->seats; i++) {
        if (box->machine->seat[i].process == process) {
            machine_detach(box, &box->machine->seat[i]);
        }
    }
}

/* -- A program's wishes -------------------------------------------------------------------------*/

static struct qp *qp_at(const struct seat *seat, uint64_t qp)
{
    return seat->function != NULL && qp % 64 == 0 && is_in_arena(seat, qp, 64)
               ? (struct qp *)(uintptr_t)qp
               : NULL;
}

bool machine_ring(struct seat *seat, uint64_t address)
{
    struct qp *qp = qp_at(seat, address);
    if (seat->function == NULL || (address != 0 && qp == NULL)) {
        return false;
    }
    if (qp == NULL) {
        roce_poke(seat->function);
        return true;
    }
    const bool is_there = nic_find_qp(seat->engine, qp_number(qp)) == qp;
    if (is_there) {
        roce_doorbell(seat->function, qp);
    }
    return is_there; /* A wrong program destroys it while it posts. */
}

bool machine_forget(struct seat *seat, uint64_t address)
{
    const struct qp *qp = qp_at(seat, address);
    if (qp != NULL) {
        roce_forget(seat->function, qp);
    }
    return qp != NULL;
}

uint64_t machine_settled_ns(const struct seat *seat)
{
    const uint64_t ps = seat->function == NULL ? 0 : roce_reached_ps(seat->function);
    return ps <= ps_of(0) ? 0 : ns_of(ps) + 1;
}

bool machine_has_changed(struct seat *seat, struct thread *thread)
{
    const bool has = thread->seen_changes != seat->changes;
    thread->seen_changes = seat->changes;
    return has;
}

bool machine_has_news(const struct box *box, const struct process *process)
{
    const struct machine *machine = box->machine;
    for (uint32_t i = 0; machine != NULL && i < machine->seats; i++) {
        const struct seat *seat = &machine->seat[i];
        if (seat->process == process && seat->engine != NULL &&
            (seat->letters.first != NULL || nic_has_news(seat->engine))) {
            return true;
        }
    }
    return false;
}

bool machine_is_inside(const struct box *box, const struct thread *thread)
{
    const struct machine *machine = box->machine;
    for (uint32_t i = 0; machine != NULL && i < machine->seats; i++) {
        const struct seat *seat = &machine->seat[i];
        if (seat->process == thread->process && seat->arena != NULL &&
            seat->arena->inside == thread->id) {
            return true;
        }
    }
    return false;
}
