/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_vhdl.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/hdl_words.h"

bool hdl_vhdl_is(const char *file)
{
    const char *dot = strrchr(file, '.');
    return dot != NULL && (strcasecmp(dot, ".vhd") == 0 || strcasecmp(dot, ".vhdl") == 0);
}

/* GHDL's library of an earlier build would have entities that are no more. */
static bool begin(struct hdl_vhdl *vhdl, const char *out)
{
    char library[PATH_MAX + 32];
    snprintf(vhdl->folder, sizeof(vhdl->folder), "%s.ghdl", out);
    snprintf(library, sizeof(library), "%s/work-obj08.cf", vhdl->folder);
    unlink(library);
    if (mkdir(vhdl->folder, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "nonic: no folder %s: %s\n", vhdl->folder, strerror(errno));
        return false;
    }
    return true;
}

static bool analyse(const char *library, char **files)
{
    struct hdl_words words = {0};
    const char *const always[] = {"ghdl", "-a", "--std=08", library};
    for (uint32_t i = 0; i < COUNT_OF(always); i++) {
        hdl_words_add(&words, always[i]);
    }
    for (uint32_t i = 0; files[i] != NULL; i++) {
        if (hdl_vhdl_is(files[i])) {
            hdl_words_add(&words, files[i]);
        }
    }
    hdl_words_print(&words);
    return hdl_words_run(&words, false) == 0;
}

static bool translate(struct hdl_vhdl *vhdl, const char *library, const char *entity)
{
    struct hdl_words words = {0};
    snprintf(vhdl->module, sizeof(vhdl->module), "%s/%s.v", vhdl->folder, entity);
    const char *const all[] = {"sh",
                               "-c",
                               "out=$1; shift; exec \"$@\" > \"$out\"",
                               "sh",
                               vhdl->module,
                               "ghdl",
                               "--synth",
                               "--std=08",
                               library,
                               "--out=verilog",
                               entity};
    for (uint32_t i = 0; i < COUNT_OF(all); i++) {
        hdl_words_add(&words, all[i]);
    }
    hdl_words_print(&words);
    return hdl_words_run(&words, false) == 0;
}

bool hdl_vhdl_translate(struct hdl_vhdl *vhdl, char **files, const char *entity, const char *out)
{
    char library[PATH_MAX + 16], last[NAME_MAX + 1] = "";
    for (uint32_t i = 0; files[i] != NULL; i++) {
        if (hdl_vhdl_is(files[i])) {
            const char *slash = strrchr(files[i], '/');
            snprintf(last, sizeof(last), "%s", slash != NULL ? slash + 1 : files[i]);
            *strrchr(last, '.') = '\0';
        }
    }
    if (!begin(vhdl, out)) {
        return false;
    }
    snprintf(library, sizeof(library), "--workdir=%s", vhdl->folder);
    return analyse(library, files) && translate(vhdl, library, entity != NULL ? entity : last);
}
