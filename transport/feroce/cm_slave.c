/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/feroce/cm_slave.h"

void feroce_slave_init(struct feroce_slave *slave, uint32_t ip, uint32_t quirks)
{
    *slave =
        (struct feroce_slave){.ip = ip, .quirks = quirks, .last = {.port = FEROCE_PORT_CM_MASTER}};
}

static void push(struct feroce_slave *slave, const struct feroce_reply *reply)
{
    CHECK(slave->count < FEROCE_REPLIES_MAX);
    slave->replies[(slave->first + slave->count++) % FEROCE_REPLIES_MAX] = *reply;
    slave->last = *reply;
}

/* The request's halves, swapped. */
static struct feroce_reply reply_to(const struct feroce_slave *slave, const struct feroce_cm *asked,
                                    enum feroce_ack ack)
{
    struct feroce_reply reply = {
        .message = {.request = asked->request,
                    .ack = (uint8_t)ack,
                    .info_valid = true,
                    .ack_valid = true,
                    .local = asked->remote,
                    .remote = asked->local,
                    .listening_port = FEROCE_PORT_CM},
        .ip = asked->local.ip,
        .port = asked->listening_port,
    };
    reply.message.local.ip = slave->ip;
    return reply;
}

/* For NO_QP and NAK the RTL fills in the ack type only. */
static void refuse(struct feroce_slave *slave, const struct feroce_cm *asked, enum feroce_ack ack)
{
    struct feroce_reply reply = reply_to(slave, asked, ack);
    if ((slave->quirks & FEROCE_QUIRK_STALE_ERROR) != 0) {
        reply = slave->last;
        reply.message.ack_valid = true;
        reply.message.ack = (uint8_t)ack;
    }
    push(slave, &reply);
}

static enum feroce_change open_qp(struct feroce_slave *slave, struct feroce_table *table,
                                  const struct feroce_cm *asked, uint32_t *index)
{
    if (!feroce_table_take(table, index)) {
        refuse(slave, asked, FEROCE_ACK_NO_QP);
        return FEROCE_CHANGE_NONE;
    }
    const bool opened = feroce_table_open(table, *index, &asked->local);
    struct feroce_reply reply = reply_to(slave, asked, opened ? FEROCE_ACK : FEROCE_ACK_ERROR);
    reply.message.local = (struct feroce_side){.qpn = FEROCE_FIRST_QPN + *index, .ip = slave->ip};
    push(slave, &reply);
    return opened ? FEROCE_CHANGE_OPENED : FEROCE_CHANGE_NONE;
}

static enum feroce_change modify_qp(struct feroce_slave *slave, struct feroce_table *table,
                                    const struct feroce_cm *asked, uint32_t *index)
{
    *index = feroce_table_find(table, asked->remote.qpn);
    if (*index == FEROCE_QPS_MAX) {
        refuse(slave, asked, FEROCE_ACK_NAK);
        return FEROCE_CHANGE_NONE;
    }
    const bool modified = feroce_table_modify(table, *index);
    const struct feroce_reply reply =
        reply_to(slave, asked, modified ? FEROCE_ACK : FEROCE_ACK_ERROR);
    push(slave, &reply);
    return modified ? FEROCE_CHANGE_OPENED : FEROCE_CHANGE_NONE;
}

static enum feroce_change close_qp(struct feroce_slave *slave, struct feroce_table *table,
                                   const struct feroce_cm *asked, uint32_t *index)
{
    *index = feroce_table_find(table, asked->remote.qpn);
    if (*index == FEROCE_QPS_MAX) {
        refuse(slave, asked, FEROCE_ACK_NAK);
        return FEROCE_CHANGE_NONE;
    }
    const bool closed = feroce_table_close(table, *index);
    if (closed) {
        feroce_table_return(table, *index);
    }
    const struct feroce_reply reply =
        reply_to(slave, asked, closed ? FEROCE_ACK : FEROCE_ACK_ERROR);
    push(slave, &reply);
    return closed ? FEROCE_CHANGE_CLOSED : FEROCE_CHANGE_NONE;
}

enum feroce_change feroce_slave_take(struct feroce_slave *slave, struct feroce_table *table,
                                     const struct feroce_cm *message, uint32_t *index)
{
    const uint32_t room = (slave->quirks & FEROCE_QUIRK_BUSY) != 0 ? 1 : FEROCE_REPLIES_MAX;
    const bool asks = message->request == FEROCE_OPEN_QP ||
                      message->request == FEROCE_MODIFY_QP_RTS ||
                      message->request == FEROCE_CLOSE_QP;
    if (!message->info_valid || !asks) {
        return FEROCE_CHANGE_NONE;
    }
    if (slave->count >= room) {
        return FEROCE_CHANGE_LOST;
    }
    switch (message->request) {
    case FEROCE_OPEN_QP: return open_qp(slave, table, message, index);
    case FEROCE_MODIFY_QP_RTS: return modify_qp(slave, table, message, index);
    default: return close_qp(slave, table, message, index);
    }
}

bool feroce_slave_next(struct feroce_slave *slave, struct feroce_reply *reply)
{
    if (slave->count == 0) {
        return false;
    }
    *reply = slave->replies[slave->first];
    slave->first = (slave->first + 1) % FEROCE_REPLIES_MAX;
    slave->count--;
    return true;
}
