/* SPDX-License-Identifier: BSD-2-Clause
 *
 * program - says when a program will run without nonic.
 *
 * The dynamic loader of glibc puts our library into a program (LD_PRELOAD). Nothing fails where
 * there is no such loader, or where the loader may not do it: the program runs, and finds no NIC
 * or the real one. These are warnings, because a static program may be a launcher, and the
 * programs that it starts do run on nonic.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tools/nonic.h"

/* The facts of this processor that the files of programs name. */
#ifdef __aarch64__
#define PROCESSOR "arm64"
#define MACHINE   EM_AARCH64
#define LOADER    "ld-linux-aarch64.so.1"
#else
#define PROCESSOR "x86-64"
#define MACHINE   EM_X86_64
#define LOADER    "ld-linux-x86-64.so.2"
#endif
#define SCRIPTS_MAX 4 /* Interpreters that are scripts themselves: Linux follows this number. */

/* -- Which file it is ---------------------------------------------------------------------------*/

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* Finds the file that execvp would run. */
static bool find_program(const char *name, char *path, size_t bytes)
{
    snprintf(path, bytes, "%s", name);
    if (strchr(name, '/') != NULL) {
        return is_program(path);
    }
    const char *list = getenv("PATH");
    char *all = strdup(list == NULL ? "/bin:/usr/bin" : list), *rest = all, *directory;
    bool found = false;
    while (!found && (directory = strsep(&rest, ":")) != NULL) {
        snprintf(path, bytes, "%s%s%s", directory, directory[0] == '\0' ? "" : "/", name);
        found = is_program(path);
    }
    free(all);
    return found;
}

/* The program that runs a script which begins with this text; false: it is not a script. */
static bool script_interpreter(char *text, char *path, size_t bytes)
{
    if (strncmp(text, "#!", 2) != 0) {
        return false;
    }
    text += 2 + strspn(text + 2, " \t");
    text[strcspn(text, " \t\n")] = '\0';
    snprintf(path, bytes, "%s", text);
    return true;
}

/* -- Whether nonic can be loaded into it --------------------------------------------------------*/

/* Programs that gain privileges are loaded without LD_PRELOAD, whoever set it. */
static bool gains_privileges(const char *path)
{
    struct stat status;
    struct statvfs system;
    if (stat(path, &status) != 0 || statvfs(path, &system) != 0 || (system.f_flag & ST_NOSUID) ||
        prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) {
        return false;
    }
    const bool as_user = (status.st_mode & S_ISUID) && status.st_uid != getuid();
    const bool as_group = (status.st_mode & S_ISGID) && status.st_gid != getgid();
    const bool able = getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
    return as_user || as_group || able;
}

/* The loader that the program names; an empty string if it names none. False: unreadable. */
static bool read_loader(int file, const Elf64_Ehdr *header, char *loader, size_t bytes)
{
    loader[0] = '\0';
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        const off_t at = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);
        if (pread(file, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment)) {
            return false;
        }
        if (segment.p_type == PT_INTERP) {
            const size_t length = segment.p_filesz < bytes ? segment.p_filesz : bytes - 1;
            const ssize_t count = pread(file, loader, length, (off_t)segment.p_offset);
            loader[count < 0 ? 0 : count] = '\0';
            return count > 0;
        }
    }
    return true;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* The loader itself can be run, too: it is static, and loads the program after it. */
static bool is_loader(const char *path)
{
    char *real = realpath(path, NULL);
    const bool is = real != NULL && strncmp(base_name(real), "ld-", 3) == 0;
    free(real);
    return is;
}

static void warn_of_format(const char *path, int file, const Elf64_Ehdr *header)
{
    char loader[PATH_MAX];
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != MACHINE) {
        fprintf(stderr,
                "nonic: %s is not a program for " PROCESSOR
                ": it runs without nonic, if at all; build it for " PROCESSOR "\n",
                path);
    } else if (!read_loader(file, header, loader, sizeof(loader))) {
        return;
    } else if (loader[0] == '\0' && !is_loader(path)) {
        fprintf(stderr,
                "nonic: %s is linked statically: it runs without nonic, which can be loaded only "
                "into dynamically linked programs; link it without -static\n",
                path);
    } else if (loader[0] != '\0' && strcmp(base_name(loader), LOADER) != 0) {
        fprintf(stderr,
                "nonic: %s is built for another C library (its loader is %s): it runs without "
                "nonic, and that loader may complain of libibverbs.so.1; build it for glibc\n",
                path, loader);
    }
}

/* -- All of it ----------------------------------------------------------------------------------*/

void warn_of_program(const char *name)
{
    char path[PATH_MAX];
    bool more = find_program(name, path, sizeof(path));
    for (int depth = 0; more && depth <= SCRIPTS_MAX; depth++) {
        union {
            Elf64_Ehdr header;
            char text[PATH_MAX];
        } start = {.text = ""};
        const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (file >= 0) {
            (void)!read(file, start.text, sizeof(start.text) - 1);
        }
        more = script_interpreter(start.text, path, sizeof(path));
        if (!more && gains_privileges(path)) {
            fprintf(stderr,
                    "nonic: %s gains privileges (set-user-ID, set-group-ID or file capabilities): "
                    "it runs without nonic, because the system loads nothing foreign into such a "
                    "program; run a copy of it that has none\n",
                    path);
        } else if (!more && memcmp(start.header.e_ident, ELFMAG, SELFMAG) == 0) {
            warn_of_format(path, file, &start.header);
        }
        if (file >= 0) {
            close(file);
        }
    }
}
