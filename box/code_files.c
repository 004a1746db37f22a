/* SPDX-License-Identifier: BSD-2-Clause
 *
 * code_files - the files whose code programs run, each once: a file of the run, by which whoever
 * makes the run again can tell that one of them is another one by now.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "box/internal.h"

void code_files_open(struct box *box, const char *directory)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s" BOX_CODE_FILES, directory);
    box->code_files = fopen(path, "we");
}

void code_files_close(struct box *box)
{
    for (size_t i = 0; i < box->code_file_count; i++) {
        free(box->code_file[i]);
    }
    free(box->code_file);
    if (box->code_files != NULL) {
        fclose(box->code_files);
    }
}

void code_file_note(struct box *box, const char *path)
{
    if (box->code_files == NULL || path[0] != '/') {
        return;
    }
    for (size_t i = 0; i < box->code_file_count; i++) {
        if (strcmp(box->code_file[i], path) == 0) {
            return;
        }
    }
    char **grown = realloc(box->code_file, (box->code_file_count + 1) * sizeof(*grown));
    char *copy = strdup(path);
    CHECK(grown != NULL && copy != NULL);
    box->code_file = grown;
    box->code_file[box->code_file_count++] = copy;
    fprintf(box->code_files, "%s\n", path);
}

void code_file_note_descriptor(struct box *box, const struct process *process, int descriptor)
{
    char link[48], path[600];
    snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)process->pid, descriptor);
    const ssize_t bytes = readlink(link, path, sizeof(path) - 1);
    if (bytes > 0) {
        path[bytes] = '\0';
        code_file_note(box, path);
    }
}
