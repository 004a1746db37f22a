/* SPDX-License-Identifier: BSD-2-Clause
 *
 * test_rdma_target - a receiver of RDMA with its memory, for tests.
 *
 * A packet that is judged good is written at once, or when the test says so (`slow`).
 */
#ifndef TRANSPORT_LANT_TEST_RDMA_TARGET_H
#define TRANSPORT_LANT_TEST_RDMA_TARGET_H

#include "transport/lant/rdma_target.h"
#include "transport/lant/test_rdma.h"

#define TEST_MEMORY (1u << 20) /* Bytes; the first half may be written. */
#define TEST_FIRST  0x40000000u
#define TEST_SLOW   32u

struct test_target {
    struct lant_rdma_target target;
    struct lant_ranges ranges;
    uint64_t now;
    bool slow;
    uint32_t slow_count;
    struct lant_rdma_write slow_writes[TEST_SLOW];
    struct lant_packet slow_packets[TEST_SLOW];
    uint32_t answers;          /* So far, of any kind; */
    struct lant_packet answer; /* the last one. */
    struct lant_rdma_action action;
    uint64_t tombstones[1024 * 5];
    uint8_t memory[TEST_MEMORY];
};

static inline struct lant_rdma_target_config test_config(void)
{
    return (struct lant_rdma_target_config){.node = TEST_NODE,
                                            .entries = LANT_REGISTRATIONS,
                                            .mask_bits = LANT_MASK_BITS,
                                            .escapes = LANT_ESCAPES,
                                            .tombstones = LANT_TOMBSTONES,
                                            .escape_ticks = 5000,
                                            .age_ticks = 50000,
                                            .lifetime_ticks = 60000};
}

static inline void test_target_init(struct test_target *test,
                                    const struct lant_rdma_target_config *config)
{
    CHECK(lant_tombstones_bytes(config->tombstones) <= sizeof test->tombstones);
    test->ranges = (struct lant_ranges){
        .count = 2,
        .ranges = {{TEST_FIRST, TEST_MEMORY / 2, true, true},
                   {TEST_FIRST + TEST_MEMORY / 2, TEST_MEMORY / 2, true, false}}};
    test->now = 1000;
    test->slow = false;
    test->slow_count = test->answers = 0;
    memset(test->memory, 0, sizeof test->memory);
    memset(&test->target, 0xa5, sizeof test->target); /* Nothing needs to be 0 at the start. */
    lant_rdma_target_init(&test->target, config, &test->ranges, test->tombstones);
}

static inline void test_land(struct test_target *test, const struct lant_rdma_write *write,
                             const struct lant_packet *packet)
{
    CHECK(write->address >= TEST_FIRST &&
          write->address + write->bytes <= TEST_FIRST + TEST_MEMORY / 2);
    test_store(&test->memory[write->address - TEST_FIRST], packet->payload, write->bytes);
    lant_rdma_target_on_written(&test->target, test->now, write, LANT_OKAY, &test->answer);
    test->answers++;
}

/* The oldest slow write is done. */
static inline void test_land_one(struct test_target *test)
{
    CHECK(test->slow_count > 0);
    test_land(test, &test->slow_writes[0], &test->slow_packets[0]);
    test->slow_count--;
    for (uint32_t i = 0; i < test->slow_count; i++) {
        test->slow_writes[i] = test->slow_writes[i + 1];
        test->slow_packets[i] = test->slow_packets[i + 1];
    }
}

static inline void test_do_action(struct test_target *test, const struct lant_packet *packet)
{
    test->answers += test->action.answers;
    if (test->action.verdict != LANT_RDMA_TARGET_WRITE) {
        return;
    }
    if (test->slow) {
        CHECK(test->slow_count < TEST_SLOW);
        test->slow_packets[test->slow_count] = *packet;
        test->slow_writes[test->slow_count++] = test->action.write;
    } else {
        test_land(test, &test->action.write, packet);
    }
}

/* The packet, and those that it releases. */
static inline enum lant_rdma_target_verdict test_give(struct test_target *test,
                                                      const struct lant_packet *packet)
{
    struct lant_packet released;
    lant_rdma_target_on_packet(&test->target, test->now, packet, &test->action, &test->answer);
    const enum lant_rdma_target_verdict verdict = test->action.verdict;
    test_do_action(test, packet);
    while (lant_rdma_target_next_released(&test->target, test->now, &released, &test->action,
                                          &test->answer)) {
        test_do_action(test, &released);
    }
    return verdict;
}

static inline enum lant_rdma_target_verdict test_give_data(struct test_target *test,
                                                           const struct test_operation *operation,
                                                           uint32_t k)
{
    struct lant_packet packet;
    test_data(operation, k, &packet);
    return test_give(test, &packet);
}

/* Are just the bytes of the operation as they should be? Those beside them are 0. */
static inline bool test_is_written(const struct test_target *test,
                                   const struct test_operation *operation)
{
    const uint32_t from = (uint32_t)(operation->base - TEST_FIRST);
    for (uint32_t i = 0; i < operation->bytes; i++) {
        if (test->memory[from + i] != test_byte(operation, i)) {
            return false;
        }
    }
    return (from == 0 || test->memory[from - 1] == 0) && test->memory[from + operation->bytes] == 0;
}

#endif
