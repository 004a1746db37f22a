/* SPDX-License-Identifier: BSD-2-Clause
 *
 * check_places - where in its source a program called: function, file and line of an address.
 *
 * The address is one behind a call. A function that the compiler put into its caller, as most of
 * verbs.h are, is not a place of the program: the line that called it is.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/check.h"

struct place {
    char module[4096], offset[32], function[256], source[512];
    int line;
};

/* A file is opened once, with its debugging information if there is any. NULL: it cannot be. */
static Dwfl_Module *open_module(const char *path)
{
    static char *debug_path;
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_build_id_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = dwfl_offline_section_address,
                                             .debuginfo_path = &debug_path};
    static struct {
        char *path;
        Dwfl_Module *module;
    } opened[64];
    size_t at = 0;
    while (at < COUNT_OF(opened) - 1 && opened[at].path != NULL) {
        if (strcmp(opened[at].path, path) == 0) {
            return opened[at].module;
        }
        at++;
    }
    Dwfl *dwfl = dwfl_begin(&callbacks);
    if (dwfl == NULL) {
        return NULL;
    }
    dwfl_report_begin(dwfl);
    Dwfl_Module *module = dwfl_report_offline(dwfl, path, path, -1);
    dwfl_report_end(dwfl, NULL, NULL);
    if (opened[at].path == NULL) {
        opened[at].path = strdup(path);
        opened[at].module = module;
    }
    return module;
}

static bool is_of_verbs(const char *source)
{
    return strstr(source, "infiniband/verbs.h") != NULL ||
           strstr(source, "rdma/rdma_verbs.h") != NULL;
}

/* Appends a place. Functions of verbs.h, which are compiled into the program, are none. */
static void add(json_t *calls, const struct place *place)
{
    if (is_of_verbs(place->source)) {
        return;
    }
    json_t *object = json_pack("{s:s, s:s}", "module", place->module, "offset", place->offset);
    if (place->function[0] != '\0') {
        json_object_set_new(object, "function", json_string(place->function));
    }
    if (place->source[0] != '\0') {
        json_object_set_new(object, "source", json_string(place->source));
        json_object_set_new(object, "line", json_integer(place->line));
    }
    json_array_append_new(calls, object);
}

/* The line that called a function which was compiled into another one. */
static void go_to_caller(Dwarf_Die *function, Dwarf_Die *unit, struct place *place)
{
    Dwarf_Attribute attribute;
    Dwarf_Word file = 0, line = 0;
    Dwarf_Files *files;
    size_t count;
    if (dwarf_formudata(dwarf_attr(function, DW_AT_call_file, &attribute), &file) == 0 &&
        dwarf_formudata(dwarf_attr(function, DW_AT_call_line, &attribute), &line) == 0 &&
        dwarf_getsrcfiles(unit, &files, &count) == 0) {
        const char *source = dwarf_filesrc(files, file, NULL, NULL);
        snprintf(place->source, sizeof(place->source), "%s", source == NULL ? "" : source);
        place->line = (int)line;
    }
}

static bool is_function(Dwarf_Die *scope)
{
    return dwarf_tag(scope) == DW_TAG_subprogram || dwarf_tag(scope) == DW_TAG_inlined_subroutine;
}

/* The functions that are compiled into one another at an address of the unit: innermost first, as
 * if each had been called. */
static void add_inlined(json_t *calls, Dwarf_Die *unit, Dwarf_Addr address, struct place *place)
{
    Dwarf_Die *scopes = NULL, *outer = NULL;
    const int count = dwarf_getscopes(unit, address, &scopes);
    int first = 0, outer_count = 0;
    while (first < count && !is_function(&scopes[first])) {
        first++;
    }
    if (first < count) {
        outer_count = dwarf_getscopes_die(&scopes[first], &outer);
    }
    for (int i = 0; i < outer_count; i++) {
        if (is_function(&outer[i])) {
            const char *name = dwarf_diename(&outer[i]);
            snprintf(place->function, sizeof(place->function), "%s", name == NULL ? "" : name);
            add(calls, place);
            go_to_caller(&outer[i], unit, place);
        }
    }
    if (outer_count <= 0) {
        add(calls, place);
    }
    free(scopes);
    free(outer);
}

/* The unit that was compiled to this code. clang writes no index of addresses: then each is asked.
 * NULL: it has no debugging information. */
static Dwarf_Die *find_unit(Dwfl_Module *module, Dwarf_Addr code, Dwarf_Addr *bias)
{
    Dwarf_Die *unit = dwfl_module_addrdie(module, code, bias);
    if (unit != NULL) {
        return unit;
    }
    do {
        unit = dwfl_module_nextcu(module, unit, bias);
    } while (unit != NULL && dwarf_haspc(unit, code - *bias) != 1);
    return unit;
}

static void find(json_t *calls, Dwfl_Module *module, Dwarf_Addr offset, struct place *place)
{
    Dwarf_Addr bias = 0;
    if (module == NULL || dwfl_module_getelf(module, &bias) == NULL) {
        add(calls, place);
        return;
    }
    const Dwarf_Addr code = bias + offset - 1;
    const char *name = dwfl_module_addrname(module, code);
    snprintf(place->function, sizeof(place->function), "%s", name == NULL ? "" : name);
    Dwarf_Die *unit = find_unit(module, code, &bias);
    Dwarf_Line *line = unit == NULL ? NULL : dwarf_getsrc_die(unit, code - bias);
    const char *source = line == NULL ? NULL : dwarf_linesrc(line, NULL, NULL);
    if (source == NULL) {
        add(calls, place);
        return;
    }
    snprintf(place->source, sizeof(place->source), "%s", source);
    (void)!dwarf_lineno(line, &place->line);
    add_inlined(calls, unit, code - bias, place);
}

void check_place(const char *text, json_t *calls)
{
    struct place place = {.line = 0};
    char path[4096];
    const char *plus = strrchr(text, '+');
    if (plus == NULL || (size_t)(plus - text) >= sizeof(path)) {
        return;
    }
    snprintf(path, sizeof(path), "%.*s", (int)(plus - text), text);
    const char *slash = strrchr(path, '/');
    snprintf(place.module, sizeof(place.module), "%s", slash == NULL ? path : slash + 1);
    snprintf(place.offset, sizeof(place.offset), "%s", plus + 1);
    find(calls, open_module(path), strtoull(plus + 1, NULL, 16), &place);
}
