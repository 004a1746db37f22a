/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet that costs one event a switch arrives when it would with queues that are kept,
 *         and is dropped when they would have no room; whatever is made comes to an end.
 * Method  The packets that a network made are sent again through a model with explicit queues. The
 *         model has two events a switch: a packet comes in, and an output is free. It finds the
 *         next event by looking at all of them. Counts and the sum of latencies have to be the
 *         same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "lab/network/network.h"

#define PACKETS_MAX 4000u
#define PORTS_MAX   512u
#define NEVER       UINT64_MAX

/* -- The model ----------------------------------------------------------------------------------*/

struct made {
    uint64_t born_ps,
        came_ps; /* `came_ps`: it enters the output's queue; NEVER: it is elsewhere. */
    uint64_t length_ps;
    uint32_t source, number, destination;
    uint16_t entropy;
    uint32_t vertex;
    uint64_t entered; /* Which entrance of any packet into a queue its last one was. */
};

struct output {
    uint32_t queue[PACKETS_MAX];
    uint32_t first, last;
    uint64_t queued_ps; /* The sum of the queue's lengths. */
    uint64_t free_ps;   /* NEVER: it is free. */
};

struct model {
    struct network_config config;
    struct topology topology;
    struct made made[PACKETS_MAX];
    uint32_t count;
    struct output outputs[PORTS_MAX];
    uint64_t now_ps, entrances, delivered, dropped, latency_ps;
};

static void model_start(struct model *model, uint32_t port)
{
    struct output *output = &model->outputs[port];
    if (output->free_ps != NEVER || output->first == output->last) {
        return;
    }
    struct made *packet = &model->made[output->queue[output->first++]];
    const struct topology_port *way = &model->topology.ports[port];
    const uint64_t latency_ps = model->topology.links[way->link_class].latency_ps;
    const bool cuts = model->config.switching == SIM_CUT_THROUGH;
    output->queued_ps -= packet->length_ps;
    output->free_ps = model->now_ps + packet->length_ps;
    if (way->peer < model->topology.nodes) {
        assert_int_equal(way->peer, packet->destination);
        model->delivered++;
        model->latency_ps += output->free_ps + latency_ps - packet->born_ps;
        return;
    }
    packet->vertex = way->peer;
    packet->came_ps =
        (cuts ? model->now_ps : output->free_ps) + latency_ps + model->config.delay_ps;
}

static void model_enter(struct model *model, uint32_t index)
{
    struct made *packet = &model->made[index];
    const struct topology *topology = &model->topology;
    const bool at_first = packet->vertex == topology_port_of(topology, packet->source, 0)->peer;
    const uint32_t port =
        topology->first_port[packet->vertex] +
        (model->config.detours && at_first
             ? topology_detour(topology, packet->vertex, packet->destination, packet->entropy)
             : topology_route(topology, packet->vertex, packet->destination, packet->entropy));
    struct output *output = &model->outputs[port];
    const uint64_t byte_ps = model->topology.links[0].byte_fs / 1000;
    const uint64_t left_ps = output->free_ps == NEVER ? 0 : output->free_ps - model->now_ps;
    const uint64_t room_ps = model->config.buffer_bytes * byte_ps;
    packet->came_ps = NEVER;
    packet->entered = ++model->entrances;
    if (packet->vertex >= model->topology.nodes && room_ps != 0 &&
        left_ps + output->queued_ps + packet->length_ps > room_ps) {
        model->dropped++;
        return;
    }
    output->queue[output->last++] = index;
    output->queued_ps += packet->length_ps;
    model_start(model, port);
}

/* The packet that comes now; of several the one that entered the queue before earlier. */
static int model_next(const struct model *model)
{
    int best = -1;
    for (uint32_t i = 0; i < model->count; i++) {
        const struct made *packet = &model->made[i];
        if (packet->came_ps == model->now_ps &&
            (best < 0 || packet->entered < model->made[best].entered)) {
            best = (int)i;
        }
    }
    return best;
}

/* Carries out the next event. Outputs become free before packets come at the same time. */
static bool model_step(struct model *model)
{
    const uint32_t ports = model->topology.first_port[topology_vertices(&model->topology)];
    uint64_t next_ps = NEVER;
    for (uint32_t i = 0; i < ports; i++) {
        next_ps = model->outputs[i].free_ps < next_ps ? model->outputs[i].free_ps : next_ps;
    }
    for (uint32_t i = 0; i < model->count; i++) {
        next_ps = model->made[i].came_ps < next_ps ? model->made[i].came_ps : next_ps;
    }
    if (next_ps == NEVER) {
        return false;
    }
    model->now_ps = next_ps;
    for (uint32_t i = 0; i < ports; i++) {
        if (model->outputs[i].free_ps == next_ps) {
            model->outputs[i].free_ps = NEVER;
            model_start(model, i);
        }
    }
    for (int i = model_next(model); i >= 0; i = model_next(model)) {
        model_enter(model, (uint32_t)i);
    }
    return true;
}

static void model_run(struct model *model)
{
    const uint32_t ports = model->topology.first_port[topology_vertices(&model->topology)];
    assert_true(ports <= PORTS_MAX);
    for (uint32_t i = 0; i < ports; i++) {
        model->outputs[i].free_ps = NEVER;
    }
    while (model_step(model)) {
    }
}

/* -- Taking down what a network makes -----------------------------------------------------------*/

static void take_down(struct model *model, const struct network_packet *packet)
{
    assert_true(model->count < PACKETS_MAX);
    model->made[model->count++] = (struct made){
        .born_ps = packet->born_ps,
        .came_ps = packet->born_ps,
        .length_ps = packet->bytes * (uint64_t)model->topology.links[0].byte_fs / 1000,
        .source = packet->source,
        .number = packet->number,
        .destination = packet->destination,
        .entropy = packet->entropy,
        .vertex = packet->source,
    };
}

static void look(struct model *model, const struct network *network, uint32_t *seen)
{
    for (uint32_t node = 0; node < network->topology.nodes; node++) {
        if (network->nodes[node].made == seen[node]) {
            continue;
        }
        for (uint32_t i = 0; i < network->packets.count; i++) {
            const uint8_t *at = network->packets.memory + i * network->packets.bytes;
            const struct network_packet *packet = (const void *)at;
            if (packet->network != NULL && packet->source == node && packet->number == seen[node]) {
                take_down(model, packet);
                seen[node]++;
                break;
            }
        }
        assert_int_equal(seen[node], network->nodes[node].made);
    }
}

static struct lab_run *prepare(void)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, lab_find("network/random"), 5);
    return run;
}

static struct network_config config_of(struct lab_run *run, const char *topology)
{
    struct network_config config = network_config_of(run);
    (void)strncpy(config.topology, topology, sizeof(config.topology) - 1);
    config.load = 0.9;
    config.least = 1;
    config.most = 100;
    config.warm_ps = 0;
    return config;
}

static void compare(struct lab_run *run, const struct network_config *config, bool drops)
{
    struct network *network = calloc(1, sizeof(*network));
    struct model *model = calloc(1, sizeof(*model));
    uint32_t seen[64] = {0};
    assert_true(network != NULL && model != NULL);
    assert_true(network_open(network, run, config) && network->topology.nodes <= 64);
    model->config = *config;
    model->topology = network->topology;
    do {
        look(model, network, seen);
    } while (sim_step(&network->sim));
    model_run(model);
    assert_string_equal(run->failure, "");
    assert_int_equal(model->count, network->made);
    assert_true(network->made > 1000);
    assert_int_equal(model->delivered, network->delivered);
    assert_int_equal(model->dropped, network->dropped);
    assert_int_equal(network->dropped > 0, drops);
    assert_int_equal(model->latency_ps, network->latency.sum);
    network_close(network);
    assert_string_equal(run->failure, "");
    free(network);
    free(model);
}

/* -- Tests --------------------------------------------------------------------------------------*/

static const struct {
    const char *topology;
    uint64_t stop_ps; /* So that between 1,000 and PACKETS_MAX packets are made. */
} worlds[] = {{"star:5", 15000000},   {"star:16", 5000000},     {"fat-tree:4", 5000000},
              {"torus:4x4", 5000000}, {"torus:2x3:2", 6000000}, {"dragonfly:1,2,1", 12000000}};

static void test_against_queues(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(worlds); i++) {
        for (uint32_t k = 0; k < 4; k++) {
            struct lab_run *run = prepare();
            struct network_config config = config_of(run, worlds[i].topology);
            config.stop_ps = worlds[i].stop_ps;
            config.switching = k % 2 == 0 ? SIM_CUT_THROUGH : SIM_STORE_AND_FORWARD;
            config.buffer_bytes = k / 2 == 0 ? 0 : 2000;
            compare(run, &config, k / 2 != 0);
            free(run);
        }
    }
}

/* The same with detours, and with destinations that leave nodes silent; all of them are the
 * pattern's. */
static void test_detours_and_patterns(void **state)
{
    (void)state;
    static const struct {
        const char *topology, *destinations;
        double load;
        bool detours;
        uint32_t silent;
    } cases[] = {{"dragonfly:2,2,1", "neighbour:4x3", 0.4, true, 0},
                 {"dragonfly:1,2,3", "uniform", 0.4, true, 0},
                 {"fat-tree:4", "transpose", 0.9, false, 4}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        struct lab_run *run = prepare();
        struct network_config config = config_of(run, cases[i].topology);
        (void)strncpy(config.destinations, cases[i].destinations, sizeof(config.destinations) - 1);
        config.load = cases[i].load;
        config.detours = cases[i].detours;
        config.stop_ps = 10000000;
        compare(run, &config, false);
        struct network *network = calloc(1, sizeof(*network));
        assert_true(network != NULL && network_open(network, run, &config));
        network_run(network);
        uint32_t silent = 0;
        for (uint32_t node = 0; node < network->topology.nodes; node++) {
            const struct network_node *is = &network->nodes[node];
            silent += is->made == 0;
            assert_true(cases[i].destinations[0] == 'u' || (is->made == 0) == (is->received == 0));
        }
        assert_int_equal(silent, cases[i].silent);
        network_close(network);
        free(network);
        free(run);
    }
}

/* Queues at the inputs: packets that they do not drop arrive, with any arbiter. */
static void test_inputs(void **state)
{
    (void)state;
    for (uint32_t arbiter = 0; arbiter < 3; arbiter++) {
        struct lab_run *run = prepare();
        struct network_config config = config_of(run, "star:8");
        struct network *network = calloc(1, sizeof(*network));
        assert_non_null(network);
        config.buffering = NETWORK_AT_INPUTS;
        config.arbiter = (enum network_arbiter)arbiter;
        config.load = 1;
        config.buffer_bytes = 10000;
        config.stop_ps = 100000000;
        assert_true(network_open(network, run, &config));
        network_run(network);
        assert_true(network->dropped > network->made / 10 &&
                    network->delivered > network->made / 2);
        network_close(network);
        assert_string_equal(run->failure, "");
        free(network);
        free(run);
    }
}

/* Nodes of several ports, and with links to each other: each sends its load, which arrives without
 * a switch; a full load, too, and what a graph says in several classes of links. */
static void test_departures(void **state)
{
    (void)state;
    static const char graph[] = "switch s\nnode a\nnode b\nnode c\nlink a b 50\nlink a s 100\n"
                                "link b s 25\nlink c s\n";
    for (uint32_t i = 0; i < 3; i++) {
        struct lab_run *run = prepare();
        struct network_config config = config_of(run, "all-to-all:8");
        struct network *network = calloc(1, sizeof(*network));
        assert_non_null(network);
        config.load = i == 1 ? 1 : 0.2;
        config.buffer_bytes = 0;
        config.stop_ps = 100000000;
        if (i == 2) {
            config.texts[LAB_TOPOLOGY] = (struct lab_text){"graph", graph, sizeof(graph) - 1};
        }
        assert_true(network_open(network, run, &config));
        assert_true(network->departs);
        network_run(network);
        assert_true(network->made > 100 && network->delivered == network->made);
        assert_true(fabs(network_throughput(network) / network_offered(network) - 1) < 0.1);
        network_close(network);
        assert_string_equal(run->failure, "");
        free(network);
        free(run);
    }
}

/* A trace is sent as it says: each message in packets of the largest size, in the order of time,
 * and at once where the one before it has left. */
static void test_trace(void **state)
{
    (void)state;
    static const char trace[] = "0 0 1 1000\n0.5 0 2 8\n1000 3 0 1\n";
    struct lab_run *run = prepare();
    struct network_config config = config_of(run, "star:4");
    struct network *network = calloc(1, sizeof(*network));
    assert_non_null(network);
    config.least = config.most = 50; /* 400 bytes. */
    config.texts[LAB_TRAFFIC] = (struct lab_text){"trace", trace, sizeof(trace) - 1};
    assert_true(network_open(network, run, &config));
    network_run(network);
    assert_int_equal(network->made, 3 + 1 + 1);
    assert_int_equal(network->delivered, 5);
    assert_int_equal(network->nodes[1].received, 3);
    assert_int_equal(network->nodes[2].received, 1);
    assert_int_equal(network->nodes[0].received, 1);
    assert_int_equal(network->replay.offered_bytes, 1000 + 8 + 8);
    assert_int_equal(network->replay.delivered_bytes, 1000 + 8 + 8);
    assert_true(network->came_ps > 1000000);
    network_close(network);
    assert_string_equal(run->failure, "");
    free(network);
    free(run);
}

/* A setting that people can ask for and that no network can do is refused with a reason. */
static void test_refusals(void **state)
{
    (void)state;
    struct network *network = calloc(1, sizeof(*network));
    assert_non_null(network);
    struct lab_run *run = prepare();
    struct network_config config = config_of(run, "star:1");
    assert_false(network_open(network, run, &config));
    assert_non_null(strstr(run->failure, "nodes"));
    free(run);
    run = prepare();
    config = config_of(run, "star:8");
    config.most = 8000;
    config.wire.byte_fs = 80000000;
    assert_false(network_open(network, run, &config));
    assert_non_null(strstr(run->failure, "4 ms"));
    free(run);
    run = prepare();
    config = config_of(run, "star:8");
    config.least = config.most + 1;
    assert_false(network_open(network, run, &config));
    assert_non_null(strstr(run->failure, "least"));
    free(run);
    run = prepare();
    config = config_of(run, "star:8");
    (void)strncpy(config.destinations, "transpose", sizeof(config.destinations) - 1);
    assert_false(network_open(network, run, &config));
    assert_non_null(strstr(run->failure, "square"));
    free(run);
    free(network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_queues), cmocka_unit_test(test_detours_and_patterns),
        cmocka_unit_test(test_inputs),         cmocka_unit_test(test_departures),
        cmocka_unit_test(test_trace),          cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
