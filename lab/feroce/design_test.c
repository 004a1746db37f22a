/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A design's frame reaches the receiver, or is counted by the reason why it does not.
 * Method  A model in C sends frames from a list. Right frames are made by wire/feroce.h and spoilt
 *         in one place each; then each octet of one is changed. FER-139 in the laboratory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/prng.h"
#include "lab/feroce/design.h"
#include "lab/feroce/machine.h"
#include "wire/icrc.h"

#define US_PS     UINT64_C(1000000)
#define WIDTH     8
#define BYTES_MAX 200
#define LIST_MAX  4000

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
    model->port = host->attach(host->owner, 0, WIDTH * 8);
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

static void step_model(struct hdl_model *model, uint64_t now_ps, uint64_t half_period_ps)
{
    (void)half_period_ps;
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
    return model->frame == list.count;
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

/* Plays the list. Returns the strays by reason, and what came in `come`. */
static void play(uint64_t strays[FEROCE_STRAYS], uint64_t *come)
{
    struct lab_run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    lab_prepare(run, lab_find("feroce/loss"), 1);
    struct feroce_setup setup = feroce_setup_2026(run, FEROCE_10G);
    const struct feroce_load load = feroce_load_of(4096, 1);
    setup.designs[0] = &player;
    struct feroce_machine *machine = feroce_machine_open(run, &setup, &load);
    assert_non_null(machine);
    feroce_machine_run_until(machine, 2000 * US_PS);
    const struct feroce_design *design = machine->nodes[0].design;
    assert_true(finished_model(design->design.model));
    memcpy(strays, design->strays, sizeof(design->strays));
    *come = machine->receiver.frames;
    feroce_machine_close(machine);
    assert_string_equal(run->failure, "");
    free(run);
}

/* -- Tests --------------------------------------------------------------------------------------*/

static void test_reasons(void **state)
{
    (void)state;
    static const struct {
        enum feroce_stray stray;
        uint32_t at;
        uint8_t value;
        bool sealed;
    } rows[] = {
        {FEROCE_STRAYS, 15, 0x60, false},        /* TOS: a right frame of another class. */
        {FEROCE_STRAYS, 46, 0xc0, false},        /* FECN and BECN. */
        {FEROCE_STRAYS, 19, 9, true},            /* Another identification. */
        {FEROCE_STRAY_PROTOCOL, 12, 0x86, true}, /* The type of the frame. */
        {FEROCE_STRAY_PROTOCOL, 14, 0x46, true}, /* Options. */
        {FEROCE_STRAY_PROTOCOL, 20, 0x60, true}, /* More fragments. */
        {FEROCE_STRAY_PROTOCOL, 21, 1, true},    /* A fragment. */
        {FEROCE_STRAY_PROTOCOL, 23, 6, true},    /* TCP. */
        {FEROCE_STRAY_PROTOCOL, 17, 61, true},   /* IP's length is not UDP's, and 8. */
        {FEROCE_STRAY_PROTOCOL, 16, 9, true},    /* IP's length is beyond the frame. */
        {FEROCE_STRAY_ADDRESS, 33, 9, true},     /* To nobody. */
        {FEROCE_STRAY_ADDRESS, 29, 9, true},     /* From somebody else. */
        {FEROCE_STRAY_ADDRESS, 37, 9, true},     /* To a port that nobody has. */
        {FEROCE_STRAY_ROCE, 42, 0x1f, true},     /* An opcode that nobody speaks. */
        {FEROCE_STRAY_ROCE, 43, 0x4f, true},     /* TVer. */
        {FEROCE_STRAY_ICRC, 54, 1, false},       /* Payload. */
        {FEROCE_STRAY_ICRC, 19, 9, false},       /* Identification. */
    };
    for (uint32_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t strays[FEROCE_STRAYS], come;
        list.count = 0;
        (void)add_frame();
        uint8_t *frame = add_frame();
        frame[rows[i].at] = rows[i].value;
        if (rows[i].sealed) {
            seal(frame);
        }
        play(strays, &come);
        assert_int_equal(come, rows[i].stray == FEROCE_STRAYS ? 2 : 1);
        for (uint32_t k = 0; k < FEROCE_STRAYS; k++) {
            assert_int_equal(strays[k], k == rows[i].stray);
        }
    }
}

/* The frame is cut after each of its bytes. */
static void test_cut(void **state)
{
    (void)state;
    uint64_t strays[FEROCE_STRAYS], come;
    list.count = 0;
    (void)add_frame();
    const uint32_t whole = list.counts[0];
    for (uint32_t bytes = 1; bytes < whole; bytes++) {
        (void)add_frame();
        list.counts[bytes] = bytes;
    }
    play(strays, &come);
    assert_int_equal(come, 1);
    assert_int_equal(strays[FEROCE_STRAY_PROTOCOL], whole - 1);
}

/* One octet differs: that goes unnoticed only in those that the ICRC leaves out. */
static void test_each_octet(void **state)
{
    (void)state;
    uint64_t strays[FEROCE_STRAYS], come, unnoticed = 0;
    struct prng prng;
    prng_init(&prng, 5);
    list.count = 0;
    for (uint32_t at = 0; at < FEROCE_FRAME_HEADERS_BYTES + 32; at++) {
        for (uint32_t turn = 0; turn < 20; turn++) {
            add_frame()[at] ^= (uint8_t)(1 + prng_below(&prng, 255));
        }
        const bool left_out = at < 12 || at == 15 || at == 22 || at == 24 || at == 25 || at == 40 ||
                              at == 41 || at == 46;
        unnoticed += left_out ? 20 : 0;
    }
    play(strays, &come);
    assert_int_equal(come, unnoticed);
    assert_true(strays[FEROCE_STRAY_ICRC] > 500 && strays[FEROCE_STRAY_PROTOCOL] > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_each_octet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
