// SPDX-License-Identifier: BSD-2-Clause
//
// A main() of its own around echo.sv, on the network of this machine, by libnonic_hdl. Verilator
// makes obj_dir/Vecho of it:
//
//     verilator --cc --exe --build --top-module echo -GUDP_PORT=7007 echo.sv main.cpp \
//         $(pkg-config --variable=verilog nonic-hdl) \
//         -CFLAGS "$(pkg-config --cflags nonic-hdl)" -LDFLAGS "$(pkg-config --libs nonic-hdl)"
//     obj_dir/Vecho 127.0.0.20 7007
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <nonic/hdl.h>

#include "Vecho.h"
#include "hdl/dpi.h"

static const uint64_t PERIOD_PS = 6400;
static const uint64_t RESET_EDGES = 16;

static volatile sig_atomic_t interrupted;

static void on_signal(int)
{
    interrupted = 1;
}

// The design asks for its port, and says of which kind and how wide it is.
static hdl_port *attach(void *owner, uint32_t, uint32_t width_bits, bool xgmii, const char *)
{
    char error[160] = "";
    hdl_port_config config = {};
    config.width_bits = width_bits;
    config.xgmii = xgmii;
    config.frame_bytes = HDL_FRAME_BYTES_MAX;
    config.frames = 64;
    config.line_fs_per_byte = 800000; // 10 Gb/s
    config.ready_ppm = 1000000;
    hdl_port *port = hdl_port_open(&config, error, sizeof(error));
    fprintf(stderr, "%s", error);
    return *static_cast<hdl_port **>(owner) = port;
}

static void print_counters(const hdl_live *live)
{
    hdl_live_counters counters;
    uint64_t count;
    hdl_live_count(live, &counters);
    printf("%" PRIu64 " frames in, %" PRIu64 " out\n", counters.given, counters.taken);
    for (uint32_t i = 0; const char *what = hdl_live_dropped(live, i, &count); i++) {
        printf("dropped: %" PRIu64 " %s\n", count, what);
    }
}

int main(int argc, char **argv)
{
    char error[256];
    const uint16_t udp_port = static_cast<uint16_t>(argc > 2 ? atoi(argv[2]) : 0);
    hdl_port *port = nullptr;
    hdl_host host = {};
    host.owner = &port;
    host.attach = attach;
    host.edge = hdl_port_edge;
    hdl_attached attached = {};
    attached.host = &host;
    hdl_attach_to(&attached);
    Vecho top;
    top.clk = 0;
    top.eval(); // Its initial blocks: the ports attach.
    hdl_attach_to(nullptr);

    hdl_live_config config = {};
    config.address = argc > 1 ? argv[1] : nullptr;
    config.ports = &udp_port;
    config.port_count = 1;
    config.reset_ps = RESET_EDGES * PERIOD_PS;
    hdl_live *live = hdl_live_open(port, &config, error, sizeof(error));
    if (live == nullptr) {
        fprintf(stderr, "%s\n", error);
        return 1;
    }
    signal(SIGINT, on_signal);
    uint64_t turn_ps = 0;
    for (uint64_t edge = 1; !interrupted && !Verilated::gotFinish(); edge++) {
        attached.now_ps = edge * PERIOD_PS;
        top.rst = edge <= RESET_EDGES;
        top.clk = 1;
        top.eval();
        top.clk = 0;
        top.eval();
        if (attached.now_ps >= turn_ps) {
            turn_ps = hdl_live_turn(live, attached.now_ps);
        }
    }
    print_counters(live);
    hdl_live_close(live);
    hdl_port_close(port);
    return 0;
}
