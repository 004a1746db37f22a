/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Crossbars, links and routers together lose nothing, lock up never, and keep the packets
 *         of each path in order. Behaviours EXA-60, EXA-63.
 * Method  Four QFDBs of four FPGAs each in a 2 x 2 torus; four random sources per FPGA send to all
 *         blocks of all FPGAs; sinks that take when they like.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "hardware/exanest/crossbar.h"
#include "hardware/exanest/test_torus.h"

enum {
    FPGAS = 16,
    SOURCES = 4, /* Per FPGA. */
    LINK_WORDS = 64,
    LINK_DELAY = 30,
    KINDS = 16, /* Memory, and the peripherals 0..14. */
};

/* A link inside a QFDB: a FIFO that a word needs some cycles through. */
struct link {
    uint32_t head, count;
    struct exanest_beat beats[LINK_WORDS];
    uint64_t when[LINK_WORDS];
};

struct fpga {
    struct exanest_routing routing;
    struct exanest_crossbar crossbar;
    uint16_t offered;
    struct exanest_offer offers[EXANEST_PORTS_MAX];
    struct link links[EXANEST_FPGAS]; /* To here, by the other one. */
    struct test_packet packets[SOURCES];
    uint32_t at[SOURCES];
    struct torus_sink sinks[EXANEST_PORTS_MAX];
};

struct world {
    struct prng prng;
    struct torus *torus;
    struct fpga fpgas[FPGAS];
    uint16_t next[256][256], expected[256][256];
    uint64_t sent, received;
    uint32_t sink_percent, source_percent;
    bool over;
};

static const uint8_t source_ports[SOURCES] = {8, 10, 12, 15};
/* Where packets of each kind have to come out. */
static const uint8_t kind_ports[KINDS] = {8,  9,  9,  11, 10, 8,  12, 13,
                                          13, 13, 13, 13, 14, 14, 14, 14};

static struct exanest_place place_of(uint32_t fpga)
{
    static const uint8_t size[3] = {2, 2, 1};
    return torus_place(size, fpga / 4, (uint8_t)(fpga % 4));
}

static struct exanest_target target_of(struct world *world, uint32_t to)
{
    const uint32_t kind = to % KINDS, low = (uint32_t)prng_next(&world->prng);
    return (struct exanest_target){
        exanest_coordinate(place_of(to / KINDS)),
        kind == 0 ? low : exanest_peripheral_va((enum exanest_peripheral)(kind - 1), low),
    };
}

static struct world *world_new(uint64_t seed, bool one_port, uint8_t slots)
{
    struct world *world = calloc(1, sizeof(*world));
    struct exanest_router_config config = exanest_router_default(0, 0, 2, 2);
    const struct exanest_crossbar_config crossbar = exanest_crossbar_default();
    prng_init(&world->prng, seed);
    config.one_local_port = one_port;
    config.local_slots = config.remote_slots = slots;
    config.latency = 20;
    world->torus = torus_new(config, 20);
    world->source_percent = world->sink_percent = 100;
    for (uint32_t i = 0; i < FPGAS; i++) {
        struct exanest_routing_config routing = exanest_routing_default(place_of(i));
        routing.one_router_port = one_port;
        exanest_routing_init(&world->fpgas[i].routing, &routing);
        exanest_crossbar_init(&world->fpgas[i].crossbar, &crossbar);
    }
    return world;
}

/* -- In: words at the crossbar's inputs ---------------------------------------------------------*/

static bool source_offer(struct world *world, uint32_t number, uint32_t source,
                         struct exanest_beat *beat)
{
    struct fpga *fpga = &world->fpgas[number];
    if (fpga->at[source] == fpga->packets[source].count) {
        if (world->over || prng_below(&world->prng, 100) >= world->source_percent) {
            return false;
        }
        const uint32_t from = number * SOURCES + source;
        const uint32_t to = (uint32_t)prng_below(&world->prng, FPGAS * KINDS);
        const struct torus_flow flow = {from, to, world->next[from][to]++};
        fpga->packets[source] = torus_packet(target_of(world, to), torus_number(flow));
        fpga->at[source] = 0;
        world->sent++;
    }
    *beat = fpga->packets[source].beats[fpga->at[source]];
    return true;
}

static bool input_offer(struct world *world, uint32_t number, uint32_t port,
                        struct exanest_beat *beat)
{
    struct fpga *fpga = &world->fpgas[number];
    if (port < EXANEST_FPGAS) {
        const struct link *link = &fpga->links[port];
        const uint32_t at = link->head % LINK_WORDS;
        *beat = link->beats[at];
        return link->count > 0 && link->when[at] <= world->torus->now;
    }
    if (port < 8) {
        return number % 4 == 0 &&
               exanest_router_offer(&world->torus->routers[number / 4], port - 4, beat);
    }
    for (uint32_t source = 0; source < SOURCES; source++) {
        if (source_ports[source] == port) {
            return source_offer(world, number, source, beat);
        }
    }
    return false;
}

static void input_taken(struct world *world, uint32_t number, uint32_t port)
{
    struct fpga *fpga = &world->fpgas[number];
    if (port < EXANEST_FPGAS) {
        fpga->links[port].head++;
        fpga->links[port].count--;
    } else if (port < 8) {
        exanest_router_taken(&world->torus->routers[number / 4], port - 4);
    } else {
        for (uint32_t source = 0; source < SOURCES; source++) {
            fpga->at[source] += source_ports[source] == port;
        }
    }
}

static void collect_offers(struct world *world, uint32_t number)
{
    struct fpga *fpga = &world->fpgas[number];
    for (uint32_t port = 0; port < EXANEST_PORTS_MAX; port++) {
        struct exanest_offer *offer = &fpga->offers[port];
        if ((fpga->offered >> port & 1) != 0 || !input_offer(world, number, port, &offer->beat)) {
            continue;
        }
        fpga->offered |= (uint16_t)(1u << port);
        if (offer->beat.part == EXANEST_HEADER) {
            const struct exanest_route route =
                exanest_route_word(&fpga->routing, port, offer->beat.word);
            assert_int_equal(route.verdict, EXANEST_ROUTE_GOOD);
            offer->output = route.port;
        }
    }
}

/* -- Out ----------------------------------------------------------------------------------------*/

static bool link_take(struct world *world, struct link *link, const struct exanest_beat *beat)
{
    const uint32_t room = beat->part == EXANEST_HEADER ? EXANEST_PACKET_WORDS_MAX : 1;
    if (link->count + room > LINK_WORDS) {
        return false;
    }
    const uint32_t at = (link->head + link->count++) % LINK_WORDS;
    link->beats[at] = *beat;
    link->when[at] = world->torus->now + LINK_DELAY;
    return true;
}

static bool sink_take(struct world *world, uint32_t number, uint32_t port,
                      const struct exanest_beat *beat)
{
    struct torus_sink *sink = &world->fpgas[number].sinks[port];
    if (prng_below(&world->prng, 100) >= world->sink_percent) {
        return false;
    }
    if (torus_sink(sink, beat)) {
        const struct torus_flow flow = torus_flow(sink->number);
        assert_int_equal(flow.to / KINDS, number);
        assert_int_equal(kind_ports[flow.to % KINDS], port);
        assert_int_equal(flow.sequence, world->expected[flow.from][flow.to]++ & 0x3fff);
        world->received++;
    }
    return true;
}

static bool output_take(struct world *world, uint32_t number, uint32_t port,
                        const struct exanest_beat *beat)
{
    if (port < EXANEST_FPGAS) {
        assert_int_not_equal(port, number % 4); /* The dead port. */
        return link_take(world, &world->fpgas[number / 4 * 4 + port].links[number % 4], beat);
    }
    if (port >= 8) {
        return sink_take(world, number, port, beat);
    }
    struct exanest_router *router = &world->torus->routers[number / 4];
    assert_int_equal(number % 4, 0);
    if (!exanest_router_ready(router, port - 4, beat)) {
        return false;
    }
    exanest_router_take(router, port - 4, beat);
    return true;
}

static void run_fpga(struct world *world, uint32_t number)
{
    struct fpga *fpga = &world->fpgas[number];
    uint16_t ready = 0;
    for (uint32_t shown = exanest_crossbar_shown(&fpga->crossbar); shown != 0; shown &= shown - 1) {
        const uint32_t port = (uint32_t)__builtin_ctz(shown);
        const struct exanest_beat *beat = exanest_crossbar_beat(&fpga->crossbar, port);
        ready |= (uint16_t)(output_take(world, number, port, beat) << port);
    }
    collect_offers(world, number);
    uint32_t taken = exanest_crossbar_step(&fpga->crossbar, fpga->offered, fpga->offers, ready);
    fpga->offered &= (uint16_t)~taken;
    for (; taken != 0; taken &= taken - 1) {
        input_taken(world, number, (uint32_t)__builtin_ctz(taken));
    }
}

static void run(struct world *world, uint32_t cycles)
{
    for (uint32_t cycle = 0; cycle < cycles; cycle++) {
        torus_cycle(world->torus);
        for (uint32_t number = 0; number < FPGAS; number++) {
            run_fpga(world, number);
        }
    }
}

static void run_world(uint64_t seed, bool one_port, uint8_t slots, uint32_t source_percent,
                      uint32_t sink_percent)
{
    struct world *world = world_new(seed, one_port, slots);
    world->source_percent = source_percent;
    world->sink_percent = sink_percent;
    run(world, 60000);
    assert_true(world->received > 3000);
    world->over = true;
    for (uint32_t i = 0; i < 100 && world->received < world->sent; i++) {
        const uint64_t before = world->received;
        run(world, 3000);
        assert_true(world->received > before); /* If not, it has locked up. */
    }
    assert_int_equal(world->received, world->sent);
    run(world, 200);
    for (uint32_t number = 0; number < FPGAS; number++) {
        assert_true(exanest_crossbar_idle(&world->fpgas[number].crossbar));
        assert_int_equal(world->fpgas[number].crossbar.counters.dropped, 0);
        assert_true(number >= 4 || exanest_router_idle(&world->torus->routers[number]));
    }
    torus_free(world->torus);
    free(world);
}

/* EXA-63: as fast as it goes, one slot per lane, slow sinks, hardly any traffic. */
static void test_all_to_all(void **state)
{
    (void)state;
    run_world(1, false, 8, 100, 100);
    run_world(2, false, 1, 100, 100);
    run_world(3, false, 2, 100, 30);
    run_world(4, false, 8, 2, 90);
}

/* EXA-63: all by one port of the router (EXA-A13). */
static void test_one_port(void **state)
{
    (void)state;
    run_world(5, true, 8, 100, 100);
    run_world(6, true, 1, 100, 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_to_all),
        cmocka_unit_test(test_one_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
