/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/credit.h"

void forth_window_init(struct forth_window *window, uint16_t buffer_words)
{
    CHECK(buffer_words <= FORTH_BUFFER_WORDS_MAX || buffer_words == FORTH_BUFFER_UNBOUNDED);
    *window = (struct forth_window){.buffer = buffer_words};
}

/* Words that may still be in the receiver's buffer. */
static uint32_t outstanding(const struct forth_window *window)
{
    return (uint32_t)(window->sent - window->forwarded) & FORTH_COUNTER_MASK;
}

bool forth_window_admits(const struct forth_window *window, uint32_t words)
{
    return outstanding(window) + words <= window->buffer;
}

void forth_window_sent(struct forth_window *window, uint32_t words)
{
    CHECK(forth_window_admits(window, words));
    window->sent = (uint16_t)((window->sent + words) & FORTH_COUNTER_MASK);
}

/* A credit does not carry the low bits of the receiver's count; taken as 0 they never grant too
 * much. */
void forth_window_credit(struct forth_window *window, uint8_t value)
{
    const struct forth_window told = {.sent = window->sent,
                                      .forwarded = (uint16_t)(value << FORTH_CREDIT_SHIFT)};
    /* A credit that claims more than was ever sent is an old one, or corrupt. */
    if (outstanding(&told) <= outstanding(window)) {
        window->forwarded = told.forwarded;
    }
    /* Neither sent words nor a credit ever take more room than the receiver has. */
    CHECK(outstanding(window) <= window->buffer);
}

void forth_ledger_forwarded(struct forth_ledger *ledger, uint32_t words)
{
    const uint16_t before = ledger->forwarded;
    ledger->forwarded = (uint16_t)((before + words) & FORTH_COUNTER_MASK);
    ledger->modified |= before >> FORTH_CREDIT_SHIFT != ledger->forwarded >> FORTH_CREDIT_SHIFT ||
                        words > FORTH_COUNTER_MASK;
}

uint8_t forth_ledger_take(struct forth_ledger *ledger)
{
    ledger->modified = false;
    return (uint8_t)(ledger->forwarded >> FORTH_CREDIT_SHIFT);
}
