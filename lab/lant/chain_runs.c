/* SPDX-License-Identifier: BSD-2-Clause
 *
 * chain_runs - see chain_runs.h.
 */
#include "lab/lant/chain_runs.h"

#include <stdlib.h>

#define BLOCKS 12u /* The second half counts. */

static struct lant_chain_config config_of(struct lab_run *run, bool software)
{
    const bool by_cpu = lab_word(run, "software") == 0;
    return (struct lant_chain_config){
        .costs = {.submit = lant_whole(run, "submit"),
                  .notice = lant_whole(run, "notice"),
                  .burst = lant_whole(run, "copy"),
                  .turn = lant_whole(run, "turn"),
                  .cpu_path = lant_whole(run, "cpu_path"),
                  .detour_cycles = lab_value(run, "detour")},
        .by_cpu = software && by_cpu,
        .blocks = 1,
        .under_way = lant_whole(run, "blocks"),
        .buffers = lant_whole(run, "buffers"),
        .direct = lab_word(run, "intermediate") == 1,
        .overlap = lab_word(run, "overlap") == 1,
    };
}

struct outcome {
    double latency, period; /* In cycles; the second only of more than one block. */
};

static struct outcome through(struct lab_run *run, const struct lant_chain_config *config)
{
    struct outcome outcome = {0};
    const struct lant_node_config nodes = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_line_of(run);
    struct lant_bench *bench = lant_bench_begin(run, &nodes, &fabric);
    struct lant_chain *chain = calloc(1, sizeof(*chain));
    CHECK(chain != NULL);
    lant_chain_open(chain, config, &bench->world);
    if (!lant_chain_run(chain)) {
        lab_fail(run, "a block did not come through");
    } else if (chain->wrong != 0) {
        lab_fail(run, "%llu bytes came out wrong", (unsigned long long)chain->wrong);
    } else {
        outcome.latency = lant_in_cycles(chain->first_ps);
        outcome.period =
            config->blocks < 2 ? LAB_NOTHING : lant_chain_period_ps(chain) / LANT_CYCLE_PS;
    }
    lab_note(run, chain->first_ps);
    lab_note(run, chain->last_ps ^ chain->wrong << 48);
    lant_chain_close(chain);
    free(chain);
    lant_bench_end(bench);
    return outcome;
}

double lant_chain_latency(struct lab_run *run, bool software, uint32_t bytes, uint64_t compute)
{
    struct lant_chain_config config = config_of(run, software);
    config.bytes = bytes;
    config.latency_cycles = compute;
    return through(run, &config).latency;
}

double lant_chain_throughput(struct lab_run *run, bool software, uint32_t bytes, uint64_t compute)
{
    struct lant_chain_config config = config_of(run, software);
    config.bytes = bytes;
    config.blocks = BLOCKS;
    config.latency_cycles = compute;
    return 8.0 * bytes / (through(run, &config).period * LANT_CYCLE_PS * 1e-3);
}
