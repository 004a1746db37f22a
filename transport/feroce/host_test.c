/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The host's half of the connection manager does what transport/feroce/host.h says.
 * Method  Requests and replies one by one. Behaviours FER-109, 110; the host's half of FER-01, 06,
 *         21, 24, 25. host_random_test.c joins it with the board's half.
 */
#include "transport/feroce/host.h"
#include "transport/feroce/test_board.h"

#define SECOND UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

static const struct feroce_side local_side = {
    .qpn = 0x11, .psn = 77, .rkey = 0x1234, .ip = 1, .address = TEST_ADDRESS};

static struct feroce_host begin(void)
{
    struct feroce_host host;
    feroce_host_init(&host, &(struct feroce_host_config){.cm_version = FEROCE_CM_3,
                                                         .ip = TEST_HOST_IP,
                                                         .port = FEROCE_PORT_CM});
    return host;
}

static enum feroce_host_arrival tell(struct feroce_host *host, const struct feroce_cm *message,
                                     uint32_t from_ip, uint64_t at)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    feroce_cm_encode(host->config.cm_version, message, bytes);
    return feroce_host_on_cm(host, bytes, sizeof(bytes), from_ip, FEROCE_PORT_CM_FROM, test_at(at));
}

/* The next message, which has to go to the board's address. */
static struct feroce_cm hear(struct feroce_host *host, uint64_t at, uint16_t to_port)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    struct feroce_cm message = {0};
    uint32_t ip = 0;
    uint16_t port = 0;
    assert_true(feroce_host_next(host, test_at(at), bytes, &ip, &port));
    assert_int_equal(ip, TEST_BOARD_IP);
    assert_int_equal(port, to_port);
    assert_true(feroce_cm_decode(host->config.cm_version, bytes, sizeof(bytes), &message));
    return message;
}

static void silent(struct feroce_host *host, uint64_t at)
{
    uint8_t bytes[FEROCE_CM_BYTES];
    uint32_t ip;
    uint16_t port;
    assert_false(feroce_host_next(host, test_at(at), bytes, &ip, &port));
}

static struct feroce_host_event event_of(struct feroce_host *host, enum feroce_host_event_kind kind)
{
    struct feroce_host_event event;
    assert_true(feroce_host_next_event(host, &event));
    assert_int_equal(event.kind, kind);
    return event;
}

static void no_event(struct feroce_host *host)
{
    struct feroce_host_event event;
    assert_false(feroce_host_next_event(host, &event));
}

/* The board's answer to an OPEN or CLOSE. */
static struct feroce_cm reply_to(const struct feroce_cm *asked, enum feroce_ack ack)
{
    return (struct feroce_cm){.request = asked->request,
                              .ack = (uint8_t)ack,
                              .info_valid = true,
                              .ack_valid = true,
                              .local = {.qpn = 0x100, .psn = 9, .ip = TEST_BOARD_IP},
                              .remote = asked->local,
                              .listening_port = FEROCE_PORT_CM};
}

static void board_opens(uint32_t qpn, struct feroce_cm *open)
{
    *open = test_request(FEROCE_OPEN_QP, qpn, 0);
    open->local.ip = TEST_BOARD_IP;
}

/* The host opens and closes: the octets are the golden ones of wire/feroce_test.c. */
static void test_open_and_close(void **state)
{
    (void)state;
    static const uint8_t open[FEROCE_CM_BYTES] = {
        0x03, 0,    0, 0,    0x11, 0, 0, 0,    0,    0,    0,    0x12,        0x34, 0,
        0,    0x7f, 0, 0x12, 0x34, 0, 0, 0x16, 0x01, 0xd4, 0x0b, [49] = 0x43, 0x21};
    static const uint8_t close[FEROCE_CM_BYTES] = {
        0x09, 0, 0, 0,    0x11, 0,           0,    0,    0,    0,    0,    0x12,
        0x34, 0, 0, 0x7f, 0,    0x12,        0x34, 0,    0,    0x16, 0x01, 0xd4,
        0x0b, 0, 0, 1,    0,    [45] = 0x16, 0x01, 0xd4, 0x0a, 0x43, 0x21};
    struct feroce_host host = begin();
    uint8_t bytes[FEROCE_CM_BYTES];
    uint32_t ip;
    uint16_t port;
    assert_true(feroce_host_deadline(&host).ns == INSTANT_NEVER.ns);
    feroce_host_open(&host, 5, &local_side, TEST_BOARD_IP, 0x4444);
    assert_true(feroce_host_next(&host, test_at(3), bytes, &ip, &port));
    assert_memory_equal(bytes, open, sizeof(bytes));
    assert_int_equal(ip, TEST_BOARD_IP);
    assert_int_equal(port, 0x4444);
    assert_true(feroce_host_deadline(&host).ns == 3 + 2 * SECOND);
    struct feroce_cm asked;
    assert_true(feroce_cm_decode(FEROCE_CM_3, bytes, sizeof(bytes), &asked));
    struct feroce_cm reply = reply_to(&asked, FEROCE_ACK);
    reply.info_valid = false; /* Not looked at; nor is what lies behind octet 50. */
    reply.meta = (struct feroce_meta){.valid = true, .length = 1};
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 4), FEROCE_HOST_TAKEN);
    const struct feroce_host_event event = event_of(&host, FEROCE_HOST_CONNECTED);
    assert_int_equal(event.index, 5);
    assert_memory_equal(&event.remote, &reply.local, sizeof(reply.local));
    assert_true(feroce_host_deadline(&host).ns == INSTANT_NEVER.ns);
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 5), FEROCE_HOST_UNASKED);

    assert_true(feroce_host_close(&host, 5, false));
    assert_true(feroce_host_next(&host, test_at(6), bytes, &ip, &port));
    assert_memory_equal(bytes, close, sizeof(bytes));
    assert_true(feroce_cm_decode(FEROCE_CM_3, bytes, sizeof(bytes), &asked));
    /* Neither another board's answer nor one to another request. */
    reply = reply_to(&asked, FEROCE_ACK);
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP + 1, 7), FEROCE_HOST_UNASKED);
    reply.request = FEROCE_OPEN_QP;
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 7), FEROCE_HOST_UNASKED);
    no_event(&host);
    reply.request = FEROCE_CLOSE_QP;
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 8), FEROCE_HOST_TAKEN);
    assert_int_equal(event_of(&host, FEROCE_HOST_CLOSED).reason, FEROCE_HOST_NO_REASON);
    assert_int_equal(host.streams[5].state, FEROCE_STREAM_UNUSED);
    silent(&host, 9);
}

static struct feroce_cm asks(struct feroce_host *host)
{
    *host = begin();
    feroce_host_open(host, 0, &local_side, TEST_BOARD_IP, FEROCE_PORT_CM);
    return hear(host, 0, FEROCE_PORT_CM);
}

/* Some replies end an OPEN at once, others cost one of its two attempts. */
static void test_open_fails(void **state)
{
    (void)state;
    struct feroce_host host;
    struct feroce_cm asked = asks(&host);
    const struct feroce_cm no_qp = reply_to(&asked, FEROCE_ACK_NO_QP);
    assert_int_equal(tell(&host, &no_qp, TEST_BOARD_IP, 1), FEROCE_HOST_TAKEN);
    assert_int_equal(event_of(&host, FEROCE_HOST_REFUSED).reason, FEROCE_HOST_NO_QP);
    silent(&host, 5 * SECOND);

    asks(&host);
    const struct feroce_cm error = reply_to(&asked, FEROCE_ACK_ERROR);
    assert_int_equal(tell(&host, &error, TEST_BOARD_IP, 1), FEROCE_HOST_TAKEN);
    assert_int_equal(event_of(&host, FEROCE_HOST_REFUSED).reason, FEROCE_HOST_ERROR);

    asks(&host);
    const uint8_t bytes[FEROCE_CM_BYTES + 1] = {0};
    assert_int_equal(
        feroce_host_on_cm(&host, bytes, 63, TEST_BOARD_IP + 1, FEROCE_PORT_CM, test_at(1)),
        FEROCE_HOST_NOT_64);
    no_event(&host);
    assert_int_equal(feroce_host_on_cm(&host, bytes, 65, TEST_BOARD_IP, FEROCE_PORT_CM, test_at(1)),
                     FEROCE_HOST_NOT_64);
    assert_int_equal(event_of(&host, FEROCE_HOST_REFUSED).reason, FEROCE_HOST_LENGTH);

    /* Silence twice. */
    asks(&host);
    feroce_host_on_time(&host, test_at(2 * SECOND - 1));
    silent(&host, 2 * SECOND - 1);
    feroce_host_on_time(&host, test_at(2 * SECOND));
    hear(&host, 2 * SECOND, FEROCE_PORT_CM);
    no_event(&host);
    feroce_host_on_time(&host, test_at(4 * SECOND));
    assert_int_equal(event_of(&host, FEROCE_HOST_GAVE_UP).reason, FEROCE_HOST_SILENT);
    silent(&host, 4 * SECOND);
}

/* Each reply that does not fit costs an attempt: then the OPEN leaves again at once. */
static void test_wrong_replies(void **state)
{
    (void)state;
    for (int wrong = 0; wrong < 5; wrong++) {
        struct feroce_host host;
        const struct feroce_cm asked = asks(&host);
        struct feroce_cm reply = reply_to(&asked, FEROCE_ACK);
        switch (wrong) {
        case 0: reply.request = FEROCE_CLOSE_QP; break;
        case 1: reply.ack = FEROCE_ACK_NAK; break;
        case 2: reply.ack = FEROCE_ACK_NULL; break;
        case 3: reply.remote.qpn++; break;
        default: reply.remote.ip++; break;
        }
        assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 1), FEROCE_HOST_MISFIT);
        no_event(&host);
        hear(&host, 1, FEROCE_PORT_CM);
        silent(&host, 1);
        assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 2), FEROCE_HOST_MISFIT);
        assert_int_equal(event_of(&host, FEROCE_HOST_GAVE_UP).reason, FEROCE_HOST_WRONG);
        silent(&host, 2);
    }
}

/* A reply from another address costs nothing, but makes the OPEN leave again: a few times. */
static void test_strangers(void **state)
{
    (void)state;
    struct feroce_host host;
    const struct feroce_cm asked = asks(&host);
    const struct feroce_cm reply = reply_to(&asked, FEROCE_ACK);
    uint32_t sent = 1;
    for (uint64_t i = 0; i < 100; i++) {
        uint8_t bytes[FEROCE_CM_BYTES];
        uint32_t ip;
        uint16_t port;
        assert_int_equal(tell(&host, &reply, TEST_BOARD_IP + 1, i), FEROCE_HOST_STRANGER);
        sent += feroce_host_next(&host, test_at(i), bytes, &ip, &port);
    }
    assert_int_equal(sent, 9);
    no_event(&host);
    /* Both attempts are still there. */
    feroce_host_on_time(&host, feroce_host_deadline(&host));
    hear(&host, 3 * SECOND, FEROCE_PORT_CM);
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 3 * SECOND), FEROCE_HOST_TAKEN);
    event_of(&host, FEROCE_HOST_CONNECTED);
}

/* One OPEN at a time: the next stream asks when the one before it is answered, or gave up. */
static void test_one_at_a_time(void **state)
{
    (void)state;
    struct feroce_host host = begin();
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        const struct feroce_side local = {.qpn = 100 + i};
        feroce_host_open(&host, i, &local, TEST_BOARD_IP, FEROCE_PORT_CM);
    }
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        const struct feroce_cm asked = hear(&host, i, FEROCE_PORT_CM);
        silent(&host, i);
        assert_int_equal(asked.local.qpn, 100 + i);
        const struct feroce_cm reply = reply_to(&asked, i % 3 == 1 ? FEROCE_ACK_NO_QP : FEROCE_ACK);
        assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, i), FEROCE_HOST_TAKEN);
        assert_int_equal(
            event_of(&host, i % 3 == 1 ? FEROCE_HOST_REFUSED : FEROCE_HOST_CONNECTED).index, i);
    }
    silent(&host, 100);
    /* All close side by side. */
    uint32_t closing = 0;
    for (uint32_t i = 0; i < FEROCE_STREAMS_MAX; i++) {
        closing += feroce_host_close(&host, i, true);
    }
    assert_int_equal(closing, 43);
    for (uint32_t i = 0; i < closing; i++) {
        hear(&host, 200, FEROCE_PORT_CM);
    }
    assert_true(feroce_host_deadline(&host).ns == 200 + SECOND / 2);
    feroce_host_on_time(&host, test_at(200 + SECOND / 2));
    for (uint32_t i = 0; i < closing; i++) {
        event_of(&host, FEROCE_HOST_GAVE_UP);
    }
    silent(&host, SECOND);
}

/* A board opens: the answer leaves when the queue pair is ready, and not before. FER-109: an OPEN
 * that is repeated gets the same queue pair, at most every 100 ms. */
static void test_passive(void **state)
{
    (void)state;
    struct feroce_host host = begin();
    struct feroce_cm open;
    board_opens(0x100, &open);
    open.listening_port = 0xbeef;
    feroce_host_offer(&host, 3, &local_side);
    feroce_host_offer(&host, 4, &(struct feroce_side){.qpn = 0x12});
    assert_int_equal(tell(&host, &open, TEST_BOARD_IP, 0), FEROCE_HOST_TAKEN);
    struct feroce_host_event event = event_of(&host, FEROCE_HOST_ACCEPT);
    assert_int_equal(event.index, 3);
    assert_memory_equal(&event.remote, &open.local, sizeof(open.local));
    silent(&host, 0);
    assert_int_equal(tell(&host, &open, TEST_BOARD_IP, 1), FEROCE_HOST_TOO_SOON);
    silent(&host, 1);
    feroce_host_ready(&host, 3, test_at(10));
    struct feroce_cm reply = hear(&host, 10, 0xbeef);
    assert_int_equal(reply.request, FEROCE_OPEN_QP);
    assert_int_equal(reply.ack, FEROCE_ACK);
    assert_true(reply.info_valid && reply.ack_valid);
    assert_int_equal(reply.local.qpn, 0x11);
    assert_int_equal(reply.local.psn, 0);
    assert_int_equal(reply.local.rkey, 0x1234);
    assert_true(reply.local.address == TEST_ADDRESS);
    assert_int_equal(reply.local.ip, TEST_HOST_IP);
    assert_memory_equal(&reply.remote, &open.local, sizeof(open.local));
    assert_int_equal(reply.listening_port, FEROCE_PORT_CM);

    assert_int_equal(tell(&host, &open, TEST_BOARD_IP, 10 + 100 * MS - 1), FEROCE_HOST_TOO_SOON);
    silent(&host, 10 + 100 * MS - 1);
    open.listening_port = 0xbee0; /* The answer goes where this one wants it. */
    assert_int_equal(tell(&host, &open, TEST_BOARD_IP, 10 + 100 * MS), FEROCE_HOST_REPEATED);
    assert_int_equal(hear(&host, 10 + 100 * MS, 0xbee0).local.qpn, 0x11);
    assert_int_equal(tell(&host, &open, TEST_BOARD_IP, 10 + 150 * MS), FEROCE_HOST_TOO_SOON);
    silent(&host, 10 + 150 * MS);
    no_event(&host);

    /* Another queue pair, or another board: the next idle stream; then NO_QP. */
    open.local.qpn++;
    open.local.ip += 5;
    assert_int_equal(tell(&host, &open, TEST_BOARD_IP, SECOND), FEROCE_HOST_TAKEN);
    event = event_of(&host, FEROCE_HOST_ACCEPT);
    assert_int_equal(event.index, 4);
    feroce_host_refuse(&host, 4);
    assert_int_equal(hear(&host, SECOND, 0xbee0).ack, FEROCE_ACK_ERROR);
    assert_int_equal(tell(&host, &open, TEST_BOARD_IP, SECOND), FEROCE_HOST_FULL);
    assert_int_equal(hear(&host, SECOND, 0xbee0).ack, FEROCE_ACK_NO_QP);
    no_event(&host);
}

/* Connects stream 0 with queue pair 0x100 of the board. */
static void connect_passively(struct feroce_host *host)
{
    struct feroce_cm open;
    *host = begin();
    board_opens(0x100, &open);
    feroce_host_offer(host, 0, &local_side);
    assert_int_equal(tell(host, &open, TEST_BOARD_IP, 0), FEROCE_HOST_TAKEN);
    event_of(host, FEROCE_HOST_ACCEPT);
    feroce_host_ready(host, 0, test_at(0));
    hear(host, 0, FEROCE_PORT_CM);
}

static struct feroce_cm board_closes(uint32_t host_qpn, uint32_t board_qpn)
{
    struct feroce_cm close = test_request(FEROCE_CLOSE_QP, board_qpn, 0);
    close.local.ip = TEST_BOARD_IP;
    close.remote = (struct feroce_side){.qpn = host_qpn, .ip = TEST_HOST_IP};
    return close;
}

/* FER-110: ACK when the queue pair is stopped; NO_QP, NAK and silence. */
static void test_peer_closes(void **state)
{
    (void)state;
    struct feroce_host host;
    connect_passively(&host);
    struct feroce_cm close = board_closes(0x77, 0x100);
    assert_int_equal(tell(&host, &close, TEST_BOARD_IP, 1), FEROCE_HOST_NOT_OURS);
    assert_int_equal(hear(&host, 1, FEROCE_PORT_CM).ack, FEROCE_ACK_NO_QP);
    close = board_closes(0x11, 0x101);
    assert_int_equal(tell(&host, &close, TEST_BOARD_IP, 1), FEROCE_HOST_NOT_THEIRS);
    struct feroce_cm reply = hear(&host, 1, FEROCE_PORT_CM);
    assert_int_equal(reply.ack, FEROCE_ACK_NAK);
    assert_int_equal(reply.request, FEROCE_CLOSE_QP);
    no_event(&host);

    close = board_closes(0x11, 0x100);
    assert_int_equal(tell(&host, &close, TEST_BOARD_IP, 2), FEROCE_HOST_TAKEN);
    event_of(&host, FEROCE_HOST_PEER_CLOSED);
    silent(&host, 2);
    assert_int_equal(tell(&host, &close, TEST_BOARD_IP, 3), FEROCE_HOST_ENDING);
    silent(&host, 3);
    feroce_host_stopped(&host, 0);
    reply = hear(&host, 4, FEROCE_PORT_CM);
    assert_int_equal(reply.ack, FEROCE_ACK);
    assert_int_equal(reply.request, FEROCE_CLOSE_QP);
    assert_int_equal(reply.local.qpn, 0x11);
    assert_int_equal(reply.remote.qpn, 0x100);
    /* The ACK is lost, and the board asks again. */
    assert_int_equal(tell(&host, &close, TEST_BOARD_IP, 5), FEROCE_HOST_NOT_OURS);
    assert_int_equal(hear(&host, 5, FEROCE_PORT_CM).ack, FEROCE_ACK_NO_QP);
    no_event(&host);

    /* Silence while the host's own CLOSE is under way. */
    connect_passively(&host);
    assert_true(feroce_host_close(&host, 0, false));
    hear(&host, 1, FEROCE_PORT_CM);
    assert_int_equal(tell(&host, &close, TEST_BOARD_IP, 2), FEROCE_HOST_ENDING);
    silent(&host, 2);
    no_event(&host);
}

/* The host closes: NO_QP is as good as an ACK, silence is borne twice. */
static void test_host_closes(void **state)
{
    (void)state;
    static const struct {
        enum feroce_ack ack;
        enum feroce_host_reason reason;
    } answers[] = {{FEROCE_ACK, FEROCE_HOST_NO_REASON},
                   {FEROCE_ACK_NO_QP, FEROCE_HOST_NO_REASON},
                   {FEROCE_ACK_NAK, FEROCE_HOST_NAK},
                   {FEROCE_ACK_ERROR, FEROCE_HOST_ERROR}};
    struct feroce_host host;
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        connect_passively(&host);
        assert_true(feroce_host_close(&host, 0, false));
        const struct feroce_cm asked = hear(&host, 1, FEROCE_PORT_CM);
        const struct feroce_cm reply = reply_to(&asked, answers[i].ack);
        assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 2), FEROCE_HOST_TAKEN);
        assert_int_equal(event_of(&host, FEROCE_HOST_CLOSED).reason, answers[i].reason);
    }
    connect_passively(&host);
    assert_true(feroce_host_close(&host, 0, false));
    struct feroce_cm reply = hear(&host, 0, FEROCE_PORT_CM);
    reply = reply_to(&reply, FEROCE_ACK_NULL);
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 2), FEROCE_HOST_MISFIT);
    hear(&host, 2, FEROCE_PORT_CM);
    feroce_host_on_time(&host, test_at(2 * SECOND + 1));
    no_event(&host);
    feroce_host_on_time(&host, test_at(2 * SECOND + 2));
    assert_int_equal(event_of(&host, FEROCE_HOST_GAVE_UP).reason, FEROCE_HOST_SILENT);
    /* A stream that nobody has opened is given back at once. */
    feroce_host_offer(&host, 1, &local_side);
    assert_false(feroce_host_close(&host, 1, false));
    silent(&host, 0);
    assert_int_equal(host.streams[1].state, FEROCE_STREAM_UNUSED);
}

/* Requests that nobody answers, and more than there is room for. */
static void test_discarded(void **state)
{
    (void)state;
    struct feroce_host host = begin();
    static const uint8_t unknown[] = {
        FEROCE_NULL, FEROCE_SEND_QP_INFO, FEROCE_MODIFY_QP_RTS, 5, 6, 7};
    struct feroce_cm message;
    board_opens(0x100, &message);
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        message.request = unknown[i];
        assert_int_equal(tell(&host, &message, TEST_BOARD_IP, 0), FEROCE_HOST_UNKNOWN);
    }
    silent(&host, 0);
    message.request = FEROCE_OPEN_QP;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(tell(&host, &message, TEST_BOARD_IP, 0),
                         i < FEROCE_ANSWERS_MAX ? FEROCE_HOST_FULL : FEROCE_HOST_LOST);
    }
    for (uint32_t i = 0; i < FEROCE_ANSWERS_MAX; i++) {
        hear(&host, 0, FEROCE_PORT_CM);
    }
    silent(&host, 0);
    for (int i = 0; i < FEROCE_HOST_ARRIVALS; i++) {
        assert_non_null(feroce_host_arrival_name((enum feroce_host_arrival)i));
    }
    for (int i = 0; i < FEROCE_HOST_REASONS; i++) {
        assert_non_null(feroce_host_reason_name((enum feroce_host_reason)i));
    }
}

/* FER-24, 25: version 2 is spoken if it is asked for, and suspected if it is not. */
static void test_version_2(void **state)
{
    (void)state;
    struct feroce_host host = begin();
    host.config.cm_version = FEROCE_CM_2;
    struct feroce_cm open;
    board_opens(0x100, &open);
    feroce_host_offer(&host, 0, &local_side);
    assert_int_equal(tell(&host, &open, TEST_BOARD_IP, 0), FEROCE_HOST_TAKEN);
    event_of(&host, FEROCE_HOST_ACCEPT);
    feroce_host_ready(&host, 0, test_at(0));
    uint8_t bytes[FEROCE_CM_BYTES];
    uint32_t ip;
    uint16_t port;
    assert_true(feroce_host_next(&host, test_at(0), bytes, &ip, &port));
    assert_int_equal(bytes[1], 0x11);
    assert_int_equal(bytes[4], 0);
    assert_true(host.cm_version_suspect == 0);

    host.config.cm_version = FEROCE_CM_3;
    assert_int_equal(
        feroce_host_on_cm(&host, bytes, sizeof(bytes), TEST_BOARD_IP, FEROCE_PORT_CM, test_at(1)),
        FEROCE_HOST_UNASKED);
    assert_true(host.cm_version_suspect == 1);
}

/* A reply that comes twice says nothing of the next stream's OPEN. */
static void test_reply_comes_twice(void **state)
{
    (void)state;
    struct feroce_host host = begin();
    struct feroce_side other = local_side;
    uint8_t bytes[FEROCE_CM_BYTES];
    uint32_t ip;
    uint16_t port;
    struct feroce_cm first, second;
    other.qpn++;
    feroce_host_open(&host, 0, &local_side, TEST_BOARD_IP, 0x4444);
    feroce_host_open(&host, 1, &other, TEST_BOARD_IP, 0x4444);
    assert_true(feroce_host_next(&host, test_at(0), bytes, &ip, &port));
    assert_true(feroce_cm_decode(FEROCE_CM_3, bytes, sizeof(bytes), &first));
    const struct feroce_cm reply = reply_to(&first, FEROCE_ACK);
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 1), FEROCE_HOST_TAKEN);
    event_of(&host, FEROCE_HOST_CONNECTED);
    assert_true(feroce_host_next(&host, test_at(2), bytes, &ip, &port));
    assert_true(feroce_cm_decode(FEROCE_CM_3, bytes, sizeof(bytes), &second));
    assert_int_equal(second.local.qpn, other.qpn);
    assert_int_equal(tell(&host, &reply, TEST_BOARD_IP, 3), FEROCE_HOST_UNASKED);
    silent(&host, 4);
    no_event(&host);
    const struct feroce_cm own = reply_to(&second, FEROCE_ACK);
    assert_int_equal(tell(&host, &own, TEST_BOARD_IP, 5), FEROCE_HOST_TAKEN);
    event_of(&host, FEROCE_HOST_CONNECTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_and_close),    cmocka_unit_test(test_open_fails),
        cmocka_unit_test(test_wrong_replies),     cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_one_at_a_time),     cmocka_unit_test(test_passive),
        cmocka_unit_test(test_peer_closes),       cmocka_unit_test(test_host_closes),
        cmocka_unit_test(test_discarded),         cmocka_unit_test(test_version_2),
        cmocka_unit_test(test_reply_comes_twice),
    };
    return cmocka_run_group_tests_name("feroce_host", tests, NULL, NULL);
}
