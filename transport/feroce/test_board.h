/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_board - a board and a host's requests to it, for tests.
 */
#ifndef TRANSPORT_FEROCE_TEST_BOARD_H
#define TRANSPORT_FEROCE_TEST_BOARD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "transport/feroce/board.h"

#define TEST_BOARD_IP 0x1601d40au
#define TEST_HOST_IP  0x1601d40bu
#define TEST_ADDRESS  UINT64_C(0x7f0012340000)
#define TEST_RTO_NS   46548u

static inline struct feroce_board_config test_config(void)
{
    return (struct feroce_board_config){
        .stack = FEROCE_STACK_2026,
        .cm_version = FEROCE_CM_3,
        .ip = TEST_BOARD_IP,
        .window = {.qps = 8,
                   .pmtu = 4096,
                   .buffer_bits = 21,
                   .retry_limit = 7,
                   .rnr_limit = FEROCE_RNR_FOR_EVER,
                   .rto_ns = TEST_RTO_NS},
        .master_timeout_ns = 310000000,
    };
}

static inline struct feroce_board *test_begin(const struct feroce_board_config *config)
{
    struct feroce_board *board = malloc(sizeof(*board));
    void *memory = malloc(feroce_board_bytes(config));
    assert_non_null(board);
    assert_non_null(memory);
    feroce_board_init(board, config, memory);
    return board;
}

static inline void test_end(struct feroce_board *board)
{
    free(board->window.headers);
    free(board);
}

static inline struct instant test_at(uint64_t ns)
{
    return (struct instant){ns};
}

/* A host's request with queue pair number `qpn`. */
static inline struct feroce_cm test_request(enum feroce_request request, uint32_t qpn, uint32_t psn)
{
    return (struct feroce_cm){
        .request = (uint8_t)request,
        .info_valid = true,
        .local =
            {.qpn = qpn, .psn = psn, .rkey = 0x1234, .ip = TEST_HOST_IP, .address = TEST_ADDRESS},
        .listening_port = FEROCE_PORT_CM,
    };
}

static inline enum feroce_cm_arrival test_tell(struct feroce_board *board,
                                               const struct feroce_cm *message)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    feroce_cm_encode(board->config.cm_version, message, bytes);
    return feroce_board_on_cm(board, bytes, sizeof(bytes), TEST_BOARD_IP, FEROCE_PORT_CM,
                              message->listening_port);
}

/* The board's next message. */
static inline bool test_hear(struct feroce_board *board, struct instant now,
                             struct feroce_reply *reply)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    if (!feroce_board_next_cm(board, now, bytes, &reply->ip, &reply->port)) {
        return false;
    }
    assert_true(feroce_cm_decode(board->config.cm_version, bytes, sizeof(bytes), &reply->message));
    return true;
}

/* Sends a request and gets the one reply to it. */
static inline struct feroce_reply test_ask(struct feroce_board *board,
                                           const struct feroce_cm *message)
{
    struct feroce_reply reply;
    assert_int_equal(test_tell(board, message), FEROCE_CM_TAKEN);
    assert_true(test_hear(board, test_at(0), &reply));
    return reply;
}

/* Opens a queue pair whose first PSN is `psn`; returns its index. */
static inline uint32_t test_open(struct feroce_board *board, uint32_t psn)
{
    const struct feroce_cm open = test_request(FEROCE_OPEN_QP, 0x11, psn);
    const struct feroce_reply reply = test_ask(board, &open);
    assert_int_equal(reply.message.ack, FEROCE_ACK);
    struct feroce_event event;
    assert_true(feroce_board_next_event(board, &event));
    assert_int_equal(event.kind, FEROCE_EVENT_OPENED);
    assert_int_equal(reply.message.local.qpn, FEROCE_FIRST_QPN + event.index);
    return event.index;
}

/* Stores a SEND of `packets` packets, the last one short. */
static inline void test_store(struct feroce_board *board, uint32_t index, uint32_t packets,
                              struct instant now)
{
    static uint8_t payload[4096];
    const uint32_t pmtu = board->config.window.pmtu;
    const struct feroce_message message = {.length = (packets - 1) * pmtu + 16};
    for (uint32_t i = 1; i <= packets; i++) {
        store_le32(payload, i);
        assert_int_equal(feroce_board_store(board, index, &message, payload,
                                            i == packets ? 16 : pmtu, i == packets, now),
                         FEROCE_STORED);
    }
}

/* An answer of the receiver's. */
static inline enum feroce_arrival test_answer(struct feroce_board *board, uint32_t index,
                                              uint8_t syndrome, uint32_t psn, struct instant now)
{
    const struct roce_packet packet = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = FEROCE_FIRST_QPN + index,
        .psn = psn,
        .aeth = {.syndrome = syndrome},
    };
    uint8_t bytes[ROCE_HEADERS_BYTES_MAX] = {0};
    const size_t count = roce_encode_headers(&packet, bytes) + ROCE_ICRC_BYTES;
    return feroce_board_on_roce(board, bytes, count, true, now);
}

/* The PSN of the next packet; fails if there is none. */
static inline uint32_t test_sent(struct feroce_board *board, struct instant now)
{
    struct feroce_packet packet;
    assert_true(feroce_board_next_packet(board, now, &packet));
    return packet.psn.value;
}

static inline void test_silent(struct feroce_board *board, struct instant now)
{
    struct feroce_packet packet;
    assert_false(feroce_board_next_packet(board, now, &packet));
}

#endif
