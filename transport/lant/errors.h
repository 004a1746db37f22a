/* SPDX-License-Identifier: BSD-2-Clause
 *
 * errors - the outcome of an operation that failed for good, and the records of it.
 *
 * Purpose    Says what the initiator of a failed operation gets, keeps records for people who look
 *            for the cause, counts the interrupts of the CPU, and tells the CPU that is in charge
 *            when an accelerator's operation failed.
 * Inputs     Failures (lant_errors_record); ERROR_REPORT packets of other nodes.
 * Outputs    lant_error_action; records; packets (lant_errors_next_report); a count of interrupts.
 * Time       Only noted in the records.
 * Units      `initiator` is the name that the caller gave its operation.
 * Limits     The last LANT_ERRORS_MAX records. A report that was not sent before its record was
 *            overwritten is lost, and counted. A report is sent once and not acknowledged (our
 *            choice: ERROR_REPORT is ours): the record stays here in any case.
 * Source     Lant, table 4.1; LNI-30, LNI-31, LNI-32.
 */
#ifndef TRANSPORT_LANT_ERRORS_H
#define TRANSPORT_LANT_ERRORS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/lant.h"

#define LANT_ERRORS_MAX 64u
/* In place of an enum lant_response: nobody has answered at all. */
#define LANT_NO_RESPONSE 255u

enum lant_error_kind {
    LANT_ERROR_LOAD,
    LANT_ERROR_STORE,       /* Its initiator waits. */
    LANT_ERROR_STORE_EARLY, /* Its initiator was told that all is well. */
    LANT_ERROR_LOAD_EXCLUSIVE,
    LANT_ERROR_STORE_EXCLUSIVE,
    LANT_ERROR_RDMA,
    LANT_ERROR_KIND_COUNT,
};

struct lant_error {
    uint64_t time;
    uint64_t address;   /* Global: its upper bits are the node that did not do it. */
    uint32_t reporter;  /* The node of the initiator. */
    uint32_t initiator; /* Its name for the operation. */
    uint8_t kind;       /* enum lant_error_kind. */
    uint8_t attempts;   /* How often it was sent. */
    uint8_t response;   /* The last one: enum lant_response, or LANT_NO_RESPONSE. */
    bool accelerator;   /* The initiator is no CPU. */
};

/* The action that an error needs (table 4.1). */
struct lant_error_action {
    uint8_t response; /* The response on the initiator's bus, if it still waits. */
    bool fake_data;   /* The load seems to succeed, with data that nobody stored: a CPU that waits
                         for a load for ever cannot even be stopped. */
    bool notice;      /* A negative notification. */
    bool record;
    bool interrupt;
    bool report; /* To the CPU that is in charge. */
};

struct lant_error_action lant_error_action(enum lant_error_kind kind, bool accelerator);

struct lant_errors_config {
    uint32_t node;
    /* The node whose CPU is told of accelerators' failures; perhaps this one. */
    uint32_t in_charge;
};

struct lant_errors_counters {
    uint64_t failures;   /* lant_errors_record was called. */
    uint64_t interrupts; /* The CPU of this node. */
    uint64_t overwritten;
    uint64_t lost_reports;
};

struct lant_errors {
    struct lant_errors_config config;
    uint64_t written;  /* Records so far: the last one stands at (written - 1) modulo 64. */
    uint64_t reported; /* Those before this one were sent as reports, if they had to be. */
    bool owes[LANT_ERRORS_MAX]; /* This record is to be reported. */
    struct lant_error records[LANT_ERRORS_MAX];
    struct lant_errors_counters counters;
};

void lant_errors_init(struct lant_errors *errors, const struct lant_errors_config *config);

/* Makes the record, the interrupt and the report that lant_error_action asks for. */
struct lant_error_action lant_errors_record(struct lant_errors *errors,
                                            const struct lant_error *error);

/* An ERROR_REPORT came whole: it is recorded here, and the CPU interrupted. False: its fields are
 * nonsense. */
bool lant_errors_on_report(struct lant_errors *errors, const struct lant_packet *packet,
                           uint64_t now);

/* The next report to be sent. False: there is none. */
bool lant_errors_next_report(struct lant_errors *errors, struct lant_packet *packet);

static inline uint32_t lant_errors_count(const struct lant_errors *errors)
{
    return errors->written < LANT_ERRORS_MAX ? (uint32_t)errors->written : LANT_ERRORS_MAX;
}

/* `index` counts from the oldest record that is kept. */
const struct lant_error *lant_errors_at(const struct lant_errors *errors, uint32_t index);

#endif
