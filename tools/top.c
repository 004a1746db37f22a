/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic top - what moves, between whom, how fast, what is lost and who waits. `nonic top` becomes
 * this program.
 */
#include "tools/top.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tools/feroce_text.h"
#include "tools/nonic.h"

#define SECONDS_MAX 3600
#define LINE_BYTES  1024

static const char help[] =
    "usage: nonic top [-d SECONDS] [PID...]\n"
    "       nonic top --once [--json] [-d SECONDS] [PID...]\n\n"
    "Shows what moves between programs on nonic, how fast, what is lost and who waits: your\n"
    "programs (as root: those of all users), or those named. Keys are those of htop; 'h' lists\n"
    "them.\n\n"
    "  -d, --delay SECONDS   between two looks (1)\n"
    "  --once                prints one picture, as text: of two looks\n"
    "  --json                ... for machines\n";

static void print(const json_t *picture)
{
    const struct top_order order = {.column = TOP_SENT};
    struct top_row *rows;
    char line[LINE_BYTES];
    const size_t count = top_rows(picture, &order, &rows);
    const int name_characters = top_name_characters(rows, count);
    top_write_sum(line, sizeof(line), picture);
    printf("%s\n", line);
    top_write_head(line, sizeof(line), &order, name_characters);
    printf("%s\n", line);
    for (size_t i = 0; i < count; i++) {
        top_write_row(line, sizeof(line), &rows[i], name_characters);
        printf("%s\n", line);
        if (stat_word(rows[i].queue_pair, "sentence")[0] != '\0') {
            printf("%*s%s\n", 11, "", stat_word(rows[i].queue_pair, "sentence"));
        }
    }
    free(rows);
}

static int once(const struct stat_named *named, unsigned seconds, bool json)
{
    struct top_look before, now;
    struct left_out said = {0};
    top_look(&before);
    sleep(seconds);
    top_look(&now);
    json_t *picture = top_compare(&before, &now, named);
    const bool any = json_array_size(picture) > 0;
    if (json) {
        json_dumpf(picture, stdout, JSON_INDENT(2));
        printf("\n");
    } else if (any) {
        print(picture);
    } else {
        fprintf(stderr, named->count > 0
                            ? "nonic: no such program runs on nonic, or it does not answer\n"
                            : "nonic: no program of yours runs on nonic\n");
    }
    now.left_out.other = now.view.left_out.other;
    stat_say_left_out(&said, &now.left_out);
    json_decref(picture);
    top_forget(&before);
    top_forget(&now);
    return any ? 0 : 1;
}

static bool parse_seconds(const char *text, unsigned *seconds)
{
    uint64_t value;
    if (!text_number(text, 1, SECONDS_MAX, &value)) {
        fprintf(stderr, "nonic: --delay is '%s'; valid are 1 to %d seconds\n", text, SECONDS_MAX);
        return false;
    }
    *seconds = (unsigned)value;
    return true;
}

static int run(int argc, char **argv, unsigned seconds, bool is_once, bool json)
{
    struct stat_named named;
    if (!stat_parse_pids(&named, argc, argv)) {
        return EXIT_USAGE;
    }
    int status = EXIT_USAGE;
    if (is_once) {
        status = once(&named, seconds, json);
    } else if (json) {
        fprintf(stderr, "nonic: --json goes with --once only\n");
    } else if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        fprintf(stderr, "nonic: this is no terminal; --once prints one picture\n");
    } else {
        status = top_screen(&named, seconds);
    }
    free(named.pids);
    return status;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"delay", required_argument, NULL, 'd'},
                                            {"once", no_argument, NULL, 'o'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {0}};
    bool is_once = false, json = false;
    unsigned seconds = 1;
    int option;
    while ((option = getopt_long(argc, argv, "d:h", options, NULL)) != -1) {
        switch (option) {
        case 'd':
            if (!parse_seconds(optarg, &seconds)) {
                return EXIT_USAGE;
            }
            break;
        case 'o': is_once = true; break;
        case 'j': json = true; break;
        case 'h': printf("%s", help); return 0;
        default: fprintf(stderr, "%s", help); return EXIT_USAGE;
        }
    }
    return run(argc - optind, argv + optind, seconds, is_once, json);
}
