/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_board_fuzz - a FERoCE board against hosts that do anything at all.
 *
 * Goal    No order of datagrams, acknowledgements, messages and times reaches a CHECK (the board's
 *         invariants are looked at after each), reads or writes outside its memory, or leaves it
 *         unable to answer a good OPEN. Behaviour FER-116.
 * Method  The first bytes choose the board: its quirks, queue pairs, memory, stack and limits. Then
 *         comes a list of records: a datagram for the connection manager (raw, or fields of which
 *         some are right), one for port 4791 likewise, payload to store, visits of the reader,
 *         time, wishes of the master. Each packet that leaves is decoded. In the end all queue
 *         pairs are closed, and OPEN must give one.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "transport/feroce/board.h"
#include "transport/feroce/generator.h"

#define SELF 0x7f00000au
#define PEER 0x7f00000bu

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

static uint32_t take_32(struct input *input)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        value = value << 8 | take(input);
    }
    return value;
}

static struct feroce_board_config take_config(struct input *input)
{
    const uint8_t shape = take(input), rnr_limit = take(input);
    const uint32_t quirks = take_32(input);
    struct feroce_board_config config = {
        .cm_version = shape & 1 ? FEROCE_CM_2 : FEROCE_CM_3,
        .ip = SELF,
        .window = {.qps = 1u << (shape >> 1 & 3),
                   .pmtu = 256,
                   .buffer_bits = 13 + (shape >> 3 & 3),
                   .retry_limit = shape >> 5,
                   .rnr_limit = rnr_limit & 7,
                   .rto_ns = 50000,
                   .quirks = quirks & FEROCE_QUIRKS_ALL},
        .master_timeout_ns = 100000,
    };
    if (config.window.qps == 1) {
        config.stack = FEROCE_STACK_2024;
        config.window.sends_once = true;
    }
    return config;
}

/* -- Records ------------------------------------------------------------------------------------*/

static void tell(struct feroce_board *board, const struct feroce_cm *message)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    feroce_cm_encode(board->config.cm_version, message, bytes);
    (void)feroce_board_on_cm(board, bytes, sizeof(bytes), SELF, FEROCE_PORT_CM, FEROCE_PORT_CM);
}

static void tell_fields(struct feroce_board *board, struct input *input)
{
    const uint8_t kind = take(input), which = take(input);
    const struct feroce_cm message = {
        .request = kind & 7,
        .ack = kind >> 3 & 7,
        .info_valid = (kind & 0x40) == 0,
        .ack_valid = (kind & 0x80) != 0,
        .local = {.qpn = which, .psn = take_32(input), .rkey = 1, .ip = PEER, .address = 4096},
        .remote = {.qpn = FEROCE_FIRST_QPN + which % 20u, .ip = SELF},
        .listening_port = FEROCE_PORT_CM,
        .meta = {.valid = (which & 0x20) != 0, .start = true, .length = take(input), .count = 1},
    };
    tell(board, &message);
}

static void tell_raw(struct feroce_board *board, struct input *input)
{
    uint8_t bytes[FEROCE_CM_BYTES + 8];
    const size_t count = take(input) % sizeof(bytes);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = take(input);
    }
    (void)feroce_board_on_cm(board, bytes, count < 60 ? FEROCE_CM_BYTES : count,
                             SELF + (count == 1), (uint16_t)(FEROCE_PORT_CM + (count == 2)),
                             load_be16(bytes));
}

/* With `near` the PSN is close to what was sent. */
static void answer(struct feroce_board *board, struct input *input, bool near, struct instant now)
{
    const uint8_t which = take(input), syndrome = take(input);
    const uint32_t index = which % board->config.window.qps;
    const uint32_t psn =
        near ? board->window.windows[index].acked.value + take(input) % 40u - 4 : take_32(input);
    const struct roce_packet packet = {
        .opcode = near || which % 8 != 0 ? 0x11 : which,
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = FEROCE_FIRST_QPN + (near ? index : which),
        .psn = psn,
        .aeth = {.syndrome = syndrome, .msn = psn},
    };
    uint8_t bytes[ROCE_HEADERS_BYTES_MAX + ROCE_ICRC_BYTES] = {packet.opcode};
    size_t count = ROCE_BTH_BYTES + ROCE_AETH_BYTES + ROCE_ICRC_BYTES;
    if (packet.opcode == 0x11) {
        (void)roce_encode_headers(&packet, bytes);
        count -= near ? 0 : which % 3 == 0 ? syndrome % 20u : 0;
    }
    (void)feroce_board_on_roce(board, bytes, count, (which & 0x80) == 0, now);
}

static void store(struct feroce_board *board, struct input *input, struct instant now)
{
    static const uint8_t payload[4096];
    const uint8_t which = take(input), bytes = take(input);
    const uint32_t index = which % board->config.window.qps;
    const struct feroce_message message = {.write = (which & 0x10) != 0,
                                           .has_immediate = (which & 0x20) != 0,
                                           .offset = bytes,
                                           .length = bytes};
    const bool is_last = (which & 0x40) != 0;
    (void)feroce_board_store(board, index, &message, payload, is_last ? bytes : 256u, is_last, now);
}

static void visit(struct feroce_board *board, uint32_t count, struct instant now)
{
    for (uint32_t i = 0; i < count; i++) {
        struct feroce_packet packet;
        struct roce_packet roce;
        bool rewound = false;
        if (feroce_board_visit(board, now, &packet, &rewound) != FEROCE_VISIT_PACKET) {
            continue;
        }
        volatile uint8_t last = 0;
        for (uint32_t at = 0; at < packet.payload_bytes; at++) {
            last = packet.payload[at];
        }
        (void)last;
        /* A quirk may send a slot that never held a packet. */
        if ((board->config.window.quirks & FEROCE_QUIRK_ACK_ORDER) == 0) {
            CHECK(roce_decode_split(packet.headers, packet.header_bytes, packet.payload,
                                    packet.payload_bytes, &roce) == ROCE_GOOD);
        }
    }
}

static void wish(struct feroce_board *board, struct input *input)
{
    const uint8_t which = take(input);
    if (which & 0x80) {
        (void)feroce_master_close(&board->master, &board->table, FEROCE_FIRST_QPN + which % 20u,
                                  FEROCE_PORT_CM);
    } else {
        (void)feroce_master_open(&board->master, &board->table, PEER, FEROCE_PORT_CM);
    }
    feroce_board_check(board);
}

static void drain(struct feroce_board *board, struct instant now)
{
    struct feroce_event event;
    uint8_t bytes[FEROCE_CM_BYTES];
    uint32_t ip = 0;
    uint16_t port = 0;
    while (feroce_board_next_event(board, &event)) {
        CHECK(event.index < board->config.window.qps);
    }
    while (feroce_board_next_cm(board, now, bytes, &ip, &port)) {
    }
}

/* -- The end ------------------------------------------------------------------------------------*/

/* The board still works after any input: after CLOSE for each queue pair, OPEN gives one. */
static void prove_alive(struct feroce_board *board, struct instant now)
{
    struct feroce_cm message = {.info_valid = true, .local = {.qpn = 17, .ip = PEER}};
    for (uint32_t i = 0; i < board->config.window.qps; i++) {
        message.request = FEROCE_CLOSE_QP;
        message.remote.qpn = FEROCE_FIRST_QPN + i;
        drain(board, now);
        tell(board, &message);
    }
    drain(board, now);
    const uint32_t free_before = board->table.free_count;
    message.request = FEROCE_OPEN_QP;
    tell(board, &message);
    CHECK(free_before == 0 || board->table.free_count == free_before - 1);
    CHECK(free_before > 0 || board->master.request == FEROCE_OPEN_QP ||
          (board->config.window.quirks & FEROCE_QUIRK_LOST_STROBE) != 0);
}

static void run(struct feroce_board *board, struct input *input)
{
    struct instant now = {0};
    while (input->count > 0) {
        const uint8_t record = take(input);
        switch (record % 9) {
        case 0: tell_raw(board, input); break;
        case 1: tell_fields(board, input); break;
        case 2:
        case 3: answer(board, input, record % 9 == 3, now); break;
        case 4:
        case 5: store(board, input, now); break;
        case 6: visit(board, 1 + record / 9u, now); break;
        case 7:
            now.ns += 1u << (take(input) & 31);
            feroce_board_on_time(board, now);
            break;
        default: wish(board, input); break;
        }
        if (record & 0x80) {
            drain(board, now);
        }
    }
    prove_alive(board, now);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct input input = {bytes, count};
    const struct feroce_board_config config = take_config(&input);
    if (feroce_board_refuses(&config) != NULL) {
        return 0;
    }
    struct feroce_board *board = malloc(sizeof(*board));
    void *memory = malloc(feroce_board_bytes(&config));
    CHECK(board != NULL && memory != NULL);
    memset(memory, 0xa5, feroce_board_bytes(&config));
    feroce_board_init(board, &config, memory);
    run(board, &input);
    free(memory);
    free(board);
    return 0;
}
