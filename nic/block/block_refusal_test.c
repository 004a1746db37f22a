/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A request by blocks is refused as RC would refuse it: the same status, completions,
 *         events and order of flushing, in whatever order the blocks come.
 * Method  Each row is a list of requests. One NIC gets it as RC's packets, in order; others get it
 *         as blocks, shuffled, again and again until the requests are executed or refused.
 */
#include "base/prng.h"
#include "nic/block/block_bench.h"
#include "transport/ibta/segmentation.h"

enum {
    REQUESTS_MAX = 4,
    RECEIVES_MAX = 4,
    PACKETS_MAX = 64,
    EVENTS_MAX = 8,
    COMPLETIONS_MAX = 16,
    ORDERS = 40,
    UNKNOWN_KEY = 0x7f00ff01,
};

enum key {
    KEY_NONE, /* No receives there. */
    KEY_GOOD,
    KEY_OTHER,  /* Opens the same memory. */
    KEY_WINDOW, /* Type 2, of the queue pair. */
    KEY_UNKNOWN,
};

struct request {
    enum work_kind kind;
    uint32_t bytes;
    uint64_t address;
    enum key key;
    enum key invalidates;
};

struct posted {
    uint32_t bytes;
    enum key key;
};

struct row {
    const char *name;
    uint32_t access;
    struct posted receives[RECEIVES_MAX];
    struct request requests[REQUESTS_MAX];
};

#define ALL (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

/* EXA-82 EXA-83 EXA-88 EXA-89 EXA-90 */
static const struct row rows[] = {
    {"nothing is wrong",
     ALL,
     {{1000, KEY_GOOD}, {1000, KEY_GOOD}},
     {{WORK_SEND_IMMEDIATE, 700, 0, 0, 0},
      {WORK_WRITE, 900, 0, KEY_GOOD, 0},
      {WORK_WRITE_IMMEDIATE, 600, 5000, KEY_OTHER, 0}}},
    {"the first packet takes a window away",
     ALL,
     {{1000, KEY_GOOD}},
     {{WORK_SEND_INVALIDATE, 200, 0, 0, KEY_WINDOW}}},
    {"a WRITE by an unknown key",
     ALL,
     {{1000, KEY_GOOD}, {1000, KEY_GOOD}},
     {{WORK_SEND, 700, 0, 0, 0}, {WORK_WRITE, 700, 0, KEY_UNKNOWN, 0}, {WORK_SEND, 10, 0, 0, 0}}},
    {"a WRITE whose end is out of bounds",
     ALL,
     {{1000, KEY_GOOD}},
     {{WORK_WRITE, 700, 0, KEY_GOOD, 0},
      {WORK_WRITE, 700, BENCH_MEMORY_BYTES - 699, KEY_GOOD, 0},
      {WORK_WRITE, 10, 0, KEY_GOOD, 0}}},
    {"WRITEs are not permitted",
     ACCESS_REMOTE_READ,
     {{0, KEY_NONE}},
     {{WORK_READ, 700, 0, KEY_GOOD, 0}, {WORK_WRITE, 10, 0, KEY_GOOD, 0}}},
    {"READs are not permitted",
     ACCESS_REMOTE_WRITE,
     {{100, KEY_GOOD}},
     {{WORK_WRITE, 700, 0, KEY_GOOD, 0}, {WORK_READ, 10, 0, KEY_GOOD, 0}}},
    {"atomics are not permitted",
     ACCESS_REMOTE_WRITE,
     {{100, KEY_GOOD}},
     {{WORK_WRITE, 700, 0, KEY_GOOD, 0}, {WORK_FETCH_ADD, 8, 0, KEY_GOOD, 0}}},
    {"a message too long for its receive",
     ALL,
     {{1000, KEY_GOOD}, {600, KEY_GOOD}, {1000, KEY_GOOD}},
     {{WORK_SEND, 700, 0, 0, 0}, {WORK_SEND, 601, 0, 0, 0}, {WORK_SEND, 10, 0, 0, 0}}},
    {"a message of one packet too long for its receive",
     ALL,
     {{10, KEY_GOOD}, {1000, KEY_GOOD}},
     {{WORK_SEND, 11, 0, 0, 0}, {WORK_SEND, 10, 0, 0, 0}}},
    {"a receive whose key is bad",
     ALL,
     {{1000, KEY_GOOD}, {1000, KEY_UNKNOWN}, {1000, KEY_GOOD}},
     {{WORK_SEND, 10, 0, 0, 0}, {WORK_SEND, 700, 0, 0, 0}, {WORK_SEND, 10, 0, 0, 0}}},
    {"a receive that is bad and too short",
     ALL,
     {{600, KEY_UNKNOWN}, {1000, KEY_GOOD}},
     {{WORK_SEND, 700, 0, 0, 0}, {WORK_SEND, 10, 0, 0, 0}}},
    {"no receive for a SEND",
     ALL,
     {{1000, KEY_GOOD}},
     {{WORK_SEND, 700, 0, 0, 0}, {WORK_SEND, 700, 0, 0, 0}, {WORK_WRITE, 10, 0, KEY_GOOD, 0}}},
    {"no receive for a WRITE with immediate data",
     ALL,
     {{1000, KEY_GOOD}},
     {{WORK_SEND, 700, 0, 0, 0},
      {WORK_WRITE_IMMEDIATE, 700, 0, KEY_GOOD, 0},
      {WORK_WRITE, 10, 0, KEY_GOOD, 0}}},
    {"neither receive nor key",
     ALL,
     {{0, KEY_NONE}},
     {{WORK_WRITE_IMMEDIATE, 700, 0, KEY_UNKNOWN, 0}, {WORK_WRITE, 10, 0, KEY_GOOD, 0}}},
    {"a READ by an unknown key",
     ALL,
     {{1000, KEY_GOOD}},
     {{WORK_SEND, 700, 0, 0, 0}, {WORK_READ, 700, 0, KEY_UNKNOWN, 0}, {WORK_SEND, 1, 0, 0, 0}}},
    {"a misaligned atomic",
     ALL,
     {{1000, KEY_GOOD}},
     {{WORK_FETCH_ADD, 8, 16, KEY_GOOD, 0}, {WORK_FETCH_ADD, 8, 12, KEY_GOOD, 0}}},
    {"a misaligned atomic by an unknown key",
     ALL,
     {{1000, KEY_GOOD}},
     {{WORK_COMPARE_SWAP, 8, 12, KEY_UNKNOWN, 0}}},
    {"an atomic by an unknown key",
     ALL,
     {{1000, KEY_GOOD}},
     {{WORK_COMPARE_SWAP, 8, 8, KEY_GOOD, 0}, {WORK_COMPARE_SWAP, 8, 16, KEY_UNKNOWN, 0}}},
    {"a WRITE through a window, and its end",
     ALL,
     {{1000, KEY_GOOD}, {1000, KEY_GOOD}},
     {{WORK_WRITE, 700, 100, KEY_WINDOW, 0},
      {WORK_SEND_INVALIDATE, 300, 0, 0, KEY_WINDOW},
      {WORK_SEND, 5, 0, 0, 0}}},
    {"a WRITE through a window that an earlier SEND invalidates",
     ALL,
     {{1000, KEY_GOOD}, {1000, KEY_GOOD}},
     {{WORK_SEND_INVALIDATE, 300, 0, 0, KEY_WINDOW},
      {WORK_WRITE, 700, 100, KEY_WINDOW, 0},
      {WORK_SEND, 5, 0, 0, 0}}},
    {"a key that cannot be invalidated",
     ALL,
     {{1000, KEY_GOOD}, {1000, KEY_GOOD}},
     {{WORK_SEND, 3, 0, 0, 0},
      {WORK_SEND_INVALIDATE, 300, 0, 0, KEY_GOOD},
      {WORK_SEND, 5, 0, 0, 0}}},
};

/* The reports that the program and the requester got. */
struct outcome {
    uint8_t status; /* enum block_status. */
    uint8_t state;
    uint32_t event_count, completion_count;
    enum nic_event_kind events[EVENTS_MAX];
    struct completion completions[COMPLETIONS_MAX];
};

struct attempt {
    struct bench bench;
    struct region window;
    const struct row *row;
    struct outcome outcome;
    struct prng prng;
};

static const uint8_t payload[1024] = {1, 2, 3};

static uint32_t key_of(const struct attempt *attempt, enum key key)
{
    switch (key) {
    case KEY_NONE: return 0;
    case KEY_GOOD: return attempt->bench.region[0].key;
    case KEY_OTHER: return attempt->bench.region[1].key;
    case KEY_WINDOW: return attempt->window.key;
    case KEY_UNKNOWN: return UNKNOWN_KEY;
    }
    return 0;
}

static void begin(struct attempt *attempt, const struct row *row, const struct bench_config *config)
{
    attempt->row = row;
    attempt->outcome = (struct outcome){0};
    struct bench_config granted = *config;
    granted.access = row->access;
    bench_make(&attempt->bench, &granted);
    struct region_table *regions = nic_regions(attempt->bench.nic);
    attempt->bench.region[0].access |= ACCESS_MW_BIND;
    memset(&attempt->window, 0, sizeof(attempt->window));
    assert_int_equal(
        window_add(regions, &attempt->bench.pd, REGION_WINDOW_TYPE_2, &attempt->window), STATUS_OK);
    const struct window_bind bind = {.window = &attempt->window,
                                     .region = &attempt->bench.region[0],
                                     .address = 0,
                                     .bytes = 2000,
                                     .access = ACCESS_REMOTE_WRITE,
                                     .key = attempt->window.key + 1};
    assert_true(window_bind_execute(regions, &bind, attempt->bench.qp, &attempt->bench.pd));
    for (uint32_t i = 0; i < RECEIVES_MAX && row->receives[i].key != KEY_NONE; i++) {
        const bool good = row->receives[i].key == KEY_GOOD;
        bench_post_receive(&attempt->bench, i, row->receives[i].bytes,
                           good ? attempt->bench.receive_region.key : UNKNOWN_KEY);
    }
}

static void finish(struct attempt *attempt)
{
    struct outcome *outcome = &attempt->outcome;
    struct nic_event event;
    while (nic_next_event(attempt->bench.nic, &event)) {
        outcome->events[outcome->event_count++] = event.kind;
    }
    struct completion completion;
    while (cq_poll(&attempt->bench.cq, &completion, 1) == 1) {
        completion.qpn = 0;
        if (completion.flags & COMPLETION_HAS_INVALIDATE) {
            completion.immediate = 0; /* Keys are drawn by each NIC. */
        }
        outcome->completions[outcome->completion_count++] = completion;
    }
    outcome->state = attempt->bench.qp->state;
    window_remove(nic_regions(attempt->bench.nic), &attempt->window);
    bench_end(&attempt->bench);
}

/* -- RC -----------------------------------------------------------------------------------------*/

static void take_rc_reply(struct attempt *attempt)
{
    struct nic_departure departure;
    struct roce_packet packet;
    while (nic_next_packet(attempt->bench.nic, attempt->bench.qp, attempt->bench.now, &departure)) {
        assert_int_equal(roce_decode_split(departure.headers, departure.headers_bytes, payload,
                                           departure.payload_bytes + departure.pad_bytes, &packet),
                         ROCE_GOOD);
        if ((packet.opcode & 0x1f) != ROCE_ACKNOWLEDGE) {
            continue;
        }
        switch (packet.aeth.syndrome) {
        case ROCE_NAK_INVALID_REQUEST:
            attempt->outcome.status = BLOCK_STATUS_INVALID_REQUEST;
            break;
        case ROCE_NAK_REMOTE_ACCESS: attempt->outcome.status = BLOCK_STATUS_ACCESS; break;
        case ROCE_NAK_REMOTE_OPERATIONAL: attempt->outcome.status = BLOCK_STATUS_OPERATIONAL; break;
        default:
            if ((packet.aeth.syndrome & ROCE_AETH_KIND_MASK) == ROCE_AETH_RNR_NAK) {
                attempt->outcome.status = BLOCK_STATUS_RNR;
            }
            break;
        }
    }
}

static void deliver_rc(struct attempt *attempt, struct roce_packet packet)
{
    packet.opcode |= ROCE_SERVICE_RC;
    packet.pkey = ROCE_DEFAULT_PKEY;
    packet.destination_qpn = qp_number(attempt->bench.qp);
    packet.pad_bytes = roce_pad_bytes(packet.payload_bytes);
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    const struct nic_frame frame = {
        .headers = headers,
        .payload = payload,
        .headers_bytes = (uint32_t)roce_encode_headers(&packet, headers),
        .payload_bytes = packet.payload_bytes + packet.pad_bytes,
        .source = {{[15] = 1}},
    };
    struct nic_move move;
    if (nic_on_packet(attempt->bench.nic, &frame, attempt->bench.now, &move) == NIC_MOVES) {
        bench_make_move(&move);
        nic_on_moved(attempt->bench.nic, &move, NIC_MOVED, attempt->bench.now);
    }
    take_rc_reply(attempt);
}

static uint32_t request_rc(struct attempt *attempt, const struct request *request, uint32_t psn)
{
    const struct work work = {.kind = (uint8_t)request->kind, .bytes = request->bytes};
    const bool carries = work_is(&work, WORK_IS_SEND) || work_is(&work, WORK_IS_WRITE);
    const uint32_t packets = carries ? block_message_packets(request->bytes, BENCH_MTU) : 1;
    const uint32_t key = key_of(attempt, request->key);
    for (uint32_t i = 0; i < packets && attempt->outcome.status == BLOCK_STATUS_NONE; i++) {
        struct roce_packet packet = {.psn = psn + i, .ack_request = true};
        packet.reth.address = request->address;
        packet.reth.key = key;
        packet.reth.bytes = request->bytes;
        if (carries) {
            const struct piece piece = work_piece(&work, i, BENCH_MTU);
            packet.opcode = (uint8_t)piece.operation;
            packet.payload_bytes = piece.bytes;
        } else {
            packet.opcode = (uint8_t)work_request(&work);
        }
        if (request->kind == WORK_FETCH_ADD || request->kind == WORK_COMPARE_SWAP) {
            packet.atomic.address = request->address;
            packet.atomic.key = key;
        }
        const uint32_t traits = roce_opcode(packet.opcode)->traits;
        if (traits & ROCE_HAS_IMMDT) {
            packet.immediate = 0x1234;
        } else if (traits & ROCE_HAS_IETH) {
            packet.invalidate_key = key_of(attempt, request->invalidates);
        }
        deliver_rc(attempt, packet);
    }
    return psn + (request->kind == WORK_READ ? block_message_packets(request->bytes, BENCH_MTU)
                                             : packets);
}

static void run_rc(struct attempt *attempt, const struct row *row)
{
    const struct bench_config config = {.held = 1};
    begin(attempt, row, &config);
    uint32_t psn = 0;
    for (uint32_t i = 0; i < REQUESTS_MAX && row->requests[i].bytes != 0; i++) {
        psn = request_rc(attempt, &row->requests[i], psn);
    }
    finish(attempt);
}

/* -- Blocks -------------------------------------------------------------------------------------*/

static bool consumes(const struct request *request)
{
    return request->kind == WORK_WRITE_IMMEDIATE || request->kind == WORK_SEND ||
           request->kind == WORK_SEND_IMMEDIATE || request->kind == WORK_SEND_INVALIDATE;
}

static struct block_packet block_packet_of(const struct attempt *attempt, uint32_t number,
                                           uint8_t position, uint32_t receive_number)
{
    const struct request *request = &attempt->row->requests[number];
    const uint32_t packets = block_message_packets(request->bytes, BENCH_MTU);
    const struct work work = {.kind = (uint8_t)request->kind};
    struct block_packet packet = {
        .session = BENCH_SESSION,
        .number = number,
        .position = position,
        .last_position = (uint8_t)(packets - 1),
        .last_block = true,
        .address = request->address,
        .key = key_of(attempt, request->key),
        .message_bytes = request->bytes,
        .receive_number = receive_number,
    };
    if (request->kind == WORK_READ) {
        packet.opcode = BLOCK_READ;
        packet.position = 0;
        packet.wanted = block_positions(packet.last_position);
        return packet;
    }
    if (request->kind == WORK_FETCH_ADD || request->kind == WORK_COMPARE_SWAP) {
        packet.opcode = BLOCK_ATOMIC;
        packet.atomic.kind = request->kind == WORK_FETCH_ADD ? BLOCK_FETCH_ADD : BLOCK_COMPARE_SWAP;
        packet.atomic.swap_or_add = packet.atomic.compare = 0;
        return packet;
    }
    packet.opcode = work_is(&work, WORK_IS_SEND) ? BLOCK_SEND : BLOCK_WRITE;
    packet.early = true;
    if (position == packet.last_position) {
        packet.has_immediate =
            request->kind == WORK_SEND_IMMEDIATE || request->kind == WORK_WRITE_IMMEDIATE;
        packet.invalidates = request->kind == WORK_SEND_INVALIDATE;
        packet.tag = packet.has_immediate ? 0x1234 : 0;
        if (packet.invalidates) {
            block_set_invalidate_key(&packet, key_of(attempt, request->invalidates));
        }
    }
    const uint32_t offset = position * (uint32_t)BENCH_MTU;
    packet.payload_bytes =
        request->bytes - offset < BENCH_MTU ? request->bytes - offset : BENCH_MTU;
    packet.payload = payload;
    return packet;
}

static void deliver_block(struct attempt *attempt, const struct block_packet *packet)
{
    struct bench *bench = &attempt->bench;
    const struct block_arrival arrival = {.packet = *packet, .at = bench->now};
    assert_int_equal(block_judge(packet, BENCH_MTU), BLOCK_CONSISTENT);
    struct nic_move move;
    bool moves = block_receive_on_packet(bench->qp, &arrival, bench->now, &move);
    for (; moves; moves = block_receive_next_held(bench->qp, &move)) {
        bench_make_move(&move);
        block_receive_on_moved(bench->qp, &move, NIC_MOVED, bench->now);
    }
    block_receive_check(bench->qp);
    struct nic_departure departure;
    while (block_receive_ready(bench->qp) &&
           block_receive_next(bench->qp, bench->now, &departure)) {
        struct block_packet reply;
        assert_int_equal(block_decode(departure.headers, departure.headers_bytes, payload,
                                      (departure.payload_bytes + 3) & ~3u, &reply),
                         BLOCK_GOOD);
        if (reply.opcode == BLOCK_ANSWER && reply.answer.status != BLOCK_STATUS_NONE) {
            attempt->outcome.status = reply.answer.status;
        }
    }
}

/* All packets of all requests, in any order. */
static uint32_t shuffle(struct attempt *attempt, struct block_packet packets[PACKETS_MAX])
{
    uint32_t count = 0;
    uint32_t receive_number = 0;
    for (uint32_t i = 0; i < REQUESTS_MAX && attempt->row->requests[i].bytes != 0; i++) {
        const struct request *request = &attempt->row->requests[i];
        const bool single = request->kind == WORK_READ || request->kind == WORK_FETCH_ADD ||
                            request->kind == WORK_COMPARE_SWAP;
        const uint32_t many = single ? 1 : block_message_packets(request->bytes, BENCH_MTU);
        for (uint32_t position = 0; position < many; position++) {
            packets[count++] = block_packet_of(attempt, i, (uint8_t)position, receive_number);
        }
        receive_number += consumes(request);
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t other = i + (uint32_t)(prng_next(&attempt->prng) % (count - i));
        const struct block_packet packet = packets[i];
        packets[i] = packets[other];
        packets[other] = packet;
    }
    return count;
}

static void run_blocks(struct attempt *attempt, const struct row *row, uint64_t seed)
{
    const struct bench_config config = {.held = 1 + (uint32_t)seed % 5,
                                        .place =
                                            seed % 3 == 0 ? BLOCK_PLACE_HOLD : BLOCK_PLACE_EARLY};
    begin(attempt, row, &config);
    prng_init(&attempt->prng, seed);
    bench_speak_blocks(&attempt->bench, 0, 0);
    /* Each round sends all again: as many as the least lucky order needs. */
    for (uint32_t round = 0; round < 16 && attempt->bench.qp->state != QP_ERR; round++) {
        struct block_packet packets[PACKETS_MAX];
        const uint32_t count = shuffle(attempt, packets);
        for (uint32_t i = 0; i < count && attempt->bench.qp->state != QP_ERR; i++) {
            deliver_block(attempt, &packets[i]);
        }
    }
    finish(attempt);
}

static bool same_completions(const struct outcome *a, const struct outcome *b)
{
    for (uint32_t i = 0; i < a->completion_count; i++) {
        const struct completion *x = &a->completions[i];
        const struct completion *y = &b->completions[i];
        if (x->wr_id != y->wr_id || x->status != y->status || x->kind != y->kind ||
            x->bytes != y->bytes || x->flags != y->flags || x->immediate != y->immediate ||
            x->solicited != y->solicited) {
            return false;
        }
    }
    return true;
}

/* A key that an earlier request takes away opens memory until then. */
static bool may_be_written_early(const struct row *row)
{
    bool invalidated = false;
    for (uint32_t i = 0; i < REQUESTS_MAX; i++) {
        if (invalidated && row->requests[i].key == KEY_WINDOW) {
            return true;
        }
        invalidated |= row->requests[i].invalidates == KEY_WINDOW;
    }
    return false;
}

static void refusals_are_those_of_rc(void **state)
{
    (void)state;
    static struct attempt rc, blocks;
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        run_rc(&rc, &rows[i]);
        for (uint64_t seed = 0; seed < ORDERS; seed++) {
            run_blocks(&blocks, &rows[i], seed);
            const struct outcome *a = &rc.outcome;
            const struct outcome *b = &blocks.outcome;
            const bool same =
                a->status == b->status && a->state == b->state &&
                a->event_count == b->event_count && a->completion_count == b->completion_count &&
                memcmp(a->events, b->events, sizeof(a->events)) == 0 && same_completions(a, b) &&
                (may_be_written_early(&rows[i]) ||
                 memcmp(rc.bench.memory, blocks.bench.memory, BENCH_MEMORY_BYTES) == 0);
            if (!same) {
                print_error("%s, order %u: status %u and %u, state %u and %u, %u and %u events, "
                            "%u and %u completions\n",
                            rows[i].name, (unsigned)seed, a->status, b->status, a->state, b->state,
                            a->event_count, b->event_count, a->completion_count,
                            b->completion_count);
            }
            assert_true(same);
        }
    }
}

/* Blocks have no FLUSH, so none can be posted where a stream may become blocks; elsewhere it
 * can. */
static void no_flush_by_blocks(void **state)
{
    (void)state;
    static struct bench bench;
    const struct send_request flush = {
        .kind = WORK_FLUSH, .remote_key = 7, .flush = {.placement = ROCE_PLACEMENT_GLOBAL}};
    for (int speaks = 0; speaks < 2; speaks++) {
        bench_make(&bench, &(struct bench_config){.held = 8});
        bench_modify(&bench, QP_RTS,
                     QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY | QP_ATTR_SQ_PSN |
                         QP_ATTR_MAX_QP_RD_ATOMIC,
                     0);
        if (speaks) {
            bench_speak_blocks(&bench, 0, 0);
        }
        assert_int_equal(qp_post_send(bench.qp, &flush), speaks ? STATUS_UNSUPPORTED : STATUS_OK);
        bench_end(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_those_of_rc),
        cmocka_unit_test(no_flush_by_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
