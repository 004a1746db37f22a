/* SPDX-License-Identifier: BSD-2-Clause
 *
 * quirks - mistakes of the published board, each as a switch.
 *
 * A board without quirks is what its authors meant. With one of them it does as the RTL does, for
 * those who want to see whether their receiver lives with it.
 */
#ifndef TRANSPORT_FEROCE_QUIRKS_H
#define TRANSPORT_FEROCE_QUIRKS_H

#include <stdint.h>

/* X(NAME, bit, word, the RTL's behaviour) */
/* clang-format off */
#define FEROCE_QUIRKS(X)                                                                           \
    X(RKEY0, 0, "rkey0", "each WRITE leaves with R_Key 0")                                         \
    X(STALE_ERROR, 1, "stale-error", "NO_QP and NAK go to whom the last reply went to")            \
    X(STALL, 2, "stall", "a queue with nothing to send never stalls")                              \
    X(ACK_ORDER, 3, "ack-order", "an ACK is taken whatever its PSN")                               \
    X(MR_RNR, 4, "mr-rnr", "an ACK makes it forget what was refused")                              \
    X(LATCH, 5, "latch", "a refused MODIFY keeps later OPENs from RTS until a CLOSE")              \
    X(UNCOUNTED, 6, "uncounted", "NAKs ahead of the oldest packet do not count")                   \
    X(BUSY, 7, "busy", "a request that comes while a reply waits is lost")                         \
    X(LOST_STROBE, 8, "lost-strobe", "an OPEN of the board's that is refused loses its QPN")
/* clang-format on */

#define FEROCE_QUIRK_BIT(name, bit, word, what) FEROCE_QUIRK_##name = 1u << (bit),
enum feroce_quirk {
    FEROCE_QUIRKS(FEROCE_QUIRK_BIT) FEROCE_QUIRKS_ALL = (1u << 9) - 1,
};

#endif
