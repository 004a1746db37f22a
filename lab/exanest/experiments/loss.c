/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The cost of lost packets: packets that are sent again, the time, and transfers that are given up
 * (A24).
 */
#include "lab/exanest/experiments.h"

#include <string.h>

#define MEGABYTE 1048576u
#define BLOCK    16384u
#define LOTS     1e12
#define ATTEMPTS 255 /* Retries where it is not about them. */
#define WRITE_VA (EXANEST_MEMORY_VA + MEGABYTE)

/* The results of some writes, one after another, and their cost. */
struct lossy {
    uint32_t writes, failed;
    double sent, needed; /* Data packets; those needed are those of writes that ended well. */
    double lost;         /* The share of those sent that chance took. */
    double us;           /* All writes that ended well, together. */
};

struct lossy_load {
    uint32_t to; /* FPGA 0 writes to itself, or to FPGA 1. */
    uint32_t bytes;
    uint32_t writes;
    double loss;        /* Share of data packets alone. */
    double packets_max; /* No write begins when this number were sent: a brake, not a measure. */
};

static uint64_t packets_sent(const struct exanest_machine *machine)
{
    return machine->fabric.qfdbs[0].fpgas[0].exadma.scheduler.counters.turns[EXANEST_TURN_SENDS];
}

/* One write, until it ends. */
static void write_once(struct exanest_world *world, const struct lossy_load *load,
                       struct lossy *lossy)
{
    struct exanest_machine *machine = &world->machine;
    const struct exanest_write write = {
        .to = load->to, .source = EXANEST_MEMORY_VA, .va = WRITE_VA, .bytes = load->bytes};
    const uint8_t *source = exanest_machine_bytes(machine, 0, 0, write.source, load->bytes);
    uint8_t *target = exanest_machine_bytes(machine, load->to, 0, WRITE_VA, load->bytes);
    memset(target, 0, load->bytes);
    const uint64_t began_ps = world->sim.now_ps;
    exanest_machine_write(machine, 0, 0, 0, &write);
    struct exanest_transfer transfer;
    do {
        transfer = exanest_r5_transfer(&machine->r5s[0], 0, 0);
    } while (transfer.state != EXANEST_TRANSFER_DONE && transfer.state != EXANEST_TRANSFER_ERROR &&
             sim_step(&world->sim));
    lossy->writes++;
    if (transfer.state != EXANEST_TRANSFER_DONE) {
        lossy->failed++;
        return;
    }
    if (memcmp(source, target, load->bytes) != 0) {
        lab_fail(world->run, "a write arrived with wrong bytes");
    }
    lossy->us += (double)(world->sim.now_ps - began_ps) / 1e6;
    lossy->needed += load->bytes / 256.0;
}

static struct lossy lose(struct lab_run *run, const struct exanest_machine_config *config,
                         const struct lossy_load *load)
{
    struct exanest_machine_config lossy_config = *config;
    lossy_config.process_bytes = 2 * MEGABYTE;
    lossy_config.fault_ports = 1u << EXANEST_PORT_RDMA;
    lossy_config.faults.millionths[SIM_FAULT_drop] = (uint32_t)llround(load->loss * 1e6);
    lossy_config.firmware.sequences = EXANEST_CONTINUING;
    struct exanest_world *world = exanest_world_begin(run, &lossy_config);
    uint8_t *source = exanest_machine_bytes(&world->machine, 0, 0, EXANEST_MEMORY_VA, load->bytes);
    for (uint32_t i = 0; i < load->bytes; i += sizeof(uint64_t)) {
        const uint64_t random = prng_next(&world->sim.prng);
        memcpy(source + i, &random, sizeof(random));
    }
    struct lossy lossy = {0};
    while (lossy.writes < load->writes && lossy.sent < load->packets_max) {
        write_once(world, load, &lossy);
        lossy.sent = (double)packets_sent(&world->machine);
    }
    lossy.lost = (double)world->machine.faults.struck[SIM_FAULT_drop] / lossy.sent;
    exanest_world_end(world);
    return lossy;
}

static struct exanest_machine_config repeating(struct exanest_machine_config config,
                                               uint32_t repeat, uint32_t retries)
{
    config.firmware.resend = (uint8_t)repeat;
    config.firmware.retries_max = (uint8_t)retries;
    return config;
}

/* -- Arithmetic ---------------------------------------------------------------------------------*/

/* No pow: its last bits differ from one library to the next. */
static double power(double base, uint32_t exponent)
{
    double result = 1;
    for (; exponent != 0; exponent >>= 1) {
        result *= exponent & 1 ? base : 1;
        base *= base;
    }
    return result;
}

/* Does a block of 64 packets arrive whole? */
static double whole(double loss)
{
    return power(1 - loss, EXANEST_BLOCK_PACKETS_MAX);
}

/* The packets that are sent for each packet that is needed, by enum exanest_resend. */
static double expected(uint32_t repeat, double loss)
{
    switch ((enum exanest_resend)repeat) {
    case EXANEST_RESEND_BLOCK: return 1 / whole(loss);
    case EXANEST_RESEND_TRANSFER: return 1 / power(1 - loss, MEGABYTE / 256);
    case EXANEST_RESEND_PACKET: return 1 / (1 - loss);
    }
    UNREACHABLE("a repeat outside its enum");
}

/* Timeouts of a block until all 64 packets have come, if only those that lack are repeated: after
 * n of them each is still not there with probability loss^n. */
static double timeouts_of_selection(double loss)
{
    double timeouts = 0, lacking = loss;
    for (uint32_t i = 0; i < 20; i++, lacking *= loss) {
        timeouts += 1 - power(1 - lacking, EXANEST_BLOCK_PACKETS_MAX);
    }
    return timeouts;
}

static double given_up(double loss, uint32_t retries)
{
    return power(1 - whole(loss), retries + 1);
}

/* -- How much is sent (A24) ---------------------------------------------------------------------*/

static double ratio_of(const struct lossy *lossy)
{
    /* If no write has ended well, the number is a lower bound. */
    return lossy->sent / (lossy->needed > 0 ? lossy->needed : MEGABYTE / 256.0);
}

static struct lossy measure(struct lab_run *run, const struct exanest_machine_config *config,
                            double loss_of, uint32_t writes, uint32_t repeat)
{
    const double needed = writes * (MEGABYTE / 256.0);
    const struct lossy_load load = {.bytes = MEGABYTE,
                                    .writes = writes,
                                    .loss = loss_of,
                                    .packets_max = 1.1 * needed * expected(repeat, loss_of)};
    return lose(run, config, &load);
}

/* The ratio, if exactly the share `loss_of` had been lost: chance takes a little more or less, and
 * most of a ratio's scatter comes from that. It is 0.56 % at 1e-2 and 240 writes, and 0.46 % at 100
 * without it. */
static double corrected(const struct lossy *lossy, double loss_of)
{
    return ratio_of(lossy) * whole(lossy->lost) / whole(loss_of);
}

static const struct {
    const char *row;
    double loss, published;
    uint32_t writes;
    double error; /* Standard error in percent. */
} judged[] = {{"EXA-A24/1e-3", 1e-3, 1.066, 60, 0.07}, {"EXA-A24/1e-2", 1e-2, 1.903, 100, 0.46}};

static void judge_sent(struct lab_run *run, const struct exanest_machine_config *config,
                       double ratios[])
{
    for (uint32_t i = 0; i < COUNT_OF(judged); i++) {
        const struct lossy lossy =
            measure(run, config, judged[i].loss, judged[i].writes, EXANEST_RESEND_BLOCK);
        ratios[i] = ratio_of(&lossy);
        lab_judge_relative(
            lab_add_row(run, judged[i].row, "",
                        "sent / needed, +-%.2f %%; raw: %.3f at a loss of %.5f; %u gave up",
                        judged[i].error, ratios[i], lossy.lost, lossy.failed),
            judged[i].published, corrected(&lossy, judged[i].loss), 0.01);
        lab_progress(run, 0.2 + 0.2 * i);
    }
}

static void draw_sent(struct lab_run *run, const struct exanest_machine_config *config,
                      uint32_t repeat, const double ratios[])
{
    static const char *const names[] = {"the block is repeated (3 writes a point or more)",
                                        "the whole transfer (6 writes: +-40 %)",
                                        "the packet alone (3 writes)"};
    static const uint32_t writes[] = {3, 6, 3};
    static const double losses[] = {1e-4, 2e-4, 5e-4, 1e-3, 3e-3, 1e-2, 3e-2};
    static const uint32_t points[] = {7, 3, 7}; /* Whole transfers at 1e-3: 60 times as much. */
    lab_add_figure(run, "sent",
                   "Writes of 1 MB (2^20 bytes): what is sent for each packet that is needed",
                   "share of packets lost", "packets sent / needed", true);
    for (uint32_t mode = 0; mode < COUNT_OF(names); mode++) {
        struct lab_series *series = lab_add_curve(run, "%s", names[mode]);
        const struct exanest_machine_config own = repeating(*config, mode, ATTEMPTS);
        for (uint32_t i = 0; i < points[mode]; i++) {
            double ratio = LAB_NOTHING;
            for (uint32_t k = 0; mode == repeat && k < COUNT_OF(judged); k++) {
                ratio = judged[k].loss == losses[i] ? ratios[k] : ratio;
            }
            if (isnan(ratio)) {
                const struct lossy lossy = measure(run, &own, losses[i], writes[mode], mode);
                ratio = ratio_of(&lossy);
            }
            lab_add_point(series, losses[i], ratio, expected(mode, losses[i]));
        }
    }
}

/* -- How long it takes --------------------------------------------------------------------------*/

static struct lossy timed(struct lab_run *run, const struct exanest_machine_config *config,
                          uint32_t repeat, double loss_of, uint32_t writes)
{
    const struct exanest_machine_config own = repeating(*config, repeat, ATTEMPTS);
    const struct lossy_load load = {
        .to = 1, .bytes = MEGABYTE, .writes = writes, .loss = loss_of, .packets_max = LOTS};
    return lose(run, &own, &load);
}

static double milliseconds(const struct lossy *lossy)
{
    return lossy->us / 1000 / (lossy->writes - lossy->failed);
}

static void select_packets(struct lab_run *run, const struct exanest_machine_config *config)
{
    static const double losses[] = {1e-4, 1e-3, 3e-3, 1e-2, 3e-2};
    static const uint32_t writes[] = {4, 6, 4, 16, 2};
    static const uint32_t modes[] = {EXANEST_RESEND_PACKET, EXANEST_RESEND_BLOCK};
    const uint32_t mode = modes[lab_word(run, "selective")];
    lab_add_figure(run, "time", "A 1 MB write over one link", "share of packets lost", "ms", true);
    struct lossy blocks[COUNT_OF(losses)], packets[COUNT_OF(losses)];
    for (uint32_t i = 0; i < COUNT_OF(losses); i++) {
        blocks[i] = timed(run, config, EXANEST_RESEND_BLOCK, losses[i], writes[i]);
        packets[i] = timed(run, config, mode, losses[i], writes[i]);
    }
    struct lab_series *series = lab_add_curve(run, "the block is repeated");
    for (uint32_t i = 0; i < COUNT_OF(losses); i++) {
        lab_add_point(series, losses[i], milliseconds(&blocks[i]), LAB_NOTHING);
    }
    series = lab_add_curve(run, "the packet alone");
    for (uint32_t i = 0; i < COUNT_OF(losses); i++) {
        lab_add_point(series, losses[i], milliseconds(&packets[i]), LAB_NOTHING);
    }
    lab_judge_relative(lab_add_row(run, "EXA-W-selective/sent", "",
                                   "sent / needed at 1e-2, if only packets are repeated"),
                       expected(EXANEST_RESEND_PACKET, 1e-2), ratio_of(&packets[3]), 0.002);
    lab_judge_relative(lab_add_row(run, "EXA-W-selective/time", "",
                                   "of a 1 MB write: %.1f ms and %.1f, at 1e-2",
                                   milliseconds(&packets[3]), milliseconds(&blocks[3])),
                       timeouts_of_selection(1e-2) / (expected(EXANEST_RESEND_BLOCK, 1e-2) - 1),
                       packets[3].us / blocks[3].us, 0.15);
}

/* -- Transfers that are given up ----------------------------------------------------------------*/

static double share_given_up(struct lab_run *run, const struct exanest_machine_config *config,
                             double loss_of, uint32_t writes)
{
    const struct lossy_load load = {
        .bytes = BLOCK, .writes = writes, .loss = loss_of, .packets_max = LOTS};
    const struct lossy lossy = lose(run, config, &load);
    return (double)lossy.failed / lossy.writes;
}

static void give_up(struct lab_run *run, const struct exanest_machine_config *config)
{
    static const double losses[] = {1e-2, 2e-2, 3e-2, 4e-2, 5e-2, 6e-2};
    static const uint32_t limit = 16;
    double shares[COUNT_OF(losses)];
    for (uint32_t i = 0; i < COUNT_OF(losses); i++) {
        shares[i] = share_given_up(run, config, losses[i], losses[i] == 4e-2 ? 700 : 60);
    }
    lab_add_figure(run, "given-up", "Writes that end in error", "share of packets lost",
                   "share of writes", false);
    struct lab_series *series =
        lab_add_curve(run, "16 KB, %u retries", config->firmware.retries_max);
    for (uint32_t i = 0; i < COUNT_OF(losses); i++) {
        lab_add_point(series, losses[i], shares[i], given_up(losses[i], limit));
    }
    series = lab_add_curve(run, "1 MB, 16 retries, by arithmetic");
    for (uint32_t i = 0; i <= 24; i++) {
        const double loss_of = i * 0.0025;
        lab_add_point(series, loss_of, 1 - power(1 - given_up(loss_of, limit), 64), LAB_NOTHING);
    }
    lab_judge_relative(
        lab_add_row(run, "EXA-W-retries", "", "share of 16 KB writes given up at 4e-2"),
        given_up(4e-2, limit), shares[3], 0.15);
}

static void loss(struct lab_run *run)
{
    const struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    const uint32_t repeat = lab_word(run, "repeat");
    const uint32_t retries = (uint32_t)lab_value(run, "retries");
    const struct exanest_machine_config own = repeating(config, repeat, retries);
    double ratios[COUNT_OF(judged)];
    judge_sent(run, &own, ratios);
    draw_sent(run, &config, repeat, ratios);
    lab_progress(run, 0.5);
    select_packets(run, &config);
    lab_progress(run, 0.9);
    const struct exanest_machine_config limited = repeating(config, EXANEST_RESEND_BLOCK, retries);
    give_up(run, &limited);
}

static const struct lab_claim loss_claims[] = {
    {.id = "EXA-A24",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4: retransmissions of transactions, of 64 packets; OC: (1 - p)^-64",
     .broken_by = "repeat=transfer | repeat=packet",
     .because = "all of the transfer is sent again, or only what was lost"},
    {.id = "EXA-W-selective",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if only lost packets are sent again?",
     .broken_by = "selective=block",
     .because = "all 64 packets of a block are sent again, and may be lost again"},
    {.id = "EXA-W-retries",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what if one packet of 25 is lost? (1 - (1 - p)^64)^17",
     .broken_by = "retries=8 | retries=32",
     .because = "the share is that of blocks that fail 17 times"},
};

const struct lab_experiment exanest_loss = {
    .name = "exanest/loss",
    .what = "what lost packets cost: sent again, time, writes given up",
    EXANEST_COMMON,
    .uses = EXANEST_USES "repeat selective retries",
    EXANEST_CLAIMS(loss_claims),
    .run = loss,
    .explains =
        "A block of 64 packets arrives whole with (1 - p)^64, so its repair is cheap up to one "
        "lost packet in 1,000 and doubles the traffic at one in 100. The document's engine has "
        "nothing smaller than a block to repeat. If the R5 read the receiver's bitmap instead, "
        "only what was lost would be sent again; but a loss is still noticed by a timeout, whose "
        "length is our choice, and a write takes half as long, not a hundredth. Losses are drawn "
        "in front of the receiver, for data alone, and most writes are inside one FPGA: the ratio "
        "does not depend on the way. Our limit of 16 retries gives up 3 blocks of a million at "
        "1e-2; with one packet lost and one damaged of 100 each it is 0.4 % of the blocks and a "
        "quarter of the 1 MB writes, which is why the soak tests allow more retries.",
};
