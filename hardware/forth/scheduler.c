/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/scheduler.h"

const char forth_arbiter_words[] =
#define ARBITER(name, word) " " word
#include "hardware/forth/arbiters.def"
#undef ARBITER
    ;

/* -- Packets ------------------------------------------------------------------------------------*/

void forth_output_init(struct forth_output_scheduler *scheduler, uint32_t ports)
{
    CHECK(ports >= 1 && ports <= FORTH_PORTS_MAX);
    *scheduler = (struct forth_output_scheduler){.ports = ports, .weight = 1, .last = ports - 1};
}

void forth_output_arrived(struct forth_output_scheduler *scheduler, uint32_t input)
{
    CHECK(input < scheduler->ports);
    scheduler->waiting[input]++;
    scheduler->eligible |= UINT64_C(1) << input;
}

int forth_output_likely(const struct forth_output_scheduler *scheduler)
{
    switch (scheduler->arbiter) {
#define ARBITER(name, word)                                                                        \
    case FORTH_ARBITER_##name:                                                                     \
        return forth_arbiter_##name(scheduler);
#include "hardware/forth/arbiters.def"
#undef ARBITER
    case FORTH_ARBITERS: break;
    }
    UNREACHABLE("an arbiter outside its enum");
}

int forth_output_next(struct forth_output_scheduler *scheduler)
{
    const int input = forth_output_likely(scheduler);
    if (input < 0) {
        return -1;
    }
    scheduler->in_row = scheduler->last == (uint32_t)input ? scheduler->in_row + 1 : 1;
    scheduler->last = (uint32_t)input;
    scheduler->waiting[input]--;
    if (scheduler->waiting[input] == 0) {
        scheduler->eligible &= ~(UINT64_C(1) << input);
    }
    return input;
}

/* -- Credits ------------------------------------------------------------------------------------*/

void forth_credits_init(struct forth_credit_scheduler *scheduler, uint32_t ports)
{
    CHECK(ports >= 1 && ports <= FORTH_PORTS_MAX);
    *scheduler = (struct forth_credit_scheduler){
        .ports = ports, .last_modified = ports - 1, .last_refreshed = ports - 1};
}

void forth_credits_departed(struct forth_credit_scheduler *scheduler, uint32_t output,
                            uint32_t words)
{
    CHECK(output < scheduler->ports);
    struct forth_ledger *ledger = &scheduler->ledgers[output];
    forth_ledger_forwarded(ledger, words);
    if (ledger->modified) {
        scheduler->modified |= UINT64_C(1) << output;
    }
}

static uint64_t all_ports(uint32_t ports)
{
    return ports == 64 ? UINT64_MAX : (UINT64_C(1) << ports) - 1;
}

bool forth_credits_next(struct forth_credit_scheduler *scheduler, bool refresh,
                        struct forth_credit *credit)
{
    int output = forth_round_robin(scheduler->modified, scheduler->last_modified, scheduler->ports);
    if (output >= 0) {
        scheduler->last_modified = (uint32_t)output;
    } else if (refresh) {
        output = forth_round_robin(all_ports(scheduler->ports), scheduler->last_refreshed,
                                   scheduler->ports);
        scheduler->last_refreshed = (uint32_t)output;
    } else {
        return false;
    }
    scheduler->modified &= ~(UINT64_C(1) << output);
    *credit = (struct forth_credit){.flow = (uint8_t)output,
                                    .value = forth_ledger_take(&scheduler->ledgers[output])};
    return true;
}
