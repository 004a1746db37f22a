/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet for a group reaches exactly the queue pairs that are attached to it and can take
 *         it, each once and as if it were alone; one that cannot take it counts that; no entry of
 *         the tables is lost.
 * Method  Random attaching, detaching, packets, receives and states, beside a model: a table of yes
 *         and no. Moves are made for real, into memory of each queue pair's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/align.h"
#include "base/prng.h"
#include "nic/multicast.h"

enum {
    QPS = 6,
    GROUPS = 9,     /* Groups that are tried, ... */
    GROUPS_MAX = 5, /* ... and groups that there is room for. */
    MEMBERS_MAX = 12,
    RECEIVES = 4,
    PAYLOAD_BYTES = 24,
    STEPS = 400,
    SEEDS = 300,
};

static const uint8_t payload[PAYLOAD_BYTES] = "what everybody gets";

struct member {
    struct qp *qp;
    void *memory;
    struct cq cq;
    struct completion ring[64];
    uint8_t landing[NIC_GRH_BYTES + PAYLOAD_BYTES];
    bool ready; /* In RTR; otherwise in RESET. */
    uint32_t qkey, receives;
};

struct world {
    struct prng prng;
    struct nic *nic;
    struct pd pd;
    struct region region;
    struct member members[QPS], connected;
    bool attached[GROUPS][QPS];
};

static struct {
    uint32_t full_groups, full_members;
    uint64_t dropped[COUNTER_COUNT];
} seen;

static uint32_t draw(struct world *world, uint32_t bound)
{
    return (uint32_t)prng_below(&world->prng, bound);
}

static struct gid group_of(uint32_t number)
{
    const bool ipv4 = number % 2;
    struct gid gid = {{[10] = 0xff, 0xff, 239, 1, 2, (uint8_t)number}};
    return ipv4 ? gid : (struct gid){{0xff, 0x05, [15] = (uint8_t)number}};
}

static void create(struct world *world, struct member *member, enum qp_type type)
{
    struct qp_request request = {
        .type = type,
        .pd = &world->pd,
        .send_cq = &member->cq,
        .receive_cq = &member->cq,
        .capacity = {.sends = 1, .receives = RECEIVES, .send_sges = 1, .receive_sges = 1}};
    cq_init(&member->cq, COUNT_OF(member->ring) / 2, member->ring);
    const size_t bytes = line_aligned(qp_bytes(type, &request.capacity, false));
    member->memory = aligned_alloc(64, bytes);
    memset(member->memory, 0, bytes);
    assert_int_equal(qp_create(world->nic, &request, member->memory, &member->qp), STATUS_OK);
}

static void open_world(struct world *world, uint64_t seed)
{
    const struct nic_limits limits = {.qps = 16,
                                      .regions = 4,
                                      .sends_per_qp = 4,
                                      .receives_per_qp = RECEIVES,
                                      .sges = 4,
                                      .inline_bytes = 256,
                                      .cq_entries = 64,
                                      .mtu = PATH_MTU_1024,
                                      .groups = GROUPS_MAX,
                                      .attachments = MEMBERS_MAX};
    memset(world, 0, sizeof(*world));
    prng_init(&world->prng, seed);
    const size_t bytes = line_aligned(nic_bytes(&limits));
    void *memory = aligned_alloc(64, bytes);
    memset(memory, 0, bytes);
    world->nic = nic_init(&limits, seed, memory);
    const struct region_request all = {.address = (uintptr_t)world,
                                       .start = (uintptr_t)world,
                                       .bytes = sizeof(*world),
                                       .access = ACCESS_LOCAL_WRITE};
    assert_int_equal(region_add(nic_regions(world->nic), &world->pd, &all, &world->region),
                     STATUS_OK);
    for (int i = 0; i < QPS; i++) {
        create(world, &world->members[i], QP_UD);
    }
    create(world, &world->connected, QP_RC);
}

static void destroy(struct member *member)
{
    qp_destroy(member->qp);
    free(member->memory);
}

static void close_world(struct world *world)
{
    for (uint32_t g = 0; g < GROUPS; g++) {
        const struct gid gid = group_of(g);
        for (int i = 0; i < QPS; i++) {
            if (world->attached[g][i]) {
                assert_int_equal(nic_detach(world->nic, &gid, world->members[i].qp), STATUS_OK);
            }
        }
        assert_false(nic_has_group(world->nic, &gid));
    }
    for (int i = 0; i < QPS; i++) {
        destroy(&world->members[i]);
    }
    destroy(&world->connected);
    free(world->nic);
}

/* -- The table ----------------------------------------------------------------------------------*/

static uint32_t members_of(const struct world *world, uint32_t group)
{
    uint32_t count = 0;
    for (int i = 0; i < QPS; i++) {
        count += world->attached[group][i];
    }
    return count;
}

static void attach(struct world *world)
{
    const uint32_t group = draw(world, GROUPS), which = draw(world, QPS);
    const struct gid gid = group_of(group);
    uint32_t groups = 0, members = 0;
    for (uint32_t g = 0; g < GROUPS; g++) {
        groups += members_of(world, g) > 0;
        members += members_of(world, g);
    }
    enum status expected = STATUS_OK;
    if (!world->attached[group][which]) {
        const bool no_group = members_of(world, group) == 0 && groups == GROUPS_MAX;
        expected = no_group || members == MEMBERS_MAX ? STATUS_FULL : STATUS_OK;
        seen.full_groups += no_group;
        seen.full_members += members == MEMBERS_MAX;
    }
    assert_int_equal(nic_attach(world->nic, &gid, world->members[which].qp), expected);
    world->attached[group][which] = world->attached[group][which] || expected == STATUS_OK;
}

static void detach(struct world *world)
{
    const uint32_t group = draw(world, GROUPS), which = draw(world, QPS);
    const struct gid gid = group_of(group);
    const enum status expected = world->attached[group][which] ? STATUS_OK : STATUS_INVALID;
    assert_int_equal(nic_detach(world->nic, &gid, world->members[which].qp), expected);
    world->attached[group][which] = false;
}

static void look(struct world *world)
{
    for (uint32_t i = 0; i < QPS; i++) {
        bool any = false;
        for (uint32_t g = 0; g < GROUPS; g++) {
            any |= world->attached[g][i];
        }
        assert_int_equal(nic_is_attached(world->nic, world->members[i].qp), any);
    }
    for (uint32_t g = 0; g < GROUPS; g++) {
        const struct gid gid = group_of(g);
        assert_int_equal(nic_has_group(world->nic, &gid), members_of(world, g) > 0);
    }
}

/* -- Queue pairs --------------------------------------------------------------------------------*/

static void change_state(struct world *world, struct member *member)
{
    struct qp_attributes attributes = {.state = QP_RESET, .port = 1};
    if (member->ready) {
        assert_int_equal(qp_modify(member->qp, &attributes, QP_ATTR_STATE, (struct instant){0}),
                         STATUS_OK);
        member->ready = false;
        member->receives = 0;
        return;
    }
    member->qkey = 100 + draw(world, 2);
    attributes.state = QP_INIT;
    attributes.qkey = member->qkey;
    assert_int_equal(qp_modify(member->qp, &attributes,
                               QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY,
                               (struct instant){0}),
                     STATUS_OK);
    attributes.state = QP_RTR;
    assert_int_equal(qp_modify(member->qp, &attributes, QP_ATTR_STATE, (struct instant){0}),
                     STATUS_OK);
    member->ready = true;
}

static void post_receive(const struct world *world, struct member *member)
{
    const struct sge sge = {.address = (uintptr_t)member->landing,
                            .bytes = sizeof(member->landing),
                            .key = world->region.key};
    if (member->ready && member->receives < RECEIVES) {
        assert_int_equal(qp_post_receive(member->qp, member->receives, &sge, 1), STATUS_OK);
        member->receives++;
    }
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* A packet for a group, and its frame. */
struct datagram {
    struct roce_packet packet;
    struct gid source, destination;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
};

static struct datagram datagram_for(uint32_t group)
{
    return (struct datagram){
        .packet = {.opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
                   .pkey = ROCE_DEFAULT_PKEY,
                   .destination_qpn = MULTICAST_QPN,
                   .deth = {.qkey = 100, .source_qpn = 77}},
        .source = {{[10] = 0xff, 0xff, 10, 0, 0, 1}},
        .destination = group_of(group),
    };
}

static struct nic_frame frame_of(struct datagram *datagram)
{
    return (struct nic_frame){
        .headers = datagram->headers,
        .payload = payload,
        .headers_bytes = (uint32_t)roce_encode_headers(&datagram->packet, datagram->headers),
        .payload_bytes = PAYLOAD_BYTES,
        .source = datagram->source,
        .destination = datagram->destination,
        .hop_limit = 1,
    };
}

/* The world's part: the move is made at once. */
static struct member *make_move(struct world *world, struct nic_move *move)
{
    struct member *member = NULL;
    assert_int_equal(move->kind, NIC_MOVE_SCATTER);
    assert_int_equal(move->prefix_bytes, NIC_GRH_BYTES);
    assert_int_equal(move->segment_count, 1);
    assert_int_equal(move->segments[0].bytes, NIC_GRH_BYTES + PAYLOAD_BYTES);
    for (int i = 0; i < QPS; i++) {
        if ((uintptr_t)world->members[i].landing == move->segments[0].address) {
            member = &world->members[i];
        }
    }
    assert_non_null(member);
    memcpy(member->landing, move->prefix, NIC_GRH_BYTES);
    memcpy(member->landing + NIC_GRH_BYTES, payload, PAYLOAD_BYTES);
    nic_on_moved(world->nic, move, NIC_MOVED, (struct instant){0});
    return member;
}

static void expect_completion(struct member *member, const struct gid *group)
{
    struct completion completion = {0};
    assert_int_equal(cq_poll(&member->cq, &completion, 1), 1);
    assert_int_equal(completion.status, COMPLETION_SUCCESS);
    assert_int_equal(completion.qpn, qp_number(member->qp));
    assert_int_equal(completion.source_qpn, 77);
    assert_int_equal(completion.bytes, NIC_GRH_BYTES + PAYLOAD_BYTES);
    assert_true(completion.flags & COMPLETION_HAS_GRH);
    const bool ipv4 = group->bytes[0] == 0;
    assert_memory_equal(member->landing + (ipv4 ? 36 : 24), group->bytes + (ipv4 ? 12 : 0),
                        ipv4 ? 4 : 16);
    assert_memory_equal(member->landing + NIC_GRH_BYTES, payload, PAYLOAD_BYTES);
    memset(member->landing, 0, sizeof(member->landing));
}

static void send(struct world *world)
{
    const uint32_t group = draw(world, GROUPS);
    struct datagram datagram = datagram_for(group);
    const struct nic_frame frame = frame_of(&datagram);
    struct nic_counters expected = *nic_counters(world->nic);
    bool takes[QPS];
    uint32_t takers = 0;
    for (int i = 0; i < QPS; i++) {
        const struct member *member = &world->members[i];
        const bool attached = world->attached[group][i];
        takes[i] = attached && member->ready && member->qkey == 100 && member->receives > 0;
        takers += takes[i];
        if (attached && !takes[i]) {
            expected.values[!member->ready        ? COUNTER_drop_wrong_state
                            : member->qkey != 100 ? COUNTER_drop_wrong_qkey
                                                  : COUNTER_drop_no_receive]++;
        }
    }
    expected.values[COUNTER_rcvd_pkts]++;
    expected.values[COUNTER_rcvd_multicast_pkts]++;
    expected.values[COUNTER_rcvd_bytes] += PAYLOAD_BYTES;
    expected.values[COUNTER_rdma_recvs] += takers;
    expected.values[COUNTER_drop_unknown_group] += members_of(world, group) == 0;

    struct nic_delivery delivery;
    struct nic_move move;
    const bool begun = nic_on_multicast(world->nic, &frame, &delivery);
    assert_int_equal(begun, members_of(world, group) > 0);
    while (begun && nic_next_delivery(world->nic, &delivery, (struct instant){0}, &move)) {
        struct member *member = make_move(world, &move);
        assert_true(takes[member - world->members]);
        takes[member - world->members] = false;
        member->receives--;
        expect_completion(member, &frame.destination);
        takers--;
    }
    assert_int_equal(takers, 0);
    for (int c = 0; c < COUNTER_COUNT; c++) {
        assert_int_equal(nic_counters(world->nic)->values[c], expected.values[c]);
        seen.dropped[c] += expected.values[c];
    }
}

static void test_against_model(void **state)
{
    (void)state;
    struct world *world = malloc(sizeof(*world));
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_world(world, seed);
        for (int i = 0; i < STEPS; i++) {
            struct member *member = &world->members[draw(world, QPS)];
            switch (draw(world, 8)) {
            case 0:
            case 1: attach(world); break;
            case 2: detach(world); break;
            case 3: change_state(world, member); break;
            case 4:
            case 5: post_receive(world, member); break;
            default: send(world); break;
            }
            look(world);
        }
        close_world(world);
    }
    free(world);
    assert_true(seen.full_groups > 0 && seen.full_members > 0);
    assert_true(seen.dropped[COUNTER_drop_wrong_state] > 0);
    assert_true(seen.dropped[COUNTER_drop_wrong_qkey] > 0);
    assert_true(seen.dropped[COUNTER_drop_no_receive] > 0);
    assert_true(seen.dropped[COUNTER_drop_unknown_group] > 0);
    assert_true(seen.dropped[COUNTER_rdma_recvs] > 0);
}

/* The one's complement sum of an IPv4 header. */
static uint32_t ones_sum(const uint8_t *ip)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 20; i += 2) {
        sum += load_be16(ip + i);
    }
    return (sum & 0xffff) + (sum >> 16);
}

/* An IPv4 header names two IPv4 addresses. In shared memory those of a message may be of both
 * kinds, which an IPv6 header has room for. */
static void test_addresses_of_both_kinds(void **state)
{
    (void)state;
    static const struct gid sources[] = {{{0xfd, [15] = 1}}, {{[10] = 0xff, 0xff, 10, 0, 0, 1}}};
    struct world *world = malloc(sizeof(*world));
    open_world(world, 1);
    struct member *member = &world->members[0];
    while (!member->ready || member->qkey != 100) {
        change_state(world, member);
    }
    for (uint32_t kind = 0; kind < 4; kind++) {
        const uint32_t group = kind / 2;
        struct datagram datagram = datagram_for(group);
        datagram.source = sources[kind % 2];
        const struct nic_frame frame = frame_of(&datagram);
        struct nic_delivery delivery;
        struct nic_move move;
        if (!world->attached[group][0]) {
            assert_int_equal(nic_attach(world->nic, &frame.destination, member->qp), STATUS_OK);
            world->attached[group][0] = true;
        }
        post_receive(world, member);
        assert_true(nic_on_multicast(world->nic, &frame, &delivery));
        assert_true(nic_next_delivery(world->nic, &delivery, (struct instant){0}, &move));
        assert_int_equal(move.completion.service_level,
                         kind == 3 ? UD_SERVICE_LEVEL_IPV4 : UD_SERVICE_LEVEL_IPV6);
        assert_ptr_equal(make_move(world, &move), member);
        const uint8_t *grh = member->landing;
        if (kind == 3) {
            assert_int_equal(grh[20], 0x45);
            assert_int_equal(ones_sum(grh + 20), 0xffff); /* RFC 1071: the checksum is right. */
            assert_memory_equal(grh + 32, frame.source.bytes + 12, 4);
            assert_memory_equal(grh + 36, frame.destination.bytes + 12, 4);
        } else {
            assert_int_equal(grh[0] >> 4, 6);
            assert_memory_equal(grh + 8, frame.source.bytes, 16);
            assert_memory_equal(grh + 24, frame.destination.bytes, 16);
        }
    }
    close_world(world);
    free(world);
}

/* Each packet is dropped before any queue pair is asked, and for this reason. */
static void test_packets_for_nobody(void **state)
{
    (void)state;
    struct world *world = malloc(sizeof(*world));
    open_world(world, 1);
    const struct gid group = group_of(1);
    struct nic_delivery delivery;
    assert_int_equal(nic_attach(world->nic, &group, world->members[0].qp), STATUS_OK);
    world->attached[1][0] = true;
    struct datagram wrong[4];
    for (int i = 0; i < 4; i++) {
        wrong[i] = datagram_for(1);
    }
    static const enum nic_counter reasons[] = {COUNTER_drop_wrong_pkey, COUNTER_drop_unknown_qp,
                                               COUNTER_drop_wrong_service,
                                               COUNTER_drop_unknown_group};
    wrong[0].packet.pkey = 0x1234;
    wrong[1].packet.destination_qpn = qp_number(world->members[0].qp);
    wrong[2].packet.opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY);
    wrong[3].destination.bytes[15] ^= 0x80;
    for (int i = 0; i < 4; i++) {
        const struct nic_frame frame = frame_of(&wrong[i]);
        assert_false(nic_on_multicast(world->nic, &frame, &delivery));
        assert_int_equal(nic_counters(world->nic)->values[reasons[i]], 1);
    }
    /* Nor does QPN 0xFFFFFF mean anything in a packet that came for us alone. */
    struct nic_move move;
    struct datagram lone = datagram_for(1);
    const struct nic_frame frame = frame_of(&lone);
    assert_int_equal(nic_on_packet(world->nic, &frame, (struct instant){0}, &move), NIC_DONE);
    assert_int_equal(nic_counters(world->nic)->values[COUNTER_drop_unknown_qp], 2);
    close_world(world);
    free(world);
}

static void test_misuse(void **state)
{
    (void)state;
    struct world *world = malloc(sizeof(*world));
    open_world(world, 1);
    const struct gid group = group_of(1), lone = {{[10] = 0xff, 0xff, 10, 0, 0, 1}};
    assert_int_equal(nic_attach(world->nic, &group, world->connected.qp), STATUS_INVALID);
    assert_int_equal(nic_attach(world->nic, &lone, world->members[0].qp), STATUS_INVALID);
    assert_int_equal(nic_detach(world->nic, &group, world->members[0].qp), STATUS_INVALID);
    assert_int_equal(nic_detach(world->nic, &group, world->connected.qp), STATUS_INVALID);
    close_world(world);
    free(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_addresses_of_both_kinds),
        cmocka_unit_test(test_packets_for_nobody),
        cmocka_unit_test(test_misuse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
