/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/strict.h"

#include <stdio.h>

#include "verbs/checking.h"
#include "wire/inet.h"

struct rule {
    const char *name, *wrong, *cure;
    int reason;
};

#define RULE_TEXTS(name, text, reason, wrong, cure, source) {text, wrong, cure, reason},
static const struct rule rules[] = {STRICT_RULES(RULE_TEXTS)};
_Static_assert(COUNT_OF(rules) == STRICT_RULE_COUNT, "a text for each rule");

int strict_refuse(enum strict_rule rule)
{
    static atomic_bool told[STRICT_RULE_COUNT];
    CHECK(rule < STRICT_RULE_COUNT);
    const struct rule *broken = &rules[rule];
    if (!atomic_exchange(&told[rule], true)) {
        char text[512];
        snprintf(text, sizeof(text), "strict, rule %s: %s; %s", broken->name, broken->wrong,
                 broken->cure);
        process_complain(text);
    }
    return broken->reason;
}

const char *strict_wrong(enum strict_rule rule)
{
    CHECK(rule < STRICT_RULE_COUNT);
    return rules[rule].wrong;
}

/* A program that is checked, and not refused, hears of it. */
static void tell_checker(enum strict_rule rule)
{
    if (is_checked()) {
        checking_strict(strict_wrong(rule));
    }
}

bool strict_joins(struct ibv_context *context, struct ibv_context *other)
{
    if (context_of(context)->file == context_of(other)->file) {
        return true;
    }
    if (!live_is_strict(live_of(context))) {
        tell_checker(STRICT_CONTEXTS);
        return true;
    }
    errno = strict_refuse(STRICT_CONTEXTS);
    CHECK(errno != 0); /* NULL alone does not tell a program why. */
    return false;
}

int strict_judge_address(struct live *live, const struct ibv_ah_attr *attr)
{
    struct live_gid own;
    if (!live_is_strict(live) && !is_checked()) {
        return 0;
    }
    const uint8_t *peer = attr->grh.dgid.raw;
    const bool mixed = attr->is_global && live_gid(live, attr->grh.sgid_index, &own) &&
                       !inet_is_multicast(peer) &&
                       inet_is_ipv4(own.gid.bytes) != inet_is_ipv4(peer);
    if (attr->is_global && !mixed) {
        return 0;
    }
    const enum strict_rule rule = mixed ? STRICT_GID_FAMILIES : STRICT_GRH;
    if (live_is_strict(live)) {
        return strict_refuse(rule);
    }
    tell_checker(rule);
    return 0;
}
