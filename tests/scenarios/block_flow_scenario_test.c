/* SPDX-License-Identifier: BSD-2-Clause
 *
 * block_flow_scenario_test - the speed of a stream of blocks on a network that loses and reorders.
 *
 * Goal    A lost packet costs itself: one in 100, or in 30, hardly shows in the goodput, nor do
 *         late ones; several paths carry what they carry alone, one after the other; without loss
 *         nothing is sent again, and an answer comes for a block, not for a packet.
 * Method  The shipped requester against the shipped responder, long WRITEs, in virtual time. Each
 *         path is a queue of a given depth that drops what does not fit. Memory takes no time. A
 *         table of runs with bars, and for each a change that must break one of them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/kernel.h"
#include "sim/pool.h"
#include "transport/block/requester.h"
#include "transport/block/responder.h"

#define MTU         4096u
#define COST        512u
#define PATHS       4
#define CONTEXTS    1024u
#define HELD        1024u
#define QUEUE       256u
#define SESSION     77u
#define FIRST       0xffffff00u
#define US          (1000 * SIM_NS)
#define ANSWER_US   10 /* One answer serves all packets that come within this time. */
#define DEADLINE_US 4000000
#define TOOK_US     50
#define TOOK_MAX    20000

/* The change in the second run. */
enum change {
    OLDEST_ONLY, /* Each answer begins with the oldest block. */
    ASKS_ALWAYS, /* Every packet asks for an answer. */
    EACH_LOSS,   /* Every loss slows down. */
    LONG_START,  /* A start goes on until the delay has risen by the whole target. */
    WAITS,       /* WRITEs to the same bytes leave when all before them is executed. */
    NO_PROBES,   /* Nobody is asked for half a second. */
};

struct row {
    const char *name;
    uint32_t paths, packets;
    uint32_t message, depth;          /* Packets of each; messages that are posted at a time. */
    uint32_t gap_ns;                  /* The time that a packet takes on a path. */
    uint32_t trip_us;                 /* Round trip. */
    uint32_t window;                  /* Blocks. */
    uint32_t buffer;                  /* Packets that wait on each path. */
    bool same;                        /* All messages have one target. */
    uint32_t loss, answer_loss, late; /* Millionths. */
    uint32_t late_us;                 /* The most that a packet is late. */
    /* Bars, 0: none. Percent of one path's rate; of the first row's goodput; sent again though the
     * network lost none, and answers, in 10,000 packets; the slowest message but one in 100. */
    uint32_t line, percent, resent, answers, slow_us;
    enum change change;
};

/* clang-format off */
#define LONG 57344, 256, 256
static const struct row rows[] = {
    {"one path", 1, LONG, 1000, 400, 64, 1000,
     .line = 93, .resent = 60, .answers = 166, .change = LONG_START},
    {"64 KB", 1, 57344, 16, 256, 1000, 400, 64, 1000,
     .line = 93, .resent = 1, .answers = 60, .change = ASKS_ALWAYS},
    {"64 KB to the same bytes", 1, 57344, 16, 256, 1000, 400, 64, 1000,
     .same = true, .line = 93, .resent = 1, .answers = 60, .change = WAITS},
    {"1 MB to the same bytes, 1 % lost", 1, LONG, 1000, 400, 64, 1000,
     .same = true, .loss = 10000, .line = 45, .change = WAITS},
    {"1 % lost", 1, LONG, 1000, 400, 64, 1000,
     .loss = 10000, .percent = 95, .change = EACH_LOSS},
    {"3 % lost", 1, LONG, 1000, 400, 64, 1000,
     .loss = 30000, .percent = 90, .change = OLDEST_ONLY},
    {"5 % lost, of the answers too", 1, LONG, 1000, 400, 64, 1000,
     .loss = 50000, .answer_loss = 50000, .percent = 80, .change = OLDEST_ONLY},
    {"10 % late", 1, LONG, 1000, 400, 64, 1000,
     .late = 100000, .late_us = 50, .percent = 95, .resent = 60, .change = LONG_START},
    {"two paths", 2, LONG, 1000, 400, 64, 1000,
     .percent = 180, .resent = 90, .answers = 180, .change = LONG_START},
    {"two paths, 1 % lost", 2, LONG, 1000, 400, 64, 1000,
     .loss = 10000, .percent = 165, .change = OLDEST_ONLY},
    {"two paths, 3 % lost", 2, LONG, 1000, 400, 64, 1000,
     .loss = 30000, .percent = 145, .change = OLDEST_ONLY},
    {"two slow paths, 3 % lost", 2, LONG, 36000, 100, 256, 1000,
     .loss = 30000, .line = 185, .answers = 2000, .change = ASKS_ALWAYS},
    {"4 KB one by one, 1 % lost", 1, 8000, 1, 1, 1000, 100, 64, 1000,
     .loss = 10000, .answer_loss = 10000, .slow_us = 450, .change = NO_PROBES},
};
/* clang-format on */

struct world;

struct packet {
    struct sim_event event;
    struct world *world;
    struct block_packet packet;
};

struct world {
    struct sim sim;
    struct sim_pool packets;
    const struct row *row;
    const enum change *change; /* NULL: none. */
    struct path_policy policy;
    struct block_requester *requester;
    struct send_queue queue;
    struct block_responder responder;
    struct block_contexts contexts;
    struct block_hold hold;
    void *memory[4];
    struct sim_event deadline, answer;
    uint64_t busy_ps[PATHS];
    uint32_t posted, completed, messages;
    uint64_t sent, resent, probes, answers, lost, dropped, duplicates;
    uint64_t posted_ps[QUEUE];
    uint32_t took[TOOK_MAX]; /* Messages, by TOOK_US. */
    uint8_t payload[MTU];
};

/* As the bars are. */
struct result {
    uint32_t line, resent, answers, slow_us;
};

static void pump(struct world *world);

static bool is_changed(const struct world *world, enum change change)
{
    return world->change != NULL && *world->change == change;
}

static void fly(struct world *world, const struct block_packet *packet, uint64_t at_ps,
                sim_action action)
{
    struct packet *flying = sim_pool_take(&world->packets);
    assert_non_null(flying);
    sim_event_init(&flying->event, action);
    flying->world = world;
    flying->packet = *packet;
    sim_schedule(&world->sim, &flying->event, at_ps);
}

/* -- The responder's side -----------------------------------------------------------------------*/

static void on_answer(struct sim *sim, struct sim_event *event)
{
    struct packet *flying = CONTAINER_OF(event, struct packet, event);
    struct world *world = flying->world;
    const struct block_packet packet = flying->packet;
    sim_pool_give(&world->packets, flying);
    const struct block_progress progress = block_requester_on_answer(
        world->requester, &world->queue, &packet, sim_instant(sim), sim_instant(sim));
    assert_true(progress.verdict == BLOCK_PROGRESS || progress.verdict == BLOCK_STALE);
    pump(world);
}

static void answer(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(event, struct world, answer);
    if (is_changed(world, OLDEST_ONLY)) {
        world->responder.report_goes_on = false;
    }
    struct block_packet packet = {.opcode = BLOCK_ANSWER, .session = SESSION};
    packet.tsn = world->responder.answers & PSN_MASK;
    block_responder_answer(&world->responder, sim_instant(sim), &packet.answer);
    packet.answer.limit_void = true;
    assert_int_equal(block_judge(&packet, MTU), BLOCK_CONSISTENT);
    world->answers++;
    const uint64_t way_ps = world->row->trip_us * US / 2;
    if (!prng_chance(&sim->prng, world->row->answer_loss)) {
        fly(world, &packet, sim->now_ps + way_ps, on_answer);
    }
    if (world->responder.answer_due) {
        sim_after(sim, &world->answer, ANSWER_US * US);
    }
}

static void execute(struct world *world)
{
    struct block_responder *responder = &world->responder;
    struct block_context *context;
    enum block_step step;
    while ((step = block_responder_step(responder, &context)) != BLOCK_STEP_WAIT) {
        if (step == BLOCK_STEP_DONE) {
            block_responder_executed(responder, context);
            continue;
        }
        assert_int_equal(step, BLOCK_STEP_HELD);
        const uint32_t slot = block_responder_detach(responder, context);
        block_responder_placed(responder, context, block_hold_position(&world->hold, slot));
        block_hold_release(&world->hold, slot);
    }
}

static void place(struct world *world, const struct block_packet *packet,
                  const struct block_case *it, struct instant now)
{
    struct block_responder *responder = &world->responder;
    const enum block_where where = block_responder_where(responder, packet, it);
    if (where == BLOCK_NOWHERE) {
        (void)block_responder_decline(responder, packet, now);
        return;
    }
    struct block_context *context = block_responder_context(responder, packet, now);
    if (context == NULL) {
        return;
    }
    if (where == BLOCK_INTO_HOLD) {
        assert_true(block_responder_hold(responder, context, packet));
    } else {
        block_responder_begin(responder, context, packet);
        block_responder_placed(responder, context, packet->position);
    }
    execute(world);
}

static void on_packet(struct sim *sim, struct sim_event *event)
{
    struct packet *flying = CONTAINER_OF(event, struct packet, event);
    struct world *world = flying->world;
    const struct block_packet packet = flying->packet;
    sim_pool_give(&world->packets, flying);
    const struct block_case it = block_responder_judge(&world->responder, &packet);
    const struct instant now = sim_instant(sim);
    block_responder_arrived(&world->responder, &packet, false, now, now);
    if (it.arrived == BLOCK_ARRIVED_NEW) {
        place(world, &packet, &it, now);
    } else if (it.arrived == BLOCK_ARRIVED_DUPLICATE) {
        world->duplicates++;
        block_responder_duplicate(&world->responder, &packet);
    } else {
        assert_int_equal(it.arrived, BLOCK_ARRIVED_PROBE);
    }
    if (world->responder.answer_due && !sim_event_scheduled(&world->answer)) {
        sim_after(sim, &world->answer, ANSWER_US * US);
    }
}

/* -- The requester's side -----------------------------------------------------------------------*/

static void post(struct world *world)
{
    while (world->posted < world->messages &&
           world->posted - world->completed < world->row->depth) {
        struct work *work = send_queue_at(&world->queue, world->queue.tail++);
        memset(work, 0, sizeof(*work));
        work->kind = WORK_WRITE;
        work->bytes = world->row->message * MTU;
        work->remote_address = world->row->same ? 0 : (uint64_t)world->posted * work->bytes;
        world->posted_ps[world->posted % QUEUE] = world->sim.now_ps;
        work->remote_key = 1;
        world->posted++;
    }
}

/* The bottleneck of its path takes it, or has no room. */
static void leave(struct world *world, const struct block_outgoing *out)
{
    const struct row *row = world->row;
    struct sim *sim = &world->sim;
    uint64_t *busy_ps = &world->busy_ps[out->path];
    const uint64_t gap_ps = row->gap_ns * SIM_NS;
    const uint64_t wait_ps = *busy_ps > sim->now_ps ? *busy_ps - sim->now_ps : 0;
    world->sent++;
    world->resent += out->resent;
    world->probes += out->work == NULL;
    if (wait_ps >= row->buffer * gap_ps) {
        world->dropped++;
        return;
    }
    *busy_ps = sim->now_ps + wait_ps + (out->work == NULL ? 0 : gap_ps);
    if (prng_chance(&sim->prng, row->loss)) {
        world->lost++;
        return;
    }
    const uint64_t late_ps =
        prng_chance(&sim->prng, row->late) ? prng_below(&sim->prng, row->late_us * US) : 0;
    struct block_packet packet = {.opcode = out->opcode,
                                  .ack_request = out->ack_request || is_changed(world, ASKS_ALWAYS),
                                  .tsn = out->tsn.value,
                                  .session = SESSION,
                                  .number = out->number,
                                  .index = out->index,
                                  .position = out->position,
                                  .last_position = out->last_position,
                                  .last_block = out->last_block,
                                  .early = out->early,
                                  .resent = out->resent,
                                  .path = out->path,
                                  .round = out->round};
    if (out->work != NULL) {
        packet.address = out->work->remote_address;
        packet.key = out->work->remote_key;
        packet.message_bytes = out->work->bytes;
        packet.payload = world->payload;
        packet.payload_bytes = out->bytes;
    }
    fly(world, &packet, *busy_ps + row->trip_us * US / 2 + late_ps, on_packet);
}

static void pump(struct world *world)
{
    struct block_outgoing out;
    const struct work *work;
    while ((work = block_requester_completed(world->requester, &world->queue)) != NULL) {
        const uint64_t took_ps = world->sim.now_ps - world->posted_ps[world->completed % QUEUE];
        const uint64_t took = took_ps / (TOOK_US * US);
        world->took[took < TOOK_MAX ? took : TOOK_MAX - 1]++;
        world->queue.head++;
        world->completed++;
    }
    post(world);
    world->requester->declined |= is_changed(world, WAITS);
    while (block_requester_next(world->requester, &world->queue, false, sim_instant(&world->sim),
                                &out)) {
        leave(world, &out);
    }
    const uint64_t at = block_requester_deadline(world->requester).ns;
    sim_cancel(&world->deadline);
    if (at != UINT64_MAX) {
        const uint64_t at_ps = at * SIM_NS;
        sim_schedule(&world->sim, &world->deadline,
                     at_ps > world->sim.now_ps ? at_ps : world->sim.now_ps);
    }
}

static void on_deadline(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(event, struct world, deadline);
    assert_false(block_requester_on_time(world->requester, sim_instant(sim)));
    pump(world);
}

/* -- Runs ---------------------------------------------------------------------------------------*/

static void *take(struct world *world, uint32_t number, size_t bytes)
{
    const size_t room = (bytes + 63) & ~(size_t)63;
    world->memory[number] = aligned_alloc(64, room);
    assert_non_null(world->memory[number]);
    memset(world->memory[number], 0, room);
    return world->memory[number];
}

static void change_policy(struct world *world)
{
    struct path_policy *policy = &world->policy;
    if (is_changed(world, EACH_LOSS)) {
        policy->congestion.agree_percent = 0;
    } else if (is_changed(world, LONG_START)) {
        policy->congestion.agree_percent = 100;
    } else if (is_changed(world, NO_PROBES)) {
        policy->rtt.probe_least_ns = policy->rtt.tail_least_ns = 500000000;
    }
}

static void begin(struct world *world, const struct row *row, const enum change *change)
{
    memset(world, 0, sizeof(*world));
    world->row = row;
    world->change = change;
    world->messages = row->packets / row->message;
    world->policy = path_policy_default();
    change_policy(world);
    sim_init(&world->sim, 1);
    world->sim.now_ps = 1000 * US;
    sim_pool_open(&world->packets, 1 << 16, sizeof(struct packet));
    sim_event_init(&world->deadline, on_deadline);
    sim_event_init(&world->answer, answer);
    const struct block_requester_config config = {
        .first_block = FIRST,
        .first_tsn = psn_of(0xfffff0),
        .window = row->window,
        .read_blocks = 1,
        .mtu_bytes = MTU,
        .packet_cost = COST,
        .trip_ns = row->trip_us * UINT64_C(1000),
        .path_count = (uint8_t)row->paths,
        .retry_limit = 7,
        .rnr_limit = 7,
        .reads_max = 1,
        .timeout_code = 18,
        .policy = &world->policy,
    };
    void *memory = take(world, 0, block_requester_bytes(1024, PATHS));
    world->requester = block_requester_init(memory, 1024, &config, sim_instant(&world->sim));
    send_queue_init(&world->queue, QUEUE, 16, take(world, 1, send_queue_bytes(QUEUE, 16)));
    block_contexts_init(&world->contexts, CONTEXTS, take(world, 2, block_contexts_bytes(CONTEXTS)));
    block_hold_init(&world->hold, HELD, MTU, take(world, 3, block_hold_bytes(HELD, MTU)));
    const struct block_responder_config other = {.owner = 5,
                                                 .session = SESSION,
                                                 .window = row->window,
                                                 .mtu_bytes = MTU,
                                                 .first_number = FIRST};
    block_responder_init(&world->responder, &other, &world->contexts, &world->hold);
}

/* All but one message in 100 took no longer. */
static uint32_t slow_us(const struct world *world)
{
    uint32_t left = world->completed - world->completed / 100, at = 0;
    while (left > world->took[at]) {
        left -= world->took[at++];
    }
    return (at + 1) * TOOK_US;
}

static struct result measure(const struct world *world, uint64_t took_ps)
{
    const struct row *row = world->row;
    const uint64_t packets = (uint64_t)world->completed * row->message;
    const uint64_t extra = world->resent > world->lost ? world->resent - world->lost : 0;
    return (struct result){
        .line = (uint32_t)(packets * row->gap_ns * SIM_NS * 100 / took_ps),
        .resent = (uint32_t)(extra * 10000 / row->packets),
        .answers = (uint32_t)(world->answers * 10000 / row->packets),
        .slow_us = slow_us(world),
    };
}

static struct result play(const struct row *row, const enum change *change)
{
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    begin(world, row, change);
    const uint64_t start_ps = world->sim.now_ps;
    pump(world);
    while (world->completed < world->messages && world->sim.now_ps < start_ps + DEADLINE_US * US) {
        assert_true(sim_step(&world->sim));
    }
    const struct result result = measure(world, world->sim.now_ps - start_ps);
    printf("%-33s%s line %3u %%, lost %llu, dropped %llu, sent again %llu, twice there %llu, "
           "probes %llu, answers %llu, slow %u us\n",
           row->name, change == NULL ? "" : " (changed)", result.line,
           (unsigned long long)world->lost, (unsigned long long)world->dropped,
           (unsigned long long)world->resent, (unsigned long long)world->duplicates,
           (unsigned long long)world->probes, (unsigned long long)world->answers, result.slow_us);
    sim_pool_close(&world->packets);
    for (uint32_t i = 0; i < COUNT_OF(world->memory); i++) {
        free(world->memory[i]);
    }
    free(world);
    return result;
}

static bool holds(const struct row *row, const struct result *result, const struct result *first)
{
    return result->line >= row->line && result->line * 100 >= row->percent * first->line &&
           (row->resent == 0 || result->resent <= row->resent) &&
           (row->answers == 0 || result->answers <= row->answers) &&
           (row->slow_us == 0 || result->slow_us <= row->slow_us);
}

/* EXA-106 */
static void test_rows(void **state)
{
    (void)state;
    struct result first = {0};
    int failures = 0;
    for (size_t n = 0; n < COUNT_OF(rows); n++) {
        const struct result result = play(&rows[n], NULL);
        first = n == 0 ? result : first;
        if (!holds(&rows[n], &result, &first)) {
            failures++;
            printf("  does not hold\n");
        }
        const struct result changed = play(&rows[n], &rows[n].change);
        if (holds(&rows[n], &changed, &first)) {
            failures++;
            printf("  holds in spite of the change\n");
        }
    }
    assert_int_equal(failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
