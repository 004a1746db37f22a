/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/status.h"

#include <errno.h>

#include "base/check.h"

int status_errno(enum status status)
{
    switch (status) {
    case STATUS_OK: return 0;
    case STATUS_INVALID: return EINVAL;
    case STATUS_FULL: return ENOMEM;
    case STATUS_BUSY: return EBUSY;
    case STATUS_UNSUPPORTED: return EOPNOTSUPP;
    case STATUS_FAULT: return EFAULT;
    case STATUS_DENIED: return EPERM;
    }
    UNREACHABLE("a status outside its enum");
}
