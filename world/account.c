/* SPDX-License-Identifier: BSD-2-Clause */
#include "world/account.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "nic/inventory.h"
#include "nic/nic.h"

enum {
    QPS_MAX = 32, /* that are told one by one */
};

void account_say(struct account *text, const char *format, ...)
{
    va_list values;
    const uint64_t room = text->bytes - text->used;
    va_start(values, format);
    const int said = vsnprintf(text->into + text->used, room, format, values);
    va_end(values);
    text->used += said < 0 ? 0 : (uint64_t)said < room ? (uint64_t)said : room - 1;
}

static const char *plural(uint32_t count)
{
    return count == 1 ? "" : "s";
}

static const char *type_name(enum qp_type type)
{
    switch (type) {
    case QP_RC: return "RC";
    case QP_UC: return "UC";
    case QP_UD: return "UD";
    case QP_SRD: return "SRD";
    case QP_XRC_INITIATOR: return "XRC, initiator";
    case QP_XRC_TARGET: return "XRC, target";
    }
    return "of no type";
}

const char *account_state_name(enum qp_state state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "error"};
    return state < COUNT_OF(names) ? names[state] : "no state";
}

bool account_is_connected(const struct qp *qp)
{
    const enum qp_type type = qp_type_of(qp);
    return type != QP_UD && type != QP_SRD && qp_state_of(qp) >= QP_RTR;
}

static void say_peer(struct account *text, const struct qp *qp)
{
    char address[INET6_ADDRSTRLEN];
    const struct gid *peer = &qp_av(qp)->destination;
    if (inet_is_ipv4(peer->bytes)) {
        inet_ntop(AF_INET, peer->bytes + 12, address, sizeof(address));
    } else {
        inet_ntop(AF_INET6, peer->bytes, address, sizeof(address));
    }
    struct qp_attributes attributes;
    qp_query(qp, &attributes);
    account_say(text, " to queue pair %" PRIu32 " at %s", attributes.destination_qpn, address);
}

static void say_qp(struct account *text, const struct qp *qp)
{
    const struct nic_account account = nic_account_of(qp);
    struct qp_report report;
    account_say(text, "queue pair %" PRIu32 " (%s, %s)", qp_number(qp), type_name(qp_type_of(qp)),
                account_state_name(qp_state_of(qp)));
    if (account_is_connected(qp)) {
        say_peer(text, qp);
    }
    account_say(text, ": %" PRIu32 " send%s not done", account.sends, plural(account.sends));
    qp_report_of(qp, &report);
    if (report.pauses) {
        account_say(text, " (the peer has no receive for it: RNR)");
    }
    if (account.has_receives) {
        account_say(text, ", %" PRIu32 " receive%s posted", account.receives,
                    plural(account.receives));
    }
    const uint32_t completions =
        account.sent.completions + (account.is_one_queue ? 0 : account.received.completions);
    account_say(text, ", %" PRIu32 " completion%s not taken%s\n", completions, plural(completions),
                account.received.arming != CQ_NOT_ARMED ? ", the next one is an event" : "");
}

static void say_qps(struct account *text, const struct nic *nic)
{
    uint32_t at = 0, count = 0;
    const struct qp *qp;
    while ((qp = nic_each_qp(nic, &at)) != NULL) {
        if (count++ < QPS_MAX) {
            say_qp(text, qp);
        }
    }
    if (count > QPS_MAX) {
        account_say(text, "and %" PRIu32 " more queue pairs\n", count - QPS_MAX);
    } else if (count == 0) {
        account_say(text, "no queue pair\n");
    }
}

static void say_region(struct account *text, const struct nic *nic, uint64_t address)
{
    uint32_t at = 0;
    const struct region *region;
    while ((region = nic_each_region(nic, &at)) != NULL) {
        const bool is_some_memory =
            region->kind == REGION_MEMORY && !region->whole_space && !region->null;
        if (is_some_memory && address >= region->memory &&
            address - region->memory < region->bytes) {
            account_say(text,
                        "byte %" PRIu64 " of the memory region of key 0x%" PRIx32 " (%" PRIu64
                        " bytes%s)",
                        address - region->memory, region->key, region->bytes,
                        region->access & ACCESS_REMOTE_WRITE ? ", peers may write" : "");
            return;
        }
    }
}

uint64_t account_of_nic(const void *nic, uint64_t address, char *text, uint64_t bytes)
{
    struct account told = {text, bytes, 0};
    if (bytes == 0) {
        return 0;
    }
    text[0] = '\0';
    if (address == 0) {
        say_qps(&told, nic);
    } else {
        say_region(&told, nic, address);
    }
    return told.used;
}
