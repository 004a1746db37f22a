/* SPDX-License-Identifier: BSD-2-Clause
 *
 * report - what a capture tells, for `nonic report`.
 *
 * A half is all that goes to one end: to a queue pair at an address (UD: from one queue pair; SRD:
 * to a process). Packets do not say which queue pair sent them, so the two halves of a connection
 * have to be found: a response names the number of a packet that went the other way. That takes a
 * first look at all packets (report_learn); a second one counts (report_count).
 *
 * Ownership  report_close frees all.
 * Limits     REPORT_HALVES_MAX halves; packets of more are counted as such, and not looked at.
 */
#ifndef TOOLS_REPORT_H
#define TOOLS_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/report_packet.h"
#include "tools/report_rules.h"
#include "transport/common/psn.h"

enum {
    REPORT_HALVES_MAX = 1 << 16,
    REPORT_NONE = UINT16_MAX + 1, /* No half. */
    REPORT_BINS = 240,            /* In charts over time. */
    REPORT_DRAWN = 6,             /* Connections that have a chart of their own. */
    REPORT_STEPS = 120,           /* Packets in such a chart. */
    REPORT_FIRST = 24,            /* ... that are its first ones. */
    REPORT_BEFORE = 3,            /* ... and those in front of an oddity, */
    REPORT_BEHIND = 5,            /* and behind it. */
    REPORT_RUN = 4,               /* Oddities in a row, after which no more of these are drawn. */
    REPORT_EXAMPLES = 10,         /* Packets that are named of an oddity. */
    REPORT_LABEL = 96,
};

enum report_service {
    REPORT_UNKNOWN,
    REPORT_RC,
    REPORT_XRC,
    REPORT_UC,
    REPORT_UD,
    REPORT_BLOCKS,
    REPORT_DATAGRAMS, /* SRD. */
};

struct report_bin {
    uint64_t bytes, again, not_ready;
};

struct report_half {
    uint8_t source[16], destination[16];
    uint32_t qpn, source_qpn; /* source_qpn: of UD alone. */
    uint32_t partner;         /* The other half; REPORT_NONE: it was not found. */
    uint32_t drawn;           /* The number of its chart; REPORT_NONE: it has none. */
    enum report_service service;
    uint64_t refusals; /* From the first look: what makes it worth a chart. */
    uint64_t packets, messages, bytes, first_ns, last_ns;
    /* Counts of requests that go this way. */
    uint64_t again, not_ready, refused;
    uint64_t responses, response_ns, response_most_ns; /* How long each acknowledgement took. */
    uint64_t marked;
    /* RC, XRC and UC: the state of its requests. */
    bool has_next, is_within; /* The next PSN is known; a message has begun. */
    struct psn next_least, next_most;
    uint32_t within; /* The kind of message: ROCE_IS_SEND or ROCE_IS_WRITE. */
    uint32_t mtu_bytes;
};

/* A row of a chart. */
struct report_step {
    uint64_t number, at_ns, skipped; /* Packets that are not drawn, in front of it. */
    uint64_t again_of, again_in;     /* Packets; 0: none. */
    uint32_t half;
    const char *odd; /* The title of its oddity; NULL: it has none. */
    bool is_request;
    char label[REPORT_LABEL];
};

struct report_chart {
    uint32_t halves[2]; /* Towards the left end, and towards the right one. */
    struct report_step steps[REPORT_STEPS], before[REPORT_BEFORE];
    uint32_t count, before_count, behind, odd_run;
    uint64_t skipped; /* Since the last step. */
    struct report_bin bins[REPORT_BINS];
};

struct report_oddity {
    uint64_t count;
    struct {
        uint64_t number;
        uint32_t half;
        const char *detail;
    } examples[REPORT_EXAMPLES];
};

struct report {
    struct report_half *halves;
    uint32_t half_count, half_room;
    struct report_index *index;
    struct report_chart charts[REPORT_DRAWN];
    uint32_t chart_count;
    struct report_bin bins[REPORT_BINS];
    struct report_oddity oddities[REPORT_RULES];
    uint64_t packets, foreign, cut, crowded, port;
    bool has_times;
    uint64_t first_ns, last_ns;
};

/* False: there is no memory. */
bool report_open(struct report *report);
void report_close(struct report *report);

/* The first look at a packet. */
void report_learn(struct report *report, const struct report_packet *packet);
/* Between the two: finds partners, and chooses what is drawn. */
void report_pair(struct report *report);
/* The second look. */
void report_count(struct report *report, const struct report_packet *packet);

/* The half that the packet belongs to; REPORT_NONE: it is not known. */
uint32_t report_half_of(const struct report *report, const struct report_packet *packet);
/* Is it an answer to what the other half carries? */
bool report_is_response(const struct report_packet *packet);
/* The partner; itself if it has none. */
const struct report_half *report_partner(const struct report *report,
                                         const struct report_half *half);

/* Puts the packet into the chart of its half, if that has one. `again_of`: the packet that it
 * repeats; 0: none. `odd`: NULL: nothing is. */
void report_draw(struct report *report, uint32_t half, const struct report_packet *packet,
                 uint64_t again_of, const char *odd);

/* "10.0.0.1 QP 17"; `is_source`: the end that the half comes from. */
void report_write_end(FILE *page, const struct report *report, const struct report_half *half,
                      bool is_source);

/* Writes the page about a capture of this name. `broken`: why not all of it could be read; NULL:
 * all was. */
void report_page(FILE *page, const struct report *report, const char *name, const char *broken);
/* Parts of it: report_chart.c. */
void report_write_times(FILE *page, const struct report *report, const struct report_bin *bins,
                        const char *title);
void report_write_steps(FILE *page, const struct report *report, uint32_t chart);
/* Is the packet drawn, and in which chart? REPORT_NONE: it is not. */
uint32_t report_chart_with(const struct report *report, uint32_t half, uint64_t number);

#endif
