/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/live/live_account.h"

#include <arpa/inet.h>
#include <inttypes.h>

#include "drivers/live/live_internal.h"
#include "nic/inventory.h"
#include "world/account.h"

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

static void say_gid(struct account *text, const char *name, const struct gid *gid)
{
    char address[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, gid->bytes, address, sizeof(address));
    account_say(text, " %s=%s", name, address);
}

static void say_cq(struct account *text, const char *name, const struct nic_cq_account *cq)
{
    static const char *const armed[] = {
        [CQ_NOT_ARMED] = "no", [CQ_ARMED_SOLICITED] = "solicited", [CQ_ARMED_NEXT] = "next"};
    account_say(text, " %s=%" PRIu32 " %s_armed=%s", name, cq->completions, name,
                armed[cq->arming]);
}

static void say_facts(struct account *text, const struct qp *qp)
{
    const struct nic_account account = nic_account_of(qp);
    struct qp_report report;
    qp_report_of(qp, &report);
    account_say(text, "qp qpn=%" PRIu32 " type=%s state=%s", qp_number(qp),
                type_word(qp_type_of(qp)), account_state_name(qp_state_of(qp)));
    account_say(text,
                " sends=%" PRIu32 " sends_done=%" PRIu32 " receives=%" PRIu32
                " receives_used=%" PRIu32 " rnr=%d",
                account.sends, account.sends_done, account.receives, account.receives_used,
                report.pauses);
    say_cq(text, "sent", &account.sent);
    say_cq(text, "received", &account.received);
    if (account_is_connected(qp)) {
        struct qp_attributes attributes;
        qp_query(qp, &attributes);
        say_gid(text, "own", &qp_av(qp)->source);
        say_gid(text, "peer", &qp_av(qp)->destination);
        account_say(text, " peer_qpn=%" PRIu32, attributes.destination_qpn);
    }
    if (account_is_connected(qp) && qp_type_of(qp) != QP_UC) {
        const struct qp_flow flow = qp_flow_of(qp);
        account_say(text, " unacked=%" PRIu32 " expected=%" PRIu32, flow.unacked.value,
                    flow.expected.value);
    }
    account_say(text, "\n");
}

size_t live_account_facts(const struct live *live, char *text, size_t bytes)
{
    struct account told = {text, bytes, 0};
    uint32_t at = 0;
    const struct qp *qp;
    CHECK(bytes > 0);
    struct live_gid own;
    account_say(&told, "program rounds=%" PRIu64, (uint64_t)live->thread.rounds);
    if (live_gid(live, 0, &own)) {
        say_gid(&told, "own", &own.gid);
    }
    account_say(&told, "\n");
    while ((qp = nic_each_qp(live->nic, &at)) != NULL) {
        say_facts(&told, qp);
    }
    return told.used;
}
