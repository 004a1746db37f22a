/* SPDX-License-Identifier: BSD-2-Clause
 *
 * plan - which messages each node sends: by parameters, by a flow matrix, or by a trace.
 *
 * Purpose    The traffic of MACHINE/one, the same for FORTH's, ExaNeSt's and Lant's: who sends, to
 *            whom, how many messages, how long they are, when they are wanted.
 * Inputs     The parameters LAB_PLAN_PARAMETERS; or texts that the run was given instead of some of
 *            them: a pattern and a trace of traffic (docs/topologies.md).
 * Outputs    Each node's messages, in the order in which it wants to send them.
 * Ownership  The plan owns its arrays until lab_plan_close.
 * Units      Nodes by number, from 0 on.
 * Limits     LAB_PLAN_MESSAGES_MAX messages.
 * Source     Our choice; sim/pattern.h has the patterns' sources.
 */
#ifndef LAB_PLAN_H
#define LAB_PLAN_H

#include "lab/lab.h"

#define LAB_PLAN_MESSAGES_MAX (1u << 22)

/* The rows of a machine's table of parameters, the default length of a message, and the longest
 * one that a machine can send. */
#define LAB_PLAN_PARAMETER_COUNT 8
#define LAB_PLAN_PARAMETERS(usual, most)                                                           \
    LAB_WHOLE("senders", "", 1, 0, 1024, "OC", "one: nodes that send, from node 0 on; 0: all"),    \
        LAB_WORD("pattern",                                                                        \
                 "neighbour uniform incast hotspot tornado permutation transpose bit-reverse "     \
                 "bit-complement shuffle",                                                         \
                 "OC", "one: to whom; incast: to the last node, which sends nothing"),             \
        LAB_REAL("hot", "", 0.5, 0, 1, "OC", "one, pattern=hotspot: share that goes to node 0"),   \
        LAB_WHOLE("sends", "", 64, 1, 1000000, "OC", "one: messages of each sender"),              \
        LAB_WHOLE("bytes", "B", usual, 1, most, "OC", "one: length of a message"),                 \
        LAB_WHOLE("bytes_most", "B", 0, 0, most, "OC",                                             \
                  "one: lengths are random from bytes up to this; 0: all are alike"),              \
        LAB_REAL("interval", "us", 0, 0, 1e6, "OC",                                                \
                 "one: mean time from one message of a node to the next; 0: as soon as it can"),   \
        LAB_WORD("arrivals", "random regular", "OC",                                               \
                 "one: when messages are wanted: as by Poisson, or at equal intervals")
#define LAB_PLAN_USES "senders pattern hot sends bytes bytes_most interval arrivals "

struct lab_plan_message {
    uint64_t at_ps; /* Not before; 0 if the plan is not timed. */
    uint32_t to, bytes;
};

struct lab_plan {
    uint32_t nodes;
    bool timed;       /* A message's time begins when it is wanted. */
    uint32_t longest; /* Bytes. */
    uint32_t *first;  /* Node n has the messages first[n] up to first[n + 1]. */
    struct lab_plan_message *messages;
};

/* A machine's limits. Lengths are rounded up to whole units of bytes. */
struct lab_plan_limits {
    uint32_t nodes, bytes_most, unit;
    bool any_network; /* The run's network may be given as text, too. */
};

/* False: the run has failed, and nothing is open. Aborts without memory. */
bool lab_plan_open(struct lab_plan *plan, struct lab_run *run,
                   const struct lab_plan_limits *limits);
void lab_plan_close(struct lab_plan *plan);

/* The run was given text, which is judged before any run begins. */
static inline bool lab_plan_has_text(const struct lab_run *run)
{
    return run->texts[LAB_TOPOLOGY].name != NULL || run->texts[LAB_PATTERN].name != NULL ||
           run->texts[LAB_TRAFFIC].name != NULL;
}

static inline uint32_t lab_plan_count(const struct lab_plan *plan)
{
    return plan->first[plan->nodes];
}

#endif
