/* SPDX-License-Identifier: BSD-2-Clause
 *
 * initiator - the DMA initiator of the FORTH NIC: its transfers on the host's bus, step by step.
 *
 * Purpose    Fetches the data of requests into packets, and writes arrived packets into memory.
 * Inputs     A request or a packet's header; how far the bus has come.
 * Limits     One fetch and one delivery at a time; one outstanding split.
 * Source     TR376 3.1.1, 3.1.4.2. The states between those that it names, and the order of
 *            the two directions, are our choice.
 */
#ifndef HARDWARE_FORTH_INITIATOR_H
#define HARDWARE_FORTH_INITIATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "wire/forth.h"

enum forth_step {
    FORTH_STEP_NONE,
    FORTH_STEP_ADDRESS, /* A read's request, which the target answers with a split. */
    FORTH_STEP_DATA,    /* The data of that read. */
    FORTH_STEP_REST,    /* Data that a disconnect has left: request and data, no split. */
    FORTH_STEP_WRITE,
    FORTH_STEP_NOTIFY, /* A write of the notification word. */
};

struct forth_transfer {
    enum forth_step step;
    uint64_t address;
    uint32_t qwords;
    bool dual_address; /* A dual address cycle: the address is above 4 GB. */
};

/* -- Host to NIC --------------------------------------------------------------------------------*/

enum forth_fetch_state {
    FORTH_FETCH_IDLE,    /* NoPndOp. */
    FORTH_FETCH_REQUEST, /* ReqBus. */
    FORTH_FETCH_SPLIT,   /* SplitWait. */
    FORTH_FETCH_DATA,
    FORTH_FETCH_REST, /* Disconnected. */
    FORTH_FETCH_NOTIFY,
    FORTH_FETCH_DONE, /* UpdtCnt. */
};

struct forth_fetch {
    uint8_t state;  /* enum forth_fetch_state. */
    uint32_t moved; /* QWords of the request that have come so far. */
    struct forth_request request;
};

/* Zeroed memory is idle. An idle one takes a request. */
void forth_fetch_begin(struct forth_fetch *fetch, const struct forth_request *request);
/* The transfer that it wants of the bus next; `notify_at`: the Local-Notification address. */
struct forth_transfer forth_fetch_next(const struct forth_fetch *fetch, uint64_t notify_at);
/* The ways in which a step ends: a split answered the address phase; the data of the split is
 * ready; `qwords` were moved, which may be fewer than wanted. */
void forth_fetch_split(struct forth_fetch *fetch);
void forth_fetch_ready(struct forth_fetch *fetch);
void forth_fetch_moved(struct forth_fetch *fetch, uint32_t qwords);
/* The world has updated the counters and moved the queue's head on. */
void forth_fetch_end(struct forth_fetch *fetch);

/* The header of the packet that carries a request's data. */
struct forth_header forth_fetch_header(const struct forth_request *request);

/* -- NIC to host --------------------------------------------------------------------------------*/

struct forth_delivery {
    bool busy, notifying;
    uint32_t moved;
    struct forth_header header;
};

void forth_delivery_begin(struct forth_delivery *delivery, const struct forth_header *header);
struct forth_transfer forth_delivery_next(const struct forth_delivery *delivery,
                                          uint64_t notify_at);
/* True: the packet is delivered, and its notification if it asked for one. */
bool forth_delivery_moved(struct forth_delivery *delivery, uint32_t qwords);

/* The word that is written as the `count`th notification: about `qwords`, for or from `node`.
 * The document says only "a value": its form is our choice. */
uint64_t forth_notification(uint16_t qwords, uint8_t node, uint32_t count);

#endif
