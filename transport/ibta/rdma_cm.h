/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rdma_cm - connections between addresses and ports, on top of the InfiniBand connection manager.
 *
 * Purpose    The ids of librdmacm: bound, resolved, connected, listening; with their events.
 * Inputs     One function per wish of a program; rdma_cm_on_message; rdma_cm_on_time; answers to
 *            the questions it asks the world. Nobody else writes into an id but for its handle.
 * Outputs    Events per channel; questions; messages and deadlines of the manager below (cm.h).
 * Ownership  Ids, multicasts and events are the caller's memory: given as stock, given back through
 *            rdma_cm_next_released.
 * Units      Host byte order, but for addresses, which are 16 bytes: IPv6, or IPv4 mapped.
 * Limits     The stock: a request that finds it empty is dropped, and its sender repeats it.
 * Source     IBTA annex A11; the behaviour of Linux' rdma_cm as its programs know it
 *            (docs/decisions/0013).
 */
#ifndef TRANSPORT_IBTA_RDMA_CM_H
#define TRANSPORT_IBTA_RDMA_CM_H

#include "transport/ibta/cm.h"
#include "wire/roce.h"

#define RDMA_CM_PRIVATE_BYTES_MAX 256
#define RDMA_UDP_QKEY             0x01234567u /* For UD, unless a program chooses another. */

/* The port spaces of librdmacm; the port space says which queue pairs a connection needs. */
enum rdma_port_space {
    RDMA_PORT_SPACE_IPOIB = 0x0002,
    RDMA_PORT_SPACE_TCP = 0x0106,
    RDMA_PORT_SPACE_UDP = 0x0111,
    RDMA_PORT_SPACE_IB = 0x013f,
};

struct rdma_address {
    uint8_t ip[16]; /* All zero: any. */
    uint16_t port;  /* 0: none yet. */
    bool known;     /* False: not bound at all. */
    bool ipv6;      /* How the program writes it. */
    uint32_t flow_label, scope_id;
};

enum rdma_id_state {
    RDMA_ID_IDLE,
    RDMA_ID_BOUND,
    RDMA_ID_RESOLVING, /* The world is asked for the way to the destination. */
    RDMA_ID_RESOLVED,
    /* The world is asked which process serves the destination's port: its GID is the answer. */
    RDMA_ID_ROUTING,
    RDMA_ID_ROUTED,
    RDMA_ID_FINDING, /* The world is asked again, since that may have changed. */
    RDMA_ID_CONNECTING,
    RDMA_ID_REQUESTED, /* A peer's request waits for the program's answer. */
    RDMA_ID_CONNECTED,
    RDMA_ID_DISCONNECTED, /* Or never connected: an id asks for one connection in its life. */
    RDMA_ID_LISTENING,
};

/* The values of enum rdma_cm_event_type. */
enum rdma_event_kind {
    RDMA_EVENT_ADDR_RESOLVED,
    RDMA_EVENT_ADDR_ERROR,
    RDMA_EVENT_ROUTE_RESOLVED,
    RDMA_EVENT_ROUTE_ERROR,
    RDMA_EVENT_CONNECT_REQUEST,
    RDMA_EVENT_CONNECT_RESPONSE,
    RDMA_EVENT_CONNECT_ERROR,
    RDMA_EVENT_UNREACHABLE,
    RDMA_EVENT_REJECTED,
    RDMA_EVENT_ESTABLISHED,
    RDMA_EVENT_DISCONNECTED,
    RDMA_EVENT_DEVICE_REMOVAL,
    RDMA_EVENT_MULTICAST_JOIN,
    RDMA_EVENT_MULTICAST_ERROR,
    RDMA_EVENT_ADDR_CHANGE,
    RDMA_EVENT_TIMEWAIT_EXIT,
    RDMA_EVENT_USER = 18, /* A program tells itself something, ... */
    RDMA_EVENT_INTERNAL,  /* ... or librdmacm does. */
};

/* The parameters of a connection that each side tells the other. */
struct rdma_parameters {
    uint8_t private_data[RDMA_CM_PRIVATE_BYTES_MAX];
    uint8_t private_bytes;
    uint8_t responder_resources, initiator_depth;
    bool flow_control, srq;
    uint8_t retry_count, rnr_retry_count;
    uint32_t qpn;
    uint32_t qkey; /* UD. */
};

struct rdma_channel {
    struct list events;  /* struct rdma_event, oldest first. */
    struct list changed; /* In rdma_cm.changed. */
};

struct rdma_multicast;

struct rdma_id {
    struct cm_connection connection;
    struct list listening; /* In rdma_cm.listeners. */
    struct list asking;    /* In rdma_cm.questions. */
    struct list released;
    struct rdma_channel *channel; /* NULL: not in a program's hands (any more). */
    /* The listener that got the request, while REQUESTED; NULL: closed. */
    struct rdma_id *listener;
    uint64_t uid;        /* The program's name for it; 0: it has not learned of it. */
    uint32_t handle;     /* The world's own: the manager does not look at it. */
    uint16_t port_space; /* enum rdma_port_space. */
    uint8_t state;       /* enum rdma_id_state. */
    bool datagrams;      /* A UD queue pair: service ID resolution instead of REQ. */
    bool unreliable;     /* UC instead of RC. */
    bool alive;          /* Not yet released by the program. */
    struct rdma_address source, destination;
    uint8_t source_gid[16], peer_gid[16];
    bool has_path; /* Both GIDs are known. */
    uint8_t type_of_service;
    uint8_t ack_timeout; /* 0: as the path says. */
    /* The program set it: it holds for the queue pair instead of the path's. */
    bool ack_timeout_set;
    bool ipv6_only;   /* LISTENING on any address: not for IPv4. */
    uint8_t path_mtu; /* enum path_mtu. */
    uint32_t backlog; /* LISTENING: the number of requests that may still come in. */
    uint32_t events_reported;
    /* FINDING: the parameters of the request, for when the peer is found. */
    struct rdma_parameters wish;
    /* CONNECTING and later. */
    uint32_t starting_psn, remote_starting_psn; /* Where the peer, where we begin to send. */
    uint32_t remote_qpn;
    uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count;
    uint8_t path_ack_timeout;
    uint32_t qkey;
};

/* A group that a UD queue pair belongs to. */
struct rdma_multicast {
    struct rdma_id *id;
    uint64_t uid;
    uint32_t handle; /* The world's own, as in rdma_id. */
    struct rdma_address group;
    uint32_t events_reported;
};

struct rdma_event {
    struct list node; /* In a channel, or in the stock. */
    enum rdma_event_kind kind;
    int status;                       /* 0, a negative errno, or the reason of a REJ. */
    struct rdma_id *id;               /* CONNECT_REQUEST: the new one. */
    struct rdma_id *listener;         /* CONNECT_REQUEST. */
    struct rdma_multicast *multicast; /* MULTICAST_*. */
    struct rdma_parameters parameters;
    uint8_t peer_gid[16]; /* UD: where to send. */
    uint64_t argument;    /* USER, INTERNAL. */
};

/* A question to the world, which answers at once or later. */
enum rdma_question {
    RDMA_QUESTION_ADDRESS, /* Which way to id->destination? rdma_cm_on_route, _on_no_route. */
    /* Which process serves id->destination.port? rdma_cm_on_found, _on_nobody. */
    RDMA_QUESTION_SERVICE,
    RDMA_QUESTION_SERVER, /* The same of an id that connects: a server may be about to come. */
};

/* The way to an id's destination. */
struct rdma_route {
    struct rdma_address source; /* The address that the id sends from: its own, if it has one. */
    uint8_t source_gid[16];     /* The GID of ours that stands for it. */
    uint8_t path_mtu;           /* enum path_mtu. */
};

/* The process that serves the port that an id asked for. */
struct rdma_server {
    uint8_t gid[16];
    uint8_t source_gid[16]; /* The GID of ours to reach it from. */
    uint32_t process;       /* Which process behind `gid`; the world's number; 0: unknown. */
};

struct rdma_cm_counters {
    uint64_t no_listener, backlog_full, malformed_request;
};

struct rdma_cm {
    struct cm cm;
    struct list listeners, questions;
    /* Channels that may have become readable, or not; the world has to look. */
    struct list changed;
    struct list spare_ids;    /* By `released`. */
    struct list spare_events; /* By `node`. */
    uint32_t spare_id_count, spare_event_count;
    struct list released; /* Ids that the manager has let go. */
    uint8_t path_mtu_max; /* enum path_mtu: the port's, which the world may lower. */
    struct rdma_cm_counters counters;
};

void rdma_cm_init(struct rdma_cm *manager, uint64_t seed, uint8_t id_base, uint64_t ca_guid);

/* -- Memory -------------------------------------------------------------------------------------*/

/* Before each call that may need it, the world makes sure that the stock holds RDMA_SPARE_IDS and
 * RDMA_SPARE_EVENTS. A call that finds less fails with STATUS_FULL or drops the message. */
#define RDMA_SPARE_IDS    1
#define RDMA_SPARE_EVENTS 4
void rdma_cm_give_id(struct rdma_cm *manager, struct rdma_id *memory);
void rdma_cm_give_event(struct rdma_cm *manager, struct rdma_event *memory);
/* Is there less in stock than the next call may need? */
MUST_USE bool rdma_cm_wants_id(const struct rdma_cm *manager);
MUST_USE bool rdma_cm_wants_event(const struct rdma_cm *manager);
/* An event out of the stock, which is the caller's again; NULL: there is none. */
struct rdma_event *rdma_cm_take_spare_event(struct rdma_cm *manager);

/* Ids that are the world's again, after rdma_id_release; NULL if there is none. */
struct rdma_id *rdma_cm_next_released(struct rdma_cm *manager);

/* -- Channels -----------------------------------------------------------------------------------*/

void rdma_channel_init(struct rdma_channel *channel);
/* The oldest event, which stays; NULL if there is none. */
const struct rdma_event *rdma_channel_peek(const struct rdma_channel *channel);
/* The oldest event, off the channel and reported to the program; NULL if there is none. The caller
 * gives it back as stock. */
struct rdma_event *rdma_channel_take(struct rdma_cm *manager, struct rdma_channel *channel);
/* Nobody holds ids of this channel any more. */
void rdma_channel_forget(struct rdma_channel *channel);
/* A channel that may have become empty, or has no longer been; NULL if there is none. */
struct rdma_channel *rdma_cm_next_changed(struct rdma_cm *manager);

/* -- Ids ----------------------------------------------------------------------------------------*/

void rdma_id_init(struct rdma_id *id, struct rdma_channel *channel, uint16_t port_space,
                  uint64_t uid);
/* Port space IB, before anything else: RC, UC or UD. The other spaces say it themselves. */
void rdma_id_set_service(struct rdma_id *id, enum roce_service service);
void rdma_id_set_type_of_service(struct rdma_id *id, uint8_t type_of_service);
/* INVALID: not a code of 5 bits, or not RC. 0: as the path says. */
MUST_USE enum status rdma_id_set_ack_timeout(struct rdma_id *id, uint8_t code);
/* INVALID: it is neither unbound nor just bound. */
MUST_USE enum status rdma_id_set_ipv6_only(struct rdma_id *id, bool ipv6_only);
/* The address is the program's to use: the world has made sure. */
MUST_USE enum status rdma_id_bind(struct rdma_id *id, const struct rdma_address *address,
                                  const uint8_t gid[16]);
/* BOUND, and should there be no way, again. A destination of any address is this machine's loopback
 * address, as with TCP. INVALID also: an address of another family than the id's. */
MUST_USE enum status rdma_id_resolve_address(struct rdma_cm *manager, struct rdma_id *id,
                                             const struct rdma_address *destination);
MUST_USE enum status rdma_id_resolve_route(struct rdma_cm *manager, struct rdma_id *id);
MUST_USE enum status rdma_id_listen(struct rdma_cm *manager, struct rdma_id *id, uint32_t backlog);
MUST_USE enum status rdma_id_connect(struct rdma_cm *manager, struct rdma_id *id,
                                     const struct rdma_parameters *parameters);
/* `uid`: the program's name for the id that came with a request. */
MUST_USE enum status rdma_id_accept(struct rdma_cm *manager, struct rdma_id *id,
                                    const struct rdma_parameters *parameters, uint64_t uid,
                                    struct instant now);
/* Active side, after CONNECT_RESPONSE: the queue pair is ready. */
MUST_USE enum status rdma_id_establish(struct rdma_cm *manager, struct rdma_id *id,
                                       struct instant now);
/* The queue pair has received although no RTU came. */
MUST_USE enum status rdma_id_note_established(struct rdma_cm *manager, struct rdma_id *id);
MUST_USE enum status rdma_id_reject(struct rdma_cm *manager, struct rdma_id *id,
                                    enum cm_reason reason, const void *private_data,
                                    size_t private_bytes);
MUST_USE enum status rdma_id_disconnect(struct rdma_cm *manager, struct rdma_id *id,
                                        struct instant now);
/* An event of the program, not of the connection, for the reader of the channel. */
MUST_USE enum status rdma_id_tell(struct rdma_cm *manager, struct rdma_id *id,
                                  enum rdma_event_kind kind, int status, uint64_t argument);
/* Its events that nobody fetched move along. */
void rdma_id_migrate(struct rdma_cm *manager, struct rdma_id *id, struct rdma_channel *to);

/* The program lets go: events that nobody fetched vanish, requests that a listener has not told its
 * program of are refused, the peer is told. The memory comes back by rdma_cm_next_released. */
void rdma_id_release(struct rdma_cm *manager, struct rdma_id *id, struct instant now);
/* Are there events about it that nobody has fetched? */
bool rdma_id_has_events(const struct rdma_id *id);

/* How far an id is. */
bool rdma_id_is_idle(const struct rdma_id *id);  /* Neither bound nor on its way anywhere. */
bool rdma_id_is_bound(const struct rdma_id *id); /* It has an address, and is not on its way. */
/* It has resolved its route, or came with a peer's request: the path to the peer is known. */
bool rdma_id_has_route(const struct rdma_id *id);
/* It has connected or came with a peer's request, even if that has failed. */
bool rdma_id_has_connection(const struct rdma_id *id);
/* It has sent or received a request, or listens for them: peers may reach its queue pair. */
bool rdma_id_expects_peer(const struct rdma_id *id);

/* -- Multicast ----------------------------------------------------------------------------------*/

/* The group is the id's, and MULTICAST_JOIN tells of it; groups need no agreement on RoCE. */
MUST_USE enum status rdma_multicast_join(struct rdma_cm *manager, struct rdma_multicast *multicast,
                                         struct rdma_id *id, const struct rdma_address *group,
                                         uint64_t uid);
/* Events of it that nobody fetched vanish; the memory is the caller's. */
void rdma_multicast_leave(struct rdma_cm *manager, struct rdma_multicast *multicast);

/* -- The world ----------------------------------------------------------------------------------*/

/* An id with a question that has not been put to the world; NULL if there is none. */
struct rdma_id *rdma_cm_next_question(struct rdma_cm *manager, enum rdma_question *question);
/* The answers. An id that no longer waits for one is left alone. */
void rdma_cm_on_route(struct rdma_cm *manager, struct rdma_id *id, const struct rdma_route *route);
/* `failure`: a positive errno. */
void rdma_cm_on_no_route(struct rdma_cm *manager, struct rdma_id *id, int failure);
void rdma_cm_on_found(struct rdma_cm *manager, struct rdma_id *id, const struct rdma_server *server,
                      struct instant now);
/* Nobody serves the port (yet). */
void rdma_cm_on_nobody(struct rdma_cm *manager, struct rdma_id *id);

/* Does one of our ids listen for a request to this service and address? */
MUST_USE bool rdma_cm_listens(struct rdma_cm *manager, uint64_t service_id,
                              const struct cm_addresses *addresses, bool datagrams);

void rdma_cm_on_message(struct rdma_cm *manager, const uint8_t source[16],
                        const uint8_t destination[16], const uint8_t *bytes, size_t count,
                        struct instant now);
void rdma_cm_on_time(struct rdma_cm *manager, struct instant now);

#endif
