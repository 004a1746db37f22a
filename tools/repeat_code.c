/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_code - the files whose code a run ran, with digests of what is in them: a run of other
 * libraries is another run, and a person is to know that before it is made again.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/box_page.h"
#include "tools/repeat_code.h"

enum {
    TOLD_MAX = 8,
};

/* Sums up the bytes of the file, in hexadecimal; false: it cannot be read. */
static bool digest_of(const char *path, char *text, size_t bytes)
{
    struct stat about;
    uint64_t digest = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) {
        return false;
    }
    const size_t count = fstat(file, &about) == 0 ? (size_t)about.st_size : 0;
    const uint8_t *data = mmap(NULL, count, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (data == MAP_FAILED) {
        return false;
    }
    for (size_t at = 0; at < count; at += sizeof(uint64_t)) {
        uint64_t word = 0;
        memcpy(&word, data + at, count - at < sizeof(word) ? count - at : sizeof(word));
        digest = page_mixed(digest, word);
    }
    munmap((void *)(uintptr_t)data, count);
    snprintf(text, bytes, "%016" PRIx64, digest);
    return true;
}

json_t *repeat_code_files(const char *directory)
{
    char note[PATH_MAX], path[PATH_MAX], text[20];
    json_t *found = json_object();
    snprintf(note, sizeof(note), "%s" BOX_CODE_FILES, directory);
    FILE *file = fopen(note, "re");
    while (file != NULL && fgets(path, sizeof(path), file) != NULL) {
        path[strcspn(path, "\n")] = '\0';
        if (digest_of(path, text, sizeof(text))) {
            json_object_set_new(found, path, json_string(text));
        }
    }
    if (file != NULL) {
        fclose(file);
        unlink(note);
    }
    return found;
}

void repeat_tell_other_code(const json_t *recorded)
{
    /* jansson's functions of iteration take no constant object, and change none. */
    json_t *files = (json_t *)(uintptr_t)recorded;
    const char *path;
    const json_t *then;
    int others = 0;
    json_object_foreach(files, path, then)
    {
        const char *recorded_digest = json_string_value(then);
        char now[20] = "";
        /* A run has a /tmp of its own, which is gone. */
        if (strncmp(path, "/tmp/", 5) == 0 ||
            (digest_of(path, now, sizeof(now)) && recorded_digest != NULL &&
             strcmp(now, recorded_digest) == 0)) {
            continue;
        }
        if (others++ < TOLD_MAX) {
            fprintf(stderr, "nonic: %s %s; the run may be another one\n", path,
                    now[0] == '\0' ? "cannot be read, and was part of the recorded run"
                                   : "is not the file that the recorded run had");
        }
    }
    if (others > TOLD_MAX) {
        fprintf(stderr, "nonic: so it is with %d more files\n", others - TOLD_MAX);
    }
}
