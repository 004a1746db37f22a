/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What if the library had an eager protocol? A small message goes as one packet of the packetizer
 * to the receiver's mailbox or memory, and no R5 has to do with it.
 */
#include <string.h>

#include "lab/exanest/experiments.h"

#define BYTES         8u
#define BYTES_MOST    4096u
#define CALL_BYTES    48u /* The registers whose stores a call contains: those of a request. */
#define QUEUE         0u
#define QUEUE_SLOTS   16u
#define QUEUE_VA      EXANEST_MEMORY_VA
#define MESSAGE_VA    (EXANEST_MEMORY_VA + 0x4000)
#define PROCESS_BYTES 0x8000u
#define QFDBS         8u                      /* A ring in which 3 hops are the shorter way. */
#define FIVE_HOPS     (3 * EXANEST_FPGAS + 1) /* To F1, three times from router to router, to F2. */

enum eager {
    MAILBOX,
    MEMORY,
    RENDEZVOUS,
};

/* The most bytes of an eager message. */
static uint32_t most_bytes(enum eager way)
{
    return way == MAILBOX ? EXANEST_SYSTEM_MESSAGE_BYTES : EXANEST_PAYLOAD_BYTES_MAX;
}

/* Where the receiver looks: at the last word that is written. */
static uint64_t looks_at(enum eager way, uint32_t bytes)
{
    return way == MAILBOX ? QUEUE_VA + EXANEST_SYSTEM_SLOT_BYTES - EXANEST_WORD_BYTES
                          : MESSAGE_VA + (bytes - 1) / EXANEST_WORD_BYTES * EXANEST_WORD_BYTES;
}

static uint64_t target_of(enum eager way)
{
    return way == MAILBOX ? exanest_peripheral_va(EXANEST_SYSTEM_MAILBOXES, QUEUE << 16)
                          : MESSAGE_VA;
}

/* The library's call, and the stores of what a request would not have. */
static uint64_t call_ps(struct lab_run *run, uint32_t bytes)
{
    const uint32_t more = bytes > CALL_BYTES ? (bytes - CALL_BYTES + 7) / 8 : 0;
    return EXANEST_CALL_NS * SIM_NS + more * lab_ps(run, "word_cost");
}

/* F1 sends over a link, and F2 over several. */
static uint32_t sender_to(uint32_t to)
{
    return to == 1 ? 0 : 1;
}

/* Reads as the receiver would: the message, in order, and nothing lost. */
static void check(struct exanest_world *world, enum eager way, uint32_t to, const uint8_t *sent,
                  uint32_t bytes)
{
    struct exanest_machine *machine = &world->machine;
    const uint64_t va = way == MAILBOX ? QUEUE_VA : MESSAGE_VA;
    while (sim_step(&world->sim)) {
    }
    const struct exanest_packetizer_state state = exanest_packetizer_state(
        &exanest_fabric_fpga(&machine->fabric, sender_to(to))->packetizer, 0);
    if (state.phase != EXANEST_CHANNEL_DONE || state.retries != 0 ||
        memcmp(exanest_machine_bytes(machine, to, 0, va, bytes), sent, bytes) != 0) {
        lab_fail(world->run, "an eager message failed");
    }
}

/* From the sender's call to the receiver's look that sees the message, in us. */
static double eager_to_us(struct lab_run *run, const struct exanest_machine_config *config,
                          uint32_t to, enum eager way, uint32_t bytes)
{
    struct exanest_machine_config sized = *config;
    sized.process_bytes = PROCESS_BYTES;
    struct exanest_world *world = exanest_world_begin(run, &sized);
    struct exanest_machine *machine = &world->machine;
    struct exanest_fpga *target = exanest_fabric_fpga(&machine->fabric, to);
    uint8_t message[EXANEST_PAYLOAD_BYTES_MAX];
    for (uint32_t i = 0; i < bytes; i++) {
        message[i] = (uint8_t)prng_next(&world->sim.prng);
    }
    const uint16_t pdid = machine->r5s[to].scratchpad.pdid[0];
    exanest_system_mailbox_open(&target->system_mailbox, QUEUE, pdid, QUEUE_VA, QUEUE_SLOTS);
    exanest_memory_watch(&target->memory, pdid, looks_at(way, bytes), EXANEST_WORD_BYTES);
    sim_run_until(&world->sim, call_ps(run, bytes));
    const bool sent =
        exanest_machine_send(machine, sender_to(to), 0, to, target_of(way), message, bytes);
    CHECK(sent);
    while (target->memory.watched == 0 && sim_step(&world->sim)) {
    }
    const double us = (double)(world->sim.now_ps + EXANEST_POLL_NS * SIM_NS) / 1e6;
    check(world, way, to, message, bytes);
    exanest_world_end(world);
    return us;
}

static double eager_us(struct lab_run *run, const struct exanest_machine_config *config,
                       enum eager way, uint32_t bytes)
{
    return eager_to_us(run, config, 1, way, bytes);
}

static void draw(struct lab_run *run, const struct exanest_machine_config *config)
{
    static const char *const names[] = {"eager, to a mailbox", "eager, to memory"};
    struct lab_figure *figure =
        lab_add_figure(run, "latency", "What if small messages were eager?", "bytes",
                       "from the call to the look that sees it, us", true);
    lab_add_mark(figure, LAB_NOTHING, 4.16, "4.16 us: measured");
    for (uint32_t way = MAILBOX; way <= MEMORY; way++) {
        struct lab_series *series = lab_add_curve(run, "%s", names[way]);
        const uint32_t most = most_bytes((enum eager)way);
        for (uint32_t bytes = BYTES; bytes <= most; bytes *= 2) {
            lab_add_point(series, bytes, eager_us(run, config, (enum eager)way, bytes),
                          LAB_NOTHING);
        }
        if ((most & (most - 1)) != 0) {
            lab_add_point(series, most, eager_us(run, config, (enum eager)way, most), LAB_NOTHING);
        }
    }
    struct lab_series *series = lab_add_curve(run, "rendezvous: an RDMA read");
    for (uint32_t bytes = BYTES; bytes <= BYTES_MOST; bytes *= 2) {
        lab_add_point(series, bytes, exanest_transfer_us(run, config, 0, 1, false, bytes),
                      LAB_NOTHING);
    }
}

static double latency_of(struct lab_run *run, const struct exanest_machine_config *config,
                         enum eager way, uint32_t bytes)
{
    return way == RENDEZVOUS ? exanest_transfer_us(run, config, 0, 1, false, bytes)
                             : eager_us(run, config, way, bytes);
}

/* The teams' later machine has an eager protocol, below an MPI library. */
static void judge_elsewhere(struct lab_run *run, const struct exanest_machine_config *config,
                            enum eager way)
{
    const double us = latency_of(run, config, way, BYTES);
    struct exanest_machine_config torus = exanest_config_of(run, QFDBS, 1, 1);
    exanest_set_router(run, &torus);
    torus.fabric.fpga.memory.read_cycles = config->fabric.fpga.memory.read_cycles;
    const double far_us = way == RENDEZVOUS
                              ? exanest_transfer_us(run, &torus, 1, FIVE_HOPS, false, BYTES)
                              : eager_to_us(run, &torus, FIVE_HOPS, way, BYTES);
    lab_judge_relative(
        lab_add_row(run, "EXA-E-eager/2019", "us", "one way, 8 bytes; printed: end to end, MPI"),
        1.4, us, 0.05);
    lab_judge_relative(
        lab_add_row(run, "EXA-E-eager/2023", "us", "one way, 8 bytes; printed: one hop, MPI"), 1.3,
        us, 0.05);
    lab_judge_relative(lab_add_row(run, "EXA-E-interface", "us",
                                   "of these: library and network interface, without the wire"),
                       0.47, us - lab_value(run, "wire"), 0.05);
    lab_judge_relative(
        lab_add_row(run, "EXA-E-hops", "us", "8 bytes, two links and three hops between routers"),
        2.55, far_us, 0.05);
}

static void eager(struct lab_run *run)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    config.fabric.fpga.memory.read_cycles = (uint32_t)lab_value(run, "hit");
    const enum eager way = (enum eager)lab_word(run, "eager");
    const double read = exanest_transfer_us(run, &config, 0, 1, false, EXANEST_PAYLOAD_BYTES_MAX);
    const double most =
        latency_of(run, &config, way == MAILBOX ? MEMORY : way, EXANEST_PAYLOAD_BYTES_MAX);
    lab_judge_relative(lab_add_row(run, "EXA-W-eager/8", "us", "8 bytes, to the look that sees it"),
                       1.05, latency_of(run, &config, way, BYTES), 0.05);
    lab_judge_relative(lab_add_row(run, "EXA-W-eager/256", "us",
                                   "a packet of 256 bytes to memory; a read of them: %.2f", read),
                       3.20, most, 0.05);
    judge_elsewhere(run, &config, way);
    draw(run, &config);
}

static const struct lab_claim eager_claims[] = {
    {.id = "EXA-W-eager",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "EXA-A9",
     .source = "OC: what if the library were eager: call 0.25 us, a packet's way 0.58 less two "
               "words, look 0.25, of 256 bytes 26 stores and 15 words more",
     .broken_by = "eager=rendezvous",
     .because = "the R5 of the owner reads the request and starts a block"},
    {.id = "EXA-E-eager",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .given = "EXA-A9",
     .source = "Ploumidis2019: 1.4 us; Ploumidis2023: 1.3 us, single hop, one way",
     .broken_by = "eager=rendezvous",
     .because = "the R5 of the owner reads the request and starts a block",
     .not_reproduced = "The printed times are those of an MPI library, which is not in ours: it "
                       "matches messages, copies them and gives credit. So ours has to be less."},
    {.id = "EXA-E-interface",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .given = "EXA-A9",
     .source = "Ploumidis2023: 0.47 us of network interface and user-space library",
     .broken_by = "eager=rendezvous",
     .because = "the R5 of the owner reads the request and starts a block",
     .not_reproduced = "A library's call and its look take 0.25 us each here, which is our choice: "
                       "0.17 each would fit. It stays, since the library of 2023 is a later one, "
                       "and with it the R5's lookup would have to be fitted anew (EXA-A9)."},
    {.id = "EXA-E-hops",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .source = "Ploumidis2023: 2.55 us for a five-hop path",
     .broken_by = "eager=rendezvous",
     .because = "the R5 of the owner reads the request and starts a block",
     .not_reproduced =
         "Four hops more take 1.25 us there, 0.31 each, and less than the document's \"almost "
         "0.5us\" of one transceiver. So no latency of a router fits, not even 1 cycle: either "
         "links became faster after 2019, or those hops have fewer transceivers. Our router's 120 "
         "cycles are a choice which this makes look too long."},
};

const struct lab_experiment exanest_eager = {
    .name = "exanest/eager",
    .what = "what if small messages were sent without asking",
    EXANEST_COMMON,
    .uses = EXANEST_USES EXANEST_ROUTER_USES "hit eager word_cost",
    EXANEST_CLAIMS(eager_claims),
    .quick = true,
    .run = eager,
    .explains =
        "All hardware that an eager protocol needs is there: the packetizer sends up to 256 bytes "
        "to a mailbox or to memory, with an acknowledgement and retransmission of its own, and no "
        "R5 has to do with it. It saves software: of a small read's 4.16 us three are the R5's and "
        "the request's. Where eager messages end is decided by their packet, not by the time: 256 "
        "bytes still take less than a read of them. How much less depends on what a store to the "
        "packetizer costs a program, which the document does not say (word_cost); with 0.125 us "
        "both are equal at 256 bytes. A receiver copies from its mailbox, and has to give credit "
        "for its slots: neither is in the time. "
        "Later publications of the same teams print times of an eager protocol: they bound what is "
        "ours here, and do not agree with all of it.",
};
