/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The NIC's side of queue pairs: their places, their contexts on the chip, and what a program is
 * told of.
 */
#include "lab/roce/internal.h"
#include "nic/inventory.h"
#include "wire/cm.h"

/* -- Packets ------------------------------------------------------------------------------------*/

void roce_drop(struct roce_flight *flight, uint64_t *counter)
{
    roce_wait(flight->connection->function->node, -(int64_t)roce_room(flight));
    ++*counter;
    roce_end(flight);
}

static void drop_held(struct roce_connection *connection)
{
    struct roce_function *function = connection->function;
    struct list *node;
    while ((node = list_pop(&connection->held)) != NULL) {
        struct roce_flight *flight = CONTAINER_OF(node, struct roce_flight, held);
        if (function->node->units != NULL) { /* It had no room yet. */
            roce_wait(function->node, roce_room(flight));
        }
        roce_drop(flight, &function->roce->counters.forgotten);
    }
}

/* Nothing is under way for its queue pair any more, before the line. */
static void connection_end(struct roce_connection *connection)
{
    drop_held(connection);
    if (connection->function->node->units != NULL) {
        roce_units_forget(connection);
    }
}

void roce_end_connections(struct roce_function *function)
{
    for (uint32_t i = 0; i <= function->mask; i++) {
        if (function->connections[i].birth != 0) {
            connection_end(&function->connections[i]);
        }
    }
}

/* -- Connections --------------------------------------------------------------------------------*/

/* Begins anew: another queue pair, or none yet. */
static void connection_start(struct roce_connection *connection)
{
    struct roce_function *function = connection->function;
    const uint32_t birth = connection->birth, slot = connection->slot;
    if (birth != 0) {
        connection_end(connection);
        list_remove(&connection->turn);
        function->node->context_count -= !list_empty(&connection->cached);
        list_remove(&connection->cached);
    }
    *connection = (struct roce_connection){.function = function, .birth = birth + 1, .slot = slot};
    list_init(&connection->held);
    list_init(&connection->turn);
    list_init(&connection->cached);
}

struct roce_connection *roce_connection_at(struct roce_function *function, uint32_t qpn)
{
    struct roce_connection *connection =
        qpn == CM_QPN ? &function->manager : &function->connections[qpn & function->mask];
    if (connection->birth == 0) {
        connection->function = function;
        connection_start(connection);
    }
    return connection;
}

struct roce_connection *roce_connection_of(struct roce_function *function, struct qp *qp)
{
    struct roce_connection *connection = roce_connection_at(function, qp_number(qp));
    if (connection->qp == qp) {
        return connection;
    }
    if (connection->qp != NULL) {
        connection_start(connection);
    }
    connection->qp = qp;
    connection->qpn = qp_number(qp);
    connection->rung = connection->fetched = qp_progress_of(qp).passed;
    return connection;
}

/* The time of a request that failed says nothing. */
void roce_note_done(struct roce_connection *connection)
{
    struct roce_node_counters *counters = &connection->function->node->counters;
    const struct qp *qp = connection->qp;
    if (connection->followed_ps == 0 || qp == NULL ||
        (int32_t)(qp_progress_of(qp).done - connection->followed) < 0) {
        return;
    }
    if (qp_state_of(qp) == QP_RTS) {
        counters->followed++;
        counters->followed_ps += connection->function->roce->sim->now_ps - connection->followed_ps;
    }
    connection->followed_ps = 0;
}

bool roce_has_qp(const struct roce_connection *connection)
{
    return nic_find_qp(connection->function->engine, connection->qpn) == connection->qp;
}

void roce_forget(struct roce_function *function, const struct qp *qp)
{
    connection_start(roce_connection_at(function, qp_number(qp)));
}

uint64_t roce_context(struct roce_connection *connection)
{
    struct roce_node *node = connection->function->node;
    struct roce *roce = node->roce;
    const bool is_cached = roce->config.contexts == 0 || !list_empty(&connection->cached);
    node->counters.contexts_asked++;
    node->counters.contexts_found += is_cached;
    if (roce->config.contexts == 0) {
        return roce->sim->now_ps;
    }
    if (is_cached) {
        list_remove(&connection->cached);
    } else {
        node->counters.contexts_read++;
        connection->context_ps = roce_pcie_read(node, roce->config.context_bytes);
        if (node->context_count == roce->config.contexts) {
            (void)list_pop(&node->contexts);
        } else {
            node->context_count++;
        }
    }
    list_append(&node->contexts, &connection->cached);
    return sim_later(connection->context_ps, roce->sim->now_ps);
}

/* -- News ---------------------------------------------------------------------------------------*/

void roce_settle(struct roce_function *function, bool changed)
{
    struct sim *sim = function->roce->sim;
    const struct instant deadline = nic_deadline(function->engine);
    sim_cancel(&function->timer);
    if (deadline.ns < UINT64_MAX / SIM_NS) {
        sim_schedule(sim, &function->timer, sim_later(deadline.ns * SIM_NS, sim->now_ps));
    }
    const bool news = nic_has_news(function->engine);
    if (changed || (news && !function->had_news)) {
        function->host.on_change(function->host.context);
    }
}
