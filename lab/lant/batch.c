/* SPDX-License-Identifier: BSD-2-Clause
 *
 * batch - see batch.h.
 */
#include "lab/lant/batch.h"

#include <stdlib.h>

#include "lab/lant/sender.h"
#include "sim/traffic.h"

#define FRAMES_A_NODE 1024u /* Packets and answers of all rows, with room to spare. */

static uint32_t peer_of(const struct lant_batch_traffic *traffic, struct prng *prng, uint32_t node)
{
    const uint32_t other = (uint32_t)prng_below(prng, traffic->nodes - 1);
    return traffic->to != LANT_TO_OTHERS ? traffic->to : other + (other >= node);
}

void lant_batch_plan(struct lab_plan *plan, const struct lant_batch_traffic *traffic, uint64_t seed)
{
    const uint32_t count = traffic->senders * traffic->each;
    *plan = (struct lab_plan){
        .nodes = traffic->nodes, .timed = traffic->interval_ps != 0, .longest = traffic->bytes};
    plan->first = calloc(traffic->nodes + 1, sizeof(plan->first[0]));
    plan->messages = calloc(count, sizeof(plan->messages[0]));
    CHECK(plan->first != NULL && plan->messages != NULL);
    struct lab_plan_message *next = plan->messages;
    for (uint32_t node = 0; node < traffic->nodes; node++) {
        const bool sends = node >= traffic->first && node - traffic->first < traffic->senders;
        uint64_t at_ps = 0;
        struct prng prng;
        prng_init(&prng, seed * UINT64_C(0x9e3779b97f4a7c15) + node);
        for (uint32_t i = 0; sends && i < traffic->each; i++) {
            at_ps += plan->timed ? sim_poisson_gap(&prng, traffic->interval_ps) : 0;
            *next++ = (struct lab_plan_message){
                .at_ps = at_ps, .to = peer_of(traffic, &prng, node), .bytes = traffic->bytes};
        }
        plan->first[node + 1] = (uint32_t)(next - plan->messages);
    }
    CHECK(next == plan->messages + count);
}

static void look(const struct lant_world *world, struct lant_batch_outcome *outcome)
{
    const struct lant_fabric *fabric = &world->fabric;
    const uint32_t ports = fabric->topology.first_port[topology_vertices(&fabric->topology)];
    outcome->nacked = fabric->counters.nacked;
    outcome->switches =
        lant_batch_share((double)fabric->counters.switches, (double)fabric->counters.carried);
    for (uint32_t i = 0; i < ports; i++) {
        outcome->busy_ps += fabric->busy_ps[i];
    }
    for (uint32_t i = 0; i < world->count; i++) {
        const struct lant_node *node = &world->nodes[i];
        const uint64_t *verdicts = node->rdma_target.counters.verdicts;
        outcome->again += node->rdma.counters.again;
        outcome->timeouts += node->rdma.counters.timeouts;
        outcome->refused +=
            verdicts[LANT_RDMA_TARGET_TABLE_FULL] + verdicts[LANT_RDMA_TARGET_ESCAPE_FULL];
    }
}

struct lant_batch_outcome lant_batch_run(struct lab_run *run, const struct lab_plan *plan,
                                         const struct lant_node_config *config,
                                         const struct lant_fabric_config *fabric, uint32_t window)
{
    struct lant_node_config nodes = *config;
    struct lant_fabric_config network = *fabric;
    nodes.memory_bytes = lant_senders_memory(plan, window);
    network.packets = FRAMES_A_NODE * plan->nodes;
    struct lant_bench *bench = lant_bench_begin(run, &nodes, &network);
    struct lant_senders senders = {
        .world = &bench->world, .plan = plan, .receivers_look = true, .window = window};
    lant_senders_open(&senders);
    while (sim_step(&bench->sim)) {
    }
    const struct lab_tally *tally = &senders.tally;
    struct lant_batch_outcome outcome = {
        .mean = sim_spread_mean(&tally->latency) / LANT_CYCLE_PS,
        .worst = lant_in_cycles(sim_spread_percentile(&tally->latency, 1)),
        .cycles = lant_in_cycles(tally->last_ps - tally->first_ps),
        .gbps = lab_tally_gbps(tally),
        .lost = lab_plan_count(plan) - tally->latency.count + senders.wrong,
    };
    look(&bench->world, &outcome);
    lant_senders_close(&senders);
    lant_bench_end(bench);
    return outcome;
}
