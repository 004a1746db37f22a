/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The streams of TR376 4.2: one way, to itself, three to one, and all to all.
 */
#include <math.h>
#include <stdarg.h>

#include "lab/forth/experiments.h"

/* A sample of 100 us: that many PCI cycles of 10 ns. */
#define SAMPLE_CYCLES 10000u
#define SAMPLES       16u
/* The start of a sender that begins at its own time. */
#define START_PS UINT64_C(10000000)

/* The parameter "payload" in QWords. 0, and the run has failed, if no packet through the switch can
 * have it. */
static uint32_t forth_payload_qwords(struct lab_run *run)
{
    const uint32_t bytes = (uint32_t)lab_value(run, "payload");
    const uint32_t most = (uint32_t)lab_value(run, "crosspoint") - FORTH_OVERHEAD_WORDS;
    if (bytes % FORTH_QWORD_BYTES != 0 || bytes / FORTH_QWORD_BYTES > most) {
        lab_fail(run, "payload=%u is not a multiple of 8 up to %u, what a crosspoint holds", bytes,
                 most * FORTH_QWORD_BYTES);
        return 0;
    }
    return bytes / FORTH_QWORD_BYTES;
}

const char *forth_row_id(char *id, const char *claim, const char *which, ...)
{
    va_list arguments;
    const int length = snprintf(id, LAB_ID_BYTES, "%s/", claim);
    va_start(arguments, which);
    vsnprintf(id + length, LAB_ID_BYTES - (size_t)length, which, arguments);
    va_end(arguments);
    return id;
}

static void add_rate(struct lab_run *run, const char *id, double published, double measured,
                     double bound, const char *what)
{
    lab_judge_relative(lab_add_row(run, id, "MiB/s", "%s", what), published, measured, bound);
}

static const char *const accounts[FORTH_ACCOUNTS] = {"links", "reads", "writes"};

static void run_for(struct forth_machine *machine, uint64_t duration_ps)
{
    enum {
        STEPS = 20
    };
    for (uint64_t i = 1; i <= STEPS; i++) {
        sim_run_until(&machine->sim, duration_ps * i / STEPS);
        lab_progress(machine->run, (double)i / STEPS);
    }
}

/* -- One way (A1, A2, A13, A15) -----------------------------------------------------------------*/

/* The rate of one link: the words of the largest packet, as the document's format counts them, over
 * the time until the link can take the next one. */
static double raw_rate(struct lab_run *run)
{
    enum {
        SOP = 1,
        HEADER = 2,
        HEADER_CRC = 1,
        BODY_CRC = 1
    };
    struct forth_yard yard;
    uint32_t qwords = 0;
    forth_yard_open(&yard, run, 2);
    for (uint32_t i = 0; i < 2; i++) {
        struct station_config config = forth_station_config(run, i, 2);
        config.least = qwords = config.most;
        config.packets = i == 0;
        forth_yard_station(&yard, &config);
    }
    while (yard.up[0].packets == 0 && sim_step(yard.sim)) {
    }
    const double seconds = (double)(yard.up[0].free_ps - yard.sim->now_ps) / 1e12;
    const double bytes = 4.0 * (SOP + HEADER + HEADER_CRC + 2 * qwords + BODY_CRC);
    forth_yard_close(&yard);
    return bytes / seconds / FORTH_MB;
}

/* The utility's results from the samples: the rate over all of them, and between each two (A15). */
static double read_samples(struct lab_run *run, struct forth_node *node)
{
    const double interval_ms = SAMPLE_CYCLES / lab_value(run, "pci_clock") / 1e3;
    struct lab_figure *figure =
        lab_add_figure(run, "samples", "The sampling facility of the receiver", "time, ms",
                       "payload received, MiB/s", false);
    lab_add_mark(figure, LAB_NOTHING, 287, "measured by the document");
    struct lab_series *series = lab_add_curve(run, "from each sample to the next");
    uint32_t last = 0;
    uint32_t first = 0;
    const uint32_t taken = node->sampler.taken;
    for (uint32_t i = 0; i < taken; i++) {
        (void)forth_node_read(node, FORTH_SAMPLE_DATA); /* The outgoing half, which is not used. */
        const uint32_t next = forth_node_read(node, FORTH_SAMPLE_DATA);
        if (i == 0) {
            first = next;
        } else {
            lab_add_point(series, i * interval_ms, forth_sample_rate(next - last, SAMPLE_CYCLES),
                          LAB_NOTHING);
        }
        last = next;
    }
    return taken < 2 ? 0 : forth_sample_rate(last - first, SAMPLE_CYCLES * (taken - 1));
}

static void one_way(struct lab_run *run)
{
    struct forth_machine machine;
    struct forth_stream streams[2];
    const uint32_t qwords = forth_payload_qwords(run);
    if (qwords == 0) {
        return;
    }
    forth_machine_open(&machine, run, FORTH_SWITCHED_NODES, true);
    for (uint32_t i = 0; i < 2; i++) {
        forth_stream_open(&streams[i], &machine, i, qwords, forth_warm_ps(run));
    }
    forth_node_write(&machine.nodes[1], FORTH_SAMPLE_INTERVAL, SAMPLE_CYCLES);
    forth_node_write(&machine.nodes[1], FORTH_SAMPLE_COUNT, SAMPLES);
    forth_stream_to(&streams[0], 1);
    run_for(&machine, lab_ps(run, "duration"));

    add_rate(run, "FNX-A1", 298.02, raw_rate(run), 0.001, "one link, raw");
    const double rate = forth_stream_rate(&streams[1].all);
    add_rate(run, "FNX-A2", 287, rate, 0.005, "one way through the switch, 512 B packets");
    const uint64_t blocked = machine.nodes[0].registers.counters[FORTH_backpressure_cycles];
    lab_judge_range(lab_add_row(run, "FNX-A13", "cycles", "the window held the stream up"), 0, 0,
                    (double)blocked);
    const double sampled = read_samples(run, &machine.nodes[1]);
    lab_judge_relative(
        lab_add_row(run, "FNX-A15", "MiB/s", "the sampling utility, of the same stream"), rate,
        sampled, 0.01);
    forth_stream_check(&streams[1], run);
    forth_machine_close(&machine);
}

static const struct lab_claim one_way_claims[] = {
    {.id = "FNX-A1",
     .reference = LAB_DERIVED,
     .ground = LAB_ARITHMETIC,
     .source = "3.2.1: 32 bits at 78.125 MHz; 4.2: theoretical max. 300",
     .broken_by = "commas=4",
     .because = "idle words behind each packet"},
    {.id = "FNX-A2",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "4.2",
     .broken_by = "commas=4",
     .because = "idle words behind each packet"},
    {.id = "FNX-A13",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.2.1: the buffer and the round trip set the largest packet",
     .broken_by = "link_latency=400",
     .because = "the round trip outlasts a window of four packets"},
    {.id = "FNX-A15",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3.1.4.2: a utility computes the bandwidth; OC",
     .broken_by = "samples=apart",
     .because = "counts that begin anew leave nothing to subtract"},
};

/* -- To itself (A3) -----------------------------------------------------------------------------*/

static double rate_to_itself(struct lab_run *run, uint32_t qwords, enum forth_account account)
{
    struct forth_machine machine;
    struct forth_stream stream;
    forth_machine_open(&machine, run, FORTH_SWITCHED_NODES, true);
    forth_machine_account(&machine, account);
    forth_stream_open(&stream, &machine, 0, qwords, forth_warm_ps(run));
    forth_stream_to(&stream, 0);
    run_for(&machine, lab_ps(run, "duration"));
    const double rate = forth_stream_rate(&stream.all);
    forth_stream_check(&stream, run);
    forth_machine_close(&machine);
    return rate;
}

/* Under each account, beginning with the one that is set. */
static void to_itself(struct lab_run *run)
{
    const uint32_t qwords = forth_payload_qwords(run);
    for (uint32_t i = 0; i < FORTH_ACCOUNTS && qwords > 0; i++) {
        const enum forth_account account = (forth_account_of(run) + i) % FORTH_ACCOUNTS;
        char id[LAB_ID_BYTES] = "FNX-A3";
        if (account != FORTH_BY_LINKS) {
            (void)forth_row_id(id, "FNX-A3.bus", "%s", accounts[account]);
        }
        const double rate = rate_to_itself(run, qwords, account);
        lab_judge_relative(lab_add_row(run, id, "MiB/s",
                                       "one way to itself, 512 B packets, account=%s",
                                       accounts[account]),
                           270, rate, 0.002);
    }
}

static const struct lab_claim to_itself_claims[] = {
    {.id = "FNX-A3",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "4.2",
     .broken_by = "credit=2",
     .because = "a credit costs its start symbol and its word only"},
    {.id = "FNX-A3.bus",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "4.2: the same rate",
     .broken_by = "bus_more=0",
     .because = "reads and writes cost what they cost one way"},
};

/* -- Three to one (A4, A14) ---------------------------------------------------------------------*/

enum {
    SENDERS = 3
};

static void add_shares(struct lab_run *run, const struct forth_stream *sink)
{
    double least = LAB_UNBOUNDED;
    double most = 0;
    double farthest = 93;
    for (uint32_t i = 0; i < SENDERS; i++) {
        const double share = forth_stream_rate(&sink->arrived[i]);
        farthest = fabs(share - 93) > fabs(farthest - 93) ? share : farthest;
        least = fmin(least, share);
        most = fmax(most, share);
    }
    /* The printed figure is a whole number. */
    lab_judge_absolute(lab_add_row(run, "FNX-A4.sender", "MiB/s",
                                   "the sender of three farthest from it; 279 is their sum"),
                       93, farthest, 0.5);
    lab_judge_absolute(lab_add_row(run, "FNX-A4.shares", "", "smallest share over the largest"), 1,
                       most > 0 ? least / most : 0, 0.001);
}

static void three_to_one(struct lab_run *run)
{
    struct forth_machine machine;
    struct forth_stream streams[FORTH_SWITCHED_NODES];
    const uint32_t qwords = forth_payload_qwords(run);
    char id[LAB_ID_BYTES];
    const double all_cycles = lab_value(run, "duration") * lab_value(run, "net_clock");
    uint64_t lost = 0;
    if (qwords == 0) {
        return;
    }
    forth_machine_open(&machine, run, FORTH_SWITCHED_NODES, true);
    for (uint32_t i = 0; i < FORTH_SWITCHED_NODES; i++) {
        forth_stream_open(&streams[i], &machine, i, qwords, forth_warm_ps(run));
    }
    for (uint32_t i = 0; i < SENDERS; i++) {
        forth_stream_to(&streams[i], SENDERS);
    }
    run_for(&machine, lab_ps(run, "duration"));
    const struct forth_stream *sink = &streams[SENDERS];
    lab_judge_absolute(
        lab_add_row(run, "FNX-A4.sum", "MiB/s", "three senders: three times 93, which is rounded"),
        279, forth_stream_rate(&sink->all), 1.5);
    add_shares(run, sink);
    for (uint32_t i = 0; i < SENDERS; i++) {
        const struct crosspoint *point = crossbar_point(&machine.crossbar, i, SENDERS);
        lab_judge_range(lab_add_row(run, forth_row_id(id, "FNX-A14.peak", "%u", i), "B",
                                    "most ever in crosspoint %u", i),
                        0, 2048, FORTH_QWORD_BYTES * (double)point->peak);
        /* An output carries a third of what three senders have. */
        const double held = machine.nodes[i].registers.counters[FORTH_backpressure_cycles];
        lab_judge_absolute(lab_add_row(run, forth_row_id(id, "FNX-A14.held", "%u", i), "",
                                       "share of its time that sender %u waited for credit", i),
                           2.0 / 3, held / all_cycles, 0.02);
        lost += machine.crossbar.ports[i].overflows;
    }
    lab_judge_range(
        lab_add_row(run, "FNX-A14.lost", "packets", "found no room in their crosspoint"), 0, 0,
        (double)lost);
    forth_stream_check(sink, run);
    forth_machine_close(&machine);
}

static const struct lab_claim three_to_one_claims[] = {
    {.id = "FNX-A4.sum",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "4.2: 93 on every sender, hence 279",
     .broken_by = "change_over=0",
     .because = "nothing lies between packets of different crosspoints"},
    {.id = "FNX-A4.sender",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "4.2: the same measurement as the sum",
     .broken_by = "change_over=0",
     .because = "nothing lies between packets of different crosspoints"},
    {.id = "FNX-A4.shares",
     .reference = LAB_DERIVED,
     .ground = LAB_MECHANISM,
     .source = "4.2: 93 on every sender",
     .broken_by = "arbiter=fixed",
     .because = "the lowest input is served whenever it has a packet"},
    {.id = "FNX-A14.peak",
     .reference = LAB_DERIVED,
     .ground = LAB_MECHANISM,
     .source = "3.2.2: 2 Kbyte",
     .broken_by = "flow_control=off",
     .because = "senders do not wait for credit"},
    {.id = "FNX-A14.held",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "4.2: the test activates the flow control, of three senders two wait",
     .broken_by = "flow_control=off",
     .because = "senders do not wait for credit"},
    {.id = "FNX-A14.lost",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "4.2: the system has not reported errors",
     .broken_by = "flow_control=off",
     .because = "senders do not wait for credit"},
};

/* -- All to all (A12) ---------------------------------------------------------------------------*/

struct sender {
    struct sim_event begin;
    struct forth_stream *stream;
    uint32_t turn;
};

/* To all others in turn, a packet each, beginning with any of them. */
static void begin(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct sender *sender = CONTAINER_OF(event, struct sender, begin);
    struct forth_stream *stream = sender->stream;
    for (uint32_t k = 1; k < FORTH_SWITCHED_NODES; k++) {
        stream->destinations[stream->destination_count++] =
            (uint8_t)((stream->self + k) % FORTH_SWITCHED_NODES);
    }
    stream->turn = sender->turn;
    forth_node_kick(&stream->machine->nodes[stream->self]);
}

/* The rate at which each node receives. */
static void exchange(struct lab_run *run, uint32_t qwords, enum forth_account account,
                     double *rates)
{
    struct forth_machine machine;
    struct forth_stream streams[FORTH_SWITCHED_NODES];
    struct sender senders[FORTH_SWITCHED_NODES];
    struct prng prng;
    const bool in_step = lab_word(run, "start") != 0;
    const bool at_random = lab_word(run, "order") != 0;
    prng_init(&prng, run->seed);
    forth_machine_open(&machine, run, FORTH_SWITCHED_NODES, true);
    forth_machine_account(&machine, account);
    for (uint32_t i = 0; i < FORTH_SWITCHED_NODES; i++) {
        forth_stream_open(&streams[i], &machine, i, qwords, forth_warm_ps(run));
        streams[i].at_random = at_random;
        senders[i].stream = &streams[i];
        senders[i].turn =
            in_step ? 0 : (uint32_t)prng_below(&prng, (uint64_t)FORTH_SWITCHED_NODES - 1);
        sim_event_init(&senders[i].begin, begin);
        sim_schedule(&machine.sim, &senders[i].begin, in_step ? 0 : prng_below(&prng, START_PS));
    }
    run_for(&machine, lab_ps(run, "duration"));
    for (uint32_t i = 0; i < FORTH_SWITCHED_NODES; i++) {
        rates[i] = forth_stream_rate(&streams[i].all);
        forth_stream_check(&streams[i], run);
    }
    forth_machine_close(&machine);
}

/* If only the links' time counts, which a packet and two credits share. */
static void add_link_rates(struct lab_run *run, uint32_t qwords, const double *rates)
{
    char id[LAB_ID_BYTES];
    const double credits = 2 * lab_value(run, "credit");
    const double words = forth_frame_words(qwords);
    const double expected = forth_link_rate(run, 1, qwords) * words / (words + credits);
    for (uint32_t i = 0; i < FORTH_SWITCHED_NODES; i++) {
        lab_judge_relative(lab_add_row(run, forth_row_id(id, "FNX-A12.links", "%u", i), "MiB/s",
                                       "node %u receives, account=links", i),
                           expected, rates[i], 0.005);
    }
}

/* Under each account, beginning with the one that is set. The prediction is what lies between. */
static void all_to_all(struct lab_run *run)
{
    const uint32_t qwords = forth_payload_qwords(run);
    for (uint32_t i = 0; i < FORTH_ACCOUNTS && qwords > 0; i++) {
        const enum forth_account account = (forth_account_of(run) + i) % FORTH_ACCOUNTS;
        double rates[FORTH_SWITCHED_NODES];
        char id[LAB_ID_BYTES];
        exchange(run, qwords, account, rates);
        const double mean = (rates[0] + rates[1] + rates[2] + rates[3]) / FORTH_SWITCHED_NODES;
        lab_judge_range(lab_add_row(run, forth_row_id(id, "FNX-A12", "%s", accounts[account]),
                                    "MiB/s", "a node receives, mean of 4, account=%s",
                                    accounts[account]),
                        239, 271, mean);
        if (account == FORTH_BY_LINKS) {
            add_link_rates(run, qwords, rates);
        }
    }
}

static const struct lab_claim all_to_all_claims[] = {
    {.id = "FNX-A12",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FNX-A3 FNX-A3.bus",
     .source = "OC: what the accounts of A3 leave open; 4.2 gives no rate",
     .broken_by = "pci_clock=66.67",
     .because = "the bus has two thirds of its rate"},
    {.id = "FNX-A12.links",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "FNX-A3",
     .source = "OC: the links' time for a packet and two credits; 4.2 gives no rate",
     .broken_by = "order=random",
     .because = "packets for one output meet, and the FIFOs behind them wait"},
};

/* -- Their names --------------------------------------------------------------------------------*/

const struct lab_experiment forth_one_way = {
    FORTH_COMMON,
    .name = "forth/one-way",
    .what = "one node sends to another through the switch",
    .uses = FORTH_USES_SWITCHED FORTH_USES_TIME "payload",
    FORTH_CLAIMS(one_way_claims),
    .quick = true,
    .run = one_way,
    .explains =
        "Framing explains the rate, if MBytes are of 2^20: 129 cycles for 496 bytes, and a credit "
        "now and then that is repeated. The document gives one rate for several sizes, and does "
        "not say for which; ours is the largest. The switch's buffers are never full.",
};

const struct lab_experiment forth_to_itself = {
    FORTH_COMMON,
    .name = "forth/to-itself",
    .what = "one node sends to itself through the switch",
    .uses = FORTH_USES_SWITCHED FORTH_USES_TIME "payload",
    FORTH_CLAIMS(to_itself_claims),
    .quick = true,
    .run = to_itself,
    .explains =
        "The document says that the rate is lower than one way \"since there is both incoming and "
        "outgoing traffic\", and not what that slows. Credits may cost the outgoing link eight "
        "cycles a packet (account=links). Or a credit costs just its start symbol and its word, "
        "and the bus that both directions share is what limits, with seven cycles more of each "
        "DMA read or write than we chose (account=reads, account=writes). Each account is fitted "
        "to the rate, and the document does not tell them apart; but with longer writes the round "
        "trip would be 95 cycles, not about 90 (forth/round-trip). Nor does it say whether a NIC "
        "sends a credit for each 32 words, two a packet, or one for all that have changed "
        "(credit_rule=coalesced), as the switch does.",
};

const struct lab_experiment forth_three_to_one = {
    FORTH_COMMON,
    .name = "forth/three-to-one",
    .what = "three nodes send to the fourth",
    .uses = FORTH_USES_SWITCHED FORTH_USES_TIME "payload",
    FORTH_CLAIMS(three_to_one_claims),
    .quick = true,
    .run = three_to_one,
    .explains =
        "Equal shares follow from round robin, and no loss follows from credits. The 3 cycles "
        "between packets of different crosspoints are fitted to the total, which four would fit "
        "as well, for 93 is rounded; two or five would not. The document gives no reason for "
        "them.",
};

const struct lab_experiment forth_all_to_all = {
    FORTH_COMMON,
    .name = "forth/all-to-all",
    .what = "every node sends to every other in turn",
    .uses = FORTH_USES_MACHINE "jitter=20 " FORTH_USES_SWITCH
                               "ports nic_queues start order " FORTH_USES_TIME "payload",
    FORTH_CLAIMS(all_to_all_claims),
    .quick = true,
    .run = all_to_all,
    .explains =
        "The document says only that there were no errors: the rates are predictions. Its nodes "
        "send to any destination; ours to the three others. The three accounts of a node that "
        "sends to itself (forth/to-itself) differ here: 270 MiB/s under the first, 240 to 257 "
        "under the others, as the senders happen to begin. The prediction is therefore an "
        "interval. If packets and credits just share the links, senders that take turns do not "
        "queue up at an output. No crosspoint then holds a second packet, though they begin apart "
        "and memory jitters. Destinations drawn at random (order=random) do queue up, one FIFO "
        "for all of them blocks, and the rates fall to about 254 MiB/s. The document names the "
        "cause of its randomness, but no figure.",
};
