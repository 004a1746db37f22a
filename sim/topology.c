/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Descriptions, and what all topologies are built of.
 */
#include "sim/topology.h"

#include <stdlib.h>
#include <string.h>

#include "sim/topology_internal.h"

#define DEFAULT_BYTE_FS    80000u
#define DEFAULT_LATENCY_PS 500000u
#define RATE_MBPS_LEAST    10u
#define RATE_MBPS_MAX      UINT64_C(100000000)
#define LATENCY_PS_MAX     UINT64_C(1000000000000)
#define BYTE_FS_AT_1_MBPS  UINT64_C(8000000000)

/* -- Building -----------------------------------------------------------------------------------*/

void *topology_take(struct topology *topology, size_t count, size_t bytes)
{
    void *const memory = calloc(count, bytes);
    CHECK(memory != NULL);
    topology->bytes += count * bytes;
    return memory;
}

void topology_reserve(struct topology *topology, uint32_t nodes, uint32_t switches,
                      uint32_t port_count)
{
    const size_t vertices = (size_t)nodes + switches;
    topology->nodes = nodes;
    topology->switches = switches;
    topology->first_port = topology_take(topology, vertices + 1, sizeof(topology->first_port[0]));
    topology->ports = topology_take(topology, port_count, sizeof(topology->ports[0]));
    for (uint32_t i = 0; i < port_count; i++) {
        topology->ports[i].peer = TOPOLOGY_NOBODY;
    }
}

static void point(struct topology *topology, struct topology_end from, struct topology_end to,
                  uint32_t link_class)
{
    struct topology_port *port = &topology->ports[topology->first_port[from.vertex] + from.port];
    CHECK(port->peer == TOPOLOGY_NOBODY);
    *port = (struct topology_port){
        .peer = to.vertex, .peer_port = to.port & 0xffffff, .link_class = link_class & 0xff};
}

void topology_join(struct topology *topology, struct topology_end one, struct topology_end other,
                   uint32_t link_class)
{
    point(topology, one, other, link_class);
    point(topology, other, one, link_class);
}

void topology_add_digit(struct topology *topology, uint32_t size)
{
    const uint32_t index = topology->digit_count++;
    CHECK(index < TOPOLOGY_DIGITS_MAX && size >= 1);
    struct topology_digit *digit = &topology->digits[index];
    const uint32_t bits = size == 1 ? 0 : 32 - (uint32_t)__builtin_clz(size - 1);
    digit->size = size;
    digit->mask = (1u << bits) - 1;
    if (index > 0) {
        digit->shift = digit[-1].shift + (uint32_t)__builtin_popcount(digit[-1].mask);
    }
    CHECK(digit->shift + bits <= TOPOLOGY_LEVEL_SHIFT);
    for (uint32_t bit = 0; bit < bits; bit++) {
        topology->digit_of_bit[digit->shift + bit] = (uint8_t)index;
    }
    for (uint32_t lower = 0; lower < index; lower++) {
        topology->above[lower] |= digit->mask << digit->shift;
    }
}

uint32_t topology_label(const struct topology *topology, uint32_t first, uint32_t number)
{
    uint32_t label = 0;
    for (uint32_t i = first; i < topology->digit_count; i++) {
        label |= number % topology->digits[i].size << topology->digits[i].shift;
        number /= topology->digits[i].size;
    }
    return label;
}

/* -- Descriptions -------------------------------------------------------------------------------*/

static const struct named {
    const char *name;
    char separator;       /* Between the sizes of the list. */
    uint32_t least, most; /* Sizes in the list. */
    bool extra;           /* One more size may follow behind a ':'. */
    uint32_t link_count;
    topology_builder *build;
    const char *grammar;
} named[] = {
    [TOPOLOGY_STAR] = {"star", ',', 1, 1, false, 1, topology_build_star, "star:NODES"},
    [TOPOLOGY_ALL_TO_ALL] = {"all-to-all", ',', 1, 1, false, 1, topology_build_all_to_all,
                             "all-to-all:NODES"},
    [TOPOLOGY_FAT_TREE] = {"fat-tree", ',', 1, 1, true, 2, topology_build_fat_tree,
                           "fat-tree:RADIX[:LEVELS]"},
    [TOPOLOGY_TORUS] = {"torus", 'x', 1, 18, true, 2, topology_build_torus,
                        "torus:AxBxC...[:NODES_A_SWITCH]"},
    [TOPOLOGY_DRAGONFLY] = {"dragonfly", ',', 3, 3, false, 3, topology_build_dragonfly,
                            "dragonfly:NODES_A_ROUTER,ROUTERS_A_GROUP,GLOBAL_LINKS_A_ROUTER"},
};

static bool read_size(struct text_word word, uint32_t *size)
{
    uint64_t value = 0;
    const bool good = text_word_number(word, TOPOLOGY_NODES_MAX, &value) && value > 0;
    *size = (uint32_t)value;
    return good;
}

static bool read_sizes(const struct named *name, struct text_word list, struct text_word *extra,
                       struct topology_sizes *sizes)
{
    struct text_word size;
    bool more = true;
    for (sizes->count = 0; more && sizes->count < name->most; sizes->count++) {
        more = text_word_cut(&list, name->separator, &size);
        if (!read_size(size, &sizes->list[sizes->count])) {
            return false;
        }
    }
    return !more && sizes->count >= name->least &&
           (extra == NULL || (name->extra && read_size(*extra, &sizes->extra)));
}

bool topology_read_link(struct topology_link *link, struct text_word rate,
                        const struct text_word *latency)
{
    uint64_t mbps = 0;
    *link = (struct topology_link){.rate_given = true, .latency_given = latency != NULL};
    if (!text_word_thousandths(rate, RATE_MBPS_MAX, &mbps) || mbps < RATE_MBPS_LEAST) {
        return false;
    }
    link->byte_fs = (uint32_t)((BYTE_FS_AT_1_MBPS + mbps / 2) / mbps);
    return latency == NULL || text_word_thousandths(*latency, LATENCY_PS_MAX, &link->latency_ps);
}

/* RATE[,LATENCY] of each class, with a '/' between two; the last one goes for the others, too. */
static bool read_links(struct topology *topology, struct text_word text, uint32_t link_count)
{
    struct text_word link, rate;
    bool more = true;
    for (uint32_t i = 0; i < link_count; i++) {
        if (!more) {
            topology->links[i] = topology->links[i - 1];
            continue;
        }
        more = text_word_cut(&text, '/', &link);
        const bool latency = text_word_cut(&link, ',', &rate);
        if (!topology_read_link(&topology->links[i], rate, latency ? &link : NULL)) {
            return false;
        }
    }
    return !more;
}

bool topology_fits(uint64_t nodes, uint64_t ports, char *error, size_t error_bytes)
{
    if (nodes < 2 || nodes > TOPOLOGY_NODES_MAX) {
        return text_refuse(error, error_bytes, "that is %llu nodes; a topology has 2 to %u",
                           (unsigned long long)nodes, TOPOLOGY_NODES_MAX);
    }
    if (ports > TOPOLOGY_PORTS_MAX) {
        return text_refuse(error, error_bytes, "that is %llu ports; a topology has %u at most",
                           (unsigned long long)ports, TOPOLOGY_PORTS_MAX);
    }
    return true;
}

static const struct named *named_as(struct text_word name)
{
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        if (text_word_is(name, named[i].name)) {
            return &named[i];
        }
    }
    return NULL;
}

bool topology_is_named(const char *text)
{
    return named_as((struct text_word){text, (uint32_t)strcspn(text, ":@")}) != NULL;
}

bool topology_open(struct topology *topology, const char *description, char *error,
                   size_t error_bytes)
{
    struct text_word links = text_word_of(description), extra, name, list;
    struct topology_sizes sizes = {.count = 0};
    memset(topology, 0, sizeof(*topology));
    const bool has_links = text_word_cut(&links, '@', &extra);
    (void)text_word_cut(&extra, ':', &name);
    const bool has_extra = text_word_cut(&extra, ':', &list);
    const struct named *const found = named_as(name);
    if (found == NULL) {
        return text_refuse(error, error_bytes, "\"%.*s\" is not " TOPOLOGY_NAMES, TEXT_WORD(name));
    }
    if (!read_sizes(found, list, has_extra ? &extra : NULL, &sizes)) {
        return text_refuse(error, error_bytes, "\"%.40s\" is not %s", description, found->grammar);
    }
    topology->kind = (enum topology_kind)(found - named);
    topology->link_count = found->link_count;
    if (has_links && !read_links(topology, links, found->link_count)) {
        return text_refuse(error, error_bytes, "\"%.*s\": up to %u of RATE[,LATENCY]; %s",
                           TEXT_WORD(links), found->link_count, TOPOLOGY_LINK_GRAMMAR);
    }
    topology_set_defaults(topology);
    return found->build(topology, &sizes, error, error_bytes);
}

void topology_close(struct topology *topology)
{
    free(topology->first_port);
    free(topology->ports);
    free(topology->labels);
    free(topology->gateways);
    topology_table_close(topology->table);
    memset(topology, 0, sizeof(*topology));
}

/* -- Questions ----------------------------------------------------------------------------------*/

void topology_default_link(struct topology *topology, uint32_t byte_fs, uint64_t latency_ps)
{
    CHECK(byte_fs > 0);
    for (uint32_t i = 0; i < topology->link_count; i++) {
        struct topology_link *link = &topology->links[i];
        link->byte_fs = link->rate_given ? link->byte_fs : byte_fs;
        link->latency_ps = link->latency_given ? link->latency_ps : latency_ps;
    }
}

void topology_set_defaults(struct topology *topology)
{
    topology_default_link(topology, DEFAULT_BYTE_FS, DEFAULT_LATENCY_PS);
}

size_t topology_bytes(const struct topology *topology)
{
    return topology->bytes;
}
