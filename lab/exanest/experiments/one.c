/* SPDX-License-Identifier: BSD-2-Clause
 *
 * One point, as the parameters say: programs on the FPGAs of a torus, and what they see.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lab/exanest/experiments.h"

#define LOOK_PS      UINT64_C(1000000) /* Between two looks at the queues. */
#define MEMORY_BYTES (UINT64_C(1) << 33)

struct one {
    struct exanest_world *world;
    struct lab_plan plan;
    uint32_t fpgas, processes;
    struct exanest_program *programs; /* By FPGA, then by process; those without errands rest. */
    struct lab_tally tally;
    struct lab_lengths send_queue, r5_queue;
    struct exanest_program_config common; /* The same for all programs. */
    uint32_t given_up, wrong;
};

static uint32_t errands_of(const struct one *one, uint32_t fpga, uint32_t process)
{
    const uint32_t all = one->plan.first[fpga + 1] - one->plan.first[fpga];
    return (all + one->processes - 1 - process) / one->processes;
}

/* -- The machine --------------------------------------------------------------------------------*/

static struct exanest_machine_config config_of(struct lab_run *run)
{
    const uint32_t x = (uint32_t)lab_value(run, "x"), y = (uint32_t)lab_value(run, "y");
    struct exanest_machine_config config =
        exanest_config_of(run, x, y, (uint32_t)lab_value(run, "z"));
    exanest_set_times(run, &config);
    exanest_set_router(run, &config);
    config.fabric.router.remote_slots = (uint8_t)lab_value(run, "router_slots");
    config.fabric.fpga.receiver.patience_cycles = (uint32_t)lab_value(run, "patience");
    config.firmware.sequences = (uint8_t)lab_word(run, "sequences");
    config.firmware.retries_max = (uint8_t)lab_value(run, "retries");
    config.firmware_cores = (uint32_t)lab_value(run, "cores");
    config.processes = (uint32_t)lab_value(run, "processes");
    config.faults.millionths[SIM_FAULT_drop] = (uint32_t)llround(lab_value(run, "loss") * 1e6);
    config.faults.millionths[SIM_FAULT_damage] = (uint32_t)llround(lab_value(run, "corrupt") * 1e6);
    return config;
}

static uint32_t fpgas_of(const struct exanest_machine_config *config)
{
    const uint8_t *size = config->fabric.size;
    return EXANEST_FPGAS * size[0] * size[1] * size[2];
}

/* -- Programs -----------------------------------------------------------------------------------*/

static void fill(struct one *one, uint32_t fpga, uint32_t process)
{
    const uint64_t bytes = exanest_program_source_bytes(&one->common);
    uint8_t *at =
        exanest_machine_bytes(&one->world->machine, fpga, process, exanest_program_source(), bytes);
    for (uint64_t i = 0; i < bytes; i++) {
        at[i] = (uint8_t)prng_next(&one->world->sim.prng);
    }
}

static struct exanest_program_config common_of(struct one *one, struct lab_run *run)
{
    struct exanest_program_config config =
        exanest_program_default(0, 0, lab_word(run, "work") == 0, one->plan.longest);
    config.window = (uint32_t)lab_value(run, "window");
    config.call_ns = (uint32_t)llround(lab_value(run, "call") * 1000);
    config.poll_ns = (uint32_t)llround(lab_value(run, "look") * 1000);
    config.stride = one->processes;
    config.timed = one->plan.timed;
    config.places = one->fpgas;
    config.compares = true;
    config.tally = &one->tally;
    return config;
}

static void open_programs(struct one *one)
{
    for (uint32_t fpga = 0; fpga < one->fpgas; fpga++) {
        for (uint32_t process = 0; process < one->processes; process++) {
            struct exanest_program_config config = one->common;
            fill(one, fpga, process);
            config.fpga = fpga;
            config.process = process;
            config.count = errands_of(one, fpga, process);
            config.errands = &one->plan.messages[one->plan.first[fpga] + process];
            if (config.count > 0) {
                exanest_program_open(&one->programs[fpga * one->processes + process],
                                     &one->world->machine, &config);
            }
        }
    }
}

static bool over(const struct one *one)
{
    bool all = true;
    for (uint32_t i = 0; i < one->fpgas * one->processes && all; i++) {
        all = exanest_program_over(&one->programs[i]);
    }
    return all;
}

static void look(struct one *one)
{
    struct exanest_machine *machine = &one->world->machine;
    for (uint32_t i = 0; i < one->fpgas; i++) {
        const struct exanest_fpga *fpga = exanest_fabric_fpga(&machine->fabric, i);
        lab_lengths_count(&one->send_queue, fpga->exadma.scheduler.count);
        lab_lengths_count(&one->r5_queue, (uint64_t)fpga->rt_mailbox.responses +
                                              fpga->rt_mailbox.requests +
                                              machine->r5s[i].firmware.queued);
    }
}

/* Until the last message has come to its end, or nothing happens any more. */
static void play(struct one *one)
{
    struct sim *sim = &one->world->sim;
    const uint32_t count = lab_plan_count(&one->plan);
    uint64_t look_ps = LOOK_PS;
    bool ended = false;
    while (!ended && sim_step(sim)) {
        ended = one->tally.latency.count == count;
        if (sim->now_ps >= look_ps) {
            look_ps = sim->now_ps + LOOK_PS;
            look(one);
            ended = ended || over(one);
            lab_progress(one->world->run, (double)one->tally.latency.count / count);
        }
    }
}

/* -- Checks -------------------------------------------------------------------------------------*/

static void check(struct one *one)
{
    for (uint32_t i = 0; i < one->fpgas * one->processes; i++) {
        const struct exanest_program *program = &one->programs[i];
        const uint32_t fpga = i / one->processes, process = i % one->processes;
        if (!exanest_program_over(program)) {
            lab_fail(one->world->run, "process %u of FPGA %u stopped after %u of %u transfers",
                     process, fpga, program->ended, program->config.count);
        }
        one->given_up += program->failed;
        one->wrong += program->wrong;
    }
}

/* -- Results ------------------------------------------------------------------------------------*/

/* The sums over a machine, and its busiest parts as shares of the time. */
struct sums {
    uint64_t found, missed, resent, timeouts;
    double link, bus, r5;
};

static void add_fpga(struct sums *sums, struct exanest_machine *machine, uint32_t number, double ps)
{
    const struct exanest_fpga *fpga = exanest_fabric_fpga(&machine->fabric, number);
    const struct exanest_r5 *r5 = &machine->r5s[number];
    const uint64_t *meanings = fpga->receiver.counters.meanings;
    const uint64_t words = fpga->memory.words_read > fpga->memory.words_written
                               ? fpga->memory.words_read
                               : fpga->memory.words_written;
    sums->found += meanings[EXANEST_MARKED] + meanings[EXANEST_COMPLETE] +
                   meanings[EXANEST_DUPLICATE] + meanings[EXANEST_OLDER];
    sums->missed += meanings[EXANEST_NO_CONTEXT];
    sums->resent += r5->firmware.counters.retransmits;
    sums->timeouts += r5->firmware.counters.timeouts;
    sums->bus =
        fmax(sums->bus, (double)words * 1e12 / (double)machine->config.fabric.datapath_hz / ps);
    sums->r5 = fmax(sums->r5, (double)r5->busy_ps / ps);
}

static struct sums sums_of(struct exanest_machine *machine, uint32_t fpgas, double ps)
{
    struct sums sums = {0};
    const uint32_t links = EXANEST_QFDB_PAIRS * machine->config.fabric.links_per_pair;
    for (uint32_t i = 0; i < fpgas; i++) {
        add_fpga(&sums, machine, i, ps);
    }
    for (uint32_t i = 0; i < machine->fabric.qfdb_count; i++) {
        for (uint32_t k = 0; k < 2 * links; k++) {
            const struct exanest_link *link = &machine->fabric.qfdbs[i].links[k / 2];
            sums.link = fmax(sums.link, (double)link->ways[k % 2].used_ps / ps);
        }
    }
    return sums;
}

/* Jain's index of the senders' rates. */
static double fairness_of(const struct one *one)
{
    double *rates = calloc((size_t)one->fpgas * one->processes, sizeof(rates[0]));
    size_t count = 0;
    CHECK(rates != NULL);
    for (uint32_t i = 0; i < one->fpgas * one->processes; i++) {
        const struct exanest_program *program = &one->programs[i];
        if (program->ended > 0 && program->last_ps > program->first_ps) {
            rates[count++] = program->ended / (double)(program->last_ps - program->first_ps);
        }
    }
    const double fairness = count == 0 ? LAB_NOTHING : sim_fairness(rates, count);
    free(rates);
    return fairness;
}

static void add_results(struct one *one, struct lab_run *run)
{
    struct exanest_machine *machine = &one->world->machine;
    const double ps = fmax(1, (double)one->world->sim.now_ps);
    const struct sums sums = sums_of(machine, one->fpgas, ps);
    const uint64_t *struck = machine->faults.struck;
    const struct lab_outcome outcome = {
        .gbps = lab_tally_gbps(&one->tally),
        .rate = lab_tally_rate(&one->tally),
        .latency = &one->tally.latency,
        .latency_of = "from a program's wish to the look that sees the end",
        .link = sums.link,
        .link_of = "of its time, the busiest direction between FPGAs of a QFDB",
        .bus = sums.bus,
        .bus_of = "of its cycles, the busiest port of an FPGA's memory",
        .queue = &one->send_queue,
        .queue_of = "blocks in the FIFO of a send unit",
        .hits = sums.found + sums.missed == 0
                    ? LAB_NOTHING
                    : (double)sums.found / (double)(sums.found + sums.missed),
        .hits_of = "packets for which a receiver had a context, or made one",
        .lost = struck[SIM_FAULT_drop] + struck[SIM_FAULT_damage],
        .lost_of = "packets lost or spoilt",
        .again = sums.resent,
        .again_of = "blocks sent again",
    };
    lab_add_outcome(run, &outcome);
    lab_add_reading(run, "r5_share", "", sums.r5, "of its time, the busiest R5 did something");
    lab_add_reading(run, "r5_queue_mean", "",
                    one->r5_queue.looks == 0
                        ? LAB_NOTHING
                        : (double)one->r5_queue.sum / (double)one->r5_queue.looks,
                    "responses and requests before an R5, the mean");
    lab_add_reading(run, "r5_queue_max", "", (double)one->r5_queue.most, "the most of them");
    lab_add_reading(run, "timeouts", "", (double)sums.timeouts, "blocks that nobody answered");
    lab_add_reading(run, "fairness", "", fairness_of(one), "Jain's index of the programs' rates");
    const uint32_t transfers = lab_plan_count(&one->plan);
    lab_judge_absolute(lab_add_row(run, "EXA-W-one", "", "of %u transfers given up", transfers), 0,
                       one->given_up, 0);
    lab_judge_absolute(lab_add_row(run, "EXA-W-bytes", "",
                                   "of %u transfers whose bytes were wrong when their end was seen",
                                   transfers),
                       0, one->wrong, 0);
}

/* -- The experiment -----------------------------------------------------------------------------*/

/* Settings that do not go together. */
static bool judge(struct lab_run *run, struct exanest_machine_config *config,
                  const struct exanest_program_config *common)
{
    config->process_bytes = exanest_program_memory_of(common);
    if (common->writes && common->window > EXANEST_WRITE_CHANNELS) {
        lab_fail(run, "window=%u: a page has %u channels for writes", common->window,
                 EXANEST_WRITE_CHANNELS);
    } else if (common->places * config->processes * config->process_bytes > MEMORY_BYTES) {
        lab_fail(run,
                 "%u FPGAs with places for %u transfers of %u bytes from each other need more than "
                 "8 GiB",
                 common->places, common->window, common->bytes);
    }
    return run->failure[0] == '\0';
}

static bool open_plan(struct lab_plan *plan, struct lab_run *run,
                      const struct exanest_machine_config *config)
{
    const uint32_t fpgas = fpgas_of(config);
    if (fpgas > EXANEST_FPGAS_MAX) {
        lab_fail(run, "a torus has at most %u QFDBs", EXANEST_QFDBS_MAX);
        return false;
    }
    const struct lab_plan_limits limits = {
        .nodes = fpgas, .bytes_most = EXANEST_ONE_BYTES_MAX, .unit = 1};
    return lab_plan_open(plan, run, &limits);
}

static void judge_texts(struct lab_run *run)
{
    const struct exanest_machine_config config = config_of(run);
    struct lab_plan plan;
    if (lab_plan_has_text(run) && open_plan(&plan, run, &config)) {
        lab_plan_close(&plan);
    }
}

static void run_one(struct lab_run *run)
{
    struct exanest_machine_config config = config_of(run);
    struct one *one = calloc(1, sizeof(*one));
    CHECK(one != NULL);
    one->fpgas = fpgas_of(&config);
    one->processes = config.processes;
    if (!open_plan(&one->plan, run, &config)) {
        free(one);
        return;
    }
    one->common = common_of(one, run);
    if (judge(run, &config, &one->common)) {
        one->programs = calloc((size_t)one->fpgas * one->processes, sizeof(one->programs[0]));
        CHECK(one->programs != NULL);
        one->world = exanest_world_begin(run, &config);
        open_programs(one);
        play(one);
        check(one);
        add_results(one, run);
        exanest_world_end(one->world);
        free(one->programs);
    }
    lab_plan_close(&one->plan);
    free(one);
}

static const struct lab_claim one_claims[] = {
    {.id = "EXA-W-one",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "4.1: retransmissions",
     .broken_by = "loss=0.05 retries=0",
     .because = "packets are lost, and no block is sent again"},
    {.id = "EXA-W-bytes",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "4.1: a transfer ends when all of its blocks are acknowledged",
     .broken_by = "work=read notification=early bytes=65536 | "
                  "work=read corrupt=0.02 window=8 senders=0",
     .because = "a reader is told before all is there; or a read's last block, whose answer was "
                "spoilt, comes again when its place has been given to the next read"},
};

const struct lab_experiment exanest_one = {
    .name = "exanest/one",
    .what = "one point: programs on the FPGAs of a torus, as the parameters say",
    EXANEST_COMMON,
    .uses = EXANEST_USES_MACHINE EXANEST_ROUTER_USES EXANEST_USES_TIMES LAB_PLAN_USES
    "x=1 y=1 z=1 router_slots patience sequences=continuing retries cores processes loss corrupt "
    "work window=1 call look",
    EXANEST_CLAIMS(one_claims),
    .quick = true,
    .judge_texts = judge_texts,
    .run = run_one,
    .explains =
        "For exploring. Each transfer that may be under way has a place of its own, whose bytes "
        "are spoilt before it begins and compared when its end is seen. Writes are always right. "
        "Reads are not if something is lost: the reader is told by the last block, and does not "
        "know whether the owner has that block's answer. If not, the block comes again, to a place "
        "that may hold the next read's bytes by now. The document does not speak of it. "
        "FPGAs are nodes 0, 1 and on, four in a QFDB; with more than one QFDB they send through "
        "routers. Sequences continue, so that what is lost is "
        "repaired; sequences=strict is what the document states, and costs a store less. The rate "
        "is that from the first wish to the last end: with few messages most of it is latency.",
};
