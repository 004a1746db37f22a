/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic run - runs a program with our libibverbs in place of the system's.
 */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/box_page.h"
#include "drivers/live/live.h"
#include "tools/nonic.h"

#define LIBRARY     "libibverbs.so.1"
#define LIBRARY_EFA "libefa.so.1"

static void print_help(void)
{
    printf(
        "usage: nonic run [OPTIONS] [--] PROGRAM [ARGS...]\n\n"
        "Runs an unmodified RDMA program on nonic: one written for libibverbs, or for librdmacm,\n"
        "whose addresses and ports are those of this machine. Programs that know only LIDs find\n"
        "one another on this machine; UD multicast groups are those of IP.\n\n"
        "  --nic roce|efa         the NIC that the program sees: one of RoCE, or an Elastic "
        "Fabric\n"
        "                         Adapter (EFA) with SRD and UD (docs/efa.md). Default: roce\n"
        "  --wire auto|udp|shm    how packets travel: shared memory to other nonic programs of\n"
        "                         this machine and user and UDP to the rest (auto), UDP only, or\n"
        "                         shared memory only. Default: auto\n"
        "  --transport rc|block|auto\n"
        "                         what reliable connections speak over UDP: RoCEv2's RC, nonic's\n"
        "                         block transport with peers that understand it, or RC until\n"
        "                         packets are lost or the way proves long. Default: auto\n"
        "  --device IFACE|ADDR[,...]\n"
        "                         use this interface or address of the machine, together with\n"
        "                         your other nonic programs; up to four, all in use at a time.\n"
        "                         Default: a loopback address of the program's own\n"
        "  --paths N              UDP source ports (1 to 16) of each address that a connection of\n"
        "                         the block transport, or SRD (up to 4), uses at a time: switches\n"
        "                         spread packets among them. Default: 4, on loopback 1\n"
        "  --capture FILE.pcapng  record every packet; %%p in the name is the process number\n"
        "  --fault SPEC           misbehave: drop=P,dup=P,reorder=P,corrupt=P,delay=TIME:P,\n"
        "                         seed=N,dir=tx|rx|both; P is a probability such as 0.01 or the\n"
        "                         position of a packet such as #3\n"
        "  --strict               refuse what hardware refuses and nonic tolerates: slots of "
        "queues\n"
        "                         whose completions nobody polled, objects of two contexts, GIDs "
        "of\n"
        "                         two families, ...; a line on stderr names the rule and the cure\n"
        "  --check[=WORDS]        judge what the program does with verbs, and tell its errors and "
        "what\n"
        "                         works by luck, with the place in the source and the cure; status "
        "66\n"
        "                         if there was an error. WORDS, with commas: all (advice, too), "
        "json,\n"
        "                         a rule to leave out (-RULE), and to leave places out "
        "(except=FILE)\n"
        "  --odd[=SEED,WORDS]     do what the documents allow and devices seldom do, the same for "
        "the\n"
        "                         same SEED, a number; WORDS, with commas: fields, events, sizes,\n"
        "                         late, pieces, order, grh, mtu, small, keys, atomics, changes; "
        "or\n"
        "                         all but these (-WORD)\n"
        "  --map-memory auto|now|never\n"
        "                         local programs map each other's registered memory, so that they\n"
        "                         read and write it without the kernel: when accesses have cost "
        "as\n"
        "                         much as that (auto), at registration, or never. Default: auto\n"
        "  --map-queues           with --nic efa: programs may write the queues themselves, or "
        "leave\n"
        "                         that to another process (efadv_query_qp_wqs)\n"
        "  --stats                print the NIC's counters when the program ends\n"
        "  --help                 print this\n\n"
        "Programs that are linked statically, built for another C library than glibc, or gain\n"
        "privileges (set-user-ID) run without nonic: a warning says so.\n\n"
        "examples: nonic run --capture a.pcapng -- ib_send_bw -n 100 127.0.0.1\n"
        "          nonic run -- rping -c -a 127.0.0.1 -v -C 3\n");
}

static void set_or_clear(const char *name, const char *value)
{
    if (value != NULL) {
        setenv(name, value, 1);
    } else {
        unsetenv(name);
    }
}

/* The program may change its directory before it opens the file. */
static void set_capture(const char *file)
{
    char directory[PATH_MAX];
    if (file == NULL || file[0] == '/' || getcwd(directory, sizeof(directory)) == NULL) {
        set_or_clear("NONIC_CAPTURE", file);
        return;
    }
    char path[2 * PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", directory, file);
    setenv("NONIC_CAPTURE", path, 1);
}

static bool find_library(const char *name, char *library, size_t bytes)
{
    char error[3 * PATH_MAX];
    if (!find_part(name, library, bytes, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return false;
    }
    if (strpbrk(library, " :") != NULL) {
        fprintf(stderr,
                "nonic: the path %s has a space or a colon, which LD_PRELOAD takes for the end of "
                "a name; move nonic elsewhere\n",
                library);
        return false;
    }
    return true;
}

/* If the loader cannot load a preloaded library, it says so and runs the program without it. */
static bool try_library(const char *library)
{
    struct statvfs system;
    if (dlopen(library, RTLD_NOW) != NULL) {
        return true;
    }
    const bool noexec = statvfs(library, &system) == 0 && (system.f_flag & ST_NOEXEC);
    fprintf(stderr, "nonic: its library cannot be loaded (%s); %s\n", dlerror(),
            noexec ? "its file system is mounted with noexec: move nonic to another one"
                   : "install nonic again, and what it needs");
    return false;
}

void put_before(const char *variable, const char *value)
{
    const char *before = getenv(variable);
    char *both;
    if (before == NULL || before[0] == '\0') {
        setenv(variable, value, 1);
    } else if (asprintf(&both, "%s:%s", value, before) >= 0) {
        setenv(variable, both, 1);
        free(both);
    }
}

bool preload_part(const char *name)
{
    char library[PATH_MAX];
    if (!find_library(name, library, sizeof(library)) || !try_library(library)) {
        return false;
    }
    put_before("LD_PRELOAD", library);
    return true;
}

const char *run_world = "";

/* In a run whose NICs are a machine's, whoever starts the program. */
static bool is_on_machine(void)
{
    return getauxval(AT_SYSINFO_EHDR) == BOX_VDSO_ADDRESS &&
           ((const struct box_page *)BOX_PAGE_ADDRESS)->machine != 0;
}

bool preload_library(void)
{
    char library[64];
    snprintf(library, sizeof(library), "%s" LIBRARY, is_on_machine() ? "virtual/" : run_world);
    if (!preload_part(library) || (live_personality() == LIVE_EFA && !preload_part(LIBRARY_EFA))) {
        return false;
    }
    /* gcc's AddressSanitizer refuses to start if its runtime is not the first library of all. The
     * user's own options stand behind this one, and count. */
    put_before("ASAN_OPTIONS", "verify_asan_link_order=0");
    return true;
}

int run_program(char **program)
{
    if (!preload_library()) {
        return 1;
    }
    warn_of_program(program[0]);
    execvp(program[0], program);
    const int reason = errno;
    fprintf(stderr, "nonic: cannot run %s: %s\n", program[0], strerror(reason));
    return reason == ENOENT ? 127 : 126;
}

/* The part that judges has the rest of the command line, and its own words in front. */
static int run_checked(const char *words, int count, char **program)
{
    char **arguments = calloc((size_t)count + 3, sizeof(*arguments)), *copy = strdup(words);
    if (arguments == NULL || copy == NULL) {
        fprintf(stderr, "nonic: no memory\n");
        return 1;
    }
    arguments[0] = (char[]){"nonic-check"};
    arguments[1] = copy;
    memcpy(arguments + 2, program, (size_t)count * sizeof(*arguments));
    return run_part("nonic-check", arguments);
}

/* Options, and how the library is told of them: an option without a value says 1. */
struct setting {
    int option;
    const char *variable, *value;
};

static struct setting *find_setting(struct setting *settings, int option)
{
    while (settings->option != 0 && settings->option != option) {
        settings++;
    }
    return settings->option == 0 ? NULL : settings;
}

static void tell_library(const struct setting *settings)
{
    for (; settings->option != 0; settings++) {
        if (settings->option == 'c') {
            set_capture(settings->value);
        } else {
            set_or_clear(settings->variable, settings->value);
        }
    }
}

uint64_t run_seed;

/* The words of --odd, behind a seed that is drawn if people gave none. */
static const char *with_seed(const char *words)
{
    static char text[256];
    uint32_t seed = (uint32_t)run_seed;
    if (words != NULL && words[0] >= '0' && words[0] <= '9') {
        return words;
    }
    if (seed == 0) {
        (void)!getrandom(&seed, sizeof(seed), 0);
    }
    snprintf(text, sizeof(text), "%u%s%s", (unsigned)seed, words == NULL ? "" : ",",
             words == NULL ? "" : words);
    return text;
}

static const struct option options[] = {{"nic", required_argument, NULL, 'n'},
                                        {"wire", required_argument, NULL, 'w'},
                                        {"device", required_argument, NULL, 'd'},
                                        {"transport", required_argument, NULL, 't'},
                                        {"paths", required_argument, NULL, 'p'},
                                        {"capture", required_argument, NULL, 'c'},
                                        {"fault", required_argument, NULL, 'f'},
                                        {"strict", no_argument, NULL, 'S'},
                                        {"check", optional_argument, NULL, 'k'},
                                        {"odd", optional_argument, NULL, 'o'},
                                        {"map-memory", required_argument, NULL, 'm'},
                                        {"map-queues", no_argument, NULL, 'q'},
                                        {"stats", no_argument, NULL, 's'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

/* The settings are the environment's by now. */
static bool judge_settings(bool checked)
{
    struct live_config config;
    char error[600];
    if (!live_config_from_environment(&config, error, sizeof(error))) {
        fprintf(stderr, "nonic: %s\n", error);
        return false;
    }
    if (checked && config.nic == LIVE_EFA) {
        fprintf(stderr, "nonic: --check knows the rules of RoCE, not those of --nic efa\n");
        return false;
    }
    return true;
}

int command_run(int argc, char **argv)
{
    struct setting settings[] = {{'n', "NONIC_NIC", NULL},
                                 {'w', "NONIC_WIRE", NULL},
                                 {'t', "NONIC_TRANSPORT", NULL},
                                 {'d', "NONIC_DEVICE", NULL},
                                 {'p', "NONIC_PATHS", NULL},
                                 {'f', "NONIC_FAULT", NULL},
                                 {'c', "NONIC_CAPTURE", NULL},
                                 {'S', "NONIC_STRICT", NULL},
                                 {'o', "NONIC_ODD", NULL},
                                 {'m', "NONIC_MAP_MEMORY", NULL},
                                 {'q', "NONIC_MAP_QUEUES", NULL},
                                 {'s', "NONIC_STATS", NULL},
                                 {0, NULL, NULL}};
    const char *check = NULL, *odd = NULL; /* The latter: with a seed that was drawn. */
    int option;
    while ((option = getopt_long(argc, argv, "+h", options, NULL)) != -1) {
        struct setting *setting = find_setting(settings, option);
        if (option == 'k') {
            check = optarg == NULL ? "" : optarg;
            continue;
        }
        if (option == 'h') {
            print_help();
            return 0;
        }
        if (setting == NULL) {
            fprintf(stderr,
                    "nonic: valid options of 'run' are --nic, --wire, --transport, --device, "
                    "--paths, --capture, --fault, --strict, --check, --odd, --map-memory, "
                    "--map-queues, --stats, --help\n");
            return EXIT_USAGE;
        }
        setting->value = option == 'o' ? with_seed(optarg) : optarg != NULL ? optarg : "1";
        odd = option == 'o' && setting->value != optarg ? setting->value : odd;
    }
    if (optind == argc) {
        fprintf(stderr,
                "nonic: which program? usage: nonic run [OPTIONS] [--] PROGRAM [ARGS...]\n");
        return EXIT_USAGE;
    }
    tell_library(settings);
    if (!judge_settings(check != NULL)) {
        return EXIT_USAGE;
    }
    if (odd != NULL) {
        fprintf(stderr, "nonic: --odd=%s makes the same decisions again\n", odd);
    }
    return check == NULL ? run_program(argv + optind)
                         : run_checked(check, argc - optind, argv + optind);
}
