/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    A graph from text is what the text says, its routes are shortest ways or those that are
 *         prescribed, and whatever is wrong is refused with its line.
 * Method  Random graphs are written as text. A model accepts those in which a search in breadth
 *         from each node reaches everything, and whose prescribed routes let nobody walk on for
 *         ever; the parser must accept the same ones, and use exactly the model's ports.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "sim/topology_checks.h"

/* -- By hand ------------------------------------------------------------------------------------*/

static const char example[] = "# Two racks; b has a link to each.\n"
                              "switch left\n"
                              "switch right\n"
                              "node a\n"
                              "node b\n"
                              "node c\n"
                              "\n"
                              "link a left 100 20.5\n"
                              "link b left 100 20.5   # port 1 of left\n"
                              "link b right\n"
                              "link c right 25\n"
                              "link left right 400 150\n"
                              "link right left 400 150\n"
                              "route left c 3\n"
                              "route right a left\n";

static void test_example(void **state)
{
    (void)state;
    struct topology graph;
    char error[TOPOLOGY_ERROR_BYTES];
    assert_true(topology_parse(&graph, example, sizeof(example) - 1, error, sizeof(error)));
    topology_default_link(&graph, 8000, 7);
    assert_int_equal(graph.nodes, 3);
    assert_int_equal(graph.switches, 2);
    assert_int_equal(topology_degree(&graph, 1), 2);
    assert_int_equal(topology_degree(&graph, 3), 4);
    assert_int_equal(graph.link_count, 4);
    check_links(&graph);
    check_shortest(&graph);
    const struct topology_link *link = &graph.links[topology_port_of(&graph, 0, 0)->link_class];
    assert_int_equal(link->byte_fs, 80000);
    assert_int_equal(link->latency_ps, 20500);
    link = &graph.links[topology_port_of(&graph, 1, 1)->link_class];
    assert_int_equal(link->byte_fs, 8000);
    assert_int_equal(link->latency_ps, 7);
    link = &graph.links[topology_port_of(&graph, 2, 0)->link_class];
    assert_int_equal(link->byte_fs, 320000);
    assert_int_equal(link->latency_ps, 7);
    uint32_t seen = 0;
    for (uint32_t entropy = 0; entropy < 64; entropy++) {
        assert_int_equal(topology_route(&graph, 3, 2, entropy), 3);
        seen |= 1u << topology_route(&graph, 4, 0, entropy);
    }
    assert_int_equal(seen, 1u << 2 | 1u << 3);
    assert_true(topology_bytes(&graph) > 0);
    topology_close(&graph);
}

static void test_two_nodes(void **state)
{
    (void)state;
    static const char text[] = "node a\nnode b\nlink a b\nlink a b";
    struct topology graph;
    char error[TOPOLOGY_ERROR_BYTES];
    for (size_t bytes = sizeof(text) - 1; bytes > 20; bytes -= 9) {
        assert_true(topology_parse(&graph, text, bytes, error, sizeof(error)));
        check_links(&graph);
        check_shortest(&graph);
        topology_close(&graph);
    }
}

#define ABS "node a\nnode b\nswitch s\n"

static const struct {
    const char *text, *error;
} refused[] = {
    {"", "that is 0 nodes"},
    {"node a\n", "that is 1 nodes"},
    {"node a\nnode b\n", "there is no way from b to a"},
    {"nodes a\n", "line 1: \"nodes\" is not node"},
    {"\n\nnode\n", "line 3: this is not node NAME"},
    {"node a b\n", "line 1: this is not node NAME"},
    {"node 1a\n", "line 1: \"1a\" is no name"},
    {"node a/b\n", "line 1: \"a/b\" is no name"},
    {"node abcdefghijabcdefghijabcdefghij12\n", "line 1: \"abcde"},
    {ABS "node s\n", "line 4: there is a s already"},
    {ABS "link a c\n", "line 4: there is no node or switch c before"},
    {ABS "link a\n", "line 4: this is not link"},
    {ABS "link a s 1 2 3\n", "line 4: this is not link"},
    {ABS "link a s 1 2 3 4 5 6 7 8 9\n", "line 4: this is not link"},
    {ABS "link s s\n", "line 4: s is linked with itself"},
    {ABS "link a s 0\n", "line 4: a rate is"},
    {ABS "link a s 100 -1\n", "line 4: a rate is"},
    {ABS "link a s fast\n", "line 4: a rate is"},
    {ABS "link a s\n", "there is no way from b to s"},
    {ABS "link a s\nlink a b\n", "there is no way from s to b"},
    {ABS "switch t\nlink a s\nlink b s\n", "there is no way from t to s"},
    {ABS "link a s\nlink b s\nroute s a\n", "line 6: this is not route"},
    {ABS "link a s\nlink b s\nroute s x 0\n", "line 6: there is no node or switch x"},
    {ABS "link a s\nlink b s\nroute s a x\n", "line 6: there is no node or switch x"},
    {ABS "link a s\nlink b s\nroute a b 0\n", "line 6: a route is one of a switch"},
    {ABS "link a s\nlink b s\nroute s s 0\n", "line 6: a route is one of a switch"},
    {ABS "link a s\nlink b s\nroute s a 2\n", "line 6: the switch has no such port"},
    {ABS "link a s\nlink b s\nroute s a 1\n", "line 6: this route leads to another node"},
    {ABS "link a s\nlink b s\nroute s a s\n", "line 6: the two are not linked"},
    {ABS "link a s\nlink b s\nroute s a a\nroute s b 1\nroute s a 0\n",
     "line 8: line 6 gives this port already"},
    {ABS "switch t\nlink a s\nlink b t\nlink s t\nroute s a t\n",
     "line 8: this route leads packets for a round in a circle"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        struct topology graph;
        char error[TOPOLOGY_ERROR_BYTES] = "";
        if (topology_parse(&graph, refused[i].text, strlen(refused[i].text), error,
                           sizeof(error)) ||
            strncmp(error, refused[i].error, strlen(refused[i].error)) != 0) {
            fail_msg("%s: \"%s\"", refused[i].text, error);
        }
    }
}

/* -- Random graphs ------------------------------------------------------------------------------*/

#define VERTICES_MAX 24u
#define PORTS_MAX    32u
#define ROUTES_MAX   8u

struct model {
    uint32_t nodes, switches;
    uint32_t degree[VERTICES_MAX], peers[VERTICES_MAX][PORTS_MAX];
    uint32_t ports[VERTICES_MAX][VERTICES_MAX]; /* By node and vertex: a bit for each way out. */
    char text[8192];
    size_t length;
};

static void say(struct model *model, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct model *model, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    model->length += (size_t)vsnprintf(model->text + model->length,
                                       sizeof(model->text) - model->length, format, arguments);
    va_end(arguments);
    assert_true(model->length < sizeof(model->text));
}

static void say_link(struct model *model, uint32_t one, uint32_t other)
{
    if (one != other && model->degree[one] < PORTS_MAX && model->degree[other] < PORTS_MAX) {
        model->peers[one][model->degree[one]++] = other;
        model->peers[other][model->degree[other]++] = one;
        say(model, "link v%u v%u\n", one, other);
    }
}

static void draw_graph(struct model *model, struct prng *prng)
{
    memset(model, 0, sizeof(*model));
    model->nodes = 2 + (uint32_t)prng_below(prng, 8);
    model->switches = (uint32_t)prng_below(prng, 9);
    const uint32_t vertices = model->nodes + model->switches;
    for (uint32_t i = 0; i < vertices; i++) {
        say(model, "%s v%u\n", i < model->nodes ? "node" : "switch", i);
    }
    for (uint32_t node = 0; node < model->nodes && model->switches > 0; node++) {
        say_link(model, node, model->nodes + (uint32_t)prng_below(prng, model->switches));
    }
    for (uint32_t i = 1; i < model->switches; i++) {
        say_link(model, model->nodes + i, model->nodes + (uint32_t)prng_below(prng, i));
    }
    for (uint64_t more = prng_below(prng, 12); more > 0; more--) {
        const bool any = prng_chance(prng, 300000);
        const uint32_t from = any ? 0 : model->nodes, count = any ? vertices : model->switches;
        if (count > 0) {
            say_link(model, from + (uint32_t)prng_below(prng, count),
                     from + (uint32_t)prng_below(prng, count));
        }
    }
}

/* Whether everything reaches the node; then the ports of shortest ways are known. */
static bool find_ports(struct model *model, uint32_t node)
{
    const uint32_t vertices = model->nodes + model->switches;
    uint32_t hops[VERTICES_MAX];
    memset(hops, 0xff, sizeof(hops));
    hops[node] = 0;
    for (uint32_t round = 0; round < vertices; round++) {
        for (uint32_t v = 0; v < vertices; v++) {
            for (uint32_t p = 0; p < model->degree[v]; p++) {
                const uint32_t peer = model->peers[v][p];
                if (hops[v] == FAR && hops[peer] == round &&
                    (peer == node || peer >= model->nodes)) {
                    hops[v] = round + 1;
                }
            }
        }
    }
    for (uint32_t v = 0; v < vertices; v++) {
        if (hops[v] == FAR) {
            return false;
        }
        for (uint32_t p = 0; p < model->degree[v]; p++) {
            const uint32_t peer = model->peers[v][p];
            if (hops[peer] + 1 == hops[v] && (peer == node || peer >= model->nodes)) {
                model->ports[node][v] |= 1u << p;
            }
        }
    }
    return true;
}

static bool model_accepts(struct model *model)
{
    bool good = true;
    for (uint32_t node = 0; node < model->nodes; node++) {
        good = find_ports(model, node) && good;
    }
    return good;
}

static void check_ports(const struct model *model, const struct topology *graph)
{
    for (uint32_t node = 0; node < model->nodes; node++) {
        for (uint32_t v = 0; v < model->nodes + model->switches; v++) {
            uint32_t seen = 0;
            for (uint32_t entropy = 0; entropy < 256 && v != node; entropy++) {
                seen |= 1u << topology_route(graph, v, node, entropy);
            }
            assert_int_equal(seen, model->ports[node][v]);
            if (v != node) {
                assert_int_equal(topology_route(graph, v, node, 0), __builtin_ctz(seen));
            }
        }
    }
}

static void test_random_graphs(void **state)
{
    (void)state;
    struct prng prng;
    uint32_t accepted = 0;
    prng_init(&prng, 1);
    for (uint32_t i = 0; i < 1000; i++) {
        struct model model;
        struct topology graph;
        char error[TOPOLOGY_ERROR_BYTES] = "";
        draw_graph(&model, &prng);
        const bool good = model_accepts(&model);
        if (topology_parse(&graph, model.text, model.length, error, sizeof(error)) != good) {
            fail_msg("%s\n%s", model.text, error);
        }
        if (good) {
            accepted++;
            check_links(&graph);
            check_shortest(&graph);
            check_ports(&model, &graph);
            topology_close(&graph);
        }
    }
    assert_in_range(accepted, 300, 900);
}

/* -- Random routes ------------------------------------------------------------------------------*/

/* Draws routes, none of them twice or to a wrong node. */
static void draw_routes(struct model *model, struct prng *prng)
{
    uint32_t given[VERTICES_MAX][VERTICES_MAX] = {{0}};
    for (uint64_t left = prng_below(prng, ROUTES_MAX); left > 0; left--) {
        const uint32_t at = model->nodes + (uint32_t)prng_below(prng, model->switches);
        const uint32_t node = (uint32_t)prng_below(prng, model->nodes);
        const uint32_t port = (uint32_t)prng_below(prng, model->degree[at]);
        const uint32_t peer = model->peers[at][port];
        if ((peer >= model->nodes || peer == node) && (given[node][at] >> port & 1) == 0) {
            given[node][at] |= 1u << port;
            model->ports[node][at] = given[node][at];
            say(model, "route v%u v%u %u\n", at, node, port);
        }
    }
}

/* Whether somebody may walk as many hops as there are vertices without arriving. */
static bool walks_on(const struct model *model, uint32_t node)
{
    const uint32_t vertices = model->nodes + model->switches;
    uint32_t here = 0;
    for (uint32_t v = model->nodes; v < vertices; v++) {
        here |= 1u << v;
    }
    for (uint32_t hop = 0; hop < vertices; hop++) {
        uint32_t next = 0;
        for (uint32_t v = 0; v < vertices; v++) {
            for (uint32_t p = 0; p < model->degree[v] && (here >> v & 1) != 0; p++) {
                next |= (model->ports[node][v] >> p & 1) << model->peers[v][p];
            }
        }
        here = next & ~(1u << node);
    }
    return here != 0;
}

static void test_random_routes(void **state)
{
    (void)state;
    struct prng prng;
    uint32_t tried = 0, accepted = 0;
    prng_init(&prng, 2);
    for (uint32_t i = 0; i < 3000; i++) {
        struct model model;
        struct topology graph;
        char error[TOPOLOGY_ERROR_BYTES] = "";
        draw_graph(&model, &prng);
        if (!model_accepts(&model) || model.switches == 0) {
            continue;
        }
        draw_routes(&model, &prng);
        bool good = true;
        for (uint32_t node = 0; node < model.nodes; node++) {
            good = good && !walks_on(&model, node);
        }
        if (topology_parse(&graph, model.text, model.length, error, sizeof(error)) != good) {
            fail_msg("%s\n%s", model.text, error);
        }
        tried++;
        if (good) {
            accepted++;
            check_ports(&model, &graph);
            topology_close(&graph);
        } else {
            assert_non_null(strstr(error, "round in a circle"));
        }
    }
    assert_in_range(accepted, tried / 4, tried * 3 / 4);
}

/* -- Large ones ---------------------------------------------------------------------------------*/

/* A tree of switches with nodes below its leaves: nodes share the columns of their switches. */
static void test_many_nodes(void **state)
{
    (void)state;
    enum {
        LEAVES = 256,
        EACH = 64,
        BYTES = 4 << 20
    };
    struct topology graph;
    char error[TOPOLOGY_ERROR_BYTES] = "";
    char *const text = malloc(BYTES);
    size_t length = (size_t)snprintf(text, BYTES, "switch top\n");
    for (uint32_t leaf = 0; leaf < LEAVES; leaf++) {
        length += (size_t)snprintf(text + length, BYTES - length, "switch s%u\nlink top s%u\n",
                                   leaf, leaf);
        for (uint32_t i = 0; i < EACH; i++) {
            length += (size_t)snprintf(text + length, BYTES - length,
                                       "node n%u.%u\nlink n%u.%u s%u\n", leaf, i, leaf, i, leaf);
        }
    }
    assert_true(topology_parse(&graph, text, length, error, sizeof(error)));
    assert_int_equal(graph.nodes, LEAVES * EACH);
    assert_in_range(topology_bytes(&graph) / graph.nodes, 1, 64);
    check_links(&graph);
    uint8_t classes[4];
    for (uint32_t from = 0; from < graph.nodes; from += 1001) {
        for (uint32_t to = 0; to < graph.nodes; to++) {
            const uint32_t hops = from == to ? 0 : from / EACH == to / EACH ? 2 : 4;
            assert_int_equal(walk(&graph, from, to, to, 4, classes), hops);
        }
    }
    topology_close(&graph);
    free(text);
}

/* A ring of more switches with a node each than a table may have entries for. */
static void test_too_large(void **state)
{
    (void)state;
    enum {
        RING = 4097,
        BYTES = 1 << 20
    };
    struct topology graph;
    char error[TOPOLOGY_ERROR_BYTES] = "";
    char *const text = malloc(BYTES);
    size_t length = 0;
    for (uint32_t i = 0; i < RING; i++) {
        length += (size_t)snprintf(text + length, BYTES - length,
                                   "node n%u\nswitch s%u\nlink n%u s%u\n", i, i, i, i);
        if (i > 0) {
            length += (size_t)snprintf(text + length, BYTES - length, "link s%u s%u\n", i - 1, i);
        }
    }
    assert_false(topology_parse(&graph, text, length, error, sizeof(error)));
    assert_non_null(strstr(error, "beyond 16777216 entries"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_example),       cmocka_unit_test(test_two_nodes),
        cmocka_unit_test(test_refusals),      cmocka_unit_test(test_random_graphs),
        cmocka_unit_test(test_random_routes), cmocka_unit_test(test_many_nodes),
        cmocka_unit_test(test_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
