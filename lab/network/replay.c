/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Messages of a trace, which nodes send instead of what a load and a pattern say.
 *
 * A node sends one message after the other, in packets of the largest size. The last one is as
 * long as it has to be, in words of 8 bytes.
 */
#include <stdlib.h>

#include "lab/network/network.h"

#define NONE UINT32_MAX

static uint64_t bytes_of(const struct network *network, uint32_t node)
{
    const struct network_replayer *replayer = &network->replay.nodes[node];
    return network->replay.trace.messages[replayer->message].bytes - replayer->sent;
}

/* Makes each node's list of messages, from the last one to the first. */
static void list_messages(struct network *network)
{
    struct network_replay *replay = &network->replay;
    const uint32_t nodes = network->topology.nodes;
    replay->next = calloc(replay->trace.count, sizeof(replay->next[0]));
    replay->nodes = calloc(nodes, sizeof(replay->nodes[0]));
    CHECK(replay->next != NULL && replay->nodes != NULL);
    for (uint32_t node = 0; node < nodes; node++) {
        replay->nodes[node].message = NONE;
    }
    for (uint32_t i = replay->trace.count; i > 0; i--) {
        const struct traffic_message *message = &replay->trace.messages[i - 1];
        uint32_t *const first = &replay->nodes[message->from].message;
        replay->next[i - 1] = *first;
        *first = i - 1;
        replay->offered_bytes += (message->bytes + 7) / 8 * 8;
    }
}

bool network_replay_open(struct network *network)
{
    const struct lab_text *given = &network->config.texts[LAB_TRAFFIC];
    struct network_replay *replay = &network->replay;
    char error[TOPOLOGY_ERROR_BYTES];
    if (given->text == NULL) {
        return true;
    }
    if (!traffic_trace_parse(&replay->trace, given->text, given->bytes, network->topology.nodes,
                             error, sizeof(error))) {
        return network_refuse(network, LAB_TRAFFIC, error);
    }
    list_messages(network);
    network->config.warm_ps = 0;
    network->config.stop_ps = replay->trace.messages[replay->trace.count - 1].at_ps + 1;
    return true;
}

void network_replay_close(struct network *network)
{
    traffic_trace_close(&network->replay.trace);
    free(network->replay.next);
    free(network->replay.nodes);
}

uint64_t network_replay_bytes(const struct network *network)
{
    const struct network_replay *replay = &network->replay;
    if (replay->trace.count == 0) {
        return 0;
    }
    return replay->trace.count * (sizeof(replay->next[0]) + sizeof(replay->trace.messages[0])) +
           network->topology.nodes * sizeof(replay->nodes[0]);
}

uint64_t network_replay_time(const struct network *network, uint32_t node)
{
    const uint32_t message = network->replay.nodes[node].message;
    return message == NONE ? UINT64_MAX : network->replay.trace.messages[message].at_ps;
}

struct network_replayed network_replay_take(struct network *network, uint32_t node)
{
    struct network_replay *replay = &network->replay;
    struct network_replayer *replayer = &replay->nodes[node];
    const uint64_t most = 8ull * network->config.most, left = bytes_of(network, node);
    const uint64_t bytes = left < most ? left : most;
    const struct network_replayed taken = {.destination =
                                               replay->trace.messages[replayer->message].to,
                                           .words = (uint16_t)((bytes + 7) / 8)};
    replayer->sent += bytes;
    if (bytes == left) {
        *replayer = (struct network_replayer){.message = replay->next[replayer->message]};
    }
    return taken;
}
