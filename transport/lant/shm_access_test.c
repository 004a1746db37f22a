/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An access is cut into beats that touch exactly its bytes, and is complete when all of
 *         these are.
 * Method  Cases by hand; then accesses by chance, done byte by byte in an array as a model, and
 *         beat by beat in another one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/shm_access.h"

static enum lant_shm_access_verdict judge(uint64_t address, uint32_t bytes, bool lock)
{
    const struct lant_shm_access access = {.address = address, .bytes = bytes, .lock = lock};
    return lant_shm_access_judge(&access);
}

static void test_verdicts(void **state)
{
    (void)state;
    assert_int_equal(judge(8, 0, false), LANT_SHM_ACCESS_BYTES_WRONG);
    assert_int_equal(judge(8, 3, false), LANT_SHM_ACCESS_BYTES_WRONG);
    assert_int_equal(judge(8, 12, false), LANT_SHM_ACCESS_BYTES_WRONG);
    assert_int_equal(judge(8, 4096, false), LANT_SHM_ACCESS_GOOD);
    assert_int_equal(judge(8, 4104, false), LANT_SHM_ACCESS_BYTES_WRONG);
    assert_int_equal(judge(7, 1, false), LANT_SHM_ACCESS_GOOD);
    assert_int_equal(judge(7, 2, false), LANT_SHM_ACCESS_UNALIGNED);
    assert_int_equal(judge(6, 4, false), LANT_SHM_ACCESS_UNALIGNED);
    assert_int_equal(judge(4, 8, false), LANT_SHM_ACCESS_UNALIGNED);
    assert_int_equal(judge(8, 8, true), LANT_SHM_ACCESS_GOOD);
    assert_int_equal(judge(8, 16, true), LANT_SHM_ACCESS_LOCK_LONG);
    assert_int_equal(judge(LANT_ADDRESSES - 8, 8, false), LANT_SHM_ACCESS_GOOD);
    assert_int_equal(judge(LANT_ADDRESSES - 8, 16, false), LANT_SHM_ACCESS_UNALIGNED);
}

/* LNI-28: the byte enables of small stores. */
static void test_strobes(void **state)
{
    (void)state;
    const uint8_t bytes[4] = {0x11, 0x22, 0x33, 0x44};
    struct lant_shm_access access = {.address = 0x105, .bytes = 1, .store = true};
    struct lant_shm_request request = lant_shm_access_beat(&access, 0, bytes);
    assert_int_equal(request.strobe, 0x20);
    assert_int_equal(request.data, UINT64_C(0x110000000000));
    assert_int_equal(request.size, 0);
    access.address = 0x106;
    access.bytes = 2;
    request = lant_shm_access_beat(&access, 0, bytes);
    assert_int_equal(request.strobe, 0xc0);
    assert_int_equal(request.data, UINT64_C(0x2211000000000000));
    access.address = 0x100;
    access.bytes = 4;
    request = lant_shm_access_beat(&access, 0, bytes);
    assert_int_equal(request.strobe, 0x0f);
    assert_int_equal(request.data, 0x44332211);
    assert_int_equal(request.size, 2);
}

/* LNI-20: 16 bytes are two beats, and both must be done. */
static void test_two_beats(void **state)
{
    (void)state;
    const struct lant_shm_access access = {
        .address = lant_global(3, 0x40), .bytes = 16, .token = 9, .store = true};
    struct lant_shm_gather gather = lant_shm_gather_begin(&access);
    struct lant_shm_done done = {.token = 9, .beat = 1, .kind = LANT_SHM_EARLY};
    assert_int_equal(lant_shm_access_beats(&access), 2);
    lant_shm_gather_add(&gather, &access, &done, NULL);
    assert_int_equal(gather.unanswered, 1);
    assert_int_equal(gather.unfinished, 2);
    done = (struct lant_shm_done){
        .token = 9, .beat = 0, .kind = LANT_SHM_GENUINE, .response = LANT_DECERR};
    lant_shm_gather_add(&gather, &access, &done, NULL);
    assert_int_equal(gather.unanswered, 0);
    assert_int_equal(gather.unfinished, 1);
    done = (struct lant_shm_done){.token = 9, .beat = 1, .kind = LANT_SHM_DENIED};
    lant_shm_gather_add(&gather, &access, &done, NULL);
    assert_int_equal(gather.unfinished, 0);
    assert_int_equal(gather.response, LANT_DECERR);
    assert_true(gather.denied);
}

static void store_beats(const struct lant_shm_access *access, const uint8_t *bytes, uint8_t *memory)
{
    for (uint32_t beat = 0; beat < lant_shm_access_beats(access); beat++) {
        const struct lant_shm_request request = lant_shm_access_beat(access, beat, bytes);
        const uint64_t base = request.address & ~UINT64_C(7);
        for (uint32_t i = 0; i < 8; i++) {
            if (request.strobe >> i & 1) {
                memory[base + i] = (uint8_t)(request.data >> 8 * i);
            }
        }
    }
}

/* The beats are answered in any order. */
static void load_beats(struct prng *prng, const struct lant_shm_access *access,
                       const uint8_t *memory, uint8_t *bytes)
{
    struct lant_shm_gather gather = lant_shm_gather_begin(access);
    const uint32_t beats = lant_shm_access_beats(access);
    const uint32_t first = (uint32_t)prng_below(prng, beats);
    for (uint32_t i = 0; i < beats; i++) {
        const struct lant_shm_request request =
            lant_shm_access_beat(access, (first + i) % beats, NULL);
        struct lant_shm_done done = {
            .address = request.address, .beat = request.beat, .kind = LANT_SHM_GENUINE};
        for (uint32_t j = 0; j < 8; j++) {
            if (request.strobe >> j & 1) {
                done.data |= (uint64_t)memory[(request.address & ~UINT64_C(7)) + j] << 8 * j;
            }
        }
        lant_shm_gather_add(&gather, access, &done, bytes);
    }
    assert_int_equal(gather.unanswered + gather.unfinished, 0);
}

static void test_random(void **state)
{
    (void)state;
    static uint8_t memory[16384], model[16384], bytes[LANT_SHM_ACCESS_MAX];
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t round = 0; round < 5000; round++) {
        const uint32_t size = 1u << prng_below(&prng, 4);
        struct lant_shm_access access = {.bytes = size, .store = prng_chance(&prng, 500000)};
        access.bytes = size == 8 ? 8 * (1 + (uint32_t)prng_below(&prng, 40)) : size;
        access.address = prng_below(&prng, (sizeof(memory) - access.bytes) / size) * size;
        assert_int_equal(lant_shm_access_judge(&access), LANT_SHM_ACCESS_GOOD);
        if (access.store) {
            for (uint32_t i = 0; i < access.bytes; i++) {
                bytes[i] = (uint8_t)prng_next(&prng);
            }
            memcpy(model + access.address, bytes, access.bytes);
            store_beats(&access, bytes, memory);
            assert_memory_equal(memory, model, sizeof(memory));
        } else {
            load_beats(&prng, &access, memory, bytes);
            assert_memory_equal(bytes, model + access.address, access.bytes);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_strobes),
        cmocka_unit_test(test_two_beats),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
