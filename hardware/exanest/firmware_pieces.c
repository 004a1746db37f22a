/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The what-if in which only lost packets are sent again (EXANEST_RESEND_PACKET). No response of the
 * document names a packet, but the receiver knows: the bitmap of its context. So the R5 reads it
 * through the peer's debug port (peripheral 4, which finds a context by source and TID as the
 * receiver does), and stores a descriptor for each run of lines that lack. They have the sequence
 * of the block, so the peer keeps its marks. Two bits of W3, to which the document gives no
 * meaning, say that a descriptor has not the block's first or last packet.
 *
 * The R5 does nothing else while it waits for the bitmap, and that message is never lost: both make
 * the what-if simpler, and matter little beside a timeout.
 *
 * Where the bitmap does not help the block is sent whole, under its next sequence: there is no
 * context (all was lost, or only the answer), or nothing lacks but the control packet. Nor does it
 * after a wrong CRC: payload is written before its code is known, so a damaged copy may have
 * come over a good one, which is marked.
 */
#include "hardware/exanest/firmware_internal.h"

#define LINE_BYTES EXANEST_PAYLOAD_BYTES_MAX
#define LINES      EXANEST_BLOCK_PACKETS_MAX

/* Where the block begins in its 16 KB line of the destination. */
static uint32_t begin_of(const struct exanest_firmware *firmware,
                         const struct exanest_firmware_block *block)
{
    const uint64_t target = firmware->transfers[block->channel].target;
    return (uint32_t)((exanest_target_decode(target).va + block->offset) % EXANEST_BLOCK_BYTES_MAX);
}

/* Lines from..to. */
static uint64_t lines(uint32_t from, uint32_t to)
{
    return UINT64_MAX >> (LINES - 1 - to + from) << from;
}

void exanest_firmware_ask_context(struct exanest_firmware *firmware, uint32_t tid)
{
    firmware->counters.context_reads++;
    firmware->job = EXANEST_JOB_CONTEXT;
    firmware->job_tid = (uint16_t)tid;
}

void exanest_firmware_seen(struct exanest_firmware *firmware, uint64_t bitmap)
{
    const uint32_t tid = firmware->job_tid;
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    const uint32_t begin = begin_of(firmware, block);
    const uint64_t all = lines(begin / LINE_BYTES, (begin + block->bytes - 1u) / LINE_BYTES);
    firmware->job = EXANEST_JOB_NONE;
    if (bitmap == 0 || (all & ~bitmap) == 0) {
        exanest_firmware_resend(firmware, tid);
        return;
    }
    const uint32_t lacking = (uint32_t)__builtin_popcountll(all & ~bitmap) * LINE_BYTES;
    if (exanest_firmware_retry(firmware, tid, lacking < block->bytes ? lacking : block->bytes)) {
        block->missing = all & ~bitmap;
        exanest_firmware_send_piece(firmware, tid);
    }
}

void exanest_firmware_send_piece(struct exanest_firmware *firmware, uint32_t tid)
{
    struct exanest_firmware_block *block = &firmware->blocks[tid];
    const uint32_t begin = begin_of(firmware, block);
    const uint32_t first = (uint32_t)__builtin_ctzll(block->missing);
    const uint64_t behind = ~(block->missing >> first);
    const uint32_t count = behind == 0 ? LINES : (uint32_t)__builtin_ctzll(behind);
    const uint32_t from = first * LINE_BYTES, to = (first + count) * LINE_BYTES;
    block->missing &= ~lines(first, first + count - 1);
    firmware->counters.pieces++;
    exanest_firmware_begin_stores(firmware, tid, block->sequence, block->path,
                                  from > begin ? from - begin : 0,
                                  to - begin < block->bytes ? to - begin : block->bytes);
}
