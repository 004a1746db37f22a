/* SPDX-License-Identifier: BSD-2-Clause
 *
 * feroce_board_refusal - the questions that a refused packet asks.
 */
#include "tools/feroce_board.h"

/* The settings in which receiver and board may differ, by the packet that was refused: the path MTU
 * is wrong from the first of several packets on. */
static void print_question(uint32_t traits, uint32_t pmtu, uint32_t bytes)
{
    const bool is_send = (traits & ROCE_IS_SEND) != 0;
    if ((traits & ROCE_ONLY) == ROCE_IS_FIRST) {
        printf(": is its path MTU the board's --pmtu %u%s?", pmtu,
               is_send ? ", and do its receives hold as much" : "");
    } else if (is_send) {
        printf(": do its receives hold %u bytes?", bytes);
    }
}

void feroce_print_refusal(uint8_t syndrome, uint8_t opcode, uint32_t pmtu, uint32_t bytes)
{
    if (syndrome == ROCE_NAK_REMOTE_ACCESS) {
        printf(" (remote access error: no memory of the receiver's has this R_Key and address)");
    } else if (syndrome == ROCE_NAK_INVALID_REQUEST) {
        printf(" (invalid request");
        print_question(roce_opcode(opcode)->traits, pmtu, bytes);
        printf(")");
    }
}
