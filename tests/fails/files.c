/* SPDX-License-Identifier: BSD-2-Clause
 *
 * files - the device as files below /sys and /dev, by every function of libc that has our answers.
 */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fails/program.h"
#include "tests/fails/wrap.h"

#define CLASS "/sys/class/infiniband"
#define PORT  CLASS "/nonic0/ports/1"

/* Not in the headers of every rdma-core, and of libc. */
int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t bytes);
char *__realpath_chk(const char *path, char *buffer, size_t room);

static char *resolve_path(const char *path)
{
    return realpath(path, NULL);
}

/* As a program that was built with _FORTIFY_SOURCE. */
static char *resolve_path_checked(const char *path)
{
    return __realpath_chk(path, NULL, PATH_MAX);
}

static int list_class(struct dirent ***entries)
{
    return scandir(CLASS "/nonic0", entries, NULL, alphasort);
}

/* Not the directory itself, and the one above it. */
static int is_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* The name in a directory that has one; the caller frees it. NULL: with errno. */
static char *only_entry(const char *path)
{
    struct dirent **entries;
    const int count = scandir(path, &entries, is_name, alphasort);
    char *name = NULL;
    for (int i = 0; i < count; i++) {
        name = i == 0 ? strdup(entries[i]->d_name) : name;
        free(entries[i]);
    }
    if (count >= 0) {
        free(entries);
    }
    return name;
}

/* It says no reason where a file cannot be read. */
static int read_value(const char *file, char *text, size_t bytes)
{
    const int count = ibv_read_sysfs_file(PORT, file, text, bytes);
    errno = count < 0 && errno == 0 ? EIO : errno;
    return count;
}

static void read_files(void)
{
    char text[256];
    struct stat status;
    FILE *file = POINTER(fopen(CLASS "/nonic0/node_guid", "re"));
    must(fgets(text, sizeof(text), file) != NULL, "fgets", errno);
    fclose(file);
    const int fd = NUMBER(open(PORT "/lid", O_RDONLY | O_CLOEXEC));
    must(read(fd, text, sizeof(text)) > 0, "read", errno);
    must(fstat(fd, &status) == 0 && status.st_size > 0, "fstat", errno);
    close(fd);
    (void)NUMBER(stat(PORT "/state", &status));
    (void)NUMBER(stat("/dev/infiniband/uverbs0", &status));
    (void)NUMBER(readlink(CLASS "/nonic0", text, sizeof(text)));
    (void)NUMBER(read_value("gid_attrs/ndevs/0", text, sizeof(text)));
}

static void resolve_paths(void)
{
    char text[256];
    free(POINTER(resolve_path(CLASS "/nonic0/device")));
    free(POINTER(resolve_path_checked(CLASS "/nonic0/device")));
    free(POINTER(canonicalize_file_name(CLASS "/nonic0")));
    char *interface = POINTER(only_entry(CLASS "/nonic0/device/net"));
    const int bytes = snprintf(text, sizeof(text), CLASS "/nonic0/device/net/%s", interface);
    must(bytes < (int)sizeof(text), "a long name", bytes);
    char target[256];
    (void)NUMBER(readlink(text, target, sizeof(target)));
    free(interface);
}

static void change_directory(void)
{
    struct stat status;
    (void)NUMBER(chdir(CLASS));
    (void)NUMBER(stat("nonic0/node_type", &status));
    free(POINTER(getcwd(NULL, 0)));
    (void)NUMBER(chdir("/"));
}

static void read_directories(void)
{
    struct dirent **entries;
    DIR *directory = POINTER(opendir(CLASS));
    while (readdir(directory) != NULL) {
    }
    closedir(directory);
    const int at = NUMBER(open(CLASS "/nonic0", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    const int below = NUMBER(openat(at, "ports/1/gids/0", O_RDONLY | O_CLOEXEC));
    close(below);
    directory = POINTER(fdopendir(at));
    must(readdir(directory) != NULL, "readdir", errno);
    closedir(directory);
    const int count = NUMBER(list_class(&entries));
    for (int i = 0; i < count; i++) {
        free(entries[i]);
    }
    free(entries);
    glob_t found = {0};
    const int globbed = glob(CLASS "/*", 0, NULL, &found);
    must(globbed == 0 || fails_struck() > 0, "glob", globbed);
    globfree(&found);
}

void look_at_files(void)
{
    read_files();
    resolve_paths();
    change_directory();
    read_directories();
}
