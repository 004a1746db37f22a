/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The peer's blocks may come in any order, be lost or doubled: a program sees the same as
 *         with RC in order: memory, receives and completions, and the results of READs and atomics
 *         (EXA-105). Nothing that has to wait for its turn appears before it.
 * Method  Worlds by seed. A requester as simple as can be (it sends all that the window allows, and
 *         again whatever an answer says is missing) speaks to the NIC's responder through a network
 *         that loses, doubles and shuffles. The expected outcome is computed by executing the
 *         messages one after the other.
 */
#include "base/prng.h"
#include "nic/block/block_bench.h"

enum {
    MTU = BENCH_MTU,
    MESSAGES_MAX = 24,
    BLOCKS_MAX = MESSAGES_MAX * 3,
    NET_MAX = 4096,
    MOVES_MAX = 64,
};

enum kind {
    SEND,
    SEND_IMMEDIATE,
    WRITE,
    WRITE_IMMEDIATE,
    READ,
    ATOMIC,
    KIND_COUNT,
};

struct message {
    enum kind kind;
    uint32_t bytes, packets, blocks, first; /* `first`: BN. */
    uint32_t address, receive_number;
    uint8_t key; /* Which of the two that open the same memory. */
    bool early;  /* D. */
    uint32_t atomic;
    uint64_t compare, operand, original; /* `original`: the result that the atomic has to have. */
    const uint8_t *data;
    bool data_done; /* READ, atomic: all of its result came. */
};

struct block {
    struct message *message;
    uint32_t index;
    uint8_t last_position, round;
    uint64_t flying; /* On the way, or about to be. */
    uint64_t got;    /* READ: data that came. */
    uint64_t placed;
};

enum parcel_kind {
    PARCEL_REQUEST,
    PARCEL_PROBE,
    PARCEL_ANSWER,
    PARCEL_DATA
};

struct parcel {
    enum parcel_kind kind;
    struct block_packet packet; /* Answers and data. */
    uint8_t data[MTU];
    uint32_t block;
    uint8_t position;
    uint64_t wanted;
};

struct world {
    struct prng prng;
    uint32_t loss; /* In 1000 packets. */
    bool slow;     /* Moves take time. */
    bool eager;    /* Early packets that may not be placed are sent, too: to be declined. */
    uint32_t first_number, first_receive;

    struct bench bench;
    struct block_chain strangers; /* Fill the table. */
    uint8_t expected[BENCH_MEMORY_BYTES];
    uint64_t posted;

    struct message messages[MESSAGES_MAX];
    uint32_t message_count, consumers;
    struct block blocks[BLOCKS_MAX];
    uint32_t block_count, started, base, limit, newest;
    bool answered;
    uint32_t waits_until, step;
    uint32_t owed;      /* Receives to be posted again. */
    uint32_t completed; /* Messages that consumed a receive. */
    struct parcel net[NET_MAX];
    uint32_t net_count;
    struct nic_move moves[MOVES_MAX];
    uint32_t move_count;
};

static uint8_t noise[BENCH_RECEIVE_BYTES + MESSAGES_MAX * 64];

static uint32_t draw(struct world *world, uint32_t below)
{
    return (uint32_t)(prng_next(&world->prng) % below);
}

/* -- The NIC ------------------------------------------------------------------------------------*/

static void post_receive(struct world *world)
{
    const bool overlapping = !world->bench.qp->shares && draw(world, 3) == 0;
    const uint32_t buffer = overlapping ? 0 : (uint32_t)(world->posted % BENCH_RECEIVES);
    bench_post_receive(&world->bench, buffer, BENCH_RECEIVE_BYTES, world->bench.receive_region.key);
    world->posted++;
}

/* So much of the table is somebody else's that only `ways` of each set are left. */
static void fill_table(struct world *world, uint32_t ways)
{
    block_chain_init(&world->strangers, 999, 1, NULL);
    for (uint32_t n = 0; n < 16 - ways; n++) {
        struct block_context *context =
            block_contexts_add(&world->bench.nic->block_shared->contexts, &world->strangers,
                               100 + n, (struct instant){0});
        context->flags = BLOCK_CONTEXT_RECEIVE; /* May not be forgotten. */
    }
}

/* -- The expected outcome -----------------------------------------------------------------------*/

static void execute_atomic(struct world *world, struct message *message)
{
    uint64_t value;
    memcpy(&value, world->expected + message->address, sizeof(value));
    message->original = value;
    switch (message->atomic) {
    case BLOCK_COMPARE_SWAP: value = value == message->compare ? message->operand : value; break;
    case BLOCK_FETCH_ADD: value += message->operand; break;
    default: value = message->operand; break;
    }
    memcpy(world->expected + message->address, &value, sizeof(value));
}

static bool disjoint(const struct message *a, const struct message *b)
{
    return a->address + a->bytes <= b->address || b->address + b->bytes <= a->address;
}

static uint32_t draw_packets(struct world *world)
{
    static const uint32_t some[] = {1, 1, 1, 1, 2, 2, 3, 5, 9, 17, 64, 65, 70, 130};
    return some[draw(world, COUNT_OF(some))];
}

static void plan_message(struct world *world, uint32_t i)
{
    struct message *message = &world->messages[i];
    message->kind = (enum kind)draw(world, KIND_COUNT);
    const bool atomic = message->kind == ATOMIC;
    message->packets = atomic ? 1 : draw_packets(world);
    message->bytes = atomic ? 8
                            : (message->packets - 1) * MTU + draw(world, MTU) +
                                  (message->packets > 1 || draw(world, 8) != 0);
    message->packets = block_message_packets(message->bytes, MTU);
    message->blocks = block_message_blocks(message->packets);
    message->address = draw(world, BENCH_MEMORY_BYTES - message->bytes) & (atomic ? ~7u : ~0u);
    message->key = draw(world, 4) == 0;
    message->data = noise + i * 64;
    message->receive_number = world->first_receive + world->consumers;
    world->consumers += message->kind <= WRITE_IMMEDIATE && message->kind != WRITE;
    message->first = world->first_number + world->block_count;
    message->atomic = draw(world, BLOCK_ATOMIC_KIND_COUNT);
    message->operand = prng_next(&world->prng);
    for (uint32_t index = 0; index < message->blocks; index++) {
        world->blocks[world->block_count++] = (struct block){
            .message = message,
            .index = index,
            .last_position = block_last_position(message->packets, index),
        };
    }
}

static void plan(struct world *world)
{
    world->message_count = 4 + draw(world, MESSAGES_MAX - 4);
    for (uint32_t i = 0; i < world->message_count; i++) {
        plan_message(world, i);
    }
}

/* -- The requester ------------------------------------------------------------------------------*/

static bool writes(const struct message *message)
{
    return message->kind == WRITE || message->kind == WRITE_IMMEDIATE;
}

static bool consumes(const struct message *message)
{
    return message->kind <= WRITE_IMMEDIATE && message->kind != WRITE;
}

static bool executed(const struct world *world, const struct message *message)
{
    return block_number_distance(message->first + message->blocks, world->base) >= 0;
}

/* docs/block-transport.md, "What the requester sends, and when" (D): may the message be placed
 * before those in front of it are executed? */
static bool is_free(const struct world *world, const struct message *message)
{
    for (const struct message *other = world->messages; other < message; other++) {
        if (executed(world, other)) {
            continue;
        }
        if (other->kind == ATOMIC ||
            (writes(other) && (other->key != message->key || !disjoint(other, message)))) {
            return false;
        }
    }
    return true;
}

static bool all_before_done(const struct world *world, const struct message *message)
{
    return block_number_distance(message->first, world->base) >= 0;
}

/* May its first block be sent? READs see to it that nothing overwrites what they read. */
static bool may_start(struct world *world, struct message *message)
{
    uint32_t atomics = 1;
    for (const struct message *other = world->messages; other < message; other++) {
        if (other->kind == READ && !other->data_done) {
            return false;
        }
        /* Results are kept in turn: one that came is in the way of an older one that did not. */
        atomics += other->kind == ATOMIC && (atomics > 1 || !other->data_done);
    }
    if (message->kind == ATOMIC && atomics > BENCH_READS) {
        return false;
    }
    if (consumes(message) && !world->bench.qp->shares &&
        block_number_distance(message->receive_number, world->limit) <= 0 &&
        !all_before_done(world, message)) {
        return false;
    }
    message->early = true;
    if (writes(message) && message->packets > 1 && !is_free(world, message)) {
        message->early = false;
        return world->eager || all_before_done(world, message);
    }
    return true;
}

static struct parcel *add_parcel(struct world *world, enum parcel_kind kind)
{
    assert_true(world->net_count < NET_MAX);
    struct parcel *parcel = &world->net[world->net_count++];
    parcel->kind = kind;
    return parcel;
}

static void send_position(struct world *world, uint32_t block, uint8_t position, uint64_t wanted)
{
    if (world->blocks[block].flying >> position & 1) {
        return;
    }
    world->blocks[block].flying |= (uint64_t)1 << position;
    struct parcel *parcel = add_parcel(world, PARCEL_REQUEST);
    parcel->block = block;
    parcel->position = position;
    parcel->wanted = wanted;
}

static uint64_t positions(const struct block *block)
{
    return block_positions(block->last_position);
}

static void send_block(struct world *world, uint32_t number, uint64_t but)
{
    struct block *block = &world->blocks[number];
    if (block->message->kind == READ) {
        if (positions(block) & ~block->got) {
            send_position(world, number, 0, positions(block) & ~block->got);
        }
        return;
    }
    for (uint8_t position = 0; position <= block->last_position; position++) {
        if (!(but >> position & 1)) {
            send_position(world, number, position, 0);
        }
    }
}

static void start_blocks(struct world *world)
{
    while (world->started < world->block_count) {
        struct block *block = &world->blocks[world->started];
        if (block_number_distance(world->base, world->first_number + world->started) >=
                BENCH_WINDOW ||
            world->net_count + 64 > NET_MAX / 2 ||
            (block->index == 0 && !may_start(world, block->message))) {
            return;
        }
        if (block->message->kind == READ) {
            uint32_t outstanding = 0;
            for (uint32_t i = 0; i < world->started; i++) {
                const struct block *other = &world->blocks[i];
                outstanding += other->message->kind == READ && positions(other) & ~other->got;
            }
            if (outstanding >= BENCH_READS) {
                return;
            }
        }
        send_block(world, world->started++, 0);
    }
}

static uint8_t opcode_of(enum kind kind)
{
    static const uint8_t opcodes[KIND_COUNT] = {BLOCK_SEND,  BLOCK_SEND, BLOCK_WRITE,
                                                BLOCK_WRITE, BLOCK_READ, BLOCK_ATOMIC};
    return opcodes[kind];
}

static struct block_packet make_packet(struct world *world, const struct parcel *parcel)
{
    struct block *block = &world->blocks[parcel->block];
    const struct message *message = block->message;
    struct block_packet packet = {
        .opcode = opcode_of(message->kind),
        .session = BENCH_SESSION,
        .number = world->first_number + parcel->block,
        .index = block->index,
        .position = parcel->position,
        .last_position = message->kind == ATOMIC ? 0 : block->last_position,
        .last_block = block->index + 1 == message->blocks,
        .round = block->round,
        .address = message->address,
        .key = world->bench.region[message->key].key,
        .message_bytes = message->bytes,
        .receive_number = message->receive_number,
    };
    if (message->kind == READ) {
        packet.wanted = parcel->wanted;
        return packet;
    }
    if (message->kind == ATOMIC) {
        packet.atomic.kind = message->atomic;
        packet.atomic.swap_or_add = message->operand;
        packet.atomic.compare = message->compare;
        return packet;
    }
    packet.early = message->early;
    const bool last = block_is_last(&packet);
    packet.has_immediate =
        last && (message->kind == SEND_IMMEDIATE || message->kind == WRITE_IMMEDIATE);
    packet.tag = packet.has_immediate ? 0x1000 + message->first : 0;
    packet.solicited = message->bytes & 1;
    packet.ack_request = packet.position == packet.last_position && (last || draw(world, 2) == 0);
    const uint32_t offset = (uint32_t)block_payload_offset(&packet, MTU);
    packet.payload = message->data + offset;
    packet.payload_bytes = message->bytes - offset < MTU ? message->bytes - offset : MTU;
    return packet;
}

static void on_record(struct world *world, const struct block_record *record)
{
    const uint32_t first = record->number - world->first_number;
    const uint32_t count = record->state == BLOCK_STATE_RUN ? (uint32_t)record->bitmap : 1;
    for (uint32_t at = first; at < first + count && at < world->started; at++) {
        struct block *block = &world->blocks[at];
        if (record->state == BLOCK_STATE_ORDER && !all_before_done(world, block->message)) {
            continue;
        }
        block->round++;
        send_block(world, at, record->state == BLOCK_STATE_RUN ? 0 : record->bitmap);
    }
}

static void on_answer(struct world *world, const struct block_packet *packet)
{
    const struct block_answer *answer = &packet->answer;
    assert_int_equal(block_judge(packet, MTU), BLOCK_CONSISTENT);
    assert_true(answer->status <= BLOCK_STATUS_RNR);
    if (block_number_before(world->base, answer->base)) {
        world->base = answer->base;
    }
    if (!answer->limit_void && block_number_before(world->limit, answer->receive_limit)) {
        world->limit = answer->receive_limit;
    }
    if (world->answered && packet->tsn <= world->newest) {
        return;
    }
    world->answered = true;
    world->newest = packet->tsn;
    for (uint32_t i = 0; i < answer->record_count; i++) {
        on_record(world, &answer->records[i]);
    }
}

static void on_data(struct world *world, const struct parcel *parcel)
{
    const struct block_packet *packet = &parcel->packet;
    struct block *block = &world->blocks[packet->number - world->first_number];
    struct message *message = block->message;
    const uint64_t bit = (uint64_t)1 << packet->position;
    if (message->data_done || block->got & bit) {
        return;
    }
    if (message->kind == ATOMIC) {
        if (message->atomic != BLOCK_ATOMIC_WRITE) {
            assert_int_equal(load_be64(parcel->data), message->original);
        }
    } else {
        const uint32_t offset = (uint32_t)block_payload_offset(packet, MTU);
        assert_memory_equal(parcel->data, world->expected + message->address + offset,
                            packet->payload_bytes);
    }
    block->got |= bit;
    message->data_done = true;
    for (uint32_t i = 0; i < message->blocks; i++) {
        const struct block *part = &world->blocks[message->first - world->first_number + i];
        message->data_done &= (positions(part) & ~part->got) == 0;
    }
}

/* -- The responder, seen by a program -----------------------------------------------------------*/

/* EXA-76, EXA-77, EXA-110: a program may see nothing too early when a payload is about to be
 * placed. */
static void look_at_move(struct world *world, const struct nic_move *move)
{
    if (move->action != MOVE_BLOCK_PLACE) {
        return;
    }
    struct block *block = &world->blocks[move->psn - world->first_number];
    const struct message *message = block->message;
    const bool ends = move->position == block->last_position;
    const bool last = ends && block->index + 1 == message->blocks;
    const uint64_t below = ((uint64_t)1 << move->position) - 1;
    const bool in_turn =
        move->psn == block_responder_base(&world->bench.qp->block->receiver->stream) &&
        (block->placed & below) == below;
    if (!world->slow && (writes(message) && last)) {
        assert_true(in_turn);
    }
    if (!world->slow && world->bench.nic->limits.block.place == BLOCK_PLACE_HOLD) {
        assert_true(in_turn && !(block->placed >> move->position & 1));
    }
    block->placed |= (uint64_t)1 << move->position;
}

static void look_at_completions(struct world *world)
{
    struct completion completion = {0};
    while (cq_poll(&world->bench.cq, &completion, 1) == 1) {
        uint32_t i = 0;
        for (uint32_t skip = world->completed; !consumes(&world->messages[i]) || skip-- > 0; i++) {
        }
        const struct message *message = &world->messages[i];
        assert_int_equal(completion.status, COMPLETION_SUCCESS);
        assert_int_equal(completion.bytes, message->bytes);
        assert_int_equal(completion.kind,
                         writes(message) ? COMPLETION_RECEIVE_WRITE_IMMEDIATE : COMPLETION_RECEIVE);
        assert_int_equal(completion.solicited, message->bytes & 1);
        assert_int_equal(completion.flags & COMPLETION_HAS_IMMEDIATE,
                         message->kind == SEND ? 0 : COMPLETION_HAS_IMMEDIATE);
        if (message->kind != SEND) {
            assert_int_equal(completion.immediate, 0x1000 + message->first);
        }
        if (message->kind <= SEND_IMMEDIATE) {
            assert_memory_equal(world->bench.receives[completion.wr_id], message->data,
                                message->bytes);
        } else {
            assert_memory_equal(world->bench.memory + message->address, message->data,
                                message->bytes);
        }
        world->completed++;
        world->owed++;
    }
}

static void finish_move(struct world *world)
{
    struct nic_move move = world->moves[0];
    world->move_count--;
    memmove(&world->moves[0], &world->moves[1], world->move_count * sizeof(move));
    bench_make_move(&move);
    block_receive_on_moved(world->bench.qp, &move, NIC_MOVED, world->bench.now);
    look_at_completions(world);
}

static void take_moves(struct world *world, struct nic_move *move, bool any)
{
    for (; any; any = block_receive_next_held(world->bench.qp, move)) {
        assert_true(move->in_order);
        look_at_move(world, move);
        world->moves[world->move_count++] = *move;
        if (!world->slow || world->move_count == MOVES_MAX) {
            finish_move(world);
        }
    }
}

static void deliver_request(struct world *world, const struct parcel *parcel)
{
    struct block_arrival arrival = {.at = world->bench.now};
    if (parcel->kind == PARCEL_PROBE) {
        arrival.packet = (struct block_packet){.opcode = BLOCK_PROBE,
                                               .session = BENCH_SESSION,
                                               .number = world->first_number + world->started - 1};
    } else {
        arrival.packet = make_packet(world, parcel);
    }
    assert_int_equal(block_judge(&arrival.packet, MTU), BLOCK_CONSISTENT);
    struct nic_move move;
    take_moves(world, &move,
               block_receive_on_packet(world->bench.qp, &arrival, world->bench.now, &move));
    block_receive_check(world->bench.qp);
}

static void pull(struct world *world)
{
    struct nic_departure departure;
    while (world->net_count < NET_MAX && block_receive_ready(world->bench.qp) &&
           block_receive_next(world->bench.qp, world->bench.now, &departure)) {
        struct parcel *parcel = add_parcel(world, PARCEL_ANSWER);
        assert_int_equal(block_decode(departure.headers, departure.headers_bytes, parcel->data,
                                      (departure.payload_bytes + 3) & ~3u, &parcel->packet),
                         BLOCK_GOOD);
        parcel->kind = parcel->packet.opcode == BLOCK_ANSWER ? PARCEL_ANSWER : PARCEL_DATA;
        if (departure.payload_bytes != 0) {
            memcpy(parcel->data, (const void *)(uintptr_t)departure.segments[0].address,
                   departure.payload_bytes);
        }
    }
}

/* -- Worlds -------------------------------------------------------------------------------------*/

static void deliver(struct world *world)
{
    const uint32_t near = world->net_count < 8 ? world->net_count : 8;
    const uint32_t at = draw(world, 2) ? draw(world, near) : draw(world, world->net_count);
    struct parcel parcel = world->net[at];
    world->net[at] = world->net[--world->net_count];
    const bool request = parcel.kind == PARCEL_REQUEST;
    if (request) {
        world->blocks[parcel.block].flying &= ~((uint64_t)1 << parcel.position);
    }
    if (draw(world, 1000) < world->loss) {
        return;
    }
    if (draw(world, 20) == 0 && world->net_count < NET_MAX) {
        world->net[world->net_count++] = parcel;
    }
    switch (parcel.kind) {
    case PARCEL_ANSWER: on_answer(world, &parcel.packet); return;
    case PARCEL_DATA: on_data(world, &parcel); return;
    case PARCEL_REQUEST:
    case PARCEL_PROBE: deliver_request(world, &parcel); return;
    }
}

static bool done(const struct world *world)
{
    for (uint32_t i = 0; i < world->message_count; i++) {
        const struct message *message = &world->messages[i];
        if ((message->kind == READ || message->kind == ATOMIC) && !message->data_done) {
            return false;
        }
    }
    return world->base == world->first_number + world->block_count;
}

/* Nothing is on its way: asks again for data that did not come, and sends a probe. */
static void ask_again(struct world *world)
{
    for (uint32_t i = 0; i < world->started; i++) {
        const struct block *block = &world->blocks[i];
        if (block_number_before(world->first_number + i, world->base) &&
            (block->message->kind == READ || block->message->kind == ATOMIC) &&
            !block->message->data_done) {
            send_block(world, i, 0);
        }
    }
    if (world->started != 0) {
        add_parcel(world, PARCEL_PROBE);
    }
}

/* Executes the messages in order, up to `until`, as soon as the requester lets a READ depend on
 * them. */
static void execute(struct world *world, const struct message *until, uint32_t *done_until)
{
    for (; *done_until < world->message_count && &world->messages[*done_until] <= until;
         ++*done_until) {
        struct message *message = &world->messages[*done_until];
        if (writes(message)) {
            memcpy(world->expected + message->address, message->data, message->bytes);
        } else if (message->kind == ATOMIC) {
            execute_atomic(world, message);
        }
    }
}

static void run(uint64_t seed, uint64_t counters[COUNTER_COUNT])
{
    static const uint32_t losses[] = {0, 20, 100, 300};
    struct world *world = calloc(1, sizeof(*world));
    prng_init(&world->prng, seed);
    world->loss = losses[seed % 4];
    world->slow = seed % 5 == 0;
    world->eager = seed % 8 == 3;
    world->first_number = seed % 7 == 0 ? (uint32_t)-5 : 0;
    world->first_receive = seed % 6 == 0 ? (uint32_t)-2 : 0;
    world->base = world->first_number;
    world->limit = world->first_receive;
    const bool shared = seed % 3 == 0;
    const struct bench_config config = {.shared = shared,
                                        .held = 1 + draw(world, 8),
                                        .place = seed / 4 % 3 == 0 ? BLOCK_PLACE_HOLD
                                                                   : BLOCK_PLACE_EARLY};
    bench_make(&world->bench, &config);
    bench_speak_blocks(&world->bench, world->first_number, world->first_receive);
    fill_table(world, seed / 12 % 2 == 0 ? 16 : draw(world, 16));
    world->bench.qp->block->receiver->open_limit = 1 + draw(world, BLOCK_OPEN_MAX);
    for (uint32_t n = 1 + draw(world, 6); n > 0; n--) {
        post_receive(world);
    }
    plan(world);
    uint32_t executed_until = 0;
    while (!done(world)) {
        world->bench.now.ns += draw(world, 50) == 0 ? 200000000 : 1000; /* Contexts grow old. */
        assert_true(world->step++ < 400000);
        start_blocks(world);
        if (world->started != 0) {
            execute(world, world->blocks[world->started - 1].message, &executed_until);
        }
        if (world->move_count != 0 && draw(world, 4) == 0) {
            finish_move(world);
            struct nic_move move;
            take_moves(world, &move, block_receive_next_held(world->bench.qp, &move));
        }
        if (world->net_count == 0 && world->move_count == 0) {
            ask_again(world);
        }
        if (world->net_count != 0) {
            deliver(world);
        }
        if (draw(world, 3) == 0) {
            pull(world);
        }
        if (world->owed != 0 && draw(world, 8) == 0) {
            world->owed--;
            post_receive(world);
        }
    }
    assert_int_equal(world->completed, world->consumers);
    assert_memory_equal(world->bench.memory, world->expected, BENCH_MEMORY_BYTES);
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        counters[i] += nic_counters(world->bench.nic)->values[i];
    }
    bench_end(&world->bench);
    free(world);
}

/* EXA-76 EXA-77 EXA-78 EXA-79 EXA-80 EXA-81 EXA-82 EXA-85 EXA-86 EXA-88 EXA-94 EXA-95 EXA-96
 * EXA-110 EXA-111 */
static void any_order_ends_as_in_order(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < sizeof(noise); i++) {
        noise[i] = (uint8_t)prng_next(&prng);
    }
    static const enum nic_counter expected[] = {
        COUNTER_blocks_declined, COUNTER_blocks_no_context, COUNTER_blocks_reneged,
        COUNTER_blocks_held,     COUNTER_hold_full,         COUNTER_duplicate_request,
        COUNTER_send_rnr_err,    COUNTER_rdma_recvs,        COUNTER_block_probes_received};
    uint64_t counters[COUNTER_COUNT] = {0};
    const char *seeds = getenv("BLOCK_SEEDS");
    const uint64_t first =
        getenv("BLOCK_SEED") == NULL ? 0 : strtoull(getenv("BLOCK_SEED"), NULL, 10);
    const uint64_t count = seeds == NULL ? 3000 : strtoull(seeds, NULL, 10);
    for (uint64_t seed = first; seed < first + count; seed++) {
        run(seed, counters);
    }
    for (uint32_t i = 0; i < COUNT_OF(expected); i++) {
        if (count >= 1000 && counters[expected[i]] == 0) {
            print_error("%s never happened\n", nic_counter_name(expected[i]));
            fail();
        }
    }
}

/* The route by which a packet of path 2 is answered. */
static uint8_t way_back(struct bench *bench, uint8_t opcode, uint8_t round)
{
    const struct block_packet packet = {.opcode = opcode,
                                        .session = BENCH_SESSION,
                                        .path = 2,
                                        .round = round,
                                        .ack_request = true,
                                        .last_block = true};
    const struct block_arrival arrival = {.packet = packet, .at = bench->now};
    struct nic_departure departure;
    struct nic_move move;
    if (block_receive_on_packet(bench->qp, &arrival, bench->now, &move)) {
        block_receive_on_moved(bench->qp, &move, NIC_MOVED, bench->now);
    }
    assert_true(block_receive_next(bench->qp, bench->now, &departure));
    assert_int_equal(departure.headers[0], BLOCK_ANSWER);
    return departure.route;
}

/* A peer that probes a path in vain may not get the replies that go back by it. Its probes say how
 * often it has taken another route; then replies take another one, too, and stay there. EXA-100 */
static void replies_leave_a_route_back_that_is_dead(void **state)
{
    (void)state;
    struct bench *bench = calloc(1, sizeof(*bench));
    bench_make(bench, &(struct bench_config){.held = 4});
    bench_speak_blocks(bench, 0, 0);
    struct nic_peer peer = {.routes = {.ports = 16}};
    bench->nic->peers = &peer;
    bench->nic->limits.block.peers = 1;
    bench->qp->attributes.av.peer = 1;
    receiver_of(bench->qp)->path_count = 4;
    static const uint8_t routes[] = {2, 7, 12, 1, 6};
    for (uint8_t i = 0; i < COUNT_OF(routes); i++) {
        assert_int_equal(way_back(bench, BLOCK_PROBE, i), routes[i]);
        assert_int_equal(way_back(bench, BLOCK_WRITE, 9), routes[i]);
    }
    /* Both come back to where they began after 16 turns; not together, or half of the possible
     * pairs would never be tried. */
    assert_int_equal(way_back(bench, BLOCK_PROBE, 16), 7);
    assert_int_equal(way_back(bench, BLOCK_PROBE, 0), 2);
    bench_end(bench);
    free(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(replies_leave_a_route_back_that_is_dead),
        cmocka_unit_test(any_order_ends_as_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
