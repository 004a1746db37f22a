/* SPDX-License-Identifier: BSD-2-Clause
 *
 * roce - RoCEv2 NICs with numbers, on the switches and lines of a topology.
 *
 * Purpose    Gives times to the NIC that all of nonic shares (nic/nic.h): the engine decides the
 *            content and the effect of a packet, this machine decides when. Programs are elsewhere:
 *            they post and poll by the engine's functions, and ring doorbells here.
 * Inputs     roce_doorbell, roce_poke; memory, by struct roce_host.
 * Outputs    struct roce_host: reads and writes of the programs' memory, and on_change.
 * Ownership  An engine and its objects are their user's, in place from roce_attach until
 *            roce_detach. The machine allocates when it is opened and when somebody is attached.
 * Time       Picoseconds of the simulation; the engine is told nanoseconds, rounded down.
 * Limits     RC, UC and UD (and XRC) of up to ROCE_FUNCTIONS_MAX functions; no SRD, no blocks, no
 *            multicast. ROCE_FLIGHTS_MAX packets under way.
 * Source     docs/decisions/0070-roce.md: what is modelled, and what is not; parameters.c: where
 *            each number comes from.
 *
 * A message's way: doorbell (a posted write), work request (a DMA read; none if the doorbell
 * carries it), context (a DMA read if it is not on the chip), payload (a DMA read for each packet),
 * the sender's pipeline, the network, the receiver's pipeline, context, DMA write, completion.
 *
 * The payload of a packet is what its memory holds when its DMA read ends; of a datagram or a
 * packet of UC, when the read begins, because the engine completes these requests then. Inline data
 * are those of the post. A completion is visible after its data, and an acknowledgement leaves
 * after the data that it acknowledges are visible.
 *
 * The address vectors' `link` is ROCE_LINK(number of the destination function), or NULL for nobody.
 */
#ifndef LAB_ROCE_ROCE_H
#define LAB_ROCE_ROCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hardware/csrna/qpc_cache.h"
#include "nic/nic.h"
#include "sim/capture.h"
#include "sim/kernel.h"
#include "sim/parts/ethernet_switch.h"
#include "sim/trace.h"
#include "wire/cm.h"

#define ROCE_FUNCTIONS_MAX 4096u
#define ROCE_FLIGHTS_MAX   (1u << 17)
#define ROCE_TEXT_BYTES    160

#define ROCE_LINK(number) ((void *)((uintptr_t)(number) + 1))

/* -- Configuration ------------------------------------------------------------------------------*/

/* PCI Express between the processor and the NIC: each direction is a wire of its own. */
struct roce_pcie {
    uint64_t byte_fs;
    uint32_t payload_bytes; /* MPS: the most data of a TLP. */
    uint32_t request_bytes; /* MRRS: the most that a TLP asks for. */
    /* Bytes that each TLP takes beside its data: a write; a read request; a completion. */
    uint32_t write_header_bytes, request_header_bytes, completion_header_bytes;
    uint64_t read_ps;     /* From a read's begin to its first byte at the NIC. */
    uint64_t write_ps;    /* From a write's last byte on the bus until it is visible. */
    uint64_t doorbell_ps; /* Likewise, of the processor's write to the NIC. */
};

/* A NIC whose units ask for contexts as csRNA's do, with its units of hardware/csrna: a scheduler
 * of queue pairs, a management of contexts, three units that ask (docs/decisions/0071). */
struct roce_units_config {
    uint64_t cycle_ps;    /* The NIC's clock; 0: this NIC has no such units. */
    bool blocks;          /* A missing context blocks all others (FCFS). */
    bool hides, prefetch; /* Work requests are read without the context; and it beside them. */
    bool on_board;        /* Contexts lie in the memory of the board, which has its own bus. */
    bool writes_back;     /* A changed context is written when it goes. */
    bool acks_ask;        /* An acknowledgement needs a context at the sender. */
    enum qpc_victim_policy victims;
    uint32_t oocap;
    uint64_t board_ps, board_byte_fs;
    uint32_t access_bytes; /* An access of the board's memory costs these beside its data. */
    uint64_t software_ps;  /* From a post to its doorbell. */
    uint32_t processing;   /* Cycles of the slowest unit, a packet. */
    uint32_t wqe_room, visit_wqes, visit_bytes, ready, payloads;
    uint64_t backlog_ps;
};

struct roce_config {
    /* A description as topology_open reads it; or if `text` is given, a graph as topology_parse
     * reads it. Each node has one port, which leads to a switch. */
    char topology[ROCE_TEXT_BYTES];
    const char *text; /* Read by roce_open only. */
    size_t text_bytes;

    struct roce_pcie pcie;
    bool doorbell_carries;  /* A doorbell for one work request has the request in it (BlueFlame). */
    uint32_t wqe_bytes;     /* A work request, */
    uint32_t cqe_bytes;     /* a completion, */
    uint32_t context_bytes; /* and a context, in the host's memory. */
    uint32_t contexts;      /* That are on the chip, the least recently used one goes; 0: all. */
    struct roce_units_config units;
    /* Writes of a peer are acknowledged when the bus has taken them, and not when memory has. */
    bool posts_writes;
    uint64_t send_ps;     /* From a packet's last byte of DMA to its line, */
    uint64_t receive_ps;  /* and from the line to the first thing that is done for it. */
    uint64_t complete_ps; /* From visible data, or an acknowledgement, to the completion. */
    uint64_t packet_ps;   /* The least time between two packets, each way. */
    bool one_path;        /* All packets for a node take one of its shortest paths. */
    uint32_t room_bytes;  /* With more bytes than this before the line no packet begins. */

    struct sim_wire_kind line; /* If the topology does not give its rate or latency. */
    struct sim_ethernet_switch_kind switches; /* All but their lines; xoff 0: by their headroom. */
};

/* The values of the parameters that make a NIC and its network, in the order of parameters.c. */
#define ROCE_SETTING_COUNT 31u
struct roce_settings {
    double values[ROCE_SETTING_COUNT];
};

struct roce_settings roce_settings_default(void);
/* Changes one: "name=value" or "name=valueUNIT". False, and why. */
MUST_USE bool roce_set(struct roce_settings *settings, const char *assignment, char *error,
                       size_t error_bytes);
/* A configuration but for its topology, which is the caller's to write. */
struct roce_config roce_config_of(const struct roce_settings *settings);

/* -- Machines -----------------------------------------------------------------------------------*/

struct roce; /* One fabric with its nodes. */
/* A process's part of a node's NIC (SR-IOV's word), with an engine of its own. Functions of one
 * node share its PCIe and its line. */
struct roce_function;

/* The memory that a NIC reaches by PCIe, and whom it tells. Called at the virtual time at which it
 * happens; may call roce_doorbell and roce_poke, but not attach or detach. */
struct roce_host {
    void *context;
    /* False: the memory is not there. */
    bool (*read)(void *context, uint64_t address, void *into, size_t bytes);
    bool (*write)(void *context, uint64_t address, const void *from, size_t bytes);
    /* Memory or completions changed, or notifications or events wait: a program that looks now sees
     * something new. */
    void (*on_change)(void *context);
    /* A datagram for QP 1, which the engine does not have, has come, with its completion. */
    void (*on_datagram)(void *context, const struct gid *source, const struct gid *destination,
                        const uint8_t *payload, uint32_t bytes);
};

/* NULL with a reason. `sim` stays in place until roce_close. */
struct roce *roce_open(struct sim *sim, const struct roce_config *config, char *error,
                       size_t error_bytes);
void roce_close(struct roce *roce);
uint32_t roce_nodes(const struct roce *roce);

/* Each packet is written into the capture when it leaves its NIC. NULL: none is, as at first. */
void roce_capture(struct roce *roce, struct sim_capture *capture);
/* The trace gets, for each node, the bytes that wait before its line. To be called once, early. */
void roce_trace(struct roce *roce, struct sim_trace *trace);

/* `node` is less than roce_nodes. NULL: there are ROCE_FUNCTIONS_MAX functions already. The engine
 * must speak neither blocks nor SRD. */
struct roce_function *roce_attach(struct roce *roce, uint32_t node, struct nic *engine,
                                  const struct roce_host *host);
/* The process ended: its engine is not touched any more, and packets for it are dropped and
 * counted. Its number is not given again. */
void roce_detach(struct roce_function *function);
uint32_t roce_number(const struct roce_function *function);

/* The processor writes the doorbell of a queue pair now, for everything that it has posted. */
void roce_doorbell(struct roce_function *function, struct qp *qp);
/* The process changed something else: a queue pair's state, receives. */
void roce_poke(struct roce_function *function);
/* Sends a datagram from QP 1 to the QP 1 of the function behind `av`: a doorbell, a work request, a
 * DMA read, and what other packets take. Its bytes are those of now. */
void roce_manage(struct roce_function *function, const struct nic_av *av,
                 const uint8_t mad[CM_MAD_BYTES]);
/* When all bytes of packets that the engine has judged by now are in memory: a region that is gone
 * before is written to until then. */
uint64_t roce_reached_ps(const struct roce_function *function);
/* The queue pair is about to be destroyed: what is under way for it is dropped. */
void roce_forget(struct roce_function *function, const struct qp *qp);

/* -- Counters -----------------------------------------------------------------------------------*/

struct roce_counters {
    uint64_t packets;       /* That were put on lines, or looped back. */
    uint64_t nobody;        /* Packets for no function, or for one that was detached. */
    uint64_t lost;          /* By switches, that had no room. */
    uint64_t unwritable;    /* Packets that were acknowledged, and whose memory was not there. */
    uint64_t unreadable;    /* Packets whose payload was not there at its DMA time. */
    uint64_t forgotten;     /* Packets of queue pairs that were destroyed meanwhile. */
    uint64_t contexts_read; /* Contexts that were not on the chip. */
    struct sim_switch_counters switches; /* All switches together. */
};
struct roce_counters roce_counters_of(const struct roce *roce);

/* The counters of one node's NIC. */
struct roce_node_counters {
    uint64_t contexts_asked, contexts_found; /* On the chip. */
    uint64_t contexts_read;
    /* One request of each reliable connection is followed at a time, the last one of a post: from
     * there until it is complete. */
    uint64_t followed, followed_ps;
};
struct roce_node_counters roce_node_counters_of(const struct roce *roce, uint32_t node);

#endif
