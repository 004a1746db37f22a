/* SPDX-License-Identifier: BSD-2-Clause
 *
 * vpi - a design under Icarus Verilog: the functions that nonic_axis.sv and vpi_top.sv call.
 *
 * The simulator is a process of its own, and its ports are in it: frames cross the socket, beats
 * do not. nonic grants time, edge by edge or more (hdl/message.h). `nonic hdl build` compiles this
 * with each design, as a module for vvp. A process has one design: all is static.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vpi_user.h>

#include "base/align.h"
#include "base/check.h"
#include "hdl/message.h"

#define FS_PER_PS 1000

/* The arguments of $nonic_edge. */
enum {
    PORT,
    WIDTH,
    RST,
    S_VALID,
    S_DATA,
    S_KEEP,
    S_LAST,
    S_USER,
    M_READY,
    S_READY,
    M_VALID,
    M_DATA,
    M_KEEP,
    M_LAST,
    M_USER,
    PAUSE,
    TX_PACKET,
    RX_PACKET,
    EDGE_ARGUMENTS
};

/* A nonic_axis. */
struct axis {
    vpiHandle arguments[EDGE_ARGUMENTS];
    uint32_t number, width_bits;
    char scope[HDL_SCOPE_BYTES];
    struct hdl_port *port;
    struct hdl_out out;
    struct hdl_counters told;
};

static struct axis *all[HDL_HELLO_PORTS_MAX];
static uint32_t axes;

static struct {
    uint64_t period_fs, granted_ps;
    uint64_t edges, now_ps; /* Rising edges, and the time of the last one. */
    bool reset, over;
    char path[HDL_PATH_BYTES_MAX + 1]; /* A trace is written there; empty: none. */
    uint64_t from_ps, to_ps;
} run = {.reset = true};

/* -- The socket ---------------------------------------------------------------------------------*/

static int nonic = -1;
static uint8_t said[1 << 16], heard[2 * HDL_MESSAGE_BYTES_MAX];
static size_t said_bytes, heard_first, heard_end;

/* The simulation ends; what is traced is written down. */
static void end(const char *why)
{
    if (why != NULL) {
        vpi_printf("nonic: %s\n", why);
    }
    run.over = true;
    vpi_control(vpiFinish, 0);
}

static void flush(void)
{
    size_t sent = 0;
    while (sent < said_bytes) {
        const ssize_t count = send(nonic, said + sent, said_bytes - sent, MSG_NOSIGNAL);
        if (count <= 0) {
            end(NULL);
            break;
        }
        sent += (size_t)count;
    }
    said_bytes = 0;
}

static void say(const struct hdl_message *message)
{
    if (said_bytes + HDL_MESSAGE_BYTES_MAX > sizeof(said)) {
        flush();
    }
    said_bytes += hdl_message_encode(message, said + said_bytes);
}

/* The next message, whose frame is there until the next call. False: it is over. */
static bool hear(struct hdl_message *message)
{
    for (;;) {
        uint32_t used;
        const char *wrong = hdl_message_decode(heard + heard_first, heard_end - heard_first,
                                               HDL_FROM_NONIC, message, &used);
        heard_first += used;
        if (wrong != NULL) {
            end(wrong);
            return false;
        }
        if (used > 0) {
            return true;
        }
        memmove(heard, heard + heard_first, heard_end - heard_first);
        heard_end -= heard_first;
        heard_first = 0;
        const ssize_t count = recv(nonic, heard + heard_end, sizeof(heard) - heard_end, 0);
        if (count <= 0) {
            end(NULL);
            return false;
        }
        heard_end += (size_t)count;
    }
}

/* -- Words of nonic -----------------------------------------------------------------------------*/

static struct axis *axis_of(uint32_t number)
{
    for (uint32_t i = 0; i < axes; i++) {
        if (all[i]->number == number) {
            return all[i];
        }
    }
    return NULL;
}

static bool make_port(struct axis *axis, const struct hdl_port_config *config)
{
    if (axis->port != NULL || config->width_bits != axis->width_bits) {
        return false;
    }
    void *memory = aligned_alloc(CACHE_LINE_BYTES, line_aligned(hdl_port_bytes(config)));
    CHECK(memory != NULL);
    axis->port = hdl_port_init(config, memory);
    return true;
}

static bool obey_at_port(const struct hdl_message *message)
{
    struct axis *axis = axis_of(message->port);
    if (axis == NULL || (axis->port == NULL) != (message->type == HDL_PORT)) {
        return false;
    }
    return message->type == HDL_PORT    ? make_port(axis, &message->config)
           : message->type == HDL_FRAME ? hdl_port_push(axis->port, &message->frame)
                                        : hdl_port_pause(axis->port, &message->pause);
}

/* Until time is granted, or it is over. */
static void obey(void)
{
    struct hdl_message message;
    while (hear(&message) && message.type != HDL_FINISH) {
        switch (message.type) {
        case HDL_GRANT:
            run.granted_ps = message.time_ps;
            run.period_fs = message.period_fs;
            return;
        case HDL_RESET: run.reset = message.reset; break;
        case HDL_TRACE:
            memcpy(run.path, message.trace.path, message.trace.bytes);
            run.path[message.trace.bytes] = '\0';
            run.from_ps = message.time_ps;
            run.to_ps = message.trace.to_ps;
            break;
        default:
            if (!obey_at_port(&message)) {
                end("nonic said what it may not say");
                return;
            }
        }
    }
    end(NULL);
}

static uint64_t edge_ps(uint64_t edge)
{
    return edge * run.period_fs / FS_PER_PS;
}

/* -- Values -------------------------------------------------------------------------------------*/

/* Words of an argument, X and Z as 0; `unknown`, if given, has the bits that are X or Z. */
static void get(vpiHandle argument, uint32_t *words, uint32_t *unknown, uint32_t bits)
{
    s_vpi_value value = {.format = vpiVectorVal};
    vpi_get_value(argument, &value);
    for (uint32_t i = 0; i < (bits + 31) / 32; i++) {
        const uint32_t known = ~(uint32_t)value.value.vector[i].bval;
        words[i] = (uint32_t)value.value.vector[i].aval & known;
        unknown[i] = ~known;
    }
}

/* One bit; *unknown: it was X or Z. */
static bool get_bit(vpiHandle argument, bool *unknown)
{
    uint32_t bit, none;
    get(argument, &bit, &none, 1);
    *unknown |= none & 1;
    return bit & 1;
}

static void put(vpiHandle argument, const uint32_t *words, uint32_t bits)
{
    s_vpi_vecval vector[HDL_WIDTH_BITS_MAX / 32];
    s_vpi_value value = {.format = vpiVectorVal, .value.vector = vector};
    for (uint32_t i = 0; i < (bits + 31) / 32; i++) {
        vector[i] = (s_vpi_vecval){.aval = (PLI_INT32)words[i]};
    }
    vpi_put_value(argument, &value, NULL, vpiNoDelay);
}

static void put_word(vpiHandle argument, uint32_t word)
{
    put(argument, &word, 32);
}

static void put_time(vpiHandle argument, uint64_t ps)
{
    const uint32_t words[] = {(uint32_t)ps, (uint32_t)(ps >> 32)};
    put(argument, words, 64);
}

static uint32_t get_number(vpiHandle argument)
{
    s_vpi_value value = {.format = vpiIntVal};
    vpi_get_value(argument, &value);
    return (uint32_t)value.value.integer;
}

/* -- An edge of a port --------------------------------------------------------------------------*/

/* Bit i of `words`. */
static bool bit_of(const uint32_t *words, uint32_t i)
{
    return words[i / 32] >> i % 32 & 1;
}

/* A kept byte of the data, or the keep itself, is X or Z. */
static bool beat_unknown(const uint32_t *data, const uint32_t *keep, const uint32_t *keep_unknown,
                         uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++) {
        const bool byte_unknown = (data[i / 4] >> i % 4 * 8 & 0xff) != 0;
        if (bit_of(keep_unknown, i) || (byte_unknown && bit_of(keep, i))) {
            return true;
        }
    }
    return false;
}

struct values {
    uint32_t data[HDL_WIDTH_BITS_MAX / 32], keep[HDL_WIDTH_BITS_MAX / 256];
};

static void sample(const struct axis *axis, struct hdl_in *in, struct values *values)
{
    const vpiHandle *arguments = axis->arguments;
    struct values unknown;
    bool ignored = false, user_unknown = false;
    *in = (struct hdl_in){.s_data = values->data, .s_keep = values->keep};
    in->reset = get_bit(arguments[RST], &ignored);
    in->s_valid = get_bit(arguments[S_VALID], &in->unknown_handshake);
    in->m_ready = get_bit(arguments[M_READY], &in->unknown_handshake);
    if (in->s_valid) {
        get(arguments[S_DATA], values->data, unknown.data, axis->width_bits);
        get(arguments[S_KEEP], values->keep, unknown.keep, axis->width_bits / 8);
        in->unknown_beat =
            beat_unknown(unknown.data, values->keep, unknown.keep, axis->width_bits / 8);
        in->s_last = get_bit(arguments[S_LAST], &in->unknown_beat);
        in->s_user = get_bit(arguments[S_USER], &user_unknown);
        in->unknown_beat |= in->s_last && user_unknown;
    }
}

static void drive(const struct axis *axis)
{
    const vpiHandle *arguments = axis->arguments;
    const struct hdl_out *driven = &axis->out;
    put_word(arguments[S_READY], driven->s_ready);
    put_word(arguments[M_VALID], driven->m_valid);
    put(arguments[M_DATA], driven->m_data, axis->width_bits);
    put(arguments[M_KEEP], driven->m_keep, axis->width_bits / 8);
    put_word(arguments[M_LAST], driven->m_last);
    put_word(arguments[M_USER], driven->m_user);
    put_word(arguments[PAUSE], driven->pause);
    put_word(arguments[TX_PACKET], driven->sent_frame);
    put_word(arguments[RX_PACKET], driven->received_frame);
}

/* An edge alone is no news. */
static bool counters_changed(struct axis *axis)
{
    struct hdl_counters now = *hdl_port_counters(axis->port);
    struct hdl_counters then = axis->told;
    then.edges = now.edges;
    return memcmp(&now, &then, sizeof(now)) != 0;
}

/* The news of this edge. */
static void tell(struct axis *axis)
{
    struct hdl_message message = {.port = axis->number, .time_ps = run.now_ps};
    message.type = HDL_FRAME;
    while (hdl_port_pull(axis->port, &message.frame)) {
        say(&message);
    }
    message.type = HDL_VIOLATION;
    while (hdl_port_violation(axis->port, &message.violation)) {
        say(&message);
    }
    if (counters_changed(axis)) {
        message.type = HDL_COUNTERS;
        message.counters = axis->told = *hdl_port_counters(axis->port);
        say(&message);
    }
}

static PLI_INT32 on_edge(PLI_BYTE8 *unused)
{
    (void)unused;
    struct axis *axis = vpi_get_userdata(vpi_handle(vpiSysTfCall, NULL));
    if (axis != NULL && axis->port != NULL && !run.over) {
        struct hdl_in sampled;
        struct values values;
        sample(axis, &sampled, &values);
        hdl_port_edge(axis->port, run.now_ps, &sampled, &axis->out);
        drive(axis);
        tell(axis);
    }
    return 0;
}

/* -- The clock ----------------------------------------------------------------------------------*/

static void read_arguments(vpiHandle *arguments, uint32_t count)
{
    vpiHandle walk = vpi_iterate(vpiArgument, vpi_handle(vpiSysTfCall, NULL));
    for (uint32_t i = 0; i < count; i++) {
        arguments[i] = vpi_scan(walk);
    }
    vpi_free_object(walk);
}

static void greet(void)
{
    struct hdl_message message = {.type = HDL_HELLO, .hello = {.abi = HDL_ABI, .ports = axes}};
    for (uint32_t i = 0; i < axes; i++) {
        struct axis *axis = all[i];
        axis->number = get_number(axis->arguments[PORT]);
        axis->width_bits = get_number(axis->arguments[WIDTH]);
        message.hello.port[i].number = axis->number;
        message.hello.port[i].width_bits = axis->width_bits;
        message.hello.port[i].scope = axis->scope;
    }
    say(&message);
    flush();
}

/* $nonic_begin(to_rise, traced, from, to, path) */
static PLI_INT32 on_begin(PLI_BYTE8 *unused)
{
    (void)unused;
    vpiHandle arguments[5];
    const char *descriptor = getenv("NONIC_HDL_FD");
    read_arguments(arguments, 5);
    if (descriptor == NULL) {
        end("this design runs by `nonic hdl`, not alone");
        return 0;
    }
    if (vpi_handle_by_name("nonic_top.dut.clk2", NULL) != NULL) {
        end("a design with clk2 runs under Verilator alone");
        return 0;
    }
    nonic = atoi(descriptor);
    greet();
    obey();
    put_time(arguments[0], edge_ps(1));
    put_word(arguments[1], run.path[0] != '\0');
    put_time(arguments[2], run.from_ps);
    put_time(arguments[3], run.to_ps);
    s_vpi_value value = {.format = vpiStringVal, .value.str = run.path};
    vpi_put_value(arguments[4], &value, NULL, vpiNoDelay);
    return 0;
}

/* $nonic_clock(to_fall, to_rise, rst), right before a rising edge: it waits until nonic has granted
 * the edge. */
static PLI_INT32 on_clock(PLI_BYTE8 *unused)
{
    (void)unused;
    static vpiHandle arguments[3];
    if (arguments[0] == NULL) {
        read_arguments(arguments, 3);
    }
    const uint64_t next_ps = edge_ps(run.edges + 1);
    while (next_ps > run.granted_ps && !run.over) {
        say(&(struct hdl_message){.type = HDL_DONE, .time_ps = run.granted_ps});
        flush();
        obey();
    }
    const uint64_t half_ps = run.period_fs / (2 * FS_PER_PS);
    run.edges++;
    run.now_ps = next_ps;
    put_time(arguments[0], half_ps);
    put_time(arguments[1], edge_ps(run.edges + 1) - next_ps - half_ps);
    put_word(arguments[2], run.reset);
    return 0;
}

/* $finish in the design. */
static PLI_INT32 on_end(p_cb_data unused)
{
    (void)unused;
    if (!run.over && nonic >= 0) {
        say(&(struct hdl_message){.type = HDL_FINISH, .time_ps = run.now_ps});
        flush();
    }
    return 0;
}

/* -- Calls and callbacks -----------------------------------------------------------------------*/

/* Each call of $nonic_edge is a port, before time begins. */
static PLI_INT32 on_edge_compiled(PLI_BYTE8 *unused)
{
    (void)unused;
    if (axes < HDL_HELLO_PORTS_MAX) {
        vpiHandle call = vpi_handle(vpiSysTfCall, NULL);
        struct axis *axis = calloc(1, sizeof(*axis));
        CHECK(axis != NULL);
        read_arguments(axis->arguments, EDGE_ARGUMENTS);
        const char *scope = vpi_get_str(vpiFullName, vpi_handle(vpiScope, call));
        if (scope != NULL && strlen(scope) < HDL_SCOPE_BYTES) {
            strcpy(axis->scope, scope);
        }
        vpi_put_userdata(call, axis);
        all[axes++] = axis;
    }
    return 0;
}

static void add(const char *name, PLI_INT32 (*call)(PLI_BYTE8 *),
                PLI_INT32 (*compiled)(PLI_BYTE8 *))
{
    s_vpi_systf_data task = {
        .type = vpiSysTask, .tfname = name, .calltf = call, .compiletf = compiled};
    vpi_register_systf(&task);
}

static void start(void)
{
    add("$nonic_begin", on_begin, NULL);
    add("$nonic_clock", on_clock, NULL);
    add("$nonic_edge", on_edge, on_edge_compiled);
    s_cb_data ending = {.reason = cbEndOfSimulation, .cb_rtn = on_end};
    vpi_register_cb(&ending);
}

void (*vlog_startup_routines[])(void) = {start, NULL};
