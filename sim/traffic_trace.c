/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/traffic_trace.h"

#include <stdlib.h>
#include <string.h>

#include "sim/text.h"
#include "sim/topology.h"

#define LINE_BYTES_LEAST 8 /* "0 0 1 1" and its end. */

static bool read_message(struct traffic_trace *trace, const struct text_lines *lines,
                         uint32_t nodes)
{
    const struct text_word *const words = lines->words;
    struct traffic_message message;
    uint64_t from = 0, to = 0;
    if (lines->count != 4) {
        return text_line_refuse(lines, "this is not TIME_NS FROM TO BYTES");
    }
    if (!text_word_thousandths(words[0], TRAFFIC_TIME_PS_MAX, &message.at_ps)) {
        return text_line_refuse(lines, "a time is in ns, with up to three places, of 53 days");
    }
    if (trace->count > 0 && message.at_ps < trace->messages[trace->count - 1].at_ps) {
        return text_line_refuse(lines, "this is earlier than the message before it");
    }
    if (!text_word_number(words[1], nodes - 1, &from) ||
        !text_word_number(words[2], nodes - 1, &to)) {
        return text_line_refuse(lines, "nodes have numbers from 0 to %u", nodes - 1);
    }
    if (from == to) {
        return text_line_refuse(lines, "node %llu sends to itself", (unsigned long long)from);
    }
    if (!text_word_number(words[3], TRAFFIC_MESSAGE_BYTES_MAX, &message.bytes) ||
        message.bytes == 0) {
        return text_line_refuse(lines, "a message has 1 to %llu bytes",
                                (unsigned long long)TRAFFIC_MESSAGE_BYTES_MAX);
    }
    if (trace->count == TRAFFIC_MESSAGES_MAX) {
        return text_line_refuse(lines, "there are %u messages already, which is the most",
                                TRAFFIC_MESSAGES_MAX);
    }
    message.from = (uint32_t)from;
    message.to = (uint32_t)to;
    trace->messages[trace->count++] = message;
    return true;
}

/* Gives back the memory that was taken for lines that turned out longer than the shortest. */
static void trim(struct traffic_trace *trace)
{
    struct traffic_message *const messages =
        realloc(trace->messages, trace->count * sizeof(messages[0]));
    trace->messages = messages != NULL ? messages : trace->messages;
}

bool traffic_trace_parse(struct traffic_trace *trace, const char *text, size_t bytes,
                         uint32_t nodes, char *error, size_t error_bytes)
{
    CHECK(nodes >= 2 && nodes <= TOPOLOGY_NODES_MAX);
    *trace = (struct traffic_trace){.count = 0};
    if (bytes > TRAFFIC_TRACE_TEXT_MAX) {
        return text_refuse(error, error_bytes, "the text has more than %u bytes",
                           TRAFFIC_TRACE_TEXT_MAX);
    }
    trace->messages = calloc(bytes / LINE_BYTES_LEAST + 1, sizeof(trace->messages[0]));
    CHECK(trace->messages != NULL);
    struct text_lines lines;
    text_lines_init(&lines, text, bytes, error, error_bytes);
    bool good = true;
    while (good && text_lines_next(&lines)) {
        good = read_message(trace, &lines, nodes);
    }
    if (good && trace->count == 0) {
        good = text_refuse(error, error_bytes, "there is no line TIME_NS FROM TO BYTES");
    }
    if (!good) {
        traffic_trace_close(trace);
        return false;
    }
    trim(trace);
    return true;
}

void traffic_trace_close(struct traffic_trace *trace)
{
    free(trace->messages);
    memset(trace, 0, sizeof(*trace));
}
