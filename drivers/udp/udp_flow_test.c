/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No more is in flight to a peer than its receive buffer holds, and probes follow what is
 *         sent; a peer that never answers is not limited, a peer that falls silent is limited for a
 *         while.
 * Method  Random sending, time and answers (old, new, wrong) are compared with a model, whose
 *         numbers begin at 0, while those of the link are close to their end. The test takes the
 *         probes (--wrap).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/prng.h"
#include "drivers/system/local_socket.h"
#include "drivers/udp/udp_port.h"

#define STEPS      100000
#define START      (UINT64_MAX - (1 << 22)) /* The link's numbers begin here, the model's at 0. */
#define ANSWER_NS  20000000
#define AGAIN_NS   2000000
#define SILENT_MAX 250

static const struct gid here = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};
static const struct gid there = {{[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}};
static const struct gid ipv6 = {{0xfd, [15] = 2}};

static struct {
    struct address_set addresses;
    struct udp_port port;
    struct udp_link *link;
    struct udp_link passing[UDP_PASSING_MAX];
    struct roce_probe probe; /* The newest, */
    struct udp_link *by;     /* and its link. */
    uint32_t probes;
    struct instant now;
} world;

void __wrap_udp_port_transmit_headers(struct udp_port *port, struct udp_link *link,
                                      const uint8_t *headers, uint32_t headers_bytes);

void __wrap_udp_port_transmit_headers(struct udp_port *port, struct udp_link *link,
                                      const uint8_t *headers, uint32_t headers_bytes)
{
    assert_ptr_equal(port, &world.port);
    assert_true(roce_probe_decode(headers, headers_bytes, &world.probe));
    world.by = link;
    world.probes++;
}

static void make(uint32_t receive_bytes, int slot)
{
    memset(&world, 0, sizeof(world));
    world.now.ns = 1;
    world.addresses.count = 1;
    world.addresses.entries[0] = (struct address){.gid = here, .fd = 1};
    world.port.addresses = &world.addresses;
    world.port.passing = world.passing;
    world.port.receive_bytes = receive_bytes;
    link_table_init(&world.port.links);
    struct link *link = udp_port_link(&world.port, &here, &there, slot);
    assert_non_null(link);
    world.link = CONTAINER_OF(link, struct udp_link, link);
    world.link->sent = world.link->probed = world.link->confirmed = START;
}

static void drop(void)
{
    udp_port_drop(&world.port, &world.link->link);
    link_table_close(&world.port.links);
}

static bool has_room(void)
{
    return udp_link_has_room(&world.port, &world.link->link, world.now);
}

static void answer(uint64_t sent, uint16_t slot)
{
    uint8_t bytes[ROCE_PROBE_BYTES];
    const struct roce_probe probe = {.opcode = ROCE_OPCODE_ANSWER, .sent = sent, .link_slot = slot};
    roce_probe_encode(&probe, bytes);
    assert_true(udp_flow_on_datagram(&world.port, &there, &here, bytes, sizeof(bytes)));
}

/* -- A model ------------------------------------------------------------------------------------*/

struct model {
    struct prng prng;
    uint64_t sent, probed, confirmed; /* From 0 on. */
    uint64_t window, every;
    bool limited, answered; /* We still believe that the peer answers; it has answered once. */
    uint32_t silent;
    uint64_t blocked_ns, asked_ns; /* 0: there is room. */
    uint32_t probes, lost;
};

static void model_send(struct model *model, uint32_t bytes)
{
    model->sent += bytes + UDP_PACKET_COST;
    if (model->limited && model->sent - model->probed >= model->every) {
        model->probed = model->sent;
        model->probes++;
    }
}

static bool model_has_room(struct model *model)
{
    if (!model->limited || model->sent - model->confirmed < model->window) {
        return true;
    }
    if (model->blocked_ns == 0) {
        model->blocked_ns = model->asked_ns = world.now.ns;
    }
    if (world.now.ns - model->blocked_ns < ANSWER_NS) {
        if (world.now.ns - model->asked_ns >= AGAIN_NS) {
            model->asked_ns = world.now.ns;
            model->probed = model->sent;
            model->probes++;
        }
        return false;
    }
    model->limited = model->answered;
    model->lost++;
    model->silent += model->silent < SILENT_MAX;
    model->confirmed = model->sent;
    model->blocked_ns = 0;
    return true;
}

static void model_answer(struct model *model, uint64_t sent)
{
    if (sent >= model->confirmed && sent <= model->sent) {
        model->limited = model->answered = true;
        model->silent = 0;
        model->confirmed = sent;
        model->blocked_ns = 0;
    }
}

static void compare(const struct model *model)
{
    assert_int_equal(world.link->sent - START, model->sent);
    assert_int_equal(world.link->confirmed - START, model->confirmed);
    assert_int_equal(world.probes, model->probes);
    assert_int_equal(world.port.counters.probes_sent, model->probes);
    assert_int_equal(world.port.counters.probes_lost, model->lost);
    assert_int_equal(udp_link_answers(&world.link->link),
                     model->answered && model->limited && model->silent < SILENT_MAX);
    assert_true(world.probes == 0 || world.probe.sent - START == model->probed);
}

/* Answers a probe that was sent lately, long ago, or never. */
static void answer_somehow(struct model *model)
{
    const uint64_t back = prng_below(&model->prng, 1 << prng_below(&model->prng, 23));
    const uint64_t sent = prng_below(&model->prng, 8) == 0 ? model->sent + 1 + back
                          : back <= model->sent            ? model->sent - back
                                                           : 0;
    model_answer(model, sent);
    answer(START + sent, 0xffff);
}

static void run(uint64_t seed, uint32_t receive_bytes, int answers_in)
{
    struct model model = {.limited = true};
    prng_init(&model.prng, seed);
    make(receive_bytes, LOCAL_NO_SLOT);
    const uint64_t safe = udp_port_safe_bytes(&world.port);
    model.window = safe < 2 << 20 ? safe : 2 << 20;
    model.every = model.window / 4;
    uint32_t refused = 0;
    for (int i = 0; i < STEPS; i++) {
        const bool room = has_room();
        assert_int_equal(room, model_has_room(&model));
        refused += !room;
        if (room) {
            const uint32_t bytes = (uint32_t)prng_below(&model.prng, 4200);
            model_send(&model, bytes);
            udp_flow_sent(&world.port, world.link, bytes);
        }
        world.now.ns += room ? 1000 : prng_below(&model.prng, 3000000);
        if (answers_in > 0 && prng_below(&model.prng, (uint64_t)answers_in) == 0) {
            answer_somehow(&model);
        }
        compare(&model);
    }
    assert_true(refused > 0);
    assert_int_equal(model.limited, answers_in > 0);
    drop();
}

static void test_as_the_model_says(void **state)
{
    (void)state;
    run(1, 1 << 20, 20);
    run(2, 16 << 20, 100); /* The buffer is larger than is of use. */
    run(3, 1 << 20, 2000);
    run(4, 1 << 20, 0);
}

/* A peer counts as silent after 250 windows in a row without an answer, and not before; one answer
 * is enough to count as there again. */
static void test_silence(void **state)
{
    (void)state;
    make(1 << 20, LOCAL_NO_SLOT);
    answer(START, 0xffff);
    for (int windows = 0; windows < 2 * SILENT_MAX; windows++) {
        assert_int_equal(udp_link_answers(&world.link->link), windows < SILENT_MAX);
        while (has_room()) {
            udp_flow_sent(&world.port, world.link, 4096);
        }
        world.now.ns += ANSWER_NS;
        assert_true(has_room());
    }
    answer(world.link->sent, 0xffff);
    assert_true(udp_link_answers(&world.link->link));
    drop();
}

static void test_no_room_while_something_waits(void **state)
{
    (void)state;
    make(1 << 20, LOCAL_NO_SLOT);
    world.port.blocked = true;
    assert_false(has_room());
    world.port.blocked = false;
    assert_true(has_room());
    drop();
}

/* -- Probes of strangers, slots -----------------------------------------------------------------*/

static bool ask(const struct gid *source, uint8_t opcode, size_t bytes)
{
    uint8_t probe[ROCE_PROBE_BYTES];
    roce_probe_encode(
        &(struct roce_probe){
            .opcode = ROCE_OPCODE_PROBE, .sent = 77, .link_slot = 3, .sender_slot = 5},
        probe);
    probe[0] = opcode;
    return udp_flow_on_datagram(&world.port, source, &here, probe, bytes);
}

static void test_answers(void **state)
{
    (void)state;
    make(1 << 20, LOCAL_NO_SLOT);
    assert_true(ask(&there, ROCE_OPCODE_PROBE, ROCE_PROBE_BYTES));
    assert_int_equal(world.probes, 1);
    assert_true(world.port.answering);
    assert_int_equal(world.probe.opcode, ROCE_OPCODE_ANSWER);
    assert_int_equal(world.probe.sent, 77);
    assert_int_equal(world.probe.link_slot, 3);
    assert_int_equal(world.probe.sender_slot, 0xffff); /* We have the address alone. */
    assert_int_equal(world.probe.destination_qpn, 5 * SHARE_QPN_SPAN + 2);
    assert_true(world.by >= world.passing && world.by < world.passing + UDP_PASSING_MAX);
    /* A part of a probe, or one of another family of addresses, is not answered; other packets are
     * no probes. */
    assert_true(ask(&there, ROCE_OPCODE_PROBE, ROCE_PROBE_BYTES - 1));
    assert_true(ask(&ipv6, ROCE_OPCODE_PROBE, ROCE_PROBE_BYTES));
    assert_false(ask(&there, ROCE_OPCODE(ROCE_SERVICE_RC, ROCE_SEND_ONLY), ROCE_PROBE_BYTES));
    assert_int_equal(world.probes, 1);
    drop();
}

static void test_slots(void **state)
{
    (void)state;
    make(1 << 20, 4);
    world.addresses.shared = true;
    world.addresses.slot = 9;
    udp_flow_probe(&world.port, world.link);
    assert_int_equal(world.probe.opcode, ROCE_OPCODE_PROBE);
    assert_int_equal(world.probe.link_slot, 4);
    assert_int_equal(world.probe.sender_slot, 9);
    assert_int_equal(world.probe.destination_qpn, 4 * SHARE_QPN_SPAN + 2);
    answer(START, 5); /* This answers another process there. */
    answer(START, 0xffff);
    assert_false(udp_link_answers(&world.link->link));
    answer(START, 4);
    assert_true(udp_link_answers(&world.link->link));
    drop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_the_model_says),
        cmocka_unit_test(test_silence),
        cmocka_unit_test(test_no_room_while_something_waits),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
