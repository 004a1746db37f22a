/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/router.h"

#define WORD_HUNDREDTHS 100u /* A cycle: the pace of local ports. */

static const uint8_t size_limits[EXANEST_ROUTER_DIMENSIONS] = {128, 128, 64};

struct exanest_router_config exanest_router_default(uint8_t x, uint8_t y, uint8_t size_x,
                                                    uint8_t size_y)
{
    return (struct exanest_router_config){
        .own = {x, y, 0},
        .size = {size_x, size_y, 1},
        .channels = EXANEST_ROUTER_CHANNELS_MAX,
        .local_slots = EXANEST_ROUTER_LOCAL_SLOTS,
        .remote_slots = EXANEST_ROUTER_REMOTE_SLOTS,
        .latency = EXANEST_ROUTER_LATENCY,
        .word_hundredths = EXANEST_ROUTER_WORD,
        .gap_hundredths = EXANEST_ROUTER_GAP * 100,
    };
}

/* Ports of dimensions in use; those of unused ones between them are counted. */
static uint32_t ports_of(const struct exanest_router_config *config)
{
    uint32_t ports = EXANEST_ROUTER_LOCALS;
    for (uint32_t d = 0; d < EXANEST_ROUTER_DIMENSIONS; d++) {
        if (config->size[d] > 1) {
            ports = EXANEST_ROUTER_LOCALS + 2 * (d + 1);
        }
    }
    return ports;
}

static uint32_t slots_of(const struct exanest_router_config *config, uint32_t lane)
{
    if (lane < EXANEST_ROUTER_LOCALS) {
        return config->local_slots;
    }
    return lane % EXANEST_ROUTER_CHANNELS_MAX < config->channels ? config->remote_slots : 0;
}

static uint32_t slots_in_all(const struct exanest_router_config *config)
{
    const uint32_t lanes = exanest_router_lanes(ports_of(config));
    uint32_t slots = 0;
    for (uint32_t lane = 0; lane < lanes; lane++) {
        slots += slots_of(config, lane);
    }
    return slots;
}

size_t exanest_router_bytes(const struct exanest_router_config *config)
{
    return (size_t)slots_in_all(config) *
           (sizeof(struct exanest_router_packet) + sizeof(struct exanest_router_wait));
}

static void check_config(const struct exanest_router_config *config)
{
    for (uint32_t d = 0; d < EXANEST_ROUTER_DIMENSIONS; d++) {
        CHECK(config->size[d] >= 1 && config->size[d] <= size_limits[d]);
        CHECK(config->own[d] < config->size[d]);
    }
    CHECK(config->channels >= 1 && config->channels <= EXANEST_ROUTER_CHANNELS_MAX);
    CHECK(config->local_slots >= 1 && config->local_slots <= EXANEST_ROUTER_SLOTS_MAX);
    CHECK(config->remote_slots >= 1 && config->remote_slots <= EXANEST_ROUTER_SLOTS_MAX);
    CHECK(config->latency >= 1 && config->word_hundredths >= WORD_HUNDREDTHS);
}

void exanest_router_init(struct exanest_router *router, const struct exanest_router_config *config,
                         void *memory)
{
    check_config(config);
    *router = (struct exanest_router){
        .channels = config->channels,
        .ports = (uint8_t)ports_of(config),
        .one_local_port = config->one_local_port,
        .latency = config->latency,
        .word_hundredths = config->word_hundredths,
        .gap_hundredths = config->gap_hundredths,
        .wait_places = (uint16_t)slots_in_all(config),
    };
    for (uint32_t d = 0; d < EXANEST_ROUTER_DIMENSIONS; d++) {
        router->own[d] = config->own[d];
        router->size[d] = config->size[d];
    }
    struct exanest_router_packet *packets = memory;
    for (uint32_t lane = 0; lane < exanest_router_lanes(router->ports); lane++) {
        router->lanes[lane].packets = packets;
        router->lanes[lane].slots = (uint8_t)slots_of(config, lane);
        packets += router->lanes[lane].slots;
    }
    router->waits = (struct exanest_router_wait *)(void *)packets;
    for (uint32_t port = 0; port < router->ports; port++) {
        struct exanest_router_output *output = &router->outputs[port];
        output->last = EXANEST_ROUTER_LANES_MAX - 1;
        for (uint32_t channel = 0; channel < config->channels; channel++) {
            output->credits[channel] = config->remote_slots;
        }
    }
}

/* -- Ways ---------------------------------------------------------------------------------------*/

/* The dimension of a remote port's ring. */
static uint32_t dimension_of(uint32_t port)
{
    return (port - EXANEST_ROUTER_LOCALS) / 2;
}

bool exanest_router_route(const struct exanest_router *router, uint32_t input, uint32_t arrived,
                          struct exanest_place place, uint32_t *output, uint32_t *channel)
{
    const uint32_t to[EXANEST_ROUTER_DIMENSIONS] = {place.x, place.y, place.z};
    for (uint32_t d = 0; d < EXANEST_ROUTER_DIMENSIONS; d++) {
        if (to[d] >= router->size[d]) {
            return false;
        }
    }
    for (uint32_t d = 0; d < EXANEST_ROUTER_DIMENSIONS; d++) {
        const uint32_t size = router->size[d], own = router->own[d];
        const uint32_t upwards = (to[d] + size - own) % size;
        if (upwards == 0) {
            continue;
        }
        /* Half the ring: both ways are as short, and each gets half of the pairs. */
        const bool is_up =
            2 * upwards < size || (2 * upwards == size && (own + place.fpga) % 2 == 0);
        const bool crosses = own == (is_up ? size - 1 : 0);
        const bool goes_on = input >= EXANEST_ROUTER_LOCALS && dimension_of(input) == d;
        *output = EXANEST_ROUTER_LOCALS + 2 * d + !is_up;
        *channel = router->channels > 1 && (crosses || (goes_on && arrived == 1));
        return true;
    }
    *output = router->one_local_port ? 0 : place.fpga;
    *channel = 0;
    return true;
}

/* -- In -----------------------------------------------------------------------------------------*/

bool exanest_router_ready(const struct exanest_router *router, uint32_t port,
                          const struct exanest_beat *beat)
{
    CHECK(port < router->ports);
    if (port >= EXANEST_ROUTER_LOCALS || beat->part != EXANEST_HEADER) {
        return true;
    }
    return router->lanes[port].count < router->lanes[port].slots;
}

/* A slot that a neighbour may use is free. */
static void owe_credit(struct exanest_router *router, uint32_t port, uint32_t channel)
{
    if (port >= EXANEST_ROUTER_LOCALS) {
        router->owed[port][channel]++;
        router->credits_due |= (uint16_t)(1u << port);
    }
}

/* May a packet come in by this port and channel? */
static bool admit(struct exanest_router *router, uint32_t port, uint32_t channel)
{
    if (port < EXANEST_ROUTER_LOCALS) {
        return true;
    }
    if (channel >= router->channels) {
        router->counters.wrong_channels++;
        return false;
    }
    const struct exanest_router_lane *lane = &router->lanes[exanest_router_lane(port, channel)];
    if (lane->count + router->owed[port][channel] >= lane->slots) {
        router->counters.overruns++;
        return false;
    }
    return true;
}

/* Where a packet goes; false if it cannot be told. */
static bool judge_header(struct exanest_router *router, uint32_t port,
                         const struct exanest_beat *beat, uint32_t *output, uint32_t *channel)
{
    struct exanest_header header;
    if (exanest_header_decode(beat->word, &header) != EXANEST_GOOD) {
        router->counters.bad_headers++;
        return false;
    }
    if (!exanest_router_route(router, port, beat->channel, exanest_place(header.target.coordinate),
                              output, channel)) {
        router->counters.outside++;
        return false;
    }
    return true;
}

static void append_packet(struct exanest_router *router, uint32_t lane_number, uint32_t output,
                          uint32_t channel)
{
    struct exanest_router_lane *lane = &router->lanes[lane_number];
    if (lane->count == 0) {
        lane->head = 0; /* An empty lane begins where its memory was used last: in the cache. */
    }
    struct exanest_router_packet *packet =
        &lane->packets[((uint32_t)lane->head + lane->count) % lane->slots];
    packet->output = (uint8_t)output;
    packet->channel = (uint8_t)channel;
    packet->written = packet->read = 0;
    packet->whole = packet->has_footer = false;
    lane->count++;
    router->packets++;

    const uint32_t place = (uint32_t)router->wait_head + router->wait_count++;
    router->waits[place < router->wait_places ? place : place - router->wait_places] =
        (struct exanest_router_wait){
            .due = (uint32_t)router->now + router->latency,
            .lane = (uint8_t)lane_number,
        };
}

/* Returns whether the packet is kept. */
static bool begin_packet(struct exanest_router *router, uint32_t port,
                         const struct exanest_beat *beat)
{
    CHECK(beat->part == EXANEST_HEADER);
    uint32_t output, channel;
    if (!admit(router, port, beat->channel)) {
        return false;
    }
    if (!judge_header(router, port, beat, &output, &channel)) {
        owe_credit(router, port, beat->channel);
        return false;
    }
    router->open_lane[port] = (uint8_t)exanest_router_lane(port, beat->channel);
    append_packet(router, router->open_lane[port], output, channel);
    return true;
}

void exanest_router_take(struct exanest_router *router, uint32_t port,
                         const struct exanest_beat *beat)
{
    INVARIANTS(exanest_router_check(router));
    CHECK(exanest_router_ready(router, port, beat));
    const uint16_t bit = (uint16_t)(1u << port);
    if ((router->open & bit) == 0) {
        router->open |= bit;
        if (!begin_packet(router, port, beat)) {
            router->dropping |= bit;
        }
    }
    if ((router->dropping & bit) == 0) {
        struct exanest_router_lane *lane = &router->lanes[router->open_lane[port]];
        struct exanest_router_packet *packet =
            &lane->packets[((uint32_t)lane->head + lane->count - 1) % lane->slots];
        CHECK(packet->written < EXANEST_PACKET_WORDS_MAX);
        packet->words[packet->written++] = beat->word;
        packet->written_at = (uint32_t)router->now;
        packet->whole = beat->last;
        packet->has_footer = beat->part == EXANEST_FOOTER;
    }
    if (beat->last) {
        router->open &= (uint16_t)~bit;
        router->dropping &= (uint16_t)~bit;
    }
    INVARIANTS(exanest_router_check(router));
}

void exanest_router_on_credit(struct exanest_router *router, uint32_t port, uint32_t channel)
{
    CHECK(port >= EXANEST_ROUTER_LOCALS && port < router->ports);
    /* The neighbour's lanes have as many slots as ours: all routers are configured alike. */
    if (channel >= EXANEST_ROUTER_CHANNELS_MAX || channel >= router->channels ||
        router->outputs[port].credits[channel] >=
            router->lanes[exanest_router_lane(port, channel)].slots) {
        router->counters.wrong_credits++;
        return;
    }
    router->outputs[port].credits[channel]++;
}

/* -- Through ------------------------------------------------------------------------------------*/

static const struct exanest_router_packet *head_of(const struct exanest_router_lane *lane)
{
    return &lane->packets[lane->head];
}

/* The head of the lane asks for its output. */
static void request(struct exanest_router *router, uint32_t lane)
{
    const struct exanest_router_packet *packet = head_of(&router->lanes[lane]);
    router->outputs[packet->output].requests[packet->channel] |= 1u << lane;
    router->wanted |= (uint16_t)(1u << packet->output);
}

static void ripen(struct exanest_router *router)
{
    while (router->wait_count > 0) {
        const struct exanest_router_wait *wait = &router->waits[router->wait_head];
        if (wait->due != (uint32_t)router->now) {
            CHECK((int32_t)(wait->due - (uint32_t)router->now) > 0);
            return;
        }
        router->wait_count--;
        router->wait_head =
            (uint16_t)(router->wait_head + 1u == router->wait_places ? 0 : router->wait_head + 1u);
        if (router->lanes[wait->lane].ripe++ == 0) {
            request(router, wait->lane);
        }
    }
}

/* The first of `lanes` behind `last`, cyclically. */
static uint32_t round_robin(uint32_t lanes, uint32_t last)
{
    const uint32_t behind = lanes & (UINT32_MAX << 1 << last);
    return (uint32_t)__builtin_ctz(behind != 0 ? behind : lanes);
}

/* Chooses the packet that leaves next by a port that is free, if one may. */
static void grant(struct exanest_router *router, uint32_t port)
{
    struct exanest_router_output *output = &router->outputs[port];
    const bool is_local = port < EXANEST_ROUTER_LOCALS;
    uint32_t lanes = is_local || output->credits[0] > 0 ? output->requests[0] : 0;
    lanes |= output->credits[1] > 0 ? output->requests[1] : 0;
    if (lanes == 0) {
        return;
    }
    const uint32_t lane = round_robin(lanes, output->last);
    const uint32_t channel = head_of(&router->lanes[lane])->channel;
    output->last = output->lane = (uint8_t)lane;
    output->requests[channel] &= ~(1u << lane);
    output->credits[channel] = (uint8_t)(output->credits[channel] - !is_local);
    router->active |= (uint16_t)(1u << port);
    if ((output->requests[0] | output->requests[1]) == 0) {
        router->wanted &= (uint16_t) ~(1u << port);
    }
}

void exanest_router_step(struct exanest_router *router)
{
    INVARIANTS(exanest_router_check(router));
    router->now++;
    ripen(router);
    uint32_t free = router->wanted & ~(uint32_t)router->active;
    while (free != 0) {
        const uint32_t port = (uint32_t)__builtin_ctz(free);
        free &= free - 1;
        if (router->outputs[port].due <= router->now * 100) {
            grant(router, port);
        }
    }
    INVARIANTS(exanest_router_check(router));
}

/* -- Out ----------------------------------------------------------------------------------------*/

bool exanest_router_offer(const struct exanest_router *router, uint32_t port,
                          struct exanest_beat *beat)
{
    if ((router->active >> port & 1) == 0) {
        return false;
    }
    const struct exanest_router_output *output = &router->outputs[port];
    if (output->due > router->now * 100) {
        return false; /* Before the packet is touched: in a large torus it is in no cache. */
    }
    const struct exanest_router_packet *packet = head_of(&router->lanes[output->lane]);
    const bool is_new = packet->read + 1 == packet->written &&
                        packet->written_at == (uint32_t)router->now; /* For the next cycle. */
    if (packet->read == packet->written || is_new) {
        return false;
    }
    const bool last = packet->whole && packet->read + 1 == packet->written;
    *beat = (struct exanest_beat){
        .part = packet->read == 0            ? EXANEST_HEADER
                : last && packet->has_footer ? EXANEST_FOOTER
                                             : EXANEST_PAYLOAD,
        .last = last,
        .channel = packet->channel,
        .word = packet->words[packet->read],
    };
    return true;
}

/* The head of the lane has left. */
static void finish_packet(struct exanest_router *router, uint32_t port, uint32_t lane_number)
{
    struct exanest_router_lane *lane = &router->lanes[lane_number];
    lane->head = (uint8_t)(lane->head + 1u == lane->slots ? 0 : lane->head + 1u);
    lane->count--;
    lane->ripe--;
    router->packets--;
    router->counters.packets++;
    router->active &= (uint16_t) ~(1u << port);
    if (lane->ripe > 0) {
        request(router, lane_number);
    }
    if (lane_number >= EXANEST_ROUTER_LOCALS) {
        const uint32_t remote = lane_number - EXANEST_ROUTER_LOCALS;
        owe_credit(router, EXANEST_ROUTER_LOCALS + remote / EXANEST_ROUTER_CHANNELS_MAX,
                   remote % EXANEST_ROUTER_CHANNELS_MAX);
    }
}

void exanest_router_taken(struct exanest_router *router, uint32_t port)
{
    INVARIANTS(exanest_router_check(router));
    struct exanest_router_output *output = &router->outputs[port];
    struct exanest_router_lane *lane = &router->lanes[output->lane];
    struct exanest_router_packet *packet = &lane->packets[lane->head];
    CHECK((router->active >> port & 1) != 0 && packet->read < packet->written);
    packet->read++;
    router->counters.words++;
    const bool is_local = port < EXANEST_ROUTER_LOCALS;
    const bool last = packet->whole && packet->read == packet->written;
    const uint64_t now = router->now * 100;
    /* A word that is late by a part of a cycle, only because cycles are whole, is not late. */
    const uint64_t from = output->due + 100 > now ? output->due : now;
    output->due = from + (is_local ? WORD_HUNDREDTHS : router->word_hundredths) +
                  (last && !is_local ? router->gap_hundredths : 0);
    router->busy_until = output->due > router->busy_until ? output->due : router->busy_until;
    if (last) {
        finish_packet(router, port, output->lane);
    }
    INVARIANTS(exanest_router_check(router));
}

bool exanest_router_next_credit(struct exanest_router *router, uint32_t port, uint32_t *channel)
{
    for (uint32_t c = 0; c < router->channels; c++) {
        if (router->owed[port][c] > 0) {
            router->owed[port][c]--;
            *channel = c;
            return true;
        }
    }
    router->credits_due &= (uint16_t) ~(1u << port);
    return false;
}
