/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Lost packets are sent again: rows A22 to A26, A29 to A31.
 */
#include <string.h>

#include "base/bytes.h"
#include "lab/feroce/experiments.h"
#include "lab/feroce/rows.h"

enum {
    MESSAGE_BYTES = 262144,
    PACKETS = 64, /* A message's. */
    PMTU = 4096,
    LOST_PSN = 20 * PACKETS + 30,
    ACKS = 1000, /* Before all are lost. */
    LOSSY_MESSAGES = 3200,
};

#define US_PS UINT64_C(1000000)
#define MS_PS UINT64_C(1000000000)

static const char *const speed_names[FEROCE_SPEEDS] = {"10 Gb/s", "25 Gb/s", "100 Gb/s"};

/* One queue pair that could fill the line. */
static struct feroce_setup setup_of(struct lab_run *run, enum feroce_speed speed)
{
    struct feroce_setup setup = feroce_setup_2026(run, speed);
    setup.timing.qp_width_bytes = setup.timing.width_bytes;
    return setup;
}

static struct feroce_load load_of(uint32_t messages)
{
    struct feroce_load load = feroce_load_of(MESSAGE_BYTES, messages);
    load.write = false;
    return load;
}

static void end(struct feroce_sums *sums, struct feroce_machine *machine)
{
    feroce_sums_add(sums, machine);
    feroce_machine_close(machine);
}

static double cycles(const struct feroce_setup *setup, double us)
{
    return us * 1e6 / (double)setup->timing.cycle_ps;
}

static double in_us(uint64_t ps)
{
    return (double)ps / 1e6;
}

/* -- A22, A23 -----------------------------------------------------------------------------------*/

/* Packets that the loss of one costs. */
static double sent_again(struct lab_run *run, struct feroce_sums *sums, enum feroce_speed speed)
{
    const struct feroce_setup setup = setup_of(run, speed);
    struct feroce_load load = load_of(30);
    load.lost_psn = LOST_PSN;
    return (double)feroce_run_in(run, sums, &setup, &load).resent;
}

static void one_lost(struct lab_run *run, struct feroce_sums *sums, double *again)
{
    static const char *const rows[] = {"FER-A22/10", "FER-A22/25", "FER-A22/100"};
    static const double expected[] = {8, 10, 19};
    for (enum feroce_speed speed = FEROCE_10G; speed < FEROCE_SPEEDS; speed++) {
        again[speed] = sent_again(run, sums, speed);
        lab_judge_absolute(lab_add_row(run, rows[speed], "", "%s: packets sent again for one lost",
                                       speed_names[speed]),
                           expected[speed], again[speed], 1);
    }
}

static double goodput(struct lab_run *run, struct feroce_sums *sums, enum feroce_speed speed,
                      double loss, uint32_t messages)
{
    struct feroce_setup setup = setup_of(run, speed);
    struct feroce_load load = load_of(messages);
    setup.keeps = lab_word(run, "receiver") != 0;
    setup.board.window.resends_alone = lab_word(run, "resend") != 0;
    load.loss_millionths = (uint32_t)llround(loss * 1e6);
    return feroce_run_in(run, sums, &setup, &load).gbps;
}

static void goodput_row(struct lab_run *run, struct feroce_sums *sums, enum feroce_speed speed,
                        double again, double points)
{
    const double loss = lab_value(run, "loss");
    const double whole = goodput(run, sums, speed, 0, 200);
    const double lossy = goodput(run, sums, speed, loss, LOSSY_MESSAGES);
    lab_judge_absolute(lab_add_row(run, speed == FEROCE_10G ? "FER-A23/10" : "FER-A23/100", "%",
                                   "%s: goodput of that without loss, %.0f sent again for each",
                                   speed_names[speed], again),
                       100 / (1 + 0.001 * again), 100 * lossy / whole, points);
}

static void goodput_figure(struct lab_run *run, struct feroce_sums *sums)
{
    static const double losses[] = {1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2};
    lab_add_figure(run, "goodput", "Goodput over the share of packets lost", "share lost",
                   "payload, Gb/s", true);
    for (enum feroce_speed speed = FEROCE_10G; speed < FEROCE_SPEEDS; speed++) {
        struct lab_series *series = lab_add_curve(run, "%s", speed_names[speed]);
        for (uint32_t i = 0; i < COUNT_OF(losses); i++) {
            lab_add_point(series, losses[i], goodput(run, sums, speed, losses[i], 200),
                          LAB_NOTHING);
        }
    }
}

/* The cost of a longer round trip: more packets are sent before a loss is known, and the window
 * ends. */
static void cable_figure(struct lab_run *run, struct feroce_sums *sums)
{
    static const uint32_t cables_ns[] = {10, 100, 300, 1000, 2000, 4000, 8000};
    lab_add_figure(run, "cables", "Goodput at a loss of one in a thousand over the cable",
                   "one pass, ns", "payload, Gb/s", true);
    for (enum feroce_speed speed = FEROCE_10G; speed < FEROCE_SPEEDS; speed++) {
        struct lab_series *series = lab_add_curve(run, "%s", speed_names[speed]);
        for (uint32_t i = 0; i < COUNT_OF(cables_ns); i++) {
            struct feroce_setup setup = setup_of(run, speed);
            struct feroce_load load = load_of(200);
            setup.line.wire.latency_ps = cables_ns[i] * SIM_NS;
            setup.board_line.wire.latency_ps = setup.line.wire.latency_ps;
            load.loss_millionths = 1000;
            lab_add_point(series, cables_ns[i], feroce_run_in(run, sums, &setup, &load).gbps,
                          LAB_NOTHING);
        }
    }
}

/* -- A24, A25: silence --------------------------------------------------------------------------*/

/* From the last ACK to the first packet that is sent again, in cycles. */
static double silence(struct lab_run *run, struct feroce_sums *sums, bool busy)
{
    const struct feroce_setup setup = setup_of(run, FEROCE_100G);
    struct feroce_load load = load_of(busy ? UINT32_MAX : 20);
    if (busy) {
        load.acks = ACKS;
        load.until_ps = 500 * US_PS;
    } else {
        load.warm = 2;
        load.count = 20;
        load.lost_psn = 20 * PACKETS - 1;
    }
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    if (machine == NULL) {
        return 0;
    }
    /* The ACK before the silence is the last one that is taken before packets go again. */
    while (machine->nodes[0].first_resend_ps == 0 && feroce_machine_step(machine) &&
           machine->sim.now_ps < 2 * MS_PS) {
    }
    const struct feroce_node *node = &machine->nodes[0];
    const double found =
        node->resent == 0 ? 0 : cycles(&setup, in_us(node->first_resend_ps - node->last_ack_ps));
    end(sums, machine);
    return found;
}

static void silence_rows(struct lab_run *run, struct feroce_sums *sums)
{
    const double qps = 8, rto = 15000;
    const double busy = silence(run, sums, true), tail = silence(run, sums, false);
    lab_judge_range(lab_add_row(run, "FER-A24.busy", "cycles",
                                "all ACKs lost, source busy: last ACK to first resend"),
                    rto - 2 * qps, rto + 40 * qps, busy);
    lab_judge_range(lab_add_row(run, "FER-A24.tail", "cycles",
                                "last packet lost, then silence: last ACK to first resend"),
                    rto - 2 * qps, rto + 40 * qps, tail);
}

static void dead_rows(struct lab_run *run, struct feroce_sums *sums)
{
    const struct feroce_setup setup = setup_of(run, FEROCE_100G);
    struct feroce_load load = load_of(UINT32_MAX);
    load.acks = ACKS;
    load.until_ps = 2 * MS_PS;
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    if (machine == NULL) {
        return;
    }
    feroce_machine_run(machine);
    const struct feroce_node *node = &machine->nodes[0];
    const bool failed = node->syndrome == FEROCE_SYNDROME_LIMIT;
    lab_judge_absolute(lab_add_row(run, "FER-A25.resends", "",
                                   "dead peer: how often the oldest packet goes again"),
                       7, failed ? (double)node->oldest_resends : 0, 0);
    lab_judge_relative(
        lab_add_row(run, "FER-A25.time", "us", "dead peer: from the last ACK to ERROR"), 372,
        failed ? in_us(node->failed_ps - node->last_ack_ps) : 0, 0.01);
    end(sums, machine);
}

/* -- A26: no receive ----------------------------------------------------------------------------*/

static void rnr_row(struct lab_run *run, struct feroce_sums *sums)
{
    struct feroce_setup setup = setup_of(run, FEROCE_100G);
    struct feroce_load load = load_of(100);
    setup.timing.timer_scale = 322.265625 / lab_value(run, "rnr_clock");
    setup.rnr_code = (uint8_t)lab_value(run, "rnr_code");
    setup.receives = 8;
    load.reposts_from_ps = 400 * US_PS;
    load.until_ps = 5 * MS_PS;
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    if (machine == NULL) {
        return;
    }
    const struct feroce_node *node = &machine->nodes[0];
    while (node->first_resend_ps == 0 && feroce_machine_step(machine) &&
           machine->sim.now_ps < load.until_ps) {
    }
    const double wait_us = in_us(node->first_resend_ps - node->last_nak_ps);
    const double cycle_us = in_us(setup.timing.cycle_ps), qps = setup.board.window.qps;
    const double round_us = 40 * qps * cycle_us;
    lab_judge_range(lab_add_row(run, "FER-A26", "us", "RNR NAK to first resend, code 8"),
                    160 - 2 * qps * cycle_us, 161.6 + round_us, wait_us);
    feroce_machine_run(machine);
    if (machine->nodes[0].messages < 50) {
        lab_fail(run, "nothing arrives after an RNR NAK");
    }
    end(sums, machine);
}

/* -- A29: the window ----------------------------------------------------------------------------*/

static void acknowledge(struct feroce_machine *machine, uint32_t psn)
{
    uint8_t bytes[ROCE_BTH_BYTES + ROCE_AETH_BYTES + ROCE_ICRC_BYTES] = {0};
    const struct roce_packet ack = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = FEROCE_FIRST_QPN,
        .psn = psn,
        .aeth = {.syndrome = ROCE_AETH_ACK},
    };
    (void)roce_encode_headers(&ack, bytes);
    (void)feroce_node_answer(&machine->nodes[0], bytes, sizeof(bytes), true);
}

/* No ACK comes but those that are made here, one every 2 us. */
static void window_rows(struct lab_run *run, struct feroce_sums *sums)
{
    struct feroce_setup setup = feroce_setup_2026(run, FEROCE_100G);
    struct feroce_load load = load_of(UINT32_MAX);
    load.acks = 1;
    setup.board.window.rto_ns = 10000000;
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    if (machine == NULL) {
        return;
    }
    const struct feroce_retransmission *window = &machine->nodes[0].board.window;
    feroce_machine_run_until(machine, 200 * US_PS);
    const uint32_t outstanding = feroce_node_psn_diff(&machine->nodes[0], 0);
    const bool stalls = !feroce_window_has_room(window, 0);
    uint32_t accepts_at = 0;
    for (uint32_t psn = 1; stalls && psn < outstanding && accepts_at == 0; psn++) {
        acknowledge(machine, psn);
        accepts_at =
            feroce_window_has_room(window, 0) ? feroce_node_psn_diff(&machine->nodes[0], 0) : 0;
        feroce_machine_run_until(machine, machine->sim.now_ps + 2 * US_PS);
    }
    lab_judge_range(lab_add_row(run, "FER-A29.stop", "packets",
                                "no ACKs: stored before the queue stalls (%llu overwritten)",
                                (unsigned long long)window->overwritten),
                    51, 53, stalls ? outstanding : 0);
    lab_judge_absolute(
        lab_add_row(run, "FER-A29.release", "packets", "not acknowledged when it accepts again"),
        42, accepts_at, 0);
    end(sums, machine);
}

/* -- A30: a long line ---------------------------------------------------------------------------*/

static void long_rows(struct lab_run *run, struct feroce_sums *sums)
{
    static const char *const rows[] = {"FER-A30/20", "FER-A30/30", "FER-A30/40"};
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        struct feroce_setup setup = setup_of(run, FEROCE_100G);
        struct feroce_load load = load_of(60);
        const double round_us = 20 + 10.0 * i;
        /* All that is not cable, from last bit to ACK. */
        const double rest_us = feroce_run_in(run, sums, &setup, &load).latency_us -
                               4 * in_us(setup.line.wire.latency_ps);
        if (rest_us > round_us) {
            lab_fail(run, "without any cable a round trip takes %.1f us, and %.0f are asked for",
                     rest_us, round_us);
            return;
        }
        setup.line.wire.latency_ps = (uint64_t)((round_us - rest_us) * 1e6 / 4);
        setup.board_line.wire.latency_ps = setup.line.wire.latency_ps;
        const double gbps = feroce_run_in(run, sums, &setup, &load).gbps;
        const double full = 51.0 * PMTU * 8 / (round_us * 1e3);
        lab_judge_range(lab_add_row(run, rows[i], "",
                                    "round trip of %.0f us: %.1f Gb/s, of a window each round trip",
                                    round_us, gbps),
                        0.82, 0.93, gbps / full);
    }
}

/* -- A31: R_Key 0 -------------------------------------------------------------------------------*/

static void rkey_rows(struct lab_run *run, struct feroce_sums *sums)
{
    struct feroce_setup setup = setup_of(run, FEROCE_100G);
    struct feroce_load load = load_of(20);
    load.write = true;
    load.warm = 2;
    load.until_ps = 2 * MS_PS;
    setup.board.window.quirks |= lab_word(run, "rkey") == 0 ? FEROCE_QUIRK_RKEY0 : 0;
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    if (machine == NULL) {
        return;
    }
    feroce_machine_run(machine);
    const struct feroce_receiver *receiver = &machine->receiver;
    const struct feroce_context *context = &machine->nodes[0].board.table.contexts[0];
    lab_judge_absolute(
        lab_add_row(run, "FER-A31.refusal", "", "R_Key 0: AETH of the responder's NAK (0x62)"),
        0x62, receiver->refusals > 0 ? receiver->refusal : 0, 0);
    lab_judge_absolute(lab_add_row(run, "FER-A31.syndrome", "",
                                   "R_Key 0: syndrome of the queue pair in ERROR (0x9f, first %x)",
                                   context->first_syndrome),
                       0x9f, context->first_syndrome == 0x62 ? context->syndrome : 0, 0);
    lab_judge_absolute(lab_add_row(run, "FER-A31.bytes", "B", "R_Key 0: written"), 0,
                       (double)receiver->compared, 0);
    end(sums, machine);
}

static void loss(struct lab_run *run)
{
    struct feroce_sums sums = {0};
    double again[FEROCE_SPEEDS];
    one_lost(run, &sums, again);
    silence_rows(run, &sums);
    dead_rows(run, &sums);
    rnr_row(run, &sums);
    window_rows(run, &sums);
    long_rows(run, &sums);
    rkey_rows(run, &sums);
    lab_progress(run, 0.3);
    goodput_row(run, &sums, FEROCE_10G, again[FEROCE_10G], 0.2);
    goodput_row(run, &sums, FEROCE_100G, again[FEROCE_100G], 0.5);
    lab_progress(run, 0.8);
    goodput_figure(run, &sums);
    cable_figure(run, &sums);
    feroce_sums_rows(run, &sums, "FER-A37.bytes.loss", "FER-A37.icrcs.loss");
}

static const struct lab_claim claims[] = {
    {.id = "FER-A22",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "FER-A5",
     .source = "OC: ceil(1 + latency / packet time) + 1 + read_ahead",
     .broken_by = "read_ahead=0",
     .because = "four packets fewer leave before the NAK is heeded"},
    {.id = "FER-A23",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: 1 / (1 + loss x n), with n as in A22",
     .broken_by = "receiver=keeps resend=alone",
     .because = "one packet goes again for one that is lost"},
    {.id = "FER-A24.busy",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .source = "RTL2026: 15,000 cycles, which sending does not restart",
     .broken_by = "timer=sending",
     .because = "each packet restarts the timer, until the window is full"},
    {.id = "FER-A24.tail",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .source = "RTL2026: the timeout is 15,000 cycles",
     .broken_by = "rto=16000",
     .because = "the RTO is longer"},
    {.id = "FER-A25.resends",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .source = "RTL2026: retry_count is 7",
     .broken_by = "retry=6",
     .because = "one retry fewer"},
    {.id = "FER-A25.time",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "RTL2026: eight times the timeout",
     .broken_by = "retry=6",
     .because = "one RTO fewer"},
    {.id = "FER-A26",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .source = "IBTA: code 8 is 0.16 ms; feroce-rs: code 8",
     .broken_by = "rnr_clock=301 | rnr_code=9",
     .because = "the timer counts for another clock; or the code is 0.24 ms"},
    {.id = "FER-A29.stop",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "RTL2026: stops above slots - (N + 6), here 50",
     .broken_by = "buffer_bits=20 | quirks=rtl",
     .because = "32 slots; or a source slower than the line never stalls"},
    {.id = "FER-A29.release",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "RTL2026: goes on at slots - (2N + 6), here 42",
     .broken_by = "buffer_bits=20 | release=stop",
     .because = "32 slots; or there is no hysteresis"},
    {.id = "FER-A30",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: nine packets go at a time, five times in a window of 51",
     .broken_by = "release=stop",
     .because = "without hysteresis a window is full all the time"},
    {.id = "FER-A31.refusal",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "RTL2026: header memory has no R_Key; IBTA: remote access error",
     .broken_by = "rkey=right",
     .because = "the peer's R_Key opens its memory"},
    {.id = "FER-A31.syndrome",
     .reference = LAB_ELSEWHERE,
     .ground = LAB_ARITHMETIC,
     .source = "RTL2026: the unit that closes the queue pair writes 0x9f",
     .broken_by = "rkey=right",
     .because = "nothing fails"},
    {.id = "FER-A31.bytes",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "IBTA: nothing is written with a wrong R_Key",
     .broken_by = "rkey=right",
     .because = "all bytes are written"},
    FEROCE_SUM_CLAIMS("loss"),
};

const struct lab_experiment feroce_loss = {
    FEROCE_COMMON,
    .name = "feroce/loss",
    .what = "go-back-N, timeouts, RNR, the window, and a WRITE that is refused",
    .uses = "qps pmtu qp_width buffer_bits rto retry quirks read_ahead timer resend release "
            "receiver rnr_clock "
            "rnr_code rkey loss extra_bytes gap host_ns ack_ns fec_ns cable switch visit_cycles "
            "packet_cycles "
            "pipe_cycles request_cycles coalesce flip",
    FEROCE_CLAIMS(claims),
    .run = loss,
    .explains =
        "A lost packet costs what was sent until its NAK is heeded: a round trip of packets and "
        "what the reader had handed on, 8 at 10 Gb/s and 19 at 100. The timer runs from the last "
        "acknowledgement, eight times 46.5 us end a queue pair, and 51 packets of any size are the "
        "window. Since a stalled queue goes on only when nine fewer are outstanding, a long line "
        "carries 88 % of a window each round trip. All this is the authors' public design of 2026, "
        "as "
        "we read it: the board of the slides sends nothing twice. Nobody has published a "
        "measurement of loss.",
};
