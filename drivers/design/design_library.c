/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/design/design_library.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/align.h"
#include "drivers/design/design_live.h"
#include "wire/feroce.h"
#include "wire/roce.h"

#define PORTS_MAX    64
#define HOLD_PS      5000000
#define WAIT_MS      50
#define WAIT_MS_MAX  60000
#define LOOK_PS      400000
#define ALWAYS_PORTS 2
#define FRAMES_MIN   3 /* design_live keeps two places free. */

_Static_assert(HDL_LIVE_NEVER == HOLD_OFF, "the same");

/* -- Ports --------------------------------------------------------------------------------------*/

struct hdl_port *hdl_port_open(const struct hdl_port_config *config, char *error,
                               size_t error_bytes)
{
    const char *wrong = hdl_port_config_error(config);
    if (wrong != NULL) {
        snprintf(error, error_bytes, "%s", wrong);
        return NULL;
    }
    void *memory = aligned_alloc(CACHE_LINE_BYTES, line_aligned(hdl_port_bytes(config)));
    if (memory == NULL) {
        snprintf(error, error_bytes, "no memory for a port");
        return NULL;
    }
    return hdl_port_init(config, memory);
}

void hdl_port_close(struct hdl_port *port)
{
    free(port);
}

/* -- The network --------------------------------------------------------------------------------*/

struct hdl_live {
    struct design_live net;
};

static bool give(struct design_live *net, const struct hdl_frame *frame)
{
    return hdl_port_push(net->line, frame);
}

/* NULL, or why these cannot be used. */
static const char *wrong_value(const struct hdl_port *port, const struct hdl_live_config *config)
{
    if (port == NULL || hdl_port_room(port) < FRAMES_MIN) {
        return "a port on the network is one in which 3 frames can wait";
    }
    if (config->port_count > PORTS_MAX || (config->port_count > 0 && config->ports == NULL)) {
        return "`ports` are 64 at most";
    }
    for (uint32_t i = 0; i < config->port_count; i++) {
        if (config->ports[i] == 0) {
            return "0 is no UDP port that receives";
        }
    }
    return config->wait_ms > WAIT_MS_MAX ? "a wait has 60000 ms at most" : NULL;
}

static bool open_net(struct hdl_live *live, const struct hdl_live_config *config, char *error,
                     size_t error_bytes)
{
    struct in_addr ip;
    uint16_t ports[ALWAYS_PORTS + PORTS_MAX] = {ROCE_UDP_PORT, FEROCE_PORT_CM};
    const char *address = config->address != NULL ? config->address : "";
    if (inet_pton(AF_INET, address, &ip) != 1 || ip.s_addr == 0) {
        snprintf(error, error_bytes, "'%s' is no IPv4 address of this machine", address);
        return false;
    }
    for (uint32_t i = 0; i < config->port_count; i++) {
        ports[ALWAYS_PORTS + i] = config->ports[i];
    }
    const struct design_port_config port = {.ip = ntohl(ip.s_addr),
                                            .ports = ports,
                                            .port_count = ALWAYS_PORTS + config->port_count,
                                            .fault = config->fault};
    const struct design_live_config net = {
        .hold_ps = config->hold_ps > 0 ? config->hold_ps : HOLD_PS,
        .grant_ms = config->wait_ms > 0 ? config->wait_ms : WAIT_MS,
        .end = INSTANT_NEVER,
        .look_ps = LOOK_PS,
        .reset_ps = config->reset_ps,
        .give = give};
    return design_live_open(&live->net, &net, &port, error, error_bytes);
}

struct hdl_live *hdl_live_open(struct hdl_port *port, const struct hdl_live_config *config,
                               char *error, size_t error_bytes)
{
    const char *wrong = wrong_value(port, config);
    struct hdl_live *live = wrong == NULL ? calloc(1, sizeof(*live)) : NULL;
    if (live == NULL) {
        snprintf(error, error_bytes, "%s", wrong != NULL ? wrong : "no memory for a live design");
        return NULL;
    }
    if (!open_net(live, config, error, error_bytes)) {
        free(live);
        return NULL;
    }
    live->net.line = port;
    return live;
}

void hdl_live_close(struct hdl_live *live)
{
    if (live != NULL) {
        design_live_close(&live->net);
        free(live);
    }
}

uint64_t hdl_live_turn(struct hdl_live *live, uint64_t now_ps)
{
    struct hdl_frame frame;
    while (hdl_port_pull(live->net.line, &frame)) {
        (void)design_live_leave(&live->net, &frame, now_ps);
    }
    return design_live_turn(&live->net, now_ps);
}

/* -- Counters -----------------------------------------------------------------------------------*/

void hdl_live_count(const struct hdl_live *live, struct hdl_live_counters *counters)
{
    const struct design_live *net = &live->net;
    const struct bridge *bridge = &net->bridge;
    const struct design_port_counters *port = design_port_counters(net->port);
    *counters = (struct hdl_live_counters){.given = net->given,
                                           .taken = net->taken,
                                           .icrcs = bridge->roce_left,
                                           .icrcs_wrong = bridge->counts[BRIDGE_ICRC],
                                           .peer_icrcs = bridge->roce_came,
                                           .peer_icrcs_wrong = bridge->counts[BRIDGE_CAME_ICRC],
                                           .refused = port->refused,
                                           .lost = port->lost,
                                           .dropped_out = port->dropped_out,
                                           .dropped_in = port->dropped_in,
                                           .waits = net->sleeps,
                                           .waited_ns = net->slept_ns};
}

const char *hdl_live_dropped(const struct hdl_live *live, uint32_t index, uint64_t *count)
{
    for (enum bridge_verdict i = 0; i < BRIDGE_VERDICT_COUNT; i++) {
        *count = live->net.bridge.counts[i];
        if (bridge_is_dropped(i) && *count > 0 && index-- == 0) {
            return bridge_verdict_text(i);
        }
    }
    return NULL;
}
