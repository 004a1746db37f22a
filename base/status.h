/* SPDX-License-Identifier: BSD-2-Clause
 *
 * status - the reason why a caller's request was not carried out.
 *
 * Functions return it alone. Results go to trailing out-parameters, which are written only on
 * STATUS_OK. An error of a peer is never a status: it is a verdict with a counter.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

enum status {
    STATUS_OK,
    STATUS_INVALID,     /* An argument is outside what the call allows: EINVAL. */
    STATUS_FULL,        /* A queue or table has no room: ENOMEM. */
    STATUS_BUSY,        /* The object is still in use: EBUSY. */
    STATUS_UNSUPPORTED, /* Valid, but not offered: EOPNOTSUPP. */
    STATUS_FAULT,       /* Memory of the program is not there: EFAULT. */
    STATUS_DENIED,      /* Not permitted: EPERM. */
};

/* The errno that verbs programs see for `status`; 0 for STATUS_OK. */
int status_errno(enum status status);

#endif
