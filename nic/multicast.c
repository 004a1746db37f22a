/* SPDX-License-Identifier: BSD-2-Clause */
#include "nic/multicast.h"

#include <string.h>

#include "nic/engine.h"
#include "nic/internal.h"
#include "wire/inet.h"

/* -- The table ----------------------------------------------------------------------------------*/

static struct multicast_group *find_group(const struct multicast_table *table,
                                          const struct gid *gid)
{
    for (uint32_t i = 0; i < table->group_count; i++) {
        if (gid_equal(&table->groups[i].gid, gid)) {
            return &table->groups[i];
        }
    }
    return NULL;
}

/* The field with the index of the queue pair's entry: `first` of the group, or `next` of a
 * member. */
static uint32_t *find_member(const struct multicast_table *table, struct multicast_group *group,
                             const struct qp *qp)
{
    uint32_t *at = &group->first;
    while (*at != MULTICAST_NOBODY && table->members[*at].qp != qp) {
        at = &table->members[*at].next;
    }
    return at;
}

/* Every entry that was ever used is in one group or free; no group is empty. */
static void check_table(const struct multicast_table *table)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < table->group_count; i++) {
        CHECK(table->groups[i].first != MULTICAST_NOBODY);
        for (uint32_t at = table->groups[i].first; at != MULTICAST_NOBODY;
             at = table->members[at].next) {
            CHECK(at < table->members_used && table->members[at].qp != NULL);
            CHECK(++found <= table->members_used);
        }
    }
    for (uint32_t at = table->free; at != MULTICAST_NOBODY; at = table->members[at].next) {
        CHECK(at < table->members_used && table->members[at].qp == NULL);
        CHECK(++found <= table->members_used);
    }
    CHECK(found == table->members_used);
}

/* A free entry; MULTICAST_NOBODY: all are taken. */
static uint32_t take_member(struct multicast_table *table, uint32_t limit)
{
    const uint32_t index = table->free;
    if (index != MULTICAST_NOBODY) {
        table->free = table->members[index].next;
        return index;
    }
    return table->members_used < limit ? table->members_used++ : MULTICAST_NOBODY;
}

enum status nic_attach(struct nic *nic, const struct gid *gid, struct qp *qp)
{
    struct multicast_table *table = &nic->multicast;
    if (qp->type != QP_UD || !inet_is_multicast(gid->bytes)) {
        return STATUS_INVALID;
    }
    struct multicast_group *group = find_group(table, gid);
    if (group != NULL && *find_member(table, group, qp) != MULTICAST_NOBODY) {
        return STATUS_OK;
    }
    if (group == NULL && table->group_count == nic->limits.groups) {
        return STATUS_FULL;
    }
    const uint32_t index = take_member(table, nic->limits.attachments);
    if (index == MULTICAST_NOBODY) {
        return STATUS_FULL;
    }
    if (group == NULL) {
        group = &table->groups[table->group_count++];
        *group = (struct multicast_group){.gid = *gid, .first = MULTICAST_NOBODY};
    }
    table->members[index] = (struct multicast_member){.qp = qp, .next = group->first};
    group->first = index;
    INVARIANTS(check_table(table));
    return STATUS_OK;
}

enum status nic_detach(struct nic *nic, const struct gid *gid, struct qp *qp)
{
    struct multicast_table *table = &nic->multicast;
    struct multicast_group *group = find_group(table, gid);
    uint32_t *at = group == NULL ? NULL : find_member(table, group, qp);
    if (at == NULL || *at == MULTICAST_NOBODY) {
        return STATUS_INVALID;
    }
    const uint32_t index = *at;
    *at = table->members[index].next;
    table->members[index] = (struct multicast_member){.next = table->free};
    table->free = index;
    if (group->first == MULTICAST_NOBODY) {
        *group = table->groups[--table->group_count];
    }
    INVARIANTS(check_table(table));
    return STATUS_OK;
}

bool nic_has_group(const struct nic *nic, const struct gid *gid)
{
    return find_group(&nic->multicast, gid) != NULL;
}

bool nic_is_attached(const struct nic *nic, const struct qp *qp)
{
    const struct multicast_table *table = &nic->multicast;
    if (table->group_count == 0 || qp->type != QP_UD) {
        return false;
    }
    for (uint32_t i = 0; i < table->members_used; i++) {
        if (table->members[i].qp == qp) {
            return true;
        }
    }
    return false;
}

/* -- Delivery -----------------------------------------------------------------------------------*/

bool nic_on_multicast(struct nic *nic, const struct nic_frame *frame, struct nic_delivery *delivery)
{
    const struct roce_packet *packet = &delivery->arrival.packet;
    if (!nic_decode(nic, frame, &delivery->arrival)) {
        return false;
    }
    nic_count(nic, COUNTER_rcvd_multicast_pkts);
    if (!nic_pkey_matches(packet)) {
        return nic_drop(nic, COUNTER_drop_wrong_pkey);
    }
    if (packet->destination_qpn != MULTICAST_QPN) {
        return nic_drop(nic, COUNTER_drop_unknown_qp);
    }
    if ((packet->opcode & 0xe0) != ROCE_SERVICE_UD) {
        return nic_drop(nic, COUNTER_drop_wrong_service);
    }
    const struct multicast_group *group = find_group(&nic->multicast, &frame->destination);
    if (group == NULL) {
        return nic_drop(nic, COUNTER_drop_unknown_group);
    }
    delivery->next = group->first;
    return true;
}

bool nic_next_delivery(struct nic *nic, struct nic_delivery *delivery, struct instant now,
                       struct nic_move *move)
{
    nic->now = now;
    while (delivery->next != MULTICAST_NOBODY) {
        const struct multicast_member *member = &nic->multicast.members[delivery->next];
        delivery->next = member->next;
        if (engine_on_packet(member->qp, &delivery->arrival, now, move)) {
            return true;
        }
    }
    return false;
}
