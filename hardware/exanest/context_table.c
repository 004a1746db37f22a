/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/context_table.h"

#define NOWHERE UINT32_MAX

static uint32_t key_of(uint32_t source, uint32_t tid)
{
    return source << 10 | tid;
}

static uint32_t places(const struct exanest_context_table *table)
{
    return (uint32_t)table->parameters.sets * table->parameters.ways;
}

void exanest_context_init(struct exanest_context_table *table,
                          const struct exanest_context_parameters *parameters)
{
    CHECK(parameters->sets >= 1 && (parameters->sets & (parameters->sets - 1)) == 0);
    CHECK(parameters->ways >= 1);
    CHECK((uint32_t)parameters->sets * parameters->ways <= EXANEST_CONTEXTS_MAX);
    *table = (struct exanest_context_table){.parameters = *parameters};
}

uint32_t exanest_context_set(const struct exanest_context_table *table, uint32_t source,
                             uint32_t tid)
{
    const uint32_t sets = table->parameters.sets;
    if (sets == 1) {
        return 0;
    }
    if (table->parameters.index == EXANEST_SET_MODULO) {
        return tid % sets;
    }
    const uint32_t bits = (uint32_t)__builtin_ctz(sets);
    uint32_t index = tid ^ tid >> bits;
    for (; source != 0; source >>= bits) {
        index ^= source;
    }
    return index & (sets - 1);
}

/* -- Invariants ---------------------------------------------------------------------------------*/

static void check_context(const struct exanest_context_table *table, uint32_t place)
{
    const struct exanest_context *context = &table->contexts[place];
    CHECK(place < places(table));
    CHECK(context->tid < EXANEST_TIDS && context->sequence < EXANEST_SEQUENCES);
    CHECK(context->source >> EXANEST_COORDINATE_BITS == 0);
    CHECK(table->keys[place] == key_of(context->source, context->tid));
    CHECK(place / table->parameters.ways ==
          exanest_context_set(table, context->source, context->tid));
    CHECK(!context->first_seen || context->bitmap >> context->first & 1);
    CHECK(!context->last_seen || context->bitmap >> context->last & 1);
    CHECK(!context->notify || context->bitmap != 0);
}

static uint32_t check_set(const struct exanest_context_table *table, uint32_t set)
{
    uint32_t in_set = 0;
    const uint32_t from = set * table->parameters.ways;
    for (uint32_t i = from; i < from + table->parameters.ways; i++) {
        if (!table->contexts[i].valid) {
            continue;
        }
        check_context(table, i);
        for (uint32_t j = from; j < i; j++) {
            CHECK(!table->contexts[j].valid || table->keys[j] != table->keys[i]);
        }
        in_set++;
    }
    CHECK(in_set == table->in_set[set]);
    return in_set;
}

void exanest_context_check(const struct exanest_context_table *table)
{
    uint32_t used = 0;
    for (uint32_t set = 0; set < table->parameters.sets; set++) {
        used += check_set(table, set);
    }
    CHECK(used == table->used && used <= table->used_max);
}

/* -- Judging ------------------------------------------------------------------------------------*/

static uint32_t find(const struct exanest_context_table *table, uint32_t set, uint32_t key)
{
    const uint32_t from = set * table->parameters.ways;
    for (uint32_t i = from; i < from + table->parameters.ways; i++) {
        if (table->keys[i] == key && table->contexts[i].valid) {
            return i;
        }
    }
    return NOWHERE;
}

const struct exanest_context *exanest_context_find(const struct exanest_context_table *table,
                                                   uint32_t source, uint32_t tid)
{
    CHECK(tid < EXANEST_TIDS);
    const uint32_t place =
        find(table, exanest_context_set(table, source, tid), key_of(source, tid));
    return place == NOWHERE ? NULL : &table->contexts[place];
}

static uint32_t find_free(const struct exanest_context_table *table, uint32_t set)
{
    const uint32_t from = set * table->parameters.ways;
    for (uint32_t i = from; i < from + table->parameters.ways; i++) {
        if (!table->contexts[i].valid) {
            return i;
        }
    }
    UNREACHABLE("a set without a free way");
}

static struct exanest_context begun(const struct exanest_mark *mark)
{
    return (struct exanest_context){
        .valid = true, .tid = mark->tid, .sequence = mark->sequence, .source = mark->source};
}

static bool is_complete(const struct exanest_context *context)
{
    if (!context->first_seen || !context->last_seen || context->first > context->last ||
        (context->notify && !context->control_seen)) {
        return false;
    }
    const uint32_t lines = context->last - context->first + 1u;
    const uint64_t wanted = UINT64_MAX >> (EXANEST_BLOCK_PACKETS_MAX - lines) << context->first;
    return (context->bitmap & wanted) == wanted;
}

static enum exanest_meaning mark_control(struct exanest_context *context,
                                         const struct exanest_mark *mark)
{
    if (context->control_seen) {
        return EXANEST_DUPLICATE;
    }
    context->control_seen = true;
    context->control = mark->control;
    context->pdid = mark->pdid;
    return is_complete(context) ? EXANEST_COMPLETE : EXANEST_MARKED;
}

static enum exanest_meaning mark_data(struct exanest_context *context,
                                      const struct exanest_mark *mark)
{
    const uint64_t bit = UINT64_C(1) << mark->line;
    if (context->bitmap & bit) {
        return EXANEST_DUPLICATE;
    }
    context->bitmap |= bit;
    context->notify |= mark->notify;
    if (mark->first) {
        context->first_seen = true;
        context->first = mark->line;
    }
    if (mark->last) {
        context->last_seen = true;
        context->last = mark->line;
    }
    return is_complete(context) ? EXANEST_COMPLETE : EXANEST_MARKED;
}

/* Steps 6 to 8: the context is that of the packet's sequence. */
static enum exanest_meaning judge_current(struct exanest_context *context,
                                          const struct exanest_mark *mark)
{
    if (mark->error != EXANEST_ACK) {
        const bool before = context->nacked;
        context->nacked = true;
        return before ? EXANEST_REFUSED_BEFORE : EXANEST_REFUSED;
    }
    return mark->is_control ? mark_control(context, mark) : mark_data(context, mark);
}

/* Step 4: nothing is known of the transaction. One that begins with an error has a context, too: it
 * is answered once, and not packet by packet (1.1: one response a segment). */
static void judge_miss(const struct exanest_context_table *table, const struct exanest_mark *mark,
                       uint32_t set, struct exanest_judgement *judgement)
{
    if (table->in_set[set] == table->parameters.ways) {
        judgement->meaning = mark->error != EXANEST_ACK ? EXANEST_REFUSED : EXANEST_NO_CONTEXT;
        return;
    }
    judgement->allocates = true;
    judgement->place = (uint16_t)find_free(table, set);
    judgement->after = begun(mark);
    judgement->meaning = (uint8_t)judge_current(&judgement->after, mark);
}

void exanest_context_judge(const struct exanest_context_table *table,
                           const struct exanest_mark *mark, struct exanest_judgement *judgement)
{
    CHECK(mark->tid < EXANEST_TIDS && mark->line < EXANEST_BLOCK_PACKETS_MAX);
    const uint32_t set = exanest_context_set(table, mark->source, mark->tid);
    const uint32_t place = find(table, set, key_of(mark->source, mark->tid));
    *judgement = (struct exanest_judgement){0};
    if (place == NOWHERE) {
        judge_miss(table, mark, set, judgement);
        return;
    }
    const struct exanest_context *context = &table->contexts[place];
    judgement->place = (uint16_t)place;
    judgement->after = *context;
    if (mark->sequence != context->sequence) {
        if (!exanest_sequence_newer(mark->sequence, context->sequence)) {
            judgement->meaning = EXANEST_OLDER;
            return;
        }
        judgement->flushes = true;
        judgement->after = begun(mark);
    }
    judgement->meaning = (uint8_t)judge_current(&judgement->after, mark);
}

/* -- Applying -----------------------------------------------------------------------------------*/

static void forget(struct exanest_context_table *table, uint32_t place)
{
    table->contexts[place].valid = false;
    table->in_set[place / table->parameters.ways]--;
    table->used--;
}

uint32_t exanest_context_age(struct exanest_context_table *table)
{
    uint32_t forgotten = 0;
    for (uint32_t i = 0; i < places(table); i++) {
        struct exanest_context *context = &table->contexts[i];
        if (context->valid && context->aged) {
            forget(table, i);
            forgotten++;
        }
        context->aged = true;
    }
    INVARIANTS(exanest_context_check(table));
    return forgotten;
}

void exanest_context_apply(struct exanest_context_table *table,
                           const struct exanest_judgement *judgement)
{
    const struct exanest_context *after = &judgement->after;
    const uint32_t set = judgement->place / table->parameters.ways;
    INVARIANTS(check_set(table, set));
    if (after->valid) {
        if (judgement->allocates) {
            table->keys[judgement->place] = key_of(after->source, after->tid);
            table->in_set[set]++;
            table->used++;
            table->used_max = table->used > table->used_max ? table->used : table->used_max;
        }
        table->contexts[judgement->place] = *after;
        table->contexts[judgement->place].aged = false;
        if (judgement->meaning == EXANEST_COMPLETE) {
            forget(table, judgement->place);
        }
    }
    INVARIANTS(check_set(table, set));
}
