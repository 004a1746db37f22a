/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The programs of a csRNA machine: they post, ring, look at what came, and measure.
 */
#include <string.h>

#include "lab/csrna/machine.h"

static uint64_t word(uint64_t tag, uint32_t at)
{
    return (tag + at) * 0x9e3779b97f4a7c15u;
}

void csrna_fill(uint8_t *bytes, uint32_t count, uint64_t tag)
{
    for (uint32_t at = 0; at < count; at += 8) {
        const uint64_t value = word(tag, at);
        memcpy(bytes + at, &value, count - at < 8 ? count - at : 8);
    }
}

static bool holds(const uint8_t *bytes, uint32_t count, uint64_t tag)
{
    for (uint32_t at = 0; at < count; at += 8) {
        const uint64_t value = word(tag, at);
        if (memcmp(bytes + at, &value, count - at < 8 ? count - at : 8) != 0) {
            return false;
        }
    }
    return true;
}

static uint32_t batch_of(const struct csrna_machine *machine, uint32_t slot)
{
    return slot % machine->world.batch + 1;
}

uint64_t csrna_tag(const struct csrna_machine *machine, uint32_t slot)
{
    const uint32_t batch = machine->load.reads ? 0 : machine->connections[slot].batch;
    return ((uint64_t)slot << 32 | batch) * 4096;
}

/* A node has `copies` slots for each of its connections. */
size_t csrna_offset(const struct csrna_machine *machine, uint32_t slot, uint32_t copy)
{
    return ((size_t)slot * machine->copies + copy % machine->copies) * machine->load.bytes;
}

/* The time of the software, from a post to its doorbell. */
static uint64_t software_ps(struct csrna_machine *machine)
{
    const struct csrna_world *world = &machine->world;
    if (world->jitter_ps == 0) {
        return world->software_ps;
    }
    return world->software_ps - world->jitter_ps +
           prng_below(&machine->sim.prng, 2 * world->jitter_ps + 1);
}

void csrna_post(struct csrna_machine *machine, uint32_t slot)
{
    const struct csrna_end from = csrna_sender(machine, slot), to = csrna_target(machine, slot);
    struct csrna_connection *connection = &machine->connections[slot];
    const uint32_t count = batch_of(machine, slot), bytes = machine->load.bytes;
    struct send_request requests[CSRNA_BATCH_MAX];
    struct sge sges[CSRNA_BATCH_MAX];
    connection->batch++;
    connection->arrived = 0;
    connection->posted_ps = machine->sim.now_ps;
    if (!machine->load.reads) {
        csrna_fill(from.node->memory + csrna_offset(machine, from.slot, 0), bytes,
                   csrna_tag(machine, slot));
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t copy = machine->load.reads ? i : 0;
        sges[i] = (struct sge){CSRNA_MEMORY_BASE + csrna_offset(machine, from.slot, copy), bytes,
                               from.node->region.key};
        requests[i] = (struct send_request){
            .wr_id = slot,
            .kind = machine->load.reads ? WORK_READ : WORK_WRITE,
            .flags = i + 1 == count ? WORK_SIGNALED : 0,
            .sges = &sges[i],
            .sge_count = 1,
            .remote_address =
                CSRNA_MEMORY_BASE + csrna_offset(machine, to.slot, machine->load.reads ? 0 : i),
            .remote_key = to.node->region.key,
        };
    }
    struct qp *qp = from.node->nic.qps[from.slot].qp;
    CHECK(qp_post_sends(qp, requests, count) == STATUS_OK);
    /* The doorbell says when to send; the engine's list of ready queue pairs is not asked. */
    csrna_nic_resend(&from.node->nic);
    const struct csrna_world *world = &machine->world;
    const uint64_t at_ps = machine->sim.now_ps + software_ps(machine) + world->write_ps;
    csrna_later_add(&machine->doorbells, at_ps, slot, false);
}

void csrna_on_doorbell(struct csrna_machine *machine, uint32_t slot)
{
    struct csrna_connection *connection = &machine->connections[slot];
    const struct csrna_end from = csrna_sender(machine, slot);
    const uint32_t count = batch_of(machine, slot);
    csrna_nic_doorbell(&from.node->nic, from.slot, count, connection->offset);
    connection->offset = (uint16_t)((connection->offset + count) % CSRNA_SQ_WQES);
}

void csrna_machine_completions(struct csrna_machine *machine, struct csrna_nic *nic)
{
    struct completion completion = {0};
    while (cq_poll(&machine->nodes[nic->node].cq, &completion, 1) == 1) {
        if (completion.status != COMPLETION_SUCCESS) {
            lab_fail(machine->run, "a message failed with status %u", completion.status);
        }
        const uint64_t written_ps = csrna_nic_write_cqe(nic);
        csrna_later_add(&machine->completions, written_ps + machine->world.write_ps,
                        (uint32_t)completion.wr_id, true);
    }
}

void csrna_judge(struct csrna_machine *machine, uint32_t number, const uint8_t *at, uint32_t bytes)
{
    const size_t offset = (size_t)(at - machine->nodes[number].memory);
    const uint32_t place = (uint32_t)(offset / machine->load.bytes / machine->copies);
    const uint32_t slot = number == 0 ? place : place * machine->clients + number - 1;
    struct csrna_connection *connection = &machine->connections[slot];
    const bool right = bytes == machine->load.bytes &&
                       offset == csrna_offset(machine, place, connection->arrived) &&
                       holds(at, bytes, csrna_tag(machine, slot));
    connection->arrived++;
    machine->placed++;
    machine->wrong += !right;
    sim_note(&machine->sim, right);
}

/* The connection whose turn is next on the core of `slot`. */
static uint32_t next_of(struct csrna_machine *machine, uint32_t slot)
{
    if (!machine->load.one_at_a_time) {
        return slot;
    }
    const uint32_t cores = machine->world.cores;
    const uint32_t core = slot % cores;
    const uint32_t own = machine->load.qps / cores + (core < machine->load.qps % cores);
    machine->turns[core] = machine->turns[core] + 1 == own ? 0 : machine->turns[core] + 1;
    return machine->turns[core] * cores + core;
}

void csrna_on_completion(struct csrna_machine *machine, uint32_t slot)
{
    const uint64_t now_ps = machine->sim.now_ps;
    const struct csrna_connection *connection = &machine->connections[slot];
    machine->incomplete += connection->arrived != batch_of(machine, slot);
    machine->messages += batch_of(machine, slot);
    machine->last_ps = now_ps;
    if (machine->warm_ps == 0 && csrna_done(machine) >= machine->warm_messages) {
        machine->warm_ps = now_ps;
        csrna_translation_count_anew(&csrna_server(machine)->nic);
        machine->warm_done = csrna_done(machine);
    } else if (machine->warm_ps != 0) {
        sim_spread_count(machine->latencies, now_ps - connection->posted_ps);
        machine->end_ps = now_ps;
        machine->end_done = csrna_done(machine);
    }
    if (csrna_done(machine) < machine->all_messages) {
        csrna_post(machine, next_of(machine, slot));
    }
}

uint64_t csrna_done(const struct csrna_machine *machine)
{
    if (machine->load.one_at_a_time) {
        return machine->messages;
    }
    return machine->load.inward ? machine->placed : machine->nodes[0].nic.sent;
}

void csrna_start(struct csrna_machine *machine)
{
    const struct csrna_load *load = &machine->load;
    const uint32_t cores = machine->world.cores;
    const uint32_t first = load->one_at_a_time && load->qps > cores ? cores : load->qps;
    for (uint32_t i = 0; i < first; i++) {
        csrna_later_add(&machine->starts, i * machine->world.stagger_ps, i, true);
    }
}
