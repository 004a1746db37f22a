/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    An operation's packets cover it exactly, with the right type, length and strobe; the
 *         decision to register; no identifier comes again too early.
 * Method  Lengths by hand and by chance; operations opened and closed by chance in few identifiers,
 *         held against a list of when each was last in use.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "transport/lant/operations.h"

#define DESTINATION UINT64_C(0x0520140011110000)

static struct lant_operations table;

static struct lant_work_operation work_of(uint32_t bytes)
{
    return (struct lant_work_operation){.source = 0x7000,
                                        .destination = DESTINATION,
                                        .bytes = bytes,
                                        .tag = 0xabc12345,
                                        .parent = LANT_NO_PARENT,
                                        .may_register = true};
}

static struct lant_operation operation_of(uint32_t bytes, bool registered)
{
    const struct lant_work_operation work = work_of(bytes);
    lant_operations_init(&table, 16, 0);
    struct lant_operation *operation = lant_operation_open(&table, 3, &work, 0);
    operation->registered = registered;
    return *operation;
}

/* LNI-43, LNI-46, LNI-50, LNI-54: packet k of every operation. */
static void check_packets(uint32_t bytes, bool registered)
{
    const struct lant_operation operation = operation_of(bytes, registered);
    assert_int_equal(operation.packets, bytes / 512 + (bytes % 512 != 0));
    for (uint32_t k = 0; k < operation.packets; k++) {
        struct lant_packet packet;
        const uint32_t expected = k + 1 < operation.packets ? 512 : bytes - 512 * k;
        lant_operation_packet(&operation, k, &packet);
        assert_int_equal(lant_operation_packet_bytes(&operation, k), expected);
        assert_int_equal(lant_operation_packet_source(&operation, k), 0x7000 + 512 * k);
        assert_int_equal(packet.header.destination, 0x14805);
        assert_int_equal(packet.header.address, 0x11110000 + 512 * k);
        assert_int_equal(packet.header.payload, (expected + 7) / 8);
        const uint32_t odd = expected % 8;
        assert_int_equal(packet.header.strobe, odd == 0 ? 0xff : 0xff >> (8 - odd));
        assert_int_equal(packet.header.type, !registered ? LANT_RDMA_UNREGISTERED
                                             : k == 0    ? LANT_RDMA_WRITE_REGISTER
                                                         : LANT_RDMA_WRITE);
        assert_int_equal(packet.header.packets, registered && k == 0 ? operation.packets : 0);
        assert_int_equal(packet.header.size, 3);
        assert_false(packet.header.extended);
        assert_int_equal(packet.footer.class, LANT_CLASS_RDMA);
        assert_int_equal(packet.footer.offset, k);
        assert_int_equal(lant_operation_of(&packet.footer), operation.identifier);
    }
}

static void test_packets(void **state)
{
    (void)state;
    const uint32_t bytes[] = {1, 8, 511, 512, 513, 1023, 1024, 65535};
    struct prng prng;
    for (uint32_t i = 0; i < COUNT_OF(bytes); i++) {
        check_packets(bytes[i], false);
        check_packets(bytes[i], true);
    }
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < 300; i++) {
        check_packets(1 + (uint32_t)prng_below(&prng, 200000), i % 2 != 0);
    }
    /* LNI-10: the last offset of all. */
    const struct lant_operation operation = operation_of(LANT_TRANSFER_MAX, false);
    assert_int_equal(operation.packets, 131072);
    assert_int_equal(lant_operation_packet_bytes(&operation, 131071), 511);
}

/* All data of a keyhole go to one address, in packets that are numbered. */
static void test_keyhole(void **state)
{
    (void)state;
    struct lant_operation operation = operation_of(1500, false);
    operation.work.keyhole = true;
    for (uint32_t k = 0; k < 3; k++) {
        struct lant_packet packet;
        lant_operation_packet(&operation, k, &packet);
        assert_true(packet.header.keyhole && packet.header.extended);
        assert_int_equal(packet.header.address, 0x11110000);
        assert_int_equal(packet.header.sequence, k);
        assert_int_equal(packet.header.total, 3);
        assert_int_equal(lant_operation_packet_source(&operation, k), 0x7000 + 512 * k);
    }
}

static void test_completion(void **state)
{
    (void)state;
    const struct lant_operation operation = operation_of(65535, false);
    struct lant_packet packet;
    lant_operation_completion(&operation, &packet);
    assert_int_equal(packet.header.type, LANT_COMPLETION_NOTIFICATION);
    assert_int_equal(packet.header.destination, 0x14805);
    assert_int_equal(packet.header.address, 0x11110000);
    assert_int_equal(packet.header.payload, 1);
    assert_int_equal(packet.footer.class, LANT_CLASS_NOTIFICATION);
    assert_int_equal(packet.footer.offset, 0);
    assert_int_equal(packet.payload[0] >> 32, 65535);
    assert_int_equal(packet.payload[0] >> 20 & 0xfff, operation.identifier & 0xfff);
    assert_int_equal(packet.payload[0] & 0xfffff, 0x12345);
}

/* LNI-65, the sender's half. */
static void test_register(void **state)
{
    (void)state;
    for (uint32_t bits = 64; bits <= 1024; bits *= 2) {
        const struct lant_register_rule wide = {.mask_bits = (uint16_t)bits,
                                                .bytes_at_most = UINT32_MAX};
        struct lant_work_operation work = work_of(bits * 512);
        assert_true(lant_operation_may_register(&work, &wide));
        work.bytes++;
        assert_false(lant_operation_may_register(&work, &wide));
    }
    struct lant_register_rule rule = {.mask_bits = 128, .bytes_at_most = 32768};
    struct lant_work_operation work = work_of(32768);
    assert_true(lant_operation_may_register(&work, &rule));
    work.bytes = 32769;
    assert_false(lant_operation_may_register(&work, &rule));
    work = work_of(1);
    work.may_register = false;
    assert_false(lant_operation_may_register(&work, &rule));
    work = work_of(1);
    work.keyhole = true;
    assert_false(lant_operation_may_register(&work, &rule));
    work = work_of(1);
    rule.off = true;
    assert_false(lant_operation_may_register(&work, &rule));
}

/* OPN is the slot in bits 3 to 0 and the generation in bits 11 to 4. */
static void test_identifiers(void **state)
{
    (void)state;
    const struct lant_work_operation work = work_of(1);
    lant_operations_init(&table, 16, 0);
    for (uint32_t generation = 0; generation < 70000; generation++) {
        struct lant_packet packet;
        const struct lant_operation *operation = lant_operation_open(&table, 5, &work, 0);
        lant_operation_packet(operation, 0, &packet);
        assert_int_equal(packet.footer.operation & 15, 5);
        assert_int_equal(packet.footer.operation >> 4, generation & 0xff);
        assert_int_equal(packet.footer.generation, generation >> 8 & 0xff);
        assert_ptr_equal(lant_operation_find(&table, operation->identifier), operation);
        assert_null(lant_operation_find(&table, operation->identifier ^ 0x10));
        lant_operation_close(&table, 5, 0);
        assert_null(lant_operation_find(&table, operation->identifier));
    }
    lant_operations_init(&table, 64, 0);
    for (uint32_t slot = 0; slot < 64; slot++) {
        const struct lant_operation *operation = lant_operation_open(&table, slot, &work, 0);
        assert_int_equal(lant_operation_slot(&table, operation->identifier), slot);
        assert_ptr_equal(lant_operation_find(&table, operation->identifier), operation);
    }
    lant_operations_check(&table);
}

static uint64_t ended_at[1u << LANT_IDENTIFIER_BITS];
static bool was_used[1u << LANT_IDENTIFIER_BITS];

/* LNI-93, the sender's half: wrapped around again and again, no identifier comes within MPL of its
 * end, however long its operation took; and none waits when all have rested. */
static void test_rest(void **state)
{
    (void)state;
    const uint64_t lifetime = 1000;
    const struct lant_work_operation work = work_of(1);
    struct prng prng;
    uint64_t now = 0, until;
    uint32_t waits = 0, opened = 0;
    prng_init(&prng, 3);
    lant_operations_init(&table, 4, 8);
    for (uint32_t i = 0; i < 200000; i++) {
        const uint32_t slot = (uint32_t)prng_below(&prng, 4);
        now += prng_below(&prng, 30);
        if ((table.free >> slot & 1) == 0) {
            const uint32_t identifier = table.table[slot].identifier;
            lant_operation_close(&table, slot, now);
            ended_at[identifier] = now;
            was_used[identifier] = true;
            continue;
        }
        const uint16_t found = lant_operations_find(&table, now, lifetime, &until);
        if (found == LANT_NO_SLOT) {
            assert_true(until > now && until <= now + lifetime);
            uint64_t later;
            assert_int_not_equal(lant_operations_find(&table, until, lifetime, &later),
                                 LANT_NO_SLOT);
            waits++;
            continue;
        }
        const struct lant_operation *operation = lant_operation_open(&table, found, &work, now);
        const uint32_t identifier = operation->identifier;
        assert_true(!was_used[identifier] || now - ended_at[identifier] >= lifetime);
        lant_operations_check(&table);
        opened++;
    }
    assert_true(waits > 1000 && opened > 10000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets),     cmocka_unit_test(test_keyhole),
        cmocka_unit_test(test_completion),  cmocka_unit_test(test_register),
        cmocka_unit_test(test_identifiers), cmocka_unit_test(test_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
