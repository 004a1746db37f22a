/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic hdl build - Verilator makes a shared object of a design.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"
#include "tools/hdl.h"
#include "tools/hdl_filter.h"
#include "tools/hdl_icarus.h"
#include "tools/nonic.h"

#define WORDS_MAX 512

struct words {
    const char *list[WORDS_MAX + 1];
    uint32_t count;
};

static const char help[] =
    "usage: nonic hdl build FILE... [--simulator verilator|icarus] [--top MODULE] [-I DIR]\n"
    "                       [-y DIR] [-G NAME=VALUE] [--filter] [-o OUT]\n\n"
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
    "  -o OUT           the shared object (MODULE.so); Icarus' is OUT.vvp, with OUT.vpi beside "
    "it\n";

static void add(struct words *words, const char *word)
{
    if (words->count == WORDS_MAX) {
        fprintf(stderr, "nonic: more than %d words for Verilator\n", WORDS_MAX);
        exit(EXIT_USAGE);
    }
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

/* The words as a person may repeat them in a shell. */
static void print_words(const struct words *words)
{
    for (uint32_t i = 0; i < words->count; i++) {
        const bool plain = strpbrk(words->list[i], " \"'$\\*?") == NULL;
        fprintf(stderr, plain ? "%s%s" : "%s'%s'", i > 0 ? " " : "", words->list[i]);
    }
    fprintf(stderr, "\n");
}

/* Messages of Verilator are passed on, with the remedies that are known. */
static void explain(int messages)
{
    FILE *file = fdopen(messages, "r");
    char *line = NULL;
    size_t bytes = 0;
    while (file != NULL && getline(&line, &bytes, file) > 0) {
        fputs(line, stderr);
        hdl_remedy(line, stderr);
    }
    free(line);
    if (file != NULL) {
        fclose(file);
    }
}

static int run(const struct words *words, bool explained)
{
    int messages[2] = {-1, -1};
    if (explained && pipe2(messages, O_CLOEXEC) != 0) {
        fprintf(stderr, "nonic: no pipe: %s\n", strerror(errno));
        return 1;
    }
    const pid_t pid = fork();
    if (pid == 0) {
        if (explained) {
            dup2(messages[1], STDERR_FILENO);
        }
        execvp(words->list[0], (char *const *)(uintptr_t)words->list);
        fprintf(stderr,
                errno == ENOENT ? "nonic: %s is not installed (Debian: apt install %s)\n"
                                : "nonic: %s cannot be started\n",
                words->list[0], words->list[0]);
        _exit(1);
    }
    if (explained) {
        close(messages[1]);
        explain(messages[0]);
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        fprintf(stderr, "nonic: no process for %s: %s\n", words->list[0], strerror(errno));
        return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Objects of an earlier build may be those of another nonic, and make would take them. */
static void forget_objects(const char *objects)
{
    char made[2 * PATH_MAX + 32];
    snprintf(made, sizeof(made), "%s/Vdesign.mk", objects);
    if (access(made, F_OK) == 0) {
        struct words words = {0};
        add(&words, "rm");
        add(&words, "-rf");
        add(&words, objects);
        (void)run(&words, false);
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
    const char *top, *out;
    bool icarus, filter;
    struct words options;         /* The simulator's. */
    struct words parameter_words; /* Verilator's. */
    char parameters[4096];        /* Icarus': .NAME(VALUE),... */
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
static void look_beside(const char *file, struct words *options)
{
    static char folder[PATH_MAX], include[PATH_MAX + 2];
    const struct words named = *options;
    const char *slash = strrchr(file, '/');
    const bool has_folder = slash != NULL && slash != file;
    snprintf(folder, sizeof(folder), "%.*s", has_folder ? (int)(slash - file) : 1,
             slash != NULL ? file : ".");
    snprintf(include, sizeof(include), "-I%s", folder);
    options->count = 0;
    add(options, "-y");
    add(options, folder);
    add(options, include);
    for (uint32_t i = 0; i < named.count; i++) {
        add(options, named.list[i]);
    }
}

/* Nonic's part of a model; and its modules in place of Xilinx', unless the design has its own. */
static void add_parts(const char *glue, struct words *words)
{
    static const char *const names[] = {"nonic_axis.sv", "nonic_qp.sv", "nonic_xgmii.sv",
                                        "verilator.cpp", "dpi.cpp"};
    static char parts[COUNT_OF(names)][PATH_MAX + 32], folder[PATH_MAX + 8];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        snprintf(parts[i], sizeof(parts[i]), "%s/%s", glue, names[i]);
        add(words, parts[i]);
    }
    snprintf(folder, sizeof(folder), "%s/xilinx", glue);
    add(words, "-y");
    add(words, folder);
}

/* Verilator gives each file that it reads to `nonic hdl filter`, and takes the answer for it. */
static bool filter_files(const struct wishes *wishes, struct words *words)
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
    add(words, "--pipe-filter");
    add(words, command);
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
    static const struct option options[] = {{"top", required_argument, NULL, 't'},
                                            {"simulator", required_argument, NULL, 's'},
                                            {"filter", no_argument, NULL, 'f'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    static char joined[WORDS_MAX][PATH_MAX + 3];
    uint32_t count = 0;
    int option;
    while ((option = getopt_long(argc, argv, "I:y:G:o:h", options, NULL)) != -1) {
        switch (option) {
        case 't': wishes->top = optarg; break;
        case 'o': wishes->out = optarg; break;
        case 'f': wishes->filter = true; break;
        case 'h': printf("%s", help); exit(0);
        case 'y':
            add(&wishes->options, "-y");
            add(&wishes->options, optarg);
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
            add(&wishes->parameter_words, joined[count++]);
            break;
        case 'I':
            snprintf(joined[count], sizeof(joined[0]), "-I%s", optarg);
            add(&wishes->options, joined[count++]);
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
    struct words words = {0};
    snprintf(above, sizeof(above), "-I%s", root);
    snprintf(beside, sizeof(beside), "-I%s", glue);
    hdl_icarus_module(out, module);
    const char *const always[] = {
        "sh", "-c",  "exec cc -shared -O2 -fno-strict-aliasing $(iverilog-vpi --cflags) \"$@\"",
        "cc", above, beside,
        "-o", module};
    for (size_t i = 0; i < COUNT_OF(always); i++) {
        add(&words, always[i]);
    }
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%s", glue, files[i]);
        add(&words, paths[i]);
    }
    print_words(&words);
    return run(&words, false);
}

static int build_icarus(const struct wishes *wishes, const char *top, const char *glue,
                        const char *root, char **files)
{
    char name[NAME_MAX + 16], parameters[sizeof(wishes->parameters) + 32], shared[NAME_MAX + 8];
    char axis[PATH_MAX + 32], xgmii[PATH_MAX + 32], clock[PATH_MAX + 32];
    struct words words = {0};
    snprintf(shared, sizeof(shared), "%s.vvp", top);
    const char *out = wishes->out != NULL ? wishes->out : shared;
    snprintf(name, sizeof(name), "-DNONIC_TOP=%s", top);
    snprintf(parameters, sizeof(parameters), "-DNONIC_PARAMETERS=%s", wishes->parameters);
    snprintf(axis, sizeof(axis), "%s/nonic_axis.sv", glue);
    snprintf(xgmii, sizeof(xgmii), "%s/nonic_xgmii.sv", glue);
    snprintf(clock, sizeof(clock), "%s/vpi_top.sv", glue);
    const char *const always[] = {"iverilog",  "-g2012", "-Y.sv", "-s",
                                  "nonic_top", "-o",     out,     name};
    for (size_t i = 0; i < COUNT_OF(always); i++) {
        add(&words, always[i]);
    }
    if (wishes->parameters[0] != '\0') {
        add(&words, parameters);
    }
    for (uint32_t i = 0; i < wishes->options.count; i++) {
        add(&words, wishes->options.list[i]);
    }
    for (uint32_t i = 0; files[i] != NULL; i++) {
        add(&words, files[i]);
    }
    add(&words, axis);
    add(&words, xgmii);
    add(&words, clock);
    print_words(&words);
    if (run(&words, false) != 0 || build_module(glue, root, out) != 0) {
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
    module_of(argv[optind], module, sizeof(module));
    const char *top = wishes.top != NULL ? wishes.top : module;
    if (wishes.icarus) {
        return build_icarus(&wishes, top, glue, root, argv + optind);
    }
    snprintf(shared, sizeof(shared), "%s.so", top);
    const char *out = wishes.out != NULL ? wishes.out : shared;
    snprintf(absolute, sizeof(absolute), "%s%s%s", out[0] == '/' ? "" : here,
             out[0] == '/' ? "" : "/", out);
    snprintf(objects, sizeof(objects), "%s.build", absolute);
    snprintf(flags, sizeof(flags), "-fPIC -fvisibility=hidden -I%s -DHDL_NAME=%s", root, top);
    struct words words = {0};
    for (size_t i = 0; i < COUNT_OF(verilator); i++) {
        add(&words, verilator[i]);
    }
    const char *const own[] = {"-CFLAGS", flags,   "--top-module", top,
                               "-Mdir",   objects, "-o",           absolute};
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        add(&words, own[i]);
    }
    for (uint32_t i = 0; i < wishes.options.count; i++) {
        add(&words, wishes.options.list[i]);
    }
    for (uint32_t i = 0; i < wishes.parameter_words.count; i++) {
        add(&words, wishes.parameter_words.list[i]);
    }
    for (int i = optind; i < argc; i++) {
        add(&words, argv[i]);
    }
    add_parts(glue, &words);
    if (!filter_files(&wishes, &words)) {
        return 1;
    }
    forget_objects(objects);
    print_words(&words);
    const int status = run(&words, true);
    if (status == 0) {
        printf("%s\n", out);
    }
    return status == 0 ? 0 : 1;
}
