/* SPDX-License-Identifier: BSD-2-Clause
 *
 * live_blocks - memory for connections that speak blocks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/live_internal.h"

bool live_give_blocks(struct live *live, struct qp *qp)
{
    const size_t bytes = qp_blocks_bytes(live->nic, qp_type_of(qp));
    void *memory = aligned_alloc(64, bytes);
    if (memory == NULL) {
        return false;
    }
    memset(memory, 0, bytes);
    qp_give_blocks(qp, memory);
    return true;
}

int live_make_blocks(struct live *live, struct qp *qp, const struct nic_path *path)
{
    const bool takes_blocks = path->peer != 0 && qp_blocks_bytes(live->nic, qp_type_of(qp)) != 0;
    free(qp_take_blocks(qp));
    if (!takes_blocks) {
        return 0;
    }
    if (live->config.transport == NIC_TRANSPORT_AUTO) {
        qp_offer_blocks(qp);
        return 0;
    }
    return live_give_blocks(live, qp) ? 0 : ENOMEM;
}
