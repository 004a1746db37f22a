/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every bit of every header of every opcode is where the specification puts it, in both
 *         directions, and bytes that are not a packet are refused with the right name.
 * Method  A second table, transcribed by hand from IBTA table 38, says which headers each opcode
 *         has. A model writes headers bit by bit as the figures of chapter 9 draw them; encoding
 *         and decoding are compared with it on random packets, and with one packet of literal
 *         bytes. Verdicts are compared with a plain model for all 256 opcodes, all pads and many
 *         lengths, each in a buffer of exactly that size, so that a sanitizer sees one byte read
 *         too far.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "wire/roce.h"
#include "wire/roce_plain.h"

/* `headers`: in wire order X XRCETH, D DETH, F FETH, R RETH, C AtomicETH, A AETH, O AtomicAckETH,
 * I ImmDt, K IETH, N reserved bytes of a CNP. `roles`: Q request, P response, F first, L last,
 * S SEND, W WRITE, R READ, T atomic request, U FLUSH, + may carry payload. */
struct expectation {
    uint8_t opcode;
    const char *name, *headers, *roles;
};

static const struct expectation expectations[] = {
    {0x00, "RC SEND First", "", "QFS+"},
    {0x01, "RC SEND Middle", "", "QS+"},
    {0x02, "RC SEND Last", "", "QLS+"},
    {0x03, "RC SEND Last with Immediate", "I", "QLS+"},
    {0x04, "RC SEND Only", "", "QFLS+"},
    {0x05, "RC SEND Only with Immediate", "I", "QFLS+"},
    {0x06, "RC WRITE First", "R", "QFW+"},
    {0x07, "RC WRITE Middle", "", "QW+"},
    {0x08, "RC WRITE Last", "", "QLW+"},
    {0x09, "RC WRITE Last with Immediate", "I", "QLW+"},
    {0x0a, "RC WRITE Only", "R", "QFLW+"},
    {0x0b, "RC WRITE Only with Immediate", "RI", "QFLW+"},
    {0x0c, "RC READ Request", "R", "QFLR"},
    {0x0d, "RC READ Response First", "A", "PFR+"},
    {0x0e, "RC READ Response Middle", "", "PR+"},
    {0x0f, "RC READ Response Last", "A", "PLR+"},
    {0x10, "RC READ Response Only", "A", "PFLR+"},
    {0x11, "RC Acknowledge", "A", "PFL"},
    {0x12, "RC Atomic Acknowledge", "AO", "PFL"},
    {0x13, "RC Compare Swap", "C", "QFLT"},
    {0x14, "RC Fetch Add", "C", "QFLT"},
    {0x16, "RC SEND Last with Invalidate", "K", "QLS+"},
    {0x17, "RC SEND Only with Invalidate", "K", "QFLS+"},
    {0x1c, "RC Flush", "FR", "QFLU"},
    {0x1d, "RC Atomic Write", "R", "QFLT+"},
    {0x20, "UC SEND First", "", "QFS+"},
    {0x21, "UC SEND Middle", "", "QS+"},
    {0x22, "UC SEND Last", "", "QLS+"},
    {0x23, "UC SEND Last with Immediate", "I", "QLS+"},
    {0x24, "UC SEND Only", "", "QFLS+"},
    {0x25, "UC SEND Only with Immediate", "I", "QFLS+"},
    {0x26, "UC WRITE First", "R", "QFW+"},
    {0x27, "UC WRITE Middle", "", "QW+"},
    {0x28, "UC WRITE Last", "", "QLW+"},
    {0x29, "UC WRITE Last with Immediate", "I", "QLW+"},
    {0x2a, "UC WRITE Only", "R", "QFLW+"},
    {0x2b, "UC WRITE Only with Immediate", "RI", "QFLW+"},
    {0x64, "UD SEND Only", "D", "QFLS+"},
    {0x65, "UD SEND Only with Immediate", "DI", "QFLS+"},
    {0x81, "CNP", "N", ""},
    {0xa0, "XRC SEND First", "X", "QFS+"},
    {0xa1, "XRC SEND Middle", "X", "QS+"},
    {0xa2, "XRC SEND Last", "X", "QLS+"},
    {0xa3, "XRC SEND Last with Immediate", "XI", "QLS+"},
    {0xa4, "XRC SEND Only", "X", "QFLS+"},
    {0xa5, "XRC SEND Only with Immediate", "XI", "QFLS+"},
    {0xa6, "XRC WRITE First", "XR", "QFW+"},
    {0xa7, "XRC WRITE Middle", "X", "QW+"},
    {0xa8, "XRC WRITE Last", "X", "QLW+"},
    {0xa9, "XRC WRITE Last with Immediate", "XI", "QLW+"},
    {0xaa, "XRC WRITE Only", "XR", "QFLW+"},
    {0xab, "XRC WRITE Only with Immediate", "XRI", "QFLW+"},
    {0xac, "XRC READ Request", "XR", "QFLR"},
    {0xad, "XRC READ Response First", "A", "PFR+"},
    {0xae, "XRC READ Response Middle", "", "PR+"},
    {0xaf, "XRC READ Response Last", "A", "PLR+"},
    {0xb0, "XRC READ Response Only", "A", "PFLR+"},
    {0xb1, "XRC Acknowledge", "A", "PFL"},
    {0xb2, "XRC Atomic Acknowledge", "AO", "PFL"},
    {0xb3, "XRC Compare Swap", "XC", "QFLT"},
    {0xb4, "XRC Fetch Add", "XC", "QFLT"},
    {0xb6, "XRC SEND Last with Invalidate", "XK", "QLS+"},
    {0xb7, "XRC SEND Only with Invalidate", "XK", "QFLS+"},
    {0xbc, "XRC Flush", "XFR", "QFLU"},
    {0xbd, "XRC Atomic Write", "XR", "QFLT+"},
};

/* nonics' own, in the range that table 38 leaves to manufacturers: no queue pair's. */
static const struct {
    uint8_t opcode;
    const char *name;
    size_t bytes;
} manufacturers[] = {
    {0xc0, "nonic Probe", 12 + 8 + 2 + 2},
    {0xc1, "nonic Answer", 12 + 8 + 2 + 2},
};

/* NULL if queue pairs do not speak the opcode, or we do not. */
static const struct expectation *expectation_of(uint8_t opcode)
{
    for (size_t i = 0; i < COUNT_OF(expectations); i++) {
        if (expectations[i].opcode == opcode) {
            return &expectations[i];
        }
    }
    return NULL;
}

/* -- The model: headers written bit by bit ----------------------------------------------------- */

struct bits {
    uint8_t bytes[64];
    size_t count;
};

static void put(struct bits *bits, uint64_t value, unsigned width)
{
    while (width-- > 0) {
        const unsigned bit = value >> width & 1;
        bits->bytes[bits->count / 8] |= (uint8_t)(bit << (7 - bits->count % 8));
        bits->count++;
    }
}

static void put_header(struct bits *bits, const struct roce_packet *packet, char header)
{
    uint8_t raw[4];

    switch (header) {
    case 'X':
        put(bits, packet->xrc.reserved, 8);
        put(bits, packet->xrc.srqn, 24);
        break;
    case 'D':
        put(bits, packet->deth.qkey, 32);
        put(bits, packet->deth.reserved, 8);
        put(bits, packet->deth.source_qpn, 24);
        break;
    case 'R':
        put(bits, packet->reth.address, 64);
        put(bits, packet->reth.key, 32);
        put(bits, packet->reth.bytes, 32);
        break;
    case 'F':
        put(bits, packet->feth.reserved, 26);
        put(bits, packet->feth.selectivity, 2);
        put(bits, packet->feth.placement, 4);
        break;
    case 'C':
        put(bits, packet->atomic.address, 64);
        put(bits, packet->atomic.key, 32);
        put(bits, packet->atomic.swap_or_add, 64);
        put(bits, packet->atomic.compare, 64);
        break;
    case 'A':
        put(bits, packet->aeth.syndrome, 8);
        put(bits, packet->aeth.msn, 24);
        break;
    case 'O': put(bits, packet->atomic_original, 64); break;
    case 'I':
        memcpy(raw, &packet->immediate, 4);
        for (int i = 0; i < 4; i++) {
            put(bits, raw[i], 8);
        }
        break;
    case 'K': put(bits, packet->invalidate_key, 32); break;
    case 'N':
        put(bits, 0, 64);
        put(bits, 0, 64);
        break;
    default: fail();
    }
}

static void model_encode(struct bits *bits, const struct roce_packet *packet)
{
    memset(bits, 0, sizeof(*bits));
    put(bits, packet->opcode, 8);
    put(bits, packet->solicited, 1);
    put(bits, packet->migration_request, 1);
    put(bits, packet->pad_bytes, 2);
    put(bits, packet->version, 4);
    put(bits, packet->pkey, 16);
    put(bits, packet->byte4, 8);
    put(bits, packet->destination_qpn, 24);
    put(bits, packet->ack_request, 1);
    put(bits, packet->reserved7, 7);
    put(bits, packet->psn, 24);
    for (const char *header = expectation_of(packet->opcode)->headers; *header != '\0'; header++) {
        put_header(bits, packet, *header);
    }
}

/* -- Random packets ---------------------------------------------------------------------------- */

static uint64_t random_bits(struct prng *prng, unsigned width)
{
    return prng_next(prng) >> (64 - width);
}

/* Random values, within their widths, in every field of the headers. */
static void randomize(struct roce_packet *packet, struct prng *prng, uint8_t opcode)
{
    memset(packet, 0, sizeof(*packet));
    packet->opcode = opcode;
    packet->solicited = random_bits(prng, 1);
    packet->migration_request = random_bits(prng, 1);
    packet->byte4 = (uint8_t)random_bits(prng, 8);
    packet->ack_request = random_bits(prng, 1);
    packet->reserved7 = (uint8_t)random_bits(prng, 7);
    packet->pkey = (uint16_t)random_bits(prng, 16);
    packet->destination_qpn = (uint32_t)random_bits(prng, 24);
    packet->psn = (uint32_t)random_bits(prng, 24);
    packet->reth.address = prng_next(prng);
    packet->reth.key = (uint32_t)random_bits(prng, 32);
    packet->reth.bytes = (uint32_t)random_bits(prng, 32);
    packet->feth.reserved = (uint32_t)random_bits(prng, 26);
    packet->feth.selectivity = (uint8_t)random_bits(prng, 2);
    packet->feth.placement = (uint8_t)random_bits(prng, 4);
    packet->aeth.syndrome = (uint8_t)random_bits(prng, 8);
    packet->aeth.msn = (uint32_t)random_bits(prng, 24);
    packet->deth.qkey = (uint32_t)random_bits(prng, 32);
    packet->deth.source_qpn = (uint32_t)random_bits(prng, 24);
    packet->deth.reserved = (uint8_t)random_bits(prng, 8);
    packet->atomic.address = prng_next(prng);
    packet->atomic.key = (uint32_t)random_bits(prng, 32);
    packet->atomic.swap_or_add = prng_next(prng);
    packet->atomic.compare = prng_next(prng);
    packet->atomic_original = prng_next(prng);
    packet->immediate = (uint32_t)random_bits(prng, 32);
    packet->invalidate_key = (uint32_t)random_bits(prng, 32);
    packet->xrc.srqn = (uint32_t)random_bits(prng, 24);
    packet->xrc.reserved = (uint8_t)random_bits(prng, 8);
}

/* -- Tests ------------------------------------------------------------------------------------- */

struct letter {
    char letter;
    enum roce_trait trait;
};

static const struct letter header_letters[] = {
    {'D', ROCE_HAS_DETH}, {'R', ROCE_HAS_RETH},           {'C', ROCE_HAS_ATOMIC_ETH},
    {'A', ROCE_HAS_AETH}, {'O', ROCE_HAS_ATOMIC_ACK_ETH}, {'I', ROCE_HAS_IMMDT},
    {'K', ROCE_HAS_IETH}, {'N', ROCE_HAS_CNP_RESERVED},   {'X', ROCE_HAS_XRCETH},
    {'F', ROCE_HAS_FETH},
};

static const struct letter role_letters[] = {
    {'Q', ROCE_IS_REQUEST},  {'P', ROCE_IS_RESPONSE}, {'F', ROCE_IS_FIRST}, {'L', ROCE_IS_LAST},
    {'S', ROCE_IS_SEND},     {'W', ROCE_IS_WRITE},    {'R', ROCE_IS_READ},  {'T', ROCE_IS_ATOMIC},
    {'+', ROCE_HAS_PAYLOAD}, {'U', ROCE_IS_FLUSH},
};

static uint32_t expected_traits(const struct expectation *expected)
{
    uint32_t traits = 0;
    for (size_t i = 0; i < COUNT_OF(header_letters); i++) {
        traits |=
            strchr(expected->headers, header_letters[i].letter) ? header_letters[i].trait : 0u;
    }
    for (size_t i = 0; i < COUNT_OF(role_letters); i++) {
        traits |= strchr(expected->roles, role_letters[i].letter) ? role_letters[i].trait : 0u;
    }
    return traits;
}

static void test_table(void **state)
{
    (void)state;
    size_t known = 0, longest = 0;

    for (unsigned code = 0; code < 256; code++) {
        const struct roce_opcode *opcode = roce_opcode((uint8_t)code);
        const struct expectation *expected = expectation_of((uint8_t)code);
        assert_int_equal(roce_is_of_queue_pairs(opcode), expected != NULL);
        if (code >= ROCE_MANUFACTURER_FIRST &&
            code < ROCE_MANUFACTURER_FIRST + COUNT_OF(manufacturers)) {
            continue;
        }
        if (expected == NULL) {
            assert_null(opcode->name);
            assert_int_equal(opcode->traits, 0);
            continue;
        }
        struct roce_packet packet = {.opcode = (uint8_t)code};
        struct bits bits;
        model_encode(&bits, &packet);
        assert_string_equal(opcode->name, expected->name);
        assert_int_equal(opcode->traits, expected_traits(expected));
        assert_int_equal(opcode->headers_bytes, bits.count / 8);
        longest = opcode->headers_bytes > longest ? opcode->headers_bytes : longest;
        known++;
    }
    assert_int_equal(known, COUNT_OF(expectations));
    assert_int_equal(longest, ROCE_HEADERS_BYTES_MAX);
}

static void test_opcodes_of_manufacturers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(manufacturers); i++) {
        const struct roce_opcode *opcode = roce_opcode(manufacturers[i].opcode);
        assert_in_range(manufacturers[i].opcode, ROCE_MANUFACTURER_FIRST, 0xff);
        assert_int_equal(manufacturers[i].opcode, ROCE_MANUFACTURER_FIRST + i);
        assert_string_equal(opcode->name, manufacturers[i].name);
        assert_int_equal(opcode->traits, ROCE_IS_OF_PORTS);
        assert_int_equal(opcode->headers_bytes, manufacturers[i].bytes);
    }
}

/* A probe as nonics have always sent it; what the receiver is told; and every other length. */
static void test_probes(void **state)
{
    (void)state;
    static const uint8_t literal[] = {0xc1, 0x00, 0xff, 0xff, 0x00, 0x12, 0x34, 0x56,
                                      0x00, 0x00, 0x00, 0x00, 0x01, 0x02, 0x03, 0x04,
                                      0x05, 0x06, 0x07, 0x08, 0xff, 0xff, 0x00, 0x2a};
    const struct roce_probe probe = {.opcode = ROCE_OPCODE_ANSWER,
                                     .destination_qpn = 0x123456,
                                     .sent = 0x0102030405060708,
                                     .link_slot = 0xffff,
                                     .sender_slot = 42};
    struct roce_probe decoded = {0};
    uint8_t bytes[ROCE_PROBE_BYTES];
    roce_probe_encode(&probe, bytes);
    assert_int_equal(sizeof(bytes), sizeof(literal));
    assert_memory_equal(bytes, literal, sizeof(literal));
    for (size_t count = 0; count <= 80; count++) {
        for (unsigned code = 0; code < 256; code++) {
            uint8_t *copy = calloc(1, count + 1);
            memcpy(copy, literal, count < sizeof(literal) ? count : sizeof(literal));
            copy[0] = (uint8_t)code;
            assert_int_equal(roce_probe_decode(copy, count, &decoded),
                             count == sizeof(literal) && (code == 0xc0 || code == 0xc1));
            free(copy);
        }
    }
    assert_true(roce_probe_decode(literal, sizeof(literal), &decoded));
    assert_int_equal(decoded.opcode, probe.opcode);
    assert_int_equal(decoded.destination_qpn, probe.destination_qpn);
    assert_true(decoded.sent == probe.sent);
    assert_int_equal(decoded.link_slot, probe.link_slot);
    assert_int_equal(decoded.sender_slot, probe.sender_slot);
}

static void test_literal_packet(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {
        0x0b, 0xd0, 0x12, 0x34,                         /* WRITE Only Imm, SE, MigReq, pad 1 */
        0x80, 0xab, 0xcd, 0xef,                         /* FECN, destination QPN */
        0x81, 0x01, 0x02, 0x03,                         /* AckReq, a reserved bit, PSN */
        0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, /* virtual address */
        0x21, 0x22, 0x23, 0x24, 0x00, 0x00, 0x00, 0x03, /* key, length */
        0x31, 0x32, 0x33, 0x34,                         /* immediate */
        'a',  'b',  'c',  0x00,
    };
    struct roce_packet packet;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];

    assert_int_equal(roce_decode(bytes, sizeof(bytes), &packet), ROCE_GOOD);
    assert_int_equal(packet.opcode, ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_WRITE_ONLY_IMMEDIATE));
    assert_true(packet.solicited);
    assert_true(packet.migration_request);
    assert_int_equal(packet.pad_bytes, 1);
    assert_int_equal(packet.version, 0);
    assert_int_equal(packet.pkey, 0x1234);
    assert_int_equal(packet.byte4, 0x80);
    assert_int_equal(packet.destination_qpn, 0xabcdef);
    assert_true(packet.ack_request);
    assert_int_equal(packet.reserved7, 1);
    assert_int_equal(packet.psn, 0x010203);
    assert_true(packet.reth.address == 0x1112131415161718);
    assert_int_equal(packet.reth.key, 0x21222324);
    assert_int_equal(packet.reth.bytes, 3);
    assert_memory_equal(&packet.immediate, "\x31\x32\x33\x34", 4);
    assert_ptr_equal(packet.payload, bytes + 32);
    assert_int_equal(packet.payload_bytes, 3);
    assert_int_equal(roce_encode_headers(&packet, headers), 32);
    assert_memory_equal(headers, bytes, 32);
}

/* Struct to bytes agrees with the model; bytes to struct gives back every field. */
static void test_headers_against_model(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);

    for (size_t i = 0; i < COUNT_OF(expectations); i++) {
        for (int round = 0; round < 1000; round++) {
            struct roce_packet packet, decoded;
            struct bits bits;
            uint8_t bytes[ROCE_HEADERS_BYTES_MAX];

            randomize(&packet, &prng, expectations[i].opcode);
            model_encode(&bits, &packet);
            assert_int_equal(roce_encode_headers(&packet, bytes), bits.count / 8);
            assert_memory_equal(bytes, bits.bytes, bits.count / 8);

            /* Fields that the opcode does not have are left alone, so the copy stays equal. */
            decoded = packet;
            struct roce_packet other;
            randomize(&other, &prng, expectations[i].opcode);
            uint8_t other_bytes[ROCE_HEADERS_BYTES_MAX];
            const size_t count = roce_encode_headers(&other, other_bytes);
            assert_int_equal(roce_decode(other_bytes, count, &decoded), ROCE_GOOD);
            assert_int_equal(roce_decode(bytes, count, &decoded), ROCE_GOOD);
            assert_memory_equal(&decoded, &packet, sizeof(packet));
        }
    }
}

/* Values wider than their fields are cut, and do not spill into the neighbours. */
static void test_wide_values(void **state)
{
    (void)state;
    struct roce_packet packet = {
        .opcode = ROCE_OPCODE(ROCE_SERVICE_UD, ROCE_SEND_ONLY),
        .destination_qpn = UINT32_MAX,
        .psn = UINT32_MAX,
        .deth.source_qpn = UINT32_MAX,
    };
    static const uint8_t expected[] = {0x64, 0,    0, 0, 0, 0xff, 0xff, 0xff, 0,    0xff,
                                       0xff, 0xff, 0, 0, 0, 0,    0,    0xff, 0xff, 0xff};
    uint8_t bytes[ROCE_HEADERS_BYTES_MAX];

    assert_int_equal(roce_encode_headers(&packet, bytes), sizeof(expected));
    assert_memory_equal(bytes, expected, sizeof(expected));
}

static void test_reserved_bytes_of_a_cnp_are_not_judged(void **state)
{
    (void)state;
    uint8_t bytes[28];
    struct roce_packet packet;

    memset(bytes, 0xff, sizeof(bytes));
    bytes[0] = ROCE_OPCODE_CNP;
    bytes[1] = 0;
    assert_int_equal(roce_decode(bytes, sizeof(bytes), &packet), ROCE_GOOD);
    assert_int_equal(packet.destination_qpn, 0xffffff);
    assert_int_equal(packet.payload_bytes, 0);
    assert_null(packet.payload);
}

static enum roce_verdict model_verdict(const uint8_t *bytes, size_t count)
{
    if (count < 12) {
        return ROCE_SHORT;
    }
    if (bytes[1] % 16 != 0) {
        return ROCE_WRONG_VERSION;
    }
    const struct expectation *expected = expectation_of(bytes[0]);
    if (expected == NULL) {
        return ROCE_UNKNOWN_OPCODE;
    }
    struct roce_packet packet = {.opcode = bytes[0]};
    struct bits bits;
    model_encode(&bits, &packet);
    const long padded = (long)count - (long)bits.count / 8;
    const long payload = padded - bytes[1] / 16 % 4;
    if (padded < 0) {
        return ROCE_SHORT;
    }
    if (strchr(expected->roles, '+') == NULL && padded > 0) {
        return ROCE_TOO_LONG;
    }
    if (payload < 0 || padded % 4 != 0) {
        return ROCE_WRONG_PAD;
    }
    return payload > 4096 ? ROCE_TOO_LONG : ROCE_GOOD;
}

static void compare_verdicts(uint8_t opcode, uint8_t flags, size_t count)
{
    uint8_t *bytes = malloc(count + (count == 0));
    struct roce_packet packet, untouched;

    assert_non_null(bytes);
    memset(bytes, 0x5a, count);
    if (count >= 2) {
        bytes[0] = opcode;
        bytes[1] = flags;
    }
    memset(&packet, 0xee, sizeof(packet));
    memset(&untouched, 0xee, sizeof(untouched));
    const enum roce_verdict verdict = roce_decode(bytes, count, &packet);
    assert_string_equal(roce_verdict_name(verdict), roce_verdict_name(model_verdict(bytes, count)));
    if (verdict == ROCE_GOOD) {
        const size_t headers_bytes = roce_opcode(opcode)->headers_bytes;
        assert_int_equal(packet.payload_bytes, count - headers_bytes - flags / 16 % 4);
        assert_ptr_equal(packet.payload, packet.payload_bytes == 0 ? NULL : bytes + headers_bytes);
    } else {
        assert_memory_equal(&packet, &untouched, sizeof(packet));
    }
    free(bytes);
}

/* The same packet in two places: cut at its headers it decodes as in one, cut anywhere else it is
 * refused. */
static void compare_split(const uint8_t *bytes, size_t count)
{
    const size_t headers_bytes = roce_opcode(bytes[0])->headers_bytes;
    struct roce_packet whole, split, untouched;

    for (size_t cut = 0; cut <= count; cut++) {
        const size_t rest = count - cut;
        uint8_t *headers = malloc(cut + (cut == 0));
        uint8_t *payload = malloc(rest + (rest == 0));
        assert_non_null(headers);
        assert_non_null(payload);
        memcpy(headers, bytes, cut);
        memcpy(payload, bytes + cut, rest);
        memset(&whole, 0xee, sizeof(whole));
        memset(&split, 0xee, sizeof(split));
        memset(&untouched, 0xee, sizeof(untouched));

        const enum roce_verdict verdict = roce_decode_split(headers, cut, payload, rest, &split);
        if (cut == headers_bytes) {
            assert_int_equal(verdict, roce_decode(bytes, count, &whole));
            if (verdict == ROCE_GOOD && split.payload_bytes > 0) {
                assert_ptr_equal(split.payload, payload);
                assert_ptr_equal(whole.payload, bytes + cut);
                split.payload = whole.payload;
            }
            assert_memory_equal(&split, &whole, sizeof(whole));
        } else {
            assert_int_equal(verdict, cut < headers_bytes ? ROCE_SHORT : ROCE_TOO_LONG);
            assert_memory_equal(&split, &untouched, sizeof(split));
        }
        free(headers);
        free(payload);
    }
}

static void test_split_packets(void **state)
{
    (void)state;
    uint8_t bytes[80];

    for (size_t i = 0; i < COUNT_OF(expectations); i++) {
        for (unsigned pad = 0; pad < 4; pad++) {
            for (size_t count = 12; count <= sizeof(bytes); count++) {
                memset(bytes, 0x5a, count);
                bytes[0] = expectations[i].opcode;
                bytes[1] = (uint8_t)(pad << 4);
                compare_split(bytes, count);
            }
        }
    }
}

static void test_verdicts(void **state)
{
    (void)state;

    for (unsigned opcode = 0; opcode < 256; opcode++) {
        for (unsigned pad = 0; pad < 4; pad++) {
            const uint8_t flags = (uint8_t)(0xc0 | pad << 4);
            for (size_t count = 0; count <= 80; count++) {
                compare_verdicts((uint8_t)opcode, flags, count);
            }
            for (size_t count = 4096; count <= 4096 + 60; count++) {
                compare_verdicts((uint8_t)opcode, flags, count);
            }
        }
        for (uint8_t version = 1; version < 16; version++) {
            compare_verdicts((uint8_t)opcode, version, 40);
        }
    }
}

static void test_pad_for_length(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0, 3, 2, 1};

    for (uint32_t bytes = 0; bytes <= 4100; bytes++) {
        assert_int_equal(roce_pad_bytes(bytes), expected[bytes % 4]);
    }
}

/* The short form of a BTH is the general one, of any bytes. */
static void test_plain(void **state)
{
    struct prng prng;
    (void)state;
    prng_init(&prng, 47);
    for (int i = 0; i < 100000; i++) {
        uint8_t bytes[ROCE_BTH_BYTES], again[ROCE_HEADERS_BYTES_MAX];
        struct roce_packet packet;
        struct roce_plain plain;
        for (size_t at = 0; at < sizeof(bytes); at++) {
            bytes[at] = (uint8_t)random_bits(&prng, 8);
        }
        bytes[0] = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY);
        if (random_bits(&prng, 1)) {
            bytes[1] &= 0xf0;
            bytes[2] |= 0x7f;
            bytes[3] = 0xff;
        }
        const bool good = roce_plain_get(bytes, &plain);
        const size_t pad = (4 - plain.pad_bytes) % 4 == 0 ? 0 : 4;
        uint8_t whole[ROCE_BTH_BYTES + 4] = {0};
        memcpy(whole, bytes, sizeof(bytes));
        const enum roce_verdict verdict = roce_decode(whole, sizeof(bytes) + pad, &packet);
        assert_true(good == (verdict == ROCE_GOOD && (packet.pkey & 0x7fff) == 0x7fff));
        if (!good) {
            continue;
        }
        assert_int_equal(plain.psn, packet.psn);
        assert_int_equal(plain.destination_qpn, packet.destination_qpn);
        assert_true(plain.ack_request == packet.ack_request);
        assert_true(plain.solicited == packet.solicited);
        assert_int_equal(plain.pad_bytes, packet.pad_bytes);
        packet.migration_request = true;
        packet.pkey = ROCE_DEFAULT_PKEY;
        packet.byte4 = packet.reserved7 = 0;
        assert_int_equal(roce_encode_headers(&packet, again), ROCE_BTH_BYTES);
        roce_plain_put(&plain, bytes);
        assert_memory_equal(bytes, again, ROCE_BTH_BYTES);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_opcodes_of_manufacturers),
        cmocka_unit_test(test_probes),
        cmocka_unit_test(test_literal_packet),
        cmocka_unit_test(test_headers_against_model),
        cmocka_unit_test(test_wide_values),
        cmocka_unit_test(test_reserved_bytes_of_a_cnp_are_not_judged),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_split_packets),
        cmocka_unit_test(test_pad_for_length),
        cmocka_unit_test(test_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
