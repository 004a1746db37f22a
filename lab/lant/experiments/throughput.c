/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rate of a line, and the number of packets that have to be under way for it: 3.4.3, 6.1 (rows
 * A11, A12, A15, A16, A66).
 */
#include "lab/lant/bench.h"

enum {
    STREAM_BYTES = 1 << 18,
    LINE_PACKETS = 2000,
    WINDOWS = 6,
};

/* -- The line alone -----------------------------------------------------------------------------*/

struct sink {
    struct lant_fabric fabric;
    struct lant_watch *watch;
    uint64_t last_ps;
    uint32_t come, wrong;
};

static void on_packet(void *context, uint32_t node, struct lant_frame *frame)
{
    (void)node;
    struct sink *sink = context;
    sink->come++;
    sink->wrong += !lant_bench_whole(frame);
    lant_watch_came(sink->watch, frame);
    sink->last_ps = sink->fabric.sim->now_ps;
    lant_fabric_free(&sink->fabric, frame);
}

static void send_all(struct sink *sink, uint32_t bytes)
{
    for (uint32_t i = 0; i < LINE_PACKETS; i++) {
        struct lant_packet packet = {.header = {.destination = 1,
                                                .type = LANT_RDMA_UNREGISTERED,
                                                .payload = (uint8_t)(bytes / LANT_FLIT_BYTES)},
                                     .footer = {.class = LANT_CLASS_RDMA, .offset = i}};
        struct lant_frame *frame = lant_fabric_frame(&sink->fabric);
        CHECK(frame != NULL);
        lant_bench_load(&packet);
        frame->count = lant_encode(&packet, frame->flits);
        const uint64_t length_ps = lant_cycles(frame->count);
        const uint64_t head_ps = lant_fabric_send(&sink->fabric, 0, frame, 0);
        lant_watch_sent(sink->watch, 0, &packet.header, head_ps, head_ps + length_ps);
    }
}

/* Packets of `bytes` bytes in a row, in Gb/s of payload. */
static double line_gbps(struct lab_run *run, uint32_t bytes)
{
    struct sink sink = {0};
    struct sim sim;
    struct sim_trace *trace;
    struct sim_capture *capture;
    struct lant_fabric_config config = lant_line_of(run);
    char error[TOPOLOGY_ERROR_BYTES];
    lab_world_begin(run, &sim, &trace, &capture, PCAPNG_LINK_LANT);
    CHECK(lant_fabric_open(&sink.fabric, &config, &sim, 1, on_packet, &sink, error, sizeof(error)));
    sink.watch = lant_watch_open(&sim, trace, capture, 2);
    uint64_t first_ps = 0;
    send_all(&sink, bytes);
    while (sim_step(&sim)) {
        first_ps = sink.come == 1 ? sim.now_ps : first_ps;
    }
    const double gbps = 8e3 * bytes * (LINE_PACKETS - 1) / (double)(sink.last_ps - first_ps);
    if (sink.come != LINE_PACKETS || sink.wrong != 0) {
        lab_fail(run, "of %u packets %u came, %u wrong", LINE_PACKETS, sink.come, sink.wrong);
    }
    lant_watch_close(sink.watch);
    lant_fabric_close(&sink.fabric);
    lab_world_end(run, &sim, trace, capture);
    return gbps;
}

static void line_rows(struct lab_run *run)
{
    const double small = line_gbps(run, 128), middle = line_gbps(run, 256);
    const double large = line_gbps(run, 512);
    lab_judge_relative(lab_add_row(run, "LNI-A11", "Gb/s", "a line full of packets of 512 bytes"),
                       8.56, large, 0.002);
    lab_judge_absolute(
        lab_add_row(run, "LNI-A12", "%", "beyond packets of 128 bytes (%.2f Gb/s)", small), 32,
        100 * (large / small - 1), 1);
    lab_judge_relative(lab_add_row(run, "LNI-A66", "Gb/s", "a line full of packets of 256 bytes"),
                       7.71, middle, 0.01);
}

/* -- Packets under way --------------------------------------------------------------------------*/

static double windowed(struct lab_run *run, uint32_t window, bool early)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_ring_of(run, 2);
    config.rdma.work.segment_bytes = 0;
    config.burst_window = window;
    if (!early) {
        config.early_timers = 0;
    }
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    const double gbps = lant_bench_goodput(bench, 1, STREAM_BYTES);
    lant_bench_end(bench);
    return gbps;
}

static void throughput(struct lab_run *run)
{
    static const char *const rows[] = {"LNI-A15/1", "LNI-A15/2", "LNI-A15/3", "LNI-A15/4"};
    static const double expected[] = {1.81, 3.63, 5.44, 7.25};
    double late[WINDOWS + 1], early[WINDOWS + 1];
    line_rows(run);
    struct lab_figure *figure = lab_add_figure(
        run, "outstanding", "Throughput over packets of 512 bytes under way (Figs. 3.10, 6.2)",
        "packets", "payload, Gb/s", false);
    lab_add_mark(figure, LAB_NOTHING, 8.56, "3.4.3: 8.56");
    struct lab_series *series = lab_add_curve(run, "without early acknowledgement");
    for (uint32_t n = 1; n <= WINDOWS; n++) {
        late[n] = windowed(run, n, false);
        lab_add_point(series, n, late[n], n <= 4 ? expected[n - 1] : LAB_NOTHING);
    }
    series = lab_add_curve(run, "with early acknowledgement");
    for (uint32_t n = 1; n <= WINDOWS; n++) {
        early[n] = windowed(run, n, true);
        lab_add_point(series, n, early[n], LAB_NOTHING);
    }
    for (uint32_t n = 1; n <= 4; n++) {
        lab_judge_relative(lab_add_row(run, rows[n - 1], "Gb/s", "%u packets under way", n),
                           expected[n - 1], late[n], 0.05);
    }
    lab_judge_range(lab_add_row(run, "LNI-A15.full", "", "5 packets under way, of 6"), 0.99, 1.01,
                    late[5] / late[6]);
    lab_judge_range(lab_add_row(run, "LNI-A16a", "", "acknowledged early: 2 packets, of 6"), 0.99,
                    1.01, early[2] / early[6]);
    lab_judge_range(lab_add_row(run, "LNI-A16b", "", "acknowledged early: 1 packet, of 2"), 0, 0.99,
                    early[1] / early[2]);
}

static const struct lab_claim throughput_claims[] = {
    {.id = "LNI-A11",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "3.4.3: 8.56 Gb/s",
     .broken_by = "mac_frame=5 | mac_pause=0",
     .because = "what a packet takes of the line was set by it"},
    {.id = "LNI-A12",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "3.4.3: 32 % more than 128 bytes",
     .broken_by = "mac_frame=6 | mac_frame=2",
     .because = "what a packet takes of the line was set by it"},
    {.id = "LNI-A66",
     .reference = LAB_PREDICTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A11 LNI-A12",
     .source = "OC: 32 / (36 + 4 + 36 / 24) of the 10 Gb/s",
     .broken_by = "mac_frame=7 mac_pause=0",
     .because = "a constant cost that gives A11 gives another value here"},
    {.id = "LNI-A15",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = "OC: n x 64 flits in 281 + 4 x 18 cycles",
     .broken_by = "mac=0 | switch=0",
     .because = "the round trip is shorter without them"},
    {.id = "LNI-A15.full",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "3.4.3: increases, then saturates; OC: by 5 packets",
     .broken_by = "mac=200",
     .because = "over a longer line five packets are not enough"},
    {.id = "LNI-A16a",
     .reference = LAB_IN_WORDS,
     .ground = LAB_MECHANISM,
     .source = "6.1: masked completely",
     .broken_by = "early=off",
     .because = "the bus waits for the far end's answer"},
    {.id = "LNI-A16b",
     .reference = LAB_IN_WORDS,
     .ground = LAB_FITTED,
     .source = "6.1: degraded; OC: by 1 % at least",
     .broken_by = "t_gen=4",
     .because = "the line needs longer for a packet than interface and timer"},
};

const struct lab_experiment lant_throughput = {
    .name = "lant/throughput",
    .what = "a line's throughput over the packets under way",
    LANT_COMMON,
    .uses =
        LANT_LINE_USES "switch rdma_setup ram rdma_receive ack rows timers early_timer t_gen early "
                       "timeout receiver",
    LANT_CLAIMS(throughput_claims),
    .quick = true,
    .run = throughput,
    .explains =
        "Packets under way fill a line once they cover its round trip; early answers of the "
        "bus let the engine go on without them. That one packet is not enough then rests on "
        "a time that the document does not give.",
};
