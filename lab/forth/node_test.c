/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A host sees the NIC as the document describes it: bytes, notifications, interrupts,
 *         registers and counters.
 * Method  Two nodes on a pair of links, or one looped back; requests written as a driver would.
 *         Behaviours FNX-03, FNX-05, FNX-07 to FNX-15, FNX-27, FNX-36, FNX-49, FNX-52 to FNX-55,
 *         FNX-66.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/forth/machine.h"

#define SOURCE  0x1000u
#define TARGET  0x100000u
#define NOTICES 0x3000u

struct bench {
    struct lab_run run;
    struct forth_machine machine;
    struct forth_node *a, *b;
    struct {
        struct forth_request queue[64];
        uint32_t count, posted;
    } posts;
    uint32_t delivered, flagged, local, remote, interrupts;
    uint64_t last_word;
};

static bool post(struct forth_node *node, struct forth_request *request)
{
    struct bench *bench = node->program.owner;
    if (bench->posts.posted == bench->posts.count) {
        return false;
    }
    *request = bench->posts.queue[bench->posts.posted++];
    return true;
}

static void delivered(struct forth_node *node, const struct forth_header *header, bool flagged)
{
    struct bench *bench = node->program.owner;
    (void)header;
    bench->delivered++;
    bench->flagged += flagged;
}

static void notified(struct forth_node *node, bool remote, uint64_t word)
{
    struct bench *bench = node->program.owner;
    bench->local += !remote;
    bench->remote += remote;
    bench->last_word = word;
}

static void interrupted(struct forth_node *node)
{
    ((struct bench *)node->program.owner)->interrupts++;
}

static struct bench *open_bench(const char *const *sets)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    char error[200];
    assert_non_null(bench);
    lab_prepare(&bench->run, lab_find("forth/direct"), 1);
    for (; sets != NULL && *sets != NULL; sets++) {
        assert_true(lab_set(&bench->run, *sets, error, sizeof(error)));
    }
    forth_machine_open(&bench->machine, &bench->run, 2, false);
    bench->a = &bench->machine.nodes[0];
    bench->b = &bench->machine.nodes[1];
    for (uint32_t i = 0; i < 2; i++) {
        bench->machine.nodes[i].program = (struct forth_program){.post = i == 0 ? post : NULL,
                                                                 .delivered = delivered,
                                                                 .notified = notified,
                                                                 .interrupted = interrupted,
                                                                 .owner = bench};
        forth_node_write(&bench->machine.nodes[i], FORTH_REGISTER_LOCAL_LOW, NOTICES);
        forth_node_write(&bench->machine.nodes[i], FORTH_REGISTER_REMOTE_LOW, NOTICES + 8);
    }
    uint8_t *bytes = forth_node_memory(bench->a, 0, TARGET);
    struct prng prng;
    prng_init(&prng, 5);
    for (uint32_t i = 0; i < TARGET; i++) {
        bytes[i] = (uint8_t)prng_next(&prng);
    }
    return bench;
}

static void close_bench(struct bench *bench)
{
    forth_machine_close(&bench->machine);
    assert_string_equal(bench->run.failure, ""); /* The counters were right. */
    free(bench);
}

static struct forth_request request(uint32_t qwords)
{
    return (struct forth_request){.source = SOURCE,
                                  .destination = TARGET,
                                  .words = (uint16_t)qwords,
                                  .node = 1,
                                  .start = true};
}

static void add(struct bench *bench, struct forth_request made)
{
    assert_in_range(bench->posts.count, 0, 63);
    bench->posts.queue[bench->posts.count++] = made;
}

static void run_us(struct bench *bench, uint64_t us)
{
    forth_node_kick(bench->a);
    sim_run_until(&bench->machine.sim, bench->machine.sim.now_ps + us * 1000000);
}

static uint32_t counter(const struct forth_node *node, enum forth_counter which)
{
    return node->registers.counters[which];
}

static void expect_bytes(struct bench *bench, uint32_t from, uint32_t to, uint32_t qwords)
{
    assert_memory_equal(forth_node_memory(bench->b, to, 8 * (size_t)qwords),
                        forth_node_memory(bench->a, from, 8 * (size_t)qwords), 8 * (size_t)qwords);
}

/* -- Requests -----------------------------------------------------------------------------------*/

/* FNX-03: a request without the start flag waits for one that has it. */
static void test_clusters(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    for (uint32_t i = 0; i < 5; i++) {
        struct forth_request made = request(4);
        made.start = i == 3;
        made.destination = TARGET + 64 * i;
        add(bench, made);
    }
    bench->posts.count = 3;
    run_us(bench, 20);
    assert_int_equal(bench->delivered, 0);
    bench->posts.count = 5;
    run_us(bench, 20);
    assert_int_equal(bench->delivered, 4);
    assert_int_equal(bench->a->queue.pending, 1);
    close_bench(bench);
}

/* FNX-05: without its enable bits the initiator stops behind the operation under way. */
static void test_enables(void **state)
{
    (void)state;
    for (int which = 0; which < 2; which++) {
        struct bench *bench = open_bench(NULL);
        for (uint32_t i = 0; i < 4; i++) {
            add(bench, request(100));
        }
        forth_node_kick(bench->a);
        while (bench->a->fetch.state == FORTH_FETCH_IDLE) {
            sim_step(&bench->machine.sim);
        }
        if (which == 0) {
            forth_node_write(bench->a, FORTH_REGISTER_CONTROL, 0);
        } else {
            forth_node_configure(bench->a, FORTH_CONFIG_COMMAND, 2);
        }
        run_us(bench, 50);
        assert_int_equal(bench->delivered, 1);
        if (which == 0) {
            forth_node_write(bench->a, FORTH_REGISTER_CONTROL, 1);
        } else {
            forth_node_configure(bench->a, FORTH_CONFIG_COMMAND, 6);
        }
        run_us(bench, 50);
        assert_int_equal(bench->delivered, 4);
        close_bench(bench);
    }
}

/* FNX-07: a long transfer lets go when its time is over and somebody waits; then goes on. */
static void test_latency_timer(void **state)
{
    (void)state;
    static const char *const sets[] = {"latency_timer=100", NULL};
    struct bench *bench = open_bench(sets);
    add(bench, request(512));
    forth_node_kick(bench->a);
    while (bench->a->fetch.state != FORTH_FETCH_DATA) {
        sim_step(&bench->machine.sim);
    }
    /* Somebody: the same host, which is not held off behind the first disconnect. */
    sim_step(&bench->machine.sim);
    struct forth_request other = request(4);
    other.destination = TARGET + 8192;
    add(bench, other);
    bench->a->has_next = post(bench->a, &bench->a->next);
    forth_bus_request(&bench->a->bus, &bench->a->host);
    run_us(bench, 60);
    assert_int_equal(bench->delivered, 2);
    expect_bytes(bench, SOURCE, TARGET, 512);
    expect_bytes(bench, SOURCE, TARGET + 8192, 4);
    assert_int_equal(counter(bench->a, FORTH_host2nic_disconnects), 1);
    assert_int_equal(counter(bench->a, FORTH_host2nic_requests), 3);
    assert_int_equal(counter(bench->a, FORTH_host2nic_dma_ops), 2);
    assert_int_equal(counter(bench->a, FORTH_host2nic_qwords), 516);
    close_bench(bench);
}

/* FNX-08: one split outstanding; its count and its duration. */
static void test_splits(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    for (uint32_t i = 0; i < 7; i++) {
        add(bench, request(10));
    }
    run_us(bench, 50);
    assert_int_equal(counter(bench->a, FORTH_split_operations), 7);
    /* 40 cycles of memory, 12 of the completion's header. */
    assert_int_equal(counter(bench->a, FORTH_split_duration), 7 * (40 + 12));
    close_bench(bench);
}

/* FNX-09: two of the largest operations do not fit the FIFO together; nothing is lost. */
static void test_fifo_space(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    for (uint32_t i = 0; i < 6; i++) {
        struct forth_request made = request(512);
        made.source = SOURCE + 4096 * i;
        made.destination = TARGET + 4096 * i;
        add(bench, made);
    }
    bench->a->windows[1].buffer = 0; /* Nothing leaves: the second must wait for room. */
    run_us(bench, 50);
    assert_int_equal(bench->a->truth.fetched, 1);
    bench->a->windows[1].buffer = FORTH_FIFO_WORDS;
    forth_node_transmit(bench->a);
    run_us(bench, 100);
    assert_int_equal(bench->delivered, 6);
    expect_bytes(bench, SOURCE, TARGET, 6 * 512);
    assert_int_equal(counter(bench->a, FORTH_host2net_fifo_full), 0);
    close_bench(bench);
}

/* FNX-10, FNX-13: notifications: one for each that asks, behind its data. */
static void test_notifications(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    struct forth_request made = request(8);
    made.flags.local_notification = true;
    add(bench, made);
    run_us(bench, 20);
    assert_int_equal(bench->local, 1);
    assert_int_equal(bench->remote, 0);
    uint64_t word;
    memcpy(&word, forth_node_memory(bench->a, NOTICES, 8), 8);
    assert_int_equal(word, forth_notification(8, 1, 1));
    made.flags = (struct forth_flags){.remote_notification = true};
    made.destination = TARGET + 4096;
    add(bench, made);
    while (bench->remote == 0) {
        forth_node_kick(bench->a);
        assert_true(sim_step(&bench->machine.sim));
    }
    expect_bytes(bench, SOURCE, TARGET + 4096, 8); /* The data is there already. */
    memcpy(&word, forth_node_memory(bench->b, NOTICES + 8, 8), 8);
    assert_int_equal(word, bench->last_word);
    add(bench, made);
    run_us(bench, 20);
    assert_int_equal(bench->remote, 2);
    assert_int_equal((uint32_t)bench->last_word, (uint32_t)word + 1);
    assert_int_equal(counter(bench->b, FORTH_remote_notifications), 2);
    close_bench(bench);
}

/* FNX-11: a reset in the midst of traffic; the next operation works. */
static void test_software_reset(void **state)
{
    (void)state;
    for (uint32_t steps = 1; steps < 60; steps += 3) {
        struct bench *bench = open_bench(NULL);
        for (uint32_t i = 0; i < 3; i++) {
            add(bench, request(200));
        }
        forth_node_kick(bench->a);
        for (uint32_t i = 0; i < steps; i++) {
            sim_step(&bench->machine.sim);
        }
        bench->posts.posted = bench->posts.count;
        bench->a->has_next = false;
        forth_node_write(bench->a, FORTH_REGISTER_CONTROL, 1u << 24 | 1u << 4 | 1);
        assert_int_equal(bench->a->queue.pending, 0);
        assert_int_equal(bench->a->host2net.used, 0);
        run_us(bench, 50);
        const uint32_t before = bench->delivered;
        struct forth_request made = request(33);
        made.destination = TARGET + 16384;
        add(bench, made);
        run_us(bench, 50);
        assert_int_equal(bench->delivered, before + 1);
        expect_bytes(bench, SOURCE, TARGET + 16384, 33);
        forth_machine_close(&bench->machine);
        free(bench);
    }
}

/* -- Deliveries ---------------------------------------------------------------------------------*/

/* FNX-12: exact address and length: the neighbours are untouched. */
static void test_exact_place(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {1, 2, 61, 62, 511, 512};
    for (uint32_t i = 0; i < 6; i++) {
        struct bench *bench = open_bench(NULL);
        memset(forth_node_memory(bench->b, TARGET - 64, 8192), 0xee, 8192);
        add(bench, request(sizes[i]));
        run_us(bench, 30);
        expect_bytes(bench, SOURCE, TARGET, sizes[i]);
        const uint8_t *before = forth_node_memory(bench->b, TARGET - 64, 64);
        const uint8_t *behind = forth_node_memory(bench->b, TARGET + 8 * sizes[i], 64);
        for (uint32_t k = 0; k < 64; k++) {
            assert_int_equal(before[k], 0xee);
            assert_int_equal(behind[k], 0xee);
        }
        close_bench(bench);
    }
}

/* FNX-14: a flag for packets that ask, a line if enabled, a level until it is cleared. */
static void test_interrupts(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    add(bench, request(4));
    run_us(bench, 20);
    assert_int_equal(bench->b->config_space.values[FORTH_CONFIG_APPLICATION / 4] & 0x10, 0);
    struct forth_request made = request(4);
    made.flags.remote_interrupt = true;
    add(bench, made);
    run_us(bench, 20);
    assert_int_equal(bench->b->config_space.values[FORTH_CONFIG_APPLICATION / 4] & 0x10, 0x10);
    assert_int_equal(bench->interrupts, 0); /* Not enabled. */
    forth_node_configure(bench->b, FORTH_CONFIG_APPLICATION, 0x11);
    add(bench, made);
    add(bench, made);
    run_us(bench, 20);
    assert_int_equal(bench->interrupts, 1); /* A level: the second one changes nothing. */
    assert_true(forth_config_interrupts(&bench->b->config_space));
    const uint64_t from = bench->b->irq_from;
    forth_node_configure(bench->b, FORTH_CONFIG_APPLICATION, 0x11);
    assert_false(forth_config_interrupts(&bench->b->config_space));
    /* FNX-52: from assertion to clear. */
    assert_int_equal(counter(bench->b, FORTH_irq_active), forth_node_cycle(bench->b) - from);
    assert_int_equal(counter(bench->b, FORTH_irq_assertions), 1);
    close_bench(bench);
}

/* FNX-15: what must have come before the bus takes a packet; it never runs dry (checked by the
 * model on every packet). */
static void test_cut_through(void **state)
{
    (void)state;
    static const struct {
        const char *clock;
        uint32_t lanes, eighths;
    } cases[] = {{"pci_clock=100", 2, 2}, {"pci_clock=100", 1, 5}, {"pci_clock=66.67", 2, 0}};
    for (uint32_t i = 0; i < 3; i++) {
        const char *const sets[] = {cases[i].clock, NULL};
        struct bench *bench = open_bench(sets);
        assert_int_equal(forth_cut_through_eighths(&bench->run, cases[i].lanes), cases[i].eighths);
        for (uint32_t k = 0; k < 8; k++) {
            add(bench, request(64 * (k + 1)));
        }
        run_us(bench, 100);
        assert_int_equal(bench->delivered, 8);
        expect_bytes(bench, SOURCE, TARGET, 512);
        close_bench(bench);
    }
}

/* FNX-27: looped back, a NIC gets its own packets. */
static void test_loopback(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    forth_node_write(bench->a, FORTH_REGISTER_CONTROL, 3u << 30 | 1);
    for (uint32_t i = 0; i < 20; i++) {
        struct forth_request made = request(100);
        made.destination = TARGET + 800 * i;
        made.node = 0;
        add(bench, made);
    }
    run_us(bench, 200);
    assert_int_equal(bench->delivered, 20);
    assert_int_equal(bench->a->truth.delivered, 20);
    for (uint32_t i = 0; i < 20; i++) {
        assert_memory_equal(forth_node_memory(bench->a, TARGET + 800 * i, 800),
                            forth_node_memory(bench->a, SOURCE, 800), 800);
    }
    forth_node_write(bench->a, FORTH_REGISTER_CONTROL, 1);
    add(bench, request(10));
    run_us(bench, 50);
    assert_int_equal(bench->b->truth.delivered, 1);
    close_bench(bench);
}

/* -- Counters -----------------------------------------------------------------------------------*/

/* Whether the host posts while the NIC fetches. */
static void test_core(void **state)
{
    (void)state;
    for (uint32_t shared = 0; shared < 2; shared++) {
        const char *const sets[] = {shared ? "core=shared" : "core=exclusive", NULL};
        struct bench *bench = open_bench(sets);
        add(bench, request(10));
        add(bench, request(10));
        forth_node_kick(bench->a);
        while (bench->a->fetch.state != FORTH_FETCH_DATA) {
            assert_true(sim_step(&bench->machine.sim));
        }
        assert_int_equal(bench->a->truth.posted, 1 + shared);
        run_us(bench, 20);
        assert_int_equal(bench->delivered, 2);
        close_bench(bench);
    }
}

/* Credits of a link that is busy: one for every 32 words, or fewer. */
static void test_credit_kinds(void **state)
{
    (void)state;
    uint64_t credits[2];
    for (uint32_t coalesced = 0; coalesced < 2; coalesced++) {
        const char *const sets[] = {coalesced ? "credit_rule=coalesced"
                                              : "credit_rule=each-32-words",
                                    "refresh=1000", NULL};
        struct bench *bench = open_bench(sets);
        forth_node_write(bench->a, FORTH_REGISTER_CONTROL, 3u << 30 | 1);
        for (uint32_t i = 0; i < 20; i++) {
            struct forth_request made = request(500);
            made.node = 0;
            add(bench, made);
        }
        run_us(bench, 500);
        assert_int_equal(bench->delivered, 20);
        credits[coalesced] = bench->a->truth.credits_out;
        close_bench(bench);
    }
    assert_int_equal(credits[0], 20 * 502 / 32);
    assert_in_range(credits[1], 20, credits[0] - 1);
}

/* A packet that the bus takes late is taken when its last word is there. */
static void test_late_delivery(void **state)
{
    (void)state;
    uint64_t times[2];
    for (uint32_t late = 0; late < 2; late++) {
        const char *const sets[] = {late ? "cut_through=late" : "cut_through=early", NULL};
        struct bench *bench = open_bench(sets);
        add(bench, request(512));
        forth_node_kick(bench->a);
        while (bench->delivered == 0) {
            assert_true(sim_step(&bench->machine.sim));
        }
        times[late] = bench->machine.sim.now_ps;
        close_bench(bench);
    }
    /* Three quarters of 512 network cycles, to the next PCI cycle. */
    assert_in_range(times[1] - times[0], 384 * 12800 - 10000, 384 * 12800 + 10000);
}

/* Memory that takes a random time longer. */
static void test_jitter(void **state)
{
    (void)state;
    static const char *const sets[] = {"jitter=20", NULL};
    struct bench *bench = open_bench(sets);
    for (uint32_t i = 0; i < 7; i++) {
        add(bench, request(10));
    }
    run_us(bench, 50);
    assert_in_range(counter(bench->a, FORTH_split_duration), 7 * 52 + 1, 7 * 72);
    close_bench(bench);
}

/* FNX-36: backpressure is the time a ready packet waits for credit. */
static void test_backpressure(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    add(bench, request(10));
    bench->a->windows[1].buffer = 0;
    run_us(bench, 100);
    assert_true(bench->a->blocked);
    const uint64_t from = bench->a->blocked_from_ps;
    bench->a->windows[1].buffer = FORTH_FIFO_WORDS;
    forth_node_transmit(bench->a);
    run_us(bench, 20);
    const uint64_t waited = 100 * UINT64_C(1000000) + 12800 - from;
    /* A repeated credit may be on the link when the window opens. */
    assert_in_range(counter(bench->a, FORTH_backpressure_cycles), waited / 12800,
                    waited / 12800 + 4);
    close_bench(bench);
}

/* FNX-49: the counters of a scripted run, by name, and on closing against what happened. */
static void test_counters(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    for (uint32_t i = 0; i < 4; i++) {
        struct forth_request made = request(40);
        made.flags.local_notification = i == 1;
        made.flags.remote_notification = i == 2;
        add(bench, made);
    }
    run_us(bench, 100);
    static const struct {
        enum forth_counter which;
        uint32_t value;
        bool at_receiver;
    } expected[] = {
        {FORTH_host2nic_dma_ops, 4, false},
        {FORTH_host2nic_requests, 4, false},
        {FORTH_host2nic_qwords, 160, false},
        {FORTH_host2nic_disconnects, 0, false},
        {FORTH_split_operations, 4, false},
        {FORTH_local_notifications, 1, false},
        {FORTH_outgoing_packets, 4, false},
        {FORTH_dequeued_words, 164, false},
        {FORTH_outgoing_cycles, 4 * 44 + 2 * 9, false},
        {FORTH_host2net_starts, 4, false},
        {FORTH_nic2host_dma_ops, 4, true},
        {FORTH_nic2host_requests, 4, true},
        {FORTH_nic2host_qwords, 160, true},
        {FORTH_remote_notifications, 1, true},
        {FORTH_incoming_packets, 4, true},
        {FORTH_enqueued_words, 164, true},
        {FORTH_net2host_starts, 4, true},
        {FORTH_header_crc_errors, 0, true},
        {FORTH_body_crc_errors, 0, true},
        {FORTH_backpressure_cycles, 0, false},
    };
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        const struct forth_node *node = expected[i].at_receiver ? bench->b : bench->a;
        if (expected[i].which == FORTH_outgoing_cycles) {
            /* Packets, and two cycles for every repeated credit. */
            assert_int_equal(counter(node, expected[i].which),
                             4 * 44 + 2 * node->truth.credits_out);
            continue;
        }
        assert_int_equal(counter(node, expected[i].which), expected[i].value);
    }
    /* FNX-52. */
    assert_true(counter(bench->a, FORTH_host2nic_dma_active) >=
                counter(bench->a, FORTH_host2nic_bus_granted));
    assert_true(counter(bench->a, FORTH_host2nic_bus_granted) >=
                counter(bench->a, FORTH_host2nic_qwords));
    assert_true(counter(bench->b, FORTH_nic2host_dma_active) >=
                counter(bench->b, FORTH_nic2host_bus_granted));
    /* FNX-55: both views of the pointers. */
    const uint32_t pointers = forth_node_read(bench->a, FORTH_REGISTER_POINTERS);
    const uint32_t copies = forth_config_read(&bench->a->config_space, FORTH_CONFIG_APPLICATION,
                                              bench->a->queue.head, bench->a->queue.tail);
    assert_int_equal(pointers & 0x7f, copies >> 16 & 0x7f);
    assert_int_equal(pointers >> 16 & 0x7f, copies >> 24 & 0x7f);
    close_bench(bench);
}

/* FNX-54: a FIFO overflows only if somebody sends without credit. */
static void test_forced_overflow(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    for (uint32_t i = 0; i < 8; i++) {
        add(bench, request(512));
    }
    forth_bus_withdraw(&bench->b->bus, &bench->b->writer);
    bench->b->delivery.busy = true; /* The host takes nothing. */
    for (uint32_t i = 0; i < 8; i++) {
        run_us(bench, 15);
        bench->a->windows[1].forwarded = bench->a->windows[1].sent; /* Credit from nowhere. */
        forth_node_transmit(bench->a);
    }
    run_us(bench, 100);
    assert_true(counter(bench->b, FORTH_net2host_fifo_full) > 0);
    assert_int_equal(bench->b->net2host.used, 513);
    forth_machine_close(&bench->machine);
    assert_string_not_equal(bench->run.failure, ""); /* Which the comparison reports. */
    free(bench);
}

/* FNX-53: samples accumulate from the first DMA on, at the interval, as many as asked for. */
static void test_sampling(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    forth_node_write(bench->a, FORTH_SAMPLE_INTERVAL, 100);
    forth_node_write(bench->a, FORTH_SAMPLE_COUNT, 5);
    run_us(bench, 30);
    assert_int_equal(bench->a->sampler.taken, 0); /* No DMA yet. */
    add(bench, request(50));
    add(bench, request(30));
    run_us(bench, 30);
    assert_int_equal(bench->a->sampler.taken, 5);
    assert_false(sim_event_scheduled(&bench->a->sample));
    uint32_t last = 0;
    for (uint32_t i = 0; i < 5; i++) {
        const uint32_t out = forth_node_read(bench->a, FORTH_SAMPLE_DATA);
        assert_true(out >= last);
        assert_int_equal(forth_node_read(bench->a, FORTH_SAMPLE_DATA), 0);
        last = out;
    }
    assert_int_equal(last, 80);
    close_bench(bench);
}

/* FNX-66: by registers alone, the cumulative timer measures one fetch: its cycles are those of its
 * parts. */
static void test_user_level_timing(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    forth_node_write(bench->a, FORTH_REGISTER_TIMER, 0);
    add(bench, request(100));
    run_us(bench, 20);
    assert_int_equal(forth_node_read(bench->a, FORTH_REGISTER_TIMER), 24 + 40 + 100);
    /* FNX-51 on the bus: armed anew it starts at the next request, at the value written. */
    forth_node_write(bench->a, FORTH_REGISTER_TIMER, 1000);
    run_us(bench, 20);
    assert_int_equal(forth_node_read(bench->a, FORTH_REGISTER_TIMER), 1000);
    add(bench, request(1));
    run_us(bench, 20);
    assert_int_equal(forth_node_read(bench->a, FORTH_REGISTER_TIMER), 1000 + 24 + 40 + 1);
    close_bench(bench);
}

/* -- Errors of programs and peers ---------------------------------------------------------------*/

static void test_bad_addresses(void **state)
{
    (void)state;
    struct bench *bench = open_bench(NULL);
    struct forth_request made = request(4);
    made.source = UINT64_C(0x500000000); /* No memory there: FNX-06, a dual address cycle. */
    add(bench, made);
    made = request(4);
    made.destination = 0xfffff000;
    add(bench, made);
    made = request(4);
    add(bench, made);
    run_us(bench, 50);
    assert_int_equal(bench->a->truth.aborts, 1);
    assert_int_equal(bench->b->truth.aborts, 1);
    assert_true(bench->a->config_space.values[FORTH_CONFIG_COMMAND / 4] &
                FORTH_STATUS_GOT_MASTER_ABORT);
    assert_int_equal(bench->delivered, 2);
    expect_bytes(bench, SOURCE, TARGET, 4);
    close_bench(bench);
}

/* FNX-19 at the NIC: a header whose size is not the packet's, or that is no header at all. */
static void test_lying_headers(void **state)
{
    (void)state;
    static const uint64_t lies[] = {UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_C(1) << 45,
                                    UINT64_C(8) << 32};
    struct bench *bench = open_bench(NULL);
    for (uint32_t i = 0; i < COUNT_OF(lies); i++) {
        struct forth_packet *packet = sim_pool_take(&bench->machine.fabric.packets);
        assert_non_null(packet);
        packet->qwords = 8;
        packet->header = forth_header_encode(
            &(struct forth_header){.node = 1, .words = 8, .destination = TARGET});
        packet->header ^= lies[i];
        packet->fate = FORTH_FATE_GOOD;
        forth_packet_seal(packet);
        bench->b->end.on_packet(&bench->b->end, packet);
    }
    run_us(bench, 20);
    assert_int_equal(bench->b->truth.delivered, 0);
    assert_int_equal(counter(bench->b, FORTH_header_alignment_errors), COUNT_OF(lies));
    assert_int_equal(sim_pool_taken(&bench->machine.fabric.packets), 0);
    add(bench, request(8));
    run_us(bench, 20);
    assert_int_equal(bench->b->truth.delivered, 1);
    close_bench(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_clusters),       cmocka_unit_test(test_enables),
        cmocka_unit_test(test_latency_timer),  cmocka_unit_test(test_splits),
        cmocka_unit_test(test_fifo_space),     cmocka_unit_test(test_notifications),
        cmocka_unit_test(test_software_reset), cmocka_unit_test(test_exact_place),
        cmocka_unit_test(test_interrupts),     cmocka_unit_test(test_cut_through),
        cmocka_unit_test(test_loopback),       cmocka_unit_test(test_backpressure),
        cmocka_unit_test(test_counters),       cmocka_unit_test(test_forced_overflow),
        cmocka_unit_test(test_sampling),       cmocka_unit_test(test_user_level_timing),
        cmocka_unit_test(test_bad_addresses),  cmocka_unit_test(test_core),
        cmocka_unit_test(test_credit_kinds),   cmocka_unit_test(test_late_delivery),
        cmocka_unit_test(test_jitter),         cmocka_unit_test(test_lying_headers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
