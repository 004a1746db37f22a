/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sender_internal - what the files of a sender share.
 *
 *     sender.c          PSNs, instances and their ends, departure
 *     sender_receive.c  answers and challenges
 *     sender_time.c     losses and deadlines
 */
#ifndef TRANSPORT_SRD_SENDER_INTERNAL_H
#define TRANSPORT_SRD_SENDER_INTERNAL_H

#include "transport/srd/sender.h"

static inline struct srd_instance *srd_instance_of(struct list *node)
{
    return CONTAINER_OF(node, struct srd_instance, node);
}

static inline struct srd_transmission *srd_transmission_of(struct list *node)
{
    return CONTAINER_OF(node, struct srd_transmission, node);
}

/* -- sender.c -----------------------------------------------------------------------------------*/

/* The flow is there, and its path knows nothing but the next TSN and perhaps a round trip (0: not
 * known). */
void srd_start_flow(struct srd_sender *sender, struct psn tsn, uint64_t trip_ns,
                    struct instant now);
/* Is a packet under way that is not taken for lost? */
bool srd_has_flight(const struct srd_sender *sender);
/* Is the verdict on a PSN open? */
bool srd_psn_is_open(const struct srd_sender *sender, uint32_t psn);
void srd_close_psn(struct srd_sender *sender, uint32_t psn);
/* From now on, no verdict on the instance's PSNs matters. */
void srd_give_psns_up(struct srd_sender *sender, struct srd_instance *instance);
/* An instance that has no PSNs, or has none any more, ends. */
void srd_end_instance(struct srd_sender *sender, struct srd_instance *instance,
                      enum srd_status status);
/* One that has PSNs ends. */
void srd_end_sent(struct srd_sender *sender, struct srd_instance *instance, enum srd_status status);
/* Instances that are too old end. Before anything is sent or believed: the receiver counts on it
 * that nothing older is under way. */
void srd_give_up(struct srd_sender *sender, struct instant now);
void srd_start_greeting(struct srd_sender *sender, struct instant now);
/* How much a packet of the instance counts on its path. */
uint32_t srd_cost_of(const struct srd_sender *sender, const struct srd_instance *instance,
                     uint32_t index);
/* Could a packet leave for the first time, if the path had room? */
bool srd_has_new(const struct srd_sender *sender);
/* Greets if a flow is wanted and not there; ends the greeting if it is not wanted any more. */
void srd_wake(struct srd_sender *sender, struct instant now);

/* -- sender_time.c ------------------------------------------------------------------------------*/

/* When the first of the packets on which the last answer had a word will be lost;
 * INSTANT_NEVER: not before news. */
struct instant srd_first_loss_at(const struct srd_sender *sender);
/* Packets that are lost now are to leave again. */
void srd_find_lost(struct srd_sender *sender, struct instant now);

#endif
