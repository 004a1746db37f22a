/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The router's invariants, as far as they can be seen between two calls.
 */
#include "hardware/exanest/router.h"

static void check_lane(const struct exanest_router *router, uint32_t number)
{
    const struct exanest_router_lane *lane = &router->lanes[number];
    CHECK(lane->count <= lane->slots && lane->ripe <= lane->count);
    CHECK(lane->count == 0 || lane->head < lane->slots);
    uint32_t asks = 0;
    for (uint32_t port = 0; port < router->ports; port++) {
        const struct exanest_router_output *output = &router->outputs[port];
        asks += ((output->requests[0] | output->requests[1]) >> number & 1) != 0;
        asks += (router->active >> port & 1) != 0 && output->lane == number;
    }
    CHECK(asks == (lane->ripe > 0)); /* A lane has one head. */
    for (uint32_t i = 0; i < lane->count; i++) {
        const struct exanest_router_packet *packet =
            &lane->packets[((uint32_t)lane->head + i) % lane->slots];
        CHECK(packet->read <= packet->written && packet->written <= EXANEST_PACKET_WORDS_MAX);
        CHECK(packet->output < router->ports && packet->channel < router->channels);
        CHECK(i == 0 || packet->read == 0);
        CHECK(packet->whole || i + 1u == lane->count); /* Only the last one still comes in. */
    }
}

void exanest_router_check(const struct exanest_router *router)
{
    uint32_t packets = 0, unripe = 0;
    for (uint32_t lane = 0; lane < exanest_router_lanes(router->ports); lane++) {
        check_lane(router, lane);
        packets += router->lanes[lane].count;
        unripe += (uint32_t)(router->lanes[lane].count - router->lanes[lane].ripe);
    }
    CHECK(packets == router->packets && unripe == router->wait_count);
    CHECK((router->dropping & ~router->open) == 0);
    for (uint32_t port = 0; port < router->ports; port++) {
        const struct exanest_router_output *output = &router->outputs[port];
        CHECK((router->wanted >> port & 1) == ((output->requests[0] | output->requests[1]) != 0));
        CHECK(output->due <= router->busy_until);
        for (uint32_t c = 0; c < router->channels && port >= EXANEST_ROUTER_LOCALS; c++) {
            const struct exanest_router_lane *lane = &router->lanes[exanest_router_lane(port, c)];
            CHECK(output->credits[c] <= lane->slots);
            CHECK(lane->count + router->owed[port][c] <= lane->slots);
        }
    }
}
