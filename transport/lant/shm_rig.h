/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shm_rig - an initiator for tests, whose peers are played by hand.
 *
 * Purpose    Requests, packets and answers in a line each.
 * Inputs     -
 * Outputs    -
 * Ownership  A struct rig.
 * Units      Ticks.
 * Limits     For tests; after the headers that cmocka wants.
 * Source     -
 */
#ifndef TRANSPORT_LANT_SHM_RIG_H
#define TRANSPORT_LANT_SHM_RIG_H

#include "transport/lant/shm.h"

#define RIG_NODE    1u
#define RIG_PEER    9u
#define RIG_TIMEOUT 10000u

struct rig {
    struct lant_shm shm;
    struct lant_errors errors;
    struct lant_packet packet; /* The last one that was sent. */
};

static inline struct lant_shm_config rig_config(void)
{
    struct lant_shm_config config = LANT_SHM_DEFAULTS;
    config.node = RIG_NODE;
    return config;
}

static inline void rig_init(struct rig *rig, const struct lant_shm_config *config)
{
    const struct lant_errors_config errors = {.node = RIG_NODE, .in_charge = 77};
    lant_shm_init(&rig->shm, config);
    lant_errors_init(&rig->errors, &errors);
}

/* The data names the request, too. */
static inline struct lant_shm_request rig_store(uint32_t token, uint32_t node, uint64_t address)
{
    return (struct lant_shm_request){.address = lant_global(node, address),
                                     .data = token * UINT64_C(0x100000001),
                                     .token = token,
                                     .size = 3,
                                     .strobe = 0xff,
                                     .bus_id = 5,
                                     .store = true};
}

static inline struct lant_shm_request rig_load(uint32_t token, uint32_t node, uint64_t address)
{
    struct lant_shm_request request = rig_store(token, node, address);
    request.store = false;
    return request;
}

static inline enum lant_shm_verdict rig_ask(struct rig *rig, struct lant_shm_request request,
                                            uint64_t now)
{
    return lant_shm_request(&rig->shm, &request, now);
}

/* Sends one packet to its end. False: there is none. */
static inline bool rig_send(struct rig *rig, uint64_t now)
{
    if (!lant_shm_next_packet(&rig->shm, &rig->packet)) {
        return false;
    }
    lant_shm_sent(&rig->shm, &rig->packet.footer, now);
    return true;
}

static inline struct lant_packet rig_answer_to(const struct lant_packet *request,
                                               enum lant_response response, uint64_t data)
{
    const bool load = request->header.type == LANT_AR;
    struct lant_packet answer = {
        .header = {.destination = request->footer.source,
                   .type = load ? LANT_R : LANT_B,
                   .payload = load && !lant_response_is_nack(response)},
        .footer = request->footer,
    };
    answer.footer.source = request->header.destination;
    answer.footer.response = (uint8_t)response;
    answer.payload[0] = data;
    return answer;
}

static inline enum lant_shm_answer rig_answer(struct rig *rig, const struct lant_packet *request,
                                              enum lant_response response, uint64_t data,
                                              uint64_t now)
{
    const struct lant_packet answer = rig_answer_to(request, response, data);
    return lant_shm_on_answer(&rig->shm, &rig->errors, &answer, now);
}

/* The next event; kind UINT8_MAX: none. */
static inline struct lant_shm_done rig_done(struct rig *rig, uint64_t now)
{
    struct lant_shm_done done;
    if (!lant_shm_next_done(&rig->shm, now, &done)) {
        done = (struct lant_shm_done){.kind = UINT8_MAX};
    }
    return done;
}

/* Lets time pass until all attempts of all requests have failed. */
static inline uint64_t rig_fail_all(struct rig *rig, uint64_t now)
{
    for (;;) {
        while (rig_send(rig, now)) {
        }
        const uint64_t deadline = lant_shm_deadline(&rig->shm, now);
        if (deadline == LANT_NEVER) {
            return now;
        }
        now = deadline;
        lant_shm_on_time(&rig->shm, &rig->errors, now);
    }
}

static inline void rig_start(struct rig *rig, uint16_t early_timers)
{
    struct lant_shm_config config = rig_config();
    config.early_timers = early_timers;
    rig_init(rig, &config);
}

static inline void rig_expect_done(struct rig *rig, uint32_t token, enum lant_shm_done_kind kind,
                                   enum lant_response response)
{
    const struct lant_shm_done done = rig_done(rig, 0);
    assert_int_equal(done.kind, kind);
    assert_int_equal(done.token, token);
    assert_int_equal(done.response, response);
}

static inline void rig_expect_nothing(struct rig *rig)
{
    assert_int_equal(rig_done(rig, 0).kind, UINT8_MAX);
}

#endif
