/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Many senders on a network that loses, doubles, damages and reorders: each operation is
 *         notified once, with all its bytes; nothing is written behind a notification; at the end
 *         nothing is known of anybody. Without the rings (strict_thesis) the hazards of the thesis
 *         happen.
 * Method  A world of senders that do no more than send again after a timeout; buffers are used
 *         again as soon as both ends are done, so that a late packet does harm. Memory takes its
 *         time and has no order. Held against the data that were sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/test_rdma_target.h"

#define SENDERS      5u
#define SLOTS        4u  /* Operations at once. */
#define OPERATIONS   40u /* A sender's. */
#define PACKETS      32u
#define NOTIFICATION PACKETS /* Stands behind the packets. */
#define BUFFER_BYTES (PACKETS * 512u + 64)
#define WINDOW       16u
#define TICKS        10u /* A step. */
#define TRIES_MAX    25u /* With the rings no operation fails. */
#define TIMEOUT      1500u
#define NETWORK_MAX  2700u /* A packet is not older. */
#define MEMORY_MAX   200u
#define FIRST_NUMBER (LANT_OPERATION_IDS - 20) /* Wraps. */

struct flight {
    uint64_t due;
    bool to_target, damaged;
    struct lant_packet packet;
};

struct landing {
    uint64_t due;
    struct lant_rdma_write write;
    struct lant_packet packet;
};

enum phase {
    WAITS,
    SENDS,
    IS_QUIET, /* All is acknowledged. The notification waits until no copy is on its way. */
    NOTIFIES,
    DONE,
    FAILED,
};

struct record {
    struct test_operation operation;
    enum phase phase;
    bool acked[PACKETS + 1];
    uint8_t tries[PACKETS + 1];
    uint64_t sent_at[PACKETS + 1];
    uint64_t last_sent;
    uint32_t notified;
};

static struct world {
    struct prng prng;
    bool strict;
    uint32_t flight_count, landing_count;
    struct flight flights[4096];
    struct landing landings[1024];
    struct record records[SENDERS][OPERATIONS];
    uint32_t next[SENDERS];
    uint32_t current[SENDERS][SLOTS]; /* OPERATIONS: none. */
} world;

static struct test_target test;

/* Counts of what went wrong, and of the faults that struck. */
static struct {
    uint64_t late_writes, wrong_data, notified_again, failed_in_vain;
    struct lant_rdma_target_counters counters;
} sums;

/* -- The network --------------------------------------------------------------------------------*/

static void fly(bool to_target, const struct lant_packet *packet)
{
    for (uint32_t copies = prng_chance(&world.prng, 100000) ? 2 : 1; copies > 0; copies--) {
        if (prng_chance(&world.prng, 70000)) {
            continue;
        }
        const uint64_t late =
            prng_chance(&world.prng, 60000) ? prng_below(&world.prng, NETWORK_MAX - 200) : 0;
        assert_true(world.flight_count < COUNT_OF(world.flights));
        world.flights[world.flight_count++] =
            (struct flight){.due = test.now + 20 + prng_below(&world.prng, 100) + late,
                            .to_target = to_target,
                            .damaged = to_target && prng_chance(&world.prng, 10000),
                            .packet = *packet};
    }
}

static struct record *record_of(uint32_t source, uint32_t operation)
{
    const uint32_t nth = (operation - FIRST_NUMBER) % LANT_OPERATION_IDS;
    assert_true(source < SENDERS && nth < world.next[source]);
    return &world.records[source][nth];
}

/* -- Senders ------------------------------------------------------------------------------------*/

static void begin_operation(uint32_t sender, uint32_t slot)
{
    const uint32_t nth = world.next[sender]++;
    struct record *record = &world.records[sender][nth];
    const uint64_t longest = prng_chance(&world.prng, 500000) ? 2000 : PACKETS * 512;
    *record = (struct record){
        .phase = SENDS,
        .operation = {.source = sender,
                      .operation = (FIRST_NUMBER + nth) % LANT_OPERATION_IDS,
                      .base = TEST_FIRST + (sender * SLOTS + slot) * BUFFER_BYTES,
                      .bytes = 1 + (uint32_t)prng_below(&world.prng, longest),
                      .registered = prng_chance(&world.prng, 800000),
                      .pattern = prng_next(&world.prng)},
    };
    world.current[sender][slot] = nth;
}

static void send_packet(struct record *record, uint32_t k)
{
    struct lant_packet packet;
    if (k == NOTIFICATION) {
        test_notification(&record->operation, 5, &packet);
    } else {
        test_data(&record->operation, k, &packet);
    }
    packet.footer.attempt = record->tries[k] & 7;
    record->tries[k]++;
    record->sent_at[k] = record->last_sent = test.now;
    fly(true, &packet);
}

/* Sends packet k, or sends it again; `window` is what may still be on its way. */
static void poll_packet(struct record *record, uint32_t k, uint32_t *window)
{
    if (record->acked[k]) {
        return;
    }
    if (record->tries[k] == 0) {
        if (*window > 0) {
            send_packet(record, k);
            (*window)--;
        }
    } else if (test.now - record->sent_at[k] >= TIMEOUT) {
        if (record->tries[k] > TRIES_MAX) {
            record->phase = FAILED;
        } else {
            send_packet(record, k);
        }
    }
}

static bool all_acked(const struct record *record)
{
    for (uint32_t k = 0; k < test_packets(&record->operation); k++) {
        if (!record->acked[k]) {
            return false;
        }
    }
    return true;
}

static void poll_operation(struct record *record, uint32_t *window)
{
    if (record->phase == SENDS) {
        for (uint32_t k = 0; k < test_packets(&record->operation) && record->phase == SENDS; k++) {
            poll_packet(record, k, window);
        }
        if (record->phase == SENDS && all_acked(record)) {
            record->phase = record->operation.registered ? DONE : IS_QUIET;
        }
    }
    if (record->phase == IS_QUIET &&
        test.now - record->last_sent > NETWORK_MAX + MEMORY_MAX + TICKS) {
        record->phase = NOTIFIES;
    }
    if (record->phase == NOTIFIES) {
        poll_packet(record, NOTIFICATION, window);
        if (record->acked[NOTIFICATION]) {
            record->phase = DONE;
        }
    }
}

static uint32_t in_flight(uint32_t sender)
{
    uint32_t count = 0;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        if (world.current[sender][slot] != OPERATIONS) {
            const struct record *record = &world.records[sender][world.current[sender][slot]];
            for (uint32_t k = 0; k <= PACKETS; k++) {
                count += record->tries[k] > 0 && !record->acked[k];
            }
        }
    }
    return count;
}

/* A buffer is free when its sender is done and its receiver has seen it. */
static bool poll_sender(uint32_t sender)
{
    bool busy = false;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        uint32_t *nth = &world.current[sender][slot];
        if (*nth != OPERATIONS) {
            struct record *record = &world.records[sender][*nth];
            const uint32_t used = in_flight(sender);
            uint32_t window = used < WINDOW ? WINDOW - used : 0;
            poll_operation(record, &window);
            if ((record->phase == DONE && record->notified > 0) || record->phase == FAILED) {
                *nth = OPERATIONS;
            }
        } else if (world.next[sender] < OPERATIONS) {
            begin_operation(sender, slot);
        }
        busy |= *nth != OPERATIONS || world.next[sender] < OPERATIONS;
    }
    return busy;
}

static void on_answer(const struct lant_packet *answer)
{
    const struct lant_footer *footer = &answer->footer;
    struct record *record = record_of(answer->header.destination, lant_operation_of(footer));
    const uint32_t k = footer->class == LANT_CLASS_NOTIFICATION ? NOTIFICATION : footer->offset;
    assert_int_equal(footer->source, TEST_NODE);
    assert_true(record->tries[k] > 0);
    if (footer->response == LANT_OKAY) {
        record->acked[k] = true;
    } else {
        assert_int_equal(footer->response, LANT_NACK_CRC);
        if (!record->acked[k] && footer->attempt == ((record->tries[k] - 1) & 7)) {
            record->sent_at[k] = test.now - TIMEOUT; /* Again at once. */
        }
    }
}

/* -- The receiver -------------------------------------------------------------------------------*/

static void do_action(const struct lant_rdma_action *action, const struct lant_packet *packet,
                      const struct lant_packet *answer)
{
    if (action->answers) {
        fly(false, answer);
    }
    if (action->verdict == LANT_RDMA_TARGET_WRITE) {
        assert_true(world.landing_count < COUNT_OF(world.landings));
        world.landings[world.landing_count++] =
            (struct landing){.due = test.now + prng_below(&world.prng, MEMORY_MAX),
                             .write = action->write,
                             .packet = *packet};
    }
}

static void on_packet(const struct flight *flight)
{
    struct lant_rdma_action action;
    struct lant_packet answer, released;
    if (flight->damaged) {
        assert_true(lant_rdma_target_on_damaged(&test.target, &flight->packet, &answer));
        fly(false, &answer);
        return;
    }
    lant_rdma_target_on_packet(&test.target, test.now, &flight->packet, &action, &answer);
    do_action(&action, &flight->packet, &answer);
    while (lant_rdma_target_next_released(&test.target, test.now, &released, &action, &answer)) {
        do_action(&action, &released, &answer);
    }
}

static void land(const struct landing *landing)
{
    struct lant_packet answer;
    const struct lant_rdma_write *write = &landing->write;
    const struct record *record =
        record_of(write->footer.source, lant_operation_of(&write->footer));
    sums.late_writes += record->notified > 0;
    test_store(&test.memory[write->address - TEST_FIRST], landing->packet.payload, write->bytes);
    lant_rdma_target_on_written(&test.target, test.now, write, LANT_OKAY, &answer);
    fly(false, &answer);
}

static void take_notification(void)
{
    struct lant_rdma_arrival arrival;
    if (!lant_rdma_target_next_notification(&test.target, &arrival)) {
        return;
    }
    struct record *record = record_of(arrival.source, arrival.operation);
    assert_int_equal(arrival.registered, record->operation.registered);
    assert_int_equal(arrival.address, record->operation.base);
    assert_int_equal(arrival.bytes, record->operation.bytes);
    sums.notified_again += record->notified++ > 0;
    if (record->notified == 1) {
        const uint8_t *data = &test.memory[arrival.address - TEST_FIRST];
        for (uint32_t i = 0; i < arrival.bytes; i++) {
            sums.wrong_data += data[i] != test_byte(&record->operation, i);
        }
    }
}

/* -- The world ----------------------------------------------------------------------------------*/

static void deliver(void)
{
    for (uint32_t i = 0; i < world.flight_count;) {
        if (world.flights[i].due > test.now) {
            i++;
            continue;
        }
        const struct flight flight = world.flights[i];
        world.flights[i] = world.flights[--world.flight_count];
        if (flight.to_target) {
            on_packet(&flight);
        } else {
            on_answer(&flight.packet);
        }
    }
    for (uint32_t i = 0; i < world.landing_count;) {
        if (world.landings[i].due > test.now) {
            i++;
            continue;
        }
        const struct landing landing = world.landings[i];
        world.landings[i] = world.landings[--world.landing_count];
        land(&landing);
    }
}

static bool step_world(void)
{
    bool busy = false;
    test.now += TICKS;
    deliver();
    if (lant_rdma_target_deadline(&test.target) <= test.now) {
        lant_rdma_target_on_time(&test.target, test.now);
        assert_true(lant_rdma_target_deadline(&test.target) > test.now);
    }
    if (prng_chance(&world.prng, 300000)) {
        take_notification();
    }
    for (uint32_t sender = 0; sender < SENDERS; sender++) {
        busy |= poll_sender(sender);
    }
    return busy || world.flight_count > 0 || world.landing_count > 0 ||
           test.target.arrivals_count > 0;
}

/* All that was sent is known; each buffer has its last operation's bytes. */
static void check_end(void)
{
    uint8_t checked[SENDERS * SLOTS] = {0};
    for (uint32_t sender = 0; sender < SENDERS; sender++) {
        for (uint32_t nth = OPERATIONS; nth > 0; nth--) {
            const struct record *record = &world.records[sender][nth - 1];
            const uint64_t at = record->operation.base - TEST_FIRST;
            sums.failed_in_vain += record->phase == FAILED && record->notified > 0;
            if (world.strict || checked[at / BUFFER_BYTES]++ > 0) {
                continue;
            }
            assert_int_equal(record->phase, DONE);
            assert_int_equal(record->notified, 1);
            for (uint32_t i = 0; i < record->operation.bytes; i++) {
                assert_int_equal(test.memory[at + i], test_byte(&record->operation, i));
            }
        }
    }
}

static void run(uint64_t seed, bool strict)
{
    prng_init(&world.prng, seed);
    world.strict = strict;
    world.flight_count = world.landing_count = 0;
    struct lant_rdma_target_config config = test_config();
    config.entries = (uint16_t)(6 + prng_below(&world.prng, 30));
    config.mask_bits = PACKETS;
    config.escapes = (uint16_t)(2 + prng_below(&world.prng, 30));
    config.tombstones = 512;
    config.escape_ticks = 700;
    config.age_ticks = (uint64_t)(TRIES_MAX + 2) * TIMEOUT;
    config.lifetime_ticks = (uint64_t)(TRIES_MAX + 1) * TIMEOUT + NETWORK_MAX;
    config.strict_thesis = strict;
    test_target_init(&test, &config);
    for (uint32_t sender = 0; sender < SENDERS; sender++) {
        world.next[sender] = 0;
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            world.current[sender][slot] = OPERATIONS;
        }
    }
    while (step_world()) {
        assert_true(test.now < 10000000);
    }
    check_end();
    /* LNI-54: after the lifetime nothing is left. */
    uint64_t deadline;
    while ((deadline = lant_rdma_target_deadline(&test.target)) != LANT_NEVER) {
        assert_true(deadline <= test.now + config.lifetime_ticks + config.age_ticks);
        lant_rdma_target_on_time(&test.target, deadline);
    }
    assert_true(lant_rdma_target_idle(&test.target));
    for (uint32_t i = 0; i < LANT_RDMA_TARGET_VERDICT_COUNT; i++) {
        sums.counters.verdicts[i] += test.target.counters.verdicts[i];
    }
    sums.counters.expired += test.target.counters.expired;
    sums.counters.released += test.target.counters.released;
    sums.counters.nacks += test.target.counters.nacks;
    sums.counters.aged += test.target.counters.aged;
}

/* LNI-52, 54, 56, 58 to 64, 67. */
static void test_network(void **state)
{
    (void)state;
    static const enum lant_rdma_target_verdict struck[] = {
        LANT_RDMA_TARGET_WRITE,      LANT_RDMA_TARGET_NOTIFIED, LANT_RDMA_TARGET_DUPLICATE,
        LANT_RDMA_TARGET_UNDER_WAY,  LANT_RDMA_TARGET_ESCAPED,  LANT_RDMA_TARGET_ESCAPE_FULL,
        LANT_RDMA_TARGET_TABLE_FULL,
    };
    memset(&sums, 0, sizeof sums);
    for (uint64_t seed = 0; seed < 40; seed++) {
        run(seed, false);
        assert_int_equal(test.target.tombstones.evicted, 0);
        assert_int_equal(sums.late_writes, 0);
        assert_int_equal(sums.wrong_data, 0);
        assert_int_equal(sums.notified_again, 0);
        assert_int_equal(sums.failed_in_vain, 0);
        assert_int_equal(sums.counters.aged, 0);
    }
    for (uint32_t i = 0; i < COUNT_OF(struck); i++) {
        assert_true(sums.counters.verdicts[struck[i]] > 20);
    }
    for (uint32_t i = LANT_RDMA_TARGET_ILLEGAL; i < LANT_RDMA_TARGET_VERDICT_COUNT; i++) {
        assert_int_equal(sums.counters.verdicts[i], 0);
    }
    assert_true(sums.counters.expired > 20 && sums.counters.released > 20);
    assert_true(sums.counters.nacks > 20);
}

/* The same worlds as before. Senders fail though all has arrived; a late copy of a first packet is
 * written behind the notification, and opens an entry that only its age ends; receivers are told
 * twice. */
static void test_strict_hazards(void **state)
{
    (void)state;
    memset(&sums, 0, sizeof sums);
    for (uint64_t seed = 0; seed < 10; seed++) {
        run(seed, true);
    }
    assert_true(sums.failed_in_vain > 0);
    assert_true(sums.late_writes > 0 && sums.wrong_data > 0);
    assert_true(sums.counters.aged > 0);
    assert_true(sums.notified_again > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_strict_hazards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
