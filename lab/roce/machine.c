/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/roce/internal.h"

#include <stdlib.h>

#include "base/bits.h"

/* As the engine counts places by QPN (qp_slots in nic/nic.c), or more: with the QPNs that it never
 * gives out; with SRD, by QPN of shared addresses and a carrier for each peer. */
#define QPNS_RESERVED 4u
#define QPNS_OF_SRD   (256u + 1u)
#define BELLS_MAX     (1u << 20) /* doorbells on their way */

/* -- Functions ----------------------------------------------------------------------------------*/

static void on_timer(struct sim *sim, struct sim_event *event)
{
    struct roce_function *function = CONTAINER_OF(event, struct roce_function, timer);
    const bool due = instant_reached(sim_instant(sim), nic_deadline(function->engine));
    roce_enter(function);
    if (due) {
        nic_on_time(function->engine, sim_instant(sim));
    }
    roce_settle(function, due);
    roce_serve(function->node);
}

struct roce_function *roce_attach(struct roce *roce, uint32_t node, struct nic *engine,
                                  const struct roce_host *host)
{
    CHECK(node < roce->topology.nodes);
    if (roce->function_count == ROCE_FUNCTIONS_MAX) {
        return NULL;
    }
    struct roce_function *function = calloc(1, sizeof(*function));
    CHECK(function != NULL);
    *function = (struct roce_function){.roce = roce,
                                       .node = &roce->nodes[node],
                                       .engine = engine,
                                       .host = *host,
                                       .number = roce->function_count};
    const struct nic_limits *limits = nic_limits(engine);
    const uint32_t qps = limits->qps + QPNS_RESERVED, srd = limits->srd.peers + QPNS_OF_SRD;
    function->mask = (uint32_t)power_of_two(qps > srd ? qps : srd) - 1;
    function->connections = calloc(function->mask + 1, sizeof(function->connections[0]));
    CHECK(function->connections != NULL);
    if (roce->config.units.cycle_ps != 0 && function->node->units == NULL) {
        roce_units_open(function->node);
    }
    list_init(&function->turns);
    list_append(&function->node->functions, &function->neighbours);
    sim_event_init(&function->timer, on_timer);
    roce->functions[roce->function_count++] = function;
    return function;
}

static void leave(struct roce_function *function)
{
    function->gone = true;
    sim_cancel(&function->timer);
    list_remove(&function->neighbours);
}

/* Its memory stays, since packets and doorbells on their way know it. Others at its node get the
 * room that its packets had. */
void roce_detach(struct roce_function *function)
{
    CHECK(!function->gone);
    leave(function);
    roce_end_connections(function);
    roce_serve(function->node);
}

uint64_t roce_reached_ps(const struct roce_function *function)
{
    return function->reached_ps;
}

uint32_t roce_number(const struct roce_function *function)
{
    return function->number;
}

void roce_poke(struct roce_function *function)
{
    roce_enter(function);
    roce_settle(function, false);
    roce_serve(function->node);
}

/* -- The lines of nodes -------------------------------------------------------------------------*/

static void on_frame(struct sim_port *port, struct sim_frame *frame)
{
    roce_arrive(CONTAINER_OF(port, struct roce_node, port),
                CONTAINER_OF(frame, struct roce_flight, frame));
}

static void on_begin(struct sim_port *port, struct sim_frame *frame)
{
    struct roce_node *node = CONTAINER_OF(port, struct roce_node, port);
    struct roce_flight *flight = CONTAINER_OF(frame, struct roce_flight, frame);
    roce_wait(node, -(int64_t)roce_room(flight));
    roce_serve(node);
}

static const struct sim_port_calls node_calls = {.on_frame = on_frame, .on_begin = on_begin};

/* Flights are free again, for which nodes have waited. */
static void on_feed(struct sim *sim, struct sim_event *event)
{
    struct roce *roce = CONTAINER_OF(event, struct roce, feed);
    struct list *first;
    (void)sim;
    while (sim_pool_taken(&roce->flights) < roce->flights.count &&
           (first = list_pop(&roce->starved)) != NULL) {
        roce_serve(CONTAINER_OF(first, struct roce_node, starved));
    }
}

/* -- The machine --------------------------------------------------------------------------------*/

struct roce *roce_open(struct sim *sim, const struct roce_config *config, char *error,
                       size_t error_bytes)
{
    struct roce *roce = calloc(1, sizeof(*roce));
    CHECK(roce != NULL);
    roce->sim = sim;
    roce->config = *config;
    list_init(&roce->starved);
    sim_event_init(&roce->feed, on_feed);
    if (!roce_fabric_open(roce, &node_calls, error, error_bytes)) {
        free(roce);
        return NULL;
    }
    sim_pool_open(&roce->flights, ROCE_FLIGHTS_MAX, sizeof(struct roce_flight));
    sim_pool_open(&roce->bells, BELLS_MAX, sizeof(struct roce_bell));
    roce->functions = calloc(ROCE_FUNCTIONS_MAX, sizeof(roce->functions[0]));
    CHECK(roce->functions != NULL);
    return roce;
}

void roce_close(struct roce *roce)
{
    for (uint32_t i = 0; i < roce->function_count; i++) {
        if (!roce->functions[i]->gone) {
            leave(roce->functions[i]);
        }
        free(roce->functions[i]->connections);
        free(roce->functions[i]);
    }
    free(roce->functions);
    sim_cancel(&roce->feed);
    for (uint32_t i = 0; i < roce->topology.nodes; i++) {
        roce_units_close(&roce->nodes[i]);
    }
    roce_fabric_close(roce);
    sim_pool_close(&roce->flights);
    sim_pool_close(&roce->bells);
    free(roce);
}

uint32_t roce_nodes(const struct roce *roce)
{
    return roce->topology.nodes;
}
