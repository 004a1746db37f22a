/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets take the ways of the topology: flows spread over the paths of a fat tree and keep
 *         their order, programs of one node reach each other, lines are as the topology says. Wrong
 *         topologies and settings are refused by name.
 * Method  Programs on nodes write to one another, and the counters of switches' ports are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "lab/roce/internal.h"
#include "lab/roce/machine.h"
#include "lab/roce/program.h"

#define QPS    32u
#define BYTES  16384u
#define MEMORY (QPS * BYTES)

/* Two programs, and connections between them. */
struct net {
    struct sim sim;
    struct roce_config config;
    struct roce *roce;
    struct roce_program programs[2];
};

static struct roce_config config_of(const char *topology, const char *text, bool one_path)
{
    const struct roce_settings settings = roce_settings_default();
    struct roce_config config = roce_config_of(&settings);
    config.contexts = 0;
    config.one_path = one_path;
    config.text = text;
    config.text_bytes = text == NULL ? 0 : strlen(text);
    strcpy(config.topology, topology == NULL ? "" : topology);
    return config;
}

static struct net *net_open_text(const char *topology, const char *text, bool one_path,
                                 uint32_t from, uint32_t to)
{
    char error[LAB_TEXT_BYTES];
    struct net *net = calloc(1, sizeof(*net));
    assert_non_null(net);
    sim_init(&net->sim, 1);
    net->config = config_of(topology, text, one_path);
    net->roce = roce_open(&net->sim, &net->config, error, sizeof(error));
    if (net->roce == NULL) {
        fail_msg("%s", error);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const struct roce_program_config config = {.node = i == 0 ? from : to,
                                                   .memory_bytes = MEMORY,
                                                   .qps = QPS,
                                                   .depth = 4,
                                                   .mtu = PATH_MTU_4096,
                                                   .timeout = 14,
                                                   .seed = 1 + i};
        roce_program_open(&net->programs[i], net->roce, &net->sim, &config);
        for (uint32_t k = 0; k < QPS; k++) {
            (void)roce_program_qp(&net->programs[i], QP_RC);
        }
    }
    for (uint32_t k = 0; k < QPS; k++) {
        roce_program_connect(&net->programs[0], net->programs[0].qps[k], &net->programs[1],
                             net->programs[1].qps[k]);
    }
    return net;
}

static struct net *net_open(const char *topology, bool one_path, uint32_t from, uint32_t to)
{
    return net_open_text(topology, NULL, one_path, from, to);
}

static void net_close(struct net *net)
{
    for (uint32_t i = 0; i < 2; i++) {
        const struct nic_counters *counters = nic_counters(net->programs[i].engine);
        assert_int_equal(counters->values[COUNTER_out_of_seq_request], 0);
        assert_int_equal(counters->values[COUNTER_retransmitted_pkts], 0);
        roce_program_close(&net->programs[i]);
    }
    roce_close(net->roce);
    free(net);
}

static void write_on(struct net *net, uint32_t connection, uint32_t bytes)
{
    struct roce_program *program = &net->programs[0];
    const size_t offset = (size_t)connection * BYTES;
    const struct send_request request = {.kind = WORK_WRITE,
                                         .remote_address =
                                             roce_program_address(&net->programs[1], offset),
                                         .remote_key = net->programs[1].region.key};
    memset(program->memory + offset, (int)connection + 1, bytes);
    roce_program_post(program, program->qps[connection], &request, offset, bytes);
}

/* The ports of the sender's switch by which frames went on to other switches. */
static uint32_t paths_of(const struct net *net, uint32_t node)
{
    const struct topology *topology = &net->roce->topology;
    const uint32_t vertex = topology_port_of(topology, node, 0)->peer;
    const struct sim_ethernet_switch *at = &net->roce->switches[vertex - topology->nodes];
    uint32_t paths = 0;
    for (uint32_t i = 0; i < at->port_count; i++) {
        paths += topology_port_of(topology, vertex, i)->peer >= topology->nodes &&
                 at->ports[i].port.counters.frames_sent > 0;
    }
    return paths;
}

static uint32_t spread(bool one_path)
{
    const uint32_t far = 127;
    struct net *net = net_open("fat-tree:8", one_path, 0, far);
    for (uint32_t k = 0; k < QPS; k++) {
        write_on(net, k, BYTES);
    }
    sim_run_until(&net->sim, 1000000000);
    assert_memory_equal(net->programs[0].memory, net->programs[1].memory, MEMORY);
    const uint32_t paths = paths_of(net, 0);
    net_close(net);
    return paths;
}

/* Four ports of the first switch lead up. */
static void test_flows_spread_over_paths(void **state)
{
    (void)state;
    assert_int_equal(spread(false), 4);
    assert_int_equal(spread(true), 1);
}

/* Through the NIC, and over no line. */
static void test_programs_of_a_node(void **state)
{
    (void)state;
    struct net *net = net_open("star:2", false, 1, 1);
    write_on(net, 0, 8);
    sim_run_until(&net->sim, 100000000);
    assert_memory_equal(net->programs[0].memory, net->programs[1].memory, 8);
    const struct roce_pcie *pcie = &net->config.pcie;
    const uint64_t bus_ps = 32 * pcie->byte_fs / 1000 + 84 * pcie->byte_fs / 1000 +
                            28 * pcie->byte_fs / 1000 + 32 * pcie->byte_fs / 1000;
    assert_int_equal(net->programs[1].written_ps, bus_ps + pcie->doorbell_ps + 2 * pcie->read_ps +
                                                      pcie->write_ps + net->config.send_ps +
                                                      net->config.receive_ps);
    assert_int_equal(roce_counters_of(net->roce).switches.cut_through, 0);
    net_close(net);
}

#define GRAPH                                                                                      \
    "switch s\n"                                                                                   \
    "node a\n"                                                                                     \
    "node b\n"                                                                                     \
    "link a s 50 300\n"                                                                            \
    "link b s 25 200\n"

/* When 4096 bytes have come from node 0 to node 1. */
static uint64_t come_ps(const char *topology, const char *text)
{
    struct net *net = net_open_text(topology, text, false, 0, 1);
    write_on(net, 0, 4096);
    sim_run_until(&net->sim, 100000000);
    const uint64_t written_ps = net->programs[1].written_ps;
    net_close(net);
    return written_ps;
}

/* The description's own rates and latencies, and those of the settings. A frame goes on by the
 * slower line while its end is still to come. */
static void test_lines_are_as_described(void **state)
{
    (void)state;
    const uint64_t frame = 8 + 14 + 20 + 8 + 12 + 16 + 4096 + 4 + 4;
    const uint64_t usual_ps = come_ps("star:2", NULL);
    assert_int_equal(come_ps("star:2@50,300", NULL) + 2 * 700000, usual_ps + frame * 80);
    assert_int_equal(come_ps(NULL, GRAPH) + 700000 + 800000, usual_ps + frame * 240);
}

/* Frames that still come after a pause was asked for find room. */
static void test_inputs_leave_headroom(void **state)
{
    (void)state;
    struct net *net = net_open("star:2", false, 0, 1);
    const struct sim_switch_port *port = &net->roce->switches[0].ports[0];
    const struct sim_headroom headroom = sim_headroom_of(&port->port.kind, 200000, 4266, 4266);
    assert_int_equal(port->limits.room_bytes, 524288);
    assert_int_equal(port->limits.xoff_bytes + sim_headroom_bytes(&headroom), 524288);
    assert_int_equal(port->limits.xon_bytes + 2 * 4266, port->limits.xoff_bytes);
    net_close(net);
    char error[LAB_TEXT_BYTES] = "";
    struct sim sim;
    sim_init(&sim, 1);
    struct roce_config config = config_of("star:2", NULL, false);
    config.switches.input.room_bytes = sim_headroom_bytes(&headroom);
    assert_null(roce_open(&sim, &config, error, sizeof(error)));
    assert_non_null(strstr(error, "behind a pause"));
    config.switches.input.room_bytes++;
    struct roce *const roce = roce_open(&sim, &config, error, sizeof(error));
    assert_non_null(roce);
    roce_close(roce);
}

static void refuse_topology(const char *topology, const char *says)
{
    char error[LAB_TEXT_BYTES] = "";
    struct sim sim;
    sim_init(&sim, 1);
    const struct roce_config config = config_of(topology, NULL, false);
    assert_null(roce_open(&sim, &config, error, sizeof(error)));
    if (strstr(error, says) == NULL) {
        fail_msg("%s: %s", topology, error);
    }
}

static void refuse_setting(const char *assignment, const char *says)
{
    char error[LAB_TEXT_BYTES] = "";
    struct roce_settings settings = roce_settings_default();
    const struct roce_settings before = settings;
    assert_false(roce_set(&settings, assignment, error, sizeof(error)));
    if (strstr(error, says) == NULL) {
        fail_msg("%s: %s", assignment, error);
    }
    assert_memory_equal(&settings, &before, sizeof(before));
}

static void test_wrong_words(void **state)
{
    (void)state;
    refuse_topology("all-to-all:3", "node 0");
    refuse_topology("moon:3", "moon");
    refuse_setting("raed=5", "raed");
    refuse_setting("read", "NAME=VALUE");
    refuse_setting("read=-1", "nearest valid is 0");
    refuse_setting("payload=5", "payload"); /* An experiment's, and none of the machine's. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flows_spread_over_paths),
        cmocka_unit_test(test_programs_of_a_node),
        cmocka_unit_test(test_lines_are_as_described),
        cmocka_unit_test(test_inputs_leave_headroom),
        cmocka_unit_test(test_wrong_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
