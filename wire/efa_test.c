/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Entries of mapped queues are read and written as an EFA device's are; what it does not
 *         have is refused with its status.
 * Method  Entries are written by hand from the device's structures as C has them, and each bit is
 *         changed once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/bits.h"
#include "wire/efa.h"
#include "wire/efa_test_entries.h"

_Static_assert(sizeof(struct tx_entry) == EFA_SEND_ENTRY_BYTES, "send");
_Static_assert(sizeof(struct rx_entry) == EFA_RECEIVE_ENTRY_BYTES, "receive");
_Static_assert(sizeof(struct completion_entry) == EFA_COMPLETION_ENTRY_BYTES, "completion");

static struct tx_entry entry_of(enum efa_operation operation, uint16_t length)
{
    return (struct tx_entry){
        .req_id = 0x1234,
        .ctrl1 = (uint8_t)(0x80 | operation),
        .ctrl2 = 0x1c,
        .dest_qp_num = 0x5678,
        .length = length,
        .immediate_data = 0x9abcdef0,
        .ah = 7,
        .qkey = 0x11223344,
        .sgl = {{100, 0xaaaa, 0xcccccccc, 0xbbbb}, {100, 0xdddd, 0xffffffff, 0xeeee}},
    };
}

static enum srd_status decoded(const struct tx_entry *entry, struct efa_send *send)
{
    return efa_decode_send((const uint8_t *)entry, send);
}

static void assert_buffer(const struct efa_buffer *buffer, const struct tx_buffer *of)
{
    assert_int_equal(buffer->bytes, of->length);
    assert_int_equal(buffer->key, of->lkey);
    assert_true(buffer->address == ((uint64_t)of->high << 32 | of->low));
}

static void test_sends(void **state)
{
    (void)state;
    struct efa_send send;
    struct tx_entry entry = entry_of(EFA_SEND, 2);
    assert_int_equal(decoded(&entry, &send), SRD_STATUS_OK);
    assert_int_equal(send.id, 0x1234);
    assert_int_equal(send.operation, EFA_SEND);
    assert_int_equal(send.destination_qpn, 0x5678);
    assert_int_equal(send.handle, 7);
    assert_int_equal(send.qkey, 0x11223344);
    assert_false(send.has_immediate || send.is_inline || send.phase);
    assert_int_equal(send.local_count, 2);
    assert_buffer(&send.local[0], &entry.sgl[0]);
    assert_buffer(&send.local[1], &entry.sgl[1]);
    entry.ctrl1 |= 0x10;
    entry.ctrl2 |= 1;
    entry.ctrl3 = 3; /* Hints. */
    assert_int_equal(decoded(&entry, &send), SRD_STATUS_OK);
    assert_true(send.has_immediate && send.phase);
    assert_int_equal(send.immediate, 0x9abcdef0);
    entry.length = 3;
    assert_int_equal(decoded(&entry, &send), SRD_STATUS_LOCAL_BAD_LENGTH);
}

static void test_inline(void **state)
{
    (void)state;
    struct efa_send send;
    struct tx_entry entry = entry_of(EFA_SEND, 32);
    entry.ctrl1 |= 0x20;
    assert_int_equal(decoded(&entry, &send), SRD_STATUS_OK);
    assert_int_equal(send.inline_bytes, 32);
    assert_int_equal(send.local_count, 0);
    assert_ptr_equal(send.inline_data, entry.inline_data);
    entry.length = 33;
    assert_int_equal(decoded(&entry, &send), SRD_STATUS_LOCAL_BAD_LENGTH);
}

static void test_remote(void **state)
{
    (void)state;
    static const enum efa_operation operations[] = {EFA_READ, EFA_WRITE};
    struct efa_send send;
    for (size_t i = 0; i < COUNT_OF(operations); i++) {
        struct tx_entry entry = entry_of(operations[i], 1);
        assert_int_equal(decoded(&entry, &send), SRD_STATUS_OK);
        assert_buffer(&send.remote, &entry.sgl[0]);
        assert_buffer(&send.local[0], &entry.sgl[1]);
        assert_int_equal(send.local_count, 1);
        entry.sgl[0].length++;
        assert_int_equal(decoded(&entry, &send), SRD_STATUS_LOCAL_BAD_LENGTH);
        entry = entry_of(operations[i], 2);
        assert_int_equal(decoded(&entry, &send), SRD_STATUS_LOCAL_UNSUPPORTED);
        entry = entry_of(operations[i], 0); /* Nothing moves: an immediate value alone. */
        entry.sgl[0].length = 0;
        assert_int_equal(decoded(&entry, &send), SRD_STATUS_OK);
        entry = entry_of(operations[i], 1);
        entry.ctrl1 |= 0x10;
        assert_int_equal(decoded(&entry, &send),
                         operations[i] == EFA_READ ? SRD_STATUS_LOCAL_UNSUPPORTED : SRD_STATUS_OK);
        entry.ctrl1 |= 0x20;
        assert_int_equal(decoded(&entry, &send), SRD_STATUS_LOCAL_UNSUPPORTED);
    }
}

/* Bits of the first 32 bytes of a SEND that may be changed; each other one makes it unknown. */
static bool may_change(uint32_t bit)
{
    const uint32_t byte = bit / 8;
    return byte < 2 || (byte >= 4 && byte < 14) || (byte >= 16 && byte < 20) || /* Fields. */
           bit == 2 * 8 + 4 || bit == 2 * 8 + 5 ||             /* Immediate, inline. */
           bit == 3 * 8 || bit == 14 * 8 || bit == 14 * 8 + 1; /* Phase, hints. */
}

static void test_unknown_bits(void **state)
{
    (void)state;
    for (uint32_t bit = 0; bit < 8 * 32; bit++) {
        struct efa_send send;
        struct tx_entry entry = entry_of(EFA_SEND, 1);
        ((uint8_t *)&entry)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        const enum srd_status status = decoded(&entry, &send);
        if (bit / 8 == 2 && bit % 8 < 4) { /* Another operation: READ and WRITE are known. */
            assert_int_equal(status == SRD_STATUS_LOCAL_UNSUPPORTED, bit % 8 > 1);
        } else if (bit / 8 == 6 || bit / 8 == 7) {
            assert_int_not_equal(status, SRD_STATUS_LOCAL_UNSUPPORTED);
        } else {
            assert_int_equal(status,
                             may_change(bit) ? SRD_STATUS_OK : SRD_STATUS_LOCAL_UNSUPPORTED);
        }
        assert_int_equal(send.id, entry.req_id);
    }
}

static void test_receives(void **state)
{
    (void)state;
    struct rx_entry entry = {0x89abcdef, 0x1234567, 0xfedc, 0xffff, 0xc0123456};
    struct efa_receive receive;
    efa_decode_receive((const uint8_t *)&entry, &receive);
    assert_true(receive.buffer.address == 0x123456789abcdef);
    assert_int_equal(receive.buffer.bytes, 0xffff);
    assert_int_equal(receive.buffer.key, 0x123456);
    assert_int_equal(receive.id, 0xfedc);
    assert_true(receive.first && receive.last);
    entry.lkey_ctrl = 0x40000001;
    efa_decode_receive((const uint8_t *)&entry, &receive);
    assert_true(receive.first && !receive.last);
    entry.lkey_ctrl = 0x80000001;
    efa_decode_receive((const uint8_t *)&entry, &receive);
    assert_true(!receive.first && receive.last);
}

static struct completion_entry encoded(const struct efa_completion *completion)
{
    struct completion_entry entry;
    memset(&entry, 0xff, sizeof(entry));
    efa_encode_completion(completion, (uint8_t *)&entry);
    return entry;
}

static void test_completions(void **state)
{
    (void)state;
    struct efa_completion completion = {
        .id = 0x1234, .status = 13, .operation = EFA_WRITE, .phase = true, .qpn = 0x5678};
    struct completion_entry entry = encoded(&completion);
    assert_int_equal(entry.req_id, 0x1234);
    assert_int_equal(entry.status, 13);
    assert_int_equal(entry.flags, 1 | 1 << 1 | 2 << 4);
    assert_int_equal(entry.qp_num, 0x5678);
    assert_int_equal(entry.length | entry.ah | entry.src_qp_num, 0);
    completion = (struct efa_completion){.receive = true,
                                         .operation = EFA_WRITE,
                                         .has_immediate = true,
                                         .unsolicited = true,
                                         .bytes = 0x12345678,
                                         .handle = 0xffff,
                                         .source_qpn = 0x9abc,
                                         .immediate = 0xdef01234,
                                         .source = {1, 2}};
    entry = encoded(&completion);
    assert_int_equal(entry.flags, 2 << 1 | 1 << 3 | 2 << 4 | 1 << 7);
    assert_int_equal(entry.length, 0x5678);
    assert_int_equal(entry.length_hi, 0x1234);
    assert_int_equal(entry.src_qp_num, 0x9abc);
    assert_int_equal(entry.imm, 0xdef01234);
    completion.operation = EFA_SEND;
    entry = encoded(&completion);
    assert_int_equal(entry.ah, 0xffff);
    assert_memory_equal(entry.src_addr, completion.source, 16);
    completion.handle = 3;
    entry = encoded(&completion);
    assert_int_equal(entry.ah, 3);
    assert_int_equal(entry.src_addr[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sends),    cmocka_unit_test(test_inline),
        cmocka_unit_test(test_remote),   cmocka_unit_test(test_unknown_bits),
        cmocka_unit_test(test_receives), cmocka_unit_test(test_completions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
