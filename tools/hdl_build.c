/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic hdl build - Verilator makes a shared object of a design.
 */
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/hdl.h"
#include "tools/hdl_filter.h"
#include "tools/hdl_icarus.h"
#include "tools/hdl_vhdl.h"
#include "tools/hdl_words.h"
#include "tools/nonic.h"

static const char help[] =
    "usage: nonic hdl build FILE... [--simulator verilator|icarus] [--top MODULE] [-I DIR]\n"
    "                       [-y DIR] [-G NAME=VALUE] [--filter] [--entity NAME]\n"
    "                       [-o OUT]\n\n"
    "Compiles a design for `nonic hdl`. Its top module has the inputs clk and rst, and a "
    "nonic_axis\n"
    "or nonic_xgmii inside, which come with nonic. Verilator's files are in OUT.so.build, made\n"
    "anew each time.\n\n"
    "  --simulator NAME verilator, or icarus: slow, but it knows X and Z (verilator)\n"
    "  --top MODULE     the top module (the name of the first file without its end)\n"
    "  -I DIR, -y DIR   where included files, and modules by their file's name, are looked for\n"
    "                   (the first file's folder, too)\n"
    "  -G NAME=VALUE    a parameter of the top module\n"
    "  --filter         mends what Verilator 5.006 refuses, as it reads: the files stay as they "
    "are\n"
    "  --entity NAME    GHDL makes Verilog of the files of VHDL, which end with .vhd or .vhdl: of\n"
    "                   this entity (that by the name of the last one), which the top module has\n"
    "  -o OUT           the shared object (MODULE.so); Icarus' is OUT.vvp, with OUT.vpi beside "
    "it\n";

/* Objects of an earlier build may be those of another nonic, and make would take them. */
static void forget_objects(const char *objects)
{
    char made[2 * PATH_MAX + 32];
    snprintf(made, sizeof(made), "%s/Vdesign.mk", objects);
    if (access(made, F_OK) == 0) {
        struct hdl_words words = {0};
        hdl_words_add(&words, "rm");
        hdl_words_add(&words, "-rf");
        hdl_words_add(&words, objects);
        (void)hdl_words_run(&words, false);
    }
}

/* The name of a file without its folder and its end. */
static void module_of(const char *file, char *module, size_t bytes)
{
    const char *slash = strrchr(file, '/');
    snprintf(module, bytes, "%s", slash != NULL ? slash + 1 : file);
    module[strcspn(module, ".")] = '\0';
}

struct wishes {
    const char *top, *out, *entity;
    bool icarus, filter;
    struct hdl_words options;         /* The simulator's. */
    struct hdl_words parameter_words; /* Verilator's. */
    char parameters[4096];            /* Icarus': .NAME(VALUE),... */
};

/* Icarus sets parameters of its own top module (hdl/vpi_top.sv) alone, which gives them on. */
static bool add_parameter(struct wishes *wishes, const char *text)
{
    const char *value = strchr(text, '=');
    const size_t used = strlen(wishes->parameters);
    if (value == NULL || used + strlen(text) + 4 > sizeof(wishes->parameters)) {
        fprintf(stderr, "nonic: -G takes NAME=VALUE, not '%s'\n", text);
        return false;
    }
    snprintf(wishes->parameters + used, sizeof(wishes->parameters) - used, "%s.%.*s(%s)",
             used > 0 ? "," : "", (int)(value - text), text, value + 1);
    return true;
}

/* Modules and included files beside the first file are found first, without being named. */
static void look_beside(const char *file, struct hdl_words *options)
{
    static char folder[PATH_MAX], include[PATH_MAX + 2];
    const struct hdl_words named = *options;
    const char *slash = strrchr(file, '/');
    const bool has_folder = slash != NULL && slash != file;
    snprintf(folder, sizeof(folder), "%.*s", has_folder ? (int)(slash - file) : 1,
             slash != NULL ? file : ".");
    snprintf(include, sizeof(include), "-I%s", folder);
    options->count = 0;
    hdl_words_add(options, "-y");
    hdl_words_add(options, folder);
    hdl_words_add(options, include);
    for (uint32_t i = 0; i < named.count; i++) {
        hdl_words_add(options, named.list[i]);
    }
}

/* Nonic's part of a model; and its modules in place of Xilinx', unless the design has its own. */
static void add_parts(const char *glue, struct hdl_words *words)
{
    static const char *const names[] = {"nonic_axis.sv", "nonic_qp.sv", "nonic_xgmii.sv",
                                        "verilator.cpp", "dpi.cpp"};
    static char parts[COUNT_OF(names)][PATH_MAX + 32], folder[PATH_MAX + 8];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(parts[i], sizeof(parts[i]), "%s/%s", glue, names[i]);
        hdl_words_add(words, parts[i]);
    }
    snprintf(folder, sizeof(folder), "%s/xilinx", glue);
    hdl_words_add(words, "-y");
    hdl_words_add(words, folder);
}

/* Verilator gives each file that it reads to `nonic hdl filter`, and takes the answer for it. */
static bool filter_files(const struct wishes *wishes, struct hdl_words *words)
{
    static char command[PATH_MAX + 16];
    char self[PATH_MAX], error[3 * PATH_MAX];
    if (!wishes->filter) {
        return true;
    }
    if (!find_part("nonic-hdl", self, sizeof(self), error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return false;
    }
    snprintf(command, sizeof(command), "\"%s\" filter", self);
    hdl_words_add(words, "--pipe-filter");
    hdl_words_add(words, command);
    return true;
}

static bool choose_simulator(struct wishes *wishes, const char *name)
{
    wishes->icarus = strcmp(name, "icarus") == 0;
    if (!wishes->icarus && strcmp(name, "verilator") != 0) {
        fprintf(stderr, "nonic: --simulator is verilator or icarus, not '%s'\n", name);
        return false;
    }
    return true;
}

static bool read_options(int argc, char **argv, struct wishes *wishes)
{
    static const struct option options[] = {
        {"top", required_argument, NULL, 't'},    {"simulator", required_argument, NULL, 's'},
        {"entity", required_argument, NULL, 'e'}, {"filter", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},         {0}};
    static char joined[HDL_WORDS_MAX][PATH_MAX + 3];
    uint32_t count = 0;
    int option;
    while ((option = getopt_long(argc, argv, "I:y:G:o:h", options, NULL)) != -1) {
        switch (option) {
        case 't': wishes->top = optarg; break;
        case 'o': wishes->out = optarg; break;
        case 'e': wishes->entity = optarg; break;
        case 'f': wishes->filter = true; break;
        case 'h': printf("%s", help); exit(0);
        case 'y':
            hdl_words_add(&wishes->options, "-y");
            hdl_words_add(&wishes->options, optarg);
            break;
        case 's':
            if (!choose_simulator(wishes, optarg)) {
                return false;
            }
            break;
        case 'G':
            if (!add_parameter(wishes, optarg)) {
                return false;
            }
            snprintf(joined[count], sizeof(joined[0]), "-G%s", optarg);
            hdl_words_add(&wishes->parameter_words, joined[count++]);
            break;
        case 'I':
            snprintf(joined[count], sizeof(joined[0]), "-I%s", optarg);
            hdl_words_add(&wishes->options, joined[count++]);
            break;
        default: fprintf(stderr, "%s", help); return false;
        }
    }
    if (optind == argc) {
        fprintf(stderr, "nonic: which files?\n%s", help);
        return false;
    }
    if (wishes->icarus && wishes->filter) {
        fprintf(stderr, "nonic: --filter is for Verilator alone\n");
        return false;
    }
    look_beside(argv[optind], &wishes->options);
    return true;
}

/* The folder of nonic's own part of a model, and the folder above it. */
static bool find_glue(char *glue, char *root)
{
    char error[3 * PATH_MAX];
    if (!find_part("design/hdl/nonic_axis.sv", glue, PATH_MAX, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return false;
    }
    *strrchr(glue, '/') = '\0';
    snprintf(root, PATH_MAX, "%s", glue);
    *strrchr(root, '/') = '\0';
    return true;
}

/* vpi.c becomes a module for vvp, with the port in it. */
static int build_module(const char *glue, const char *root, const char *out)
{
    static const char *const files[] = {"vpi.c",   "port.c",      "port_xgmii.c", "message.c",
                                        "xgmii.c", "base/prng.c", "base/check.c"};
    static char paths[COUNT_OF(files)][PATH_MAX + 16];
    char above[PATH_MAX + 2], beside[PATH_MAX + 2], module[PATH_MAX];
    struct hdl_words words = {0};
    snprintf(above, sizeof(above), "-I%s", root);
    snprintf(beside, sizeof(beside), "-I%s", glue);
    hdl_icarus_module(out, module);
    const char *const always[] = {
        "sh", "-c",  "exec cc -shared -O2 -fno-strict-aliasing $(iverilog-vpi --cflags) \"$@\"",
        "cc", above, beside,
        "-o", module};
    for (size_t i = 0; i < COUNT_OF(always); i++) {
        hdl_words_add(&words, always[i]);
    }
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", glue, files[i]);
        hdl_words_add(&words, paths[i]);
    }
    hdl_words_print(&words);
    return hdl_words_run(&words, false);
}

static int build_icarus(const struct wishes *wishes, const char *top, const char *out,
                        const char *glue, const char *root, char **files)
{
    char name[NAME_MAX + 16], parameters[sizeof(wishes->parameters) + 32];
    char axis[PATH_MAX + 32], xgmii[PATH_MAX + 32], clock[PATH_MAX + 32];
    struct hdl_words words = {0};
    snprintf(name, sizeof(name), "-DNONIC_TOP=%s", top);
    snprintf(parameters, sizeof(parameters), "-DNONIC_PARAMETERS=%s", wishes->parameters);
    snprintf(axis, sizeof(axis), "%s/nonic_axis.sv", glue);
    snprintf(xgmii, sizeof(xgmii), "%s/nonic_xgmii.sv", glue);
    snprintf(clock, sizeof(clock), "%s/vpi_top.sv", glue);
    const char *const always[] = {"iverilog",  "-g2012", "-Y.sv", "-s",
                                  "nonic_top", "-o",     out,     name};
    for (size_t i = 0; i < COUNT_OF(always); i++) {
        hdl_words_add(&words, always[i]);
    }
    if (wishes->parameters[0] != '\0') {
        hdl_words_add(&words, parameters);
    }
    for (uint32_t i = 0; i < wishes->options.count; i++) {
        hdl_words_add(&words, wishes->options.list[i]);
    }
    for (uint32_t i = 0; files[i] != NULL; i++) {
        hdl_words_add(&words, files[i]);
    }
    hdl_words_add(&words, axis);
    hdl_words_add(&words, xgmii);
    hdl_words_add(&words, clock);
    hdl_words_print(&words);
    if (hdl_words_run(&words, false) != 0 || build_module(glue, root, out) != 0) {
        return 1;
    }
    printf("%s\n", out);
    return 0;
}

/* Modules without a time are no reason to warn: nonic's have none. The checks of a design end the
 * build. */
static const char *const verilator[] = {"verilator",
                                        "--cc",
                                        "--exe",
                                        "--build",
                                        "-j",
                                        "0",
                                        "--prefix",
                                        "Vdesign",
                                        "--x-initial",
                                        "unique",
                                        "--trace-fst",
                                        "-O3",
                                        "-Wno-fatal",
                                        "-Wno-TIMESCALEMOD",
                                        "-Werror-USERERROR",
                                        "-Werror-USERFATAL",
                                        "-LDFLAGS",
                                        "-shared -lz"};

/* The files of VHDL leave the list, and what becomes of them comes in at its end. */
static bool replace_vhdl(struct wishes *wishes, const char *out, char **files)
{
    static struct hdl_vhdl vhdl;
    uint32_t count = 0, kept = 0;
    while (files[count] != NULL) {
        count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        kept += !hdl_vhdl_is(files[i]);
    }
    if (kept == count) {
        return true;
    }
    if (!hdl_vhdl_translate(&vhdl, files, wishes->entity, out)) {
        return false;
    }
    kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!hdl_vhdl_is(files[i])) {
            files[kept++] = files[i];
        }
    }
    files[kept] = vhdl.module;
    files[kept + 1] = NULL;
    hdl_words_add(&wishes->parameter_words, "-Wno-INITIALDLY"); /* GHDL begins registers so. */
    return true;
}

/* The first file of Verilog; NULL: there is none. */
static const char *first_verilog(char **files)
{
    uint32_t i = 0;
    while (files[i] != NULL && hdl_vhdl_is(files[i])) {
        i++;
    }
    return files[i];
}

int hdl_build(int argc, char **argv)
{
    char module[NAME_MAX], shared[PATH_MAX], absolute[2 * PATH_MAX], objects[2 * PATH_MAX + 8];
    char glue[PATH_MAX], root[PATH_MAX], flags[2 * PATH_MAX], here[PATH_MAX];
    struct wishes wishes = {0};
    if (!read_options(argc, argv, &wishes)) {
        return EXIT_USAGE;
    }
    if (!find_glue(glue, root) || getcwd(here, sizeof(here)) == NULL) {
        return 1;
    }
    char **files = argv + optind;
    const char *first = first_verilog(files);
    if (first == NULL) {
        fprintf(stderr, "nonic: the top module is of Verilog, with VHDL below it\n");
        return EXIT_USAGE;
    }
    module_of(first, module, sizeof(module));
    const char *top = wishes.top != NULL ? wishes.top : module;
    snprintf(shared, sizeof(shared), "%s.%s", top, wishes.icarus ? "vvp" : "so");
    const char *out = wishes.out != NULL ? wishes.out : shared;
    if (!replace_vhdl(&wishes, out, files)) {
        return 1;
    }
    if (wishes.icarus) {
        return build_icarus(&wishes, top, out, glue, root, files);
    }
    snprintf(absolute, sizeof(absolute), "%s%s%s", out[0] == '/' ? "" : here,
             out[0] == '/' ? "" : "/", out);
    snprintf(objects, sizeof(objects), "%s.build", absolute);
    snprintf(flags, sizeof(flags), "-fPIC -fvisibility=hidden -I%s -DHDL_NAME=%s", root, top);
    struct hdl_words words = {0};
    for (size_t i = 0; i < COUNT_OF(verilator); i++) {
        hdl_words_add(&words, verilator[i]);
    }
    const char *const own[] = {"-CFLAGS", flags,   "--top-module", top,
                               "-Mdir",   objects, "-o",           absolute};
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        hdl_words_add(&words, own[i]);
    }
    for (uint32_t i = 0; i < wishes.options.count; i++) {
        hdl_words_add(&words, wishes.options.list[i]);
    }
    for (uint32_t i = 0; i < wishes.parameter_words.count; i++) {
        hdl_words_add(&words, wishes.parameter_words.list[i]);
    }
    for (uint32_t i = 0; files[i] != NULL; i++) {
        hdl_words_add(&words, files[i]);
    }
    add_parts(glue, &words);
    if (!filter_files(&wishes, &words)) {
        return 1;
    }
    forget_objects(objects);
    hdl_words_print(&words);
    const int status = hdl_words_run(&words, true);
    if (status == 0) {
        printf("%s\n", out);
    }
    return status == 0 ? 0 : 1;
}
