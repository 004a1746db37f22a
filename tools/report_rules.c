/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/report_rules.h"

const struct report_words report_rules[REPORT_RULES] = {
#define REPORT_ROW(name, broken, title, rule, meaning) {broken, title, rule, meaning},
    REPORT_ODDITIES(REPORT_ROW)
#undef REPORT_ROW
};
