/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Keyhole transfers into a FIFO, whose packets a buffer at the receiver puts into order (4.4). All
 * of it is prediction.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/lant/bench.h"

enum {
    NODES = 128,
    SENDERS_MAX = 2,
    EACH = 8, /* Transfers of a sender. */
    BYTES = 32768,
    PACKETS = BYTES / LANT_PAYLOAD_BYTES_MAX,
};

#define TOPOLOGY   "fat-tree:8:3"
#define BIT_ERRORS 1e-5

static const uint32_t senders[SENDERS_MAX] = {127, 64};

struct reader {
    struct lant_bench *bench;
    uint64_t packets, wrong; /* The second: other than the next of its transfer. */
    uint64_t next[NODES];
};

/* Each transfer has the same bytes, of the sender's memory from 0 on. */
static void on_stream(void *context, const struct lant_packet *packet)
{
    struct reader *reader = context;
    const uint32_t from = packet->footer.source;
    const uint64_t at = reader->next[from]++ % PACKETS * LANT_PAYLOAD_BYTES_MAX;
    const uint8_t *expected = reader->bench->world.nodes[from].memory + at;
    reader->packets++;
    reader->wrong += memcmp(packet->payload, expected, LANT_PAYLOAD_BYTES_MAX) != 0;
}

struct outcome {
    struct reader reader;
    uint64_t busy, far;
};

static struct outcome measure(struct lab_run *run, uint32_t count, double bit_errors,
                              uint32_t reorder)
{
    struct lant_node_config config = lant_config_of(run);
    struct lant_fabric_config fabric = lant_line_of(run);
    (void)snprintf(fabric.topology, sizeof(fabric.topology), TOPOLOGY);
    fabric.switch_cycles = lant_whole(run, "switch");
    fabric.bit_errors = bit_errors;
    config.memory_bytes = (uint64_t)BYTES * 2;
    config.reorder = reorder;
    config.rdma_target.keyhole = true;
    config.rdma.registers.off = true;
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    struct outcome outcome = {.reader.bench = bench};
    struct lant_node *to = &bench->world.nodes[0];
    for (uint32_t i = 0; i < count; i++) {
        lant_bench_fill(bench, senders[i], BYTES);
        /* Nothing comes into memory that a probe could compare. */
        bench->world.nodes[senders[i]].program = (struct lant_program){0};
        for (uint32_t k = 0; k < EACH; k++) {
            const struct lant_work work = {
                .descriptor = {.destination = lant_global(0, 0), .bytes = BYTES, .keyhole = true}};
            CHECK(lant_node_submit(&bench->world.nodes[senders[i]], LANT_QUEUE_CPU, &work) ==
                  LANT_SUBMIT_COMMITTED);
        }
    }
    to->program = (struct lant_program){.context = &outcome.reader, .on_stream = on_stream};
    lant_bench_settle(bench);
    outcome.busy = to->counters.reorder_busy;
    outcome.far = to->counters.reorder_far;
    lant_bench_end(bench);
    return outcome;
}

/* The buffer has no more. */
static uint32_t bounded(uint32_t packets)
{
    return packets < LANT_REORDER_MAX ? packets : LANT_REORDER_MAX;
}

static void keyhole(struct lab_run *run)
{
    const uint32_t reorder = lant_whole(run, "reorder"), rows = bounded(lant_whole(run, "rows"));
    const struct outcome errors = measure(run, 1, BIT_ERRORS, reorder);
    const struct outcome two = measure(run, 2, 0, reorder);
    const struct outcome small = measure(run, 1, BIT_ERRORS, rows);
    lab_judge_absolute(
        lab_add_row(run, "LNI-W-keyhole.order", "packets",
                    "missing or not in order, of %u; bits flipped at %g", EACH * PACKETS,
                    BIT_ERRORS),
        0, (double)errors.reader.wrong + fabs((double)errors.reader.packets - EACH * PACKETS), 0.5);
    lab_judge_absolute(
        lab_add_row(run, "LNI-W-keyhole.two", "packets",
                    "missing or not in order, of two senders; %llu were refused, "
                    "since the other had the buffer",
                    (unsigned long long)two.busy),
        0, (double)two.reader.wrong + fabs((double)two.reader.packets - 2 * EACH * PACKETS), 0.5);
    lab_judge_range(lab_add_row(run, "LNI-W-keyhole.far", "packets",
                                "refused by a buffer of %u packets, as many as are under way",
                                rows),
                    1, LAB_UNBOUNDED, (double)small.far);
}

static const struct lab_claim keyhole_claims[] = {
    {.id = "LNI-W-keyhole.order",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4.4: a reorder buffer at the receiver",
     .broken_by = "reorder=0",
     .because = "packets go on as they come"},
    {.id = "LNI-W-keyhole.two",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4.4: its ownership is acquired and locked",
     .broken_by = "retries=0",
     .because = "packets that the other's buffer refused do not go again"},
    {.id = "LNI-W-keyhole.far",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.3: what failed goes again behind all of its descriptor; OC: so 16 are too few",
     .broken_by = "rows=64",
     .because = "the buffer has room for all of a transfer"},
};

const struct lab_experiment lant_keyhole = {
    LANT_COMMON,
    .name = "lant/keyhole",
    .what = "transfers into a FIFO, which a reorder buffer puts into order",
    .uses = LANT_LINE_USES
    "switch rdma_setup ram rdma_receive rdma_done ack rows operations timers early_timer early "
    "t_gen engine_window timeout receiver cam reorder retries=7",
    LANT_CLAIMS(keyhole_claims),
    .quick = true,
    .run = keyhole,
    .explains =
        "The network may bring packets in any order, and a FIFO's reader needs them in theirs. A "
        "buffer of all packets of a transfer does that. As many as are under way, 16, would "
        "do for the network's disorder, but not for packets that fail: these go again when the "
        "whole descriptor has been pushed (5.3.3), so all behind them has to wait in the buffer, "
        "or is dropped there. While one transfer has the buffer, another sender's packets are "
        "dropped and come again by their timers, so two senders at once are slow: the document "
        "expects one.",
};
