/* SPDX-License-Identifier: BSD-2-Clause
 *
 * segmentation - the packets of a message: the operation and payload of its n-th packet; and the
 * operations that ask for a READ, an atomic or a FLUSH, and answer it.
 *
 * Shared by RC, UC and UD requesters. Source: IBTA 9.2.1 table 38, 9.4 and 9.5.
 */
#ifndef TRANSPORT_IBTA_SEGMENTATION_H
#define TRANSPORT_IBTA_SEGMENTATION_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/common/work.h"
#include "wire/roce.h"

/* One packet of a message. */
struct piece {
    enum roce_operation operation;
    uint32_t offset; /* Where its payload lies in the message. */
    uint32_t bytes;  /* Its payload. */
    bool last;
};

/* Packet `index` of a SEND or WRITE. `index` < packets_of(work->bytes, mtu_bytes). */
struct piece work_piece(const struct work *work, uint32_t index, uint32_t mtu_bytes);

/* The operation that asks for a READ, an atomic or a FLUSH. */
enum roce_operation work_request(const struct work *work);

/* The operation that answers an atomic (with the number that was there before) or a FLUSH (with
 * nothing but that it was done). */
enum roce_operation single_answer(enum roce_operation request);

#endif
