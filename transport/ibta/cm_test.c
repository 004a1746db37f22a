/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The connection manager does in every state what IBTA 12.9 says, whatever message comes
 *         and whatever its program wishes, and keeps its tables right meanwhile.
 * Method  Tables say what each message and each wish makes of each state; a connection is brought
 *         into the state by a real exchange with a second manager, then hit. After each step all
 *         lists are walked and compared with what the state demands. Single cases add what takes
 *         time or more than one message: losses, patience, exhaustion, IDs used anew.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "transport/common/timing.h"
#include "transport/ibta/cm.h"

#define CONNECTIONS 4
#define SERVICE     UINT64_C(0x01061234)
#define MS          UINT64_C(1000000)
#define HOUR        (3600 * 1000 * MS)
#define EVENT_COUNT (CM_EVENT_RELEASED + 1)

struct side {
    struct cm cm;
    uint8_t gid[16];
    struct cm_connection connections[CONNECTIONS];
    bool used[CONNECTIONS]; /* Not to be given as a spare. */
    struct cm_event event;  /* The last one. */
    uint32_t told[EVENT_COUNT];
};

struct pair {
    struct side sides[2];
    struct instant now;
};

/* -- Invariants after each step -----------------------------------------------------------------*/

static uint32_t walk(const struct list *head)
{
    uint32_t count = 0;
    for (const struct list *node = head->next; node != head; node = node->next) {
        assert_ptr_equal(node->next->previous, node);
        assert_ptr_equal(node->previous->next, node);
        assert_true(++count < 1000);
    }
    return count;
}

static bool waits(uint8_t state)
{
    return state == CM_STATE_REQ_SENT || state == CM_STATE_REP_SENT ||
           state == CM_STATE_DREQ_SENT || state == CM_STATE_TIMEWAIT ||
           state == CM_STATE_SIDR_REQ_SENT;
}

static bool in_bucket(const struct list *head, const struct list *wanted)
{
    for (const struct list *node = head->next; node != head; node = node->next) {
        if (node == wanted) {
            return true;
        }
    }
    return false;
}

static void check_connection(const struct cm *cm, const struct cm_connection *connection)
{
    const bool idle = connection->state == CM_STATE_IDLE;
    assert_int_equal(list_empty(&connection->by_local), idle);
    if (!idle) {
        assert_true(
            in_bucket(&cm->local[connection->local_id % CM_BUCKETS], &connection->by_local));
    }
    /* Only who was asked is found by the peer's ID. */
    assert_true(list_empty(&connection->by_remote) || (!idle && !connection->asked));
    const bool repeats_rtu = connection->state == CM_STATE_ESTABLISHED && connection->asked;
    assert_true(repeats_rtu || !list_empty(&connection->timed) == waits(connection->state));
    assert_int_equal(connection->deadline.ns != UINT64_MAX, !list_empty(&connection->timed));
    assert_false(instant_before(connection->deadline, cm->deadline));
    assert_true(!connection->abandoned || connection->state == CM_STATE_DREQ_SENT ||
                connection->state == CM_STATE_TIMEWAIT);
}

static void check_side(const struct side *side)
{
    uint32_t local = 0, remote = 0, active = 0, asked_us = 0, timed = 0, out = 0;
    uint32_t connected = 0, with_peer = 0;
    for (uint32_t i = 0; i < CM_BUCKETS; i++) {
        local += walk(&side->cm.local[i]);
        remote += walk(&side->cm.remote[i]);
        connected += walk(&side->cm.connected[i]);
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        const struct cm_connection *connection = &side->connections[i];
        check_connection(&side->cm, connection);
        active += connection->state != CM_STATE_IDLE;
        asked_us += !list_empty(&connection->by_remote);
        with_peer += !list_empty(&connection->by_qpn);
        timed += !list_empty(&connection->timed);
        out += !list_empty(&connection->out);
    }
    assert_int_equal(local, active);
    assert_int_equal(remote, asked_us);
    assert_int_equal(connected, with_peer);
    assert_int_equal(walk(&side->cm.timed), timed);
    assert_int_equal(walk(&side->cm.outbox), out);
    assert_true(side->cm.stray_tail - side->cm.stray_head <= CM_STRAYS_MAX);
}

/* -- A pair -------------------------------------------------------------------------------------*/

static struct pair *pair_make(void)
{
    struct pair *pair = calloc(1, sizeof(*pair));
    pair->now.ns = 1000000;
    for (int s = 0; s < 2; s++) {
        struct side *side = &pair->sides[s];
        cm_init(&side->cm, (uint64_t)s + 1, (uint8_t)s, 0x1122334455667700u + (uint64_t)s);
        side->gid[10] = side->gid[11] = 0xff;
        side->gid[12] = 127;
        side->gid[15] = (uint8_t)(s + 1);
        for (int i = 0; i < CONNECTIONS; i++) {
            cm_connection_init(&side->connections[i]);
        }
    }
    return pair;
}

static struct cm_connection *spare_of(struct side *side)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        if (!side->used[i]) {
            return &side->connections[i];
        }
    }
    return NULL;
}

static struct cm_connection *use(struct side *side)
{
    struct cm_connection *connection = spare_of(side);
    assert_non_null(connection);
    side->used[connection - side->connections] = true;
    return connection;
}

static enum cm_event_kind note(struct side *side)
{
    side->told[side->event.kind]++;
    if (side->event.kind == CM_EVENT_REQUESTED || side->event.kind == CM_EVENT_SIDR_REQUESTED) {
        assert_ptr_equal(use(side), side->event.connection);
    }
    if (side->event.kind == CM_EVENT_RELEASED) {
        assert_false(side->event.connection->abandoned);
        assert_int_equal(side->event.connection->state, CM_STATE_IDLE);
    }
    check_side(side);
    return side->event.kind;
}

/* The MAD as if it came from `from` for `to`. */
static enum cm_event_kind give_between(struct pair *pair, int to, const uint8_t source[16],
                                       const uint8_t destination[16], const uint8_t *bytes)
{
    struct side *side = &pair->sides[to];
    cm_on_message(&side->cm, source, destination, bytes, CM_MAD_BYTES, spare_of(side), pair->now,
                  &side->event);
    return note(side);
}

static enum cm_event_kind give(struct pair *pair, int to, const struct cm_message *message)
{
    uint8_t bytes[CM_MAD_BYTES];
    cm_encode(message, bytes);
    return give_between(pair, to, pair->sides[!to].gid, pair->sides[to].gid, bytes);
}

/* The next message of a side, which is for the other: 0 if there is none. */
static uint16_t next(struct pair *pair, int from, struct cm_mad *mad)
{
    struct cm_message message;
    if (!cm_next_message(&pair->sides[from].cm, mad)) {
        return 0;
    }
    assert_memory_equal(mad->source, pair->sides[from].gid, 16);
    assert_memory_equal(mad->destination, pair->sides[!from].gid, 16);
    assert_int_equal(cm_decode(mad->bytes, CM_MAD_BYTES, &message), CM_GOOD);
    return message.attribute;
}

static void expect_silence(struct pair *pair, int side)
{
    struct cm_mad mad;
    assert_int_equal(next(pair, side, &mad), 0);
}

/* All messages of a side go nowhere: how many. */
static uint32_t take_all(struct pair *pair, int from)
{
    struct cm_mad mad;
    uint32_t count = 0;
    while (next(pair, from, &mad) != 0) {
        cm_note_sent(&pair->sides[from].cm, &mad, pair->now);
        count++;
    }
    return count;
}

static void lose(struct pair *pair, int from, enum cm_attribute attribute)
{
    struct cm_mad mad;
    assert_int_equal(next(pair, from, &mad), attribute);
}

/* The one message of a side reaches the other. */
static enum cm_event_kind deliver(struct pair *pair, int from, enum cm_attribute attribute)
{
    struct cm_mad mad;
    assert_int_equal(next(pair, from, &mad), attribute);
    return give_between(pair, !from, mad.source, mad.destination, mad.bytes);
}

static enum cm_event_kind pass_time(struct pair *pair, int s, uint64_t ns)
{
    struct side *side = &pair->sides[s];
    pair->now = instant_after(pair->now, ns);
    cm_on_time(&side->cm, pair->now, &side->event);
    return note(side);
}

/* To the side's deadline, which there is. */
static enum cm_event_kind wait_for(struct pair *pair, int s)
{
    const struct instant deadline = cm_deadline(&pair->sides[s].cm);
    assert_true(deadline.ns != UINT64_MAX);
    return pass_time(pair, s, deadline.ns > pair->now.ns ? deadline.ns - pair->now.ns : 0);
}

static struct cm_connection *request_with(struct pair *pair, int s, uint32_t qpn)
{
    struct cm_connection *connection = use(&pair->sides[s]);
    struct cm_message req = {
        .req = {.service_id = SERVICE, .qpn = qpn, .starting_psn = 0x111, .path_mtu = 3},
        .private_data = {'r', 'e', 'q'}};
    assert_int_equal(cm_request(&pair->sides[s].cm, connection, pair->sides[s].gid,
                                pair->sides[!s].gid, &req, pair->now),
                     STATUS_OK);
    check_side(&pair->sides[s]);
    return connection;
}

/* Each connection has a queue pair of its own. */
static struct cm_connection *request(struct pair *pair, int s)
{
    const struct side *side = &pair->sides[s];
    return request_with(pair, s, 0x11 + (uint32_t)(spare_of(&pair->sides[s]) - side->connections));
}

static struct cm_connection *sidr_request(struct pair *pair, int s)
{
    struct cm_connection *connection = use(&pair->sides[s]);
    struct cm_message message = {.sidr_req = {.service_id = SERVICE}};
    assert_int_equal(cm_sidr_request(&pair->sides[s].cm, connection, pair->sides[s].gid,
                                     pair->sides[!s].gid, &message, pair->now),
                     STATUS_OK);
    return connection;
}

static enum status reply_with(struct pair *pair, int s, struct cm_connection *connection,
                              uint32_t qpn)
{
    struct cm_message rep = {.rep = {.qpn = qpn, .starting_psn = 0x222},
                             .private_data = {'r', 'e', 'p'}};
    return cm_reply(&pair->sides[s].cm, connection, &rep, pair->now);
}

static enum status reply(struct pair *pair, int s, struct cm_connection *connection)
{
    const struct side *side = &pair->sides[s];
    return reply_with(pair, s, connection, 0x22 + (uint32_t)(connection - side->connections));
}

static enum status confirm(struct pair *pair, int s, struct cm_connection *connection)
{
    struct cm_message rtu = {.private_data = {'r', 't', 'u'}};
    return cm_confirm(&pair->sides[s].cm, connection, &rtu, pair->now);
}

static enum status sidr_reply(struct pair *pair, int s, struct cm_connection *connection)
{
    struct cm_message message = {.sidr_rep = {.qpn = 0x33, .qkey = 0x44}};
    return cm_sidr_reply(&pair->sides[s].cm, connection, &message);
}

/* Both of an exchange: [s] asked, [!s] answered. */
struct ends {
    struct cm_connection *of[2];
};

/* Side `s` asks the other, and all goes well up to and including the RTU's arrival. */
static struct ends establish(struct pair *pair, int s)
{
    struct ends ends;
    ends.of[s] = request(pair, s);
    assert_int_equal(deliver(pair, s, CM_REQ), CM_EVENT_REQUESTED);
    ends.of[!s] = pair->sides[!s].event.connection;
    assert_int_equal(reply(pair, !s, ends.of[!s]), STATUS_OK);
    assert_int_equal(deliver(pair, !s, CM_REP), CM_EVENT_REPLIED);
    assert_int_equal(confirm(pair, s, ends.of[s]), STATUS_OK);
    assert_int_equal(deliver(pair, s, CM_RTU), CM_EVENT_ESTABLISHED);
    return ends;
}

/* Side 0's connection in `state`, with the messages that led there delivered and nothing waiting to
 * be sent. `asked`: side 0 asked. */
static struct ends reach(struct pair *pair, enum cm_state state, bool asked)
{
    struct ends ends = {{NULL, NULL}};
    const int asker = asked ? 0 : 1;
    struct cm *cm = &pair->sides[0].cm;
    if (state >= CM_STATE_SIDR_REQ_SENT) {
        ends.of[asker] = sidr_request(pair, asker);
        if (state == CM_STATE_SIDR_REQ_SENT) {
            assert_int_equal(deliver(pair, 0, CM_SIDR_REQ), CM_EVENT_SIDR_REQUESTED);
            ends.of[1] = pair->sides[1].event.connection;
            return ends;
        }
        assert_int_equal(deliver(pair, 1, CM_SIDR_REQ), CM_EVENT_SIDR_REQUESTED);
        ends.of[0] = pair->sides[0].event.connection;
        if (state == CM_STATE_SIDR_REP_SENT) {
            assert_int_equal(sidr_reply(pair, 0, ends.of[0]), STATUS_OK);
            lose(pair, 0, CM_SIDR_REP);
        }
        return ends;
    }
    if (state < CM_STATE_ESTABLISHED) {
        ends.of[asker] = request(pair, asker);
        assert_int_equal(deliver(pair, asker, CM_REQ), CM_EVENT_REQUESTED);
        ends.of[!asker] = pair->sides[!asker].event.connection;
        if (state == CM_STATE_REP_SENT || state == CM_STATE_REP_RECEIVED) {
            assert_int_equal(reply(pair, !asker, ends.of[!asker]), STATUS_OK);
            assert_int_equal(deliver(pair, !asker, CM_REP), CM_EVENT_REPLIED);
        }
        return ends;
    }
    ends = establish(pair, asker);
    if (state > CM_STATE_ESTABLISHED) {
        assert_int_equal(cm_disconnect(cm, ends.of[0], pair->now), STATUS_OK);
        lose(pair, 0, CM_DREQ);
    }
    if (state == CM_STATE_TIMEWAIT) {
        const struct cm_message drep = {.attribute = CM_DREP,
                                        .transaction_id = ends.of[0]->transaction_id,
                                        .local_id = ends.of[1]->local_id,
                                        .remote_id = ends.of[0]->local_id};
        assert_int_equal(give(pair, 0, &drep), CM_EVENT_DISCONNECTED);
    }
    return ends;
}

struct place {
    enum cm_state state;
    bool asked;
};

/* All there are. */
static const struct place places[] = {
    {CM_STATE_REQ_SENT, true},       {CM_STATE_REP_RECEIVED, true},
    {CM_STATE_ESTABLISHED, true},    {CM_STATE_DREQ_SENT, true},
    {CM_STATE_TIMEWAIT, true},       {CM_STATE_SIDR_REQ_SENT, true},
    {CM_STATE_REQ_RECEIVED, false},  {CM_STATE_REP_SENT, false},
    {CM_STATE_ESTABLISHED, false},   {CM_STATE_DREQ_SENT, false},
    {CM_STATE_TIMEWAIT, false},      {CM_STATE_SIDR_REQ_RECEIVED, false},
    {CM_STATE_SIDR_REP_SENT, false},
};

static const enum cm_attribute attributes[] = {
    CM_REQ, CM_MRA, CM_REJ, CM_REP, CM_RTU, CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP,
};

/* -- Every message in every state ---------------------------------------------------------------*/

struct outcome {
    struct place from;
    enum cm_attribute attribute;
    enum cm_state to;
    enum cm_event_kind event;
    uint16_t answer; /* 0: none. */
};

#define ASKED(state)                                                                               \
    {                                                                                              \
        CM_STATE_##state, true                                                                     \
    }
#define ANSWERED(state)                                                                            \
    {                                                                                              \
        CM_STATE_##state, false                                                                    \
    }

/* The messages that the peer of this very connection may send; every other message changes nothing
 * and is counted. REQ and SIDR_REQ are those that made the connection, once more. */
static const struct outcome outcomes[] = {
    {ASKED(REQ_SENT), CM_REP, CM_STATE_REP_RECEIVED, CM_EVENT_REPLIED, 0},
    {ASKED(REQ_SENT), CM_REJ, CM_STATE_IDLE, CM_EVENT_REJECTED, 0},
    {ASKED(REP_RECEIVED), CM_REP, CM_STATE_REP_RECEIVED, CM_EVENT_NONE, CM_MRA},
    {ASKED(REP_RECEIVED), CM_REJ, CM_STATE_IDLE, CM_EVENT_REJECTED, 0},
    {ASKED(ESTABLISHED), CM_REP, CM_STATE_ESTABLISHED, CM_EVENT_NONE, CM_RTU},
    {ASKED(ESTABLISHED), CM_REJ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, 0},
    {ASKED(ESTABLISHED), CM_DREQ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, CM_DREP},
    {ASKED(DREQ_SENT), CM_REJ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, 0},
    {ASKED(DREQ_SENT), CM_DREQ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, CM_DREP},
    {ASKED(DREQ_SENT), CM_DREP, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, 0},
    {ASKED(TIMEWAIT), CM_DREQ, CM_STATE_TIMEWAIT, CM_EVENT_NONE, CM_DREP},
    {ASKED(SIDR_REQ_SENT), CM_SIDR_REP, CM_STATE_IDLE, CM_EVENT_SIDR_REPLIED, 0},
    {ANSWERED(REQ_RECEIVED), CM_REQ, CM_STATE_REQ_RECEIVED, CM_EVENT_NONE, CM_MRA},
    {ANSWERED(REQ_RECEIVED), CM_REJ, CM_STATE_IDLE, CM_EVENT_REJECTED, 0},
    {ANSWERED(REP_SENT), CM_REQ, CM_STATE_REP_SENT, CM_EVENT_NONE, CM_REP},
    {ANSWERED(REP_SENT), CM_REJ, CM_STATE_IDLE, CM_EVENT_REJECTED, 0},
    {ANSWERED(REP_SENT), CM_RTU, CM_STATE_ESTABLISHED, CM_EVENT_ESTABLISHED, 0},
    {ANSWERED(REP_SENT), CM_DREQ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, CM_DREP},
    {ANSWERED(ESTABLISHED), CM_REJ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, 0},
    {ANSWERED(ESTABLISHED), CM_DREQ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, CM_DREP},
    {ANSWERED(DREQ_SENT), CM_REQ, CM_STATE_DREQ_SENT, CM_EVENT_NONE, CM_REJ},
    {ANSWERED(DREQ_SENT), CM_REJ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, 0},
    {ANSWERED(DREQ_SENT), CM_DREQ, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, CM_DREP},
    {ANSWERED(DREQ_SENT), CM_DREP, CM_STATE_TIMEWAIT, CM_EVENT_DISCONNECTED, 0},
    {ANSWERED(TIMEWAIT), CM_REQ, CM_STATE_TIMEWAIT, CM_EVENT_NONE, CM_REJ},
    {ANSWERED(TIMEWAIT), CM_DREQ, CM_STATE_TIMEWAIT, CM_EVENT_NONE, CM_DREP},
    {ANSWERED(SIDR_REP_SENT), CM_SIDR_REQ, CM_STATE_SIDR_REP_SENT, CM_EVENT_NONE, CM_SIDR_REP},
};

static struct outcome outcome_of(struct place place, enum cm_attribute attribute)
{
    for (size_t i = 0; i < COUNT_OF(outcomes); i++) {
        if (outcomes[i].from.state == place.state && outcomes[i].from.asked == place.asked &&
            outcomes[i].attribute == attribute) {
            return outcomes[i];
        }
    }
    struct outcome outcome = {place, attribute, place.state, CM_EVENT_NONE, 0};
    const bool sidr = place.state >= CM_STATE_SIDR_REQ_SENT;
    /* Somebody who is not the one who asked us, or a space of IDs of its own. */
    if (attribute == CM_REQ && (place.asked || sidr)) {
        outcome.event = CM_EVENT_REQUESTED;
    } else if (attribute == CM_SIDR_REQ && (place.asked || !sidr)) {
        outcome.event = CM_EVENT_SIDR_REQUESTED;
    }
    return outcome;
}

/* As the peer of side 0's connection would say it. */
static struct cm_message message_about(const struct ends *ends, enum cm_attribute attribute)
{
    struct cm_message message = {.attribute = (uint16_t)attribute,
                                 .transaction_id = ends->of[0]->opened_by,
                                 .local_id = ends->of[1]->local_id};
    if (attribute == CM_SIDR_REP) {
        message.local_id = ends->of[0]->local_id;
        return message;
    }
    if (attribute == CM_REQ || attribute == CM_SIDR_REQ) {
        return message;
    }
    message.remote_id = ends->of[0]->local_id;
    if (attribute == CM_DREQ) {
        message.transaction_id = 0xd4e9;
        message.dreq_qpn = ends->of[0]->local_qpn;
    } else if (attribute == CM_DREP) {
        message.transaction_id = ends->of[0]->transaction_id;
    } else if (attribute == CM_REJ) {
        message.rej.reason = CM_REASON_CONSUMER;
    } else if (attribute == CM_MRA) {
        message.mra.about = CM_ABOUT_OTHER;
    }
    return message;
}

static void test_every_message_in_every_state(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(places) * COUNT_OF(attributes); i++) {
        const struct place place = places[i / COUNT_OF(attributes)];
        const enum cm_attribute attribute = attributes[i % COUNT_OF(attributes)];
        struct pair *pair = pair_make();
        const struct ends ends = reach(pair, place.state, place.asked);
        struct cm_connection *connection = ends.of[0];
        assert_int_equal(connection->state, place.state);
        const struct outcome wanted = outcome_of(place, attribute);
        const struct cm_counters before = pair->sides[0].cm.counters;
        const struct cm_message message = message_about(&ends, attribute);
        const enum cm_event_kind event = give(pair, 0, &message);
        const struct cm_counters *after = &pair->sides[0].cm.counters;
        struct cm_mad mad;
        const uint16_t answer = next(pair, 0, &mad);
        if (connection->state != wanted.to || event != wanted.event || answer != wanted.answer) {
            fail_msg("%s in state %u (asked %d): state %u, event %u, answer %x",
                     cm_attribute_name(attribute), place.state, place.asked, connection->state,
                     event, answer);
        }
        expect_silence(pair, 0);
        assert_int_equal(after->unmatched + after->out_of_state,
                         before.unmatched + before.out_of_state + (event == CM_EVENT_NONE));
        assert_int_equal(after->malformed + after->crowded_out, 0);
        free(pair);
    }
}

/* A third party that guesses both communication IDs is nobody: its GID tells. */
static void test_every_message_from_a_stranger(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(places) * COUNT_OF(attributes); i++) {
        const struct place place = places[i / COUNT_OF(attributes)];
        const enum cm_attribute attribute = attributes[i % COUNT_OF(attributes)];
        struct pair *pair = pair_make();
        const struct ends ends = reach(pair, place.state, place.asked);
        const struct cm_message message = message_about(&ends, attribute);
        uint8_t bytes[CM_MAD_BYTES], stranger[16] = {[10] = 0xff, [11] = 0xff, [15] = 99};
        struct cm_mad mad;
        cm_encode(&message, bytes);
        give_between(pair, 0, stranger, pair->sides[0].gid, bytes);
        assert_int_equal(ends.of[0]->state, place.state);
        assert_ptr_not_equal(pair->sides[0].event.connection, ends.of[0]);
        while (cm_next_message(&pair->sides[0].cm, &mad)) {
            assert_memory_equal(mad.destination, stranger, 16);
        }
        free(pair);
    }
}

/* The right GID and our communication ID, but the peer's ID of another of its connections. */
static void test_every_message_from_another_connection_of_the_peer(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(places) * COUNT_OF(attributes); i++) {
        const struct place place = places[i / COUNT_OF(attributes)];
        const enum cm_attribute attribute = attributes[i % COUNT_OF(attributes)];
        if (attribute == CM_REQ || attribute == CM_SIDR_REQ || attribute == CM_SIDR_REP ||
            place.state == CM_STATE_REQ_SENT || place.state == CM_STATE_SIDR_REQ_SENT) {
            continue; /* They do not name it, or it is not known yet. */
        }
        struct pair *pair = pair_make();
        const struct ends ends = reach(pair, place.state, place.asked);
        struct cm_message message = message_about(&ends, attribute);
        message.local_id++;
        assert_int_equal(give(pair, 0, &message), CM_EVENT_NONE);
        assert_int_equal(ends.of[0]->state, place.state);
        free(pair);
    }
}

/* All IDs are right, but not what only the peer knows besides: the transaction of what is answered,
 * or our QPN in a DREQ. It changes nothing and gets no answer, or a stranger that guesses IDs could
 * end connections. */
static void test_every_message_that_is_not_genuine(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(places) * COUNT_OF(attributes); i++) {
        const struct place place = places[i / COUNT_OF(attributes)];
        const enum cm_attribute attribute = attributes[i % COUNT_OF(attributes)];
        if (attribute == CM_REQ || attribute == CM_SIDR_REQ) {
            continue; /* They begin something. */
        }
        struct pair *pair = pair_make();
        const struct ends ends = reach(pair, place.state, place.asked);
        struct cm_message message = message_about(&ends, attribute);
        if (attribute == CM_DREQ) {
            message.dreq_qpn++;
        } else {
            message.transaction_id += UINT64_C(1) << 32;
        }
        const struct instant deadline = ends.of[0]->deadline;
        assert_int_equal(give(pair, 0, &message), CM_EVENT_NONE);
        if (ends.of[0]->state != place.state || ends.of[0]->deadline.ns != deadline.ns ||
            pair->sides[0].cm.counters.unmatched != 1) {
            fail_msg("%s in state %u (asked %d): state %u", cm_attribute_name(attribute),
                     place.state, place.asked, ends.of[0]->state);
        }
        expect_silence(pair, 0);
        free(pair);
    }
}

/* Our QPN on the wire has 24 bits, whatever a program puts into the field. */
static void test_a_qpn_of_more_than_24_bits(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_connection *a = request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
    struct cm_connection *b = pair->sides[1].event.connection;
    struct cm_message rep = {.rep = {.qpn = 0xff000022}};
    assert_int_equal(cm_reply(&pair->sides[1].cm, b, &rep, pair->now), STATUS_OK);
    assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_REPLIED);
    assert_int_equal(confirm(pair, 0, a), STATUS_OK);
    assert_int_equal(deliver(pair, 0, CM_RTU), CM_EVENT_ESTABLISHED);
    assert_int_equal(cm_disconnect(&pair->sides[0].cm, a, pair->now), STATUS_OK);
    assert_int_equal(deliver(pair, 0, CM_DREQ), CM_EVENT_DISCONNECTED);
    free(pair);
}

/* -- Every wish in every state ------------------------------------------------------------------*/

enum wish {
    WISH_REQUEST,
    WISH_REPLY,
    WISH_CONFIRM,
    WISH_NOTE_ESTABLISHED,
    WISH_REJECT,
    WISH_DISCONNECT,
    WISH_SIDR_REQUEST,
    WISH_SIDR_REPLY,
    WISH_COUNT,
};

static enum status carry_out(struct pair *pair, enum wish wish, struct cm_connection *connection)
{
    struct side *side = &pair->sides[0];
    struct cm_message message = {0};
    switch (wish) {
    case WISH_REQUEST:
        return cm_request(&side->cm, connection, side->gid, pair->sides[1].gid, &message,
                          pair->now);
    case WISH_REPLY: return reply(pair, 0, connection);
    case WISH_CONFIRM: return confirm(pair, 0, connection);
    case WISH_NOTE_ESTABLISHED: return cm_note_established(&side->cm, connection);
    case WISH_REJECT: return cm_reject(&side->cm, connection, CM_REASON_CONSUMER, "no", 2);
    case WISH_DISCONNECT: return cm_disconnect(&side->cm, connection, pair->now);
    case WISH_SIDR_REQUEST:
        return cm_sidr_request(&side->cm, connection, side->gid, pair->sides[1].gid, &message,
                               pair->now);
    case WISH_SIDR_REPLY: return sidr_reply(pair, 0, connection);
    case WISH_COUNT: break;
    }
    fail();
    return STATUS_INVALID;
}

/* The wishes that are allowed, what becomes of the state and what the peer hears. */
static const struct grant {
    enum cm_state from;
    enum wish wish;
    enum cm_state to;
    uint16_t said;
} grants[] = {
    {CM_STATE_IDLE, WISH_REQUEST, CM_STATE_REQ_SENT, CM_REQ},
    {CM_STATE_IDLE, WISH_SIDR_REQUEST, CM_STATE_SIDR_REQ_SENT, CM_SIDR_REQ},
    {CM_STATE_REQ_RECEIVED, WISH_REPLY, CM_STATE_REP_SENT, CM_REP},
    {CM_STATE_REQ_RECEIVED, WISH_REJECT, CM_STATE_IDLE, CM_REJ},
    {CM_STATE_REP_RECEIVED, WISH_CONFIRM, CM_STATE_ESTABLISHED, CM_RTU},
    {CM_STATE_REP_RECEIVED, WISH_REJECT, CM_STATE_IDLE, CM_REJ},
    {CM_STATE_REP_SENT, WISH_NOTE_ESTABLISHED, CM_STATE_ESTABLISHED, 0},
    {CM_STATE_REP_SENT, WISH_DISCONNECT, CM_STATE_DREQ_SENT, CM_DREQ},
    {CM_STATE_ESTABLISHED, WISH_DISCONNECT, CM_STATE_DREQ_SENT, CM_DREQ},
    {CM_STATE_DREQ_SENT, WISH_DISCONNECT, CM_STATE_DREQ_SENT, 0},
    {CM_STATE_TIMEWAIT, WISH_DISCONNECT, CM_STATE_TIMEWAIT, 0},
    {CM_STATE_SIDR_REQ_RECEIVED, WISH_SIDR_REPLY, CM_STATE_SIDR_REP_SENT, CM_SIDR_REP},
};

static void expect_wish(struct pair *pair, struct cm_connection *connection, enum wish wish)
{
    const enum cm_state from = (enum cm_state)connection->state;
    struct grant wanted = {from, wish, from, 0};
    enum status status = STATUS_INVALID;
    for (size_t g = 0; g < COUNT_OF(grants); g++) {
        if (grants[g].from == from && grants[g].wish == wish) {
            wanted = grants[g];
            status = STATUS_OK;
        }
    }
    struct cm_mad mad;
    assert_int_equal(carry_out(pair, wish, connection), status);
    assert_int_equal(connection->state, wanted.to);
    assert_int_equal(next(pair, 0, &mad), wanted.said);
    expect_silence(pair, 0);
    check_side(&pair->sides[0]);
}

static void test_every_wish_in_every_state(void **state)
{
    (void)state;
    for (enum wish wish = 0; wish < WISH_COUNT; wish++) {
        struct pair *pair = pair_make();
        expect_wish(pair, use(&pair->sides[0]), wish);
        free(pair);
        for (size_t i = 0; i < COUNT_OF(places); i++) {
            pair = pair_make();
            const struct ends ends = reach(pair, places[i].state, places[i].asked);
            expect_wish(pair, ends.of[0], wish);
            free(pair);
        }
    }
}

/* An owner lets go: the message that the peer gets, and its effect there. */
static void test_release_in_every_state(void **state)
{
    (void)state;
    static const struct {
        enum cm_state from;
        uint16_t said;
        bool at_once;
        enum cm_event_kind peer;
    } farewells[] = {
        {CM_STATE_REQ_SENT, CM_REJ, true, CM_EVENT_REJECTED},
        {CM_STATE_REQ_RECEIVED, CM_REJ, true, CM_EVENT_REJECTED},
        {CM_STATE_REP_RECEIVED, CM_REJ, true, CM_EVENT_REJECTED},
        {CM_STATE_REP_SENT, CM_REJ, false, CM_EVENT_REJECTED},
        {CM_STATE_ESTABLISHED, CM_DREQ, false, CM_EVENT_DISCONNECTED},
        {CM_STATE_DREQ_SENT, 0, false, CM_EVENT_NONE},
        {CM_STATE_TIMEWAIT, 0, true, CM_EVENT_NONE},
        {CM_STATE_SIDR_REQ_SENT, 0, true, CM_EVENT_NONE},
        {CM_STATE_SIDR_REQ_RECEIVED, CM_SIDR_REP, true, CM_EVENT_SIDR_REPLIED},
        {CM_STATE_SIDR_REP_SENT, 0, true, CM_EVENT_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        size_t f = 0;
        while (farewells[f].from != places[i].state) {
            f++;
        }
        struct pair *pair = pair_make();
        struct side *side = &pair->sides[0];
        const struct ends ends = reach(pair, places[i].state, places[i].asked);
        assert_int_equal(cm_release(&side->cm, ends.of[0], pair->now), farewells[f].at_once);
        check_side(side);
        if (farewells[f].said != 0) {
            assert_int_equal(deliver(pair, 0, farewells[f].said), farewells[f].peer);
        }
        expect_silence(pair, 0);
        /* The memory comes back once, even if the farewell is lost. */
        for (int waits = 0; !farewells[f].at_once && side->told[CM_EVENT_RELEASED] == 0; waits++) {
            assert_true(waits < 100);
            wait_for(pair, 0);
        }
        assert_int_equal(side->told[CM_EVENT_RELEASED], !farewells[f].at_once);
        assert_int_equal(ends.of[0]->state, CM_STATE_IDLE);
        check_side(side);
        free(pair);
    }
}

/* An abandoned connection is let go by whatever ends it, and tells its owner nothing else. */
static void test_every_message_to_an_abandoned_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(attributes); i++) {
        const bool asked = i < COUNT_OF(attributes);
        const enum cm_attribute attribute = attributes[i % COUNT_OF(attributes)];
        struct pair *pair = pair_make();
        struct side *side = &pair->sides[0];
        const struct ends ends = reach(pair, CM_STATE_ESTABLISHED, asked);
        assert_false(cm_release(&side->cm, ends.of[0], pair->now));
        lose(pair, 0, CM_DREQ);
        const struct cm_message message = message_about(&ends, attribute);
        const enum cm_event_kind event = give(pair, 0, &message);
        const bool ends_it = attribute == CM_DREQ || attribute == CM_DREP || attribute == CM_REJ;
        if (ends_it) {
            assert_int_equal(event, CM_EVENT_RELEASED);
            assert_ptr_equal(side->event.connection, ends.of[0]);
        } else {
            assert_ptr_not_equal(side->event.connection, ends.of[0]);
        }
        if (attribute == CM_DREQ) {
            lose(pair, 0, CM_DREP);
        }
        for (int waits = 0; side->told[CM_EVENT_RELEASED] == 0; waits++) {
            assert_true(waits < 100);
            wait_for(pair, 0);
        }
        free(pair);
    }
}

/* -- Courses ------------------------------------------------------------------------------------*/

static void test_connect_and_disconnect(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_mad mad;
    struct cm_message message;
    struct cm_connection *a = request(pair, 0);
    assert_int_equal(next(pair, 0, &mad), CM_REQ);
    assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &message), CM_GOOD);
    assert_int_equal(message.local_id, a->local_id);
    assert_int_equal(message.transaction_id & 0xffffffff, a->local_id);
    assert_int_equal(message.req.ca_guid, 0x1122334455667700u);
    assert_int_equal(message.req.service_id, SERVICE);
    assert_int_equal(message.req.pkey, 0xffff);
    assert_int_equal(message.req.max_cm_retries, CM_RETRIES);
    assert_int_equal(message.req.local_response_timeout, CM_RESPONSE_TIMEOUT);
    assert_memory_equal(message.req.primary.local_gid, pair->sides[0].gid, 16);
    assert_memory_equal(message.req.primary.remote_gid, pair->sides[1].gid, 16);
    assert_int_equal(give_between(pair, 1, mad.source, mad.destination, mad.bytes),
                     CM_EVENT_REQUESTED);
    struct cm_connection *b = pair->sides[1].event.connection;
    assert_int_equal(b->service_id, SERVICE);
    assert_int_equal(b->remote_qpn, 0x11);
    assert_memory_equal(pair->sides[1].event.message->private_data, "req", 4);
    assert_int_equal(reply(pair, 1, b), STATUS_OK);
    assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_REPLIED);
    assert_int_equal(a->remote_qpn, 0x22);
    assert_int_equal(a->remote_id, b->local_id);
    assert_memory_equal(pair->sides[0].event.message->private_data, "rep", 4);
    assert_int_equal(confirm(pair, 0, a), STATUS_OK);
    assert_int_equal(deliver(pair, 0, CM_RTU), CM_EVENT_ESTABLISHED);
    assert_memory_equal(pair->sides[1].event.message->private_data, "rtu", 4);
    assert_int_equal(cm_deadline(&pair->sides[0].cm).ns <= pair->now.ns + 1000 * MS, true);
    assert_int_equal(cm_disconnect(&pair->sides[1].cm, b, pair->now), STATUS_OK);
    assert_int_equal(next(pair, 1, &mad), CM_DREQ);
    assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &message), CM_GOOD);
    assert_int_equal(message.dreq_qpn, 0x11);
    assert_int_equal(give_between(pair, 0, mad.source, mad.destination, mad.bytes),
                     CM_EVENT_DISCONNECTED);
    assert_int_equal(deliver(pair, 0, CM_DREP), CM_EVENT_DISCONNECTED);
    assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE); /* An outdated deadline. */
    for (int s = 0; s < 2; s++) {
        assert_int_equal(wait_for(pair, s), CM_EVENT_TIMEWAIT_OVER);
        assert_int_equal(pass_time(pair, s, 0), CM_EVENT_NONE);
        assert_true(cm_deadline(&pair->sides[s].cm).ns == UINT64_MAX);
    }
    free(pair);
}

/* Each message of an exchange is lost in turn; who sent it repeats it, and all ends well. */
static void test_each_message_lost(void **state)
{
    (void)state;
    for (int lost = 0; lost < 4; lost++) {
        struct pair *pair = pair_make();
        struct cm_connection *a = request(pair, 0);
        if (lost == 0) {
            lose(pair, 0, CM_REQ);
            assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
        }
        assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
        struct cm_connection *b = pair->sides[1].event.connection;
        assert_int_equal(reply(pair, 1, b), STATUS_OK);
        if (lost == 1) {
            lose(pair, 1, CM_REP);
            assert_int_equal(wait_for(pair, 1), CM_EVENT_NONE);
        } else if (lost == 2) {
            /* The REQ once more, because the REP is late, is answered by the REP. */
            lose(pair, 1, CM_REP);
            assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
            assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_NONE);
        }
        assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_REPLIED);
        assert_int_equal(confirm(pair, 0, a), STATUS_OK);
        if (lost == 3) {
            lose(pair, 0, CM_RTU);
            assert_int_equal(wait_for(pair, 1), CM_EVENT_NONE);
            assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_NONE);
        }
        assert_int_equal(deliver(pair, 0, CM_RTU), CM_EVENT_ESTABLISHED);
        assert_int_equal(a->state, CM_STATE_ESTABLISHED);
        assert_int_equal(b->state, CM_STATE_ESTABLISHED);
        assert_int_equal(pair->sides[0].told[CM_EVENT_REPLIED], 1);
        assert_int_equal(pair->sides[1].told[CM_EVENT_REQUESTED], 1);
        free(pair);
    }
}

/* Our first MRA asks for little: if the RTU behind it is lost, the REP comes again soon, and not
 * after the minute that a slow program may need. */
static void test_rtu_lost_behind_mra(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_connection *a = request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
    struct cm_connection *b = pair->sides[1].event.connection;
    assert_int_equal(reply(pair, 1, b), STATUS_OK);
    assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_REPLIED);
    assert_int_equal(wait_for(pair, 1), CM_EVENT_NONE);
    assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_NONE);
    assert_int_equal(deliver(pair, 0, CM_MRA), CM_EVENT_NONE);
    assert_int_equal(confirm(pair, 0, a), STATUS_OK);
    lose(pair, 0, CM_RTU);
    const struct instant lost = pair->now;
    for (int i = 0; i < 5 && list_empty(&b->out); i++) {
        assert_int_equal(wait_for(pair, 1), CM_EVENT_NONE);
    }
    assert_in_range(pair->now.ns - lost.ns, 500 * MS, 2000 * MS);
    assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_NONE);
    assert_int_equal(deliver(pair, 0, CM_RTU), CM_EVENT_ESTABLISHED);
    free(pair);
}

/* A program that stays slow gets more time each time, up to a minute. */
static void test_patience_grows(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
    struct cm_connection *answered = pair->sides[1].event.connection;
    assert_int_equal(reply(pair, 1, answered), STATUS_OK);
    assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_REPLIED);
    answered->unproven = false; /* As an MRA would have it. */
    for (int code = CM_SERVICE_TIMEOUT_FIRST; code < CM_SERVICE_TIMEOUT + 3; code++) {
        struct cm_mad mad;
        struct cm_message mra;
        assert_int_equal(wait_for(pair, 1), CM_EVENT_NONE);
        assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_NONE);
        assert_int_equal(next(pair, 0, &mad), CM_MRA);
        assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &mra), CM_GOOD);
        assert_int_equal(mra.mra.about, CM_ABOUT_REP);
        assert_int_equal(mra.mra.service_timeout,
                         code < CM_SERVICE_TIMEOUT ? code : CM_SERVICE_TIMEOUT);
    }
    free(pair);
}

static void test_farewells_lost(void **state)
{
    (void)state;
    for (int lost = 0; lost < 2; lost++) {
        struct pair *pair = pair_make();
        const struct ends ends = establish(pair, 0);
        assert_int_equal(cm_disconnect(&pair->sides[0].cm, ends.of[0], pair->now), STATUS_OK);
        if (lost == 0) {
            lose(pair, 0, CM_DREQ);
            wait_for(pair, 0);
            assert_int_equal(deliver(pair, 0, CM_DREQ), CM_EVENT_DISCONNECTED);
        } else {
            assert_int_equal(deliver(pair, 0, CM_DREQ), CM_EVENT_DISCONNECTED);
            lose(pair, 1, CM_DREP);
            wait_for(pair, 0);
            assert_int_equal(deliver(pair, 0, CM_DREQ), CM_EVENT_NONE);
        }
        assert_int_equal(deliver(pair, 1, CM_DREP), CM_EVENT_DISCONNECTED);
        free(pair);
    }
}

/* A process that ends repeats its DREQ sooner, and not for long; and its latest answers: nobody
 * will be there when their receiver asks again, which Linux does after up to 6.4 s. */
static void test_last_words(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct side *side = &pair->sides[0];
    struct cm_mad mad;
    struct ends ends = establish(pair, 0);
    assert_false(cm_is_parting(&side->cm));
    assert_false(cm_release(&side->cm, ends.of[0], pair->now));
    lose(pair, 0, CM_DREQ);
    assert_true(cm_is_parting(&side->cm));
    cm_hurry(&side->cm, pair->now);
    const struct instant began = pair->now;
    int copies = 0;
    while (wait_for(pair, 0) == CM_EVENT_NONE) {
        lose(pair, 0, CM_DREQ);
        copies++;
    }
    assert_int_equal(side->event.kind, CM_EVENT_RELEASED);
    assert_in_range(copies, 5, 10);
    assert_in_range(pair->now.ns - began.ns, 500 * MS, 1500 * MS);
    assert_false(cm_is_parting(&side->cm));
    assert_false(cm_next_copy(&side->cm, &mad));
    /* A farewell is answered. The answer is repeated if its receiver may still ask again. */
    static const struct {
        uint64_t age_ns;
        int copies;
    } answers[] = {{100 * MS, 2}, {2000 * MS, 2}, {6500 * MS, 2}, {8000 * MS, 0}};
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        const struct cm_message dreq = {.attribute = CM_DREQ, .local_id = 5, .remote_id = 6};
        give(pair, 0, &dreq);
        assert_int_equal(next(pair, 0, &mad), CM_DREP);
        cm_note_sent(&side->cm, &mad, pair->now);
        pair->now = instant_after(pair->now, answers[i].age_ns);
        cm_say_again(&side->cm, pair->now);
        const struct cm_counters before = side->cm.counters;
        for (copies = 0; cm_next_copy(&side->cm, &mad); copies++) {
            assert_int_equal(load_be16(mad.bytes + 16), CM_DREP);
        }
        assert_int_equal(copies, answers[i].copies);
        assert_int_equal(side->cm.counters.sent - before.sent, copies);
        assert_int_equal(side->cm.counters.retransmitted - before.retransmitted, copies);
        pair->now = instant_after(pair->now, 10000 * MS);
    }
    free(pair);
}

static void test_farewells_cross(void **state)
{
    (void)state;
    for (int abandoned = 0; abandoned < 3; abandoned++) {
        struct pair *pair = pair_make();
        struct cm_mad dreqs[2];
        const struct ends ends = establish(pair, 0);
        for (int s = 0; s < 2; s++) {
            if (s < abandoned) {
                assert_false(cm_release(&pair->sides[s].cm, ends.of[s], pair->now));
            } else {
                assert_int_equal(cm_disconnect(&pair->sides[s].cm, ends.of[s], pair->now),
                                 STATUS_OK);
            }
            assert_int_equal(next(pair, s, &dreqs[s]), CM_DREQ);
        }
        for (int s = 0; s < 2; s++) {
            assert_int_equal(
                give_between(pair, s, dreqs[!s].source, dreqs[!s].destination, dreqs[!s].bytes),
                s < abandoned ? CM_EVENT_RELEASED : CM_EVENT_DISCONNECTED);
        }
        assert_int_equal(deliver(pair, 0, CM_DREP), CM_EVENT_NONE);
        assert_int_equal(deliver(pair, 1, CM_DREP), CM_EVENT_NONE);
        expect_silence(pair, 0);
        expect_silence(pair, 1);
        free(pair);
    }
}

/* Nobody answers: how often each message is sent, how long it takes, what is told in the end. */
static void test_exhaustion(void **state)
{
    (void)state;
    static const struct {
        struct place place;
        uint32_t repeats;
        uint64_t least_s, most_s;
        enum cm_event_kind end;
        enum cm_state to;
    } cases[] = {
        {ASKED(REQ_SENT), CM_RETRIES, 45, 70, CM_EVENT_UNREACHABLE, CM_STATE_IDLE},
        {ANSWERED(REP_SENT), 1, 45, 70, CM_EVENT_UNREACHABLE, CM_STATE_IDLE},
        {ASKED(DREQ_SENT), CM_RETRIES, 45, 70, CM_EVENT_DISCONNECTED, CM_STATE_TIMEWAIT},
        {ASKED(SIDR_REQ_SENT), CM_RETRIES, 45, 70, CM_EVENT_UNREACHABLE, CM_STATE_IDLE},
        {ASKED(TIMEWAIT), 0, 0, 1, CM_EVENT_TIMEWAIT_OVER, CM_STATE_IDLE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct pair *pair = pair_make();
        const struct ends ends = reach(pair, cases[i].place.state, cases[i].place.asked);
        const struct instant began = pair->now;
        struct cm_mad mad, first = {0};
        uint32_t repeats = 0;
        enum cm_event_kind event;
        int waits = 0;
        while ((event = wait_for(pair, 0)) == CM_EVENT_NONE) {
            assert_true(++waits < 100);
            while (next(pair, 0, &mad) != 0) {
                if (repeats++ > 0) {
                    assert_memory_equal(first.bytes, mad.bytes, CM_MAD_BYTES);
                }
                first = mad;
            }
        }
        assert_int_equal(event, cases[i].end);
        assert_null(pair->sides[0].event.message);
        assert_ptr_equal(pair->sides[0].event.connection, ends.of[0]);
        assert_int_equal(repeats, cases[i].repeats);
        assert_int_equal(ends.of[0]->state, cases[i].to);
        assert_in_range(pair->now.ns - began.ns, cases[i].least_s * 1000 * MS,
                        cases[i].most_s * 1000 * MS);
        free(pair);
    }
}

/* A side that gives up says so: its peer may have an answer under way that cannot reach anybody, or
 * have sent an RTU that never arrived (12.9.8). */
static void test_giving_up_is_said(void **state)
{
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        struct pair *pair = pair_make();
        const struct ends ends =
            reach(pair, asked ? CM_STATE_REQ_SENT : CM_STATE_REP_SENT, asked != 0);
        struct cm_mad mad;
        struct cm_message message;
        if (!asked) {
            ends.of[0]->unproven = false; /* An MRA came. */
            assert_int_equal(confirm(pair, 1, ends.of[1]), STATUS_OK);
            lose(pair, 1, CM_RTU);
        }
        while (wait_for(pair, 0) == CM_EVENT_NONE) {
            while (next(pair, 0, &mad) != 0) {
            }
        }
        assert_int_equal(next(pair, 0, &mad), CM_REJ);
        assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &message), CM_GOOD);
        assert_int_equal(message.rej.reason, CM_REASON_TIMEOUT);
        assert_int_equal(message.rej.about, CM_ABOUT_OTHER);
        assert_int_equal(message.rej.information_bytes, 8);
        assert_int_equal(message.rej.information[0], 0x11);
        assert_int_equal(give_between(pair, 1, mad.source, mad.destination, mad.bytes),
                         asked ? CM_EVENT_REJECTED : CM_EVENT_DISCONNECTED);
        free(pair);
    }
}

/* A stranger's request brings two messages at most, and one more when it is repeated, whether it
 * succeeds or not. The limit is three times the bytes that the stranger sent; a third of it is left
 * for the packets of the NIC. The program's wishes do not matter, nor how the process ends. */
static void test_strangers_get_no_more_than_they_sent_threefold(void **state)
{
    (void)state;
    enum ending {
        WAITS,
        LEAVES,
        REJECTS,
        DISCONNECTS,
        ENDINGS,
    };
    for (int ending = 0; ending < ENDINGS; ending++) {
        for (uint32_t asked = 1; asked <= 3; asked++) {
            struct pair *pair = pair_make();
            struct cm_mad mad, forged;
            struct side *side = &pair->sides[0];
            request(pair, 1);
            assert_int_equal(next(pair, 1, &forged), CM_REQ);
            give_between(pair, 0, forged.source, forged.destination, forged.bytes);
            struct cm_connection *connection = side->event.connection;
            assert_int_equal(ending == REJECTS
                                 ? cm_reject(&side->cm, connection, CM_REASON_CONSUMER, NULL, 0)
                                 : reply(pair, 0, connection),
                             STATUS_OK);
            uint32_t sent = take_all(pair, 0);
            for (uint32_t i = 1; i < asked && ending != REJECTS; i++) {
                give_between(pair, 0, forged.source, forged.destination, forged.bytes);
                sent += take_all(pair, 0);
            }
            if (ending == LEAVES) {
                (void)!cm_release(&side->cm, connection, pair->now);
                cm_hurry(&side->cm, pair->now);
            } else if (ending == DISCONNECTS) {
                assert_int_equal(cm_disconnect(&side->cm, connection, pair->now), STATUS_OK);
            }
            sent += take_all(pair, 0);
            for (int i = 0; i < 100 && cm_deadline(&side->cm).ns != UINT64_MAX; i++) {
                wait_for(pair, 0);
                sent += take_all(pair, 0);
            }
            cm_say_again(&side->cm, pair->now);
            while (cm_next_copy(&side->cm, &mad)) {
                sent++;
            }
            assert_in_range(sent, 1, 2 * (ending == REJECTS ? 1 : asked));
            free(pair);
        }
    }
}

/* One whose RTU arrived has proved that it hears us: nothing is spared. */
static void test_peers_that_hear_us_are_told_all(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    const struct ends ends = establish(pair, 1);
    assert_int_equal(cm_disconnect(&pair->sides[0].cm, ends.of[0], pair->now), STATUS_OK);
    uint32_t sent = take_all(pair, 0);
    while (wait_for(pair, 0) == CM_EVENT_NONE) {
        sent += take_all(pair, 0);
    }
    assert_int_equal(sent, 1 + CM_RETRIES);
    assert_int_equal(pair->sides[0].cm.counters.unafforded, 0);
    free(pair);
}

/* Its peer repeats its REP once only: an RTU comes unasked, too, and not for long. */
static void test_rtu_is_repeated_unasked(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_connection *connection = request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
    assert_int_equal(reply(pair, 1, pair->sides[1].event.connection), STATUS_OK);
    assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_REPLIED);
    assert_int_equal(confirm(pair, 0, connection), STATUS_OK);
    lose(pair, 0, CM_RTU);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
        assert_int_equal(deliver(pair, 0, CM_RTU), i == 0 ? CM_EVENT_ESTABLISHED : CM_EVENT_NONE);
    }
    assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
    expect_silence(pair, 0);
    assert_true(cm_deadline(&pair->sides[0].cm).ns == UINT64_MAX);
    assert_int_equal(connection->state, CM_STATE_ESTABLISHED);
    free(pair);
}

/* Messages on behalf of a process that is gone end all its connections with us, once, and no
 * connection of anybody else. */
static void test_gone_peers_are_spoken_for(void **state)
{
    (void)state;
    static const struct {
        enum cm_state from;
        enum cm_event_kind event;
    } ends_of[] = {
        {CM_STATE_REQ_SENT, CM_EVENT_REJECTED},
        {CM_STATE_REQ_RECEIVED, CM_EVENT_REJECTED},
        {CM_STATE_REP_SENT, CM_EVENT_DISCONNECTED},
        {CM_STATE_REP_RECEIVED, CM_EVENT_REJECTED},
        {CM_STATE_ESTABLISHED, CM_EVENT_DISCONNECTED},
        {CM_STATE_DREQ_SENT, CM_EVENT_DISCONNECTED},
        {CM_STATE_TIMEWAIT, CM_EVENT_NONE},
        {CM_STATE_SIDR_REQ_SENT, CM_EVENT_SIDR_REPLIED},
        {CM_STATE_SIDR_REQ_RECEIVED, CM_EVENT_NONE},
        {CM_STATE_SIDR_REP_SENT, CM_EVENT_NONE},
    };
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        size_t e = 0;
        while (ends_of[e].from != places[i].state) {
            e++;
        }
        struct pair *pair = pair_make();
        struct side *side = &pair->sides[0];
        struct ends ends = reach(pair, places[i].state, places[i].asked);
        const bool waits_for_id = ends.of[0]->remote_id == 0;
        ends.of[0]->process = waits_for_id ? 2 : 0;
        struct cm_mad mad;
        uint32_t at[3] = {0};
        assert_false(cm_speak_for(&side->cm, side->gid, 1, &at[0], &mad));
        assert_false(cm_speak_for(&side->cm, pair->sides[1].gid, 2, &at[1], &mad));
        memset(&mad, 0xa5, sizeof(mad)); /* Nothing of it remains. */
        const bool spoken = cm_speak_for(&side->cm, pair->sides[1].gid, 1, &at[2], &mad);
        assert_int_equal(spoken, ends_of[e].event != CM_EVENT_NONE);
        if (spoken) {
            assert_true(mad.process == 2 && mad.copies == 0);
            assert_int_equal(give_between(pair, 0, mad.source, mad.destination, mad.bytes),
                             ends_of[e].event);
            assert_ptr_equal(side->event.connection, ends.of[0]);
            assert_false(cm_speak_for(&side->cm, pair->sides[1].gid, 1, &at[2], &mad));
            at[2] = 0;
            assert_false(cm_speak_for(&side->cm, pair->sides[1].gid, 1, &at[2], &mad));
        }
        free(pair);
    }
}

/* The first repetition is soon, the later ones at most as far apart as the standard demands. */
static void test_pace_of_repetitions(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    reach(pair, CM_STATE_REQ_SENT, true);
    uint64_t before = pair->now.ns, gap_before = 0;
    for (int i = 0; i < CM_RETRIES; i++) {
        assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
        lose(pair, 0, CM_REQ);
        const uint64_t gap = pair->now.ns - before;
        assert_in_range(gap, i == 0 ? 100 * MS : gap_before, ack_timeout_ns(CM_RESPONSE_TIMEOUT));
        gap_before = gap;
        before = pair->now.ns;
    }
    assert_int_equal(gap_before, ack_timeout_ns(CM_RESPONSE_TIMEOUT));
    free(pair);
}

/* A slow program's CM asks for patience, and gets it; repetitions go on afterwards, whatever time
 * the MRA named: also none at all, and more than there will ever be. */
static void test_patience(void **state)
{
    (void)state;
    for (int code = 0; code < 32; code++) {
        for (int asked = 0; asked < 2; asked++) {
            struct pair *pair = pair_make();
            const struct ends ends =
                reach(pair, asked ? CM_STATE_REQ_SENT : CM_STATE_REP_SENT, asked != 0);
            struct cm_message mra = message_about(&ends, CM_MRA);
            mra.mra.about = asked ? CM_ABOUT_REQ : CM_ABOUT_REP;
            mra.mra.service_timeout = (uint8_t)code;
            assert_int_equal(give(pair, 0, &mra), CM_EVENT_NONE);
            const struct instant given = pair->now;
            int waits = 0;
            do {
                assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
                assert_true(++waits < 5);
            } while (list_empty(&ends.of[0]->out));
            assert_true(pair->now.ns - given.ns >= UINT64_C(4096) << code);
            assert_true(pair->now.ns - given.ns <= (UINT64_C(4096) << code) + 5000 * MS);
            lose(pair, 0, asked ? CM_REQ : CM_REP);
            free(pair);
        }
    }
}

static void test_patience_for_something_else(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    const struct ends ends = reach(pair, CM_STATE_REQ_SENT, true);
    const struct instant deadline = ends.of[0]->deadline;
    struct cm_message mra = message_about(&ends, CM_MRA);
    mra.mra.about = CM_ABOUT_REP;
    mra.mra.service_timeout = 20;
    assert_int_equal(give(pair, 0, &mra), CM_EVENT_NONE);
    assert_int_equal(ends.of[0]->deadline.ns, deadline.ns);
    assert_int_equal(pair->sides[0].cm.counters.out_of_state, 1);
    free(pair);
}

static void test_rejection(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_connection *a = request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
    struct cm_connection *b = pair->sides[1].event.connection;
    uint8_t much[CM_REJ_PRIVATE_BYTES + 1] = {'n', 'o'};
    assert_int_equal(cm_reject(&pair->sides[1].cm, b, CM_REASON_CONSUMER, much, sizeof(much)),
                     STATUS_INVALID);
    assert_int_equal(cm_reject(&pair->sides[1].cm, b, CM_REASON_CONSUMER, much, sizeof(much) - 1),
                     STATUS_OK);
    assert_int_equal(deliver(pair, 1, CM_REJ), CM_EVENT_REJECTED);
    assert_int_equal(pair->sides[0].event.message->rej.reason, CM_REASON_CONSUMER);
    assert_memory_equal(pair->sides[0].event.message->private_data, "no", 3);
    /* Both can be used anew. */
    assert_int_equal(carry_out(pair, WISH_REQUEST, a), STATUS_OK);
    assert_true(cm_release(&pair->sides[1].cm, b, pair->now));
    free(pair);
}

/* Nobody listens yet: the same request goes out again after growing pauses, and the program hears
 * of it only when it was refused for a quarter of a second. Then it starts over. */
static void refuse(struct pair *pair, const struct cm_connection *connection, bool sidr,
                   enum cm_event_kind expected)
{
    struct cm_mad mad;
    struct cm_message asked;
    assert_int_equal(next(pair, 0, &mad), sidr ? CM_SIDR_REQ : CM_REQ);
    assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &asked), CM_GOOD);
    assert_int_equal(asked.local_id, connection->local_id);
    struct cm_message answer = {.attribute = sidr ? CM_SIDR_REP : CM_REJ,
                                .transaction_id = asked.transaction_id};
    if (sidr) {
        answer.local_id = asked.local_id;
        answer.sidr_rep.status = CM_SIDR_UNSUPPORTED;
    } else {
        answer.remote_id = asked.local_id;
        answer.rej.reason = CM_REASON_INVALID_SERVICE_ID;
    }
    assert_int_equal(give(pair, 0, &answer), expected);
    expect_silence(pair, 0);
}

static void test_nobody_listens_yet(void **state)
{
    (void)state;
    for (int sidr = 0; sidr < 2; sidr++) {
        struct pair *pair = pair_make();
        struct cm_connection *connection = sidr ? sidr_request(pair, 0) : request(pair, 0);
        const struct instant start = pair->now;
        for (int i = 0; i < CM_REFUSALS_MAX; i++) {
            const struct instant before = pair->now;
            refuse(pair, connection, sidr, CM_EVENT_NONE);
            assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
            assert_int_equal(pair->now.ns - before.ns, (8 * MS) << i);
        }
        assert_int_equal(pair->now.ns - start.ns, 248 * MS);
        refuse(pair, connection, sidr, sidr ? CM_EVENT_SIDR_REPLIED : CM_EVENT_REJECTED);
        assert_int_equal(connection->state, CM_STATE_IDLE);
        assert_int_equal(carry_out(pair, sidr ? WISH_SIDR_REQUEST : WISH_REQUEST, connection),
                         STATUS_OK);
        refuse(pair, connection, sidr, CM_EVENT_NONE);
        /* The peer's program has come. */
        assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
        assert_int_equal(deliver(pair, 0, sidr ? CM_SIDR_REQ : CM_REQ),
                         sidr ? CM_EVENT_SIDR_REQUESTED : CM_EVENT_REQUESTED);
        free(pair);
    }
}

/* A refusal shows that the peer is there: the request is repeated as often as at first. */
static void test_refusal_renews_the_pace(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_connection *connection = request(pair, 0);
    const uint64_t first_ns = cm_deadline(&pair->sides[0].cm).ns - pair->now.ns;
    for (int i = 0; i < 3; i++) {
        lose(pair, 0, CM_REQ);
        assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
    }
    refuse(pair, connection, false, CM_EVENT_NONE);
    assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
    assert_int_equal(cm_deadline(&pair->sides[0].cm).ns - pair->now.ns, 2 * first_ns);
    free(pair);
}

/* Without tries left, a refusal is final at once. */
static void test_refusal_without_tries(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_connection *connection = request(pair, 0);
    for (int i = 0; i < CM_RETRIES; i++) {
        lose(pair, 0, CM_REQ);
        assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
    }
    refuse(pair, connection, false, CM_EVENT_REJECTED);
    free(pair);
}

/* The asker changes its mind before it has learned the peer's communication ID: its REJ has none,
 * and finds the request all the same, answered or not. */
static void test_request_taken_back(void **state)
{
    (void)state;
    for (int answered = 0; answered < 2; answered++) {
        struct pair *pair = pair_make();
        struct cm_connection *a = request(pair, 0);
        assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
        struct cm_connection *b = pair->sides[1].event.connection;
        if (answered) {
            assert_int_equal(reply(pair, 1, b), STATUS_OK);
        }
        assert_true(cm_release(&pair->sides[0].cm, a, pair->now));
        struct cm_mad mad;
        struct cm_message message;
        assert_int_equal(next(pair, 0, &mad), CM_REJ);
        assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &message), CM_GOOD);
        assert_int_equal(message.remote_id, 0);
        assert_int_equal(message.rej.reason, CM_REASON_TIMEOUT);
        assert_int_equal(message.rej.about, CM_ABOUT_OTHER);
        assert_int_equal(give_between(pair, 1, mad.source, mad.destination, mad.bytes),
                         CM_EVENT_REJECTED);
        assert_int_equal(b->state, CM_STATE_IDLE);
        free(pair);
    }
}

/* A REJ without our communication ID is believed of a peer that gave up waiting, and only while it
 * waits: reason TIMEOUT, with the CA GUID of its REQ. Otherwise a stranger that guesses a peer's ID
 * could end every connection that the peer asked for. */
static void test_only_who_gave_up_may_leave_our_id_out(void **state)
{
    (void)state;
    enum flaw {
        NO_FLAW,
        REASON,
        GUID,
        SHORT,
        TRANSACTION,
        FLAWS
    };
    for (size_t i = 0; i < COUNT_OF(places) * FLAWS; i++) {
        const struct place place = places[i / FLAWS];
        const enum flaw flaw = (enum flaw)(i % FLAWS);
        if (place.asked || place.state >= CM_STATE_SIDR_REQ_SENT) {
            continue;
        }
        struct pair *pair = pair_make();
        const struct ends ends = reach(pair, place.state, false);
        const struct side *peer = &pair->sides[1];
        struct cm_message rej = message_about(&ends, CM_REJ);
        rej.remote_id = 0;
        rej.transaction_id += flaw == TRANSACTION;
        rej.rej.about = CM_ABOUT_OTHER;
        rej.rej.reason = flaw == REASON ? CM_REASON_CONSUMER : CM_REASON_TIMEOUT;
        rej.rej.information_bytes = flaw == SHORT ? 7 : 8;
        store_be64(rej.rej.information, peer->cm.ca_guid + (flaw == GUID));
        const bool waiting =
            place.state == CM_STATE_REQ_RECEIVED || place.state == CM_STATE_REP_SENT;
        const bool believed = waiting && flaw == NO_FLAW;
        assert_int_equal(give(pair, 0, &rej), believed ? CM_EVENT_REJECTED : CM_EVENT_NONE);
        assert_int_equal(ends.of[0]->state, believed ? CM_STATE_IDLE : place.state);
        assert_int_equal(pair->sides[0].cm.counters.unmatched, !believed);
        expect_silence(pair, 0);
        free(pair);
    }
}

/* -- Strays, and IDs used anew ------------------------------------------------------------------*/

static void test_strays(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(attributes); i++) {
        const enum cm_attribute attribute = attributes[i];
        if (attribute == CM_REQ || attribute == CM_SIDR_REQ) {
            continue;
        }
        struct pair *pair = pair_make();
        const struct cm_message message = {.attribute = (uint16_t)attribute,
                                           .transaction_id = 0x77,
                                           .local_id = 5,
                                           .remote_id = attribute == CM_SIDR_REP ? 0 : 6};
        struct cm_mad mad;
        struct cm_message answer;
        assert_int_equal(give(pair, 0, &message), CM_EVENT_NONE);
        assert_int_equal(pair->sides[0].cm.counters.unmatched, 1);
        const uint16_t answered = next(pair, 0, &mad);
        assert_int_equal(answered, attribute == CM_REP    ? CM_REJ
                                   : attribute == CM_DREQ ? CM_DREP
                                                          : 0);
        if (answered != 0) {
            assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &answer), CM_GOOD);
            assert_int_equal(answer.transaction_id, 0x77);
            assert_int_equal(answer.local_id, 6);
            assert_int_equal(answer.remote_id, 5);
            assert_true(answered != CM_REJ ||
                        (answer.rej.reason == CM_REASON_INVALID_COMMUNICATION_ID &&
                         answer.rej.about == CM_ABOUT_REP));
        }
        free(pair);
    }
}

/* A request refused by a manager that keeps nothing of it: the asker, at its last try, hears that
 * there is no such service, and is idle again. */
static void test_refusal_without_a_connection(void **state)
{
    (void)state;
    for (int datagrams = 0; datagrams < 2; datagrams++) {
        struct pair *pair = pair_make();
        struct cm_mad mad;
        struct cm_message asked;
        const struct cm_connection *a = datagrams ? sidr_request(pair, 0) : request(pair, 0);
        for (int i = 0; i < CM_RETRIES; i++) {
            lose(pair, 0, datagrams ? CM_SIDR_REQ : CM_REQ);
            assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
        }
        next(pair, 0, &mad);
        assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &asked), CM_GOOD);
        cm_refuse(&pair->sides[1].cm, mad.source, mad.destination, &asked);
        check_side(&pair->sides[1]);
        const struct cm_message *answer = &pair->sides[0].cm.message;
        if (datagrams) {
            assert_int_equal(deliver(pair, 1, CM_SIDR_REP), CM_EVENT_SIDR_REPLIED);
            assert_int_equal(answer->sidr_rep.status, CM_SIDR_UNSUPPORTED);
            assert_int_equal(answer->sidr_rep.service_id, SERVICE);
        } else {
            assert_int_equal(deliver(pair, 1, CM_REJ), CM_EVENT_REJECTED);
            assert_int_equal(answer->rej.about, CM_ABOUT_REQ);
            assert_int_equal(answer->rej.reason, CM_REASON_INVALID_SERVICE_ID);
        }
        assert_int_equal(answer->transaction_id, asked.transaction_id);
        assert_int_equal(a->state, CM_STATE_IDLE);
        check_side(&pair->sides[0]);
        free(pair);
    }
}

/* The process that the world names for a destination stands on each MAD to it: on MADs sent
 * at once, sent again, or sent after the connection went. A MAD that merely answers names no
 * process. */
static void test_mads_name_the_process(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_mad mad;
    struct cm_connection *a = request(pair, 0);
    a->process = 7;
    assert_int_equal(next(pair, 0, &mad), CM_REQ);
    assert_int_equal(mad.process, 7);
    assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
    assert_int_equal(next(pair, 0, &mad), CM_REQ);
    assert_int_equal(mad.process, 7);
    assert_int_equal(give_between(pair, 1, mad.source, mad.destination, mad.bytes),
                     CM_EVENT_REQUESTED);
    assert_int_equal(reply(pair, 1, pair->sides[1].event.connection), STATUS_OK);
    assert_int_equal(next(pair, 1, &mad), CM_REP);
    assert_int_equal(mad.process, 0);
    assert_true(cm_release(&pair->sides[0].cm, a, pair->now));
    assert_int_equal(next(pair, 0, &mad), CM_REJ);
    assert_int_equal(mad.process, 7);
    const struct cm_message stray = {.attribute = CM_DREQ, .local_id = 5, .remote_id = 6};
    assert_int_equal(give(pair, 0, &stray), CM_EVENT_NONE);
    assert_int_equal(next(pair, 0, &mad), CM_DREP);
    assert_int_equal(mad.process, 0);
    free(pair);
}

static void test_more_strays_than_room(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_message dreq = {.attribute = CM_DREQ, .local_id = 5, .remote_id = 6};
    for (int i = 0; i < CM_STRAYS_MAX + 3; i++) {
        give(pair, 0, &dreq);
    }
    assert_int_equal(pair->sides[0].cm.counters.crowded_out, 3);
    for (int i = 0; i < CM_STRAYS_MAX; i++) {
        lose(pair, 0, CM_DREP);
    }
    expect_silence(pair, 0);
    give(pair, 0, &dreq);
    lose(pair, 0, CM_DREP);
    free(pair);
}

static void test_malformed(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct side *side = &pair->sides[0];
    uint8_t bytes[CM_MAD_BYTES] = {0};
    cm_on_message(&side->cm, side->gid, side->gid, bytes, sizeof(bytes), spare_of(side), pair->now,
                  &side->event);
    assert_int_equal(note(side), CM_EVENT_NONE);
    cm_on_message(&side->cm, side->gid, side->gid, bytes, 0, spare_of(side), pair->now,
                  &side->event);
    assert_int_equal(note(side), CM_EVENT_NONE);
    assert_int_equal(side->cm.counters.malformed, 2);
    free(pair);
}

/* 12.6.7.2: a request in another version of the class is told so, with its own IDs; nothing else
 * is answered, least of all an answer. */
static void test_another_class_version(void **state)
{
    (void)state;
    for (uint8_t version = 1; version < 4; version += 2) { /* Ours is 2. */
        for (size_t i = 0; i < COUNT_OF(attributes); i++) {
            struct pair *pair = pair_make();
            const struct cm_message message = {
                .attribute = (uint16_t)attributes[i], .transaction_id = 0x77, .local_id = 5};
            uint8_t bytes[CM_MAD_BYTES];
            struct cm_mad mad;
            struct cm_message answer = {0};
            cm_encode(&message, bytes);
            bytes[2] = version;
            assert_int_equal(give_between(pair, 0, pair->sides[1].gid, pair->sides[0].gid, bytes),
                             CM_EVENT_NONE);
            assert_int_equal(pair->sides[0].cm.counters.malformed, 1);
            const uint16_t answered = next(pair, 0, &mad);
            assert_int_equal(answered, attributes[i] == CM_REQ        ? CM_REJ
                                       : attributes[i] == CM_SIDR_REQ ? CM_SIDR_REP
                                                                      : 0);
            if (answered != 0) {
                assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &answer), CM_GOOD);
                assert_int_equal(answer.transaction_id, 0x77);
            }
            if (answered == CM_REJ) {
                assert_int_equal(answer.remote_id, 5);
                assert_int_equal(answer.rej.reason, CM_REASON_INVALID_CLASS_VERSION);
            } else if (answered == CM_SIDR_REP) {
                assert_int_equal(answer.local_id, 5);
                assert_int_equal(answer.sidr_rep.status, CM_SIDR_UNSUPPORTED_VERSION);
            }
            expect_silence(pair, 0);
            free(pair);
        }
    }
}

static void test_no_memory_for_a_request(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    memset(pair->sides[1].used, 1, sizeof(pair->sides[1].used));
    request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_NONE);
    sidr_request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_SIDR_REQ), CM_EVENT_NONE);
    assert_int_equal(pair->sides[1].cm.counters.crowded_out, 2);
    expect_silence(pair, 1);
    free(pair);
}

/* The same communication ID with another transaction: the peer has begun anew. While the first is
 * being negotiated that is a mistake; afterwards the end of the old connection escaped us. */
static void test_peer_uses_an_id_anew(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        if (places[i].asked || places[i].state >= CM_STATE_SIDR_REQ_SENT) {
            continue;
        }
        struct pair *pair = pair_make();
        const struct ends ends = reach(pair, places[i].state, false);
        struct cm_message again = message_about(&ends, CM_REQ);
        again.transaction_id += UINT64_C(1) << 32;
        const bool negotiating =
            places[i].state == CM_STATE_REQ_RECEIVED || places[i].state == CM_STATE_REP_SENT;
        const enum cm_event_kind event = give(pair, 0, &again);
        if (negotiating) {
            struct cm_mad mad;
            struct cm_message rej;
            assert_int_equal(event, CM_EVENT_NONE);
            assert_int_equal(next(pair, 0, &mad), CM_REJ);
            assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &rej), CM_GOOD);
            assert_int_equal(rej.rej.reason, CM_REASON_DUPLICATE_LOCAL_COMMUNICATION_ID);
        } else {
            assert_int_equal(event, CM_EVENT_REQUESTED);
            struct cm_connection *anew = pair->sides[0].event.connection;
            /* Repetitions are the new one's. */
            assert_int_equal(give(pair, 0, &again), CM_EVENT_NONE);
            lose(pair, 0, CM_MRA);
            assert_int_equal(reply(pair, 0, anew), STATUS_OK);
            /* And the old one still can be ended. */
            (void)!cm_release(&pair->sides[0].cm, ends.of[0], pair->now);
            check_side(&pair->sides[0]);
        }
        free(pair);
    }
}

/* A REQ that the network held back comes after all is over: it makes no new connection. */
static void test_old_request_after_the_end(void **state)
{
    (void)state;
    for (int s = 0; s < 2; s++) { /* The side that ends it. */
        struct pair *pair = pair_make();
        struct cm_mad old;
        struct ends ends;
        ends.of[0] = request(pair, 0);
        assert_int_equal(next(pair, 0, &old), CM_REQ);
        assert_int_equal(give_between(pair, 1, old.source, old.destination, old.bytes),
                         CM_EVENT_REQUESTED);
        ends.of[1] = pair->sides[1].event.connection;
        assert_int_equal(reply(pair, 1, ends.of[1]), STATUS_OK);
        assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_REPLIED);
        assert_int_equal(confirm(pair, 0, ends.of[0]), STATUS_OK);
        assert_int_equal(deliver(pair, 0, CM_RTU), CM_EVENT_ESTABLISHED);
        assert_int_equal(cm_disconnect(&pair->sides[s].cm, ends.of[s], pair->now), STATUS_OK);
        assert_int_equal(deliver(pair, s, CM_DREQ), CM_EVENT_DISCONNECTED);
        assert_int_equal(deliver(pair, !s, CM_DREP), CM_EVENT_DISCONNECTED);
        assert_int_equal(give_between(pair, 1, old.source, old.destination, old.bytes),
                         CM_EVENT_NONE);
        /* The answer hurts nobody who has heard of the end. */
        assert_int_equal(deliver(pair, 1, CM_REJ), CM_EVENT_NONE);
        assert_int_equal(ends.of[0]->state, CM_STATE_TIMEWAIT);
        free(pair);
    }
}

/* The owner accepts and ends it before the peer has got the REP: the peer's request is refused, not
 * taken for another. */
static void test_connection_ended_before_the_peer_knows(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
    struct cm_connection *b = pair->sides[1].event.connection;
    assert_int_equal(reply(pair, 1, b), STATUS_OK);
    lose(pair, 1, CM_REP);
    assert_int_equal(cm_disconnect(&pair->sides[1].cm, b, pair->now), STATUS_OK);
    assert_int_equal(deliver(pair, 1, CM_DREQ), CM_EVENT_NONE);
    for (int i = 0; i <= CM_REFUSALS_MAX; i++) {
        wait_for(pair, 0);
        assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_NONE);
        assert_int_equal(deliver(pair, 1, CM_REJ),
                         i < CM_REFUSALS_MAX ? CM_EVENT_NONE : CM_EVENT_REJECTED);
    }
    assert_int_equal(pair->sides[0].event.message->rej.reason, CM_REASON_STALE_CONNECTION);
    free(pair);
}

/* -- Queue pairs in two connections -------------------------------------------------------------*/

/* A process that died, in whose place is another: it knows nothing. */
static void restart(struct side *side)
{
    static uint64_t seed = 1000;
    cm_init(&side->cm, seed++, 0, side->cm.ca_guid);
    for (int i = 0; i < CONNECTIONS; i++) {
        cm_connection_init(&side->connections[i]);
        side->used[i] = false;
    }
}

static void expect_stale(struct pair *pair, int from, enum cm_about about,
                         enum cm_event_kind expected)
{
    struct cm_mad mad;
    struct cm_message rej;
    assert_int_equal(pair->sides[from].cm.counters.stale, 1);
    assert_int_equal(next(pair, from, &mad), CM_REJ);
    assert_int_equal(cm_decode(mad.bytes, CM_MAD_BYTES, &rej), CM_GOOD);
    assert_int_equal(rej.rej.reason, CM_REASON_STALE_CONNECTION);
    assert_int_equal(rej.rej.about, about);
    assert_int_equal(give(pair, !from, &rej), expected);
}

/* 12.9.8.3.1: a peer asks with a queue pair that is in a connection. It has forgotten that one, of
 * which our program hears the end; and what it asks for is not in the way of it a moment later. */
static void test_request_with_a_connected_queue_pair(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct pair *pair = pair_make();
        const struct ends ends =
            reach(pair, i == 0 ? CM_STATE_REP_SENT : CM_STATE_ESTABLISHED, i == 2);
        struct cm_connection *old = ends.of[0];
        restart(&pair->sides[1]);
        struct cm_connection *anew = request_with(pair, 1, old->remote_qpn);
        assert_int_equal(deliver(pair, 1, CM_REQ), CM_EVENT_NONE);
        assert_int_equal(old->state, CM_STATE_DREQ_SENT);
        expect_stale(pair, 0, CM_ABOUT_REQ, CM_EVENT_NONE);
        assert_int_equal(deliver(pair, 0, CM_DREQ), CM_EVENT_NONE);
        assert_int_equal(deliver(pair, 1, CM_DREP), CM_EVENT_DISCONNECTED);
        assert_ptr_equal(pair->sides[0].event.connection, old);
        assert_int_equal(old->state, CM_STATE_TIMEWAIT);
        assert_int_equal(wait_for(pair, 1), CM_EVENT_NONE);
        assert_int_equal(deliver(pair, 1, CM_REQ), CM_EVENT_REQUESTED);
        struct cm_connection *accepted = pair->sides[0].event.connection;
        assert_int_equal(reply_with(pair, 0, accepted, 0x99), STATUS_OK);
        assert_int_equal(deliver(pair, 0, CM_REP), CM_EVENT_REPLIED);
        assert_int_equal(confirm(pair, 1, anew), STATUS_OK);
        assert_int_equal(deliver(pair, 1, CM_RTU), CM_EVENT_ESTABLISHED);
        assert_int_equal(pair->sides[0].cm.counters.stale, 1);
        free(pair);
    }
}

/* Likewise of a REP: what it answers comes to nothing, and both programs hear why. */
static void test_reply_with_a_connected_queue_pair(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    const struct ends old = establish(pair, 0);
    struct cm_connection *a = request(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_REQ), CM_EVENT_REQUESTED);
    struct cm_connection *b = pair->sides[1].event.connection;
    assert_int_equal(reply_with(pair, 1, b, old.of[0]->remote_qpn), STATUS_OK);
    assert_int_equal(deliver(pair, 1, CM_REP), CM_EVENT_REJECTED);
    assert_ptr_equal(pair->sides[0].event.connection, a);
    assert_int_equal(pair->sides[0].event.message->attribute, CM_REJ);
    assert_int_equal(pair->sides[0].event.message->rej.reason, CM_REASON_STALE_CONNECTION);
    assert_int_equal(a->state, CM_STATE_IDLE);
    expect_stale(pair, 0, CM_ABOUT_REP, CM_EVENT_REJECTED);
    assert_ptr_equal(pair->sides[1].event.connection, b);
    assert_int_equal(deliver(pair, 0, CM_DREQ), CM_EVENT_DISCONNECTED);
    assert_int_equal(deliver(pair, 1, CM_DREP), CM_EVENT_DISCONNECTED);
    assert_ptr_equal(pair->sides[0].event.connection, old.of[0]);
    free(pair);
}

/* While our program looks at the peer's REP there is nothing to end yet: it goes on. */
static void test_request_with_a_queue_pair_of_a_reply(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    const struct ends ends = reach(pair, CM_STATE_REP_RECEIVED, true);
    request_with(pair, 1, ends.of[0]->remote_qpn);
    assert_int_equal(deliver(pair, 1, CM_REQ), CM_EVENT_NONE);
    expect_stale(pair, 0, CM_ABOUT_REQ, CM_EVENT_NONE);
    expect_silence(pair, 0);
    assert_int_equal(confirm(pair, 0, ends.of[0]), STATUS_OK);
    free(pair);
}

/* These are no second connection of one queue pair: the number at another address, numbers that
 * name no queue pair, and a connection whose end this side knows. */
static void test_queue_pairs_that_are_not_connected(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    const struct ends old = establish(pair, 0);
    struct cm_mad mad;
    uint8_t stranger[16];
    memcpy(stranger, pair->sides[1].gid, sizeof(stranger));
    stranger[0] = 0xfd; /* Only what a table does not sort by. */
    request_with(pair, 1, old.of[0]->remote_qpn);
    assert_int_equal(next(pair, 1, &mad), CM_REQ);
    assert_int_equal(give_between(pair, 0, stranger, mad.destination, mad.bytes),
                     CM_EVENT_REQUESTED);
    assert_int_equal(cm_disconnect(&pair->sides[0].cm, old.of[0], pair->now), STATUS_OK);
    lose(pair, 0, CM_DREQ);
    assert_int_equal(give_between(pair, 0, mad.source, mad.destination, mad.bytes),
                     CM_EVENT_REQUESTED);
    free(pair);

    pair = pair_make();
    for (int i = 0; i < 2; i++) {
        request_with(pair, 1, 0);
        assert_int_equal(deliver(pair, 1, CM_REQ), CM_EVENT_REQUESTED);
        assert_int_equal(reply_with(pair, 0, pair->sides[0].event.connection, 0), STATUS_OK);
        assert_int_equal(deliver(pair, 0, CM_REP), CM_EVENT_REPLIED);
        assert_int_equal(confirm(pair, 1, pair->sides[1].event.connection), STATUS_OK);
        assert_int_equal(deliver(pair, 1, CM_RTU), CM_EVENT_ESTABLISHED);
    }
    assert_int_equal(pair->sides[0].cm.counters.stale + pair->sides[1].cm.counters.stale, 0);
    free(pair);
}

static void test_communication_ids(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm *cm = &pair->sides[1].cm;
    /* The id is in this manager's range, never 0, never one in use. */
    const struct prng before = cm->prng;
    const uint32_t first = request(pair, 1)->local_id;
    assert_int_equal(first >> 24, 1);
    cm->prng = before;
    const uint32_t second = request(pair, 1)->local_id;
    assert_int_equal(second >> 24, 1);
    assert_int_not_equal(second, first);
    /* Nor does one tell the next: a stranger that knows its own guesses nobody else's. */
    const uint32_t third = request(pair, 1)->local_id;
    assert_true(third - second > 1000 && second - third > 1000);
    /* The lower half of a transaction is the id, the upper one says more. */
    for (int i = 0; i < 3; i++) {
        const struct cm_connection *connection = &pair->sides[1].connections[i];
        assert_int_equal(connection->transaction_id & UINT32_MAX, connection->local_id);
        assert_int_not_equal(connection->transaction_id >> 32, 0);
    }
    struct cm *zero = &pair->sides[0].cm;
    zero->prng.state[1] = 0; /* The next number is 0. */
    assert_int_not_equal(request(pair, 0)->local_id, 0);
    free(pair);
}

static void test_sidr(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct cm_connection *a = sidr_request(pair, 0);
    lose(pair, 0, CM_SIDR_REQ);
    assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
    assert_int_equal(deliver(pair, 0, CM_SIDR_REQ), CM_EVENT_SIDR_REQUESTED);
    struct cm_connection *b = pair->sides[1].event.connection;
    assert_int_equal(b->service_id, SERVICE);
    assert_int_equal(sidr_reply(pair, 1, b), STATUS_OK);
    lose(pair, 1, CM_SIDR_REP);
    wait_for(pair, 0);
    assert_int_equal(deliver(pair, 0, CM_SIDR_REQ), CM_EVENT_NONE);
    assert_int_equal(deliver(pair, 1, CM_SIDR_REP), CM_EVENT_SIDR_REPLIED);
    assert_int_equal(pair->sides[0].event.message->sidr_rep.qpn, 0x33);
    assert_int_equal(pair->sides[0].event.message->sidr_rep.qkey, 0x44);
    assert_int_equal(pair->sides[0].event.message->sidr_rep.service_id, SERVICE);
    assert_int_equal(a->state, CM_STATE_IDLE);
    /* A second answer is for nobody; a second question with the same ID is another one. */
    struct cm_message again = {.attribute = CM_SIDR_REQ,
                               .transaction_id = b->transaction_id + (UINT64_C(1) << 32),
                               .local_id = b->remote_id};
    assert_int_equal(give(pair, 1, &again), CM_EVENT_SIDR_REQUESTED);
    assert_true(cm_release(&pair->sides[1].cm, b, pair->now));
    check_side(&pair->sides[1]);
    free(pair);
}

/* Many deadlines at once: one event a call, the next call due at once, none forgotten. */
static void test_many_deadlines_at_once(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct side *side = &pair->sides[0];
    for (int i = 0; i < CONNECTIONS; i++) {
        request(pair, 0);
    }
    for (int round = 0; round < CM_RETRIES; round++) {
        assert_int_equal(wait_for(pair, 0), CM_EVENT_NONE);
        for (int i = 0; i < CONNECTIONS; i++) {
            lose(pair, 0, CM_REQ);
        }
    }
    assert_int_equal(wait_for(pair, 0), CM_EVENT_UNREACHABLE);
    for (int i = 1; i < CONNECTIONS; i++) {
        assert_true(instant_reached(pair->now, cm_deadline(&side->cm)));
        assert_int_equal(pass_time(pair, 0, 0), CM_EVENT_UNREACHABLE);
    }
    assert_int_equal(pass_time(pair, 0, 0), CM_EVENT_NONE);
    assert_true(cm_deadline(&side->cm).ns == UINT64_MAX);
    free(pair);
}

/* The process did not run for hours: one event a call, and no deadline is before that of all. */
static void test_deadlines_passed_long_ago(void **state)
{
    (void)state;
    struct pair *pair = pair_make();
    struct side *side = &pair->sides[0];
    for (int i = 0; i < CONNECTIONS; i++) {
        request(pair, 0);
        pass_time(pair, 0, MS);
    }
    for (int round = 0; round < CM_RETRIES; round++) {
        assert_int_equal(pass_time(pair, 0, HOUR), CM_EVENT_NONE);
        for (int i = 0; i < CONNECTIONS; i++) {
            lose(pair, 0, CM_REQ);
        }
    }
    for (int i = 0; i < CONNECTIONS; i++) {
        assert_int_equal(pass_time(pair, 0, i == 0 ? HOUR : 0), CM_EVENT_UNREACHABLE);
        check_side(side);
    }
    assert_int_equal(pass_time(pair, 0, 0), CM_EVENT_NONE);
    assert_true(cm_deadline(&side->cm).ns == UINT64_MAX);
    free(pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_message_in_every_state),
        cmocka_unit_test(test_every_message_from_a_stranger),
        cmocka_unit_test(test_every_message_from_another_connection_of_the_peer),
        cmocka_unit_test(test_every_message_that_is_not_genuine),
        cmocka_unit_test(test_a_qpn_of_more_than_24_bits),
        cmocka_unit_test(test_every_wish_in_every_state),
        cmocka_unit_test(test_release_in_every_state),
        cmocka_unit_test(test_every_message_to_an_abandoned_connection),
        cmocka_unit_test(test_connect_and_disconnect),
        cmocka_unit_test(test_each_message_lost),
        cmocka_unit_test(test_rtu_lost_behind_mra),
        cmocka_unit_test(test_patience_grows),
        cmocka_unit_test(test_farewells_lost),
        cmocka_unit_test(test_last_words),
        cmocka_unit_test(test_farewells_cross),
        cmocka_unit_test(test_exhaustion),
        cmocka_unit_test(test_giving_up_is_said),
        cmocka_unit_test(test_strangers_get_no_more_than_they_sent_threefold),
        cmocka_unit_test(test_peers_that_hear_us_are_told_all),
        cmocka_unit_test(test_rtu_is_repeated_unasked),
        cmocka_unit_test(test_gone_peers_are_spoken_for),
        cmocka_unit_test(test_pace_of_repetitions),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_patience_for_something_else),
        cmocka_unit_test(test_rejection),
        cmocka_unit_test(test_nobody_listens_yet),
        cmocka_unit_test(test_refusal_renews_the_pace),
        cmocka_unit_test(test_refusal_without_tries),
        cmocka_unit_test(test_request_taken_back),
        cmocka_unit_test(test_only_who_gave_up_may_leave_our_id_out),
        cmocka_unit_test(test_strays),
        cmocka_unit_test(test_refusal_without_a_connection),
        cmocka_unit_test(test_mads_name_the_process),
        cmocka_unit_test(test_more_strays_than_room),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_another_class_version),
        cmocka_unit_test(test_no_memory_for_a_request),
        cmocka_unit_test(test_peer_uses_an_id_anew),
        cmocka_unit_test(test_old_request_after_the_end),
        cmocka_unit_test(test_connection_ended_before_the_peer_knows),
        cmocka_unit_test(test_request_with_a_connected_queue_pair),
        cmocka_unit_test(test_reply_with_a_connected_queue_pair),
        cmocka_unit_test(test_request_with_a_queue_pair_of_a_reply),
        cmocka_unit_test(test_queue_pairs_that_are_not_connected),
        cmocka_unit_test(test_communication_ids),
        cmocka_unit_test(test_sidr),
        cmocka_unit_test(test_many_deadlines_at_once),
        cmocka_unit_test(test_deadlines_passed_long_ago),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
