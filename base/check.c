/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *what)
{
    fprintf(stderr, "nonic: %s:%d: check failed: %s\n", file, line, what);
    abort();
}
