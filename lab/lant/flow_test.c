/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    With credits no packet is dropped, no buffer holds more than it has room for, and nothing
 *         stops for ever. Without credits, dropped packets are counted, and the rest arrives.
 * Method  Packets of all lengths by chance, through stars and fat trees with buffers of hardly a
 *         packet. A model, which knows only when heads come to switches and tails leave them, says
 *         how full each buffer is. One packet after the other: times by arithmetic.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "lab/lant/fabric.h"

enum {
    MAC = 59,
    SWITCH = 18,
    PACKETS = 3000,
};

struct net {
    struct lant_fabric fabric;
    struct sim sim;
    uint32_t come;
    uint64_t last_ps;
    uint8_t seen[PACKETS]; /* How often each came. */
};

static void on_packet(void *context, uint32_t node, struct lant_frame *frame)
{
    struct net *net = context;
    struct lant_packet packet;
    uint32_t repaired;
    assert_int_equal(lant_decode(frame->flits, frame->count, &packet, &repaired), LANT_WHOLE);
    assert_int_equal(packet.header.destination, node);
    assert_in_range(packet.footer.offset, 0, PACKETS - 1);
    net->seen[packet.footer.offset]++;
    net->come++;
    net->last_ps = net->sim.now_ps;
    lant_fabric_free(&net->fabric, frame);
}

static struct net *open_channels(const char *topology, enum lant_flow_kind flow, uint32_t buffer,
                                 uint32_t loss_millionths, uint32_t channels)
{
    const struct lant_line line = {.latency_cycles = MAC, .frame_flits = 4, .pause_flits = 24};
    struct lant_fabric_config config = {.node_line = line,
                                        .switch_line = line,
                                        .switch_cycles = SWITCH,
                                        .packets = PACKETS,
                                        .loss_millionths = loss_millionths,
                                        .flow = flow,
                                        .buffer_flits = buffer,
                                        .channels = channels,
                                        .may_deadlock = true};
    struct net *net = calloc(1, sizeof(*net));
    char error[TOPOLOGY_ERROR_BYTES];
    sim_init(&net->sim, 1);
    (void)snprintf(config.topology, sizeof(config.topology), "%s", topology);
    assert_true(lant_fabric_open(&net->fabric, &config, &net->sim, 1, on_packet, net, error,
                                 sizeof(error)));
    return net;
}

static struct net *open_net(const char *topology, enum lant_flow_kind flow, uint32_t buffer,
                            uint32_t loss_millionths)
{
    return open_channels(topology, flow, buffer, loss_millionths, 1);
}

static void close_net(struct net *net)
{
    lant_fabric_close(&net->fabric);
    free(net);
}

static void send(struct net *net, uint32_t number, uint32_t from, uint32_t to, uint8_t payload)
{
    const struct lant_packet packet = {
        .header = {.destination = to, .type = LANT_RDMA_UNREGISTERED, .payload = payload},
        .footer = {.class = LANT_CLASS_RDMA, .offset = number}};
    struct lant_frame *frame = lant_fabric_frame(&net->fabric);
    assert_non_null(frame);
    frame->count = lant_encode(&packet, frame->flits);
    (void)lant_fabric_send(&net->fabric, from, frame, net->sim.now_ps);
}

/* Packets by chance, half of them to node 0. */
static void send_many(struct net *net, uint64_t seed)
{
    const uint32_t nodes = net->fabric.topology.nodes;
    struct prng prng;
    prng_init(&prng, seed);
    for (uint32_t i = 0; i < PACKETS; i++) {
        const uint32_t from = 1 + (uint32_t)prng_below(&prng, nodes - 1);
        const uint32_t any = (from + 1 + (uint32_t)prng_below(&prng, nodes - 1)) % nodes;
        send(net, i, from, prng_chance(&prng, 500000) ? 0 : any,
             (uint8_t)(1 + prng_below(&prng, LANT_PAYLOAD_FLITS_MAX)));
    }
}

/* -- The model ----------------------------------------------------------------------------------*/

/* Flits in the buffer behind each port: those of packets that are on the line to it, or that stand
 * at its switch. */
static void expect_room(const struct net *net, uint32_t *model)
{
    const struct lant_fabric *fabric = &net->fabric;
    const uint32_t ports = fabric->flow.port_count;
    for (uint32_t i = 0; i < LANT_CHANNELS_MAX * ports; i++) {
        model[i] = 0;
    }
    const struct sim_pool *frames = &fabric->frames;
    bool is_free[PACKETS] = {false};
    for (uint32_t i = 0; i < frames->depth; i++) {
        is_free[(size_t)((const uint8_t *)frames->back[i] - frames->memory) / frames->bytes] = true;
    }
    for (uint32_t i = 0; i < frames->used; i++) {
        const struct lant_frame *frame =
            (const struct lant_frame *)(const void *)(frames->memory + i * frames->bytes);
        /* Without credits room is taken when the head comes. */
        const bool to_come =
            fabric->config.flow == LANT_FLOW_DROP && sim_event_scheduled(&frame->event);
        if (!is_free[i] && !to_come && frame->came_by != LANT_NO_PORT &&
            frame->vertex >= fabric->topology.nodes) {
            model[LANT_CHANNELS_MAX * frame->came_by + frame->channel] += frame->count;
        }
    }
    for (uint32_t i = 0; i < LANT_CHANNELS_MAX * ports; i++) {
        const struct lant_flow_channel *channel =
            &fabric->flow.ports[i / LANT_CHANNELS_MAX].channels[i % LANT_CHANNELS_MAX];
        /* Flits that have left still count until the credit for them is back. */
        assert_true(model[i] <= channel->used);
        assert_true(channel->used <= fabric->config.buffer_flits);
    }
}

/* Until nothing happens any more. */
static void run(struct net *net)
{
    uint32_t *model = calloc(LANT_CHANNELS_MAX * net->fabric.flow.port_count, sizeof(*model));
    for (uint32_t i = 0; sim_step(&net->sim); i++) {
        if (i % 512 == 0) {
            expect_room(net, model);
        }
    }
    free(model);
}

static void drain(struct net *net)
{
    run(net);
    for (uint32_t i = 0; i < LANT_CHANNELS_MAX * net->fabric.flow.port_count; i++) {
        const struct lant_flow_channel *channel =
            &net->fabric.flow.ports[i / LANT_CHANNELS_MAX].channels[i % LANT_CHANNELS_MAX];
        assert_int_equal(channel->used, 0);
        assert_true(channel->most <= net->fabric.config.buffer_flits);
        assert_true(list_empty(&channel->queue));
    }
}

/* -- Tests --------------------------------------------------------------------------------------*/

static const char *const sound[] = {"star:6", "fat-tree:4:2", "fat-tree:4:3", "fat-tree:6:3"};

/* LNI-W-3: with credits every packet comes, once. */
static void test_credits(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(sound); i++) {
        for (uint32_t buffer = LANT_PACKET_FLITS_MAX; buffer < 400; buffer *= 2) {
            struct net *net = open_net(sound[i], LANT_FLOW_CREDITS, buffer, 0);
            send_many(net, buffer + i);
            drain(net);
            assert_int_equal(net->come, PACKETS);
            for (uint32_t k = 0; k < PACKETS; k++) {
                assert_int_equal(net->seen[k], 1);
            }
            assert_int_equal(net->fabric.flow.dropped, 0);
            assert_true(net->fabric.flow.waited > 0);
            close_net(net);
        }
    }
}

/* Every node sends nearly half way around, all in one direction of each ring. */
static void send_around(struct net *net, uint32_t distance)
{
    const uint32_t nodes = net->fabric.topology.nodes;
    for (uint32_t i = 0; i < PACKETS; i++) {
        send(net, i, i % nodes, (i % nodes + distance) % nodes, LANT_PAYLOAD_FLITS_MAX);
    }
}

/* LNI-W-3: with two channels every packet comes, once, also where ways form circles. With one, all
 * wait for each other in a ring. */
static void test_circles(void **state)
{
    (void)state;
    static const char *const circles[] = {"torus:8",   "torus:5x4", "torus:3x3x3",
                                          "torus:2x6", "torus:4:3", "dragonfly:2,4,2"};
    for (uint32_t i = 0; i < COUNT_OF(circles); i++) {
        for (uint32_t around = 0; around < 2; around++) {
            struct net *net =
                open_channels(circles[i], LANT_FLOW_CREDITS, LANT_PACKET_FLITS_MAX, 0, 2);
            if (around) {
                send_around(net, net->fabric.topology.nodes / 2 - 1);
            } else {
                send_many(net, i);
            }
            drain(net);
            assert_int_equal(net->come, PACKETS);
            for (uint32_t k = 0; k < PACKETS; k++) {
                assert_int_equal(net->seen[k], 1);
            }
            close_net(net);
        }
    }
    struct net *net = open_net("torus:8", LANT_FLOW_CREDITS, LANT_PACKET_FLITS_MAX, 0);
    send_around(net, 3);
    run(net);
    assert_true(net->come < PACKETS / 2);
    close_net(net);
}

/* LNI-W-3: a line that loses packets does not lose their room. */
static void test_losses(void **state)
{
    (void)state;
    struct net *net = open_net("fat-tree:4:3", LANT_FLOW_CREDITS, 137, 100000);
    send_many(net, 5);
    drain(net);
    assert_in_range(net->fabric.counters.lost, PACKETS / 10, PACKETS);
    assert_int_equal(net->come + net->fabric.counters.lost, PACKETS);
    close_net(net);
}

/* LNI-W-3: without credits what finds no room is dropped, and counted; the rest comes once. */
static void test_drops(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(sound); i++) {
        struct net *net = open_net(sound[i], LANT_FLOW_DROP, 137, 0);
        send_many(net, i);
        drain(net);
        assert_true(net->fabric.flow.dropped > 0);
        assert_int_equal(net->come + net->fabric.flow.dropped, PACKETS);
        for (uint32_t k = 0; k < PACKETS; k++) {
            assert_in_range(net->seen[k], 0, 1);
        }
        close_net(net);
    }
}

/* LNI-W-3: a buffer of n packets lets n of them through in the time that room takes to come back:
 * the line, the switch, the packet, the line. */
static void test_round_trip(void **state)
{
    (void)state;
    enum {
        FLITS = 68,
        LOOP = 2 * MAC + SWITCH + FLITS,
        COUNT = 240
    };
    for (uint32_t n = 1; n <= 3; n++) {
        struct net *net = open_net("star:2", LANT_FLOW_CREDITS, n * FLITS + 1, 0);
        for (uint32_t i = 0; i < COUNT; i++) {
            send(net, i, 0, 1, LANT_PAYLOAD_FLITS_MAX);
        }
        drain(net);
        const double each = LOOP / (double)n, line = FLITS + 4 + FLITS / 24.0;
        const double first = 2 * MAC + SWITCH + FLITS;
        const double expected = first + (COUNT - 1) * (each > line ? each : line);
        assert_float_equal((double)net->last_ps / LANT_CYCLE_PS, expected, 2 * LOOP);
        close_net(net);
    }
}

/* LNI-W-3: where ways form circles, packets could wait for each other's room for ever. */
static void test_refused(void **state)
{
    (void)state;
    static const char *const circles[] = {"torus:4", "torus:3x3", "dragonfly:2,4,2"};
    for (uint32_t i = 0; i < COUNT_OF(circles); i++) {
        for (enum lant_flow_kind flow = LANT_FLOW_NONE; flow <= LANT_FLOW_DROP; flow++) {
            struct topology topology;
            char error[TOPOLOGY_ERROR_BYTES];
            assert_true(topology_open(&topology, circles[i], error, sizeof(error)));
            assert_int_equal(lant_flow_refuses(flow, 1, &topology) != NULL,
                             flow == LANT_FLOW_CREDITS);
            assert_null(lant_flow_refuses(flow, 2, &topology));
            topology_close(&topology);
        }
    }
    const struct lant_fabric_config config = {
        .topology = "torus:4", .packets = 1, .flow = LANT_FLOW_CREDITS, .buffer_flits = 69};
    struct lant_fabric fabric;
    struct sim sim;
    char error[TOPOLOGY_ERROR_BYTES] = "";
    sim_init(&sim, 1);
    assert_false(
        lant_fabric_open(&fabric, &config, &sim, 1, on_packet, NULL, error, sizeof(error)));
    assert_string_equal(error, "credits can deadlock in a torus without virtual channels");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_credits), cmocka_unit_test(test_losses),
        cmocka_unit_test(test_drops),   cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_circles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
