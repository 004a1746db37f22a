/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Whatever a network does to packets of many blocks, the receiver answers as a simple model
 *         does, and memory, contexts and counters end as the model's.
 * Method  Worlds by seed: several sources and transactions, instances one behind the other across
 *         the wrap of sequences; packets in any order, lost, doubled and damaged; a memory that
 *         refuses; small tables. The model has a plain array of transactions without sets, and
 *         counts how many are in a set. EXA-32 to EXA-38, EXA-42, EXA-43, EXA-57, EXA-71.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "hardware/exanest/receiver_rig.h"

#define SOURCES      3u
#define TIDS         6u
#define POOL_MAX     160u
#define MODEL_MAX    (SOURCES * TIDS + 8)
#define EXPECTED_MAX 256u
#define WORLDS       400u
#define PACKETS      400u

enum damage {
    DAMAGE_NONE,
    DAMAGE_HEADER,
    DAMAGE_PAYLOAD,
    DAMAGE_FOOTER,
    DAMAGE_SHORT,
    DAMAGE_LONG,
    DAMAGE_CUT,
    DAMAGE_COUNT,
};

struct model_context {
    bool used, nacked, notify, control, has_first, has_last;
    bool lines[64];
    uint32_t first, last;
    uint32_t source, tid, sequence;
    uint16_t pdid;
    struct exanest_control data;
};

struct expected {
    uint8_t type, status;
    bool to_packetizer;
    uint32_t source, tid, sequence;
    uint16_t pdid;
    struct exanest_control data;
};

struct sender {
    uint32_t source, tid, sequence;
    uint64_t va;
    uint32_t bytes;
    bool notify;
};

struct world {
    struct rig *rig;
    struct prng prng;
    struct sender senders[SOURCES][TIDS];
    struct test_packet pool[POOL_MAX];
    uint32_t pool_count;
    struct model_context contexts[MODEL_MAX];
    struct expected expected[EXPECTED_MAX];
    uint32_t expected_head, expected_tail;
    uint64_t meanings[EXANEST_MEANING_COUNT], responses[EXANEST_STATUS_COUNT];
    uint64_t dropped, unexpected, notified, notify_failed, damages[DAMAGE_COUNT];
    uint8_t memory[RIG_DOMAINS][RIG_BYTES];
};

static uint32_t below(struct world *world, uint32_t bound)
{
    return (uint32_t)prng_below(&world->prng, bound);
}

/* -- The model ----------------------------------------------------------------------------------*/

static uint32_t model_set(const struct world *world, uint32_t source, uint32_t tid)
{
    const uint32_t sets = world->rig->receiver.parameters.contexts.sets;
    uint32_t set = 0, bits = 0;
    while (1u << bits < sets) {
        bits++;
    }
    for (uint32_t bit = 0; bit < bits; bit++) {
        uint32_t parity = (tid >> bit & 1) ^ (tid >> (bit + bits) & 1);
        for (uint32_t at = bit; at < EXANEST_COORDINATE_BITS; at += bits) {
            parity ^= source >> at & 1;
        }
        set |= parity << bit;
    }
    return set;
}

static struct model_context *model_find(struct world *world, uint32_t source, uint32_t tid)
{
    for (uint32_t i = 0; i < MODEL_MAX; i++) {
        struct model_context *context = &world->contexts[i];
        if (context->used && context->source == source && context->tid == tid) {
            return context;
        }
    }
    return NULL;
}

static struct model_context *model_begin(struct world *world, const struct exanest_footer *footer)
{
    uint32_t in_set = 0;
    struct model_context *unused = NULL;
    for (uint32_t i = 0; i < MODEL_MAX; i++) {
        const struct model_context *context = &world->contexts[i];
        in_set += context->used && model_set(world, context->source, context->tid) ==
                                       model_set(world, footer->source, footer->tid);
        unused = context->used ? unused : &world->contexts[i];
    }
    if (in_set == world->rig->receiver.parameters.contexts.ways) {
        return NULL;
    }
    assert_non_null(unused);
    *unused = (struct model_context){
        .used = true, .source = footer->source, .tid = footer->tid, .sequence = footer->sequence};
    return unused;
}

static void expect(struct world *world, struct expected expected)
{
    assert_true(world->expected_tail - world->expected_head < EXPECTED_MAX);
    world->expected[world->expected_tail++ % EXPECTED_MAX] = expected;
}

static void expect_response(struct world *world, const struct test_packet *packet, uint16_t pdid,
                            uint32_t status)
{
    world->responses[status]++;
    expect(world, (struct expected){.type = EXANEST_ACKNOWLEDGEMENT,
                                    .status = (uint8_t)status,
                                    .source = packet->footer.source,
                                    .tid = packet->footer.tid,
                                    .sequence = packet->footer.sequence,
                                    .pdid = pdid});
}

static bool model_complete(const struct model_context *context)
{
    if (!context->has_first || !context->has_last || (context->notify && !context->control)) {
        return false;
    }
    for (uint32_t line = context->first; line <= context->last; line++) {
        if (!context->lines[line]) {
            return false;
        }
    }
    return true;
}

static enum exanest_meaning model_mark(struct model_context *context,
                                       const struct test_packet *packet)
{
    if (packet->header.type == EXANEST_CONTROL) {
        if (context->control) {
            return EXANEST_DUPLICATE;
        }
        const struct exanest_word words[2] = {packet->beats[1].word, packet->beats[2].word};
        context->control = true;
        context->data = exanest_control_decode(words);
        context->pdid = packet->header.pdid;
    } else {
        const uint32_t line = packet->header.target.va >> 8 & 63;
        if (context->lines[line]) {
            return EXANEST_DUPLICATE;
        }
        context->lines[line] = true;
        context->notify |= packet->footer.notify;
        if (packet->footer.first) {
            context->has_first = true;
            context->first = line;
        }
        if (packet->footer.last) {
            context->has_last = true;
            context->last = line;
        }
    }
    return model_complete(context) ? EXANEST_COMPLETE : EXANEST_MARKED;
}

static enum exanest_meaning model_transaction(struct world *world, const struct test_packet *packet,
                                              uint16_t pdid, uint32_t error)
{
    const struct exanest_footer *footer = &packet->footer;
    struct model_context *context = model_find(world, footer->source, footer->tid);
    if (context == NULL) {
        context = model_begin(world, footer);
        if (context == NULL) {
            expect_response(world, packet, pdid,
                            error != EXANEST_ACK ? error : EXANEST_NACK_NO_CONTEXT);
            return error != EXANEST_ACK ? EXANEST_REFUSED : EXANEST_NO_CONTEXT;
        }
    }
    if (context->sequence != footer->sequence) {
        const uint32_t ahead = (footer->sequence + 16384u - context->sequence) % 16384u;
        if (ahead >= 8192) {
            return EXANEST_OLDER;
        }
        *context = (struct model_context){.used = true,
                                          .source = footer->source,
                                          .tid = footer->tid,
                                          .sequence = footer->sequence};
    }
    if (error != EXANEST_ACK) {
        if (context->nacked) {
            return EXANEST_REFUSED_BEFORE;
        }
        context->nacked = true;
        expect_response(world, packet, pdid, error);
        return EXANEST_REFUSED;
    }
    const enum exanest_meaning meaning = model_mark(context, packet);
    if (meaning == EXANEST_COMPLETE) {
        expect_response(world, packet, pdid, EXANEST_ACK);
        if (context->notify) {
            expect(world, (struct expected){.type = EXANEST_NOTIFICATION,
                                            .source = RIG_COORDINATE,
                                            .tid = footer->tid,
                                            .sequence = footer->sequence,
                                            .pdid = context->pdid,
                                            .data = context->data});
        }
        context->used = false;
    }
    return meaning;
}

/* The words that the header announces are written as they come, if the memory agrees. True: there
 * were some. */
static bool model_memory(struct world *world, const struct test_packet *packet,
                         enum exanest_axi_response response)
{
    const struct exanest_header *header = &packet->header;
    const uint64_t line = header->target.va / 16 * 16;
    const uint32_t words = exanest_payload_words(header->target.va, header->bytes);
    uint32_t seen = 0;
    for (uint32_t i = 0; i < packet->count && seen < words; i++) {
        if (packet->beats[i].part != EXANEST_PAYLOAD) {
            continue;
        }
        for (uint64_t byte = 0; byte < 16 && response == EXANEST_AXI_OKAY; byte++) {
            const uint64_t at = line + 16 * (uint64_t)seen + byte;
            if (at >= header->target.va && at < header->target.va + header->bytes) {
                world->memory[header->pdid][at] = ((const uint8_t *)&packet->beats[i].word)[byte];
            }
        }
        seen++;
    }
    return seen > 0;
}

static uint32_t model_error(enum damage damage, bool burst, enum exanest_axi_response response)
{
    if (damage != DAMAGE_NONE) {
        return EXANEST_NACK_CRC;
    }
    return !burst || response == EXANEST_AXI_OKAY ? EXANEST_ACK
           : response == EXANEST_AXI_DECODE_ERROR ? EXANEST_NACK_DECODE
                                                  : EXANEST_NACK_PAGE_FAULT;
}

static void model_packet(struct world *world, const struct test_packet *packet, enum damage damage,
                         enum exanest_axi_response response)
{
    const struct exanest_header *header = &packet->header;
    const bool writes = header->type == EXANEST_WRITE || header->type == EXANEST_NOTIFICATION;
    bool burst = false;
    if (writes && damage != DAMAGE_HEADER) {
        burst = model_memory(world, packet, response);
        if (burst) {
            rig_plan(world->rig, response);
        }
    }
    world->damages[damage]++;
    if (damage == DAMAGE_CUT || damage == DAMAGE_FOOTER) {
        world->dropped++;
        return;
    }
    const uint32_t error = model_error(damage, burst, response);
    if (damage == DAMAGE_HEADER) {
        world->meanings[model_transaction(world, packet, 0, error)]++;
    } else if (header->type == EXANEST_NOTIFICATION) {
        world->notified += error == EXANEST_ACK;
        world->notify_failed += error != EXANEST_ACK;
    } else if (header->type == EXANEST_ZDMA_WRITE) {
        world->unexpected++;
    } else if (header->type == EXANEST_WRITE && header->priority) {
        expect(world, (struct expected){.type = EXANEST_ACKNOWLEDGEMENT,
                                        .to_packetizer = true,
                                        .status = (uint8_t)error,
                                        .source = packet->footer.source,
                                        .tid = packet->footer.tid,
                                        .pdid = header->pdid});
    } else {
        world->meanings[model_transaction(world, packet, header->pdid, error)]++;
    }
}

/* -- Outputs ------------------------------------------------------------------------------------*/

static void check_notification(const struct test_sent *reply, const struct expected *expected)
{
    assert_int_equal(reply->header.target.coordinate, expected->data.address.coordinate);
    assert_int_equal(reply->header.target.va, expected->data.address.va);
    assert_memory_equal((const uint8_t *)reply->payload + reply->header.target.va % 16,
                        expected->data.data, 16);
}

static void check_replies(struct world *world)
{
    for (uint32_t i = 0; i < world->rig->reply_count; i++) {
        assert_true(world->expected_head != world->expected_tail);
        const struct expected *expected = &world->expected[world->expected_head++ % EXPECTED_MAX];
        const struct test_sent *reply = &world->rig->replies[i];
        assert_int_equal(reply->header.type, expected->type);
        assert_int_equal(reply->header.pdid, expected->pdid);
        if (expected->to_packetizer) {
            assert_false(reply->header.has_footer);
            assert_int_equal(reply->header.aux, exanest_aux(expected->status, expected->tid));
            continue;
        }
        assert_int_equal(reply->footer.tid, expected->tid);
        assert_int_equal(reply->footer.sequence, expected->sequence);
        assert_int_equal(reply->footer.status, expected->status);
        if (expected->type == EXANEST_NOTIFICATION) {
            check_notification(reply, expected);
        } else {
            assert_int_equal(reply->header.target.coordinate, expected->source);
        }
    }
    world->rig->reply_count = 0;
}

static void check_contexts(struct world *world)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < EXANEST_CONTEXTS_MAX; i++) {
        const struct exanest_context *context = exanest_receiver_context(&world->rig->receiver, i);
        if (!context->valid) {
            continue;
        }
        const struct model_context *model = model_find(world, context->source, context->tid);
        assert_non_null(model);
        assert_int_equal(context->sequence, model->sequence);
        assert_int_equal(context->nacked, model->nacked);
        assert_int_equal(context->notify, model->notify);
        assert_int_equal(context->control_seen, model->control);
        for (uint32_t line = 0; line < 64; line++) {
            assert_int_equal(context->bitmap >> line & 1, model->lines[line]);
        }
        used++;
    }
    uint32_t expected = 0;
    for (uint32_t i = 0; i < MODEL_MAX; i++) {
        expected += world->contexts[i].used;
    }
    assert_int_equal(used, expected);
}

/* EXA-71 */
static void check_end(struct world *world)
{
    struct rig *rig = world->rig;
    assert_true(rig_drain(rig));
    check_replies(world);
    assert_int_equal(world->expected_head, world->expected_tail);
    assert_int_equal(rig->planned_head, rig->planned_tail);
    assert_int_equal(rig->outside, 0);
    assert_false(rig->bad_reply);
    check_contexts(world);
    assert_memory_equal(rig->memory, world->memory, sizeof(world->memory));
    const struct exanest_receiver_counters *counters = &rig->receiver.counters;
    assert_memory_equal(counters->meanings, world->meanings, sizeof(world->meanings));
    assert_memory_equal(counters->responses, world->responses, sizeof(world->responses));
    assert_int_equal(counters->dropped, world->dropped);
    assert_int_equal(counters->unexpected, world->unexpected);
    assert_int_equal(counters->notified, world->notified);
    assert_int_equal(counters->notify_failed, world->notify_failed);
}

/* -- Inputs -------------------------------------------------------------------------------------*/

static struct exanest_footer footer_of(const struct sender *sender)
{
    return (struct exanest_footer){.tid = (uint16_t)sender->tid,
                                   .source = sender->source,
                                   .sequence = (uint16_t)sender->sequence,
                                   .notify = sender->notify};
}

static void put_data(struct world *world, const struct sender *sender)
{
    uint8_t payload[EXANEST_PAYLOAD_BYTES_MAX];
    const uint64_t end = sender->va + sender->bytes;
    for (uint64_t at = sender->va; at < end && world->pool_count < POOL_MAX;) {
        const uint64_t line_end = (at / 256 + 1) * 256;
        const uint64_t to = line_end < end ? line_end : end;
        for (uint32_t i = 0; i < sizeof(payload); i++) {
            payload[i] = (uint8_t)prng_next(&world->prng);
        }
        const struct exanest_header header = {.target = {.va = at},
                                              .pdid = (uint16_t)below(world, RIG_DOMAINS),
                                              .type = EXANEST_WRITE,
                                              .bytes = (uint16_t)(to - at),
                                              .has_footer = true};
        struct exanest_footer footer = footer_of(sender);
        footer.first = at == sender->va;
        footer.last = to == end;
        world->pool[world->pool_count++] = test_packet(&header, &footer, payload);
        at = to;
    }
}

static void put_control(struct world *world, const struct sender *sender)
{
    const struct exanest_control control = {
        .address = {.coordinate = below(world, 1u << EXANEST_COORDINATE_BITS),
                    .va = below(world, 1u << 20)},
        .data = {prng_next(&world->prng), prng_next(&world->prng)},
        .tid = (uint16_t)sender->tid,
        .sequence = (uint16_t)sender->sequence};
    struct exanest_word words[2];
    exanest_control_encode(&control, words);
    const struct exanest_header header = {.target = {.va = sender->va & ~UINT64_C(15)},
                                          .pdid = (uint16_t)below(world, RIG_DOMAINS),
                                          .type = EXANEST_CONTROL,
                                          .bytes = sizeof(words),
                                          .has_footer = true,
                                          .priority = true};
    const struct exanest_footer footer = footer_of(sender);
    if (world->pool_count < POOL_MAX) {
        world->pool[world->pool_count++] = test_packet(&header, &footer, words);
    }
}

/* A packetizer's message, a notification, or what does not belong here. */
static void put_other(struct world *world, uint8_t type)
{
    uint8_t payload[EXANEST_PAYLOAD_BYTES_MAX] = {(uint8_t)below(world, 256)};
    const struct exanest_header header = {.target = {.va = below(world, RIG_BYTES - 256)},
                                          .pdid = (uint16_t)below(world, RIG_DOMAINS),
                                          .type = type,
                                          .bytes = (uint16_t)below(world, 200),
                                          .has_footer = true,
                                          .priority = true};
    struct exanest_footer footer = footer_of(&world->senders[below(world, SOURCES)][0]);
    footer.tid = (uint16_t)below(world, EXANEST_TIDS);
    if (world->pool_count < POOL_MAX) {
        world->pool[world->pool_count++] = test_packet(&header, &footer, payload);
    }
}

/* The next instance of a block, or another block of the same TID. */
static void put_instance(struct world *world)
{
    struct sender *sender = &world->senders[below(world, SOURCES)][below(world, TIDS)];
    if (sender->bytes == 0 || below(world, 2) == 0) {
        const uint32_t bytes = 1 + below(world, below(world, 10) == 0 ? 16384 : 900);
        const uint32_t offset = below(world, 16384 - bytes + 1);
        sender->va = 16384 * (uint64_t)below(world, RIG_BYTES / 16384) + offset;
        sender->bytes = bytes;
        sender->notify = below(world, 3) == 0;
    }
    sender->sequence = (sender->sequence + 1) % EXANEST_SEQUENCES;
    put_data(world, sender);
    if (sender->notify) {
        put_control(world, sender);
    }
    static const uint8_t others[] = {EXANEST_WRITE, EXANEST_NOTIFICATION, EXANEST_ZDMA_WRITE};
    put_other(world, others[below(world, COUNT_OF(others))]);
}

static enum damage do_damage(struct world *world, struct test_packet *packet)
{
    const enum damage damage = (enum damage)(1 + below(world, DAMAGE_COUNT - 1));
    const uint32_t words = packet->count - 2;
    if (words == 0 && damage != DAMAGE_HEADER && damage != DAMAGE_FOOTER) {
        return DAMAGE_NONE;
    }
    switch (damage) {
    case DAMAGE_HEADER: test_flip(packet, 0, below(world, 128)); break;
    case DAMAGE_PAYLOAD: test_flip(packet, 1 + below(world, words), below(world, 128)); break;
    case DAMAGE_FOOTER: test_flip(packet, packet->count - 1, 32 + below(world, 96)); break;
    case DAMAGE_SHORT: test_remove(packet, 1 + below(world, words)); break;
    case DAMAGE_LONG:
        test_insert(packet, 1 + below(world, words + 1), packet->beats[1 + below(world, words)]);
        break;
    case DAMAGE_CUT:
        packet->count -= 1 + below(world, words + 1);
        packet->beats[packet->count - 1].last = below(world, 2) == 0;
        break;
    case DAMAGE_NONE:
    case DAMAGE_COUNT: UNREACHABLE("no damage");
    }
    return damage;
}

static void send_one(struct world *world)
{
    const uint32_t at = below(world, world->pool_count);
    struct test_packet packet = world->pool[at];
    if (below(world, 10) != 0) { /* Else it comes once more. */
        world->pool[at] = world->pool[--world->pool_count];
    }
    if (below(world, 20) == 0) {
        return; /* Lost. */
    }
    const enum damage damage = below(world, 8) == 0 ? do_damage(world, &packet) : DAMAGE_NONE;
    static const enum exanest_axi_response responses[] = {EXANEST_AXI_SLAVE_ERROR,
                                                          EXANEST_AXI_DECODE_ERROR};
    const enum exanest_axi_response response =
        below(world, 20) == 0 ? responses[below(world, 2)] : EXANEST_AXI_OKAY;
    model_packet(world, &packet, damage, response);
    assert_true(rig_send(world->rig, &packet));
    check_replies(world);
}

static struct world *new_world(uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    CHECK(world != NULL);
    prng_init(&world->prng, seed);
    struct exanest_receiver_parameters parameters = exanest_receiver_defaults(RIG_COORDINATE);
    parameters.contexts.sets = (uint16_t)(1u << below(world, 5));
    parameters.contexts.ways = (uint16_t)(1 + below(world, 6));
    parameters.arrivals = (uint8_t)(2 + below(world, 20));
    parameters.write_words = (uint8_t)(2 + below(world, 15));
    parameters.replies = (uint8_t)(2 + below(world, 7));
    parameters.write_cycles = (uint16_t)below(world, 4);
    parameters.response_cycles = (uint16_t)below(world, 6);
    world->rig = rig_new(&parameters, seed + 1000000);
    world->rig->stalls = below(world, 2);
    world->rig->memory_cycles = below(world, 80);
    for (uint32_t s = 0; s < SOURCES; s++) {
        const uint32_t source = below(world, 1u << EXANEST_COORDINATE_BITS);
        for (uint32_t t = 0; t < TIDS; t++) {
            world->senders[s][t] =
                (struct sender){.source = source,
                                .tid = t * 171,
                                .sequence = EXANEST_SEQUENCES - 1 - below(world, 9)};
        }
    }
    return world;
}

static void run(struct world *world)
{
    for (uint32_t i = 0; i < PACKETS; i++) {
        while (world->pool_count < 10) {
            put_instance(world);
        }
        send_one(world);
    }
    /* A whole packet ends one that was cut off. */
    world->pool_count = 0;
    put_other(world, EXANEST_NOTIFICATION);
    model_packet(world, &world->pool[0], DAMAGE_NONE, EXANEST_AXI_OKAY);
    assert_true(rig_send(world->rig, &world->pool[0]));
    check_end(world);
}

static void test_worlds(void **state)
{
    (void)state;
    uint64_t meanings[EXANEST_MEANING_COUNT] = {0}, damages[DAMAGE_COUNT] = {0};
    for (uint64_t seed = 1; seed <= WORLDS; seed++) {
        struct world *world = new_world(seed);
        run(world);
        for (uint32_t i = 0; i < EXANEST_MEANING_COUNT; i++) {
            meanings[i] += world->meanings[i];
        }
        for (uint32_t i = 0; i < DAMAGE_COUNT; i++) {
            damages[i] += world->damages[i];
        }
        free(world->rig);
        free(world);
    }
    for (uint32_t i = 0; i < EXANEST_MEANING_COUNT; i++) {
        assert_true(meanings[i] > 100); /* If not, the worlds show nothing of it. */
    }
    for (uint32_t i = 0; i < DAMAGE_COUNT; i++) {
        assert_true(damages[i] > 100);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_worlds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
