/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_crowd - for tests of nic/srd: one NIC, and very many other processes, of each of which the
 *             test knows only what it has to. They see each packet that the NIC sends, and say
 *             whatever the test wants.
 *
 * CROWD_SHARED processes at a time share an address, so that there may be more of them than
 * addresses.
 */
#ifndef TESTS_SRD_CROWD_H
#define TESTS_SRD_CROWD_H

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "nic/nic.h"

#define CROWD_CHUNK 512u
#define CROWD_BYTES (64 * CROWD_CHUNK)
#define CROWD_QKEY  7u
#define CROWD_SLOT  9u
#define CROWD_QPN   4u /* The index of each process' queue pair in its slot. */
#define CROWD_MS    UINT64_C(1000000)
#ifndef CROWD_SHARED
#define CROWD_SHARED 2u
#endif

struct crowd {
    struct instant now;
    struct nic *nic;
    struct gid gid;
    struct pd pd;
    struct cq cq;
    struct completion ring[1024];
    struct qp *qp;
    void *qp_memory;
    struct region region;
    uint32_t sent[256];     /* Packets that left, by opcode. */
    uint32_t moves;         /* Packets whose bytes went into memory. */
    struct srd_packet last; /* The last one that left, and whom it was for. */
    uint32_t last_to;
    uint8_t memory[2 * CROWD_BYTES];
};

static inline struct gid crowd_gid(uint32_t process)
{
    struct gid gid = {{[10] = 0xff, 0xff}};
    store_be32(gid.bytes + 12, UINT32_C(0x0a000000) + process / CROWD_SHARED);
    return gid;
}

static inline uint8_t crowd_slot(uint32_t process)
{
    return (uint8_t)(process % CROWD_SHARED);
}

static inline uint32_t crowd_process(const struct gid *gid, uint8_t slot)
{
    return (load_be32(gid->bytes + 12) - UINT32_C(0x0a000000)) * CROWD_SHARED + slot;
}

static inline void *crowd_zeroed(size_t bytes)
{
    const size_t whole = (bytes + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, whole);
    CHECK(memory != NULL);
    memset(memory, 0, whole);
    return memory;
}

static inline void crowd_set_state(struct crowd *crowd, enum qp_state state)
{
    const struct qp_attributes wanted = {
        .state = (uint8_t)state, .port = 1, .qkey = CROWD_QKEY, .rnr_retry = 0};
    uint32_t mask = QP_ATTR_STATE;
    mask |= state == QP_INIT ? QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY : 0u;
    mask |= state == QP_RTS ? QP_ATTR_SQ_PSN : 0u;
    CHECK(qp_modify(crowd->qp, &wanted, mask, crowd->now) == STATUS_OK);
}

static inline struct nic_limits crowd_limits(const struct srd_limits *srd)
{
    struct nic_limits limits = {.qps = SRD_QPS_MAX,
                                .regions = 8,
                                .sends_per_qp = 512,
                                .receives_per_qp = 512,
                                .receives_per_srq = 1,
                                .sges = 2,
                                .inline_bytes = 80,
                                .reads_per_qp = 1,
                                .cq_entries = 1024,
                                .mtu = PATH_MTU_4096,
                                .qpn_base = CROWD_SLOT << 16,
                                .qpn_span = 256,
                                .srd = *srd};
    limits.srd.send_bytes = 8192;
    limits.srd.chunk_bytes = CROWD_CHUNK;
    return limits;
}

static inline struct crowd *crowd_start_seeded(const struct srd_limits *srd, uint64_t seed)
{
    struct crowd *crowd = calloc(1, sizeof(*crowd));
    const struct nic_limits limits = crowd_limits(srd);
    struct qp_request request = {
        .type = QP_SRD,
        .pd = &crowd->pd,
        .send_cq = &crowd->cq,
        .receive_cq = &crowd->cq,
        .capacity = {.sends = 512, .receives = 512, .send_sges = 2, .receive_sges = 2}};
    const struct region_request region = {.address = (uintptr_t)crowd->memory,
                                          .bytes = sizeof(crowd->memory),
                                          .start = (uintptr_t)crowd->memory,
                                          .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                                    ACCESS_REMOTE_READ};
    crowd->now.ns = 1000000 * CROWD_MS;
    crowd->gid = (struct gid){{[10] = 0xff, 0xff, 192, 0, 2, 1}};
    crowd->nic = nic_init(&limits, seed, crowd_zeroed(nic_bytes(&limits)));
    nic_note_time(crowd->nic, crowd->now);
    cq_init(&crowd->cq, 1024, crowd->ring);
    CHECK(region_add(nic_regions(crowd->nic), &crowd->pd, &region, &crowd->region) == STATUS_OK);
    crowd->qp_memory = crowd_zeroed(qp_bytes(QP_SRD, &request.capacity, false));
    CHECK(qp_create(crowd->nic, &request, crowd->qp_memory, &crowd->qp) == STATUS_OK);
    crowd_set_state(crowd, QP_INIT);
    crowd_set_state(crowd, QP_RTR);
    crowd_set_state(crowd, QP_RTS);
    return crowd;
}

static inline struct crowd *crowd_start(const struct srd_limits *srd)
{
    return crowd_start_seeded(srd, 5);
}

static inline void crowd_end(struct crowd *crowd)
{
    nic_check(crowd->nic);
    qp_destroy(crowd->qp);
    free(crowd->qp_memory);
    free(crowd->nic);
    free(crowd);
}

/* -- The program --------------------------------------------------------------------------------*/

static inline struct sge crowd_sge(struct crowd *crowd, uint32_t offset, uint32_t bytes)
{
    return (struct sge){.address = (uintptr_t)crowd->memory + offset,
                        .bytes = bytes,
                        .key = region_lkey(nic_regions(crowd->nic), &crowd->region)};
}

static inline void crowd_post_receive(struct crowd *crowd, uint32_t bytes)
{
    const struct sge sge = crowd_sge(crowd, CROWD_BYTES, bytes);
    CHECK(qp_post_receive(crowd->qp, 77, &sge, 1) == STATUS_OK);
}

static inline enum status crowd_post(struct crowd *crowd, uint32_t process, enum work_kind kind,
                                     uint32_t bytes)
{
    const struct gid to = crowd_gid(process);
    const struct nic_av av = {.source = crowd->gid, .destination = to, .hop_limit = 64};
    const struct sge sge = crowd_sge(crowd, 0, bytes);
    const struct send_request request = {.wr_id = process,
                                         .kind = kind,
                                         .sges = &sge,
                                         .sge_count = 1,
                                         .av = &av,
                                         .destination_qpn =
                                             (uint32_t)crowd_slot(process) << 16 | CROWD_QPN,
                                         .destination_qkey = CROWD_QKEY};
    nic_note_time(crowd->nic, crowd->now);
    return qp_post_send(crowd->qp, &request);
}

/* -- The crowd ----------------------------------------------------------------------------------*/

/* A packet from one of them, with payload of whatever bytes. */
static inline enum nic_arrived crowd_say(struct crowd *crowd, uint32_t process,
                                         struct srd_packet *packet)
{
    uint8_t bytes[SRD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX] = {0};
    struct nic_move move;
    packet->destination_qpn = SRD_PORT_OF(CROWD_SLOT);
    const uint32_t headers = (uint32_t)srd_encode(packet, bytes);
    const struct nic_frame frame = {.headers = bytes,
                                    .headers_bytes = headers + packet->payload_bytes +
                                                     roce_pad_bytes(packet->payload_bytes),
                                    .source = crowd_gid(process),
                                    .destination = crowd->gid,
                                    .hop_limit = 64};
    const enum nic_arrived arrived = nic_on_packet(crowd->nic, &frame, crowd->now, &move);
    if (arrived == NIC_MOVES) {
        crowd->moves++;
        nic_on_moved(crowd->nic, &move, NIC_MOVED, crowd->now);
    }
    return arrived;
}

/* The next packet that leaves; false: none does. */
static inline bool crowd_hear(struct crowd *crowd)
{
    struct nic_departure departure;
    struct qp *qp;
    while ((qp = nic_next_qp(crowd->nic)) != NULL) {
        if (!nic_next_packet(crowd->nic, qp, crowd->now, &departure)) {
            continue;
        }
        nic_rotate(crowd->nic, qp);
        CHECK(srd_decode(departure.headers, departure.headers_bytes, departure.headers,
                         departure.payload_bytes + departure.pad_bytes, &crowd->last) == SRD_GOOD);
        crowd->sent[departure.headers[0]]++;
        crowd->last_to = crowd_process(&departure.av->destination,
                                       SRD_SLOT_OF_PORT(crowd->last.destination_qpn) & 0xff);
        return true;
    }
    return false;
}

/* The answer of a process that takes all that comes. */
static inline void crowd_answer(struct crowd *crowd)
{
    const struct srd_packet came = crowd->last;
    struct srd_packet answer = {.flow = came.flow};
    switch ((enum srd_opcode)came.opcode) {
    case SRD_HELLO:
        answer.opcode = SRD_CHALLENGE;
        answer.tag = came.flow * UINT64_C(3);
        answer.challenge = (struct srd_challenge){.boot = 1, .reason = SRD_REASON_HELLO};
        break;
    case SRD_SEND:
    case SRD_WRITE:
    case SRD_READ:
    case SRD_PROBE:
        answer.opcode = SRD_ANSWER;
        answer.tag = came.tag;
        answer.answer =
            (struct srd_answer){.taken_before = came.psn + (came.opcode == SRD_PROBE ? 0u : 1u),
                                .echo_tsn = came.tsn,
                                .credits = SRD_NO_LIMIT};
        break;
    case SRD_DATA:
    case SRD_ANSWER:
    case SRD_CHALLENGE:
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE: return;
    }
    (void)crowd_say(crowd, crowd->last_to, &answer);
}

/* Time passes, and nobody answers, or all do. */
static inline void crowd_pass(struct crowd *crowd, uint64_t ns, bool answers)
{
    const uint64_t until = crowd->now.ns + ns;
    for (;;) {
        while (crowd_hear(crowd)) {
            if (answers) {
                crowd_answer(crowd);
            }
        }
        const struct instant next = nic_deadline(crowd->nic);
        if (next.ns > until) {
            break;
        }
        crowd->now.ns = next.ns > crowd->now.ns ? next.ns : crowd->now.ns;
        nic_on_time(crowd->nic, crowd->now);
    }
    crowd->now.ns = until;
    nic_on_time(crowd->nic, crowd->now);
}

/* The tag that the NIC gives a process for a flow. */
static inline uint64_t crowd_tag(struct crowd *crowd, uint32_t process, uint32_t flow)
{
    struct srd_packet hello = {
        .opcode = SRD_HELLO, .flow = flow, .source_qpn = (uint16_t)(crowd_slot(process) << 8)};
    (void)crowd_say(crowd, process, &hello);
    while (crowd_hear(crowd)) {
        if (crowd->last.opcode == SRD_CHALLENGE && crowd->last.flow == flow) {
            return crowd->last.tag;
        }
    }
    return 0;
}

/* A request of a process, whose other fields the test sets. */
static inline struct srd_packet crowd_request(const struct crowd *crowd, enum srd_opcode opcode,
                                              uint32_t process, uint32_t flow, uint64_t tag,
                                              uint32_t psn)
{
    return (struct srd_packet){
        .opcode = (uint8_t)opcode,
        .ack_request = true,
        .flow = flow,
        .tag = tag,
        .psn = psn,
        .source_qpn = (uint16_t)((uint32_t)crowd_slot(process) << 8 | CROWD_QPN),
        .target_qpn = srd_qpn_of(qp_number(crowd->qp)),
        .qkey = CROWD_QKEY,
        .chunk_bytes = CROWD_CHUNK,
    };
}

/* -- Guesses of a key ---------------------------------------------------------------------------*/

/* Why a WRITE or READ of some bytes is refused, although its sender may reach memory: its key is
 * nobody's, or nobody's but its upper bits are right; another domain's; of a region that allows
 * nothing; or it is right, and the last byte is beyond the region. */
enum crowd_guess {
    CROWD_NO_KEY,
    CROWD_NEAR_KEY,
    CROWD_OTHER_DOMAIN,
    CROWD_NO_RIGHT,
    CROWD_BEYOND,
    CROWD_GUESSES,
};

/* Regions beside that of the crowd. */
struct crowd_secrets {
    struct pd pd;
    struct region of_other_domain, without_right;
};

static inline void crowd_hide(struct crowd *crowd, struct crowd_secrets *secrets)
{
    struct region_request request = {.address = (uintptr_t)crowd->memory,
                                     .bytes = sizeof(crowd->memory),
                                     .start = (uintptr_t)crowd->memory,
                                     .access = ACCESS_LOCAL_WRITE};
    struct region_table *regions = nic_regions(crowd->nic);
    CHECK(region_add(regions, &crowd->pd, &request, &secrets->without_right) == STATUS_OK);
    request.access |= ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE;
    CHECK(region_add(regions, &secrets->pd, &request, &secrets->of_other_domain) == STATUS_OK);
}

static inline void crowd_reveal(struct crowd *crowd, struct crowd_secrets *secrets)
{
    CHECK(region_remove(nic_regions(crowd->nic), &secrets->without_right) == STATUS_OK);
    CHECK(region_remove(nic_regions(crowd->nic), &secrets->of_other_domain) == STATUS_OK);
}

/* Sets the key and the address of a packet that reaches for CROWD_CHUNK bytes. `number` makes one
 * guess of a key that is nobody's differ from the next. */
static inline void crowd_guess(const struct crowd *crowd, const struct crowd_secrets *secrets,
                               enum crowd_guess guess, uint32_t number, struct srd_packet *packet)
{
    const uint32_t right = crowd->region.key, nobodys = right + ((number % 1000 + 1) << 8);
    const uint32_t keys[CROWD_GUESSES] = {[CROWD_NO_KEY] = nobodys,
                                          [CROWD_NEAR_KEY] = right ^ (number % 255 + 1),
                                          [CROWD_OTHER_DOMAIN] = secrets->of_other_domain.key,
                                          [CROWD_NO_RIGHT] = secrets->without_right.key,
                                          [CROWD_BEYOND] = right};
    packet->key = keys[guess];
    packet->address = (uintptr_t)crowd->memory;
    if (guess == CROWD_BEYOND) {
        packet->address += sizeof(crowd->memory) - CROWD_CHUNK + 1;
    }
}

#endif
