/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_words.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/hdl_filter.h"
#include "tools/nonic.h"

void hdl_words_add(struct hdl_words *words, const char *word)
{
    if (words->count == HDL_WORDS_MAX) {
        fprintf(stderr, "nonic: more than %d words for a command\n", HDL_WORDS_MAX);
        exit(EXIT_USAGE);
    }
    words->list[words->count++] = word;
    words->list[words->count] = NULL;
}

void hdl_words_print(const struct hdl_words *words)
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

int hdl_words_run(const struct hdl_words *words, bool explained)
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
