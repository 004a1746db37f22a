/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/csrna_machine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/bytes.h"
#include "transport/ibta/timing.h"
#include "wire/icrc.h"
#include "wire/inet.h"

#define PS_PER_NS 1e3
#define PACKETS   (1u << 17)
/* Ethernet header, FCS, preamble and gap; IPv4 and UDP headers; ICRC. */
#define FRAME_BYTES (38u + 28u + 4u)
/* Batches of large messages go to one place: memory for more would be gigabytes. */
#define SPREAD_BYTES_MAX 256u
/* How often the engines are told the time; needed if packets can be lost. */
#define TIMER_PS 50000000u
/* A run without a message for this many timeouts stands still. */
#define PATIENCE_TIMEOUTS 20u

const struct lab_parameter csrna_parameters[CSRNA_PARAMETER_COUNT] = {
    {"clock", "GHz", 1, 0.1, 10, false, false, "5.1", "clock of the NICs"},
    {"read", "ns", 500, 0, 1e6, false, false, "5.1", "PCIe round trip of a DMA read"},
    {"write", "ns", 250, 0, 1e6, false, false, "public model", "PCIe, one way: writes, doorbells"},
    {"pcie", "Gb/s", 128, 1, 1e4, false, false, "5.1", "PCIe bandwidth"},
    {"access", "B", 32, 0, 4096, true, false, "public model",
     "what an access costs beside its data"},
    {"board", "ns", 100, 0, 1e6, false, false, "OC; 4.6: much lower", "access of on-board memory"},
    {"ethernet", "Gb/s", 100, 1, 1e4, false, false, "5.1", "rate of links and switch"},
    {"link", "ns", 1000, 0, 1e9, false, false, "5.1", "one way from node to node"},
    {"clients", "", 10, 1, CSRNA_CLIENTS_MAX, true, false, "5.1", "clients of the one server"},
    {"cores", "", 10, 1, 64, true, false, "5.1", "cores of the server"},
    {"qps", "", 51200, 1, 131072, true, false, "5.1", "connections of the server"},
    {"payload", "B", 64, 1, 4096, true, false, "5.1", "payload of a message"},
    {"cache", "", 300, 1, 32768, true, false, "5.1", "contexts on the chip"},
    {"blocking_cache", "", 3000, 1, 32768, true, false, "fig. 7",
     "contexts on the chip of the blocking NIC, for its latency"},
    {"oocap", "", 16, 1, 64, true, false, "5.3", "out-of-order capacity"},
    {"window", "", 100, 1, 10000, true, false, "public model", "packets in flight of a connection"},
    {"processing", "cycles", 15, 1, 10000, true, true, "5.2 (A1)", "the slowest unit's, a message"},
    {"software", "ns", 390, 0, 1e6, false, true, "5.2 (A5)", "from a post to its doorbell"},
    {"hash_victims", "", 0, 0, 1, true, false, "public model",
     "1: contexts are put out in hash order, 0: least recently used"},
    {"policy", "", 2, 0, 2, true, false, "4.3, 4.5",
     "0: first come first served, 1: non-blocking, 2: latency hidden"},
    {"reads", "", 0, 0, 1, true, false, "5.1", "1: RDMA READ, 0: RDMA WRITE"},
    {"loss", "", 0, 0, 0.1, false, false, "CSR-41", "share of packets that the switch loses"},
};

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
            sim_schedule(sim, event, later->entries[at].at_ps);
            return;
        }
        later->head++;
        later->act(later->machine, later->entries[at].slot);
    }
}

void csrna_later_add(struct csrna_later *later, uint64_t at_ps, uint32_t slot)
{
    CHECK(later->tail - later->head <= later->mask);
    if (later->head != later->tail) {
        /* The order is kept even where a bus was busy. */
        const uint64_t last_ps = later->entries[(later->tail - 1) & later->mask].at_ps;
        at_ps = at_ps > last_ps ? at_ps : last_ps;
    }
    later->entries[later->tail & later->mask].at_ps = at_ps;
    later->entries[later->tail & later->mask].slot = slot;
    later->tail++;
    if (!sim_event_scheduled(&later->event)) {
        sim_schedule(&later->machine->sim, &later->event,
                     later->entries[later->head & later->mask].at_ps);
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

/* -- The network --------------------------------------------------------------------------------*/

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct csrna_packet *packet = CONTAINER_OF(event, struct csrna_packet, event);
    sim_note(sim, load_be32(packet->headers + 4) ^ (uint64_t)load_be32(packet->headers + 8) << 32);
    csrna_nic_receive(&packet->machine->nodes[packet->to].nic, packet);
}

struct csrna_packet *csrna_machine_packet(struct csrna_machine *machine)
{
    struct csrna_packet *packet = sim_pool_take(&machine->packets);
    CHECK(packet != NULL);
    packet->machine = machine;
    sim_event_init(&packet->event, on_arrival);
    return packet;
}

void csrna_machine_free(struct csrna_machine *machine, struct csrna_packet *packet)
{
    sim_pool_give(&machine->packets, packet);
}

/* Writes the packet as a real wire would carry it. */
static void capture(struct csrna_machine *machine, const struct csrna_packet *packet)
{
    struct inet_flow flow = {.source_port = ROCE_UDP_PORT, .destination_port = ROCE_UDP_PORT};
    const struct gid source = csrna_node_gid(packet->from), to = csrna_node_gid(packet->to);
    uint8_t bytes[INET_HEADERS_BYTES_MAX + ROCE_PACKET_BYTES_MAX], bth[ROCE_PACKET_BYTES_MAX];
    memcpy(flow.source, source.bytes, 16);
    memcpy(flow.destination, to.bytes, 16);
    const size_t covered = packet->headers_bytes + packet->payload_bytes;
    const size_t count = covered + ROCE_ICRC_BYTES;
    memcpy(bth, packet->headers, packet->headers_bytes);
    memcpy(bth + packet->headers_bytes, packet->payload, packet->payload_bytes);
    uint32_t crc = icrc_begin(&flow, 0, count, bth);
    crc = icrc_extend(crc, bth + ROCE_BTH_BYTES, covered - ROCE_BTH_BYTES);
    store_le32(bth + covered, icrc_finish(crc));
    const size_t before = inet_encode(bytes, &flow, 0, bth, count);
    memcpy(bytes + before, bth, count);
    sim_capture_packet(machine->capture, machine->sim.now_ps, bytes, before + count);
}

/* Links are serial. The switch cuts through, and queues at its outputs. All paths are equally long,
 * so the packet that is sent first is the first one at an output. */
void csrna_machine_send(struct csrna_machine *machine, struct csrna_packet *packet)
{
    struct csrna_nic *from = &machine->nodes[packet->from].nic;
    struct csrna_node *to = &machine->nodes[packet->to];
    const uint64_t now_ps = machine->sim.now_ps;
    const uint64_t bytes = packet->headers_bytes + packet->payload_bytes + FRAME_BYTES;
    const uint64_t length_ps = bytes * machine->wire_byte_fs / 1000;
    const uint64_t begin_ps = from->wire_free_ps > now_ps ? from->wire_free_ps : now_ps;
    from->wire_free_ps = begin_ps + length_ps;
    uint64_t arrival_ps = from->wire_free_ps + machine->link_ps;
    if (arrival_ps < to->port_free_ps + length_ps) {
        arrival_ps = to->port_free_ps + length_ps;
    }
    to->port_free_ps = arrival_ps;
    if (machine->capture != NULL) {
        capture(machine, packet);
    }
    if (machine->loss_millionths != 0 &&
        prng_chance(&machine->sim.prng, machine->loss_millionths)) {
        machine->lost++;
        csrna_machine_free(machine, packet);
        return;
    }
    sim_schedule(&machine->sim, &packet->event, arrival_ps);
}

static void on_timers(struct sim *sim, struct sim_event *event)
{
    struct csrna_machine *machine = CONTAINER_OF(event, struct csrna_machine, timers);
    for (uint32_t i = 0; i <= machine->clients; i++) {
        struct csrna_nic *nic = &machine->nodes[i].nic;
        if (instant_reached(csrna_now(sim), nic_deadline(nic->engine))) {
            nic_on_time(nic->engine, csrna_now(sim));
            csrna_nic_resend(nic);
        }
    }
    sim_after(sim, event, TIMER_PS);
}

/* -- Opening ------------------------------------------------------------------------------------*/

static uint64_t ns(struct lab_run *run, const char *name)
{
    return (uint64_t)llround(lab_value(run, name) * PS_PER_NS);
}

static uint64_t byte_fs(struct lab_run *run, const char *name)
{
    return (uint64_t)llround(8e6 / lab_value(run, name));
}

struct csrna_load csrna_load_of(struct lab_run *run)
{
    return (struct csrna_load){
        .policy = (enum csrna_policy)lab_value(run, "policy"),
        .qps = (uint32_t)lab_value(run, "qps"),
        .clients = (uint32_t)lab_value(run, "clients"),
        .bytes = (uint32_t)lab_value(run, "payload"),
        .cache_entries = (uint32_t)lab_value(run, "cache"),
        .oocap = (uint32_t)lab_value(run, "oocap"),
        .reads = lab_value(run, "reads") != 0,
        .share = 1,
        .hash_victims = lab_value(run, "hash_victims") != 0,
    };
}

static struct csrna_config config_of(struct csrna_machine *machine)
{
    struct lab_run *run = machine->run;
    const struct csrna_load *load = &machine->load;
    return (struct csrna_config){
        .policy = load->policy,
        .on_board = load->on_board,
        .oocap = load->oocap,
        .cache_entries = load->cache_entries,
        .victim = load->hash_victims ? QPC_VICTIM_HASH_ORDER : QPC_VICTIM_LRU,
        .processing = (uint32_t)lab_value(run, "processing"),
        .window = (uint32_t)lab_value(run, "window"),
        .cycle_ps = (uint64_t)llround(1e3 / lab_value(run, "clock")),
        .read_ps = ns(run, "read"),
        .write_ps = ns(run, "write"),
        .board_ps = ns(run, "board"),
        .pcie_byte_fs = byte_fs(run, "pcie"),
        .access_bytes = (uint32_t)lab_value(run, "access"),
        .message_bytes = load->bytes,
    };
}

static uint32_t share(const struct csrna_machine *machine, uint32_t node)
{
    const uint32_t qps = machine->load.qps;
    return node == 0 ? qps : qps / machine->clients + (node - 1 < qps % machine->clients);
}

static struct qp_request request_of(struct csrna_node *node, bool server)
{
    return (struct qp_request){
        .type = QP_RC,
        .pd = &node->pd,
        .send_cq = &node->cq,
        .receive_cq = &node->cq,
        .capacity = {.sends = server ? 2 * CSRNA_BATCH_MAX : 1, .send_sges = 1},
    };
}

static size_t resources_bytes(void)
{
    return (qp_resources_bytes(CSRNA_READS) + 63) & ~(size_t)63;
}

static void open_engine(struct csrna_machine *machine, uint32_t number)
{
    struct csrna_node *node = &machine->nodes[number];
    const uint32_t count = share(machine, number);
    const struct nic_limits limits = {
        .qps = count,
        .regions = 4,
        .sends_per_qp = 2 * CSRNA_BATCH_MAX,
        .receives_per_qp = 1,
        .sges = 1,
        .inline_bytes = 64,
        .reads_per_qp = CSRNA_READS,
        .cq_entries = 1u << 20,
        .mtu = PATH_MTU_4096,
    };
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
    struct qp_request request = request_of(node, number == 0);
    const size_t bytes = (qp_bytes(QP_RC, &request.capacity, false) + 63) & ~(size_t)63;
    const size_t each = bytes + resources_bytes();
    const uint32_t count = share(machine, number);
    node->qp_memory = csrna_zeroed(each * count);
    for (uint32_t i = 0; i < count; i++) {
        struct qp *qp;
        uint8_t *at = node->qp_memory + each * i;
        CHECK(qp_create(node->nic.engine, &request, at, &qp) == STATUS_OK);
        qp_give_resources(qp, at + bytes, CSRNA_READS);
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
        .path = {.source = csrna_node_gid(number), .destination = csrna_node_gid(peer_number)},
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
        attributes.state = (enum qp_state)(QP_INIT + i);
        CHECK(qp_modify(qp, &attributes, QP_ATTR_STATE | steps[i], now) == STATUS_OK);
    }
}

/* The code of the transport timer: several times the longest time of a message while all wait for
 * the slowest part. */
static uint8_t timeout_code(const struct csrna_machine *machine, const struct csrna_config *config)
{
    const uint64_t slowest_fs =
        config->pcie_byte_fs > machine->wire_byte_fs ? config->pcie_byte_fs : machine->wire_byte_fs;
    const uint64_t bytes = machine->load.bytes + 4 * (QPC_BYTES + config->access_bytes);
    const uint64_t message_ps =
        bytes * slowest_fs / 1000 + config->processing * config->cycle_ps + config->read_ps;
    const uint64_t queue_ps = machine->load.qps * (uint64_t)CSRNA_BATCH_MAX * message_ps;
    const uint64_t way_ps = 2 * machine->link_ps + 4 * (config->read_ps + config->write_ps);
    uint8_t code = 8;
    while (code < 31 && ack_timeout_ns(code) * 1000 < 4 * (queue_ps + way_ps)) {
        code++;
    }
    return code;
}

static void open_nodes(struct csrna_machine *machine)
{
    const struct csrna_config config = config_of(machine);
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
            csrna_fill(machine->nodes[client].memory + csrna_offset(machine, own, 0),
                       machine->load.bytes, csrna_tag(machine, slot));
        }
    }
}

/* A part of a round over all connections, and as much again before it; more if the connections are
 * few. */
static void plan(struct csrna_machine *machine)
{
    const struct csrna_load *load = &machine->load;
    const uint64_t round = load->one_at_a_time ? load->qps : load->qps * 11ull / 2;
    const uint64_t least = load->one_at_a_time ? 4000 : 40000;
    const uint64_t wanted = (uint64_t)(load->share * (double)round);
    const uint64_t part = wanted > least ? wanted : least;
    machine->warm_messages = part;
    machine->all_messages = 2 * part;
}

static void machine_open(struct csrna_machine *machine, struct lab_run *run,
                         const struct csrna_load *load)
{
    *machine = (struct csrna_machine){.run = run, .load = *load};
    lab_world_begin(run, &machine->sim, &machine->trace, &machine->capture, PCAPNG_LINK_IP);
    machine->clients = load->clients < load->qps ? load->clients : load->qps;
    machine->cores = (uint32_t)lab_value(run, "cores");
    machine->copies = load->bytes <= SPREAD_BYTES_MAX ? CSRNA_BATCH_MAX : 1;
    machine->wire_byte_fs = byte_fs(run, "ethernet");
    machine->link_ps = ns(run, "link");
    machine->software_ps = ns(run, "software");
    machine->write_ps = ns(run, "write");
    machine->loss_millionths = (uint32_t)llround(lab_value(run, "loss") * 1e6);
    machine->connections = csrna_zeroed(load->qps * sizeof(struct csrna_connection));
    machine->latencies = csrna_zeroed(sizeof(*machine->latencies));
    sim_pool_open(&machine->packets, PACKETS, sizeof(struct csrna_packet));
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
    for (uint32_t i = 0; i < COUNT_OF(never) && machine->loss_millionths == 0; i++) {
        machine->disorder += counters->values[never[i].counter];
        if (counters->values[never[i].counter] != 0) {
            lab_fail(machine->run, "node %u: %llu packets %s, though none is lost", node->nic.node,
                     (unsigned long long)counters->values[never[i].counter], never[i].what);
        }
    }
    machine->stale += node->nic.incoherent;
    if (node->nic.incoherent + node->nic.bad_packets + node->nic.failed > 0) {
        lab_fail(machine->run, "node %u: %llu stale contexts, %llu bad packets, %llu failures",
                 node->nic.node, (unsigned long long)node->nic.incoherent,
                 (unsigned long long)node->nic.bad_packets, (unsigned long long)node->nic.failed);
    }
    qpc_manager_check(&node->nic.manager);
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
    if (machine->wrong_slots > 0) {
        lab_fail(machine->run, "%llu messages did not arrive as they were sent",
                 (unsigned long long)machine->wrong_slots);
    }
    lab_world_end(machine->run, &machine->sim, machine->trace, machine->capture);
    sim_pool_close(&machine->packets);
    free(machine->starts.entries);
    free(machine->doorbells.entries);
    free(machine->completions.entries);
    csrna_free(machine->connections);
    csrna_free(machine->latencies);
    csrna_free(machine->nodes);
}

static void step_to_the_end(struct csrna_machine *machine)
{
    if (machine->loss_millionths != 0) {
        sim_schedule(&machine->sim, &machine->timers, TIMER_PS);
    }
    while (machine->messages < machine->all_messages && machine->run->failure[0] == '\0' &&
           sim_step(&machine->sim)) {
        if (machine->sim.now_ps - machine->last_ps >
            PATIENCE_TIMEOUTS * ack_timeout_ns(machine->timeout_code) * 1000) {
            break;
        }
    }
    if (machine->messages < machine->all_messages) {
        lab_fail(machine->run, "it stands still after %llu of %llu messages",
                 (unsigned long long)machine->messages, (unsigned long long)machine->all_messages);
    }
}

static double busy_share(const struct csrna_machine *machine, const struct csrna_port *port)
{
    const uint64_t now_ps = machine->sim.now_ps;
    const uint64_t end_ps = port->free_ps > now_ps ? port->free_ps : now_ps;
    return (double)port->bytes * (double)port->byte_fs / 1000 / (double)end_ps;
}

/* A message takes the processing of its unit, and its packet the server's wire. */
static double most_messages(const struct csrna_machine *machine)
{
    const struct csrna_config *config = &machine->nodes[0].nic.config;
    const uint64_t headers =
        ROCE_BTH_BYTES + (machine->load.reads ? ROCE_AETH_BYTES : ROCE_RETH_BYTES);
    const uint64_t bytes = machine->load.bytes + headers + FRAME_BYTES;
    const double wire_ps = (double)(bytes * machine->wire_byte_fs) / 1000;
    const double unit_ps = (double)(config->processing * config->cycle_ps);
    return 1e12 / fmax(wire_ps, unit_ps);
}

struct csrna_result csrna_run(struct lab_run *run, const struct csrna_load *load)
{
    struct csrna_machine *machine = csrna_zeroed(sizeof(*machine));
    machine_open(machine, run, load);
    csrna_start(machine);
    step_to_the_end(machine);
    const double measured = (double)(machine->messages - machine->warm_messages);
    const double ps = (double)(machine->end_ps - machine->warm_ps);
    struct csrna_result result = {
        .rate = ps > 0 ? measured / ps * 1e12 : 0,
        .latency_us = sim_spread_mean(machine->latencies) / 1e6,
        .server = csrna_server(machine)->nic.manager.counters,
        .most = most_messages(machine),
        .pcie = busy_share(machine, &csrna_server(machine)->nic.pcie),
        .messages = machine->messages,
        .events = machine->sim.events,
        .lost = machine->lost,
        .resent =
            nic_counters(csrna_server(machine)->nic.engine)->values[COUNTER_retransmitted_pkts],
    };
    machine_close(machine);
    result.wrong = machine->wrong_slots;
    result.stale = machine->stale;
    result.disorder = machine->disorder;
    csrna_free(machine);
    return result;
}
