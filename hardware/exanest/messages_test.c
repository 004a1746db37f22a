/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The units understand each other. A packetizer's message arrives at either mailbox or at a
 *         receiver, at least once, over a wire that loses and damages packets both ways. A
 *         notification that a receiver makes lies in a system mailbox.
 * Method  The units' own packets, carried word by word. EXA-54, EXA-55, EXA-56.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "hardware/exanest/packetizer.h"
#include "hardware/exanest/receiver.h"
#include "hardware/exanest/rt_mailbox.h"
#include "hardware/exanest/system_mailbox.h"
#include "hardware/exanest/test_beats.h"

#define HERE  1u
#define THERE 2u
#define IDS   1200u

/* One packet at a time. It may be lost, or a bit of it flipped. */
struct wire {
    struct test_packet packet;
    uint32_t sent; /* Words that the far end has taken. */
    bool full;
};

struct world {
    struct prng prng;
    uint32_t loss; /* One packet of this number is lost; 0: none. */
    struct exanest_packetizer packetizer;
    struct exanest_rt_mailbox mailbox;
    struct wire there, back;
    uint32_t delivered[IDS];
    uint32_t id_of[EXANEST_PACKETIZER_CHANNELS]; /* The message in each channel; 0: none. */
    uint32_t next_id, done, failed, doubles;
};

static void put(struct world *world, struct wire *wire, const struct exanest_beat *beat)
{
    wire->packet.beats[wire->packet.count++] = *beat;
    if (!beat->last) {
        return;
    }
    wire->full = true;
    wire->sent = 0;
    if (world->loss != 0 && prng_below(&world->prng, world->loss) == 0) {
        wire->full = false;
        wire->packet.count = 0;
    } else if (world->loss != 0 && prng_below(&world->prng, world->loss) == 0) {
        test_flip(&wire->packet, (uint32_t)prng_below(&world->prng, wire->packet.count),
                  (uint32_t)prng_below(&world->prng, 128));
    }
}

static const struct exanest_beat *word_of(const struct wire *wire)
{
    return wire->full ? &wire->packet.beats[wire->sent] : NULL;
}

static void taken(struct wire *wire)
{
    wire->sent++;
    if (wire->sent == wire->packet.count) {
        wire->full = false;
        wire->packet.count = 0;
    }
}

/* A user's request, as forged as it can be. */
static void post(struct world *world, uint32_t channel)
{
    const struct exanest_read_request request = {.source = world->next_id * 16,
                                                 .bytes = 8,
                                                 .request_id = world->next_id,
                                                 .pdid = 666,
                                                 .coordinate = 666,
                                                 .channel = 666};
    struct exanest_word words[EXANEST_READ_REQUEST_WORDS];
    uint64_t halves[6];
    const struct exanest_target target = {.coordinate = THERE,
                                          .va = exanest_peripheral_va(EXANEST_RT_READ_REQUESTS, 0)};
    exanest_read_request_encode(&request, words);
    memcpy(halves, words, sizeof(halves));
    for (uint32_t i = 0; i < 6; i++) {
        assert_int_equal(exanest_packetizer_store(&world->packetizer, channel, 8 * i, halves[i]),
                         EXANEST_STORE_GOOD);
    }
    assert_int_equal(exanest_packetizer_store(&world->packetizer, channel,
                                              EXANEST_PACKETIZER_TARGET,
                                              exanest_target_encode(target)),
                     EXANEST_STORE_GOOD);
    assert_int_equal(exanest_packetizer_store(&world->packetizer, channel,
                                              EXANEST_PACKETIZER_COMMAND, sizeof(words)),
                     EXANEST_STORE_GOOD);
    world->id_of[channel] = world->next_id++;
}

static void user(struct world *world)
{
    for (uint32_t c = 0; c < EXANEST_PACKETIZER_CHANNELS; c++) {
        const uint32_t phase = exanest_packetizer_state(&world->packetizer, c).phase;
        if (world->id_of[c] != 0 && phase == EXANEST_CHANNEL_DONE) {
            assert_true(world->delivered[world->id_of[c]] > 0); /* No ACK without delivery. */
            world->done++;
            world->id_of[c] = 0;
        } else if (world->id_of[c] != 0 && phase == EXANEST_CHANNEL_FAILED) {
            world->failed++;
            world->id_of[c] = 0;
        }
        if (world->id_of[c] == 0 && world->next_id < IDS) {
            post(world, c);
        }
    }
}

/* The R5 reads a request in 12 reads now and then. */
static void r5(struct world *world)
{
    if (world->mailbox.requests == 0 || prng_below(&world->prng, 60) != 0) {
        return;
    }
    uint32_t parts[12];
    struct exanest_word words[EXANEST_READ_REQUEST_WORDS];
    for (uint32_t i = 0; i < 12; i++) {
        parts[i] = exanest_rt_mailbox_read_request(&world->mailbox);
    }
    memcpy(words, parts, sizeof(words));
    const struct exanest_read_request request = exanest_read_request_decode(words);
    assert_in_range(request.request_id, 1, IDS - 1);
    assert_int_equal(request.source, request.request_id * 16);
    assert_int_equal(request.coordinate, HERE);
    assert_int_equal(request.pdid, 100 + request.channel % EXANEST_PACKETIZER_CHANNELS);
}

/* The R5 will read every request that the mailbox has taken. */
static void deliver(struct world *world, uint32_t id, uint64_t before)
{
    if (world->mailbox.counters.requests != before) {
        assert_in_range(id, 1, IDS - 1);
        world->doubles += world->delivered[id] > 0;
        world->delivered[id]++;
    }
}

static uint32_t id_on(const struct wire *wire)
{
    return wire->packet.count == 5 ? (uint32_t)(wire->packet.beats[3].word.low >> 32) : 0;
}

static void cycle(struct world *world)
{
    struct exanest_beat beat;
    const struct exanest_beat *word = word_of(&world->there);
    const uint32_t id = id_on(&world->there);
    const uint64_t before = world->mailbox.counters.requests;
    if (word == NULL && exanest_packetizer_offer(&world->packetizer, &beat)) {
        exanest_packetizer_taken(&world->packetizer);
        put(world, &world->there, &beat);
    } else if (word != NULL && exanest_rt_mailbox_ready(&world->mailbox, word)) {
        exanest_rt_mailbox_take(&world->mailbox, word);
        taken(&world->there);
        deliver(world, id, before);
    }
    word = word_of(&world->back);
    if (word == NULL && exanest_rt_mailbox_offer(&world->mailbox, &beat)) {
        exanest_rt_mailbox_taken(&world->mailbox);
        put(world, &world->back, &beat);
    } else if (word != NULL) {
        exanest_packetizer_take(&world->packetizer, word);
        taken(&world->back);
    }
    exanest_packetizer_step(&world->packetizer);
    exanest_rt_mailbox_step(&world->mailbox);
    user(world);
    r5(world);
}

static struct world *new_world(uint32_t loss)
{
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    const struct exanest_packetizer_parameters parameters = {
        .coordinate = HERE, .timeout_cycles = 3000, .backoff_cycles = 700, .retries = 16};
    const struct exanest_rt_mailbox_parameters mailbox = exanest_rt_mailbox_defaults(THERE);
    exanest_packetizer_init(&world->packetizer, &parameters);
    exanest_rt_mailbox_init(&world->mailbox, &mailbox);
    prng_init(&world->prng, 11 + loss);
    for (uint32_t c = 0; c < EXANEST_PACKETIZER_CHANNELS; c++) {
        exanest_packetizer_give(&world->packetizer, c, (uint16_t)(100 + c));
    }
    world->loss = loss;
    world->next_id = 1;
    return world;
}

/* EXA-54, EXA-55: each request arrives; more than once only if its ACK was lost. */
static void test_read_requests(void **state)
{
    (void)state;
    static const uint32_t losses[] = {0, 5};
    for (uint32_t i = 0; i < COUNT_OF(losses); i++) {
        struct world *world = new_world(losses[i]);
        while (world->done + world->failed < IDS - 1) {
            cycle(world);
        }
        assert_int_equal(world->failed, 0);
        assert_int_equal(world->doubles > 0, losses[i] != 0);
        assert_int_equal(world->packetizer.counters.timeouts > 0, losses[i] != 0);
        for (uint32_t id = 1; id < IDS; id++) {
            assert_true(world->delivered[id] > 0);
        }
        free(world);
    }
}

/* EXA-56: the 16 bytes that a receiver sends lie in a slot of the mailbox. */
static void test_notification(void **state)
{
    (void)state;
    static struct exanest_receiver receiver;
    static struct exanest_system_mailbox mailbox;
    const struct exanest_receiver_parameters parameters = exanest_receiver_defaults(HERE);
    const struct exanest_system_mailbox_parameters defaults = exanest_system_mailbox_defaults(HERE);
    exanest_receiver_init(&receiver, &parameters);
    exanest_system_mailbox_init(&mailbox, &defaults);
    exanest_system_mailbox_open(&mailbox, 2, 9, 0x1000, 4);
    const struct exanest_control control = {
        .address = {.coordinate = HERE,
                    .va = exanest_peripheral_va(EXANEST_SYSTEM_MAILBOXES, 2u << 16)},
        .data = {0x1111, 0x2222}};
    struct exanest_word words[2];
    exanest_control_encode(&control, words);
    struct exanest_header header = {
        .pdid = 9, .type = EXANEST_CONTROL, .bytes = 32, .has_footer = true};
    struct exanest_footer footer = {.tid = 3, .source = THERE, .notify = true};
    const struct test_packet first = test_packet(&header, &footer, words);
    header.type = EXANEST_WRITE;
    header.bytes = 0;
    footer.first = footer.last = true;
    const struct test_packet second = test_packet(&header, &footer, NULL);
    for (uint32_t i = 0; i < first.count; i++) {
        exanest_receiver_take(&receiver, &first.beats[i]);
    }
    for (uint32_t i = 0; i < second.count; i++) {
        exanest_receiver_take(&receiver, &second.beats[i]);
    }
    struct exanest_memory_write write, slot[4];
    uint32_t slots = 0, packets = 0;
    for (uint32_t i = 0; i < 100; i++) {
        struct exanest_beat beat;
        if (exanest_receiver_offer(&receiver, &beat)) {
            exanest_receiver_taken(&receiver);
            packets += beat.part == EXANEST_HEADER;
            if (packets == 2) { /* The first is the response. */
                assert_true(exanest_system_mailbox_ready(&mailbox, &beat));
                exanest_system_mailbox_take(&mailbox, &beat);
            }
        }
        if (exanest_system_mailbox_next_write(&mailbox, &write)) {
            slot[slots++] = write;
        }
        exanest_receiver_step(&receiver);
        exanest_system_mailbox_step(&mailbox);
    }
    assert_int_equal(slots, 4);
    assert_int_equal(slot[0].va, 0x1000);
    assert_int_equal(slot[0].word.low, 0x1111);
    assert_int_equal(slot[0].word.high, 0x2222);
    assert_true(exanest_system_tag_decode(slot[3].word.high).notifies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_requests),
        cmocka_unit_test(test_notification),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
