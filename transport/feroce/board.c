/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/feroce/board.h"

#include "base/align.h"
#include "base/bytes.h"

/* BTH, AETH and ICRC. */
#define ANSWER_BYTES (ROCE_BTH_BYTES + ROCE_AETH_BYTES + ROCE_ICRC_BYTES)

const char *feroce_board_refuses(const struct feroce_board_config *config)
{
    if (config->stack == FEROCE_STACK_2024 &&
        (config->window.qps != 1 || !config->window.sends_once)) {
        return "the board of 2024 has one queue pair, and sends nothing again";
    }
    if (config->stack == FEROCE_STACK_2026 && config->window.sends_once) {
        return "the board of 2026 sends again what is lost";
    }
    return feroce_retransmission_refuses(&config->window);
}

size_t feroce_board_bytes(const struct feroce_board_config *config)
{
    return feroce_retransmission_bytes(&config->window);
}

void feroce_board_init(struct feroce_board *board, const struct feroce_board_config *config,
                       void *memory)
{
    CHECK(feroce_board_refuses(config) == NULL);
    const uint32_t quirks = config->window.quirks;
    *board = (struct feroce_board){.config = *config};
    feroce_table_init(&board->table, config->window.qps, (quirks & FEROCE_QUIRK_LATCH) != 0);
    feroce_retransmission_init(&board->window, &config->window, memory);
    feroce_slave_init(&board->slave, config->ip, quirks);
    feroce_master_init(&board->master, config->ip, quirks, config->master_timeout_ns);
}

/* -- Events -------------------------------------------------------------------------------------*/

static void push_event(struct feroce_board *board, struct feroce_event event)
{
    CHECK(board->event_count < FEROCE_EVENTS_MAX);
    board->events[(board->first_event + board->event_count++) % FEROCE_EVENTS_MAX] = event;
}

bool feroce_board_next_event(struct feroce_board *board, struct feroce_event *event)
{
    if (board->event_count == 0) {
        return false;
    }
    *event = board->events[board->first_event];
    board->first_event = (board->first_event + 1) % FEROCE_EVENTS_MAX;
    board->event_count--;
    return true;
}

/* -- The connection manager ---------------------------------------------------------------------*/

const char *feroce_cm_arrival_name(enum feroce_cm_arrival arrival)
{
    static const char *const names[FEROCE_CM_ARRIVALS] = {
        [FEROCE_CM_TAKEN] = "cm_taken",
        [FEROCE_CM_LENGTH] = "cm_wrong_length",
        [FEROCE_CM_ADDRESS] = "cm_wrong_address",
        [FEROCE_CM_PORT] = "cm_wrong_port",
        [FEROCE_CM_NOTHING] = "cm_nothing_asked",
        [FEROCE_CM_LOST] = "cm_lost",
        [FEROCE_CM_UNASKED] = "cm_reply_to_nothing",
        [FEROCE_CM_META_FOREIGN] = "cm_meta_for_foreign_qpn",
    };
    CHECK(arrival < FEROCE_CM_ARRIVALS);
    return names[arrival];
}

/* The AETH that began it is told. */
static void push_failed(struct feroce_board *board, uint32_t index)
{
    const uint8_t syndrome = board->table.contexts[index].first_syndrome;
    push_event(board, (struct feroce_event){
                          .kind = FEROCE_EVENT_FAILED,
                          .index = index,
                          .syndrome = syndrome != 0 ? syndrome : FEROCE_SYNDROME_LIMIT,
                          .opcode = board->queues[index].refused,
                      });
}

/* `udp_port`: where a host that opens listens. */
static void apply(struct feroce_board *board, enum feroce_change change, uint32_t index,
                  uint16_t udp_port)
{
    if (change == FEROCE_CHANGE_OPENED) {
        const struct feroce_context *context = &board->table.contexts[index];
        board->queues[index] = (struct feroce_queue){0};
        feroce_window_open(&board->window, index, psn_of(context->remote.psn));
        push_event(board, (struct feroce_event){
                              .kind = FEROCE_EVENT_OPENED, .index = index, .udp_port = udp_port});
    } else if (change == FEROCE_CHANGE_CLOSED) {
        const struct feroce_window *window = &board->window.windows[index];
        if (window->open && window->failed) {
            push_failed(board, index); /* The reader has not come by to give it up. */
        }
        feroce_window_close(&board->window, index);
        push_event(board, (struct feroce_event){.kind = FEROCE_EVENT_CLOSED, .index = index});
    }
}

static enum feroce_cm_arrival take_info(struct feroce_board *board, const struct feroce_cm *message)
{
    uint32_t index = 0;
    enum feroce_change change = FEROCE_CHANGE_NONE;
    if (message->ack_valid) {
        index = board->master.index;
        if (!feroce_master_take(&board->master, &board->table, message, &change)) {
            return FEROCE_CM_UNASKED;
        }
        apply(board, change, index, 0);
        return FEROCE_CM_TAKEN;
    }
    const uint32_t replies = board->slave.count;
    change = feroce_slave_take(&board->slave, &board->table, message, &index);
    if (change == FEROCE_CHANGE_LOST) {
        return FEROCE_CM_LOST;
    }
    apply(board, change, index, message->listening_port);
    return board->slave.count != replies ? FEROCE_CM_TAKEN : FEROCE_CM_NOTHING;
}

static enum feroce_cm_arrival take_meta(struct feroce_board *board, const struct feroce_cm *message)
{
    const uint32_t index = feroce_table_find(&board->table, message->remote.qpn);
    if (index == FEROCE_QPS_MAX) {
        return FEROCE_CM_META_FOREIGN;
    }
    push_event(board, (struct feroce_event){
                          .kind = FEROCE_EVENT_META, .index = index, .meta = message->meta});
    return FEROCE_CM_TAKEN;
}

static enum feroce_cm_arrival judge_cm(struct feroce_board *board, const uint8_t *bytes,
                                       size_t count, uint32_t to_ip, uint16_t to_port,
                                       uint16_t from_port)
{
    struct feroce_cm message;
    if (to_port != FEROCE_PORT_CM) {
        return FEROCE_CM_PORT;
    }
    if (!feroce_cm_decode(board->config.cm_version, bytes, count, &message)) {
        return FEROCE_CM_LENGTH;
    }
    if (to_ip != board->config.ip) {
        return FEROCE_CM_ADDRESS;
    }
    if (board->config.cm_version == FEROCE_CM_3 && feroce_cm_suspect(bytes, from_port)) {
        board->cm_version_suspect++;
    }
    /* There must be room for the events of this message, and for the failure of all queue pairs,
     * before the world takes events. */
    if (board->event_count + 2 + FEROCE_QPS_MAX > FEROCE_EVENTS_MAX) {
        return FEROCE_CM_LOST;
    }
    const enum feroce_cm_arrival info =
        message.info_valid ? take_info(board, &message) : FEROCE_CM_NOTHING;
    const enum feroce_cm_arrival meta =
        message.meta.valid ? take_meta(board, &message) : FEROCE_CM_NOTHING;
    return info == FEROCE_CM_NOTHING ? meta : info;
}

enum feroce_cm_arrival feroce_board_on_cm(struct feroce_board *board, const uint8_t *bytes,
                                          size_t count, uint32_t to_ip, uint16_t to_port,
                                          uint16_t from_port)
{
    const enum feroce_cm_arrival arrival = judge_cm(board, bytes, count, to_ip, to_port, from_port);
    board->cm_arrivals[arrival]++;
    return arrival;
}

bool feroce_board_next_cm(struct feroce_board *board, struct instant now,
                          uint8_t out[FEROCE_CM_BYTES], uint32_t *ip, uint16_t *port)
{
    struct feroce_reply reply;
    if (!feroce_slave_next(&board->slave, &reply) &&
        !feroce_master_next(&board->master, now, &reply)) {
        return false;
    }
    feroce_cm_encode(board->config.cm_version, &reply.message, out);
    *ip = reply.ip;
    *port = reply.port;
    return true;
}

/* -- Messages become packets --------------------------------------------------------------------*/

bool feroce_board_has_room(const struct feroce_board *board, uint32_t index)
{
    return feroce_window_has_room(&board->window, index);
}

void feroce_board_start(struct feroce_board *board, uint32_t index)
{
    board->queues[index].halted = false;
}

/* By operation, and position in the message. */
static uint8_t opcode_of(const struct feroce_message *message, bool is_first, bool is_last)
{
    const bool immediate = message->has_immediate;
    if (message->write) {
        return is_first && is_last ? (immediate ? ROCE_WRITE_ONLY_IMMEDIATE : ROCE_WRITE_ONLY)
               : is_first          ? ROCE_WRITE_FIRST
               : !is_last          ? ROCE_WRITE_MIDDLE
                                   : (immediate ? ROCE_WRITE_LAST_IMMEDIATE : ROCE_WRITE_LAST);
    }
    return is_first && is_last ? (immediate ? ROCE_SEND_ONLY_IMMEDIATE : ROCE_SEND_ONLY)
           : is_first          ? ROCE_SEND_FIRST
           : !is_last          ? ROCE_SEND_MIDDLE
                               : (immediate ? ROCE_SEND_LAST_IMMEDIATE : ROCE_SEND_LAST);
}

static enum feroce_store judge_store(const struct feroce_board *board, uint32_t index,
                                     const struct feroce_message *message, uint32_t bytes,
                                     bool is_last)
{
    const uint32_t pmtu = board->config.window.pmtu;
    const struct feroce_queue *queue = &board->queues[index];
    if (board->table.contexts[index].state != FEROCE_RTS || !board->window.windows[index].open) {
        return FEROCE_STORE_NOT_OPEN;
    }
    if (queue->halted && !queue->in_message) {
        return FEROCE_STORE_HALTED;
    }
    if (bytes == 0 || bytes % 4 != 0 || bytes > pmtu || (!is_last && bytes != pmtu) ||
        (!message->write && board->config.stack == FEROCE_STACK_2024)) {
        return FEROCE_STORE_REFUSED;
    }
    return FEROCE_STORED;
}

enum feroce_store feroce_board_store(struct feroce_board *board, uint32_t index,
                                     const struct feroce_message *message, const uint8_t *payload,
                                     uint32_t bytes, bool is_last, struct instant now)
{
    CHECK(index < board->config.window.qps);
    const enum feroce_store verdict = judge_store(board, index, message, bytes, is_last);
    if (verdict != FEROCE_STORED) {
        return verdict;
    }
    struct feroce_queue *queue = &board->queues[index];
    struct feroce_context *context = &board->table.contexts[index];
    const struct feroce_header header = {
        .opcode = opcode_of(message, !queue->in_message, is_last),
        .address = context->remote.address + message->offset,
        .length = message->length,
        .immediate = message->immediate,
        .payload_bytes = bytes,
    };
    if (!feroce_window_store(&board->window, index, &header, payload, now)) {
        return FEROCE_STORE_FULL;
    }
    queue->in_message = !is_last;
    queue->stored++;
    if (is_last) {
        /* A finished message adds its packets to the context's PSN. */
        context->remote.psn = psn_after(psn_of(context->remote.psn), queue->stored).value;
        queue->stored = 0;
        board->messages++;
    }
    INVARIANTS(feroce_board_check(board));
    return FEROCE_STORED;
}

/* -- Packets leave ------------------------------------------------------------------------------*/

static void make_packet(const struct feroce_board *board, uint32_t index,
                        const struct feroce_read *read, struct feroce_packet *packet)
{
    const struct feroce_side *remote = &board->table.contexts[index].remote;
    const struct feroce_header *header = read->header;
    const bool rkey0 = (board->config.window.quirks & FEROCE_QUIRK_RKEY0) != 0;
    const struct roce_packet roce = {
        .opcode = header->opcode,
        .migration_request = board->config.stack == FEROCE_STACK_2026,
        .ack_request = true,
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = remote->qpn,
        .psn = header->psn.value,
        .reth = {.address = header->address,
                 .key = rkey0 ? 0 : remote->rkey,
                 .bytes = header->length},
        .immediate = header->immediate,
    };
    *packet = (struct feroce_packet){
        .destination_ip = remote->ip,
        .qpn = FEROCE_FIRST_QPN + index,
        .psn = header->psn,
        .payload = read->payload,
        .payload_bytes = header->payload_bytes,
        .resent = read->resent,
        .is_last = (roce_opcode(header->opcode)->traits & ROCE_IS_LAST) != 0,
    };
    packet->header_bytes = (uint32_t)roce_encode_headers(&roce, packet->headers);
}

static void give_up(struct feroce_board *board, uint32_t index)
{
    feroce_table_fail(&board->table, index, FEROCE_SYNDROME_LIMIT);
    push_failed(board, index);
}

enum feroce_visit feroce_board_visit(struct feroce_board *board, struct instant now,
                                     struct feroce_packet *packet, bool *rewound)
{
    const uint32_t index = board->turn;
    struct feroce_read read;
    board->turn = (board->turn + 1) % board->config.window.qps;
    const enum feroce_visit visit = feroce_window_visit(&board->window, index, now, &read);
    *rewound = read.rewound;
    if (visit == FEROCE_VISIT_PACKET) {
        make_packet(board, index, &read, packet);
        feroce_ack_timer_sent(&board->queues[index].ack_timer, packet->psn, packet->is_last,
                              read.resent, now);
    } else if (visit == FEROCE_VISIT_GIVES_UP) {
        give_up(board, index);
    }
    INVARIANTS(feroce_board_check(board));
    return visit;
}

bool feroce_board_next_packet(struct feroce_board *board, struct instant now,
                              struct feroce_packet *packet)
{
    for (uint32_t i = 0; i < board->config.window.qps; i++) {
        bool rewound = false;
        if (feroce_board_visit(board, now, packet, &rewound) == FEROCE_VISIT_PACKET) {
            return true;
        }
    }
    return false;
}

/* -- Acknowledgements ---------------------------------------------------------------------------*/

static enum feroce_arrival judge_roce(struct feroce_board *board, const uint8_t *bytes,
                                      size_t count, struct instant now)
{
    if (count < 1 || bytes[0] != ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE)) {
        return FEROCE_ARRIVAL_OTHER;
    }
    if (count < ANSWER_BYTES) {
        return FEROCE_ARRIVAL_SHORT;
    }
    /* The board looks at these octets and at no others. */
    const uint8_t syndrome = bytes[ROCE_BTH_BYTES];
    const struct psn psn = psn_of(load_be32(bytes + 8));
    const uint32_t index = feroce_table_find(&board->table, load_be32(bytes + 4) & ROCE_24_BITS);
    if (index == FEROCE_QPS_MAX) {
        return FEROCE_ARRIVAL_FOREIGN;
    }
    const enum feroce_arrival arrival =
        feroce_window_answer(&board->window, index, syndrome, psn, now);
    if (arrival == FEROCE_ARRIVAL_ACK) {
        board->table.contexts[index].acked = psn;
        feroce_ack_timer_acked(&board->queues[index].ack_timer, psn, now, &board->latency);
    } else if (arrival == FEROCE_ARRIVAL_FATAL && (syndrome & 0x60) == ROCE_AETH_NAK &&
               (syndrome & ROCE_AETH_VALUE_MASK) != 0) {
        board->queues[index].refused = feroce_window_header(&board->window, index, psn)->opcode;
        feroce_table_fail(&board->table, index, syndrome);
    } else if (arrival == FEROCE_ARRIVAL_NAK && board->config.stack == FEROCE_STACK_2024) {
        board->queues[index].halted = true;
    }
    return arrival;
}

enum feroce_arrival feroce_board_on_roce(struct feroce_board *board, const uint8_t *bytes,
                                         size_t count, bool icrc_is_right, struct instant now)
{
    const enum feroce_arrival arrival = judge_roce(board, bytes, count, now);
    board->arrivals[arrival]++;
    board->wrong_icrc += !icrc_is_right && arrival < FEROCE_ARRIVAL_SHORT;
    INVARIANTS(feroce_board_check(board));
    return arrival;
}

/* -- Time ---------------------------------------------------------------------------------------*/

struct instant feroce_board_deadline(const struct feroce_board *board)
{
    const struct instant resend = feroce_retransmission_deadline(&board->window);
    return instant_before(resend, board->master.deadline) ? resend : board->master.deadline;
}

void feroce_board_on_time(struct feroce_board *board, struct instant now)
{
    feroce_retransmission_on_time(&board->window, now);
    feroce_master_on_time(&board->master, &board->table, now);
    INVARIANTS(feroce_board_check(board));
}

/* -- Invariants ---------------------------------------------------------------------------------*/

void feroce_board_check(const struct feroce_board *board)
{
    const uint32_t qps = board->config.window.qps;
    uint32_t taken = board->master.request == FEROCE_OPEN_QP;
    for (uint32_t i = 0; i < qps; i++) {
        const struct feroce_context *context = &board->table.contexts[i];
        const struct feroce_window *window = &board->window.windows[i];
        const struct feroce_queue *queue = &board->queues[i];
        taken += context->state != FEROCE_RESET;
        CHECK(context->local_qpn == FEROCE_FIRST_QPN + i);
        CHECK(window->open ? context->state == FEROCE_RTS ||
                                 (context->state == FEROCE_ERROR && window->failed)
                           : context->state != FEROCE_RTS);
        CHECK(!queue->in_message || queue->stored > 0);
        CHECK(!window->open || psn_count(psn_of(context->remote.psn),
                                         psn_after(window->written, 1)) == queue->stored);
        feroce_window_check(&board->window, i);
    }
    /* A mistake of the RTL's loses some. */
    CHECK(board->table.free_count + taken == qps ||
          (board->config.window.quirks & FEROCE_QUIRK_LOST_STROBE) != 0);
    CHECK(board->event_count <= FEROCE_EVENTS_MAX && board->turn < qps);
}
