/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A port of Ethernet puts frames on its line at the times of the standard. It stops when it
 *         is asked to, and no longer. It loses no frame by that, and makes the errors of its line.
 * Method  Times are worked out by hand at 10 Gb/s, where a byte takes 800 ps and a quantum 51.2 ns.
 *         Random frames and pauses run beside a model without events: it looks at all frames and
 *         pauses for the next time at which something changes. Behaviours FER-83, FER-84, FER-85,
 *         FER-86, FER-87.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/prng.h"
#include "sim/parts/ethernet.h"

#define BYTE_PS    800u
#define QUANTUM_PS 51200u
#define PASS_PS    10000u /* A cable of 2 m. */
#define FRAMES_MAX 600u
#define BIG        4162u

/* -- A line, and its two ends -------------------------------------------------------------------*/

/* The fate of each frame, by its destination, which is its number here. */
struct fate {
    uint64_t begin_ps, come_ps;
    uint32_t come, lost, spoilt;
};

struct line {
    struct sim sim;
    struct sim_port near, far;
    struct sim_frame frames[FRAMES_MAX];
    struct fate fates[FRAMES_MAX];
    uint32_t order[FRAMES_MAX]; /* In which frames came. */
    uint32_t come;
    uint32_t freed;             /* Calls of on_free. */
    bool carries;               /* Its user keeps the line's time. */
    uint32_t pauses;            /* Calls of on_pause. */
    uint32_t to_lose, to_spoil; /* on_begin sees to it that the line does; 0: none. */
};

static struct line *world; /* Ports have no user's pointer, and there is one line at a time. */

static void on_frame(struct sim_port *port, struct sim_frame *frame)
{
    (void)port;
    assert_int_equal(frame->span.tail_ps, world->sim.now_ps);
    world->fates[frame->destination].come++;
    world->fates[frame->destination].come_ps = world->sim.now_ps;
    world->order[world->come++] = frame->destination;
}

static void on_loss(struct sim_port *port, struct sim_frame *frame, enum sim_loss loss)
{
    (void)port;
    assert_true(loss == SIM_LOST_ON_LINE || loss == SIM_SPOILT_ON_LINE);
    world->fates[frame->destination].lost += loss == SIM_LOST_ON_LINE;
    world->fates[frame->destination].spoilt += loss == SIM_SPOILT_ON_LINE;
}

static void on_begin(struct sim_port *port, struct sim_frame *frame)
{
    (void)port;
    assert_true(world->carries || frame->span.head_ps == world->sim.now_ps);
    world->fates[frame->destination].begin_ps = world->sim.now_ps;
    frame->lost = frame->destination != 0 && frame->destination == world->to_lose;
    frame->spoilt = frame->destination != 0 && frame->destination == world->to_spoil;
}

static void on_free(struct sim_port *port)
{
    (void)port;
    world->freed++;
}

static void on_pause(struct sim_port *port, const struct pause *pause)
{
    (void)port;
    world->pauses += pause->quanta[0];
}

static const struct sim_port_calls calls = {.on_frame = on_frame,
                                            .on_loss = on_loss,
                                            .on_begin = on_begin,
                                            .on_pause = on_pause,
                                            .on_free = on_free};

static struct sim_ethernet_kind ten_gigabit(void)
{
    return (struct sim_ethernet_kind){
        .wire = {.byte_fs = BYTE_PS * UINT64_C(1000), .latency_ps = PASS_PS}};
}

static void setup(struct line *line, const struct sim_ethernet_kind *kind)
{
    world = line;
    *line = (struct line){.come = 0};
    sim_init(&line->sim, 1);
    sim_port_open(&line->near, &line->sim, kind, &calls);
    sim_port_open(&line->far, &line->sim, kind, &calls);
    sim_port_join(&line->near, &line->far);
}

static struct line *line_open(const struct sim_ethernet_kind *kind)
{
    struct line *line = calloc(1, sizeof(*line));
    assert_non_null(line);
    setup(line, kind);
    return line;
}

static void line_close(struct line *line)
{
    sim_port_close(&line->near);
    sim_port_close(&line->far);
    free(line);
}

static void send(struct sim_port *port, uint32_t number, uint32_t bytes, uint8_t class)
{
    sim_frame_open(&world->frames[number], bytes, number, class, SIM_NOT_ECT);
    sim_port_send(port, &world->frames[number]);
}

static void run(struct line *line)
{
    while (sim_step(&line->sim)) {
    }
}

/* When a pause that `far` asks for at a time, its line being free, is heard. */
static uint64_t heard_ps(uint64_t asked_ps)
{
    return asked_ps + (8 + 64) * BYTE_PS + PASS_PS;
}

/* Asks so that the pause is heard then. */
static void pause_heard_at(struct line *line, uint64_t at_ps, const struct pause *pause)
{
    sim_run_until(&line->sim, at_ps - (8 + 64) * BYTE_PS - PASS_PS);
    sim_port_pause(&line->far, pause);
}

/* -- Times --------------------------------------------------------------------------------------*/

static void test_times(void **state)
{
    (void)state;
    struct sim_ethernet_kind kind = ten_gigabit();
    kind.fec_ps = 204800;
    kind.extra_bytes = 71;
    struct line *line = line_open(&kind);
    send(&line->near, 0, BIG, 0);
    send(&line->near, 1, 20, 0); /* Is padded to 64. */
    send(&line->near, 2, 65, 0);
    run(line);
    const uint64_t second_ps = (8 + BIG + 12 + 71) * BYTE_PS;
    const uint64_t third_ps = second_ps + (84 + 71) * BYTE_PS;
    assert_int_equal(line->fates[0].begin_ps, 0);
    assert_int_equal(line->fates[0].come_ps, (8 + BIG) * BYTE_PS + PASS_PS + 204800);
    assert_int_equal(line->fates[1].begin_ps, second_ps);
    assert_int_equal(line->fates[1].come_ps, second_ps + 72 * BYTE_PS + PASS_PS + 204800);
    assert_int_equal(line->fates[2].begin_ps, third_ps);
    assert_int_equal(line->freed, 3);
    assert_int_equal(line->near.free_ps, third_ps + (85 + 71) * BYTE_PS);
    assert_true(sim_port_idle(&line->near, 0));
    line_close(line);
}

/* The highest class first; within a class, first come, first served. */
static void test_classes_in_order(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    static const uint8_t classes[] = {0, 3, 3, 7, 0, 5};
    static const uint32_t order[] = {0, 3, 5, 1, 2, 4}; /* The first one had begun. */
    for (uint32_t i = 0; i < COUNT_OF(classes); i++) {
        send(&line->near, i, 1000, classes[i]);
    }
    assert_int_equal(line->near.waiting_bytes[3], 2000);
    assert_int_equal(line->near.waiting_bytes[0], 1000);
    assert_false(sim_port_idle(&line->near, 6));
    run(line);
    assert_int_equal(line->come, COUNT_OF(order));
    assert_memory_equal(line->order, order, sizeof(order));
    line_close(line);
}

/* -- Pauses -------------------------------------------------------------------------------------*/

/* FER-83: it begins at the end of the frame in progress, and lasts quanta * 512 bit times. */
static void test_pause_lasts(void **state)
{
    (void)state;
    static const uint16_t quanta[] = {1, 2, 100, PAUSE_QUANTA_MAX};
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    for (uint32_t i = 0; i < COUNT_OF(quanta); i++) {
        for (uint32_t phase = 1; phase < 10; phase++) {
            const struct pause pause = pause_classes(1, quanta[i]);
            const uint64_t start_ps = line->sim.now_ps + 1000000;
            const uint64_t tail_ps = start_ps + (8 + BIG) * BYTE_PS;
            sim_run_until(&line->sim, start_ps);
            send(&line->near, 0, BIG, 0);
            send(&line->near, 1, BIG, 0);
            pause_heard_at(line, start_ps + phase * (8 + BIG) * BYTE_PS / 10, &pause);
            run(line);
            const uint64_t resumed_ps = tail_ps + (uint64_t)quanta[i] * QUANTUM_PS;
            assert_int_equal(line->fates[0].come_ps, tail_ps + PASS_PS); /* It is not cut off. */
            assert_int_equal(line->fates[1].begin_ps, resumed_ps);
            line->come = 0;
        }
    }
    line_close(line);
}

/* FER-83: a port with nothing in progress is at a boundary. A new pause takes the place of the one
 * before, longer or shorter. */
static void test_pause_of_idle(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    const struct pause longer = pause_link(50), shorter = pause_link(7);
    pause_heard_at(line, 1000000, &longer);
    sim_run_until(&line->sim, 1500000);
    assert_true(sim_port_paused(&line->near, 0));
    assert_false(sim_port_paused(&line->far, 0));
    assert_false(sim_port_idle(&line->near, 0));
    send(&line->near, 0, 100, 0);
    run(line);
    assert_int_equal(line->fates[0].begin_ps, 1000000 + 50 * QUANTUM_PS);
    pause_heard_at(line, 10000000, &longer);
    pause_heard_at(line, 10500000, &shorter);
    send(&line->near, 1, 100, 0);
    run(line);
    assert_int_equal(line->fates[1].begin_ps, 10500000 + 7 * QUANTUM_PS);
    assert_int_equal(line->near.counters.pauses_heard, 3);
    assert_int_equal(line->far.counters.pauses_sent, 3);
    line_close(line);
}

/* FER-84: quanta 0 ends a pause of either kind at once. */
static void test_quanta_0(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    for (uint32_t whole = 0; whole < 2; whole++) {
        struct line *line = line_open(&kind);
        const struct pause off =
            whole ? pause_link(PAUSE_QUANTA_MAX) : pause_classes(0x08, PAUSE_QUANTA_MAX);
        const struct pause on = whole ? pause_link(0) : pause_classes(0x08, 0);
        pause_heard_at(line, 1000000, &off);
        sim_run_until(&line->sim, 1000000);
        send(&line->near, 0, 100, 3);
        pause_heard_at(line, 7654321, &on);
        run(line);
        assert_int_equal(line->fates[0].begin_ps, 7654321);
        line_close(line);
    }
}

/* FER-85: PFC of another class has no effect; nor has what the port does not listen to. */
static void test_other_class(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    const struct pause others = pause_classes(0xff & ~0x08, PAUSE_QUANTA_MAX);
    pause_heard_at(line, 1000000, &others);
    sim_run_until(&line->sim, 2000000);
    send(&line->near, 0, 100, 2);
    send(&line->near, 1, 100, 3);
    sim_run_until(&line->sim, 9000000);
    assert_int_equal(line->fates[0].come, 0);
    assert_int_equal(line->fates[1].begin_ps, 2000000);
    line->near.hears_classes = 0x04;
    line->near.hears_link = false;
    const struct pause mine = pause_classes(0x08, 5), all = pause_link(5);
    pause_heard_at(line, 10000000, &mine);
    pause_heard_at(line, 10500000, &all);
    sim_run_until(&line->sim, 10500000);
    send(&line->near, 2, 100, 3);
    sim_run_until(&line->sim, 11000000);
    assert_int_equal(line->fates[2].begin_ps, 10500000);
    assert_int_equal(line->near.counters.pauses_ignored, 2);
    assert_int_equal(line->near.counters.pauses_heard, 1);
    line_close(line);
}

/* FER-86: LFC stops all classes, and PFC's end does not undo it. */
static void test_link_stops_all(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    const struct pause link = pause_link(1000), on = pause_classes(PAUSE_ALL_CLASSES, 0);
    pause_heard_at(line, 1000000, &link);
    sim_run_until(&line->sim, 1000000);
    for (uint32_t class = 0; class < PAUSE_CLASSES; class ++) {
        send(&line->near, class, 100, (uint8_t) class);
    }
    pause_heard_at(line, 2000000, &on);
    sim_run_until(&line->sim, 1000000 + 1000 * QUANTUM_PS - 1);
    assert_int_equal(line->near.counters.frames_sent, 0);
    run(line);
    assert_int_equal(line->fates[7].begin_ps, 1000000 + 1000 * QUANTUM_PS);
    assert_int_equal(line->come, 8);
    line_close(line);
}

/* -- Flow control on the line -------------------------------------------------------------------*/

/* A pause waits for the frame in progress and for nothing else, not even for a pause of its own
 * port, and costs 84 bytes. */
static void test_pause_goes_first(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    const struct pause pause = pause_classes(0x01, 10), other = pause_link(0);
    send(&line->far, 0, BIG, 0);
    send(&line->far, 1, 1000, 0);
    sim_run_until(&line->sim, 1000);
    sim_port_pause(&line->far, &pause);
    const uint64_t free_ps = (BIG + 20) * BYTE_PS;
    sim_run_until(&line->sim, free_ps + 72 * BYTE_PS + PASS_PS - 1);
    assert_int_equal(line->near.counters.pauses_heard, 0);
    sim_run_until(&line->sim, free_ps + 72 * BYTE_PS + PASS_PS);
    assert_int_equal(line->near.counters.pauses_heard, 1);
    assert_true(sim_port_paused(&line->near, 0));
    sim_port_pause(&line->near, &other);
    assert_int_equal(line->near.counters.pauses_sent, 1);
    run(line);
    assert_int_equal(line->fates[1].begin_ps, free_ps + SIM_ETHERNET_PAUSE_BYTES * BYTE_PS);
    line_close(line);
}

/* Pauses that wait together go together; the later word on a class counts. */
static void test_pauses_merge(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    const struct pause asked[] = {pause_classes(0x03, 100), pause_classes(0x04, 50),
                                  pause_classes(0x02, 0), pause_link(9), pause_link(8)};
    send(&line->far, 0, BIG, 0);
    for (uint32_t i = 0; i < COUNT_OF(asked); i++) {
        sim_port_pause(&line->far, &asked[i]);
    }
    run(line);
    const uint64_t link_ps = heard_ps((BIG + 20) * BYTE_PS);
    const uint64_t classes_ps = link_ps + 84 * BYTE_PS;
    assert_int_equal(line->far.counters.pauses_sent, 2);
    assert_int_equal(line->near.link_until_ps, link_ps + 8 * QUANTUM_PS);
    assert_int_equal(line->near.until_ps[0], classes_ps + 100 * QUANTUM_PS);
    assert_int_equal(line->near.until_ps[1], 0);
    assert_int_equal(line->near.until_ps[2], classes_ps + 50 * QUANTUM_PS);
    line_close(line);
}

/* As many pauses are on a long line as it is long. */
static void test_pauses_in_flight(void **state)
{
    (void)state;
    struct sim_ethernet_kind kind = ten_gigabit();
    kind.wire.latency_ps = 50000000;
    struct line *line = line_open(&kind);
    uint32_t most = 0;
    for (uint16_t i = 0; i < 3000; i++) {
        const struct pause pause = pause_link(i);
        sim_run_until(&line->sim, i * 84ull * BYTE_PS);
        sim_port_pause(&line->far, &pause);
        most = line->far.flight_count > most ? line->far.flight_count : most;
    }
    run(line);
    assert_in_range(most, 50000000 / (84 * BYTE_PS), line->far.flight_room);
    assert_int_equal(line->near.counters.pauses_heard, 3000);
    assert_int_equal(line->near.link_until_ps,
                     2999 * 84ull * BYTE_PS + 72 * BYTE_PS + 50000000 + 2999ull * QUANTUM_PS);
    line_close(line);
}

/* -- Random frames and pauses beside a model ----------------------------------------------------*/

#define PAUSES 200u

struct sent {
    uint64_t at_ps;
    uint32_t bytes;
    uint8_t class;
    bool begun;
    uint64_t begin_ps;
};

struct model {
    struct sent sent[FRAMES_MAX];
    uint64_t heard_ps[PAUSES];
    uint64_t from_ps[PAUSES]; /* The boundary at which it begins. */
    struct pause pauses[PAUSES];
};

static uint64_t model_end(const struct model *model, uint32_t pause, uint32_t class)
{
    const uint16_t quanta =
        model->pauses[pause].quanta[model->pauses[pause].kind == PAUSE_LINK ? 0 : class];
    return quanta == 0 ? 0 : model->from_ps[pause] + (uint64_t)quanta * QUANTUM_PS;
}

/* The class may begin at a time: the last pause of each kind that was heard until then is over. */
static bool model_may(const struct model *model, uint32_t class, uint64_t now_ps)
{
    uint64_t link_ps = 0, class_ps = 0;
    for (uint32_t i = 0; i < PAUSES && model->heard_ps[i] <= now_ps; i++) {
        if (model->pauses[i].kind == PAUSE_LINK) {
            link_ps = model_end(model, i, class);
        } else if (model->pauses[i].classes >> class & 1) {
            class_ps = model_end(model, i, class);
        }
    }
    return link_ps <= now_ps && class_ps <= now_ps;
}

/* The frame that begins at this time; NULL: none. */
static struct sent *model_choice(struct model *model, uint64_t now_ps)
{
    for (uint32_t class = PAUSE_CLASSES; class -- > 0;) {
        for (uint32_t i = 0; i < FRAMES_MAX && model_may(model, class, now_ps); i++) {
            struct sent *sent = &model->sent[i];
            if (sent->class == class && !sent->begun && sent->at_ps <= now_ps) {
                return sent;
            }
        }
    }
    return NULL;
}

/* The next time after `now_ps` at which a choice could come out otherwise. */
static uint64_t model_next(const struct model *model, uint64_t now_ps)
{
    uint64_t next_ps = UINT64_MAX;
    for (uint32_t i = 0; i < FRAMES_MAX; i++) {
        const uint64_t at_ps = model->sent[i].at_ps;
        next_ps = at_ps > now_ps && at_ps < next_ps ? at_ps : next_ps;
    }
    for (uint32_t i = 0; i < PAUSES; i++) {
        uint64_t times[1 + PAUSE_CLASSES] = {model->heard_ps[i]};
        for (uint32_t k = 0; k < PAUSE_CLASSES; k++) {
            times[1 + k] = model_end(model, i, k);
        }
        for (uint32_t k = 0; k < COUNT_OF(times); k++) {
            next_ps = times[k] > now_ps && times[k] < next_ps ? times[k] : next_ps;
        }
    }
    return next_ps;
}

static void model_run(struct model *model)
{
    uint64_t now_ps = 0;
    for (uint32_t count = 0; count < FRAMES_MAX;) {
        struct sent *sent = model_choice(model, now_ps);
        if (sent == NULL) {
            now_ps = model_next(model, now_ps);
            assert_true(now_ps != UINT64_MAX);
            continue;
        }
        const uint64_t tail_ps = now_ps + (8 + sent->bytes) * (uint64_t)BYTE_PS;
        for (uint32_t i = 0; i < PAUSES; i++) {
            if (model->heard_ps[i] > now_ps && model->heard_ps[i] < tail_ps) {
                model->from_ps[i] = tail_ps;
            }
        }
        sent->begun = true;
        sent->begin_ps = now_ps;
        now_ps = tail_ps + 12 * BYTE_PS;
        count++;
    }
}

static struct pause random_pause(struct prng *prng)
{
    struct pause pause = pause_link((uint16_t)prng_below(prng, 60));
    if (!prng_chance(prng, 300000)) {
        pause = pause_classes((uint8_t)prng_next(prng), 0);
        for (uint32_t k = 0; k < PAUSE_CLASSES; k++) {
            if (pause.classes >> k & 1) {
                pause.quanta[k] = prng_chance(prng, 250000) ? 0 : (uint16_t)prng_below(prng, 200);
            }
        }
    }
    return pause;
}

static void draw(struct model *model, struct prng *prng)
{
    uint64_t now_ps = 1000000;
    for (uint32_t i = 0; i < FRAMES_MAX; i++) {
        now_ps += prng_below(prng, 2 * 500 * BYTE_PS);
        model->sent[i] = (struct sent){.at_ps = now_ps,
                                       .bytes = 64 + (uint32_t)prng_below(prng, 600),
                                       .class = (uint8_t)prng_below(prng, PAUSE_CLASSES)};
    }
    now_ps = 0;
    for (uint32_t i = 0; i < PAUSES; i++) { /* Asked for: one at a time. */
        now_ps += 84 * BYTE_PS + prng_below(prng, 3000000);
        model->heard_ps[i] = model->from_ps[i] = heard_ps(now_ps);
        model->pauses[i] = random_pause(prng);
    }
}

/* Tells the port, in the order of time, what the model has been told. */
static void replay(struct line *line, const struct model *model)
{
    uint32_t pauses = 0;
    for (uint32_t i = 0; i < FRAMES_MAX; i++) {
        while (pauses < PAUSES && model->heard_ps[pauses] - heard_ps(0) <= model->sent[i].at_ps) {
            pause_heard_at(line, model->heard_ps[pauses], &model->pauses[pauses]);
            pauses++;
        }
        sim_run_until(&line->sim, model->sent[i].at_ps);
        send(&line->near, i, model->sent[i].bytes, model->sent[i].class);
    }
    for (; pauses < PAUSES; pauses++) {
        pause_heard_at(line, model->heard_ps[pauses], &model->pauses[pauses]);
    }
    run(line);
}

/* FER-87: however it is paused, every frame comes once, and its class's in order. */
static void expect_all_come(const struct line *line)
{
    uint32_t next[PAUSE_CLASSES] = {0};
    assert_int_equal(line->come, FRAMES_MAX);
    for (uint32_t i = 0; i < FRAMES_MAX; i++) {
        const struct sim_frame *frame = &line->frames[line->order[i]];
        assert_int_equal(line->fates[i].come, 1);
        assert_true(line->order[i] >= next[frame->class]);
        next[frame->class] = line->order[i] + 1;
    }
}

static void test_against_model(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    uint32_t held = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct line *line = line_open(&kind);
        struct prng prng;
        prng_init(&prng, seed);
        draw(model, &prng);
        model_run(model);
        replay(line, model);
        for (uint32_t i = 0; i < FRAMES_MAX; i++) {
            assert_int_equal(line->fates[i].begin_ps, model->sent[i].begin_ps);
            held += model->sent[i].begin_ps > model->sent[i].at_ps + 8000 * BYTE_PS;
        }
        expect_all_come(line);
        assert_int_equal(line->near.counters.pauses_heard + line->near.counters.pauses_ignored,
                         PAUSES);
        line_close(line);
    }
    assert_true(held > 100); /* Pauses did hold frames up. */
    free(model);
}

/* -- Errors -------------------------------------------------------------------------------------*/

/* Each direction has its own, and pauses have them too. A frame of 1,000 bytes at 1e-5 a bit is
 * spoilt with 1 - exp(-0.08) = 7.7 %. */
static void test_errors(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    const struct pause pause = pause_link(0);
    sim_errors_init(&line->near.errors, 5, 1e-5, 100000);
    for (uint32_t round = 0; round < 10000; round++) {
        send(&line->near, 0, 1000, 0);
        send(&line->far, 1, 1000, 0);
        run(line);
        line->come = 0;
    }
    const struct fate *fate = line->fates;
    assert_int_equal(fate[0].come + fate[0].lost + fate[0].spoilt, 10000);
    assert_in_range(fate[0].lost, 880, 1120);  /* 1,000, four deviations of 30. */
    assert_in_range(fate[0].spoilt, 590, 790); /* 692 of the rest, four of 25. */
    assert_int_equal(fate[1].come, 10000);
    assert_int_equal(line->far.counters.frames_lost, fate[0].lost);
    assert_int_equal(line->far.counters.frames_spoilt, fate[0].spoilt);
    assert_int_equal(line->far.counters.frames_come, fate[0].come);
    for (uint32_t round = 0; round < 10000; round++) {
        sim_port_pause(&line->near, &pause);
        run(line);
    }
    assert_in_range(line->near.counters.pauses_lost, 920, 1180); /* 1,046. */
    assert_int_equal(line->far.counters.pauses_heard + line->near.counters.pauses_lost, 10000);
    line_close(line);
}

/* A user who wants a certain frame lost says so when it begins. */
static void test_chosen_loss(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    line->to_lose = 2;
    line->to_spoil = 4;
    for (uint32_t i = 0; i < 6; i++) {
        send(&line->near, i, 500, 0);
    }
    run(line);
    assert_int_equal(line->come, 4);
    assert_int_equal(line->fates[2].lost, 1);
    assert_int_equal(line->fates[4].spoilt, 1);
    assert_int_equal(line->fates[5].begin_ps, 5 * 520 * BYTE_PS); /* They took their time. */
    line_close(line);
}

/* A user that keeps the line's time carries its frames, whatever is paused, and hears of pauses. */
static void test_carried(void **state)
{
    (void)state;
    const struct sim_ethernet_kind kind = ten_gigabit();
    struct line *line = line_open(&kind);
    line->carries = true;
    line->to_lose = 3;
    const struct pause pause = pause_link(7);
    sim_port_pause(&line->far, &pause);
    for (uint32_t i = 1; i <= 3; i++) {
        sim_frame_open(&line->frames[i], 100, i, 0, SIM_NOT_ECT);
        sim_port_carry(&line->near, &line->frames[i], i * 1000000);
    }
    run(line);
    assert_int_equal(line->fates[1].come_ps, 1000000 + PASS_PS);
    assert_int_equal(line->fates[2].come_ps, 2000000 + PASS_PS);
    assert_int_equal(line->frames[1].span.head_ps, line->frames[1].span.tail_ps);
    assert_int_equal(line->fates[3].lost, 1);
    assert_int_equal(line->pauses, 7);
    assert_int_equal(line->freed, 1); /* The pause takes time on the far end, too. */
    line_close(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),          cmocka_unit_test(test_classes_in_order),
        cmocka_unit_test(test_pause_lasts),    cmocka_unit_test(test_pause_of_idle),
        cmocka_unit_test(test_quanta_0),       cmocka_unit_test(test_other_class),
        cmocka_unit_test(test_link_stops_all), cmocka_unit_test(test_pause_goes_first),
        cmocka_unit_test(test_pauses_merge),   cmocka_unit_test(test_pauses_in_flight),
        cmocka_unit_test(test_against_model),  cmocka_unit_test(test_errors),
        cmocka_unit_test(test_chosen_loss),    cmocka_unit_test(test_carried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
