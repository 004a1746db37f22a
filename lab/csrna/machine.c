/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/csrna/machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/bits.h"
#include "base/bytes.h"
#include "transport/common/timing.h"

/* Batches of large messages go to one place: memory for more would be gigabytes. */
#define SPREAD_BYTES_MAX 64u
/* The time between two calls that tell the engines the time; needed if packets can be lost. */
#define TIMER_PS 50000000u
/* A run without a message for this many timeouts stands still. */
#define PATIENCE_TIMEOUTS 20u
/* Between two looks at the queues. */
#define LOOK_PS UINT64_C(1000000)

/* -- Names --------------------------------------------------------------------------------------*/

struct gid csrna_node_gid(uint32_t node)
{
    struct gid gid = {.bytes = {[10] = 0xff, [11] = 0xff, [12] = 10}};
    gid.bytes[14] = (uint8_t)(node >> 8);
    gid.bytes[15] = (uint8_t)node;
    return gid;
}

uint16_t csrna_gid_node(const struct gid *gid)
{
    return load_be16(gid->bytes + 14);
}

/* -- Later --------------------------------------------------------------------------------------*/

static void on_later(struct sim *sim, struct sim_event *event)
{
    struct csrna_later *later = CONTAINER_OF(event, struct csrna_later, event);
    while (later->head != later->tail) {
        const uint32_t at = later->head & later->mask;
        if (later->entries[at].at_ps > sim->now_ps) {
            sim_reschedule(sim, event, later->entries[at].at_ps);
            return;
        }
        later->head++;
        later->act(later->machine, later->entries[at].slot);
    }
}

void csrna_later_add(struct csrna_later *later, uint64_t at_ps, uint32_t slot, bool in_turn)
{
    CHECK(later->tail - later->head <= later->mask);
    uint32_t at = later->tail++;
    while (at != later->head && later->entries[(at - 1) & later->mask].at_ps > at_ps) {
        const uint32_t before = (at - 1) & later->mask;
        if (in_turn) {
            at_ps = later->entries[before].at_ps;
            break;
        }
        later->entries[at-- & later->mask] = later->entries[before];
    }
    later->entries[at & later->mask].at_ps = at_ps;
    later->entries[at & later->mask].slot = slot;
    if (at == later->head) {
        sim_reschedule(&later->machine->sim, &later->event, at_ps);
    }
}

static void later_open(struct csrna_later *later, struct csrna_machine *machine, uint32_t most,
                       void (*act)(struct csrna_machine *machine, uint32_t slot))
{
    *later = (struct csrna_later){
        .machine = machine, .act = act, .mask = (uint32_t)power_of_two(most) - 1};
    later->entries = calloc((size_t)later->mask + 1, sizeof(later->entries[0]));
    CHECK(later->entries != NULL);
    sim_event_init(&later->event, on_later);
}

/* -- Timers -------------------------------------------------------------------------------------*/

static void on_timers(struct sim *sim, struct sim_event *event)
{
    struct csrna_machine *machine = CONTAINER_OF(event, struct csrna_machine, timers);
    for (uint32_t i = 0; i <= machine->clients; i++) {
        struct csrna_nic *nic = &machine->nodes[i].nic;
        if (instant_reached(sim_instant(sim), nic_deadline(nic->engine))) {
            nic_on_time(nic->engine, sim_instant(sim));
            csrna_nic_resend(nic);
        }
    }
    sim_after(sim, event, TIMER_PS);
}

/* -- Opening ------------------------------------------------------------------------------------*/

static uint32_t share(const struct csrna_machine *machine, uint32_t node)
{
    const uint32_t qps = machine->load.qps;
    return node == 0 ? qps : qps / machine->clients + (node - 1 < qps % machine->clients);
}

static struct qp_request request_of(struct csrna_node *node, bool is_sender, uint32_t sends)
{
    return (struct qp_request){
        .type = QP_RC,
        .pd = &node->pd,
        .send_cq = &node->cq,
        .receive_cq = &node->cq,
        .capacity = {.sends = is_sender ? sends : 1, .send_sges = 1},
    };
}

static void open_engine(struct csrna_machine *machine, uint32_t number)
{
    struct csrna_node *node = &machine->nodes[number];
    const uint32_t count = share(machine, number);
    const struct nic_limits limits = {
        .qps = count,
        .regions = 4,
        .sends_per_qp = 2 * machine->world.batch,
        .receives_per_qp = 1,
        .sges = 1,
        .inline_bytes = 64,
        .reads_per_qp = CSRNA_READS,
        .cq_entries = 1u << 20,
        .mtu = PATH_MTU_4096,
    };
    node->engine_bytes =
        nic_bytes(&limits) + cq_ring_entries(count + 16) * sizeof(struct completion);
    node->engine_memory = csrna_zeroed(nic_bytes(&limits));
    node->nic.engine = nic_init(&limits, machine->run->seed * 1000 + number, node->engine_memory);
    node->ring = calloc(cq_ring_entries(count + 16), sizeof(struct completion));
    CHECK(node->ring != NULL);
    cq_init(&node->cq, count + 16, node->ring);
    node->memory_bytes = (size_t)count * machine->copies * machine->load.bytes;
    node->memory = csrna_zeroed(node->memory_bytes);
    const struct region_request region = {
        .address = (uintptr_t)node->memory,
        .bytes = node->memory_bytes,
        .start = CSRNA_MEMORY_BASE,
        .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
    };
    CHECK(region_add(nic_regions(node->nic.engine), &node->pd, &region, &node->region) ==
          STATUS_OK);
}

static void make_qps(struct csrna_machine *machine, uint32_t number)
{
    struct csrna_node *node = &machine->nodes[number];
    const bool sends = (number == 0) != machine->load.inward;
    struct qp_request request = request_of(node, sends, 2 * machine->world.batch);
    const size_t each = line_aligned(qp_bytes(QP_RC, &request.capacity, false));
    const uint32_t count = share(machine, number);
    node->qp_bytes = each * count;
    node->qp_memory = csrna_zeroed(node->qp_bytes);
    for (uint32_t i = 0; i < count; i++) {
        struct qp *qp;
        uint8_t *at = node->qp_memory + each * i;
        CHECK(qp_create(node->nic.engine, &request, at, &qp) == STATUS_OK);
        csrna_nic_add(&node->nic, i, qp);
    }
}

static void connect_qp(struct csrna_machine *machine, uint32_t number, uint32_t slot,
                       uint32_t peer_number, uint32_t peer_slot)
{
    struct csrna_nic *own = &machine->nodes[number].nic;
    const struct qp *peer = machine->nodes[peer_number].nic.qps[peer_slot].qp;
    struct qp_attributes attributes = {
        .state = QP_INIT,
        .port = 1,
        .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
        .path_mtu = PATH_MTU_4096,
        .destination_qpn = qp_number(peer),
        .av = {.source = csrna_node_gid(number), .destination = csrna_node_gid(peer_number)},
        .max_reads_out = CSRNA_READS,
        .max_reads_in = CSRNA_READS,
        .min_rnr_timer = 12,
        .timeout = machine->timeout_code,
        .retry_count = 7,
        .rnr_retry = 7,
    };
    const struct instant now = {0};
    struct qp *qp = own->qps[slot].qp;
    const uint32_t steps[] = {
        QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
        QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
            QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
        QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |
            QP_ATTR_MAX_QP_RD_ATOMIC,
    };
    for (uint32_t i = 0; i < COUNT_OF(steps); i++) {
        attributes.state = (uint8_t)(QP_INIT + i);
        CHECK(qp_modify(qp, &attributes, QP_ATTR_STATE | steps[i], now) == STATUS_OK);
    }
}

/* The code of the transport timer: several times the longest time of a message while all wait for
 * the slowest part. */
static uint8_t timeout_code(const struct csrna_machine *machine, const struct csrna_config *config)
{
    const uint64_t wire_byte_fs = machine->world.output.wire.byte_fs;
    const uint64_t slowest_fs =
        config->pcie_byte_fs > wire_byte_fs ? config->pcie_byte_fs : wire_byte_fs;
    const uint64_t bytes = machine->load.bytes + 4 * (config->context_bytes + config->access_bytes);
    const uint64_t message_ps =
        bytes * slowest_fs / 1000 + config->processing * config->cycle_ps + config->read_ps;
    const uint64_t queue_ps = machine->load.qps * (uint64_t)machine->world.batch * message_ps;
    const uint64_t way_ps =
        2 * machine->world.output.wire.latency_ps + 4 * (config->read_ps + config->write_ps);
    uint8_t code = 8;
    while (code < 31 && ack_timeout_ns(code) * 1000 < 4 * (queue_ps + way_ps)) {
        code++;
    }
    return code;
}

static void open_nodes(struct csrna_machine *machine)
{
    const struct csrna_config config = csrna_config_of(machine->run, &machine->load);
    machine->timeout_code = timeout_code(machine, &config);
    machine->nodes = csrna_zeroed((machine->clients + 1) * sizeof(struct csrna_node));
    for (uint32_t i = 0; i <= machine->clients; i++) {
        struct csrna_node *node = &machine->nodes[i];
        csrna_nic_open(&node->nic, machine, i, &config, share(machine, i), machine->trace);
        open_engine(machine, i);
        make_qps(machine, i);
    }
    for (uint32_t slot = 0; slot < machine->load.qps; slot++) {
        const uint32_t client = 1 + slot % machine->clients, own = slot / machine->clients;
        connect_qp(machine, 0, slot, client, own);
        connect_qp(machine, client, own, 0, slot);
        if (machine->load.reads) {
            const struct csrna_end to = csrna_target(machine, slot);
            csrna_fill(to.node->memory + csrna_offset(machine, to.slot, 0), machine->load.bytes,
                       csrna_tag(machine, slot));
        }
    }
}

/* The measurement takes a part of a round over all connections, or more if they are few. The same
 * number of messages comes before it, or a whole round if latency is measured. So a context that is
 * missed was put out of the cache, and not merely never read. */
static void plan(struct csrna_machine *machine)
{
    const struct csrna_load *load = &machine->load;
    const uint64_t round = load->qps * (machine->world.batch + 1ull) / 2;
    const uint64_t least = load->one_at_a_time ? 4000 : load->bytes <= 256 ? 40000 : 10000;
    const uint64_t wanted = (uint64_t)(load->share * (double)round);
    const uint64_t part = wanted > least ? wanted : least;
    machine->warm_messages = load->one_at_a_time && round > part ? round : part;
    machine->all_messages = machine->warm_messages + part;
}

static void machine_open(struct csrna_machine *machine, struct lab_run *run,
                         const struct csrna_load *load)
{
    *machine = (struct csrna_machine){.run = run, .load = *load};
    lab_world_begin(run, &machine->sim, &machine->trace, &machine->capture, PCAPNG_LINK_IP);
    machine->clients = load->clients < load->qps ? load->clients : load->qps;
    machine->world = csrna_world_of(run, load);
    machine->copies = load->bytes <= SPREAD_BYTES_MAX ? machine->world.batch : 1;
    machine->connections = csrna_zeroed(load->qps * sizeof(struct csrna_connection));
    machine->latencies = csrna_zeroed(sizeof(*machine->latencies));
    sim_pool_open(&machine->packets, CSRNA_PACKETS_MAX, sizeof(struct csrna_packet));
    later_open(&machine->starts, machine, load->qps, csrna_post);
    later_open(&machine->doorbells, machine, load->qps, csrna_on_doorbell);
    later_open(&machine->completions, machine, load->qps, csrna_on_completion);
    sim_event_init(&machine->timers, on_timers);
    plan(machine);
    open_nodes(machine);
}

/* -- The end ------------------------------------------------------------------------------------*/

static void check_node(struct csrna_machine *machine, struct csrna_node *node)
{
    static const struct {
        enum nic_counter counter;
        const char *what;
    } never[] = {{COUNTER_out_of_seq_request, "out of order"},
                 {COUNTER_duplicate_request, "repeated"},
                 {COUNTER_timeouts, "timed out"},
                 {COUNTER_stale_acks, "acknowledged twice"}};
    const struct nic_counters *counters = nic_counters(node->nic.engine);
    const bool loses = machine->world.faults.millionths[SIM_FAULT_drop] != 0;
    const bool forgets = !node->nic.config.write_back;
    for (uint32_t i = 0; i < COUNT_OF(never); i++) {
        machine->disorder += counters->values[never[i].counter];
        if (counters->values[never[i].counter] != 0 && !loses) {
            lab_fail(machine->run, "node %u: %llu packets %s, though none is lost", node->nic.node,
                     (unsigned long long)counters->values[never[i].counter], never[i].what);
        }
    }
    machine->stale += node->nic.incoherent;
    if ((!forgets && node->nic.incoherent > 0) || node->nic.bad_packets + node->nic.failed > 0) {
        lab_fail(machine->run, "node %u: %llu stale contexts, %llu bad packets, %llu failures",
                 node->nic.node, (unsigned long long)node->nic.incoherent,
                 (unsigned long long)node->nic.bad_packets, (unsigned long long)node->nic.failed);
    }
    qpc_manager_check(&node->nic.manager);
}

static void note_results(struct csrna_machine *machine)
{
    const uint64_t results[] = {machine->messages, machine->wrong, machine->stale,
                                machine->disorder, machine->world.faults.struck[SIM_FAULT_drop]};
    for (uint32_t i = 0; i < COUNT_OF(results); i++) {
        lab_note(machine->run, results[i]);
    }
}

static void machine_close(struct csrna_machine *machine)
{
    for (uint32_t i = 0; i <= machine->clients; i++) {
        struct csrna_node *node = &machine->nodes[i];
        check_node(machine, node);
        csrna_nic_close(&node->nic);
        csrna_free(node->engine_memory);
        csrna_free(node->memory);
        csrna_free(node->qp_memory);
        free(node->ring);
    }
    if (machine->wrong > 0 && machine->world.faults.millionths[SIM_FAULT_damage] == 0) {
        lab_fail(machine->run, "%llu messages did not arrive as they were sent",
                 (unsigned long long)machine->wrong);
    }
    if (machine->incomplete > 0) {
        lab_fail(machine->run, "%llu batches were complete before all their messages had come",
                 (unsigned long long)machine->incomplete);
    }
    note_results(machine);
    lab_world_end(machine->run, &machine->sim, machine->trace, machine->capture);
    sim_pool_close(&machine->packets);
    free(machine->starts.entries);
    free(machine->doorbells.entries);
    free(machine->completions.entries);
    csrna_free(machine->connections);
    csrna_free(machine->latencies);
    csrna_free(machine->nodes);
}

static void look(struct csrna_machine *machine)
{
    const struct csrna_nic *nic = &csrna_server(machine)->nic;
    lab_lengths_count(&machine->queue, nic->messages.tail - nic->messages.head);
    lab_lengths_count(&machine->pending, pending_fifo_count(&nic->manager.pending));
}

static void step_to_the_end(struct csrna_machine *machine)
{
    uint64_t look_ps = LOOK_PS;
    if (machine->world.faults.millionths[SIM_FAULT_drop] != 0) {
        sim_schedule(&machine->sim, &machine->timers, TIMER_PS);
    }
    while (csrna_done(machine) < machine->all_messages && machine->run->failure[0] == '\0' &&
           sim_step(&machine->sim)) {
        if (machine->sim.now_ps >= look_ps) {
            look_ps = machine->sim.now_ps + LOOK_PS;
            look(machine);
        }
        if (machine->sim.now_ps - machine->last_ps >
            PATIENCE_TIMEOUTS * ack_timeout_ns(machine->timeout_code) * 1000) {
            break;
        }
    }
    if (csrna_done(machine) < machine->all_messages) {
        lab_fail(machine->run, "it stands still after %llu of %llu messages",
                 (unsigned long long)csrna_done(machine),
                 (unsigned long long)machine->all_messages);
    }
}

static double busy_share(const struct csrna_machine *machine, const struct csrna_port *port)
{
    const uint64_t now_ps = machine->sim.now_ps;
    const uint64_t end_ps = port->free_ps > now_ps ? port->free_ps : now_ps;
    return (double)port->bytes * (double)port->byte_fs / 1000 / (double)end_ps;
}

/* An output may be booked beyond now: its time ends when that is over. */
static double busiest_link(const struct csrna_machine *machine)
{
    double most = 0;
    for (uint32_t i = 0; i <= machine->clients; i++) {
        const struct csrna_node *node = &machine->nodes[i];
        const uint64_t end_ps = sim_later(machine->sim.now_ps, node->port.free_ps);
        most = fmax(most, end_ps > 0 ? (double)node->port_ps / (double)end_ps : 0);
    }
    return most;
}

static void add_memory(struct csrna_machine *machine)
{
    uint64_t nodes[2] = {0}, qps = 0;
    for (uint32_t i = 0; i <= machine->clients; i++) {
        const struct csrna_node *node = &machine->nodes[i];
        nodes[i != 0] += sizeof(*node) - sizeof(node->nic) + node->nic.bytes + node->engine_bytes +
                         node->memory_bytes;
        qps += node->qp_bytes;
    }
    lab_add_memory(machine->run, "server", 1, nodes[0]);
    lab_add_memory(machine->run, "client", machine->clients, nodes[1]);
    lab_add_memory(machine->run, "queue pair", 2ull * machine->load.qps, qps);
    lab_add_memory(machine->run, "packet", machine->packets.used,
                   (uint64_t)machine->packets.used * machine->packets.bytes);
}

struct csrna_result csrna_run(struct lab_run *run, const struct csrna_load *load)
{
    if (run->failure[0] != '\0') {
        return (struct csrna_result){.rate = LAB_NOTHING, .latency_us = LAB_NOTHING};
    }
    if (csrna_policy_kinds[load->policy]->refuses && load->qps > csrna_contexts(run, load)) {
        lab_fail(run, "%s takes %u connections, and not %u", csrna_policies[load->policy],
                 csrna_contexts(run, load), load->qps);
        return (struct csrna_result){.rate = LAB_NOTHING, .latency_us = LAB_NOTHING};
    }
    struct csrna_machine *machine = csrna_zeroed(sizeof(*machine));
    machine_open(machine, run, load);
    csrna_start(machine);
    step_to_the_end(machine);
    const double measured = (double)(machine->end_done - machine->warm_done);
    const double ps = (double)(machine->end_ps - machine->warm_ps);
    struct csrna_result result = {
        .rate = ps > 0 ? measured / ps * 1e12 : 0,
        .latency_us = sim_spread_mean(machine->latencies) / 1e6,
        .latency = *machine->latencies,
        .queue = machine->queue,
        .pending = machine->pending,
        .link = busiest_link(machine),
        .server = csrna_server(machine)->nic.manager.counters,
        .pcie_in = busy_share(machine, &csrna_server(machine)->nic.pcie_in),
        .pcie_out = busy_share(machine, &csrna_server(machine)->nic.pcie_out),
        .mpt_hits = csrna_server(machine)->nic.translation.mpt.hits,
        .mpt_misses = csrna_server(machine)->nic.translation.mpt.misses,
        .mtt_misses = csrna_server(machine)->nic.translation.mtt.misses,
        .messages = machine->messages,
        .events = machine->sim.events,
        .lost = machine->world.faults.struck[SIM_FAULT_drop],
        .resent =
            nic_counters(csrna_server(machine)->nic.engine)->values[COUNTER_retransmitted_pkts],
    };
    add_memory(machine);
    machine_close(machine);
    result.wrong = machine->wrong;
    result.stale = machine->stale;
    result.disorder = machine->disorder;
    csrna_free(machine);
    return result;
}
