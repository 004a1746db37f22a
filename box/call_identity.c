/* SPDX-License-Identifier: BSD-2-Clause
 *
 * call_identity - answers that would tell of this machine and this moment, and what is not offered.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "box/calls.h"
#include "box/files.h"

enum {
    RANDOM_MAX = 65536, /* bytes of a call that are drawn */
    FIRST_COOKIE = 100,
};

ENTER(enter_getrandom)
{
    static uint8_t drawn[RANDOM_MAX];
    const uint64_t *argument = thread->call.argument;
    const size_t bytes = argument[1] < sizeof(drawn) ? (size_t)argument[1] : sizeof(drawn);
    entropy_fill(box, drawn, bytes);
    turn_answer(thread,
                tracee_write(thread->id, argument[0], drawn, bytes) ? (int64_t)bytes : -EFAULT);
    return CALL_ANSWERED;
}

/* A node has a name of its own. */
LEAVE(leave_uname)
{
    struct utsname name;
    const uint64_t to = thread->call.argument[0];
    (void)box;
    if (*result == 0 && thread->process->node >= 0 &&
        tracee_read(thread->id, to, &name, sizeof(name))) {
        memset(name.nodename, 0, sizeof(name.nodename));
        snprintf(name.nodename, sizeof(name.nodename), NODE_NAME, (unsigned)thread->process->node);
        tracee_write(thread->id, to, &name, sizeof(name));
    }
    return CALL_ANSWERED;
}

/* Files that were not there before the run have numbers and times of this moment. */
static bool is_of_this_run(const struct box *box, mode_t mode, int64_t seconds, int64_t ns)
{
    const struct timespec *started = &box->started;
    return (!S_ISREG(mode) && !S_ISDIR(mode) && !S_ISLNK(mode)) || seconds > started->tv_sec ||
           (seconds == started->tv_sec && ns >= started->tv_nsec);
}

LEAVE(leave_stat)
{
    struct stat status;
    const uint64_t *argument = thread->call.argument;
    const uint64_t to = argument[thread->call.number == SYS_newfstatat ? 2 : 1];
    if (*result != 0 || !tracee_read(thread->id, to, &status, sizeof(status))) {
        return CALL_ANSWERED;
    }
    if (is_of_this_run(box, status.st_mode, status.st_ctim.tv_sec, status.st_ctim.tv_nsec)) {
        const struct timespec begin = {(time_t)(BOX_REALTIME_NS / 1000000000), 0};
        status.st_ino = FIRST_INODE + number_of(&box->inodes, status.st_dev, status.st_ino);
        status.st_dev = 1;
        status.st_atim = status.st_mtim = status.st_ctim = begin;
        if (S_ISDIR(status.st_mode)) {
            status.st_size = 4096;
            status.st_blocks = 8;
        }
    } else {
        status.st_atim = status.st_mtim;
    }
    tracee_write(thread->id, to, &status, sizeof(status));
    return CALL_ANSWERED;
}

LEAVE(leave_statx)
{
    struct statx status;
    const uint64_t to = thread->call.argument[4];
    if (*result != 0 || !tracee_read(thread->id, to, &status, sizeof(status))) {
        return CALL_ANSWERED;
    }
    if (is_of_this_run(box, status.stx_mode, status.stx_ctime.tv_sec, status.stx_ctime.tv_nsec)) {
        const struct statx_timestamp begin = {.tv_sec = (int64_t)(BOX_REALTIME_NS / 1000000000)};
        status.stx_ino =
            FIRST_INODE + number_of(&box->inodes,
                                    (uint64_t)status.stx_dev_major << 32 | status.stx_dev_minor,
                                    status.stx_ino);
        status.stx_dev_major = 0;
        status.stx_dev_minor = 1;
        status.stx_atime = status.stx_mtime = status.stx_ctime = status.stx_btime = begin;
    } else {
        status.stx_atime = status.stx_mtime;
    }
    status.stx_mnt_id = 1;
    tracee_write(thread->id, to, &status, sizeof(status));
    return CALL_ANSWERED;
}

LEAVE(leave_statfs)
{
    struct statfs status;
    (void)box;
    if (*result != 0 ||
        !tracee_read(thread->id, thread->call.argument[1], &status, sizeof(status))) {
        return CALL_ANSWERED;
    }
    status.f_blocks = status.f_bfree = status.f_bavail = 1 << 20;
    status.f_files = status.f_ffree = 1 << 20;
    memset(&status.f_fsid, 0, sizeof(status.f_fsid));
    tracee_write(thread->id, thread->call.argument[1], &status, sizeof(status));
    return CALL_ANSWERED;
}

LEAVE(leave_getsockopt)
{
    const uint64_t *argument = thread->call.argument;
    uint64_t cookie;
    if (*result != 0) {
        return CALL_ANSWERED;
    }
    if (argument[1] == SOL_SOCKET && argument[2] == SO_COOKIE &&
        tracee_read(thread->id, argument[3], &cookie, sizeof(cookie))) {
        cookie = FIRST_COOKIE + number_of(&box->cookies, cookie, 0);
        tracee_write(thread->id, argument[3], &cookie, sizeof(cookie));
    }
    if (argument[1] == IPPROTO_TCP && argument[2] == TCP_INFO) {
        /* The state stays; the times and counters behind it are the kernel's own. */
        static const uint8_t nothing[256];
        uint32_t bytes = 0;
        tracee_read(thread->id, argument[4], &bytes, sizeof(bytes));
        if (bytes > 8 && bytes <= sizeof(nothing)) {
            tracee_write(thread->id, argument[3] + 8, nothing, bytes - 8);
        }
    }
    return CALL_ANSWERED;
}

ENTER(enter_getcpu)
{
    const uint32_t first = 0;
    (void)box;
    for (int i = 0; i < 2; i++) {
        if (thread->call.argument[i] != 0) {
            tracee_write(thread->id, thread->call.argument[i], &first, sizeof(first));
        }
    }
    turn_answer(thread, 0);
    return CALL_ANSWERED;
}

ENTER(enter_sched_getaffinity)
{
    const uint64_t *argument = thread->call.argument;
    uint8_t mask[128] = {1};
    (void)box;
    const size_t bytes = argument[1] < sizeof(mask) ? (size_t)argument[1] : sizeof(mask);
    if (bytes < 8) {
        turn_answer(thread, -EINVAL);
        return CALL_ANSWERED;
    }
    turn_answer(thread, tracee_write(thread->id, argument[2], mask, bytes) ? 8 : -EFAULT);
    return CALL_ANSWERED;
}

/* One processor is shown, and all threads are on it already. */
ENTER(enter_sched_setaffinity)
{
    (void)box;
    turn_answer(thread, 0);
    return CALL_ANSWERED;
}

/* A process' own files of /proc, and its threads', count its use of this machine. `of` is the
 * process that is named; 0: the caller's own. */
static bool is_own_file(const char *path, int *of, const char **file)
{
    static const char *const names[] = {"stat",      "statm", "status",       "io",   "sched",
                                        "schedstat", "smaps", "smaps_rollup", "maps", "mountinfo"};
    int end = 0, task = 0;
    *of = 0;
    if (sscanf(path, "/proc/%d/%n", of, &end) != 1 || end == 0) {
        *of = 0;
        end = strncmp(path, "/proc/self/", 11) == 0 ? 11 : 0;
    }
    if (end == 0) {
        return false;
    }
    *file = path + end;
    sscanf(*file, "task/%*d/%n", &task);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(*file + task, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Puts the folder before a path that begins there: a descriptor's, or the process' own. */
static bool make_absolute(const struct thread *thread, int folder, char *path, size_t bytes)
{
    char name[64], rest[256];
    const size_t rest_bytes = strlen(path) + 1;
    if (path[0] == '/') {
        return true;
    }
    if (rest_bytes > sizeof(rest)) {
        return false;
    }
    memcpy(rest, path, rest_bytes);
    if (folder == AT_FDCWD) {
        snprintf(name, sizeof(name), "/proc/%d/cwd", thread->id);
    } else {
        snprintf(name, sizeof(name), "/proc/%d/fd/%d", thread->id, folder);
    }
    const ssize_t length = readlink(name, path, bytes - 1);
    if (length <= 0 || (size_t)length + 1 + rest_bytes > bytes) {
        return false;
    }
    path[length] = '/';
    memcpy(path + length + 1, rest, rest_bytes);
    return true;
}

static enum call_next open_path(struct box *box, struct thread *thread, int argument)
{
    char path[sizeof(box->page->path)];
    const char *file;
    const int folder = argument == 0 ? AT_FDCWD : (int)thread->call.argument[0];
    int of;
    registers at;
    if (!tracee_read_text(thread->id, thread->call.argument[argument], path, sizeof(path)) ||
        !make_absolute(thread, folder, path, sizeof(path)) ||
        !(node_file_write(box, thread->process->node, path) ||
          (is_own_file(path, &of, &file) &&
           own_file_write(box, of == 0 ? thread->process->pid : of, file))) ||
        !tracee_registers(thread->id, &at)) {
        return CALL_KERNEL;
    }
    if (argument == 0) {
        at.rdi = BOX_PAGE_ADDRESS + offsetof(struct box_page, path);
    } else {
        at.rsi = BOX_PAGE_ADDRESS + offsetof(struct box_page, path);
    }
    tracee_set_registers(thread->id, &at);
    return CALL_KERNEL;
}

ENTER(enter_open)
{
    return open_path(box, thread, 0);
}

ENTER(enter_openat)
{
    return open_path(box, thread, 1);
}

ENTER(enter_refused)
{
    box_doubt(box, "%s is not offered: thread %d got ENOSYS", thread->row->name, thread->number);
    turn_answer(thread, -ENOSYS);
    return CALL_ANSWERED;
}

/* glibc registers it when it begins, and does without it. */
ENTER(enter_without)
{
    (void)box;
    turn_answer(thread, -ENOSYS);
    return CALL_ANSWERED;
}
