/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Words take two cycles, packets leave two idle cycles between them, an output serves its
 *         inputs in turn and one packet at a time, and nothing is lost or taken twice. Behaviours
 *         EXA-59, EXA-64.
 * Method  Cycles counted by hand; random packets of all shapes, pauses and readiness beside a
 *         model that looks at every port in every cycle.
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
#include "hardware/exanest/test_packet.h"

/* A source of packets at an input; a beat that is shown stays shown. */
struct source {
    struct test_packet packet;
    uint32_t at;
    uint8_t output;
    bool shows;
};

static void load(struct source *source, uint32_t words, uint8_t output, uint32_t number)
{
    *source = (struct source){
        .packet = test_packet((struct exanest_target){0}, words, number),
        .output = output,
    };
}

static struct exanest_offer offer_of(const struct source *source)
{
    return (struct exanest_offer){source->packet.beats[source->at],
                                  source->at == 0 ? source->output : 0xaa};
}

static void init(struct exanest_crossbar *crossbar, uint8_t latency, uint8_t idle)
{
    struct exanest_crossbar_config config = exanest_crossbar_default();
    config.latency = latency;
    config.idle = idle;
    exanest_crossbar_init(crossbar, &config);
}

/* EXA-59: a packet after the other from one input to one output that always takes. */
static void follow_packets(uint8_t latency, uint8_t idle, uint32_t words)
{
    struct exanest_crossbar crossbar;
    struct exanest_offer offers[EXANEST_PORTS_MAX];
    struct source source;
    uint32_t taken = 0, delivered = 0;
    init(&crossbar, latency, idle);
    load(&source, words, 7, 0);
    for (uint32_t cycle = 0; cycle < 400; cycle++) {
        const uint32_t period = words + idle;
        if (exanest_crossbar_shown(&crossbar) != 0) {
            assert_int_equal(exanest_crossbar_shown(&crossbar), 1 << 7);
            assert_int_equal(cycle, latency + delivered / words * period + delivered % words);
            const struct exanest_beat *beat = exanest_crossbar_beat(&crossbar, 7);
            const struct test_packet expected =
                test_packet((struct exanest_target){0}, words, delivered / words);
            assert_true(test_beat_equal(beat, &expected.beats[delivered % words]));
            delivered++;
        }
        offers[3] = offer_of(&source);
        if (exanest_crossbar_step(&crossbar, 1 << 3, offers, 0xffff) != 0) {
            assert_int_equal(cycle, taken / words * period + taken % words);
            taken++;
            if (++source.at == words) {
                load(&source, words, 7, taken / words);
            }
        }
    }
    assert_true(delivered > 40);
    assert_int_equal(crossbar.counters.words, taken);
}

static void test_cycles(void **state)
{
    (void)state;
    static const uint32_t shapes[] = {1, 2, 3, 4, 18};
    for (uint32_t i = 0; i < COUNT_OF(shapes); i++) {
        follow_packets(EXANEST_CROSSBAR_LATENCY, EXANEST_CROSSBAR_IDLE, shapes[i]);
        follow_packets(1, 0, shapes[i]);
        follow_packets(2, 4, shapes[i]);
        follow_packets(7, 8, shapes[i]);
    }
}

/* EXA-64: four senders of equal packets, and four of packets of random lengths. */
static void share_output(bool equal)
{
    struct exanest_crossbar crossbar;
    struct exanest_offer offers[EXANEST_PORTS_MAX];
    static const uint32_t inputs[] = {8, 0, 15, 3};
    struct source sources[4];
    uint64_t words[4] = {0}, all = 0;
    struct prng prng;
    prng_init(&prng, 1);
    init(&crossbar, 2, 2);
    for (uint32_t i = 0; i < 4; i++) {
        load(&sources[i], 18, 1, i);
    }
    for (uint32_t cycle = 0; cycle < 200000; cycle++) {
        uint32_t offered = 0;
        for (uint32_t i = 0; i < 4; i++) {
            offers[inputs[i]] = offer_of(&sources[i]);
            offered |= 1u << inputs[i];
        }
        const uint32_t taken = exanest_crossbar_step(&crossbar, offered, offers, 0xffff);
        for (uint32_t i = 0; i < 4; i++) {
            if ((taken >> inputs[i] & 1) == 0) {
                continue;
            }
            words[i]++;
            all++;
            if (++sources[i].at == sources[i].packet.count) {
                const uint32_t drawn = 1 + (uint32_t)prng_below(&prng, 18);
                load(&sources[i], equal ? 18 : drawn, 1, i);
            }
        }
    }
    for (uint32_t i = 0; i < 4; i++) {
        assert_in_range(words[i] * 400, all * 95, all * 105);
    }
}

static void test_fairness(void **state)
{
    (void)state;
    share_output(true);
    share_output(false);
}

/* -- The model: everything is looked at in every cycle ------------------------------------------*/

struct model_output {
    bool full[8];
    struct exanest_beat registers[8];
    int owner, last;
    uint32_t rest;
};

struct model {
    uint32_t ports, latency, idle;
    struct model_output outputs[EXANEST_PORTS_MAX];
    int output_of[EXANEST_PORTS_MAX]; /* -1: between packets; NO_PORT: dropped. */
};

static void model_init(struct model *model, uint32_t ports, uint32_t latency, uint32_t idle)
{
    *model = (struct model){.ports = ports, .latency = latency, .idle = idle};
    for (uint32_t i = 0; i < EXANEST_PORTS_MAX; i++) {
        model->outputs[i].owner = -1;
        model->outputs[i].last = EXANEST_PORTS_MAX - 1;
        model->output_of[i] = -1;
    }
}

/* The input whose word enters the first register of this output; -1: none. */
static int model_choose(const struct model *model, uint32_t o, uint32_t offered,
                        const struct exanest_offer offers[])
{
    const struct model_output *output = &model->outputs[o];
    if (output->owner >= 0) {
        return (offered >> output->owner & 1) != 0 ? output->owner : -1;
    }
    for (uint32_t i = 1; i <= EXANEST_PORTS_MAX && output->rest == 0; i++) {
        const uint32_t input = ((uint32_t)output->last + i) % EXANEST_PORTS_MAX;
        if ((offered >> input & 1) != 0 && model->output_of[input] == -1 &&
            offers[input].output == o) {
            return (int)input;
        }
    }
    return -1;
}

static bool model_stalled(const struct model *model, uint32_t o, uint32_t ready)
{
    return model->outputs[o].full[model->latency - 1] && (ready >> o & 1) == 0;
}

static uint32_t model_output_step(struct model *model, uint32_t o, int chosen,
                                  const struct exanest_offer offers[])
{
    struct model_output *output = &model->outputs[o];
    for (uint32_t i = model->latency - 1; i > 0; i--) {
        output->full[i] = output->full[i - 1];
        output->registers[i] = output->registers[i - 1];
    }
    output->full[0] = chosen >= 0;
    output->rest -= output->rest > 0;
    if (chosen < 0) {
        return 0;
    }
    output->registers[0] = offers[chosen].beat;
    output->last = chosen;
    output->owner = output->registers[0].last ? -1 : chosen;
    model->output_of[chosen] = output->registers[0].last ? -1 : (int)o;
    output->rest = output->registers[0].last ? model->idle : 0;
    return 1u << chosen;
}

static uint32_t model_step(struct model *model, uint32_t offered,
                           const struct exanest_offer offers[], uint32_t ready)
{
    uint32_t taken = 0;
    int chosen[EXANEST_PORTS_MAX];
    for (uint32_t o = 0; o < model->ports; o++) {
        chosen[o] = model_choose(model, o, offered, offers);
    }
    for (uint32_t input = 0; input < model->ports; input++) {
        const bool is_offered = (offered >> input & 1) != 0;
        const bool is_first = model->output_of[input] == -1;
        if (is_offered && (is_first ? offers[input].output == EXANEST_NO_PORT
                                    : model->output_of[input] == EXANEST_NO_PORT)) {
            model->output_of[input] = offers[input].beat.last ? -1 : (int)EXANEST_NO_PORT;
            taken |= 1u << input;
        }
    }
    for (uint32_t o = 0; o < model->ports; o++) {
        if (!model_stalled(model, o, ready)) {
            taken |= model_output_step(model, o, chosen[o], offers);
        }
    }
    return taken;
}

/* -- Random traffic beside the model ------------------------------------------------------------*/

struct world {
    struct prng prng;
    struct exanest_crossbar crossbar;
    struct model model;
    struct source sources[EXANEST_PORTS_MAX];
    struct exanest_offer offers[EXANEST_PORTS_MAX];
    uint32_t numbers, outputs; /* Packets begun; outputs that are chosen. */
    uint32_t busy_percent, ready_percent;
    uint64_t delivered;
};

static bool percent(struct world *world, uint32_t chance)
{
    return prng_below(&world->prng, 100) < chance;
}

static uint32_t draw_offers(struct world *world)
{
    uint32_t offered = 0;
    for (uint32_t i = 0; i < world->model.ports; i++) {
        struct source *source = &world->sources[i];
        if (!source->shows && percent(world, world->busy_percent)) {
            if (source->at == source->packet.count) {
                const bool is_stray = percent(world, 5);
                const uint32_t output = (uint32_t)prng_below(&world->prng, world->outputs);
                load(source, 1 + (uint32_t)prng_below(&world->prng, 18),
                     (uint8_t)(is_stray ? EXANEST_NO_PORT : output), world->numbers++);
            }
            source->shows = true;
        }
        if (source->shows) {
            world->offers[i] = offer_of(source);
            offered |= 1u << i;
        }
    }
    return offered;
}

static void compare_outputs(struct world *world, uint32_t ready)
{
    const uint32_t shown = exanest_crossbar_shown(&world->crossbar);
    for (uint32_t o = 0; o < EXANEST_PORTS_MAX; o++) {
        const struct model_output *output = &world->model.outputs[o];
        const uint32_t end = world->model.latency - 1;
        assert_int_equal(shown >> o & 1, output->full[end]);
        if (output->full[end]) {
            assert_true(test_beat_equal(exanest_crossbar_beat(&world->crossbar, o),
                                        &output->registers[end]));
            world->delivered += ready >> o & 1;
        }
    }
}

static void run_cycle(struct world *world)
{
    const uint32_t offered = draw_offers(world);
    uint32_t ready = 0;
    for (uint32_t o = 0; o < EXANEST_PORTS_MAX; o++) {
        ready |= (uint32_t)percent(world, world->ready_percent) << o;
    }
    compare_outputs(world, ready);
    const uint32_t expected = model_step(&world->model, offered, world->offers, ready);
    const uint32_t taken = exanest_crossbar_step(&world->crossbar, offered, world->offers, ready);
    assert_int_equal(taken, expected);
    for (uint32_t i = 0; i < EXANEST_PORTS_MAX; i++) {
        if ((taken >> i & 1) != 0) {
            world->sources[i].shows = false;
            world->sources[i].at++;
        }
    }
}

/* EXA-59 */
static void test_random(void **state)
{
    (void)state;
    struct world *world = calloc(1, sizeof(*world));
    for (uint32_t seed = 1; seed <= 60; seed++) {
        memset(world, 0, sizeof(*world));
        prng_init(&world->prng, seed);
        struct exanest_crossbar_config config = {
            .ports = (uint8_t)(1 + prng_below(&world->prng, EXANEST_PORTS_MAX)),
            .latency = (uint8_t)(1 + prng_below(&world->prng, 7)),
            .idle = (uint8_t)prng_below(&world->prng, 9),
        };
        config = seed % 2 == 0 ? exanest_crossbar_default() : config;
        exanest_crossbar_init(&world->crossbar, &config);
        model_init(&world->model, config.ports, config.latency, config.idle);
        world->outputs = 1 + (uint32_t)prng_below(&world->prng, config.ports);
        world->busy_percent = seed % 3 == 0 ? 100 : 1 + (uint32_t)prng_below(&world->prng, 99);
        world->ready_percent = seed % 5 == 0 ? 100 : 20 + (uint32_t)prng_below(&world->prng, 80);
        for (uint32_t cycle = 0; cycle < 4000; cycle++) {
            run_cycle(world);
        }
        /* Packets that were begun come to their end, and then nothing is left to do. */
        world->ready_percent = 100;
        world->busy_percent = 0;
        for (uint32_t cycle = 0; cycle < 3000; cycle++) {
            for (uint32_t i = 0; i < config.ports; i++) {
                struct source *source = &world->sources[i];
                source->shows |= source->at > 0 && source->at < source->packet.count;
            }
            run_cycle(world);
        }
        assert_true(exanest_crossbar_idle(&world->crossbar));
        assert_int_equal(world->delivered, world->crossbar.counters.words);
        assert_int_equal(world->numbers,
                         world->crossbar.counters.packets + world->crossbar.counters.discarded);
    }
    free(world);
}

/* A packet for no port is taken at a word per cycle, and holds nobody up. */
static void test_discard(void **state)
{
    (void)state;
    struct exanest_crossbar crossbar;
    struct exanest_offer offers[EXANEST_PORTS_MAX];
    struct source source;
    init(&crossbar, 2, 2);
    load(&source, 18, EXANEST_NO_PORT, 5);
    for (source.at = 0; source.at < 18; source.at++) {
        offers[2] = offer_of(&source);
        assert_int_equal(exanest_crossbar_step(&crossbar, 1 << 2, offers, 0), 1 << 2);
        assert_int_equal(exanest_crossbar_shown(&crossbar), 0);
    }
    assert_true(exanest_crossbar_idle(&crossbar));
    assert_int_equal(crossbar.counters.discarded, 1);
    assert_int_equal(crossbar.counters.dropped, 18);
    assert_int_equal(crossbar.counters.packets, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_fairness),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_discard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
