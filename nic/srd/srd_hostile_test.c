/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    One address holds at most a quarter of what all share, and others are served meanwhile
 *         (SRD-34). Lies about flows, tags, PSNs, lengths and answers harm the liar alone, and
 *         each is counted (SRD-20, SRD-22, SRD-26).
 * Method  One NIC, an attacker with up to 256 processes at one address, and an honest process.
 *         SECURITY.md says what of this was tried, and what does not hold.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define CROWD_SHARED 256u
#include "nic/inventory.h"
#include "nic/routes.h"
#include "tests/srd_crowd.h"

#define S      (1000 * CROWD_MS)
#define HONEST 256u /* At another address than the attackers, 0 to 255. */
#define LONG   (2 * CROWD_CHUNK)

static const struct srd_limits usual = {.contacts = 1000,
                                        .peers = 64,
                                        .hosts = 8,
                                        .assemblies = 16,
                                        .requests = 16,
                                        .parts = 16,
                                        .packets = 64,
                                        .reads = 16};

static uint64_t counter(const struct crowd *crowd, enum nic_counter which)
{
    return nic_counters(crowd->nic)->values[which];
}

/* Packet `index` of a SEND of `packets` full ones. */
static struct srd_packet send_of(const struct crowd *crowd, uint32_t process, uint64_t tag,
                                 uint32_t first, uint8_t index, uint8_t packets)
{
    struct srd_packet packet = crowd_request(crowd, SRD_SEND, process, process, tag, first + index);
    packet.index = index;
    packet.last = (uint8_t)(packets - 1);
    packet.back = index;
    packet.message_bytes = packets * CROWD_CHUNK;
    packet.payload_bytes = CROWD_CHUNK;
    return packet;
}

static enum nic_arrived say_send(struct crowd *crowd, uint32_t process, uint64_t tag,
                                 uint32_t first, uint8_t index, uint8_t packets)
{
    struct srd_packet packet = send_of(crowd, process, tag, first, index, packets);
    return crowd_say(crowd, process, &packet);
}

static struct srd_packet read_of(struct crowd *crowd, uint32_t process, uint64_t tag, uint32_t psn)
{
    struct srd_packet packet = crowd_request(crowd, SRD_READ, process, process, tag, psn);
    packet.message_bytes = CROWD_BYTES;
    packet.wanted = UINT64_MAX;
    packet.address = (uintptr_t)crowd->memory;
    packet.key = crowd->region.key;
    return packet;
}

static void hold(struct crowd *crowd, uint32_t process)
{
    const struct gid gid = crowd_gid(process);
    uint16_t host;
    assert_int_equal(srd_hold_host(crowd->nic, &gid, &host), STATUS_OK);
}

/* The honest process sends a message of two packets: it is delivered. */
static void expect_service(struct crowd *crowd, uint64_t tag, uint32_t psn)
{
    struct completion completion;
    while (cq_poll(&crowd->cq, &completion, 1) != 0) {
    }
    crowd_post_receive(crowd, LONG);
    assert_int_equal(say_send(crowd, HONEST, tag, psn, 0, 2), NIC_MOVES);
    assert_int_equal(say_send(crowd, HONEST, tag, psn, 1, 2), NIC_MOVES);
    assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
    assert_int_equal(completion.status, COMPLETION_SUCCESS);
}

static void expect_quiet(struct crowd *crowd)
{
    crowd_pass(crowd, 14 * S, false);
    assert_true(srd_is_quiet(crowd->nic));
    assert_int_equal(srd_peer_count(crowd->nic), 0);
}

/* -- Quotas (SRD-34) ----------------------------------------------------------------------------*/

/* Each of 40 processes at one address begins a message whose last packet never comes. */
static void test_peers(void **state)
{
    (void)state;
    struct srd_limits limits = usual;
    limits.assemblies = 256;
    struct crowd *crowd = crowd_start(&limits);
    const uint64_t honest = crowd_tag(crowd, HONEST, HONEST);
    for (uint32_t i = 0; i < 40; i++) {
        const uint64_t tag = crowd_tag(crowd, i, i);
        crowd_post_receive(crowd, LONG);
        assert_int_equal(say_send(crowd, i, tag, 1, 0, 2), i < 16 ? NIC_MOVES : NIC_DONE);
    }
    assert_int_equal(srd_peer_count(crowd->nic), usual.peers / 4);
    assert_int_equal(counter(crowd, COUNTER_drop_srd_full), 40 - 16);
    expect_service(crowd, honest, 5);
    expect_quiet(crowd);
    assert_int_equal(nic_account_of(crowd->qp).receives, 40);
    crowd_end(crowd);
}

/* Processes at many addresses get a refusal each, which keeps their peers for 12 s: they have three
 * quarters of all. The program's own messages do not wait for them. */
static void test_many_addresses(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    for (uint32_t i = 0; i < 100; i++) {
        const uint32_t process = (2 + i % 5) * CROWD_SHARED + i;
        crowd_pass(crowd, CROWD_MS, false);
        const uint64_t tag = crowd_tag(crowd, process, process);
        assert_int_equal(say_send(crowd, process, tag, 1, 0, 1), NIC_DONE); /* No receive. */
    }
    crowd_pass(crowd, 5 * S, false);
    assert_int_equal(srd_peer_count(crowd->nic), usual.peers / 4 * 3);
    assert_int_equal(crowd_post(crowd, HONEST, WORK_SEND, 8), STATUS_OK);
    crowd_pass(crowd, CROWD_MS, true);
    assert_int_equal(cq_count(&crowd->cq), 1);
    assert_int_equal(crowd->ring[0].status, COMPLETION_SUCCESS);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* 256 processes begin 16 messages of 64 packets each, of which all but one never come. */
static void test_assemblies(void **state)
{
    (void)state;
    struct srd_limits limits = usual;
    limits.peers = 256;
    struct crowd *crowd = crowd_start(&limits);
    const uint64_t honest = crowd_tag(crowd, HONEST, HONEST);
    uint32_t held = 0;
    for (uint32_t i = 0; i < 256; i++) {
        crowd_post_receive(crowd, CROWD_BYTES);
    }
    for (uint32_t i = 0; i < 256; i++) {
        crowd_pass(crowd, CROWD_MS, false);
        const uint64_t tag = crowd_tag(crowd, i, i);
        for (uint32_t k = 0; k < 16; k++) {
            struct srd_packet packet = send_of(crowd, i, tag, 64 * k, 0, 64);
            packet.back = (uint16_t)(64 * k); /* It gives none of them up. */
            held += crowd_say(crowd, i, &packet) == NIC_MOVES;
        }
    }
    assert_int_equal(held, usual.assemblies / 4);
    assert_int_equal(counter(crowd, COUNTER_drop_srd_full), 4096 - held);
    expect_service(crowd, honest, 5);
    expect_quiet(crowd);
    assert_int_equal(nic_account_of(crowd->qp).receives, 256);
    crowd_end(crowd);
}

/* A process has begun more messages than its address has places for. The oldest one of its flow
 * gets the last place, which no other message of several packets gets: answers describe but a part
 * of the window from there on, so that losses behind it may not be known. */
static void test_oldest_message(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    const uint64_t tag = crowd_tag(crowd, 1, 1), other = crowd_tag(crowd, 2, 2);
    const uint32_t places = usual.assemblies / 4;
    struct completion completion;
    for (uint32_t i = 0; i < places + 4; i++) {
        crowd_post_receive(crowd, LONG);
    }
    struct srd_packet lost = send_of(crowd, 1, tag, 100, 0, 2);
    for (uint32_t i = 1; i <= places + 1; i++) {
        struct srd_packet packet = send_of(crowd, 1, tag, 100 + 2 * i, 0, 2);
        packet.back = (uint16_t)(2 * i);
        assert_int_equal(crowd_say(crowd, 1, &packet), i < places ? NIC_MOVES : NIC_DONE);
    }
    struct srd_packet single = crowd_request(crowd, SRD_SEND, 1, 1, tag, 150);
    single.back = 50;
    assert_int_equal(crowd_say(crowd, 1, &single), NIC_MOVES); /* It is whole at once. */
    assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
    assert_int_equal(crowd_say(crowd, 1, &lost), NIC_MOVES);
    assert_int_equal(say_send(crowd, 2, other, 7, 0, 2), NIC_DONE); /* The quota holds. */
    assert_int_equal(say_send(crowd, 1, tag, 100, 1, 2), NIC_MOVES);
    assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
    assert_int_equal(say_send(crowd, 2, other, 7, 0, 2), NIC_MOVES);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* 16 processes ask for 64 packets each, as often as they can: four READs at a time are answered,
 * and an honest one has its turn after each packet of theirs. */
static void test_reads(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    const uint64_t honest = crowd_tag(crowd, HONEST, HONEST);
    uint32_t taken = 0, others = 0, own = 0;
    hold(crowd, 0);
    hold(crowd, HONEST);
    for (uint32_t i = 0; i < 16; i++) {
        const uint64_t tag = crowd_tag(crowd, i, i);
        for (uint32_t k = 0; k < 10; k++) {
            struct srd_packet read = read_of(crowd, i, tag, k);
            const uint64_t before = counter(crowd, COUNTER_drop_srd_full);
            (void)crowd_say(crowd, i, &read);
            taken += counter(crowd, COUNTER_drop_srd_full) == before;
        }
    }
    assert_int_equal(taken, usual.reads / 4);
    struct srd_packet read = read_of(crowd, HONEST, honest, 1);
    (void)crowd_say(crowd, HONEST, &read);
    while (own < 64 && crowd_hear(crowd)) {
        own += crowd->last.opcode == SRD_DATA && crowd->last_to == HONEST;
        others += crowd->last.opcode == SRD_DATA && crowd->last_to != HONEST;
    }
    assert_int_equal(own, 64);
    assert_in_range(others, 60, 70);
    expect_quiet(crowd);
    assert_int_equal(crowd->sent[SRD_DATA], 5 * 64);
    crowd_end(crowd);
}

/* -- Tags and flows (SRD-22) --------------------------------------------------------------------*/

/* A packet that opened nothing was answered by a challenge. */
static void expect_stale(struct crowd *crowd, uint32_t process)
{
    assert_true(crowd_hear(crowd));
    assert_int_equal(crowd->last.opcode, SRD_CHALLENGE);
    assert_int_equal(crowd->last.challenge.reason, SRD_REASON_STALE);
    assert_int_equal(crowd->last_to, process);
    assert_false(crowd_hear(crowd));
}

/* A tag opens its flow for 8 s, and only at the process that gave it. */
static void test_tag_age(void **state)
{
    (void)state;
    static const uint64_t ages[] = {79, 81};
    for (size_t i = 0; i < 2; i++) {
        struct crowd *crowd = crowd_start(&usual);
        const uint64_t tag = crowd_tag(crowd, 1, 1);
        crowd_post_receive(crowd, LONG);
        crowd_pass(crowd, ages[i] * S / 10, false);
        assert_int_equal(say_send(crowd, 1, tag, 1, 0, 1), i == 0 ? NIC_MOVES : NIC_DONE);
        if (i == 1) {
            expect_stale(crowd, 1);
        }
        crowd_end(crowd);
        /* The same address and time, but other random numbers: a process that restarted. */
        crowd = crowd_start_seeded(&usual, 6);
        crowd_post_receive(crowd, LONG);
        assert_int_equal(say_send(crowd, 1, tag, 1, 0, 1), NIC_DONE);
        expect_stale(crowd, 1);
        crowd_end(crowd);
    }
}

/* A process left its slot, and another one came into it, with a flow of its own: what the first one
 * sent is not taken any more, whether the second one rests or not. Nor is it in another slot, or
 * from another address. */
static void test_replays(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    const uint64_t first = crowd_tag(crowd, 1, 1);
    for (uint32_t i = 0; i < 10; i++) {
        crowd_post_receive(crowd, LONG);
    }
    assert_int_equal(say_send(crowd, 1, first, 1, 0, 1), NIC_MOVES);
    crowd_pass(crowd, 2 * CROWD_MS, false);
    const uint64_t second = crowd_tag(crowd, 1, 1001);
    struct srd_packet packet = send_of(crowd, 1, second, 1, 0, 1);
    packet.flow = 1001;
    assert_int_equal(crowd_say(crowd, 1, &packet), NIC_MOVES);
    for (uint32_t i = 0; i < 2; i++) {
        crowd_pass(crowd, i * 2 * S, false);
        assert_int_equal(say_send(crowd, 1, first, 1, 0, 1), NIC_DONE);
        expect_stale(crowd, 1);
    }
    static const uint32_t others[] = {2, HONEST};
    for (size_t i = 0; i < 2; i++) {
        struct srd_packet replay = send_of(crowd, others[i], second, 1, 0, 1);
        replay.flow = 1001;
        assert_int_equal(crowd_say(crowd, others[i], &replay), NIC_DONE);
        expect_stale(crowd, others[i]);
    }
    /* Somebody at the address who knows the flow, but not its tag. */
    packet.tag ^= 1;
    packet.psn += 1;
    assert_int_equal(crowd_say(crowd, 1, &packet), NIC_DONE);
    assert_false(crowd_hear(crowd));
    assert_int_equal(counter(crowd, COUNTER_drop_srd_tag), 1);
    packet.tag ^= 1;
    assert_int_equal(crowd_say(crowd, 1, &packet), NIC_MOVES);
    assert_int_equal(cq_count(&crowd->cq), 3);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* -- PSNs (SRD-26) ------------------------------------------------------------------------------*/

/* BACK of 1,023, of nothing, and PSNs that jump: what the liar had begun is given up, and its
 * receives are free at once. Others keep theirs. */
static void test_back(void **state)
{
    (void)state;
    static const struct {
        uint32_t jump;
        uint16_t back;
        uint32_t left; /* Receives that are free then. */
    } lies[] = {{1, 1, 8},    {1, 1023, 8},    {1, 0, 9},
                {1000, 0, 9}, {2000, 1023, 9}, {0x7ffffff0, 0, 9}};
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        struct crowd *crowd = crowd_start(&usual);
        const uint64_t tag = crowd_tag(crowd, 1, 1), honest = crowd_tag(crowd, HONEST, HONEST);
        for (uint32_t k = 0; k < 10; k++) {
            crowd_post_receive(crowd, LONG);
        }
        assert_int_equal(say_send(crowd, HONEST, honest, 50, 0, 2), NIC_MOVES);
        assert_int_equal(say_send(crowd, 1, tag, 100, 0, 2), NIC_MOVES);
        struct srd_packet lie = crowd_request(crowd, SRD_SEND, 1, 1, tag, 101 + lies[i].jump);
        lie.back = lies[i].back;
        lie.qkey++; /* Refused: it takes no receive itself. */
        (void)crowd_say(crowd, 1, &lie);
        assert_int_equal(nic_account_of(crowd->qp).receives, lies[i].left);
        assert_int_equal(counter(crowd, COUNTER_drop_srd_contradiction), 0);
        struct completion completion;
        assert_int_equal(say_send(crowd, 1, tag, 100, 1, 2),
                         lies[i].left == 8 ? NIC_MOVES : NIC_DONE);
        assert_int_equal(cq_poll(&crowd->cq, &completion, 1), lies[i].left == 8);
        assert_int_equal(say_send(crowd, HONEST, honest, 50, 1, 2), NIC_MOVES);
        assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
        expect_quiet(crowd);
        crowd_end(crowd);
    }
}

/* LAST, CHUNK or the length of a message change between its packets, or one PSN is of two messages:
 * the message is never delivered, and nothing is beyond its receive. */
static void test_changes(void **state)
{
    (void)state;
    static const struct {
        uint8_t last;
        uint16_t chunk;
        uint32_t bytes;
        enum nic_counter counter; /* Why it is dropped; else it is refused. */
    } changes[] = {
        {2, 512, 1500, COUNTER_drop_srd_contradiction},
        {1, 576, 1020, COUNTER_COUNT},
        {1, 512, 1020, COUNTER_COUNT},
        {1, 576, 1024, COUNTER_COUNT},
        {1, 1024, 2048, COUNTER_COUNT},
    };
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        struct crowd *crowd = crowd_start(&usual);
        const uint64_t tag = crowd_tag(crowd, 1, 1);
        struct completion completion;
        crowd_post_receive(crowd, 8192);
        assert_int_equal(say_send(crowd, 1, tag, 100, 0, 2), NIC_MOVES);
        struct srd_packet second = send_of(crowd, 1, tag, 100, 1, 2);
        second.last = changes[i].last;
        second.chunk_bytes = changes[i].chunk;
        second.message_bytes = changes[i].bytes;
        second.payload_bytes =
            changes[i].last == 1 ? changes[i].bytes - changes[i].chunk : changes[i].chunk;
        assert_int_equal(crowd_say(crowd, 1, &second), NIC_DONE);
        if (changes[i].counter != COUNTER_COUNT) {
            assert_int_equal(counter(crowd, changes[i].counter), 1);
        } else {
            assert_int_equal(say_send(crowd, 1, tag, 100, 1, 2), NIC_DONE); /* It was judged. */
        }
        assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 0);
        expect_quiet(crowd);
        assert_int_equal(nic_account_of(crowd->qp).receives, 1);
        crowd_end(crowd);
    }
}

/* A PSN that two messages claim. */
static void test_shared_psn(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    const uint64_t tag = crowd_tag(crowd, 1, 1);
    struct completion completion;
    for (uint32_t i = 0; i < 3; i++) {
        crowd_post_receive(crowd, 8192);
    }
    assert_int_equal(say_send(crowd, 1, tag, 100, 0, 2), NIC_MOVES);
    struct srd_packet other = send_of(crowd, 1, tag, 101, 0, 1);
    other.back = 1;
    assert_int_equal(crowd_say(crowd, 1, &other), NIC_MOVES);
    assert_int_equal(say_send(crowd, 1, tag, 100, 1, 2), NIC_DONE);
    assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 1);
    assert_int_equal(completion.bytes, CROWD_CHUNK);
    assert_int_equal(cq_poll(&crowd->cq, &completion, 1), 0);
    expect_quiet(crowd);
    assert_int_equal(nic_account_of(crowd->qp).receives, 2);
    crowd_end(crowd);
}

/* -- Fields that contradict each other (SRD-20) -------------------------------------------------*/

static void expect_dropped(struct crowd *crowd, struct srd_packet *packet, enum nic_counter which)
{
    const uint64_t before = counter(crowd, which);
    assert_int_equal(crowd_say(crowd, 1, packet), NIC_DONE);
    assert_int_equal(counter(crowd, which), before + 1);
    assert_false(crowd_hear(crowd));
}

static void test_contradictions(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    const uint64_t tag = crowd_tag(crowd, 1, 1);
    const struct srd_packet good = send_of(crowd, 1, tag, 100, 0, 2);
    struct srd_packet packet = good;
    crowd_post_receive(crowd, LONG);
    packet.index = 2;
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    static const uint16_t chunks[] = {0, 256, 500, 4096 + 64};
    for (size_t i = 0; i < COUNT_OF(chunks); i++) {
        packet = good;
        packet.chunk_bytes = chunks[i];
        expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    }
    static const uint32_t lengths[] = {0, 512, 1025, UINT32_MAX};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        packet = good;
        packet.message_bytes = lengths[i];
        expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    }
    packet = good;
    packet.payload_bytes = CROWD_CHUNK - 1;
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    packet = good;
    packet.target_qpn = (uint16_t)(packet.target_qpn + 256);
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    packet = read_of(crowd, 1, tag, 100);
    packet.wanted = 0;
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    packet = good;
    assert_int_equal(crowd_say(crowd, 1, &packet), NIC_MOVES);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* A carrier is for nobody but the NIC: neither SRD nor RoCE reaches it by its number. */
static void test_carriers(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    const uint64_t tag = crowd_tag(crowd, 1, 1);
    crowd_post_receive(crowd, LONG);
    assert_int_equal(say_send(crowd, 1, tag, 100, 0, 1), NIC_MOVES);
    for (uint32_t number = 0xc000; number < 0xc200; number++) {
        uint8_t bytes[SRD_HEADERS_BYTES_MAX + CROWD_CHUNK] = {0};
        struct nic_move move;
        struct srd_packet packet = send_of(crowd, 1, tag, 101, 0, 1);
        packet.destination_qpn = CROWD_SLOT << 16 | number;
        uint32_t count = (uint32_t)srd_encode(&packet, bytes) + CROWD_CHUNK;
        struct nic_frame frame = {.headers = bytes,
                                  .headers_bytes = count,
                                  .source = crowd_gid(1),
                                  .destination = crowd->gid};
        assert_int_equal(nic_on_packet(crowd->nic, &frame, crowd->now, &move), NIC_DONE);
        const struct roce_packet roce = {.opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
                                         .pkey = ROCE_DEFAULT_PKEY,
                                         .destination_qpn = packet.destination_qpn,
                                         .deth = {.qkey = CROWD_QKEY, .source_qpn = 5}};
        count = (uint32_t)roce_encode_headers(&roce, bytes);
        frame.headers_bytes = count;
        assert_int_equal(nic_on_packet(crowd->nic, &frame, crowd->now, &move), NIC_DONE);
    }
    assert_int_equal(counter(crowd, COUNTER_drop_srd_contradiction), 0x200);
    assert_int_equal(counter(crowd, COUNTER_drop_wrong_service) +
                         counter(crowd, COUNTER_drop_unknown_qp),
                     0x200);
    assert_true(counter(crowd, COUNTER_drop_wrong_service) >= 1);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* -- Further addresses (SRD-36) -----------------------------------------------------------------*/

#define VICTIM (7 * CROWD_SHARED + 1)

/* Process 1 says that it has the victim's address, too. */
static struct srd_packet naming(uint64_t tag, enum srd_opcode opcode, uint64_t number)
{
    const struct gid victim = crowd_gid(VICTIM);
    struct srd_packet packet = {.opcode = (uint8_t)opcode,
                                .flow = 1,
                                .tag = tag,
                                .source_qpn = (uint16_t)(crowd_slot(1) << 8),
                                .path_challenge = {.number = number, .gid_count = 1}};
    __builtin_memcpy(packet.path_challenge.gids[0], victim.bytes, 16);
    return packet;
}

struct heard {
    uint32_t challenges, data, data_to_victim;
    uint64_t number; /* The newest challenge to the victim has it. */
    bool proven;     /* The victim responded. */
};

/* All that leaves: nothing but challenges may go to the victim before it responds. */
static void hear_all(struct crowd *crowd, struct heard *heard)
{
    srd_own_routes(crowd->nic)->random = crowd->now.ns * 3 + 1;
    while (crowd_hear(crowd)) {
        const bool victim = crowd->last_to == VICTIM;
        assert_true(victim || crowd->last_to == 1);
        if (victim && crowd->last.opcode == SRD_PATH_CHALLENGE) {
            heard->challenges++;
            heard->number = crowd->last.path_challenge.number;
        }
        heard->data += !victim && crowd->last.opcode == SRD_DATA;
        heard->data_to_victim += victim && crowd->last.opcode == SRD_DATA;
        assert_true(!victim || crowd->last.opcode == SRD_PATH_CHALLENGE || heard->proven);
    }
}

/* It names somebody else's address, asks for much by the path there, and guesses responses: few
 * challenges go there, less than three times as much as it sends, and its data come to itself. Once
 * it has responded, the address is its own. */
static void test_named_addresses(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    const uint64_t tag = crowd_tag(crowd, 1, 1);
    struct heard heard = {.challenges = 0};
    hold(crowd, 1);
    crowd_post_receive(crowd, LONG);
    assert_int_equal(say_send(crowd, 1, tag, 100, 0, 1), NIC_MOVES);
    for (uint32_t i = 1; i < 200; i++) {
        struct srd_packet packet = naming(tag, SRD_PATH_CHALLENGE, 5);
        (void)crowd_say(crowd, 1, &packet);
        packet = naming(tag, SRD_PATH_RESPONSE, heard.number ^ i);
        (void)crowd_say(crowd, 1, &packet);
        packet = read_of(crowd, 1, tag, 100 + i);
        packet.path = 1;
        (void)crowd_say(crowd, 1, &packet);
        hear_all(crowd, &heard);
        crowd->now.ns += 10 * CROWD_MS;
    }
    assert_in_range(heard.challenges, 1, 64);
    assert_int_equal(heard.data, 199 * 64);
    assert_int_equal(heard.data_to_victim, 0);
    assert_int_equal(counter(crowd, COUNTER_drop_stale_response), 199);
    struct srd_packet packet = naming(tag, SRD_PATH_RESPONSE, heard.number);
    (void)crowd_say(crowd, VICTIM, &packet);
    heard.proven = true;
    packet = read_of(crowd, 1, tag, 300);
    packet.path = 1;
    (void)crowd_say(crowd, VICTIM, &packet);
    hear_all(crowd, &heard);
    assert_int_equal(heard.data_to_victim, 64);
    assert_int_equal(srd_peer_count(crowd->nic), 1);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* A packet with the flow and tag of another process, from an address that this did not name, is a
 * stranger's. */
static void test_unnamed_addresses(void **state)
{
    (void)state;
    struct crowd *crowd = crowd_start(&usual);
    const uint64_t tag = crowd_tag(crowd, 1, 1);
    crowd_post_receive(crowd, LONG);
    crowd_post_receive(crowd, LONG);
    struct srd_packet packet = send_of(crowd, 1, tag, 101, 0, 1);
    assert_int_equal(say_send(crowd, 1, tag, 100, 0, 1), NIC_MOVES);
    assert_int_equal(crowd_say(crowd, VICTIM, &packet), NIC_DONE);
    struct srd_packet names = naming(tag ^ 1, SRD_PATH_CHALLENGE, 5); /* Another tag. */
    (void)crowd_say(crowd, 1, &names);
    assert_int_equal(crowd_say(crowd, VICTIM, &packet), NIC_DONE);
    names.tag = tag;
    (void)crowd_say(crowd, 1, &names);
    assert_int_equal(crowd_say(crowd, VICTIM + CROWD_SHARED, &packet), NIC_DONE);
    packet.tag ^= 1;
    assert_int_equal(crowd_say(crowd, VICTIM, &packet), NIC_DONE);
    packet.tag ^= 1;
    assert_int_equal(crowd_say(crowd, VICTIM, &packet), NIC_MOVES);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* -- Keys ---------------------------------------------------------------------------------------*/

/* Returns the length of the NIC's answer to a guess, which is in `bytes`. */
static size_t hear_refusal(enum crowd_guess guess, enum srd_opcode opcode, uint8_t *bytes)
{
    struct crowd *crowd = crowd_start(&usual);
    struct crowd_secrets secrets = {0};
    crowd_hide(crowd, &secrets);
    hold(crowd, 1);
    const uint64_t tag = crowd_tag(crowd, 1, 1);
    struct srd_packet packet = crowd_request(crowd, opcode, 1, 1, tag, 100);
    packet.message_bytes = CROWD_CHUNK;
    packet.payload_bytes = opcode == SRD_WRITE ? CROWD_CHUNK : 0;
    packet.wanted = opcode == SRD_READ;
    crowd_guess(crowd, &secrets, guess, 0, &packet);
    assert_int_equal(crowd_say(crowd, 1, &packet), NIC_DONE);
    crowd_pass(crowd, CROWD_MS, false);
    assert_int_equal(crowd->last.opcode, SRD_ANSWER);
    assert_int_equal(crowd->last.answer.record_count, 1);
    assert_int_equal(crowd->last.answer.records[0].status, SRD_STATUS_BAD_ADDRESS);
    assert_int_equal(crowd->moves, 0);
    const size_t count = srd_encode(&crowd->last, bytes);
    crowd_reveal(crowd, &secrets);
    crowd_end(crowd);
    return count;
}

/* To each wrong key and address the NIC says the same, bit by bit: so nobody learns that a key is
 * nearly right, or is another domain's. (tests/instructions/srd: it takes as long, too.) */
static void test_guesses(void **state)
{
    (void)state;
    static const enum srd_opcode opcodes[] = {SRD_WRITE, SRD_READ};
    for (size_t i = 0; i < COUNT_OF(opcodes); i++) {
        uint8_t first[SRD_HEADERS_BYTES_MAX], other[SRD_HEADERS_BYTES_MAX];
        const size_t bytes = hear_refusal(CROWD_NO_KEY, opcodes[i], first);
        for (enum crowd_guess guess = CROWD_NEAR_KEY; guess < CROWD_GUESSES; guess++) {
            assert_int_equal(hear_refusal(guess, opcodes[i], other), bytes);
            assert_memory_equal(other, first, bytes);
        }
    }
}

/* -- Answers ------------------------------------------------------------------------------------*/

/* The NIC has sent a SEND to process 1, of two packets, and hears lies. */
static struct crowd *start_sending(struct srd_packet *sent)
{
    struct crowd *crowd = crowd_start(&usual);
    assert_int_equal(crowd_post(crowd, 1, WORK_SEND, LONG), STATUS_OK);
    assert_true(crowd_hear(crowd));
    crowd_answer(crowd);
    assert_true(crowd_hear(crowd));
    *sent = crowd->last;
    while (crowd_hear(crowd)) {
    }
    return crowd;
}

static void test_answers(void **state)
{
    (void)state;
    struct srd_packet sent;
    struct crowd *crowd = start_sending(&sent);
    const struct srd_packet good = {
        .opcode = SRD_ANSWER,
        .flow = sent.flow,
        .tag = sent.tag,
        .answer = {.taken_before = sent.psn, .echo_tsn = sent.tsn, .credits = SRD_NO_LIMIT}};
    struct srd_packet packet = good;
    packet.answer.taken_before = sent.psn + 3; /* Beyond all that left. */
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    packet = good;
    packet.answer.record_count = 1;
    packet.answer.records[0] = (struct srd_record){.psn = sent.psn + 2, .bitmap = 1};
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    packet.answer.record_count = 2; /* Two verdicts on one packet. */
    packet.answer.records[0] = (struct srd_record){.psn = sent.psn, .bitmap = 3};
    packet.answer.records[1] = (struct srd_record){
        .psn = sent.psn + 1, .kind = SRD_KIND_REFUSED, .status = SRD_STATUS_BAD_QPN, .bitmap = 1};
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    packet = good;
    packet.answer.echo_tsn = (sent.tsn + 1000) & 0xffffff; /* It never left. */
    packet.answer.taken_before = sent.psn + 2;
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    packet = good;
    packet.answer.taken_before = sent.psn + 2;
    packet.flow++;
    expect_dropped(crowd, &packet, COUNTER_drop_stale_response);
    packet = good;
    packet.answer.taken_before = sent.psn + 2;
    packet.tag++;
    expect_dropped(crowd, &packet, COUNTER_drop_stale_response);
    packet.tag--; /* All is right, but it comes from another address. */
    assert_int_equal(crowd_say(crowd, HONEST, &packet), NIC_DONE);
    assert_int_equal(cq_count(&crowd->cq), 0);
    assert_int_equal(crowd_say(crowd, 1, &packet), NIC_DONE);
    assert_int_equal(cq_count(&crowd->cq), 1);
    assert_int_equal(crowd->ring[0].status, COMPLETION_SUCCESS);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* Data of a READ that nobody asked for, or that were not wanted, or of another length. */
static void test_data(void **state)
{
    (void)state;
    struct srd_packet sent;
    struct crowd *crowd = start_sending(&sent);
    struct srd_packet packet = {.opcode = SRD_DATA,
                                .flow = sent.flow,
                                .tag = sent.tag,
                                .psn = sent.psn,
                                .chunk_bytes = CROWD_CHUNK,
                                .payload_bytes = CROWD_CHUNK};
    expect_dropped(crowd, &packet, COUNTER_drop_stale_response);
    assert_int_equal(crowd->moves, 0);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* "I do not know that flow": it takes the flow's name (32 bits), the address, and a PSN that is
 * under way to end requests. One who sees the wire has them all, and aborts all that is under way
 * (SECURITY.md); nothing is said to be delivered, and the flow begins anew. */
static void test_challenges(void **state)
{
    (void)state;
    struct srd_packet sent;
    struct crowd *crowd = start_sending(&sent);
    const struct srd_packet good = {
        .opcode = SRD_CHALLENGE,
        .flow = sent.flow,
        .tag = 5,
        .challenge = {.boot = 77, .reason = SRD_REASON_STALE, .psn = sent.psn}};
    struct srd_packet packet = good;
    packet.flow++;
    expect_dropped(crowd, &packet, COUNTER_drop_stale_response);
    packet = good;
    packet.challenge.reason = SRD_REASON_HELLO; /* It has a flow. */
    packet.challenge.psn = 0;
    expect_dropped(crowd, &packet, COUNTER_drop_stale_response);
    packet = good;
    packet.challenge.psn = sent.psn + 2; /* It never left. */
    expect_dropped(crowd, &packet, COUNTER_drop_srd_contradiction);
    packet = good;
    assert_int_equal(crowd_say(crowd, HONEST, &packet), NIC_DONE);
    assert_int_equal(cq_count(&crowd->cq), 0);
    assert_int_equal(crowd_say(crowd, 1, &packet), NIC_DONE);
    assert_int_equal(cq_count(&crowd->cq), 1);
    assert_int_equal(crowd->ring[0].vendor_error, SRD_STATUS_ABORT);
    assert_int_equal(crowd_post(crowd, 1, WORK_SEND, 8), STATUS_OK);
    crowd_pass(crowd, S, true);
    assert_int_equal(cq_count(&crowd->cq), 2);
    assert_int_equal(crowd->ring[1].status, COMPLETION_SUCCESS);
    expect_quiet(crowd);
    crowd_end(crowd);
}

/* One who sees the wire knows the boot number, too: then all begins anew, although the first
 * packets may have been taken. That is not prevented (SECURITY.md). */
static void test_seen_boot(void **state)
{
    (void)state;
    struct srd_packet sent;
    struct crowd *crowd = start_sending(&sent);
    struct srd_packet packet = {
        .opcode = SRD_CHALLENGE,
        .flow = sent.flow,
        .tag = 5,
        .challenge = {.boot = 1, .reason = SRD_REASON_STALE, .psn = sent.psn}};
    assert_int_equal(crowd->sent[SRD_SEND], 2);
    assert_int_equal(crowd_say(crowd, 1, &packet), NIC_DONE);
    crowd_pass(crowd, S, true);
    assert_int_equal(crowd->sent[SRD_HELLO], 2);
    assert_int_equal(crowd->sent[SRD_SEND], 4);
    assert_int_equal(crowd->ring[0].status, COMPLETION_SUCCESS);
    expect_quiet(crowd);
    crowd_end(crowd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peers),
        cmocka_unit_test(test_assemblies),
        cmocka_unit_test(test_many_addresses),
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_oldest_message),
        cmocka_unit_test(test_tag_age),
        cmocka_unit_test(test_replays),
        cmocka_unit_test(test_back),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_shared_psn),
        cmocka_unit_test(test_contradictions),
        cmocka_unit_test(test_named_addresses),
        cmocka_unit_test(test_unnamed_addresses),
        cmocka_unit_test(test_carriers),
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_data),
        cmocka_unit_test(test_challenges),
        cmocka_unit_test(test_seen_boot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
