/* SPDX-License-Identifier: BSD-2-Clause
 *
 * answers - the header and footer of an answer, made from those of the request.
 *
 * Purpose    Answers that hardware gives by itself: a switch, for a destination that it does not
 *            know, and the fault injector, which stands for the whole network and its far end.
 * Source     Lant 3.3.2, Table 3.3 (types), 4.4 (what an answer repeats).
 */
#ifndef HARDWARE_LANT_ANSWERS_H
#define HARDWARE_LANT_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/lant.h"

/* A packet without its payload. */
struct lant_ends {
    struct lant_header header;
    struct lant_footer footer;
};

/* Is it an answer itself? Nobody answers answers. */
static inline bool lant_is_answer(uint32_t type)
{
    return type == LANT_R || type == LANT_B || type == LANT_RDMA_ACK;
}

/* The type of the answer to a request of this type. Where Table 3.3 does not say it, the table
 * in which the sender waits decides: SHM's rows wait for B or R, the others for RDMA_ACK. */
static inline enum lant_type lant_answer_type(const struct lant_ends *request)
{
    switch (request->header.type) {
    case LANT_AR:
    case LANT_ATOMIC: return LANT_R;
    case LANT_AW: return LANT_B;
    case LANT_RDMA_WRITE:
    case LANT_RDMA_WRITE_REGISTER:
    case LANT_RDMA_UNREGISTERED:
    case LANT_COMPLETION_NOTIFICATION: return LANT_RDMA_ACK;
    default: return request->footer.class == LANT_CLASS_SHM ? LANT_B : LANT_RDMA_ACK;
    }
}

/* The answer of `responder`, in epoch 0. Data are the caller's to add: R has one flit of payload
 * unless it is a NACK, so a read that is refused for good (SLVERR, DECERR) brings 0. An
 * answer has its request's priority. */
static inline struct lant_ends lant_answer(const struct lant_ends *request, uint32_t responder,
                                           enum lant_response response)
{
    struct lant_ends answer = {.footer = request->footer};
    const enum lant_type type = lant_answer_type(request);
    answer.header.destination = request->footer.source;
    answer.header.type = (uint8_t)type;
    answer.header.payload = type == LANT_R && !lant_response_is_nack(response);
    answer.header.priority = request->header.priority;
    answer.footer.source = responder;
    answer.footer.response = (uint8_t)response;
    return answer;
}

#endif
