/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each packet is answered after the hops of its distance, sooner where a switch refuses it;
 *         faults strike as often as they should; cycles in which nothing is due can be left out.
 * Method  Times by hand for each distance and mode; counts against their expectation within three
 *         standard deviations; then traffic by chance against a flat list of records that is looked
 *         through each cycle.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "hardware/lant/fault_injector.h"
#include "hardware/lant/lfsr.h"

enum {
    H_L = LANT_FAULT_HOP_CYCLES,
    E_L = LANT_FAULT_CHECK_CYCLES,
};

static struct lant_ends packet_of(uint32_t number)
{
    return (struct lant_ends){
        .header = {.destination = 0x14805, .type = LANT_RDMA_WRITE, .payload = 64, .epoch = 2},
        .footer = {.source = 0x14403,
                   .class = LANT_CLASS_RDMA,
                   .row = 5,
                   .generation = 7,
                   .bus_id = 9,
                   .operation = 0xabc,
                   .offset = number & (LANT_OFFSETS - 1),
                   .attempt = 1}};
}

/* Sends one packet in cycle `at`; returns the cycle of its answer. */
static uint64_t send_one(struct lant_fault_injector *injector, uint64_t at,
                         struct lant_ends *answer)
{
    const struct lant_ends packet = packet_of((uint32_t)at);
    uint32_t hops;
    lant_fault_take(injector, &packet, at);
    uint64_t now = at;
    while (!lant_fault_offer(injector, answer, &hops)) {
        now = lant_fault_deadline(injector);
        assert_int_not_equal(now, LANT_NEVER);
        lant_fault_step(injector, now);
    }
    lant_fault_taken(injector);
    assert_true(lant_fault_idle(injector));
    assert_int_equal(lant_fault_deadline(injector), LANT_NEVER);
    return now;
}

/* LNI-82: to the cycle, for each distance, with and without faults; ECC is never spoilt. */
static void test_times(void **state)
{
    (void)state;
    static const uint64_t THRESHOLDS[] = {0, LANT_FAULT_ALWAYS};
    for (uint32_t mode = LANT_FAULT_E2E; mode <= LANT_FAULT_ECC; mode++) {
        for (uint32_t hops = 1; hops <= 5; hops++) {
            for (uint32_t i = 0; i < 2; i++) {
                struct lant_fault_config config = lant_fault_defaults((enum lant_fault_mode)mode);
                struct lant_fault_injector injector;
                struct lant_ends answer;
                lant_fault_fixed(&config, hops);
                config.threshold = THRESHOLDS[i];
                lant_fault_init(&injector, &config);
                const uint64_t taken = send_one(&injector, 1000, &answer) - 1000;
                const uint32_t check = mode == LANT_FAULT_E2E ? 0 : E_L;
                const uint32_t made = mode == LANT_FAULT_LLV && i == 1 ? 1 : hops;
                assert_int_equal(taken, made * (2 * H_L + check));
                assert_int_equal(answer.footer.response, i == 0 || mode == LANT_FAULT_ECC
                                                             ? LANT_OKAY
                                                         : mode == LANT_FAULT_LLV ? LANT_NACK_LINK
                                                                                  : LANT_NACK_CRC);
            }
        }
    }
}

/* The answer goes back to the packet's sender, and repeats the fields that it must. */
static void test_answer(void **state)
{
    (void)state;
    struct lant_fault_config config = lant_fault_defaults(LANT_FAULT_E2E);
    struct lant_fault_injector injector;
    struct lant_ends answer;
    lant_fault_init(&injector, &config);
    (void)send_one(&injector, 77, &answer);
    assert_int_equal(answer.header.type, LANT_RDMA_ACK);
    assert_int_equal(answer.header.payload, 0);
    assert_int_equal(answer.header.destination, 0x14403);
    assert_int_equal(answer.footer.source, 0x14805);
    assert_int_equal(answer.footer.class, LANT_CLASS_RDMA);
    assert_int_equal(answer.footer.row, 5);
    assert_int_equal(answer.footer.generation, 7);
    assert_int_equal(answer.footer.bus_id, 9);
    assert_int_equal(answer.footer.operation, 0xabc);
    assert_int_equal(answer.footer.offset, 77);
    assert_int_equal(answer.footer.attempt, 1);
    static const uint8_t TYPES[][2] = {{LANT_AR, LANT_R},
                                       {LANT_AW, LANT_B},
                                       {LANT_COMPLETION_NOTIFICATION, LANT_RDMA_ACK},
                                       {LANT_RDMA_UNREGISTERED, LANT_RDMA_ACK}};
    for (uint32_t i = 0; i < COUNT_OF(TYPES); i++) {
        struct lant_ends request = {.header.type = TYPES[i][0]};
        const struct lant_ends good = lant_answer(&request, 1, LANT_DECERR);
        const struct lant_ends bad = lant_answer(&request, 1, LANT_NACK_CRC);
        assert_int_equal(good.header.type, TYPES[i][1]);
        assert_int_equal(good.header.payload, TYPES[i][0] == LANT_AR);
        assert_int_equal(bad.header.payload, 0);
    }
}

/* LNI-82: a packet that is refused behind x hops is back after 2x of them, at any distance. */
static void test_shortcuts(void **state)
{
    (void)state;
    struct lant_fault_config config = lant_fault_defaults(LANT_FAULT_LLV);
    struct lant_fault_injector injector;
    lant_fault_fixed(&config, 5);
    config.threshold = LANT_FAULT_ALWAYS / 4;
    config.answers_are_safe = true;
    lant_fault_init(&injector, &config);
    uint32_t behind[6] = {0};
    for (uint64_t at = 0; at < 200 * 3000; at += 3000) {
        struct lant_ends answer;
        const uint64_t taken = send_one(&injector, at, &answer) - at;
        assert_int_equal(taken % (2 * H_L + E_L), 0);
        const uint64_t made = taken / (2 * H_L + E_L);
        assert_in_range(made, 1, 5);
        assert_true(made == 5 || answer.footer.response == LANT_NACK_LINK);
        behind[made] += answer.footer.response == LANT_NACK_LINK;
    }
    uint32_t shortcuts = 0;
    for (uint32_t made = 1; made <= 5; made++) {
        assert_true(behind[made] > 5);
        shortcuts += made < 5 ? behind[made] : 0;
    }
    assert_int_equal(injector.counters.shortcuts, shortcuts);
}

/* With E_L on both ways. */
static void test_checked_answers(void **state)
{
    (void)state;
    struct lant_fault_config config = lant_fault_defaults(LANT_FAULT_LLV);
    struct lant_fault_injector injector;
    struct lant_ends answer;
    lant_fault_fixed(&config, 4);
    config.checks_answers = true;
    lant_fault_init(&injector, &config);
    assert_int_equal(send_one(&injector, 0, &answer), 4 * 2 * (H_L + E_L));
}

/* Two come to A_2 in one cycle, one back from 3 hops, one turning: the former goes first (our
 * choice), the latter a cycle later. */
static void test_collision(void **state)
{
    (void)state;
    struct lant_fault_config config = lant_fault_defaults(LANT_FAULT_E2E);
    struct lant_fault_injector injector;
    struct lant_ends packet = packet_of(0), answer;
    lant_fault_fixed(&config, 3);
    lant_fault_init(&injector, &config);
    lant_fault_take(&injector, &packet, 0);
    for (uint64_t now = 0, answers = 0; answers < 2; now++) {
        uint32_t hops;
        if (now == 2 * H_L) {
            lant_fault_fixed(&injector.config, 2);
            lant_fault_take(&injector, &packet, now);
        }
        lant_fault_step(&injector, now);
        if (lant_fault_offer(&injector, &answer, &hops)) {
            assert_int_equal(hops, answers == 0 ? 3 : 2);
            assert_int_equal(now, answers == 0 ? 6 * H_L : 6 * H_L + 1);
            lant_fault_taken(&injector);
            answers++;
        }
    }
    assert_int_equal(injector.counters.collisions, 1);
}

/* `hits` of `tries` are within three standard deviations of `part` / `whole`. */
static void assert_share(uint64_t hits, uint64_t tries, double share)
{
    const double mean = (double)tries * share, off = (double)hits - mean;
    assert_true(off * off <= 9 * mean * (1 - share));
}

static void drain(struct lant_fault_injector *injector)
{
    while (!lant_fault_idle(injector)) {
        struct lant_ends answer;
        uint32_t hops;
        lant_fault_step(injector, lant_fault_deadline(injector));
        while (lant_fault_offer(injector, &answer, &hops)) {
            lant_fault_taken(injector);
        }
    }
}

/* LNI-81: distances come as 8:4:2:1 and 1:2:4:8, from several seeds, and again from the same. */
static void test_distances(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 5; seed++) {
        for (uint32_t remote = 0; remote < 2; remote++) {
            struct lant_fault_config config = lant_fault_defaults(LANT_FAULT_E2E);
            struct lant_fault_injector injector, again;
            if (remote) {
                lant_fault_remote(&config);
            } else {
                lant_fault_local(&config);
            }
            config.seed = seed * 0x9e3779b9;
            lant_fault_init(&injector, &config);
            lant_fault_init(&again, &config);
            const struct lant_ends packet = packet_of(0);
            for (uint64_t i = 0; i < 15000; i++) {
                lant_fault_take(&injector, &packet, i * 2000);
                lant_fault_take(&again, &packet, i * 2000);
                drain(&injector);
                drain(&again);
            }
            assert_int_equal(injector.counters.hops[0] + injector.counters.hops[1], 0);
            for (uint32_t hops = 2; hops <= 5; hops++) {
                const double weight = remote ? 1 << (hops - 2) : 1 << (5 - hops);
                assert_share(injector.counters.hops[hops], 15000, weight / 15);
                assert_int_equal(injector.counters.hops[hops], again.counters.hops[hops]);
            }
        }
    }
}

/* E2E: a NACK unless nothing strikes on any hop there or back, or there only. LNI-A65's formula. */
static void test_fault_rate(void **state)
{
    (void)state;
    for (uint32_t hops = 2; hops <= 5; hops++) {
        for (uint32_t safe = 0; safe < 2; safe++) {
            struct lant_fault_config config = lant_fault_defaults(LANT_FAULT_E2E);
            struct lant_fault_injector injector;
            const struct lant_ends packet = packet_of(0);
            double good = 1;
            lant_fault_fixed(&config, hops);
            config.threshold = LANT_FAULT_ALWAYS / 100;
            config.answers_are_safe = safe;
            lant_fault_init(&injector, &config);
            for (uint64_t i = 0; i < 20000; i++) {
                lant_fault_take(&injector, &packet, i * 2000);
                drain(&injector);
            }
            for (uint32_t i = 0; i < (safe ? hops : 2 * hops); i++) {
                good *= 0.99;
            }
            assert_share(injector.counters.nacks, 20000, 1 - good);
            assert_share(injector.counters.faults_forward, 20000 * hops, 0.01);
            assert_true(safe == (injector.counters.faults_back == 0));
        }
    }
}

/* -- A model ------------------------------------------------------------------------------------*/

/* Where a record is: 0..4 is P_0..P_4, 10..15 is A_0..A_5. */
struct model_record {
    uint32_t number, stage, hops;
    bool nack, judged;
    uint64_t due;
};

struct model {
    struct lant_fault_config config;
    uint32_t lfsr, count;
    struct model_record records[600]; /* In the order in which they came to their stages. */
};

static struct model_record *first_at(struct model *model, uint32_t stage)
{
    for (uint32_t i = 0; i < model->count; i++) {
        if (model->records[i].stage == stage) {
            return &model->records[i];
        }
    }
    return NULL;
}

static struct model_record *due_at(struct model *model, uint32_t stage, uint64_t now)
{
    struct model_record *record = first_at(model, stage);
    return record != NULL && record->due <= now ? record : NULL;
}

static bool room_at(const struct model *model, uint32_t stage)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->count; i++) {
        count += model->records[i].stage == stage;
    }
    return count < model->config.places;
}

static bool strikes(struct model *model)
{
    return model->config.mode != LANT_FAULT_ECC &&
           lant_lfsr_word(&model->lfsr) < model->config.threshold;
}

static void remove_record(struct model *model, struct model_record *record)
{
    for (; record + 1 < model->records + model->count; record++) {
        record[0] = record[1];
    }
    model->count--;
}

static void enter_stage(struct model *model, struct model_record *record, uint32_t stage,
                        uint64_t due)
{
    struct model_record moved = *record;
    remove_record(model, record);
    moved.stage = stage;
    moved.judged = false;
    moved.due = due;
    model->records[model->count++] = moved;
}

static bool model_turns(const struct model *model, const struct model_record *record)
{
    return record->stage + 1 == record->hops ||
           (record->nack && model->config.mode == LANT_FAULT_LLV);
}

static void model_step(struct model *model, uint64_t now)
{
    const uint64_t back = H_L + (model->config.checks_answers ? model->config.check_cycles : 0);
    bool moved[5] = {false};
    for (uint32_t x = 0; x < 5; x++) {
        struct model_record *record = due_at(model, x, now);
        if (record != NULL && !record->judged) {
            record->nack |= strikes(model);
            record->judged = true;
        }
    }
    for (uint32_t x = 0; x < 6; x++) {
        struct model_record *from_a = x < 5 ? due_at(model, 10 + x + 1, now) : NULL;
        struct model_record *from_p = x > 0 ? due_at(model, x - 1, now) : NULL;
        if (!room_at(model, 10 + x)) {
            continue;
        }
        if (from_a != NULL) {
            from_a->nack |= !model->config.answers_are_safe && strikes(model);
            enter_stage(model, from_a, 10 + x, x == 0 ? now : now + back);
        } else if (from_p != NULL && model_turns(model, from_p)) {
            enter_stage(model, from_p, 10 + x, now + back);
            moved[x - 1] = true;
        }
    }
    for (uint32_t x = 4; x-- > 0;) {
        struct model_record *record = due_at(model, x, now);
        if (record != NULL && !moved[x] && !model_turns(model, record) && room_at(model, x + 1)) {
            enter_stage(model, record, x + 1, now + H_L + model->config.check_cycles);
        }
    }
}

static void model_take(struct model *model, uint32_t number, uint64_t now)
{
    uint32_t weight = 0, hops = 1;
    for (uint32_t i = 1; i <= 5; i++) {
        weight += model->config.weights[i];
    }
    uint32_t left = (uint32_t)((uint64_t)lant_lfsr_word(&model->lfsr) * weight >> 32);
    for (; left >= model->config.weights[hops]; hops++) {
        left -= model->config.weights[hops];
    }
    model->records[model->count++] = (struct model_record){
        .number = number, .hops = hops, .due = now + H_L + model->config.check_cycles};
}

/* The three see the same: an injector stepped each cycle, one stepped when it asks for it, and the
 * model. */
struct three {
    struct lant_fault_injector always, asked;
    struct model model;
};

static void take_answer(struct three *three)
{
    struct lant_ends one, other;
    uint32_t hops, other_hops;
    struct model_record *record = first_at(&three->model, 10);
    const bool any = lant_fault_offer(&three->always, &one, &hops);
    assert_int_equal(any, lant_fault_offer(&three->asked, &other, &other_hops));
    assert_int_equal(any, record != NULL);
    if (!any) {
        return;
    }
    assert_int_equal(one.footer.offset, other.footer.offset);
    assert_int_equal(one.footer.response, other.footer.response);
    assert_int_equal(one.footer.offset, record->number);
    assert_int_equal(hops, record->hops);
    assert_int_equal(lant_response_is_nack((enum lant_response)one.footer.response), record->nack);
    lant_fault_taken(&three->always);
    lant_fault_taken(&three->asked);
    remove_record(&three->model, record);
}

static void random_config(struct lant_fault_config *config, struct prng *prng)
{
    *config = lant_fault_defaults((enum lant_fault_mode)prng_below(prng, 3));
    if (prng_below(prng, 2) == 0) {
        lant_fault_remote(config);
    }
    config->checks_answers = prng_below(prng, 3) == 0;
    config->answers_are_safe = prng_below(prng, 3) == 0;
    config->places = (uint8_t)(prng_below(prng, 2) == 0 ? 1 + prng_below(prng, 3) : 16);
    config->threshold = LANT_FAULT_ALWAYS / 10 * prng_below(prng, 4);
    config->seed = (uint32_t)prng_next(prng) | 1;
}

static void test_random(void **state)
{
    (void)state;
    static struct three three;
    uint64_t collisions = 0, answers = 0;
    struct prng prng;
    prng_init(&prng, 7);
    for (uint32_t round = 0; round < 40; round++) {
        random_config(&three.model.config, &prng);
        three.model.count = 0;
        three.model.lfsr = three.model.config.seed;
        lant_fault_init(&three.always, &three.model.config);
        lant_fault_init(&three.asked, &three.model.config);
        const uint32_t gap = 1 + (uint32_t)prng_below(&prng, 30);
        const uint32_t stall = (uint32_t)prng_below(&prng, 3) * 300000;
        for (uint64_t now = 0; now < 8000; now++) {
            const bool sends = now < 5000 && prng_below(&prng, gap) == 0;
            assert_int_equal(lant_fault_ready(&three.always), room_at(&three.model, 0));
            if (sends && lant_fault_ready(&three.always)) {
                const struct lant_ends packet = packet_of((uint32_t)now);
                lant_fault_take(&three.always, &packet, now);
                lant_fault_take(&three.asked, &packet, now);
                model_take(&three.model, (uint32_t)now, now);
            }
            lant_fault_step(&three.always, now);
            if (now >= lant_fault_deadline(&three.asked)) {
                lant_fault_step(&three.asked, now);
            }
            model_step(&three.model, now);
            if (!prng_chance(&prng, stall)) {
                take_answer(&three);
            }
        }
        collisions += three.always.counters.collisions;
        answers += three.always.counters.answers;
        assert_int_equal(three.always.counters.collisions == 0,
                         three.asked.counters.collisions == 0);
    }
    assert_in_range(collisions, 1000, UINT64_MAX);
    assert_in_range(answers, 5000, UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),      cmocka_unit_test(test_answer),
        cmocka_unit_test(test_shortcuts),  cmocka_unit_test(test_checked_answers),
        cmocka_unit_test(test_collision),  cmocka_unit_test(test_distances),
        cmocka_unit_test(test_fault_rate), cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
