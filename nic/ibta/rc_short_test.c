/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A packet that may take the short way comes to the same as by the long way, whatever the
 *         packet, the queue pair, the memory and the requests before it are: accepted or refused.
 * Method  Two NICs, of which one has no short way, get the same requests, receives, packets and
 *         times, which are drawn. After each step all that can be seen of them is compared, and the
 *         state of the connection. Each kind of packet and each refusal has to have been seen.
 *
 * Usage: rc_short_test [SEED], which is printed; usual is a fresh one.
 */
#include "nic/ibta/test_bench.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/prng.h"
#include "wire/roce.h"

#define ALL_RIGHTS (ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC)

enum {
    WORLDS = 10000,
    STEPS = 600,
    ROOM = 8 * MTU, /* The region's bytes; its addresses begin with 0. */
};

struct twins {
    struct bench *of[2]; /* The second has the long way only. */
    struct prng prng;
    uint64_t wr_id;
};

/* Over all worlds: packets of each opcode that moved data, and counts of all kinds. */
static uint64_t moved[256], seen[COUNTER_COUNT], left[256], first_seed = 1;

static uint32_t draw(struct twins *twins, uint32_t bound)
{
    return (uint32_t)prng_below(&twins->prng, bound);
}

static bool one_in(struct twins *twins, uint32_t count)
{
    return draw(twins, count) == 0;
}

/* Mostly one packet, sometimes several or none. */
static uint32_t draw_bytes(struct twins *twins)
{
    return one_in(twins, 8) ? draw(twins, 3 * MTU) : 1 + draw(twins, 64);
}

static uint32_t draw_key(struct twins *twins)
{
    const uint32_t key = twins->of[0]->region.key;
    return one_in(twins, 30) ? key ^ (1 + draw(twins, 1000)) : key;
}

static uint64_t draw_address(struct twins *twins)
{
    return draw(twins, one_in(twins, 20) ? 2 * ROOM : ROOM - 4 * MTU);
}

/* -- Comparison ---------------------------------------------------------------------------------*/

static void same_segments(const struct twins *twins, const struct segment *one,
                          const struct segment *other, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t start = (uintptr_t)twins->of[0]->memory;
        const bool in_region = one[i].address - start < ROOM;
        assert_int_equal(one[i].bytes, other[i].bytes);
        if (in_region) {
            assert_int_equal(one[i].address - start,
                             other[i].address - (uintptr_t)twins->of[1]->memory);
        }
    }
}

static void same_completion(const struct completion *one, const struct completion *other)
{
    assert_int_equal(one->wr_id, other->wr_id);
    assert_int_equal(one->bytes, other->bytes);
    assert_int_equal(one->immediate, other->immediate);
    assert_int_equal(one->qpn, other->qpn);
    assert_int_equal(one->status, other->status);
    assert_int_equal(one->kind, other->kind);
    assert_int_equal(one->flags, other->flags);
    assert_int_equal(one->vendor_error, other->vendor_error);
    assert_int_equal(one->solicited, other->solicited);
}

static void same_move(const struct twins *twins, const struct nic_move *one,
                      const struct nic_move *other)
{
    assert_int_equal(one->kind, other->kind);
    assert_int_equal(one->purpose, other->purpose);
    assert_int_equal(one->in_order, other->in_order);
    assert_int_equal(one->segment_count, other->segment_count);
    same_segments(twins, one->segments, other->segments, one->segment_count);
    assert_ptr_equal(one->kind == NIC_MOVE_SCATTER ? one->payload : NULL,
                     one->kind == NIC_MOVE_SCATTER ? other->payload : NULL);
    assert_int_equal(one->prefix_bytes, other->prefix_bytes);
    assert_int_equal(one->psn, other->psn);
    assert_int_equal(one->epoch, other->epoch);
    assert_int_equal(one->action, other->action);
    assert_int_equal(one->ack_request, other->ack_request);
    assert_int_equal(one->completes, other->completes);
    if (one->completes) {
        same_completion(&one->completion, &other->completion);
    }
}

static void same_departure(const struct twins *twins, const struct nic_departure *one,
                           const struct nic_departure *other)
{
    assert_int_equal(one->headers_bytes, other->headers_bytes);
    assert_memory_equal(one->headers, other->headers, one->headers_bytes);
    assert_int_equal(one->payload_bytes, other->payload_bytes);
    assert_int_equal(one->pad_bytes, other->pad_bytes);
    assert_int_equal(one->segment_count, other->segment_count);
    same_segments(twins, one->segments, other->segments, one->segment_count);
    assert_int_equal(one->destination_qpn, other->destination_qpn);
    assert_int_equal(one->psn, other->psn);
    assert_int_equal(one->route, other->route);
    assert_int_equal(one->ecn, other->ecn);
    assert_int_equal(one->alone, other->alone);
    assert_int_equal(one->reply, other->reply);
    assert_int_equal(one->more_sends, other->more_sends);
    assert_int_equal(one->direct.kind, other->direct.kind);
    if (one->direct.kind != NIC_DIRECT_NONE) {
        assert_int_equal(one->direct.message_bytes, other->direct.message_bytes);
        assert_int_equal(one->direct.address, other->direct.address);
        assert_int_equal(one->direct.key, other->direct.key);
        assert_int_equal(one->direct.bytes, other->direct.bytes);
    }
}

/* The connection's state, but for what points into one of the two. */
static void same_connection(const struct qp *one, const struct qp *other)
{
    struct rc_requester out[2] = {one->out.rc, other->out.rc};
    struct rc_responder in[2] = {one->in.rc, other->in.rc};
    for (int i = 0; i < 2; i++) {
        out[i].policy = NULL;
        in[i].resources = NULL;
    }
    assert_memory_equal(&out[0], &out[1], sizeof(out[0]));
    assert_memory_equal(&in[0], &in[1], sizeof(in[0]));
    assert_int_equal(one->state, other->state);
    assert_int_equal(one->events, other->events);
    assert_int_equal(one->reply_turn, other->reply_turn);
    assert_int_equal(one->sends.head, other->sends.head);
    assert_int_equal(one->sends.next, other->sends.next);
    assert_int_equal(one->receives.head, other->receives.head);
}

static void compare(struct twins *twins)
{
    struct completion completions[2][32];
    uint32_t count[2];
    for (int i = 0; i < 2; i++) {
        count[i] = cq_poll(&twins->of[i]->cq, completions[i], 32);
        nic_check(twins->of[i]->nic);
    }
    assert_int_equal(count[0], count[1]);
    for (uint32_t i = 0; i < count[0]; i++) {
        same_completion(&completions[0][i], &completions[1][i]);
    }
    same_connection(twins->of[0]->qp, twins->of[1]->qp);
    assert_memory_equal(nic_counters(twins->of[0]->nic), nic_counters(twins->of[1]->nic),
                        sizeof(struct nic_counters));
}

/* -- Steps --------------------------------------------------------------------------------------*/

static void post_drawn(struct twins *twins)
{
    static const enum work_kind kinds[] = {
        WORK_SEND,  WORK_SEND_IMMEDIATE,  WORK_WRITE, WORK_WRITE_IMMEDIATE, WORK_SEND,
        WORK_WRITE, WORK_WRITE_IMMEDIATE, WORK_READ,  WORK_FETCH_ADD,
    };
    struct send_request request = {.wr_id = ++twins->wr_id,
                                   .kind = kinds[draw(twins, COUNT_OF(kinds))],
                                   .flags = draw(twins, 2) * WORK_SIGNALED |
                                            draw(twins, 2) * WORK_SOLICITED |
                                            (one_in(twins, 10) ? WORK_FENCE : 0),
                                   .immediate = draw(twins, 1 << 30),
                                   .remote_address = draw_address(twins) & ~7u,
                                   .remote_key = draw_key(twins)};
    struct sge sge = {draw_address(twins), draw_bytes(twins), draw_key(twins)};
    const bool fetches = request.kind == WORK_READ || request.kind == WORK_FETCH_ADD;
    if (request.kind == WORK_FETCH_ADD) {
        sge.bytes = 8;
    }
    if (!fetches && sge.bytes <= 64 && one_in(twins, 2)) {
        request.flags |= WORK_INLINE;
        sge.address = (uintptr_t)payload;
    }
    request.sges = &sge;
    request.sge_count = !one_in(twins, 16);
    const enum status status = qp_post_send(twins->of[0]->qp, &request);
    assert_int_equal(status, qp_post_send(twins->of[1]->qp, &request));
}

static void receive_drawn(struct twins *twins)
{
    const struct sge sge = {draw_address(twins), draw_bytes(twins) + 2 * MTU * draw(twins, 2),
                            draw_key(twins)};
    const uint32_t count = !one_in(twins, 16);
    const enum status status = qp_post_receive(twins->of[0]->qp, ++twins->wr_id, &sge, count);
    assert_int_equal(status, qp_post_receive(twins->of[1]->qp, twins->wr_id, &sge, count));
}

static void pull_drawn(struct twins *twins)
{
    struct nic_departure departures[2] = {0};
    bool left_one[2];
    for (int i = 0; i < 2; i++) {
        left_one[i] =
            nic_next_packet(twins->of[i]->nic, twins->of[i]->qp, twins->of[i]->now, &departures[i]);
    }
    assert_int_equal(left_one[0], left_one[1]);
    if (!left_one[0]) {
        return;
    }
    same_departure(twins, &departures[0], &departures[1]);
    left[departures[0].headers[0]]++;
    const bool lost = departures[0].payload_bytes != 0 && one_in(twins, 100);
    const bool placed = departures[0].direct.kind == NIC_DIRECT_WRITE && departures[0].alone &&
                        departures[0].direct.message_bytes == departures[0].payload_bytes &&
                        one_in(twins, 3);
    /* The world finds that it could place such, and the next are to wait for that. */
    const bool places = departures[0].direct.kind == NIC_DIRECT_WRITE && one_in(twins, 3);
    for (int i = 0; i < 2; i++) {
        if (places) {
            nic_wait_to_place(twins->of[i]->qp);
        }
        if (lost) {
            nic_on_gather_failed(&departures[i]);
        } else if (placed) {
            nic_on_placed(&departures[i], twins->of[i]->now);
        }
    }
}

static uint32_t near(struct twins *twins, uint32_t psn)
{
    return (psn + (one_in(twins, 10) ? draw(twins, 7) - 3 : 0)) & PSN_MASK;
}

static struct roce_packet draw_packet(struct twins *twins)
{
    static const uint8_t plain[] = {ROCE_SEND_ONLY,  ROCE_SEND_ONLY_IMMEDIATE,  ROCE_ACKNOWLEDGE,
                                    ROCE_WRITE_ONLY, ROCE_WRITE_ONLY_IMMEDIATE, ROCE_ACKNOWLEDGE};
    static const uint8_t others[] = {ROCE_SEND_FIRST, ROCE_SEND_LAST_IMMEDIATE, ROCE_WRITE_FIRST,
                                     ROCE_WRITE_LAST, ROCE_READ_REQUEST};
    static const uint8_t syndromes[] = {FINE,
                                        FINE,
                                        FINE,
                                        FINE,
                                        ROCE_AETH_ACK | 3,
                                        ROCE_AETH_ACK,
                                        ROCE_AETH_RNR_NAK | 1,
                                        ROCE_NAK_PSN_SEQUENCE};
    const struct qp *qp = twins->of[0]->qp;
    struct roce_packet packet = {.opcode = one_in(twins, 20) ? others[draw(twins, COUNT_OF(others))]
                                                             : plain[draw(twins, COUNT_OF(plain))],
                                 .solicited = one_in(twins, 3),
                                 .migration_request = one_in(twins, 2),
                                 .ack_request = one_in(twins, 2),
                                 .pkey = one_in(twins, 50)  ? 1
                                         : one_in(twins, 9) ? 0x7fff
                                                            : 0xffff,
                                 .destination_qpn = qp_number(qp) ^ (one_in(twins, 50) ? 1u : 0),
                                 .immediate = draw(twins, 1 << 30),
                                 .reth = {.address = draw_address(twins), .key = draw_key(twins)}};
    if (packet.opcode == ROCE_ACKNOWLEDGE) {
        const uint32_t flight = (uint32_t)psn_distance(qp->out.rc.unacked, qp->out.rc.next);
        packet.psn = near(twins, qp->out.rc.unacked.value + draw(twins, flight + 1));
        packet.aeth.syndrome = syndromes[draw(twins, COUNT_OF(syndromes))];
        packet.aeth.msn = draw(twins, 1 << 24);
        return packet;
    }
    packet.psn = near(twins, rc_responder_expected(&qp->in.rc).value);
    const bool first = packet.opcode == ROCE_SEND_FIRST || packet.opcode == ROCE_WRITE_FIRST;
    const bool reads = packet.opcode == ROCE_READ_REQUEST;
    packet.payload_bytes = reads               ? 0
                           : first             ? MTU
                           : one_in(twins, 50) ? 2 * MTU
                                               : draw_bytes(twins) % MTU;
    packet.reth.bytes = packet.payload_bytes + (one_in(twins, 30) || first ? draw(twins, MTU) : 0);
    packet.pad_bytes = roce_pad_bytes(packet.payload_bytes);
    return packet;
}

/* Is done with the moves that wait, in their order; one may fail. */
static void finish_drawn(struct twins *twins)
{
    while (twins->of[0]->move_count > 0) {
        const enum nic_move_result result = one_in(twins, 200) ? NIC_MOVE_FAULTED : NIC_MOVED;
        finish_first(twins->of[0], result);
        finish_first(twins->of[1], result);
    }
}

static void deliver_drawn(struct twins *twins)
{
    uint8_t bytes[ROCE_HEADERS_BYTES_MAX + sizeof(payload) + 4] = {0};
    const struct roce_packet packet = draw_packet(twins);
    const uint32_t headers = (uint32_t)roce_encode_headers(&packet, bytes);
    uint32_t padded = packet.payload_bytes + packet.pad_bytes;
    if (one_in(twins, 40)) {
        bytes[draw(twins, headers)] ^= (uint8_t)(1u << draw(twins, 8));
    }
    const bool split = one_in(twins, 2);
    const struct nic_frame frame = {
        .headers = bytes,
        .payload = split ? payload : NULL,
        .headers_bytes = split ? headers : headers + padded,
        .payload_bytes = split ? padded : 0,
        .source = {{[15] = one_in(twins, 50) ? 2 : 1}},
        .traffic_class = one_in(twins, 50) ? 3 : 0,
        .placed = split && one_in(twins, 4),
    };
    enum nic_arrived arrived[2];
    for (int i = 0; i < 2; i++) {
        struct bench *bench = twins->of[i];
        arrived[i] =
            nic_on_packet(bench->nic, &frame, bench->now, &bench->moves[bench->move_count]);
    }
    assert_int_equal(arrived[0], arrived[1]);
    if (arrived[0] == NIC_MOVES) {
        const uint32_t at = twins->of[0]->move_count;
        same_move(twins, &twins->of[0]->moves[at], &twins->of[1]->moves[at]);
        moved[bytes[0]]++;
        twins->of[0]->move_count++;
        twins->of[1]->move_count++;
    }
    if (twins->of[0]->move_count == MOVES_MAX || !one_in(twins, 4)) {
        finish_drawn(twins); /* `bytes` end here, but nobody reads them. */
    }
}

static void wait_drawn(struct twins *twins)
{
    const uint64_t ns = draw(twins, one_in(twins, 10) ? 200000000 : 2000000);
    for (int i = 0; i < 2; i++) {
        twins->of[i]->now = instant_after(twins->of[i]->now, ns);
        nic_on_time(twins->of[i]->nic, twins->of[i]->now);
    }
}

static void change_drawn(struct twins *twins)
{
    const struct qp_attributes attributes = {.access = one_in(twins, 3) ? ACCESS_REMOTE_READ
                                                                        : ALL_RIGHTS};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            qp_modify(twins->of[i]->qp, &attributes, QP_ATTR_ACCESS_FLAGS, twins->of[i]->now),
            STATUS_OK);
    }
}

static void step(struct twins *twins)
{
    const uint32_t what = draw(twins, 100);
    if (what < 25) {
        post_drawn(twins);
    } else if (what < 40) {
        receive_drawn(twins);
    } else if (what < 65) {
        pull_drawn(twins);
    } else if (what < 95) {
        deliver_drawn(twins);
    } else if (what < 99) {
        wait_drawn(twins);
    } else if (twins->of[0]->qp->state == QP_RTS) {
        change_drawn(twins);
    }
    compare(twins);
}

/* -- Tests --------------------------------------------------------------------------------------*/

static void run_world(uint64_t seed)
{
    struct twins twins = {0};
    prng_init(&twins.prng, seed);
    for (int i = 0; i < 2; i++) {
        twins.of[i] = begin_on(i == 1, QP_RC, QP_RTS, ALL_RIGHTS);
        twins.of[i]->qp->signal_all = false;
    }
    assert_int_equal(twins.of[0]->region.key, twins.of[1]->region.key);
    for (int i = 0; i < STEPS && twins.of[0]->qp->state == QP_RTS; i++) {
        step(&twins);
    }
    finish_drawn(&twins);
    compare(&twins);
    for (int i = 0; i < COUNTER_COUNT; i++) {
        seen[i] += nic_counters(twins.of[0]->nic)->values[i];
    }
    end(twins.of[0]);
    end(twins.of[1]);
}

static void test_both_ways(void **state)
{
    (void)state;
    static const uint8_t plain[] = {ROCE_SEND_ONLY, ROCE_SEND_ONLY_IMMEDIATE, ROCE_WRITE_ONLY,
                                    ROCE_WRITE_ONLY_IMMEDIATE};
    static const enum nic_counter refused[] = {
        COUNTER_duplicate_request, COUNTER_out_of_seq_request, COUNTER_send_rnr_err,
        COUNTER_rcvd_rnr_err,      COUNTER_rcvd_seq_err,       COUNTER_retransmitted_pkts,
        COUNTER_timeouts,          COUNTER_drop_unknown_qp,    COUNTER_drop_wrong_peer,
        COUNTER_nak_invalid_length};
    printf("rc_short_test %" PRIu64 "\n", first_seed);
    for (uint64_t seed = first_seed; seed < first_seed + WORLDS; seed++) {
        run_world(seed);
    }
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        assert_true(moved[plain[i]] > 200 && left[plain[i]] > 200);
    }
    assert_true(left[ROCE_ACKNOWLEDGE] > 200);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        assert_true(seen[refused[i]] > 10);
    }
}

int main(int argc, char **argv)
{
    first_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)time(NULL);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_both_ways)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
