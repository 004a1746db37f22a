/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/lant/fault_injector.h"

#include "hardware/lant/lfsr.h"

/* -- Buffers ------------------------------------------------------------------------------------*/

/* The ring has as many places as are configured: fewer to keep in reach. */
static uint32_t place_of(const struct lant_fault_injector *injector, uint32_t head, uint32_t index)
{
    const uint32_t place = head + index, places = injector->config.places;
    return place >= places ? place - places : place;
}

/* The record whose hop is over; NULL: none. */
static struct lant_fault_record *due_head(struct lant_fault_buffer *buffer, uint64_t now)
{
    return buffer->due <= now ? &buffer->records[buffer->head] : NULL;
}

static bool has_room(const struct lant_fault_injector *injector,
                     const struct lant_fault_buffer *buffer)
{
    return buffer->count < injector->config.places;
}

static void put(const struct lant_fault_injector *injector, struct lant_fault_buffer *buffer,
                const struct lant_fault_record *record, uint64_t due)
{
    struct lant_fault_record *place =
        &buffer->records[place_of(injector, buffer->head, buffer->count)];
    *place = *record;
    place->judged = false;
    place->turns = false;
    place->due = due;
    buffer->due = buffer->count++ == 0 ? due : buffer->due;
}

static void drop_head(const struct lant_fault_injector *injector, struct lant_fault_buffer *buffer)
{
    buffer->head = (uint8_t)place_of(injector, buffer->head, 1);
    buffer->due = --buffer->count == 0 ? LANT_NEVER : buffer->records[buffer->head].due;
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static uint32_t check_buffer(const struct lant_fault_injector *injector,
                             const struct lant_fault_buffer *buffer, uint32_t hops_least)
{
    CHECK(buffer->count <= injector->config.places && buffer->head < injector->config.places);
    CHECK(buffer->due == (buffer->count == 0 ? LANT_NEVER : buffer->records[buffer->head].due));
    uint64_t before = 0;
    for (uint32_t i = 0; i < buffer->count; i++) {
        const struct lant_fault_record *record =
            &buffer->records[place_of(injector, buffer->head, i)];
        CHECK(record->due >= before);
        CHECK(record->hops >= hops_least && record->hops <= LANT_FAULT_HOPS_MAX);
        CHECK(i == 0 || !record->judged);
        before = record->due;
    }
    return buffer->count;
}

static void lant_fault_check(const struct lant_fault_injector *injector)
{
    uint64_t records = 0;
    for (uint32_t x = 0; x < LANT_FAULT_HOPS_MAX; x++) {
        records += check_buffer(injector, &injector->forward[x], x + 1);
    }
    for (uint32_t x = 0; x < LANT_FAULT_STAGES; x++) {
        records += check_buffer(injector, &injector->back[x], x);
    }
    CHECK(injector->counters.packets - injector->counters.answers == records);
    CHECK(injector->lfsr != 0);
}

/* -- Packets and answers ------------------------------------------------------------------------*/

void lant_fault_init(struct lant_fault_injector *injector, const struct lant_fault_config *config)
{
    CHECK(config->places >= 1 && config->places <= LANT_FAULT_PLACES_MAX);
    CHECK(config->hop_cycles >= 1 && config->seed != 0 && config->weights[0] == 0);
    CHECK(config->threshold <= LANT_FAULT_ALWAYS);
    *injector = (struct lant_fault_injector){.config = *config, .lfsr = config->seed};
    for (uint32_t hops = 1; hops <= LANT_FAULT_HOPS_MAX; hops++) {
        injector->weight += config->weights[hops];
    }
    CHECK(injector->weight > 0);
    for (uint32_t x = 0; x < LANT_FAULT_HOPS_MAX; x++) {
        injector->forward[x].due = LANT_NEVER;
    }
    for (uint32_t x = 0; x < LANT_FAULT_STAGES; x++) {
        injector->back[x].due = LANT_NEVER;
    }
}

/* "Rand Addr": a distance, by its weight. */
static uint32_t draw_distance(struct lant_fault_injector *injector)
{
    uint32_t left = lant_random_below(lant_lfsr_word(&injector->lfsr), injector->weight);
    uint32_t hops = 1;
    while (left >= injector->config.weights[hops]) {
        left -= injector->config.weights[hops++];
    }
    return hops;
}

void lant_fault_take(struct lant_fault_injector *injector, const struct lant_ends *packet,
                     uint64_t now)
{
    CHECK(lant_fault_ready(injector) && !lant_is_answer(packet->header.type));
    CHECK(now + 1 >= injector->now);
    INVARIANTS(lant_fault_check(injector));
    const struct lant_fault_record record = {
        .answer = lant_answer(packet, packet->header.destination, LANT_OKAY),
        .hops = (uint8_t)draw_distance(injector)};
    put(injector, &injector->forward[0], &record,
        now + injector->config.hop_cycles + injector->config.check_cycles);
    injector->counters.packets++;
    injector->counters.hops[record.hops]++;
    INVARIANTS(lant_fault_check(injector));
}

bool lant_fault_offer(const struct lant_fault_injector *injector, struct lant_ends *answer,
                      uint32_t *hops)
{
    const struct lant_fault_buffer *arrived = &injector->back[0];
    if (arrived->count == 0) {
        return false;
    }
    *answer = arrived->records[arrived->head].answer;
    *hops = arrived->records[arrived->head].hops;
    return true;
}

void lant_fault_taken(struct lant_fault_injector *injector)
{
    struct lant_fault_buffer *arrived = &injector->back[0];
    CHECK(arrived->count > 0);
    const enum lant_response response =
        (enum lant_response)arrived->records[arrived->head].answer.footer.response;
    injector->counters.answers++;
    injector->counters.nacks += lant_response_is_nack(response);
    drop_head(injector, arrived);
    INVARIANTS(lant_fault_check(injector));
}

/* -- A cycle ------------------------------------------------------------------------------------*/

/* The block A/N at the end of a hop. True: it spoils the record. */
static bool inject(struct lant_fault_injector *injector, struct lant_fault_record *record)
{
    const enum lant_fault_mode mode = injector->config.mode;
    if (mode == LANT_FAULT_ECC || lant_lfsr_word(&injector->lfsr) >= injector->config.threshold) {
        return false;
    }
    record->answer.footer.response = mode == LANT_FAULT_LLV ? LANT_NACK_LINK : LANT_NACK_CRC;
    record->answer.header.payload = 0;
    return true;
}

/* The packet at the end of hop x: does it turn, at the far end or before? */
static void judge_forward(struct lant_fault_injector *injector, uint32_t x)
{
    struct lant_fault_record *record = &injector->forward[x].records[injector->forward[x].head];
    if (record->judged) {
        return;
    }
    const bool spoilt = inject(injector, record);
    const bool is_there = x + 1 == record->hops;
    record->judged = true;
    record->turns = is_there || (spoilt && injector->config.mode == LANT_FAULT_LLV);
    injector->counters.faults_forward += spoilt;
    injector->counters.shortcuts += record->turns && !is_there;
}

static uint64_t due_back(const struct lant_fault_injector *injector, uint32_t x, uint64_t now)
{
    const struct lant_fault_config *config = &injector->config;
    const uint64_t check = config->checks_answers ? config->check_cycles : 0;
    return x == 0 ? now : now + config->hop_cycles + check;
}

/* One record at most comes into A_x. */
static void move_back(struct lant_fault_injector *injector, uint32_t x, uint64_t now)
{
    struct lant_fault_buffer *to = &injector->back[x];
    struct lant_fault_buffer *next = x < LANT_FAULT_HOPS_MAX ? &injector->back[x + 1] : NULL;
    struct lant_fault_buffer *turn = x > 0 ? &injector->forward[x - 1] : NULL;
    struct lant_fault_record *returning = next == NULL ? NULL : due_head(next, now);
    struct lant_fault_record *turning = turn == NULL ? NULL : due_head(turn, now);
    if (turning != NULL && !turning->turns) {
        turning = NULL;
    }
    const bool room = has_room(injector, to);
    injector->counters.collisions += turning != NULL && (returning != NULL || !room);
    if (!room) {
        return;
    }
    if (returning != NULL) {
        if (!injector->config.answers_are_safe) {
            injector->counters.faults_back += inject(injector, returning);
        }
        put(injector, to, returning, due_back(injector, x, now));
        drop_head(injector, next);
    } else if (turning != NULL) {
        put(injector, to, turning, due_back(injector, x, now));
        drop_head(injector, turn);
    }
}

static void move_forward(struct lant_fault_injector *injector, uint32_t x, uint64_t now)
{
    struct lant_fault_buffer *from = &injector->forward[x];
    const struct lant_fault_record *record = due_head(from, now);
    if (record == NULL || !record->judged || record->turns) {
        return;
    }
    struct lant_fault_buffer *to = &injector->forward[x + 1];
    if (has_room(injector, to)) {
        put(injector, to, record,
            now + injector->config.hop_cycles + injector->config.check_cycles);
        drop_head(injector, from);
    }
}

void lant_fault_step(struct lant_fault_injector *injector, uint64_t now)
{
    CHECK(now >= injector->now);
    INVARIANTS(lant_fault_check(injector));
    injector->now = now + 1;
    /* The stages whose heads are due, a bit each: mostly it is one of all. A record that moves is
     * due later than now, and the record behind it is not judged yet. So no record moves twice. */
    uint32_t forward = 0, back = 0;
    for (uint32_t x = 0; x < LANT_FAULT_HOPS_MAX; x++) {
        forward |= (uint32_t)(injector->forward[x].due <= now) << x;
        back |= (uint32_t)(injector->back[x + 1].due <= now) << (x + 1);
    }
    for (uint32_t left = forward; left != 0; left &= left - 1) {
        judge_forward(injector, (uint32_t)__builtin_ctz(left));
    }
    /* From the exit on, so that a place that becomes free is used in the same cycle. */
    for (uint32_t left = back >> 1 | forward << 1; left != 0; left &= left - 1) {
        move_back(injector, (uint32_t)__builtin_ctz(left), now);
    }
    /* A record behind its last hop has turned, or waits to. */
    for (uint32_t left = forward & ~(1u << (LANT_FAULT_HOPS_MAX - 1)); left != 0;) {
        const uint32_t x = 31 - (uint32_t)__builtin_clz(left);
        move_forward(injector, x, now);
        left &= ~(1u << x);
    }
    INVARIANTS(lant_fault_check(injector));
}

uint64_t lant_fault_deadline(const struct lant_fault_injector *injector)
{
    uint64_t deadline = LANT_NEVER;
    for (uint32_t x = 0; x < LANT_FAULT_HOPS_MAX; x++) {
        const uint64_t forward = injector->forward[x].due, back = injector->back[x + 1].due;
        deadline = forward < deadline ? forward : deadline;
        deadline = back < deadline ? back : deadline;
    }
    return deadline < injector->now ? injector->now : deadline;
}
