/* SPDX-License-Identifier: BSD-2-Clause
 *
 * STREAM with its arrays in the memory of another node: Table 3.7 (rows A7 to A10).
 */
#include "lab/lant/bench.h"

enum {
    ELEMENTS = 1000, /* All of the document's take the same time. */
    DOCUMENT_ELEMENTS = 10000000,
    BYTES = 8,
    ARRAY = 0x10000,
};

/* A kernel reads some arrays and stores into another, element by element. */
struct kernel {
    const char *row, *name;
    uint32_t loads;
    double printed_s;
};

/* A CPU that waits for each of its accesses, or keeps a few of them under way. */
struct cpu {
    struct lant_bench *bench;
    struct sim_event wake; /* An access was answered. */
    struct sim_event next; /* The CPU has it, and goes on. */
    const struct kernel *kernel;
    uint32_t issued, answered, total, under_way_most;
    uint64_t bus_ps; /* To the interface, and the remapper; the way back is in there. */
    bool posted;
};

static void issue(struct cpu *cpu)
{
    struct lant_node *node = &cpu->bench->world.nodes[0];
    while (cpu->issued < cpu->total && cpu->issued - cpu->answered < cpu->under_way_most) {
        const uint32_t per_element = cpu->kernel->loads + 1;
        const uint32_t element = cpu->issued / per_element, which = cpu->issued % per_element;
        const uint64_t at = (uint64_t)which * ARRAY + (uint64_t)element * BYTES;
        const struct lant_shm_access load = {.address = lant_global(1, at), .bytes = BYTES};
        const bool store = which == cpu->kernel->loads;
        CHECK(store ? lant_bench_put(cpu->bench, 0, 1, at, BYTES)
                    : lant_node_access(node, &load, NULL));
        cpu->issued++;
        cpu->answered += cpu->posted && store;
    }
}

/* The answer takes the rest of the bus's time. */
static void on_wake(struct sim *sim, struct sim_event *event)
{
    struct cpu *cpu = CONTAINER_OF(event, struct cpu, wake);
    if (!sim_event_scheduled(&cpu->next)) {
        sim_after(sim, &cpu->next, cpu->bus_ps);
    }
}

static void on_next(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    struct cpu *cpu = CONTAINER_OF(event, struct cpu, next);
    const uint32_t done = (uint32_t)cpu->bench->probes[0].done;
    cpu->answered = cpu->answered > done ? cpu->answered : done;
    issue(cpu);
}

/* Seconds for the document's number of elements. */
static double seconds(struct lab_run *run, const struct kernel *kernel)
{
    struct lant_node_config config = lant_config_of(run);
    const struct lant_fabric_config fabric = lant_ring_of(run, 2);
    const uint32_t bus = lant_whole(run, "bus") + lant_whole(run, "remapper");
    if (lab_word(run, "stores") == 0) {
        config.shm.early_timers = 0;
    }
    struct lant_bench *bench = lant_bench_begin(run, &config, &fabric);
    struct cpu cpu = {.bench = bench,
                      .kernel = kernel,
                      .total = ELEMENTS * (kernel->loads + 1),
                      .under_way_most = lant_whole(run, "accesses"),
                      .bus_ps = lant_cycles(bus),
                      .posted = lab_word(run, "posted") == 1};
    sim_event_init(&cpu.wake, on_wake);
    sim_event_init(&cpu.next, on_next);
    bench->probes[0].wakes = &cpu.wake;
    lant_bench_fill(bench, 1, 3 * ARRAY);
    issue(&cpu);
    (void)lant_bench_until(bench, &bench->probes[0].done, cpu.total);
    const double s = (double)bench->sim.now_ps * 1e-12 * DOCUMENT_ELEMENTS / ELEMENTS;
    sim_cancel(&cpu.wake);
    sim_cancel(&cpu.next);
    lant_bench_settle(bench);
    lant_bench_end(bench);
    return s;
}

static void stream(struct lab_run *run)
{
    static const struct kernel kernels[] = {
        {"LNI-A7", "Copy", 1, 33.6},
        {"LNI-A8", "Scale", 1, 33.8},
        {"LNI-A9", "Add", 2, 50.8},
        {"LNI-A10", "Triad", 2, 50.8},
    };
    for (uint32_t i = 0; i < COUNT_OF(kernels); i++) {
        const double s = seconds(run, &kernels[i]);
        lab_judge_relative(lab_add_row(run, kernels[i].row, "s",
                                       "%s of 10^7 elements, %.0f ns an access", kernels[i].name,
                                       s * 1e9 / DOCUMENT_ELEMENTS / (kernels[i].loads + 1)),
                           kernels[i].printed_s, s, 0.01);
    }
}

#define BROKEN    "stores=early | accesses=2 | posted=on"
#define NOT_TIMED "early answers, a second access under way, or stores that nobody waits for"

static const struct lab_claim stream_claims[] = {
    {.id = "LNI-A7",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "Table 3.7",
     .broken_by = BROKEN " | switch=10",
     .because = "the time of a switch was set by it; " NOT_TIMED},
    {.id = "LNI-A8",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A7",
     .source = "Table 3.7: to this machine Scale is Copy",
     .broken_by = BROKEN,
     .because = NOT_TIMED},
    {.id = "LNI-A9",
     .reference = LAB_PRINTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A7",
     .source = "Table 3.7",
     .broken_by = BROKEN,
     .because = NOT_TIMED},
    {.id = "LNI-A10",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A7",
     .source = "Table 3.7: to this machine Triad is Add",
     .broken_by = BROKEN,
     .because = NOT_TIMED},
};

const struct lab_experiment lant_stream = {
    .name = "lant/stream",
    .what = "STREAM in the memory of another node",
    LANT_COMMON,
    .uses =
        "mac switch shm_issue shm_receive shm_done timeout receiver bus remapper accesses posted "
        "stores",
    LANT_CLAIMS(stream_claims),
    .quick = true,
    .run = stream,
    .explains =
        "One access at a time, loads and stores alike, is all that the remote column shows. "
        "The CPU's own time, the caches and local memory are not modelled.",
};
