/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/feroce/cm_master.h"

#define ATTEMPTS 2

const char *feroce_status_name(enum feroce_status status)
{
    switch (status) {
    case FEROCE_STATUS_OK: return "OK";
    case FEROCE_STATUS_NO_QP: return "no free queue pair";
    case FEROCE_STATUS_FAILED: return "refused by the host";
    case FEROCE_STATUS_FETCH: return "the queue pair is not open";
    case FEROCE_STATUS_MODIFY: return "refused by the table of queue pairs";
    case FEROCE_STATUS_TIMEOUT: return "no answer";
    case FEROCE_STATUS_BUSY: return "another request is under way";
    case FEROCE_STATUS_PENDING: return "under way";
    }
    UNREACHABLE("a status outside its enum");
}

void feroce_master_init(struct feroce_master *master, uint32_t ip, uint32_t quirks,
                        uint64_t timeout_ns)
{
    *master = (struct feroce_master){
        .ip = ip, .quirks = quirks, .timeout_ns = timeout_ns, .deadline = INSTANT_NEVER};
}

static enum feroce_status begin(struct feroce_master *master, enum feroce_request request,
                                uint32_t index, const struct feroce_side *remote, uint16_t port)
{
    master->request = request;
    master->status = FEROCE_STATUS_PENDING;
    master->index = index;
    master->remote_ip = remote->ip;
    master->remote_qpn = remote->qpn;
    master->port = port;
    master->sent = 0;
    master->to_send = true;
    master->deadline = INSTANT_NEVER;
    return FEROCE_STATUS_PENDING;
}

enum feroce_status feroce_master_open(struct feroce_master *master, struct feroce_table *table,
                                      uint32_t remote_ip, uint16_t port)
{
    uint32_t index = 0;
    if (master->request != FEROCE_NULL) {
        return FEROCE_STATUS_BUSY;
    }
    if (!feroce_table_take(table, &index)) {
        master->status = FEROCE_STATUS_NO_QP;
        return FEROCE_STATUS_NO_QP;
    }
    return begin(master, FEROCE_OPEN_QP, index, &(struct feroce_side){.ip = remote_ip}, port);
}

enum feroce_status feroce_master_close(struct feroce_master *master,
                                       const struct feroce_table *table, uint32_t qpn,
                                       uint16_t port)
{
    const uint32_t index = feroce_table_find(table, qpn);
    if (master->request != FEROCE_NULL) {
        return FEROCE_STATUS_BUSY;
    }
    if (index == FEROCE_QPS_MAX || table->contexts[index].state == FEROCE_RESET) {
        master->status = FEROCE_STATUS_FETCH;
        return FEROCE_STATUS_FETCH;
    }
    return begin(master, FEROCE_CLOSE_QP, index, &table->contexts[index].remote, port);
}

static void end(struct feroce_master *master, enum feroce_status status)
{
    master->request = FEROCE_NULL;
    master->status = status;
    master->to_send = false;
    master->deadline = INSTANT_NEVER;
}

/* The QPN of an OPEN that came to nothing. */
static void give_back(struct feroce_master *master, struct feroce_table *table)
{
    if (master->request == FEROCE_OPEN_QP) {
        feroce_table_return(table, master->index);
    }
}

static enum feroce_change apply(struct feroce_master *master, struct feroce_table *table,
                                const struct feroce_cm *reply)
{
    if (master->request == FEROCE_OPEN_QP) {
        const bool opened = feroce_table_open(table, master->index, &reply->local);
        end(master, opened ? FEROCE_STATUS_OK : FEROCE_STATUS_MODIFY);
        return opened ? FEROCE_CHANGE_OPENED : FEROCE_CHANGE_NONE;
    }
    const struct feroce_side *remote = &table->contexts[master->index].remote;
    if (remote->qpn != master->remote_qpn || remote->ip != master->remote_ip) {
        end(master, FEROCE_STATUS_FETCH); /* It was closed from outside, and opened anew. */
        return FEROCE_CHANGE_NONE;
    }
    const bool closed = feroce_table_close(table, master->index);
    if (closed) {
        feroce_table_return(table, master->index);
    }
    end(master, closed ? FEROCE_STATUS_OK : FEROCE_STATUS_MODIFY);
    return closed ? FEROCE_CHANGE_CLOSED : FEROCE_CHANGE_NONE;
}

bool feroce_master_take(struct feroce_master *master, struct feroce_table *table,
                        const struct feroce_cm *reply, enum feroce_change *change)
{
    *change = FEROCE_CHANGE_NONE;
    if (master->request == FEROCE_NULL || master->sent == 0 || !reply->info_valid ||
        reply->request != master->request || reply->local.ip != master->remote_ip ||
        reply->remote.ip != master->ip || reply->remote.qpn != FEROCE_FIRST_QPN + master->index) {
        return false;
    }
    const bool is_done = reply->ack == FEROCE_ACK ||
                         (master->request == FEROCE_CLOSE_QP && reply->ack == FEROCE_ACK_NO_QP);
    if (is_done) {
        *change = apply(master, table, reply);
        return true;
    }
    if ((master->quirks & FEROCE_QUIRK_LOST_STROBE) == 0) {
        give_back(master, table);
    }
    end(master, FEROCE_STATUS_FAILED);
    return true;
}

bool feroce_master_next(struct feroce_master *master, struct instant now, struct feroce_reply *out)
{
    if (!master->to_send) {
        return false;
    }
    *out = (struct feroce_reply){
        .message = {.request = (uint8_t)master->request,
                    .info_valid = true,
                    .local = {.qpn = FEROCE_FIRST_QPN + master->index, .ip = master->ip},
                    .remote = {.qpn = master->remote_qpn, .ip = master->remote_ip},
                    .listening_port = FEROCE_PORT_CM},
        .ip = master->remote_ip,
        .port = master->port,
    };
    master->to_send = false;
    master->sent++;
    master->deadline = instant_after(now, master->timeout_ns);
    return true;
}

void feroce_master_on_time(struct feroce_master *master, struct feroce_table *table,
                           struct instant now)
{
    if (master->request == FEROCE_NULL || !instant_reached(now, master->deadline)) {
        return;
    }
    if (master->sent < ATTEMPTS) {
        master->to_send = true;
        master->deadline = INSTANT_NEVER;
        return;
    }
    give_back(master, table);
    end(master, FEROCE_STATUS_TIMEOUT);
}
