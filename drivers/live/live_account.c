/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/live/live_account.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "drivers/live/live_internal.h"
#include "nic/inventory.h"

enum {
    QPS_MAX = 32, /* that are told one by one */
};

struct text {
    char *into;
    uint64_t bytes, used;
};

static void say(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct text *text, const char *format, ...)
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

static const char *state_name(enum qp_state state)
{
    static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "error"};
    return state < COUNT_OF(names) ? names[state] : "no state";
}

static bool is_connected(const struct qp *qp)
{
    const enum qp_type type = qp_type_of(qp);
    return type != QP_UD && type != QP_SRD && qp_state_of(qp) >= QP_RTR;
}

static void say_peer(struct text *text, const struct qp *qp)
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
    say(text, " to queue pair %" PRIu32 " at %s", attributes.destination_qpn, address);
}

static void say_qp(struct text *text, const struct qp *qp)
{
    const struct nic_account account = nic_account_of(qp);
    struct qp_report report;
    say(text, "queue pair %" PRIu32 " (%s, %s)", qp_number(qp), type_name(qp_type_of(qp)),
        state_name(qp_state_of(qp)));
    if (is_connected(qp)) {
        say_peer(text, qp);
    }
    say(text, ": %" PRIu32 " send%s not done", account.sends, plural(account.sends));
    qp_report_of(qp, &report);
    if (report.pauses) {
        say(text, " (the peer has no receive for it: RNR)");
    }
    if (account.has_receives) {
        say(text, ", %" PRIu32 " receive%s posted", account.receives, plural(account.receives));
    }
    const uint32_t completions =
        account.sent.completions + (account.is_one_queue ? 0 : account.received.completions);
    say(text, ", %" PRIu32 " completion%s not taken%s\n", completions, plural(completions),
        account.received.arming != CQ_NOT_ARMED ? ", the next one is an event" : "");
}

static void say_qps(struct text *text, const struct live *live)
{
    uint32_t at = 0, count = 0;
    const struct qp *qp;
    while ((qp = nic_each_qp(live->nic, &at)) != NULL) {
        if (count++ < QPS_MAX) {
            say_qp(text, qp);
        }
    }
    if (count > QPS_MAX) {
        say(text, "and %" PRIu32 " more queue pairs\n", count - QPS_MAX);
    } else if (count == 0) {
        say(text, "no queue pair\n");
    }
}

static void say_region(struct text *text, const struct live *live, uint64_t address)
{
    uint32_t at = 0;
    const struct region *region;
    while ((region = nic_each_region(live->nic, &at)) != NULL) {
        const bool is_some_memory =
            region->kind == REGION_MEMORY && !region->whole_space && !region->null;
        if (is_some_memory && address >= region->memory &&
            address - region->memory < region->bytes) {
            say(text,
                "byte %" PRIu64 " of the memory region of key 0x%" PRIx32 " (%" PRIu64 " bytes%s)",
                address - region->memory, region->key, region->bytes,
                region->access & ACCESS_REMOTE_WRITE ? ", peers may write" : "");
            return;
        }
    }
}

/* -- For nonic stat --hang ----------------------------------------------------------------------*/

static const char *type_word(enum qp_type type)
{
    switch (type) {
    case QP_RC: return "RC";
    case QP_UC: return "UC";
    case QP_UD: return "UD";
    case QP_SRD: return "SRD";
    case QP_XRC_INITIATOR: return "XRC_INI";
    case QP_XRC_TARGET: return "XRC_TGT";
    }
    return "?";
}

static void say_gid(struct text *text, const char *name, const struct gid *gid)
{
    char address[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, gid->bytes, address, sizeof(address));
    say(text, " %s=%s", name, address);
}

static void say_cq(struct text *text, const char *name, const struct nic_cq_account *cq)
{
    static const char *const armed[] = {
        [CQ_NOT_ARMED] = "no", [CQ_ARMED_SOLICITED] = "solicited", [CQ_ARMED_NEXT] = "next"};
    say(text, " %s=%" PRIu32 " %s_armed=%s", name, cq->completions, name, armed[cq->arming]);
}

static void say_facts(struct text *text, const struct qp *qp)
{
    const struct nic_account account = nic_account_of(qp);
    struct qp_report report;
    qp_report_of(qp, &report);
    say(text, "qp qpn=%" PRIu32 " type=%s state=%s", qp_number(qp), type_word(qp_type_of(qp)),
        state_name(qp_state_of(qp)));
    say(text,
        " sends=%" PRIu32 " sends_done=%" PRIu32 " receives=%" PRIu32 " receives_used=%" PRIu32
        " rnr=%d",
        account.sends, account.sends_done, account.receives, account.receives_used, report.pauses);
    say_cq(text, "sent", &account.sent);
    say_cq(text, "received", &account.received);
    if (is_connected(qp)) {
        struct qp_attributes attributes;
        qp_query(qp, &attributes);
        say_gid(text, "own", &qp_av(qp)->source);
        say_gid(text, "peer", &qp_av(qp)->destination);
        say(text, " peer_qpn=%" PRIu32, attributes.destination_qpn);
    }
    if (is_connected(qp) && qp_type_of(qp) != QP_UC) {
        const struct qp_flow flow = qp_flow_of(qp);
        say(text, " unacked=%" PRIu32 " expected=%" PRIu32, flow.unacked.value,
            flow.expected.value);
    }
    say(text, "\n");
}

size_t live_account_facts(const struct live *live, char *text, size_t bytes)
{
    struct text told = {text, bytes, 0};
    uint32_t at = 0;
    const struct qp *qp;
    CHECK(bytes > 0);
    struct live_gid own;
    say(&told, "program rounds=%" PRIu64, (uint64_t)live->thread.rounds);
    if (live_gid(live, 0, &own)) {
        say_gid(&told, "own", &own.gid);
    }
    say(&told, "\n");
    while ((qp = nic_each_qp(live->nic, &at)) != NULL) {
        say_facts(&told, qp);
    }
    return told.used;
}

/* -- For the box --------------------------------------------------------------------------------*/

uint64_t live_account(const void *nic, uint64_t address, char *text, uint64_t bytes)
{
    struct text told = {text, bytes, 0};
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
