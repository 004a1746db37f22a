/* SPDX-License-Identifier: BSD-2-Clause
 *
 * receiver_internal - between the files of the host: receiver.c (packets), host.c (program and
 * connection manager).
 */
#ifndef LAB_FEROCE_RECEIVER_INTERNAL_H
#define LAB_FEROCE_RECEIVER_INTERNAL_H

#include "lab/feroce/receiver.h"

/* DSCP 24: feroce-rs' traffic class of 96. */
#define FEROCE_HOST_CLASS 3

/* receiver.c */
/* A packet to a board, without contents. */
struct feroce_packet_on_line *feroce_receiver_packet(struct feroce_receiver *receiver, uint32_t to);

/* host.c */
void feroce_receiver_open_host(struct feroce_receiver *receiver);
void feroce_receiver_on_cm(struct feroce_receiver *receiver,
                           const struct feroce_packet_on_line *packet);
/* The receive that has completed is posted again host_ns later. */
void feroce_receiver_repost(struct feroce_receiver *receiver, uint32_t connection);

/* keep.c */
/* Hands in packets that are in order, and keeps the others; asks for missing ones. */
void feroce_receiver_keep(struct feroce_receiver *receiver, struct feroce_packet_on_line *packet,
                          void (*hand_in)(struct feroce_receiver *receiver,
                                          struct feroce_packet_on_line *packet));

#endif
