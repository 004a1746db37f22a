/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The program on the host: queue pairs, buffers, and the connection manager's other side.
 */
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/bytes.h"
#include "lab/feroce/machine.h"
#include "lab/feroce/receiver_internal.h"

#define BEGIN_PS   UINT64_C(1000000)
#define REQUEST_PS (UINT64_C(2) * 1000 * 1000 * 1000 * 1000) /* feroce-rs: 2 s, */
#define REQUESTS   2u                                        /* twice. */
/* The address of the memory, as peers name it: the same in every run. */
#define MEMORY_START UINT64_C(0x7f0000000000)
#define OFFSETS_2026 (1u << 16)
#define OFFSETS_2024 (1u << 18)

static struct feroce_connection *connection_at(struct feroce_receiver *receiver, uint32_t index)
{
    return &receiver->connections[index];
}

/* -- Queue pairs --------------------------------------------------------------------------------*/

static void *zeroed(size_t bytes)
{
    void *memory = aligned_alloc(64, line_aligned(bytes));
    CHECK(memory != NULL);
    memset(memory, 0, bytes);
    return memory;
}

static uint32_t message_bytes(const struct feroce_machine *machine, uint32_t sender)
{
    return machine->load.bytes[sender & 1];
}

/* WRITEs go to a ring of offsets; SENDs of a connection all go to its one buffer. */
static uint64_t memory_bytes(const struct feroce_machine *machine, uint32_t sender)
{
    const uint64_t bytes = message_bytes(machine, sender);
    if (!machine->load.write) {
        return bytes;
    }
    return bytes + (machine->setup.board.stack == FEROCE_STACK_2024 ? OFFSETS_2024 : OFFSETS_2026);
}

static void post(struct feroce_receiver *receiver, uint32_t index)
{
    struct feroce_connection *connection = connection_at(receiver, index);
    const struct sge sge = {connection->region.start,
                            message_bytes(receiver->machine, connection->sender),
                            connection->region.key};
    CHECK(qp_post_receive(connection->qp, index, &sge, 1) == STATUS_OK);
}

static void open_connection(struct feroce_receiver *receiver, uint32_t index, uint32_t sender)
{
    struct feroce_machine *machine = receiver->machine;
    struct feroce_connection *connection = connection_at(receiver, index);
    const uint64_t bytes = memory_bytes(machine, sender);
    struct qp_request request = {
        .type = QP_RC,
        .pd = &receiver->pd,
        .send_cq = &receiver->cq,
        .receive_cq = &receiver->cq,
        .capacity = {.sends = 1,
                     .send_sges = 1,
                     .receives = machine->setup.receives,
                     .receive_sges = 1},
        .context = connection,
    };
    connection->sender = sender;
    connection->order = index % machine->load.qps;
    connection->memory = zeroed(bytes);
    const struct region_request region = {
        .address = (uintptr_t)connection->memory,
        .bytes = bytes,
        .start = MEMORY_START + ((uint64_t)index << 32),
        .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE,
    };
    CHECK(region_add(nic_regions(receiver->nic), &receiver->pd, &region, &connection->region) ==
          STATUS_OK);
    void *memory = zeroed(qp_bytes(QP_RC, &request.capacity, false));
    CHECK(qp_create(receiver->nic, &request, memory, &connection->qp) == STATUS_OK);
    connection->qp_memory = memory;
    const struct qp_attributes attributes = {
        .state = QP_INIT, .port = 1, .access = ACCESS_REMOTE_WRITE};
    CHECK(qp_modify(connection->qp, &attributes,
                    QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
                    sim_instant(receiver->sim)) == STATUS_OK);
    for (uint32_t i = 0; i < machine->setup.receives; i++) {
        post(receiver, index);
    }
}

static struct gid gid_of(uint32_t node)
{
    struct gid gid = {.bytes = {[10] = 0xff, [11] = 0xff}};
    store_be32(gid.bytes + 12, feroce_ip_of(node));
    return gid;
}

static enum path_mtu mtu_of(uint32_t bytes)
{
    enum path_mtu mtu = PATH_MTU_256;
    while (path_mtu_bytes(mtu) < bytes) {
        mtu++;
    }
    return mtu;
}

static void connect_to(struct feroce_receiver *receiver, struct feroce_connection *connection,
                       uint32_t board_qpn)
{
    const struct feroce_machine *machine = receiver->machine;
    const struct qp_attributes attributes = {
        .state = QP_RTR,
        .path_mtu = (uint8_t)mtu_of(machine->setup.board.window.pmtu),
        .destination_qpn = board_qpn,
        .av = {.source = gid_of(feroce_receiver_number(machine)),
               .destination = gid_of(connection->sender),
               .traffic_class = FEROCE_HOST_CLASS << 5},
        .max_reads_in = 1,
        .min_rnr_timer = machine->setup.rnr_code,
    };
    connection->board_qpn = board_qpn;
    connection->open = true;
    CHECK(qp_modify(connection->qp, &attributes,
                    QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                        QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
                    sim_instant(receiver->sim)) == STATUS_OK);
}

/* -- Connection manager -------------------------------------------------------------------------*/

static void send_cm(struct feroce_receiver *receiver, uint32_t to, const struct feroce_cm *message)
{
    struct feroce_packet_on_line *packet = feroce_receiver_packet(receiver, to);
    packet->addresses.source_port = packet->addresses.destination_port = FEROCE_PORT_CM;
    packet->has_icrc = false;
    packet->icrc = 0;
    packet->header_bytes = FEROCE_CM_BYTES;
    feroce_cm_encode(receiver->machine->setup.board.cm_version, message, packet->headers);
    feroce_seal(packet);
    sim_port_send(&receiver->port, &packet->frame);
}

void feroce_receiver_ask(struct feroce_receiver *receiver, uint32_t ip)
{
    const struct feroce_connection *connection = connection_at(receiver, 0);
    const struct feroce_cm open = {
        .request = FEROCE_OPEN_QP,
        .info_valid = true,
        .local = {.qpn = qp_number(connection->qp),
                  .ip = ip != 0 ? ip : feroce_ip_of(feroce_receiver_number(receiver->machine))},
        .listening_port = FEROCE_PORT_CM,
    };
    send_cm(receiver, connection->sender, &open);
}

static void send_open(struct feroce_receiver *receiver)
{
    const struct feroce_machine *machine = receiver->machine;
    const struct feroce_connection *connection = connection_at(receiver, receiver->opening);
    const struct feroce_cm open = {
        .request = FEROCE_OPEN_QP,
        .info_valid = true,
        .local = {.qpn = qp_number(connection->qp),
                  .rkey = connection->region.key,
                  .ip = feroce_ip_of(feroce_receiver_number(machine)),
                  .address = connection->region.start},
        .listening_port = FEROCE_PORT_CM,
    };
    receiver->opens++;
    receiver->attempts++;
    sim_reschedule(receiver->sim, &receiver->ask, receiver->sim->now_ps + REQUEST_PS);
    send_cm(receiver, connection->sender, &open);
}

/* Generators of a board together, boards one after the other. */
static void start_board(struct feroce_receiver *receiver)
{
    const struct feroce_load *load = &receiver->machine->load;
    const uint32_t board = receiver->started++;
    for (uint32_t i = 0; i < load->qps; i++) {
        const struct feroce_cm start = {
            .remote = {.qpn = connection_at(receiver, board * load->qps + i)->board_qpn},
            .meta = {.valid = true,
                     .start = true,
                     .write = load->write,
                     .length = message_bytes(receiver->machine, board),
                     .count = load->count != 0 ? load->count : UINT32_MAX,
                     .frequency = load->frequency},
        };
        send_cm(receiver, board, &start);
    }
    if (receiver->started < load->senders) {
        sim_reschedule(receiver->sim, &receiver->ask, receiver->sim->now_ps + load->stagger_ps);
    }
}

static void start_all(struct feroce_receiver *receiver)
{
    struct feroce_machine *machine = receiver->machine;
    receiver->start_ps = receiver->sim->now_ps;
    for (uint32_t i = 0; i < machine->load.senders; i++) {
        machine->nodes[i].port.errors.loss_millionths = machine->load.loss_millionths;
    }
    start_board(receiver);
}

/* The first request; no reply came; or the next board starts. */
static void on_ask(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct feroce_receiver *receiver = CONTAINER_OF(event, struct feroce_receiver, ask);
    if (receiver->start_ps != 0) {
        start_board(receiver);
    } else if (receiver->attempts < REQUESTS) {
        send_open(receiver);
    } else {
        lab_fail(receiver->machine->run, "board %u does not answer",
                 connection_at(receiver, receiver->opening)->sender);
    }
}

void feroce_receiver_on_cm(struct feroce_receiver *receiver,
                           const struct feroce_packet_on_line *packet)
{
    struct feroce_cm reply;
    receiver->cm_replies++;
    if (receiver->opening == receiver->connection_count ||
        packet->addresses.destination_port != FEROCE_PORT_CM ||
        !feroce_cm_decode(receiver->machine->setup.board.cm_version, packet->headers,
                          packet->header_bytes, &reply)) {
        return;
    }
    struct feroce_connection *connection = connection_at(receiver, receiver->opening);
    if (reply.request != FEROCE_OPEN_QP || !reply.ack_valid || reply.ack != FEROCE_ACK ||
        packet->from != connection->sender || reply.remote.qpn != qp_number(connection->qp)) {
        return;
    }
    connect_to(receiver, connection, reply.local.qpn);
    receiver->opening++;
    receiver->attempts = 0;
    sim_cancel(&receiver->ask);
    if (receiver->opening < receiver->connection_count) {
        send_open(receiver);
    } else {
        start_all(receiver);
    }
}

/* -- Buffers ------------------------------------------------------------------------------------*/

static void set_repost(struct feroce_receiver *receiver)
{
    if (receiver->repost_count > 0) {
        sim_reschedule(
            receiver->sim, &receiver->repost,
            sim_later(receiver->reposts[receiver->repost_first].at_ps, receiver->sim->now_ps));
    }
}

static void on_repost(struct sim *sim, struct sim_event *event)
{
    struct feroce_receiver *receiver = CONTAINER_OF(event, struct feroce_receiver, repost);
    while (receiver->repost_count > 0 &&
           receiver->reposts[receiver->repost_first].at_ps <= sim->now_ps) {
        post(receiver, receiver->reposts[receiver->repost_first].connection);
        receiver->repost_first = (receiver->repost_first + 1) % FEROCE_REPOSTS_MAX;
        receiver->repost_count--;
    }
    set_repost(receiver);
}

void feroce_receiver_repost(struct feroce_receiver *receiver, uint32_t connection)
{
    const struct feroce_machine *machine = receiver->machine;
    const uint64_t held_ps = receiver->start_ps + machine->load.reposts_from_ps;
    const uint64_t at_ps = sim_later(receiver->sim->now_ps + machine->setup.host_ps, held_ps);
    CHECK(receiver->repost_count < FEROCE_REPOSTS_MAX);
    const uint32_t last = (receiver->repost_first + receiver->repost_count++) % FEROCE_REPOSTS_MAX;
    receiver->reposts[last].at_ps = at_ps;
    receiver->reposts[last].connection = connection;
    set_repost(receiver);
}

/* -- Opening ------------------------------------------------------------------------------------*/

void feroce_receiver_open_host(struct feroce_receiver *receiver)
{
    const struct feroce_machine *machine = receiver->machine;
    const uint32_t count = machine->load.senders * machine->load.qps;
    const uint32_t entries = count * machine->setup.receives + 16;
    const struct nic_limits limits = {
        .qps = count,
        .regions = count,
        .sends_per_qp = 1,
        .receives_per_qp = machine->setup.receives,
        .sges = 1,
        .inline_bytes = 64,
        .reads_per_qp = 1,
        .cq_entries = entries,
        .mtu = PATH_MTU_4096,
    };
    receiver->connection_count = count;
    receiver->memory = zeroed(nic_bytes(&limits));
    receiver->nic = nic_init(&limits, machine->run->seed, receiver->memory);
    receiver->ring = calloc(cq_ring_entries(entries), sizeof(struct completion));
    receiver->connections = calloc(count, sizeof(struct feroce_connection));
    CHECK(receiver->ring != NULL && receiver->connections != NULL);
    cq_init(&receiver->cq, entries, receiver->ring);
    sim_event_init(&receiver->ask, on_ask);
    sim_event_init(&receiver->repost, on_repost);
    for (uint32_t i = 0; i < count; i++) {
        open_connection(receiver, i, i / machine->load.qps);
    }
}

void feroce_receiver_start(struct feroce_receiver *receiver)
{
    sim_schedule(receiver->sim, &receiver->ask, BEGIN_PS);
}

void feroce_receiver_close(struct feroce_receiver *receiver)
{
    for (uint32_t i = 0; i < receiver->connection_count; i++) {
        struct feroce_connection *connection = connection_at(receiver, i);
        free(connection->kept);
        free(connection->memory);
        free(connection->qp_memory);
    }
    sim_port_close(&receiver->port);
    free(receiver->connections);
    free(receiver->ring);
    free(receiver->memory);
}
