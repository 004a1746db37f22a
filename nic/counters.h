/* SPDX-License-Identifier: BSD-2-Clause
 *
 * counters - all counters of a NIC, by name. A dropped packet increments exactly one drop counter;
 * a packet for a multicast group increments one for each queue pair that drops it.
 *
 * The first block has the names and meaning of Soft-RoCE's hardware counters, and np_* and rp_*
 * those of RoCE hardware: packets of RC and UC that came with a congestion mark, CNPs sent for
 * them, CNPs that slowed a queue pair down, and those that came too soon after another one or for a
 * stream of blocks; ecn_marked counts marked packets of blocks. Then one counter for each reason to
 * drop a packet or to answer with a NAK. Packets that processes of one address handed on to one
 * another are counted by both; drop_no_process and drop_process_full are counted by the process
 * that read the packet. drop_beside_ring counts packets that came by UDP for a queue pair whose
 * peer sends through shared memory, drop_fault_full packets that `--fault` was to delay and had no
 * room for.
 *
 * srd_* have the meaning of EFA's counters of the same names, but for srd_requests, which counts
 * packets: *_wrs and *_bytes are requests that ended well, *_wr_err others. Those of receives, of
 * answers to READs and of WRITEs that come in are a target's. srd_impaired_remote_conn counts flows
 * that slow down to the least rate, since their peer says nothing. srd_other_routes counts packets
 * that left by other addresses or ports than the first. Requests of SRD that ended well
 * count as rdma_* as well, and timeouts of flows as timeouts.
 */
#ifndef NIC_COUNTERS_H
#define NIC_COUNTERS_H

#include <stdint.h>

#define NIC_COUNTERS(X)                                                                            \
    X(sent_pkts)                                                                                   \
    X(rcvd_pkts)                                                                                   \
    X(sent_bytes)                                                                                  \
    X(rcvd_bytes)                                                                                  \
    X(duplicate_request)                                                                           \
    X(out_of_seq_request)                                                                          \
    X(rcvd_rnr_err)                                                                                \
    X(send_rnr_err)                                                                                \
    X(rcvd_seq_err)                                                                                \
    X(ack_deferred)                                                                                \
    X(retry_exceeded_err)                                                                          \
    X(retry_rnr_exceeded_err)                                                                      \
    X(completer_retry_err)                                                                         \
    X(send_err)                                                                                    \
    X(rdma_sends)                                                                                  \
    X(rdma_recvs)                                                                                  \
    X(rdma_writes)                                                                                 \
    X(rdma_reads)                                                                                  \
    X(rdma_atomics)                                                                                \
    X(rdma_flushes)                                                                                \
    X(timeouts)                                                                                    \
    X(timeouts_unread)                                                                             \
    X(implied_naks)                                                                                \
    X(retransmitted_pkts)                                                                          \
    X(stale_acks)                                                                                  \
    X(bad_response_order)                                                                          \
    X(bad_response_length)                                                                         \
    X(bad_response_syndrome)                                                                       \
    X(np_cnp_sent)                                                                                 \
    X(np_ecn_marked_roce_packets)                                                                  \
    X(rp_cnp_handled)                                                                              \
    X(rp_cnp_ignored)                                                                              \
    X(rcvd_multicast_pkts)                                                                         \
    X(ecn_marked)                                                                                  \
    X(handed_on_pkts)                                                                              \
    X(handed_to_us_pkts)                                                                           \
    X(hello_sent)                                                                                  \
    X(hello_unanswered)                                                                            \
    X(hello_welcomed)                                                                              \
    X(hello_refused)                                                                               \
    X(hello_declined)                                                                              \
    X(hello_routes_refused)                                                                        \
    X(block_streams)                                                                               \
    X(challenges_sent)                                                                             \
    X(challenges_received)                                                                         \
    X(challenges_proven)                                                                           \
    X(block_probes_sent)                                                                           \
    X(block_probes_received)                                                                       \
    X(block_answers_sent)                                                                          \
    X(block_answers_received)                                                                      \
    X(block_answers_stale)                                                                         \
    X(block_reads_withheld)                                                                        \
    X(blocks_declined)                                                                             \
    X(blocks_no_memory)                                                                            \
    X(blocks_no_context)                                                                           \
    X(blocks_reneged)                                                                              \
    X(blocks_held)                                                                                 \
    X(hold_full)                                                                                   \
    X(srd_requests)                                                                                \
    X(srd_send_wrs)                                                                                \
    X(srd_send_bytes)                                                                              \
    X(srd_send_wr_err)                                                                             \
    X(srd_recv_wrs)                                                                                \
    X(srd_recv_bytes)                                                                              \
    X(srd_rdma_read_wrs)                                                                           \
    X(srd_rdma_read_bytes)                                                                         \
    X(srd_rdma_read_wr_err)                                                                        \
    X(srd_rdma_read_resp_bytes)                                                                    \
    X(srd_rdma_write_wrs)                                                                          \
    X(srd_rdma_write_bytes)                                                                        \
    X(srd_rdma_write_wr_err)                                                                       \
    X(srd_rdma_write_recv_bytes)                                                                   \
    X(srd_retrans_bytes)                                                                           \
    X(srd_unresponsive_remote)                                                                     \
    X(srd_impaired_remote_conn)                                                                    \
    X(srd_other_routes)                                                                            \
    X(drop_short)                                                                                  \
    X(drop_unknown_opcode)                                                                         \
    X(drop_wrong_version)                                                                          \
    X(drop_wrong_pad)                                                                              \
    X(drop_too_long)                                                                               \
    X(drop_wrong_icrc)                                                                             \
    X(drop_no_process)                                                                             \
    X(drop_process_full)                                                                           \
    X(drop_beside_ring)                                                                            \
    X(drop_fault_full)                                                                             \
    X(drop_wrong_pkey)                                                                             \
    X(drop_unknown_qp)                                                                             \
    X(drop_unknown_group)                                                                          \
    X(drop_wrong_service)                                                                          \
    X(drop_wrong_peer)                                                                             \
    X(drop_wrong_state)                                                                            \
    X(drop_wrong_qkey)                                                                             \
    X(drop_no_receive)                                                                             \
    X(drop_in_gap)                                                                                 \
    X(drop_wrong_order)                                                                            \
    X(drop_wrong_length)                                                                           \
    X(drop_wrong_key)                                                                              \
    X(drop_cq_overrun)                                                                             \
    X(drop_rc_beside_blocks)                                                                       \
    X(drop_unwanted_block)                                                                         \
    X(drop_wrong_session)                                                                          \
    X(drop_stale_welcome)                                                                          \
    X(drop_beyond_window)                                                                          \
    X(drop_before_window)                                                                          \
    X(drop_block_count)                                                                            \
    X(drop_block_reserved)                                                                         \
    X(drop_block_flags)                                                                            \
    X(drop_block_value)                                                                            \
    X(drop_block_version)                                                                          \
    X(drop_block_contradiction)                                                                    \
    X(drop_block_impossible)                                                                       \
    X(drop_stale_response)                                                                         \
    X(drop_srd_reserved)                                                                           \
    X(drop_srd_version)                                                                            \
    X(drop_srd_value)                                                                              \
    X(drop_srd_contradiction)                                                                      \
    X(drop_srd_tag)                                                                                \
    X(drop_srd_full)                                                                               \
    X(drop_srd_flood)                                                                              \
    X(nak_psn_sequence)                                                                            \
    X(nak_invalid_opcode)                                                                          \
    X(nak_invalid_length)                                                                          \
    X(reads_no_memory)                                                                             \
    X(nak_no_resources)                                                                            \
    X(nak_unknown_key)                                                                             \
    X(nak_wrong_domain)                                                                            \
    X(nak_out_of_bounds)                                                                           \
    X(nak_forbidden)                                                                               \
    X(nak_misaligned_atomic)                                                                       \
    X(nak_unknown_flush)                                                                           \
    X(nak_invalidate)                                                                              \
    X(nak_operational)                                                                             \
    X(nak_unknown_srq)                                                                             \
    X(nak_wrong_xrcd)

enum nic_counter {
#define NIC_COUNTER_ENUM(name) COUNTER_##name,
    NIC_COUNTERS(NIC_COUNTER_ENUM)
#undef NIC_COUNTER_ENUM
    COUNTER_COUNT,
};

struct nic_counters {
    uint64_t values[COUNTER_COUNT];
};

const char *nic_counter_name(enum nic_counter counter);

#endif
