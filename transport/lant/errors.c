/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/errors.h"

/* -- The table ----------------------------------------------------------------------------------*/

struct lant_error_action lant_error_action(enum lant_error_kind kind, bool accelerator)
{
    static const struct lant_error_action actions[LANT_ERROR_KIND_COUNT] = {
        [LANT_ERROR_LOAD] = {.response = LANT_OKAY,
                             .fake_data = true,
                             .record = true,
                             .interrupt = true},
        [LANT_ERROR_STORE] = {.response = LANT_SLVERR},
        /* The table has "negative ACK ... or debug record and interrupt": both (LNI-31). */
        [LANT_ERROR_STORE_EARLY] = {.response = LANT_SLVERR,
                                    .notice = true,
                                    .record = true,
                                    .interrupt = true},
        /* OKAY, not EXOKAY: it has no lock. */
        [LANT_ERROR_LOAD_EXCLUSIVE] = {.response = LANT_OKAY,
                                       .fake_data = true,
                                       .record = true,
                                       .interrupt = true},
        [LANT_ERROR_STORE_EXCLUSIVE] = {.response = LANT_SLVERR},
        [LANT_ERROR_RDMA] = {.response = LANT_SLVERR,
                             .notice = true,
                             .record = true,
                             .interrupt = true},
    };
    CHECK(kind < LANT_ERROR_KIND_COUNT);
    struct lant_error_action action = actions[kind];
    if (accelerator) {
        /* An accelerator can take a bus error; somebody else's CPU is interrupted instead. */
        action.fake_data = false;
        action.response = LANT_SLVERR;
        action.record = true;
        action.interrupt = false;
        action.report = true;
    }
    return action;
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static void lant_errors_check(const struct lant_errors *errors)
{
    CHECK(errors->reported <= errors->written);
    for (uint64_t i = 0; i < LANT_ERRORS_MAX; i++) {
        CHECK(!errors->owes[i] || i < errors->written);
    }
    for (uint64_t i = 0; i < lant_errors_count(errors); i++) {
        const struct lant_error *error = lant_errors_at(errors, (uint32_t)i);
        CHECK(error->kind < LANT_ERROR_KIND_COUNT);
        CHECK(error->reporter < LANT_NODES_MAX);
    }
}

/* -- Records ------------------------------------------------------------------------------------*/

void lant_errors_init(struct lant_errors *errors, const struct lant_errors_config *config)
{
    CHECK(config->node < LANT_NODES_MAX && config->in_charge < LANT_NODES_MAX);
    *errors = (struct lant_errors){.config = *config};
}

const struct lant_error *lant_errors_at(const struct lant_errors *errors, uint32_t index)
{
    CHECK(index < lant_errors_count(errors));
    const uint64_t oldest = errors->written - lant_errors_count(errors);
    return &errors->records[(oldest + index) % LANT_ERRORS_MAX];
}

static void write_record(struct lant_errors *errors, const struct lant_error *error, bool owes)
{
    const uint64_t place = errors->written % LANT_ERRORS_MAX;
    if (errors->written >= LANT_ERRORS_MAX) {
        errors->counters.overwritten++;
        errors->counters.lost_reports += errors->owes[place];
    }
    errors->records[place] = *error;
    errors->owes[place] = owes;
    errors->written++;
}

struct lant_error_action lant_errors_record(struct lant_errors *errors,
                                            const struct lant_error *error)
{
    INVARIANTS(lant_errors_check(errors));
    const struct lant_error_action action =
        lant_error_action((enum lant_error_kind)error->kind, error->accelerator);
    const bool here = errors->config.in_charge == errors->config.node;
    errors->counters.failures++;
    errors->counters.interrupts += action.interrupt || (action.report && here);
    if (action.record) {
        write_record(errors, error, action.report && !here);
    }
    INVARIANTS(lant_errors_check(errors));
    return action;
}

/* -- Reports ------------------------------------------------------------------------------------*/

/* The payload is our choice: the global address; then kind (7..0), attempts (15..8), the last
 * response (23..16), zeros, and the initiator (63..32). */

bool lant_errors_on_report(struct lant_errors *errors, const struct lant_packet *packet,
                           uint64_t now)
{
    const uint64_t word = packet->payload[1];
    INVARIANTS(lant_errors_check(errors));
    if (packet->header.type != LANT_ERROR_REPORT || packet->header.payload != 2 ||
        (word & 0xff) >= LANT_ERROR_KIND_COUNT || (word >> 24 & 0xff) != 0 ||
        packet->footer.source >= LANT_NODES_MAX) {
        return false;
    }
    const struct lant_error error = {.time = now,
                                     .address = packet->payload[0],
                                     .reporter = packet->footer.source,
                                     .initiator = (uint32_t)(word >> 32),
                                     .kind = (uint8_t)word,
                                     .attempts = (uint8_t)(word >> 8),
                                     .response = (uint8_t)(word >> 16),
                                     .accelerator = true};
    write_record(errors, &error, false);
    errors->counters.interrupts++;
    INVARIANTS(lant_errors_check(errors));
    return true;
}

static struct lant_packet report_of(const struct lant_errors *errors,
                                    const struct lant_error *error)
{
    struct lant_packet packet = {
        .header = {.destination = errors->config.in_charge,
                   .type = LANT_ERROR_REPORT,
                   .payload = 2,
                   .priority = 3,
                   .strobe = 0xff,
                   .size = 3},
        .footer = {.source = errors->config.node, .class = LANT_CLASS_NOTIFICATION},
    };
    packet.payload[0] = error->address;
    packet.payload[1] = (uint64_t)error->initiator << 32 | (uint64_t)error->response << 16 |
                        (uint64_t)error->attempts << 8 | error->kind;
    return packet;
}

bool lant_errors_next_report(struct lant_errors *errors, struct lant_packet *packet)
{
    INVARIANTS(lant_errors_check(errors));
    if (errors->written - errors->reported > LANT_ERRORS_MAX) {
        errors->reported = errors->written - LANT_ERRORS_MAX;
    }
    for (; errors->reported < errors->written; errors->reported++) {
        const uint64_t place = errors->reported % LANT_ERRORS_MAX;
        if (errors->owes[place]) {
            errors->owes[place] = false;
            *packet = report_of(errors, &errors->records[place]);
            INVARIANTS(lant_errors_check(errors));
            return true;
        }
    }
    return false;
}
