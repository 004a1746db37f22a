/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/exanest/exaurora.h"

#define PS_PER_US 1000000u

/* -- The line -----------------------------------------------------------------------------------*/

struct exanest_line exanest_line_gap(uint32_t cycles, uint32_t datapath_mhz, uint32_t link_mbps)
{
    return (struct exanest_line){
        .half_ps = 64 * PS_PER_US / link_mbps,
        .packet_ps = cycles * PS_PER_US / datapath_mhz,
        .flow_ps = EXANEST_FLOW_PS,
    };
}

struct exanest_line exanest_line_aurora(uint32_t link_mbps)
{
    const uint32_t block_ps = 66 * PS_PER_US / link_mbps;
    return (struct exanest_line){
        .half_ps = block_ps,
        .packet_ps = block_ps, /* The separator block. */
        .flow_ps = EXANEST_FLOW_PS,
        .compensation_every_ps = (EXANEST_AURORA_BLOCKS - EXANEST_AURORA_STOPPED) * block_ps,
        .compensation_ps = EXANEST_AURORA_STOPPED * block_ps,
    };
}

/* -- The serializer -----------------------------------------------------------------------------*/

struct exanest_serializer_config exanest_serializer_default(void)
{
    return (struct exanest_serializer_config){
        .line = exanest_line_aurora(EXANEST_LINK_MBPS),
        .header_room = EXANEST_HEADER_ROOM,
        .fall_through = EXANEST_FIFO_FALL_THROUGH,
    };
}

void exanest_serializer_init(struct exanest_serializer *serializer,
                             const struct exanest_serializer_config *config)
{
    CHECK(config->line.half_ps > 0);
    CHECK(config->header_room >= 1 && config->header_room <= EXANEST_FIFO_WORDS);
    *serializer = (struct exanest_serializer){
        .line = config->line,
        .header_room = config->header_room,
    };
    exanest_fifo_init(&serializer->fifo, config->fall_through);
}

void exanest_serializer_send_flow(struct exanest_serializer *serializer, uint8_t flow)
{
    serializer->flow = flow;
    serializer->flow_waits = true;
}

void exanest_serializer_on_flow(struct exanest_serializer *serializer, uint8_t flow)
{
    if (flow != EXANEST_FLOW_XON && flow != EXANEST_FLOW_XOFF) {
        serializer->wrong_flows++;
        return;
    }
    serializer->stopped = flow == EXANEST_FLOW_XOFF;
}

/* Counts line time in use; returns how long the line stops now. */
static uint32_t compensation(struct exanest_serializer *serializer, uint32_t ps)
{
    const struct exanest_line *line = &serializer->line;
    if (line->compensation_every_ps == 0) {
        return 0;
    }
    serializer->since_ps += ps;
    if (serializer->since_ps < line->compensation_every_ps) {
        return 0;
    }
    serializer->since_ps -= line->compensation_every_ps;
    return line->compensation_ps;
}

/* One or two halves of the FIFO's head. */
static struct exanest_piece data_piece(struct exanest_serializer *serializer, uint32_t most)
{
    const struct exanest_beat beat = exanest_fifo_head(&serializer->fifo);
    struct exanest_piece piece = {.channel = beat.channel};
    if (serializer->half_sent) {
        piece.halves = 1;
        piece.words[0] = beat.word.high;
        serializer->half_sent = false;
    } else {
        piece.halves = most < 2 ? 1 : 2;
        piece.words[0] = beat.word.low;
        piece.words[1] = beat.word.high;
        serializer->half_sent = piece.halves == 1;
    }
    if (!serializer->half_sent) {
        exanest_fifo_pop(&serializer->fifo);
        piece.last = beat.last;
        serializer->packets += beat.last;
    }
    return piece;
}

static void exanest_serializer_check(const struct exanest_serializer *serializer)
{
    exanest_fifo_check(&serializer->fifo);
    CHECK(serializer->fifo.used <= EXANEST_FIFO_WORDS);
    CHECK(!serializer->half_sent || serializer->fifo.visible > 0);
    CHECK(serializer->line.compensation_every_ps == 0 ||
          serializer->since_ps < serializer->line.compensation_every_ps);
}

bool exanest_serializer_next(struct exanest_serializer *serializer, uint32_t most,
                             struct exanest_piece *piece)
{
    INVARIANTS(exanest_serializer_check(serializer));
    if (!exanest_serializer_due(serializer)) {
        return false;
    }
    if (serializer->flow_waits) {
        serializer->flow_waits = false;
        *piece = (struct exanest_piece){
            .is_flow = true,
            .flow = serializer->flow,
            .sent_ps = serializer->line.flow_ps,
            .free_ps = serializer->line.flow_ps,
        };
    } else {
        *piece = data_piece(serializer, most);
        piece->sent_ps = piece->halves * serializer->line.half_ps;
        piece->free_ps = piece->sent_ps + (piece->last ? serializer->line.packet_ps : 0);
    }
    piece->free_ps += compensation(serializer, piece->free_ps);
    INVARIANTS(exanest_serializer_check(serializer));
    return true;
}

/* -- The deserializer ---------------------------------------------------------------------------*/

struct exanest_deserializer_config exanest_deserializer_default(void)
{
    return (struct exanest_deserializer_config){
        .xoff_free = EXANEST_WATERMARK,
        .xon_used = EXANEST_WATERMARK,
        .fall_through = EXANEST_FIFO_FALL_THROUGH,
    };
}

void exanest_deserializer_init(struct exanest_deserializer *deserializer,
                               const struct exanest_deserializer_config *config)
{
    /* XON and XOFF have to leave room between them. */
    CHECK(config->xoff_free < EXANEST_FIFO_WORDS &&
          config->xon_used < EXANEST_FIFO_WORDS - config->xoff_free);
    *deserializer = (struct exanest_deserializer){
        .xoff_free = config->xoff_free,
        .xon_used = config->xon_used,
    };
    exanest_fifo_init(&deserializer->fifo, config->fall_through);
}

/* Takes the packet's length from the header that begins it. */
static void begin_packet(struct exanest_deserializer *deserializer, struct exanest_word word)
{
    struct exanest_header header;
    if (exanest_header_decode(word, &header) == EXANEST_GOOD) {
        deserializer->expected = (uint8_t)exanest_packet_words(&header);
        deserializer->has_footer = header.has_footer;
    } else {
        deserializer->expected = 0;
        deserializer->counters.bad_headers++;
    }
}

/* The word's part, and whether the packet has to end with it. */
static struct exanest_beat judge_word(const struct exanest_deserializer *deserializer,
                                      struct exanest_word word, bool last)
{
    const uint32_t seen = deserializer->seen + 1u;
    const uint32_t expected = deserializer->expected;
    const uint32_t most = expected != 0 ? expected : EXANEST_PACKET_WORDS_MAX;
    struct exanest_beat beat = {.word = word, .last = last || seen == most};
    if (seen == 1) {
        beat.part = EXANEST_HEADER;
    } else if (beat.last && (expected == 0 || deserializer->has_footer)) {
        beat.part = EXANEST_FOOTER;
    } else {
        beat.part = EXANEST_PAYLOAD;
    }
    return beat;
}

/* The FIFO is full. The packet's beginning is in it: a word that no footer can be closes it. */
static void lose_word(struct exanest_deserializer *deserializer, uint8_t channel)
{
    deserializer->counters.lost++;
    if (deserializer->seen == 0 || deserializer->skipping) {
        return;
    }
    const struct exanest_beat mark = {
        .part = EXANEST_FOOTER,
        .last = true,
        .channel = channel,
        .word = {UINT64_MAX, UINT64_MAX}, /* Reserved bits are set. */
    };
    exanest_fifo_put(&deserializer->fifo, &mark);
    deserializer->counters.cut++;
}

static void put_word(struct exanest_deserializer *deserializer, struct exanest_word word,
                     const struct exanest_piece *piece)
{
    if (deserializer->seen == 0 && !deserializer->skipping) {
        begin_packet(deserializer, word);
    }
    if (deserializer->fifo.used >= EXANEST_FIFO_WORDS) {
        lose_word(deserializer, piece->channel);
        deserializer->skipping = true;
    }
    if (!deserializer->skipping) {
        struct exanest_beat beat = judge_word(deserializer, word, piece->last);
        beat.channel = piece->channel;
        exanest_fifo_put(&deserializer->fifo, &beat);
        deserializer->seen++;
        deserializer->counters.words++;
        deserializer->counters.packets += beat.last;
        deserializer->counters.misframed +=
            beat.last && deserializer->expected != 0 &&
            (!piece->last || deserializer->seen != deserializer->expected);
        deserializer->skipping = beat.last && !piece->last;
    }
    if (piece->last) {
        deserializer->seen = 0;
        deserializer->skipping = false;
    }
}

static void exanest_deserializer_check(const struct exanest_deserializer *deserializer)
{
    exanest_fifo_check(&deserializer->fifo);
    CHECK(deserializer->seen < EXANEST_PACKET_WORDS_MAX || deserializer->skipping);
    CHECK(deserializer->expected == 0 || deserializer->seen <= deserializer->expected);
    CHECK(deserializer->peak <= EXANEST_FIFO_PLACES);
}

void exanest_deserializer_on_piece(struct exanest_deserializer *deserializer,
                                   const struct exanest_piece *piece)
{
    INVARIANTS(exanest_deserializer_check(deserializer));
    CHECK(!piece->is_flow && piece->halves >= 1 && piece->halves <= 2);
    struct exanest_word word = {piece->words[0], piece->words[1]};
    if (piece->halves == 1) {
        if (!deserializer->has_half) {
            deserializer->half = piece->words[0];
            deserializer->has_half = true;
            return;
        }
        word = (struct exanest_word){deserializer->half, piece->words[0]};
        deserializer->has_half = false;
    }
    CHECK(!deserializer->has_half); /* The serializer keeps the halves of a word together. */
    put_word(deserializer, word, piece);
    if (deserializer->fifo.used > deserializer->peak) {
        deserializer->peak = deserializer->fifo.used;
    }
    INVARIANTS(exanest_deserializer_check(deserializer));
}

void exanest_deserializer_step(struct exanest_deserializer *deserializer)
{
    INVARIANTS(exanest_deserializer_check(deserializer));
    exanest_fifo_step(&deserializer->fifo);
    const uint32_t used = deserializer->fifo.used;
    if (deserializer->off) {
        deserializer->off = used > deserializer->xon_used;
    } else if (used + deserializer->xoff_free >= EXANEST_FIFO_WORDS) {
        deserializer->off = true;
        deserializer->counters.stops++;
    }
}

bool exanest_deserializer_next_flow(struct exanest_deserializer *deserializer, uint8_t *flow)
{
    if (deserializer->off == deserializer->told_off) {
        return false;
    }
    deserializer->told_off = deserializer->off;
    *flow = deserializer->off ? EXANEST_FLOW_XOFF : EXANEST_FLOW_XON;
    return true;
}
