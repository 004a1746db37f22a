/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The connection manager's messages are those of the Linux kernel, to the bit.
 * Method  Every packet between the two QPs 1 in the captures of librdmacm's programs is held
 *         against a table of messages, written down from what Wireshark 4.0 shows of them and,
 *         where it shows nothing (SIDR) or misreads (flow label, packet rate), from the bytes by
 *         hand. Our encoding of a row must be the packet's payload, and its decoding the row.
 *
 * Every bit of these packets that is not in the struct is 0. Among them is no MRA, nothing over
 * IPv6, and no private data but the addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "capture.h"
#include "wire/cm.h"
#include "wire/roce.h"

struct frame {
    uint32_t number; /* In its capture. */
    struct cm_message message;
};

enum {
    FRAMES_MAX = 10,
};

struct conversation {
    const char *capture;
    size_t frames_count;
    struct frame frames[FRAMES_MAX];
};

/* clang-format off */

/* A, 10.77.0.2, is the client everywhere, and B, 10.77.0.3, the server. */
#define GUID_A           0x505400fffe770002
#define GUID_B           0x505400fffe770003
#define IPV4_OF_A        10, 77, 0, 2
#define IPV4_OF_B        10, 77, 0, 3
#define ADDRESSES(port)  0, 0x40, (port) >> 8, (port) & 0xff, [16] = IPV4_OF_A, [32] = IPV4_OF_B

#define IDS(transaction, from, to)                                                                 \
    .transaction_id = (transaction), .local_id = (from), .remote_id = (to)

/* Fields that the kernel sets for every program; the arguments are those that a program, or chance,
 * adds. */
#define REQ(to_port, its_qpn, psn, depth, retries, rnr_retries, label)                             \
    .attribute = CM_REQ,                                                                           \
    .req.service_id = 0x01060000 | (to_port),                                                      \
    .req.ca_guid = GUID_A,                                                                         \
    .req.qpn = (its_qpn),                                                                          \
    .req.responder_resources = (depth),                                                            \
    .req.initiator_depth = (depth),                                                                \
    .req.remote_response_timeout = 20,                                                             \
    .req.transport = CM_TRANSPORT_RC,                                                              \
    .req.starting_psn = (psn),                                                                     \
    .req.local_response_timeout = 20,                                                              \
    .req.retry_count = (retries),                                                                  \
    .req.pkey = 0xffff,                                                                            \
    .req.path_mtu = 3,                                                                             \
    .req.rnr_retry_count = (rnr_retries),                                                          \
    .req.max_cm_retries = 15,                                                                      \
    .req.primary.local_lid = 0xffff,                                                               \
    .req.primary.remote_lid = 0xffff,                                                              \
    .req.primary.local_gid = {[10] = 0xff, 0xff, IPV4_OF_A},                                       \
    .req.primary.remote_gid = {[10] = 0xff, 0xff, IPV4_OF_B},                                      \
    .req.primary.flow_label = (label),                                                             \
    .req.primary.hop_limit = 64,                                                                   \
    .req.primary.local_ack_timeout = 19

#define REP(its_qpn, psn, depth)                                                                   \
    .attribute = CM_REP,                                                                           \
    .rep.qpn = (its_qpn),                                                                          \
    .rep.starting_psn = (psn),                                                                     \
    .rep.responder_resources = (depth),                                                            \
    .rep.initiator_depth = (depth),                                                                \
    .rep.target_ack_delay = 15,                                                                    \
    .rep.rnr_retry_count = 7,                                                                      \
    .rep.ca_guid = GUID_B

static const struct conversation conversations[] = {
    {"rping.pcap", 5, {
        {4, {IDS(0x2cfbbbcd8, 0xd8bcbbcf, 0), REQ(7174, 0x11, 0x215c52, 1, 7, 7, 0x6ce96),
             .private_data = {ADDRESSES(0xbb70)}}},
        {5, {IDS(0x2cfbbbcd8, 0x64e5e863, 0xd8bcbbcf), REP(0x11, 0x0efd68, 1)}},
        {6, {IDS(0x2cfbbbcd8, 0xd8bcbbcf, 0x64e5e863), .attribute = CM_RTU}},
        {43, {IDS(0x2cfbbbcd8, 0xd8bcbbcf, 0x64e5e863), .attribute = CM_DREQ, .dreq_qpn = 0x11}},
        {44, {IDS(0x2cfbbbcd8, 0x64e5e863, 0xd8bcbbcf), .attribute = CM_DREP}},
    }},
    {"ucmatose.pcap", 10, {
        {1, {IDS(0x2a151c56b, 0x6bc551a1, 0), REQ(7471, 0x3b, 0x49cf1b, 1, 5, 0, 0x5487e),
             .private_data = {ADDRESSES(0xaed1)}}},
        {2, {IDS(0x2a151c56c, 0x6cc551a1, 0), REQ(7471, 0x3c, 0x7d0f62, 1, 5, 0, 0xa4cb1),
             .private_data = {ADDRESSES(0xd83e)}}},
        {3, {IDS(0x2a151c56b, 0x0507d8ea, 0x6bc551a1), REP(0x3b, 0xa83688, 1)}},
        {4, {IDS(0x2a151c56b, 0x6bc551a1, 0x0507d8ea), .attribute = CM_RTU}},
        {5, {IDS(0x2a151c56c, 0x0a07d8ea, 0x6cc551a1), REP(0x3c, 0x8a02d0, 1)}},
        {6, {IDS(0x2a151c56c, 0x6cc551a1, 0x0a07d8ea), .attribute = CM_RTU}},
        {31, {IDS(0x2ead80705, 0x0507d8ea, 0x6bc551a1), .attribute = CM_DREQ, .dreq_qpn = 0x3b}},
        {32, {IDS(0x2ead8070a, 0x0a07d8ea, 0x6cc551a1), .attribute = CM_DREQ, .dreq_qpn = 0x3c}},
        {33, {IDS(0x2ead80705, 0x6bc551a1, 0x0507d8ea), .attribute = CM_DREP}},
        {34, {IDS(0x2ead8070a, 0x6cc551a1, 0x0a07d8ea), .attribute = CM_DREP}},
    }},
    {"udaddy.pcap", 2, {
        {1, {IDS(0x2a151c56d, 0x6dc551a1, 0), .attribute = CM_SIDR_REQ,
             .sidr_req.pkey = 0xffff, .sidr_req.service_id = 0x01111c06,
             .private_data = {ADDRESSES(0x863c)}}},
        {2, {IDS(0x2a151c56d, 0x6dc551a1, 0), .attribute = CM_SIDR_REP,
             .sidr_rep.status = CM_SIDR_VALID, .sidr_rep.qpn = 0x3d,
             .sidr_rep.service_id = 0x01111c06, .sidr_rep.qkey = 0x01234567}},
    }},
    {"rdmacm_reject.pcap", 2, {
        {3, {IDS(0x2a151c56e, 0x6ec551a1, 0), REQ(7999, 0x3e, 0x98991c, 1, 7, 7, 0xa5798),
             .private_data = {ADDRESSES(0xd887)}}},
        {4, {IDS(0x2a151c56e, 0, 0x6ec551a1), .attribute = CM_REJ,
             .rej.about = CM_ABOUT_REQ, .rej.reason = CM_REASON_INVALID_SERVICE_ID}},
    }},
    {"perftest_write_rdmacm.pcap", 6, {
        {1, {IDS(0x2a151c568, 0x68c551a1, 0), REQ(18515, 0x25, 0xcbb8b6, 0, 7, 7, 0x8d4d9),
             .private_data = {ADDRESSES(0xcaba)}}},
        {2, {IDS(0x2a151c568, 0x0307d8ea, 0x68c551a1), REP(0x25, 0x24ff49, 0)}},
        {3, {IDS(0x2a151c568, 0x68c551a1, 0x0307d8ea), .attribute = CM_RTU}},
        {24, {IDS(0x2a151c569, 0x69c551a1, 0), REQ(18515, 0x26, 0x7c0660, 0, 7, 7, 0x659b6),
              .private_data = {ADDRESSES(0xb63d)}}},
        {25, {IDS(0x2a151c569, 0x0107d8ea, 0x69c551a1), REP(0x26, 0x502caa, 0)}},
        {26, {IDS(0x2a151c569, 0x69c551a1, 0x0107d8ea), .attribute = CM_RTU}},
    }},
};

/* clang-format on */

static const char *directory;

/* Whether a packet goes from a QP 1 to a QP 1, as all of the connection manager do. */
static bool read_mad(const struct datagram *datagram, struct roce_packet *packet)
{
    if (roce_decode(datagram->payload, datagram->payload_bytes - ROCE_ICRC_BYTES, packet) !=
            ROCE_GOOD ||
        packet->destination_qpn != CM_QPN) {
        return false;
    }
    assert_int_equal(packet->opcode, ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY));
    assert_int_equal(packet->deth.source_qpn, CM_QPN);
    assert_int_equal(packet->deth.qkey, CM_QKEY);
    assert_int_equal(packet->payload_bytes, CM_MAD_BYTES);
    return true;
}

static void compare_frame(const char *capture, const struct frame *frame, const uint8_t *mad)
{
    uint8_t bytes[CM_MAD_BYTES];
    struct cm_message decoded;
    memset(&decoded, 0xee, sizeof(decoded));

    cm_encode(&frame->message, bytes);
    for (size_t i = 0; i < CM_MAD_BYTES; i++) {
        if (bytes[i] != mad[i]) {
            fail_msg("%s frame %u: byte %zu of the MAD", capture, frame->number, i);
        }
    }
    assert_int_equal(cm_decode(mad, CM_MAD_BYTES, &decoded), CM_GOOD);
    assert_memory_equal(&decoded, &frame->message, sizeof(decoded));
}

static void test_messages(void **state)
{
    (void)state;

    for (size_t i = 0; i < COUNT_OF(conversations); i++) {
        const struct conversation *conversation = &conversations[i];
        struct capture capture;
        struct datagram datagram;
        struct roce_packet packet;
        size_t count = 0;

        capture_open(&capture, directory, conversation->capture);
        while (capture_next(&capture, &datagram)) {
            if (read_mad(&datagram, &packet)) {
                assert_true(count < conversation->frames_count);
                const struct frame *frame = &conversation->frames[count++];
                assert_int_equal(capture.frame, frame->number);
                compare_frame(conversation->capture, frame, packet.payload);
            }
        }
        assert_int_equal(count, conversation->frames_count);
        capture_close(&capture);
    }
}

/* The addresses in private data are those of the IP header, and their encoding its first bytes. */
static void compare_addresses(const struct datagram *datagram, const struct cm_message *message)
{
    struct cm_addresses addresses;
    uint8_t bytes[CM_ADDRESSES_BYTES];

    assert_true(cm_addresses_decode(message->private_data, &addresses));
    assert_false(addresses.ipv6);
    assert_memory_equal(addresses.source, datagram->flow.source, 16);
    assert_memory_equal(addresses.destination, datagram->flow.destination, 16);
    cm_addresses_encode(&addresses, bytes);
    assert_memory_equal(bytes, message->private_data, CM_ADDRESSES_BYTES);

    /* The kernel makes the flow label of both ports: so is a field that Wireshark misreads checked
     * by something else than us. */
    if (message->attribute == CM_REQ) {
        const uint32_t port = (uint16_t)message->req.service_id;
        const uint32_t label = (31u * addresses.source_port + port) & 0xfffff;
        assert_int_equal(message->req.primary.flow_label, label);
    }
}

static void test_addresses(void **state)
{
    (void)state;
    size_t count = 0;

    for (size_t i = 0; i < COUNT_OF(conversations); i++) {
        struct capture capture;
        struct datagram datagram;
        struct roce_packet packet;
        struct cm_message message;

        capture_open(&capture, directory, conversations[i].capture);
        while (capture_next(&capture, &datagram)) {
            if (read_mad(&datagram, &packet)) {
                assert_int_equal(cm_decode(packet.payload, CM_MAD_BYTES, &message), CM_GOOD);
                if (message.attribute == CM_REQ || message.attribute == CM_SIDR_REQ) {
                    compare_addresses(&datagram, &message);
                    count++;
                }
            }
        }
        capture_close(&capture);
    }
    assert_int_equal(count, 7);
}

int main(int count, char **arguments)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_addresses),
    };
    if (count != 2) {
        fprintf(stderr, "usage: %s DIRECTORY-OF-CAPTURES\n", arguments[0]);
        return 2;
    }
    directory = arguments[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
