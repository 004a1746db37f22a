/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Memory that is not pinned, over the share of its pages that are absent, against memory that is:
 * pinned once, or by each write for itself.
 */
#include <string.h>

#include "lab/exanest/experiments.h"

#define BLOCK       16384u
#define PAGE        4096u
#define BLOCK_PAGES (BLOCK / PAGE)
#define WRITES      120u /* Each of a block that no other one touches. */
#define PAGES       (WRITES * BLOCK_PAGES)
#define SOURCE      EXANEST_MEMORY_VA
#define TARGET      (EXANEST_MEMORY_VA + WRITES * BLOCK)

/* Which end has pages that are absent. */
enum end {
    AT_SOURCE,
    AT_TARGET,
    ENDS
};

struct absent {
    enum end end;
    uint32_t of_block; /* This many of each write's four pages; if 0: */
    double share;      /* this share of all, drawn. */
    uint32_t window;   /* Writes under way at once; 0: one. */
};

struct unpinned {
    double us;         /* From the first post to the last end, by the number of writes. */
    uint32_t faulting; /* Writes that found a page absent. */
};

static void take_away(struct exanest_world *world, const struct absent *absent, uint32_t page)
{
    const uint32_t fpga = absent->end == AT_TARGET;
    struct exanest_memory *memory = &exanest_fabric_fpga(&world->machine.fabric, fpga)->memory;
    const uint16_t pdid = world->machine.r5s[fpga].scratchpad.pdid[0];
    const uint64_t base = absent->end == AT_TARGET ? TARGET : SOURCE;
    const bool known = exanest_memory_set_present(memory, pdid, base + page * PAGE, false);
    CHECK(known);
}

/* As many as the share says, and not about as many: which ones they are is drawn. Returns the
 * writes that will find one absent. */
static uint32_t take_all_away(struct exanest_world *world, const struct absent *absent)
{
    uint32_t left = (uint32_t)(absent->share * PAGES + 0.5), faulting = 0;
    bool faults = false;
    for (uint32_t page = 0; page < PAGES; page++) {
        const bool drawn = prng_below(&world->sim.prng, PAGES - page) < left;
        const bool is_absent =
            absent->of_block != 0 ? page % BLOCK_PAGES < absent->of_block : drawn;
        left -= drawn;
        faults |= is_absent;
        if (is_absent) {
            take_away(world, absent, page);
        }
        if (page % BLOCK_PAGES == BLOCK_PAGES - 1) {
            faulting += faults;
            faults = false;
        }
    }
    return faulting;
}

static void post(struct exanest_world *world, uint32_t number, uint32_t channel)
{
    const struct exanest_write write = {
        .to = 1, .source = SOURCE + number * BLOCK, .va = TARGET + number * BLOCK, .bytes = BLOCK};
    exanest_machine_write(&world->machine, 0, 0, channel, &write);
}

static void await(struct exanest_world *world, uint32_t channel)
{
    struct exanest_transfer transfer;
    do {
        transfer = exanest_r5_transfer(&world->machine.r5s[0], 0, channel);
    } while (transfer.state != EXANEST_TRANSFER_DONE && transfer.state != EXANEST_TRANSFER_ERROR &&
             sim_step(&world->sim));
    if (transfer.state != EXANEST_TRANSFER_DONE) {
        lab_fail(world->run, "a write was given up");
    }
}

/* In a ring of channels: the next write waits for the end of the oldest one. */
static void post_all(struct exanest_world *world, uint32_t window)
{
    for (uint32_t i = 0; i < WRITES + window; i++) {
        if (i >= window) {
            await(world, i % window);
        }
        if (i < WRITES) {
            post(world, i, i % window);
        }
    }
}

static struct unpinned write_all(struct lab_run *run, const struct absent *absent)
{
    struct exanest_machine_config config = exanest_config_of(run, 1, 1, 1);
    config.firmware.fault_wait_ns = lab_ps(run, "fault_wait") / 1000;
    config.process_bytes = 2 * WRITES * BLOCK;
    struct exanest_world *world = exanest_world_begin(run, &config);
    struct exanest_machine *machine = &world->machine;
    for (uint32_t i = 0; i < exanest_fabric_fpgas(&machine->fabric); i++) {
        machine->r5s[i].fault_ps = lab_ps(run, "page_in");
    }
    uint8_t *source = exanest_machine_bytes(machine, 0, 0, SOURCE, WRITES * BLOCK);
    for (uint32_t i = 0; i < WRITES * BLOCK; i++) {
        source[i] = (uint8_t)prng_next(&world->sim.prng);
    }
    struct unpinned unpinned = {.faulting = take_all_away(world, absent)};
    post_all(world, absent->window == 0 ? 1 : absent->window);
    unpinned.us = (double)world->sim.now_ps / 1e6 / WRITES;
    const uint8_t *target = exanest_machine_bytes(machine, 1, 0, TARGET, WRITES * BLOCK);
    if (memcmp(source, target, WRITES * BLOCK) != 0) {
        lab_fail(run, "writes into absent pages arrived wrong");
    }
    exanest_world_end(world);
    return unpinned;
}

static struct unpinned with_share(struct lab_run *run, enum end end, double share)
{
    return write_all(run, &(struct absent){.end = end, .share = share});
}

static double with_pages(struct lab_run *run, enum end end, uint32_t of_block)
{
    return write_all(run, &(struct absent){.end = end, .of_block = of_block}).us;
}

/* The time of both ends' kernels before and behind each write, if that pins its memory. */
static double pinning_us(struct lab_run *run)
{
    return 2 * (lab_value(run, "pin") + BLOCK_PAGES * lab_value(run, "pin_page"));
}

static const double shares[] = {0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1};

/* The share at which a write takes `wanted_us`, between two of those that were tried. */
static double share_of(const double us[], double wanted_us)
{
    for (size_t i = 1; i < COUNT_OF(shares); i++) {
        if (us[i] >= wanted_us) {
            const double part = (wanted_us - us[i - 1]) / (us[i] - us[i - 1]);
            return shares[i - 1] + part * (shares[i] - shares[i - 1]);
        }
    }
    return 1;
}

static void draw(struct lab_run *run, double us[ENDS][COUNT_OF(shares)], double pinned_us)
{
    struct lab_figure *figure =
        lab_add_figure(run, "share", "Writes of 16 KB whose memory is not pinned",
                       "share of the pages that are absent (%)", "a write (us)", false);
    lab_add_level(figure, us[AT_TARGET][0], "pinned once");
    lab_add_level(figure, pinned_us, "pinned by each write");
    for (enum end end = 0; end < ENDS; end++) {
        struct lab_series *series =
            lab_add_curve(run, end == AT_TARGET ? "absent at the target" : "absent at the source");
        for (size_t i = 0; i < COUNT_OF(shares); i++) {
            lab_add_point(series, 100 * shares[i], us[end][i], LAB_NOTHING);
        }
    }
}

static void judge_single(struct lab_run *run, double there_us)
{
    const double one_us = with_pages(run, AT_TARGET, 1), four_us = with_pages(run, AT_TARGET, 4);
    lab_judge_relative(lab_add_row(run, "EXA-P-pages", "",
                                   "times the delay of one absent page: all four are absent, %.1f "
                                   "us for %.1f",
                                   four_us - there_us, one_us - there_us),
                       1, (four_us - there_us) / (one_us - there_us), 0.05);
    const double source_us = with_pages(run, AT_SOURCE, 1);
    lab_judge_absolute(lab_add_row(run, "EXA-P-source", "us",
                                   "the delay of a write one of whose pages is absent at the "
                                   "source: nothing was sent in vain, and the driver tells the R5"),
                       lab_value(run, "page_in"), source_us - there_us, 1.5);
}

/* -- Rate ---------------------------------------------------------------------------------------*/

static const double some[] = {0, 0.1, 1};

static void judge_rates(struct lab_run *run, double gbps[ENDS][COUNT_OF(some)], uint32_t faulting)
{
    lab_judge_relative(lab_add_row(run, "EXA-P-rate", "Gb/s",
                                   "a tenth of the target's pages absent: blocks that find one are "
                                   "sent twice, so %u instead of %u",
                                   WRITES + faulting, WRITES),
                       gbps[AT_TARGET][0] * WRITES / (WRITES + faulting), gbps[AT_TARGET][1], 0.04);
    const double block_us = BLOCK_PAGES * lab_value(run, "page_in");
    lab_judge_relative(lab_add_row(run, "EXA-P-driver", "Gb/s",
                                   "all of the source's pages absent: the kernel brings in one "
                                   "page after another, and a block needs %u",
                                   BLOCK_PAGES),
                       8e-3 * BLOCK / block_us, gbps[AT_SOURCE][COUNT_OF(some) - 1], 0.07);
}

/* Several writes at once. */
static void rate(struct lab_run *run)
{
    double gbps[ENDS][COUNT_OF(some)];
    uint32_t faulting = 0;
    lab_add_figure(run, "rate", "Rate of writes of 16 KB whose memory is not pinned",
                   "share of the pages that are absent (%)", "Gb/s", false);
    for (enum end end = 0; end < ENDS; end++) {
        struct lab_series *series =
            lab_add_curve(run, end == AT_TARGET ? "absent at the target" : "absent at the source");
        for (size_t i = 0; i < COUNT_OF(some); i++) {
            const struct absent absent = {
                .end = end, .share = some[i], .window = (uint32_t)lab_value(run, "writes")};
            const struct unpinned unpinned = write_all(run, &absent);
            gbps[end][i] = 8e-3 * BLOCK / unpinned.us;
            faulting = i == 1 ? unpinned.faulting : faulting;
            lab_add_point(series, 100 * some[i], gbps[end][i], LAB_NOTHING);
        }
    }
    judge_rates(run, gbps, faulting);
}

static void no_pinning(struct lab_run *run)
{
    double us[ENDS][COUNT_OF(shares)];
    uint32_t faulting = 0;
    for (enum end end = 0; end < ENDS; end++) {
        for (size_t i = 0; i < COUNT_OF(shares); i++) {
            const struct unpinned unpinned = with_share(run, end, shares[i]);
            us[end][i] = unpinned.us;
            faulting = end == AT_TARGET && shares[i] == 0.1 ? unpinned.faulting : faulting;
        }
    }
    const double there_us = us[AT_TARGET][0], all_us = us[AT_TARGET][COUNT_OF(shares) - 1];
    judge_single(run, there_us);
    const double expected_us = there_us + (all_us - there_us) * faulting / WRITES;
    lab_judge_relative(lab_add_row(run, "EXA-P-share", "us",
                                   "a write of 16 KB, a tenth of the target's pages absent: %u of "
                                   "%u writes find one, and take as long as if all were",
                                   faulting, WRITES),
                       expected_us, us[AT_TARGET][4], 0.03);
    const double pinned_us = there_us + pinning_us(run);
    const double even = share_of(us[AT_TARGET], pinned_us);
    const double fault_us = (all_us - there_us) * BLOCK_PAGES;
    lab_judge_relative(lab_add_row(run, "EXA-P-even", "%",
                                   "of the target's pages absent: not to pin takes as long as to "
                                   "pin for each write"),
                       100 * pinning_us(run) / fault_us, 100 * even, 0.15);
    draw(run, us, pinned_us);
    rate(run);
}

static const struct lab_claim no_pinning_claims[] = {
    {.id = "EXA-P-pages",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4.1, 5.3.4: a block is repeated as a whole, whatever of it was lost",
     .broken_by = "page_in=20",
     .because = "four pages take longer to come than the R5 waits, so the block is sent once more"},
    {.id = "EXA-P-source",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "5.3.4: a fault at the source stops the block, and no garbage enters the network",
     .broken_by = "read=1000",
     .because = "a read of memory that finds no page takes as long as another one"},
    {.id = "EXA-P-share",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "1.1: memory accesses may produce page faults, which trigger retransmissions",
     .broken_by = "page_in=20",
     .because = "how often a block is sent again depends on how many of its pages are absent"},
    {.id = "EXA-P-even",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "1.1: pinning \"still adds latency due to the kernel involvement\"",
     .broken_by = "pin_page=8",
     .because = "a pin that dear is worth a lot of faults, of which several meet in one block"},
    {.id = "EXA-P-rate",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "1.1: memory accesses may produce page faults, which trigger retransmissions",
     .broken_by = "writes=1",
     .because = "nothing goes on while a block waits for its page"},
    {.id = "EXA-P-driver",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: one page after another; 5.3.4: the block waits at the source",
     .broken_by = "writes=1",
     .because = "pages of several blocks are not wanted at once"},
};

const struct lab_experiment exanest_no_pinning = {
    .name = "exanest/no-pinning",
    .what = "memory that is not pinned, over the share of absent pages, against memory that is",
    EXANEST_COMMON,
    .uses = EXANEST_USES "fault_wait page_in pin pin_page writes",
    EXANEST_CLAIMS(no_pinning_claims),
    .quick = true,
    .run = no_pinning,
    .explains =
        "The document's reason for not pinning is that pinning costs a system call before each "
        "transfer; its price are blocks that are sent twice when a page is absent. It prints "
        "neither. Here both are times of the experiment: how long a call that pins takes and how "
        "long for each page are our choice (Linux on a server needs about as long), and how long a "
        "fault takes was fitted to a later publication (exanest/page-fault). So the share of "
        "absent "
        "pages up to which it is better not to pin is a statement about these times, and not about "
        "the machine that was built. A program that pins its memory once, and uses it often, is "
        "never slower than one that does not. The rate of several writes at once suffers less: "
        "while "
        "a block waits others are sent, until the kernel has no time left for pages.",
};
