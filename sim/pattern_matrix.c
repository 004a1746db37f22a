/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Reads a flow matrix: lines "FROM TO SHARE", in any order, each pair once.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/pattern.h"
#include "sim/text.h"
#include "sim/topology.h"

#define SHARE_THOUSANDTHS_MAX UINT64_C(1000000000000)
#define LINE_BYTES_LEAST      6 /* "0 1 1" and its end. */

struct flow {
    uint32_t from, to, line;
    uint64_t share;
};

struct reader {
    struct text_lines lines;
    struct flow *flows;
    uint32_t count, nodes;
};

static bool read_flow(struct reader *reader)
{
    const struct text_lines *const lines = &reader->lines;
    uint64_t from = 0, to = 0, share = 0;
    if (lines->count != 3) {
        return text_line_refuse(lines, "this is not FROM TO SHARE");
    }
    if (!text_word_number(lines->words[0], reader->nodes - 1, &from) ||
        !text_word_number(lines->words[1], reader->nodes - 1, &to)) {
        return text_line_refuse(lines, "nodes have numbers from 0 to %u", reader->nodes - 1);
    }
    if (from == to) {
        return text_line_refuse(lines, "node %llu sends to itself", (unsigned long long)from);
    }
    if (!text_word_thousandths(lines->words[2], SHARE_THOUSANDTHS_MAX, &share) || share == 0) {
        return text_line_refuse(lines, "a share is 0.001 to 1000000000, with up to three places");
    }
    if (reader->count == PATTERN_FLOWS_MAX) {
        return text_line_refuse(lines, "there are %u flows already, which is the most",
                                PATTERN_FLOWS_MAX);
    }
    reader->flows[reader->count++] =
        (struct flow){(uint32_t)from, (uint32_t)to, lines->number, share};
    return true;
}

static int order_of(uint32_t one, uint32_t other)
{
    return (one > other) - (one < other);
}

static int compare(const void *left, const void *right)
{
    const struct flow *const one = left, *const other = right;
    const int by_from = order_of(one->from, other->from), by_to = order_of(one->to, other->to);
    return by_from != 0 ? by_from : by_to != 0 ? by_to : order_of(one->line, other->line);
}

static bool sort_flows(struct reader *reader)
{
    if (reader->count > 1) {
        qsort(reader->flows, reader->count, sizeof(reader->flows[0]), compare);
    }
    for (uint32_t i = 1; i < reader->count; i++) {
        const struct flow *const one = &reader->flows[i - 1], *const other = &reader->flows[i];
        if (one->from == other->from && one->to == other->to) {
            reader->lines.number = other->line;
            return text_line_refuse(&reader->lines, "line %u gives a share from %u to %u already",
                                    one->line, one->from, one->to);
        }
    }
    return true;
}

static void build(struct pattern *pattern, const struct reader *reader)
{
    pattern->kind = PATTERN_MATRIX;
    pattern->first_flow = calloc(pattern->nodes + (size_t)1, sizeof(pattern->first_flow[0]));
    pattern->flows = calloc(reader->count, sizeof(pattern->flows[0]));
    CHECK(pattern->first_flow != NULL && pattern->flows != NULL);
    uint64_t load = 0;
    for (uint32_t i = 0; i < reader->count; i++) {
        const struct flow *const flow = &reader->flows[i];
        load = (i > 0 && flow[-1].from == flow->from ? load : 0) + flow->share;
        pattern->flows[i] = (struct pattern_flow){flow->to, load};
        pattern->first_flow[flow->from + 1] = i + 1;
        pattern->most_load = load > pattern->most_load ? load : pattern->most_load;
    }
    /* A node without a row begins and ends where the row before it ends. */
    for (uint32_t node = 0; node < pattern->nodes; node++) {
        if (pattern->first_flow[node + 1] < pattern->first_flow[node]) {
            pattern->first_flow[node + 1] = pattern->first_flow[node];
        }
    }
}

bool pattern_parse(struct pattern *pattern, const char *text, size_t bytes, uint32_t nodes,
                   char *error, size_t error_bytes)
{
    CHECK(nodes >= 2 && nodes <= TOPOLOGY_NODES_MAX);
    *pattern = (struct pattern){.nodes = nodes};
    if (bytes > PATTERN_TEXT_MAX) {
        return text_refuse(error, error_bytes, "the text has more than %u bytes", PATTERN_TEXT_MAX);
    }
    struct reader reader = {.nodes = nodes};
    reader.flows = calloc(bytes / LINE_BYTES_LEAST + 1, sizeof(reader.flows[0]));
    CHECK(reader.flows != NULL);
    text_lines_init(&reader.lines, text, bytes, error, error_bytes);
    bool good = true;
    while (good && text_lines_next(&reader.lines)) {
        good = read_flow(&reader);
    }
    good = good && sort_flows(&reader);
    if (good && reader.count == 0) {
        good = text_refuse(error, error_bytes, "there is no line FROM TO SHARE");
    }
    if (good) {
        build(pattern, &reader);
    }
    free(reader.flows);
    return good;
}
