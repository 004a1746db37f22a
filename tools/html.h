/* SPDX-License-Identifier: BSD-2-Clause
 *
 * html - text in a page.
 */
#ifndef TOOLS_HTML_H
#define TOOLS_HTML_H

#include <stdio.h>

/* Writes `text` so that a page shows it as it is. */
static inline void html_write(FILE *to, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '&': fputs("&amp;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
    }
}

#endif
