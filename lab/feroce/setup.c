/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/feroce/setup.h"

#include "lab/feroce/experiments.h"

#define PS_PER_NS   1000.0
#define RECEIVES    64u                                    /* feroce-rs' num_buf. */
#define PATIENCE_PS (UINT64_C(100) * 1000 * 1000 * SIM_NS) /* Our choice. */

static const struct {
    uint64_t cycle_ps, byte_fs;
    uint32_t width_bytes;
} speeds[FEROCE_SPEEDS] = {
    [FEROCE_10G] = {6400, 800000, 8},
    [FEROCE_25G] = {2560, 320000, 8},
    [FEROCE_100G] = {3103, 80000, 64},
};

static uint32_t whole(struct lab_run *run, const char *name)
{
    return (uint32_t)lab_value_or_default(run, name);
}

static uint64_t ns(struct lab_run *run, const char *name)
{
    return (uint64_t)llround(lab_value_or_default(run, name) * PS_PER_NS);
}

void feroce_set_gap(struct feroce_setup *setup, uint32_t extra_bytes, uint32_t bubble_cycles)
{
    const double bubble_bytes = (double)bubble_cycles * (double)setup->timing.cycle_ps * 1000 /
                                (double)setup->line.wire.byte_fs;
    setup->line.extra_bytes = extra_bytes;
    setup->board_line = setup->line;
    setup->board_line.extra_bytes += (uint32_t)llround(bubble_bytes);
}

/* The gap counts bytes; or it is the time that they take at 10G. */
static uint32_t gap_bytes(struct lab_run *run, enum feroce_speed speed)
{
    const uint32_t bytes = whole(run, "extra_bytes");
    if (lab_value_or_default(run, "gap") == 0) {
        return bytes;
    }
    return (uint32_t)llround((double)bytes * (double)speeds[FEROCE_10G].byte_fs /
                             (double)speeds[speed].byte_fs);
}

static struct feroce_board_config board_2026(struct lab_run *run, enum feroce_speed speed)
{
    const uint32_t qps = whole(run, "qps");
    const uint64_t rto = whole(run, "rto");
    /* A timer expires when it is below 2N. */
    const uint64_t cycles = rto > 2 * qps ? rto - 2 * qps : 1;
    return (struct feroce_board_config){
        .stack = FEROCE_STACK_2026,
        .cm_version = FEROCE_CM_3,
        .window = {.qps = qps,
                   .pmtu = whole(run, "pmtu"),
                   .buffer_bits = whole(run, "buffer_bits"),
                   .retry_limit = (uint8_t)whole(run, "retry"),
                   .rnr_limit = FEROCE_RNR_FOR_EVER,
                   .rto_ns = cycles * speeds[speed].cycle_ps / SIM_NS,
                   .quirks = whole(run, "quirks") != 0 ? (uint32_t)FEROCE_QUIRKS_ALL : 0,
                   .sending_restarts_timer = whole(run, "timer") != 0,
                   .no_hysteresis = whole(run, "release") != 0},
        .master_timeout_ns = 310000000,
    };
}

static struct feroce_board_config board_2024(struct lab_run *run)
{
    return (struct feroce_board_config){
        .stack = FEROCE_STACK_2024,
        .cm_version = FEROCE_CM_3,
        .window = {.qps = 1,
                   .pmtu = whole(run, "pmtu"),
                   .buffer_bits = 18,
                   .retry_limit = 7,
                   .rnr_limit = FEROCE_RNR_FOR_EVER,
                   .sends_once = true},
        .master_timeout_ns = 310000000,
    };
}

static struct feroce_timing timing_of(struct lab_run *run, enum feroce_speed speed)
{
    const uint32_t width = speeds[speed].width_bytes, channel = whole(run, "qp_width") / 8;
    return (struct feroce_timing){
        .cycle_ps = speeds[speed].cycle_ps,
        .width_bytes = width,
        .qp_width_bytes = channel < width ? channel : width,
        .request_cycles = whole(run, "request_cycles"),
        .visit_cycles = whole(run, "visit_cycles"),
        .packet_cycles = whole(run, "packet_cycles"),
        .pipe_cycles = whole(run, "pipe_cycles"),
        .read_ahead = whole(run, "read_ahead"),
        .timer_scale = 1,
    };
}

static void set_switch(struct feroce_setup *setup, struct lab_run *run)
{
    const bool pfc = lab_value_or_default(run, "pfc") == 0;
    const uint64_t xoff_bytes =
        setup->speed == FEROCE_10G ? whole(run, "xoff_10G") : whole(run, "xoff_25G");
    setup->switch_ps = ns(run, "switch");
    setup->one_unpaused = lab_value_or_default(run, "paused") != 0;
    setup->pauser = (enum feroce_pauser)whole(run, "pauser");
    setup->input = (struct sim_input_limits){
        .flow = pfc && setup->pauser == FEROCE_PAUSED_BY_SWITCH ? SIM_PFC : SIM_NO_FLOW_CONTROL,
        .xoff_bytes = xoff_bytes,
        .xon_bytes = xoff_bytes / 2,
        .room_bytes = SIM_NO_BOUND,
    };
    setup->output_bytes = whole(run, "buffer_bytes");
}

static struct feroce_setup common(struct lab_run *run, enum feroce_speed speed)
{
    struct feroce_setup setup = {
        .speed = speed,
        .timing = timing_of(run, speed),
        .line = {.wire = {.byte_fs = speeds[speed].byte_fs, .latency_ps = ns(run, "cable")},
                 .fec_ps = speed == FEROCE_25G ? ns(run, "fec_ns") : 0},
        .ack_ps = ns(run, "ack_ns"),
        .host_ps = ns(run, "host_ns"),
        .coalesce = whole(run, "coalesce"),
        .receives = RECEIVES,
        .patience_ps = PATIENCE_PS,
        .rnr_code = 8,
        .flip = (enum feroce_flip)whole(run, "flip"),
    };
    feroce_set_gap(&setup, speed == FEROCE_100G ? 0 : gap_bytes(run, speed), 0);
    set_switch(&setup, run);
    return setup;
}

struct feroce_setup feroce_setup_2026(struct lab_run *run, enum feroce_speed speed)
{
    struct feroce_setup setup = common(run, speed);
    setup.board = board_2026(run, speed);
    return setup;
}

struct feroce_setup feroce_setup_of(struct lab_run *run, enum feroce_speed speed)
{
    if (speed == FEROCE_100G) {
        return feroce_setup_2026(run, speed);
    }
    struct feroce_setup setup = common(run, speed);
    setup.board = board_2024(run);
    setup.timing.qp_width_bytes = setup.timing.width_bytes;
    return setup;
}

struct feroce_load feroce_load_of(uint32_t bytes, uint32_t messages)
{
    return (struct feroce_load){
        .senders = 1,
        .qps = 1,
        .write = true,
        .bytes = {bytes, bytes},
        .warm = 20,
        .messages = messages,
        .lost_psn = FEROCE_NO_PSN,
    };
}
