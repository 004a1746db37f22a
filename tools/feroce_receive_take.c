/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_receive_take - messages out of completions, and out of memory that was written.
 */
#include <poll.h>
#include <string.h>

#include "base/bytes.h"
#include "tools/feroce_receive.h"

#define COMPLETIONS 32
#define EVENT_MS    200 /* For this time an event may come after the completion. */
#define TAKEN_MAX   64  /* At a time: the sender may be faster than we are. */

static bool is_enough(const struct stream *stream, const struct wishes *wishes)
{
    return wishes->max_messages != 0 &&
           stream->messages + stream->overwritten >= wishes->max_messages;
}

static void take_message(struct stream *stream, const struct wishes *wishes, const uint8_t *payload,
                         uint32_t bytes)
{
    if (is_enough(stream, wishes)) {
        return; /* The front end is told to stop, but has not heard it yet. */
    }
    feroce_checker_take(&stream->checker, payload, bytes);
    stream->messages++;
    stream->bytes += bytes;
    stream->last_arrival_ns = receive_now_ns();
    if (stream->dump != NULL && stream->error[0] == '\0' &&
        fwrite(payload, 1, bytes, stream->dump) != bytes) {
        snprintf(stream->error, ERROR_BYTES, "the dump file cannot be written");
    }
}

static void take_written(struct stream *stream, const struct wishes *wishes, uint32_t bytes)
{
    take_message(stream, wishes, stream->memory + stream->offset, bytes);
    stream->written++;
    stream->offset = (stream->offset + bytes) % wishes->wrap;
}

/* A word of the ring as it is now; the bytes in front of it are read after it. */
static uint32_t word_at(const struct stream *stream, uint64_t offset)
{
    uint32_t word;
    memcpy(&word, stream->memory + offset, sizeof(word));
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return word;
}

/* -- WRITE without immediate data ---------------------------------------------------------------*/

/* Is a message at this offset that has not been taken? One that lies `*ahead` messages behind the
 * expected one has overwritten it: the checker will say how much is missing. */
static bool has_come(const struct stream *stream, const struct wishes *wishes, uint32_t offset,
                     uint32_t *ahead)
{
    const uint32_t words = wishes->buf_size / 4;
    const uint32_t expected = stream->checker.word + words - 1;
    const uint32_t distance = word_at(stream, (uint64_t)offset + wishes->buf_size - 4) - expected;
    *ahead = distance / words;
    return distance < 1u << 30 && distance % words == 0;
}

/* Each start of the front end's generator begins at offset 0, where the expected message then lies:
 * whatever others of that start have come meanwhile to where the one before would go on. */
static bool find_next(struct stream *stream, const struct wishes *wishes, uint32_t *ahead)
{
    uint32_t first_ahead;
    const bool there = has_come(stream, wishes, stream->offset, ahead);
    if ((there && *ahead == 0) || stream->offset == 0 ||
        !has_come(stream, wishes, 0, &first_ahead) || (there && first_ahead != 0)) {
        return there;
    }
    stream->offset = 0;
    *ahead = first_ahead;
    return true;
}

static void take_ring(struct stream *stream, const struct wishes *wishes)
{
    uint32_t ahead;
    for (uint32_t i = 0; !is_enough(stream, wishes) && find_next(stream, wishes, &ahead); i++) {
        if (i == TAKEN_MAX) {
            stream->has_more = true;
            return;
        }
        stream->overwritten += ahead;
        take_written(stream, wishes, wishes->buf_size);
    }
}

/* -- Completions --------------------------------------------------------------------------------*/

/* The length is the front end's word, and where the message begins is what the lengths before it
 * say. */
static bool take_immediate(struct stream *stream, const struct wishes *wishes, uint32_t bytes)
{
    stream->immediates++;
    if (stream->written >= stream->immediates) {
        return true; /* It was seen in the ring before its completion. */
    }
    if (wishes->check == FEROCE_CHECK_COUNTER &&
        word_at(stream, stream->offset) != stream->checker.word &&
        word_at(stream, 0) == stream->checker.word) {
        stream->offset = 0;
    }
    if (bytes > wishes->wrap + wishes->buf_size - stream->offset) {
        snprintf(stream->error, ERROR_BYTES, "a WRITE of %u bytes at offset %u is too long", bytes,
                 stream->offset);
        return false;
    }
    take_written(stream, wishes, bytes);
    return true;
}

/* -- Failures -----------------------------------------------------------------------------------*/

/* Each event belongs to the stream whose queue pair it names. */
static void take_device_events(struct ibv_context *context)
{
    struct ibv_async_event event;
    while (ibv_get_async_event(context, &event) == 0) {
        if (event.event_type == IBV_EVENT_QP_REQ_ERR ||
            event.event_type == IBV_EVENT_QP_ACCESS_ERR || event.event_type == IBV_EVENT_QP_FATAL) {
            struct stream *stream = event.element.qp->qp_context;
            stream->refusal = event.event_type;
        }
        ibv_ack_async_event(&event);
    }
}

/* Receives are flushed where a packet was refused that took none. The event may come after them. */
static void name_refusal(struct stream *stream)
{
    struct ibv_context *context = stream->qp->context;
    struct pollfd wakes = {.fd = context->async_fd, .events = POLLIN};
    for (int i = 0; i < 2 && stream->refusal == IBV_EVENT_COMM_EST; i++) {
        (void)poll(&wakes, 1, i * EVENT_MS);
        take_device_events(context);
    }
    if (stream->refusal == IBV_EVENT_QP_REQ_ERR) {
        snprintf(
            stream->error, ERROR_BYTES,
            "a packet was refused: invalid request; is the front end's --pmtu the path MTU %u?",
            stream->path_mtu);
    } else if (stream->refusal == IBV_EVENT_QP_ACCESS_ERR) {
        snprintf(stream->error, ERROR_BYTES,
                 "a WRITE was refused: remote access error; its R_Key or address is not ours");
    } else if (stream->refusal == IBV_EVENT_QP_FATAL) {
        snprintf(stream->error, ERROR_BYTES, "the queue pair failed: %s",
                 ibv_event_type_str(stream->refusal));
    }
}

static void name_failure(struct stream *stream, const struct wishes *wishes,
                         const struct ibv_wc *completion)
{
    if (completion->status == IBV_WC_WR_FLUSH_ERR) {
        name_refusal(stream);
    } else if (completion->status == IBV_WC_LOC_LEN_ERR && !wishes->write_ring) {
        snprintf(stream->error, ERROR_BYTES,
                 "a receive failed: local length error: a message is longer than --buf-size %u",
                 wishes->buf_size);
    }
    if (stream->error[0] == '\0') {
        snprintf(stream->error, ERROR_BYTES, "a receive failed: %s",
                 ibv_wc_status_str(completion->status));
    }
}

static bool take_completion(struct stream *stream, const struct wishes *wishes,
                            const struct ibv_wc *completion)
{
    if (completion->status != IBV_WC_SUCCESS) {
        if (stream->error[0] == '\0') {
            name_failure(stream, wishes, completion);
        }
        return false;
    }
    if (completion->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        if (!take_immediate(stream, wishes, completion->byte_len)) {
            return false;
        }
    } else {
        const size_t at =
            (size_t)wishes->wrap + wishes->buf_size + completion->wr_id * wishes->buf_size;
        take_message(stream, wishes, stream->memory + at, completion->byte_len);
    }
    if (!stream_post(stream, wishes, completion->wr_id)) {
        snprintf(stream->error, ERROR_BYTES, "a receive cannot be posted again");
        return false;
    }
    return true;
}

bool stream_take(struct stream *stream, const struct wishes *wishes)
{
    struct ibv_wc completions[COMPLETIONS];
    stream->has_more = false;
    if (wishes->write_ring && wishes->check == FEROCE_CHECK_COUNTER) {
        take_ring(stream, wishes);
    }
    for (int taken = 0, count; (count = ibv_poll_cq(stream->cq, COMPLETIONS, completions)) != 0;) {
        if (count < 0) {
            snprintf(stream->error, ERROR_BYTES, "the completion queue cannot be polled");
            return false;
        }
        for (int i = 0; i < count; i++) {
            if (!take_completion(stream, wishes, &completions[i])) {
                return false;
            }
        }
        taken += count;
        if (taken >= TAKEN_MAX) {
            stream->has_more = true;
            break;
        }
    }
    return stream->error[0] == '\0';
}

void stream_wake(struct stream *stream)
{
    struct ibv_cq *cq = NULL;
    void *context = NULL;
    while (ibv_get_cq_event(stream->channel, &cq, &context) == 0) {
        ibv_ack_cq_events(cq, 1);
        (void)ibv_req_notify_cq(cq, 0); /* Before the queue is polled: nothing is missed. */
    }
}
