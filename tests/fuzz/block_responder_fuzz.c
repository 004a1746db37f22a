/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_responder_fuzz - a NIC fed with blocks that a hostile peer makes up within its session.
 *
 * Goal    Whatever arrives, memory is written only where a key or a posted receive opens it, no
 *         assertion fails, the engine's invariants hold after every packet, nothing it holds grows
 *         beyond its limits, and the NIC goes on answering.
 * Method  One queue pair with receives of its own, one with a shared queue, each with a session,
 *         and few contexts and held payloads. The input is a sequence of packets of 14 bytes each,
 *         which name fields near those that an honest requester would send; or bytes as they are.
 */
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/check.h"
#include "nic/block/block_receiver.h"

#define REGION_BYTES  8192
#define GUARD_BYTES   256
#define START         0x10000u
#define MTU           256
#define SESSION       0x12345678u
#define RECEIVE_BYTES 1024
#define RECEIVES      4
#define PACKET_BYTES  14

enum hint {
    HINT_SHARED = 1,  /* For the queue pair with the shared queue. */
    HINT_RIGHT = 2,   /* Payload and flags that fit its place. */
    HINT_PULL = 4,    /* Take the replies out afterwards. */
    HINT_TIME = 8,    /* Let time pass. */
    HINT_FAULT = 16,  /* The memory is not there. */
    HINT_LATER = 32,  /* The move ends behind the next packet. */
    HINT_RAW = 64,    /* The bytes as they are, behind a right BTH. */
    HINT_CLOSE = 128, /* The region goes, or is there again. */
};

enum {
    QPS = 2,
    MOVES = 8
};

struct target {
    struct nic *nic;
    void *nic_memory;
    struct qp *qps[QPS];
    void *qp_memory[QPS];
    struct srq srq;
    void *srq_memory;
    struct pd pd;
    struct cq cq;
    struct completion ring[256];
    struct region region, receives;
    struct gid peer, named; /* The second address is the one that the peer named. */
    struct instant now;
    struct nic_move moves[MOVES];
    uint32_t move_count;
    uint8_t memory[GUARD_BYTES + REGION_BYTES + GUARD_BYTES];
    uint8_t receive_memory[GUARD_BYTES + RECEIVES * RECEIVE_BYTES + GUARD_BYTES];
};

static const struct nic_limits limits = {
    .qps = 8,
    .regions = 8,
    .sends_per_qp = 4,
    .receives_per_qp = 16,
    .receives_per_srq = 16,
    .sges = 4,
    .inline_bytes = 64,
    .reads_per_qp = 4,
    .cq_entries = 256,
    .mtu = PATH_MTU_256,
    .block = {.transport = NIC_TRANSPORT_BLOCK,
              .window = 64,
              .contexts = 16,
              .held = 4,
              .reads = 4,
              .paths = 4,
              .peers = 2,
              .connections = QPS},
};

static void *zeroed(size_t bytes)
{
    bytes = line_aligned(bytes);
    void *memory = aligned_alloc(64, bytes);
    CHECK(memory != NULL);
    return memset(memory, 0, bytes);
}

static void add_region(struct target *target, struct region *region, uint8_t *memory,
                       uint64_t bytes, uint32_t access)
{
    const struct region_request request = {.address = (uintptr_t)memory + GUARD_BYTES,
                                           .bytes = bytes,
                                           .start = START,
                                           .access = ACCESS_LOCAL_WRITE | access};
    CHECK(region_add(nic_regions(target->nic), &target->pd, &request, region) == STATUS_OK);
}

static void post(struct target *target, int which)
{
    struct qp *qp = target->qps[which];
    struct receive_queue *queue = which == 0 ? &qp->receives : &target->srq.queue;
    while (receive_queue_count(queue) < RECEIVES) {
        const uint32_t n = queue->tail % RECEIVES;
        const struct sge sge = {START + n * RECEIVE_BYTES, RECEIVE_BYTES, target->receives.key};
        CHECK((which == 0 ? qp_post_receive(qp, n, &sge, 1)
                          : srq_post_receive(&target->srq, n, &sge, 1)) == STATUS_OK);
        if (qp->state == QP_ERR) {
            return; /* Flushed at once. */
        }
    }
}

static void connect(struct target *target, int which)
{
    const struct instant now = {1};
    struct qp *qp = target->qps[which];
    struct qp_attributes attributes = {.state = QP_INIT,
                                       .port = 1,
                                       .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
                                                 ACCESS_REMOTE_ATOMIC,
                                       .path_mtu = PATH_MTU_256,
                                       .av = {.destination = target->peer, .peer = 1},
                                       .max_reads_in = 4};
    CHECK(qp_modify(qp, &attributes,
                    QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS,
                    now) == STATUS_OK);
    attributes.state = QP_RTR;
    CHECK(qp_modify(qp, &attributes,
                    QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                        QP_ATTR_RQ_PSN | QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER,
                    now) == STATUS_OK);
    const struct block_terms terms = {.session = SESSION,
                                      .payload_bytes = qp->mtu_bytes,
                                      .window = 64,
                                      .reads = 4,
                                      .path_count = 4,
                                      .shared_receives = which == 1};
    qp->block->answer.session = true;
    qp->block->answer.nonce = SESSION;
    qp->block->receiving = terms;
    block_receive_begin(qp, &terms);
}

static void make_qp(struct target *target, int which)
{
    struct qp_request made = {.type = QP_RC,
                              .pd = &target->pd,
                              .send_cq = &target->cq,
                              .receive_cq = &target->cq,
                              .srq = which == 1 ? &target->srq : NULL,
                              .capacity = {4, 8, 2, 2, 16}};
    target->qp_memory[which] = zeroed(qp_bytes(QP_RC, &made.capacity, which == 1));
    CHECK(qp_create(target->nic, &made, target->qp_memory[which], &target->qps[which]) ==
          STATUS_OK);
    connect(target, which);
    post(target, which);
}

static void make(struct target *target, enum block_place place, bool answers)
{
    struct nic_limits chosen = limits;
    chosen.block.place = place;
    memset(target, 0, sizeof(*target));
    memset(target->memory, 0xa5, sizeof(target->memory));
    memset(target->receive_memory, 0xa5, sizeof(target->receive_memory));
    target->now.ns = 1000000000;
    target->nic_memory = zeroed(nic_bytes(&chosen));
    target->nic = nic_init(&chosen, 1, target->nic_memory);
    target->peer.bytes[15] = 1;
    cq_init(&target->cq, 256, target->ring);
    list_init(&target->cq.notify);
    list_init(&target->cq.event_link);
    add_region(target, &target->region, target->memory, REGION_BYTES,
               ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC);
    add_region(target, &target->receives, target->receive_memory, RECEIVES * RECEIVE_BYTES, 0);
    target->srq_memory = zeroed(receive_queue_bytes(16, 1));
    srq_init(&target->srq, &target->pd, 16, 1, target->srq_memory);
    make_qp(target, 0);
    make_qp(target, 1);
    struct nic_routes *routes = nic_peer_routes(target->nic, 1);
    const struct nic_av *av = &target->qps[0]->attributes.av;
    routes->ports = 2;
    target->named.bytes[0] = 0x20;
    CHECK(nic_routes_learn(routes, av, &target->named, 1));
    nic_note_answers(target->nic, 1, answers);
}

static void make_move(struct nic_move *wanted)
{
    const uint8_t *payload = wanted->payload;
    if (wanted->kind == NIC_MOVE_ATOMIC) {
        uint64_t *at = (uint64_t *)(uintptr_t)wanted->segments[0].address;
        wanted->original = *at;
        *at = nic_atomic_result(wanted, *at);
    }
    for (uint32_t i = 0; wanted->kind == NIC_MOVE_SCATTER && i < wanted->segment_count; i++) {
        memcpy((void *)(uintptr_t)wanted->segments[i].address, payload, wanted->segments[i].bytes);
        payload += wanted->segments[i].bytes;
    }
}

static void finish_moves(struct target *target, enum nic_move_result result)
{
    for (uint32_t i = 0; i < target->move_count; i++) {
        if (result == NIC_MOVED) {
            make_move(&target->moves[i]);
        }
        nic_on_moved(target->nic, &target->moves[i], result, target->now);
    }
    target->move_count = 0;
}

static uint8_t payload[4096];

static void deliver(struct target *target, uint8_t hints, const struct nic_frame *frame)
{
    bool more = nic_on_packet(target->nic, frame, target->now,
                              &target->moves[target->move_count]) == NIC_MOVES;
    while (more) {
        target->move_count++;
        if (!(hints & HINT_LATER) || target->move_count == MOVES) {
            finish_moves(target, hints & HINT_FAULT ? NIC_MOVE_FAULTED : NIC_MOVED);
        }
        more = nic_next_held(target->nic, &target->moves[target->move_count]);
    }
}

/* Values as the peer might choose them: near what is expected, or not. */
static struct block_packet packet_of(const struct target *target, const uint8_t *bytes)
{
    static const uint8_t opcodes[] = {BLOCK_SEND, BLOCK_WRITE,  BLOCK_CHALLENGE, BLOCK_RESPONSE,
                                      BLOCK_READ, BLOCK_ATOMIC, BLOCK_PROBE,     BLOCK_WRITE};
    const struct qp *qp = target->qps[bytes[0] & HINT_SHARED];
    const struct block_responder *stream = &qp->block->receiver->stream;
    struct block_packet packet = {
        .opcode = opcodes[bytes[1] & 7],
        .solicited = bytes[1] & 8,
        .ack_request = bytes[1] & 16,
        .early = bytes[1] & 32,
        .has_immediate = bytes[1] & 64,
        .invalidates = bytes[1] & 128,
        .destination_qpn = qp_number(qp),
        .session = SESSION + (bytes[12] == 255),
        .number = block_responder_base(stream) + (uint32_t)(int8_t)bytes[2] / 2,
        .index = bytes[3] >> 6,
        .position = bytes[3] & 63,
        .path = bytes[4] & 15,
        .round = bytes[4] >> 4,
        .receive_number = stream->next_receive + (uint32_t)(int8_t)bytes[5] / 16,
        .message_bytes = (uint32_t)bytes[6] << 8 | bytes[7],
        .address = START + ((uint32_t)bytes[8] << 8 | bytes[9]) - 64,
        .key = bytes[10] & 1 ? target->receives.key : target->region.key,
        .last_position = bytes[11] & 63,
        .last_block = bytes[11] & 64,
        .payload_bytes = bytes[13],
        .payload = payload,
    };
    if (packet.opcode == BLOCK_READ) {
        packet.wanted = packet.payload_bytes | 1;
        packet.payload_bytes = 0;
    } else if (packet.opcode == BLOCK_ATOMIC) {
        packet.atomic.kind = bytes[13] % 4;
        packet.atomic.compare = packet.atomic.swap_or_add = bytes[12];
        packet.payload_bytes = 0;
    } else if (packet.opcode == BLOCK_CHALLENGE || packet.opcode == BLOCK_RESPONSE) {
        packet.challenge = nic_peer_routes(target->nic, 1)->proofs[0].number + (bytes[12] & 1);
        packet.payload_bytes = 0;
    } else if (packet.opcode == BLOCK_PROBE) {
        packet.payload_bytes = 0;
    }
    return packet;
}

/* Makes it agree with itself. */
static void set_right(struct block_packet *packet)
{
    const uint32_t packets = block_message_packets(packet->message_bytes, MTU);
    packet->index %= block_message_blocks(packets);
    packet->last_position = block_last_position(packets, packet->index);
    packet->last_block = packet->index + 1 == block_message_blocks(packets);
    packet->position %= packet->last_position + 1;
    if (packet->opcode == BLOCK_READ) {
        packet->position = 0;
        packet->early = packet->has_immediate = packet->invalidates = false;
        return;
    }
    if (packet->opcode != BLOCK_SEND && packet->opcode != BLOCK_WRITE) {
        packet->index = packet->position = packet->last_position = 0;
        packet->last_block = packet->opcode == BLOCK_ATOMIC;
        packet->early = packet->has_immediate = packet->invalidates = false;
        return;
    }
    const uint32_t rest = packet->message_bytes - (uint32_t)block_payload_offset(packet, MTU);
    packet->payload_bytes = rest < MTU ? rest : MTU;
    packet->has_immediate &= block_is_last(packet);
    packet->invalidates &=
        block_is_last(packet) && packet->opcode == BLOCK_SEND && !packet->has_immediate;
}

static void deliver_packet(struct target *target, const uint8_t *bytes)
{
    struct block_packet packet = packet_of(target, bytes);
    if (bytes[0] & HINT_RIGHT) {
        set_right(&packet);
    }
    uint8_t headers[BLOCK_HEADERS_BYTES_MAX];
    struct nic_frame frame = {.headers = headers,
                              .headers_bytes = (uint32_t)block_encode(&packet, headers),
                              .payload = payload,
                              .payload_bytes = (packet.payload_bytes + 3) & ~3u,
                              .source = bytes[5] & 1 ? target->peer : target->named,
                              .hop_limit = 64};
    if (bytes[0] & HINT_RAW) {
        memcpy(headers + ROCE_BTH_BYTES, bytes + 2, PACKET_BYTES - 2);
    }
    deliver(target, bytes[0], &frame);
}

static void pull(struct target *target)
{
    struct nic_departure departure;
    struct nic_routes *routes = nic_peer_routes(target->nic, 1);
    struct qp *qp;
    uint32_t count = 0;
    routes->random = target->now.ns;
    while ((qp = nic_next_qp(target->nic)) != NULL) {
        if (nic_next_packet(target->nic, qp, target->now, &departure)) {
            CHECK(departure.payload_bytes <= MTU);
            CHECK(departure.route % 2 == 0 || routes->proofs[0].given ||
                  departure.payload_bytes == 0);
            CHECK(++count < 2000);
            nic_rotate(target->nic, qp);
        }
    }
}

static void check(const struct target *target)
{
    nic_check(target->nic);
    CHECK(target->nic->block_shared->hold.used <= limits.block.held);
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        CHECK(target->memory[i] == 0xa5);
        CHECK(target->memory[GUARD_BYTES + REGION_BYTES + i] == 0xa5);
        CHECK(target->receive_memory[i] == 0xa5);
        CHECK(target->receive_memory[GUARD_BYTES + RECEIVES * RECEIVE_BYTES + i] == 0xa5);
    }
}

/* A region that nobody may write is not written. */
static void close_or_open(struct target *target)
{
    target->region.access ^= ACCESS_REMOTE_WRITE | ACCESS_REMOTE_ATOMIC;
}

static void step(struct target *target, const uint8_t *bytes)
{
    static uint8_t before[REGION_BYTES];
    if (bytes[0] & HINT_CLOSE) {
        finish_moves(target, NIC_MOVED);
        close_or_open(target);
    }
    const bool shut = !(target->region.access & ACCESS_REMOTE_WRITE);
    memcpy(before, target->memory + GUARD_BYTES, REGION_BYTES);
    deliver_packet(target, bytes);
    CHECK(!shut || memcmp(before, target->memory + GUARD_BYTES, REGION_BYTES) == 0);
    if (bytes[0] & HINT_TIME) {
        target->now.ns += 60000000;
        nic_on_time(target->nic, target->now);
    }
    if (bytes[0] & HINT_PULL) {
        pull(target);
        struct completion completion;
        while (cq_poll(&target->cq, &completion, 1) == 1) {
        }
        post(target, bytes[0] & HINT_SHARED);
    }
    check(target);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct target target;
    if (count == 0) {
        return 0;
    }
    make(&target, bytes[0] & 1 ? BLOCK_PLACE_HOLD : BLOCK_PLACE_EARLY, (bytes[0] & 2) == 0);
    for (bytes++, count--; count >= PACKET_BYTES; bytes += PACKET_BYTES, count -= PACKET_BYTES) {
        step(&target, bytes);
    }
    finish_moves(&target, NIC_MOVED);
    pull(&target);
    for (int i = 0; i < QPS; i++) {
        qp_destroy(target.qps[i]);
    }
    CHECK(target.nic->block_shared->contexts.used == 0);
    CHECK(target.nic->block_shared->hold.used == 0);
    for (int i = 0; i < QPS; i++) {
        free(target.qp_memory[i]);
    }
    free(target.srq_memory);
    free(target.nic_memory);
    return 0;
}
