/* SPDX-License-Identifier: BSD-2-Clause
 *
 * api_internal - functions that the files of the API share.
 */
#ifndef LAB_LANT_API_INTERNAL_H
#define LAB_LANT_API_INTERNAL_H

#include "lab/lant/api.h"

static inline struct lant_call *lant_call_at(struct list *place)
{
    return CONTAINER_OF(place, struct lant_call, place);
}

/* api.c */
void lant_api_begin(struct lant_api *api, struct lant_call *call, enum lant_call_kind kind);
/* The call has its result; it returns by an event. */
void lant_api_return(struct lant_call *call, enum lant_result result);
/* api_access.c */
/* The next access of the call, if the node has room. */
void lant_api_access_next(struct lant_call *call);
void lant_api_take_done(struct lant_call *call, const struct lant_shm_done *done);
void lant_api_look_at_fence(struct lant_call *call);

#endif
