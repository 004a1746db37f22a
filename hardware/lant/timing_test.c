/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The sums of timing.h say in which cycle each flit leaves a controller, and in which a
 *         packet is released: so that a world may use them and not step controllers.
 * Method  C1 on C3 without a wire between them, each packet length by itself; then packets of
 *         random lengths, given at random times, one behind the other. The controllers are stepped,
 *         and each cycle in which a flit or a beat is taken is compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/lant/answer_receiver.h"
#include "hardware/lant/request_receiver.h"
#include "hardware/lant/test_packets.h"
#include "hardware/lant/timing.h"

/* When a packet's flits and beats were seen. */
struct seen {
    uint64_t given, flit[LANT_PACKET_FLITS_MAX], beat[LANT_PAYLOAD_FLITS_MAX + 1];
    uint32_t flits, beats;
};

/* Two controllers; what stands at the output of one is taken by the other in the same cycle. */
struct pair {
    uint64_t now;
    struct lant_packet_sender sender;
    struct lant_request_receiver receiver;
};

static void new_pair(struct pair *pair, uint32_t packets, bool cut_through)
{
    const struct lant_sender_config config = lant_request_sender();
    pair->now = 0;
    lant_packet_sender_init(&pair->sender, &config);
    lant_request_receiver_init(&pair->receiver, packets, cut_through);
}

/* A cycle: `out` is the packet whose flits leave, `in` the one whose beats are given. */
static void cycle(struct pair *pair, struct seen *out, struct seen *in, bool *sent, bool *given)
{
    struct lant_request_beat beat;
    struct lant_flit flit;
    *sent = *given = false;
    if (lant_request_receiver_offer(&pair->receiver, &beat)) {
        in->beat[in->beats++] = pair->now;
        *given = beat.last;
        lant_request_receiver_taken(&pair->receiver);
    }
    if (lant_request_receiver_ready(&pair->receiver) &&
        lant_packet_sender_offer(&pair->sender, &flit)) {
        out->flit[out->flits++] = pair->now;
        *sent = flit.last;
        lant_packet_sender_taken(&pair->sender);
        lant_request_receiver_take(&pair->receiver, &flit);
    }
    lant_packet_sender_step(&pair->sender);
    lant_request_receiver_step(&pair->receiver);
    pair->now++;
}

static void give(struct pair *pair, const struct lant_packet *packet, struct seen *seen)
{
    const struct lant_ends ends = test_ends(packet);
    *seen = (struct seen){.given = pair->now};
    lant_packet_sender_take(&pair->sender, LANT_SOURCE_RDMA, &ends);
    for (uint32_t i = 0; i < packet->header.payload; i++) {
        lant_packet_sender_take_data(&pair->sender, LANT_SOURCE_RDMA, packet->payload[i]);
    }
}

/* All lengths there are, 4 to 69 flits, one packet alone, in cycle 5. */
static void test_alone(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t flits = LANT_PACKET_FLITS_MIN; flits <= LANT_PACKET_FLITS_MAX; flits++) {
        for (uint32_t extended = flits == LANT_PACKET_FLITS_MAX;
             extended <= (flits > LANT_PACKET_FLITS_MIN + 1 ? 1 : 0); extended++) {
            const struct lant_packet packet = test_packet(&prng, flits - 4 - extended, extended);
            const struct lant_header *header = &packet.header;
            assert_int_equal(lant_packet_flits(header), flits);
            for (uint32_t cut = 0; cut < 2; cut++) {
                struct pair pair;
                struct seen seen;
                bool sent, given = false;
                new_pair(&pair, 2, cut);
                pair.now = 5;
                give(&pair, &packet, &seen);
                while (!given) {
                    cycle(&pair, &seen, &seen, &sent, &given);
                    assert_true(pair.now < 200);
                }
                const uint64_t begins = lant_send_begins(5, 0);
                assert_int_equal(begins, 6);
                assert_int_equal(seen.flits, flits);
                for (uint32_t i = 0; i < flits; i++) {
                    assert_int_equal(seen.flit[i], begins + i);
                }
                assert_int_equal(seen.flit[flits - 1], lant_send_ends(begins, flits));
                const uint64_t released =
                    begins + (cut ? lant_cut_through_cycles(header) : lant_release_cycles(flits));
                assert_int_equal(seen.beats, lant_release_beats(header) + cut);
                for (uint32_t i = 0; i < lant_release_beats(header); i++) {
                    assert_int_equal(seen.beat[i], released + i);
                }
                /* The last beat of cut through says that all was well, when F2 has come. */
                assert_true(!cut || seen.beat[seen.beats - 1] == begins + flits);
            }
        }
    }
}

/* What 6.1 rests on (A6, A57): two cycles a flit with store and forward, one if cut through. */
static void test_slope(void **state)
{
    (void)state;
    const struct lant_header shorter = {.payload = 1}, longer = {.payload = 2};
    for (uint32_t flits = 5; flits < 68; flits++) {
        assert_int_equal(lant_send_ends(0, flits + 1) - lant_send_ends(0, flits), 1);
        assert_int_equal(lant_release_cycles(flits + 1) - lant_release_cycles(flits), 1);
    }
    assert_int_equal(lant_cut_through_cycles(&longer), lant_cut_through_cycles(&shorter));
}

enum {
    PACKETS = 400,
    PLACES = 3,
};

struct plan {
    struct lant_packet packets[PACKETS];
    struct seen seen[PACKETS];
};

/* What the sums say of a row of packets. A receiver whose places are all used takes the last flit
 * when one is free; so the flits behind it are late, too. */
static void compare(const struct plan *plan)
{
    uint64_t output_free = 0, memory_free = 0, freed[PACKETS];
    for (uint32_t i = 0; i < PACKETS; i++) {
        const struct seen *seen = &plan->seen[i];
        const struct lant_header *header = &plan->packets[i].header;
        const uint32_t flits = lant_packet_flits(header);
        const uint64_t begins = lant_send_begins(seen->given, output_free);
        uint64_t ends = lant_send_ends(begins, flits);
        if (i >= PLACES && freed[i - PLACES] > ends) {
            ends = freed[i - PLACES];
        }
        const uint64_t released = lant_release_begins(ends, memory_free);
        assert_int_equal(seen->flits, flits);
        for (uint32_t j = 0; j + 1 < flits; j++) {
            assert_int_equal(seen->flit[j], begins + j);
        }
        assert_int_equal(seen->flit[flits - 1], ends);
        assert_int_equal(seen->beats, lant_release_beats(header));
        for (uint32_t j = 0; j < seen->beats; j++) {
            assert_int_equal(seen->beat[j], released + j);
        }
        output_free = lant_send_free(begins, flits) + ends - lant_send_ends(begins, flits);
        memory_free = released + lant_release_beats(header);
        freed[i] = memory_free;
    }
}

/* Back to back, with pauses, long behind short and short behind long. */
static void test_rows(void **state)
{
    (void)state;
    static struct plan plan;
    struct prng prng;
    prng_init(&prng, 2);
    for (uint32_t round = 0; round < 20; round++) {
        struct pair pair;
        uint32_t made = 0, sent = 0, received = 0, pause = 0;
        new_pair(&pair, PLACES, false);
        while (received < PACKETS) {
            struct lant_packet *packet = &plan.packets[made];
            if (made < PACKETS && pause == 0 &&
                lant_packet_sender_ready(&pair.sender, LANT_SOURCE_RDMA) &&
                pair.sender.queues[LANT_SOURCE_RDMA].data_count < 64) {
                const uint32_t payload =
                    (uint32_t)prng_below(&prng, prng_below(&prng, 2) == 0 ? 3 : 65);
                *packet = test_packet(&prng, payload, payload > 0 && prng_below(&prng, 4) == 0);
                give(&pair, packet, &plan.seen[made++]);
                pause = (uint32_t)prng_below(&prng, 1 + round * 6);
            } else if (pause > 0) {
                pause--;
            }
            bool sends, gives;
            cycle(&pair, &plan.seen[sent % PACKETS], &plan.seen[received], &sends, &gives);
            sent += sends;
            received += gives;
            assert_true(pair.now < UINT64_C(200) * PACKETS);
        }
        compare(&plan);
    }
}

/* C2 on C4: an answer is given in one cycle, as many after its H1 as it has flits. */
static void test_answers(void **state)
{
    (void)state;
    for (uint32_t flits = 4; flits <= 5; flits++) {
        const struct lant_sender_config config = lant_answer_sender();
        struct lant_packet_sender sender;
        struct lant_answer_receiver receiver;
        struct lant_answer_arrival arrival;
        const struct lant_ends answer = {
            .header = {.type = flits == 4 ? LANT_B : LANT_R, .payload = (uint8_t)(flits - 4)}};
        lant_packet_sender_init(&sender, &config);
        lant_answer_receiver_init(&receiver, 1);
        lant_packet_sender_take(&sender, LANT_ANSWERS, &answer);
        if (flits == 5) {
            lant_packet_sender_take_data(&sender, LANT_ANSWERS, 1);
        }
        uint64_t now = 0;
        for (; !lant_answer_receiver_offer(&receiver, &arrival); now++) {
            struct lant_flit flit;
            if (lant_packet_sender_offer(&sender, &flit)) {
                lant_packet_sender_taken(&sender);
                lant_answer_receiver_take(&receiver, &flit);
            }
            lant_packet_sender_step(&sender);
            lant_answer_receiver_step(&receiver);
        }
        assert_int_equal(now, lant_send_begins(0, 0) + lant_release_cycles(flits));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_slope),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
