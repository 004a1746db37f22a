/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A message becomes the packets IBTA 9.2.1 names, and `incoming` takes exactly those.
 * Method  Every piece of random messages: offsets add up, opcodes stand where they belong. A
 *         segmented message is accepted; the same stream with one packet changed is not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/ibta/incoming.h"
#include "transport/ibta/segmentation.h"

static const uint8_t kinds[] = {WORK_WRITE, WORK_WRITE_IMMEDIATE, WORK_SEND, WORK_SEND_IMMEDIATE,
                                WORK_SEND_INVALIDATE};
static const uint32_t mtus[] = {256, 512, 1024, 2048, 4096};

static struct work random_work(struct prng *prng, uint32_t *mtu)
{
    *mtu = mtus[prng_below(prng, 5)];
    /* Near multiples of the MTU, where mistakes live. */
    const uint32_t around = (uint32_t)prng_below(prng, 6) * *mtu;
    const uint32_t off = (uint32_t)prng_below(prng, 5);
    return (struct work){
        .kind = kinds[prng_below(prng, sizeof(kinds))],
        .bytes = around + off < 2 ? 0 : around + off - 2,
        .remote_address = 0x1000,
        .remote_key = 7,
    };
}

static uint32_t traits_of(enum roce_operation operation)
{
    return roce_opcode(ROCE_OPCODE(ROCE_SERVICE_RC, operation))->traits;
}

static void test_pieces_add_up(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (int round = 0; round < 20000; round++) {
        uint32_t mtu, sum = 0;
        const struct work work = random_work(&prng, &mtu);
        const uint32_t packets = packets_of(work.bytes, mtu);
        const bool write = work.kind == WORK_WRITE || work.kind == WORK_WRITE_IMMEDIATE;
        for (uint32_t i = 0; i < packets; i++) {
            const struct piece piece = work_piece(&work, i, mtu);
            const uint32_t traits = traits_of(piece.operation);
            assert_int_equal(piece.offset, sum);
            assert_int_equal(!!(traits & ROCE_IS_FIRST), i == 0);
            assert_int_equal(!!(traits & ROCE_IS_LAST), i == packets - 1);
            assert_int_equal(piece.last, i == packets - 1);
            assert_int_equal(!!(traits & ROCE_IS_WRITE), write);
            assert_int_equal(!!(traits & ROCE_IS_SEND), !write);
            assert_int_equal(!!(traits & ROCE_HAS_RETH), write && i == 0);
            assert_int_equal(!!(traits & ROCE_HAS_IMMDT),
                             piece.last && (work.kind == WORK_WRITE_IMMEDIATE ||
                                            work.kind == WORK_SEND_IMMEDIATE));
            assert_int_equal(!!(traits & ROCE_HAS_IETH),
                             piece.last && work.kind == WORK_SEND_INVALIDATE);
            assert_true(piece.last ? piece.bytes <= mtu : piece.bytes == mtu);
            sum += piece.bytes;
        }
        assert_int_equal(sum, work.bytes);
    }
}

/* Each request of one packet, and the operation that answers it (table 38, A19). */
static void test_what_asks_and_answers(void **state)
{
    (void)state;
    static const struct {
        uint8_t kind;
        enum roce_operation request, answer;
    } cases[] = {
        {WORK_COMPARE_SWAP, ROCE_COMPARE_SWAP, ROCE_ATOMIC_ACKNOWLEDGE},
        {WORK_FETCH_ADD, ROCE_FETCH_ADD, ROCE_ATOMIC_ACKNOWLEDGE},
        {WORK_ATOMIC_WRITE, ROCE_ATOMIC_WRITE, ROCE_READ_RESPONSE_ONLY},
        {WORK_FLUSH, ROCE_FLUSH, ROCE_READ_RESPONSE_ONLY},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct work work = {.kind = cases[i].kind};
        assert_true(work_wants_response(&work) && work_is_single(&work));
        assert_int_equal(work_request(&work), cases[i].request);
        assert_int_equal(single_answer(cases[i].request), cases[i].answer);
        assert_true(traits_of(cases[i].request) & ROCE_IS_REQUEST);
        assert_int_equal(traits_of(cases[i].request) & ROCE_ONLY, ROCE_ONLY);
    }
    const struct work read = {.kind = WORK_READ};
    assert_true(work_wants_response(&read) && !work_is_single(&read));
    assert_int_equal(work_request(&read), ROCE_READ_REQUEST);
}

static void test_packets_of(void **state)
{
    (void)state;
    assert_int_equal(packets_of(0, 4096), 1);
    assert_int_equal(packets_of(1, 4096), 1);
    assert_int_equal(packets_of(4096, 4096), 1);
    assert_int_equal(packets_of(4097, 4096), 2);
    assert_int_equal(packets_of(0x80000000u, 256), 1u << 23); /* 2 GiB at the smallest MTU. */
}

static struct roce_packet packet_of(const struct work *work, const struct piece *piece)
{
    return (struct roce_packet){
        .opcode = ROCE_OPCODE(ROCE_SERVICE_RC, piece->operation),
        .payload_bytes = piece->bytes,
        .reth = {.address = work->remote_address, .key = work->remote_key, .bytes = work->bytes},
    };
}

/* Takes the whole message in; the packet at `wrong` (if there is one) has been spoilt by `spoil`.
 */
static enum incoming_verdict take(const struct work *work, uint32_t mtu, uint32_t wrong,
                                  void (*spoil)(struct roce_packet *))
{
    struct incoming incoming = {.mtu_bytes = (uint16_t)mtu};
    const uint32_t packets = packets_of(work->bytes, mtu);
    for (uint32_t i = 0; i < packets; i++) {
        const struct piece piece = work_piece(work, i, mtu);
        struct roce_packet packet = packet_of(work, &piece);
        if (i == wrong) {
            spoil(&packet);
        }
        const uint32_t traits = roce_opcode(packet.opcode)->traits;
        const enum incoming_verdict verdict = incoming_judge(&incoming, &packet, traits);
        if (verdict != INCOMING_FITS) {
            return verdict;
        }
        if (traits & ROCE_IS_WRITE) {
            uint64_t address;
            uint32_t key;
            incoming_target(&incoming, &packet, traits, &address, &key);
            assert_true(address == work->remote_address + piece.offset);
            assert_int_equal(key, work->remote_key);
        }
        incoming_accept(&incoming, &packet, traits);
    }
    return incoming.kind == INCOMING_NONE ? INCOMING_FITS : INCOMING_WRONG_ORDER;
}

static void test_incoming_takes_what_was_segmented(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 2);
    for (int round = 0; round < 20000; round++) {
        uint32_t mtu;
        const struct work work = random_work(&prng, &mtu);
        assert_int_equal(take(&work, mtu, UINT32_MAX, NULL), INCOMING_FITS);
    }
}

static void one_byte_more(struct roce_packet *packet)
{
    packet->payload_bytes++;
}

static void other_kind(struct roce_packet *packet)
{
    packet->opcode =
        ROCE_OPCODE(ROCE_SERVICE_RC, traits_of(packet->opcode) & ROCE_IS_SEND ? ROCE_WRITE_MIDDLE
                                                                              : ROCE_SEND_MIDDLE);
}

static void a_read(struct roce_packet *packet)
{
    packet->opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_READ_REQUEST);
}

static void test_incoming_refuses_what_was_spoilt(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 3);
    for (int round = 0; round < 20000; round++) {
        uint32_t mtu;
        const struct work work = random_work(&prng, &mtu);
        const uint32_t packets = packets_of(work.bytes, mtu);
        const bool write = work.kind == WORK_WRITE || work.kind == WORK_WRITE_IMMEDIATE;
        const uint32_t wrong = (uint32_t)prng_below(&prng, packets);
        assert_int_equal(take(&work, mtu, wrong, other_kind), INCOMING_WRONG_ORDER);
        /* A SEND tells its length by ending: only a packet that is full already can be too long. */
        const struct piece piece = work_piece(&work, wrong, mtu);
        if (write || piece.bytes == mtu) {
            assert_int_equal(take(&work, mtu, wrong, one_byte_more), INCOMING_WRONG_LENGTH);
        }
        if (wrong > 0) {
            assert_int_equal(take(&work, mtu, wrong, a_read), INCOMING_WRONG_ORDER);
        }
    }
}

/* 2 GiB is the longest message (IBTA 9.4.1): the SEND that would pass it is refused in its tracks.
 */
static void test_longest_message(void **state)
{
    (void)state;
    struct incoming incoming = {
        .mtu_bytes = 4096, .kind = INCOMING_SEND, .received = MESSAGE_BYTES_MAX - 4096};
    struct roce_packet packet = {.opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_LAST),
                                 .payload_bytes = 4096};
    const uint32_t traits = traits_of(ROCE_SEND_LAST);
    assert_int_equal(incoming_judge(&incoming, &packet, traits), INCOMING_FITS);
    incoming.received++;
    assert_int_equal(incoming_judge(&incoming, &packet, traits), INCOMING_WRONG_LENGTH);

    incoming = (struct incoming){.mtu_bytes = 4096};
    packet.opcode = ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_WRITE_FIRST);
    packet.reth.bytes = MESSAGE_BYTES_MAX;
    assert_int_equal(incoming_judge(&incoming, &packet, traits_of(ROCE_WRITE_FIRST)),
                     INCOMING_FITS);
    packet.reth.bytes++;
    assert_int_equal(incoming_judge(&incoming, &packet, traits_of(ROCE_WRITE_FIRST)),
                     INCOMING_WRONG_LENGTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_add_up),
        cmocka_unit_test(test_what_asks_and_answers),
        cmocka_unit_test(test_packets_of),
        cmocka_unit_test(test_incoming_takes_what_was_segmented),
        cmocka_unit_test(test_incoming_refuses_what_was_spoilt),
        cmocka_unit_test(test_longest_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
