/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd_strangers_test - packets that are said again, and floods of forged ones.
 *
 * Goal    What two processes said to each other, and somebody recorded, is delivered to nobody when
 *         it comes again, however late, and changes no byte (SRD-44). A million packets of
 *         strangers cost no memory, are answered with fewer bytes than they have, and take nothing
 *         from a transfer that goes on (SRD-45).
 * Method  Virtual time. The seed draws what is recorded, the order in which it comes again, and
 *         what strangers say. The processor's time, of which a flood takes some, is not modelled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "nic/inventory.h"
#include "tests/scenarios/seeds.h"
#include "tests/world/processes.h"

#define MS        PROCESSES_MS
#define S         PROCESSES_S
#define US        (MS / 1000)
#define BYTES     (8 * PROCESSES_CHUNK)
#define OPCODES   256
#define FRAME_MAX (SRD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX)

/* -- Replays (SRD-44) ---------------------------------------------------------------------------*/

#define MESSAGES  400u
#define PACKETS   16384u
#define TIMES     8u /* A packet comes, on average. */
#define RECEIVES  64u
#define UNTOUCHED 0x5a

struct packet {
    uint32_t from, to, count;
    uint8_t *bytes;
};

struct record {
    struct processes world;
    struct packet packets[PACKETS];
    uint32_t count;
    bool recording;
    uint32_t completed[2]; /* Requests; receives. */
    uint64_t said_bytes, left_bytes;
    uint32_t left[OPCODES];
};

static bool on_leaving(struct processes *world, uint32_t from, uint32_t to, const uint8_t *bytes,
                       uint32_t count)
{
    struct record *record = CONTAINER_OF(world, struct record, world);
    record->left[bytes[0]]++;
    record->left_bytes += count;
    if (record->recording) {
        CHECK(record->count < PACKETS);
        struct packet *packet = &record->packets[record->count++];
        *packet = (struct packet){.from = from, .to = to, .count = count, .bytes = malloc(count)};
        memcpy(packet->bytes, bytes, count);
    }
    return true;
}

static void on_completed(struct processes *world, uint32_t process,
                         const struct completion *completion)
{
    struct record *record = CONTAINER_OF(world, struct record, world);
    (void)process;
    assert_int_equal(completion->status, COMPLETION_SUCCESS);
    record->completed[completion->wr_id >= MESSAGES]++;
}

static void pass(struct processes *world, uint64_t ps)
{
    sim_run_until(&world->sim, world->sim.now_ps + ps);
}

/* Requests of every kind in both directions; they leave from one half of memory, and arrive in the
 * other one or at the same place. */
static void talk(struct record *record)
{
    static const enum work_kind kinds[] = {WORK_SEND, WORK_SEND_IMMEDIATE, WORK_WRITE,
                                           WORK_WRITE_IMMEDIATE, WORK_READ};
    struct processes *world = &record->world;
    uint32_t receives = 0;
    record->recording = true;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const uint32_t from = (uint32_t)prng_below(&world->sim.prng, 2);
        const enum work_kind kind = kinds[i % COUNT_OF(kinds)];
        if (kind != WORK_WRITE && kind != WORK_READ) {
            processes_receive(world, !from, MESSAGES, PROCESSES_BYTES / 2, BYTES);
            receives++;
        }
        processes_send(world, from, !from, kind, i, 0,
                       1 + (uint32_t)prng_below(&world->sim.prng, BYTES));
        pass(world, prng_below(&world->sim.prng, MS));
    }
    pass(world, 100 * MS);
    record->recording = false;
    assert_int_equal(record->completed[0], MESSAGES);
    assert_int_equal(record->completed[1], receives);
}

/* All that was recorded comes again, in some order. */
static void replay(struct record *record)
{
    struct processes *world = &record->world;
    for (uint32_t i = 0; i < TIMES * record->count; i++) {
        const struct packet *packet = &record->packets[prng_below(&world->sim.prng, record->count)];
        record->said_bytes += packet->count;
        assert_false(processes_hear(world, packet->to, &world->all[packet->from].gid, packet->bytes,
                                    packet->count));
        pass(world, prng_below(&world->sim.prng, 3 * US));
    }
    pass(world, 100 * MS);
}

/* Both have receives, and memory in which a written byte would show. */
static void lay_out(struct processes *world)
{
    for (uint32_t i = 0; i < 2; i++) {
        memset(world->all[i].memory, UNTOUCHED, PROCESSES_BYTES);
        while (nic_account_of(world->all[i].qp).receives < RECEIVES) {
            processes_receive(world, i, MESSAGES, 0, BYTES);
        }
    }
}

static void expect_untouched(const struct record *record)
{
    static uint8_t untouched[PROCESSES_BYTES];
    memset(untouched, UNTOUCHED, sizeof(untouched));
    for (uint32_t i = 0; i < 2; i++) {
        const struct process *process = &record->world.all[i];
        assert_memory_equal(process->memory, untouched, PROCESSES_BYTES);
        assert_int_equal(nic_account_of(process->qp).receives, RECEIVES);
    }
    assert_int_equal(record->completed[0] + record->completed[1], 0);
    assert_int_equal(record->left[SRD_DATA], 0);
    assert_true(record->left_bytes <= record->said_bytes);
}

static void replay_after(struct record *record, uint64_t ps)
{
    pass(&record->world, ps);
    lay_out(&record->world);
    memset(record->completed, 0, sizeof(record->completed));
    memset(record->left, 0, sizeof(record->left));
    record->said_bytes = record->left_bytes = 0;
    replay(record);
    expect_untouched(record);
}

/* A process of which the target knows nothing yet: it takes the place of one that may be forgotten
 * there. */
static void somebody_comes(struct processes *world)
{
    processes_receive(world, 1, MESSAGES, 0, BYTES);
    processes_send(world, 2, 1, WORK_SEND, 0, 0, 8);
    pass(world, 100 * MS);
    assert_int_equal(srd_contact_count(world->all[1].nic), 1);
}

static void replays(uint64_t seed)
{
    struct record *record = calloc(1, sizeof(*record));
    struct processes *world = &record->world;
    struct processes_settings settings = {.count = 3,
                                          .depth = 512,
                                          .datagrams = 8192,
                                          .rnr_retry = 0,
                                          .srd = processes_roomy,
                                          .link = {.latency_ps = 50 * US, .reorder_ps = MS}};
    settings.srd.contacts = 1;
    settings.link.faults.millionths[SIM_FAULT_reorder] = 200000;
    settings.link.faults.millionths[SIM_FAULT_drop] = 20000;
    world->completed = on_completed;
    world->leaves = on_leaving;
    processes_make(world, &settings, seed);
    talk(record);
    memset(world->link.settings.faults.millionths, 0, sizeof(settings.link.faults.millionths));
    replay_after(record, S);     /* After 1, ... */
    replay_after(record, 4 * S); /* ... 5, ... */
    replay_after(record, 6 * S); /* ... 11, ... */
    pass(world, 13 * S);
    somebody_comes(world);
    replay_after(record, S);      /* ... 25, ... */
    replay_after(record, 40 * S); /* ... and 65 s. */
    processes_restart(world, 1);
    replay_after(record, 0);
    assert_true(6 * TIMES * record->count >= 100000);
    processes_send(world, 0, 1, WORK_SEND, 0, 0, BYTES);
    pass(world, 100 * MS);
    assert_int_equal(record->completed[1], 1);
    pass(world, 20 * S);
    assert_true(processes_are_quiet(world));
    processes_end(world);
    while (record->count != 0) {
        free(record->packets[--record->count].bytes);
    }
    free(record);
}

/* -- Floods (SRD-45) ----------------------------------------------------------------------------*/

#define FLOOD_PS  (10 * S)
#define FORGED    1000000u
#define STRANGERS 100000u
#define UNDER_WAY 16u

struct flood {
    struct processes world;
    struct sim_event forging;
    uint64_t until_ps;
    uint32_t done;
    uint64_t heard, heard_bytes, left, left_bytes; /* From strangers, and to them. */
};

static struct flood *flood_of(struct processes *world)
{
    return CONTAINER_OF(world, struct flood, world);
}

static bool on_flood_leaving(struct processes *world, uint32_t from, uint32_t to,
                             const uint8_t *bytes, uint32_t count)
{
    struct flood *flood = flood_of(world);
    (void)from;
    if (to == PROCESSES_STRANGER) {
        assert_int_equal(bytes[0], SRD_CHALLENGE);
        flood->left++;
        flood->left_bytes += count;
    }
    return true;
}

/* Process 0 sends to 1, always as much at a time. */
static void on_transfer(struct processes *world, uint32_t process,
                        const struct completion *completion)
{
    struct flood *flood = flood_of(world);
    assert_int_equal(completion->status, COMPLETION_SUCCESS);
    if (world->sim.now_ps >= flood->until_ps) {
        return;
    }
    if (process == 1) {
        processes_receive(world, 1, completion->wr_id, (uint32_t)completion->wr_id * BYTES, BYTES);
    } else {
        flood->done++;
        processes_send(world, 0, 1, WORK_SEND, 0, 0, BYTES);
    }
}

/* Anything that its sender can know: all but tags, and the numbers of a flow. */
static struct srd_packet forge(struct processes *world)
{
    struct prng *prng = &world->sim.prng;
    const struct process *target = &world->all[1];
    const bool stale = prng_below(prng, 2) != 0;
    struct srd_packet packet = {
        .opcode =
            (uint8_t)(SRD_OPCODE_FIRST + prng_below(prng, SRD_OPCODE_LAST - SRD_OPCODE_FIRST + 1)),
        .ack_request = true,
        .destination_qpn = SRD_PORT_OF(3),
        .flow = (uint32_t)prng_next(prng),
        .tag = prng_next(prng),
        .psn = (uint32_t)prng_next(prng),
        .source_qpn = 3 << 8,
        .target_qpn = srd_qpn_of(qp_number(target->qp)),
        .qkey = 5,
        .chunk_bytes = PROCESSES_CHUNK,
        .message_bytes = PROCESSES_CHUNK,
        .address = (uintptr_t)target->memory,
        .key = target->region.key,
        .payload_bytes = PROCESSES_CHUNK,
    };
    switch ((enum srd_opcode)packet.opcode) {
    case SRD_SEND:
    case SRD_WRITE:
    case SRD_DATA: return packet;
    case SRD_READ: packet.wanted = 1; break;
    case SRD_ANSWER:
        packet.answer = (struct srd_answer){.taken_before = packet.psn, .credits = SRD_NO_LIMIT};
        break;
    case SRD_CHALLENGE:
        packet.challenge =
            (struct srd_challenge){.boot = 1,
                                   .reason = stale ? SRD_REASON_STALE : SRD_REASON_HELLO,
                                   .psn = stale ? packet.psn : 0};
        break;
    case SRD_PROBE:
        packet.target_qpn = packet.chunk_bytes = 0;
        packet.qkey = 0;
        break;
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE:
        packet.path_challenge = (struct srd_path_challenge){.number = prng_next(prng)};
        break;
    case SRD_HELLO: break;
    }
    packet.payload_bytes = 0;
    return packet;
}

/* A packet of one of the strangers; some say that they are process 0. */
static void on_forging(struct sim *sim, struct sim_event *event)
{
    struct processes *world = CONTAINER_OF(sim, struct processes, sim);
    struct flood *flood = flood_of(world);
    uint8_t bytes[FRAME_MAX] = {0};
    const struct srd_packet packet = forge(world);
    const uint32_t count = (uint32_t)srd_encode(&packet, bytes) + packet.payload_bytes;
    struct gid source = {{[10] = 0xff, 0xff}};
    store_be32(source.bytes + 12,
               UINT32_C(0x0b000000) + (uint32_t)prng_below(&sim->prng, STRANGERS));
    if (prng_below(&sim->prng, 10) == 0) {
        source = world->all[0].gid;
    }
    flood->heard++;
    flood->heard_bytes += count;
    assert_false(processes_hear(world, 1, &source, bytes, count));
    if (sim->now_ps < flood->until_ps) {
        sim_after(sim, event, prng_below(&sim->prng, 2 * FLOOD_PS / FORGED) + 1);
    }
}

static uint64_t counter(const struct processes *world, enum nic_counter which)
{
    return nic_counters(world->all[1].nic)->values[which];
}

/* The target is as it was, and has not said more than it heard. */
static void check_flood(const struct flood *flood)
{
    const struct processes *world = &flood->world;
    assert_int_equal(srd_contact_count(world->all[1].nic), 1);
    assert_int_equal(srd_peer_count(world->all[1].nic), 1);
    assert_int_equal(counter(world, COUNTER_drop_srd_reserved), 0);
    assert_int_equal(counter(world, COUNTER_drop_srd_contradiction), 0);
    if (flood->heard != 0) {
        assert_in_range(flood->heard, FORGED * 9 / 10, FORGED * 11 / 10);
        assert_in_range(flood->left, FLOOD_PS / S * 500, FLOOD_PS / S * 1000 + 64);
        assert_true(flood->left_bytes < flood->heard_bytes);
    }
}

/* How many messages went in 10 s. The flood begins when the two know each other: a newcomer may
 * have to greet for long (SECURITY.md). */
static uint32_t transfer(uint64_t seed, bool flooded)
{
    struct flood *flood = calloc(1, sizeof(*flood));
    struct processes *world = &flood->world;
    const struct processes_settings settings = {.count = 2,
                                                .depth = 2 * UNDER_WAY,
                                                .datagrams = 8192,
                                                .rnr_retry = 7,
                                                .srd = processes_roomy,
                                                .link = {.latency_ps = 2 * MS}};
    world->completed = on_transfer;
    world->leaves = on_flood_leaving;
    processes_make(world, &settings, seed);
    flood->until_ps = world->sim.now_ps + FLOOD_PS;
    for (uint32_t i = 0; i < UNDER_WAY; i++) {
        processes_receive(world, 1, i % 16, i % 16 * BYTES, BYTES);
        processes_send(world, 0, 1, WORK_SEND, 0, 0, BYTES);
    }
    pass(world, 100 * MS);
    sim_event_init(&flood->forging, on_forging);
    if (flooded) {
        sim_after(&world->sim, &flood->forging, 1);
    }
    sim_run_until(&world->sim, flood->until_ps);
    check_flood(flood);
    const uint32_t done = flood->done;
    pass(world, 20 * S);
    assert_true(processes_are_quiet(world));
    processes_end(world);
    free(flood);
    return done;
}

static void floods(uint64_t seed)
{
    const uint32_t usual = transfer(seed, false), flooded = transfer(seed, true);
    print_message("seed %llu: %u messages, %u in a flood\n", (unsigned long long)seed, usual,
                  flooded);
    assert_true(usual > 10000);
    assert_in_range(flooded, usual * 99 / 100, usual * 101 / 100);
}

static struct seeds seeds;

static void test_worlds(void **state)
{
    (void)state;
    uint64_t seed;
    while (seeds_next(&seeds, &seed)) {
        replays(seed);
        floods(seed);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worlds)};
    seeds = seeds_from_arguments(argc, argv, 2);
    return seeds_finish(&seeds, cmocka_run_group_tests(tests, NULL, NULL));
}
