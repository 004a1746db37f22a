/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/exanest/fpga.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define RECEIVER_WRITES 0u /* Ports of the memory. */
#define SYSTEM_WRITES   1u
#define ZDMA_WRITES     2u

struct exanest_fpga_config exanest_fpga_default(struct exanest_place place)
{
    const uint32_t coordinate = exanest_coordinate(place);
    return (struct exanest_fpga_config){
        .routing = exanest_routing_default(place),
        .crossbar = exanest_crossbar_default(),
        .exadma = EXANEST_EXADMA_USUAL,
        .receiver = exanest_receiver_defaults(coordinate),
        .packetizer = exanest_packetizer_defaults(coordinate),
        .zdma = exanest_zdma_defaults(coordinate),
        .memory = {.bytes = 1 << 22,
                   .read_cycles = EXANEST_READ_CYCLES,
                   .write_cycles = EXANEST_WRITE_CYCLES},
        .age_ps = EXANEST_AGE_BLOCKS * UINT64_C(1000000000),
    };
}

static void on_ageing(struct sim *sim, struct sim_event *event)
{
    struct exanest_fpga *fpga = CONTAINER_OF(event, struct exanest_fpga, ageing);
    exanest_receiver_age(&fpga->receiver);
    if (fpga->receiver.table.used > 0) {
        sim_after(sim, event, fpga->age_ps);
    }
}

void exanest_fpga_open(struct exanest_fpga *fpga, const struct exanest_fpga_config *config,
                       struct sim *sim)
{
    memset(fpga, 0, sizeof(*fpga));
    fpga->sim = sim;
    fpga->age_ps = config->age_ps;
    fpga->sprays = config->sprays;
    sim_event_init(&fpga->ageing, on_ageing);
    fpga->coordinate = exanest_coordinate(config->routing.own);
    exanest_routing_init(&fpga->routing, &config->routing);
    fpga->standing = 1u << EXANEST_PORT_RDMA | 1u << EXANEST_PORT_PACKETIZER |
                     1u << EXANEST_PORT_ACKNOWLEDGEMENTS;
    if (config->routing.two_links) {
        CHECK(config->exadma.ports == 2);
        fpga->standing |= 1u << fpga->routing.second_input;
    }
    exanest_crossbar_init(&fpga->crossbar, &config->crossbar);
    struct exanest_exadma_config exadma = config->exadma;
    exadma.coordinate = fpga->coordinate;
    fpga->exadma_memory = calloc(1, exanest_exadma_bytes(&exadma));
    CHECK(fpga->exadma_memory != NULL);
    exanest_exadma_init(&fpga->exadma, &exadma, fpga->exadma_memory);
    exanest_receiver_init(&fpga->receiver, &config->receiver);
    exanest_packetizer_init(&fpga->packetizer, &config->packetizer);
    const struct exanest_rt_mailbox_parameters rt = exanest_rt_mailbox_defaults(fpga->coordinate);
    exanest_rt_mailbox_init(&fpga->rt_mailbox, &rt);
    const struct exanest_system_mailbox_parameters system =
        exanest_system_mailbox_defaults(fpga->coordinate);
    exanest_system_mailbox_init(&fpga->system_mailbox, &system);
    struct exanest_zdma_config zdma = config->zdma;
    zdma.coordinate = fpga->coordinate;
    exanest_zdma_init(&fpga->zdma, &zdma);
    exanest_memory_open(&fpga->memory, &config->memory, &sim->prng);
}

void exanest_fpga_misuse(struct exanest_fpga *fpga, uint32_t ports, struct sim_faults *faults,
                         struct prng *prng)
{
    CHECK((ports & ~EXANEST_FAULT_PORTS) == 0);
    fpga->misused = (uint16_t)ports;
    for (uint32_t left = ports; left != 0; left &= left - 1) {
        const uint32_t port = (uint32_t)__builtin_ctz(left);
        fpga->misuse[port] = malloc(sizeof(*fpga->misuse[port]));
        CHECK(fpga->misuse[port] != NULL);
        exanest_misuse_init(fpga->misuse[port], faults, prng);
    }
}

void exanest_fpga_close(struct exanest_fpga *fpga)
{
    for (uint32_t port = 0; port < EXANEST_PORTS_MAX; port++) {
        free(fpga->misuse[port]);
    }
    free(fpga->exadma_memory);
    exanest_memory_close(&fpga->memory);
}

static bool is_link_port(uint32_t port)
{
    return port < EXANEST_FPGAS || port >= EXANEST_PORT_SECOND_F1;
}

void exanest_fpga_plug(struct exanest_fpga *fpga, uint32_t to, bool second,
                       struct exanest_link *link, uint32_t end)
{
    CHECK(to < EXANEST_FPGAS && (!second || fpga->routing.config.two_links));
    const uint32_t port =
        second ? fpga->routing.config.second_ports[to] : fpga->routing.config.fpga_ports[to];
    CHECK(is_link_port(port) && port != fpga->routing.dead_port &&
          port != fpga->routing.second_input);
    fpga->cables[port] = (struct exanest_cable){link, (uint8_t)end};
    fpga->linked |= 1u << port;
    fpga->standing |= 1u << port;
}

void exanest_fpga_give_channel(struct exanest_fpga *fpga, uint32_t channel, uint16_t pdid)
{
    exanest_scheduler_map(&fpga->exadma.scheduler, channel, pdid);
}

/* -- Outputs of the crossbar --------------------------------------------------------------------*/

static bool give_link(struct exanest_fpga *fpga, uint32_t port, const struct exanest_beat *beat)
{
    const struct exanest_cable *cable = &fpga->cables[port];
    if (cable->link == NULL) {
        fpga->counters.nobody[port]++;
        return true;
    }
    struct exanest_serializer *serializer = exanest_link_in(cable->link, cable->end);
    if (!exanest_serializer_ready(serializer, beat)) {
        return false;
    }
    exanest_serializer_take(serializer, beat);
    return true;
}

static bool give_router(struct exanest_fpga *fpga, uint32_t port, const struct exanest_beat *beat)
{
    const uint32_t local = port - EXANEST_PORT_ROUTER_0;
    if (fpga->router == NULL) {
        fpga->counters.nobody[port]++;
        return true;
    }
    if (!exanest_router_ready(fpga->router, local, beat)) {
        return false;
    }
    exanest_router_take(fpga->router, local, beat);
    return true;
}

#define GIVE(fpga, unit, beat)                                                                     \
    (exanest_##unit##_ready(&(fpga)->unit, beat)                                                   \
         ? (exanest_##unit##_take(&(fpga)->unit, beat), true)                                      \
         : (exanest_##unit##_waits(&(fpga)->unit), false))

/* Notes a word for the world's digest, and where it came to. */
static void note(const struct exanest_fpga *fpga, uint64_t where, struct exanest_word word)
{
    const uint64_t place = (uint64_t)fpga->coordinate << EXANEST_VA_BITS;
    sim_note(fpga->sim, place ^ where ^ word.low);
    sim_note(fpga->sim, word.high);
}

static bool give_receiver(struct exanest_fpga *fpga, const struct exanest_beat *beat)
{
    const bool taken = GIVE(fpga, receiver, beat);
    if (taken && beat->last && fpga->order != NULL) {
        const struct exanest_intake *intake = &fpga->receiver.intake;
        exanest_order_note(fpga->order, &intake->header, &intake->footer);
    }
    return taken;
}

/* Does the block behind an output take the beat? */
static bool take_block(struct exanest_fpga *fpga, uint32_t port, const struct exanest_beat *beat)
{
    switch (port) {
    case EXANEST_PORT_RDMA: return give_receiver(fpga, beat);
    case EXANEST_PORT_RT_MAILBOX: return GIVE(fpga, rt_mailbox, beat);
    case EXANEST_PORT_SYSTEM_MAILBOX: return GIVE(fpga, system_mailbox, beat);
    case EXANEST_PORT_PACKETIZER: exanest_packetizer_take(&fpga->packetizer, beat); return true;
    case EXANEST_PORT_ZDMA: return GIVE(fpga, zdma, beat);
    default: fpga->counters.nobody[port]++; return true;
    }
}

/* The same; two runs have to agree on each packet that comes to a block, and when. */
static bool give_block(struct exanest_fpga *fpga, uint32_t port, const struct exanest_beat *beat)
{
    const bool takes = take_block(fpga, port, beat);
    if (takes && beat->part != EXANEST_PAYLOAD) {
        note(fpga, port, beat->word);
    }
    return takes;
}

/* Does the unit at an output take the beat? */
static bool give(struct exanest_fpga *fpga, uint32_t port, const struct exanest_beat *beat)
{
    if (port == fpga->routing.dead_port) {
        if (fpga->looped) {
            return false;
        }
        fpga->loop = *beat;
        fpga->looped = true;
        return true;
    }
    if (is_link_port(port)) {
        return give_link(fpga, port, beat);
    }
    if (port < EXANEST_PORT_ROUTER_0 + EXANEST_ROUTER_LOCALS) {
        return give_router(fpga, port, beat);
    }
    struct exanest_misuse *misuse = fpga->misuse[port];
    if (misuse == NULL) {
        return give_block(fpga, port, beat);
    }
    if (!exanest_misuse_ready(misuse)) {
        return false;
    }
    exanest_misuse_take(misuse, beat);
    return true;
}

/* The packets that were misused go on. */
static void step_misuse(struct exanest_fpga *fpga)
{
    struct exanest_beat beat;
    for (uint32_t left = fpga->misused; left != 0; left &= left - 1) {
        const uint32_t port = (uint32_t)__builtin_ctz(left);
        struct exanest_misuse *misuse = fpga->misuse[port];
        if (exanest_misuse_offer(misuse, &beat) && give_block(fpga, port, &beat)) {
            exanest_misuse_taken(misuse);
        }
        exanest_misuse_step(misuse);
    }
}

static bool misuse_idle(const struct exanest_fpga *fpga)
{
    bool idle = true;
    for (uint32_t left = fpga->misused; left != 0; left &= left - 1) {
        idle = idle && exanest_misuse_idle(fpga->misuse[__builtin_ctz(left)]);
    }
    return idle;
}

static uint32_t give_all(struct exanest_fpga *fpga)
{
    uint32_t ready = 0;
    for (uint32_t left = exanest_crossbar_shown(&fpga->crossbar); left != 0; left &= left - 1) {
        const uint32_t port = (uint32_t)__builtin_ctz(left);
        if (give(fpga, port, exanest_crossbar_beat(&fpga->crossbar, port))) {
            ready |= 1u << port;
        }
    }
    return ready;
}

/* -- Inputs of the crossbar ---------------------------------------------------------------------*/

static bool offer_of(const struct exanest_fpga *fpga, uint32_t replier, struct exanest_beat *beat)
{
    switch ((enum exanest_replier)replier) {
    case EXANEST_REPLIER_RECEIVER: return exanest_receiver_offer(&fpga->receiver, beat);
    case EXANEST_REPLIER_RT_MAILBOX: return exanest_rt_mailbox_offer(&fpga->rt_mailbox, beat);
    case EXANEST_REPLIER_SYSTEM_MAILBOX:
        return exanest_system_mailbox_offer(&fpga->system_mailbox, beat);
    case EXANEST_REPLIER_COUNT: break;
    }
    UNREACHABLE("a replier outside its enum");
}

static void reply_taken(struct exanest_fpga *fpga, const struct exanest_beat *beat)
{
    fpga->replying = !beat->last;
    switch ((enum exanest_replier)fpga->replier) {
    case EXANEST_REPLIER_RECEIVER: exanest_receiver_taken(&fpga->receiver); return;
    case EXANEST_REPLIER_RT_MAILBOX: exanest_rt_mailbox_taken(&fpga->rt_mailbox); return;
    case EXANEST_REPLIER_SYSTEM_MAILBOX:
        exanest_system_mailbox_taken(&fpga->system_mailbox);
        return;
    case EXANEST_REPLIER_COUNT: break;
    }
    UNREACHABLE("a replier outside its enum");
}

/* The shared port: once a header was shown, its packet is finished first. */
static bool offer_reply(struct exanest_fpga *fpga, struct exanest_beat *beat)
{
    if (fpga->replying) {
        return offer_of(fpga, fpga->replier, beat);
    }
    if (exanest_replies_idle(&fpga->receiver.replies) &&
        exanest_replies_idle(&fpga->rt_mailbox.replies) &&
        exanest_replies_idle(&fpga->system_mailbox.replies)) {
        return false;
    }
    for (uint32_t i = 1; i <= EXANEST_REPLIER_COUNT; i++) {
        const uint32_t replier = (fpga->replier + i) % EXANEST_REPLIER_COUNT;
        if (offer_of(fpga, replier, beat)) {
            fpga->replier = (uint8_t)replier;
            fpga->replying = true;
            return true;
        }
    }
    return false;
}

/* The input whose way a packet goes. */
static uint32_t way_of(struct exanest_fpga *fpga, uint32_t port)
{
    const uint32_t second = fpga->routing.second_input;
    if (!fpga->sprays || (port != EXANEST_PORT_RDMA && port != second)) {
        return port;
    }
    fpga->sprayed = !fpga->sprayed;
    return fpga->sprayed ? second : EXANEST_PORT_RDMA;
}

/* A header that is shown for the first time: where to? */
static void look(struct exanest_fpga *fpga, uint32_t port, struct exanest_offer *offer)
{
    if (offer->beat.part != EXANEST_HEADER) {
        return;
    }
    const struct exanest_route route =
        exanest_route_word(&fpga->routing, way_of(fpga, port), offer->beat.word);
    fpga->counters.routes[route.verdict]++;
    offer->output = route.port;
}

static bool offer_at(struct exanest_fpga *fpga, uint32_t port, struct exanest_beat *beat)
{
    if (port == fpga->routing.dead_port) {
        *beat = fpga->loop;
        return fpga->looped;
    }
    switch (port) {
    case EXANEST_PORT_RDMA: return exanest_exadma_offer(&fpga->exadma, 0, beat);
    case EXANEST_PORT_PACKETIZER: return exanest_packetizer_offer(&fpga->packetizer, beat);
    case EXANEST_PORT_ZDMA: return exanest_zdma_offer(&fpga->zdma, beat);
    case EXANEST_PORT_ACKNOWLEDGEMENTS: return offer_reply(fpga, beat);
    default: break;
    }
    if (port == fpga->routing.second_input) {
        return exanest_exadma_offer(&fpga->exadma, 1, beat);
    }
    if (is_link_port(port)) {
        const struct exanest_cable *cable = &fpga->cables[port];
        return exanest_deserializer_offer(exanest_link_out(cable->link, cable->end), beat);
    }
    return exanest_router_offer(fpga->router, port - EXANEST_PORT_ROUTER_0, beat);
}

static void taken_at(struct exanest_fpga *fpga, uint32_t port, const struct exanest_beat *beat)
{
    if (port == fpga->routing.dead_port) {
        fpga->looped = false;
        return;
    }
    switch (port) {
    case EXANEST_PORT_RDMA: exanest_exadma_taken(&fpga->exadma, 0); return;
    case EXANEST_PORT_PACKETIZER: exanest_packetizer_taken(&fpga->packetizer); return;
    case EXANEST_PORT_ZDMA: exanest_zdma_taken(&fpga->zdma); return;
    case EXANEST_PORT_ACKNOWLEDGEMENTS: reply_taken(fpga, beat); return;
    default: break;
    }
    if (port == fpga->routing.second_input) {
        exanest_exadma_taken(&fpga->exadma, 1);
        return;
    }
    if (is_link_port(port)) {
        const struct exanest_cable *cable = &fpga->cables[port];
        exanest_deserializer_taken(exanest_link_out(cable->link, cable->end));
        return;
    }
    exanest_router_taken(fpga->router, port - EXANEST_PORT_ROUTER_0);
}

/* Inputs that may have something. */
static uint32_t inputs(const struct exanest_fpga *fpga)
{
    uint32_t ports = fpga->standing;
    if (fpga->looped) {
        ports |= 1u << fpga->routing.dead_port;
    }
    if (fpga->zdma.outlet != EXANEST_ZDMA_NOTHING) {
        ports |= 1u << EXANEST_PORT_ZDMA;
    }
    if (fpga->router != NULL) {
        const uint32_t locals = (1u << EXANEST_ROUTER_LOCALS) - 1;
        ports |= (exanest_router_active(fpga->router) & locals) << EXANEST_PORT_ROUTER_0;
    }
    return ports;
}

/* Only those inputs are asked whose last beat was taken: the others still show it (3.2.4). */
static void collect_offers(struct exanest_fpga *fpga)
{
    for (uint32_t left = inputs(fpga) & ~fpga->shown; left != 0; left &= left - 1) {
        const uint32_t port = (uint32_t)__builtin_ctz(left);
        struct exanest_offer *offer = &fpga->offers[port];
        if (offer_at(fpga, port, &offer->beat)) {
            look(fpga, port, offer);
            fpga->shown |= 1u << port;
        }
    }
}

/* -- Memory -------------------------------------------------------------------------------------*/

static void step_reads(struct exanest_fpga *fpga)
{
    struct exanest_memory_read read;
    struct exanest_read_beat beat;
    if (exanest_exadma_next_read(&fpga->exadma, &read)) {
        const uint16_t pdid = fpga->exadma.scheduler.pdids[read.axi_id];
        exanest_memory_on_read(&fpga->memory, pdid, &read);
    }
    if (exanest_exadma_read_ready(&fpga->exadma) &&
        exanest_memory_next_beat(&fpga->memory, &beat)) {
        exanest_exadma_on_read_beat(&fpga->exadma, &beat);
    }
}

/* Two runs have to agree on each word in memory, on its place, and when it came. */
static void write_memory(struct exanest_fpga *fpga, uint32_t port,
                         const struct exanest_memory_write *write)
{
    note(fpga, write->va << 16 | write->lanes, write->word);
    exanest_memory_on_write(&fpga->memory, port, write);
}

static void step_writes(struct exanest_fpga *fpga)
{
    struct exanest_memory_write write;
    enum exanest_axi_response response;
    if (!exanest_receiver_idle(&fpga->receiver) &&
        exanest_receiver_next_write(&fpga->receiver, &write)) {
        write_memory(fpga, RECEIVER_WRITES, &write);
    }
    if (!exanest_system_mailbox_idle(&fpga->system_mailbox) &&
        exanest_system_mailbox_next_write(&fpga->system_mailbox, &write)) {
        write_memory(fpga, SYSTEM_WRITES, &write);
    }
    if (exanest_memory_idle(&fpga->memory)) {
        return;
    }
    while (exanest_memory_next_response(&fpga->memory, RECEIVER_WRITES, &response)) {
        exanest_receiver_on_write_response(&fpga->receiver, response);
    }
    while (exanest_memory_next_response(&fpga->memory, SYSTEM_WRITES, &response)) {
        exanest_system_mailbox_on_write_response(&fpga->system_mailbox, response);
    }
}

/* The old engine and its two ports of the memory. */
static void step_zdma(struct exanest_fpga *fpga)
{
    struct exanest_memory_read read;
    struct exanest_read_beat beat;
    struct exanest_memory_write write;
    enum exanest_axi_response response;
    if (exanest_memory_read_ready(&fpga->memory, EXANEST_ZDMA_READS) &&
        exanest_zdma_next_read(&fpga->zdma, &read)) {
        read.axi_id = EXANEST_ZDMA_READS;
        exanest_memory_on_read(&fpga->memory, fpga->zdma.transfer.pdid, &read);
    }
    if (exanest_memory_next_zdma_beat(&fpga->memory, &beat)) {
        exanest_zdma_on_read_beat(&fpga->zdma, &beat);
    }
    if (exanest_zdma_next_write(&fpga->zdma, &write)) {
        write_memory(fpga, ZDMA_WRITES, &write);
    }
    while (exanest_memory_next_response(&fpga->memory, ZDMA_WRITES, &response)) {
        exanest_zdma_on_write_response(&fpga->zdma, response);
    }
    exanest_zdma_step(&fpga->zdma);
}

/* -- Watching -----------------------------------------------------------------------------------*/

/* Watches the words that the crossbar has taken from the send unit, and the receiver's verdicts. */
static void watch(struct exanest_fpga *fpga, uint32_t taken)
{
    const struct exanest_offer *offers = fpga->offers;
    const uint32_t second = fpga->routing.second_input;
    if ((taken >> EXANEST_PORT_RDMA & 1) != 0) {
        exanest_lane_take_beat(&fpga->watch->sends[0], &offers[EXANEST_PORT_RDMA].beat);
    }
    if (second != EXANEST_NO_PORT && (taken >> second & 1) != 0) {
        exanest_lane_take_beat(&fpga->watch->sends[1], &offers[second].beat);
    }
    exanest_watch_contexts(fpga->watch, &fpga->receiver);
}

#define STEP(fpga, unit)                                                                           \
    do {                                                                                           \
        if (!exanest_##unit##_idle(&(fpga)->unit)) {                                               \
            exanest_##unit##_step(&(fpga)->unit);                                                  \
        }                                                                                          \
    } while (0)

/* Units that are idle need no steps: their own clocks stand meanwhile. */
static void step_units(struct exanest_fpga *fpga)
{
    exanest_memory_step(&fpga->memory);
    STEP(fpga, exadma);
    STEP(fpga, receiver);
    STEP(fpga, rt_mailbox);
    STEP(fpga, system_mailbox);
    STEP(fpga, packetizer);
}

/* -- Cycles -------------------------------------------------------------------------------------*/

uint32_t exanest_fpga_step(struct exanest_fpga *fpga)
{
    const uint32_t ready = give_all(fpga);
    step_misuse(fpga);
    collect_offers(fpga);
    const uint32_t taken = exanest_crossbar_step(&fpga->crossbar, fpga->shown, fpga->offers, ready);
    for (uint32_t left = taken; left != 0; left &= left - 1) {
        const uint32_t port = (uint32_t)__builtin_ctz(left);
        taken_at(fpga, port, &fpga->offers[port].beat);
    }
    fpga->shown &= ~taken;
    step_reads(fpga);
    step_writes(fpga);
    if (!exanest_zdma_idle(&fpga->zdma)) {
        step_zdma(fpga);
    }
    step_units(fpga);
    fpga->counters.cycles++;
    if (UNLIKELY(fpga->watch != NULL)) {
        watch(fpga, taken);
    }
    return (taken | ready) & fpga->linked;
}

void exanest_fpga_notice(struct exanest_fpga *fpga, uint32_t process)
{
    struct sim_event *program = process < EXANEST_AXI_IDS ? fpga->programs[process] : NULL;
    if (program != NULL && !sim_event_scheduled(program)) {
        sim_after(fpga->sim, program, 0);
    }
}

static void call_programs(struct exanest_fpga *fpga)
{
    const struct exanest_packetizer *packetizer = &fpga->packetizer;
    const uint32_t sent = packetizer->count > 0 ? 1u << packetizer->last : 0;
    const uint16_t busy = (uint16_t)(packetizer->ready | packetizer->timed | sent);
    const bool freed = (fpga->busy & ~busy) != 0;
    fpga->busy = busy;
    if (fpga->memory.watched == fpga->noticed && !freed) {
        return;
    }
    fpga->noticed = fpga->memory.watched;
    for (uint32_t process = 0; process < EXANEST_AXI_IDS; process++) {
        exanest_fpga_notice(fpga, process);
    }
}

void exanest_fpga_call(struct exanest_fpga *fpga)
{
    struct sim *sim = fpga->sim;
    const struct exanest_rt_mailbox *mailbox = &fpga->rt_mailbox;
    if (fpga->attention != NULL && !sim_event_scheduled(fpga->attention) &&
        (mailbox->responses > 0 || (fpga->attends_requests && mailbox->requests > 0))) {
        sim_after(sim, fpga->attention, 0);
    }
    if (fpga->faulted != NULL && fpga->memory.fault_head != fpga->memory.fault_tail &&
        !sim_event_scheduled(fpga->faulted)) {
        sim_after(sim, fpga->faulted, 0);
    }
    call_programs(fpga);
    if (fpga->receiver.table.used > 0 && !sim_event_scheduled(&fpga->ageing)) {
        sim_after(sim, &fpga->ageing, fpga->age_ps);
    }
}

bool exanest_fpga_idle(const struct exanest_fpga *fpga)
{
    return exanest_crossbar_idle(&fpga->crossbar) && exanest_exadma_idle(&fpga->exadma) &&
           exanest_memory_idle(&fpga->memory) && exanest_receiver_idle(&fpga->receiver) &&
           exanest_rt_mailbox_idle(&fpga->rt_mailbox) &&
           exanest_system_mailbox_idle(&fpga->system_mailbox) &&
           exanest_packetizer_idle(&fpga->packetizer) && exanest_zdma_idle(&fpga->zdma) &&
           !fpga->looped && misuse_idle(fpga);
}
