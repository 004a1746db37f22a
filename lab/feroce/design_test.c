/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A design's packet reaches the receiver, or is counted by the reason why it does not; what
 *         only a neighbour on the line could answer is answered.
 * Method  A model in C sends frames from a list: a right one, and one that is changed in one place.
 *         hdl/bridge_test.c has all reasons why a frame is no datagram. FER-139, FER-157 in the
 *         laboratory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "lab/feroce/design.h"
#include "lab/feroce/machine.h"
#include "wire/icrc.h"

#define US_PS     UINT64_C(1000000)
#define WIDTH     8
#define BYTES_MAX 200
#define LIST_MAX  3

/* -- The model ----------------------------------------------------------------------------------*/

struct hdl_model {
    const struct hdl_host *host;
    struct hdl_port *port;
    bool reset, valid;
    struct hdl_out out;
    uint32_t frame, at; /* The beat that is offered: of this frame, from this byte on. */
    uint32_t data[WIDTH / 4], keep;
};

static struct {
    uint8_t bytes[LIST_MAX][BYTES_MAX];
    uint32_t counts[LIST_MAX], count;
} list;

static struct hdl_model *open_model(const struct hdl_model_ops *ops, const struct hdl_host *host,
                                    uint64_t seed)
{
    (void)ops;
    struct hdl_model *model = calloc(1, sizeof(*model));
    assert_non_null(model);
    (void)seed;
    model->host = host;
    model->port = host->attach(host->owner, 0, WIDTH * 8, false, "");
    return model;
}

static void reset_model(struct hdl_model *model, bool asserted)
{
    model->reset = asserted;
}

/* Offers the next beat. */
static void offer(struct hdl_model *model)
{
    model->valid = model->frame < list.count;
    if (model->valid) {
        const uint32_t left = list.counts[model->frame] - model->at;
        const uint32_t now = left < WIDTH ? left : WIDTH;
        memset(model->data, 0, sizeof(model->data));
        memcpy(model->data, list.bytes[model->frame] + model->at, now);
        model->keep = (1u << now) - 1;
    }
}

static void step_model(struct hdl_model *model, uint64_t now_ps, uint32_t clocks)
{
    (void)clocks;
    const bool taken = model->valid && model->out.s_ready;
    const struct hdl_in in = {.s_data = model->data,
                              .s_keep = &model->keep,
                              .reset = model->reset,
                              .s_valid = model->valid,
                              .s_last =
                                  model->valid && model->at + WIDTH >= list.counts[model->frame],
                              .m_ready = true};
    model->host->edge(model->port, now_ps, &in, &model->out);
    if (taken) {
        model->at = in.s_last ? 0 : model->at + WIDTH;
        model->frame += in.s_last;
    }
    if (!model->reset) {
        offer(model);
    }
}

static bool finished_model(const struct hdl_model *model)
{
    (void)model;
    return false;
}

static void close_model(struct hdl_model *model)
{
    free(model);
}

static const struct hdl_model_ops player = {.abi = HDL_ABI,
                                            .in_bytes = sizeof(struct hdl_in),
                                            .out_bytes = sizeof(struct hdl_out),
                                            .name = "player",
                                            .open = open_model,
                                            .reset = reset_model,
                                            .step = step_model,
                                            .finished = finished_model,
                                            .close = close_model};

/* -- Frames -------------------------------------------------------------------------------------*/

static const struct feroce_frame addresses = {.source_ip = 0x0a000001,
                                              .destination_ip = 0x0a000002,
                                              .source_port = 0x8657,
                                              .destination_port = ROCE_UDP_PORT,
                                              .identification = 7};

static void seal(uint8_t *frame)
{
    store_be16(frame + 24, 0);
    store_be16(frame + 24, inet_checksum(inet_sum(0, frame + 14, INET_IPV4_BYTES)));
    const struct inet_flow flow = inet_flow_ipv4(load_be32(frame + 26), load_be16(frame + 34),
                                                 load_be32(frame + 30), load_be16(frame + 36));
    const uint32_t inner = load_be16(frame + 38) - INET_UDP_BYTES - ROCE_ICRC_BYTES;
    store_le32(frame + FEROCE_FRAME_HEADERS_BYTES + inner,
               icrc_compute(&flow, load_be16(frame + 18), frame + FEROCE_FRAME_HEADERS_BYTES, inner,
                            NULL, 0));
}

/* The next frame of the list: a SEND Only of 16 bytes. */
static uint8_t *add_frame(void)
{
    const struct roce_packet roce = {.opcode = ROCE_SEND_ONLY,
                                     .migration_request = true,
                                     .ack_request = true,
                                     .pkey = 0xffff,
                                     .destination_qpn = 77};
    uint8_t *frame = list.bytes[list.count], *bth = frame + FEROCE_FRAME_HEADERS_BYTES;
    const uint32_t bytes = ROCE_BTH_BYTES + 16 + ROCE_ICRC_BYTES;
    assert_true(list.count < LIST_MAX);
    memset(frame, 0, BYTES_MAX);
    feroce_frame_encode(&addresses, bytes, frame);
    roce_encode_headers(&roce, bth);
    list.counts[list.count++] = FEROCE_FRAME_HEADERS_BYTES + bytes;
    seal(frame);
    return frame;
}

struct outcome {
    uint64_t come, nowhere, icrcs, sources; /* At the receiver; the others did not leave. */
    uint64_t given, taken;                  /* Frames to the design, and those that it took. */
    uint8_t mac[6];                         /* Where packets to the design go. */
};

/* Plays the list; the host asks for a queue pair meanwhile. */
static struct outcome play(void)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, lab_find("feroce/loss"), 1);
    struct feroce_setup setup = feroce_setup_2026(run, FEROCE_10G);
    const struct feroce_load load = feroce_load_of(4096, 1);
    setup.designs[0] = &player;
    setup.design_period_fs[0] = 6400000;
    setup.design_ready_ppm = 1000000;
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    assert_non_null(machine);
    feroce_machine_run_until(machine, 100 * US_PS);
    const struct feroce_design *design = machine->nodes[0].design;
    assert_int_equal(design->design.model->frame, list.count);
    struct outcome outcome = {
        .come = machine->receiver.frames,
        .nowhere = design->nowhere,
        .icrcs = design->bridge.counts[BRIDGE_ICRC],
        .sources = design->bridge.counts[BRIDGE_SOURCE],
        .given = design->given,
        .taken = hdl_port_counters(design->design.ports[0])->received_frames,
    };
    memcpy(outcome.mac, design->bridge.mac, sizeof(outcome.mac));
    feroce_machine_close(machine);
    assert_string_equal(run->failure, "");
    free(run);
    return outcome;
}

/* -- Tests --------------------------------------------------------------------------------------*/

enum way {
    COMES,
    NOWHERE,
    WRONG_ICRC,
    WRONG_SOURCE,
};

static void test_ways(void **state)
{
    (void)state;
    static const struct {
        enum way way;
        uint32_t at;
        uint8_t value;
        bool sealed;
    } rows[] = {
        {COMES, 15, 0x60, true},     /* TOS: of another class. */
        {COMES, 46, 0xc0, false},    /* FECN and BECN. */
        {COMES, 19, 9, true},        /* Another identification. */
        {NOWHERE, 33, 9, true},      /* To an address, */
        {NOWHERE, 37, 9, true},      /* or a port that nobody has. */
        {NOWHERE, 42, 0x1f, true},   /* An opcode that nobody speaks. */
        {NOWHERE, 43, 0x4f, true},   /* TVer. */
        {WRONG_ICRC, 54, 1, false},  /* Payload. */
        {WRONG_SOURCE, 29, 9, true}, /* From somebody else. */
    };
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        list.count = 0;
        (void)add_frame();
        uint8_t *frame = add_frame();
        frame[rows[i].at] = rows[i].value;
        if (rows[i].sealed) {
            seal(frame);
        }
        const struct outcome outcome = play();
        assert_int_equal(outcome.come, rows[i].way == COMES ? 2 : 1);
        assert_int_equal(outcome.nowhere, rows[i].way == NOWHERE);
        assert_int_equal(outcome.icrcs, rows[i].way == WRONG_ICRC);
        assert_int_equal(outcome.sources, rows[i].way == WRONG_SOURCE);
        assert_int_equal(outcome.given, 1); /* The host's question. */
        assert_int_equal(outcome.taken, 1);
    }
}

/* The design asks for a MAC address, and packets go to the one that it has itself. */
static void test_arp(void **state)
{
    (void)state;
    static const uint8_t question[] = {
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2,  7, 7, 7, 7, 7, 8, 6, /* Ethernet, */
        0,    1,    8,    0,    6,    4,    0,  1,                   /* ARP: who has */
        2,    7,    7,    7,    7,    7,    10, 0, 0, 1,             /* (the design's) */
        0,    0,    0,    0,    0,    0,    10, 0, 0, 2};            /* the host's? */
    list.count = 1;
    list.counts[0] = sizeof(question);
    memcpy(list.bytes[0], question, sizeof(question));
    const struct outcome outcome = play();
    assert_int_equal(outcome.come, 0);
    assert_int_equal(outcome.given, 2); /* The answer, and the host's question. */
    assert_int_equal(outcome.taken, 2);
    assert_memory_equal(outcome.mac, question + 6, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ways),
        cmocka_unit_test(test_arp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
