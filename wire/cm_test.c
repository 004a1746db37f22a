/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every bit of every message of the connection manager is where the specification puts it,
 *         in both directions; a value too wide stays in its field; what is reserved is sent as 0
 *         and not looked at; bytes that are not such a message are refused with the right name.
 * Method  A model goes through the messages bit by bit, reserved bits included, as the tables of
 *         IBTA 12.6 list them, and knows no offset; encoding and decoding are compared with it on
 *         random messages. Verdicts are compared with a plain model. All bytes lie in buffers of
 *         exactly their size, so that a sanitizer sees one byte read or written too far.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "wire/cm.h"

struct kind {
    enum cm_attribute attribute;
    const char *name;
    size_t private_bytes;
};

static const struct kind kinds[] = {
    {0x10, "REQ", 92},   {0x11, "MRA", 222},      {0x12, "REJ", 148},
    {0x13, "REP", 196},  {0x14, "RTU", 224},      {0x15, "DREQ", 220},
    {0x16, "DREP", 224}, {0x17, "SIDR_REQ", 216}, {0x18, "SIDR_REP", 136},
};

/* NULL if the attribute is not one of ours. */
static const struct kind *kind_of(unsigned attribute)
{
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (kinds[i].attribute == attribute) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* -- The model: goes through a message and does one thing with each field ---------------------- */

struct walk {
    enum {
        FILL,    /* Gives every member a random value that fits its field. */
        WIDEN,   /* Gives every member a random value of all the member's bits. */
        WRITE,   /* Appends every field to `bytes`; a reserved bit is 0. */
        NOISE,   /* The same, but a reserved bit is anything. */
        COMPARE, /* Fails where `other` has a member of another value. */
    } action;
    struct prng *prng;
    struct cm_message *message;
    const struct cm_message *other;
    uint8_t bytes[CM_MAD_BYTES];
    size_t bits; /* Gone through. */
};

static void append(struct walk *walk, uint64_t value, unsigned width)
{
    assert_true(walk->bits + width <= 8 * CM_MAD_BYTES);
    while (width-- > 0) {
        const unsigned bit = value >> width & 1;
        walk->bytes[walk->bits / 8] |= (uint8_t)(bit << (7 - walk->bits % 8));
        walk->bits++;
    }
}

static void reserved(struct walk *walk, unsigned width)
{
    for (; width > 0; width--) {
        append(walk, walk->action == NOISE ? prng_next(walk->prng) & 1 : 0, 1);
    }
}

static uint64_t value_of(const void *member, size_t bytes)
{
    switch (bytes) {
    case 1: return *(const uint8_t *)member;
    case 2: return *(const uint16_t *)member;
    case 4: return *(const uint32_t *)member;
    case 8: return *(const uint64_t *)member;
    default: fail(); return 0;
    }
}

static void set_value(void *member, size_t bytes, uint64_t value)
{
    switch (bytes) {
    case 1: *(uint8_t *)member = (uint8_t)value; break;
    case 2: *(uint16_t *)member = (uint16_t)value; break;
    case 4: *(uint32_t *)member = (uint32_t)value; break;
    case 8: *(uint64_t *)member = value; break;
    default: fail();
    }
}

static void field(struct walk *walk, void *member, size_t bytes, unsigned width)
{
    const ptrdiff_t offset = (uint8_t *)member - (uint8_t *)walk->message;
    /* A field of one bit is a bool, which is never wider. */
    const unsigned wide = width == 1 ? 1 : 8 * (unsigned)bytes;

    switch (walk->action) {
    case FILL: set_value(member, bytes, prng_next(walk->prng) >> (64 - width)); break;
    case WIDEN: set_value(member, bytes, prng_next(walk->prng) >> (64 - wide)); break;
    case WRITE:
    case NOISE: append(walk, value_of(member, bytes), width); return;
    case COMPARE: assert_memory_equal(member, (const uint8_t *)walk->other + offset, bytes); break;
    }
    walk->bits += width;
}

static void field_bytes(struct walk *walk, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        field(walk, &bytes[i], 1, 8);
    }
}

#define WALK(member, width)                                                                        \
    field(walk, &walk->message->member, sizeof(walk->message->member), (width))

static void walk_path(struct walk *walk)
{
    WALK(req.primary.local_lid, 16);
    WALK(req.primary.remote_lid, 16);
    field_bytes(walk, walk->message->req.primary.local_gid, 16);
    field_bytes(walk, walk->message->req.primary.remote_gid, 16);
    WALK(req.primary.flow_label, 20);
    reserved(walk, 6);
    WALK(req.primary.packet_rate, 6);
    WALK(req.primary.traffic_class, 8);
    WALK(req.primary.hop_limit, 8);
    WALK(req.primary.service_level, 4);
    WALK(req.primary.subnet_local, 1);
    reserved(walk, 3);
    WALK(req.primary.local_ack_timeout, 5);
    reserved(walk, 3);
}

static void walk_req(struct walk *walk)
{
    WALK(local_id, 32);
    reserved(walk, 8);
    WALK(req.vendor, 24);
    WALK(req.service_id, 64);
    WALK(req.ca_guid, 64);
    reserved(walk, 32);
    WALK(req.qkey, 32);
    WALK(req.qpn, 24);
    WALK(req.responder_resources, 8);
    reserved(walk, 24); /* Local EE context. */
    WALK(req.initiator_depth, 8);
    reserved(walk, 24); /* Remote EE context. */
    WALK(req.remote_response_timeout, 5);
    WALK(req.transport, 2);
    WALK(req.flow_control, 1);
    WALK(req.starting_psn, 24);
    WALK(req.local_response_timeout, 5);
    WALK(req.retry_count, 3);
    WALK(req.pkey, 16);
    WALK(req.path_mtu, 4);
    WALK(req.rdc_exists, 1);
    WALK(req.rnr_retry_count, 3);
    WALK(req.max_cm_retries, 4);
    WALK(req.srq, 1);
    WALK(req.extended_transport, 3);
    walk_path(walk);
    reserved(walk, 8 * 44); /* The alternate path. */
}

static void walk_rep(struct walk *walk)
{
    WALK(local_id, 32);
    WALK(remote_id, 32);
    WALK(rep.qkey, 32);
    WALK(rep.qpn, 24);
    reserved(walk, 8);
    reserved(walk, 24); /* Local EE context. */
    reserved(walk, 8);
    WALK(rep.starting_psn, 24);
    reserved(walk, 8);
    WALK(rep.responder_resources, 8);
    WALK(rep.initiator_depth, 8);
    WALK(rep.target_ack_delay, 5);
    WALK(rep.failover_accepted, 2);
    WALK(rep.flow_control, 1);
    WALK(rep.rnr_retry_count, 3);
    WALK(rep.srq, 1);
    reserved(walk, 4);
    WALK(rep.ca_guid, 64);
}

static void walk_rej(struct walk *walk)
{
    WALK(local_id, 32);
    WALK(remote_id, 32);
    WALK(rej.about, 2);
    reserved(walk, 6);
    WALK(rej.information_bytes, 7);
    reserved(walk, 1);
    WALK(rej.reason, 16);
    field_bytes(walk, walk->message->rej.information, 72);
}

static void walk_mra(struct walk *walk)
{
    WALK(local_id, 32);
    WALK(remote_id, 32);
    WALK(mra.about, 2);
    reserved(walk, 6);
    WALK(mra.service_timeout, 5);
    reserved(walk, 3);
}

static void walk_bare(struct walk *walk)
{
    WALK(local_id, 32);
    WALK(remote_id, 32);
}

static void walk_dreq(struct walk *walk)
{
    WALK(local_id, 32);
    WALK(remote_id, 32);
    WALK(dreq_qpn, 24);
    reserved(walk, 8);
}

static void walk_sidr_req(struct walk *walk)
{
    WALK(local_id, 32);
    WALK(sidr_req.pkey, 16);
    reserved(walk, 16);
    WALK(sidr_req.service_id, 64);
}

static void walk_sidr_rep(struct walk *walk)
{
    WALK(local_id, 32);
    WALK(sidr_rep.status, 8);
    reserved(walk, 8); /* Bytes of additional information. */
    reserved(walk, 16);
    WALK(sidr_rep.qpn, 24);
    reserved(walk, 8);
    WALK(sidr_rep.service_id, 64);
    WALK(sidr_rep.qkey, 32);
    reserved(walk, 8 * 72); /* Additional information. */
}

static void walk_attribute(struct walk *walk)
{
    switch ((enum cm_attribute)walk->message->attribute) {
    case CM_REQ: walk_req(walk); break;
    case CM_MRA: walk_mra(walk); break;
    case CM_REJ: walk_rej(walk); break;
    case CM_REP: walk_rep(walk); break;
    case CM_RTU: walk_bare(walk); break;
    case CM_DREQ: walk_dreq(walk); break;
    case CM_DREP: walk_bare(walk); break;
    case CM_SIDR_REQ: walk_sidr_req(walk); break;
    case CM_SIDR_REP: walk_sidr_rep(walk); break;
    }
}

static void walk_message(struct walk *walk)
{
    const uint16_t attribute = walk->message->attribute;
    memset(walk->bytes, 0, sizeof(walk->bytes));
    walk->bits = 0;
    append(walk, 1, 8); /* Base version. */
    append(walk, 7, 8); /* Management class. */
    append(walk, 2, 8); /* Class version. */
    append(walk, 3, 8); /* Method. */
    reserved(walk, 16); /* Status. */
    reserved(walk, 16); /* Class specific. */
    WALK(transaction_id, 64);
    append(walk, attribute, 16);
    reserved(walk, 16);
    WALK(attribute_modifier, 32);
    walk_attribute(walk);
    field_bytes(walk, walk->message->private_data, kind_of(attribute)->private_bytes);
    assert_int_equal(walk->bits, 8 * CM_MAD_BYTES);
}

/* -- The codec, in buffers of exactly its size ------------------------------------------------- */

static enum cm_verdict decode(const uint8_t *bytes, size_t count, struct cm_message *message)
{
    uint8_t *exact = malloc(count + (count == 0));
    assert_non_null(exact);
    memcpy(exact, bytes, count);
    const enum cm_verdict verdict = cm_decode(exact, count, message);
    free(exact);
    return verdict;
}

static void encode(const struct cm_message *message, uint8_t bytes[CM_MAD_BYTES])
{
    uint8_t *exact = malloc(CM_MAD_BYTES);
    assert_non_null(exact);
    memset(exact, 0xee, CM_MAD_BYTES);
    cm_encode(message, exact);
    memcpy(bytes, exact, CM_MAD_BYTES);
    free(exact);
}

/* -- Tests: messages --------------------------------------------------------------------------- */

enum {
    ROUNDS = 1000,
};

/* A random message that may be sent, with zeroes in what it does not use. */
static void fill(struct cm_message *message, uint16_t attribute, struct prng *prng)
{
    struct walk walk = {.action = FILL, .prng = prng, .message = message};
    memset(message, 0, sizeof(*message));
    message->attribute = attribute;
    walk_message(&walk);
    if (attribute == CM_REJ) {
        message->rej.about %= 3;
        message->rej.information_bytes %= 73;
    } else if (attribute == CM_MRA) {
        message->mra.about %= 3;
    }
}

static void assert_same(struct cm_message *message, const struct cm_message *other)
{
    struct walk walk = {.action = COMPARE, .message = message, .other = other};
    assert_int_equal(message->attribute, other->attribute);
    walk_message(&walk);
    assert_memory_equal(message->private_data, other->private_data, CM_PRIVATE_BYTES_MAX);
}

static void test_messages_against_model(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);

    for (size_t i = 0; i < COUNT_OF(kinds) * ROUNDS; i++) {
        struct cm_message message, decoded;
        struct walk walk = {.action = WRITE, .message = &message};
        uint8_t bytes[CM_MAD_BYTES];

        fill(&message, (uint16_t)kinds[i % COUNT_OF(kinds)].attribute, &prng);
        walk_message(&walk);
        encode(&message, bytes);
        assert_memory_equal(bytes, walk.bytes, CM_MAD_BYTES);

        memset(&decoded, 0xee, sizeof(decoded));
        assert_int_equal(decode(bytes, CM_MAD_BYTES, &decoded), CM_GOOD);
        assert_same(&message, &decoded);
    }
}

static void test_wide_values_are_cut(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);

    for (size_t i = 0; i < COUNT_OF(kinds) * ROUNDS; i++) {
        struct cm_message message;
        struct walk walk = {.action = WIDEN, .prng = &prng, .message = &message};
        uint8_t bytes[CM_MAD_BYTES];

        memset(&message, 0, sizeof(message));
        message.attribute = (uint16_t)kinds[i % COUNT_OF(kinds)].attribute;
        walk_message(&walk);
        walk.action = WRITE;
        walk_message(&walk);
        encode(&message, bytes);
        assert_memory_equal(bytes, walk.bytes, CM_MAD_BYTES);
    }
}

static void test_reserved_bits_are_not_looked_at(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);

    for (size_t i = 0; i < COUNT_OF(kinds) * ROUNDS; i++) {
        struct cm_message message, decoded;
        struct walk walk = {.action = NOISE, .prng = &prng, .message = &message};

        fill(&message, (uint16_t)kinds[i % COUNT_OF(kinds)].attribute, &prng);
        walk_message(&walk);
        assert_int_equal(decode(walk.bytes, CM_MAD_BYTES, &decoded), CM_GOOD);
        assert_same(&message, &decoded);
    }
}

/* Bytes behind a message's private data, and members that are not the message's own, are not
 * sent. */
static void test_strange_members_are_not_sent(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 4);

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct cm_message message, strange;
        struct walk walk = {.action = WRITE, .message = &message};
        uint8_t bytes[CM_MAD_BYTES];

        fill(&message, (uint16_t)kinds[i].attribute, &prng);
        strange = message;
        memset(strange.private_data + kinds[i].private_bytes, 0xee,
               CM_PRIVATE_BYTES_MAX - kinds[i].private_bytes);
        if (message.attribute == CM_REQ || message.attribute >= CM_SIDR_REQ) {
            strange.remote_id = 0xeeeeeeee;
        }
        walk_message(&walk);
        encode(&strange, bytes);
        assert_memory_equal(bytes, walk.bytes, CM_MAD_BYTES);
    }
}

/* The one kind of message that no capture has. */
static void test_literal_mra(void **state)
{
    (void)state;
    static const uint8_t expected[CM_MAD_BYTES] = {
        0x01, 0x07, 0x02, 0x03, 0x00, 0x00, 0x00, 0x00,         /* Class, status */
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18,         /* Transaction ID */
        0x00, 0x11, 0x00, 0x00, 0x21, 0x22, 0x23, 0x24,         /* Attribute, modifier */
        0x31, 0x32, 0x33, 0x34, 0x41, 0x42, 0x43, 0x44,         /* Communication IDs */
        0x40, 0xb0, 'l',  'a',  't',  'e',  'r',  [255] = 0x5a, /* REP, 22, private data */
    };
    static const struct cm_message message = {
        .transaction_id = 0x1112131415161718,
        .attribute = CM_MRA,
        .attribute_modifier = 0x21222324,
        .local_id = 0x31323334,
        .remote_id = 0x41424344,
        .mra = {.about = CM_ABOUT_REP, .service_timeout = 22},
        .private_data = {'l', 'a', 't', 'e', 'r', [CM_MRA_PRIVATE_BYTES - 1] = 0x5a},
    };
    uint8_t bytes[CM_MAD_BYTES];
    struct cm_message decoded;

    encode(&message, bytes);
    assert_memory_equal(bytes, expected, CM_MAD_BYTES);
    assert_int_equal(decode(expected, CM_MAD_BYTES, &decoded), CM_GOOD);
    assert_same(&decoded, &message);
}

static void test_names_and_room(void **state)
{
    (void)state;

    for (unsigned attribute = 0; attribute <= UINT16_MAX; attribute++) {
        const struct kind *kind = kind_of(attribute);
        const char *name = cm_attribute_name((enum cm_attribute)attribute);
        assert_string_equal(name, kind == NULL ? "unknown" : kind->name);
        if (kind != NULL) {
            assert_int_equal(cm_private_bytes(kind->attribute), kind->private_bytes);
            assert_true(kind->private_bytes <= CM_PRIVATE_BYTES_MAX);
        }
    }
    for (unsigned i = 0; i < CM_VERDICT_COUNT; i++) {
        for (unsigned j = 0; j < i; j++) {
            assert_string_not_equal(cm_verdict_name(i), cm_verdict_name(j));
        }
    }
    assert_int_equal(cm_service_id(0x0106, 7174), 0x01061c06);
    assert_int_equal(cm_service_id(0xffff, 0xffff), 0xffffffff);
}

/* -- Tests: verdicts --------------------------------------------------------------------------- */

static enum cm_verdict model_verdict(const uint8_t *bytes, size_t count)
{
    if (count != 256) {
        return CM_WRONG_SIZE;
    }
    if (bytes[0] != 1 || bytes[1] != 7 || bytes[3] != 3) {
        return CM_WRONG_CLASS;
    }
    if (bytes[2] != 2) {
        return CM_WRONG_VERSION;
    }
    if (bytes[16] != 0 || bytes[17] < 0x10 || bytes[17] > 0x18) {
        return CM_UNKNOWN_ATTRIBUTE;
    }
    const bool rej = bytes[17] == 0x12, mra = bytes[17] == 0x11;
    const bool about_nothing = bytes[24 + 8] / 64 == 3;
    const bool too_long = bytes[24 + 9] / 2 > 72;
    return ((rej || mra) && about_nothing) || (rej && too_long) ? CM_WRONG_FIELD : CM_GOOD;
}

static void compare_verdicts(const uint8_t *bytes, size_t count)
{
    struct cm_message message, untouched;
    memset(&message, 0xee, sizeof(message));
    memset(&untouched, 0xee, sizeof(untouched));
    const enum cm_verdict verdict = decode(bytes, count, &message);
    assert_string_equal(cm_verdict_name(verdict), cm_verdict_name(model_verdict(bytes, count)));
    if (verdict != CM_GOOD) {
        assert_memory_equal(&message, &untouched, sizeof(message));
    }
}

static void test_sizes(void **state)
{
    (void)state;
    uint8_t bytes[3 * CM_MAD_BYTES] = {1, 7, 2, 3, [17] = CM_RTU};

    for (size_t count = 0; count <= sizeof(bytes); count++) {
        compare_verdicts(bytes, count);
    }
}

static void test_headers(void **state)
{
    (void)state;
    uint8_t bytes[CM_MAD_BYTES] = {1, 7, 2, 3, [17] = CM_RTU};

    for (size_t at = 0; at < CM_HEADER_BYTES; at++) {
        const uint8_t right = bytes[at];
        for (unsigned value = 0; value < 256; value++) {
            bytes[at] = (uint8_t)value;
            compare_verdicts(bytes, CM_MAD_BYTES);
        }
        bytes[at] = right;
    }
    for (unsigned attribute = 0; attribute <= UINT16_MAX; attribute++) {
        bytes[16] = (uint8_t)(attribute >> 8);
        bytes[17] = (uint8_t)attribute;
        compare_verdicts(bytes, CM_MAD_BYTES);
    }
}

/* No more is read of another version than what an answer repeats. */
static void test_opening(void **state)
{
    (void)state;
    uint8_t bytes[CM_MAD_BYTES];
    struct cm_message message;
    memset(bytes, 0xa5, sizeof(bytes));
    memcpy(bytes, (const uint8_t[]){1, 7, 3, 3}, 4);
    bytes[16] = 0;
    bytes[17] = CM_REQ;
    memcpy(bytes + 8, (const uint8_t[]){1, 2, 3, 4, 5, 6, 7, 8}, 8);
    memcpy(bytes + CM_HEADER_BYTES, (const uint8_t[]){9, 10, 11, 12}, 4);
    assert_int_equal(cm_decode(bytes, CM_MAD_BYTES, &message), CM_WRONG_VERSION);
    cm_decode_opening(bytes, &message);
    assert_int_equal(message.transaction_id, 0x0102030405060708);
    assert_int_equal(message.attribute, CM_REQ);
    assert_int_equal(message.local_id, 0x090a0b0c);
    assert_int_equal(message.remote_id, 0);
    assert_int_equal(message.req.service_id, 0);
    for (size_t at = 0; at < sizeof(message.private_data); at++) {
        assert_int_equal(message.private_data[at], 0);
    }
}

/* Every message with all values of the two bytes in which REJ and MRA can be wrong. */
static void test_fields(void **state)
{
    (void)state;
    uint8_t bytes[CM_MAD_BYTES] = {1, 7, 2, 3};

    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        bytes[17] = (uint8_t)kinds[i].attribute;
        for (unsigned values = 0; values <= UINT16_MAX; values++) {
            bytes[CM_HEADER_BYTES + 8] = (uint8_t)(values >> 8);
            bytes[CM_HEADER_BYTES + 9] = (uint8_t)values;
            compare_verdicts(bytes, CM_MAD_BYTES);
        }
    }
}

/* -- Tests: addresses -------------------------------------------------------------------------- */

struct literal_addresses {
    uint8_t bytes[CM_ADDRESSES_BYTES];
    struct cm_addresses addresses;
};

static const struct literal_addresses literal_addresses[] = {
    {{0, 0x40, 0xbb, 0x70, [16] = 10, 77, 0, 2, [32] = 10, 77, 0, 3},
     {false, 0xbb70, {[10] = 0xff, 0xff, 10, 77, 0, 2}, {[10] = 0xff, 0xff, 10, 77, 0, 3}}},
    {{0, 0x60, 0x12, 0x34, 0xfd, 0x77, [19] = 2, 0xfd, 0x77, [35] = 3},
     {true, 0x1234, {0xfd, 0x77, [15] = 2}, {0xfd, 0x77, [15] = 3}}},
};

static void assert_same_addresses(const struct cm_addresses *one, const struct cm_addresses *other)
{
    assert_int_equal(one->ipv6, other->ipv6);
    assert_int_equal(one->source_port, other->source_port);
    assert_memory_equal(one->source, other->source, 16);
    assert_memory_equal(one->destination, other->destination, 16);
}

static void test_literal_addresses(void **state)
{
    (void)state;

    for (size_t i = 0; i < COUNT_OF(literal_addresses); i++) {
        const struct literal_addresses *literal = &literal_addresses[i];
        struct cm_addresses addresses;
        uint8_t bytes[CM_ADDRESSES_BYTES];

        assert_true(cm_addresses_decode(literal->bytes, &addresses));
        assert_same_addresses(&addresses, &literal->addresses);
        memset(bytes, 0xee, sizeof(bytes));
        cm_addresses_encode(&literal->addresses, bytes);
        assert_memory_equal(bytes, literal->bytes, CM_ADDRESSES_BYTES);
    }
}

/* Version 0 with IP version 4 or 6 is good; of any other version nothing is written. The bytes that
 * an IPv4 address leaves free and the low bits of the IP version are ignored. */
static void test_versions_of_addresses(void **state)
{
    (void)state;
    struct cm_addresses untouched;
    memset(&untouched, 0xee, sizeof(untouched));

    for (unsigned versions = 0; versions <= UINT16_MAX; versions++) {
        uint8_t bytes[CM_ADDRESSES_BYTES];
        struct cm_addresses addresses = untouched;
        memset(bytes, 0x5a, sizeof(bytes));
        bytes[0] = (uint8_t)(versions >> 8);
        bytes[1] = (uint8_t)versions;

        const bool good = bytes[0] == 0 && (bytes[1] / 16 == 4 || bytes[1] / 16 == 6);
        assert_int_equal(cm_addresses_decode(bytes, &addresses), good);
        if (!good) {
            assert_memory_equal(&addresses, &untouched, sizeof(addresses));
            continue;
        }
        struct cm_addresses expected = {.ipv6 = bytes[1] / 16 == 6, .source_port = 0x5a5a};
        memset(expected.source, 0x5a, 16);
        if (!expected.ipv6) {
            memset(expected.source, 0, 10);
            memset(expected.source + 10, 0xff, 2);
        }
        memcpy(expected.destination, expected.source, 16);
        assert_same_addresses(&addresses, &expected);
    }
}

static void test_addresses_come_back(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 5);

    for (int round = 0; round < ROUNDS; round++) {
        struct cm_addresses addresses = literal_addresses[round % 2].addresses, decoded;
        uint8_t bytes[CM_ADDRESSES_BYTES];

        addresses.source_port = (uint16_t)prng_next(&prng);
        for (size_t i = addresses.ipv6 ? 0 : 12; i < 16; i++) {
            addresses.source[i] = (uint8_t)prng_next(&prng);
            addresses.destination[i] = (uint8_t)prng_next(&prng);
        }
        cm_addresses_encode(&addresses, bytes);
        assert_true(cm_addresses_decode(bytes, &decoded));
        assert_same_addresses(&decoded, &addresses);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_against_model),
        cmocka_unit_test(test_wide_values_are_cut),
        cmocka_unit_test(test_reserved_bits_are_not_looked_at),
        cmocka_unit_test(test_strange_members_are_not_sent),
        cmocka_unit_test(test_literal_mra),
        cmocka_unit_test(test_names_and_room),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_headers),
        cmocka_unit_test(test_opening),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_literal_addresses),
        cmocka_unit_test(test_versions_of_addresses),
        cmocka_unit_test(test_addresses_come_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
