/* SPDX-License-Identifier: BSD-2-Clause
 *
 * window - the verdicts of a flow's receiver on the packets of that flow.
 *
 * Purpose    A packet is judged once, for good: whatever comes later with its PSN gets the same
 *            answer, until the sender has said that it knows the verdict.
 * Inputs     srd_window_set, srd_window_advance.
 * Outputs    The verdict on a PSN, or on an instance of which a packet is new; answers.
 * Units      PSNs of 32 bits, which wrap.
 * Limits     SRD_WINDOW PSNs from the base on.
 * Source     Our choice.
 */
#ifndef TRANSPORT_SRD_WINDOW_H
#define TRANSPORT_SRD_WINDOW_H

#include "wire/srd.h"

/* The verdict on a packet. One above SRD_JUDGED_REFUSED is SRD_JUDGED_REFUSED + an
 * enum srd_status. */
enum srd_judged {
    SRD_JUDGED_NOT,        /* It has not come. */
    SRD_JUDGED_MOVING,     /* It is allowed, and its bytes are on their way into memory. */
    SRD_JUDGED_TAKEN,      /* Its bytes are in memory; a READ is being answered. */
    SRD_JUDGED_NO_RECEIVE, /* There was no receive for its message. */
    SRD_JUDGED_REFUSED = 0x80,
};

/* It was refused with this status. A constant, if the status is one. */
#define SRD_REFUSED(status) ((uint8_t)(SRD_JUDGED_REFUSED + (uint32_t)(status)))

static inline uint8_t srd_refused(enum srd_status status)
{
    return SRD_REFUSED(status);
}

struct srd_window {
    uint32_t base;         /* The sender knows the verdict on all PSNs before it. */
    uint32_t taken_before; /* Every PSN from base on before this one is taken. */
    uint32_t end;          /* No PSN from this one on was judged. */
    /* The verdict on PSN p in 4 bits, by codes of window.c: at p % SRD_WINDOW. */
    uint8_t judged[SRD_WINDOW / 2];
};

void srd_window_init(struct srd_window *window, uint32_t base);

enum srd_place {
    SRD_PLACE_BEFORE,
    SRD_PLACE_INSIDE,
    SRD_PLACE_BEYOND,
};

static inline enum srd_place srd_window_place(const struct srd_window *window, uint32_t psn)
{
    return srd_distance(window->base, psn) < 0 ? SRD_PLACE_BEFORE
           : psn - window->base < SRD_WINDOW   ? SRD_PLACE_INSIDE
                                               : SRD_PLACE_BEYOND;
}

/* The sender knows the verdict on all PSNs before `base`; one that is not ahead changes nothing. */
void srd_window_advance(struct srd_window *window, uint32_t base);

/* The verdict on a PSN that is inside. */
uint8_t srd_window_judged(const struct srd_window *window, uint32_t psn);

/* A refusal has a status that a target may give (srd_status_refuses). */
void srd_window_set(struct srd_window *window, uint32_t psn, uint8_t judged);

/* The open rule: a packet may open its message only if no packet of that instance was judged.
 * SRD_JUDGED_NOT: it may; else the verdict that the packet gets, because the message can never
 * become whole. */
uint8_t srd_window_judge_instance(const struct srd_window *window, uint32_t first,
                                  uint32_t packets);

/* Fills in what an answer says of PSNs. `wait_code`: how long who found no receive is to wait. */
void srd_window_report(const struct srd_window *window, uint8_t wait_code,
                       struct srd_answer *answer);

/* For tests, and in builds for tests. */
void srd_window_check(const struct srd_window *window);

#endif
