/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Ten million datagrams that nobody should send: the board lives, each is accounted for,
 *         and a good OPEN is answered afterwards. Behaviour FER-116.
 * Method  Good messages and acknowledgements with random octets changed, cut and prolonged. The
 *         board's counters are compared with what was sent. The number may be given as an argument;
 *         a million otherwise.
 */
#include "base/prng.h"
#include "transport/feroce/test_board.h"

static uint64_t wanted = 1000000;

static size_t mutate(struct prng *prng, uint8_t *bytes, size_t count)
{
    for (uint64_t changes = prng_below(prng, 4); changes > 0; changes--) {
        bytes[prng_below(prng, count)] = (uint8_t)prng_next(prng);
    }
    const uint64_t cut = prng_below(prng, 50);
    return cut == 0 ? prng_below(prng, count + 1) : cut == 1 ? count + 1 : count;
}

static size_t make_message(struct prng *prng, uint8_t *bytes)
{
    static const uint8_t requests[] = {FEROCE_OPEN_QP, FEROCE_OPEN_QP,       FEROCE_CLOSE_QP,
                                       FEROCE_NULL,    FEROCE_MODIFY_QP_RTS, FEROCE_CLOSE_QP};
    struct feroce_cm message =
        test_request((enum feroce_request)requests[prng_below(prng, COUNT_OF(requests))], 0x11,
                     (uint32_t)prng_below(prng, 1 << 24));
    message.remote.qpn = FEROCE_FIRST_QPN + (uint32_t)prng_below(prng, 9);
    message.ack_valid = prng_below(prng, 10) == 0;
    message.meta.valid = prng_below(prng, 5) == 0;
    feroce_cm_encode(FEROCE_CM_3, &message, bytes);
    return mutate(prng, bytes, FEROCE_CM_BYTES);
}

static size_t make_answer(struct prng *prng, const struct feroce_board *board, uint8_t *bytes)
{
    const uint32_t index = (uint32_t)prng_below(prng, 8);
    const struct roce_packet packet = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_ACKNOWLEDGE),
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = FEROCE_FIRST_QPN + index,
        .psn =
            (board->window.windows[index].acked.value + (uint32_t)prng_below(prng, 8)) & PSN_MASK,
        .aeth = {.syndrome = (uint8_t)(prng_below(prng, 3) == 0 ? prng_next(prng) : 0x1f)},
    };
    memset(bytes, 0, 32);
    return mutate(prng, bytes, roce_encode_headers(&packet, bytes) + ROCE_ICRC_BYTES);
}

/* Meanwhile the world goes on: it stores, sends, and lets time pass. */
static void live_on(struct feroce_board *board, struct prng *prng, struct instant *now)
{
    static const uint8_t payload[256];
    struct feroce_packet packet;
    struct feroce_event event;
    struct feroce_reply reply;
    const uint32_t index = (uint32_t)prng_below(prng, 8);
    while (feroce_board_next_event(board, &event)) {
    }
    const enum feroce_store verdict = feroce_board_store(
        board, index, &(struct feroce_message){.length = 256}, payload, 256, true, *now);
    assert_true(verdict == FEROCE_STORED || verdict == FEROCE_STORE_FULL ||
                verdict == FEROCE_STORE_NOT_OPEN);
    if (feroce_board_next_packet(board, *now, &packet)) {
        assert_int_equal(packet.payload_bytes, 256);
    }
    (void)test_hear(board, *now, &reply);
    now->ns += prng_below(prng, 2000);
    feroce_board_on_time(board, *now);
}

static void test_storm(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 7);
    struct feroce_board_config config = test_config();
    config.window.pmtu = 256;
    config.window.buffer_bits = 17;
    struct feroce_board *board = test_begin(&config);
    struct instant now = {0};
    uint64_t messages = 0, answers = 0;
    while (messages + answers < wanted) {
        uint8_t bytes[FEROCE_CM_BYTES + 1] = {0};
        if (prng_below(&prng, 2) == 0) {
            const size_t count = make_message(&prng, bytes);
            const uint64_t off = prng_below(&prng, 100);
            (void)feroce_board_on_cm(board, bytes, count, TEST_BOARD_IP + (off == 0),
                                     (uint16_t)(FEROCE_PORT_CM + (off == 1)), FEROCE_PORT_CM);
            messages++;
        } else {
            const size_t count = make_answer(&prng, board, bytes);
            (void)feroce_board_on_roce(board, bytes, count, false, now);
            answers++;
        }
        if (prng_below(&prng, 4) != 0) {
            live_on(board, &prng, &now);
        }
    }
    for (int i = 0; i < FEROCE_CM_ARRIVALS; i++) {
        assert_true(board->cm_arrivals[i] > 0);
        messages -= board->cm_arrivals[i];
    }
    for (int i = 0; i < FEROCE_ARRIVAL_COUNT; i++) {
        assert_true(board->arrivals[i] > 0);
        answers -= board->arrivals[i];
    }
    assert_true(messages == 0 && answers == 0);
    for (uint32_t i = 0; i < 8; i++) {
        struct feroce_cm close = test_request(FEROCE_CLOSE_QP, 0x11, 0);
        struct feroce_event event;
        struct feroce_reply reply;
        while (test_hear(board, now, &reply) || feroce_board_next_event(board, &event)) {
        }
        close.remote.qpn = FEROCE_FIRST_QPN + i;
        (void)test_tell(board, &close);
    }
    live_on(board, &prng, &now);
    assert_true(test_open(board, 0) < 8);
    test_end(board);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_storm)};
    if (argc > 1) {
        wanted = strtoull(argv[1], NULL, 10);
    }
    return cmocka_run_group_tests_name("feroce_storm", tests, NULL, NULL);
}
