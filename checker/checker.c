/* SPDX-License-Identifier: BSD-2-Clause */
#include "checker/checker.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "checker/internal.h"

#define RULE_TEXTS(name, text, level, cure, source) {text, CHECKER_##level, cure, source},
const struct checker_rule_text checker_rules[CHECKER_RULE_COUNT] = {CHECKER_RULES(RULE_TEXTS)};

size_t checker_bytes(void)
{
    return sizeof(struct checker);
}

struct checker *checker_init(void *at, const struct checker_memory *memory)
{
    struct checker *checker = at;
    checker->memory = memory;
    return checker;
}

void checker_forget(struct checker *checker)
{
    const struct checker_memory *memory = checker->memory;
    memset(checker, 0, sizeof(*checker));
    checker->memory = memory;
}

bool checker_take(struct checker *checker, struct checker_finding *finding)
{
    if (checker->pending == 0) {
        return false;
    }
    *finding = checker->findings[checker->first % FINDINGS_MAX];
    checker->first++;
    checker->pending--;
    return true;
}

/* A place for a finding; NULL: there is none left. */
static struct checker_finding *next_finding(struct checker *checker, enum checker_rule rule,
                                            uint32_t qpn)
{
    CHECK(rule < CHECKER_RULE_COUNT);
    if (checker->pending == FINDINGS_MAX) {
        return NULL;
    }
    struct checker_finding *finding =
        &checker->findings[(checker->first + checker->pending++) % FINDINGS_MAX];
    *finding = (struct checker_finding){.rule = rule, .qpn = qpn};
    return finding;
}

void tell(struct checker *checker, enum checker_rule rule, uint32_t qpn,
          const struct posted *posted, const char *format, ...)
{
    struct checker_finding *finding = next_finding(checker, rule, qpn);
    if (finding != NULL) {
        va_list values;
        finding->posted = posted == NULL ? 0 : posted->place;
        finding->freed = posted == NULL ? 0 : posted->freed_place;
        va_start(values, format);
        vsnprintf(finding->text, sizeof(finding->text), format, values);
        va_end(values);
    }
}

void checker_tell(struct checker *checker, enum checker_rule rule, uint32_t qpn, const char *text)
{
    tell(checker, rule, qpn, NULL, "%s", text);
}

#define KIND_NAME(argument, name, number, verbs, completion, traits)                               \
    case WORK_##name: return #verbs;

const char *kind_name(uint32_t kind)
{
    switch ((enum work_kind)kind) {
        WORK_KINDS(KIND_NAME, 0)
    }
    return "request of an unknown kind";
}

const char *state_name(enum qp_state state)
{
    static const char *const names[] = {
        [QP_RESET] = "RESET", [QP_INIT] = "INIT", [QP_RTR] = "RTR", [QP_RTS] = "RTS",
        [QP_SQD] = "SQD",     [QP_SQE] = "SQE",   [QP_ERR] = "ERR",
    };
    CHECK((size_t)state < COUNT_OF(names));
    return names[state];
}
