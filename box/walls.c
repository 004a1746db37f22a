/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/walls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "box/files.h"

/* Options that give it to the users of a container, or of a machine. */
#define CURE_NAMESPACES                                                                            \
    "a container's engine lets its users make namespaces with --security-opt seccomp=unconfined "  \
    "(and apparmor=unconfined), a machine with sysctl kernel.unprivileged_userns_clone=1"
#define CURE_PROC                                                                                  \
    "a user from whom parts of /proc are hidden gets no new one; a container's engine shows all "  \
    "of it with "                                                                                  \
    "--security-opt systempaths=unconfined (Docker), or unmask=ALL (Podman)"

enum {
    NO_WALLS = 125, /* exit status of a child that could not put them up; it says why on the pipe */
};

static bool write_file(const char *path, const char *text)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    const bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0) {
        close(file);
    }
    return done;
}

/* The user stays who he is. */
static bool map_user(uid_t user, gid_t group)
{
    char text[64];
    write_file("/proc/self/setgroups", "deny");
    snprintf(text, sizeof(text), "%u %u 1", group, group);
    if (!write_file("/proc/self/gid_map", text)) {
        return false;
    }
    snprintf(text, sizeof(text), "%u %u 1", user, user);
    return write_file("/proc/self/uid_map", text);
}

static bool mount_memory(const char *where, const char *options)
{
    return mount("nonic", where, "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
}

/* An entry of the machine's folder that the run may use appears in its own at the same path. */
static bool keep_entry(const char *path, const char *folder, int old)
{
    char name[NAME_MAX + 1], from[64], to[PATH_MAX];
    struct stat status;
    const size_t bytes = strlen(folder);
    if (strncmp(path, folder, bytes) != 0 || sscanf(path + bytes, "/%255[^/]", name) != 1 ||
        fstatat(old, name, &status, 0) != 0) {
        return true;
    }
    snprintf(to, sizeof(to), "%s/%s", folder, name);
    const int entry = openat(old, name, O_PATH | O_CLOEXEC);
    if (S_ISDIR(status.st_mode)) {
        mkdir(to, 0755);
    } else {
        write_file(to, "");
    }
    snprintf(from, sizeof(from), "/proc/self/fd/%d", entry);
    const bool done = entry >= 0 && mount(from, to, NULL, MS_BIND | MS_REC, NULL) == 0;
    if (entry >= 0) {
        close(entry);
    }
    return done;
}

static bool empty_folder(const char *folder, const char *const *keep)
{
    const int old = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (old < 0 && errno == ENOENT) {
        return true; /* A small system has none. */
    }
    bool done = old >= 0 && mount_memory(folder, "mode=1777");
    for (int i = 0; done && keep[i] != NULL; i++) {
        done = keep_entry(keep[i], folder, old);
    }
    if (old >= 0) {
        close(old);
    }
    return done;
}

static bool stand_in(const struct stand_in *file, int number)
{
    char path[64];
    snprintf(path, sizeof(path), FILES_FOLDER "file%d", number);
    /* Not every kernel has every file. */
    return access(file->path, F_OK) != 0 ||
           (write_file(path, file->text) && mount(path, file->path, NULL, MS_BIND, NULL) == 0);
}

static const char *put_up(const char *const *keep, bool has_nodes)
{
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        return "mounts cannot be made its own";
    }
    /* Folders are opened by the path that was there before. */
    char here[PATH_MAX];
    const bool has_here = getcwd(here, sizeof(here)) != NULL;
    if (!empty_folder("/tmp", keep) || !empty_folder("/var/tmp", keep) ||
        !empty_folder("/dev/shm", keep)) {
        return "folders of its own for temporary files";
    }
    if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
        return "a /proc of its own: " CURE_PROC;
    }
    if (mount("nonic", FILES_FOLDER, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755") != 0) {
        return "files that stand in for the machine's";
    }
    for (size_t i = 0; i < stand_in_count; i++) {
        if (!stand_in(&stand_ins[i], (int)i)) {
            return stand_ins[i].path;
        }
    }
    if (!loopback_raise(has_nodes)) {
        return "a network of its own";
    }
    if (sethostname("node0", 5) != 0) {
        return "a name of its own";
    }
    return has_here && chdir(here) != 0 ? "the current folder" : NULL;
}

struct inside {
    const char *const *keep;
    bool has_nodes;
    int (*run)(void *);
    void *context;
    int tell;
};

static int first_process(const struct inside *inside)
{
    char line[512];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const char *failed = put_up(inside->keep, inside->has_nodes);
    if (failed != NULL) {
        snprintf(line, sizeof(line), "%s: %s", strerror(errno), failed);
        (void)!write(inside->tell, line, strlen(line));
        return NO_WALLS;
    }
    close(inside->tell);
    return inside->run(inside->context);
}

/* A signal for the command is one for the run. */
static volatile pid_t passed_to;

static void pass_on(int signal)
{
    if (passed_to > 0) {
        kill(passed_to, signal);
    }
}

static void pass_signals_to(pid_t pid)
{
    const struct sigaction action = {.sa_handler = pass_on};
    passed_to = pid;
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

static int make_namespaces(const struct inside *inside)
{
    char line[512];
    const uid_t user = geteuid();
    const gid_t group = getegid();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (unshare(CLONE_NEWUSER) != 0 || !map_user(user, group) ||
        unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS) != 0) {
        snprintf(line, sizeof(line), "%s: " CURE_NAMESPACES, strerror(errno));
        (void)!write(inside->tell, line, strlen(line));
        return NO_WALLS;
    }
    const pid_t first = fork();
    if (first == 0) {
        _exit(first_process(inside));
    }
    int status = NO_WALLS << 8;
    pass_signals_to(first);
    while (first > 0 && waitpid(first, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int walls_run(const char *const *keep, bool has_nodes, int (*run)(void *), void *context,
              char *error, size_t error_bytes)
{
    int tell[2], status = 0;
    char said[512] = {0};
    if (pipe2(tell, O_CLOEXEC) != 0) {
        snprintf(error, error_bytes, "no pipe: %s", strerror(errno));
        return -1;
    }
    const pid_t child = fork();
    if (child == 0) {
        close(tell[0]);
        _exit(make_namespaces(&(struct inside){keep, has_nodes, run, context, tell[1]}));
    }
    close(tell[1]);
    pass_signals_to(child);
    ssize_t got;
    do {
        got = read(tell[0], said, sizeof(said) - 1);
    } while (got < 0 && errno == EINTR);
    close(tell[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child > 0 && got <= 0) {
        return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    snprintf(error, error_bytes,
             "a run in virtual time needs namespaces of its own, which this system does not give: "
             "%s",
             child > 0 ? said : strerror(errno));
    return -1;
}
