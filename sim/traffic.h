/* SPDX-License-Identifier: BSD-2-Clause
 *
 * traffic - payloads whose every byte can be checked, and when and where packets go.
 *
 * A payload is named by its flow and its number in it. The first word holds both, and the other
 * words follow from them. So a sink needs no copy to find a wrong byte, and no list to find a
 * packet that is missing, doubled or out of order.
 */
#ifndef SIM_TRAFFIC_H
#define SIM_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/prng.h"

/* -- Payloads -----------------------------------------------------------------------------------*/

/* Fills `words` 64-bit words with payload `number` of `flow` (24 bits). */
void sim_payload_fill(uint64_t *payload, size_t words, uint32_t flow, uint64_t number);

enum sim_payload_verdict {
    SIM_PAYLOAD_GOOD,
    SIM_PAYLOAD_WRONG_BYTES,
    SIM_PAYLOAD_EARLIER, /* The payload is a repetition, or was overtaken. */
    SIM_PAYLOAD_LATER,   /* Some payloads before it are missing. */
};

/* A sink's knowledge of one flow. */
struct sim_sink {
    uint64_t expected; /* The next number. */
    uint64_t good, wrong_bytes, earlier, missing;
};

/* Judges a payload that should be of `flow`, and counts it. After a later one the sink expects the
 * one behind that. */
enum sim_payload_verdict sim_sink_judge(struct sim_sink *sink, const uint64_t *payload,
                                        size_t words, uint32_t flow);

/* -- Arrivals and destinations ------------------------------------------------------------------*/

/* The time to the next arrival of a Poisson process with this mean. */
uint64_t sim_poisson_gap(struct prng *prng, uint64_t mean_ps);

/* The destination of a packet of `self` among `nodes`: uniform over the others. The share
 * `unbalance` (0 to 1) of the packets goes to the node opposite, beside its uniform part. */
uint32_t sim_destination(struct prng *prng, uint32_t self, uint32_t nodes, double unbalance);

#endif
