/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/forth/initiator.h"

#define QWORD_BYTES 8

static struct forth_transfer transfer(enum forth_step step, uint64_t address, uint32_t qwords)
{
    return (struct forth_transfer){
        .step = step, .address = address, .qwords = qwords, .dual_address = address >> 32 != 0};
}

/* -- Host to NIC --------------------------------------------------------------------------------*/

void forth_fetch_begin(struct forth_fetch *fetch, const struct forth_request *request)
{
    CHECK(fetch->state == FORTH_FETCH_IDLE);
    *fetch = (struct forth_fetch){.state = FORTH_FETCH_REQUEST, .request = *request};
}

struct forth_transfer forth_fetch_next(const struct forth_fetch *fetch, uint64_t notify_at)
{
    const uint64_t address = fetch->request.source + (uint64_t)fetch->moved * QWORD_BYTES;
    const uint32_t left = fetch->request.words - fetch->moved;
    switch ((enum forth_fetch_state)fetch->state) {
    case FORTH_FETCH_REQUEST: return transfer(FORTH_STEP_ADDRESS, address, left);
    case FORTH_FETCH_DATA: return transfer(FORTH_STEP_DATA, address, left);
    case FORTH_FETCH_REST: return transfer(FORTH_STEP_REST, address, left);
    case FORTH_FETCH_NOTIFY: return transfer(FORTH_STEP_NOTIFY, notify_at, 1);
    case FORTH_FETCH_IDLE:
    case FORTH_FETCH_SPLIT:
    case FORTH_FETCH_DONE: break;
    }
    return transfer(FORTH_STEP_NONE, 0, 0);
}

void forth_fetch_split(struct forth_fetch *fetch)
{
    CHECK(fetch->state == FORTH_FETCH_REQUEST);
    fetch->state = FORTH_FETCH_SPLIT;
}

void forth_fetch_ready(struct forth_fetch *fetch)
{
    CHECK(fetch->state == FORTH_FETCH_SPLIT);
    fetch->state = FORTH_FETCH_DATA;
}

void forth_fetch_moved(struct forth_fetch *fetch, uint32_t qwords)
{
    if (fetch->state == FORTH_FETCH_NOTIFY) {
        CHECK(qwords == 1);
        fetch->state = FORTH_FETCH_DONE;
        return;
    }
    CHECK(fetch->state == FORTH_FETCH_DATA || fetch->state == FORTH_FETCH_REST);
    CHECK(qwords <= fetch->request.words - fetch->moved);
    fetch->moved += qwords;
    if (fetch->moved < fetch->request.words) {
        fetch->state = FORTH_FETCH_REST;
    } else {
        fetch->state =
            fetch->request.flags.local_notification ? FORTH_FETCH_NOTIFY : FORTH_FETCH_DONE;
    }
}

void forth_fetch_end(struct forth_fetch *fetch)
{
    CHECK(fetch->state == FORTH_FETCH_DONE);
    fetch->state = FORTH_FETCH_IDLE;
}

struct forth_header forth_fetch_header(const struct forth_request *request)
{
    return (struct forth_header){.node = request->node,
                                 .words = request->words,
                                 .destination = request->destination,
                                 .flags = request->flags};
}

/* -- NIC to host --------------------------------------------------------------------------------*/

void forth_delivery_begin(struct forth_delivery *delivery, const struct forth_header *header)
{
    CHECK(!delivery->busy);
    *delivery = (struct forth_delivery){.busy = true, .header = *header};
}

struct forth_transfer forth_delivery_next(const struct forth_delivery *delivery, uint64_t notify_at)
{
    if (!delivery->busy) {
        return transfer(FORTH_STEP_NONE, 0, 0);
    }
    if (delivery->notifying) {
        return transfer(FORTH_STEP_NOTIFY, notify_at, 1);
    }
    return transfer(FORTH_STEP_WRITE,
                    delivery->header.destination + (uint64_t)delivery->moved * QWORD_BYTES,
                    delivery->header.words - delivery->moved);
}

bool forth_delivery_moved(struct forth_delivery *delivery, uint32_t qwords)
{
    CHECK(delivery->busy);
    if (!delivery->notifying) {
        CHECK(qwords <= (uint32_t)delivery->header.words - delivery->moved);
        delivery->moved += qwords;
        if (delivery->moved < delivery->header.words) {
            return false;
        }
        delivery->notifying = delivery->header.flags.remote_notification;
        delivery->busy = delivery->notifying;
        return !delivery->busy;
    }
    delivery->busy = false;
    return true;
}

uint64_t forth_notification(uint16_t qwords, uint8_t node, uint32_t count)
{
    return (uint64_t)qwords << 48 | (uint64_t)node << 40 | count;
}
