/* SPDX-License-Identifier: BSD-2-Clause
 *
 * internal - between the files of the csRNA NIC: csrna_nic.c (clock and units),
 * csrna_memory.c (buses and memories), csrna_answer.c (what units do with a context).
 */
#ifndef LAB_CSRNA_INTERNAL_H
#define LAB_CSRNA_INTERNAL_H

#include "lab/csrna/nic.h"

/* An entry of `messages` that stands for no message but for a resending. */
#define CSRNA_RESEND (1u << 31)

/* csrna_nic.c */
/* Says that the NIC has something to do at `at_ps`, or in the next cycle if that is later. */
void csrna_wake(struct csrna_nic *nic, uint64_t at_ps);
void csrna_ring_push(struct csrna_ring *ring, uint32_t value);
void csrna_queue_push(struct csrna_packets *queue, struct csrna_packet *packet);
/* A packet has all it needs; a request waits for the NIC's window. */
void csrna_send(struct csrna_nic *nic, struct csrna_packet *packet);
/* A read has been done. */
void csrna_on_read(struct csrna_nic *nic, const struct csrna_dma *dma);

/* csrna_memory.c */
struct csrna_qp *csrna_qp_of_number(struct csrna_nic *nic, uint32_t qpn);
/* Reads over a port, which answers in order. A read of 0 bytes only keeps its place in that
 * order. */
void csrna_read_bytes(struct csrna_nic *nic, struct csrna_reads *reads, struct csrna_port *port,
                      uint32_t bytes, struct csrna_dma dma);
/* Likewise over PCIe, once the address is translated (translate.c). */
void csrna_translated_read(struct csrna_nic *nic, uint32_t bytes, struct csrna_dma dma);
void csrna_translation_open(struct csrna_nic *nic);
void csrna_translation_close(struct csrna_nic *nic);
void csrna_read_context(struct csrna_nic *nic, uint32_t qpn);
void csrna_write_context(struct csrna_nic *nic, const struct qpc_victim *victim);
void csrna_read_wqes(struct csrna_nic *nic, uint32_t slot);
void csrna_on_reads(struct sim *sim, struct sim_event *event);
void csrna_on_accesses(struct sim *sim, struct sim_event *event);

/* csrna_answer.c */
static inline bool csrna_is_request(const struct csrna_packet *packet)
{
    return roce_opcode(packet->headers[0])->traits & ROCE_IS_REQUEST;
}

void csrna_store_context(const struct csrna_qp *qp, struct qpc *context);
/* Reads the packet's payload first. A packet without payload stays behind the packets of its queue
 * pair that have one. */
void csrna_depart(struct csrna_nic *nic, struct csrna_packet *packet, uint32_t slot);
/* An answer has come from the wire, and its window is on the chip. */
void csrna_acknowledge(struct csrna_nic *nic, struct csrna_packet *packet);
/* Does what a cycle of the context management asks for. */
void csrna_act(struct csrna_nic *nic, const struct qpc_action *action);

#endif
