/* SPDX-License-Identifier: BSD-2-Clause
 *
 * efa_test_entries - entries of an EFA device's queues as C has them on a little-endian processor,
 * for tests: struct efa_io_tx_wqe, efa_io_rx_desc and efa_io_rx_cdesc_ex of rdma-core.
 */
#ifndef WIRE_EFA_TEST_ENTRIES_H
#define WIRE_EFA_TEST_ENTRIES_H

#include <stdint.h>

struct tx_buffer {
    uint32_t length, lkey, low, high;
};

struct tx_entry {
    uint16_t req_id;
    uint8_t ctrl1, ctrl2;
    uint16_t dest_qp_num, length;
    uint32_t immediate_data;
    uint16_t ah;
    uint8_t ctrl3, reserved;
    uint32_t qkey;
    uint8_t reserved2[12];
    union {
        struct tx_buffer sgl[2]; /* RDMA: the peer's, and ours. */
        uint8_t inline_data[32];
    };
};

struct rx_entry {
    uint32_t low, high;
    uint16_t req_id, length;
    uint32_t lkey_ctrl;
};

struct completion_entry {
    uint16_t req_id;
    uint8_t status, flags;
    uint16_t qp_num, length;
    uint16_t ah, src_qp_num;
    uint32_t imm;
    union {
        uint16_t length_hi;
        uint8_t src_addr[16];
    };
};

#endif
