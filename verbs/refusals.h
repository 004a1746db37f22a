/* SPDX-License-Identifier: BSD-2-Clause
 *
 * refusals - functions for a context's slots that fail with EOPNOTSUPP. Programs may call a slot
 * without a look whether it is NULL.
 */
#ifndef VERBS_REFUSALS_H
#define VERBS_REFUSALS_H

#include "verbs/internal.h"

#define REFUSE_POINTER(type, name, ...)                                                            \
    static type *name(__VA_ARGS__)                                                                 \
    {                                                                                              \
        return fail(EOPNOTSUPP);                                                                   \
    }
#define REFUSE_INT(name, ...)                                                                      \
    static int name(__VA_ARGS__)                                                                   \
    {                                                                                              \
        return EOPNOTSUPP;                                                                         \
    }
#define U __attribute__((unused))

#endif
