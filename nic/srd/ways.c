/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ways - several routes to one process: it names its addresses, proves them, and flows use them.
 *
 * A flow that has sent some packets asks its target for the addresses that it has beside the first
 * one (PATH CHALLENGE with the number 0), and names ours. Each of both ends challenges the other's
 * addresses before more than that goes there (nic/routes.h). Ways go when the process rests, so a
 * target may have forgotten them: while the flow is in use, the question is repeated.
 */
#include <string.h>

#include "nic/srd/srd.h"

_Static_assert(SRD_GIDS_MAX == NIC_ROUTE_GIDS_MAX, "all addresses are named");

/* The number of a question for addresses: no challenge of nic/routes.h has it. */
#define QUESTION 0u

struct nic_routes *srd_own_routes(struct nic *nic)
{
    return &nic->srd->routes;
}

static const struct nic_av *first_av(const struct srd_peer *peer)
{
    return &peer->qp.attributes.av;
}

/* -- Packets by other addresses -----------------------------------------------------------------*/

static struct srd_peer **bucket_of(const struct srd_shared *shared, uint32_t flow)
{
    return &shared->way_buckets[flow & shared->flow_mask];
}

static void file(struct srd_peer *peer)
{
    struct srd_peer **bucket = bucket_of(peer->qp.nic->srd, peer->receiver.flow);
    peer->ways->filed = peer->receiver.flow;
    peer->ways->next = *bucket;
    *bucket = peer;
}

static void unfile(struct srd_peer *peer)
{
    struct srd_peer **at = bucket_of(peer->qp.nic->srd, peer->ways->filed);
    while (*at != peer) {
        at = &(*at)->ways->next;
    }
    *at = peer->ways->next;
}

void srd_file_way(struct srd_peer *peer)
{
    if (peer->ways != NULL && peer->ways->filed != peer->receiver.flow) {
        unfile(peer);
        file(peer);
    }
}

struct srd_peer *srd_find_way(const struct nic *nic, const struct nic_frame *frame,
                              const struct srd_packet *packet)
{
    struct srd_peer *peer = *bucket_of(nic->srd, packet->flow);
    while (peer != NULL && (!peer->entry.known || peer->entry.flow != packet->flow ||
                            peer->entry.tag != packet->tag || !srd_is_of_way(peer, frame))) {
        peer = peer->ways->next;
    }
    return peer;
}

bool srd_is_of_way(const struct srd_peer *peer, const struct nic_frame *frame)
{
    return peer->ways != NULL && nic_routes_connect(&peer->ways->routes, first_av(peer),
                                                    &frame->source, &frame->destination);
}

/* -- Life ---------------------------------------------------------------------------------------*/

static void begin(struct srd_peer *peer)
{
    struct srd_shared *shared = peer->qp.nic->srd;
    struct srd_ways *ways = &shared->ways[peer - shared->peers];
    memset(ways, 0, offsetof(struct srd_ways, paths));
    ways->routes = shared->routes;
    peer->ways = ways;
    file(peer);
}

void srd_forget_ways(struct srd_peer *peer)
{
    if (peer->ways != NULL) {
        unfile(peer);
        peer->ways = NULL;
    }
}

static uint32_t path_count(const struct srd_peer *peer)
{
    const uint32_t most = peer->qp.nic->limits.srd.paths,
                   routes = nic_routes_count(&peer->ways->routes);
    return most < routes ? most : routes;
}

void srd_consider_ways(struct srd_peer *peer)
{
    const struct srd_shared *shared = peer->qp.nic->srd;
    const struct srd_limits *limits = &peer->qp.nic->limits.srd;
    const struct srd_sender *sender = &peer->sender;
    if (peer->ways == NULL && limits->paths > 1 && sender->state == SRD_FLOW_OPEN &&
        sender->path.sent_bytes >= limits->alone_bytes && sender->policy != &shared->ring_policy) {
        begin(peer);
    }
}

/* The peer knows our addresses: a flow with one path gets others. */
static void widen(struct srd_peer *peer, struct instant now)
{
    struct srd_ways *ways = peer->ways;
    const uint32_t count = path_count(peer);
    if (peer->sender.state == SRD_FLOW_OPEN && peer->sender.paths.count == 1 && count > 1) {
        srd_sender_widen(&peer->sender, ways->paths, ways->records, (uint8_t)(count - 1), now);
    }
}

/* -- Routes -------------------------------------------------------------------------------------*/

static void lead(struct srd_peer *peer, uint8_t number, struct nic_departure *departure)
{
    struct srd_ways *ways = peer->ways;
    if (number == 0) {
        return;
    }
    const struct nic_route route = nic_routes_at(&ways->routes, first_av(peer), number);
    ways->av = *first_av(peer);
    ways->av.source = route.source;
    ways->av.destination = route.destination;
    departure->av = &ways->av;
    departure->route = (uint8_t)(1 + route.port);
    nic_count(peer->qp.nic, COUNTER_srd_other_routes);
}

static uint8_t turned(const struct srd_peer *peer, uint32_t path, uint32_t turns)
{
    const uint32_t paths = peer->qp.nic->limits.srd.paths;
    return nic_routes_turned(&peer->ways->routes, path, paths < 1 ? 1 : paths, turns);
}

/* As replies of blocks do: those to each path leave their route as often as it has (0026). */
static uint8_t back(const struct srd_peer *peer, uint32_t path)
{
    const uint8_t turns = path < SRD_FLOW_PATHS ? peer->ways->turns[path] : 0;
    return turned(peer, path, turns + turns / NIC_ROUTES_MAX);
}

/* Before the peer knows our addresses, it would take us for a stranger. */
static uint8_t forth(const struct srd_peer *peer, uint32_t path, uint32_t turns)
{
    return peer->sender.paths.count == 1 ? 0 : turned(peer, path, turns);
}

void srd_lead(struct srd_peer *peer, const struct srd_packet *packet,
              struct nic_departure *departure)
{
    switch ((enum srd_opcode)packet->opcode) {
    case SRD_SEND:
    case SRD_WRITE:
    case SRD_READ:
        lead(peer, forth(peer, packet->path, paths_at(&peer->sender.paths, packet->path)->turns),
             departure);
        return;
    case SRD_PROBE: lead(peer, forth(peer, packet->path, packet->index), departure); return;
    case SRD_ANSWER: lead(peer, back(peer, packet->answer.echo_path), departure); return;
    case SRD_DATA: lead(peer, back(peer, packet->path), departure); return;
    case SRD_HELLO:
    case SRD_CHALLENGE:
    case SRD_PATH_CHALLENGE:
    case SRD_PATH_RESPONSE: return;
    }
    UNREACHABLE("an opcode that leaves");
}

/* -- Challenges ---------------------------------------------------------------------------------*/

static void fill(const struct srd_peer *peer, enum srd_opcode opcode, uint64_t number,
                 bool of_target, struct srd_packet *packet)
{
    const struct nic_routes *routes = &peer->ways->routes;
    *packet = (struct srd_packet){.opcode = (uint8_t)opcode,
                                  .flow = of_target ? peer->receiver.flow : peer->sender.flow,
                                  .tag = of_target ? peer->receiver.tag : peer->sender.tag,
                                  .source_qpn = (uint16_t)(peer->qp.nic->srd->slot << 8),
                                  .path_challenge = {.number = number,
                                                     .of_target = of_target,
                                                     .gid_count = routes->own_count}};
    memcpy(packet->path_challenge.gids, routes->own, routes->own_count * sizeof(struct gid));
}

/* The peer knows the flow by which something goes to it; else the one that it opened here. */
static bool speaks_as_target(const struct srd_peer *peer)
{
    return peer->entry.known &&
           (peer->sender.state != SRD_FLOW_OPEN || srd_sender_is_idle(&peer->sender));
}

static void next_response(struct srd_peer *peer, struct nic_departure *departure,
                          struct srd_packet *packet)
{
    struct srd_ways *ways = peer->ways;
    const struct nic_route_challenge response = nic_responses_next(&ways->responses);
    nic_count(peer->qp.nic, COUNTER_challenges_received);
    fill(peer, SRD_PATH_RESPONSE, response.number, ways->of_target, packet);
    lead(peer, response.route, departure);
}

/* The question for addresses by the first way, or a challenge by the way that it is about. */
static bool next_challenge(struct srd_peer *peer, struct instant now,
                           struct nic_departure *departure, struct srd_packet *packet)
{
    struct srd_shared *shared = peer->qp.nic->srd;
    struct srd_ways *ways = peer->ways;
    struct nic_route_challenge challenge = {.number = QUESTION};
    const bool asks = peer->sender.state == SRD_FLOW_OPEN && peer->qp.nic->limits.srd.paths > 1 &&
                      proof_due(&ways->known, true, now);
    if (asks) {
        (void)proof_challenge(&ways->known, QUESTION, now);
    } else if (!nic_routes_may_challenge(&ways->routes, now) || shared->routes.random == 0) {
        return false;
    } else {
        ways->routes.random = shared->routes.random;
        if (!nic_routes_challenge(&ways->routes, now, &challenge)) {
            return false;
        }
        shared->routes.random = ways->routes.random;
    }
    nic_count(peer->qp.nic, COUNTER_challenges_sent);
    fill(peer, SRD_PATH_CHALLENGE, challenge.number, !asks && speaks_as_target(peer), packet);
    lead(peer, challenge.route, departure);
    return true;
}

bool srd_next_of_ways(struct srd_peer *peer, struct instant now, struct nic_departure *departure,
                      struct srd_packet *packet)
{
    if (peer->ways->responses.due == 0) {
        return next_challenge(peer, now, departure, packet);
    }
    next_response(peer, departure, packet);
    return true;
}

/* Addresses that may not be named are ignored, all of them. */
static void learn(struct srd_peer *peer, const struct srd_path_challenge *challenge)
{
    struct gid gids[SRD_GIDS_MAX];
    memcpy(gids, challenge->gids, sizeof(gids));
    if (!nic_routes_learn(&peer->ways->routes, first_av(peer), gids, challenge->gid_count)) {
        nic_count(peer->qp.nic, COUNTER_hello_routes_refused);
    }
}

void srd_on_path_challenge(struct srd_peer *peer, const struct nic_frame *frame,
                           const struct srd_packet *packet)
{
    if (peer->ways == NULL) {
        begin(peer);
    }
    struct srd_ways *ways = peer->ways;
    learn(peer, &packet->path_challenge);
    ways->of_target = !packet->path_challenge.of_target;
    nic_routes_owe(&ways->routes, &ways->responses, first_av(peer), &frame->source,
                   &frame->destination, packet->path_challenge.number);
    nic_schedule(&peer->qp);
}

void srd_on_path_response(struct srd_peer *peer, const struct srd_packet *packet,
                          struct instant now)
{
    const uint64_t number = packet->path_challenge.number;
    struct srd_ways *ways = peer->ways;
    const bool fits =
        ways != NULL && (number == QUESTION ? proof_on_response(&ways->known, QUESTION)
                                            : nic_routes_on_response(&ways->routes, number));
    if (!fits) {
        nic_count(peer->qp.nic, COUNTER_drop_stale_response);
        return;
    }
    if (number == QUESTION) {
        learn(peer, &packet->path_challenge);
        widen(peer, now);
    } else {
        nic_count(peer->qp.nic, COUNTER_challenges_proven);
    }
    nic_schedule(&peer->qp); /* A challenge may be due. */
}

void srd_ways_heard(struct srd_peer *peer, const struct srd_packet *packet)
{
    nic_routes_heard(&peer->ways->routes);
    if (packet->opcode == SRD_PROBE && packet->path < SRD_FLOW_PATHS) {
        peer->ways->turns[packet->path] = packet->index;
    }
}

void srd_ways_missed(struct srd_peer *peer)
{
    struct proof *known = &peer->ways->known;
    if (known->tries == 0) {
        known->next = (struct instant){0};
    }
}

void srd_ways_check(const struct srd_peer *peer)
{
    if (peer->ways != NULL) {
        nic_routes_check(&peer->ways->routes, &peer->ways->responses);
        CHECK(peer->ways == &peer->qp.nic->srd->ways[peer - peer->qp.nic->srd->peers]);
    }
}
