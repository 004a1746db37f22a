/* SPDX-License-Identifier: BSD-2-Clause
 *
 * libefa - the shared object that programs of EFA's direct calls are linked with: the names alone.
 */
#include "verbs/efa_newer.h"

#define EFA_FORWARD(result, name, parameters, arguments)                                           \
    __attribute__((visibility("default"))) result efadv_##name parameters                          \
    {                                                                                              \
        return nonic_efa.name arguments;                                                           \
    }

/* clang-format off */
EFA_CALLS(EFA_FORWARD)
/* clang-format on */
