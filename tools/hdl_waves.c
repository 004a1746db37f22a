/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_waves.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define FS_PER_PS     1000
#define NAMED_MARKERS 26
#define BEFORE        20 /* Clocks in front of the marker. */
#define CLOCK_PIXELS  8

/* GTKWave's flags of a signal: right-justified, and how it is shown. */
#define BINARY  0x28u
#define HEX     0x22u
#define DECIMAL 0x24u
#define COMMENT 0x200u

struct signal {
    const char *name;
    uint32_t flags;
    uint32_t bits;      /* 1: a bit; 0: those of the port's width, */
    uint32_t bits_each; /* one for each of this many. */
};

static const struct signal common[] = {{"clk", BINARY, 1, 0}, {"rst", BINARY, 1, 0}};
static const struct signal sent[] = {
    {"s_axis_tvalid", BINARY, 1, 0}, {"s_axis_tready", BINARY, 1, 0},
    {"s_axis_tdata", HEX, 0, 1},     {"s_axis_tkeep", HEX, 0, 8},
    {"s_axis_tlast", BINARY, 1, 0},  {"s_axis_tuser", BINARY, 1, 0},
    {"tx_packet", DECIMAL, 32, 0}};
static const struct signal received[] = {
    {"m_axis_tvalid", BINARY, 1, 0}, {"m_axis_tready", BINARY, 1, 0},
    {"m_axis_tdata", HEX, 0, 1},     {"m_axis_tkeep", HEX, 0, 8},
    {"m_axis_tlast", BINARY, 1, 0},  {"m_axis_tuser", BINARY, 1, 0},
    {"rx_packet", DECIMAL, 32, 0},   {"pause", BINARY, 9, 0}};

static const struct signal xgmii_sent[] = {
    {"xgmii_txd", HEX, 64, 0}, {"xgmii_txc", HEX, 8, 0}, {"tx_packet", DECIMAL, 32, 0}};
static const struct signal xgmii_received[] = {{"xgmii_rxd", HEX, 64, 0},
                                               {"xgmii_rxc", HEX, 8, 0},
                                               {"link_up", BINARY, 1, 0},
                                               {"rx_packet", DECIMAL, 32, 0}};

bool hdl_waves_name(const char *trace, char *name, size_t bytes)
{
    const size_t length = strlen(trace);
    const bool ends = length > 4 && strcmp(trace + length - 4, ".fst") == 0;
    const int used = snprintf(name, bytes, "%.*s.gtkw", (int)(ends ? length - 4 : length), trace);
    return used > 0 && (size_t)used < bytes;
}

/* The whole path, by which GTKWave finds the trace from wherever it is started. */
static void write_path(FILE *file, const char *what, const char *path)
{
    char real[PATH_MAX];
    fprintf(file, "[%s] \"%s\"\n", what, realpath(path, real) != NULL ? real : path);
}

static void write_signals(FILE *file, const struct sim_design *design, uint32_t port,
                          const struct signal *signals, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct signal *one = &signals[i];
        const uint32_t bits =
            one->bits > 0 ? one->bits : design->waves[port].width_bits / one->bits_each;
        fprintf(file, "@%x\n%s.%s", one->flags, design->waves[port].scope, one->name);
        fprintf(file, one->bits == 1 ? "\n" : "[%u:0]\n", bits - 1);
    }
}

static void write_port(FILE *file, const struct sim_design *design, uint32_t port)
{
    if (design->waves[port].scope[0] == '\0') {
        fprintf(file, "@%x\n-port %u: its name has more than %d letters\n", COMMENT, port,
                HDL_SCOPE_BYTES - 1);
        return;
    }
    fprintf(file, "@%x\n-port %u\n", COMMENT, port);
    write_signals(file, design, port, common, COUNT_OF(common));
    const bool xgmii = (design->xgmii >> port & 1) != 0;
    fprintf(file, "@%x\n-frames of the design\n", COMMENT);
    write_signals(file, design, port, xgmii ? xgmii_sent : sent,
                  xgmii ? COUNT_OF(xgmii_sent) : COUNT_OF(sent));
    fprintf(file, "@%x\n-frames to the design\n", COMMENT);
    write_signals(file, design, port, xgmii ? xgmii_received : received,
                  xgmii ? COUNT_OF(xgmii_received) : COUNT_OF(received));
}

/* GTKWave shows 2^zoom ps in a pixel. */
static int zoom_of(uint64_t period_ps)
{
    int zoom = 0;
    while (UINT64_C(1) << zoom < period_ps / CLOCK_PIXELS) {
        zoom++;
    }
    return zoom;
}

static void write_time(FILE *file, uint64_t period_ps, uint64_t marked_ps)
{
    const uint64_t before_ps = BEFORE * period_ps;
    fprintf(file, "[timestart] %" PRIu64 "\n", marked_ps > before_ps ? marked_ps - before_ps : 0);
    fprintf(file, "*-%d.000000 %" PRIu64, zoom_of(period_ps), marked_ps);
    for (int i = 0; i < NAMED_MARKERS; i++) {
        fprintf(file, " -1");
    }
    fprintf(file, "\n");
}

bool hdl_waves_write(const struct sim_design *design, const char *trace, uint64_t marked_ps)
{
    char name[PATH_MAX];
    FILE *file = hdl_waves_name(trace, name, sizeof(name)) ? fopen(name, "w") : NULL;
    if (file == NULL) {
        return false;
    }
    fprintf(file, "[*] nonic hdl\n");
    write_path(file, "dumpfile", trace);
    write_path(file, "savefile", name);
    write_time(file, design->config.period_fs[0] / FS_PER_PS, marked_ps);
    for (uint32_t i = 0; i < design->port_count; i++) {
        if (design->ports[i] != NULL) {
            write_port(file, design, i);
        }
    }
    const bool written = ferror(file) == 0;
    return fclose(file) == 0 && written;
}
