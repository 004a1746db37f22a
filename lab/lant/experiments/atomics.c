/* SPDX-License-Identifier: BSD-2-Clause
 *
 * What if an atomic operation were one request (8.2.3)? A counter that several
 * nodes count up: by atomic requests, and by exclusive loads and stores (4.1.4.2). All of it is
 * prediction.
 */
#include <stdio.h>
#include <string.h>

#include "lab/lant/bench.h"

/* Values that the document prints, or that were fitted to it; parameters do not change them. */
enum {
    MAC = 59,
    SWITCH = 18,
    ISSUE = 9,
    RECEIVE = 16,
    DONE = 5,
    LOAD_FLITS = 4, /* AR and B; AW, R, and ATOMIC with one operand have one more. */
    WAY = 2 * MAC + SWITCH,
};

enum {
    NODES = 16,
    MOST = NODES - 1, /* All but the counter's. */
    SOME = 8,
    WORLDS = 8,  /* Each with other beginnings: nodes that ask in one rhythm stay in it. */
    ROUNDS = 80, /* Rounds that each node counts. */
    LOSS_MILLIONTHS = 5000, /* Packets that a line loses, where packets are lost. */
    ENTRIES = 8192,         /* More requests than a lifetime has. */
};

/* -- Arithmetic ---------------------------------------------------------------------------------*/

/* From the program to the answer on its bus; `request` and `answer` in flits. */
static double there_and_back(uint32_t request, uint32_t accesses, uint32_t answer)
{
    return ISSUE + 2.0 * request + 2 * WAY + accesses * RECEIVE + answer + DONE;
}

static double load_cycles(void)
{
    return there_and_back(LOAD_FLITS, 1, LOAD_FLITS + 1);
}

static double store_cycles(void)
{
    return there_and_back(LOAD_FLITS + 1, 1, LOAD_FLITS);
}

static double atomic_cycles(void)
{
    return there_and_back(LOAD_FLITS + 1, 2, LOAD_FLITS + 1);
}

/* Between two counts of all nodes: each has one under way, the unit takes one after the other. */
static double predicted_atomic(uint32_t nodes)
{
    const double unit = 2 * RECEIVE, each = atomic_cycles() / nodes;
    return each > unit ? each : unit;
}

/* The lock is taken when the load has come, and free when the store is written: a store's time
 * but for its answer, and a load's but for its way there. Then somebody's next attempt has to
 * come: `nodes` try once in the time of a load, at any moment. */
static double predicted_loop(uint32_t nodes)
{
    const double load_there = ISSUE + LOAD_FLITS + WAY;
    const double store_back = LOAD_FLITS + WAY + DONE;
    return load_cycles() - load_there + store_cycles() - store_back + load_cycles() / nodes;
}

/* -- Programs -----------------------------------------------------------------------------------*/

enum step {
    ATOMIC,
    LOAD,
    STORE,
};

struct counting;

struct counter {
    struct counting *counting;
    struct lant_node *node;
    struct sim_event next;
    enum step step;
    uint64_t value;
    uint32_t counted;
};

struct counting {
    struct lant_bench *bench;
    struct counter counters[NODES];
    uint64_t counted, attempts;
};

static void access_counter(struct counter *counter)
{
    struct lant_shm_access access = {.address = lant_global(0, 0), .bytes = sizeof(uint64_t)};
    const uint64_t sum = counter->value + 1;
    const uint8_t *bytes = NULL;
    uint8_t data[sizeof(sum)];
    memcpy(data, &sum, sizeof(sum));
    switch (counter->step) {
    case ATOMIC:
        access.atomic = LANT_FETCH_ADD;
        access.operand = 1;
        break;
    case STORE: access.store = true; bytes = data;
    /* Fall through. */
    case LOAD: access.lock = true; break;
    }
    counter->counting->attempts++;
    CHECK(lant_node_access(counter->node, &access, bytes));
}

static void on_next(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    access_counter(CONTAINER_OF(event, struct counter, next));
}

static void counted(struct counter *counter)
{
    counter->counted++;
    counter->counting->counted++;
}

static void on_done(void *context, const struct lant_shm_done *done)
{
    struct counter *counter = context;
    const bool good = done->response == LANT_OKAY || done->response == LANT_EXOKAY;
    if (done->kind == LANT_SHM_FAILED) {
        return; /* The run then ends before all is counted, and says so. */
    }
    switch (counter->step) {
    case ATOMIC:
        /* A machine without atomics: the program knows another way. */
        counter->step = done->response == LANT_DECERR ? LOAD : ATOMIC;
        if (good) {
            counted(counter);
        }
        break;
    case LOAD:
        counter->value = done->data;
        counter->step = done->response == LANT_EXOKAY ? STORE : LOAD;
        break;
    case STORE:
        if (done->response == LANT_EXOKAY) {
            counted(counter);
        }
        counter->step = LOAD;
        break;
    }
    if (counter->counted < ROUNDS) {
        sim_after(&counter->counting->bench->sim, &counter->next, 0);
    }
}

/* -- Worlds -------------------------------------------------------------------------------------*/

struct outcome {
    double cycles;   /* From one count to the next, of all nodes together. */
    double attempts; /* Accesses a count. */
    uint64_t sum, counted, lost;
};

static void begin(struct counting *counting, uint32_t nodes, bool by_atomics, uint64_t seed)
{
    struct prng prng;
    prng_init(&prng, seed);
    for (uint32_t i = 1; i <= nodes; i++) {
        struct counter *counter = &counting->counters[i];
        *counter = (struct counter){.counting = counting,
                                    .node = &counting->bench->world.nodes[i],
                                    .step = by_atomics ? ATOMIC : LOAD};
        sim_event_init(&counter->next, on_next);
        counter->node->program = (struct lant_program){.context = counter, .on_done = on_done};
        /* They begin within the time of a load, each at its own moment. */
        sim_after(&counting->bench->sim, &counter->next,
                  prng_below(&prng, lant_cycles((uint64_t)load_cycles())));
    }
}

static struct outcome count_in(struct lab_run *run, uint32_t nodes, bool by_atomics,
                               uint32_t loss_millionths, uint64_t seed)
{
    struct lant_node_config config = lant_config_of(run);
    struct lant_fabric_config fabric = lant_line_of(run);
    config.atomics.entries = lab_word(run, "atomics") == 1 ? ENTRIES : 0;
    config.atomics.forgets = lab_word(run, "repeated") == 1;
    config.shm.retries = LANT_RETRIES_MAX;
    config.memory_bytes = 4096;
    fabric.switch_cycles = lant_whole(run, "switch");
    fabric.loss_millionths = loss_millionths;
    (void)snprintf(fabric.topology, sizeof(fabric.topology), "star:%u", NODES);
    struct counting counting = {.bench = lant_bench_begin(run, &config, &fabric)};
    struct lant_bench *bench = counting.bench;
    const uint64_t all = (uint64_t)nodes * ROUNDS;
    begin(&counting, nodes, by_atomics, seed);
    (void)lant_bench_until(bench, &counting.counted, all / 4);
    const uint64_t from_ps = bench->sim.now_ps;
    (void)lant_bench_until(bench, &counting.counted, 3 * all / 4);
    struct outcome outcome = {.cycles =
                                  lant_in_cycles(bench->sim.now_ps - from_ps) / ((double)all / 2)};
    (void)lant_bench_until(bench, &counting.counted, all);
    lant_bench_settle(bench);
    outcome.attempts = (double)counting.attempts / (double)all;
    outcome.counted = counting.counted;
    outcome.lost = bench->world.fabric.counters.lost;
    memcpy(&outcome.sum, bench->world.nodes[0].memory, sizeof(outcome.sum));
    lab_note(run, outcome.sum ^ outcome.counted << 32);
    lant_bench_end(bench);
    return outcome;
}

static struct outcome count(struct lab_run *run, uint32_t nodes, bool by_atomics,
                            uint32_t loss_millionths)
{
    return count_in(run, nodes, by_atomics, loss_millionths, run->seed);
}

/* By exclusive loads and stores, the mean of several worlds. */
static struct outcome count_loops(struct lab_run *run, uint32_t nodes, uint32_t worlds)
{
    struct outcome mean = {0};
    for (uint32_t i = 0; i < worlds; i++) {
        const struct outcome each = count_in(run, nodes, false, 0, run->seed * WORLDS + i);
        mean.cycles += each.cycles / worlds;
        mean.attempts += each.attempts / worlds;
    }
    return mean;
}

/* -- Rows ---------------------------------------------------------------------------------------*/

static void judge_one(struct lab_run *run)
{
    const double atomic = count(run, 1, true, 0).cycles, loop = count(run, 1, false, 0).cycles;
    lab_judge_relative(lab_add_row(run, "LNI-W-4.alone", "cycles", "a count by one node"),
                       atomic_cycles(), atomic, 0.01);
    lab_judge_relative(lab_add_row(run, "LNI-W-4.alone.gain", "",
                                   "the same by an exclusive load and store, of this"),
                       (load_cycles() + store_cycles()) / atomic_cycles(), loop / atomic, 0.01);
}

static void judge_crowd(struct lab_run *run)
{
    static const uint32_t nodes[] = {SOME, MOST};
    static const char *const atomics[] = {"LNI-W-4.crowd/8", "LNI-W-4.crowd/15"};
    static const char *const loops[] = {"LNI-W-4.loop/8", "LNI-W-4.loop/15"};
    static const char *const gains[] = {"LNI-W-4.gain/8", "LNI-W-4.gain/15"};
    for (uint32_t i = 0; i < COUNT_OF(nodes); i++) {
        const struct outcome atomic = count(run, nodes[i], true, 0);
        const struct outcome loop = count_loops(run, nodes[i], WORLDS);
        lab_judge_relative(
            lab_add_row(run, atomics[i], "cycles", "between two counts of %u nodes", nodes[i]),
            predicted_atomic(nodes[i]), atomic.cycles, 0.02);
        lab_judge_relative(
            lab_add_row(run, loops[i], "cycles",
                        "the same by exclusive loads and stores, %.1f accesses a count",
                        loop.attempts),
            predicted_loop(nodes[i]), loop.cycles, 0.1);
        lab_judge_relative(lab_add_row(run, gains[i], "", "the second, of the first"),
                           predicted_loop(nodes[i]) / predicted_atomic(nodes[i]),
                           loop.cycles / atomic.cycles, 0.1);
    }
}

static void judge_losses(struct lab_run *run)
{
    const struct outcome outcome = count(run, SOME, true, LOSS_MILLIONTHS);
    lab_judge_absolute(lab_add_row(run, "LNI-W-4.once", "",
                                   "counted too often, where %llu packets are lost",
                                   (unsigned long long)outcome.lost),
                       0, (double)outcome.sum - (double)outcome.counted, 0.5);
}

static void draw(struct lab_run *run)
{
    lab_add_figure(run, "counter", "A counter of several nodes", "nodes",
                   "cycles between two counts", false);
    struct lab_series *series = lab_add_curve(run, "atomic requests");
    for (uint32_t nodes = 1; nodes <= MOST; nodes += 2) {
        lab_add_point(series, nodes, count(run, nodes, true, 0).cycles, predicted_atomic(nodes));
    }
    series = lab_add_curve(run, "exclusive loads and stores");
    for (uint32_t nodes = 3; nodes <= MOST; nodes += 2) {
        lab_add_point(series, nodes, count_loops(run, nodes, 1).cycles, predicted_loop(nodes));
    }
}

static void atomics(struct lab_run *run)
{
    judge_one(run);
    judge_crowd(run);
    judge_losses(run);
    draw(run);
}

static const struct lab_claim atomics_claims[] = {
    {.id = "LNI-W-4.alone",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A1 LNI-A7",
     .source = "OC: 9 + 2 x 5 + 2 x 136 + 2 x 16 + 5 + 5: a way there, two accesses, a way back",
     .broken_by = "atomics=off | mac=40",
     .because = "a count is then a load and a store; or the ways are shorter"},
    {.id = "LNI-W-4.alone.gain",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A1",
     .source = "OC: 315 + 316 of 333",
     .broken_by = "atomics=off",
     .because = "both are the same then"},
    {.id = "LNI-W-4.crowd",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A1 LNI-A7",
     .source = "OC: 333 of 8 nodes; OC: of 15 the unit makes two accesses to memory, 32",
     .broken_by = "atomics=off | shm_receive=40",
     .because = "a count is then a load and a store; or memory is slower"},
    {.id = "LNI-W-4.loop",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: the lock is held for 337 cycles, and the next attempt comes 315 / n later",
     .broken_by = "mac=40",
     .because = "the ways are shorter"},
    {.id = "LNI-W-4.gain",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .given = "LNI-A1",
     .source = "OC: (337 + 315 / n) of max(333 / n, 32)",
     .broken_by = "atomics=off",
     .because = "both are the same then"},
    {.id = "LNI-W-4.once",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "OC: what comes again is answered, not done again",
     .broken_by = "repeated=done",
     .because = "a request whose answer is lost is then done twice"},
};

const struct lab_experiment lant_atomics = {
    .name = "lant/atomics",
    .what = "what if: atomic requests, and a counter that all want",
    LANT_COMMON,
    .uses =
        LANT_LINE_USES "switch shm_issue shm_receive shm_done timeout receiver atomics=on repeated",
    LANT_CLAIMS(atomics_claims),
    .quick = true,
    .run = atomics,
    .explains =
        "An exclusive load and store lock the counter for a round trip, in which all others are "
        "refused and ask again. An atomic request travels once, and locks the counter at its "
        "target for two accesses to memory: with 15 nodes eleven times as many counts. A request "
        "that was executed is remembered until no copy can come, and never forgotten to make room: "
        "a request for which there is no room is put off.",
};
