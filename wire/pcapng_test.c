/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The blocks form a pcapng file that says what was captured, when, and where it begins.
 * Method  A reader, written from the file format, takes random files apart block by block and
 *         compares everything in them with what was written. Buffers are exactly as large as the
 *         header promises, so that a sanitizer sees one byte written too far.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/prng.h"
#include "wire/pcapng.h"

/* -- The reader -------------------------------------------------------------------------------- */

struct block {
    uint32_t type;
    const uint8_t *body;
    size_t body_bytes;
};

/* Takes the next block off [*at, end). */
static struct block read_block(const uint8_t **at, const uint8_t *end)
{
    assert_true(end - *at >= 12);
    const size_t total = load_le32(*at + 4);
    assert_int_equal(total % 4, 0);
    assert_in_range(total, 12, (size_t)(end - *at));
    assert_int_equal(load_le32(*at + total - 4), total);
    const struct block block = {load_le32(*at), *at + 8, total - 12};
    *at += total;
    return block;
}

struct option {
    uint16_t code;
    const uint8_t *value;
    size_t bytes;
};

/* Takes the next option off [*at, end), which must hold one; code 0 must be the last. */
static struct option read_option(const uint8_t **at, const uint8_t *end)
{
    assert_true(end - *at >= 4);
    const struct option option = {load_le16(*at), *at + 4, load_le16(*at + 2)};
    const size_t padded = (option.bytes + 3) / 4 * 4;
    assert_true((size_t)(end - *at) >= 4 + padded);
    for (size_t i = option.bytes; i < padded; i++) {
        assert_int_equal(option.value[i], 0);
    }
    *at += 4 + padded;
    if (option.code == 0) {
        assert_int_equal(option.bytes, 0);
        assert_ptr_equal(*at, end);
    }
    return option;
}

static void expect_text(struct option option, uint16_t code, const char *text)
{
    assert_int_equal(option.code, code);
    assert_int_equal(option.bytes, strlen(text));
    assert_memory_equal(option.value, text, strlen(text));
}

/* -- Tests ------------------------------------------------------------------------------------- */

static void check_header(const char *application, const char *interface)
{
    uint8_t *file = malloc(PCAPNG_HEADER_BYTES_MAX);
    assert_non_null(file);
    const struct pcapng_interface made = {interface, PCAPNG_LINK_IP, 9, NULL};
    const size_t count = pcapng_encode_header(file, application, &made);
    assert_in_range(count, 1, PCAPNG_HEADER_BYTES_MAX);
    const uint8_t *at = file, *end = file + count;

    const struct block section = read_block(&at, end);
    const uint8_t *option = section.body + 16, *option_end = section.body + section.body_bytes;
    assert_int_equal(section.type, 0x0a0d0d0a);
    assert_int_equal(load_le32(section.body), 0x1a2b3c4d);
    assert_int_equal(load_le16(section.body + 4), 1);
    assert_int_equal(load_le16(section.body + 6), 0);
    assert_memory_equal(section.body + 8, "\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    expect_text(read_option(&option, option_end), 4, application);
    assert_int_equal(read_option(&option, option_end).code, 0);

    const struct block description = read_block(&at, end);
    option = description.body + 8;
    option_end = description.body + description.body_bytes;
    assert_int_equal(description.type, 1);
    assert_int_equal(load_le16(description.body), 101);
    assert_int_equal(load_le16(description.body + 2), 0);
    assert_int_equal(load_le32(description.body + 4), PCAPNG_SNAP_BYTES);
    expect_text(read_option(&option, option_end), 2, interface);
    expect_text(read_option(&option, option_end), 9, "\x09");
    assert_int_equal(read_option(&option, option_end).code, 0);

    assert_ptr_equal(at, end);
    free(file);
}

static void test_header(void **state)
{
    (void)state;
    static const char text[PCAPNG_TEXT_BYTES_MAX + 1] =
        "0123456789012345678901234567890123456789012345678901234567890123";

    check_header("nonic 0.1.0", "nonic0");
    for (size_t one = 0; one <= PCAPNG_TEXT_BYTES_MAX; one++) {
        check_header(text + one, text);
        check_header(text, text + one);
    }
}

struct sample {
    struct inet_flow flow;
    struct inet_variant variant;
    uint16_t identification;
    uint64_t unix_ns;
    const uint8_t *payload;
    size_t payload_bytes;
};

static void check_packet(const struct sample *sample)
{
    uint8_t *file = malloc(PCAPNG_PACKET_BYTES_MAX);
    assert_non_null(file);
    const size_t count =
        pcapng_encode_packet(file, sample->unix_ns, &sample->flow, sample->variant,
                             sample->identification, sample->payload, sample->payload_bytes);
    assert_in_range(count, 1, PCAPNG_PACKET_BYTES_MAX);
    const uint8_t *at = file;
    const struct block block = read_block(&at, file + count);
    assert_ptr_equal(at, file + count);

    uint8_t headers[INET_HEADERS_BYTES_MAX];
    const size_t headers_bytes = inet_encode(headers, &sample->flow, sample->identification,
                                             sample->payload, sample->payload_bytes);
    inet_put_variant(headers, sample->variant);
    const size_t kept = sample->payload_bytes < BLOCK_PACKET_BYTES_MAX ? sample->payload_bytes
                                                                       : BLOCK_PACKET_BYTES_MAX;
    const uint64_t high = load_le32(block.body + 4);
    assert_int_equal(block.type, 6);
    assert_int_equal(load_le32(block.body), 0);
    assert_true((high << 32 | load_le32(block.body + 8)) == sample->unix_ns);
    assert_int_equal(load_le32(block.body + 12), headers_bytes + kept);
    assert_int_equal(load_le32(block.body + 16), headers_bytes + sample->payload_bytes);
    assert_memory_equal(block.body + 20, headers, headers_bytes);
    assert_memory_equal(block.body + 20 + headers_bytes, sample->payload, kept);

    const size_t used = 20 + headers_bytes + kept;
    assert_int_equal(block.body_bytes, (used + 3) / 4 * 4);
    for (size_t i = used; i < block.body_bytes; i++) {
        assert_int_equal(block.body[i], 0);
    }
    free(file);
}

/* Packets of any format: around the longest, cut beyond it, with comments of all lengths. */
static void test_bytes(void **state)
{
    (void)state;
    static uint8_t packet[PCAPNG_SNAP_BYTES + 8], file[PCAPNG_BYTES_MAX];
    for (size_t bytes = PCAPNG_SNAP_BYTES - 9; bytes <= sizeof(packet); bytes++) {
        for (size_t length = 0; length <= PCAPNG_COMMENT_BYTES_MAX; length += 53) {
            char comment[PCAPNG_COMMENT_BYTES_MAX + 1] = "";
            memset(comment, 'c', length);
            const size_t count =
                pcapng_encode_bytes(file, 5, packet, bytes, length > 0 ? comment : NULL);
            const uint8_t *at = file;
            const struct block block = read_block(&at, file + count);
            const size_t kept = bytes < PCAPNG_SNAP_BYTES ? bytes : PCAPNG_SNAP_BYTES;
            assert_in_range(count, 1, PCAPNG_BYTES_MAX);
            assert_int_equal(load_le32(block.body + 12), kept);
            assert_int_equal(load_le32(block.body + 16), bytes);
            const uint8_t *option = block.body + 20 + (kept + 3) / 4 * 4;
            const uint8_t *end = block.body + block.body_bytes;
            if (length > 0) {
                expect_text(read_option(&option, end), 1, comment);
                assert_int_equal(read_option(&option, end).code, 0);
            }
            assert_ptr_equal(option, end);
        }
    }
}

/* All lengths up to beyond the snap length; the payload is a buffer of exactly that size. */
static void test_packets(void **state)
{
    (void)state;
    static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
    struct prng prng;
    prng_init(&prng, 1);

    for (size_t count = 1; count <= BLOCK_PACKET_BYTES_MAX + 100; count++) {
        struct sample sample = {.identification = (uint16_t)prng_next(&prng),
                                .unix_ns = prng_next(&prng),
                                .variant = {.flow_label = (uint32_t)prng_below(&prng, 1 << 20),
                                            .traffic_class = (uint8_t)prng_next(&prng),
                                            .hop_limit = (uint8_t)prng_next(&prng)},
                                .payload_bytes = count};
        uint8_t *payload = malloc(count);
        assert_non_null(payload);
        for (size_t i = 0; i < count; i++) {
            payload[i] = (uint8_t)prng_next(&prng);
        }
        for (size_t i = 0; i < 16; i++) {
            sample.flow.source[i] = (uint8_t)prng_next(&prng);
            sample.flow.destination[i] = (uint8_t)prng_next(&prng);
        }
        sample.payload = payload;
        check_packet(&sample);
        memcpy(sample.flow.source, mapped, sizeof(mapped));
        memcpy(sample.flow.destination, mapped, sizeof(mapped));
        check_packet(&sample);
        free(payload);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_packets),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
