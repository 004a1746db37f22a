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

static void on_done(void *context, const struct lant_shm_done *done)
{
    struct lant_probe *probe = context;
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
    if (notification->kind == LANT_NOTIFY_SENT) {
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
    lab_world_begin(run, &bench->sim, &bench->trace, &bench->capture, PCAPNG_LINK_USER0);
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

void lant_bench_end(struct lant_bench *bench)
{
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

double lant_bench_store(struct lant_bench *bench, uint32_t to, uint32_t bytes)
{
    const uint8_t data[LANT_SHM_ACCESS_MAX] = {1, 2, 3};
    const uint64_t began_ps = bench->sim.now_ps;
    const struct lant_shm_access access = {
        .address = lant_global(to, TARGET), .bytes = bytes, .store = true};
    CHECK(lant_node_access(&bench->world.nodes[0], &access, data));
    lant_bench_settle(bench);
    return lant_in_cycles(bench->probes[0].done_ps - began_ps);
}

void lant_bench_transfer(struct lant_bench *bench, uint32_t to, uint32_t bytes, uint32_t tag)
{
    const struct lant_work work = {
        .descriptor = {.destination = lant_global(to, TARGET), .bytes = bytes}, .tag = tag};
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
