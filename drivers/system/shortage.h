/* SPDX-License-Identifier: BSD-2-Clause
 *
 * shortage - the errors by which the system says that it has too little of something just now.
 *
 * Purpose    The next time there may be more: such an error is passed on, and nothing is concluded
 *            from it. docs/decisions/0037.
 * Inputs     An errno.
 * Outputs    Whether it is one of those.
 */
#ifndef DRIVERS_SHORTAGE_H
#define DRIVERS_SHORTAGE_H

#include <errno.h>
#include <stdbool.h>

static inline bool shortage_is(int reason)
{
    return reason == ENOMEM || reason == EMFILE || reason == ENFILE || reason == ENOBUFS ||
           reason == EAGAIN || reason == ENOSPC || reason == ENOLCK;
}

#endif
