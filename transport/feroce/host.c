/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/feroce/host.h"

#define ATTEMPTS      2
#define ATTEMPT_NS    UINT64_C(2000000000)
#define HASTY_NS      UINT64_C(500000000)
#define ANSWER_AGE_NS UINT64_C(100000000) /* Before an OPEN is answered again. */
#define STRANGERS     8                   /* In an attempt: they make it leave again. */
#define NO_STREAM     FEROCE_STREAMS_MAX

const char *feroce_host_reason_name(enum feroce_host_reason reason)
{
    static const char *const names[FEROCE_HOST_REASONS] = {
        [FEROCE_HOST_NO_REASON] = "as asked",
        [FEROCE_HOST_NO_QP] = "the board says NO_QP",
        [FEROCE_HOST_ERROR] = "the board says ERROR",
        [FEROCE_HOST_NAK] = "the board says NAK",
        [FEROCE_HOST_LENGTH] = "the board sent a message that is not 64 octets",
        [FEROCE_HOST_WRONG] = "the board's replies do not fit the request",
        [FEROCE_HOST_SILENT] = "no reply",
    };
    CHECK(reason < FEROCE_HOST_REASONS);
    return names[reason];
}

const char *feroce_host_arrival_name(enum feroce_host_arrival arrival)
{
    static const char *const names[FEROCE_HOST_ARRIVALS] = {
        [FEROCE_HOST_TAKEN] = "cm_taken",
        [FEROCE_HOST_NOT_64] = "cm_wrong_length",
        [FEROCE_HOST_UNKNOWN] = "cm_unknown_request",
        [FEROCE_HOST_FULL] = "cm_no_idle_stream",
        [FEROCE_HOST_REPEATED] = "cm_open_repeated",
        [FEROCE_HOST_TOO_SOON] = "cm_open_too_soon",
        [FEROCE_HOST_NOT_OURS] = "cm_close_of_unknown_qpn",
        [FEROCE_HOST_NOT_THEIRS] = "cm_close_by_another_qpn",
        [FEROCE_HOST_ENDING] = "cm_close_while_closing",
        [FEROCE_HOST_MISFIT] = "cm_wrong_reply",
        [FEROCE_HOST_STRANGER] = "cm_reply_from_elsewhere",
        [FEROCE_HOST_UNASKED] = "cm_reply_to_nothing",
        [FEROCE_HOST_LOST] = "cm_lost",
    };
    CHECK(arrival < FEROCE_HOST_ARRIVALS);
    return names[arrival];
}

void feroce_host_init(struct feroce_host *host, const struct feroce_host_config *config)
{
    *host = (struct feroce_host){.config = *config};
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        host->streams[i].deadline = INSTANT_NEVER;
    }
}

static bool is_requesting(const struct feroce_stream *stream)
{
    return stream->state == FEROCE_STREAM_OPENING || stream->state == FEROCE_STREAM_CLOSING;
}

/* The invariants between two calls. */
static void feroce_host_check(const struct feroce_host *host)
{
    uint32_t opening = 0;
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        const struct feroce_stream *stream = &host->streams[i];
        opening += stream->state == FEROCE_STREAM_OPENING;
        CHECK(is_requesting(stream) || !stream->to_send);
        CHECK(is_requesting(stream) || stream->deadline.ns == INSTANT_NEVER.ns);
        CHECK(!stream->to_send || stream->deadline.ns == INSTANT_NEVER.ns);
    }
    CHECK(opening <= 1);
    CHECK(host->answer_count <= FEROCE_ANSWERS_MAX);
    CHECK(host->event_count <= FEROCE_HOST_EVENTS_MAX);
}

/* -- Events and states --------------------------------------------------------------------------*/

static void push_event(struct feroce_host *host, struct feroce_host_event event)
{
    CHECK(host->event_count < FEROCE_HOST_EVENTS_MAX);
    host->events[(host->first_event + host->event_count++) % FEROCE_HOST_EVENTS_MAX] = event;
}

bool feroce_host_next_event(struct feroce_host *host, struct feroce_host_event *event)
{
    if (host->event_count == 0) {
        return false;
    }
    *event = host->events[host->first_event];
    host->first_event = (host->first_event + 1) % FEROCE_HOST_EVENTS_MAX;
    host->event_count--;
    return true;
}

static uint32_t index_of(const struct feroce_host *host, const struct feroce_stream *stream)
{
    return (uint32_t)(stream - host->streams);
}

static void enter(struct feroce_stream *stream, enum feroce_stream_state state)
{
    stream->state = state;
    stream->to_send = false;
    stream->deadline = INSTANT_NEVER;
}

/* One OPEN at a time, in the order of the streams. */
static void start_next_open(struct feroce_host *host)
{
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        if (host->streams[i].state == FEROCE_STREAM_OPENING) {
            return;
        }
    }
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        struct feroce_stream *stream = &host->streams[(host->next_open + i) % FEROCE_STREAMS_MAX];
        if (stream->state == FEROCE_STREAM_QUEUED) {
            enter(stream, FEROCE_STREAM_OPENING);
            stream->to_send = true;
            host->next_open = (index_of(host, stream) + 1) % FEROCE_STREAMS_MAX;
            return;
        }
    }
}

static void end(struct feroce_host *host, struct feroce_stream *stream,
                enum feroce_host_event_kind kind, enum feroce_host_reason reason)
{
    enter(stream, FEROCE_STREAM_UNUSED);
    push_event(host, (struct feroce_host_event){
                         .kind = kind, .reason = reason, .index = index_of(host, stream)});
    start_next_open(host);
}

/* -- Wishes of the world ------------------------------------------------------------------------*/

static struct feroce_stream *unused_stream(struct feroce_host *host, uint32_t index,
                                           const struct feroce_side *local)
{
    CHECK(index < FEROCE_STREAMS_MAX);
    struct feroce_stream *stream = &host->streams[index];
    CHECK(stream->state == FEROCE_STREAM_UNUSED);
    *stream = (struct feroce_stream){.local = *local, .deadline = INSTANT_NEVER};
    stream->local.psn = 0; /* The board's first PSN would be another one. */
    stream->local.ip = host->config.ip;
    return stream;
}

void feroce_host_offer(struct feroce_host *host, uint32_t index, const struct feroce_side *local)
{
    unused_stream(host, index, local)->state = FEROCE_STREAM_IDLE;
}

void feroce_host_open(struct feroce_host *host, uint32_t index, const struct feroce_side *local,
                      uint32_t ip, uint16_t port)
{
    struct feroce_stream *stream = unused_stream(host, index, local);
    stream->state = FEROCE_STREAM_QUEUED;
    stream->peer_ip = ip;
    stream->peer_port = port;
    stream->attempts = ATTEMPTS - 1;
    stream->attempt_ns = ATTEMPT_NS;
    start_next_open(host);
    INVARIANTS(feroce_host_check(host));
}

bool feroce_host_close(struct feroce_host *host, uint32_t index, bool in_haste)
{
    CHECK(index < FEROCE_STREAMS_MAX);
    struct feroce_stream *stream = &host->streams[index];
    if (stream->state != FEROCE_STREAM_OPEN) {
        CHECK(stream->state == FEROCE_STREAM_IDLE || stream->state == FEROCE_STREAM_QUEUED ||
              stream->state == FEROCE_STREAM_OPENING || stream->state == FEROCE_STREAM_UNUSED);
        enter(stream, FEROCE_STREAM_UNUSED);
        start_next_open(host);
        return false;
    }
    enter(stream, FEROCE_STREAM_CLOSING);
    stream->to_send = true;
    stream->was_sent = false;
    stream->attempts = in_haste ? 0 : ATTEMPTS - 1;
    stream->attempt_ns = in_haste ? HASTY_NS : ATTEMPT_NS;
    INVARIANTS(feroce_host_check(host));
    return true;
}

/* -- Answers ------------------------------------------------------------------------------------*/

/* There is room: the caller has looked. The request's halves, swapped. */
static void answer(struct feroce_host *host, const struct feroce_cm *asked, uint32_t ip,
                   enum feroce_ack ack)
{
    CHECK(host->answer_count < FEROCE_ANSWERS_MAX);
    struct feroce_answer *out =
        &host->answers[(host->first_answer + host->answer_count++) % FEROCE_ANSWERS_MAX];
    *out = (struct feroce_answer){
        .message = {.request = asked->request,
                    .ack = (uint8_t)ack,
                    .info_valid = true,
                    .ack_valid = true,
                    .local = asked->remote,
                    .remote = asked->local,
                    .listening_port = host->config.port},
        .ip = ip,
        .port = asked->listening_port,
    };
    out->message.local.ip = host->config.ip;
}

/* The answer to a request of the stream's board. If too many wait, this one is lost like a
 * datagram: the board asks again. */
static void answer_stream(struct feroce_host *host, const struct feroce_stream *stream,
                          enum feroce_request request, enum feroce_ack ack)
{
    const struct feroce_cm asked = {.request = (uint8_t)request,
                                    .local = stream->remote,
                                    .remote = stream->local,
                                    .listening_port = stream->peer_port};
    if (host->answer_count == FEROCE_ANSWERS_MAX) {
        host->arrivals[FEROCE_HOST_LOST]++;
        return;
    }
    answer(host, &asked, stream->peer_ip, ack);
}

void feroce_host_ready(struct feroce_host *host, uint32_t index, struct instant now)
{
    CHECK(index < FEROCE_STREAMS_MAX);
    struct feroce_stream *stream = &host->streams[index];
    CHECK(stream->state == FEROCE_STREAM_ACCEPTING);
    enter(stream, FEROCE_STREAM_OPEN);
    stream->answered = now;
    answer_stream(host, stream, FEROCE_OPEN_QP, FEROCE_ACK);
}

void feroce_host_refuse(struct feroce_host *host, uint32_t index)
{
    CHECK(index < FEROCE_STREAMS_MAX);
    struct feroce_stream *stream = &host->streams[index];
    CHECK(stream->state == FEROCE_STREAM_ACCEPTING);
    enter(stream, FEROCE_STREAM_UNUSED);
    answer_stream(host, stream, FEROCE_OPEN_QP, FEROCE_ACK_ERROR);
}

void feroce_host_stopped(struct feroce_host *host, uint32_t index)
{
    CHECK(index < FEROCE_STREAMS_MAX);
    struct feroce_stream *stream = &host->streams[index];
    CHECK(stream->state == FEROCE_STREAM_LEAVING);
    enter(stream, FEROCE_STREAM_UNUSED);
    answer_stream(host, stream, FEROCE_CLOSE_QP, FEROCE_ACK);
}

/* -- Requests of boards -------------------------------------------------------------------------*/

/* The stream that this board's queue pair has opened already, else an idle one. */
static uint32_t find_for_open(const struct feroce_host *host, const struct feroce_side *board)
{
    uint32_t idle = NO_STREAM;
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        const struct feroce_stream *stream = &host->streams[i];
        const bool is_taken =
            stream->state == FEROCE_STREAM_ACCEPTING || stream->state == FEROCE_STREAM_OPEN;
        if (is_taken && stream->remote.qpn == board->qpn && stream->remote.ip == board->ip) {
            return i;
        }
        idle = idle == NO_STREAM && stream->state == FEROCE_STREAM_IDLE ? i : idle;
    }
    return idle;
}

static enum feroce_host_arrival open_again(struct feroce_host *host, struct feroce_stream *stream,
                                           const struct feroce_cm *asked, uint32_t from_ip,
                                           struct instant now)
{
    if (stream->state == FEROCE_STREAM_ACCEPTING ||
        !instant_reached(now, instant_after(stream->answered, ANSWER_AGE_NS))) {
        return FEROCE_HOST_TOO_SOON;
    }
    stream->answered = now;
    stream->peer_ip = from_ip;
    stream->peer_port = asked->listening_port;
    answer_stream(host, stream, FEROCE_OPEN_QP, FEROCE_ACK);
    return FEROCE_HOST_REPEATED;
}

static enum feroce_host_arrival take_open(struct feroce_host *host, const struct feroce_cm *asked,
                                          uint32_t from_ip, struct instant now)
{
    const uint32_t index = find_for_open(host, &asked->local);
    if (index == NO_STREAM) {
        answer(host, asked, from_ip, FEROCE_ACK_NO_QP);
        return FEROCE_HOST_FULL;
    }
    struct feroce_stream *stream = &host->streams[index];
    if (stream->state != FEROCE_STREAM_IDLE) {
        return open_again(host, stream, asked, from_ip, now);
    }
    enter(stream, FEROCE_STREAM_ACCEPTING);
    stream->remote = asked->local;
    stream->peer_ip = from_ip;
    stream->peer_port = asked->listening_port;
    push_event(host, (struct feroce_host_event){
                         .kind = FEROCE_HOST_ACCEPT, .index = index, .remote = asked->local});
    return FEROCE_HOST_TAKEN;
}

/* The stream that has this queue pair and is open, or closes. */
static uint32_t find_for_close(const struct feroce_host *host, uint32_t qpn)
{
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        const enum feroce_stream_state state = host->streams[i].state;
        if (host->streams[i].local.qpn == qpn &&
            (state == FEROCE_STREAM_OPEN || state == FEROCE_STREAM_LEAVING ||
             state == FEROCE_STREAM_CLOSING)) {
            return i;
        }
    }
    return NO_STREAM;
}

static enum feroce_host_arrival take_close(struct feroce_host *host, const struct feroce_cm *asked,
                                           uint32_t from_ip)
{
    const uint32_t index = find_for_close(host, asked->remote.qpn);
    if (index == NO_STREAM) {
        answer(host, asked, from_ip, FEROCE_ACK_NO_QP);
        return FEROCE_HOST_NOT_OURS;
    }
    struct feroce_stream *stream = &host->streams[index];
    if (stream->remote.qpn != asked->local.qpn) {
        answer(host, asked, from_ip, FEROCE_ACK_NAK);
        return FEROCE_HOST_NOT_THEIRS;
    }
    if (stream->state != FEROCE_STREAM_OPEN) {
        return FEROCE_HOST_ENDING;
    }
    enter(stream, FEROCE_STREAM_LEAVING);
    stream->peer_ip = from_ip;
    stream->peer_port = asked->listening_port;
    push_event(host, (struct feroce_host_event){.kind = FEROCE_HOST_PEER_CLOSED, .index = index});
    return FEROCE_HOST_TAKEN;
}

/* -- Replies of boards --------------------------------------------------------------------------*/

static struct feroce_stream *opening_stream(struct feroce_host *host)
{
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        if (host->streams[i].state == FEROCE_STREAM_OPENING) {
            return &host->streams[i];
        }
    }
    return NULL;
}

/* An attempt has failed. */
static void try_again(struct feroce_host *host, struct feroce_stream *stream,
                      enum feroce_host_reason reason)
{
    if (stream->attempts == 0) {
        end(host, stream, FEROCE_HOST_GAVE_UP, reason);
        return;
    }
    stream->attempts--;
    stream->strangers = 0;
    stream->to_send = true;
    stream->deadline = INSTANT_NEVER;
}

/* Is it the queue pair of another stream? */
static bool is_others(const struct feroce_host *host, const struct feroce_stream *stream,
                      uint32_t qpn)
{
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        const struct feroce_stream *other = &host->streams[i];
        if (other != stream && other->state != FEROCE_STREAM_UNUSED && other->local.qpn == qpn) {
            return true;
        }
    }
    return false;
}

static enum feroce_host_arrival take_opened(struct feroce_host *host, struct feroce_stream *stream,
                                            const struct feroce_cm *reply)
{
    const bool is_open = reply->request == FEROCE_OPEN_QP;
    if (is_open && (reply->ack == FEROCE_ACK_NO_QP || reply->ack == FEROCE_ACK_ERROR)) {
        /* The board may have left the rest of an error as it was in its previous reply. */
        end(host, stream, FEROCE_HOST_REFUSED,
            reply->ack == FEROCE_ACK_NO_QP ? FEROCE_HOST_NO_QP : FEROCE_HOST_ERROR);
        return FEROCE_HOST_TAKEN;
    }
    if (is_open && is_others(host, stream, reply->remote.qpn)) {
        return FEROCE_HOST_UNASKED; /* It came once more, or late. */
    }
    if (!is_open || reply->ack != FEROCE_ACK || reply->remote.qpn != stream->local.qpn ||
        reply->remote.ip != stream->local.ip) {
        try_again(host, stream, FEROCE_HOST_WRONG);
        return FEROCE_HOST_MISFIT;
    }
    enter(stream, FEROCE_STREAM_OPEN);
    stream->remote = reply->local;
    push_event(host, (struct feroce_host_event){.kind = FEROCE_HOST_CONNECTED,
                                                .index = index_of(host, stream),
                                                .remote = reply->local});
    start_next_open(host);
    return FEROCE_HOST_TAKEN;
}

/* Is it the answer to the CLOSE of a stream? */
static struct feroce_stream *closing_stream(struct feroce_host *host, const struct feroce_cm *reply,
                                            uint32_t from_ip)
{
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        struct feroce_stream *stream = &host->streams[i];
        if (stream->state == FEROCE_STREAM_CLOSING && stream->was_sent &&
            reply->request == FEROCE_CLOSE_QP && reply->remote.qpn == stream->local.qpn &&
            stream->peer_ip == from_ip) {
            return stream;
        }
    }
    return NULL;
}

static enum feroce_host_arrival take_closed(struct feroce_host *host, struct feroce_stream *stream,
                                            const struct feroce_cm *reply)
{
    switch (reply->ack) {
    case FEROCE_ACK:
    case FEROCE_ACK_NO_QP:
        end(host, stream, FEROCE_HOST_CLOSED, FEROCE_HOST_NO_REASON);
        return FEROCE_HOST_TAKEN;
    case FEROCE_ACK_NAK:
        end(host, stream, FEROCE_HOST_CLOSED, FEROCE_HOST_NAK);
        return FEROCE_HOST_TAKEN;
    case FEROCE_ACK_ERROR:
        end(host, stream, FEROCE_HOST_CLOSED, FEROCE_HOST_ERROR);
        return FEROCE_HOST_TAKEN;
    default: try_again(host, stream, FEROCE_HOST_WRONG); return FEROCE_HOST_MISFIT;
    }
}

static enum feroce_host_arrival take_reply(struct feroce_host *host, const struct feroce_cm *reply,
                                           uint32_t from_ip)
{
    struct feroce_stream *stream = closing_stream(host, reply, from_ip);
    if (stream != NULL) {
        return take_closed(host, stream, reply);
    }
    stream = opening_stream(host);
    if (stream == NULL || !stream->was_sent) {
        return FEROCE_HOST_UNASKED;
    }
    if (stream->peer_ip == from_ip) {
        return take_opened(host, stream, reply);
    }
    if (stream->strangers < STRANGERS) {
        stream->strangers++;
        stream->to_send = true;
        stream->deadline = INSTANT_NEVER;
    }
    return FEROCE_HOST_STRANGER;
}

/* -- Datagrams and time -------------------------------------------------------------------------*/

static enum feroce_host_arrival judge_length(struct feroce_host *host, uint32_t from_ip)
{
    struct feroce_stream *stream = opening_stream(host);
    if (stream != NULL && stream->was_sent && stream->peer_ip == from_ip) {
        end(host, stream, FEROCE_HOST_REFUSED, FEROCE_HOST_LENGTH);
    }
    return FEROCE_HOST_NOT_64;
}

static enum feroce_host_arrival judge(struct feroce_host *host, const uint8_t *bytes, size_t count,
                                      uint32_t from_ip, uint16_t from_port, struct instant now)
{
    struct feroce_cm message;
    if (!feroce_cm_decode(host->config.cm_version, bytes, count, &message)) {
        return judge_length(host, from_ip);
    }
    if (host->config.cm_version == FEROCE_CM_3 && feroce_cm_suspect(bytes, from_port)) {
        host->cm_version_suspect++;
    }
    if (message.ack_valid) {
        return take_reply(host, &message, from_ip);
    }
    if (message.request != FEROCE_OPEN_QP && message.request != FEROCE_CLOSE_QP) {
        return FEROCE_HOST_UNKNOWN;
    }
    if (host->answer_count == FEROCE_ANSWERS_MAX) {
        return FEROCE_HOST_LOST;
    }
    return message.request == FEROCE_OPEN_QP ? take_open(host, &message, from_ip, now)
                                             : take_close(host, &message, from_ip);
}

enum feroce_host_arrival feroce_host_on_cm(struct feroce_host *host, const uint8_t *bytes,
                                           size_t count, uint32_t from_ip, uint16_t from_port,
                                           struct instant now)
{
    INVARIANTS(feroce_host_check(host));
    const enum feroce_host_arrival arrival = judge(host, bytes, count, from_ip, from_port, now);
    host->arrivals[arrival]++;
    INVARIANTS(feroce_host_check(host));
    return arrival;
}

static void make_request(const struct feroce_host *host, const struct feroce_stream *stream,
                         struct feroce_cm *out)
{
    const bool is_open = stream->state == FEROCE_STREAM_OPENING;
    *out = (struct feroce_cm){
        .request = is_open ? FEROCE_OPEN_QP : FEROCE_CLOSE_QP,
        .info_valid = true,
        .local = stream->local,
        .listening_port = host->config.port,
    };
    if (!is_open) {
        out->remote = (struct feroce_side){.qpn = stream->remote.qpn, .ip = stream->remote.ip};
    }
}

bool feroce_host_next(struct feroce_host *host, struct instant now, uint8_t out[FEROCE_CM_BYTES],
                      uint32_t *ip, uint16_t *port)
{
    if (host->answer_count > 0) {
        const struct feroce_answer *next = &host->answers[host->first_answer];
        feroce_cm_encode(host->config.cm_version, &next->message, out);
        *ip = next->ip;
        *port = next->port;
        host->first_answer = (host->first_answer + 1) % FEROCE_ANSWERS_MAX;
        host->answer_count--;
        return true;
    }
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        struct feroce_stream *stream = &host->streams[i];
        if (!stream->to_send) {
            continue;
        }
        struct feroce_cm message;
        make_request(host, stream, &message);
        feroce_cm_encode(host->config.cm_version, &message, out);
        *ip = stream->peer_ip;
        *port = stream->peer_port;
        stream->to_send = false;
        stream->was_sent = true;
        stream->deadline = instant_after(now, stream->attempt_ns);
        INVARIANTS(feroce_host_check(host));
        return true;
    }
    return false;
}

struct instant feroce_host_deadline(const struct feroce_host *host)
{
    struct instant earliest = INSTANT_NEVER;
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        const struct instant deadline = host->streams[i].deadline;
        earliest = instant_before(deadline, earliest) ? deadline : earliest;
    }
    return earliest;
}

void feroce_host_on_time(struct feroce_host *host, struct instant now)
{
    INVARIANTS(feroce_host_check(host));
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        struct feroce_stream *stream = &host->streams[i];
        if (is_requesting(stream) && !stream->to_send && instant_reached(now, stream->deadline)) {
            try_again(host, stream, FEROCE_HOST_SILENT);
        }
    }
    INVARIANTS(feroce_host_check(host));
}
