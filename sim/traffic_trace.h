/* SPDX-License-Identifier: BSD-2-Clause
 *
 * traffic_trace - messages as a program sent them: when, from where, where to, and how long.
 *
 * The text has lines "TIME_NS FROM TO BYTES" in the order of time; docs/topologies.md shows one. It
 * is the caller's, who reads files, and may go away afterwards.
 */
#ifndef SIM_TRAFFIC_TRACE_H
#define SIM_TRAFFIC_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"

#define TRAFFIC_MESSAGES_MAX      (1u << 24)
#define TRAFFIC_TRACE_TEXT_MAX    (1u << 30) /* Bytes. */
#define TRAFFIC_MESSAGE_BYTES_MAX (UINT64_C(1) << 40)
#define TRAFFIC_TIME_PS_MAX       (UINT64_C(1) << 62) /* 53 days. */

struct traffic_message {
    uint64_t at_ps, bytes;
    uint32_t from, to;
};

struct traffic_trace {
    struct traffic_message *messages; /* None is earlier than the one before it. */
    uint32_t count;                   /* Not 0. */
};

/* False: nothing is open, and `error` names the line and says what is wrong: a message that is
 * earlier than the one before it, a node that is not below `nodes`, a message to its sender, or of
 * no bytes. Aborts without memory. */
MUST_USE bool traffic_trace_parse(struct traffic_trace *trace, const char *text, size_t bytes,
                                  uint32_t nodes, char *error, size_t error_bytes);
void traffic_trace_close(struct traffic_trace *trace);

#endif
