/* SPDX-License-Identifier: BSD-2-Clause */
#include "sim/pattern.h"

#include <stdlib.h>
#include <string.h>

#include "sim/text.h"
#include "sim/topology.h"

#define DIMENSIONS_MAX 18u

/* The arguments with which a named pattern is opened. */
struct request {
    struct pattern *pattern;
    struct text_word arguments; /* Behind the name's ':'. */
    struct prng *prng;
    uint32_t bits; /* The number of nodes is 2^bits, if it is that. */
    uint32_t sizes[DIMENSIONS_MAX], dimensions;
    char *error;
    size_t error_bytes;
};

/* -- Maps by the bits of a node's number --------------------------------------------------------*/

static uint32_t bit_reverse(const struct request *request, uint32_t self)
{
    uint32_t reverse = 0;
    for (uint32_t bit = 0; bit < request->bits; bit++) {
        reverse = reverse << 1 | (self >> bit & 1);
    }
    return reverse;
}

static uint32_t bit_complement(const struct request *request, uint32_t self)
{
    return request->pattern->nodes - 1 - self;
}

/* As two halves of a pack of cards are pushed into each other: the bits turn left by one. */
static uint32_t shuffle(const struct request *request, uint32_t self)
{
    const uint32_t turned = self << 1 | self >> (request->bits - 1);
    return turned & (request->pattern->nodes - 1);
}

/* -- Other maps ---------------------------------------------------------------------------------*/

static uint32_t side_of(uint32_t nodes)
{
    uint32_t side = 1;
    while (side * side < nodes) {
        side++;
    }
    return side;
}

/* Row and column of a square are exchanged. For a power of 4 those are halves of the bits. */
static uint32_t transpose(const struct request *request, uint32_t self)
{
    const uint32_t side = request->sizes[0];
    return self % side * side + self / side;
}

/* Moves on in every dimension, by one or by just under half way round. */
static uint32_t move_on(const struct request *request, uint32_t self, bool half)
{
    uint32_t destination = 0, stride = 1;
    for (uint32_t i = 0; i < request->dimensions; i++) {
        const uint32_t size = request->sizes[i];
        const uint32_t step = half ? (size + 1) / 2 - 1 : 1;
        destination += (self % size + step) % size * stride;
        stride *= size;
        self /= size;
    }
    return destination;
}

static uint32_t tornado(const struct request *request, uint32_t self)
{
    return move_on(request, self, true);
}

static uint32_t neighbour(const struct request *request, uint32_t self)
{
    return move_on(request, self, false);
}

/* -- Opening ------------------------------------------------------------------------------------*/

static void take_map(struct pattern *pattern)
{
    pattern->kind = PATTERN_MAP;
    pattern->map = calloc(pattern->nodes, sizeof(pattern->map[0]));
    CHECK(pattern->map != NULL);
}

static bool is_deranged(const uint32_t *map, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (map[i] == i) {
            return false;
        }
    }
    return true;
}

/* Draws until nobody sends to itself, which takes e draws on average; so all such permutations are
 * as likely. */
static void draw_permutation(struct pattern *pattern, struct prng *prng)
{
    take_map(pattern);
    do {
        for (uint32_t i = 0; i < pattern->nodes; i++) {
            const uint32_t other = (uint32_t)prng_below(prng, i + 1);
            pattern->map[i] = pattern->map[other];
            pattern->map[other] = i;
        }
    } while (!is_deranged(pattern->map, pattern->nodes));
}

static bool open_hotspot(struct request *request)
{
    struct pattern *const pattern = request->pattern;
    struct text_word share;
    uint64_t thousandths = 0, hot = 0;
    const bool named = text_word_cut(&request->arguments, ',', &share);
    if (!text_word_thousandths(share, 1000, &thousandths) ||
        (named && !text_word_number(request->arguments, pattern->nodes - 1, &hot))) {
        return text_refuse(request->error, request->error_bytes,
                           "hotspot:SHARE[,NODE] needs a share of 0 to 1 in thousandths, and a "
                           "node below %u",
                           pattern->nodes);
    }
    pattern->kind = PATTERN_HOTSPOT;
    pattern->hot = (uint32_t)hot;
    pattern->hot_thousandths = (uint32_t)thousandths;
    return true;
}

/* Reads AxBxC; without it there is one dimension. */
static bool read_dimensions(struct request *request)
{
    const uint32_t nodes = request->pattern->nodes;
    uint64_t product = 1, size = 0;
    struct text_word word;
    bool more = true, good = true;
    if (request->arguments.length == 0) {
        request->sizes[0] = nodes;
        request->dimensions = 1;
        return true;
    }
    while (good && more && request->dimensions < DIMENSIONS_MAX) {
        more = text_word_cut(&request->arguments, 'x', &word);
        good = text_word_number(word, nodes, &size) && product * size <= nodes;
        product *= size;
        request->sizes[request->dimensions++] = (uint32_t)size;
    }
    return (good && !more && product == nodes) ||
           text_refuse(request->error, request->error_bytes,
                       "the dimensions AxBxC... must multiply to %u nodes", nodes);
}

enum needs {
    NEEDS_NOTHING,
    NEEDS_POWER_OF_TWO,
    NEEDS_SQUARE,
    NEEDS_DIMENSIONS,
};

static const struct named_map {
    const char *name;
    enum needs needs;
    uint32_t (*map)(const struct request *request, uint32_t self);
} named_maps[] = {
    {"bit-reverse", NEEDS_POWER_OF_TWO, bit_reverse},
    {"bit-complement", NEEDS_POWER_OF_TWO, bit_complement},
    {"shuffle", NEEDS_POWER_OF_TWO, shuffle},
    {"transpose", NEEDS_SQUARE, transpose},
    {"tornado", NEEDS_DIMENSIONS, tornado},
    {"neighbour", NEEDS_DIMENSIONS, neighbour},
};

static bool open_map(struct request *request, const struct named_map *named)
{
    struct pattern *const pattern = request->pattern;
    const uint32_t nodes = pattern->nodes;
    request->bits = (uint32_t)__builtin_ctz(nodes);
    if (named->needs == NEEDS_POWER_OF_TWO && nodes >> request->bits != 1) {
        return text_refuse(request->error, request->error_bytes,
                           "%s needs a power of two of nodes, not %u", named->name, nodes);
    }
    if (named->needs == NEEDS_SQUARE) {
        request->sizes[0] = side_of(nodes);
        if (request->sizes[0] * request->sizes[0] != nodes) {
            return text_refuse(request->error, request->error_bytes,
                               "%s needs a square number of nodes, not %u", named->name, nodes);
        }
    }
    if (named->needs == NEEDS_DIMENSIONS && !read_dimensions(request)) {
        return false;
    }
    take_map(pattern);
    for (uint32_t node = 0; node < nodes; node++) {
        pattern->map[node] = named->map(request, node);
    }
    return true;
}

static bool open_named(struct request *request, struct text_word name, bool has_arguments)
{
    for (size_t i = 0; i < COUNT_OF(named_maps); i++) {
        const bool may = !has_arguments ||
                         (named_maps[i].needs == NEEDS_DIMENSIONS && request->arguments.length > 0);
        if (may && text_word_is(name, named_maps[i].name)) {
            return open_map(request, &named_maps[i]);
        }
    }
    if (text_word_is(name, "hotspot") && has_arguments) {
        return open_hotspot(request);
    }
    if (text_word_is(name, "permutation") && !has_arguments) {
        draw_permutation(request->pattern, request->prng);
        return true;
    }
    return (text_word_is(name, "uniform") && !has_arguments) ||
           text_refuse(request->error, request->error_bytes, "\"%.*s\" is not " PATTERN_NAMES,
                       TEXT_WORD(name));
}

bool pattern_is_named(const char *text)
{
    const struct text_word name = {text, (uint32_t)strcspn(text, ":")};
    for (size_t i = 0; i < COUNT_OF(named_maps); i++) {
        if (text_word_is(name, named_maps[i].name)) {
            return true;
        }
    }
    return text_word_is(name, "uniform") || text_word_is(name, "permutation") ||
           text_word_is(name, "hotspot");
}

bool pattern_open(struct pattern *pattern, const char *description, uint32_t nodes,
                  struct prng *prng, char *error, size_t error_bytes)
{
    CHECK(nodes >= 2 && nodes <= TOPOLOGY_NODES_MAX);
    *pattern = (struct pattern){.kind = PATTERN_UNIFORM, .nodes = nodes};
    struct request request = {.pattern = pattern,
                              .arguments = text_word_of(description),
                              .prng = prng,
                              .error = error,
                              .error_bytes = error_bytes};
    struct text_word name;
    const bool has_arguments = text_word_cut(&request.arguments, ':', &name);
    return open_named(&request, name, has_arguments);
}

void pattern_close(struct pattern *pattern)
{
    free(pattern->map);
    free(pattern->first_flow);
    free(pattern->flows);
    memset(pattern, 0, sizeof(*pattern));
}

/* -- Asking -------------------------------------------------------------------------------------*/

static uint32_t other_than(struct prng *prng, uint32_t self, uint32_t nodes)
{
    const uint32_t other = (uint32_t)prng_below(prng, nodes - 1);
    return other + (other >= self);
}

static uint64_t row_load(const struct pattern *pattern, uint32_t self)
{
    const uint32_t first = pattern->first_flow[self], end = pattern->first_flow[self + 1];
    return first == end ? 0 : pattern->flows[end - 1].until;
}

static uint32_t matrix_destination(const struct pattern *pattern, struct prng *prng, uint32_t self)
{
    const uint64_t load = row_load(pattern, self);
    if (load == 0) {
        return PATTERN_SILENT;
    }
    const uint64_t drawn = prng_below(prng, load);
    uint32_t from = pattern->first_flow[self], to = pattern->first_flow[self + 1] - 1;
    while (from < to) {
        const uint32_t middle = from + (to - from) / 2;
        from = pattern->flows[middle].until > drawn ? from : middle + 1;
        to = pattern->flows[middle].until > drawn ? middle : to;
    }
    return pattern->flows[from].to;
}

uint32_t pattern_destination(const struct pattern *pattern, struct prng *prng, uint32_t self)
{
    CHECK(self < pattern->nodes);
    switch (pattern->kind) {
    case PATTERN_UNIFORM: return other_than(prng, self, pattern->nodes);
    case PATTERN_HOTSPOT:
        return self != pattern->hot && prng_below(prng, 1000) < pattern->hot_thousandths
                   ? pattern->hot
                   : other_than(prng, self, pattern->nodes);
    case PATTERN_MAP: return pattern->map[self] == self ? PATTERN_SILENT : pattern->map[self];
    case PATTERN_MATRIX: return matrix_destination(pattern, prng, self);
    }
    UNREACHABLE("no kind of pattern");
}

double pattern_load(const struct pattern *pattern, uint32_t self)
{
    CHECK(self < pattern->nodes);
    if (pattern->kind == PATTERN_MATRIX) {
        return (double)row_load(pattern, self) / (double)pattern->most_load;
    }
    return pattern->kind == PATTERN_MAP && pattern->map[self] == self ? 0 : 1;
}

size_t pattern_bytes(const struct pattern *pattern)
{
    switch (pattern->kind) {
    case PATTERN_UNIFORM:
    case PATTERN_HOTSPOT: return 0;
    case PATTERN_MAP: return pattern->nodes * sizeof(pattern->map[0]);
    case PATTERN_MATRIX:
        return (pattern->nodes + (size_t)1) * sizeof(pattern->first_flow[0]) +
               pattern->first_flow[pattern->nodes] * sizeof(pattern->flows[0]);
    }
    UNREACHABLE("no kind of pattern");
}
