/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/bench.h"

#include <string.h>

#include "base/check.h"

#define FIRST_SOURCE 1u /* An input. */

static void on_edge(struct sim *sim, struct sim_event *event);

/* The packet that all sources send. */
static void make_packet(struct exanest_bench *bench)
{
    const uint32_t words = bench->config.words;
    const struct exanest_header header = {
        .type = words == 1 ? EXANEST_ACKNOWLEDGEMENT : EXANEST_WRITE,
        .bytes = (uint16_t)(words < 3 ? 0 : (words - 2) * EXANEST_WORD_BYTES),
        .has_footer = words > 1,
    };
    const struct exanest_footer footer = {.first = true, .last = true};
    for (uint32_t i = 0; i < words; i++) {
        bench->beats[i] = (struct exanest_beat){.part = EXANEST_PAYLOAD, .word = {i, i}};
    }
    bench->beats[words - 1] = (struct exanest_beat){
        .part = EXANEST_FOOTER, .last = true, .word = exanest_footer_encode(&footer)};
    bench->beats[0] = (struct exanest_beat){
        .part = EXANEST_HEADER, .last = words == 1, .word = exanest_header_encode(&header)};
}

void exanest_bench_open(struct exanest_bench *bench, const struct exanest_bench_config *config,
                        struct sim *sim)
{
    CHECK(config->words >= 1 && config->words <= EXANEST_PACKET_WORDS_MAX);
    CHECK(config->sources >= 1 && FIRST_SOURCE + config->sources <= config->crossbar.ports);
    memset(bench, 0, sizeof(*bench));
    bench->config = *config;
    bench->sim = sim;
    bench->clock = sim_clock_hz(config->datapath_hz);
    sim_event_init(&bench->edge, on_edge);
    make_packet(bench);
    exanest_crossbar_init(&bench->crossbar, &config->crossbar);
    exanest_link_open(&bench->link, &config->link);
    sim_schedule(sim, &bench->edge, 0);
}

void exanest_bench_close(struct exanest_bench *bench)
{
    sim_cancel(&bench->edge);
    exanest_link_close(&bench->link);
}

/* A receiver that waited for a word takes the next one a whole time after it. */
static void receive(struct exanest_bench *bench, uint64_t now_ps)
{
    struct exanest_deserializer *receiver = exanest_link_out(&bench->link, 1);
    struct exanest_beat beat;
    if (bench->stalled || now_ps < bench->due_ps || !exanest_deserializer_offer(receiver, &beat)) {
        return;
    }
    exanest_deserializer_taken(receiver);
    bench->taken++;
    const uint64_t cycle_ps = sim_clock_at(bench->clock, 1);
    const uint64_t without_ps = now_ps - bench->taken_ps;
    const uint64_t line_ps = exanest_bench_word_ps(bench);
    const uint64_t word_ps = bench->config.take_ps > line_ps ? bench->config.take_ps : line_ps;
    if (bench->taken_ps != 0 && without_ps > word_ps + cycle_ps) {
        bench->bubbles++;
        if (without_ps - word_ps > bench->bubble_ps) {
            bench->bubble_ps = without_ps - word_ps;
        }
    }
    bench->taken_ps = now_ps;
    bench->due_ps =
        (now_ps - bench->due_ps < cycle_ps ? bench->due_ps : now_ps) + bench->config.take_ps;
}

static void send(struct exanest_bench *bench)
{
    struct exanest_offer offers[EXANEST_PORTS_MAX];
    struct exanest_serializer *line = exanest_link_in(&bench->link, 0);
    uint32_t offered = 0, ready = 0;
    if ((exanest_crossbar_shown(&bench->crossbar) & 1) != 0) {
        const struct exanest_beat *beat = exanest_crossbar_beat(&bench->crossbar, 0);
        if (exanest_serializer_ready(line, beat)) {
            exanest_serializer_take(line, beat);
            ready = 1;
        }
    }
    for (uint32_t i = 0; i < bench->config.sources; i++) {
        offers[FIRST_SOURCE + i] =
            (struct exanest_offer){.beat = bench->beats[bench->sent[i]], .output = 0};
        offered |= 1u << (FIRST_SOURCE + i);
    }
    const uint32_t taken = exanest_crossbar_step(&bench->crossbar, offered, offers, ready);
    for (uint32_t i = 0; i < bench->config.sources; i++) {
        if ((taken >> (FIRST_SOURCE + i) & 1) != 0) {
            bench->sent[i] = (uint8_t)((bench->sent[i] + 1u) % bench->config.words);
        }
    }
}

static void on_edge(struct sim *sim, struct sim_event *event)
{
    struct exanest_bench *bench = CONTAINER_OF(event, struct exanest_bench, edge);
    exanest_link_step(&bench->link, sim->now_ps);
    receive(bench, sim->now_ps);
    send(bench);
    sim_schedule(sim, event, sim_clock_at(bench->clock, ++bench->cycle));
}

void exanest_bench_run(struct exanest_bench *bench, uint64_t until_ps)
{
    sim_run_until(bench->sim, until_ps);
    sim_note(bench->sim, bench->taken);
}

void exanest_bench_watch(struct exanest_bench *bench)
{
    bench->taken_ps = 0;
    bench->bubbles = 0;
    bench->bubble_ps = 0;
}
