/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/routing.h"

#define VA_LAST ((UINT64_C(1) << EXANEST_VA_BITS) - 1)

static struct exanest_range memory_range(uint8_t port)
{
    return (struct exanest_range){0, (UINT64_C(7) << 39) - 1, port};
}

static struct exanest_range peripheral_range(uint32_t first, uint32_t last, uint8_t port)
{
    return (struct exanest_range){
        UINT64_C(7) << 39 | (uint64_t)first << 32,
        UINT64_C(7) << 39 | (uint64_t)last << 32 | UINT32_MAX,
        port,
    };
}

struct exanest_routing_config exanest_routing_default(struct exanest_place own)
{
    return (struct exanest_routing_config){
        .own = own,
        .fpga_ports = {0, 1, 2, 3},
        .router_ports = {4, 5, 6, 7},
        .bad_header_port = EXANEST_PORT_RDMA,
        .nobody_port = EXANEST_NO_PORT,
        .range_count = 8,
        .ranges =
            {
                memory_range(EXANEST_PORT_RDMA),
                peripheral_range(EXANEST_RT_RESPONSES, EXANEST_RT_READ_REQUESTS,
                                 EXANEST_PORT_RT_MAILBOX),
                peripheral_range(EXANEST_SYSTEM_MAILBOXES, EXANEST_SYSTEM_MAILBOXES,
                                 EXANEST_PORT_SYSTEM_MAILBOX),
                peripheral_range(EXANEST_PACKETIZER, EXANEST_PACKETIZER, EXANEST_PORT_PACKETIZER),
                peripheral_range(EXANEST_RECEIVER_DEBUG, EXANEST_RECEIVER_DEBUG, EXANEST_PORT_RDMA),
                peripheral_range(EXANEST_ZDMA, EXANEST_ZDMA, EXANEST_PORT_ZDMA),
                peripheral_range(EXANEST_ACCELERATORS, 10, EXANEST_PORT_ACCELERATOR_0),
                peripheral_range(11, 15, EXANEST_PORT_ACCELERATOR_1),
            },
    };
}

struct exanest_routing_config exanest_routing_two_links(struct exanest_place own)
{
    struct exanest_routing_config config = exanest_routing_default(own);
    config.two_links = true;
    for (uint32_t i = 0; i < EXANEST_FPGAS; i++) {
        config.second_ports[i] = (uint8_t)(EXANEST_PORT_SECOND_F1 + i);
    }
    return config;
}

static bool is_port(const struct exanest_routing_config *config, uint8_t port)
{
    return port < (config->two_links ? EXANEST_PORTS_MAX : EXANEST_PORTS);
}

/* Are these ports, and none of them `used` already? Then they are. */
static bool claim_ports(const struct exanest_routing_config *config,
                        const uint8_t ports[EXANEST_FPGAS], uint32_t *used)
{
    for (uint32_t i = 0; i < EXANEST_FPGAS; i++) {
        if (!is_port(config, ports[i]) || (*used >> ports[i] & 1) != 0) {
            return false;
        }
        *used |= 1u << ports[i];
    }
    return true;
}

bool exanest_routing_is_valid(const struct exanest_routing_config *config)
{
    uint32_t used = 0;
    if (!claim_ports(config, config->fpga_ports, &used) ||
        (config->two_links && !claim_ports(config, config->second_ports, &used))) {
        return false;
    }
    for (uint32_t i = 0; i < EXANEST_FPGAS; i++) {
        if (!is_port(config, config->router_ports[i]) ||
            (used >> config->router_ports[i] & 1) != 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < config->range_count && i < EXANEST_RANGES_MAX; i++) {
        const struct exanest_range *range = &config->ranges[i];
        if (range->first > range->last || range->last > VA_LAST || !is_port(config, range->port)) {
            return false;
        }
    }
    return config->own.fpga < EXANEST_FPGAS && config->range_count <= EXANEST_RANGES_MAX &&
           (is_port(config, config->bad_header_port) ||
            config->bad_header_port == EXANEST_NO_PORT) &&
           (is_port(config, config->nobody_port) || config->nobody_port == EXANEST_NO_PORT);
}

void exanest_routing_init(struct exanest_routing *routing,
                          const struct exanest_routing_config *config)
{
    CHECK(exanest_routing_is_valid(config));
    *routing = (struct exanest_routing){
        .config = *config,
        .dead_port = config->fpga_ports[config->own.fpga],
        .second_input =
            config->two_links ? config->second_ports[config->own.fpga] : EXANEST_NO_PORT,
    };
    for (uint32_t port = 0; port < EXANEST_PORTS_MAX; port++) {
        routing->sides[port] = EXANEST_SIDE_LOCAL;
        routing->router_port[port] = config->router_ports[0];
    }
    for (uint32_t i = 0; i < EXANEST_FPGAS; i++) {
        if (config->own.fpga == 0) {
            routing->sides[config->router_ports[i]] = EXANEST_SIDE_ROUTER;
        }
        if (i == config->own.fpga) {
            continue;
        }
        const uint8_t router_port = config->router_ports[config->one_router_port ? 0 : i];
        routing->sides[config->fpga_ports[i]] = EXANEST_SIDE_LINK;
        routing->router_port[config->fpga_ports[i]] = router_port;
        if (config->two_links) {
            routing->sides[config->second_ports[i]] = EXANEST_SIDE_LINK;
            routing->router_port[config->second_ports[i]] = router_port;
        }
    }
}

/* The link to an FPGA of this QFDB, for what came in there. */
static uint8_t link_port(const struct exanest_routing *routing, uint32_t input, uint32_t fpga)
{
    return input == routing->second_input ? routing->config.second_ports[fpga]
                                          : routing->config.fpga_ports[fpga];
}

/* 6.4, first level: the packet is for another QFDB. */
static uint8_t port_outwards(const struct exanest_routing *routing, uint32_t input)
{
    const bool is_first = routing->config.own.fpga == 0;
    switch (routing->sides[input]) {
    case EXANEST_SIDE_ROUTER: return EXANEST_NO_PORT;
    case EXANEST_SIDE_LINK: return is_first ? routing->router_port[input] : EXANEST_NO_PORT;
    default: return is_first ? routing->router_port[input] : link_port(routing, input, 0);
    }
}

/* The port that a map gives, unless that closes a circle. */
static struct exanest_route by_map(const struct exanest_routing *routing, uint32_t input,
                                   enum exanest_route_verdict verdict, uint8_t port)
{
    if (port == routing->dead_port && input == routing->dead_port) {
        return (struct exanest_route){EXANEST_ROUTE_LOOP, EXANEST_NO_PORT};
    }
    if (port != EXANEST_NO_PORT && routing->sides[port] != EXANEST_SIDE_LOCAL &&
        routing->sides[input] != EXANEST_SIDE_LOCAL) {
        return (struct exanest_route){EXANEST_ROUTE_SECOND_HOP, EXANEST_NO_PORT};
    }
    return (struct exanest_route){verdict, port};
}

static struct exanest_route route_home(const struct exanest_routing *routing, uint32_t input,
                                       uint64_t va)
{
    const struct exanest_routing_config *config = &routing->config;
    for (uint32_t i = 0; i < config->range_count; i++) {
        const struct exanest_range *range = &config->ranges[i];
        if (va < range->first || va > range->last) {
            continue;
        }
        return by_map(routing, input, EXANEST_ROUTE_GOOD, range->port);
    }
    return by_map(routing, input, EXANEST_ROUTE_NOBODY, config->nobody_port);
}

struct exanest_route exanest_route(const struct exanest_routing *routing, uint32_t input,
                                   const struct exanest_header *header)
{
    CHECK(input < EXANEST_PORTS_MAX);
    const struct exanest_place own = routing->config.own;
    const struct exanest_place place = exanest_place(header->target.coordinate);
    uint8_t port;
    if (place.x != own.x || place.y != own.y || place.z != own.z) {
        port = port_outwards(routing, input);
    } else if (place.fpga != own.fpga) {
        port = routing->sides[input] == EXANEST_SIDE_LINK ? EXANEST_NO_PORT
                                                          : link_port(routing, input, place.fpga);
    } else {
        return route_home(routing, input, header->target.va);
    }
    const bool is_good = port != EXANEST_NO_PORT;
    return (struct exanest_route){is_good ? EXANEST_ROUTE_GOOD : EXANEST_ROUTE_SECOND_HOP, port};
}

struct exanest_route exanest_route_word(const struct exanest_routing *routing, uint32_t input,
                                        struct exanest_word word)
{
    struct exanest_header header;
    if (exanest_header_decode(word, &header) != EXANEST_GOOD) {
        return by_map(routing, input, EXANEST_ROUTE_BAD_HEADER, routing->config.bad_header_port);
    }
    return exanest_route(routing, input, &header);
}
