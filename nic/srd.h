/* SPDX-License-Identifier: BSD-2-Clause
 *
 * srd - queue pairs of scalable reliable datagrams (SRD), as a world and verbs see them.
 *
 * Purpose    Everything that SRD has beside the calls of nic/queue_pair.h: names of queue pairs,
 *            hosts (what an address handle is to the NIC), and how requests end.
 * Inputs     Queue pairs of type QP_SRD. They are made, changed and posted to as those of UD are:
 *
 *              qp_create       request.type = QP_SRD, request.unsolicited; no shared receive queue.
 *              qp_modify       As UD, and QP_ATTR_RNR_RETRY from RTR to RTS.
 *              qp_post_send    SEND, SEND_IMMEDIATE, WRITE, WRITE_IMMEDIATE, READ; request.av,
 *                              destination_qpn, destination_qkey of the target; for RDMA
 *                              remote_address and remote_key. Every request completes visibly.
 *              qp_post_receive As ever; no GRH stands in front of the message.
 *
 *            RDMA may be up to 2^30 bytes long, a SEND up to srd_limits.send_bytes.
 * Outputs    Completions: of requests in any order, each with an enum srd_status (wire/srd.h) as
 *            `vendor_error` and srd_completion_status of it as `status`. A receive has source_qpn,
 *            `host` (the sender's), and COMPLETION_UNSOLICITED if it consumed nothing (then wr_id
 *            is 0). No error of a request leaves its queue pair in another state.
 *            Packets leave by carriers, queue pairs of the NIC's own (nic_next_qp). Their address
 *            vectors have no link: a world that needs one finds it by nic_departure.av and
 *            destination_qpn.
 * Ownership  As nic/queue_pair.h says.
 * Limits     struct srd_limits.
 * Source     EFA's interface (rdma-core, providers/efa, kernel-headers efa_io_defs.h).
 */
#ifndef NIC_SRD_H
#define NIC_SRD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/status.h"
#include "nic/types.h"
#include "wire/srd.h"

struct nic;
struct nic_routes;

/* All 0: the NIC has no queue pairs of SRD. Otherwise each number is at least 1, qps of nic_limits
 * at most SRD_QPS_MAX, qpn_base the process' slot << 16, and qpn_span 256. */
struct srd_limits {
    uint32_t contacts;    /* Processes that are known; at most SRD_CONTACTS_MAX. */
    uint32_t peers;       /* Those with which something goes on at a time; SRD_PEERS_MAX. */
    uint32_t hosts;       /* GIDs; at most SRD_HOSTS_MAX. */
    uint32_t assemblies;  /* Messages that came in part. */
    uint32_t requests;    /* Requests of all queue pairs under way; others wait. */
    uint32_t parts;       /* Parts of requests under way, of up to 64 packets each. */
    uint32_t packets;     /* Packets under way. */
    uint32_t reads;       /* READs of peers that are being answered. */
    uint32_t send_bytes;  /* The longest SEND; at most SRD_PACKETS chunks. */
    uint32_t chunk_bytes; /* The payload of a packet: as the path's MTU allows. */
    uint32_t paths;       /* A flow has up to that number; at most SRD_FLOW_PATHS. */
    uint32_t alone_bytes; /* A flow sends them by one path before it gets others. */
    bool lenient;         /* RDMA is granted to peers for which there is no address handle, too. */
};

#define SRD_QPS_MAX        250u
#define SRD_HOSTS_MAX      65535u
#define SRD_PEERS_MAX      15000u
#define SRD_CONTACTS_MAX   ((1u << 24) - 1)
#define SRD_SGES_MAX       2u
#define SRD_RDMA_BYTES_MAX (1u << 30)
#define SRD_INLINE_MAX     80u /* Bytes of a request that may be inline. */

/* -- Names of queue pairs -----------------------------------------------------------------------
 * A program of EFA knows 16 bits: the process' slot and an index. Everywhere else in nic/ and
 * drivers/ a QPN has its slot in its upper 8 of 24 bits. */

/* The 24-bit number of the queue pair that a program of EFA calls `qpn`. */
static inline uint32_t srd_number_of(uint16_t qpn)
{
    return (uint32_t)(qpn >> 8) << 16 | (qpn & 0xff);
}

/* And back, for a number of a NIC with srd_limits. */
static inline uint16_t srd_qpn_of(uint32_t number)
{
    return (uint16_t)(number >> 8 | (number & 0xff));
}

/* -- Hosts --------------------------------------------------------------------------------------
 * A host is a GID that has an address handle here, or from which something came. EFA's address
 * handle number (ahn) is the host's number: all handles of one GID have the same. */

/* An address handle of that GID is made: *host is its number, until it is let go as often as it was
 * held. STATUS_FULL: all hosts are held, or have something under way. */
MUST_USE enum status srd_hold_host(struct nic *nic, const struct gid *gid, uint16_t *host);
void srd_let_host_go(struct nic *nic, uint16_t host);
/* The last handle of the host was let go: what waits for it ends with SRD_STATUS_FLUSHED. */
void srd_flush_host(struct nic *nic, uint16_t host);

/* Is the host one that has an address handle? A receive's completion names a sender that has none,
 * too: then efadv_wc_read_sgid tells its GID. */
bool srd_host_is_held(const struct nic *nic, uint16_t host);
const struct gid *srd_host_gid(const struct nic *nic, uint16_t host);

/* -- Ways ---------------------------------------------------------------------------------------
 * A process may have several addresses and UDP ports. Its packets to another one leave by several
 * of them: nic_departure.av has the addresses of each, and nic_departure.route is 0 for RoCE's
 * port, or 1 + the number of another UDP source port of ours. */

/* Our addresses and ports: the world fills in its part of nic/routes.h once, and draws `random`
 * anew when it is 0. Unless it does, packets leave by the first way alone. */
struct nic_routes *srd_own_routes(struct nic *nic);

/* For tests: is nothing under way, and has every pool all that it had? */
bool srd_is_quiet(const struct nic *nic);
/* For tests: how many processes are known; with how many something goes on. */
uint32_t srd_contact_count(const struct nic *nic);
uint32_t srd_peer_count(const struct nic *nic);

/* -- How requests end ---------------------------------------------------------------------------*/

/* The status that verbs show for a status of SRD. */
enum completion_status srd_completion_status(enum srd_status status);

#endif
