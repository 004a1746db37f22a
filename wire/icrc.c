/* SPDX-License-Identifier: BSD-2-Clause
 *
 * icrc - see icrc.h.
 *
 * crc32_gzip_refl takes and returns the CRC as zlib's crc32 does: complemented on the way in and on
 * the way out. So a CRC starts at 0, can be continued from any intermediate result, and each
 * result is already the final value.
 */
#include "wire/icrc.h"

#include <isa-l/crc.h>
#include <string.h>

#include "base/bytes.h"
#include "wire/roce.h"

enum {
    PREFIX_BYTES = 8, /* Ones, where the LRH of an InfiniBand packet would stand. */
    BTH_MASKED_AT = 4,
    TOGETHER_BYTES =
        64, /* This much of a packet is copied with its BTH, so that one call computes both. */
};

uint32_t icrc_prefix(const struct inet_flow *flow, uint16_t identification,
                     size_t udp_payload_bytes)
{
    uint8_t masked[PREFIX_BYTES + INET_HEADERS_BYTES_MAX];

    memset(masked, 0xff, PREFIX_BYTES);
    const size_t count =
        inet_encode_invariant(masked + PREFIX_BYTES, flow, identification, udp_payload_bytes);
    return crc32_gzip_refl(0, masked, PREFIX_BYTES + count);
}

uint32_t icrc_packet(uint32_t prefix, const uint8_t *packet, size_t count)
{
    uint8_t masked[TOGETHER_BYTES];

    CHECK(count >= ROCE_BTH_BYTES);
    const size_t together = count < TOGETHER_BYTES ? count : TOGETHER_BYTES;
    memcpy(masked, packet, together);
    masked[BTH_MASKED_AT] = 0xff;
    const uint32_t crc = crc32_gzip_refl(prefix, masked, together);
    return together == count ? crc : crc32_gzip_refl(crc, packet + together, count - together);
}

uint32_t icrc_remembered_prefix(struct icrc_memo *memo, const struct inet_flow *flow,
                                uint16_t identification, size_t udp_payload_bytes)
{
    const uint32_t key = (uint32_t)udp_payload_bytes << 16 | identification;
    const size_t at = (udp_payload_bytes + identification) % ICRC_MEMO_ENTRIES;
    if (UNLIKELY(memo->entries[at].key != key)) {
        memo->entries[at].key = key;
        memo->entries[at].prefix = icrc_prefix(flow, identification, udp_payload_bytes);
    }
    return memo->entries[at].prefix;
}

uint32_t icrc_extend(uint32_t crc, const void *bytes, size_t count)
{
    return crc32_gzip_refl(crc, bytes, count);
}

uint32_t icrc_finish(uint32_t crc)
{
    return crc;
}

uint32_t icrc_compute(const struct inet_flow *flow, uint16_t identification, const uint8_t *headers,
                      size_t header_bytes, const uint8_t *payload, size_t payload_bytes)
{
    const size_t bytes = header_bytes + payload_bytes + ROCE_ICRC_BYTES;
    const uint32_t crc =
        icrc_packet(icrc_prefix(flow, identification, bytes), headers, header_bytes);
    return icrc_finish(icrc_extend(crc, payload, payload_bytes));
}

/* -- The identification behind a difference -----------------------------------------------------
 * A 32-bit register of the CRC is a polynomial over GF(2) modulo the CRC-32 polynomial; being
 * "reflected", its bit 31 is the coefficient of x^0. Running one zero byte through the CRC
 * multiplies the register by x^8. Two packets that differ only in the identification, by the bytes
 * d0 d1, have registers that differ by
 *
 *     (d0 | d1 << 8) * x^(8m),    m = bytes from the identification to the end of what is covered
 *
 * because a byte enters at the low end of the register. Multiplying the difference of the CRCs by
 * x^(-8m) gives the two bytes back, and anything in the upper half says that more differs. */

#define CRC_32_POLYNOMIAL 0xedb88320u /* x^32 left out, reflected. */

/* Entry k is x^(-8 * 2^k), which takes back 2^k zero bytes. The polynomial ends in + 1, so dividing
 * by x is a shift the other way: r << 1, and 0xdb710641 more if bit 31 falls out. Eight divisions
 * of x^0, that is 0x80000000, give entry 0; every other entry is the square of the one before. */
static const uint32_t inverse_of_zeros[] = {
    0x6567cb95, 0xd7125358, 0x5b358fd3, 0x2e9bb40b, 0x12a59a49, 0x8df9403d, 0x5139de12, 0xba340226,
    0x29c45641, 0x12fbc105, 0xecd30c55, 0x3755ebd8, 0x24ee460c, 0x23783fcf, 0x479933fc, 0xa39442a5,
};

/* The product of two polynomials: schoolbook, from the lowest power of `a` up. Without branches,
 * because nothing could predict them. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t product = 0;

    for (; a != 0; a <<= 1) {
        product ^= b & -(a >> 31);
        b = b >> 1 ^ (CRC_32_POLYNOMIAL & -(b & 1)); /* b * x */
    }
    return product;
}

bool icrc_solve_identification(uint32_t difference, size_t udp_payload_bytes, uint16_t assumed,
                               uint16_t *identification)
{
    /* From the identification, four bytes into the IP header, up to the ICRC. */
    const size_t covered_bytes =
        INET_IPV4_BYTES - 4 + INET_UDP_BYTES + udp_payload_bytes - ROCE_ICRC_BYTES;

    CHECK(udp_payload_bytes >= ROCE_BTH_BYTES + ROCE_ICRC_BYTES);
    CHECK(covered_bytes >> COUNT_OF(inverse_of_zeros) == 0);
    for (size_t k = 0; k < COUNT_OF(inverse_of_zeros); k++) {
        if ((covered_bytes >> k & 1) != 0) {
            difference = multiply(inverse_of_zeros[k], difference);
        }
    }
    if (difference > 0xffff) {
        return false;
    }
    *identification = assumed ^ __builtin_bswap16((uint16_t)difference);
    return true;
}

bool icrc_explain(const struct inet_flow *flow, const uint8_t *packet, size_t bytes,
                  uint16_t *identification)
{
    if (bytes < ROCE_BTH_BYTES + ROCE_ICRC_BYTES) {
        return false;
    }
    const size_t covered = bytes - ROCE_ICRC_BYTES;
    const uint32_t difference =
        load_le32(packet + covered) ^ icrc_compute(flow, 0, packet, covered, NULL, 0);
    return icrc_solve_identification(difference, bytes, 0, identification);
}
