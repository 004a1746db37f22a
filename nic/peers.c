/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/peers.h"

#include "nic/service.h"

/* NULL: this NIC speaks no blocks, or there are fewer links. */
static struct nic_peer *find(const struct nic *nic, uint32_t peer)
{
    return nic->peers == NULL || peer == 0 || peer > nic->limits.block.peers
               ? NULL
               : &nic->peers[peer - 1];
}

struct nic_peer *nic_peer_of(const struct qp *qp)
{
    return find(qp->nic, qp->attributes.av.peer);
}

void nic_note_answers(struct nic *nic, uint32_t peer, bool answers)
{
    struct nic_peer *found = find(nic, peer);
    if (found != NULL) {
        found->answers = answers;
    }
}

struct nic_routes *nic_peer_routes(struct nic *nic, uint32_t peer)
{
    struct nic_peer *found = find(nic, peer);
    return found == NULL ? NULL : &found->routes;
}

void nic_forget_peer(struct nic *nic, uint32_t peer)
{
    struct nic_peer *found = find(nic, peer);
    CHECK(found != NULL);
    *found = (struct nic_peer){0};
}
