/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The average distance between two nodes in networks of 1,024 to 262,144 nodes (Table 3.1; rows
 * A53 to A55; LNI-80).
 */
#include <stdio.h>

#include "lab/lant/distances.h"
#include "lab/lant/experiments.h"

#define SIZES          9u
#define ALL_PAIRS_UPTO 16u /* Times a column's pairs: more are not all tried. */
#define RANDOM_PAIRS   1048576u
#define FEWER_PAIRS    131072u /* For a column whose numbers are whole. */

/* Table 3.1, and the shapes of the tori that give its numbers. */
static const struct size {
    uint32_t nodes;
    uint32_t near_cube[3], power[3];
    uint32_t bgq[4]; /* And E, which is 2. */
    double torus, bgq_printed, tree_32, tree_64, dragonfly;
} sizes[SIZES] = {
    {1024, {10, 10, 10}, {8, 8, 16}, {4, 4, 4, 8}, 7.50, 6.00, 4.46, 2.94, 3.50},
    {2048, {12, 13, 13}, {8, 16, 16}, {4, 4, 8, 8}, 9.46, 7.00, 4.83, 2.97, 3.62},
    {4096, {16, 16, 16}, {16, 16, 16}, {4, 8, 8, 8}, 12.00, 8.00, 4.87, 4.48, 3.69},
    {8192, {20, 20, 20}, {16, 16, 32}, {8, 8, 8, 8}, 15.00, 9.00, 4.93, 4.74, 3.72},
    {16384, {24, 26, 26}, {16, 32, 32}, {8, 8, 8, 16}, 19.00, 11.00, 6.26, 4.87, 3.73},
    {32768, {32, 32, 32}, {32, 32, 32}, {8, 8, 16, 16}, 24.00, 13.00, 6.73, 4.94, 3.74},
    {65536, {39, 41, 41}, {32, 32, 64}, {8, 16, 16, 16}, 30.23, 15.00, 6.86, 4.97, 3.75},
    {131072, {50, 51, 51}, {32, 64, 64}, {16, 16, 16, 16}, 37.99, 17.00, 6.97, 6.48, 3.75},
    {262144, {64, 64, 64}, {64, 64, 64}, {16, 16, 16, 32}, 48.00, 21.00, 8.47, 6.74, 3.75},
};

/* A column of the table. */
struct column {
    const char *name, *suffix; /* `suffix`: behind the size, in a row's id. */
    const char *counts;
    double tolerance;
    uint32_t pairs; /* that are looked at where there are too many for all of them */
    const char *(*claim_of)(uint32_t nodes);
    struct lant_network (*network_of)(struct lab_run *run, const struct size *size);
    double (*printed)(const struct size *size);
};

/* -- Tori ---------------------------------------------------------------------------------------*/

static const char *torus_claim(uint32_t nodes)
{
    const bool is_cube = nodes == 4096 || nodes == 32768 || nodes == 262144;
    return is_cube ? "LNI-A53.cube" : "LNI-A53";
}

/* The words of the parameter "torus". */
enum {
    NEAR_CUBE,
    POWER,
    MESH
};

static struct lant_network torus_of(struct lab_run *run, const struct size *size)
{
    const uint32_t word = lab_word(run, "torus");
    const uint32_t *shape = word == POWER ? size->power : size->near_cube;
    struct lant_network network = lant_torus_of(shape[0], shape[1], shape[2]);
    network.mesh = word == MESH;
    return network;
}

static double torus_printed(const struct size *size)
{
    return size->torus;
}

/* -- BlueGene/Q ---------------------------------------------------------------------------------*/

static const char *bgq_claim(uint32_t nodes)
{
    (void)nodes;
    return "LNI-A53.bgq";
}

static struct lant_network bgq_of(struct lab_run *run, const struct size *size)
{
    struct lant_network network = {.kind = LANT_TORUS,
                                   .nodes = size->nodes,
                                   .torus = {.dimensions = 5, .size = {[4] = 2}},
                                   .mesh = lab_word(run, "torus") == MESH,
                                   .counts_twos = lab_word(run, "pairs") == 0};
    for (uint32_t i = 0; i < COUNT_OF(size->bgq); i++) {
        network.torus.size[i] = size->bgq[i];
    }
    return network;
}

static double bgq_printed(const struct size *size)
{
    return size->bgq_printed;
}

/* -- Fat trees ----------------------------------------------------------------------------------*/

static struct lant_network tree_of(struct lab_run *run, uint32_t nodes, uint32_t radix)
{
    const uint32_t top = lab_word(run, "tree_top") == 0 ? radix : radix / 2;
    struct lant_network network = lant_fat_tree_of(nodes, radix, top);
    network.counts_links = lab_word(run, "tree_counts") != 0;
    network.turns_at_the_top = lab_word(run, "tree_turns") != 0;
    return network;
}

static const char *tree_32_claim(uint32_t nodes)
{
    switch (nodes) {
    case 2048: return "LNI-A54.2048";
    case 8192: return "LNI-A54.top";
    case 16384: return "LNI-A54.16384";
    case 131072: return "LNI-A54.131072";
    default: return "LNI-A54";
    }
}

static struct lant_network tree_32_of(struct lab_run *run, const struct size *size)
{
    return tree_of(run, size->nodes, 32);
}

static double tree_32_printed(const struct size *size)
{
    return size->tree_32;
}

static const char *tree_64_claim(uint32_t nodes)
{
    return nodes == 2048 || nodes == 65536 ? "LNI-A54.top" : "LNI-A54";
}

static struct lant_network tree_64_of(struct lab_run *run, const struct size *size)
{
    return tree_of(run, size->nodes, 64);
}

static double tree_64_printed(const struct size *size)
{
    return size->tree_64;
}

/* -- Dragonflies --------------------------------------------------------------------------------*/

static const char *dragonfly_claim(uint32_t nodes)
{
    (void)nodes;
    return "LNI-A55";
}

/* With as few global links a router as reach every other group. */
static struct lant_network dragonfly_of(struct lab_run *run, const struct size *size)
{
    static const uint32_t routers[] = {8, 16, 4}, hosts[] = {16, 8, 32};
    const uint32_t word = lab_word(run, "group");
    const uint32_t groups = size->nodes / (routers[word] * hosts[word]);
    const uint32_t globals = (groups - 1 + routers[word] - 1) / routers[word];
    struct lant_network network = lant_dragonfly_of(groups, routers[word], hosts[word], globals);
    network.dragonfly.valiant = lab_word(run, "ways") != 0;
    return network;
}

static double dragonfly_printed(const struct size *size)
{
    return size->dragonfly;
}

/* -- The table ----------------------------------------------------------------------------------*/

static const struct column columns[] = {
    {"3D torus", "", "links, or switches but the node's own", 0.01, RANDOM_PAIRS, torus_claim,
     torus_of, torus_printed},
    {"BlueGene/Q", "-BGQ", "links, and one between two of E for each packet", 0.01, FEWER_PAIRS,
     bgq_claim, bgq_of, bgq_printed},
    {"fat tree, radix 32", "-R32", "switches crossed", 0.02, RANDOM_PAIRS, tree_32_claim,
     tree_32_of, tree_32_printed},
    {"fat tree, radix 64", "-R64", "switches crossed", 0.02, RANDOM_PAIRS, tree_64_claim,
     tree_64_of, tree_64_printed},
    {"dragonfly", "", "switches crossed", 0.02, RANDOM_PAIRS, dragonfly_claim, dragonfly_of,
     dragonfly_printed},
};

static void describe(const struct lant_network *network, char *text, size_t bytes)
{
    const struct lant_torus *torus = &network->torus;
    switch (network->kind) {
    case LANT_TORUS:
        for (uint32_t i = 0, at = 0; i < torus->dimensions && at < bytes; i++) {
            at += (uint32_t)snprintf(text + at, bytes - at, "%s%u", i == 0 ? "" : "x",
                                     torus->size[i]);
        }
        return;
    case LANT_FAT_TREE: snprintf(text, bytes, "%u levels", network->tree.levels); return;
    case LANT_DRAGONFLY: snprintf(text, bytes, "%u groups", network->dragonfly.groups); return;
    }
    UNREACHABLE("a network outside its enum");
}

static struct lab_row *measure(struct lab_run *run, const struct column *column,
                               const struct size *size, struct prng *prng)
{
    const struct lant_network network = column->network_of(run, size);
    const bool all =
        (uint64_t)size->nodes * size->nodes <= (uint64_t)ALL_PAIRS_UPTO * column->pairs;
    const struct lant_distances distances =
        all ? lant_all_distances(&network, prng)
            : lant_some_distances(&network, column->pairs, prng);
    char id[LAB_ID_BYTES], shape[32], pairs[40] = "all pairs";
    snprintf(id, sizeof(id), "%s/%u%s", column->claim_of(size->nodes), size->nodes, column->suffix);
    describe(&network, shape, sizeof(shape));
    if (!all) {
        snprintf(pairs, sizeof(pairs), "%u pairs, +-%.4f", column->pairs, distances.error);
    }
    struct lab_row *row = lab_add_row(run, id, "", "%s of %u nodes, %s: %s; %s", column->name,
                                      network.nodes, shape, column->counts, pairs);
    lab_note(run, distances.sum);
    lab_judge_absolute(row, column->printed(size), distances.mean,
                       column->tolerance + 3 * distances.error);
    return row;
}

static void distances(struct lab_run *run)
{
    struct prng prng;
    prng_init(&prng, run->seed);
    struct lab_figure *figure =
        lab_add_figure(run, "distances", "Average distance (Table 3.1)", "nodes",
                       "switches crossed; torus: links between switches", true);
    figure->log_y = true;
    for (uint32_t i = 0; i < COUNT_OF(columns); i++) {
        struct lab_series *series = lab_add_curve(run, "%s", columns[i].name);
        for (uint32_t k = 0; k < SIZES; k++) {
            const struct lab_row *row = measure(run, &columns[i], &sizes[k], &prng);
            char text[16] = "";
            if (lab_claim_of(run, row)->not_reproduced != NULL) {
                snprintf(text, sizeof(text), "%.2f", row->published);
            }
            lab_add_point(series, sizes[k].nodes, row->measured, LAB_NOTHING);
            lab_add_mark(figure, sizes[k].nodes, row->published, text);
            lab_progress(run, (i * SIZES + k + 1.0) / (COUNT_OF(columns) * SIZES));
        }
    }
}

#define TREE_SOURCE "Table 3.1: fewest levels with 2 (R/2)^L >= nodes"
#define TREE_BROKEN "tree_counts=links | tree_turns=top"

static const struct lab_claim distances_claims[] = {
    {.id = "LNI-A53",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "Table 3.1: the three sides of each torus were chosen for its number",
     .broken_by = "torus=mesh | torus=power",
     .because = "nobody goes around the ends, or the torus has other sides"},
    {.id = "LNI-A53.cube",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .source = "Table 3.1: sizes that are cubes",
     .broken_by = "torus=mesh",
     .because = "nobody goes around the ends"},
    {.id = "LNI-A53.bgq",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source =
         "Table 3.1: tori of five dimensions; OC: E is 2 and counts one link for every packet",
     .broken_by = "torus=mesh",
     .because = "nobody goes around the ends"},
    {.id = "LNI-A54",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = TREE_SOURCE ", counted in switches: the choice that gives the column",
     .broken_by = TREE_BROKEN,
     .because = "links are counted, or packets go up further than they must"},
    {.id = "LNI-A54.top",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A54",
     .source = TREE_SOURCE ", sizes that need all ports of the top",
     .broken_by = TREE_BROKEN " | tree_top=half",
     .because = "the same; or the top uses half of its ports, so that one more level is needed"},
    {.id = "LNI-A54.2048",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A54",
     .source = TREE_SOURCE,
     .broken_by = TREE_BROKEN,
     .because = "as LNI-A54",
     .not_reproduced = "4.74 by the rule of the other cells; 4.83 is probably a misprint, or lies "
                       "in another shape of tree"},
    {.id = "LNI-A54.16384",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A54",
     .source = TREE_SOURCE,
     .broken_by = TREE_BROKEN,
     .because = "as LNI-A54",
     .not_reproduced = "6.47 by the rule of the other cells; 6.26 is probably a misprint"},
    {.id = "LNI-A54.131072",
     .reference = LAB_PRINTED,
     .ground = LAB_ARITHMETIC,
     .given = "LNI-A54",
     .source = TREE_SOURCE,
     .broken_by = TREE_BROKEN,
     .because = "as LNI-A54",
     .not_reproduced = "6.93 by the rule of the other cells; 6.97 is probably a misprint"},
    {.id = "LNI-A55",
     .reference = LAB_PRINTED,
     .ground = LAB_FITTED,
     .source = "Table 3.1: the shape of a group was fitted to the column",
     .broken_by = "ways=valiant | group=16x8 | group=4x32",
     .because = "packets take a detour, or groups have another shape"},
};

const struct lab_experiment lant_distances = {
    LANT_COMMON,
    .name = "lant/distances",
    .what = "average distances in networks of 1,024 to 262,144 nodes",
    .uses = "torus pairs tree_counts tree_top tree_turns ways group",
    LANT_CLAIMS(distances_claims),
    .run = distances,
    .explains =
        "Packets are routed hop by hop by the arithmetic of the switch, between all pairs of up to "
        "4,096 nodes, and else between 2^20 random ones. The table counts switches in fat trees "
        "and dragonflies, those at both ends included, and links in tori: counted as the others "
        "are, a torus has one more. Its tori are near-cubes, not of exactly the printed number of "
        "nodes. Three "
        "cells of fat trees do not follow the rule that gives the other fifteen. A dragonfly of "
        "more than 256 groups has no numbers in Lant's address format, whose cabinet has 8 bits: "
        "with the fitted groups of 128 hosts the last three sizes are routed by place, not by "
        "address. BlueGene/Q's nine numbers come from tori of powers of two whose fifth dimension "
        "is "
        "2, as the machine's is, if that counts one link for each packet, though only half of "
        "them cross it. Tofu's column is not here: no one rule was found that gives more than a "
        "few of its numbers, neither with its units of 2x3x2 nodes as rings nor as meshes, and "
        "the column falls from 8,192 to 16,384 nodes.",
};
