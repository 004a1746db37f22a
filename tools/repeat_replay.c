/* SPDX-License-Identifier: BSD-2-Clause
 *
 * repeat_replay - nonic replay: a run once more.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/nonic.h"
#include "tools/repeat.h"

static void print_replay_help(void)
{
    printf("usage: nonic replay [--gdb [THREAD@]TIME] DIR\n\n"
           "Makes the run again whose files 'nonic repeat --output DIR' wrote: with its command,\n"
           "folder, environment and seed. Says whether it is the same one.\n\n"
           "  --gdb [THREAD@]TIME  stop at this virtual time, before the next turn of any thread\n"
           "                       or of this one, and start gdb on its process: 1.5ms, 2@0.7ms\n"
           "  --help               print this\n\n"
           "Exit status: the program's; 3: it is another run.\n");
}

/* [THREAD@]TIME */
static bool parse_halt(const char *text, struct box_options *box)
{
    uint64_t thread = 0;
    const char *at = strchr(text, '@');
    char number[20];
    if (at != NULL) {
        snprintf(number, sizeof(number), "%.*s", (int)(at - text), text);
        if (!parse_number(number, &thread) || thread > INT32_MAX) {
            return false;
        }
    }
    box->on_halt = repeat_gdb;
    box->halt_thread = at == NULL ? -1 : (int)thread;
    return parse_time(at == NULL ? text : at + 1, &box->halt_ns);
}

static int replay(struct repeat *repeat, uint64_t digest)
{
    const struct repeat_run *run = repeat_or_say(repeat, repeat->box.seed, false);
    if (run == NULL) {
        return 1;
    }
    const struct box_result *result = &run->result;
    if (result->end == BOX_HALTED) {
        return 0;
    }
    if (result->end != BOX_ENDED) {
        fputs(result->report, stderr);
    }
    const bool is_same = result->digest == digest;
    fprintf(stderr, "nonic: virtual %.9f s, digest %016llx: %s\n", (double)result->virtual_ns / 1e9,
            (unsigned long long)result->digest,
            is_same ? "the same run" : "ANOTHER run than the recorded one");
    return is_same ? repeat_status(result) : EXIT_UNREPEATABLE;
}

int command_replay(int argc, char **argv)
{
    static const struct option options[] = {{"gdb", required_argument, NULL, 'g'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    struct repeat repeat = {0};
    struct box_options halt = {0};
    uint64_t digest;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        if (option == 'h') {
            print_replay_help();
            return 0;
        }
        if (option == '?' || !parse_halt(optarg, &halt)) {
            fprintf(stderr, "nonic: 'nonic replay --help' shows the options\n");
            return EXIT_USAGE;
        }
    }
    if (optind != argc - 1) {
        fprintf(stderr, "nonic: which run? usage: nonic replay [--gdb [THREAD@]TIME] DIR\n");
        return EXIT_USAGE;
    }
    if (!record_read(argv[optind], &repeat, &digest)) {
        return EXIT_USAGE;
    }
    repeat.box.on_halt = halt.on_halt;
    repeat.box.halt_ns = halt.halt_ns;
    repeat.box.halt_thread = halt.halt_thread;
    return replay(&repeat, digest);
}
