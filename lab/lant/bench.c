/* SPDX-License-Identifier: BSD-2-Clause
 *
 * bench - see bench.h.
 */
#include "lab/lant/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TARGET = 0x100000, /* Where what node 0 sends is put, in the other's memory. */
};

/* A parameter of the machine, on which not all experiments depend. */
static uint32_t shared(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value_or_default(run, name);
}

struct lant_node_config lant_config_of(struct lab_run *run)
{
    struct lant_node_config config = lant_node_default();
    struct lant_costs *costs = &config.costs;
    const bool early = shared(run, "early") == 0;
    const uint64_t timeout_ps = lant_cycles(shared(run, "timeout"));
    const uint8_t retries = (uint8_t)shared(run, "retries");
    costs->shm_issue = shared(run, "shm_issue");
    costs->shm_beat = shared(run, "shm_beat");
    costs->shm_receive = shared(run, "shm_receive");
    costs->shm_done = shared(run, "shm_done");
    costs->rdma_setup = shared(run, "rdma_setup");
    costs->ram = shared(run, "ram");
    costs->rdma_receive = shared(run, "rdma_receive");
    costs->rdma_done = shared(run, "rdma_done");
    costs->row = shared(run, "ack");
    costs->early_timer = shared(run, "early_timer");
    costs->t_gen = shared(run, "t_gen");
    costs->cut_through = shared(run, "receiver") == 1;
    config.shm.rows = (uint16_t)shared(run, "shm_rows");
    config.shm.early_timers = early ? config.shm.rows : 0;
    config.shm.timeout = config.rdma.timeout = timeout_ps;
    config.shm.retries = config.rdma.retries = retries;
    config.rdma.rows = (uint16_t)shared(run, "rows");
    config.rdma.operations = (uint16_t)shared(run, "operations");
    config.rdma.work.segment_bytes = shared(run, "segment") * LANT_PAYLOAD_BYTES_MAX;
    config.rdma.registers.mask_bits = config.rdma_target.mask_bits = (uint16_t)shared(run, "mask");
    config.rdma.registers.bytes_at_most = shared(run, "register");
    config.rdma_target.entries = (uint16_t)shared(run, "entries");
    config.rdma_target.escapes = (uint16_t)shared(run, "escapes");
    config.rdma_target.escape_ticks = lant_cycles(shared(run, "escape_time"));
    config.inbound.entries = (uint16_t)shared(run, "cam");
    config.burst_window = shared(run, "engine_window");
    config.early_timers = early ? shared(run, "timers") : 0;
    config.memory_bytes = 4 << 20;
    return config;
}

uint32_t lant_segment_of(struct lab_run *run, const char *name)
{
    return lant_whole(run, name) * LANT_PAYLOAD_BYTES_MAX;
}

struct lant_fabric_config lant_line_of(struct lab_run *run)
{
    const struct lant_line line = {.latency_cycles = shared(run, "mac"),
                                   .frame_flits = shared(run, "mac_frame"),
                                   .pause_flits = shared(run, "mac_pause")};
    return (struct lant_fabric_config){
        .topology = "all-to-all:2", .node_line = line, .switch_line = line, .packets = 4096};
}

struct lant_fabric_config lant_ring_of(struct lab_run *run, uint32_t nodes)
{
    struct lant_fabric_config config = lant_line_of(run);
    config.node_line = (struct lant_line){0};
    config.switch_cycles = shared(run, "switch");
    (void)snprintf(config.topology, sizeof(config.topology), "torus:%u", nodes);
    return config;
}

/* -- Programs -----------------------------------------------------------------------------------*/

static struct lant_node *node_of(const struct lant_probe *probe)
{
    return &probe->bench->world.nodes[probe - probe->bench->probes];
}

static void expect_same(struct lant_bench *bench, const void *bytes, const void *expected,
                        uint64_t count)
{
    if (memcmp(bytes, expected, count) != 0) {
        lab_fail(bench->run, "of %llu bytes some are wrong", (unsigned long long)count);
    }
}

/* A store is where it belongs; a load has brought what is there. */
static void judge_access(const struct lant_probe *probe, const struct lant_shm_done *done)
{
    const uint32_t to = lant_global_node(done->address);
    const uint8_t *memory =
        probe->bench->world.nodes[to].memory + lant_global_address(done->address);
    const uint64_t word = lant_bench_word(node_of(probe)->index, done->address);
    if (lant_shm_done_final(done) && done->response == LANT_OKAY) {
        expect_same(probe->bench, memory, done->store ? &word : &done->data, sizeof(word));
    }
}

static void on_done(void *context, const struct lant_shm_done *done)
{
    struct lant_probe *probe = context;
    sim_note(&probe->bench->sim, done->address ^ (uint64_t)done->kind << 56 ^
                                     (uint64_t)done->response << 60 ^ done->attempts);
    judge_access(probe, done);
    if (lant_shm_done_on_bus(done)) {
        probe->done++;
        probe->done_ps = probe->bench->sim.now_ps;
        probe->data = done->data;
        if (probe->wakes != NULL && !sim_event_scheduled(probe->wakes)) {
            sim_after(&probe->bench->sim, probe->wakes, 0);
        }
    }
    probe->confirmed += lant_shm_done_final(done);
}

static void on_pushed(void *context, uint32_t tag)
{
    struct lant_probe *probe = context;
    probe->pushed++;
    probe->pushed_tags |= UINT64_C(1) << tag % 64;
    probe->pushed_ps = probe->bench->sim.now_ps;
}

static void on_notification(void *context, enum lant_queue queue,
                            const struct lant_notification *notification)
{
    (void)queue;
    struct lant_probe *probe = context;
    struct lant_bench *bench = probe->bench;
    sim_note(&bench->sim, (uint64_t)notification->kind << 56 ^ (uint64_t)notification->status << 8 ^
                              notification->attempts);
    sim_note(&bench->sim, notification->destination ^ (uint64_t)notification->bytes << 32);
    if (notification->kind == LANT_NOTIFY_SENT) {
        const uint64_t to = notification->destination;
        if ((notification->status & LANT_STATUS_ERRORS) == 0) {
            expect_same(bench,
                        bench->world.nodes[lant_global_node(to)].memory + lant_global_address(to),
                        node_of(probe)->memory + notification->source, notification->bytes);
        }
        probe->sent++;
        probe->sent_ps = probe->bench->sim.now_ps;
    } else {
        probe->received++;
        probe->received_ps = probe->bench->sim.now_ps;
    }
}

struct lant_bench *lant_bench_begin(struct lab_run *run, const struct lant_node_config *config,
                                    const struct lant_fabric_config *fabric)
{
    struct lant_bench *bench = calloc(1, sizeof(*bench));
    char error[TOPOLOGY_ERROR_BYTES];
    CHECK(bench != NULL);
    bench->run = run;
    lab_world_begin(run, &bench->sim, &bench->trace, &bench->capture, PCAPNG_LINK_LANT);
    if (!lant_world_open(&bench->world, config, fabric, &bench->sim, run->seed, error,
                         sizeof(error))) {
        UNREACHABLE("a topology of our own is wrong");
    }
    bench->world.watch =
        lant_watch_open(&bench->sim, bench->trace, bench->capture, bench->world.count);
    bench->probes = calloc(bench->world.count, sizeof(bench->probes[0]));
    CHECK(bench->probes != NULL);
    for (uint32_t i = 0; i < bench->world.count; i++) {
        bench->probes[i].bench = bench;
        bench->world.nodes[i].program = (struct lant_program){.context = &bench->probes[i],
                                                              .on_done = on_done,
                                                              .on_pushed = on_pushed,
                                                              .on_notification = on_notification};
    }
    return bench;
}

/* Losses and verdicts, on which two runs must agree. */
static void note_counters(const struct lant_bench *bench)
{
    const struct lant_fabric_counters *fabric = &bench->world.fabric.counters;
    const uint64_t losses[] = {fabric->lost,          fabric->flipped,
                               fabric->mended,        fabric->dropped_strangers,
                               fabric->dropped_heads, fabric->dropped_old,
                               fabric->dropped_full,  bench->world.fabric.flow.dropped};
    for (uint32_t i = 0; i < COUNT_OF(losses); i++) {
        lab_note(bench->run, losses[i]);
    }
    for (uint32_t i = 0; i < bench->world.count; i++) {
        const struct lant_node *node = &bench->world.nodes[i];
        for (uint32_t k = 0; k < LANT_VERDICT_COUNT; k++) {
            lab_note(bench->run, node->counters.verdicts[k]);
        }
        for (uint32_t k = 0; k < COUNT_OF(node->rdma_target.counters.verdicts); k++) {
            lab_note(bench->run, node->rdma_target.counters.verdicts[k]);
        }
        lab_note(bench->run, node->shm.counters.failed + (node->rdma.counters.failed << 32));
        lab_note(bench->run, node->shm.counters.timeouts + (node->rdma.counters.timeouts << 32));
    }
}

void lant_bench_end(struct lant_bench *bench)
{
    note_counters(bench);
    lant_watch_close(bench->world.watch);
    lant_world_close(&bench->world);
    lab_world_end(bench->run, &bench->sim, bench->trace, bench->capture);
    free(bench->probes);
    free(bench);
}

void lant_bench_settle(struct lant_bench *bench)
{
    while (!lant_world_idle(&bench->world)) {
        CHECK(sim_step(&bench->sim));
    }
}

static void write_words(uint8_t *to, uint32_t node, uint64_t address, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        const uint64_t word = lant_bench_word(node, address + i), left = bytes - i;
        memcpy(to + i, &word, left < sizeof(word) ? left : sizeof(word));
    }
}

void lant_bench_fill(struct lant_bench *bench, uint32_t node, uint64_t bytes)
{
    struct lant_probe *probe = &bench->probes[node];
    if (bytes > probe->filled) {
        write_words(bench->world.nodes[node].memory, node, 0, bytes);
        probe->filled = bytes;
    }
}

void lant_bench_compare(struct lant_bench *bench, uint32_t to, uint64_t address, uint64_t bytes)
{
    expect_same(bench, bench->world.nodes[to].memory + address, bench->world.nodes[0].memory,
                bytes);
}

bool lant_bench_put(struct lant_bench *bench, uint32_t from, uint32_t to, uint64_t address,
                    uint32_t bytes)
{
    uint8_t data[LANT_SHM_ACCESS_MAX];
    const struct lant_shm_access access = {
        .address = lant_global(to, address), .bytes = bytes, .store = true};
    write_words(data, from, access.address, bytes);
    return lant_node_access(&bench->world.nodes[from], &access, data);
}

double lant_bench_store(struct lant_bench *bench, uint32_t to, uint32_t bytes)
{
    const uint64_t began_ps = bench->sim.now_ps;
    CHECK(lant_bench_put(bench, 0, to, TARGET, bytes));
    lant_bench_settle(bench);
    return lant_in_cycles(bench->probes[0].done_ps - began_ps);
}

void lant_bench_transfer(struct lant_bench *bench, uint32_t to, uint32_t bytes, uint32_t tag)
{
    const struct lant_work work = {
        .descriptor = {.destination = lant_global(to, TARGET), .bytes = bytes}, .tag = tag};
    lant_bench_fill(bench, 0, bytes);
    CHECK(lant_node_submit(&bench->world.nodes[0], LANT_QUEUE_CPU, &work) == LANT_SUBMIT_COMMITTED);
}

bool lant_bench_until(struct lant_bench *bench, const uint64_t *counter, uint64_t value)
{
    while (*counter < value) {
        if (!sim_step(&bench->sim)) {
            lab_fail(bench->run, "a packet was given up: its answer takes longer than its timer");
            return false;
        }
    }
    return true;
}

double lant_bench_goodput(struct lant_bench *bench, uint32_t to, uint32_t bytes)
{
    const uint64_t *written = &bench->world.nodes[to].rdma_target.counters.written;
    const uint32_t packets = bytes / LANT_PAYLOAD_BYTES_MAX;
    lant_bench_transfer(bench, to, bytes, 0);
    if (!lant_bench_until(bench, written, packets / 2)) {
        return 0;
    }
    const uint64_t half_ps = bench->sim.now_ps;
    if (!lant_bench_until(bench, written, packets)) {
        return 0;
    }
    const double bits = 8.0 * LANT_PAYLOAD_BYTES_MAX * (packets - packets / 2);
    const double gbps = bits * 1000 / (double)(bench->sim.now_ps - half_ps);
    lant_bench_settle(bench);
    return gbps;
}

void lant_bench_load(struct lant_packet *packet)
{
    for (uint32_t i = 0; i < packet->header.payload; i++) {
        packet->payload[i] = lant_bench_word(packet->footer.offset, i);
    }
}

bool lant_bench_whole(const struct lant_frame *frame)
{
    struct lant_packet packet, made;
    uint32_t repaired;
    if (lant_decode(frame->flits, frame->count, &packet, &repaired) != LANT_WHOLE) {
        return false;
    }
    made = packet;
    lant_bench_load(&made);
    return memcmp(packet.payload, made.payload, packet.header.payload * sizeof(uint64_t)) == 0;
}
