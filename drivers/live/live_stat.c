/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_stat - the counters, for `nonic stat` and `nonic run --stats`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "drivers/live/live_account.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_stat.h"
#include "drivers/live/live_wake.h"
#include "drivers/stat_server.h"
#include "nic/inventory.h"

/* The most connections that `nonic stat` hears of: more than fit into a socket's buffer. */
#define CONNECTIONS_MAX 1024

/* The most bytes of such a text: again, more than fit into a socket's buffer. */
#define WISH_BYTES_MAX (1u << 18)

#define PORT_LINES   12
#define CM_LINES     12
#define DIRECT_LINES 10
#define SHM_LINES    4
#define MAP_LINES    9
#define LINES_MAX    (COUNTER_COUNT + PORT_LINES + CM_LINES + DIRECT_LINES + SHM_LINES + MAP_LINES)

/* Before the manager is there, all are 0. */
static void collect_cm(const struct rdma_cm *manager, struct stat_line lines[CM_LINES])
{
    const struct cm_counters cm = manager == NULL ? (struct cm_counters){0} : manager->cm.counters;
    const struct rdma_cm_counters ids =
        manager == NULL ? (struct rdma_cm_counters){0} : manager->counters;
    const struct stat_line all[CM_LINES] = {
        {"cm_sent", cm.sent},
        {"cm_received", cm.received},
        {"cm_retransmitted", cm.retransmitted},
        {"cm_malformed", cm.malformed},
        {"cm_malformed_request", ids.malformed_request},
        {"cm_unmatched", cm.unmatched},
        {"cm_out_of_state", cm.out_of_state},
        {"cm_crowded_out", cm.crowded_out},
        {"cm_stale_connection", cm.stale},
        {"cm_unafforded", cm.unafforded},
        {"cm_no_listener", ids.no_listener},
        {"cm_backlog_full", ids.backlog_full},
    };
    memcpy(lines, all, sizeof(all));
}

/* Without a shared-memory port all are 0. A board has no other verdicts. */
static void collect_direct(const struct shm_port *port, struct stat_line lines[DIRECT_LINES])
{
    static const struct shm_direct_counters none;
    const struct shm_direct_counters *direct = port == NULL ? &none : shm_port_direct(port);
    const struct stat_line all[DIRECT_LINES] = {
        {"direct_done", direct->done},
        {"direct_no_owner", direct->no_owner},
        {"direct_failed", direct->failed},
        {"direct_unknown_qp", direct->refused[REACH_UNKNOWN_QP]},
        {"direct_wrong_peer", direct->refused[REACH_WRONG_PEER]},
        {"direct_no_right", direct->refused[REACH_NO_RIGHT]},
        {"direct_unknown_key", direct->refused[REACH_UNKNOWN_KEY]},
        {"direct_wrong_domain", direct->refused[REACH_WRONG_DOMAIN]},
        {"direct_out_of_bounds", direct->refused[REACH_OUT_OF_BOUNDS]},
        {"direct_forbidden", direct->refused[REACH_FORBIDDEN]},
    };
    memcpy(lines, all, sizeof(all));
}

/* Without a shared-memory port all are 0. */
static void collect_shm(const struct shm_port *port, struct stat_line lines[SHM_LINES])
{
    static const struct shm_counters none;
    const struct shm_counters *shm = port == NULL ? &none : shm_port_counters(port);
    const struct stat_line all[SHM_LINES] = {
        {"shm_packets_lost", shm->packets_lost},
        {"shm_callers_refused", shm->callers_refused},
        {"shm_callers_dropped", shm->callers_dropped},
        {"shm_rings_broken", shm->rings_broken},
    };
    memcpy(lines, all, sizeof(all));
}

/* Memory that peers map: docs/decisions/0061. */
static void collect_map(const struct shm_port *port, struct stat_line lines[MAP_LINES])
{
    static const struct shm_extent_counters none;
    const struct shm_extent_counters *map = port == NULL ? &none : shm_port_extents(port);
    const struct stat_line all[MAP_LINES] = {
        {"map_shared", map->shared},
        {"map_exchanged", map->exchanged},
        {"map_returned", map->returned},
        {"map_offered", map->offered},
        {"map_refused_kind", map->refused[SHM_REFUSED_KIND]},
        {"map_refused_threads", map->refused[SHM_REFUSED_THREADS]},
        {"map_refused_peer", map->refused[SHM_REFUSED_PEER]},
        {"map_refused_busy", map->refused[SHM_REFUSED_BUSY]},
        {"map_refused_limit", map->refused[SHM_REFUSED_LIMIT]},
    };
    memcpy(lines, all, sizeof(all));
}

/* A number of lines that is too large leaves lines without a name. */
static void lines_check(const struct stat_line lines[LINES_MAX])
{
    for (uint32_t i = 0; i < LINES_MAX; i++) {
        CHECK(lines[i].name != NULL && lines[i].name[0] != '\0');
    }
}

/* The counters of the NIC, of the UDP port, of the connection manager, of direct accesses, of rings
 * and of memory that is mapped. Returns how many there are. */
static uint32_t collect(const struct live *live, struct stat_line lines[LINES_MAX])
{
    const struct nic_counters *counters = nic_counters(live->nic);
    for (uint32_t i = 0; i < COUNTER_COUNT; i++) {
        lines[i].name = nic_counter_name((enum nic_counter)i);
        lines[i].value = counters->values[i];
    }
    const struct udp_counters *udp = &live->udp.counters;
    const struct stat_line ports[PORT_LINES] = {
        {"udp_send_calls", udp->send_calls},
        {"udp_receive_calls", udp->receive_calls},
        {"udp_datagrams_sent", udp->datagrams_sent},
        {"udp_datagrams_received", udp->datagrams_received},
        {"udp_send_failed", udp->send_failed},
        {"udp_send_waited", udp->send_waited},
        {"udp_routes_missed", udp->routes_missed},
        {"udp_implausible_id", udp->implausible_identification},
        {"udp_too_short", udp->too_short},
        {"udp_probes_sent", udp->probes_sent},
        {"udp_probes_answered", udp->probes_answered},
        {"udp_probes_lost", udp->probes_lost},
    };
    for (uint32_t i = 0; i < PORT_LINES; i++) {
        lines[COUNTER_COUNT + i] = ports[i];
    }
    collect_cm(live->manager.cm, lines + COUNTER_COUNT + PORT_LINES);
    collect_direct(live->shm, lines + COUNTER_COUNT + PORT_LINES + CM_LINES);
    collect_shm(live->shm, lines + COUNTER_COUNT + PORT_LINES + CM_LINES + DIRECT_LINES);
    collect_map(live->shm, lines + LINES_MAX - MAP_LINES);
    INVARIANTS(lines_check(lines));
    return LINES_MAX;
}

static bool is_connection(const struct qp *qp)
{
    const enum qp_state state = qp_state_of(qp);
    return qp_type_of(qp) == QP_RC && (state == QP_RTS || state == QP_SQD);
}

/* A program may have a hundred thousand connections: at most CONNECTIONS_MAX are told, and each
 * queue pair is looked at once. */
static void say_connections(const struct live *live, int client)
{
    struct stat_connection some[STAT_CONNECTIONS_AT_ONCE];
    uint32_t count = 0, said = 0, at = 0;
    const struct qp *qp;
    while (said < CONNECTIONS_MAX && (qp = nic_each_qp(live->nic, &at)) != NULL) {
        if (!is_connection(qp)) {
            continue;
        }
        const struct reach_qp view = qp_view(qp);
        some[count] = (struct stat_connection){
            .qpn = qp_number(qp), .peer_qpn = view.peer_number, .peer = view.peer};
        qp_report_of(qp, &some[count++].report);
        said++;
        if (count == STAT_CONNECTIONS_AT_ONCE) {
            if (!stat_server_connections(client, some, count)) {
                return;
            }
            count = 0;
        }
    }
    (void)!stat_server_connections(client, some, count);
}

static size_t text_of_wish(struct live *live, int client, const char *wish, char *text)
{
    if (strcmp(wish, STAT_WISH_HANG) == 0) {
        return live_account_facts(live, text, WISH_BYTES_MAX);
    }
    return live->owner.on_wish == NULL
               ? 0
               : live->owner.on_wish(live, wish, stat_server_serves_root(client), text,
                                     WISH_BYTES_MAX);
}

/* False: the client has no wish that we know. If a wish cannot be granted just now, nothing is
 * said: counters are no answer to it. */
static bool grant_wish(struct live *live, int client)
{
    char wish[STAT_WISH_BYTES];
    if (!stat_server_wish(client, wish)) {
        return true;
    }
    if (wish[0] == '\0') {
        return false;
    }
    char *text = malloc(WISH_BYTES_MAX);
    if (text == NULL) {
        return true;
    }
    const size_t bytes = text_of_wish(live, client, wish, text);
    CHECK(bytes == SIZE_MAX || bytes <= WISH_BYTES_MAX);
    if (bytes != SIZE_MAX) {
        stat_server_say(client, text, bytes);
    }
    free(text);
    return bytes > 0;
}

void live_serve_stat(struct live *live)
{
    CHECK(live->thread.stat_fd >= 0);
    INVARIANTS(live_check_locked(live));
    const int client = stat_server_accept(live->thread.stat_fd);
    if (client >= 0 && grant_wish(live, client)) {
        stat_server_close(client);
    } else if (client >= 0) {
        struct stat_line lines[LINES_MAX];
        const uint32_t count = collect(live, lines);
        if (stat_server_answer(client, live_device_text(live), lines, count)) {
            say_connections(live, client);
        }
        stat_server_close(client);
    }
}

void live_print_stats(const struct live *live)
{
    struct stat_line lines[LINES_MAX];
    const uint32_t count = collect(live, lines);
    fprintf(stderr, "nonic: counters of process %d on %s\n", getpid(), live_device_text(live));
    for (uint32_t i = 0; i < count; i++) {
        if (lines[i].value != 0) {
            fprintf(stderr, "nonic: %24s %" PRIu64 "\n", lines[i].name, lines[i].value);
        }
    }
}

static void add_new(uint64_t *counter, uint64_t now, uint64_t seen)
{
    INVARIANTS(CHECK(now >= seen)); /* Each is counted once. */
    *counter += now - seen;
}

void live_count_port(struct live *live)
{
    const struct udp_counters *now = &live->udp.counters;
    const struct udp_counters *seen = &live->udp_seen;
    uint64_t *values = nic_counters(live->nic)->values;
    add_new(&values[COUNTER_drop_wrong_icrc], now->bad_icrc + now->implausible_identification,
            seen->bad_icrc + seen->implausible_identification);
    add_new(&values[COUNTER_handed_on_pkts], now->handed_on, seen->handed_on);
    add_new(&values[COUNTER_handed_to_us_pkts], now->handed_to_us, seen->handed_to_us);
    add_new(&values[COUNTER_drop_no_process], now->no_process, seen->no_process);
    add_new(&values[COUNTER_drop_process_full], now->process_full, seen->process_full);
    live->udp_seen = *now;
}
