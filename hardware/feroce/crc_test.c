/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The formulas and the stepped unit give the CRC that a shift register gives, bit by bit,
 *         and the ICRC of wire/icrc.h; each fault is found. FER-A33, FER-A34, FER-47.
 * Method  The model is the textbook's: the polynomial as it is written, octets from their lowest
 *         bit, one bit at a time; it has no word, no matrix and no reflected register.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "hardware/feroce/crc.h"
#include "wire/feroce.h"
#include "wire/icrc.h"
#include "wire/roce.h"

enum {
    VECTORS = 10000,
    FRAMES = 1000,
    FRAME_BYTES_MAX = 4176,
};

/* -- The model ----------------------------------------------------------------------------------*/

static uint32_t mirror(uint32_t value)
{
    uint32_t mirrored = 0;
    for (uint32_t i = 0; i < 32; i++) {
        mirrored |= (value >> i & 1) << (31 - i);
    }
    return mirrored;
}

/* Takes and gives the reflected register. */
static uint32_t serial(uint32_t seed, const uint8_t *bytes, size_t count)
{
    uint32_t crc = mirror(seed);
    for (size_t at = 0; at < count; at++) {
        for (uint32_t bit = 0; bit < 8; bit++) {
            const uint32_t in = bytes[at] >> bit & 1;
            crc = crc << 1 ^ ((crc >> 31 ^ in) != 0 ? 0x04c11db7u : 0);
        }
    }
    return mirror(crc);
}

static void fill(struct prng *prng, uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)prng_next(prng);
    }
}

/* -- Matrices and formulas ----------------------------------------------------------------------*/

/* Both spellings of the state after eight octets of ones. */
static void test_start(void **state)
{
    (void)state;
    uint8_t ones[8];
    memset(ones, 0xff, sizeof(ones));
    assert_int_equal(serial(0xffffffff, ones, sizeof(ones)), FEROCE_CRC_START);
    assert_int_equal(mirror(FEROCE_CRC_START), 0xc704dd7b);
    static const uint8_t check[] = "123456789";
    assert_int_equal(~serial(0xffffffff, check, 9), 0xcbf43926);
}

/* M is 32 shifts; powers by products of powers agree with shifts, too; so does I. */
static void test_matrices(void **state)
{
    (void)state;
    static const uint8_t zeros[4 * (FEROCE_CRC_SLICES_MAX + 1)];
    static struct feroce_crc_formula formula;
    feroce_crc_formula_init(&formula, FEROCE_CRC_RIGHT);
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t power = 0; power < COUNT_OF(formula.power); power++) {
        for (uint32_t i = 0; i < 64; i++) {
            const uint32_t vector = i < 32 ? UINT32_C(1) << i : (uint32_t)prng_next(&prng);
            assert_int_equal(feroce_matrix_apply(&formula.power[power], vector),
                             serial(vector, zeros, 4 * power));
        }
        for (uint32_t other = 0; other + power < COUNT_OF(formula.power); other++) {
            const struct feroce_matrix product =
                feroce_matrix_product(&formula.power[power], &formula.power[other]);
            assert_memory_equal(&product, &formula.power[power + other], sizeof(product));
        }
    }
}

/* The document's opening formula, M (M (I0 + S) + I1), and its two others, as they stand there. */
static void test_printed_formulas(void **state)
{
    (void)state;
    static struct feroce_crc_formula formula;
    feroce_crc_formula_init(&formula, FEROCE_CRC_RIGHT);
    const struct feroce_matrix *power = formula.power;
    struct prng prng;
    prng_init(&prng, 2);
    for (uint32_t round = 0; round < 1000; round++) {
        uint8_t bytes[64];
        fill(&prng, bytes, sizeof(bytes));
        const uint32_t seed = (uint32_t)prng_next(&prng);
        const uint32_t first = load_le32(bytes), second = load_le32(bytes + 4);
        const uint32_t two = serial(seed, bytes, 8);
        assert_int_equal(
            feroce_matrix_apply(&power[1], feroce_matrix_apply(&power[1], first ^ seed) ^ second),
            two);
        assert_int_equal(feroce_matrix_apply(&power[2], first) ^
                             feroce_matrix_apply(&power[1], second) ^
                             feroce_matrix_apply(&power[2], seed),
                         two);
        uint32_t sum = feroce_matrix_apply(&power[16], seed);
        for (uint32_t i = 0; i < 16; i++) {
            sum ^= feroce_matrix_apply(&power[i + 1], load_le32(bytes + 4 * (15 - i)));
        }
        assert_int_equal(sum, serial(seed, bytes, 64));
    }
}

/* How many of VECTORS random words a formula gets right; `tried` counts the widths of keep. */
static uint32_t right_words(enum feroce_crc_fault fault, uint32_t width_bytes, uint32_t *tried)
{
    static struct feroce_crc_formula formula;
    feroce_crc_formula_init(&formula, fault);
    struct prng prng;
    prng_init(&prng, width_bytes);
    uint32_t right = 0, kept = 0;
    for (uint32_t i = 0; i < VECTORS; i++) {
        uint8_t bytes[64];
        const uint32_t slices = 1 + (uint32_t)prng_below(&prng, width_bytes / 4);
        const uint32_t seed = (uint32_t)prng_next(&prng);
        fill(&prng, bytes, 4 * slices);
        const struct feroce_crc_word word = feroce_crc_word_of(bytes, 4 * slices, true);
        right += feroce_crc_after(&formula, seed, &word) == serial(seed, bytes, 4 * slices);
        kept |= UINT32_C(1) << (slices - 1);
    }
    *tried = (uint32_t)__builtin_popcount(kept);
    return right;
}

/* FER-A33: 10,000 vectors at each width, keep 4 to 8 and 4 to 64; a power off by one is found. */
static void test_vectors(void **state)
{
    (void)state;
    uint32_t tried;
    assert_int_equal(right_words(FEROCE_CRC_RIGHT, 8, &tried), VECTORS);
    assert_int_equal(tried, 2);
    assert_int_equal(right_words(FEROCE_CRC_RIGHT, 64, &tried), VECTORS);
    assert_int_equal(tried, 16);
    for (uint32_t width = 8; width <= 64; width *= 8) {
        assert_true(right_words(FEROCE_CRC_SLICE_POWER, width, &tried) < 2);
        assert_true(right_words(FEROCE_CRC_SEED_POWER, width, &tried) < 2);
    }
}

/* Each single bit of word and seed, at each keep: the CRC is linear, so these are all there is. */
static void test_every_bit(void **state)
{
    (void)state;
    static struct feroce_crc_formula formula;
    feroce_crc_formula_init(&formula, FEROCE_CRC_RIGHT);
    for (uint32_t slices = 1; slices <= FEROCE_CRC_SLICES_MAX; slices++) {
        for (uint32_t bit = 0; bit < 32 * (slices + 1); bit++) {
            uint8_t bytes[64 + 4] = {0};
            bytes[bit / 8] = (uint8_t)(1 << bit % 8);
            const uint32_t seed = load_le32(bytes + 4 * slices);
            const struct feroce_crc_word word = feroce_crc_word_of(bytes, 4 * slices, true);
            assert_int_equal(feroce_crc_after(&formula, seed, &word),
                             serial(seed, bytes, 4 * slices));
        }
    }
}

/* -- The unit -----------------------------------------------------------------------------------*/

struct frames {
    uint32_t words[FRAMES]; /* Each frame's. */
    uint32_t icrc[FRAMES];
    uint64_t last[FRAMES]; /* The cycle in which its last word was given. */
};

struct outcome {
    uint32_t done, right, right_of_one_word, of_one_word;
    uint64_t cycles_least, cycles_most, cycles;
};

/* A frame on its way into the unit. */
struct source {
    struct prng prng;
    uint32_t made, bytes, at, gap; /* `gap` cycles, at most, before a word. */
    uint8_t frame[FRAME_BYTES_MAX];
};

static void give_word(struct source *source, struct feroce_crc *unit, struct frames *frames,
                      uint64_t now)
{
    const uint32_t width = unit->config.width_bytes;
    if (source->at == source->bytes) {
        if (source->made == FRAMES) {
            return;
        }
        const uint32_t most = prng_below(&source->prng, 4) == 0 ? width : FRAME_BYTES_MAX;
        source->bytes = 4 + 4 * (uint32_t)prng_below(&source->prng, most / 4);
        source->at = 0;
        fill(&source->prng, source->frame, source->bytes);
        frames->icrc[source->made] = ~serial(FEROCE_CRC_START, source->frame, source->bytes);
        frames->words[source->made++] = (source->bytes + width - 1) / width;
    }
    if (source->gap > 0 && prng_below(&source->prng, source->gap) != 0) {
        return;
    }
    const uint32_t left = source->bytes - source->at, taken = left < width ? left : width;
    const struct feroce_crc_word word =
        feroce_crc_word_of(source->frame + source->at, taken, taken == left);
    feroce_crc_take(unit, &word);
    source->at += taken;
    frames->last[source->made - 1] = now;
}

static struct outcome run_frames(const struct feroce_crc_config *config, uint32_t gap)
{
    static struct feroce_crc unit;
    static struct frames frames;
    static struct source source;
    struct outcome outcome = {.cycles_least = UINT64_MAX};
    uint64_t words = 0;
    source = (struct source){.gap = gap};
    prng_init(&source.prng, config->width_bytes);
    feroce_crc_init(&unit, config);
    for (uint64_t now = 0; outcome.done < FRAMES; now++) {
        uint32_t icrc;
        if (feroce_crc_offer(&unit, &icrc)) {
            const uint32_t i = outcome.done++;
            const uint64_t cycles = now - frames.last[i];
            const bool right = icrc == frames.icrc[i], one = frames.words[i] == 1;
            outcome.right += right;
            outcome.of_one_word += one;
            outcome.right_of_one_word += right && one;
            outcome.cycles_least = cycles < outcome.cycles_least ? cycles : outcome.cycles_least;
            outcome.cycles_most = cycles > outcome.cycles_most ? cycles : outcome.cycles_most;
            words += frames.words[i];
            outcome.cycles = now;
        }
        give_word(&source, &unit, &frames, now);
        feroce_crc_step(&unit);
        assert_true(now < UINT64_C(8) * FRAMES * FRAME_BYTES_MAX);
    }
    assert_int_equal(unit.counters.frames, FRAMES);
    assert_int_equal(unit.counters.words, words);
    assert_true(gap > 0 || outcome.cycles == words - 1 + feroce_crc_cycles(config));
    return outcome;
}

/* FER-A34: 1,000 frames of random lengths without a cycle between words or frames, 3 cycles each.
 * With gaps it is the same; with more registers in the tree later, and no less right. */
static void test_back_to_back(void **state)
{
    (void)state;
    for (uint32_t width = 8; width <= 64; width *= 2) {
        for (uint32_t tree = 1; tree <= 7; tree += 3) {
            const struct feroce_crc_config config = {.width_bytes = (uint8_t)width,
                                                     .tree_cycles = (uint8_t)tree};
            for (uint32_t gap = 0; gap <= 4; gap += 4) {
                const struct outcome outcome = run_frames(&config, gap);
                assert_int_equal(outcome.right, FRAMES);
                assert_true(outcome.of_one_word > FRAMES / 10);
                assert_int_equal(outcome.cycles_least, 2 + tree);
                assert_int_equal(outcome.cycles_most, 2 + tree);
            }
        }
    }
}

/* FER-A34's fault: the seed added in the first stage is wrong from the second word on, and only
 * since words come without a gap. */
static void test_early_seed(void **state)
{
    (void)state;
    for (uint32_t width = 8; width <= 64; width *= 8) {
        const struct feroce_crc_config config = {
            .width_bytes = (uint8_t)width, .tree_cycles = 1, .fault = FEROCE_CRC_SEED_EARLY};
        const struct outcome outcome = run_frames(&config, 0);
        assert_true(outcome.of_one_word > FRAMES / 10 && outcome.of_one_word < FRAMES / 2);
        assert_int_equal(outcome.right_of_one_word, outcome.of_one_word);
        assert_int_equal(outcome.right, outcome.of_one_word);
    }
}

/* The same, word by word: with three cycles from word to word S is there in time. */
static void test_early_seed_in_time(void **state)
{
    (void)state;
    for (uint64_t apart = 1; apart <= 4; apart++) {
        static struct feroce_crc unit;
        const struct feroce_crc_config config = {
            .width_bytes = 8, .tree_cycles = 1, .fault = FEROCE_CRC_SEED_EARLY};
        uint8_t bytes[40];
        struct prng prng;
        uint32_t icrc = 0, given = 0;
        prng_init(&prng, 3);
        fill(&prng, bytes, sizeof(bytes));
        feroce_crc_init(&unit, &config);
        for (uint64_t now = 0; !feroce_crc_offer(&unit, &icrc); now++) {
            if (now % apart == 0 && given < sizeof(bytes)) {
                const struct feroce_crc_word word =
                    feroce_crc_word_of(bytes + given, 8, given == sizeof(bytes) - 8);
                feroce_crc_take(&unit, &word);
                given += 8;
            }
            feroce_crc_step(&unit);
        }
        assert_int_equal(icrc == ~serial(FEROCE_CRC_START, bytes, sizeof(bytes)), apart >= 3);
    }
}

static void test_wrong_powers(void **state)
{
    (void)state;
    for (uint32_t fault = FEROCE_CRC_SLICE_POWER; fault <= FEROCE_CRC_SEED_POWER; fault++) {
        const struct feroce_crc_config config = {
            .width_bytes = 64, .tree_cycles = 1, .fault = (enum feroce_crc_fault)fault};
        assert_true(run_frames(&config, 0).right < 2);
    }
}

/* -- Whole packets ------------------------------------------------------------------------------*/

/* A WRITE_ONLY_IMM packet of the board from its IP header to the payload's end. */
struct whole {
    struct feroce_frame frame;
    size_t bytes;
    uint8_t packet[20 + 8 + 12 + 16 + 4 + 4096];
};

static void make_whole(struct prng *prng, struct whole *whole)
{
    const uint32_t payload = 4 + 4 * (uint32_t)prng_below(prng, 1024);
    const struct roce_packet packet = {
        .opcode = 0x0b,
        .ack_request = true,
        .migration_request = true,
        .pkey = ROCE_DEFAULT_PKEY,
        .destination_qpn = (uint32_t)prng_below(prng, 1 << 24),
        .psn = (uint32_t)prng_below(prng, 1 << 24),
        .reth = {.address = prng_next(prng), .key = (uint32_t)prng_next(prng), .bytes = payload},
        .immediate = (uint32_t)prng_next(prng),
    };
    whole->frame = (struct feroce_frame){
        .source_ip = (uint32_t)prng_next(prng),
        .destination_ip = (uint32_t)prng_next(prng),
        .source_port = FEROCE_PORT_DATA_FROM,
        .destination_port = ROCE_UDP_PORT,
        .identification = (uint16_t)prng_next(prng),
        .service_class = (uint8_t)prng_below(prng, 8),
    };
    uint8_t headers[FEROCE_FRAME_HEADERS_BYTES];
    const size_t roce = roce_encode_headers(&packet, whole->packet + 28);
    feroce_frame_encode(&whole->frame, roce + payload + ROCE_ICRC_BYTES, headers);
    memcpy(whole->packet, headers + 14, 28);
    fill(prng, whole->packet + 28 + roce, payload);
    whole->bytes = 28 + roce + payload;
}

/* The unit's ICRC of the packet: its octets masked, then a word a cycle. */
static uint32_t icrc_of(struct feroce_crc *unit, const struct whole *whole)
{
    static struct whole masked;
    masked = *whole;
    feroce_crc_mask(masked.packet, masked.bytes);
    const uint32_t width = unit->config.width_bytes;
    uint32_t icrc = 0;
    for (size_t at = 0; !feroce_crc_offer(unit, &icrc); at += width) {
        if (at < masked.bytes) {
            const size_t left = masked.bytes - at;
            const struct feroce_crc_word word =
                feroce_crc_word_of(masked.packet + at, left < width ? left : width, left <= width);
            feroce_crc_take(unit, &word);
        }
        feroce_crc_step(unit);
    }
    feroce_crc_step(unit);
    return icrc;
}

static uint32_t icrc_of_wire(const struct whole *whole)
{
    const struct feroce_frame *frame = &whole->frame;
    const struct inet_flow flow = inet_flow_ipv4(frame->source_ip, frame->source_port,
                                                 frame->destination_ip, frame->destination_port);
    return icrc_compute(&flow, frame->identification, whole->packet + 28, 32, whole->packet + 60,
                        whole->bytes - 60);
}

/* The unit, both widths, and wire/icrc.h agree on 500 packets. */
static void test_packets(void **state)
{
    (void)state;
    static struct feroce_crc units[2];
    static struct whole whole;
    struct prng prng;
    prng_init(&prng, 4);
    for (uint32_t i = 0; i < 2; i++) {
        const struct feroce_crc_config config = {.width_bytes = i == 0 ? 8 : 64, .tree_cycles = 1};
        feroce_crc_init(&units[i], &config);
    }
    for (uint32_t round = 0; round < 500; round++) {
        make_whole(&prng, &whole);
        const uint32_t expected = icrc_of_wire(&whole);
        assert_int_equal(icrc_of(&units[0], &whole), expected);
        assert_int_equal(icrc_of(&units[1], &whole), expected);
    }
}

/* FER-47: each bit of each octet of the headers (IP, UDP, BTH, RETH, immediate) and of the first
 * octets of payload is flipped alone. Seven octets do not matter, all others do. */
static void test_masks(void **state)
{
    (void)state;
    static const size_t ignored[] = {1, 8, 10, 11, 26, 27, 32};
    static struct feroce_crc unit;
    static struct whole whole;
    const struct feroce_crc_config config = {.width_bytes = 64, .tree_cycles = 1};
    struct prng prng;
    prng_init(&prng, 5);
    feroce_crc_init(&unit, &config);
    for (uint32_t round = 0; round < 20; round++) {
        make_whole(&prng, &whole);
        const uint32_t right = icrc_of_wire(&whole);
        size_t next = 0;
        for (size_t at = 0; at < 64; at++) {
            const bool matters = next == COUNT_OF(ignored) || at != ignored[next];
            next += matters ? 0 : 1;
            for (uint32_t bit = 0; bit < 8; bit++) {
                whole.packet[at] ^= (uint8_t)(1 << bit);
                assert_int_equal(icrc_of(&unit, &whole) != right, matters);
                whole.packet[at] ^= (uint8_t)(1 << bit);
            }
        }
        assert_int_equal(next, COUNT_OF(ignored));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_printed_formulas),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_every_bit),
        cmocka_unit_test(test_back_to_back),
        cmocka_unit_test(test_early_seed),
        cmocka_unit_test(test_early_seed_in_time),
        cmocka_unit_test(test_wrong_powers),
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_masks),
    };
    return cmocka_run_group_tests_name("feroce_crc", tests, NULL, NULL);
}
