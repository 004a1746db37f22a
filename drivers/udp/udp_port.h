/* SPDX-License-Identifier: BSD-2-Clause
 *
 * udp_port - RoCEv2 over ordinary UDP sockets, many packets per system call.
 *
 * Purpose    Sends departures in batches (UDP_SEGMENT, sendmmsg), receives coalesced ones
 *            (UDP_GRO).
 * Inputs     udp_port_transmit and udp_port_flush; udp_port_look.
 * Outputs    Datagrams on the wire; by udp_port_next, datagrams whose ICRC is right.
 * Ownership  The sockets belong to the address set. A caller that asks for a link holds it
 *            (link_table.h), and packets that come in make no links.
 * Limits     UDP_BATCH_MAX packets before a flush happens by itself.
 * Source     IBTA Annex A17; docs/decisions/0005 (identification and ICRC on a plain socket).
 */
#ifndef DRIVERS_UDP_PORT_H
#define DRIVERS_UDP_PORT_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "base/check.h"
#include "base/status.h"
#include "drivers/address.h"
#include "drivers/link_table.h"
#include "nic/nic.h"
#include "nic/routes.h"
#include "wire/icrc.h"

/* linux/in6.h has it, beside structs that netinet/in.h has as well. */
#ifndef IPV6_FLOWINFO
#define IPV6_FLOWINFO 11
#endif

#define UDP_BATCH_MAX    256  /* Packets waiting for a flush. */
#define UDP_SEGMENTS_MAX 64   /* Datagrams of one segmented call: the kernel's UDP_MAX_SEGMENTS. */
#define UDP_PIECES_MAX   2048 /* Payload segments of a batch. */
#define UDP_FLOWS        64   /* Peers whose identification is remembered. */
#define UDP_GROUPS_MAX   256  /* Multicast groups, each a socket. */
#define UDP_PASSING_MAX  32   /* Peers that are answered and not remembered. */
/* The bytes that a packet counts for in a window beside its payload. With them, Linux charges a
 * receive buffer for a datagram of any size, its slab rounded up, less than twice the bytes that we
 * count (docs/decisions/0005). */
#define UDP_PACKET_COST 512
/* Room for the control data of a message that we send: the size of its segments; traffic class, hop
 * limit and flow label, where they are not the socket's own. */
#define UDP_CONTROL_BYTES (CMSG_SPACE(sizeof(uint16_t)) + 3 * CMSG_SPACE(sizeof(int)))
/* Room for the control data of a message that we receive: the size of coalesced datagrams, the time
 * when they came, their traffic class, hop limit and flow label. There is room for all, since
 * several processes may have set the options of a socket. */
#define UDP_TOLD_BYTES (4 * CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct timespec)))
/* A message brings at most this many bytes. The next message's buffer begins a stride further on: a
 * look ahead may read the longest headers, and packets of 1 KB lie in different sets of a cache. */
#define UDP_RECEIVE_BYTES  (1 << 16)
#define UDP_RECEIVE_STRIDE (UDP_RECEIVE_BYTES + 1088)
/* Messages that one call brings where nothing is coalesced. */
#define UDP_MESSAGES_MAX 32
/* A packet up to this size is copied together, into one vector. */
#define UDP_COPIED_BYTES_MAX 320
#define UDP_TAIL_BYTES       (NIC_HEADERS_BYTES_MAX - ROCE_HEADERS_BYTES_MAX)
/* Sockets of groups that one look finds readable. */
#define UDP_GROUPS_AT_ONCE 8

/* Does the peer answer probes (udp_flow.c)? */
enum udp_answers {
    UDP_ANSWERS_UNKNOWN,
    UDP_ANSWERS_YES,
    UDP_ANSWERS_NO, /* It is no nonic: only its transport limits the bytes in flight. */
};

struct udp_link {
    struct link link;
    uint8_t answers;           /* enum udp_answers. */
    uint8_t unanswered;        /* Windows in a row that opened without an answer; stops at 250. */
    bool to_group;             /* To a multicast group. */
    uint8_t ecn;               /* The bits of packets that leave here: 0, or ECT(0), ... */
    uint8_t socket_ecn;        /* ... and those that the socket sets if it is told nothing. */
    uint64_t sent;             /* Flight bytes ever handed to the kernel, ... */
    uint64_t probed;           /* ... the same at the time of the last probe, ... */
    uint64_t confirmed;        /* ... and those that the peer says it has taken in. */
    struct instant blocked_at; /* Since when there is no room; 0 ns: there is. */
    struct instant asked_at;   /* Valid then: when a probe was sent because of that. */
    struct udp_link *first;    /* The link that has the window: itself, unless this is the link of a
                                  route. */
    struct udp_routes *routes; /* NULL: there is route 0 alone. */
    struct udp_link *unmarked; /* The same for packets that may not be marked; NULL: not yet. */
    struct inet_flow flow;
    struct icrc_memo icrcs; /* The CRCs of `flow`. */
    struct sockaddr_storage to;
    socklen_t to_bytes;
    int fd;
    uint8_t route;                      /* A passing link was asked for by it. */
    bool in_flush;                      /* While a flush finds the packets of each link together: */
    uint32_t first_packet, last_packet; /* its first and newest one in the batch. */
};

/* udp_routes.c: the routes of a link. Packets of route 0 with the link's own ECN bits leave by the
 * link itself. All others have links of their own, so that no call has packets of two routes. */
struct udp_routes {
    struct nic_routes *told; /* The routes, as the NIC and the peer know them. */
    uint8_t taught; /* The number of the peer's part that `pairs` and `route_links` are made
                       from. */
    uint8_t pair_count;
    struct udp_link *pairs[NIC_ROUTE_GIDS_MAX + 1];  /* Between two addresses each; 0: the link. */
    struct udp_link *route_links[2][NIC_ROUTES_MAX]; /* Not to be marked, ECT(0); NULL: not yet. */
    struct udp_link *newest; /* The one that sent last, between the link's addresses; NULL: none. */
};

/* A socket that sends alone. */
struct udp_sender {
    int fd;
    uint16_t port;
    bool open;
};

/* One packet waiting for a flush. */
struct udp_packet {
    struct udp_link *link;
    uint8_t headers[ROCE_HEADERS_BYTES_MAX]; /* The rest of longer ones is the first piece. */
    uint32_t headers_bytes;
    uint32_t pad_bytes;
    uint32_t total_bytes; /* BTH to ICRC. */
    uint32_t first_piece, piece_count;
    struct inet_variant variant;
    bool whole;    /* One piece holds everything, ICRC included. */
    uint32_t next; /* During a flush: the next packet of this link. */
};

/* The state that is kept for a source of datagrams. */
struct udp_flow {
    struct gid source, destination;
    uint16_t port;
    bool known; /* A peer that is not nonic has identifications that we know (icrc.h): */
    uint16_t last, candidate;
    struct icrc_memo icrcs;
};

/* How a batch lies in the calls that send it, and calls that wait: udp_send.c, udp_wait.c. */
struct udp_layout;
struct udp_waiting;

struct udp_counters {
    uint64_t send_calls, receive_calls;
    uint64_t datagrams_sent, datagrams_received;
    uint64_t bad_icrc, implausible_identification, too_short;
    uint64_t probes_sent, probes_answered, probes_lost;
    uint64_t send_failed;   /* Refused by the kernel: lost, the transport's retries deal with it. */
    uint64_t send_waited;   /* Waited for room in the send buffer. */
    uint64_t routes_missed; /* Routes that have no socket, or no route of the kernel's. */
    /* Packets on an address that is shared: */
    uint64_t handed_on, handed_to_us; /* Read by the one process, owned by another. */
    uint64_t no_process;              /* Nobody owns them, ... */
    uint64_t process_full;            /* ... or the owner does not take them. */
};

/* One datagram whose ICRC was right. */
struct udp_datagram {
    struct gid source, destination;
    struct instant arrived; /* 0 ns: not known. A field of `variant` that is not known is plain. */
    struct inet_variant variant;
    const uint8_t *bytes; /* From the BTH on. */
    size_t count;         /* Without the ICRC. */
};

/* A look at the sockets takes several calls. This is its place, with the datagrams of its newest
 * call. */
struct udp_look {
    uint32_t index;   /* The address that is read, or the group: its place in `groups`. */
    uint32_t calls;   /* Made for it in this look. */
    uint32_t full;    /* The next address has its turn when this many datagrams have arrived. */
    bool more;        /* Another call for it may bring more. */
    uint32_t arrived; /* Datagrams of the whole look. */
    uint32_t group_count, groups[UDP_GROUPS_AT_ONCE];
    const struct address *address;
    bool handed_over;          /* Another process read these datagrams; else: */
    uint16_t segment;          /* the number of the next one of the coalesced datagrams, */
    size_t step;               /* and the size of each but the last one. */
    const uint8_t *next, *end; /* The bytes that are left. */
    const struct nic *nic;
    struct udp_flow *flow;
    struct inet_flow inet;
    struct udp_datagram datagram; /* The newest one. */
};

/* The messages of a call that brings several. */
struct udp_inbox {
    uint32_t next, count; /* Those that are left to be handed out. */
    struct mmsghdr messages[UDP_MESSAGES_MAX];
    struct iovec vectors[UDP_MESSAGES_MAX];
    struct sockaddr_storage from[UDP_MESSAGES_MAX];
    _Alignas(struct cmsghdr) char told[UDP_MESSAGES_MAX][UDP_TOLD_BYTES];
};

struct udp_port {
    const struct address_set *addresses;
    bool segmenting;        /* The kernel offers UDP_SEGMENT, and the device has not refused it. */
    bool observing;         /* Datagrams tell when they arrived, and their traffic class, ... */
    bool showing;           /* ... or all fields of their IP headers that vary. */
    bool doubtful;          /* It was refused, but one packet alone may be refused as well. */
    bool labels_refused;    /* The kernel takes no flow label that nobody leased: it chooses. */
    bool explained;         /* The program was told that its packets are too large. */
    uint8_t ports;          /* UDP source ports of an address, from 1 on. */
    uint32_t receive_bytes; /* Receive buffer the kernel granted. */
    bool markable[ADDRESS_MAX]; /* Packets from there may be marked (udp_port_serve_connections). */
    struct udp_counters counters;
    struct link_table links;
    uint32_t peers;           /* Links that lead to one. */
    struct udp_link *passing; /* UDP_PASSING_MAX of them, */
    uint32_t passing_next;    /* ... of which this is the next one to lead to somebody else. */
    struct udp_flow flows[UDP_FLOWS];
    struct udp_packet *batch;
    struct iovec *pieces;
    struct udp_layout *layout;
    struct udp_waiting *waiting;
    uint32_t batch_count, piece_count;
    bool blocked;                  /* The send buffer was full: messages wait. */
    uint32_t fruitful_looks;       /* Looks at the addresses in a row that brought something. */
    uint32_t order[UDP_BATCH_MAX]; /* The batch link by link, during a flush. */
    bool answering;                /* The batch holds an answer that a peer may be waiting for. */
    uint8_t *arena;                /* Headers, pads and ICRCs of a flush; bounced payloads. */
    uint8_t *tails;                /* The rest of long headers, UDP_TAIL_BYTES a packet. */
    bool alone;                    /* The newest message was one datagram: none are coalesced. */
    struct udp_inbox *inbox;
    uint8_t *receive_buffer; /* UDP_RECEIVE_STRIDE for each message. */
    uint8_t *bounce;         /* One packet's payload that needs copying. */
    /* The control data that the kernel tells beside a datagram. It stands here, since 80 bytes more
     * of the stack cost a look a hundredth of its time. */
    _Alignas(struct cmsghdr) char told[UDP_TOLD_BYTES];
    int groups_fd; /* epoll: the sockets of all groups. */
    uint32_t group_count;
    struct address groups[UDP_GROUPS_MAX]; /* Joined: each with a socket bound to it. */
    struct udp_sender senders[ADDRESS_MAX][NIC_ROUTES_MAX];
    struct {
        uint8_t *bytes; /* NULL: no address is shared. */
        size_t count;
        uint32_t slot, packets; /* The slot that it is for. */
    } handover;                 /* Packets of one call that another process owns. */
    struct udp_look look;
};

MUST_USE bool udp_port_open(struct udp_port *port, const struct address_set *addresses, char *error,
                            size_t error_bytes);
void udp_port_close(struct udp_port *port);

/* The sockets are closed, and their numbers soon another file's: no link uses them any more. */
void udp_port_forget_sockets(struct udp_port *port);

/* The link from one of our GIDs to a peer's process, held once more; LOCAL_NO_SLOT: it has but one.
 * NULL if they are of different families. */
struct link *udp_port_link(struct udp_port *port, const struct gid *source,
                           const struct gid *destination, int slot);
/* The same if there is one, else NULL. Not held for it. */
struct link *udp_port_known_link(struct udp_port *port, const struct gid *source,
                                 const struct gid *destination, int slot);
void udp_port_release(struct udp_port *port, struct link *link);
/* Removes an idle link, after the packets of the batch have left. */
void udp_port_drop(struct udp_port *port, struct link *link);

/* A link for a packet that is sent now and needs no memory of the peer: an answer, a management
 * datagram. Anybody may cause such packets, with any source address, so nothing is allocated: if
 * the link was not asked for before, it is one of UDP_PASSING_MAX, and leads to other peers later.
 * NULL as above. */
struct link *udp_port_passing_link(struct udp_port *port, const struct gid *source,
                                   const struct gid *destination, int slot);

/* The same for packets of SRD, from the socket that nic_departure.route says (nic/srd.h). */
struct link *udp_port_passing_route(struct udp_port *port, const struct gid *source,
                                    const struct gid *destination, uint8_t route);

/* udp_routes.c: from now on each address has `ports` UDP source ports, at most NIC_ROUTES_MAX.
 * Links that were offered routes before have as many as they had. */
void udp_port_use_ports(struct udp_port *port, uint32_t ports);
/* Fills the world's part of `routes`; from now on the link leads by these routes, and once `routes`
 * knows of blocks, the port observes arrivals. A socket is opened when a route is first used.
 * False: no memory, and there is route 0 alone. */
MUST_USE bool udp_port_offer_routes(struct udp_port *port, struct link *link,
                                    struct nic_routes *routes);
/* Fills the world's part of `routes`, for links that lead from `self` and are asked for by
 * udp_port_passing_route; but no random number. */
void udp_port_describe_routes(const struct udp_port *port, const struct gid *self,
                              struct nic_routes *routes);
/* A number that the NIC takes for its next challenge, if it has none. */
void udp_port_draw(struct nic_routes *routes);
/* The link for packets that leave by that route of `link`, which was offered routes unless `route`
 * is 0. Not compiled into its one caller, where the packets of RC pass. */
__attribute__((noinline)) struct link *udp_port_route(struct udp_port *port, struct link *link,
                                                      uint8_t route, enum nic_ecn ecn);

#define UDP_ECT_0 2 /* RFC 3168 */

/* Do packets that leave by `link` have the ECN bits that they are to have? */
static inline bool udp_link_suits(const struct link *base, enum nic_ecn ecn)
{
    const struct udp_link *link = CONTAINER_OF_CONST(base, struct udp_link, link);
    return ecn == NIC_ECN_OF_PATH || link->ecn == (ecn == NIC_ECN_CAPABLE ? UDP_ECT_0 : 0);
}

/* The addresses and ports of packets that leave by `link`. */
const struct inet_flow *udp_link_flow(const struct link *link);

/* udp_multicast.c: the link from one of our GIDs to a multicast group, over at most `hop_limit` - 1
 * routers; 0: to programs of this machine only. Held; NULL if they are of different families. */
struct link *udp_port_group_link(struct udp_port *port, const struct gid *source,
                                 const struct gid *group, uint8_t hop_limit);
/* An address has come back on another interface: packets to groups leave by that one. */
void udp_groups_steer(struct udp_port *port);

/* udp_multicast.c: from here on packets to the group come in, also if other programs of this
 * machine receive them. STATUS_INVALID: we have no address of its family; STATUS_FULL: the kernel
 * gives no (more) socket or membership. */
MUST_USE enum status udp_port_join(struct udp_port *port, const struct gid *group);
void udp_port_leave(struct udp_port *port, const struct gid *group);

/* Adds a packet to the batch. Its payload stays where it is until the flush. False: the payload is
 * not there (an on-demand region, or unmapped). */
MUST_USE bool udp_port_transmit(struct udp_port *port, struct link *link,
                                const struct nic_departure *departure);

/* Adds a ready UDP payload, BTH to ICRC, computed for identification 0, to go as it is. Flushes. */
void udp_port_transmit_raw(struct udp_port *port, struct link *link, struct inet_variant variant,
                           const uint8_t *bytes, size_t count);
void udp_port_flush(struct udp_port *port);

/* udp_wait.c: messages that still wait for room in the send buffer leave, if they can within
 * `limit_ms`. */
void udp_port_drain(struct udp_port *port, int limit_ms);

/* Adds a packet that is headers alone, without its ICRC. */
void udp_port_transmit_headers(struct udp_port *port, struct udp_link *link, const uint8_t *headers,
                               uint32_t headers_bytes);

/* Looks once at a socket: one call. Returns the number of datagrams that it brought, for
 * udp_port_next; 0 ends the look, in which each address brings about `quantum`. The memory of `nic`
 * for datagrams that came together is prefetched; NULL: it is not. */
uint32_t udp_port_look(struct udp_port *port, uint32_t quantum, const struct nic *nic);
/* The same for the groups, whose datagrams have the group as destination. */
uint32_t udp_port_look_at_groups(struct udp_port *port, uint32_t quantum);

/* udp_share.c: the shared address to which `fd` belongs; NULL: none. */
const struct address *udp_port_shared(const struct udp_port *port, int fd);
/* `fd` is readable: looks there once. False: the call brought no datagrams, which ends the look. */
MUST_USE bool udp_port_look_at_shared(struct udp_port *port, const struct address *address, int fd);

/* A part of udp_port_next, for when something is left. */
const struct udp_datagram *udp_next_datagram(struct udp_port *port);
/* The next datagram of the newest look; it is valid until the next one is asked for. NULL: there is
 * no more. The caller asks until then, before it looks again. */
static inline const struct udp_datagram *udp_port_next(struct udp_port *port)
{
    return port->look.next < port->look.end ? udp_next_datagram(port) : NULL;
}

/* From now on datagrams tell when they came in, and their traffic class. They do so only after this
 * call, because each of the two takes a twentieth of a call's time. */
void udp_port_observe(struct udp_port *port);

/* A connection begins at that address of ours: from now on packets leave from there as ECT(0),
 * unless they ask for something else, and datagrams that come in tell their traffic class, and so a
 * router's mark. Changes nothing at a loopback address, where no router is. No packet costs a call
 * or control data for it; to be told the traffic class takes a part of the 42 ns that
 * docs/decisions/0005 names. */
void udp_port_serve_connections(struct udp_port *port, const struct gid *self);

/* From now on datagrams tell the fields of their IP headers that vary, which takes as much of a
 * call's time: only a NIC with UD queue pairs passes them on. Datagrams of groups always tell
 * them. */
void udp_port_show_variants(struct udp_port *port);
/* udp_port.c, for udp_multicast.c: the same for one socket. */
void udp_show_variants(int fd, bool ipv4, bool on);

/* udp_share.c: a packet that came for `destination`, and is for the process of that slot there.
 * False: there is none. */
MUST_USE bool udp_port_hand_on(struct udp_port *port, const struct gid *destination, uint32_t slot,
                               const struct udp_datagram *datagram);
/* Lets the thread's epoll watch the descriptors of shared addresses. */
MUST_USE bool udp_port_watch_shared(const struct udp_port *port, int epoll);

/* udp_share.c, for udp_receive.c: is this datagram for another process? Then it is noted in the
 * handover, which leaves when the owner changes, or by udp_share_flush. */
bool udp_share_hands_on(struct udp_port *port, const struct address *address,
                        const struct udp_datagram *datagram);
void udp_share_flush(struct udp_port *port, const struct address *address);
/* Is the next packet of a handover ours after all? */
bool udp_share_judge_next(struct udp_port *port);
/* udp_receive.c, for udp_share.c: one call on one socket of `address`. Returns the number of
 * datagrams that it brought. udp_end_look ends the look. */
uint32_t udp_receive_once(struct udp_port *port, const struct address *address, int fd);
void udp_end_look(struct udp_port *port);

/* Is there room for one more packet, so that the bytes in flight to the peer fit its receive
 * buffer? */
bool udp_link_has_room(struct udp_port *port, struct link *link, struct instant now);

/* Do messages that found no room in a send buffer still wait? */
bool udp_port_has_waiting(const struct udp_port *port);
/* Has the peer answered a probe, and not been silent for seconds since? */
bool udp_link_answers(const struct link *link);

/* udp_port.c, for udp_multicast.c: buffers and options of a socket bound, or to be bound, to the
 * port's UDP port; a link, found or made, which is not held for it. */
bool udp_prepare_socket(struct udp_port *port, int fd, bool ipv4);
/* A link of this port, or the link of one of its routes. */
void udp_link_check(const struct udp_link *link);
struct udp_link *udp_find_link(struct udp_port *port, const struct gid *source,
                               const struct gid *destination, int slot, uint8_t hop_limit);

/* udp_port.c, for udp_routes.c: an unconnected socket that forbids fragmentation; a link. */
void udp_forbid_fragments(int fd, bool ipv4);
void udp_init_link(const struct udp_port *port, struct udp_link *link,
                   const struct address *address, const struct gid *destination, int slot,
                   uint8_t hop_limit);
/* udp_routes.c, for udp_port.c: nobody holds the link any more, so it leads by no other. */
void udp_routes_rest(struct udp_link *link);
void udp_routes_free(struct udp_routes *routes);
void udp_routes_forget_sockets(struct udp_routes *routes);
/* udp_routes.c, for udp_port.c: the link leads from that one of the sockets of its address. */
void udp_routes_use_port(struct udp_port *port, struct udp_link *link, uint32_t place);
/* The socket `fd` sets ECT(0) from now on: links of these routes that use it take note. */
void udp_routes_note_markable(struct udp_routes *routes, int fd);
void udp_senders_close(struct udp_port *port);
void udp_senders_forget(struct udp_port *port);
/* udp_routes.c, for live_port.c: this address is on another interface than before. */
void udp_senders_steer(struct udp_port *port, uint32_t index);

/* udp_send.c, for udp_port.c: the memory for one flush, too large for the stack of a thread that
 * posts. */
MUST_USE struct udp_layout *udp_layout_make(void);

/* udp_wait.c, for the others of udp_*.c: the first `count` messages found the send buffer of `fd`
 * full. They are copied and leave at a later flush, or are lost if even that has no more room. Each
 * has the packets from its place on up to the next one's. */
MUST_USE struct udp_waiting *udp_waiting_make(void);
void udp_wait(struct udp_port *port, int fd, const struct mmsghdr *messages, const uint32_t *places,
              uint32_t count);
void udp_send_waiting(struct udp_port *port);
void udp_waiting_forget(struct udp_port *port);

/* udp_flow.c, for udp_send.c and udp_receive.c: udp_flow_sent counts a packet in flight, and sends
 * a probe after enough of them; udp_flow_on_datagram takes in a probe or an answer. */
void udp_flow_sent(struct udp_port *port, struct udp_link *link, uint32_t bytes);
void udp_flow_probe(struct udp_port *port, struct udp_link *link);
bool udp_flow_on_datagram(struct udp_port *port, const struct gid *source,
                          const struct gid *destination, const uint8_t *bytes, size_t count);

/* Bytes that one queue pair may have on their way to a peer with a receive buffer like ours. */
uint32_t udp_port_window_bytes(const struct udp_port *port);
/* Bytes that may be on their way to one peer in all, without overflowing its receive buffer. */
uint32_t udp_port_safe_bytes(const struct udp_port *port);

/* Is anybody reached over UDP, or any group joined? */
static inline bool udp_port_is_used(const struct udp_port *port)
{
    return port->peers + port->group_count > 0;
}

uint32_t udp_port_fd_count(const struct udp_port *port);
int udp_port_fd(const struct udp_port *port, uint32_t index);
uint64_t udp_port_bad_icrc(const struct udp_port *port);

#endif
