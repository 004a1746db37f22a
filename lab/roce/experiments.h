/* SPDX-License-Identifier: BSD-2-Clause
 *
 * experiments - functions that the experiments on RoCE NICs share.
 */
#ifndef LAB_ROCE_EXPERIMENTS_H
#define LAB_ROCE_EXPERIMENTS_H

#include "base/check.h"
#include "lab/roce/load.h"

#define ROCE_COMMON                                                                                \
    .document = &roce_document, .parameters = roce_parameters,                                     \
    .parameter_count = ROCE_PARAMETER_COUNT
#define ROCE_CLAIMS(list) .claims = (list), .claim_count = COUNT_OF(list)
/* The settings of a NIC and its network, of which no experiment has values of its own. */
#define ROCE_USES                                                                                  \
    "doorbell read write pcie tlp tlp_asks tlp_request tlp_completion wqe_by wqe cqe context "     \
    "send receive complete packets room rate link switch flow queue mark fec gap "                 \
    "quanta xoff "

#define EXPERIMENT(symbol) extern const struct lab_experiment symbol;
#include "lab/roce/experiments.def"
#undef EXPERIMENT

/* A message of some bytes between two nodes of a star that is idle, by hand: contexts are on the
 * chip, work requests are read, frames are IPv4's, and the line is the slowest part. From its post
 * until its last byte is visible at the other end. */
uint64_t roce_sum_ps(const struct roce_config *config, enum roce_work work, uint32_t bytes);

/* Bytes that a packet takes of a line beside its payload: with BTH alone, as most have. */
#define ROCE_FRAME_BYTES 82u
/* Payload in Gb/s, by hand, of WRITEs that follow one another: on the line; and on PCIe, where the
 * sender's NIC reads them or where the receiver's writes them. */
double roce_line_gbps(const struct roce_config *config, uint32_t bytes);
double roce_pcie_gbps(const struct roce_config *config, uint32_t bytes);

#endif
