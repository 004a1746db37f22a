/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    On a network that loses, damages, duplicates, delays and refuses, all bytes of each
 *         transfer are sent to where they belong, nothing is sent again without a reason, each
 *         transfer is notified once in its own queue, and nothing is left behind.
 * Method  Worlds by chance: tables of any size, a DMA engine and programs that take their time, and
 *         a receiver that only marks what has come. The model knows the fate of each copy, so it
 *         knows what the sender may do. At the end each kind of event must have been seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/rdma_sender.h"

#define WORLDS        250
#define TRANSFERS     60
#define INSTANCES_MAX 4000
#define PACKETS_MAX   40 /* In an operation. */
#define FLIGHTS_MAX   4096
#define SOURCE        UINT64_C(0x7f0000000000)
#define PEER          0x14805u
#define SELF          0x14403u
#define TIMEOUT       200u
#define NEVER_SEEN    UINT32_MAX

struct plan {
    struct lant_work work;
    uint32_t queue, arrived, notified, pushed;
    bool failed;
};

/* An operation that was begun. */
struct instance {
    uint32_t tag, packets, bytes, told, told_bad, told_arrived, left;
    uint64_t offset; /* Its base, in the source and at the destination. */
    uint64_t last_push;
    bool registered, failed;
    uint8_t copies[PACKETS_MAX], bad[PACKETS_MAX];
    bool arrived[PACKETS_MAX];
};

/* A packet or an answer on its way. */
struct flight {
    uint64_t at;
    struct lant_footer footer;
    uint32_t instance;
    bool answer, damaged, again; /* The last: a duplicate. */
    bool answer_lost;
    uint32_t back; /* How long its answer takes. */
};

struct chances {
    uint32_t loss, damage, duplicate, slow, refuse;
};

struct variety {
    uint64_t again, timeouts, older, stale, final, gave_way, failed, held, told_again;
    uint64_t identifier_waits, slot_waits, row_waits, serial_waits, notification_waits;
    uint64_t registered, segments, copies_left, refused;
};

static struct world {
    struct prng prng;
    uint64_t now;
    struct lant_rdma_config config;
    struct lant_rdma rdma;
    struct lant_notifications queues[LANT_QUEUE_COUNT];
    struct chances chances;
    struct plan plans[TRANSFERS];
    uint32_t planned, next_offset;
    struct instance instances[INSTANCES_MAX];
    uint32_t instance_count, current;
    bool gave_way;
    struct flight flights[FLIGHTS_MAX];
    uint32_t flight_count;
    uint64_t row_until[LANT_ROWS_MAX]; /* By then the row is free, if not before. */
    bool row_again[LANT_ROWS_MAX];
} w;

static uint32_t by_identifier[1u << LANT_IDENTIFIER_BITS];
static struct variety variety;

static bool chance(uint32_t millionths)
{
    return prng_chance(&w.prng, millionths);
}

static uint32_t below(uint32_t bound)
{
    return (uint32_t)prng_below(&w.prng, bound);
}

/* -- The network --------------------------------------------------------------------------------*/

static uint32_t delay(void)
{
    return 1 + below(chance(w.chances.slow) ? 2 * TIMEOUT : 30);
}

static void fly(const struct flight *flight)
{
    assert_true(w.flight_count < FLIGHTS_MAX);
    w.flights[w.flight_count++] = *flight;
}

/* Sends a copy; says whether no answer that ends its row can come in time. */
static bool send_copy(const struct lant_footer *footer, uint32_t instance, uint64_t timeout)
{
    const uint32_t there = delay();
    struct flight flight = {.at = w.now + there,
                            .footer = *footer,
                            .instance = instance,
                            .damaged = chance(w.chances.damage),
                            .answer_lost = chance(w.chances.loss),
                            .back = delay()};
    const bool lost = chance(w.chances.loss);
    const bool late = there + flight.back >= timeout;
    if (!lost) {
        fly(&flight);
    }
    const bool bad = lost || late || flight.damaged || flight.answer_lost;
    if (chance(w.chances.duplicate)) {
        flight.again = true;
        flight.damaged = false;
        flight.at += delay();
        flight.answer_lost = chance(w.chances.loss);
        fly(&flight);
    }
    return bad;
}

/* A packet has come: the receiver marks it, and answers. */
static void arrive(const struct flight *flight)
{
    struct instance *instance = &w.instances[flight->instance];
    struct flight back = *flight;
    back.answer = true;
    back.footer.source = PEER;
    back.at = w.now + flight->back;
    if (flight->damaged) {
        back.footer.response = LANT_NACK_CRC;
    } else if (!flight->again && chance(w.chances.refuse)) {
        back.footer.response = chance(500000) ? LANT_SLVERR : LANT_DECERR;
    } else if (flight->footer.class == LANT_CLASS_NOTIFICATION) {
        instance->told_arrived++;
    } else {
        instance->arrived[flight->footer.offset] = true;
    }
    if (!flight->answer_lost) {
        fly(&back);
    }
    if (!flight->answer_lost && chance(w.chances.duplicate)) {
        back.at += delay();
        fly(&back);
    }
}

static void on_answer(const struct flight *flight)
{
    const enum lant_rdma_answer answer = lant_rdma_on_answer(&w.rdma, w.now, &flight->footer);
    if (flight->footer.class == LANT_CLASS_RDMA && answer <= LANT_RDMA_ANSWER_FINAL) {
        w.row_until[flight->footer.row] = w.now;
    }
    assert_int_not_equal(answer, LANT_RDMA_ANSWER_FOREIGN);
    if (answer == LANT_RDMA_ANSWER_FINAL) {
        w.instances[flight->instance].failed = true;
    }
}

static void deliver(void)
{
    for (uint32_t i = 0; i < w.flight_count;) {
        if (w.flights[i].at > w.now) {
            i++;
            continue;
        }
        const struct flight flight = w.flights[i];
        w.flights[i] = w.flights[--w.flight_count];
        if (flight.answer) {
            on_answer(&flight);
        } else {
            arrive(&flight);
        }
    }
}

/* -- The program --------------------------------------------------------------------------------*/

static void submit(void)
{
    const uint32_t tag = w.planned;
    const bool large = chance(100000);
    const uint32_t bytes = 1 + below(chance(300000) ? 64 : large ? 18000 : 6000);
    struct plan *plan = &w.plans[tag];
    *plan = (struct plan){.queue = below(2)};
    plan->work = (struct lant_work){
        .tag = tag,
        .no_notif = chance(50000),
        .timeout = chance(300000) ? TIMEOUT / 2 + below(TIMEOUT) : 0,
        .descriptor = {.source = SOURCE + w.next_offset,
                       .destination = lant_global(PEER, w.next_offset),
                       .bytes = bytes,
                       .priority = (uint8_t)below(4),
                       .no_register = chance(300000)},
    };
    const enum lant_submit verdict = lant_work_submit(&w.rdma.work, plan->queue, &plan->work);
    if (verdict == LANT_SUBMIT_FULL) {
        variety.refused++;
        return;
    }
    assert_int_equal(verdict, LANT_SUBMIT_COMMITTED);
    w.next_offset += (bytes + 7) / 8 * 8;
    w.planned++;
}

/* All that belongs to a transfer that ended well has come, and its receivers know. */
static void assert_arrived(uint32_t tag)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < w.instance_count; i++) {
        const struct instance *instance = &w.instances[i];
        if (instance->tag != tag) {
            continue;
        }
        for (uint32_t k = 0; k < instance->packets; k++) {
            assert_true(instance->arrived[k]);
        }
        assert_true(instance->registered || instance->told_arrived != 0);
        bytes += instance->bytes;
    }
    assert_int_equal(bytes, w.plans[tag].work.descriptor.bytes);
}

static void poll(uint32_t queue)
{
    struct lant_notification notification;
    if (!lant_notifications_take(&w.queues[queue], &notification)) {
        return;
    }
    struct plan *plan = &w.plans[notification.tag];
    assert_int_equal(notification.kind, LANT_NOTIFY_SENT);
    assert_int_equal(plan->queue, queue);
    assert_int_equal(plan->notified, 0);
    assert_false(plan->work.no_notif);
    assert_int_equal(notification.bytes, plan->work.descriptor.bytes);
    assert_int_equal(notification.source, plan->work.descriptor.source);
    assert_int_equal(notification.destination, plan->work.descriptor.destination);
    plan->notified++;
    if (notification.status == LANT_STATUS_COMPLETE) {
        assert_arrived(notification.tag);
        assert_int_equal(plan->pushed, 1);
    } else {
        assert_true((notification.status & LANT_STATUS_ERRORS) != 0);
        assert_true(plan->failed);
    }
}

static void move_notifications(uint32_t queue)
{
    struct lant_notification notification;
    if (lant_rdma_notifications_waiting(&w.rdma, queue) == 0) {
        return;
    }
    if (!lant_notifications_admit(&w.queues[queue])) {
        variety.notification_waits++;
        return;
    }
    assert_true(lant_rdma_next_notification(&w.rdma, w.now, queue, &notification));
    assert_int_equal(notification.tag < w.planned, true);
    lant_notifications_put(&w.queues[queue], &notification);
}

/* -- The DMA engine -----------------------------------------------------------------------------*/

static void begin_instance(const struct lant_rdma_descriptor *descriptor)
{
    const uint32_t before = by_identifier[descriptor->identifier];
    /* LNI-93: it has rested since its last packet at least. */
    if (before != NEVER_SEEN) {
        assert_true(w.now - w.instances[before].last_push >= lant_rdma_packet_lifetime(&w.config));
    }
    assert_true(w.instance_count < INSTANCES_MAX);
    w.current = w.instance_count++;
    by_identifier[descriptor->identifier] = w.current;
    w.instances[w.current] = (struct instance){.tag = descriptor->tag,
                                               .packets = (descriptor->bytes + 511) / 512,
                                               .bytes = descriptor->bytes,
                                               .left = (descriptor->bytes + 511) / 512,
                                               .offset = descriptor->source - SOURCE};
    struct instance *instance = &w.instances[w.current];
    const struct lant_descriptor *asked = &w.plans[descriptor->tag].work.descriptor;
    instance->registered = !w.config.registers.off && !asked->no_register &&
                           descriptor->bytes <= w.config.registers.bytes_at_most &&
                           instance->packets <= w.config.registers.mask_bits;
    variety.registered += instance->registered;
    variety.segments += descriptor->bytes != asked->bytes;
    assert_int_equal(lant_global_address(descriptor->destination), instance->offset);
    assert_true(w.rdma.operations.used <= w.config.operations);
}

static void assert_nothing_serial(void)
{
    for (uint32_t row = 0; row < w.config.rows; row++) {
        assert_false(w.row_again[row] && w.row_until[row] > w.now);
    }
}

static void pull_descriptor(void)
{
    struct lant_rdma_descriptor descriptor;
    const enum lant_rdma_start start = lant_rdma_next_descriptor(&w.rdma, w.now, &descriptor);
    variety.slot_waits += start == LANT_RDMA_WAITS_SLOT;
    variety.identifier_waits += start == LANT_RDMA_WAITS_IDENTIFIER;
    variety.serial_waits += start == LANT_RDMA_WAITS_ANSWER;
    if (start < LANT_RDMA_STARTS_PARTIAL) {
        return;
    }
    if (w.config.serial_retransmission) {
        assert_nothing_serial();
    }
    /* LNI-47: the one before was pushed completely. */
    if (w.instance_count != 0 && !w.gave_way) {
        assert_true(w.instances[w.current].left == 0 || w.instances[w.current].failed);
    }
    if (start == LANT_RDMA_STARTS_OPERATION) {
        begin_instance(&descriptor);
    } else if (start == LANT_RDMA_STARTS_GIVEN_WAY) {
        w.gave_way = false;
        w.current = by_identifier[descriptor.identifier];
        assert_int_equal(descriptor.bytes,
                         w.instances[w.current].bytes -
                             (w.instances[w.current].packets - w.instances[w.current].left) * 512);
    } else {
        assert_true(descriptor.bytes <= 512);
    }
}

static void check_packet(const struct lant_packet *packet, const struct lant_rdma_push *push,
                         struct instance *instance)
{
    const uint32_t k = packet->footer.offset;
    const uint64_t offset = instance->offset + 512 * (uint64_t)k;
    const uint32_t bytes = k + 1 < instance->packets ? 512 : instance->bytes - 512 * k;
    assert_true(k < instance->packets);
    /* LNI-46: the same bytes to the same place. LNI-51: never after the notification. */
    assert_int_equal(push->source, SOURCE + offset);
    assert_int_equal(push->bytes, bytes);
    assert_int_equal(packet->header.address, offset);
    assert_int_equal(packet->header.destination, PEER);
    assert_int_equal(packet->header.payload, (bytes + 7) / 8);
    assert_int_equal(packet->header.type, !instance->registered ? LANT_RDMA_UNREGISTERED
                                          : k == 0              ? LANT_RDMA_WRITE_REGISTER
                                                                : LANT_RDMA_WRITE);
    assert_int_equal(packet->header.packets,
                     instance->registered && k == 0 ? instance->packets : 0);
    assert_int_equal(w.plans[instance->tag].notified, 0);
    assert_false(instance->failed);
    /* Again only if each copy before was lost, damaged or late; and in order at first. */
    assert_int_equal(packet->footer.attempt, instance->copies[k]);
    assert_int_equal(push->again, instance->copies[k] != 0);
    assert_int_equal(instance->bad[k], instance->copies[k]);
    assert_true(instance->copies[k] <= w.config.retries);
    if (!push->again) {
        assert_int_equal(k, instance->packets - instance->left);
        instance->left--;
    }
    assert_int_equal(instance->told, 0);
}

static void push_packet(void)
{
    struct lant_packet packet;
    struct lant_rdma_push push;
    const enum lant_rdma_push_verdict verdict =
        lant_rdma_next_packet(&w.rdma, w.now, &packet, &push);
    variety.row_waits += verdict == LANT_RDMA_PUSH_WAITS;
    w.gave_way |= verdict == LANT_RDMA_PUSH_GIVES_WAY;
    if (verdict != LANT_RDMA_PUSHED) {
        return;
    }
    const uint32_t at = by_identifier[lant_operation_of(&packet.footer)];
    assert_int_equal(lant_operation_of(&packet.footer), push.identifier);
    struct instance *instance = &w.instances[at];
    const struct lant_work *work = &w.plans[instance->tag].work;
    const uint64_t timeout = work->timeout == 0 ? TIMEOUT : work->timeout;
    const uint32_t row = packet.footer.row;
    check_packet(&packet, &push, instance);
    w.plans[instance->tag].pushed += push.all;
    /* LNI-44. */
    assert_true(row < w.config.rows && w.row_until[row] <= w.now);
    w.row_until[row] = w.now + timeout;
    w.row_again[row] = push.again;
    instance->last_push = w.now;
    instance->copies[packet.footer.offset]++;
    instance->bad[packet.footer.offset] += send_copy(&packet.footer, at, timeout);
}

/* Is a first copy of its packets still on its way? */
static bool copies_left(uint32_t instance)
{
    for (uint32_t i = 0; i < w.flight_count; i++) {
        const struct flight *flight = &w.flights[i];
        if (flight->instance == instance && flight->footer.class == LANT_CLASS_RDMA &&
            !flight->answer && !flight->again) {
            return true;
        }
    }
    return false;
}

static void push_completion(void)
{
    struct lant_packet packet;
    if (!lant_rdma_next_completion(&w.rdma, w.now, &packet)) {
        return;
    }
    const uint32_t at = by_identifier[lant_operation_of(&packet.footer)];
    struct instance *instance = &w.instances[at];
    const struct lant_work *work = &w.plans[instance->tag].work;
    assert_false(instance->registered || instance->failed);
    for (uint32_t k = 0; k < instance->packets; k++) {
        assert_true(instance->arrived[k]);
    }
    assert_int_equal(packet.footer.attempt, instance->told);
    assert_int_equal(instance->told_bad, instance->told);
    assert_true(instance->told <= w.config.retries);
    assert_int_equal(packet.header.address, instance->offset);
    assert_int_equal(packet.payload[0] >> 32, instance->bytes);
    if (copies_left(at)) {
        assert_false(w.config.mpl_hold);
        variety.copies_left++;
    }
    instance->last_push = w.now;
    instance->told++;
    instance->told_bad +=
        send_copy(&packet.footer, at, work->timeout == 0 ? TIMEOUT : work->timeout);
}

static void take_interrupts(void)
{
    struct lant_rdma_failure failure;
    while (lant_rdma_next_interrupt(&w.rdma, &failure)) {
        struct instance *instance = &w.instances[by_identifier[failure.identifier]];
        assert_int_equal(failure.tag, instance->tag);
        assert_int_equal(failure.source, SOURCE + instance->offset + 512 * failure.offset);
        if (failure.response != LANT_SLVERR && failure.response != LANT_DECERR) {
            assert_int_equal(failure.attempts, w.config.retries + 1);
            assert_int_equal(failure.told ? instance->told_bad : instance->bad[failure.offset],
                             w.config.retries + 1);
        }
        instance->failed = true;
        w.plans[instance->tag].failed = true;
    }
}

/* -- Worlds -------------------------------------------------------------------------------------*/

static void choose_config(uint64_t seed)
{
    struct lant_rdma_config *config = &w.config;
    *config = LANT_RDMA_DEFAULTS;
    config->node = SELF;
    config->timeout = TIMEOUT;
    config->timeout_most = 2 * TIMEOUT;
    config->lifetime = 2 * TIMEOUT + 2;
    config->operations = (uint16_t)(1 + below(chance(300000) ? 64 : 16));
    config->rows = (uint16_t)(1 + below(chance(200000) ? 100 : 20));
    config->partials = chance(500000) ? config->rows : LANT_PARTIALS_MAX;
    config->retries = (uint8_t)below(8);
    config->generations = chance(300000) ? 2u << below(3) : 0;
    config->mpl_hold = seed % 3 == 0;
    config->serial_retransmission = chance(300000);
    config->registers.off = chance(200000);
    config->registers.mask_bits = (uint16_t)(chance(500000) ? 8 : 64);
    config->registers.bytes_at_most = 1000 + below(10000);
    config->work.capacity = (uint16_t)(1 + below(20));
    config->work.parents = (uint16_t)(1 + below(8));
    config->work.segment_bytes = chance(700000) ? 512 * (1 + below(20)) : 0;
    config->work.large_after = below(4);
    config->work.priorities = chance(500000);
    const uint32_t bad = seed % 5 == 0 ? 0 : 20000 + below(250000);
    w.chances = (struct chances){.loss = below(bad + 1) / 2,
                                 .damage = below(bad + 1),
                                 .slow = below(bad + 1) / 2,
                                 .duplicate = config->mpl_hold ? 0 : below(bad + 1),
                                 .refuse = chance(200000) ? 5000 : 0};
}

static void begin(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    memset(by_identifier, 0xff, sizeof(by_identifier));
    prng_init(&w.prng, seed);
    choose_config(seed);
    lant_rdma_init(&w.rdma, &w.config);
    for (uint32_t q = 0; q < LANT_QUEUE_COUNT; q++) {
        lant_notifications_init(&w.queues[q], 1 + below(4));
    }
}

static bool over(void)
{
    return w.planned == TRANSFERS && w.flight_count == 0 && lant_rdma_idle(&w.rdma) &&
           w.queues[0].count == 0 && w.queues[1].count == 0;
}

static void tick(void)
{
    deliver();
    if (lant_rdma_deadline(&w.rdma) <= w.now) {
        lant_rdma_on_time(&w.rdma, w.now);
    }
    assert_true(lant_rdma_deadline(&w.rdma) > w.now);
    take_interrupts();
    if (w.planned < TRANSFERS && chance(150000)) {
        submit();
    }
    if (chance(700000)) {
        pull_descriptor();
    }
    if (chance(900000)) {
        push_packet();
    }
    if (chance(500000)) {
        push_completion();
    }
    for (uint32_t q = 0; q < LANT_QUEUE_COUNT; q++) {
        if (chance(500000)) {
            move_notifications(q);
        }
        if (chance(100000)) {
            poll(q);
        }
    }
    w.now++;
}

static void count_variety(void)
{
    const struct lant_rdma_counters *counters = &w.rdma.counters;
    variety.again += counters->again;
    variety.timeouts += counters->timeouts;
    variety.older += counters->answers[LANT_RDMA_ANSWER_OLDER];
    variety.stale += counters->answers[LANT_RDMA_ANSWER_STALE];
    variety.final += counters->answers[LANT_RDMA_ANSWER_FINAL];
    variety.gave_way += counters->gave_way;
    variety.failed += counters->failed;
    variety.held += counters->held;
    variety.told_again += counters->told_again;
}

static void run(uint64_t seed)
{
    begin(seed);
    while (!over()) {
        tick();
        assert_true(w.now < 3000000);
    }
    uint64_t failed = 0;
    for (uint32_t i = 0; i < TRANSFERS; i++) {
        const struct plan *plan = &w.plans[i];
        assert_int_equal(plan->notified, !plan->work.no_notif);
        assert_true(plan->failed || plan->pushed == 1);
        if (!plan->failed) {
            assert_arrived(i);
        }
        failed += plan->failed;
    }
    assert_true(w.rdma.counters.interrupts >= failed);
    assert_int_equal(w.rdma.counters.operations, w.rdma.counters.ended);
    assert_int_equal(w.rdma.counters.operations, w.instance_count);
    assert_true(w.rdma.transactions.used_max <= w.config.rows);
    assert_true(w.rdma.operations.used_max <= w.config.operations);
    /* A network that does nothing wrong: nothing goes again. */
    if (w.chances.loss + w.chances.damage + w.chances.slow == 0) {
        assert_int_equal(w.rdma.counters.again + w.rdma.counters.told_again, 0);
    }
    count_variety();
}

static void test_worlds(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < WORLDS; seed++) {
        run(seed);
    }
    const uint64_t *seen = (const uint64_t *)(const void *)&variety;
    for (uint32_t i = 0; i < sizeof(variety) / sizeof(uint64_t); i++) {
        if (seen[i] < 20) {
            print_message("event %u: %u times\n", i, (unsigned)seen[i]);
        }
        assert_true(seen[i] >= 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_worlds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
