/* SPDX-License-Identifier: BSD-2-Clause
 *
 * doubt - why a run may be another one the next time: the first reason counts.
 */
#include <stdarg.h>

#include "box/internal.h"

void box_doubt(struct box *box, const char *format, ...)
{
    va_list values;
    if (box->result->unrepeatable[0] == '\0') {
        va_start(values, format);
        vsnprintf(box->result->unrepeatable, sizeof(box->result->unrepeatable), format, values);
        va_end(values);
    }
}
