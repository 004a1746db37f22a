/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Texts of connections are read as they are written, and nothing else is taken for one.
 * Method  Texts by hand; every text of random halves is read back; random and damaged texts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/prng.h"
#include "tools/hdl_half.h"

static struct hdl_half random_half(struct prng *prng)
{
    return (struct hdl_half){.ip = (uint32_t)prng_next(prng) | 1,
                             .qpn = (uint32_t)prng_next(prng) & 0xffffff,
                             .psn = (uint32_t)prng_next(prng) & 0xffffff,
                             .address = prng_next(prng),
                             .rkey = (uint32_t)prng_next(prng)};
}

static void assert_half_equal(const struct hdl_half *left, const struct hdl_half *right)
{
    assert_int_equal(left->ip, right->ip);
    assert_int_equal(left->qpn, right->qpn);
    assert_int_equal(left->psn, right->psn);
    assert_true(left->address == right->address);
    assert_int_equal(left->rkey, right->rkey);
}

static void words_of_a_person(void **state)
{
    char wrong[PAIR_WORDS_BYTES], words[PAIR_WORDS_BYTES];
    struct hdl_half half;
    (void)state;
    assert_true(pair_read_words("qpn=17, ip=127.0.0.20,psn=0x2 \nanything", &half, wrong));
    const struct hdl_half expected = {.ip = 0x7f000014, .qpn = 17, .psn = 2};
    assert_half_equal(&half, &expected);
    assert_string_equal(pair_words(&half, words),
                        "ip=127.0.0.20 qpn=0x11 psn=0x2 address=0x0 rkey=0x0");
    assert_true(pair_read_words("ip=1.2.3.4 qpn=0xffffff psn=16777215 "
                                "address=0xffffffffffffffff rkey=0xffffffff",
                                &half, wrong));
    assert_true(half.address == UINT64_MAX && half.rkey == UINT32_MAX && half.qpn == 0xffffff);
}

/* The wrong word is told, and the half stays as it was. */
static void words_that_are_wrong(void **state)
{
    static const struct {
        const char *text, *wrong;
    } cases[] = {
        {"", "ip and qpn are needed"},
        {"ip=127.0.0.1", "ip and qpn are needed"},
        {"qpn=1\nip=127.0.0.1", "ip and qpn are needed"},
        {"ip=127.0.0.1 qpn=0x1000000", "'qpn=0x1000000' is no ip, qpn, psn, address or rkey"},
        {"ip=127.0.0.1 qpn=", "'qpn=' is no ip, qpn, psn, address or rkey"},
        {"ip=127.0.0.1 qpn=-1", "'qpn=-1' is no ip, qpn, psn, address or rkey"},
        {"ip=127.0.0.1 qpn=1x", "'qpn=1x' is no ip, qpn, psn, address or rkey"},
        {"ip=127.0.0.1 qp=1", "'qp=1' is no ip, qpn, psn, address or rkey"},
        {"ip=127.0.0.1 qpn", "'qpn' is no ip, qpn, psn, address or rkey"},
        {"ip=127.0.0 qpn=1", "'ip=127.0.0' is no ip, qpn, psn, address or rkey"},
        {"ip=127.0.0.256 qpn=1", "'ip=127.0.0.256' is no ip, qpn, psn, address or rkey"},
        {"ip=127.0.0.1.2 qpn=1", "'ip=127.0.0.1.2' is no ip, qpn, psn, address or rkey"},
        {"ip=0.0.0.0 qpn=1", "'ip=0.0.0.0' is no ip, qpn, psn, address or rkey"},
        {"rkey=0x100000000", "'rkey=0x100000000' is no ip, qpn, psn, address or rkey"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct hdl_half before = {.ip = 1, .qpn = 2};
        char wrong[PAIR_WORDS_BYTES];
        struct hdl_half half = before;
        assert_false(pair_read_words(cases[i].text, &half, wrong));
        assert_string_equal(wrong, cases[i].wrong);
        assert_half_equal(&half, &before);
    }
}

static void message_of_pingpong(void **state)
{
    char message[PAIR_PINGPONG_BYTES];
    struct hdl_half half;
    (void)state;
    assert_true(pair_read_pingpong("0000:0001a3:5c0bDE:00000000000000000000ffff7f000001", &half));
    const struct hdl_half expected = {.ip = 0x7f000001, .qpn = 0x1a3, .psn = 0x5c0bde};
    assert_half_equal(&half, &expected);
    pair_pingpong(&half, message);
    assert_string_equal(message, "0000:0001a3:5c0bde:00000000000000000000ffff7f000001");
    assert_false(pair_read_pingpong("0000:0001a3:5c0bde:fe80000000000000021122fffe334455", &half));
}

static void texts_are_read_back(void **state)
{
    struct prng prng;
    (void)state;
    prng_init(&prng, 1);
    for (int i = 0; i < 10000; i++) {
        const struct hdl_half half = random_half(&prng);
        char words[PAIR_WORDS_BYTES], message[PAIR_PINGPONG_BYTES], wrong[PAIR_WORDS_BYTES];
        struct hdl_half read;
        assert_true(pair_read_words(pair_words(&half, words), &read, wrong));
        assert_half_equal(&read, &half);
        pair_pingpong(&half, message);
        assert_true(pair_read_pingpong(message, &read));
        assert_int_equal(read.ip, half.ip);
        assert_int_equal(read.qpn, half.qpn);
        assert_int_equal(read.psn, half.psn);
    }
}

/* A damaged message is refused, or it is the message of what was read. */
static void damaged_messages(void **state)
{
    struct prng prng;
    uint32_t refused = 0;
    (void)state;
    prng_init(&prng, 2);
    for (int i = 0; i < 100000; i++) {
        const struct hdl_half half = random_half(&prng);
        char message[PAIR_PINGPONG_BYTES], again[PAIR_PINGPONG_BYTES];
        struct hdl_half read;
        pair_pingpong(&half, message);
        message[prng_below(&prng, PAIR_PINGPONG_BYTES)] = (char)prng_next(&prng);
        if (!pair_read_pingpong(message, &read)) {
            refused++;
            continue;
        }
        pair_pingpong(&read, again);
        for (int k = 4; k < PAIR_PINGPONG_BYTES; k++) {
            assert_int_equal(message[k] | 0x20, again[k] | 0x20);
        }
    }
    assert_in_range(refused, 80000, 100000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_a_person),   cmocka_unit_test(words_that_are_wrong),
        cmocka_unit_test(message_of_pingpong), cmocka_unit_test(texts_are_read_back),
        cmocka_unit_test(damaged_messages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
