/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Packets leave in the order of their sources' priority, part by part, a flit a cycle, and
 *         are what lant_encode makes of the same fields.
 * Method  Cases by hand; then requests and payload by chance, with an output that is not always
 *         taken, against plain lists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/lant/packet_sender.h"
#include "hardware/lant/test_packets.h"

static struct lant_packet_sender new_sender(struct lant_sender_config config)
{
    struct lant_packet_sender sender;
    lant_packet_sender_init(&sender, &config);
    return sender;
}

static void give(struct lant_packet_sender *sender, uint32_t source,
                 const struct lant_packet *packet)
{
    const struct lant_ends ends = test_ends(packet);
    lant_packet_sender_take(sender, source, &ends);
}

static void give_payload(struct lant_packet_sender *sender, uint32_t source,
                         const struct lant_packet *packet)
{
    for (uint32_t i = 0; i < packet->header.payload; i++) {
        lant_packet_sender_take_data(sender, source, packet->payload[i]);
    }
}

/* Takes the flit that must stand now, and makes a cycle. */
static void take_flit(struct lant_packet_sender *sender, uint64_t data, bool last)
{
    struct lant_flit flit;
    assert_true(lant_packet_sender_offer(sender, &flit));
    assert_int_equal(flit.data, data);
    assert_int_equal(flit.last, last);
    lant_packet_sender_taken(sender);
    assert_false(lant_packet_sender_offer(sender, &flit));
    lant_packet_sender_step(sender);
}

static void take_packet(struct lant_packet_sender *sender, const struct lant_packet *packet)
{
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    const uint32_t count = lant_encode(packet, flits);
    for (uint32_t i = 0; i < count; i++) {
        take_flit(sender, flits[i], i + 1 == count);
    }
}

/* LNI-12: HEAD1, HEAD2, (HEAD3,) BODY as often as there is payload, FOOT1, FOOT2. */
static void test_parts(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t payload = 0; payload <= LANT_PAYLOAD_FLITS_MAX; payload++) {
        for (uint32_t extended = 0; extended < 2; extended++) {
            struct lant_packet_sender sender = new_sender(lant_request_sender());
            const struct lant_packet packet = test_packet(&prng, payload, extended);
            enum lant_part parts[LANT_PACKET_FLITS_MAX + 1];
            uint32_t count = 0, next = 0;
            struct lant_flit flit;
            give(&sender, LANT_SOURCE_RDMA, &packet);
            give_payload(&sender, LANT_SOURCE_RDMA, &packet);
            lant_packet_sender_step(&sender);
            while (lant_packet_sender_offer(&sender, &flit)) {
                parts[count++] = sender.part;
                lant_packet_sender_taken(&sender);
                lant_packet_sender_step(&sender);
            }
            assert_true(lant_packet_sender_idle(&sender));
            assert_int_equal(count, 4 + payload + extended);
            assert_int_equal(parts[next++], LANT_HEAD1);
            assert_int_equal(parts[next++], LANT_HEAD2);
            if (extended) {
                assert_int_equal(parts[next++], LANT_HEAD3);
            }
            for (uint32_t i = 0; i < payload; i++) {
                assert_int_equal(parts[next++], LANT_BODY);
            }
            assert_int_equal(parts[next++], LANT_FOOT1);
            assert_int_equal(parts[next++], LANT_FOOT2);
        }
    }
}

/* LNI-11: all five queues full: each is emptied before the next one begins. */
static void test_priority(void **state)
{
    (void)state;
    struct lant_packet_sender sender = new_sender(lant_request_sender());
    struct lant_packet packets[LANT_SOURCES][LANT_SEND_REQUESTS_MAX];
    struct prng prng;
    prng_init(&prng, 2);
    for (uint32_t source = LANT_SOURCES; source-- > 0;) {
        for (uint32_t i = 0; i < LANT_SEND_REQUESTS_MAX; i++) {
            const bool reads = source == LANT_SOURCE_SHM_READ;
            packets[source][i] = test_packet(&prng, reads ? 0 : 1 + i % 8, false);
            assert_true(lant_packet_sender_ready(&sender, source));
            give(&sender, source, &packets[source][i]);
            give_payload(&sender, source, &packets[source][i]);
        }
        assert_false(lant_packet_sender_ready(&sender, source));
    }
    lant_packet_sender_step(&sender);
    for (uint32_t source = 0; source < LANT_SOURCES; source++) {
        for (uint32_t i = 0; i < LANT_SEND_REQUESTS_MAX; i++) {
            assert_int_equal(sender.source, source);
            take_packet(&sender, &packets[source][i]);
        }
        assert_int_equal(sender.counters.packets[source], LANT_SEND_REQUESTS_MAX);
    }
    assert_true(lant_packet_sender_idle(&sender));
}

/* LNI-11: what comes while a flit stands does not displace it, nor the rest of its packet. */
static void test_no_displacement(void **state)
{
    (void)state;
    struct lant_packet_sender sender = new_sender(lant_request_sender());
    struct prng prng;
    prng_init(&prng, 3);
    const struct lant_packet slow = test_packet(&prng, 3, false);
    const struct lant_packet urgent = test_packet(&prng, 1, false);
    const struct lant_packet later = test_packet(&prng, 2, false);
    struct lant_flit before, after;
    give(&sender, LANT_SOURCE_RDMA, &slow);
    give_payload(&sender, LANT_SOURCE_RDMA, &slow);
    give(&sender, LANT_SOURCE_RDMA, &later);
    give_payload(&sender, LANT_SOURCE_RDMA, &later);
    lant_packet_sender_step(&sender);
    give(&sender, LANT_SOURCE_SHM_RETRY, &urgent);
    give_payload(&sender, LANT_SOURCE_SHM_RETRY, &urgent);
    for (uint32_t i = 0; i < 20; i++) {
        assert_true(lant_packet_sender_offer(&sender, &before));
        lant_packet_sender_step(&sender);
        assert_true(lant_packet_sender_offer(&sender, &after));
        assert_int_equal(before.data, after.data);
    }
    take_packet(&sender, &slow);
    take_packet(&sender, &urgent);
    take_packet(&sender, &later);
}

/* LNI-13: payload that is there before its request waits for H1 and H2; payload that is late holds
 * the body up, and nothing overtakes. */
static void test_data_first(void **state)
{
    (void)state;
    struct lant_packet_sender sender = new_sender(lant_request_sender());
    struct prng prng;
    prng_init(&prng, 4);
    const struct lant_packet packet = test_packet(&prng, 5, false);
    const struct lant_packet load = test_packet(&prng, 0, false);
    uint64_t flits[LANT_PACKET_FLITS_MAX];
    struct lant_flit flit;
    (void)lant_encode(&packet, flits);
    for (uint32_t i = 0; i < 2; i++) {
        lant_packet_sender_take_data(&sender, LANT_SOURCE_SHM_WRITE, packet.payload[i]);
    }
    for (uint32_t i = 0; i < 50; i++) {
        lant_packet_sender_step(&sender);
        assert_false(lant_packet_sender_offer(&sender, &flit));
        assert_true(lant_packet_sender_idle(&sender));
    }
    give(&sender, LANT_SOURCE_SHM_WRITE, &packet);
    lant_packet_sender_step(&sender);
    for (uint32_t i = 0; i < 4; i++) {
        take_flit(&sender, flits[i], false);
    }
    give(&sender, LANT_SOURCE_SHM_READ, &load);
    for (uint32_t i = 0; i < 50; i++) {
        assert_false(lant_packet_sender_offer(&sender, &flit));
        assert_false(lant_packet_sender_idle(&sender));
        lant_packet_sender_step(&sender);
    }
    for (uint32_t i = 2; i < 5; i++) {
        lant_packet_sender_take_data(&sender, LANT_SOURCE_SHM_WRITE, packet.payload[i]);
    }
    lant_packet_sender_step(&sender);
    for (uint32_t i = 4; i < 9; i++) {
        take_flit(&sender, flits[i], i == 8);
    }
    take_packet(&sender, &load);
    assert_in_range(sender.counters.waits, 51, 53);
}

/* C2: the same with one source. */
static void test_answers(void **state)
{
    (void)state;
    struct lant_packet_sender sender = new_sender(lant_answer_sender());
    const struct lant_packet request = {.header = {.destination = 7, .type = LANT_AR},
                                        .footer = {.source = 9, .row = 3, .generation = 200}};
    const struct lant_ends ends = test_ends(&request);
    const struct lant_ends answer = lant_answer(&ends, 7, LANT_OKAY);
    const struct lant_packet expected = {
        .header = answer.header, .footer = answer.footer, .payload = {0x1122334455667788}};
    lant_packet_sender_take(&sender, LANT_ANSWERS, &answer);
    lant_packet_sender_take_data(&sender, LANT_ANSWERS, expected.payload[0]);
    lant_packet_sender_step(&sender);
    assert_int_equal(expected.header.destination, 9);
    take_packet(&sender, &expected);
    assert_true(lant_packet_sender_idle(&sender));
}

/* -- A model ------------------------------------------------------------------------------------*/

/* What was given of each source, and how much of it was sent. */
struct model {
    uint32_t given[LANT_SOURCES], begun[LANT_SOURCES];
    uint32_t data_given[LANT_SOURCES], data_made[LANT_SOURCES];
    struct lant_packet packets[LANT_SOURCES][400];
    uint64_t data[LANT_SOURCES][400 * 70];
    bool active;
    uint32_t source, sent, count;
    uint64_t flits[LANT_PACKET_FLITS_MAX];
};

static void model_make(struct model *model, struct prng *prng)
{
    for (uint32_t source = 0; source < LANT_SOURCES; source++) {
        for (uint32_t i = 0; i < 400; i++) {
            const uint32_t payload =
                source == LANT_SOURCE_SHM_READ ? 0 : (uint32_t)prng_below(prng, 65);
            struct lant_packet *packet = &model->packets[source][i];
            *packet = test_packet(prng, payload, prng_below(prng, 4) == 0);
            for (uint32_t j = 0; j < payload; j++) {
                model->data[source][model->data_made[source]++] = packet->payload[j];
            }
        }
    }
}

/* Requests and payload come by themselves, so that either may be ahead. */
static void model_give(struct model *model, struct lant_packet_sender *sender, struct prng *prng,
                       uint32_t often)
{
    const uint32_t source = (uint32_t)prng_below(prng, LANT_SOURCES);
    if (prng_below(prng, 100) < often && lant_packet_sender_ready(sender, source) &&
        model->given[source] < 400) {
        give(sender, source, &model->packets[source][model->given[source]++]);
    }
    for (uint32_t i = 0; i < LANT_SOURCES; i++) {
        if (prng_below(prng, 3) != 0 && lant_packet_sender_data_ready(sender, i) &&
            model->data_given[i] < model->data_made[i]) {
            lant_packet_sender_take_data(sender, i, model->data[i][model->data_given[i]++]);
        }
    }
}

static void model_begin(struct model *model)
{
    for (uint32_t source = 0; source < LANT_SOURCES && !model->active; source++) {
        if (model->begun[source] < model->given[source]) {
            model->active = true;
            model->source = source;
            model->sent = 0;
            model->count =
                lant_encode(&model->packets[source][model->begun[source]++], model->flits);
        }
    }
}

static uint32_t model_cycle(struct model *model, struct lant_packet_sender *sender, bool takes)
{
    struct lant_flit flit;
    uint32_t packets = 0;
    if (lant_packet_sender_offer(sender, &flit)) {
        assert_true(model->active);
        assert_int_equal(flit.data, model->flits[model->sent]);
        assert_int_equal(flit.last, model->sent + 1 == model->count);
        if (takes) {
            lant_packet_sender_taken(sender);
            model->active = ++model->sent < model->count;
            packets += !model->active;
        }
    } else if (model->active) {
        assert_int_equal(sender->part, LANT_BODY); /* Nothing else is waited for. */
    }
    model_begin(model);
    lant_packet_sender_step(sender);
    return packets;
}

static void test_random(void **state)
{
    (void)state;
    static struct model model;
    uint32_t packets = 0;
    struct prng prng;
    prng_init(&prng, 5);
    for (uint32_t round = 0; round < 6; round++) {
        struct lant_packet_sender sender = new_sender((struct lant_sender_config){
            LANT_SOURCES, (uint8_t)(1 + 3 * round), (uint8_t)(round == 0 ? 1 : 20 * round)});
        model = (struct model){0};
        model_make(&model, &prng);
        for (uint32_t cycle = 0; cycle < 30000; cycle++) {
            model_give(&model, &sender, &prng, 1 + round * 2);
            packets += model_cycle(&model, &sender, prng_below(&prng, 8) >= round);
        }
    }
    assert_in_range(packets, 3000, UINT32_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),           cmocka_unit_test(test_priority),
        cmocka_unit_test(test_no_displacement), cmocka_unit_test(test_data_first),
        cmocka_unit_test(test_answers),         cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
