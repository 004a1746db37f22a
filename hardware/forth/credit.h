/* SPDX-License-Identifier: BSD-2-Clause
 *
 * credit - cumulative credits: the words that a flow may still send, and the receiver's reports.
 *
 * Both sides count words since power-up in 12 bits. The receiver sends the upper 7 bits of its
 * count as it changes; since the count is cumulative, a credit that is lost is healed by the next.
 *
 * Source     TR376 3.3.1 (after QFC). The order of the two fields is our choice.
 */
#ifndef HARDWARE_FORTH_CREDIT_H
#define HARDWARE_FORTH_CREDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"

#define FORTH_COUNTER_MASK 0xfffu
#define FORTH_CREDIT_SHIFT 5 /* A credit every 32 words. */
/* The words that a packet is charged for beside its payload, for header, its CRC and body
 * CRC: 16 bytes. The document leaves the unit open, so it is our choice. */
#define FORTH_OVERHEAD_WORDS 2
/* The largest buffer for which the counters tell full from empty. */
#define FORTH_BUFFER_WORDS_MAX 1024
/* In place of a buffer's size: there is no flow control, a window of this size never closes. */
#define FORTH_BUFFER_UNBOUNDED UINT16_MAX

/* The sender's side of one flow. */
struct forth_window {
    uint16_t sent; /* Words ever sent, 12 bits. */
    /* Words of those that the receiver took out, as far as credits have told. */
    uint16_t forwarded;
    uint16_t buffer; /* Words the receiver has room for. */
};

void forth_window_init(struct forth_window *window, uint16_t buffer_words);
bool forth_window_admits(const struct forth_window *window, uint32_t words);
/* Notes that words which were admitted are on their way. */
void forth_window_sent(struct forth_window *window, uint32_t words);
void forth_window_credit(struct forth_window *window, uint8_t value);

/* The receiver's side. */
struct forth_ledger {
    uint16_t forwarded; /* Words ever taken out, 12 bits. */
    bool modified;      /* The value of a credit has changed since the last one. */
};

void forth_ledger_forwarded(struct forth_ledger *ledger, uint32_t words);
/* Returns the value of a credit, which then counts as sent. */
uint8_t forth_ledger_take(struct forth_ledger *ledger);

#endif
