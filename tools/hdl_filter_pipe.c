/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic hdl filter - reads files for Verilator, which starts it (--pipe-filter) and names them.
 *
 * Each line of standard input is `read "FILE"`; the answer is a length and the filtered text.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/hdl.h"
#include "tools/hdl_filter.h"

static bool answer(const char *path)
{
    char block[65536], *text = NULL, *changed = NULL;
    size_t bytes = 0, changed_bytes = 0, got;
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        fprintf(stderr, "nonic: %s cannot be read\n", path);
        return false;
    }
    FILE *all = open_memstream(&text, &bytes);
    while (all != NULL && (got = fread(block, 1, sizeof(block), file)) > 0) {
        fwrite(block, 1, got, all);
    }
    const bool whole = ferror(file) == 0;
    fclose(file);
    FILE *out = open_memstream(&changed, &changed_bytes);
    if (all == NULL || out == NULL || fclose(all) != 0 || !whole) {
        fprintf(stderr, "nonic: %s cannot be read\n", path);
        return false;
    }
    hdl_filter(path, text, bytes, out, stderr);
    if (fclose(out) != 0) {
        fprintf(stderr, "nonic: no memory for %s\n", path);
        return false;
    }
    printf("Content-Length: %zu\n", changed_bytes);
    fwrite(changed, 1, changed_bytes, stdout);
    free(changed);
    free(text);
    return fflush(stdout) == 0;
}

int hdl_filter_pipe(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    char *line = NULL;
    size_t bytes = 0;
    bool good = true;
    while (good && getline(&line, &bytes, stdin) > 0) {
        const char *name = strchr(line, '"');
        char *end = strrchr(line, '"');
        if (name != NULL && end > name) {
            *end = '\0';
            good = answer(name + 1);
        }
    }
    free(line);
    return good ? 0 : 1;
}
