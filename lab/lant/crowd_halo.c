/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crowd_halo - a halo exchange: see crowd.h.
 *
 * A node has a cube of cells. In each step it packs its six faces, gets those of its neighbours,
 * and computes each cell from itself and the six around it. In dimension 0 faces are transferred,
 * and a notification says that one has come. In dimension 1 they are stored, and behind a fence a
 * flag is. In dimension 2 a flag says that a face can be fetched, and the neighbour loads it.
 * Faces of even and odd steps have places of their own, because a neighbour may be a step ahead.
 */
#include "lab/lant/crowd.h"

#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 8,
    FACE = SIDE * SIDE,
    CELLS = FACE * SIDE,
    WORD = sizeof(uint64_t),
    FACE_BYTES = (FACE + 1) * WORD, /* Behind the cells: which step. */
    SPACING = 576,
    DIRECTIONS = 6, /* 2d: down in dimension d; 2d + 1: up. */
    SENT_AT = CELLS * WORD,
    CAME_AT = SENT_AT + 2 * DIRECTIONS * SPACING,
    FLAGS_AT = CAME_AT + 2 * DIRECTIONS * SPACING,
    MEMORY_BYTES = FLAGS_AT + 512,
    LOOKS_CYCLES = 200, /* A program that waits looks once in this time. */
};

/* The dimension in which faces are */
enum {
    TRANSFERRED,
    STORED,
    LOADED,
};

/* Names of accesses: behind it the direction. */
enum {
    STORE_FACE = 0,
    STORE_FLAG = 8,
    LOAD_FACE = 16,
};

enum phase {
    PUBLISH,
    FENCE,
    FLAG,
    GATHER,
    DONE,
};

struct halo;

struct rank {
    struct halo *halo;
    struct lant_node *node;
    struct sim_event look;
    enum phase phase;
    uint32_t step;
    uint64_t moved_ps; /* When it last came further. */
    uint32_t neighbours[DIRECTIONS];
    uint32_t fences[2];
    bool asked[2];            /* By direction of LOADED: the loads are under way. */
    uint64_t beats[2];        /* Beats that the loads have brought, in all steps. */
    uint64_t came[2][2];      /* Transfers of even and of odd steps, by direction. */
    uint64_t sent;            /* Ours that were acknowledged. */
    uint64_t faces_answered;  /* Beats of stores of faces, on the bus. */
    uint64_t answers, finals; /* Answers and final answers of all accesses. */
    uint64_t false_words;
};

struct halo {
    uint32_t nodes, grid[3], steps;
    uint64_t patience_ps;
    bool fenced;
    struct rank *ranks;
    uint64_t last_ps;
};

/* -- Cells --------------------------------------------------------------------------------------*/

static uint64_t face_at(uint64_t base, uint32_t step, uint32_t direction)
{
    return base + (uint64_t)(step % 2 * DIRECTIONS + direction) * SPACING;
}

/* The cell behind place `k` of the face. */
static uint32_t cell_of(uint32_t direction, uint32_t k)
{
    static const uint32_t weights[] = {1, SIDE, FACE};
    const uint32_t d = direction / 2;
    const uint32_t edge = direction % 2 == 0 ? 0 : SIDE - 1;
    return edge * weights[d] + k % SIDE * weights[(d + 1) % 3] + k / SIDE * weights[(d + 2) % 3];
}

/* A face with the number of its step. */
static void pack(const uint64_t cells[CELLS], uint32_t direction, uint32_t step,
                 uint64_t face[FACE + 1])
{
    for (uint32_t k = 0; k < FACE; k++) {
        face[k] = cells[cell_of(direction, k)];
    }
    face[FACE] = lant_bench_word(direction, step);
}

/* `faces[d]` is what lies beyond the cube in direction d. */
static void compute(uint64_t cells[CELLS], uint64_t faces[DIRECTIONS][FACE + 1])
{
    static const uint32_t weights[] = {1, SIDE, FACE};
    uint64_t old[CELLS];
    memcpy(old, cells, sizeof(old));
    for (uint32_t cell = 0; cell < CELLS; cell++) {
        uint64_t sum = old[cell] << 7 | old[cell] >> 57;
        for (uint32_t direction = 0; direction < DIRECTIONS; direction++) {
            const uint32_t d = direction / 2, at = cell / weights[d] % SIDE;
            const bool up = direction % 2 != 0;
            const uint32_t k =
                cell / weights[(d + 1) % 3] % SIDE + cell / weights[(d + 2) % 3] % SIDE * SIDE;
            const bool inside = up ? at + 1 < SIDE : at > 0;
            const uint64_t around = !inside ? faces[direction][k]
                                    : up    ? old[cell + weights[d]]
                                            : old[cell - weights[d]];
            sum = sum * UINT64_C(0xbf58476d1ce4e5b9) + around;
        }
        cells[cell] = sum;
    }
}

static uint32_t neighbour_of(const uint32_t grid[3], uint32_t node, uint32_t direction)
{
    const uint32_t weights[] = {1, grid[0], grid[0] * grid[1]};
    const uint32_t d = direction / 2, at = node / weights[d] % grid[d];
    const uint32_t next = (at + (direction % 2 != 0 ? 1 : grid[d] - 1)) % grid[d];
    return node + next * weights[d] - at * weights[d];
}

/* -- A step of a node ---------------------------------------------------------------------------*/

static uint64_t word_at(const struct rank *rank, uint64_t address)
{
    uint64_t word;
    memcpy(&word, rank->node->memory + address, sizeof(word));
    return word;
}

static void store_flag(struct rank *rank, uint32_t direction)
{
    const uint32_t peer = rank->neighbours[direction];
    const uint64_t value = rank->step + 1;
    uint8_t bytes[WORD];
    memcpy(bytes, &value, WORD);
    const struct lant_shm_access access = {
        .address = lant_global(peer, FLAGS_AT + WORD * (direction ^ 1u)),
        .bytes = WORD,
        .token = STORE_FLAG + direction,
        .store = true};
    CHECK(lant_node_access(rank->node, &access, bytes));
}

static void transfer_face(struct rank *rank, uint32_t direction)
{
    const uint64_t from = face_at(SENT_AT, rank->step, direction);
    const uint64_t to = face_at(CAME_AT, rank->step, direction ^ 1u);
    const struct lant_work work = {
        .descriptor = {.source = from,
                       .destination = lant_global(rank->neighbours[direction], to),
                       .bytes = FACE_BYTES,
                       .no_register = rank->step % 2 != 0},
        .tag = direction};
    CHECK(lant_node_submit(rank->node, LANT_QUEUE_CPU, &work) == LANT_SUBMIT_COMMITTED);
}

static void store_face(struct rank *rank, uint32_t direction)
{
    const uint64_t to = face_at(CAME_AT, rank->step, direction ^ 1u);
    const struct lant_shm_access access = {.address = lant_global(rank->neighbours[direction], to),
                                           .bytes = FACE_BYTES,
                                           .token = STORE_FACE + direction,
                                           .store = true};
    CHECK(lant_node_access(rank->node, &access,
                           rank->node->memory + face_at(SENT_AT, rank->step, direction)));
}

static void load_face(struct rank *rank, uint32_t direction)
{
    const struct lant_shm_access access = {
        .address =
            lant_global(rank->neighbours[direction], face_at(SENT_AT, rank->step, direction ^ 1u)),
        .bytes = FACE_BYTES,
        .token = LOAD_FACE + direction};
    CHECK(lant_node_access(rank->node, &access, NULL));
}

/* False: transfers of the step before last may still read the places for our faces. */
static bool publish(struct rank *rank)
{
    uint64_t cells[CELLS], face[FACE + 1];
    if (rank->step >= 2 && rank->sent < 2u * (rank->step - 1)) {
        return false;
    }
    memcpy(cells, rank->node->memory, sizeof(cells));
    for (uint32_t direction = 0; direction < DIRECTIONS; direction++) {
        pack(cells, direction, rank->step, face);
        memcpy(rank->node->memory + face_at(SENT_AT, rank->step, direction), face, sizeof(face));
    }
    for (uint32_t up = 0; up < 2; up++) {
        transfer_face(rank, 2 * TRANSFERRED + up);
        store_face(rank, 2 * STORED + up);
        store_flag(rank, 2 * LOADED + up);
        rank->asked[up] = false;
    }
    return true;
}

/* The stores of faces have all been issued: a fence covers them. False: not yet. */
static bool begin_fences(struct rank *rank)
{
    if (!rank->halo->fenced) {
        return true;
    }
    if (rank->faces_answered < 2 * (FACE + UINT64_C(1)) * (rank->step + 1)) {
        return false;
    }
    for (uint32_t up = 0; up < 2; up++) {
        const uint32_t peer = rank->neighbours[2 * STORED + up];
        rank->fences[up] = lant_shm_fence_begin(&rank->node->shm, peer);
        CHECK(rank->fences[up] != LANT_SHM_NO_FENCES);
    }
    return true;
}

static bool store_flags(struct rank *rank)
{
    struct lant_shm *shm = &rank->node->shm;
    for (uint32_t up = 0; up < 2 && rank->halo->fenced; up++) {
        if (lant_shm_fence_look(shm, rank->fences[up]) == LANT_SHM_FENCE_WAITS) {
            return false;
        }
    }
    for (uint32_t up = 0; up < 2; up++) {
        if (rank->halo->fenced) {
            lant_shm_fence_end(shm, rank->fences[up]);
        }
        store_flag(rank, 2 * STORED + up);
    }
    return true;
}

static bool gather(struct rank *rank)
{
    bool all = true;
    uint64_t cells[CELLS], faces[DIRECTIONS][FACE + 1];
    for (uint32_t up = 0; up < 2; up++) {
        const uint32_t loaded = 2 * LOADED + up;
        if (!rank->asked[up] && word_at(rank, FLAGS_AT + WORD * loaded) > rank->step) {
            rank->asked[up] = true;
            load_face(rank, loaded);
        }
        all = all && rank->came[rank->step % 2][up] > rank->step / 2 &&
              word_at(rank, FLAGS_AT + WORD * (uint64_t)(2 * STORED + up)) > rank->step &&
              rank->beats[up] == (FACE + UINT64_C(1)) * (rank->step + 1);
    }
    if (!all) {
        return false;
    }
    memcpy(cells, rank->node->memory, sizeof(cells));
    for (uint32_t direction = 0; direction < DIRECTIONS; direction++) {
        memcpy(faces[direction], rank->node->memory + face_at(CAME_AT, rank->step, direction),
               FACE_BYTES);
    }
    compute(cells, faces);
    memcpy(rank->node->memory, cells, sizeof(cells));
    rank->step++;
    return true;
}

/* True: the program has gone on by a phase. */
static bool advance(struct rank *rank)
{
    switch (rank->phase) {
    case PUBLISH:
        if (rank->step == rank->halo->steps) {
            rank->phase = DONE;
            return false;
        }
        return publish(rank);
    case FENCE: return begin_fences(rank);
    case FLAG: return store_flags(rank);
    case GATHER: return gather(rank);
    case DONE: break;
    }
    return false;
}

static void on_look(struct sim *sim, struct sim_event *event)
{
    struct rank *rank = CONTAINER_OF(event, struct rank, look);
    while (advance(rank)) {
        rank->phase = rank->phase == GATHER ? PUBLISH : (enum phase)(rank->phase + 1);
        rank->moved_ps = sim->now_ps;
    }
    if (rank->phase != DONE && sim->now_ps - rank->moved_ps < rank->halo->patience_ps) {
        sim_after(sim, &rank->look, lant_cycles(LOOKS_CYCLES));
    }
    rank->halo->last_ps =
        rank->moved_ps > rank->halo->last_ps ? rank->moved_ps : rank->halo->last_ps;
}

static void on_done(void *context, const struct lant_shm_done *done)
{
    struct rank *rank = context;
    const uint32_t direction = done->token % STORE_FLAG;
    rank->answers += lant_shm_done_on_bus(done);
    rank->finals += lant_shm_done_final(done);
    if (!lant_shm_done_on_bus(done)) {
        return;
    }
    if (done->store) {
        rank->faces_answered += done->token < STORE_FLAG;
        return;
    }
    const uint64_t at = face_at(CAME_AT, rank->step, direction) + WORD * (uint64_t)done->beat;
    memcpy(rank->node->memory + at, &done->data, WORD);
    rank->beats[direction % 2]++;
}

static void on_notification(void *context, enum lant_queue queue,
                            const struct lant_notification *notification)
{
    (void)queue;
    struct rank *rank = context;
    if (notification->kind == LANT_NOTIFY_SENT) {
        rank->sent++;
        rank->false_words += notification->bytes != FACE_BYTES;
        return;
    }
    /* A step's face may come before that of the step before, if a packet of that one went again. */
    for (uint32_t step = 0; step < 2; step++) {
        for (uint32_t up = 0; up < 2; up++) {
            const uint32_t direction = 2 * TRANSFERRED + up;
            if (notification->destination == face_at(CAME_AT, step, direction) &&
                notification->node == rank->neighbours[direction] &&
                notification->bytes == FACE_BYTES) {
                rank->came[step][up]++;
                return;
            }
        }
    }
    rank->false_words++;
}

/* -- The model ----------------------------------------------------------------------------------*/

struct model {
    uint64_t cells[CELLS];
    uint64_t faces[2][DIRECTIONS][FACE + 1]; /* Faces of even, and of odd steps. */
};

static void begin_cells(uint32_t node, uint64_t cells[CELLS])
{
    for (uint32_t i = 0; i < CELLS; i++) {
        cells[i] = lant_bench_word(node, i);
    }
}

static struct model *run_model(const struct halo *halo)
{
    struct model *models = calloc(halo->nodes, sizeof(*models));
    uint64_t faces[DIRECTIONS][FACE + 1];
    CHECK(models != NULL);
    for (uint32_t i = 0; i < halo->nodes; i++) {
        begin_cells(i, models[i].cells);
    }
    for (uint32_t step = 0; step < halo->steps; step++) {
        for (uint32_t i = 0; i < halo->nodes; i++) {
            for (uint32_t d = 0; d < DIRECTIONS; d++) {
                pack(models[i].cells, d, step, models[i].faces[step % 2][d]);
            }
        }
        for (uint32_t i = 0; i < halo->nodes; i++) {
            for (uint32_t d = 0; d < DIRECTIONS; d++) {
                const uint32_t peer = halo->ranks[i].neighbours[d];
                memcpy(faces[d], models[peer].faces[step % 2][d ^ 1u], FACE_BYTES);
            }
            compute(models[i].cells, faces);
        }
    }
    return models;
}

static void judge_memory(const struct halo *halo, const struct lant_world *world,
                         struct lant_crowd_outcome *outcome)
{
    struct model *models = run_model(halo);
    for (uint32_t i = 0; i < world->count; i++) {
        uint8_t expected[MEMORY_BYTES] = {0};
        if (i < halo->nodes) {
            memcpy(expected, models[i].cells, sizeof(models[i].cells));
        }
        for (uint32_t k = 0; i < halo->nodes && k < 2 * DIRECTIONS; k++) {
            const uint32_t step = k / DIRECTIONS, d = k % DIRECTIONS;
            const uint32_t peer = halo->ranks[i].neighbours[d];
            const uint64_t flag = d / 2 == TRANSFERRED ? 0 : halo->steps;
            memcpy(expected + face_at(SENT_AT, step, d), models[i].faces[step][d], FACE_BYTES);
            memcpy(expected + face_at(CAME_AT, step, d), models[peer].faces[step][d ^ 1u],
                   FACE_BYTES);
            memcpy(expected + FLAGS_AT + WORD * (uint64_t)d, &flag, WORD);
        }
        lant_crowd_compare(&world->nodes[i], expected, outcome);
    }
    free(models);
}

static void judge_counts(const struct halo *halo, const struct lant_world *world,
                         struct lant_crowd_outcome *outcome)
{
    const uint64_t loads = 2 * (FACE + UINT64_C(1)) * halo->steps;
    const uint64_t stores = loads + 4 * (uint64_t)halo->steps;
    for (uint32_t i = 0; i < halo->nodes; i++) {
        const struct rank *rank = &halo->ranks[i];
        outcome->operations += loads + stores + 2 * (uint64_t)halo->steps;
        outcome->miscounted += rank->false_words;
        outcome->miscounted += lant_crowd_apart(rank->answers, loads + stores);
        outcome->miscounted += lant_crowd_apart(rank->finals, loads + stores);
        outcome->miscounted += lant_crowd_apart(rank->sent, 2 * (uint64_t)halo->steps);
        for (uint32_t up = 0; up < 2; up++) {
            outcome->miscounted += lant_crowd_apart(rank->came[0][up], (halo->steps + 1) / 2);
            outcome->miscounted += lant_crowd_apart(rank->came[1][up], halo->steps / 2);
        }
        outcome->miscounted += lant_crowd_apart(world->nodes[i].shm_target.counters.stores, stores);
    }
}

static void join(struct halo *halo, uint32_t index, struct lant_node *node)
{
    struct rank *rank = &halo->ranks[index];
    *rank = (struct rank){.halo = halo, .node = node};
    for (uint32_t d = 0; d < DIRECTIONS; d++) {
        rank->neighbours[d] = neighbour_of(halo->grid, index, d);
    }
    uint64_t cells[CELLS];
    begin_cells(index, cells);
    memcpy(node->memory, cells, sizeof(cells));
    node->program = (struct lant_program){
        .context = rank, .on_done = on_done, .on_notification = on_notification};
    sim_event_init(&rank->look, on_look);
    sim_schedule(node->world->sim, &rank->look, 0);
}

struct lant_crowd_outcome lant_crowd_halo(struct lab_run *run, enum lant_network_kind kind)
{
    struct halo halo = {.nodes = lant_whole(run, "crowd"),
                        .steps = lant_whole(run, "steps"),
                        .fenced = lab_word(run, "fence") == 0};
    struct lant_crowd_outcome outcome = {0};
    lant_crowd_grid(halo.nodes, halo.grid);
    halo.ranks = calloc(halo.nodes, sizeof(halo.ranks[0]));
    CHECK(halo.ranks != NULL);
    struct lant_bench *bench = lant_crowd_open(run, kind, MEMORY_BYTES);
    const struct lant_shm_config *shm = &bench->world.config.shm;
    halo.patience_ps = 4 * (shm->retries + UINT64_C(2)) * shm->timeout;
    for (uint32_t i = 0; i < halo.nodes; i++) {
        join(&halo, i, &bench->world.nodes[i]);
    }
    lant_crowd_finish(bench, &outcome);
    outcome.us = (double)halo.last_ps / 1e6;
    judge_memory(&halo, &bench->world, &outcome);
    judge_counts(&halo, &bench->world, &outcome);
    lant_crowd_close(bench);
    free(halo.ranks);
    return outcome;
}
