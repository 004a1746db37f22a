/* SPDX-License-Identifier: BSD-2-Clause
 *
 * calls_fuzz - a program that calls a NIC in any order with odd arguments, and a network that
 *              changes, repeats, reorders and makes up what its queue pairs say to one another.
 *
 * Goal    No order of calls and packets reaches an assertion, breaks an invariant of an engine,
 *         writes beside registered memory, or completes a request that was not posted or did
 *         already complete; and all of it can be taken apart at any time.
 * Method  Queue pairs of one NIC are connected to one another in pairs, of every type, with and
 *         without blocks. Their packets wait on a wire; the input delivers some of them, or makes
 *         up others. A router may have marked them. Memory is moved at once or later. The input
 *         chooses the next call: posts, modifications of every kind, polls, registration, windows,
 *         shared receive queues, destruction.
 */
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/check.h"
#include "nic/nic.h"
#include "nic/routes.h"
#include "tests/fuzz/input.h"
#include "wire/inet.h"

#define QPS         6
#define CQS         2
#define REGIONS     3
#define WINDOWS     2
#define WIRE        16
#define MOVES       4
#define BYTES       32768
#define GUARD       256
#define BASE        0x10000u
#define POSTS_MAX   4096
#define PULLS_MAX   64
#define FIRST_PSN   0xfffff0u
#define PACKET_MAX  (NIC_HEADERS_BYTES_MAX + 4096 + 4)
#define CQ_CAPACITY 16

struct end {
    struct qp *qp; /* NULL: none. */
    void *memory;
    enum qp_type type;
    bool shared; /* It takes receives from the shared queue. */
};

struct wire_packet {
    uint32_t bytes;
    bool placed;
    uint8_t at[PACKET_MAX];
};

struct late_move {
    struct nic_move move;
    uint8_t *bytes; /* The frame that it is from; NULL: free. */
};

static struct {
    struct nic *nic;
    void *nic_memory;
    struct instant now;
    struct pd pd;
    struct xrcd xrcd;
    struct cq cqs[CQS];
    struct completion *rings[CQS];
    struct end ends[QPS];
    struct srq srq;
    void *srq_memory;
    struct region regions[REGIONS], windows[WINDOWS];
    bool has_region[REGIONS], has_window[WINDOWS];
    struct wire_packet wire[WIRE];
    uint32_t wire_count;
    struct late_move moves[MOVES];
    struct list parked;
    struct gid gid;
    uint64_t posts;
    bool pending[POSTS_MAX];
    int link; /* Its address is that of every address vector's link. */
    uint8_t memory[GUARD + BYTES + GUARD];
} world;

static const enum qp_type types[] = {QP_RC, QP_UC, QP_UD, QP_XRC_INITIATOR, QP_XRC_TARGET};

static void *zeroed(size_t bytes)
{
    bytes = line_aligned(bytes == 0 ? 1 : bytes);
    void *memory = aligned_alloc(64, bytes);
    CHECK(memory != NULL);
    return memset(memory, 0, bytes);
}

/* How a packet comes. */
enum route {
    WAY_PLACED = 1 << 0, /* Its sender says that it wrote or read the memory itself. */
    WAY_LATE = 1 << 1,   /* Its move is made later. */
    WAY_MARKED = 1 << 2, /* A router met congestion. */
};

/* -- Making and taking apart --------------------------------------------------------------------*/

static void make_nic(uint8_t shape)
{
    const struct nic_limits limits = {
        .qps = 8,
        .xrc_srqs = 2,
        .regions = 8,
        .sends_per_qp = 16,
        .receives_per_qp = 16,
        .receives_per_srq = 16,
        .sges = 4,
        .inline_bytes = 64,
        .reads_per_qp = 4,
        .reads = 10, /* Less than all ask for, as is the memory for blocks. */
        .cq_entries = 64,
        .mtu = PATH_MTU_4096,
        .block = {.transport = shape & 1 ? NIC_TRANSPORT_BLOCK : NIC_TRANSPORT_AUTO,
                  .place = shape & 2 ? BLOCK_PLACE_HOLD : BLOCK_PLACE_EARLY,
                  .window = 64,
                  .contexts = 16,
                  .held = 16,
                  .reads = 4,
                  .paths = 2,
                  .peers = 1,
                  .connections = 2,
                  .auto_losses = 1},
    };
    world.nic_memory = zeroed(nic_bytes(&limits));
    world.nic = nic_init(&limits, 1, world.nic_memory);
    struct nic_routes *routes = nic_peer_routes(world.nic, 1);
    routes->ports = 2;
    routes->datagram_bytes = 8192;
    routes->grant_bytes = 1 << 16;
    nic_note_answers(world.nic, 1, true);
}

static void make_srq(void)
{
    world.srq_memory = zeroed(receive_queue_bytes(8, 2));
    srq_init(&world.srq, &world.pd, 8, 2, world.srq_memory);
    world.srq.xrcd = &world.xrcd;
    world.srq.cq = &world.cqs[0];
    CHECK(srq_enter(world.nic, &world.srq) == STATUS_OK);
}

static void make(uint8_t shape)
{
    memset(&world, 0, sizeof(world));
    memset(world.memory, 0xa5, GUARD);
    memset(world.memory + GUARD + BYTES, 0xa5, GUARD);
    world.now = (struct instant){1000000};
    world.gid = (struct gid){.bytes = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
    list_init(&world.parked);
    make_nic(shape);
    for (int i = 0; i < CQS; i++) {
        world.rings[i] = zeroed(cq_ring_entries(CQ_CAPACITY) * sizeof(struct completion));
        cq_init(&world.cqs[i], CQ_CAPACITY, world.rings[i]);
        list_init(&world.cqs[i].notify);
        list_init(&world.cqs[i].event_link);
    }
    make_srq();
}

static void create(struct end *end, struct input *input)
{
    const uint8_t choice = take(input);
    struct qp_request request = {
        .type = types[choice % COUNT_OF(types)],
        .signal_all = choice & 64,
        .capacity = {1 + take(input) % 16u, 1 + choice / 16u, 1 + choice % 4u, 2, 64},
    };
    end->type = request.type;
    end->shared = request.type == QP_RC && (choice & 128) != 0;
    if (request.type == QP_XRC_TARGET) {
        request.xrcd = &world.xrcd;
        request.capacity = (struct qp_capacity){0};
    } else {
        request.pd = &world.pd;
        request.send_cq = &world.cqs[choice >> 5 & 1];
        request.receive_cq = request.type == QP_XRC_INITIATOR ? NULL : &world.cqs[0];
        request.srq = end->shared ? &world.srq : NULL;
        request.capacity.receives *= request.type != QP_XRC_INITIATOR;
    }
    end->memory = zeroed(qp_bytes(request.type, &request.capacity, end->shared));
    CHECK(qp_create(world.nic, &request, end->memory, &end->qp) == STATUS_OK);
}

/* A world that destroys a queue pair does not finish its moves. */
static void destroy(struct end *end)
{
    for (int i = 0; i < MOVES; i++) {
        if (world.moves[i].bytes != NULL && world.moves[i].move.qp == end->qp) {
            free(world.moves[i].bytes);
            world.moves[i].bytes = NULL;
        }
    }
    qp_destroy(end->qp);
    free(end->memory);
    *end = (struct end){.qp = NULL};
}

static void drop(void)
{
    for (int i = 0; i < QPS; i++) {
        if (world.ends[i].qp != NULL) {
            destroy(&world.ends[i]);
        }
    }
    srq_leave(world.nic, &world.srq);
    free(world.srq_memory);
    for (int i = 0; i < CQS; i++) {
        nic_forget_cq(&world.cqs[i]);
        CHECK(world.cqs[i].users == 0);
        free(world.rings[i]);
    }
    for (int i = 0; i < WINDOWS; i++) {
        if (world.has_window[i]) {
            window_remove(nic_regions(world.nic), &world.windows[i]);
        }
    }
    for (int i = 0; i < REGIONS; i++) {
        CHECK(!world.has_region[i] ||
              region_remove(nic_regions(world.nic), &world.regions[i]) == STATUS_OK);
    }
    CHECK(world.srq.users == 0 && world.xrcd.users == 0);
    free(world.nic_memory);
}

/* -- States -------------------------------------------------------------------------------------*/

static struct qp_attributes attributes_of(uint32_t which, struct input *input)
{
    const struct end *partner = &world.ends[which ^ 1];
    const uint8_t choice = take(input);
    return (struct qp_attributes){
        .port = 1,
        .access = choice & 1 ? ACCESS_REMOTE_READ : ACCESS_REMOTE,
        .path_mtu = choice & 2 ? PATH_MTU_1024 : PATH_MTU_256,
        .qkey = 0x1234,
        .psn = {FIRST_PSN, FIRST_PSN},
        .destination_qpn = partner->qp != NULL ? qp_number(partner->qp) : 77,
        .av = {.source = world.gid,
               .destination = world.gid,
               .link = &world.link,
               .peer = choice & 4 ? 1 : 0,
               .window_bytes = choice & 8 ? 2048 : 0},
        .max_reads_in = 4,
        .max_reads_out = (uint8_t)(choice >> 6),
        .timeout = 10,
        .retry_count = choice >> 4 & 1,
        .rnr_retry = choice & 32 ? 7 : 1,
    };
}

static const uint32_t init_mask = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT;
static const uint32_t rtr_mask =
    QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN;

static void bring(uint32_t which, struct input *input)
{
    struct end *end = &world.ends[which];
    struct qp_attributes wanted = attributes_of(which, input);
    const bool datagrams = end->type == QP_UD;
    const bool answers = end->type == QP_RC || end->type == QP_XRC_TARGET;
    const bool asks = end->type == QP_RC || end->type == QP_XRC_INITIATOR;
    wanted.state = QP_INIT;
    if (qp_modify(end->qp, &wanted, init_mask | (datagrams ? QP_ATTR_QKEY : QP_ATTR_ACCESS_FLAGS),
                  world.now) != STATUS_OK) {
        return;
    }
    wanted.state = QP_RTR;
    (void)!qp_modify(
        end->qp, &wanted,
        datagrams ? QP_ATTR_STATE
                  : rtr_mask | (answers ? QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER : 0),
        world.now);
    wanted.state = QP_RTS;
    (void)!qp_modify(end->qp, &wanted,
                     QP_ATTR_STATE | QP_ATTR_SQ_PSN |
                         (asks ? QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                                     QP_ATTR_MAX_QP_RD_ATOMIC
                          : end->type == QP_XRC_TARGET ? QP_ATTR_TIMEOUT
                                                       : 0),
                     world.now);
}

/* Any attribute, any state, but for the attributes that the world must keep right. */
static void modify(uint32_t which, struct input *input)
{
    struct qp_attributes wanted = attributes_of(which, input);
    const uint8_t choice = take(input);
    wanted.state = choice % 7;
    wanted.current_state = choice / 7 % 7;
    wanted.notify_when_drained = choice & 1;
    uint32_t mask = QP_ATTR_STATE;
    if (choice & 128) {
        mask = take_number(input, 4);
        wanted.port = take(input);
        wanted.psn.receive = take_number(input, 4);
        wanted.max_reads_in = take(input);
        wanted.max_reads_out = take(input);
        wanted.timeout = take(input);
        wanted.rnr_retry = take(input);
        wanted.min_rnr_timer = take(input);
        wanted.path_mtu = take(input);
    }
    const enum status status = qp_modify(world.ends[which].qp, &wanted, mask, world.now);
    CHECK(status != STATUS_OK || (mask & QP_ATTR_STATE) == 0 ||
          qp_state_of(world.ends[which].qp) == wanted.state);
}

/* -- Requests -----------------------------------------------------------------------------------*/

static uint32_t key_of(uint8_t choice)
{
    return choice & 8     ? world.windows[choice % WINDOWS].key
           : choice & 128 ? choice
                          : world.regions[choice % REGIONS].key;
}

static struct sge sge_of(struct input *input)
{
    const uint8_t choice = take(input);
    return (struct sge){BASE + take(input) * 128u, take(input) * (choice & 16 ? 16u : 1u),
                        key_of(choice)};
}

static void post_send(uint32_t which, struct input *input)
{
    static const enum work_kind kinds[] = {
        WORK_WRITE,       WORK_WRITE_IMMEDIATE, WORK_SEND,         WORK_SEND_IMMEDIATE,
        WORK_READ,        WORK_COMPARE_SWAP,    WORK_FETCH_ADD,    WORK_LOCAL_INVALIDATE,
        WORK_BIND_WINDOW, WORK_SEND_INVALIDATE, WORK_ATOMIC_WRITE, WORK_FLUSH,
    };
    const uint8_t choice = take(input), more = take(input);
    struct sge sges[6];
    struct nic_av av = {.source = world.gid, .destination = world.gid, .link = &world.link};
    struct send_request request = {
        .wr_id = world.posts,
        .kind = choice == 255 ? (enum work_kind)more : kinds[choice % COUNT_OF(kinds)],
        .flags = more & 15,
        .sges = sges,
        .sge_count = choice >> 4 & 3,
        .immediate = key_of(more),
        .remote_address = BASE + take(input) * 64u,
        .remote_key = key_of(take(input)),
        .flush = {choice * 64u, more % 16 == 15 ? more : 1 + (more >> 4) % 3, more & 1},
        .av = &av,
        .destination_qpn = more & 64 ? qp_number(world.ends[which].qp) : 78,
        .destination_qkey = 0x1234,
        .srqn = world.srq.number,
        .bind = {.window = &world.windows[more >> 6 & 1],
                 .region = choice & 64 ? NULL : &world.regions[choice % REGIONS],
                 .address = BASE + more,
                 .bytes = choice,
                 .access = more & 1 ? ACCESS_REMOTE_READ | ACCESS_FLUSH : ACCESS_REMOTE_WRITE,
                 .key = world.windows[more >> 6 & 1].key ^ (more & 7)},
    };
    if (work_kind_in(work_kinds(WORK_IS_ATOMIC), request.kind) && (more & 128) == 0) {
        request.sge_count = 1;
    } else if (request.kind == WORK_FLUSH && more % 16 != 15) {
        request.sge_count = 0;
    }
    for (uint32_t i = 0; i < request.sge_count; i++) {
        sges[i] = sge_of(input);
        sges[i].bytes = work_kind_in(work_kinds(WORK_IS_ATOMIC), request.kind) ? 8 : sges[i].bytes;
        if (request.flags & WORK_INLINE) {
            sges[i].address = (uintptr_t)world.memory + GUARD;
        }
    }
    /* Verbs know the windows that there are. */
    if (request.kind == WORK_BIND_WINDOW &&
        (!world.has_window[more >> 6 & 1] || !world.has_region[choice % REGIONS])) {
        return;
    }
    const uint32_t count = choice == 254 ? 2 : 1;
    struct send_request both[2] = {request, request};
    both[1].wr_id++;
    if (world.posts + count < POSTS_MAX &&
        qp_post_sends(world.ends[which].qp, both, count) == STATUS_OK) {
        for (uint32_t i = 0; i < count; i++) {
            world.pending[world.posts++] = true;
        }
    }
}

static void post_receive(const struct end *end, struct input *input)
{
    const uint8_t choice = take(input);
    struct sge sges[4];
    for (int i = 0; i < choice % 4; i++) {
        sges[i] = sge_of(input);
    }
    if (world.posts == POSTS_MAX) {
        return;
    }
    const bool posted =
        (end == NULL ? srq_post_receive(&world.srq, world.posts, sges, choice % 4)
                     : qp_post_receive(end->qp, world.posts, sges, choice % 4)) == STATUS_OK;
    if (posted) {
        world.pending[world.posts++] = true;
    }
}

/* Each request completes once at most, and none that was not posted does. */
static void poll(struct cq *cq, uint8_t count)
{
    struct completion done[8];
    const uint32_t polled = cq_poll(cq, done, count % 8 + 1u);
    for (uint32_t i = 0; i < polled; i++) {
        CHECK(done[i].wr_id < world.posts && world.pending[done[i].wr_id]);
        world.pending[done[i].wr_id] = false;
    }
}

static void resize(uint32_t which, uint8_t capacity)
{
    struct cq *cq = &world.cqs[which];
    const uint32_t wanted = 1 + capacity % 64u;
    if (wanted < cq_count(cq)) {
        return;
    }
    struct completion *ring = zeroed(cq_ring_entries(wanted) * sizeof(*ring));
    free(cq_resize(cq, wanted, ring));
    world.rings[which] = ring;
}

/* -- The wire -----------------------------------------------------------------------------------*/

static void put_on_wire(const struct nic_departure *departure, bool placed)
{
    struct wire_packet *packet = &world.wire[world.wire_count++ % WIRE];
    memcpy(packet->at, departure->headers, departure->headers_bytes);
    uint32_t at = departure->headers_bytes;
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        const struct segment *segment = &departure->segments[i];
        CHECK(segment->bytes <= 4096 && at + segment->bytes <= sizeof(packet->at) - 4);
        memcpy(packet->at + at, (const void *)(uintptr_t)segment->address, segment->bytes);
        at += segment->bytes;
    }
    CHECK(at == departure->headers_bytes + departure->payload_bytes);
    memset(packet->at + at, 0, departure->pad_bytes);
    packet->bytes = at + departure->pad_bytes;
    packet->placed = placed;
}

/* A local peer's memory reached without it, which nobody does here: it is said alone. */
static bool reach(const struct nic_departure *departure)
{
    struct segment segments[NIC_SEGMENT_MAX];
    uint32_t count;
    if (departure->direct.kind == NIC_DIRECT_WRITE) {
        nic_on_placed(departure, world.now);
        return true;
    }
    if (departure->direct.kind == NIC_DIRECT_READ && nic_read_target(departure, segments, &count)) {
        nic_on_fetched(departure, world.now);
        return true;
    }
    return false;
}

static void pull(uint8_t choice)
{
    struct nic_departure departure;
    struct qp *qp;
    for (uint32_t i = 0; i < 1 + choice % 16u && (qp = nic_next_qp(world.nic)) != NULL; i++) {
        if (choice == 255) {
            nic_park(world.nic, qp, &world.parked, world.now);
        } else if (nic_next_packet(world.nic, qp, world.now, &departure)) {
            if ((choice & 32) != 0 && departure.payload_bytes > 0) {
                nic_on_gather_failed(&departure);
            } else {
                put_on_wire(&departure, (choice & 64) != 0 && departure.alone && reach(&departure));
            }
            nic_rotate(world.nic, qp);
        }
    }
    if (choice & 128) {
        nic_unpark(world.nic, &world.parked);
    }
}

static void copy(struct nic_move *move)
{
    const uint8_t *payload = move->payload;
    uint32_t prefix = 0;
    if (move->kind == NIC_MOVE_FLUSH) {
        const uint64_t start = (uintptr_t)world.memory + GUARD;
        CHECK(move->flush.range.address >= start && move->flush.range.bytes <= BYTES &&
              move->flush.range.address - start <= BYTES - move->flush.range.bytes);
    }
    if (move->kind == NIC_MOVE_ATOMIC) {
        uint64_t *at = (uint64_t *)(uintptr_t)move->segments[0].address;
        move->original = *at;
        *at = nic_atomic_result(move, *at);
    }
    for (uint32_t i = 0; move->kind == NIC_MOVE_SCATTER && i < move->segment_count; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)move->segments[i].address;
        for (uint32_t k = 0; k < move->segments[i].bytes; k++) {
            *to++ = prefix < move->prefix_bytes ? move->prefix[prefix++] : *payload++;
        }
    }
}

static void finish(struct nic_move *move, bool faults)
{
    if (!faults) {
        copy(move);
    }
    nic_on_moved(world.nic, move, faults ? NIC_MOVE_FAULTED : NIC_MOVED, world.now);
}

static void finish_held(void)
{
    struct nic_move move;
    while (nic_next_held(world.nic, &move)) {
        finish(&move, false);
    }
}

/* The oldest first: one that is in order may not overtake. */
static void finish_late(uint8_t choice)
{
    if (world.moves[0].bytes == NULL) {
        return;
    }
    struct late_move late = world.moves[0];
    memmove(world.moves, world.moves + 1, (MOVES - 1) * sizeof(late));
    world.moves[MOVES - 1].bytes = NULL;
    finish(&late.move, choice % 16 == 15);
    free(late.bytes);
    finish_held();
}

/* None that is free stands in front of one that is kept. */
static void compact(void)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < MOVES; i++) {
        if (world.moves[i].bytes != NULL) {
            const struct late_move late = world.moves[i];
            world.moves[i].bytes = NULL;
            world.moves[kept++] = late;
        }
    }
}

static bool put_off(const struct nic_move *move, uint8_t *bytes)
{
    for (uint32_t i = 0; i < MOVES; i++) {
        if (world.moves[i].bytes == NULL) {
            world.moves[i] = (struct late_move){*move, bytes};
            return true;
        }
    }
    return false;
}

/* Memory of exactly the packet's size, so that reading behind it is found. */
static void arrive(const uint8_t *packet, uint32_t count, uint32_t routes)
{
    uint8_t *bytes = malloc(count + 1);
    struct nic_move move;
    CHECK(bytes != NULL);
    memcpy(bytes, packet, count);
    const struct nic_frame frame = {.headers = bytes,
                                    .headers_bytes = count,
                                    .source = world.gid,
                                    .destination = world.gid,
                                    .traffic_class = routes & WAY_MARKED ? INET_ECN_MASK : 0,
                                    .hop_limit = 64,
                                    .placed = routes & WAY_PLACED};
    enum nic_arrived arrived = nic_on_packet(world.nic, &frame, world.now, &move);
    if (arrived == NIC_MOVES && (routes & WAY_LATE) && put_off(&move, bytes)) {
        return;
    }
    while (arrived == NIC_MOVES && world.moves[0].bytes != NULL) {
        finish_late(0);
    }
    if (arrived == NIC_MOVES) {
        finish(&move, false);
    }
    finish_held();
    free(bytes);
}

static void deliver(struct input *input)
{
    const uint8_t which = take(input), choice = take(input);
    struct wire_packet packet = world.wire[which % WIRE];
    for (int i = 0; i < (choice & 3) && packet.bytes > 0; i++) {
        packet.at[take(input) % packet.bytes] ^= take(input);
    }
    if ((choice & 12) == 12) {
        packet.bytes = packet.bytes > 0 ? take(input) % packet.bytes : 0;
    }
    const bool placed = packet.placed != ((choice & 48) == 48);
    arrive(packet.at, packet.bytes,
           (placed ? WAY_PLACED : 0u) | (choice & 64 ? WAY_LATE : 0u) |
               (which & WIRE ? WAY_MARKED : 0u));
    if (choice & 128) {
        world.wire[which % WIRE].bytes = 0;
    }
}

/* All of the newest packets that still lie there, in order. */
static void deliver_all(bool marked)
{
    for (uint32_t i = 0; i < WIRE; i++) {
        struct wire_packet packet = world.wire[(world.wire_count + i) % WIRE];
        world.wire[(world.wire_count + i) % WIRE].bytes = 0;
        if (packet.bytes > 0) {
            arrive(packet.at, packet.bytes,
                   (packet.placed ? WAY_PLACED : 0u) | (marked ? WAY_MARKED : 0u));
        }
    }
}

/* A packet that a peer of that queue pair may send as an answer or a request, near the numbers that
 * it knows. */
static void make_up(uint32_t which, struct input *input)
{
    const struct end *end = &world.ends[which];
    const uint8_t opcode = take(input), choice = take(input);
    const uint8_t operation = opcode < 240 ? opcode % 24 : 24 + opcode % 8;
    uint8_t bytes[ROCE_HEADERS_BYTES_MAX + 256] = {0};
    static const uint8_t services[] = {ROCE_SERVICE_RC, ROCE_SERVICE_UC, ROCE_SERVICE_UD,
                                       ROCE_SERVICE_XRC, ROCE_SERVICE_XRC};
    struct roce_packet packet = {.pkey = ROCE_DEFAULT_PKEY,
                                 .destination_qpn = qp_number(end->qp),
                                 .ack_request = choice & 1};
    for (uint32_t i = 0; i < COUNT_OF(types); i++) {
        packet.opcode = types[i] == end->type ? (uint8_t)(services[i] | operation) : packet.opcode;
    }
    if ((choice & 192) == 192) {
        packet.opcode = ROCE_OPCODE_CNP;
    } else if (!roce_is_of_queue_pairs(roce_opcode(packet.opcode))) {
        return;
    }
    const bool connected = end->type != QP_UC && end->type != QP_UD;
    const struct qp_flow flow = connected ? qp_flow_of(end->qp) : (struct qp_flow){.next = {0}};
    const bool response = roce_opcode(packet.opcode)->traits & ROCE_IS_RESPONSE;
    const uint32_t near = (uint32_t)(int32_t)(int8_t)take(input);
    packet.psn = ((response ? flow.unacked.value : flow.expected.value) + (choice & 2 ? near : 0)) &
                 PSN_MASK;
    packet.aeth.syndrome = take(input);
    packet.aeth.msn = take(input);
    packet.deth.qkey = 0x1234;
    packet.xrc.srqn = world.srq.number;
    packet.reth.key = packet.atomic.key = packet.immediate = key_of(take(input));
    packet.reth.address = packet.atomic.address = BASE + take(input) * 8u;
    packet.reth.bytes = take(input) * 8u;
    packet.feth.placement = opcode >> 1 & 3;
    packet.feth.selectivity = opcode >> 3 & 1;
    const uint32_t head = (uint32_t)roce_encode_headers(&packet, bytes);
    const uint32_t payload = choice & 4 ? 256 : choice & 8 ? 0 : take(input) & ~3u;
    arrive(bytes, head + payload,
           (choice & 16 ? WAY_PLACED : 0u) | (choice & 32 ? WAY_LATE : 0u) |
               (choice & 64 ? WAY_MARKED : 0u));
}

/* -- Memory, time, events -----------------------------------------------------------------------*/

static void change_memory(struct input *input)
{
    const uint8_t choice = take(input);
    const uint32_t region = choice % REGIONS, window = choice / REGIONS % WINDOWS;
    struct region_table *table = nic_regions(world.nic);
    const struct region_request request = {
        .address = (uintptr_t)(world.memory + GUARD),
        .bytes = BYTES,
        .start = BASE,
        .access =
            choice & 64 ? ACCESS_REMOTE_READ : ACCESS_LOCAL_WRITE | ACCESS_REMOTE | ACCESS_MW_BIND,
    };
    if (choice & 128) {
        if (world.has_window[window]) {
            window_remove(table, &world.windows[window]);
            world.has_window[window] = false;
        } else {
            world.has_window[window] =
                window_add(table, &world.pd,
                           choice & 64 ? REGION_WINDOW_TYPE_1 : REGION_WINDOW_TYPE_2,
                           &world.windows[window]) == STATUS_OK;
        }
    } else if (!world.has_region[region]) {
        world.has_region[region] =
            region_add(table, &world.pd, &request, &world.regions[region]) == STATUS_OK;
    } else if (choice & 32) {
        (void)!region_change(&world.regions[region], &world.pd, &request, choice & 16, choice & 8,
                             choice & 64);
    } else {
        world.has_region[region] = region_remove(table, &world.regions[region]) != STATUS_OK;
    }
}

static void change_srq(struct input *input)
{
    const uint8_t choice = take(input);
    if (choice & 1) {
        world.srq.limit_armed = choice / 2 % (world.srq.queue.limit + 1);
        return;
    }
    const uint32_t limit = 1 + choice / 2 % 16u;
    if (srq_may_resize(&world.srq, limit, world.srq.limit_armed)) {
        void *memory = zeroed(receive_queue_bytes(limit, world.srq.queue.sge_max));
        free(srq_resize(&world.srq, limit, memory));
        world.srq_memory = memory;
    }
}

static void pass_time(uint64_t ns, bool watched)
{
    struct nic_overdue overdue;
    world.now.ns += ns;
    for (int i = 0; watched && i < 32 && nic_next_overdue(world.nic, world.now, &overdue); i++) {
        if (i % 2 == 0) {
            nic_on_timeout(world.nic, overdue.qp, world.now);
        } else {
            nic_on_unread(world.nic, overdue.qp, world.now);
        }
    }
    if (instant_reached(world.now, nic_deadline(world.nic))) {
        nic_on_time(world.nic, world.now);
    }
}

static void hear_events(void)
{
    struct nic_event event;
    while (nic_next_event(world.nic, &event)) {
        CHECK((event.qp != NULL) + (event.cq != NULL) + (event.srq != NULL) == 1);
    }
    while (nic_next_notification(world.nic) != NULL) {
    }
}

static void check(void)
{
    static uint8_t guard[GUARD];
    memset(guard, 0xa5, sizeof(guard));
    CHECK(memcmp(world.memory, guard, GUARD) == 0);
    CHECK(memcmp(world.memory + GUARD + BYTES, guard, GUARD) == 0);
    nic_check(world.nic);
}

static void call_queue_pair(uint32_t which, uint8_t kind, struct input *input)
{
    switch (kind) {
    case 0:
    case 1:
    case 2: post_send(which, input); break;
    case 3: post_receive(&world.ends[which], input); break;
    case 4: make_up(which, input); break;
    case 5: bring(which, input); break;
    case 6: modify(which, input); break;
    default:
        if (take(input) & 1) {
            destroy(&world.ends[which]);
            compact();
        }
        break;
    }
}

static void step(struct input *input)
{
    const uint8_t kind = take(input), more = kind >> 4;
    const uint32_t which = take(input) % QPS;
    switch (kind & 15) {
    case 0: pull(take(input)); break;
    case 1:
    case 2: deliver(input); break;
    case 3:
        pull(15);
        deliver_all(more & 1);
        break;
    case 4: pass_time((uint64_t)take(input) << (8 + more), take(input) & 1); break;
    case 5: poll(&world.cqs[more & 1], more); break;
    case 6: cq_arm(&world.cqs[more & 1], more & 2); break;
    case 7: hear_events(); break;
    case 8: change_memory(input); break;
    case 9: change_srq(input); break;
    case 10: resize(more & 1, take(input)); break;
    case 11: finish_late(more); break;
    case 12: post_receive(NULL, input); break;
    default:
        if (world.ends[which].qp == NULL) {
            create(&world.ends[which], input);
            bring(which, input);
        } else {
            call_queue_pair(which, take(input) % 8, input);
        }
        break;
    }
    check();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    make(take(&input));
    while (input.count > 0) {
        step(&input);
    }
    drop();
    return 0;
}
