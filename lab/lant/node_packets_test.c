/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A node does the right thing with each single packet, also if it was damaged, lost, late
 *         or forged on its way; and packets leave in their order.
 * Method  A spy between two nodes flips bits, loses packets, and notes their order. Bytes in memory
 *         are compared at the end.
 */
#include "lab/lant/test_node.h"

enum {
    TARGET = 4096,
};

static void fill(uint8_t *bytes, uint32_t count, uint32_t seed)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)((i + seed) * 31 + (i >> 8));
    }
}

/* -- Damage -------------------------------------------------------------------------------------*/

static struct {
    uint32_t flit, mask;
} flip;

/* Flips bits in the first packet that comes to node 1: flit 0 or 1, or 2 for F1. */
static bool flip_first(struct seen *seen, uint32_t node, struct lant_frame *frame)
{
    if (node == 1 && seen->count++ == 0) {
        frame->flits[flip.flit < 2 ? flip.flit : frame->count - 2] ^= (uint64_t)(flip.mask & 3)
                                                                      << flip.mask / 4;
    }
    return true;
}

/* LNI-08: a packet with one wrong bit in H1, H2 or F1 is mended and delivered, and nobody sends
 * anything again. */
static void test_one_wrong_bit(void **state)
{
    (void)state;
    uint8_t data[512];
    fill(data, sizeof(data), 7);
    for (uint32_t bit = 0; bit < 192; bit++) {
        for (uint32_t store = 0; store < 2; store++) {
            const struct lant_node_config config = without_early();
            const struct lant_fabric_config fabric = line();
            struct seen *seen = open_world(&config, &fabric);
            struct lant_node *node = &seen->world.nodes[0];
            flip.flit = bit / 64;
            flip.mask = bit % 64 * 4 + 1;
            seen->spy = flip_first;
            memcpy(node->memory, data, sizeof(data));
            if (store) {
                access_of(seen, lant_global(1, TARGET), 8, true, data);
            } else {
                submit(seen, 0, LANT_QUEUE_CPU, lant_global(1, TARGET), sizeof(data));
            }
            run(seen);
            assert_int_equal(seen->world.nodes[1].counters.repaired, 1);
            assert_int_equal(node->shm.counters.resent + node->rdma.counters.again, 0);
            assert_memory_equal(seen->world.nodes[1].memory + TARGET, data,
                                store ? 8 : sizeof(data));
            close_world(seen);
        }
    }
}

/* LNI-79: two wrong bits in H1 cannot be mended: the packet is dropped, nobody can be told, and the
 * sender's timer brings it again. */
static void test_two_wrong_bits(void **state)
{
    (void)state;
    for (uint32_t store = 0; store < 2; store++) {
        const struct lant_node_config config = without_early();
        const struct lant_fabric_config fabric = line();
        struct seen *seen = open_world(&config, &fabric);
        struct lant_node *node = &seen->world.nodes[0];
        flip.flit = 0;
        flip.mask = 40 * 4 + 3;
        seen->spy = flip_first;
        fill(node->memory, 512, 1);
        if (store) {
            access_of(seen, lant_global(1, TARGET), 8, true, node->memory);
        } else {
            submit(seen, 0, LANT_QUEUE_CPU, lant_global(1, TARGET), 512);
        }
        run(seen);
        assert_int_equal(seen->world.nodes[1].counters.verdicts[LANT_HEAD_DAMAGED], 1);
        assert_int_equal(node->shm.counters.resent + node->rdma.counters.again, 1);
        assert_memory_equal(seen->world.nodes[1].memory + TARGET, node->memory, store ? 8 : 512);
        close_world(seen);
    }
}

/* H1 with a length that lant_encode would refuse to write. */
static uint64_t head_with_length(uint64_t head, uint32_t flits)
{
    struct lant_header one = {.type = LANT_RDMA_WRITE, .payload = 1}, none = one;
    none.payload = 0;
    const uint64_t bit = (lant_flit_encode(&one, NULL, LANT_HEAD1, 0) ^
                          lant_flit_encode(&none, NULL, LANT_HEAD1, 0)) &
                         ~UINT64_C(0x7f);
    const uint32_t at = (uint32_t)__builtin_ctzll(bit);
    return lant_secded((head & ~(UINT64_C(0x7f) << at)) | (uint64_t)flits << at);
}

static bool note_answer(struct seen *seen, uint32_t node, struct lant_frame *frame)
{
    struct lant_packet packet;
    uint32_t repaired;
    if (node == 0 && lant_decode(frame->flits, frame->count, &packet, &repaired) == LANT_WHOLE) {
        seen->count++;
        seen->response = packet.footer.response;
    }
    return true;
}

/* LNI-03: a length above 64, another than came, an unknown type, no F1: counted, and nothing is
 * written. LNI-14: nor is a payload with one wrong bit. Only the senders of the last two kinds can
 * be told. */
static void test_impossible_packets(void **state)
{
    (void)state;
    static const struct {
        enum lant_verdict verdict;
        uint32_t length, cut;
        uint8_t type;
        enum lant_response response; /* LANT_OKAY: there is no answer. */
    } cases[] = {{LANT_LENGTH_WRONG, 65, 0, LANT_AW, LANT_OKAY},
                 {LANT_LENGTH_WRONG, 127, 0, LANT_AW, LANT_OKAY},
                 {LANT_LENGTH_WRONG, 2, 0, LANT_AW, LANT_OKAY},
                 {LANT_SHORT, 1, 3, LANT_AW, LANT_OKAY},
                 {LANT_TYPE_UNKNOWN, 1, 0, 15, LANT_DECERR},
                 {LANT_CRC_WRONG, 1, 0, LANT_AW, LANT_NACK_CRC}};
    for (uint32_t i = 0; i < COUNT_OF(cases); i++) {
        const struct lant_node_config config = without_early();
        const struct lant_fabric_config fabric = line();
        struct seen *seen = open_world(&config, &fabric);
        seen->spy = note_answer;
        const struct lant_packet packet = {.header = {.destination = 1,
                                                      .type = cases[i].type,
                                                      .payload = 1,
                                                      .address = TARGET,
                                                      .strobe = 0xff,
                                                      .size = 3},
                                           .payload = {UINT64_MAX}};
        struct lant_frame *frame = lant_fabric_frame(&seen->world.fabric);
        frame->count = lant_encode(&packet, frame->flits);
        if (cases[i].length != 1) {
            frame->flits[0] = head_with_length(frame->flits[0], cases[i].length);
        }
        frame->count -= cases[i].cut;
        frame->flits[2] ^= cases[i].verdict == LANT_CRC_WRONG;
        (void)lant_fabric_send(&seen->world.fabric, 0, frame, 0);
        run(seen);
        const struct lant_node *node = &seen->world.nodes[1];
        assert_int_equal(node->counters.verdicts[cases[i].verdict], 1);
        assert_int_equal(seen->count, cases[i].response != LANT_OKAY);
        assert_int_equal(seen->response, cases[i].response);
        for (uint64_t at = 0; at < config.memory_bytes; at++) {
            assert_int_equal(node->memory[at], 0);
        }
        close_world(seen);
    }
}

/* -- Order --------------------------------------------------------------------------------------*/

static struct {
    uint32_t count;
    uint8_t types[256];
} order;

static bool note_order(struct seen *seen, uint32_t node, struct lant_frame *frame)
{
    (void)seen;
    if (node == 1 && order.count < COUNT_OF(order.types)) {
        order.types[order.count++] = head_of(frame).type;
    }
    return true;
}

/* LNI-11: a store and a load that come while a transfer is in progress leave before its next
 * packet, the load first though the store came first. */
static void test_who_leaves_first(void **state)
{
    (void)state;
    const struct lant_node_config config = lant_node_default();
    const struct lant_fabric_config fabric = line();
    struct seen *seen = open_world(&config, &fabric);
    const uint8_t data[8] = {1};
    order.count = 0;
    seen->spy = note_order;
    submit(seen, 0, LANT_QUEUE_CPU, lant_global(1, TARGET), 65536);
    while (order.count < 10) {
        assert_true(sim_step(&seen->sim));
    }
    access_of(seen, lant_global(1, 0), 8, true, data);
    access_of(seen, lant_global(1, 8), 8, false, NULL);
    run(seen);
    uint32_t at = 0;
    while (at < order.count && order.types[at] != LANT_AR) {
        at++;
    }
    /* Packets that were on the line, and the one that was leaving. */
    assert_in_range(at, 10, 12);
    assert_int_equal(order.types[at + 1], LANT_AW);
    assert_int_equal(order.types[at + 2], LANT_RDMA_UNREGISTERED);
    close_world(seen);
}

static bool note_overtaking(struct seen *seen, uint32_t node, struct lant_frame *frame)
{
    static uint32_t highest;
    struct lant_packet packet;
    uint32_t repaired;
    if (node != 4 || !is_data_of(frame)) {
        return true;
    }
    assert_int_equal(lant_decode(frame->flits, frame->count, &packet, &repaired), LANT_WHOLE);
    highest = packet.footer.offset == 0 ? 0 : highest;
    seen->count += packet.footer.offset < highest;
    highest = packet.footer.offset > highest ? packet.footer.offset : highest;
    return true;
}

/* LNI-78: the packets of a registered operation overtake each other on two ways around a ring,
 * because another flow makes one way slower. The data are right. By one way nobody overtakes
 * anybody. */
static void test_overtaking(void **state)
{
    (void)state;
    for (uint32_t one_way = 0; one_way < 2; one_way++) {
        const struct lant_node_config config = lant_node_default();
        struct lant_fabric_config fabric = line();
        (void)snprintf(fabric.topology, sizeof(fabric.topology), "torus:8");
        fabric.node_line = (struct lant_line){0};
        fabric.one_way = one_way != 0;
        struct seen *seen = open_world(&config, &fabric);
        seen->spy = note_overtaking;
        struct lant_node *node = &seen->world.nodes[0];
        fill(node->memory, 32768, 5);
        submit(seen, 1, LANT_QUEUE_CPU, lant_global(2, 65536), 65536);
        submit(seen, 0, LANT_QUEUE_CPU, lant_global(4, 65536), 32768);
        run(seen);
        assert_int_equal(node->rdma.counters.registered, 1);
        assert_memory_equal(seen->world.nodes[4].memory + 65536, node->memory, 32768);
        assert_int_equal(seen->sent, 2);
        assert_true(one_way ? seen->count == 0 : seen->count > 10);
        close_world(seen);
    }
}

/* LNI-79: a packet that goes astray is dropped for its age, and its sender comes to an end. */
static void test_age(void **state)
{
    (void)state;
    const struct lant_node_config config = without_early();
    struct lant_fabric_config fabric = line();
    (void)snprintf(fabric.topology, sizeof(fabric.topology), "torus:40");
    fabric.node_line = (struct lant_line){0};
    fabric.ageing = true;
    struct seen *seen = open_world(&config, &fabric);
    submit(seen, 0, LANT_QUEUE_CPU, lant_global(20, TARGET), 512); /* 21 switches. */
    submit(seen, 0, LANT_QUEUE_FPGA, lant_global(10, TARGET), 512);
    fill(seen->world.nodes[0].memory, 512, 9);
    run(seen);
    assert_int_equal(seen->world.fabric.counters.dropped_old, config.rdma.retries + 1);
    assert_int_equal(seen->sent, 2);
    assert_int_equal(seen->world.nodes[0].rdma.counters.failed, 1);
    assert_memory_equal(seen->world.nodes[10].memory + TARGET, seen->world.nodes[0].memory, 512);
    close_world(seen);
}

/* A node that sends to a destination that does not exist is told so at once. */
static void test_nobody_there(void **state)
{
    (void)state;
    for (uint32_t store = 0; store < 2; store++) {
        const struct lant_node_config config = without_early();
        const struct lant_fabric_config fabric = line();
        struct seen *seen = open_world(&config, &fabric);
        const uint8_t data[8] = {1};
        if (store) {
            access_of(seen, lant_global(77, 0), 8, true, data);
        } else {
            submit(seen, 0, LANT_QUEUE_CPU, lant_global(77, 0), 512);
        }
        run(seen);
        assert_int_equal(seen->world.fabric.counters.refused_strangers, 1);
        assert_int_equal(store ? seen->response : seen->status & LANT_STATUS_ERRORS,
                         store ? LANT_DECERR : LANT_STATUS_DECODE_ERROR);
        assert_true((store ? seen->done_ps : seen->sent_ps) < lant_cycles(300));
        close_world(seen);
    }
}

/* LNI-79: a packet that has come where it belongs is not too old, after 16 switches. */
static void test_oldest(void **state)
{
    (void)state;
    const struct lant_node_config config = without_early();
    struct lant_fabric_config fabric = line();
    (void)snprintf(fabric.topology, sizeof(fabric.topology), "torus:40");
    fabric.node_line = (struct lant_line){0};
    fabric.ageing = true;
    for (uint32_t to = 15; to <= 16; to++) {
        struct seen *seen = open_world(&config, &fabric);
        submit(seen, 0, LANT_QUEUE_CPU, lant_global(to, TARGET), 512);
        run(seen);
        assert_int_equal(seen->world.fabric.counters.dropped_old,
                         to == 15 ? 0 : config.rdma.retries + 1);
        close_world(seen);
    }
}

/* -- Accesses -----------------------------------------------------------------------------------*/

/* LNI-28, LNI-29: stores of 1, 2, 4 and 8 bytes change these bytes and no others, and a load gets
 * the bytes there. */
static void test_each_byte(void **state)
{
    (void)state;
    const struct lant_node_config config = without_early();
    const struct lant_fabric_config fabric = line();
    struct seen *seen = open_world(&config, &fabric);
    uint8_t model[256], data[8];
    uint8_t *const memory = seen->world.nodes[1].memory;
    fill(model, sizeof(model), 3);
    memcpy(memory, model, sizeof(model));
    for (uint32_t size = 0; size <= 3; size++) {
        for (uint32_t at = 64; at < 72; at += 1u << size) {
            fill(data, sizeof(data), 100 + at + size);
            access_of(seen, lant_global(1, at), 1u << size, true, data);
            run(seen);
            memcpy(model + at, data, 1u << size);
            assert_memory_equal(memory, model, sizeof(model));
            access_of(seen, lant_global(1, at), 1u << size, false, NULL);
            run(seen);
            uint64_t beat = 0;
            memcpy((uint8_t *)&beat + at % 8, model + at, 1u << size);
            assert_int_equal(seen->data, beat);
        }
    }
    close_world(seen);
}

/* LNI-33: the bus hears of a store 2 cycles behind its footer, if a timer is free; with 16 timers
 * the 17th store waits until the first one's answer is there. */
static void test_sixteen_timers(void **state)
{
    (void)state;
    struct lant_node_config config = lant_node_default();
    struct lant_fabric_config fabric = line();
    const uint8_t data[256] = {0};
    config.shm.rows = 32;
    fabric.node_line.latency_cycles = 1000;
    struct seen *seen = open_world(&config, &fabric);
    access_of(seen, lant_global(1, 0), 256, true, data);
    while (seen->done < 1) {
        assert_true(sim_step(&seen->sim));
    }
    assert_int_equal(seen->done_ps, lant_cycles(9 + 5 + 2));
    while (seen->done < 17) {
        assert_true(sim_step(&seen->sim));
        assert_true(seen->done >= 16 || seen->sim.now_ps <= lant_cycles(9 + 15 * 10 + 5 + 2));
    }
    /* There: 9, 5, the line; stored, 16; back: 4, the line, 5; and the timer. */
    assert_int_equal(seen->done_ps, lant_cycles(9 + 5 + 1000 + 5 + 16 + 4 + 1000 + 5 + 2));
    run(seen);
    assert_int_equal(seen->done, 32);
    close_world(seen);
}

static struct {
    struct sim_event event;
    struct seen *seen;
} later;

static void store_later(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    (void)event;
    const uint8_t data[8] = {1};
    access_of(later.seen, lant_global(1, 64), 8, true, data);
}

/* A load's answer does not wait behind the early acknowledgement of a store, which waits for its
 * timer. */
static void test_answer_beside_early(void **state)
{
    (void)state;
    uint64_t alone_ps = 0;
    for (uint32_t both = 0; both < 2; both++) {
        const struct lant_node_config config = lant_node_default();
        const struct lant_fabric_config fabric = line();
        struct seen *seen = open_world(&config, &fabric);
        later.seen = seen;
        sim_event_init(&later.event, store_later);
        if (both) {
            /* Its footer leaves a cycle before the answer is there. */
            sim_schedule(&seen->sim, &later.event, alone_ps - lant_cycles(1 + 5 + 9));
        }
        access_of(seen, lant_global(1, 0), 8, false, NULL);
        while (seen->done < 1) {
            assert_true(sim_step(&seen->sim));
        }
        alone_ps = both ? alone_ps : seen->done_ps;
        assert_int_equal(seen->done_ps, alone_ps);
        run(seen);
        assert_int_equal(seen->done, 1 + both);
        assert_int_equal(seen->done_ps, alone_ps + (both ? lant_cycles(1) : 0));
        close_world(seen);
    }
}

/* -- Transfers ----------------------------------------------------------------------------------*/

static bool lose_answers(struct seen *seen, uint32_t node, struct lant_frame *frame)
{
    return node != 0 || head_of(frame).type != LANT_RDMA_ACK || seen->count++ >= 5;
}

static void overwrite(struct seen *seen, const struct lant_notification *notification)
{
    memset(seen->world.nodes[0].memory + notification->source, 0xee, notification->bytes);
}

/* LNI-51: the program uses its buffer again as soon as it is told that all was sent. Packets that
 * were sent again until then had the old bytes. */
static void test_buffer_is_free(void **state)
{
    (void)state;
    for (uint32_t registered = 0; registered < 2; registered++) {
        struct lant_node_config config = lant_node_default();
        const struct lant_fabric_config fabric = line();
        uint8_t data[16384];
        config.rdma.registers.bytes_at_most = registered ? sizeof(data) : 0;
        struct seen *seen = open_world(&config, &fabric);
        struct lant_node *node = &seen->world.nodes[0];
        fill(data, sizeof(data), 11);
        memcpy(node->memory, data, sizeof(data));
        seen->spy = lose_answers;
        seen->on_sent = overwrite;
        submit(seen, 0, LANT_QUEUE_CPU, lant_global(1, TARGET), sizeof(data));
        run(seen);
        assert_int_equal(seen->sent, 1);
        assert_int_equal(seen->received, 1);
        assert_int_equal(node->rdma.counters.again, 5);
        assert_int_equal(node->memory[0], 0xee);
        assert_memory_equal(seen->world.nodes[1].memory + TARGET, data, sizeof(data));
        close_world(seen);
    }
}

/* LNI-42: each queue's transfers are notified in its own queue. */
static void test_two_queues(void **state)
{
    (void)state;
    const struct lant_node_config config = lant_node_default();
    const struct lant_fabric_config fabric = line();
    struct seen *seen = open_world(&config, &fabric);
    for (uint32_t i = 0; i < 3; i++) {
        submit(seen, 0, i < 2 ? LANT_QUEUE_FPGA : LANT_QUEUE_CPU, lant_global(1, 4096 * i), 512);
    }
    run(seen);
    assert_int_equal(seen->queues[LANT_QUEUE_FPGA], 2);
    assert_int_equal(seen->queues[LANT_QUEUE_CPU], 1);
    close_world(seen);
}

static uint32_t first_tag;

static void note_first(struct seen *seen, const struct lant_notification *notification)
{
    if (seen->sent == 1) {
        first_tag = notification->tag;
    }
}

/* LNI-71: a small transfer behind a large one ends before it if the large one is cut. */
static void test_small_behind_large(void **state)
{
    (void)state;
    for (uint32_t cut = 0; cut < 2; cut++) {
        struct lant_node_config config = lant_node_default();
        const struct lant_fabric_config fabric = line();
        config.rdma.work.segment_bytes = cut ? 65536 : 0;
        struct seen *seen = open_world(&config, &fabric);
        seen->on_sent = note_first;
        submit(seen, 0, LANT_QUEUE_CPU, lant_global(1, 0), 512 * 1024);
        submit(seen, 0, LANT_QUEUE_FPGA, lant_global(1, 768 * 1024), 1024);
        run(seen);
        assert_int_equal(seen->sent, 2);
        assert_int_equal(first_tag, cut ? LANT_QUEUE_FPGA : LANT_QUEUE_CPU);
        close_world(seen);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_there),
        cmocka_unit_test(test_oldest),
        cmocka_unit_test(test_answer_beside_early),
        cmocka_unit_test(test_one_wrong_bit),
        cmocka_unit_test(test_two_wrong_bits),
        cmocka_unit_test(test_impossible_packets),
        cmocka_unit_test(test_who_leaves_first),
        cmocka_unit_test(test_overtaking),
        cmocka_unit_test(test_age),
        cmocka_unit_test(test_each_byte),
        cmocka_unit_test(test_sixteen_timers),
        cmocka_unit_test(test_buffer_is_free),
        cmocka_unit_test(test_two_queues),
        cmocka_unit_test(test_small_behind_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
