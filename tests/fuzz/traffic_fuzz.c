/* SPDX-License-Identifier: BSD-2-Clause
 *
 * traffic_fuzz - flow matrices, traces and the names of patterns and topologies.
 *
 * Goal    Whatever comes, nothing outside is read or written, no assertion fails, every error ends;
 *         and what is accepted names only nodes that exist, in the order of time.
 * Method  The first byte says which of the four the rest is, the second how many nodes there are.
 *         If it is accepted, every node draws some destinations, or every message is looked at.
 */
#include <string.h>

#include "base/check.h"
#include "sim/pattern.h"
#include "sim/topology.h"
#include "sim/traffic_trace.h"

#define NAME_BYTES_MAX 200u

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

struct input {
    const char *text;
    size_t bytes;
    uint32_t nodes;
    char error[TOPOLOGY_ERROR_BYTES];
};

static void draw(struct pattern *pattern)
{
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t self = 0; self < pattern->nodes; self++) {
        const double load = pattern_load(pattern, self);
        CHECK(load >= 0 && load <= 1);
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t to = pattern_destination(pattern, &prng, self);
            CHECK(to == PATTERN_SILENT || (to < pattern->nodes && to != self));
            CHECK((to == PATTERN_SILENT) == (load == 0));
        }
    }
    (void)pattern_bytes(pattern);
    pattern_close(pattern);
}

static bool try_matrix(struct input *input)
{
    struct pattern pattern;
    if (!pattern_parse(&pattern, input->text, input->bytes, input->nodes, input->error,
                       sizeof(input->error))) {
        return false;
    }
    draw(&pattern);
    return true;
}

static bool try_trace(struct input *input)
{
    struct traffic_trace trace;
    if (!traffic_trace_parse(&trace, input->text, input->bytes, input->nodes, input->error,
                             sizeof(input->error))) {
        return false;
    }
    CHECK(trace.count > 0);
    for (uint32_t i = 0; i < trace.count; i++) {
        const struct traffic_message *const message = &trace.messages[i];
        CHECK(message->from < input->nodes && message->to < input->nodes);
        CHECK(message->from != message->to && message->bytes > 0);
        CHECK(i == 0 || message[-1].at_ps <= message->at_ps);
    }
    traffic_trace_close(&trace);
    return true;
}

static bool try_name(struct input *input, bool is_pattern)
{
    char name[NAME_BYTES_MAX + 1];
    struct pattern pattern;
    struct topology topology;
    struct prng prng;
    const size_t bytes = input->bytes < NAME_BYTES_MAX ? input->bytes : NAME_BYTES_MAX;
    memcpy(name, input->text, bytes);
    name[bytes] = '\0';
    prng_init(&prng, 2);
    if (is_pattern &&
        pattern_open(&pattern, name, input->nodes, &prng, input->error, sizeof(input->error))) {
        draw(&pattern);
        return true;
    }
    if (!is_pattern && topology_open(&topology, name, input->error, sizeof(input->error))) {
        const uint32_t last = topology.nodes - 1, entropy = input->nodes;
        uint32_t vertex = 0;
        for (uint32_t hops = 0; vertex != last; hops++) {
            CHECK(hops <= topology_vertices(&topology));
            const uint32_t port = topology_route(&topology, vertex, last, entropy);
            vertex = topology_port_of(&topology, vertex, port)->peer;
        }
        topology_close(&topology);
        return true;
    }
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    if (count < 3) {
        return 0;
    }
    struct input input = {
        .text = (const char *)bytes + 2, .bytes = count - 2, .nodes = 2 + bytes[1]};
    bool good = false;
    memset(input.error, 'x', sizeof(input.error));
    switch (bytes[0] % 4) {
    case 0: good = try_matrix(&input); break;
    case 1: good = try_trace(&input); break;
    case 2: good = try_name(&input, true); break;
    default: good = try_name(&input, false); break;
    }
    CHECK(good || strnlen(input.error, sizeof(input.error)) < sizeof(input.error));
    return 0;
}
