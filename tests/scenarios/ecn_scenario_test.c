/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ecn_scenario_test - RC and UC through a queue that marks, in virtual time.
 *
 * Goal    Senders that meet in a queue share its line evenly and keep it busy, while the queue
 *         stays short and loses nothing; when one stops, the others take its part. A sender that is
 *         flooded with forged notifications goes on at the least rate, and speeds up at once when
 *         the flood ends.
 * Method  The shipped NICs: senders with lines of 40 Gb/s, and a receiver behind a queue that marks
 *         as the publication has it: no packet below 5 KB, then up to one in a hundred at 200 KB,
 *         and all beyond. A table of runs with bars; some runs are made once more without a mark,
 *         which must break a bar. Rules about single packets: nic/ibta/ecn_test.c; marks among all
 *         other faults: rc_scenario_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nic/nic.h"
#include "sim/kernel.h"
#include "sim/pool.h"
#include "tests/world/timer.h"

#define SENDERS_MAX   8
#define US            (1000 * SIM_NS)
#define MS            (1000 * US)
#define LINE          UINT64_C(5000000000) /* Bytes a second. */
#define LATENCY_PS    (5 * US)
#define QUEUE_BYTES   (16u << 20)
#define MARKS_FROM    5000u
#define MARKS_ALL     200000u
#define MARKS_MOST    10000u /* Millionths, at MARKS_ALL. */
#define OTHERS_BYTES  58u    /* A packet's, beside what the NIC says. */
#define MESSAGE_BYTES 65536u
#define POSTED        16u
#define BASE          0x10000u
#define CE            3

struct run {
    const char *name;
    enum qp_type type;
    bool reads; /* The receiver asks for the data. */
    uint32_t senders;
    uint32_t stays;             /* The senders that go on when the others stop, ... */
    uint32_t stop_ms;           /* ... then. */
    uint32_t from_ms, until_ms; /* Measured between. */
    /* Bars: percent of the line; Jain's index in percent; KB in the queue at most, after 10 ms. */
    uint32_t line, jain, queue_kb;
    bool deaf_breaks; /* Without marks the queue is longer. */
};

/* clang-format off */
static const struct run runs[] = {
    {"one alone", QP_RC, false, 1, 1, 0, 50, 100, .line = 95, .jain = 100, .queue_kb = 200},
    {"two, RC", QP_RC, false, 2, 2, 0, 100, 200,
     .line = 95, .jain = 95, .queue_kb = 300, .deaf_breaks = true},
    {"two, UC", QP_UC, false, 2, 2, 0, 100, 200, .line = 95, .jain = 95, .queue_kb = 300},
    {"two that are read", QP_RC, true, 2, 2, 0, 100, 200,
     .line = 95, .jain = 95, .queue_kb = 300, .deaf_breaks = true},
    {"eight, RC", QP_RC, false, 8, 8, 0, 100, 200,
     .line = 93, .jain = 95, .queue_kb = 400},
    {"one of two stops", QP_RC, false, 2, 1, 50, 150, 200,
     .line = 95, .jain = 100, .queue_kb = 300},
};
/* clang-format on */

struct world;

struct node {
    struct world *world;
    struct nic *nic;
    struct gid gid;
    struct sim_event timer, free; /* The NIC's deadline; its line is free again. */
    uint64_t busy_ps;             /* Its line is, until then. */
};

struct flow {
    struct qp *ends[2]; /* The sender's, the receiver's. */
    void *memory[2];
    struct cq cqs[2];
    struct completion *rings[2];
    uint64_t arrived, before; /* Payload at the receiver: by now, and when measuring began. */
    uint64_t posted, completed;
};

struct packet {
    struct sim_event event;
    struct node *to;
    struct gid from;
    uint32_t headers_bytes, payload_bytes;
    bool marked;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
};

struct world {
    struct sim sim;
    struct sim_pool packets;
    const struct run *run;
    bool deaf; /* Nothing is marked. */
    struct node senders[SENDERS_MAX], receiver;
    struct flow flows[SENDERS_MAX];
    struct pd pd;
    struct region regions[SENDERS_MAX + 1];
    uint64_t busy_ps; /* The queue in front of the receiver is empty then. */
    uint64_t longest; /* Bytes in the queue, after 10 ms. */
    uint64_t marked, lost;
    struct sim_event forgery;
    uint8_t bytes[MESSAGE_BYTES]; /* Everybody's memory: nobody looks at it. */
};

static const uint8_t nothing[ROCE_PAYLOAD_BYTES_MAX + 4];

/* -- The network --------------------------------------------------------------------------------*/

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct packet *packet = CONTAINER_OF(event, struct packet, event);
    struct node *node = packet->to;
    struct world *world = node->world;
    const struct nic_frame frame = {.headers = packet->headers,
                                    .payload = nothing,
                                    .headers_bytes = packet->headers_bytes,
                                    .payload_bytes = packet->payload_bytes,
                                    .source = packet->from,
                                    .destination = node->gid,
                                    .traffic_class = packet->marked ? CE : 0,
                                    .hop_limit = 64};
    struct nic_move move;
    if (nic_on_packet(node->nic, &frame, sim_instant(sim), &move) == NIC_MOVES) {
        nic_on_moved(node->nic, &move, NIC_MOVED, sim_instant(sim));
    }
    if (node == &world->receiver) {
        /* The last byte of an IPv4 address is the number of its node. */
        world->flows[packet->from.bytes[15] - 1].arrived += packet->payload_bytes;
    }
    sim_pool_give(&world->packets, packet);
}

/* Is a packet marked that finds `queued` bytes in front of it? */
static bool meets_congestion(struct world *world, uint64_t queued)
{
    if (world->deaf || queued <= MARKS_FROM) {
        return false;
    }
    const uint64_t chance = (queued - MARKS_FROM) * MARKS_MOST / (MARKS_ALL - MARKS_FROM);
    return queued > MARKS_ALL || prng_chance(&world->sim.prng, (uint32_t)chance);
}

/* Its sender's line is done with a packet: into the queue, if it goes to the receiver. */
static void carry(struct world *world, struct packet *packet, const struct nic_departure *departure,
                  uint64_t left_ps)
{
    struct sim *sim = &world->sim;
    uint64_t at_ps = left_ps + LATENCY_PS;
    if (packet->to == &world->receiver) {
        const uint64_t wait_ps = world->busy_ps > left_ps ? world->busy_ps - left_ps : 0;
        const uint64_t queued = wait_ps / SIM_NS * LINE / 1000000000;
        const uint64_t bytes = packet->headers_bytes + packet->payload_bytes + OTHERS_BYTES;
        if (queued + bytes > QUEUE_BYTES) {
            world->lost++;
            sim_pool_give(&world->packets, packet);
            return;
        }
        if (sim->now_ps > 10 * MS && queued > world->longest) {
            world->longest = queued;
        }
        packet->marked = departure->ecn != NIC_ECN_NOT && meets_congestion(world, queued);
        world->marked += packet->marked;
        world->busy_ps = left_ps + wait_ps + bytes * 1000000000 / LINE * SIM_NS;
        at_ps = world->busy_ps + LATENCY_PS;
    }
    sim_schedule(sim, &packet->event, at_ps);
}

static void transmit(struct node *node, const struct nic_departure *departure)
{
    struct world *world = node->world;
    struct packet *packet = sim_pool_take(&world->packets);
    assert_non_null(packet);
    sim_event_init(&packet->event, on_arrival);
    packet->to = node == &world->receiver
                     ? &world->senders[departure->av->destination.bytes[15] - 1]
                     : &world->receiver;
    packet->from = node->gid;
    packet->headers_bytes = departure->headers_bytes;
    packet->payload_bytes = departure->payload_bytes + departure->pad_bytes;
    packet->marked = false;
    memcpy(packet->headers, departure->headers, departure->headers_bytes);
    const uint64_t bytes = packet->headers_bytes + packet->payload_bytes + OTHERS_BYTES;
    node->busy_ps = world->sim.now_ps + bytes * 1000000000 / LINE * SIM_NS;
    carry(world, packet, departure, node->busy_ps);
}

/* -- NICs ---------------------------------------------------------------------------------------*/

static void pull(struct node *node)
{
    struct sim *sim = &node->world->sim;
    struct qp *qp;
    struct nic_departure departure;
    while ((qp = nic_next_qp(node->nic)) != NULL) {
        if (node->busy_ps > sim->now_ps) {
            if (!sim_event_scheduled(&node->free)) {
                sim_schedule(sim, &node->free, node->busy_ps);
            }
            break;
        }
        if (nic_next_packet(node->nic, qp, sim_instant(sim), &departure)) {
            transmit(node, &departure);
            nic_rotate(node->nic, qp);
        }
    }
    timer_set(sim, &node->timer, nic_deadline(node->nic));
}

/* Every step pulls: this is one. */
static void on_free(struct sim *sim, struct sim_event *event)
{
    (void)sim;
    (void)event;
}

static void on_timer(struct sim *sim, struct sim_event *event)
{
    const struct node *node = CONTAINER_OF(event, struct node, timer);
    nic_on_time(node->nic, sim_instant(sim));
}

static void *zeroed(size_t bytes)
{
    bytes = (bytes + 63) & ~(size_t)63;
    return memset(aligned_alloc(64, bytes), 0, bytes);
}

static void make_node(struct world *world, struct node *node, uint32_t number)
{
    struct nic_limits limits = {.qps = 16,
                                .regions = 4,
                                .sends_per_qp = POSTED,
                                .receives_per_qp = 1,
                                .sges = 1,
                                .inline_bytes = 64,
                                .reads_per_qp = 16,
                                .cq_entries = 64,
                                .mtu = PATH_MTU_4096,
                                .rc = {.read_packets = 16},
                                .dcqcn = dcqcn_policy_default()};
    limits.dcqcn.line_rate = LINE;
    node->world = world;
    node->nic = nic_init(&limits, number + 1, zeroed(nic_bytes(&limits)));
    node->gid = (struct gid){{[10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(number + 1)}};
    sim_event_init(&node->timer, on_timer);
    sim_event_init(&node->free, on_free);
    const struct region_request region = {.address = (uintptr_t)world->bytes,
                                          .bytes = MESSAGE_BYTES,
                                          .start = BASE,
                                          .access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE |
                                                    ACCESS_REMOTE_READ};
    assert_int_equal(
        region_add(nic_regions(node->nic), &world->pd, &region, &world->regions[number]),
        STATUS_OK);
}

static struct node *node_of(struct world *world, uint32_t sender, bool receives)
{
    return receives ? &world->receiver : &world->senders[sender];
}

static void make_qp(struct world *world, uint32_t sender, bool receives)
{
    struct flow *flow = &world->flows[sender];
    flow->rings[receives] = calloc(cq_ring_entries(64), sizeof(struct completion));
    cq_init(&flow->cqs[receives], 64, flow->rings[receives]);
    struct qp_request request = {
        .type = world->run->type,
        .pd = &world->pd,
        .send_cq = &flow->cqs[receives],
        .receive_cq = &flow->cqs[receives],
        .capacity = {.sends = POSTED, .receives = 1, .send_sges = 1, .receive_sges = 1},
        .signal_all = true};
    flow->memory[receives] = zeroed(qp_bytes(request.type, &request.capacity, false));
    assert_int_equal(qp_create(node_of(world, sender, receives)->nic, &request,
                               flow->memory[receives], &flow->ends[receives]),
                     STATUS_OK);
}

static void connect(struct world *world, uint32_t sender, bool receives)
{
    const struct flow *flow = &world->flows[sender];
    struct qp *qp = flow->ends[receives];
    const bool rc = world->run->type == QP_RC;
    const struct instant now = sim_instant(&world->sim);
    struct qp_attributes step = {
        .state = QP_INIT,
        .port = 1,
        .access = ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ,
        .path_mtu = PATH_MTU_4096,
        .psn = {.receive = 5, .send = 5},
        .destination_qpn = qp_number(flow->ends[!receives]),
        .av = {.source = node_of(world, sender, receives)->gid,
               .destination = node_of(world, sender, !receives)->gid},
        .max_reads_in = 16,
        .max_reads_out = 16,
        .timeout = 12,
        .retry_count = 7,
        .rnr_retry = 7,
        .min_rnr_timer = 12,
    };
    const uint32_t init = QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_PORT | QP_ATTR_ACCESS_FLAGS;
    const uint32_t rtr = QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN |
                         QP_ATTR_RQ_PSN |
                         (rc ? (uint32_t)QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER : 0);
    const uint32_t rts = QP_ATTR_STATE | QP_ATTR_SQ_PSN |
                         (rc ? (uint32_t)QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT | QP_ATTR_RNR_RETRY |
                                   QP_ATTR_MAX_QP_RD_ATOMIC
                             : 0);
    assert_int_equal(qp_modify(qp, &step, init, now), STATUS_OK);
    step.state = QP_RTR;
    assert_int_equal(qp_modify(qp, &step, rtr, now), STATUS_OK);
    step.state = QP_RTS;
    assert_int_equal(qp_modify(qp, &step, rts, now), STATUS_OK);
}

static struct world *world_make(const struct run *run, bool deaf, uint64_t seed)
{
    struct world *world = calloc(1, sizeof(*world));
    world->run = run;
    world->deaf = deaf;
    sim_init(&world->sim, seed);
    sim_run_until(&world->sim, US);
    sim_pool_open(&world->packets, 1 << 16, sizeof(struct packet));
    for (uint32_t i = 0; i < run->senders; i++) {
        make_node(world, &world->senders[i], i);
    }
    make_node(world, &world->receiver, SENDERS_MAX);
    for (uint32_t i = 0; i < run->senders; i++) {
        make_qp(world, i, false);
        make_qp(world, i, true);
        connect(world, i, false);
        connect(world, i, true);
    }
    return world;
}

static void world_free(struct world *world)
{
    for (uint32_t i = 0; i < world->run->senders; i++) {
        for (int end = 0; end < 2; end++) {
            qp_destroy(world->flows[i].ends[end]);
            free(world->flows[i].memory[end]);
            free(world->flows[i].rings[end]);
        }
        free(world->senders[i].nic);
    }
    free(world->receiver.nic);
    sim_pool_close(&world->packets);
    free(world);
}

/* -- Programs -----------------------------------------------------------------------------------*/

static bool goes_on(const struct world *world, uint32_t sender)
{
    const struct run *run = world->run;
    return sender < run->stays || world->sim.now_ps < run->stop_ms * MS;
}

static void post(struct world *world, uint32_t sender)
{
    struct flow *flow = &world->flows[sender];
    const bool reads = world->run->reads;
    const struct sge sge = {BASE, MESSAGE_BYTES, world->regions[reads ? SENDERS_MAX : sender].key};
    const struct send_request request = {
        .wr_id = flow->posted,
        .kind = reads ? WORK_READ : WORK_WRITE,
        .sges = &sge,
        .sge_count = 1,
        .remote_address = BASE,
        .remote_key = world->regions[reads ? sender : SENDERS_MAX].key,
    };
    assert_int_equal(qp_post_send(flow->ends[reads], &request), STATUS_OK);
    flow->posted++;
}

static void drive(struct world *world, uint32_t sender)
{
    struct flow *flow = &world->flows[sender];
    struct completion completion = {0};
    while (cq_poll(&flow->cqs[world->run->reads], &completion, 1) == 1) {
        if (completion.status != COMPLETION_SUCCESS) {
            fail_msg("%s: sender %u ended with status %u", world->run->name, sender,
                     completion.status);
        }
        assert_int_equal(completion.wr_id, flow->completed);
        flow->completed++;
    }
    while (flow->posted - flow->completed < POSTED && goes_on(world, sender)) {
        post(world, sender);
    }
}

static void step(struct world *world)
{
    for (uint32_t i = 0; i < world->run->senders; i++) {
        drive(world, i);
        pull(&world->senders[i]);
    }
    pull(&world->receiver);
    assert_true(sim_step(&world->sim));
}

static void run_until(struct world *world, uint64_t ps)
{
    uint64_t steps = 0;
    while (world->sim.now_ps < ps) {
        step(world);
        if (++steps % 1024 == 0) {
            nic_check(world->receiver.nic);
            nic_check(world->senders[0].nic);
        }
    }
}

static uint64_t counted(const struct world *world, enum nic_counter counter)
{
    uint64_t sum = nic_counters(world->receiver.nic)->values[counter];
    for (uint32_t i = 0; i < world->run->senders; i++) {
        sum += nic_counters(world->senders[i].nic)->values[counter];
    }
    return sum;
}

/* -- A queue that marks -------------------------------------------------------------------------*/

struct result {
    uint64_t line, jain, queue_kb, digest; /* Percent; percent. */
};

static struct result play(const struct run *run, bool deaf, uint64_t seed)
{
    struct world *world = world_make(run, deaf, seed);
    run_until(world, run->from_ms * MS);
    for (uint32_t i = 0; i < run->senders; i++) {
        world->flows[i].before = world->flows[i].arrived;
    }
    run_until(world, run->until_ms * MS);
    double sum = 0, squares = 0;
    for (uint32_t i = 0; i < run->stays; i++) {
        const double part = (double)(world->flows[i].arrived - world->flows[i].before);
        sum += part;
        squares += part * part;
    }
    const double most = (double)LINE / 1000 * (run->until_ms - run->from_ms);
    const struct result result = {
        .line = (uint64_t)(100 * sum / most),
        .jain = (uint64_t)(100 * sum * sum / (squares * run->stays) + 0.5),
        .queue_kb = world->longest / 1000,
        .digest = world->sim.events * 31 + world->marked,
    };
    printf("%-18s %s line %3llu %%, Jain %3llu %%, queue %4llu KB, %llu marks, %llu CNPs\n",
           run->name, deaf ? "deaf" : "    ", (unsigned long long)result.line,
           (unsigned long long)result.jain, (unsigned long long)result.queue_kb,
           (unsigned long long)world->marked,
           (unsigned long long)counted(world, COUNTER_rp_cnp_handled));
    if (!deaf) {
        assert_int_equal(world->lost, 0);
        assert_int_equal(counted(world, COUNTER_retransmitted_pkts), 0);
        assert_true(counted(world, COUNTER_np_cnp_sent) >= counted(world, COUNTER_rp_cnp_handled));
        assert_int_equal(counted(world, COUNTER_np_cnp_sent) > 0, run->senders > 1);
    }
    world_free(world);
    return result;
}

static void test_a_queue_that_marks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(runs); i++) {
        const struct run *run = &runs[i];
        for (uint64_t seed = 1; seed <= 2; seed++) {
            const struct result result = play(run, false, seed);
            if (result.line < run->line || result.jain < run->jain ||
                result.queue_kb > run->queue_kb) {
                fail_msg("%s, seed %llu: below its bars", run->name, (unsigned long long)seed);
            }
        }
        if (run->deaf_breaks && play(run, true, 1).queue_kb <= run->queue_kb) {
            fail_msg("%s: the queue is short without marks, too", run->name);
        }
    }
    assert_int_equal(play(&runs[1], false, 1).digest, play(&runs[1], false, 1).digest);
}

/* -- Forged notifications -----------------------------------------------------------------------*/

/* One that says all that a stranger can find out. */
static void forge(struct world *world, uint32_t sender)
{
    const struct roce_packet packet = {.opcode = ROCE_OPCODE_CNP,
                                       .pkey = ROCE_DEFAULT_PKEY,
                                       .destination_qpn = qp_number(world->flows[sender].ends[0])};
    uint8_t headers[ROCE_HEADERS_BYTES_MAX];
    const struct nic_frame frame = {.headers = headers,
                                    .payload = nothing,
                                    .headers_bytes =
                                        (uint32_t)roce_encode_headers(&packet, headers),
                                    .source = world->receiver.gid,
                                    .destination = world->senders[sender].gid};
    struct nic_move move;
    assert_int_equal(
        nic_on_packet(world->senders[sender].nic, &frame, sim_instant(&world->sim), &move),
        NIC_DONE);
}

/* Seven times as many as are heeded. */
static void on_forgery(struct sim *sim, struct sim_event *event)
{
    struct world *world = CONTAINER_OF(event, struct world, forgery);
    forge(world, 0);
    sim_after(sim, event, 7 * US);
}

static void flood(const struct run *run)
{
    struct world *world = world_make(run, false, 1);
    const struct flow *flow = &world->flows[0];
    const struct dcqcn_policy policy = dcqcn_policy_default();
    sim_event_init(&world->forgery, on_forgery);
    sim_schedule(&world->sim, &world->forgery, 10 * MS);
    run_until(world, 110 * MS);
    const uint64_t begun = flow->arrived;
    run_until(world, 510 * MS);
    sim_cancel(&world->forgery);
    /* It goes on: 0.4 s at the least rate, and no faster. */
    const uint64_t crawled = flow->arrived - begun, completed = flow->completed;
    printf("%-18s flooded: %llu bytes in 0.4 s\n", run->name, (unsigned long long)crawled);
    assert_in_range(crawled, policy.least_rate / 5, policy.least_rate);
    assert_int_equal(counted(world, COUNTER_timeouts), 0);
    assert_int_equal(counted(world, COUNTER_retransmitted_pkts), 0);
    assert_true(counted(world, COUNTER_rp_cnp_ignored) > counted(world, COUNTER_rp_cnp_handled));
    run_until(world, 580 * MS);
    const uint64_t before = flow->arrived;
    run_until(world, 600 * MS);
    assert_true(flow->arrived - before > LINE / 50 * 95 / 100);
    assert_true(flow->completed > completed);
    world_free(world);
}

static void test_forged_notifications(void **state)
{
    (void)state;
    static const struct run one[] = {
        {.name = "RC", .type = QP_RC, .senders = 1, .stays = 1},
        {.name = "UC", .type = QP_UC, .senders = 1, .stays = 1},
        {.name = "READs", .type = QP_RC, .reads = true, .senders = 1, .stays = 1},
    };
    for (size_t i = 0; i < COUNT_OF(one); i++) {
        flood(&one[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_queue_that_marks),
                                       cmocka_unit_test(test_forged_notifications)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
