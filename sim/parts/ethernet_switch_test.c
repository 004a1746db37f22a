/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A switch of Ethernet passes frames on at the times that its header says, asks for pauses
 *         at its thresholds, loses nothing where there is headroom, and marks what may be marked.
 * Method  Times and bytes are worked out by hand at 10 Gb/s, where a byte takes 800 ps. A sender, a
 *         switch and a receiver run beside a model that goes forward by 100 ps at a time. In random
 *         networks of busy senders whose receiver pauses, every frame is accounted for. Behaviours
 *         FER-87, FER-89, FER-90.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "sim/parts/ethernet_switch.h"
#include "sim/pool.h"

#define BYTE_PS   800u
#define CABLE_PS  10000u
#define DELAY_PS  500000u
#define BIG       4162u
#define HOSTS_MAX 8u
#define POOL      4096u
#define COMES_MAX 1000u

/* -- Hosts around a switch ----------------------------------------------------------------------*/

struct packet {
    struct sim_frame frame;
    uint32_t source, number;
};

struct host {
    struct sim_port port;
    uint32_t index;
    /* It sends `left` frames, one after the other, each when the one before begins. */
    uint32_t left, made, bytes, destination;
    uint8_t class;
    enum sim_ecn ecn;
    const uint32_t *sizes; /* By number; NULL: all have `bytes`. */
    /* The frames that came to it. */
    uint32_t expected[HOSTS_MAX][PAUSE_CLASSES]; /* By source and class: the least next number. */
    uint32_t came, marked;
    uint64_t times_ps[COMES_MAX];
};

struct net {
    struct sim sim;
    struct sim_ethernet_switch middle;
    struct host hosts[HOSTS_MAX];
    uint32_t host_count;
    struct sim_pool pool;
    uint32_t lost[SIM_LOSSES];
};

static struct net *world; /* Calls name a port only, and there is one net at a time. */

static void give(struct sim_frame *frame)
{
    sim_pool_give(&world->pool, CONTAINER_OF(frame, struct packet, frame));
}

static void on_frame(struct sim_port *port, struct sim_frame *frame)
{
    struct host *host = CONTAINER_OF(port, struct host, port);
    const struct packet *packet = CONTAINER_OF(frame, struct packet, frame);
    assert_int_equal(frame->destination, host->index);
    uint32_t *expected = &host->expected[packet->source][frame->class];
    assert_true(packet->number >= *expected); /* In order. */
    *expected = packet->number + 1;
    sim_note(&world->sim, (uint64_t)packet->source << 32 | packet->number);
    if (host->came < COMES_MAX) {
        host->times_ps[host->came] = world->sim.now_ps;
    }
    host->came++;
    host->marked += frame->ecn == SIM_CE;
    give(frame);
}

static void on_port_loss(struct sim_port *port, struct sim_frame *frame, enum sim_loss loss)
{
    (void)port;
    world->lost[loss]++;
    give(frame);
}

static void on_switch_loss(struct sim_ethernet_switch *from, struct sim_frame *frame,
                           enum sim_loss loss)
{
    assert_ptr_equal(from, &world->middle);
    world->lost[loss]++;
    give(frame);
}

static void make(struct host *host)
{
    if (host->left == 0) {
        return;
    }
    struct packet *packet = sim_pool_take(&world->pool);
    assert_non_null(packet);
    packet->source = host->index;
    packet->number = host->made++;
    host->left--;
    const uint32_t bytes = host->sizes == NULL ? host->bytes : host->sizes[packet->number];
    sim_frame_open(&packet->frame, bytes, host->destination, host->class, host->ecn);
    sim_port_send(&host->port, &packet->frame);
}

static void on_begin(struct sim_port *port, struct sim_frame *frame)
{
    (void)frame;
    make(CONTAINER_OF(port, struct host, port));
}

static const struct sim_port_calls calls = {
    .on_frame = on_frame, .on_loss = on_port_loss, .on_begin = on_begin};

static struct sim_ethernet_switch_kind kind_of(enum sim_flow_control flow, uint64_t xoff_bytes,
                                               uint64_t xon_bytes)
{
    return (struct sim_ethernet_switch_kind){
        .line = {.wire = {.byte_fs = BYTE_PS * UINT64_C(1000), .latency_ps = CABLE_PS}},
        .delay_ps = DELAY_PS,
        .input = {flow, xoff_bytes, xon_bytes, SIM_NO_BOUND},
        .output_bytes = SIM_NO_BOUND,
        .ecn_bytes = SIM_NO_BOUND,
        .quanta = PAUSE_QUANTA_MAX,
    };
}

static struct net *net_open(const struct sim_ethernet_switch_kind *kind, uint32_t hosts)
{
    struct net *net = calloc(1, sizeof(*net));
    assert_non_null(net);
    world = net;
    net->host_count = hosts;
    sim_init(&net->sim, 1);
    sim_pool_open(&net->pool, POOL, sizeof(struct packet));
    sim_ethernet_switch_open(&net->middle, &net->sim, kind, hosts, on_switch_loss);
    for (uint32_t i = 0; i < hosts; i++) {
        net->hosts[i].index = i;
        sim_port_open(&net->hosts[i].port, &net->sim, &kind->line, &calls);
        sim_port_join(&net->hosts[i].port, &net->middle.ports[i].port);
    }
    return net;
}

static void net_close(struct net *net)
{
    uint32_t made = 0, ended = 0;
    for (uint32_t i = 0; i < net->host_count; i++) {
        made += net->hosts[i].made;
        ended += net->hosts[i].came;
        for (uint32_t k = 0; k < PAUSE_CLASSES; k++) {
            assert_int_equal(net->middle.ports[i].lanes[k].bytes, 0);
            assert_false(net->middle.ports[i].lanes[k].asked);
        }
    }
    for (uint32_t i = 0; i < SIM_LOSSES; i++) {
        ended += net->lost[i];
    }
    assert_int_equal(made, ended);
    assert_int_equal(sim_pool_taken(&net->pool), 0);
    for (uint32_t i = 0; i < net->host_count; i++) {
        sim_port_close(&net->hosts[i].port);
    }
    sim_ethernet_switch_close(&net->middle);
    sim_pool_close(&net->pool);
    free(net);
}

static void start(struct net *net, uint32_t host, uint32_t destination, uint32_t count,
                  uint32_t bytes)
{
    net->hosts[host].left = count;
    net->hosts[host].bytes = bytes;
    net->hosts[host].destination = destination;
    make(&net->hosts[host]);
}

static void run(struct net *net)
{
    while (sim_step(&net->sim)) {
    }
}

/* The host asks the switch to pause class 0, or to go on. */
static void hold(struct net *net, uint32_t host, bool held)
{
    const struct pause pause = pause_classes(0x01, held ? PAUSE_QUANTA_MAX : 0);
    sim_port_pause(&net->hosts[host].port, &pause);
}

/* -- Passing on ---------------------------------------------------------------------------------*/

/* The first bit leaves `delay_ps` after it came; a stream of one sender makes no queue. */
static void test_cuts_through(void **state)
{
    (void)state;
    for (uint32_t extra_bytes = 0; extra_bytes <= 71; extra_bytes += 71) {
        struct sim_ethernet_switch_kind kind = kind_of(SIM_NO_FLOW_CONTROL, 0, 0);
        kind.line.extra_bytes = extra_bytes;
        kind.line.fec_ps = 204800;
        for (uint32_t bytes = 64; bytes <= BIG; bytes += BIG - 64) {
            struct net *net = net_open(&kind, 2);
            start(net, 0, 1, 20, bytes);
            run(net);
            for (uint32_t i = 0; i < 20; i++) {
                const uint64_t begin_ps = i * (8 + bytes + 12 + extra_bytes) * (uint64_t)BYTE_PS;
                assert_int_equal(net->hosts[1].times_ps[i], begin_ps + (8 + bytes) * BYTE_PS +
                                                                2 * (CABLE_PS + 204800) + DELAY_PS);
            }
            assert_int_equal(net->middle.ports[0].counters.cut_through, 20);
            assert_int_equal(sim_ethernet_switch_worst(&net->middle), 0);
            net_close(net);
        }
    }
}

/* A frame that finds the output busy is sent when it is whole, and in its turn. */
static void test_whole_otherwise(void **state)
{
    (void)state;
    const struct sim_ethernet_switch_kind kind = kind_of(SIM_NO_FLOW_CONTROL, 0, 0);
    struct net *net = net_open(&kind, 4);
    start(net, 0, 3, 1, 1000);
    sim_run_until(&net->sim, 1000);
    start(net, 1, 3, 1, 3000); /* Is whole when the line has long been free. */
    sim_run_until(&net->sim, 2000);
    start(net, 2, 3, 1, 900); /* Cuts in, for it is whole earlier. */
    run(net);
    const uint64_t out_ps = CABLE_PS + DELAY_PS;
    const uint64_t second_ps = out_ps + 1020 * BYTE_PS; /* The first one's line is free. */
    const uint64_t third_ps = 1000 + 3008 * BYTE_PS + CABLE_PS + DELAY_PS;
    assert_int_equal(net->hosts[3].times_ps[0], out_ps + 1008 * BYTE_PS + CABLE_PS);
    assert_int_equal(net->hosts[3].times_ps[1], second_ps + 908 * BYTE_PS + CABLE_PS);
    assert_int_equal(net->hosts[3].times_ps[2], third_ps + 3008 * BYTE_PS + CABLE_PS);
    assert_int_equal(net->hosts[3].expected[1][0], 1);
    assert_int_equal(sim_ethernet_switch_total(&net->middle).stored, 2);
    assert_int_equal(net->middle.ports[3].counters.worst_queue_bytes, 900);
    assert_int_equal(net->middle.ports[1].lanes[0].worst_bytes, 3000);
    net_close(net);
}

/* A frame that comes by a line of a tenth of the rate cuts through as late as its tail needs. */
static void test_slow_line(void **state)
{
    (void)state;
    const struct sim_ethernet_switch_kind kind = kind_of(SIM_NO_FLOW_CONTROL, 0, 0);
    struct net *net = net_open(&kind, 2);
    net->hosts[0].port.kind.wire.byte_fs *= 10;
    start(net, 0, 1, 3, 1000);
    run(net);
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t tail_ps = (i * 1020 + 1008) * 10 * (uint64_t)BYTE_PS + CABLE_PS;
        assert_int_equal(net->hosts[1].times_ps[i], tail_ps + DELAY_PS + CABLE_PS);
    }
    assert_int_equal(net->middle.ports[0].counters.cut_through, 3);
    net_close(net);
}

/* A destination is a row of the table. */
static void test_outputs(void **state)
{
    (void)state;
    static const uint32_t outputs[] = {0, 0, 2};
    const struct sim_ethernet_switch_kind kind = kind_of(SIM_NO_FLOW_CONTROL, 0, 0);
    struct net *net = net_open(&kind, 3);
    net->middle.outputs = outputs;
    start(net, 0, 2, 5, 100);
    run(net);
    assert_int_equal(net->hosts[2].came, 5);
    net_close(net);
}

/* -- Flow control -------------------------------------------------------------------------------*/

/* FER-89: above xoff a pause goes, at xoff none; quanta 0 goes at xon, above it none. The receiver
 * holds the output; its frame and gap being out, the first frame of the queue gives back room. */
static void test_thresholds(void **state)
{
    (void)state;
    const struct sim_ethernet_switch_kind kind = kind_of(SIM_PFC, 3000, 1000);
    struct net *net = net_open(&kind, 2);
    const struct sim_switch_counters *counters = &net->middle.ports[0].counters;
    hold(net, 1, true);
    sim_run_until(&net->sim, 1000000);
    start(net, 0, 1, 3, 1000);
    sim_run_until(&net->sim, 10000000);
    assert_int_equal(net->middle.ports[0].lanes[0].bytes, 3000);
    assert_int_equal(counters->xoffs, 0);
    start(net, 0, 1, 1, 64);
    sim_run_until(&net->sim, 20000000);
    assert_int_equal(net->middle.ports[0].lanes[0].bytes, 3064);
    assert_int_equal(counters->xoffs, 1);
    assert_true(sim_port_paused(&net->hosts[0].port, 0));
    assert_false(sim_port_paused(&net->hosts[0].port, 1));
    hold(net, 1, false);
    const uint64_t out_ps = 20000000 + 72 * BYTE_PS + CABLE_PS;
    sim_run_until(&net->sim, out_ps + 2 * 1020 * BYTE_PS);
    assert_int_equal(net->middle.ports[0].lanes[0].bytes, 1064); /* Above xon. */
    assert_int_equal(counters->xons, 0);
    sim_run_until(&net->sim, out_ps + 3 * 1020 * BYTE_PS - 1);
    assert_int_equal(counters->xons, 0);
    sim_run_until(&net->sim, out_ps + 3 * 1020 * BYTE_PS);
    assert_int_equal(counters->xons, 1);
    run(net);
    assert_false(sim_port_paused(&net->hosts[0].port, 0));
    assert_int_equal(net->hosts[0].port.counters.pauses_heard, 2);
    assert_int_equal(net->hosts[1].came, 4);
    net_close(net);
}

/* FER-89: xon itself is low enough. */
static void test_at_xon(void **state)
{
    (void)state;
    const struct sim_ethernet_switch_kind kind = kind_of(SIM_PFC, 3000, 1000);
    struct net *net = net_open(&kind, 2);
    hold(net, 1, true);
    sim_run_until(&net->sim, 1000000);
    start(net, 0, 1, 4, 1000);
    sim_run_until(&net->sim, 10000000);
    hold(net, 1, false);
    const uint64_t out_ps = 10000000 + 72 * BYTE_PS + CABLE_PS;
    sim_run_until(&net->sim, out_ps + 3 * 1020 * BYTE_PS - 1);
    assert_int_equal(net->middle.ports[0].counters.xons, 0);
    sim_run_until(&net->sim, out_ps + 3 * 1020 * BYTE_PS);
    assert_int_equal(net->middle.ports[0].lanes[0].bytes, 1000);
    assert_int_equal(net->middle.ports[0].counters.xons, 1);
    run(net);
    net_close(net);
}

/* A pause that has to last is asked for again before it is over: the sender never begins. */
static void test_refresh(void **state)
{
    (void)state;
    struct sim_ethernet_switch_kind kind = kind_of(SIM_PFC, 1000, 500);
    kind.quanta = 200; /* 10.24 us. */
    struct net *net = net_open(&kind, 2);
    hold(net, 1, true);
    start(net, 0, 1, 20, 1000);
    sim_run_until(&net->sim, 100000000);
    const uint64_t sent = net->hosts[0].port.counters.frames_sent;
    assert_in_range(sent, 2, 4);
    sim_run_until(&net->sim, 1000000000);
    assert_int_equal(net->hosts[0].port.counters.frames_sent, sent);
    assert_in_range(net->middle.ports[0].counters.refreshes, 190, 196); /* One in 5.12 us. */
    hold(net, 1, false);
    run(net);
    assert_int_equal(net->hosts[1].came, 20);
    net_close(net);
}

/* A pause that is lost is asked for again, one whose end is lost is over in time: everything comes.
 */
static void test_lost_pauses(void **state)
{
    (void)state;
    struct sim_ethernet_switch_kind kind = kind_of(SIM_PFC, 10000, 5000);
    kind.quanta = 200; /* 10.24 us: 12,800 bytes. */
    struct net *net = net_open(&kind, 3);
    for (uint32_t i = 0; i < 2; i++) {
        sim_errors_init(&net->middle.ports[i].port.errors, i, 0, 200000);
        start(net, i, 2, 2000, 1000);
    }
    run(net);
    const struct sim_port_counters *counters = &net->middle.ports[0].port.counters;
    assert_true(counters->pauses_lost > 10 &&
                counters->pauses_sent > 5 * counters->pauses_lost / 2);
    assert_int_equal(counters->pauses_sent,
                     counters->pauses_lost + net->hosts[0].port.counters.pauses_heard);
    assert_int_equal(net->hosts[2].came, 4000);
    net_close(net);
}

/* With PFC a class has thresholds and room of its own, with LFC all have the same. */
static void test_classes(void **state)
{
    (void)state;
    for (uint32_t flow = SIM_LFC; flow <= SIM_PFC; flow++) {
        const struct sim_ethernet_switch_kind kind =
            kind_of((enum sim_flow_control)flow, 2500, 1000);
        struct net *net = net_open(&kind, 2);
        const struct pause all = pause_link(PAUSE_QUANTA_MAX), on = pause_link(0);
        sim_port_pause(&net->hosts[1].port, &all);
        sim_run_until(&net->sim, 1000000);
        for (uint8_t class = 0; class < 3; class ++) { /* The third one is above together only. */
            net->hosts[0].class = class;
            start(net, 0, 1, 1, 1000);
        }
        sim_run_until(&net->sim, 10000000);
        const bool link = flow == SIM_LFC;
        assert_int_equal(net->middle.ports[0].counters.xoffs, link ? 1 : 0);
        assert_int_equal(net->middle.ports[0].lanes[0].bytes, link ? 3000 : 1000);
        net->hosts[0].class = 5;
        start(net, 0, 1, 3, 1000);
        sim_run_until(&net->sim, 20000000);
        assert_int_equal(net->middle.ports[0].lanes[5].bytes, link ? 0 : 3000);
        assert_true(sim_port_paused(&net->hosts[0].port, 5));
        assert_int_equal(sim_port_paused(&net->hosts[0].port, 4), link);
        sim_port_pause(&net->hosts[1].port, &on);
        run(net);
        assert_int_equal(net->hosts[1].came, 6);
        net_close(net);
    }
}

/* -- Loss ---------------------------------------------------------------------------------------*/

/* A frame that finds no room is dropped, at an input or an output. No other frame is. */
static void test_no_room(void **state)
{
    (void)state;
    for (uint32_t at_output = 0; at_output < 2; at_output++) {
        struct sim_ethernet_switch_kind kind = kind_of(SIM_NO_FLOW_CONTROL, 0, 0);
        kind.input.room_bytes = at_output ? SIM_NO_BOUND : 5000;
        kind.output_bytes = at_output ? 5000 : SIM_NO_BOUND;
        struct net *net = net_open(&kind, 3);
        hold(net, 2, true);
        sim_run_until(&net->sim, 1000000);
        start(net, 0, 2, 8, 1000);
        start(net, 1, 2, 4, 1000);
        sim_run_until(&net->sim, 50000000);
        hold(net, 2, false);
        run(net);
        assert_int_equal(net->lost[SIM_NO_ROOM_AT_INPUT], at_output ? 0 : 3);
        assert_int_equal(net->lost[SIM_NO_ROOM_AT_OUTPUT], at_output ? 7 : 0);
        assert_int_equal(net->hosts[2].came, at_output ? 5 : 9);
        const struct sim_switch_counters total = sim_ethernet_switch_total(&net->middle);
        assert_int_equal(total.lost_at_input, net->lost[SIM_NO_ROOM_AT_INPUT]);
        assert_int_equal(total.lost_at_output, net->lost[SIM_NO_ROOM_AT_OUTPUT]);
        assert_int_equal(total.worst_queue_bytes, at_output ? 5000 : 9000);
        net_close(net);
    }
}

/* A frame that the sender's line has spoilt is passed on when it cuts through, and dropped when it
 * is stored. */
static void test_spoilt(void **state)
{
    (void)state;
    for (uint32_t held = 0; held < 2; held++) {
        const struct sim_ethernet_switch_kind kind = kind_of(SIM_NO_FLOW_CONTROL, 0, 0);
        struct net *net = net_open(&kind, 2);
        sim_errors_init(&net->hosts[0].port.errors, 7, 1e-5, 50000);
        hold(net, 1, held != 0);
        sim_run_until(&net->sim, 1000000);
        start(net, 0, 1, 2000, 1000);
        sim_run_until(&net->sim, 2000 * 1020ull * BYTE_PS + 10000000);
        hold(net, 1, false);
        run(net);
        assert_in_range(net->lost[SIM_LOST_ON_LINE], 60, 140);
        assert_in_range(net->lost[SIM_SPOILT_ON_LINE], 100, 200);
        const struct sim_switch_counters total = sim_ethernet_switch_total(&net->middle);
        assert_int_equal(total.lost_spoilt, held ? net->lost[SIM_SPOILT_ON_LINE] : 0);
        assert_int_equal(net->hosts[1].port.counters.frames_spoilt,
                         held ? 0 : net->lost[SIM_SPOILT_ON_LINE]);
        net_close(net);
    }
}

/* -- ECN ----------------------------------------------------------------------------------------*/

/* FER-90: what joins a longer queue is marked if it is ECT, and never if it is not. */
static void test_marks(void **state)
{
    (void)state;
    static const enum sim_ecn codes[] = {SIM_NOT_ECT, SIM_ECT_1, SIM_ECT_0};
    for (uint32_t i = 0; i < COUNT_OF(codes); i++) {
        struct sim_ethernet_switch_kind kind = kind_of(SIM_NO_FLOW_CONTROL, 0, 0);
        kind.ecn_bytes = 5000;
        struct net *net = net_open(&kind, 2);
        hold(net, 1, true);
        sim_run_until(&net->sim, 1000000);
        net->hosts[0].ecn = codes[i];
        start(net, 0, 1, 20, 1000);
        sim_run_until(&net->sim, 50000000);
        hold(net, 1, false);
        run(net);
        const struct sim_switch_counters *counters = &net->middle.ports[1].counters;
        const bool ect = codes[i] != SIM_NOT_ECT;
        /* The seventh finds 6,000 before it; the sixth finds 5,000, which is not above. */
        assert_int_equal(net->hosts[1].marked, ect ? 14 : 0);
        assert_int_equal(counters->marked, ect ? 14 : 0);
        assert_int_equal(counters->unmarkable, ect ? 0 : 14);
        net_close(net);
    }
}

/* -- One sender, one switch, one receiver beside a model ----------------------------------------*/

#define STEP_PS   100u
#define MODEL_MAX 80u

enum word {
    NO_WORD,
    STOP,
    GO,
};

/* Frame k is with the sender, between the ends of the first line, waiting for its tail, in the
 * queue, or gone. */
enum where {
    AT_SENDER,
    ON_LINE,
    GATHERING,
    QUEUED,
    GONE,
};

struct model {
    /* The run's: in steps. */
    uint32_t sizes[MODEL_MAX];
    uint64_t cable, delay, xoff, xon;
    uint64_t holds, goes; /* When the output is held, and when no longer. */
    /* The state. */
    enum where where[MODEL_MAX];
    uint64_t head[MODEL_MAX], tail[MODEL_MAX], came[MODEL_MAX];
    uint64_t sender_free, output_free, back_free, stopped_at, going_at;
    uint32_t leaving; /* The bytes that the line gives back when it is free. */
    uint64_t bytes, worst;
    bool stopped, asked;
    enum word wanted;
    uint32_t xoffs, xons;
};

#define STEPS_A_BYTE (BYTE_PS / STEP_PS)

static void model_sender(struct model *model, uint64_t now)
{
    model->stopped = now == model->stopped_at ? true : model->stopped;
    model->stopped = now == model->going_at ? false : model->stopped;
    for (uint32_t k = 0; k < MODEL_MAX && now >= model->sender_free && !model->stopped; k++) {
        if (model->where[k] == AT_SENDER) {
            model->where[k] = ON_LINE;
            model->head[k] = now + model->cable;
            model->tail[k] = model->head[k] + (8 + model->sizes[k]) * STEPS_A_BYTE;
            model->sender_free = now + (20 + model->sizes[k]) * STEPS_A_BYTE;
        }
    }
}

static void model_leave(struct model *model, uint32_t k, uint64_t now, uint32_t room)
{
    model->where[k] = GONE;
    model->came[k] = now + (8 + model->sizes[k]) * STEPS_A_BYTE + model->cable;
    model->output_free = now + (20 + model->sizes[k]) * STEPS_A_BYTE;
    model->leaving = room;
}

static void model_output(struct model *model, uint64_t now)
{
    const bool held = now >= model->holds && now < model->goes;
    if (now >= model->output_free && model->leaving > 0) {
        model->bytes -= model->leaving;
        model->leaving = 0;
        if (model->asked && model->bytes <= model->xon) {
            model->asked = false;
            model->wanted = GO;
            model->xons++;
        }
    }
    for (uint32_t k = 0; k < MODEL_MAX && now >= model->output_free && !held; k++) {
        if (model->where[k] == QUEUED) {
            model_leave(model, k, now, model->sizes[k]);
        }
    }
    for (uint32_t k = 0; k < MODEL_MAX; k++) { /* The queue is empty if the line is free. */
        if (model->where[k] == ON_LINE && now == model->head[k] + model->delay) {
            if (now >= model->output_free && !held) {
                model_leave(model, k, now, 0);
            } else {
                model->where[k] = GATHERING;
            }
        }
    }
}

static void model_store(struct model *model, uint64_t now)
{
    for (uint32_t k = 0; k < MODEL_MAX; k++) {
        if (model->where[k] == GATHERING && now == model->tail[k] + model->delay) {
            model->where[k] = QUEUED;
            model->bytes += model->sizes[k];
            model->worst = model->bytes > model->worst ? model->bytes : model->worst;
            if (!model->asked && model->bytes > model->xoff) {
                model->asked = true;
                model->wanted = STOP;
                model->xoffs++;
            }
        }
    }
}

static void model_back(struct model *model, uint64_t now)
{
    if (model->wanted == NO_WORD || now < model->back_free) {
        return;
    }
    const uint64_t heard = now + 72 * STEPS_A_BYTE + model->cable;
    *(model->wanted == STOP ? &model->stopped_at : &model->going_at) = heard;
    model->wanted = NO_WORD;
    model->back_free = now + 84 * STEPS_A_BYTE;
}

static bool model_over(const struct model *model)
{
    for (uint32_t k = MODEL_MAX; k-- > 0;) {
        if (model->where[k] != GONE) {
            return false;
        }
    }
    return model->leaving == 0;
}

static void model_run(struct model *model)
{
    model->stopped_at = model->going_at = UINT64_MAX;
    for (uint64_t now = 0; !model_over(model); now++) {
        model_sender(model, now);
        model_store(model, now);
        model_output(model, now);
        model_back(model, now);
    }
}

/* The receiver's pauses cost time on its line: they are asked for so early that they are heard when
 * the model holds the output, which is when its line is free. */
static void replay(struct net *net, const struct model *model)
{
    const uint64_t early_ps = 72 * BYTE_PS + model->cable * STEP_PS;
    net->hosts[0].sizes = model->sizes;
    start(net, 0, 1, MODEL_MAX, 1);
    sim_run_until(&net->sim, model->holds * STEP_PS - early_ps);
    hold(net, 1, true);
    sim_run_until(&net->sim, model->goes * STEP_PS - early_ps);
    hold(net, 1, false);
    run(net);
}

static void draw(struct model *model, struct prng *prng)
{
    *model = (struct model){.cable = 1 + prng_below(prng, 20000),
                            .delay = 1 + prng_below(prng, 9000),
                            .xoff = 500 + prng_below(prng, 6000)};
    for (uint32_t k = 0; k < MODEL_MAX; k++) {
        model->sizes[k] = 64 + (uint32_t)prng_below(prng, 1400);
    }
    model->xon = prng_below(prng, model->xoff + 1);
    model->holds = 40000 + prng_below(prng, 100000);
    model->goes = model->holds + 100000 + prng_below(prng, 300000);
}

static void test_against_model(void **state)
{
    (void)state;
    uint32_t xoffs = 0, cut = 0;
    struct model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    for (uint64_t seed = 1; seed <= 15; seed++) {
        struct prng prng;
        prng_init(&prng, seed);
        draw(model, &prng);
        struct sim_ethernet_switch_kind kind = kind_of(SIM_PFC, model->xoff, model->xon);
        kind.line.wire.latency_ps = model->cable * STEP_PS;
        kind.delay_ps = model->delay * STEP_PS;
        struct net *net = net_open(&kind, 2);
        model_run(model);
        replay(net, model);
        assert_int_equal(net->hosts[1].came, MODEL_MAX);
        for (uint32_t k = 0; k < MODEL_MAX; k++) {
            assert_int_equal(net->hosts[1].times_ps[k], model->came[k] * STEP_PS);
        }
        assert_int_equal(sim_ethernet_switch_worst(&net->middle), model->worst);
        const struct sim_switch_counters total = sim_ethernet_switch_total(&net->middle);
        assert_int_equal(total.xoffs, model->xoffs);
        assert_int_equal(total.xons, model->xons);
        xoffs += model->xoffs;
        cut += (uint32_t)total.cut_through;
        net_close(net);
    }
    print_message("%u pauses, %u frames cut through\n", xoffs, cut);
    assert_true(xoffs >= 10 && cut > 30);
    free(model);
}

/* -- Headroom -----------------------------------------------------------------------------------*/

static void test_headroom_terms(void **state)
{
    (void)state;
    const struct sim_ethernet_kind line = {
        .wire = {.byte_fs = 320000, .latency_ps = 5000000}, .fec_ps = 204800, .extra_bytes = 71};
    const struct sim_headroom headroom = sim_headroom_of(&line, 500000, 4162, 64);
    assert_int_equal(headroom.cable, 31250);
    assert_int_equal(headroom.fec, 1280);
    assert_int_equal(headroom.decision, 1563); /* 1,562.5 */
    assert_int_equal(headroom.crossing, 4162);
    assert_int_equal(headroom.progress, 4162);
    assert_int_equal(headroom.reverse, 64 + 20 + 71);
    assert_int_equal(headroom.pause, 84);
    assert_int_equal(sim_headroom_bytes(&headroom),
                     31250 + 1280 + 1563 + 2 * 4162 + 64 + 20 + 71 + 84);
    assert_int_equal(sim_headroom_of(&line, 0, 1, 0).reverse, 0);
}

struct load {
    uint32_t senders, frames, reverse_bytes;
    uint64_t hold_ps;
    uint64_t digest; /* The result of the run. */
};

/* Busy senders to the last host, which sends to the first one and pauses. FER-87: no paused frame
 * is lost. Returns the room that was used. */
static uint64_t loaded(const struct sim_ethernet_switch_kind *kind, struct load *load,
                       const uint32_t *sizes, uint32_t *lost)
{
    struct net *net = net_open(kind, load->senders + 1);
    for (uint32_t i = 0; i < load->senders; i++) {
        net->hosts[i].sizes = sizes;
        start(net, i, load->senders, load->frames, 1);
    }
    if (load->reverse_bytes > 0) {
        start(net, load->senders, 0, load->frames, load->reverse_bytes);
    }
    sim_run_until(&net->sim, load->hold_ps);
    hold(net, load->senders, true);
    sim_run_until(&net->sim, load->hold_ps + 200000000);
    hold(net, load->senders, false);
    run(net);
    const struct sim_switch_counters total = sim_ethernet_switch_total(&net->middle);
    *lost = (uint32_t)total.lost_at_input;
    assert_true(total.xoffs > 0 && total.xons == total.xoffs);
    const uint64_t worst_bytes = sim_ethernet_switch_worst(&net->middle);
    load->digest = net->sim.digest;
    net_close(net);
    return worst_bytes;
}

/* Lines, thresholds, frames and the moment at random: with headroom nothing is lost, and the bound
 * is not far away: some run comes within two frames of it. */
static void test_headroom_suffices(void **state)
{
    (void)state;
    static uint32_t sizes[400];
    uint64_t nearest_bytes = UINT64_MAX;
    for (uint64_t seed = 1; seed <= 150; seed++) {
        struct prng prng;
        prng_init(&prng, seed);
        const bool one_size = prng_chance(&prng, 500000);
        for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
            sizes[i] = one_size ? BIG : 64 + (uint32_t)prng_below(&prng, BIG - 63);
        }
        struct load load = {.senders = 1 + (uint32_t)prng_below(&prng, 3),
                            .frames = COUNT_OF(sizes),
                            .hold_ps = 100000000 + prng_below(&prng, 50000000)};
        load.reverse_bytes = prng_chance(&prng, 500000) ? 64 + (uint32_t)prng_below(&prng, BIG) : 0;
        const uint64_t xoff_bytes = 1000 + prng_below(&prng, 30000);
        struct sim_ethernet_switch_kind kind =
            kind_of(SIM_PFC, xoff_bytes, prng_below(&prng, xoff_bytes - 84));
        kind.line.wire.latency_ps = prng_below(&prng, 5000000);
        kind.line.fec_ps = prng_below(&prng, 300000);
        kind.line.extra_bytes = (uint32_t)prng_below(&prng, 100);
        kind.delay_ps = prng_below(&prng, 1000000);
        const struct sim_headroom headroom =
            sim_headroom_of(&kind.line, kind.delay_ps, BIG, load.reverse_bytes);
        const uint64_t room_bytes = xoff_bytes + sim_headroom_bytes(&headroom);
        uint32_t lost = 0;
        kind.input.room_bytes = room_bytes;
        const uint64_t worst_bytes = loaded(&kind, &load, sizes, &lost);
        assert_int_equal(lost, 0);
        const uint64_t left_bytes = room_bytes - worst_bytes;
        nearest_bytes = left_bytes < nearest_bytes ? left_bytes : nearest_bytes;
    }
    assert_true(nearest_bytes < 2ull * BIG);
    print_message("the least room that was left: %llu bytes\n", (unsigned long long)nearest_bytes);
}

/* The same world gives the same frames at the same times; another moment of the pause does not. */
static void test_repeats(void **state)
{
    (void)state;
    static uint32_t sizes[400];
    const struct sim_ethernet_switch_kind kind = kind_of(SIM_PFC, 10000, 5000);
    for (uint32_t i = 0; i < COUNT_OF(sizes); i++) {
        sizes[i] = 64 + i * 10;
    }
    struct load loads[3];
    for (uint32_t i = 0; i < COUNT_OF(loads); i++) {
        uint32_t lost;
        loads[i] = (struct load){.senders = 3, .frames = 400, .hold_ps = 150000000 + i / 2 * 1000};
        (void)loaded(&kind, &loads[i], sizes, &lost);
    }
    assert_int_equal(loads[0].digest, loads[1].digest);
    assert_int_not_equal(loads[0].digest, loads[2].digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts_through),   cmocka_unit_test(test_whole_otherwise),
        cmocka_unit_test(test_slow_line),      cmocka_unit_test(test_outputs),
        cmocka_unit_test(test_thresholds),     cmocka_unit_test(test_at_xon),
        cmocka_unit_test(test_refresh),        cmocka_unit_test(test_classes),
        cmocka_unit_test(test_no_room),        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_marks),          cmocka_unit_test(test_against_model),
        cmocka_unit_test(test_headroom_terms), cmocka_unit_test(test_headroom_suffices),
        cmocka_unit_test(test_repeats),        cmocka_unit_test(test_lost_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
