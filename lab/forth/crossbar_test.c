/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The crossbar loses, doubles and reorders nothing, is fair, and is as fast as its cycles
 *         say, whatever happens on the links.
 * Method  Stations that check every byte on all ports; times against the document's.
 *         Behaviours FNX-25, FNX-32 to FNX-35, FNX-37 to FNX-42, FNX-45, FNX-46.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "lab/forth/crossbar.h"
#include "lab/forth/station.h"

#define CYCLE_PS   12800u
#define LATENCY_PS (CYCLE_PS * 45 / 2)

struct world {
    struct sim sim;
    struct forth_fabric fabric;
    struct crossbar crossbar;
    uint32_t ports;
    struct station *stations;
    struct forth_link *up, *down;
};

static struct crossbar_config crossbar_config(uint32_t ports)
{
    return (struct crossbar_config){
        .ports = ports,
        .clock = sim_clock_hz(78125000),
        .sync = 3,
        .decide = 1,
        .inform = 1,
        .lead = 3,
        .change_over = 3,
        .credit = 4,
        .refresh_ps = 10000000,
        .buffer_words = 256,
        .node_words = 1023,
    };
}

static struct station_config station_config(uint32_t index, uint32_t ports)
{
    return (struct station_config){
        .index = index,
        .nodes = ports,
        .load = 1,
        .only = -1,
        .least = 1,
        .most = 62,
        .packets = UINT64_MAX,
        .crosspoint_words = 256,
        .credit = 4,
        .refresh_ps = 10000000,
    };
}

static struct world *open_world_of(const struct crossbar_config *config, int32_t ppm)
{
    const uint32_t ports = config->ports;
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    world->ports = ports;
    sim_init(&world->sim, 1);
    forth_fabric_open(&world->fabric, &world->sim, 4096, 62);
    crossbar_open(&world->crossbar, &world->fabric, config);
    world->stations = calloc(ports, sizeof(world->stations[0]));
    world->up = calloc(ports, sizeof(world->up[0]));
    world->down = calloc(ports, sizeof(world->down[0]));
    for (uint32_t i = 0; i < ports; i++) {
        forth_link_init(&world->up[i], &world->fabric, crossbar_end(&world->crossbar, i),
                        sim_clock_hz_ppm(78125000, i % 2 == 0 ? ppm : -ppm), LATENCY_PS, 1);
        forth_link_init(&world->down[i], &world->fabric, &world->stations[i].end, config->clock,
                        LATENCY_PS, 1);
        crossbar_attach(&world->crossbar, i, &world->down[i]);
    }
    return world;
}

static struct world *open_world(uint32_t ports)
{
    const struct crossbar_config config = crossbar_config(ports);
    return open_world_of(&config, 0);
}

static void close_world(struct world *world)
{
    for (uint32_t i = 0; i < world->ports; i++) {
        station_close(&world->stations[i]);
    }
    crossbar_close(&world->crossbar);
    forth_fabric_close(&world->fabric);
    free(world->stations);
    free(world->up);
    free(world->down);
    free(world);
}

static void add_station(struct world *world, const struct station_config *config)
{
    station_open(&world->stations[config->index], &world->fabric, &world->up[config->index], config,
                 1000 + config->index);
}

/* Stations that only receive. */
static void add_sinks(struct world *world, uint32_t from)
{
    for (uint32_t i = from; i < world->ports; i++) {
        struct station_config config = station_config(i, world->ports);
        config.packets = 0;
        add_station(world, &config);
    }
}

static void run_us(struct world *world, uint64_t us)
{
    sim_run_until(&world->sim, world->sim.now_ps + us * 1000000);
}

static void expect_clean(const struct world *world)
{
    for (uint32_t i = 0; i < world->ports; i++) {
        for (uint32_t from = 0; from < world->ports; from++) {
            const struct sim_sink *sink = &world->stations[i].sinks[from];
            assert_int_equal(sink->wrong_bytes, 0);
            assert_int_equal(sink->earlier, 0);
            assert_int_equal(sink->missing, 0);
        }
    }
}

static uint64_t received(const struct world *world)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < world->ports; i++) {
        sum += world->stations[i].received;
    }
    return sum;
}

/* -- Delivery -----------------------------------------------------------------------------------*/

/* FNX-37: every input to every output, itself included, in every size. */
static void test_pairs_and_sizes(void **state)
{
    (void)state;
    for (uint32_t qwords = 1; qwords <= 62; qwords++) {
        for (uint32_t shift = 0; shift < 8; shift++) {
            struct world *world = open_world(8);
            for (uint32_t i = 0; i < 8; i++) {
                struct station_config config = station_config(i, 8);
                config.only = (int)((i + shift) % 8);
                config.least = config.most = qwords;
                config.packets = 3;
                add_station(world, &config);
            }
            run_us(world, 30);
            expect_clean(world);
            for (uint32_t i = 0; i < 8; i++) {
                assert_int_equal(world->stations[i].sinks[(i + 8 - shift) % 8].good, 3);
            }
            close_world(world);
        }
    }
}

/* FNX-32, FNX-42: a million random packets: nothing lost, out of order or beyond a buffer. */
static void test_random(void **state)
{
    (void)state;
    struct world *world = open_world(8);
    for (uint32_t i = 0; i < 8; i++) {
        struct station_config config = station_config(i, 8);
        config.packets = 125000;
        add_station(world, &config);
    }
    for (int i = 0; i < 400 && received(world) < 1000000; i++) {
        run_us(world, 1000);
    }
    assert_int_equal(received(world), 1000000);
    expect_clean(world);
    uint64_t in = 0, out = 0;
    for (uint32_t i = 0; i < 64; i++) {
        assert_in_range(world->crossbar.points[i].peak, 0, 256);
    }
    for (uint32_t i = 0; i < 8; i++) {
        in += world->crossbar.ports[i].words_in;
        out += world->crossbar.ports[i].words_out;
    }
    assert_int_equal(in, out); /* FNX-44: as many words have left as were accepted. */
    close_world(world);
}

/* FNX-46: other sizes of the switch; one hot output takes nothing from the others. */
static void check_hot_output(uint32_t ports)
{
    struct world *world = open_world(ports);
    const uint32_t half = ports / 2;
    for (uint32_t i = 0; i < ports; i++) {
        struct station_config config = station_config(i, ports);
        config.only = i < half ? 0 : (int)i; /* Half of them to output 0, half undisturbed. */
        config.least = config.most = 62;
        add_station(world, &config);
    }
    run_us(world, 2000);
    expect_clean(world);
    const uint64_t alone = world->stations[ports - 1].received;
    assert_in_range(alone, 1100, 1250);
    for (uint32_t i = half; i < ports; i++) {
        assert_in_range(world->stations[i].received, alone - 2, alone + 2);
    }
    assert_in_range(world->stations[0].received, 1100, 1250);
    close_world(world);
}

static void test_hot_output(void **state)
{
    (void)state;
    check_hot_output(10);
    check_hot_output(32);
    check_hot_output(64);
}

/* FNX-45: clocks that differ by 200 ppm move nothing but time. */
static void test_drift(void **state)
{
    (void)state;
    const struct crossbar_config config = crossbar_config(8);
    struct world *world = open_world_of(&config, 100);
    for (uint32_t i = 0; i < 8; i++) {
        struct station_config station = station_config(i, 8);
        station.packets = 2000;
        add_station(world, &station);
    }
    run_us(world, 10000);
    expect_clean(world);
    assert_int_equal(received(world), 16000);
    close_world(world);
}

/* -- Times --------------------------------------------------------------------------------------*/

/* FNX-38: five cycles from a packet's head to the output, for the smallest and the largest. */
static void test_cut_through(void **state)
{
    (void)state;
    for (uint32_t qwords = 1; qwords <= 62; qwords += 61) {
        struct world *world = open_world(8);
        struct station_config config = station_config(0, 8);
        config.only = 5;
        config.least = config.most = qwords;
        config.packets = 1;
        add_station(world, &config);
        add_sinks(world, 1);
        run_us(world, 20);
        assert_int_equal(world->stations[5].received, 1);
        assert_int_equal(world->crossbar.flight_ps_last, (1 + 5) * CYCLE_PS);
        close_world(world);
    }
}

/* Idle cycles between the packets of `senders` crosspoints, which fill, then empty at once. */
static uint64_t idle_between(const struct crossbar_config *config, uint32_t senders)
{
    struct world *world = open_world_of(config, 0);
    for (uint32_t i = 0; i < senders; i++) {
        struct station_config station = station_config(i, 4);
        station.only = 3;
        station.least = station.most = 20;
        station.packets = 11;
        add_station(world, &station);
    }
    add_sinks(world, senders);
    struct crossbar_port *port = &world->crossbar.ports[3];
    port->window.buffer = 0;
    run_us(world, 50);
    port->window.buffer = 1023;
    run_us(world, 200);
    assert_int_equal(port->packets_out, 11 * senders);
    assert_int_equal(port->gap_ps % CYCLE_PS, 0);
    const uint64_t cycles = port->gap_ps / CYCLE_PS;
    close_world(world);
    return cycles;
}

/* FNX-41: no gap within a crosspoint, the configured one between two. */
static void test_gaps(void **state)
{
    (void)state;
    const struct crossbar_config config = crossbar_config(4);
    assert_int_equal(idle_between(&config, 1), 0);
    assert_int_equal(idle_between(&config, 2), 3 * 21);
}

/* FNX-41: a choice takes its time. A choice that begins too late leaves the link idle, for the same
 * time before each packet but the first. */
static void test_late_choice(void **state)
{
    (void)state;
    static const struct {
        uint32_t lead, decide, inform, idle;
    } cases[] = {{0, 1, 1, 2}, {1, 1, 1, 1}, {2, 1, 1, 0},
                 {6, 1, 1, 0}, {3, 3, 1, 1}, {3, 5, 5, 7}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct crossbar_config config = crossbar_config(4);
        config.lead = cases[i].lead;
        config.decide = cases[i].decide;
        config.inform = cases[i].inform;
        assert_int_equal(idle_between(&config, 1), cases[i].idle * 10);
    }
    /* The choice hides in a longer gap between two crosspoints. */
    struct crossbar_config config = crossbar_config(4);
    config.lead = 0;
    assert_int_equal(idle_between(&config, 2), 3 * 21);
}

/* -- Fairness -----------------------------------------------------------------------------------*/

/* FNX-39: equal shares; a newcomer waits for no more than one packet of each other. */
static void test_round_robin(void **state)
{
    (void)state;
    static const uint32_t counts[] = {3, 4, 8};
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t senders = counts[k];
        struct world *world = open_world(8);
        for (uint32_t i = 0; i < senders; i++) {
            struct station_config config = station_config(i, 8);
            config.only = 7;
            config.least = config.most = 62;
            add_station(world, &config);
        }
        add_sinks(world, senders);
        run_us(world, 3000);
        expect_clean(world);
        const uint64_t share = world->stations[7].received / senders;
        assert_in_range(share, 100, 2000);
        for (uint32_t i = 0; i < senders; i++) {
            assert_in_range(world->stations[7].sinks[i].good, share - 1, share + 1);
        }
        close_world(world);
    }
}

/* FNX-39: without round robin the lowest input starves the others. */
static void test_fixed_arbiter(void **state)
{
    (void)state;
    struct crossbar_config config = crossbar_config(4);
    config.arbiter = FORTH_ARBITER_fixed;
    struct world *world = open_world_of(&config, 0);
    for (uint32_t i = 0; i < 3; i++) {
        struct station_config station = station_config(i, 4);
        station.only = 3;
        station.least = station.most = 62;
        add_station(world, &station);
    }
    add_sinks(world, 3);
    run_us(world, 3000);
    expect_clean(world);
    const struct sim_sink *sinks = world->stations[3].sinks;
    assert_in_range(sinks[0].good, 1500, 2000);
    assert_in_range(sinks[1].good + sinks[2].good, 0, 100);
    close_world(world);
}

static void test_newcomer(void **state)
{
    (void)state;
    struct world *world = open_world(8);
    for (uint32_t i = 0; i < 8; i++) {
        struct station_config config = station_config(i, 8);
        config.only = 7;
        config.least = config.most = 62;
        config.packets = i == 7 ? 1 : UINT64_MAX;
        add_station(world, &config);
    }
    world->stations[7].flows[7].window.buffer = 0; /* The newcomer is held back. */
    run_us(world, 500);
    assert_int_equal(world->crossbar.ports[7].packets_in, 0);
    world->stations[7].flows[7].window.buffer = 256;
    while (world->crossbar.ports[7].packets_in == 0) {
        sim_step(&world->sim);
    }
    const uint64_t arrived = world->crossbar.ports[7].packets_out;
    while (!list_empty(&world->crossbar.points[7 * 8 + 7].packets)) {
        sim_step(&world->sim);
    }
    assert_in_range(world->crossbar.ports[7].packets_out - arrived, 1, 8);
    close_world(world);
}

/* FNX-40: shares are counted in packets, not in bytes. */
static void test_shares_of_packets(void **state)
{
    (void)state;
    struct world *world = open_world(4);
    for (uint32_t i = 0; i < 2; i++) {
        struct station_config config = station_config(i, 4);
        config.only = 3;
        config.least = config.most = i == 0 ? 62 : 30;
        add_station(world, &config);
    }
    add_sinks(world, 2);
    run_us(world, 3000);
    const struct station *sink = &world->stations[3];
    assert_in_range(sink->sinks[0].good, 500, 5000);
    assert_in_range(sink->sinks[1].good, sink->sinks[0].good - 1, sink->sinks[0].good + 1);
    close_world(world);
}

/* FNX-34: what waits for one output takes no room from another. */
static void test_windows_apart(void **state)
{
    (void)state;
    struct world *world = open_world(4);
    struct station_config config = station_config(0, 4);
    add_station(world, &config);
    add_sinks(world, 1);
    world->crossbar.ports[1].window.buffer = 0; /* Its node takes nothing. */
    run_us(world, 2000);
    assert_int_equal(world->stations[1].received, 0);
    assert_in_range(crossbar_point(&world->crossbar, 0, 1)->words, 256 - 64, 256);
    assert_in_range(world->stations[2].received, 900, 3000);
    assert_in_range(world->stations[3].received, 900, 3000);
    close_world(world);
}

/* FNX-32: senders that do not wait for credit overflow a crosspoint: the packets without room are
 * counted, and the others are whole. */
static void test_no_flow_control(void **state)
{
    (void)state;
    struct world *world = open_world(4);
    for (uint32_t i = 0; i < 3; i++) {
        struct station_config config = station_config(i, 4);
        config.only = 3;
        config.crosspoint_words = FORTH_BUFFER_UNBOUNDED;
        add_station(world, &config);
    }
    add_sinks(world, 3);
    run_us(world, 1000);
    for (uint32_t i = 0; i < 3; i++) {
        const struct crossbar_port *port = &world->crossbar.ports[i];
        assert_in_range(crossbar_point(&world->crossbar, i, 3)->peak, 257, 512);
        assert_in_range(port->overflows, 100, 100000);
        assert_int_equal(port->overflows, port->discarded);
        assert_int_equal(world->stations[3].sinks[i].wrong_bytes, 0);
        assert_int_equal(world->stations[3].sinks[i].earlier, 0);
        assert_in_range(world->stations[3].sinks[i].missing, 100, port->overflows);
    }
    close_world(world);
}

/* -- Errors -------------------------------------------------------------------------------------*/

static void add_errors(struct world *world, double bits, uint32_t credits_millionths)
{
    for (uint32_t i = 0; i < world->ports; i++) {
        sim_errors_init(&world->up[i].errors, 2 * i, bits, credits_millionths);
        sim_errors_init(&world->down[i].errors, 2 * i + 1, bits, credits_millionths);
    }
}

/* When everything is delivered, a window may still count less than a credit's granularity as
 * outstanding. If it counts more, words have leaked. */
static void expect_no_leak(const struct world *world)
{
    for (uint32_t i = 0; i < world->ports; i++) {
        for (uint32_t to = 0; to < world->ports; to++) {
            const struct forth_window *window = &world->stations[i].flows[to].window;
            assert_in_range((window->sent - window->forwarded) & FORTH_COUNTER_MASK, 0, 31);
        }
        const struct forth_window *node = &world->crossbar.ports[i].window;
        assert_in_range((node->sent - node->forwarded) & FORTH_COUNTER_MASK, 0, 31);
    }
}

/* FNX-33: lost and corrupted credits stop nothing; repetition makes up for them. */
static void test_lost_credits(void **state)
{
    (void)state;
    struct world *world = open_world(8);
    add_errors(world, 0, 10000);
    for (uint32_t i = 0; i < 8; i++) {
        struct station_config config = station_config(i, 8);
        config.packets = 5000;
        add_station(world, &config);
    }
    for (int i = 0; i < 400 && received(world) < 40000; i++) {
        run_us(world, 100);
    }
    assert_int_equal(received(world), 40000);
    expect_clean(world);
    run_us(world, 2000);
    expect_no_leak(world);
    close_world(world);
}

/* FNX-25, FNX-35: bit errors: a flagged packet was wrong, a discarded one leaks no window. The
 * switch makes a header CRC anew, but not a body CRC. */
static void test_bit_errors(void **state)
{
    (void)state;
    struct world *world = open_world(8);
    uint64_t good = 0, flagged = 0, discarded = 0, bad_bodies = 0, bad_before = 0, bad_heads = 0;
    add_errors(world, 2e-6, 1000);
    for (uint32_t i = 0; i < 8; i++) {
        struct station_config config = station_config(i, 8);
        config.packets = 10000;
        add_station(world, &config);
    }
    run_us(world, 30000);
    for (uint32_t i = 0; i < 8; i++) {
        const struct station *station = &world->stations[i];
        assert_true(station_done(station));
        flagged += station->flagged;
        discarded += station->header_errors + world->crossbar.ports[i].discarded;
        bad_bodies += world->up[i].bad_bodies + world->down[i].bad_bodies;
        bad_before += world->down[i].bad_before;
        bad_heads += world->up[i].bad_headers + world->up[i].bad_sops + world->down[i].bad_headers +
                     world->down[i].bad_sops;
        for (uint32_t k = 0; k < 8; k++) {
            assert_int_equal(station->sinks[k].wrong_bytes, 0);
            assert_int_equal(station->sinks[k].earlier, 0);
            good += station->sinks[k].good;
        }
    }
    assert_in_range(flagged, 100, bad_bodies);
    assert_int_equal(flagged, bad_bodies - bad_before);
    assert_int_equal(discarded, bad_heads);
    assert_int_equal(good + flagged + discarded, 80000);
    expect_no_leak(world);
    close_world(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_and_sizes), cmocka_unit_test(test_random),
        cmocka_unit_test(test_hot_output),      cmocka_unit_test(test_drift),
        cmocka_unit_test(test_cut_through),     cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_late_choice),     cmocka_unit_test(test_fixed_arbiter),
        cmocka_unit_test(test_no_flow_control), cmocka_unit_test(test_round_robin),
        cmocka_unit_test(test_newcomer),        cmocka_unit_test(test_shares_of_packets),
        cmocka_unit_test(test_windows_apart),   cmocka_unit_test(test_lost_credits),
        cmocka_unit_test(test_bit_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
