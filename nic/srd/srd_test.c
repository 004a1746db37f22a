/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each kind of request does what it is for, at every length where packets and parts end,
 *         and each status is that of its cause; a queue pair that is flushed, reset or destroyed
 *         leaves nothing behind (SRD-06, SRD-07, SRD-08, SRD-09, SRD-10, SRD-21, SRD-31).
 * Method  Two NICs that hand each other their packets at once, or not at all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "nic/nic.h"

#define CHUNK  512u
#define LONG   (130 * CHUNK + 5) /* Three parts. */
#define QKEY   7u
#define MS     UINT64_C(1000000)
#define FRAMES 512

struct end {
    struct nic *nic;
    struct gid gid;
    struct pd pd;
    struct cq cq;
    struct completion ring[256];
    struct qp *qp;
    void *qp_memory;
    struct region region;
    uint16_t host; /* The other end. */
    uint8_t memory[2 * LONG];
};

struct bench {
    struct instant now;
    struct end ends[2];
    bool cut;             /* Nothing arrives. */
    uint32_t frames[256]; /* By opcode: how many left. */
    int64_t spare;        /* The number of packets that arrive; negative: all. */
    uint32_t slow;        /* Steps of 10 us for each packet of an end; 0: none. */
    uint32_t steps;
};

static uint32_t reads_answered = 4; /* At a time, by each end. */

static struct nic_limits limits(uint8_t slot)
{
    return (struct nic_limits){.qps = SRD_QPS_MAX,
                               .regions = 8,
                               .sends_per_qp = 64,
                               .receives_per_qp = 64,
                               .receives_per_srq = 1,
                               .sges = 4,
                               .inline_bytes = 256,
                               .reads_per_qp = 1,
                               .cq_entries = 256,
                               .mtu = PATH_MTU_4096,
                               .qpn_base = (uint32_t)slot << 16,
                               .qpn_span = 256,
                               .srd = {.contacts = 8,
                                       .peers = 4,
                                       .hosts = 4,
                                       .assemblies = 8,
                                       .requests = 16,
                                       .parts = 8,
                                       .packets = 128,
                                       .reads = reads_answered,
                                       .send_bytes = 8192,
                                       .chunk_bytes = CHUNK}};
}

static void set_state(struct bench *bench, struct qp *qp, enum qp_state state)
{
    const struct qp_attributes wanted = {
        .state = (uint8_t)state, .port = 1, .qkey = QKEY, .rnr_retry = 0};
    uint32_t mask = QP_ATTR_STATE;
    mask |= state == QP_INIT ? QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_QKEY : 0u;
    mask |= state == QP_RTS && qp_state_of(qp) == QP_RTR ? QP_ATTR_SQ_PSN | QP_ATTR_RNR_RETRY : 0u;
    assert_int_equal(qp_modify(qp, &wanted, mask, bench->now), STATUS_OK);
}

static void bring_up(struct bench *bench, struct qp *qp)
{
    set_state(bench, qp, QP_INIT);
    set_state(bench, qp, QP_RTR);
    set_state(bench, qp, QP_RTS);
}

static enum status make_qp(struct end *end, bool unsolicited, struct qp_capacity capacity,
                           struct qp **qp, void **memory)
{
    struct qp_request request = {.type = QP_SRD,
                                 .pd = &end->pd,
                                 .send_cq = &end->cq,
                                 .receive_cq = &end->cq,
                                 .unsolicited = unsolicited,
                                 .capacity = capacity};
    const size_t bytes = (qp_bytes(QP_SRD, &request.capacity, false) + 63) & ~(size_t)63;
    *memory = aligned_alloc(64, bytes);
    memset(*memory, 0, bytes);
    const enum status status = qp_create(end->nic, &request, *memory, qp);
    if (status != STATUS_OK) {
        free(*memory);
    }
    return status;
}

static const struct qp_capacity usual = {
    .sends = 32, .receives = 16, .send_sges = 2, .receive_sges = 2, .inline_bytes = 80};

static void start_end(struct bench *bench, int number, bool unsolicited)
{
    struct end *end = &bench->ends[number];
    const struct nic_limits shape = limits((uint8_t)(number + 5));
    const size_t bytes = (nic_bytes(&shape) + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, bytes);
    memset(memory, 0, bytes);
    end->nic = nic_init(&shape, (uint64_t)number + 1, memory);
    nic_note_time(end->nic, bench->now);
    end->gid = (struct gid){{[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(number + 1)}};
    cq_init(&end->cq, 256, end->ring);
    const struct region_request region = {.address = (uintptr_t)end->memory,
                                          .bytes = sizeof(end->memory),
                                          .start = (uintptr_t)end->memory,
                                          .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                                    ACCESS_REMOTE_READ};
    assert_int_equal(region_add(nic_regions(end->nic), &end->pd, &region, &end->region), STATUS_OK);
    assert_int_equal(make_qp(end, unsolicited, usual, &end->qp, &end->qp_memory), STATUS_OK);
    bring_up(bench, end->qp);
}

static struct bench *start(bool unsolicited)
{
    struct bench *bench = calloc(1, sizeof(*bench));
    bench->now.ns = 1000 * MS;
    bench->spare = -1;
    start_end(bench, 0, unsolicited);
    start_end(bench, 1, unsolicited);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(
            srd_hold_host(bench->ends[i].nic, &bench->ends[!i].gid, &bench->ends[i].host),
            STATUS_OK);
    }
    return bench;
}

static void finish(struct bench *bench)
{
    for (int i = 0; i < 2; i++) {
        nic_check(bench->ends[i].nic);
        assert_true(srd_is_quiet(bench->ends[i].nic));
        qp_destroy(bench->ends[i].qp);
        free(bench->ends[i].qp_memory);
        free(bench->ends[i].nic);
    }
    free(bench);
}

/* -- The network --------------------------------------------------------------------------------*/

static void deliver(struct bench *bench, int to, const struct nic_departure *departure)
{
    uint8_t bytes[SRD_HEADERS_BYTES_MAX + ROCE_PAYLOAD_BYTES_MAX];
    struct nic_move move;
    struct end *end = &bench->ends[to];
    uint32_t count = departure->headers_bytes;
    memcpy(bytes, departure->headers, count);
    for (uint32_t i = 0; i < departure->segment_count; i++) {
        memcpy(bytes + count, (const void *)(uintptr_t)departure->segments[i].address,
               departure->segments[i].bytes);
        count += departure->segments[i].bytes;
    }
    memset(bytes + count, 0, departure->pad_bytes);
    bench->frames[bytes[0]]++;
    if (bench->cut || bench->spare == 0) {
        return;
    }
    bench->spare -= bench->spare > 0;
    const struct nic_frame frame = {.headers = bytes,
                                    .headers_bytes = count + departure->pad_bytes,
                                    .source = bench->ends[!to].gid,
                                    .destination = end->gid,
                                    .hop_limit = 64};
    if (nic_on_packet(end->nic, &frame, bench->now, &move) != NIC_MOVES) {
        return;
    }
    const uint8_t *from = move.payload;
    for (uint32_t i = 0; move.kind == NIC_MOVE_SCATTER && i < move.segment_count; i++) {
        memcpy((void *)(uintptr_t)move.segments[i].address, from, move.segments[i].bytes);
        from += move.segments[i].bytes;
    }
    nic_on_moved(end->nic, &move, NIC_MOVED, bench->now);
}

static void exchange(struct bench *bench)
{
    struct nic_departure departure;
    for (int i = 0; i < 2; i++) {
        struct nic *nic = bench->ends[i].nic;
        struct qp *qp;
        nic_check(nic);
        bool may = bench->slow == 0 || (bench->steps + 5 * (uint32_t)i) % bench->slow == 0;
        while (may && (qp = nic_next_qp(nic)) != NULL) {
            if (nic_next_packet(nic, qp, bench->now, &departure)) {
                deliver(bench, !i, &departure);
                nic_rotate(nic, qp);
                may = bench->slow == 0;
            }
        }
        if (instant_reached(bench->now, nic_deadline(nic))) {
            nic_on_time(nic, bench->now);
        }
    }
    bench->now.ns += MS / 100;
    bench->steps++;
}

static void pass(struct bench *bench, uint64_t ms)
{
    const uint64_t until = bench->now.ns + ms * MS;
    while (bench->now.ns < until) {
        exchange(bench);
        if (nic_next_qp(bench->ends[0].nic) == NULL && nic_next_qp(bench->ends[1].nic) == NULL) {
            const struct instant next =
                instant_earlier(nic_deadline(bench->ends[0].nic), nic_deadline(bench->ends[1].nic));
            bench->now.ns = next.ns > until           ? until
                            : next.ns > bench->now.ns ? next.ns
                                                      : bench->now.ns;
        }
    }
}

/* -- Programs -----------------------------------------------------------------------------------*/

static void fill(struct end *end, uint8_t with)
{
    for (uint32_t i = 0; i < sizeof(end->memory); i++) {
        end->memory[i] = (uint8_t)(i * 7 + (i >> 8) + with);
    }
}

static struct send_request request_of(struct bench *bench, enum work_kind kind,
                                      const struct nic_av *av, const struct sge *sge)
{
    const struct end *to = &bench->ends[1];
    return (struct send_request){.wr_id = 1234,
                                 .kind = kind,
                                 .sges = sge,
                                 .sge_count = 1,
                                 .immediate = 0x11223344,
                                 .remote_address = (uintptr_t)to->memory + LONG,
                                 .remote_key = to->region.key,
                                 .av = av,
                                 .destination_qpn = qp_number(to->qp),
                                 .destination_qkey = QKEY};
}

static struct nic_av av_to(const struct bench *bench, int to)
{
    return (struct nic_av){
        .source = bench->ends[!to].gid, .destination = bench->ends[to].gid, .hop_limit = 64};
}

static struct sge sge_of(struct end *end, uint32_t offset, uint32_t bytes)
{
    return (struct sge){.address = (uintptr_t)end->memory + offset,
                        .bytes = bytes,
                        .key = region_lkey(nic_regions(end->nic), &end->region)};
}

static void post_receive(struct bench *bench, uint32_t bytes)
{
    const struct sge sge = sge_of(&bench->ends[1], LONG, bytes);
    assert_int_equal(qp_post_receive(bench->ends[1].qp, 77, &sge, 1), STATUS_OK);
}

static struct completion take(struct end *end)
{
    struct completion completion = {0};
    assert_int_equal(cq_poll(&end->cq, &completion, 1), 1);
    return completion;
}

/* The status of the only completion there. */
static void expect_status(struct bench *bench, enum srd_status status)
{
    const struct completion completion = take(&bench->ends[0]);
    assert_int_equal(completion.vendor_error, status);
    assert_int_equal(completion.status, srd_completion_status(status));
    assert_int_equal(completion.wr_id, 1234);
    assert_int_equal(cq_count(&bench->ends[0].cq), 0);
    assert_int_equal(qp_state_of(bench->ends[0].qp), QP_RTS);
}

/* Posts one request, and lets it come to its end. */
static void try(struct bench *bench, const struct send_request *request, enum srd_status status)
{
    assert_int_equal(qp_post_send(bench->ends[0].qp, request), STATUS_OK);
    pass(bench, 5000);
    expect_status(bench, status);
}

/* -- Requests -----------------------------------------------------------------------------------*/

static const uint32_t lengths[] = {0,           1,    CHUNK - 1,  CHUNK,          CHUNK + 1,
                                   2 * CHUNK,   8192, 64 * CHUNK, 64 * CHUNK + 1, 65 * CHUNK,
                                   128 * CHUNK, LONG};

static void check_receive(struct bench *bench, enum completion_kind kind, uint32_t bytes,
                          bool immediate)
{
    const struct end *to = &bench->ends[1];
    const struct completion completion = take(&bench->ends[1]);
    assert_int_equal(completion.status, COMPLETION_SUCCESS);
    assert_int_equal(completion.wr_id, 77);
    assert_int_equal(completion.kind, kind);
    assert_int_equal(completion.bytes, bytes);
    assert_int_equal(completion.flags, immediate ? COMPLETION_HAS_IMMEDIATE : 0);
    assert_int_equal(completion.immediate, immediate ? 0x11223344 : 0);
    assert_int_equal(completion.qpn, qp_number(to->qp));
    assert_int_equal(completion.source_qpn, qp_number(bench->ends[0].qp));
    assert_int_equal(completion.host, to->host);
    assert_true(srd_host_is_held(to->nic, completion.host));
    assert_int_equal(cq_count(&to->cq), 0);
}

static void test_kinds(void **state)
{
    (void)state;
    static const enum work_kind kinds[] = {WORK_SEND, WORK_SEND_IMMEDIATE, WORK_WRITE,
                                           WORK_WRITE_IMMEDIATE, WORK_READ};
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        const enum work_kind kind = kinds[k];
        const bool send = kind == WORK_SEND || kind == WORK_SEND_IMMEDIATE;
        for (size_t i = 0; i < COUNT_OF(lengths); i++) {
            struct bench *bench = start(false);
            const uint32_t bytes = lengths[i];
            const struct nic_av av = av_to(bench, 1);
            const struct sge sge = sge_of(&bench->ends[0], 0, bytes);
            const struct send_request request = request_of(bench, kind, &av, &sge);
            fill(&bench->ends[0], 3);
            fill(&bench->ends[1], 90);
            post_receive(bench, bytes);
            if (send && bytes > 8192) {
                try(bench, &request, SRD_STATUS_LOCAL_BAD_LENGTH);
                finish(bench);
                continue;
            }
            assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_OK);
            pass(bench, 100);
            const struct completion sent = take(&bench->ends[0]);
            assert_int_equal(sent.status, COMPLETION_SUCCESS);
            assert_int_equal(sent.bytes, bytes);
            assert_int_equal(sent.kind, kind == WORK_WRITE || kind == WORK_WRITE_IMMEDIATE
                                            ? COMPLETION_WRITE
                                            : COMPLETION_SEND);
            assert_memory_equal(bench->ends[0].memory, bench->ends[1].memory + LONG, bytes);
            if (send || kind == WORK_WRITE_IMMEDIATE) {
                check_receive(bench, send ? COMPLETION_RECEIVE : COMPLETION_RECEIVE_WRITE_IMMEDIATE,
                              bytes, kind != WORK_SEND);
            } else {
                assert_int_equal(cq_count(&bench->ends[1].cq), 0);
            }
            finish(bench);
        }
    }
}

static uint64_t counter(const struct bench *bench, int end, enum nic_counter which)
{
    return nic_counters(bench->ends[end].nic)->values[which];
}

/* SRD-11 */
static void test_counters(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    static const enum work_kind kinds[] = {WORK_SEND, WORK_WRITE, WORK_READ, WORK_WRITE_IMMEDIATE};
    const struct nic_av av = av_to(bench, 1);
    const struct sge sge = sge_of(&bench->ends[0], 0, 1000);
    post_receive(bench, 1000);
    post_receive(bench, 0);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        struct send_request request = request_of(bench, kinds[i], &av, &sge);
        try(bench, &request, SRD_STATUS_OK);
        request.destination_qkey++;
        try(bench, &request, SRD_STATUS_BAD_QPN);
    }
    static const struct {
        enum nic_counter counter;
        int end;
        uint64_t value;
    } expected[] = {
        {COUNTER_srd_send_wrs, 0, 1},
        {COUNTER_srd_send_bytes, 0, 1000},
        {COUNTER_srd_send_wr_err, 0, 1},
        {COUNTER_srd_rdma_write_wrs, 0, 2},
        {COUNTER_srd_rdma_write_bytes, 0, 2000},
        {COUNTER_srd_rdma_write_wr_err, 0, 2},
        {COUNTER_srd_rdma_read_wrs, 0, 1},
        {COUNTER_srd_rdma_read_bytes, 0, 1000},
        {COUNTER_srd_rdma_read_wr_err, 0, 1},
        {COUNTER_srd_recv_wrs, 1, 2},
        {COUNTER_srd_recv_bytes, 1, 2000},
        {COUNTER_srd_rdma_read_resp_bytes, 1, 1000},
        {COUNTER_srd_rdma_write_recv_bytes, 1, 2000},
        {COUNTER_srd_unresponsive_remote, 0, 0},
        {COUNTER_srd_retrans_bytes, 0, 0},
        {COUNTER_rdma_sends, 0, 1},
        {COUNTER_rdma_writes, 0, 2},
        {COUNTER_rdma_reads, 0, 1},
        {COUNTER_rdma_recvs, 1, 2},
        {COUNTER_timeouts, 0, 0},
    };
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        assert_int_equal(counter(bench, expected[i].end, expected[i].counter), expected[i].value);
    }
    /* One of two packets arrives, and its answer does not. */
    const struct send_request request = request_of(bench, WORK_WRITE, &av, &sge);
    assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_OK);
    bench->spare = 1;
    pass(bench, 100);
    assert_true(counter(bench, 0, COUNTER_srd_retrans_bytes) == 0);
    pass(bench, 5000);
    expect_status(bench, SRD_STATUS_UNRESPONSIVE);
    assert_int_equal(counter(bench, 0, COUNTER_srd_unresponsive_remote), 1);
    assert_true(counter(bench, 0, COUNTER_timeouts) > 1);
    assert_int_equal(counter(bench, 0, COUNTER_srd_impaired_remote_conn), 1);
    bench->spare = -1;
    pass(bench, 5000);
    while (cq_count(&bench->ends[1].cq) != 0) {
        (void)take(&bench->ends[1]);
    }
    finish(bench);
}

/* SRD-31: with 64 packets a part, the receive of a longer WRITE completes last of all. */
static void test_write_immediate_is_last(void **state)
{
    (void)state;
    for (int64_t spare = 0; spare < 300; spare += 7) {
        struct bench *bench = start(false);
        const struct nic_av av = av_to(bench, 1);
        const struct sge sge = sge_of(&bench->ends[0], 0, LONG);
        const struct send_request request = request_of(bench, WORK_WRITE_IMMEDIATE, &av, &sge);
        fill(&bench->ends[0], 3);
        memset(bench->ends[1].memory, 0, sizeof(bench->ends[1].memory));
        post_receive(bench, 0);
        bench->spare = spare;
        assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_OK);
        pass(bench, 50);
        if (cq_count(&bench->ends[1].cq) != 0) {
            assert_memory_equal(bench->ends[0].memory, bench->ends[1].memory + LONG, LONG);
        }
        bench->spare = -1;
        pass(bench, 5000);
        assert_int_equal(take(&bench->ends[0]).status, COMPLETION_SUCCESS);
        check_receive(bench, COMPLETION_RECEIVE_WRITE_IMMEDIATE, LONG, true);
        finish(bench);
    }
}

static void test_inline(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    const struct nic_av av = av_to(bench, 1);
    uint8_t bytes[81] = "inline";
    struct sge sge = {.address = (uintptr_t)bytes, .bytes = 80};
    struct send_request request = request_of(bench, WORK_SEND, &av, &sge);
    request.flags = WORK_INLINE;
    post_receive(bench, 100);
    assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_OK);
    const uint8_t before[80] = "inline";
    memset(bytes, 9, sizeof(bytes));
    pass(bench, 100);
    expect_status(bench, SRD_STATUS_OK);
    assert_memory_equal(bench->ends[1].memory + LONG, before, 80);
    (void)take(&bench->ends[1]);
    sge.bytes = 81;
    assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_INVALID);
    finish(bench);
}

static void test_unsolicited(void **state)
{
    (void)state;
    struct bench *bench = start(true);
    const struct nic_av av = av_to(bench, 1);
    const struct sge sge = sge_of(&bench->ends[0], 0, 5000);
    const struct send_request request = request_of(bench, WORK_WRITE_IMMEDIATE, &av, &sge);
    try(bench, &request, SRD_STATUS_OK);
    const struct completion completion = take(&bench->ends[1]);
    assert_int_equal(completion.wr_id, 0);
    assert_int_equal(completion.flags, COMPLETION_HAS_IMMEDIATE | COMPLETION_UNSOLICITED);
    assert_int_equal(completion.bytes, 5000);
    finish(bench);
}

/* -- Statuses -----------------------------------------------------------------------------------*/

static void test_refusals(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    const struct nic_av av = av_to(bench, 1);
    struct sge sge = sge_of(&bench->ends[0], 0, 1000);
    const struct send_request send = request_of(bench, WORK_SEND, &av, &sge);
    struct send_request other = send;
    try(bench, &send, SRD_STATUS_NO_RECEIVE);
    other.destination_qkey++;
    try(bench, &other, SRD_STATUS_BAD_QPN);
    other = send;
    other.destination_qpn = (other.destination_qpn & ~0xffu) | 251;
    try(bench, &other, SRD_STATUS_BAD_QPN);
    post_receive(bench, 999);
    try(bench, &send, SRD_STATUS_BAD_LENGTH);
    sge.bytes = 999; /* The receive is still there. */
    try(bench, &send, SRD_STATUS_OK);
    check_receive(bench, COMPLETION_RECEIVE, 999, false);

    static const enum work_kind kinds[] = {WORK_WRITE, WORK_WRITE_IMMEDIATE, WORK_READ};
    post_receive(bench, 0);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const struct send_request rdma = request_of(bench, kinds[i], &av, &sge);
        other = rdma;
        other.remote_key ^= 0x100;
        try(bench, &other, SRD_STATUS_BAD_ADDRESS);
        other = rdma;
        other.remote_address =
            (uintptr_t)bench->ends[1].memory + sizeof(bench->ends[1].memory) - 998;
        try(bench, &other, SRD_STATUS_BAD_ADDRESS);
        srd_let_host_go(bench->ends[1].nic, bench->ends[1].host);
        try(bench, &rdma, SRD_STATUS_UNKNOWN_PEER);
        assert_int_equal(
            srd_hold_host(bench->ends[1].nic, &bench->ends[0].gid, &bench->ends[1].host),
            STATUS_OK);
    }
    other = request_of(bench, WORK_WRITE_IMMEDIATE, &av, &sge);
    try(bench, &other, SRD_STATUS_OK);
    check_receive(bench, COMPLETION_RECEIVE_WRITE_IMMEDIATE, 999, true);
    try(bench, &other, SRD_STATUS_NO_RECEIVE);
    sge.key ^= 0x100;
    try(bench, &send, SRD_STATUS_LOCAL_BAD_LKEY);
    assert_int_equal(cq_count(&bench->ends[1].cq), 0);
    finish(bench);
}

static void test_feature_mismatch(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    void *memory;
    struct qp *qp = bench->ends[0].qp, *unsolicited;
    const struct nic_av av = av_to(bench, 1);
    const struct sge sge = sge_of(&bench->ends[0], 0, 10);
    const struct send_request request = request_of(bench, WORK_WRITE_IMMEDIATE, &av, &sge);
    assert_int_equal(make_qp(&bench->ends[0], true, usual, &unsolicited, &memory), STATUS_OK);
    bring_up(bench, unsolicited);
    post_receive(bench, 10);
    bench->ends[0].qp = unsolicited;
    try(bench, &request, SRD_STATUS_FEATURE_MISMATCH);
    bench->ends[0].qp = qp;
    qp_destroy(unsolicited);
    free(memory);
    finish(bench);
}

/* Nobody ever answered: 15. Somebody did, and does no more: 13. */
static void test_silence(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    const struct nic_av av = av_to(bench, 1);
    const struct sge sge = sge_of(&bench->ends[0], 0, 10);
    const struct send_request request = request_of(bench, WORK_SEND, &av, &sge);
    bench->cut = true;
    try(bench, &request, SRD_STATUS_UNREACHABLE);
    bench->cut = false;
    post_receive(bench, 10);
    try(bench, &request, SRD_STATUS_OK);
    (void)take(&bench->ends[1]);
    bench->cut = true;
    try(bench, &request, SRD_STATUS_UNRESPONSIVE);
    finish(bench);
}

/* Requests that wait for their turn end with those under way, however many they are: at a peer that
 * never answered after 4 s, and after 8 s at the latest at one that did. */
static void test_silence_of_many(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct bench *bench = start(false);
        struct end *end = &bench->ends[0];
        const struct nic_av av = av_to(bench, 1);
        const struct sge sge = sge_of(end, 0, LONG);
        const struct send_request request = request_of(bench, WORK_WRITE, &av, &sge);
        if (known) {
            try(bench, &request, SRD_STATUS_OK);
        }
        bench->cut = true;
        for (uint32_t i = 0; i < 30; i++) {
            assert_int_equal(qp_post_send(end->qp, &request), STATUS_OK);
        }
        pass(bench, 3900);
        assert_int_equal(cq_count(&end->cq), 0);
        pass(bench, known ? 4300 : 300);
        assert_int_equal(cq_count(&end->cq), 16); /* No more are handed over at a time. */
        pass(bench, known ? 8200 : 4200);
        assert_int_equal(cq_count(&end->cq), 30);
        while (cq_count(&end->cq) != 0) {
            assert_int_equal(take(end).vendor_error,
                             known ? SRD_STATUS_UNRESPONSIVE : SRD_STATUS_UNREACHABLE);
        }
        finish(bench);
    }
}

/* Six READs to a target that needs 100 us for a packet; `spare` of the next ones arrive, or all. */
static struct bench *read_slowly(int64_t spare)
{
    struct bench *bench = start(false);
    struct end *end = &bench->ends[0];
    const struct nic_av av = av_to(bench, 1);
    const struct sge small = sge_of(end, 0, 10), sge = sge_of(end, 0, LONG);
    struct send_request request = request_of(bench, WORK_READ, &av, &small);
    bench->slow = 10;
    try(bench, &request, SRD_STATUS_OK);
    bench->frames[SRD_READ] = 0;
    request.sges = &sge;
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(qp_post_send(end->qp, &request), STATUS_OK);
    }
    bench->spare = spare;
    pass(bench, spare < 0 ? 0 : 5);
    bench->spare = -1;
    pass(bench, 200);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(take(end).vendor_error, SRD_STATUS_OK);
    }
    assert_memory_equal(end->memory, bench->ends[1].memory + LONG, LONG);
    return bench;
}

/* Data of one READ are news for those behind it: none asks twice, however long its turn takes. Data
 * that are lost are missed. */
static void test_reads_in_turn(void **state)
{
    (void)state;
    reads_answered = 64;
    struct bench *bench = read_slowly(-1);
    assert_int_equal(bench->frames[SRD_READ], 6);
    finish(bench);
    bench = read_slowly(20);
    assert_in_range(bench->frames[SRD_READ], 7, 12);
    finish(bench);
    reads_answered = 4;
}

/* The target answers one READ at a time, and drops others, which come again and again. Its data
 * leave nevertheless. */
static void test_reads_without_room(void **state)
{
    (void)state;
    struct bench *bench = read_slowly(-1);
    assert_true(counter(bench, 1, COUNTER_drop_srd_full) > 10);
    finish(bench);
}

/* A program that says nothing of it has a queue pair that tries for ever (SRD-24). */
static void test_no_receive_by_default(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    struct end *end = &bench->ends[0];
    const struct nic_av av = av_to(bench, 1);
    const struct sge sge = sge_of(end, 0, 10);
    const struct send_request request = request_of(bench, WORK_SEND, &av, &sge);
    const struct qp_attributes ready = {.state = QP_RTS};
    try(bench, &request, SRD_STATUS_NO_RECEIVE); /* It asked for no other try. */
    set_state(bench, end->qp, QP_RESET);
    set_state(bench, end->qp, QP_INIT);
    set_state(bench, end->qp, QP_RTR);
    assert_int_equal(qp_modify(end->qp, &ready, QP_ATTR_STATE | QP_ATTR_SQ_PSN, bench->now),
                     STATUS_OK);
    assert_int_equal(qp_post_send(end->qp, &request), STATUS_OK);
    pass(bench, 20000);
    assert_int_equal(cq_count(&end->cq), 0);
    post_receive(bench, 10);
    pass(bench, 1000);
    expect_status(bench, SRD_STATUS_OK);
    assert_int_equal(take(&bench->ends[1]).bytes, 10);
    finish(bench);
}

/* -- Flushing -----------------------------------------------------------------------------------*/

/* Requests of every kind are under way when their queue pair fails, or goes. */
static void leave(bool fails)
{
    struct bench *bench = start(false);
    struct end *end = &bench->ends[0];
    static const enum work_kind kinds[] = {WORK_SEND, WORK_WRITE, WORK_READ};
    const struct nic_av av = av_to(bench, 1);
    const struct sge sge = sge_of(end, 0, 5000);
    for (int i = 0; i < 10; i++) {
        post_receive(bench, 5000);
    }
    for (int i = 0; i < 30; i++) {
        const struct send_request request = request_of(bench, kinds[i % 3], &av, &sge);
        assert_int_equal(qp_post_send(end->qp, &request), STATUS_OK);
    }
    bench->spare = 20;
    pass(bench, 20);
    const uint32_t done = cq_count(&end->cq);
    assert_true(done < 30);
    if (fails) {
        set_state(bench, end->qp, QP_ERR);
        assert_int_equal(cq_count(&end->cq), 30);
        for (uint32_t i = 0; i < 30; i++) {
            const struct completion completion = take(end);
            assert_int_equal(completion.status, i < done ? COMPLETION_SUCCESS : COMPLETION_FLUSHED);
        }
    }
    set_state(bench, end->qp, QP_RESET);
    assert_int_equal(cq_count(&end->cq), 0);
    bench->spare = -1;
    pass(bench, 5000);
    bring_up(bench, end->qp);
    const struct send_request request = request_of(bench, WORK_READ, &av, &sge);
    try(bench, &request, SRD_STATUS_OK);
    while (cq_count(&bench->ends[1].cq) != 0) {
        (void)take(&bench->ends[1]);
    }
    finish(bench);
}

static void test_leaving(void **state)
{
    (void)state;
    leave(true);
    leave(false);
}

/* Is a request of this number there, that ended so? Each has one completion. */
static void expect_flushes(struct bench *bench, uint64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct completion completion = take(&bench->ends[0]);
        assert_int_equal(completion.wr_id, first + i);
        assert_int_equal(completion.status, COMPLETION_FLUSHED);
        assert_int_equal(completion.vendor_error, SRD_STATUS_FLUSHED);
    }
    assert_int_equal(cq_count(&bench->ends[0].cq), 0);
}

/* Nobody names the target's host any more: requests to it are flushed, whether something of them
 * left (16), they wait for a free request, or their queue pair is drained; those to another host
 * (every third) are not. */
static void test_handle_goes(void **state)
{
    (void)state;
    for (int drained = 0; drained < 2; drained++) {
        struct bench *bench = start(false);
        struct end *end = &bench->ends[0];
        const struct nic_av av = av_to(bench, 1), other = av_to(bench, 0);
        const struct sge sge = sge_of(end, 0, 5000);
        struct send_request request = request_of(bench, WORK_WRITE, &av, &sge);
        bench->cut = true;
        if (drained) {
            set_state(bench, end->qp, QP_SQD);
        }
        for (uint32_t i = 0; i < 30; i++) {
            request.wr_id = i;
            request.av = i % 3 == 2 ? &other : &av;
            assert_int_equal(qp_post_send(end->qp, &request), STATUS_OK);
        }
        pass(bench, 50);
        srd_let_host_go(end->nic, end->host);
        srd_flush_host(end->nic, end->host);
        /* In the order of posting, as far as nothing else is in front. */
        const uint32_t flushed = cq_count(&end->cq);
        assert_true(drained ? flushed == 2 : flushed >= 12);
        bool seen[30] = {false};
        const struct qp_attributes ready = {.state = QP_RTS};
        assert_int_equal(qp_modify(end->qp, &ready, QP_ATTR_STATE, bench->now), STATUS_OK);
        pass(bench, 20000);
        for (uint32_t i = 0; i < 30; i++) {
            const struct completion completion = take(end);
            assert_false(seen[completion.wr_id]);
            seen[completion.wr_id] = true;
            assert_int_equal(completion.vendor_error, completion.wr_id % 3 == 2
                                                          ? SRD_STATUS_UNREACHABLE
                                                          : SRD_STATUS_FLUSHED);
        }
        assert_int_equal(srd_hold_host(end->nic, &bench->ends[1].gid, &end->host), STATUS_OK);
        bench->cut = false;
        pass(bench, 5000);
        finish(bench);
    }
}

/* A request that is posted to a queue pair in the error state. */
static void test_posted_in_error(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    const struct nic_av av = av_to(bench, 1);
    const struct sge sge = sge_of(&bench->ends[0], 0, 10);
    const struct send_request request = request_of(bench, WORK_SEND, &av, &sge);
    set_state(bench, bench->ends[0].qp, QP_ERR);
    assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_OK);
    expect_flushes(bench, 1234, 1);
    finish(bench);
}

/* The memory of a READ goes while its data are on their way: the READ ends, and nothing more is
 * written. */
static void test_memory_of_read_goes(void **state)
{
    (void)state;
    for (int64_t spare = 3; spare < 60; spare += 7) {
        struct bench *bench = start(false);
        struct end *end = &bench->ends[0];
        const struct nic_av av = av_to(bench, 1);
        const struct sge sge = sge_of(end, 0, LONG);
        const struct send_request request = request_of(bench, WORK_READ, &av, &sge);
        static uint8_t before[sizeof(end->memory)];
        fill(&bench->ends[1], 90);
        bench->spare = spare;
        assert_int_equal(qp_post_send(end->qp, &request), STATUS_OK);
        pass(bench, 1);
        assert_int_equal(cq_count(&end->cq), 0);
        assert_int_equal(region_remove(nic_regions(end->nic), &end->region), STATUS_OK);
        memcpy(before, end->memory, sizeof(before));
        bench->spare = -1;
        pass(bench, 5000);
        expect_status(bench, SRD_STATUS_LOCAL_BAD_LKEY);
        assert_memory_equal(before, end->memory, sizeof(before));
        finish(bench);
    }
}

/* The target goes in the middle of a message, and its receive with it: after HELLO, CHALLENGE and
 * one to eight packets, of which each has the whole message only if all came. */
static void test_target_leaves(void **state)
{
    (void)state;
    for (int64_t spare = 3; spare < 12; spare++) {
        struct bench *bench = start(false);
        const struct nic_av av = av_to(bench, 1);
        const struct sge sge = sge_of(&bench->ends[0], 0, 8 * CHUNK);
        const struct send_request request = request_of(bench, WORK_SEND, &av, &sge);
        post_receive(bench, 8 * CHUNK);
        bench->spare = spare;
        assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_OK);
        pass(bench, 1);
        set_state(bench, bench->ends[1].qp, QP_ERR);
        assert_int_equal(take(&bench->ends[1]).status,
                         spare >= 10 ? COMPLETION_SUCCESS : COMPLETION_FLUSHED);
        bench->spare = -1;
        pass(bench, 5000);
        expect_status(bench, spare >= 10 ? SRD_STATUS_OK : SRD_STATUS_BAD_QPN);
        finish(bench);
    }
}

/* -- Limits -------------------------------------------------------------------------------------*/

/* SRD-08: QPNs have 16 bits, and none are alike modulo 256. */
static void test_numbers(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    static struct qp *qps[SRD_QPS_MAX];
    static void *memory[SRD_QPS_MAX];
    bool seen[256] = {false};
    const struct qp_capacity small = {.sends = 1, .receives = 1, .send_sges = 1, .receive_sges = 1};
    seen[qp_number(bench->ends[0].qp) & 0xff] = true;
    for (uint32_t i = 0; i < SRD_QPS_MAX - 1; i++) {
        assert_int_equal(make_qp(&bench->ends[0], false, small, &qps[i], &memory[i]), STATUS_OK);
        const uint32_t number = qp_number(qps[i]);
        assert_int_equal(srd_number_of(srd_qpn_of(number)), number);
        assert_int_equal(srd_qpn_of(number) >> 8, 5);
        assert_false(seen[number & 0xff]);
        seen[number & 0xff] = true;
    }
    assert_int_equal(make_qp(&bench->ends[0], false, small, &qps[249], &memory[249]), STATUS_FULL);
    for (uint32_t i = 0; i < SRD_QPS_MAX - 1; i++) {
        qp_destroy(qps[i]);
        free(memory[i]);
    }
    finish(bench);
}

/* SRD-06: requests count until they complete, receives until they do. */
static void test_full_queues(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    const struct nic_av av = av_to(bench, 1);
    const struct sge sge = sge_of(&bench->ends[0], 0, 1000);
    const struct send_request request = request_of(bench, WORK_SEND, &av, &sge);
    bench->cut = true;
    for (int i = 0; i < 32; i++) {
        assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_OK);
        pass(bench, 1);
    }
    assert_int_equal(qp_post_send(bench->ends[0].qp, &request), STATUS_FULL);
    bench->cut = false;
    for (int i = 0; i < 16; i++) {
        post_receive(bench, 1000);
    }
    /* One packet of a message: its receive is out, but not free. */
    bench->spare = 3;
    pass(bench, 200);
    const struct sge more = sge_of(&bench->ends[1], 0, 10);
    assert_int_equal(qp_post_receive(bench->ends[1].qp, 1, &more, 1), STATUS_FULL);
    bench->spare = -1;
    pass(bench, 5000);
    uint32_t succeeded = 0;
    while (cq_count(&bench->ends[0].cq) != 0) {
        succeeded += take(&bench->ends[0]).status == COMPLETION_SUCCESS;
    }
    assert_int_equal(succeeded, 16);
    assert_int_equal(cq_count(&bench->ends[1].cq), 16);
    finish(bench);
}

/* SRD-21: who was not challenged costs nothing: no peer, and 1,000 challenges a second at most. */
static void test_flood(void **state)
{
    (void)state;
    struct bench *bench = start(false);
    struct end *end = &bench->ends[1];
    uint32_t challenges = 0;
    bench->cut = true;
    for (uint32_t i = 0; i < 20000; i++) {
        struct srd_packet packet = {.opcode = i % 2 ? SRD_PROBE : SRD_HELLO,
                                    .destination_qpn = SRD_PORT_OF(6),
                                    .flow = i,
                                    .tag = i};
        uint8_t bytes[SRD_HEADERS_BYTES_MAX];
        struct nic_move move;
        const struct nic_frame frame = {
            .headers = bytes,
            .headers_bytes = (uint32_t)srd_encode(&packet, bytes),
            .source = {{1, 2, [15] = (uint8_t)i}},
            .destination = end->gid,
        };
        assert_int_equal(nic_on_packet(end->nic, &frame, bench->now, &move), NIC_DONE);
        struct nic_departure departure;
        struct qp *qp;
        while ((qp = nic_next_qp(end->nic)) != NULL) {
            if (nic_next_packet(end->nic, qp, bench->now, &departure)) {
                assert_int_equal(departure.headers[0], SRD_CHALLENGE);
                challenges++;
            }
        }
        bench->now.ns += MS / 10;
    }
    assert_in_range(challenges, 2000, 2000 + 2 * 64);
    assert_int_equal(nic_counters(end->nic)->values[COUNTER_drop_srd_flood], 20000 - challenges);
    finish(bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_write_immediate_is_last),
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_unsolicited),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_feature_mismatch),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_silence_of_many),
        cmocka_unit_test(test_no_receive_by_default),
        cmocka_unit_test(test_reads_in_turn),
        cmocka_unit_test(test_reads_without_room),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_handle_goes),
        cmocka_unit_test(test_posted_in_error),
        cmocka_unit_test(test_memory_of_read_goes),
        cmocka_unit_test(test_target_leaves),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_full_queues),
        cmocka_unit_test(test_flood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
