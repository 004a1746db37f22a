/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A link's verdict on a whole packet with flipped bits is the verdict that the receiver of
 *         hardware/forth/link.h reaches word by word.
 * Method  Random packets, one to three flipped bits, both ways. Behaviours FNX-20 to FNX-22.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "lab/forth/link.h"

#define QWORDS_MAX 62

struct inbox {
    struct forth_end end;
    struct forth_packet *packet;
};

static void on_packet(struct forth_end *end, struct forth_packet *packet)
{
    CONTAINER_OF(end, struct inbox, end)->packet = packet;
}

static void on_credit(struct forth_end *end, uint16_t word)
{
    (void)end;
    (void)word;
}

static void make_packet(struct prng *prng, struct forth_packet *packet)
{
    packet->qwords = (uint16_t)(1 + prng_below(prng, QWORDS_MAX));
    packet->header = forth_header_encode(&(struct forth_header){
        .node = (uint8_t)prng_below(prng, 128), .words = packet->qwords, .destination = 0x1234});
    for (uint32_t i = 0; i < 8u * packet->qwords; i++) {
        packet->payload[i] = (uint8_t)prng_next(prng);
    }
    packet->header_crc = forth_header_crc(packet->header);
    forth_packet_seal(packet);
}

/* The verdict that the words give: which fate, if the packet is delivered at all. */
static enum forth_fate by_words(const struct forth_packet *packet, const uint32_t *bits,
                                uint32_t bit_count)
{
    struct forth_word words[2 * QWORDS_MAX + 5 + 4];
    const struct forth_frame frame = {.header = packet->header,
                                      .header_crc = packet->header_crc,
                                      .body_crc = packet->body_crc,
                                      .payload = packet->payload,
                                      .qwords = packet->qwords};
    uint32_t count = forth_link_encode(NULL, 0, &frame, words);
    for (uint32_t i = 0; i < bit_count; i++) {
        words[bits[i] / 32].data ^= UINT32_C(1) << (31 - bits[i] % 32);
    }
    for (uint32_t i = 0; i < 4; i++) {
        words[count++] = FORTH_IDLE_WORD;
    }
    struct forth_receiver receiver = {.state = FORTH_RX_START};
    enum forth_fate fate = FORTH_FATE_SOP;
    for (uint32_t i = 0; i < count; i++) {
        switch (forth_receive(&receiver, words[i])) {
        case FORTH_RX_HEADER_CRC: return FORTH_FATE_HEADER;
        case FORTH_RX_END: fate = FORTH_FATE_GOOD; break;
        case FORTH_RX_BODY_CRC: fate = FORTH_FATE_BODY; break;
        /* A header that looks like a credit, or whose length is wrong, is no packet either. */
        case FORTH_RX_CREDIT:
        case FORTH_RX_CREDIT_PARITY:
        case FORTH_RX_ALIGNMENT:
        case FORTH_RX_NOTHING:
        case FORTH_RX_HEADER:
        case FORTH_RX_QWORD: break;
        }
    }
    return fate;
}

static enum forth_fate by_packet(struct forth_fabric *fabric, struct inbox *inbox,
                                 const struct forth_packet *packet, const uint32_t *bits,
                                 uint32_t bit_count)
{
    struct forth_packet *copy = sim_pool_take(&fabric->packets);
    memcpy(copy, packet, sizeof(*packet) + 8 * (size_t)packet->qwords);
    copy->fate = FORTH_FATE_GOOD;
    for (uint32_t i = 0; i < bit_count; i++) {
        forth_packet_flip(copy, bits[i]);
    }
    forth_packet_judge(copy);
    const enum forth_fate fate = (enum forth_fate)copy->fate;
    sim_pool_give(&fabric->packets, copy);
    (void)inbox;
    return fate;
}

static bool delivered(enum forth_fate fate)
{
    return fate == FORTH_FATE_GOOD || fate == FORTH_FATE_BODY;
}

static void test_flips(void **state)
{
    (void)state;
    struct sim sim;
    struct forth_fabric fabric;
    struct inbox inbox = {.end = {.on_packet = on_packet, .on_credit = on_credit}};
    struct prng prng;
    sim_init(&sim, 1);
    prng_init(&prng, 8);
    forth_fabric_open(&fabric, &sim, 4, QWORDS_MAX);
    struct forth_packet *packet = sim_pool_take(&fabric.packets);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t bits[3];
        const uint32_t bit_count = (uint32_t)prng_below(&prng, 4);
        make_packet(&prng, packet);
        const uint32_t frame_bits = 32 * forth_frame_words(packet->qwords);
        for (uint32_t k = 0; k < bit_count; k++) {
            /* Half of the flipped bits lie in what surrounds the payload. */
            const uint64_t among = i % 2 ? frame_bits / 3 : 40;
            bits[k] = (uint32_t)(k * among + prng_below(&prng, among)); /* No bit twice. */
        }
        const enum forth_fate words = by_words(packet, bits, bit_count);
        const enum forth_fate whole = by_packet(&fabric, &inbox, packet, bits, bit_count);
        assert_int_equal(delivered(words), delivered(whole));
        if (delivered(words)) {
            assert_int_equal(words, whole);
        }
    }
    forth_fabric_close(&fabric);
}

/* The time a packet takes, on one lane and on two, and what the receiver waits for. */
static void test_times(void **state)
{
    (void)state;
    for (uint32_t lanes = 1; lanes <= 2; lanes++) {
        struct sim sim;
        struct forth_fabric fabric;
        struct forth_link link;
        struct prng prng;
        struct inbox inbox = {.end = {.lead = 4,
                                      .part = 1,
                                      .of_parts = 4,
                                      .on_packet = on_packet,
                                      .on_credit = on_credit}};
        sim_init(&sim, 1);
        prng_init(&prng, 9);
        forth_fabric_open(&fabric, &sim, 4, QWORDS_MAX);
        forth_link_init(&link, &fabric, &inbox.end, sim_clock_hz(78125000), 288000, lanes);
        struct forth_packet *packet = sim_pool_take(&fabric.packets);
        make_packet(&prng, packet);
        packet->qwords = 62;
        forth_packet_seal(packet);
        forth_link_packet(&link, packet, 1000);
        const uint32_t cycles = lanes == 1 ? 5 + 2 * 62 : 4 + 62;
        assert_int_equal(link.free_ps, 1000 + cycles * 12800);
        while (sim_step(&sim)) {
        }
        assert_ptr_equal(inbox.packet, packet);
        const uint32_t quarter = lanes == 1 ? 31 : 16; /* A quarter of 124 words, of 62. */
        assert_int_equal(sim.now_ps, 1000 + 288000 + (4 + quarter) * 12800);
        assert_int_equal(packet->ended_ps, 1000 + 288000 + cycles * 12800);
        forth_fabric_close(&fabric);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flips),
        cmocka_unit_test(test_times),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
