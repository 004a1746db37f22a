/* SPDX-License-Identifier: BSD-2-Clause
 *
 * filter - which calls come to the box: a program of the kernel (seccomp) that all of the run
 * inherit.
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "box/calls.h"

enum {
    TRACE_MARK = 1,
};

static int add(scmp_filter_ctx filter, long number)
{
    if (number == SYS_mmap) {
        /* Code alone. */
        return seccomp_rule_add(filter, SCMP_ACT_TRACE(TRACE_MARK), (int)number, 1,
                                SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
    }
    if (number != SYS_fcntl) {
        return seccomp_rule_add(filter, SCMP_ACT_TRACE(TRACE_MARK), (int)number, 0);
    }
    /* fcntl waits for locks alone. */
    const int failed = seccomp_rule_add(filter, SCMP_ACT_TRACE(TRACE_MARK), (int)number, 1,
                                        SCMP_A1(SCMP_CMP_EQ, F_SETLKW, 0));
    return failed != 0 ? failed
                       : seccomp_rule_add(filter, SCMP_ACT_TRACE(TRACE_MARK), (int)number, 1,
                                          SCMP_A1(SCMP_CMP_EQ, F_OFD_SETLKW, 0));
}

bool filter_install(void)
{
    int failed = 0;
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    if (filter == NULL) {
        errno = ENOMEM;
        return false;
    }
    for (size_t i = 0; i < call_row_count && failed == 0; i++) {
        failed = add(filter, call_rows[i].number);
    }
    failed = failed != 0 ? failed : seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
    failed = failed != 0 ? failed : seccomp_load(filter);
    seccomp_release(filter);
    errno = -failed;
    return failed == 0;
}
