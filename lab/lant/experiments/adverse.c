/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Traffic that meets on few links: what a random choice among equal paths is worth in a torus and
 * a fat tree (3.1.3), and what detours are worth in a dragonfly. All of it is prediction.
 */
#include <stdio.h>

#include "lab/lant/experiments.h"
#include "lab/lant/load.h"

/* Three times what one link takes of a group's hosts; the links inside groups are not full. */
#define MINIMAL_LOAD 0.023

struct point {
    double load;
    const char *limits;
};

/* The loads that are judged, by enum lant_network_kind. */
struct plan {
    const struct lant_size *size;
    struct point torus, tree, detours;
};

/* `many`: packets take any of the equal paths; in a dragonfly, detours. */
static struct lant_outcome meet(struct lab_run *run, const struct lant_size *size,
                                enum lant_network_kind kind, double load, bool many)
{
    struct lant_traffic traffic = {.load = load, .warm_us = 40, .stop_us = 100};
    switch (kind) {
    /* Half way around in the last dimension: either way is as short. */
    case LANT_TORUS: traffic.opposite = true; break;
    /* The nodes of a switch have destinations with one last digit, by which a single path goes. */
    case LANT_FAT_TREE:
        snprintf(traffic.destinations, sizeof(traffic.destinations), "bit-reverse");
        break;
    /* A group sends to the next one, to which it has one link. */
    case LANT_DRAGONFLY:
        snprintf(traffic.destinations, sizeof(traffic.destinations), "neighbour:%ux%u",
                 LANT_GROUP_HOSTS, lant_dragonfly_under_load(run, size).groups);
        traffic.stop_us = 240;
        break;
    }
    traffic.one_path = kind != LANT_DRAGONFLY && !many;
    traffic.detours = kind == LANT_DRAGONFLY && many;
    return lant_load_network(run, size, kind, &traffic);
}

static void judge_paths(struct lab_run *run, const struct lant_size *size,
                        enum lant_network_kind kind, const struct point *point)
{
    char id[LAB_ID_BYTES];
    const struct lant_outcome outcome =
        meet(run, size, kind, point->load, lab_word(run, "paths") == 0);
    snprintf(id, sizeof(id), "LNI-W-paths/%u-%s", size->nodes, lant_network_ids[kind]);
    lab_judge_absolute(lab_add_row(run, id, "", "%s at load %g: delivered of what was offered; %s",
                                   lant_network_names[kind], point->load, point->limits),
                       1, outcome.share, 0.02);
}

static void judge_detours(struct lab_run *run, const struct lant_size *size,
                          const struct point *point)
{
    char id[LAB_ID_BYTES];
    const bool by_ways = lab_word(run, "ways") != 0, detours = lab_word(run, "detours") == 0;
    const struct lant_outcome minimal = meet(run, size, LANT_DRAGONFLY, MINIMAL_LOAD, by_ways);
    snprintf(id, sizeof(id), "LNI-W-minimal/%u", size->nodes);
    lab_judge_relative(lab_add_row(run, id, "",
                                   "load carried, of %g, if groups of a dragonfly send to the next",
                                   MINIMAL_LOAD),
                       1.0 / LANT_GROUP_HOSTS, minimal.carried, 0.02);
    const struct lant_outcome valiant = meet(run, size, LANT_DRAGONFLY, point->load, detours);
    snprintf(id, sizeof(id), "LNI-W-valiant/%u", size->nodes);
    lab_judge_absolute(
        lab_add_row(run, id, "",
                    "the same with detours, at load %g: delivered of what was offered; %s",
                    point->load, point->limits),
        1, valiant.share, 0.02);
}

static void judge(struct lab_run *run, const struct plan *plan)
{
    judge_paths(run, plan->size, LANT_TORUS, &plan->torus);
    judge_paths(run, plan->size, LANT_FAT_TREE, &plan->tree);
    judge_detours(run, plan->size, &plan->detours);
}

static void draw_curve(struct lab_run *run, const struct lant_size *size,
                       enum lant_network_kind kind, bool many, const char *name)
{
    static const double loads[LANT_KINDS][6] = {{0.05, 0.1, 0.15, 0.2, 0.3, 0.4},
                                                {0.05, 0.1, 0.2, 0.4, 0.6, 0.8},
                                                {0.004, 0.008, 0.012, 0.02, 0.03, 0.04}};
    struct lab_series *series = lab_add_curve(run, "%s", name);
    for (uint32_t i = 0; i < COUNT_OF(loads[kind]); i++) {
        const double load = loads[kind][i];
        lab_add_point(series, load, meet(run, size, kind, load, many).carried, LAB_NOTHING);
    }
}

static void draw(struct lab_run *run, const struct lant_size *size)
{
    static const char *const axes[] = {"load of a node's line", "load carried"};
    lab_add_figure(run, "paths", "Destinations that meet on few links, about 1,024 nodes", axes[0],
                   axes[1], false);
    draw_curve(run, size, LANT_TORUS, true, "torus, random choice");
    draw_curve(run, size, LANT_TORUS, false, "torus, one path");
    draw_curve(run, size, LANT_FAT_TREE, true, "fat tree, random choice");
    draw_curve(run, size, LANT_FAT_TREE, false, "fat tree, one path");
    lab_add_figure(run, "detours", "Each group of a dragonfly sends to the next, 1,152 nodes",
                   axes[0], axes[1], false);
    draw_curve(run, size, LANT_DRAGONFLY, true, "detours");
    draw_curve(run, size, LANT_DRAGONFLY, false, "shortest ways");
}

static void adverse(struct lab_run *run)
{
    static const struct plan plans[] = {{&lant_size_1k,
                                         {0.3, "full at 0.4, with one path at 0.2"},
                                         {0.7, "full at 1, with one path at 0.125 or less"},
                                         {0.023, "full at 0.031, 8 / 256"}},
                                        {&lant_size_8k,
                                         {0.15, "full at 0.2, with one path at 0.1"},
                                         {0.7, "full at 1, with one path at 0.063 or less"},
                                         {0.18, "full at 0.25, 64 / 256"}}};
    for (uint32_t i = 0; i < COUNT_OF(plans); i++) {
        judge(run, &plans[i]);
    }
    draw(run, &lant_size_1k);
}

static const struct lab_claim adverse_claims[] = {
    {.id = "LNI-W-paths",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3.1.3: of equal paths one is chosen at random for each packet",
     .broken_by = "paths=one",
     .because = "packets of one pair, and those of others with them, take one path"},
    {.id = "LNI-W-minimal",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3.1.3: minimal routing does not balance; OC: 128 hosts share a link",
     .broken_by = "ways=valiant",
     .because = "detours take the links of the whole group"},
    {.id = "LNI-W-valiant",
     .reference = LAB_PREDICTED,
     .ground = LAB_MECHANISM,
     .source = "3.1.3: randomized Valiant routing; OC: two links a packet, of all of a group",
     .broken_by = "detours=off",
     .because = "128 hosts share a link"},
};

const struct lab_experiment lant_adverse = {
    LANT_COMMON,
    .name = "lant/adverse",
    .what = "traffic that meets on few links: equal paths, detours",
    .uses = LANT_LOAD_USES "ways paths detours",
    LANT_CLAIMS(adverse_claims),
    .run = adverse,
    .explains =
        "Every node sends to one other. In a torus, to the node half way around one dimension: the "
        "random choice uses both directions of the ring, one path only one. In a fat tree, to the "
        "node whose number has the same bits in reverse: with one path for each destination, all "
        "nodes of a switch want one of its ports up; any permutation of destinations has such "
        "paths, and a random choice for each packet needs none. In a dragonfly, to the next "
        "group: shortest ways share the only link there, and detours by a random global link of "
        "the first switch use all links of the group, each packet two. There are no equal "
        "shortest paths in these dragonflies, so the random choice alone is worth nothing there.",
};
