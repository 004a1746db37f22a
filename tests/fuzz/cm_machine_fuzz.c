/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_machine_fuzz - the connection manager against peers and programs that do anything at all.
 *
 * Goal    No order of messages, wishes, answers and times reaches a CHECK, touches memory that was
 *         given back, or loses any; nobody waits without a deadline.
 * Method  The input is a list of records. Each is a wish of the program, an answer of the world, a
 *         step of time, or a message: raw bytes, or fields of which some are hinted to be right,
 *         since no fuzzer guesses a communication ID. Memory that comes back is freed; after each
 *         record all of it is counted, and each id is compared with the tables it stands in.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "transport/ibta/rdma_cm.h"

#define IDS      12
#define GROUPS   4
#define CHANNELS 2
#define PORTS    3

struct program {
    struct rdma_cm cm;
    struct rdma_channel channels[CHANNELS];
    struct rdma_id *ids[IDS]; /* Alive, in the program's hands. */
    struct rdma_multicast *groups[GROUPS];
    struct rdma_id *asked[IDS]; /* Questions taken and not yet answered. */
    uint32_t ids_made, ids_back, events_made;
    struct instant now;
};

struct input {
    const uint8_t *bytes;
    size_t count;
};

static uint8_t take(struct input *input)
{
    if (input->count == 0) {
        return 0;
    }
    input->count--;
    return *input->bytes++;
}

static const uint8_t gids[3][16] = {
    {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, /* The program's. */
    {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2},
    {0xfd, [15] = 3},
};

/* -- Memory -------------------------------------------------------------------------------------*/

static void prepare(struct program *program, bool fully)
{
    while (fully && program->cm.spare_event_count < RDMA_SPARE_EVENTS) {
        program->events_made++;
        rdma_cm_give_event(&program->cm, calloc(1, sizeof(struct rdma_event)));
    }
    while (fully && program->cm.spare_id_count < RDMA_SPARE_IDS) {
        program->ids_made++;
        rdma_cm_give_id(&program->cm, calloc(1, sizeof(struct rdma_id)));
    }
}

static uint32_t length(const struct list *head)
{
    uint32_t count = 0;
    for (const struct list *node = head->next; node != head; node = node->next) {
        CHECK(node->next->previous == node && node->previous->next == node);
        count++;
    }
    return count;
}

static bool waits(uint8_t state)
{
    return state == CM_STATE_REQ_SENT || state == CM_STATE_REP_SENT ||
           state == CM_STATE_DREQ_SENT || state == CM_STATE_TIMEWAIT ||
           state == CM_STATE_SIDR_REQ_SENT;
}

static void check_connection(const struct cm *cm, const struct cm_connection *connection)
{
    const bool idle = connection->state == CM_STATE_IDLE;
    CHECK(list_empty(&connection->by_local) == idle);
    CHECK(list_empty(&connection->by_remote) || (!idle && !connection->asked));
    const bool timed = !list_empty(&connection->timed);
    const bool repeats_rtu = connection->state == CM_STATE_ESTABLISHED && connection->asked;
    CHECK(repeats_rtu || timed == waits(connection->state));
    CHECK((connection->deadline.ns != UINT64_MAX) == timed);
    CHECK(!instant_before(connection->deadline, cm->deadline));
}

static void check(const struct program *program)
{
    const struct rdma_cm *cm = &program->cm;
    uint32_t queued = 0;
    for (int c = 0; c < CHANNELS; c++) {
        queued += length(&program->channels[c].events);
    }
    CHECK(length(&cm->spare_events) == cm->spare_event_count);
    CHECK(length(&cm->spare_ids) == cm->spare_id_count);
    CHECK(queued + cm->spare_event_count == program->events_made);
    CHECK(cm->cm.stray_tail - cm->cm.stray_head <= CM_STRAYS_MAX);
    length(&cm->cm.timed);
    length(&cm->cm.outbox);
    for (int i = 0; i < IDS; i++) {
        if (program->ids[i] != NULL) {
            check_connection(&cm->cm, &program->ids[i]->connection);
        }
    }
}

static void take_back(struct program *program)
{
    struct rdma_id *id;
    while ((id = rdma_cm_next_released(&program->cm)) != NULL) {
        for (int i = 0; i < IDS; i++) {
            CHECK(program->ids[i] != id);
            if (program->asked[i] == id) {
                program->asked[i] = NULL;
            }
        }
        program->ids_back++;
        free(id);
    }
}

static void release(struct program *program, int i)
{
    struct rdma_id *id = program->ids[i];
    for (int g = 0; g < GROUPS; g++) {
        if (program->groups[g] != NULL && program->groups[g]->id == id) {
            rdma_multicast_leave(&program->cm, program->groups[g]);
            free(program->groups[g]);
            program->groups[g] = NULL;
        }
    }
    program->ids[i] = NULL;
    rdma_id_release(&program->cm, id, program->now);
}

/* -- The program --------------------------------------------------------------------------------*/

static struct rdma_address address(struct input *input)
{
    struct rdma_address address = {.known = true, .port = (uint16_t)(take(input) % PORTS)};
    const uint8_t which = take(input) % 5;
    if (which < 3) {
        memcpy(address.ip, gids[which], 16);
    } else if (which == 3) {
        address.ip[10] = address.ip[11] = 0xff;
    }
    address.ipv6 = which == 2 || which == 4;
    return address;
}

static struct rdma_parameters parameters(struct input *input)
{
    return (struct rdma_parameters){.private_bytes = take(input),
                                    .responder_resources = take(input),
                                    .initiator_depth = take(input),
                                    .retry_count = take(input),
                                    .qpn = take(input),
                                    .qkey = take(input)};
}

static void create(struct program *program, struct input *input, int i)
{
    static const uint16_t spaces[] = {RDMA_PORT_SPACE_TCP, RDMA_PORT_SPACE_UDP,
                                      RDMA_PORT_SPACE_IPOIB, RDMA_PORT_SPACE_IB};
    program->ids[i] = calloc(1, sizeof(struct rdma_id));
    program->ids_made++;
    rdma_id_init(program->ids[i], &program->channels[take(input) % CHANNELS],
                 spaces[take(input) % COUNT_OF(spaces)], take(input));
    CHECK(rdma_id_set_ipv6_only(program->ids[i], take(input) & 1) == STATUS_OK);
}

static void fetch(struct program *program, struct input *input)
{
    struct rdma_channel *channel = &program->channels[take(input) % CHANNELS];
    struct rdma_event *event = rdma_channel_take(&program->cm, channel);
    if (event == NULL) {
        return;
    }
    CHECK(event->parameters.private_bytes <= CM_PRIVATE_BYTES_MAX);
    struct rdma_id *id = event->id;
    const bool request = event->kind == RDMA_EVENT_CONNECT_REQUEST;
    rdma_cm_give_event(&program->cm, event);
    for (int i = 0; request && i < IDS; i++) {
        if (program->ids[i] == NULL) {
            program->ids[i] = id;
            return;
        }
    }
    if (request) {
        rdma_id_release(&program->cm, id, program->now);
    }
}

static void join(struct program *program, struct input *input, struct rdma_id *id)
{
    const int g = take(input) % GROUPS;
    if (program->groups[g] != NULL) {
        rdma_multicast_leave(&program->cm, program->groups[g]);
        free(program->groups[g]);
    }
    const struct rdma_address group = address(input);
    program->groups[g] = calloc(1, sizeof(struct rdma_multicast));
    if (rdma_multicast_join(&program->cm, program->groups[g], id, &group, 5) != STATUS_OK) {
        free(program->groups[g]);
        program->groups[g] = NULL;
    }
}

static void accept_or_name(struct program *program, struct input *input, struct rdma_id *id)
{
    const struct rdma_parameters wish = parameters(input);
    (void)!rdma_id_accept(&program->cm, id, &wish, take(input), program->now);
}

static void wish(struct program *program, struct input *input)
{
    struct rdma_cm *cm = &program->cm;
    const int i = take(input) % IDS;
    const uint8_t what = take(input);
    struct rdma_id *id = program->ids[i];
    if (id == NULL) {
        create(program, input, i);
        return;
    }
    struct rdma_address to;
    struct rdma_parameters said;
    static const uint8_t text[256];
    switch (what % 15) {
    case 0: release(program, i); return;
    case 1:
        to = address(input);
        (void)!rdma_id_bind(id, &to, gids[0]);
        return;
    case 2:
        to = address(input);
        (void)!rdma_id_resolve_address(cm, id, &to);
        return;
    case 3: (void)!rdma_id_resolve_route(cm, id); return;
    case 4: (void)!rdma_id_listen(cm, id, take(input) % 4); return;
    case 5:
        said = parameters(input);
        (void)!rdma_id_connect(cm, id, &said);
        return;
    case 6: accept_or_name(program, input, id); return;
    case 7: (void)!rdma_id_establish(cm, id, program->now); return;
    case 8: (void)!rdma_id_note_established(cm, id); return;
    case 9: (void)!rdma_id_reject(cm, id, CM_REASON_CONSUMER, text, take(input)); return;
    case 10: (void)!rdma_id_disconnect(cm, id, program->now); return;
    case 11: rdma_id_migrate(cm, id, &program->channels[take(input) % CHANNELS]); return;
    case 12: join(program, input, id); return;
    case 13: (void)!rdma_id_tell(cm, id, RDMA_EVENT_USER, 0, what); return;
    default: fetch(program, input); return;
    }
}

/* -- The world ----------------------------------------------------------------------------------*/

static void ask(struct program *program)
{
    for (int i = 0; i < IDS; i++) {
        enum rdma_question question;
        if (program->asked[i] == NULL) {
            program->asked[i] = rdma_cm_next_question(&program->cm, &question);
        }
    }
}

static void answer_route(struct program *program, struct rdma_id *id,
                         const struct rdma_address *source, const uint8_t gid[16], uint8_t path_mtu)
{
    struct rdma_route route = {.source = *source, .path_mtu = path_mtu};
    memcpy(route.source_gid, gid, 16);
    rdma_cm_on_route(&program->cm, id, &route);
}

static void answer_server(struct program *program, struct rdma_id *id, const uint8_t gid[16],
                          uint32_t process)
{
    struct rdma_server server = {.process = process};
    memcpy(server.gid, gid, 16);
    memcpy(server.source_gid, gids[0], 16);
    rdma_cm_on_found(&program->cm, id, &server, program->now);
}

/* Late, or for another question than it was asked: as if the id had been used otherwise since. */
static void answer(struct program *program, struct input *input)
{
    const int i = take(input) % IDS;
    struct rdma_id *id = program->asked[i];
    const uint8_t how = take(input);
    if (id == NULL) {
        return;
    }
    program->asked[i] = NULL;
    /* The world sees to it that source and destination are of one kind. */
    struct rdma_address source = {.known = true, .port = 9};
    const uint8_t *gid = id->destination.ipv6 ? gids[2] : gids[0];
    memcpy(source.ip, gid, 16);
    source.ipv6 = id->destination.ipv6;
    switch (how & 3) {
    case 0: answer_server(program, id, gids[1 + (how >> 2 & 1)], how >> 3); return;
    case 1: answer_route(program, id, &source, gid, (uint8_t)(how >> 4)); return;
    case 2: rdma_cm_on_nobody(&program->cm, id); return;
    default: rdma_cm_on_no_route(&program->cm, id, 113); return;
    }
}

static void pass_time(struct program *program, struct input *input)
{
    static const uint64_t steps_ns[] = {0, 1, 250000000, 1000000000, 5000000000, 100000000000};
    program->now = instant_after(program->now, steps_ns[take(input) % COUNT_OF(steps_ns)]);
    rdma_cm_on_time(&program->cm, program->now);
}

/* -- Peers --------------------------------------------------------------------------------------*/

static void deliver(struct program *program, const uint8_t source[16], const uint8_t *bytes,
                    size_t count)
{
    /* As from a port: a copy of just these bytes, so that reading past them is found. */
    uint8_t *copy = malloc(count + 1);
    CHECK(copy != NULL);
    memcpy(copy, bytes, count);
    rdma_cm_on_message(&program->cm, source, gids[0], copy, count, program->now);
    free(copy);
}

static void raw(struct program *program, struct input *input)
{
    const uint8_t from = take(input);
    const size_t wanted = (from & 0x80) != 0 ? CM_MAD_BYTES : take(input);
    const size_t count = wanted < input->count ? wanted : input->count;
    deliver(program, gids[1 + (from & 1)], input->bytes, count);
    input->bytes += count;
    input->count -= count;
}

/* A connection in use: the program's, or one whose farewell is still to be answered; NULL: none. */
static const struct cm_connection *pick(const struct program *program, uint8_t which)
{
    const struct cm_connection *found[2 * IDS];
    uint32_t count = 0;
    for (int i = 0; i < IDS; i++) {
        if (program->ids[i] != NULL && program->ids[i]->connection.state != CM_STATE_IDLE) {
            found[count++] = &program->ids[i]->connection;
        }
    }
    const struct list *timed = &program->cm.cm.timed;
    for (const struct list *node = timed->next; node != timed && count < COUNT_OF(found);
         node = node->next) {
        found[count++] = CONTAINER_OF_CONST(node, struct cm_connection, timed);
    }
    return count == 0 ? NULL : found[which % count];
}

/* With right IDs of one of the program's connections, if there is one, but for a few bits. */
static void plausible(struct program *program, struct input *input)
{
    static const uint16_t attributes[] = {CM_REQ,  CM_MRA,  CM_REJ,      CM_REP,     CM_RTU,
                                          CM_DREQ, CM_DREP, CM_SIDR_REQ, CM_SIDR_REP};
    const uint8_t flaws = take(input);
    const struct cm_connection *connection = pick(program, take(input));
    struct cm_message message = {.attribute = attributes[take(input) % COUNT_OF(attributes)],
                                 .local_id = take(input) % 4,
                                 .transaction_id = take(input) % 2};
    const uint8_t *source = gids[1 + (flaws >> 7)];
    if (connection != NULL) {
        message.remote_id = flaws & 1 ? 0 : connection->local_id;
        message.transaction_id = flaws & 2                      ? message.transaction_id
                                 : message.attribute == CM_DREP ? connection->transaction_id
                                                                : connection->opened_by;
        message.local_id = flaws & 4 ? message.local_id : connection->remote_id;
        source = flaws & 8 ? source : connection->destination;
        if (message.attribute == CM_SIDR_REP) {
            message.local_id = connection->local_id;
        }
    }
    const uint8_t kind = take(input), port = take(input) % PORTS;
    static const uint16_t spaces[] = {RDMA_PORT_SPACE_TCP, RDMA_PORT_SPACE_UDP,
                                      RDMA_PORT_SPACE_IPOIB, RDMA_PORT_SPACE_IB};
    const uint64_t service = cm_service_id(spaces[kind % COUNT_OF(spaces)], port);
    if (message.attribute == CM_REQ) {
        message.req = (struct cm_req){
            .service_id = service, .transport = flaws >> 4 & 3, .path_mtu = (uint8_t)(kind >> 4)};
    } else if (message.attribute == CM_SIDR_REQ) {
        message.sidr_req.service_id = service;
    } else if (message.attribute == CM_MRA) {
        message.mra.about = kind % 3;
        message.mra.service_timeout = kind >> 3;
    } else if (message.attribute == CM_DREQ) {
        message.dreq_qpn = flaws & 16 || connection == NULL ? kind : connection->local_qpn;
    } else if (message.attribute == CM_REJ) {
        message.rej.about = kind % 3;
        message.rej.reason = kind;
        message.rej.information_bytes = flaws & 16 ? 0 : 8;
        store_be64(message.rej.information, connection == NULL ? 0 : connection->peer_guid);
    } else if (message.attribute == CM_SIDR_REP) {
        message.sidr_rep.status = kind % 6;
    }
    if (message.attribute == CM_REQ || message.attribute == CM_SIDR_REQ) {
        message.private_data[1] = (uint8_t)(flaws & 0x40 ? 0x60 : 0x40);
        memcpy(message.private_data + 20, gids[flaws & 0x40 ? 2 : 0], 16);
    }
    uint8_t bytes[CM_MAD_BYTES];
    cm_encode(&message, bytes);
    deliver(program, source, bytes, sizeof(bytes));
}

static void send_all(struct program *program)
{
    struct cm_mad mad;
    struct cm_message message;
    while (cm_next_message(&program->cm.cm, &mad)) {
        CHECK(cm_decode(mad.bytes, sizeof(mad.bytes), &message) == CM_GOOD);
    }
}

/* The very message that the peer of an id's connection would send next. */
static void advance_peer(struct program *program, const struct cm_connection *connection,
                         struct input *input)
{
    struct cm_message message = {.transaction_id = connection->opened_by,
                                 .local_id = connection->remote_id,
                                 .remote_id = connection->local_id};
    uint8_t bytes[CM_MAD_BYTES];
    switch (connection->state) {
    case CM_STATE_REQ_SENT:
        message.attribute = CM_REP;
        message.local_id = take(input) % 4;
        break;
    case CM_STATE_REP_SENT: message.attribute = CM_RTU; break;
    case CM_STATE_ESTABLISHED:
        message.attribute = CM_DREQ;
        message.dreq_qpn = connection->local_qpn;
        break;
    case CM_STATE_DREQ_SENT:
        message.attribute = CM_DREP;
        message.transaction_id = connection->transaction_id;
        break;
    case CM_STATE_SIDR_REQ_SENT:
        message.attribute = CM_SIDR_REP;
        message.local_id = connection->local_id;
        break;
    default: return;
    }
    cm_encode(&message, bytes);
    deliver(program, connection->destination, bytes, sizeof(bytes));
}

/* The next step of an id's usual life, since chance alone seldom makes all of them. */
static void advance(struct program *program, struct input *input)
{
    struct rdma_cm *cm = &program->cm;
    const int i = take(input) % IDS;
    struct rdma_id *id = program->ids[i];
    const struct rdma_address to = {
        .ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}, .port = 1, .known = true};
    struct rdma_parameters said = {.qpn = 5};
    if (id == NULL) {
        create(program, input, i);
        return;
    }
    ask(program);
    for (int a = 0; a < IDS; a++) {
        if (program->asked[a] == id) {
            program->asked[a] = NULL;
            answer_route(program, id, &to, gids[0], 3);
            answer_server(program, id, gids[1], 0);
            return;
        }
    }
    switch ((enum rdma_id_state)id->state) {
    case RDMA_ID_IDLE: (void)!rdma_id_bind(id, &to, gids[0]); return;
    case RDMA_ID_BOUND:
        if (take(input) % 2 == 0) {
            (void)!rdma_id_resolve_address(cm, id, &to);
        } else {
            (void)!rdma_id_listen(cm, id, 8);
        }
        return;
    case RDMA_ID_RESOLVED: (void)!rdma_id_resolve_route(cm, id); return;
    case RDMA_ID_ROUTED: (void)!rdma_id_connect(cm, id, &said); return;
    case RDMA_ID_REQUESTED: accept_or_name(program, input, id); return;
    case RDMA_ID_CONNECTING:
        if (rdma_id_establish(cm, id, program->now) == STATUS_OK) {
            return;
        }
        advance_peer(program, &id->connection, input);
        return;
    case RDMA_ID_CONNECTED:
    case RDMA_ID_DISCONNECTED: advance_peer(program, &id->connection, input); return;
    case RDMA_ID_RESOLVING:
    case RDMA_ID_ROUTING:
    case RDMA_ID_FINDING:
    case RDMA_ID_LISTENING: return;
    }
}

/* -- All of it ----------------------------------------------------------------------------------*/

static void record(struct program *program, struct input *input)
{
    const uint8_t what = take(input);
    prepare(program, what < 0xf0); /* Now and then there is no memory. */
    switch (what % 8) {
    case 0: raw(program, input); break;
    case 1:
    case 2: plausible(program, input); break;
    case 3: pass_time(program, input); break;
    case 4:
        ask(program);
        answer(program, input);
        break;
    case 5: send_all(program); break;
    case 6: advance(program, input); break;
    default: wish(program, input); break;
    }
    while (rdma_cm_next_changed(&program->cm) != NULL) {
    }
    take_back(program);
    check(program);
}

/* Everybody lets go, and time passes: all memory comes back, and nothing stands in a table. */
static void end(struct program *program)
{
    for (int i = 0; i < IDS; i++) {
        if (program->ids[i] != NULL) {
            release(program, i);
        }
    }
    for (int i = 0; i < 20; i++) {
        prepare(program, true);
        program->now = instant_after(program->now, UINT64_C(20000000000000));
        rdma_cm_on_time(&program->cm, program->now);
        send_all(program);
        take_back(program);
    }
    CHECK(cm_deadline(&program->cm.cm).ns == UINT64_MAX);
    CHECK(program->ids_made - program->ids_back == program->cm.spare_id_count);
    CHECK(program->events_made == program->cm.spare_event_count);
    for (uint32_t i = 0; i < CM_BUCKETS; i++) {
        CHECK(list_empty(&program->cm.cm.local[i]) && list_empty(&program->cm.cm.remote[i]));
    }
    struct list *spare;
    while ((spare = list_pop(&program->cm.spare_events)) != NULL) {
        free(CONTAINER_OF(spare, struct rdma_event, node));
    }
    while ((spare = list_pop(&program->cm.spare_ids)) != NULL) {
        free(CONTAINER_OF(spare, struct rdma_id, released));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static struct program program;
    struct input input = {bytes, count};
    memset(&program, 0, sizeof(program));
    rdma_cm_init(&program.cm, 1, 0, 2);
    program.now.ns = 1000;
    for (int c = 0; c < CHANNELS; c++) {
        rdma_channel_init(&program.channels[c]);
    }
    while (input.count > 0) {
        record(&program, &input);
    }
    end(&program);
    return 0;
}
