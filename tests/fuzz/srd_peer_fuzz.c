/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_peer_fuzz - a NIC that talks by SRD with somebody who says anything.
 *
 * Goal    Whatever a peer sends, nothing outside the region is written, no assertion fails, the
 *         engine's invariants hold after every packet, each request completes once, and nothing
 *         but challenges and responses leaves for an address before that responded.
 * Method  The peer has greeted and was challenged, so his requests are judged. The input is a
 *         sequence of deeds: requests of his with numbers near the right ones, answers, data and
 *         challenges to the flow of the NIC, addresses that he names and proves, and from which
 *         he goes on, requests that its program posts, and time that passes.
 */
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"
#include "nic/routes.h"
#include "tests/fuzz/input.h"

#define GUARD  256u
#define REGION 8192u
#define CHUNK  512u
#define QKEY   3u
#define SENDS  16u

struct target {
    struct nic *nic;
    void *nic_memory, *qp_memory;
    struct qp *qp;
    struct pd pd;
    struct cq cq;
    struct completion ring[256];
    struct region region;
    struct gid self, peer, second; /* Another address that he may name, ... */
    bool from_second, proven;      /* ... from which he speaks now; which has responded. */
    uint64_t number;               /* The newest challenge to it has it. */
    struct instant now;
    struct nic_av av;
    uint64_t tag;  /* The peer's, for ... */
    uint32_t flow; /* ... this flow. */
    uint32_t psn;  /* Near the NIC's own numbers: of its newest packet, ... */
    uint32_t to_flow;
    uint64_t to_tag; /* ... and the tag that we gave it. */
    uint32_t posted, completed;
    uint8_t memory[GUARD + REGION + GUARD];
};

static const struct nic_limits limits = {.qps = 4,
                                         .regions = 4,
                                         .sends_per_qp = SENDS,
                                         .receives_per_qp = 8,
                                         .receives_per_srq = 1,
                                         .sges = 2,
                                         .inline_bytes = 32,
                                         .reads_per_qp = 1,
                                         .cq_entries = 256,
                                         .mtu = PATH_MTU_4096,
                                         .qpn_base = 2u << 16,
                                         .qpn_span = 256,
                                         .srd = {.paths = 4,
                                                 .alone_bytes = 1,
                                                 .contacts = 3,
                                                 .peers = 2,
                                                 .hosts = 2,
                                                 .assemblies = 4,
                                                 .requests = 8,
                                                 .parts = 4,
                                                 .packets = 16,
                                                 .reads = 2,
                                                 .send_bytes = 4096,
                                                 .chunk_bytes = CHUNK}};

static void *zeroed(size_t bytes)
{
    const size_t whole = (bytes + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, whole);
    CHECK(memory != NULL);
    memset(memory, 0, whole);
    return memory;
}

static void set_state(struct target *target, enum qp_state state, uint32_t mask)
{
    const struct qp_attributes wanted = {
        .state = (uint8_t)state, .port = 1, .qkey = QKEY, .rnr_retry = 1};
    CHECK(qp_modify(target->qp, &wanted, QP_ATTR_STATE | mask, target->now) == STATUS_OK);
}

/* -- Packets ------------------------------------------------------------------------------------*/

static void give(struct target *target, const struct srd_packet *packet)
{
    uint8_t bytes[SRD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX] = {0};
    const size_t headers = srd_encode(packet, bytes);
    const size_t count = headers + packet->payload_bytes + roce_pad_bytes(packet->payload_bytes);
    uint8_t *copy = malloc(count);
    struct nic_move move;
    CHECK(copy != NULL);
    memcpy(copy, bytes, count);
    const struct nic_frame frame = {.headers = copy,
                                    .headers_bytes = (uint32_t)count,
                                    .source = target->from_second ? target->second : target->peer,
                                    .destination = target->self,
                                    .hop_limit = 64};
    if (nic_on_packet(target->nic, &frame, target->now, &move) == NIC_MOVES) {
        const uint8_t *from = move.payload;
        for (uint32_t i = 0; move.kind == NIC_MOVE_SCATTER && i < move.segment_count; i++) {
            memcpy((void *)(uintptr_t)move.segments[i].address, from, move.segments[i].bytes);
            from += move.segments[i].bytes;
        }
        nic_on_moved(target->nic, &move, packet->tsn % 16 == 7 ? NIC_MOVE_FAULTED : NIC_MOVED,
                     target->now);
    }
    free(copy);
}

/* Notes what the NIC says of itself. */
static void hear(struct target *target, const struct nic_departure *departure)
{
    struct srd_packet packet;
    CHECK(srd_decode(departure->headers, departure->headers_bytes, departure->headers,
                     departure->payload_bytes + departure->pad_bytes, &packet) == SRD_GOOD);
    const bool to_second = gid_equal(&departure->av->destination, &target->second);
    const bool of_path = packet.opcode == SRD_PATH_CHALLENGE || packet.opcode == SRD_PATH_RESPONSE;
    target->proven |= to_second && packet.opcode == SRD_CHALLENGE; /* Its tag proves it, too. */
    CHECK(!to_second || of_path || target->proven);
    if (to_second && packet.opcode == SRD_PATH_CHALLENGE) {
        target->number = packet.path_challenge.number;
    }
    if (packet.opcode == SRD_CHALLENGE) {
        target->tag = packet.tag;
    } else if (packet.opcode == SRD_HELLO) {
        target->to_flow = packet.flow;
    } else if (packet.opcode <= SRD_READ || packet.opcode == SRD_PROBE) {
        target->psn = packet.psn;
        CHECK(packet.flow == target->to_flow);
    }
}

static void pull(struct target *target)
{
    struct nic_departure departure;
    struct qp *qp;
    srd_own_routes(target->nic)->random = target->now.ns;
    for (int i = 0; i < 64 && (qp = nic_next_qp(target->nic)) != NULL; i++) {
        if (nic_next_packet(target->nic, qp, target->now, &departure)) {
            hear(target, &departure);
            nic_rotate(target->nic, qp);
        }
    }
}

static void poll(struct target *target)
{
    struct completion completion = {0};
    struct nic_event event;
    while (cq_poll(&target->cq, &completion, 1) != 0) {
        target->completed += !completion_is_receive(&completion);
    }
    while (nic_next_event(target->nic, &event)) {
    }
    CHECK(target->completed <= target->posted);
}

/* -- Deeds --------------------------------------------------------------------------------------*/

static uint32_t near(struct input *input, uint32_t number)
{
    return number + (uint32_t)(int8_t)take(input);
}

static void ask(struct target *target, struct input *input)
{
    static const uint8_t opcodes[] = {SRD_SEND, SRD_WRITE, SRD_READ, SRD_PROBE};
    const uint8_t kind = take(input), flags = take(input);
    struct srd_packet packet = {.opcode = opcodes[kind % 4],
                                .ack_request = flags & 1,
                                .destination_qpn = SRD_PORT_OF(2),
                                .tsn = take(input),
                                .flow = target->flow,
                                .tag = target->tag ^ (flags >> 7),
                                .psn = near(input, 0),
                                .back = (uint16_t)(take(input) * 4),
                                .index = take(input) % 8,
                                .last = take(input) % 8,
                                .source_qpn = 0x0900,
                                .target_qpn = srd_qpn_of(qp_number(target->qp)),
                                .qkey = QKEY,
                                .chunk_bytes = CHUNK,
                                .has_immediate = flags & 2,
                                .unsolicited = flags & 4,
                                .address = near(input, (uint32_t)0),
                                .key = target->region.key};
    packet.address += (uintptr_t)target->memory + GUARD + 64 * (uint64_t)take(input);
    packet.message_bytes = take(input) * 16u;
    packet.payload_bytes =
        packet.index < packet.last ? CHUNK : packet.message_bytes - packet.last * CHUNK;
    if (packet.opcode == SRD_READ) {
        packet.payload_bytes = packet.index = packet.last = 0;
        packet.wanted = take(input);
    } else if (packet.opcode == SRD_PROBE) {
        packet.payload_bytes = packet.index = packet.last = 0;
        packet.chunk_bytes = packet.target_qpn = 0;
        packet.qkey = 0;
    }
    if (packet.payload_bytes <= ROCE_PAYLOAD_BYTES_MAX) {
        give(target, &packet);
    }
}

static void answer(struct target *target, struct input *input)
{
    const uint8_t flags = take(input);
    struct srd_packet packet = {.opcode = SRD_ANSWER,
                                .destination_qpn = SRD_PORT_OF(2),
                                .flow = target->to_flow,
                                .tag = target->to_tag,
                                .answer = {.taken_before = near(input, target->psn),
                                           .more = flags & 1,
                                           .answers_probe = flags & 2,
                                           .echo_void = flags & 4,
                                           .echo_tsn = near(input, target->to_flow) & ROCE_24_BITS,
                                           .duplicates = flags >> 6,
                                           .record_count = (flags >> 3) % 4}};
    for (uint32_t i = 0; i < packet.answer.record_count; i++) {
        struct srd_record *record = &packet.answer.records[i];
        record->psn = near(input, target->psn);
        record->kind = take(input) % 3;
        record->status = record->kind == SRD_KIND_REFUSED ? SRD_STATUS_BAD_QPN : 0;
        record->bitmap = take(input) | 1;
    }
    give(target, &packet);
}

static void bring_data(struct target *target, struct input *input)
{
    const struct srd_packet packet = {.opcode = SRD_DATA,
                                      .destination_qpn = SRD_PORT_OF(2),
                                      .tsn = take(input),
                                      .flow = target->to_flow,
                                      .tag = target->to_tag,
                                      .psn = near(input, target->psn),
                                      .index = take(input) % 8,
                                      .chunk_bytes = CHUNK,
                                      .payload_bytes = 2u * take(input) + 2};
    give(target, &packet);
}

/* He names up to three addresses, or responds, truly or not; and may speak from the second one. */
static void path(struct target *target, struct input *input)
{
    const uint8_t flags = take(input);
    const bool of_target = flags & 2;
    struct srd_packet packet = {
        .opcode = flags & 1 ? SRD_PATH_RESPONSE : SRD_PATH_CHALLENGE,
        .destination_qpn = SRD_PORT_OF(2),
        .flow = of_target ? target->to_flow : target->flow,
        .tag = of_target ? target->to_tag : target->tag,
        .source_qpn = 9u << 8,
        .path_challenge = {.number = flags & 4 ? target->number : (flags & 8) / 8u,
                           .of_target = of_target,
                           .gid_count = flags >> 4 & 3}};
    for (uint8_t i = 0; i < packet.path_challenge.gid_count; i++) {
        memcpy(packet.path_challenge.gids[i], target->second.bytes, 16);
        packet.path_challenge.gids[i][15] = (uint8_t)(packet.path_challenge.gids[i][15] + i);
    }
    target->proven |= target->number != 0 && (flags & 5) == 5;
    target->from_second = flags >> 6 & 1;
    give(target, &packet);
}

static void challenge(struct target *target, struct input *input)
{
    const uint8_t flags = take(input);
    if (flags & 0x80) {
        path(target, input);
        return;
    }
    const struct srd_packet packet = {
        .opcode = SRD_CHALLENGE,
        .destination_qpn = SRD_PORT_OF(2),
        .flow = target->to_flow,
        .tag = flags,
        .challenge = {.boot = flags & 1,
                      .reason = flags & 2 ? SRD_REASON_STALE : SRD_REASON_HELLO,
                      .psn = flags & 2 ? near(input, target->psn) : 0}};
    target->to_tag = flags & 2 ? target->to_tag : flags;
    give(target, &packet);
}

static void post(struct target *target, struct input *input)
{
    static const enum work_kind kinds[] = {WORK_SEND, WORK_WRITE, WORK_READ, WORK_WRITE_IMMEDIATE};
    const uint8_t kind = take(input);
    const struct sge sge = {.address = (uintptr_t)target->memory + GUARD,
                            .bytes = take(input) * 32u,
                            .key = region_lkey(nic_regions(target->nic), &target->region)};
    const struct send_request request = {.kind = kinds[kind % 4],
                                         .sges = &sge,
                                         .sge_count = 1,
                                         .av = &target->av,
                                         .destination_qpn = 9u << 16 | 2,
                                         .destination_qkey = QKEY};
    if (kind & 4) {
        (void)!qp_post_receive(target->qp, 1, &sge, 1);
    } else if (qp_post_send(target->qp, &request) == STATUS_OK) {
        target->posted++;
    }
}

/* The program resets its queue pair: what it had posted never completes. */
static void reset(struct target *target)
{
    set_state(target, QP_RESET, 0);
    target->completed = target->posted;
    set_state(target, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY);
    set_state(target, QP_RTR, 0);
    set_state(target, QP_RTS, QP_ATTR_SQ_PSN);
}

static void act(struct target *target, struct input *input)
{
    switch (take(input) % 8) {
    case 0:
    case 1: ask(target, input); return;
    case 2: answer(target, input); return;
    case 3: bring_data(target, input); return;
    case 4: challenge(target, input); return;
    case 5: post(target, input); return;
    case 6:
        target->now.ns += (UINT64_C(1) << take(input) % 34);
        if (instant_reached(target->now, nic_deadline(target->nic))) {
            nic_on_time(target->nic, target->now);
        }
        return;
    case 7: reset(target); return;
    }
}

/* -- The target ---------------------------------------------------------------------------------*/

static void make(struct target *target)
{
    uint16_t host;
    struct qp_request request = {
        .type = QP_SRD,
        .pd = &target->pd,
        .send_cq = &target->cq,
        .receive_cq = &target->cq,
        .capacity = {.sends = SENDS, .receives = 8, .send_sges = 2, .receive_sges = 2}};
    memset(target, 0, sizeof(*target));
    target->now.ns = 1000000000000;
    target->self = (struct gid){{1}};
    target->peer = (struct gid){{2}};
    target->second = (struct gid){{2, [15] = 7}};
    target->av = (struct nic_av){.source = target->self, .destination = target->peer};
    target->nic_memory = zeroed(nic_bytes(&limits));
    target->nic = nic_init(&limits, 1, target->nic_memory);
    nic_note_time(target->nic, target->now);
    cq_init(&target->cq, 256, target->ring);
    const struct region_request region = {.address = (uintptr_t)target->memory + GUARD,
                                          .bytes = REGION,
                                          .start = (uintptr_t)target->memory + GUARD,
                                          .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                                    ACCESS_REMOTE_READ};
    CHECK(region_add(nic_regions(target->nic), &target->pd, &region, &target->region) == STATUS_OK);
    CHECK(srd_hold_host(target->nic, &target->peer, &host) == STATUS_OK);
    target->qp_memory = zeroed(qp_bytes(QP_SRD, &request.capacity, false));
    CHECK(qp_create(target->nic, &request, target->qp_memory, &target->qp) == STATUS_OK);
    set_state(target, QP_INIT, QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY);
    set_state(target, QP_RTR, 0);
    set_state(target, QP_RTS, QP_ATTR_SQ_PSN);
    target->flow = 5;
    give(target, &(struct srd_packet){.opcode = SRD_HELLO,
                                      .destination_qpn = SRD_PORT_OF(2),
                                      .flow = target->flow,
                                      .source_qpn = 0x0900});
    pull(target);
}

static void check_guards(const struct target *target)
{
    for (uint32_t i = 0; i < GUARD; i++) {
        CHECK(target->memory[i] == 0 && target->memory[GUARD + REGION + i] == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    static struct target target;
    make(&target);
    while (input.count != 0) {
        act(&target, &input);
        pull(&target);
        poll(&target);
        nic_check(target.nic);
    }
    check_guards(&target);
    qp_destroy(target.qp);
    free(target.qp_memory);
    free(target.nic_memory);
    return 0;
}
