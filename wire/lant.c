/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lant - see lant.h.
 *
 * With LANT_CRC_WRONG the fields of F1 are sound, because the flit has a code of its own. F2 has
 * none: its operation, offset and attempt are as they came, and an answer may repeat them. If these
 * are damaged, the sender finds no row with them (LNI-27), ignores the NACK, and resends when
 * its timer expires. H1 has a code of its own, too: its type is sound, so nobody answers an answer.
 *
 * Some fields are 0 in packets of some types. These and the reserved bits are judged here. The code
 * that uses a field judges its other values.
 */
#include "wire/lant.h"

#include <string.h>

#include "wire/crc32c.h"
#include "wire/fields.h"

#define ECC    UINT64_C(0x7f)        /* The check bits of H1, H2, H3 and F1. */
#define AGE_1  (UINT64_C(1) << 16)   /* One hop, in H1. */
#define AGE    (UINT64_C(0xf) << 16) /* H1's only field that changes on the way. */
#define CRC    UINT64_C(0xffffffff)  /* In F2. */
#define H1_RSV (UINT64_C(3) << 7)    /* Reserved bits. */
#define H2_RSV (UINT64_C(1) << 7)

enum {
    HEAD_FLITS_MAX = 3,
    FOOT_FLITS = 2,
};

/* -- Codes --------------------------------------------------------------------------------------*/

/* The data bits 7..63 stand at the places 1..63 of the code that are no powers of two, in ascending
 * order. Check bit k covers the places whose number has bit k: as bits of the flit, these. */
static const uint64_t covered[6] = {
    0xaaaaaaab5556ad80, 0xcccccccd999b3680, 0xf0f0f0f1e1e3c700,
    0xff00ff01fe03f800, 0xffff0001fffc0000, 0xfffffffe00000000,
};

static uint32_t odd(uint64_t bits)
{
    return (uint32_t)__builtin_parityll(bits);
}

static uint32_t check_bits(uint64_t flit)
{
    uint32_t bits = 0;
    for (uint32_t k = 0; k < COUNT_OF(covered); k++) {
        bits |= odd(flit & covered[k]) << k;
    }
    return bits;
}

uint64_t lant_secded(uint64_t flit)
{
    const uint64_t sound = (flit & ~ECC) | check_bits(flit);
    return sound | (uint64_t)odd(sound) << 6;
}

/* Which bit of the flit stands at this place of the code; place 0 is the parity of all. */
static uint32_t bit_at(uint32_t place)
{
    if (place == 0) {
        return 6;
    }
    const uint32_t width = 32 - (uint32_t)__builtin_clz(place);
    const bool is_check_bit = (place & (place - 1)) == 0;
    /* `width` is also how many places up to this one are check bits. */
    return is_check_bit ? width - 1 : 7 + (place - 1) - width;
}

enum lant_secded lant_secded_check(uint64_t *flit)
{
    const uint32_t place = (check_bits(*flit) ^ (uint32_t)*flit) & 0x3f;
    if (odd(*flit)) {
        *flit ^= UINT64_C(1) << bit_at(place);
        return LANT_REPAIRED;
    }
    return place == 0 ? LANT_CLEAN : LANT_DAMAGED;
}

/* The CRC covers all bits but these. */
static const uint64_t uncovered[] = {
    [LANT_HEAD1] = AGE | ECC, [LANT_HEAD2] = ECC, [LANT_HEAD3] = ECC,
    [LANT_BODY] = 0,          [LANT_FOOT1] = ECC, [LANT_FOOT2] = CRC,
};

uint32_t lant_crc_flit(uint32_t crc, enum lant_part part, uint64_t flit)
{
    const uint64_t covered_bits = flit & ~uncovered[part];
    return crc32c_words(crc, &covered_bits, 1);
}

static uint32_t crc_of(const uint64_t *head, uint32_t head_flits, const uint64_t *payload,
                       uint32_t payload_flits, const uint64_t foot[FOOT_FLITS])
{
    uint32_t crc = LANT_CRC_START;
    for (uint32_t i = 0; i < head_flits; i++) {
        crc = lant_crc_flit(crc, (enum lant_part)(LANT_HEAD1 + i), head[i]);
    }
    crc = crc32c_words(crc, payload, payload_flits);
    crc = lant_crc_flit(crc, LANT_FOOT1, foot[0]);
    return lant_crc_flit(crc, LANT_FOOT2, foot[1]);
}

/* -- Fields -------------------------------------------------------------------------------------*/

static void head_encode(const struct lant_header *header, uint64_t *head)
{
    head[0] =
        lant_secded(placed(header->destination, 42, LANT_NODE_BITS) | placed(header->type, 38, 4) |
                    placed(header->payload, 31, 7) | placed(header->packets, 20, 11) |
                    placed(header->age, 16, 4) | placed(header->epoch, 14, 2) |
                    placed(header->priority, 12, 2) | flag(header->lock, 11) |
                    flag(header->keyhole, 10) | flag(header->extended, 9));
    head[1] =
        lant_secded(placed(header->address, 22, LANT_ADDRESS_BITS) | placed(header->strobe, 14, 8) |
                    placed(header->size, 11, 3) | placed(header->protection, 8, 3));
    if (header->extended) {
        head[2] = lant_secded(placed(header->sequence, 32, 32) | placed(header->total, 7, 25));
    }
}

static struct lant_header head_first(uint64_t flit)
{
    return (struct lant_header){
        .destination = (uint32_t)field(flit, 42, LANT_NODE_BITS),
        .type = (uint8_t)field(flit, 38, 4),
        .payload = (uint8_t)field(flit, 31, 7),
        .packets = (uint16_t)field(flit, 20, 11),
        .age = (uint8_t)field(flit, 16, 4),
        .epoch = (uint8_t)field(flit, 14, 2),
        .priority = (uint8_t)field(flit, 12, 2),
        .lock = field(flit, 11, 1),
        .keyhole = field(flit, 10, 1),
        .extended = field(flit, 9, 1),
    };
}

static void head_second(uint64_t flit, struct lant_header *header)
{
    header->address = field(flit, 22, LANT_ADDRESS_BITS);
    header->strobe = (uint8_t)field(flit, 14, 8);
    header->size = (uint8_t)field(flit, 11, 3);
    header->protection = (uint8_t)field(flit, 8, 3);
}

/* H2, and H3 if there is one. */
static void head_rest(const uint64_t *head, struct lant_header *header)
{
    head_second(head[1], header);
    if (header->extended) {
        header->sequence = (uint32_t)field(head[2], 32, 32);
        header->total = (uint32_t)field(head[2], 7, 25);
    }
}

/* The CRC's place is empty. */
static void foot_encode(const struct lant_footer *footer, uint64_t foot[FOOT_FLITS])
{
    foot[0] =
        lant_secded(placed(footer->source, 42, LANT_NODE_BITS) | placed(footer->class, 40, 2) |
                    placed(footer->row, 26, 14) | placed(footer->response, 23, 3) |
                    placed(footer->generation, 15, 8) | placed(footer->bus_id, 7, 8));
    foot[1] = placed(footer->operation, 52, 12) | placed(footer->offset, 35, 17) |
              placed(footer->attempt, 32, 3);
}

static struct lant_footer foot_decode(const uint64_t foot[FOOT_FLITS])
{
    return (struct lant_footer){
        .source = (uint32_t)field(foot[0], 42, LANT_NODE_BITS),
        .class = (uint8_t)field(foot[0], 40, 2),
        .row = (uint16_t)field(foot[0], 26, 14),
        .response = (uint8_t)field(foot[0], 23, 3),
        .generation = (uint8_t)field(foot[0], 15, 8),
        .bus_id = (uint8_t)field(foot[0], 7, 8),
        .operation = (uint16_t)field(foot[1], 52, 12),
        .offset = (uint32_t)field(foot[1], 35, 17),
        .attempt = (uint8_t)field(foot[1], 32, 3),
    };
}

/* -- Packets ------------------------------------------------------------------------------------*/

/* The form of packets of a type. A report of errors, which is ours, has no class. */
struct shape {
    uint8_t payload_min, payload_max; /* Flits. */
    uint8_t classes;                  /* A bit for each enum lant_class. */
    bool answer;                      /* Has no place; only answers have a response. */
    bool data;                        /* Belongs to an RDMA operation: may be for a keyhole. */
    bool lockable;                    /* A load, a store, or the answer to one. */
};

#define SHM          (1u << LANT_CLASS_SHM)
#define RDMA         (1u << LANT_CLASS_RDMA)
#define NOTIFICATION (1u << LANT_CLASS_NOTIFICATION)

static const struct shape shapes[LANT_TYPE_COUNT] = {
    [LANT_AR] = {0, 0, .classes = SHM, .lockable = true},
    [LANT_AW] = {1, 1, .classes = SHM, .lockable = true},
    [LANT_R] = {0, 1, .classes = SHM, .answer = true, .lockable = true},
    [LANT_B] = {0, 0, .classes = SHM, .answer = true, .lockable = true},
    [LANT_RDMA_WRITE] = {1, LANT_PAYLOAD_FLITS_MAX, .classes = RDMA, .data = true},
    [LANT_RDMA_WRITE_REGISTER] = {1, LANT_PAYLOAD_FLITS_MAX, .classes = RDMA, .data = true},
    [LANT_RDMA_UNREGISTERED] = {1, LANT_PAYLOAD_FLITS_MAX, .classes = RDMA, .data = true},
    [LANT_RDMA_ACK] = {0, 0, .classes = RDMA | NOTIFICATION, .answer = true},
    [LANT_COMPLETION_NOTIFICATION] = {1, 1, .classes = NOTIFICATION},
    [LANT_ERROR_REPORT] = {2, 2, .classes = SHM | RDMA | NOTIFICATION},
    [LANT_ATOMIC] = {1, 2, .classes = SHM},
};

#define PACKETS_MAX 1024u /* In an operation that is registered. */

static bool lengths_fit(const struct lant_packet *packet, const struct shape *shape)
{
    const struct lant_header *header = &packet->header;
    if (header->payload < shape->payload_min || header->payload > shape->payload_max) {
        return false;
    }
    /* A load's answer always brings its beat, unless the load is to be tried again. */
    if (header->type == LANT_R &&
        (header->payload == 0) != lant_response_is_nack(packet->footer.response)) {
        return false;
    }
    if (header->type == LANT_ATOMIC) {
        return header->packets >= LANT_FETCH_ADD && header->packets <= LANT_COMPARE_SWAP &&
               header->payload == (header->packets == LANT_COMPARE_SWAP ? 2 : 1);
    }
    return header->type == LANT_RDMA_WRITE_REGISTER
               ? header->packets >= 1 && header->packets <= PACKETS_MAX
               : header->packets == 0;
}

static bool is_well_formed(const struct lant_packet *packet)
{
    const struct lant_header *header = &packet->header;
    const struct lant_footer *footer = &packet->footer;
    const struct shape *shape = &shapes[header->type];

    return lengths_fit(packet, shape) && (shape->classes >> footer->class & 1) &&
           (shape->answer ? header->address == 0 && header->strobe == 0
                          : footer->response == LANT_OKAY) &&
           (!header->lock || shape->lockable) && (!header->keyhole || shape->data) &&
           (!header->extended || header->keyhole);
}

uint32_t lant_encode(const struct lant_packet *packet, uint64_t flits[LANT_PACKET_FLITS_MAX])
{
    const uint32_t payload = packet->header.payload, count = lant_packet_flits(&packet->header);
    const uint32_t head_flits = count - FOOT_FLITS - payload;
    uint64_t *foot = flits + count - FOOT_FLITS;

    CHECK(payload <= LANT_PAYLOAD_FLITS_MAX);
    head_encode(&packet->header, flits);
    memcpy(flits + head_flits, packet->payload, payload * sizeof(flits[0]));
    foot_encode(&packet->footer, foot);
    foot[1] |= crc_of(flits, head_flits, packet->payload, payload, foot);
    return count;
}

/* Is the flit sound, maybe after repair? */
static bool mend(uint64_t *flit, uint32_t *repaired)
{
    const enum lant_secded secded = lant_secded_check(flit);
    *repaired += secded == LANT_REPAIRED;
    return secded != LANT_DAMAGED;
}

enum lant_verdict lant_decode(const uint64_t *flits, uint32_t count, struct lant_packet *packet,
                              uint32_t *repaired)
{
    struct lant_header *header = &packet->header;

    *repaired = 0;
    if (count < LANT_PACKET_FLITS_MIN) {
        return LANT_SHORT;
    }
    uint64_t head[HEAD_FLITS_MAX] = {flits[0], flits[1], flits[2]};
    uint64_t foot[FOOT_FLITS] = {flits[count - 2], flits[count - 1]};
    if (!mend(&head[0], repaired)) {
        return LANT_HEAD_DAMAGED;
    }
    *header = head_first(head[0]);
    if (header->payload > LANT_PAYLOAD_FLITS_MAX || lant_packet_flits(header) != count) {
        return LANT_LENGTH_WRONG;
    }
    if (!mend(&foot[0], repaired)) {
        return LANT_FOOT_DAMAGED;
    }
    packet->footer = foot_decode(foot);

    const uint32_t head_flits = count - FOOT_FLITS - header->payload;
    if (!mend(&head[1], repaired) || (header->extended && !mend(&head[2], repaired)) ||
        crc_of(head, head_flits, flits + head_flits, header->payload, foot) != (foot[1] & CRC)) {
        return LANT_CRC_WRONG;
    }
    if (header->type == 0 || header->type >= LANT_TYPE_COUNT) {
        return LANT_TYPE_UNKNOWN;
    }
    head_rest(head, header);
    memcpy(packet->payload, flits + head_flits, header->payload * sizeof(flits[0]));
    return (head[0] & H1_RSV) == 0 && (head[1] & H2_RSV) == 0 && is_well_formed(packet)
               ? LANT_WHOLE
               : LANT_MALFORMED;
}

/* -- Flit by flit -------------------------------------------------------------------------------*/

uint64_t lant_flit_encode(const struct lant_header *header, const struct lant_footer *footer,
                          enum lant_part part, uint32_t crc)
{
    uint64_t head[HEAD_FLITS_MAX], foot[FOOT_FLITS];
    CHECK(part != LANT_BODY);
    if (part < LANT_BODY) {
        CHECK(part != LANT_HEAD3 || header->extended);
        head_encode(header, head);
        return head[part];
    }
    foot_encode(footer, foot);
    return part == LANT_FOOT1 ? foot[0] : foot[1] | lant_crc_flit(crc, LANT_FOOT2, foot[1]);
}

enum lant_secded lant_address_decode(uint64_t flit, struct lant_header *header)
{
    const enum lant_secded secded = lant_secded_check(&flit);
    if (secded != LANT_DAMAGED) {
        head_second(flit, header);
    }
    return secded;
}

/* -- For switches -------------------------------------------------------------------------------*/

enum lant_secded lant_head_decode(uint64_t flit, struct lant_header *header)
{
    const enum lant_secded secded = lant_secded_check(&flit);
    if (secded != LANT_DAMAGED) {
        *header = head_first(flit);
    }
    return secded;
}

uint64_t lant_head_aged(uint64_t flit)
{
    CHECK((flit & AGE) != AGE);
    return lant_secded(flit + AGE_1);
}
