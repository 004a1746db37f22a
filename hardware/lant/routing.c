/* SPDX-License-Identifier: BSD-2-Clause */
#include "hardware/lant/routing.h"

#include "hardware/lant/lfsr.h"

static const struct lant_route NO_SUCH_NODE = {.exists = false};

static struct lant_route way(uint32_t port, uint32_t choices)
{
    return (struct lant_route){.exists = true, .port = port, .choices = choices};
}

static struct lant_route arrival(uint32_t port)
{
    return (struct lant_route){.exists = true, .is_here = true, .port = port, .choices = 1};
}

/* -- The prototype ------------------------------------------------------------------------------*/

static struct lant_route way_of_mask(uint32_t mask, uint32_t random)
{
    CHECK(mask != 0);
    const uint32_t choices = (uint32_t)__builtin_popcount(mask);
    for (uint32_t skip = lant_random_below(random, choices); skip > 0; skip--) {
        mask &= mask - 1;
    }
    return way((uint32_t)__builtin_ctz(mask), choices);
}

static bool place_exists(const struct lant_places *places, struct lant_place place)
{
    return (places->cabinets == 0 || place.cabinet < places->cabinets) &&
           (places->chassis == 0 || place.chassis < places->chassis) &&
           (places->daughters == 0 || place.daughter < places->daughters);
}

struct lant_route lant_route_places(const struct lant_places *places, uint32_t destination,
                                    uint32_t random)
{
    const struct lant_place self = lant_place(places->self), there = lant_place(destination);
    if (destination >= LANT_NODES_MAX || !place_exists(places, there)) {
        return NO_SUCH_NODE;
    }
    if (destination == places->self) {
        return arrival(places->local);
    }
    if (there.cabinet != self.cabinet) {
        return way_of_mask(places->uplinks, random);
    }
    if (there.chassis != self.chassis) {
        return way_of_mask(places->chassis_ports, random);
    }
    const uint32_t size = places->daughters == 0 ? 1024 : places->daughters;
    const uint32_t up = (there.daughter + size - self.daughter) % size;
    const uint32_t down = size - up;
    return way_of_mask((uint32_t)(up <= down ? places->daughters_up : 0) |
                           (uint32_t)(down <= up ? places->daughters_down : 0),
                       random);
}

/* -- Dragonfly ----------------------------------------------------------------------------------*/

static uint32_t port_of_router(const struct lant_dragonfly *dragonfly, uint32_t self,
                               uint32_t router)
{
    CHECK(router != self);
    return dragonfly->hosts + router - (router > self);
}

static uint32_t port_of_link(const struct lant_dragonfly *dragonfly, uint32_t link)
{
    return dragonfly->hosts + dragonfly->routers - 1 + link % dragonfly->globals;
}

/* How many of the links to the k-th other group, which are `others` apart, begin in links `from` to
 * `to` - 1; `first` is the lowest of them. */
static uint32_t links_among(uint32_t k, uint32_t others, uint32_t from, uint32_t to,
                            uint32_t *first)
{
    const uint32_t skipped = from <= k ? 0 : (from - k + others - 1) / others;
    *first = k + skipped * others;
    return *first < to ? (to - *first + others - 1) / others : 0;
}

static struct lant_route way_to_group(const struct lant_dragonfly *dragonfly, uint32_t group,
                                      uint32_t router, uint32_t target, uint32_t random)
{
    const uint32_t others = dragonfly->groups - 1, links = lant_dragonfly_links(dragonfly);
    const uint32_t k = (target + dragonfly->groups - group - 1) % dragonfly->groups;
    const uint32_t own = router * dragonfly->globals;
    const uint32_t end = own + dragonfly->globals < links ? own + dragonfly->globals : links;
    uint32_t first;
    uint32_t choices = links_among(k, others, own, end, &first);
    if (choices > 0) {
        return way(port_of_link(dragonfly, first + lant_random_below(random, choices) * others),
                   choices);
    }
    choices = links_among(k, others, 0, links, &first);
    const uint32_t link = first + lant_random_below(random, choices) * others;
    return way(port_of_router(dragonfly, router, link / dragonfly->globals), choices);
}

/* A random global link of this router; those that lead nowhere do not count. */
static struct lant_route way_anywhere(const struct lant_dragonfly *dragonfly, uint32_t router,
                                      uint32_t random)
{
    const uint32_t links = lant_dragonfly_links(dragonfly);
    const uint32_t own = router * dragonfly->globals;
    const uint32_t left = own < links ? links - own : 0;
    const uint32_t choices = left < dragonfly->globals ? left : dragonfly->globals;
    if (choices == 0) {
        return NO_SUCH_NODE;
    }
    return way(port_of_link(dragonfly, own + lant_random_below(random, choices)), choices);
}

struct lant_route lant_route_dragonfly_place(const struct lant_dragonfly *dragonfly, uint32_t group,
                                             uint32_t router, struct lant_place there, uint32_t age,
                                             uint32_t random)
{
    CHECK(group < dragonfly->groups && router < dragonfly->routers);
    CHECK(dragonfly->groups <= dragonfly->routers * dragonfly->globals + 1);
    if (there.cabinet >= dragonfly->groups || there.chassis >= dragonfly->routers ||
        there.daughter >= dragonfly->hosts) {
        return NO_SUCH_NODE;
    }
    if (there.cabinet == group) {
        return there.chassis == router ? arrival(there.daughter)
                                       : way(port_of_router(dragonfly, router, there.chassis), 1);
    }
    if (dragonfly->valiant && age == 0) {
        const struct lant_route detour = way_anywhere(dragonfly, router, random);
        if (detour.exists) {
            return detour;
        }
    }
    return way_to_group(dragonfly, group, router, there.cabinet, random);
}

struct lant_route lant_route_dragonfly(const struct lant_dragonfly *dragonfly, uint32_t group,
                                       uint32_t router, uint32_t destination, uint32_t age,
                                       uint32_t random)
{
    if (destination >= LANT_NODES_MAX) {
        return NO_SUCH_NODE;
    }
    return lant_route_dragonfly_place(dragonfly, group, router, lant_place(destination), age,
                                      random);
}

/* -- Fat tree -----------------------------------------------------------------------------------*/

struct lant_route lant_route_fat_tree(const struct lant_fat_tree *tree, uint32_t level,
                                      uint32_t position, uint32_t destination, uint32_t random)
{
    CHECK(tree->arity >= 2 && level < tree->levels);
    const bool at_top = level + 1 == tree->levels;
    const uint32_t top = tree->top == 0 ? tree->arity : tree->top;
    uint64_t below = 1, width = 1; /* k^level; k^(levels - 1): switches at the top. */
    for (uint32_t i = 0; i + 1 < tree->levels; i++) {
        below *= i < level ? tree->arity : 1;
        width *= tree->arity;
    }
    CHECK(width * top <= LANT_NODES_MAX);
    CHECK(position < (at_top ? width : width / tree->arity * top));
    if (destination >= width * top) {
        return NO_SUCH_NODE;
    }
    const uint64_t digits = destination / below; /* From this level's on. */
    if (at_top || digits / tree->arity == position / below) {
        const uint32_t port = (uint32_t)(at_top ? digits : digits % tree->arity);
        return level == 0 ? arrival(port) : way(port, 1);
    }
    return way(tree->arity + lant_random_below(random, tree->arity), tree->arity);
}

/* -- Torus --------------------------------------------------------------------------------------*/

struct lant_route lant_route_torus(const struct lant_torus *torus, uint32_t self,
                                   uint32_t destination, uint32_t random)
{
    CHECK(torus->dimensions <= LANT_TORUS_DIMENSIONS_MAX);
    uint32_t from = self, to = destination;
    struct lant_route route = arrival(2 * torus->dimensions);
    for (uint32_t d = 0; d < torus->dimensions; d++) {
        const uint32_t size = torus->size[d];
        CHECK(size >= 1);
        const uint32_t up = (to % size + size - from % size) % size, down = size - up;
        if (up != 0 && route.is_here) {
            const bool tie = up == down;
            const bool goes_down = tie ? lant_random_below(random, 2) == 1 : down < up;
            route = way(2 * d + goes_down, tie ? 2 : 1);
        }
        from /= size;
        to /= size;
    }
    CHECK(from == 0);
    return to == 0 ? route : NO_SUCH_NODE;
}

/* -- Distances ----------------------------------------------------------------------------------*/

uint32_t lant_hops_torus(const struct lant_torus *torus, uint32_t self, uint32_t destination)
{
    CHECK(torus->dimensions <= LANT_TORUS_DIMENSIONS_MAX);
    uint32_t from = self, to = destination, hops = 0;
    for (uint32_t d = 0; d < torus->dimensions; d++) {
        const uint32_t size = torus->size[d];
        CHECK(size >= 1);
        const uint32_t up = (to % size + size - from % size) % size;
        hops += up < size - up ? up : size - up;
        from /= size;
        to /= size;
    }
    return from == 0 && to == 0 ? hops : LANT_NO_HOPS;
}

uint32_t lant_hops_fat_tree(const struct lant_fat_tree *tree, uint32_t self, uint32_t destination)
{
    const uint32_t top = tree->top == 0 ? tree->arity : tree->top;
    uint64_t nodes = top;
    CHECK(tree->arity >= 2 && tree->levels >= 1);
    for (uint32_t i = 1; i < tree->levels; i++) {
        nodes *= tree->arity;
    }
    if (self >= nodes || destination >= nodes) {
        return LANT_NO_HOPS;
    }
    if (self == destination) {
        return 0;
    }
    /* Up to the first level above both, and down again. */
    uint32_t level = 1;
    for (uint32_t from = self / tree->arity, to = destination / tree->arity;
         from != to && level < tree->levels; level++) {
        from /= tree->arity;
        to /= tree->arity;
    }
    return 2 * level - 1;
}
