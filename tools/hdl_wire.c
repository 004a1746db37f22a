/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/capture.h"
#include "tools/hdl_faults.h"
#include "tools/hdl_source.h"

struct wire;

struct end {
    struct sim_design design;
    struct wire *wire;
    uint32_t number;
    uint64_t sent, came;       /* Frames, at port 0; `came` has those that the port had room for. */
    uint64_t refused, nowhere; /* Frames for which there was none; frames of other ports. */
};

struct wire {
    struct sim sim;
    struct hdl_source source;
    struct end ends[2];
    struct sim_capture *capture;
    uint64_t delay_ps, last_ps;
    uint64_t under_way; /* Frames on the line. */
    uint32_t first;     /* The end of the design that was named first. */
};

/* A frame on the line. */
struct flight {
    struct sim_event arrival;
    struct end *from;
    uint64_t number; /* Among those that its design sent. */
    uint32_t bytes;
    uint8_t data[];
};

/* -- Frames -------------------------------------------------------------------------------------*/

/* At this end a frame is there, with all its bits. */
static void arrive(struct end *end, struct hdl_frame *frame, const char *origin)
{
    struct wire *wire = end->wire;
    struct hdl_port *port = end->design.ports[0];
    const uint32_t room = hdl_port_room(port);
    sim_design_strike(&end->design, 0, frame);
    end->refused += !sim_design_push(&end->design, 0, frame);
    const bool taken = hdl_port_room(port) < room; /* Flow control is the port's. */
    end->came += taken;
    wire->last_ps = frame->at_ps;
    if (wire->capture != NULL) {
        char comment[96];
        const int length = snprintf(comment, sizeof(comment), "%s; design %u", origin, end->number);
        if (taken) {
            snprintf(comment + length, sizeof(comment) - (size_t)length, ", rx_packet %" PRIu64,
                     end->came);
        }
        sim_capture_commented(wire->capture, frame->at_ps, frame->data, frame->bytes, comment);
    }
}

static void on_arrival(struct sim *sim, struct sim_event *event)
{
    struct flight *flight = CONTAINER_OF(event, struct flight, arrival);
    struct wire *wire = flight->from->wire;
    struct hdl_frame frame = {.at_ps = sim->now_ps, .data = flight->data, .bytes = flight->bytes};
    char origin[48];
    snprintf(origin, sizeof(origin), "design %u, tx_packet %" PRIu64, flight->from->number,
             flight->number);
    arrive(&wire->ends[!flight->from->number], &frame, origin);
    wire->under_way--;
    free(flight);
}

static void on_frame(struct sim_design *design, uint32_t port, const struct hdl_frame *frame)
{
    struct end *from = CONTAINER_OF(design, struct end, design);
    struct wire *wire = from->wire;
    if (port != 0) {
        from->nowhere++;
        return;
    }
    struct flight *flight = malloc(sizeof(*flight) + frame->bytes);
    CHECK(flight != NULL);
    flight->from = from;
    flight->number = ++from->sent;
    flight->bytes = frame->bytes;
    memcpy(flight->data, frame->data, frame->bytes);
    sim_event_init(&flight->arrival, on_arrival);
    sim_schedule(&wire->sim, &flight->arrival, frame->at_ps + wire->delay_ps);
    wire->under_way++;
}

/* A frame of the capture comes to both, and the one that it is for knows it. */
static void give(struct hdl_source *source, struct hdl_frame *frame)
{
    struct wire *wire = CONTAINER_OF(source, struct wire, source);
    for (uint32_t i = 0; i < 2; i++) {
        struct hdl_frame own = *frame;
        arrive(&wire->ends[i], &own, "replayed");
    }
}

/* -- The run ------------------------------------------------------------------------------------*/

static bool open_end(struct wire *wire, uint32_t number, const struct hdl_model_ops *ops,
                     const struct hdl_wire_wishes *wishes)
{
    static const struct hdl_wishes untraced;
    struct sim_design_config config = hdl_config(ops, wishes->plain);
    struct end *end = &wire->ends[number];
    end->wire = wire;
    end->number = number;
    config.port.paused_by = 1u << HDL_LINK;
    if (ops->clocks == 1) {
        config.period_fs[1] = 0; /* The other one has a clk2. */
    }
    config.seed = 2 * config.seed + number;
    config.faults = *wishes->faults;
    config.on_frame = on_frame;
    return hdl_open(&end->design, &wire->sim, &config, &untraced);
}

/* Designs are numbered by the names of their modules, so their order in the command means nothing;
 * of two of one name, the first one comes first. */
static bool open_ends(struct wire *wire, const struct hdl_wire_wishes *wishes, char *const paths[2])
{
    const struct hdl_model_ops *ops[2];
    for (uint32_t i = 0; i < 2; i++) {
        ops[i] = hdl_load(paths[i]);
        if (ops[i] == NULL) {
            return false;
        }
    }
    const uint32_t first = wire->first = strcmp(ops[0]->name, ops[1]->name) > 0;
    return open_end(wire, 0, ops[first], wishes) && open_end(wire, 1, ops[!first], wishes) &&
           hdl_trace(&wire->ends[first].design, wishes->plain);
}

static bool goes_on(const struct wire *wire, const struct hdl_wire_wishes *wishes)
{
    const uint64_t now_ps = wire->sim.now_ps;
    const bool at_rest =
        wire->source.over && wire->under_way == 0 && now_ps > wire->last_ps + wishes->rest_ps;
    return !at_rest && (wishes->until_ps == 0 || now_ps < wishes->until_ps);
}

/* Returns whether its simulator was well. */
static bool print_end(const struct end *end)
{
    const struct sim_design *design = &end->design;
    char name[16];
    snprintf(name, sizeof(name), "design %u", end->number);
    hdl_print_faults(name, design);
    printf("%s, %s: %" PRIu64 " frames sent, %" PRIu64 " came; %" PRIu64 " edges\n", name,
           design->config.ops->name, end->sent, end->came, design->edges);
    if (end->refused > 0) {
        printf("%" PRIu64 " frames did not reach it: it takes them too slowly, or they are longer "
               "than %u bytes\n",
               end->refused, HDL_FRAME_BYTES_MAX);
    }
    if (end->nowhere > 0) {
        printf("%" PRIu64 " frames of its other ports went nowhere\n", end->nowhere);
    }
    if (design->error[0] != '\0') {
        fprintf(stderr, "nonic: %s\n", design->error);
    }
    return design->error[0] == '\0';
}

/* Returns the status. */
static int conclude(struct wire *wire, const struct hdl_wishes *wishes)
{
    char error[160];
    uint64_t broken = 0;
    bool good = true;
    for (uint32_t i = 0; i < 2; i++) {
        broken += hdl_print_violations(&wire->ends[i].design,
                                       i == wire->first ? wishes : &hdl_plain_wishes);
        good &= print_end(&wire->ends[i]);
    }
    good &= hdl_source_end(&wire->source);
    printf("%.3f us; %" PRIu64 " rules broken; digest %016" PRIx64 "\n",
           (double)wire->sim.now_ps / PS_PER_US, broken, wire->sim.digest);
    if (wire->capture != NULL && !sim_capture_close(wire->capture, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        good = false;
    }
    return !good || (wishes->strict && broken > 0);
}

int hdl_wire(const struct hdl_wire_wishes *wishes, char *const paths[2])
{
    static struct wire wire;
    char error[160];
    sim_init(&wire.sim, (uint64_t)wishes->plain->seed);
    wire.delay_ps = wishes->delay_ps;
    wire.source.sim = &wire.sim;
    wire.source.give = give;
    if (!hdl_source_open(&wire.source, wishes->replay) || !open_ends(&wire, wishes, paths)) {
        return 1;
    }
    if (wishes->capture != NULL &&
        (wire.capture = sim_capture_open(wishes->capture, PCAPNG_LINK_ETHERNET, error,
                                         sizeof(error))) == NULL) {
        fprintf(stderr, "nonic: %s\n", error);
        return 1;
    }
    hdl_source_begin(&wire.source);
    while (goes_on(&wire, wishes) && sim_step(&wire.sim)) {
    }
    const int status = conclude(&wire, wishes->plain);
    for (uint32_t i = 0; i < 2; i++) {
        sim_design_close(&wire.ends[i].design);
    }
    return status;
}
