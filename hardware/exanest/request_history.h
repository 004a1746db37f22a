/* SPDX-License-Identifier: BSD-2-Clause
 *
 * request_history - the read requests that were taken lately, so that a duplicate is known.
 *
 * Purpose    A packetizer whose acknowledgement was lost sends its request again, perhaps after the
 *            read is over. A request that is served twice would write into memory that its owner
 *            uses again.
 * Ownership  The caller owns the struct; zeroed memory is an empty history.
 * Limits     1,024, in 128 sets of 8: a ninth of a set takes the place of the oldest. A request
 *            that is forgotten would be served twice.
 * Source     Our choice: the document says only that duplicates can come (4.1.2).
 */
#ifndef HARDWARE_EXANEST_REQUEST_HISTORY_H
#define HARDWARE_EXANEST_REQUEST_HISTORY_H

#include "wire/exanest.h"

#define EXANEST_HISTORY_SETS 128u
#define EXANEST_HISTORY_WAYS 8u

struct exanest_request_key {
    uint32_t coordinate, request_id;
    uint16_t channel, pdid;
};

struct exanest_request_history {
    uint8_t count[EXANEST_HISTORY_SETS]; /* Ways in use: the first ones. */
    uint8_t next[EXANEST_HISTORY_SETS];  /* The way that is written next. */
    struct exanest_request_key keys[EXANEST_HISTORY_SETS][EXANEST_HISTORY_WAYS];
};

bool exanest_history_has(const struct exanest_request_history *history,
                         struct exanest_request_key key);
void exanest_history_add(struct exanest_request_history *history, struct exanest_request_key key);
/* The domain begins anew: another process may use the same numbers. */
void exanest_history_forget(struct exanest_request_history *history, uint16_t pdid);

#endif
