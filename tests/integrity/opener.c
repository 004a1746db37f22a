/* SPDX-License-Identifier: BSD-2-Clause
 *
 * opener - a library that opens others, for `opens`.
 */
#include <dlfcn.h>

void *opener_open(const char *name);

void *opener_open(const char *name)
{
    return dlopen(name, RTLD_NOW);
}
