/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Every way libc has to ask about a path sees the same virtual files, and fails as it does
 *         for a kernel's; what is not ours is untouched.
 * Method  The calls themselves, in one process; real files are the model for what is not ours.
 */
#include "tests/api/api.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLASS  "/sys/class/infiniband"
#define BASE   CLASS "/nonic0"
#define TARGET "/sys/devices/virtual/infiniband/nonic0"

/* As programs linked before glibc 2.33 or built with _FORTIFY_SOURCE call them. */
int __xstat(int version, const char *path, struct stat *status);
int __lxstat(int version, const char *path, struct stat *status);
int __fxstat(int version, int fd, struct stat *status);
int __fxstatat(int version, int at, const char *path, struct stat *status, int flags);
int __open_2(const char *path, int flags);
int __openat_2(int at, const char *path, int flags);
/* librdmacm's. */
int ibv_read_sysfs_file(const char *directory, const char *file, char *buffer, size_t bytes);
char *__realpath_chk(const char *path, char *buffer, size_t room);

static int count_descriptors(void)
{
    int count = 0;
    DIR *directory = opendir("/proc/self/fd");
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

/* First: none of these makes a NIC, with its sockets. */
static void test_looking_makes_no_nic(void **state)
{
    (void)state;
    struct stat status;
    const int before = count_descriptors();
    assert_int_equal(stat(BASE, &status), 0);
    assert_int_equal(access("/dev/infiniband/uverbs0", R_OK | W_OK), 0);
    const int fd = open(BASE "/node_type", O_RDONLY);
    assert_true(fd >= 0);
    close(fd);
    DIR *directory = opendir(CLASS);
    assert_non_null(directory);
    closedir(directory);
    assert_int_equal(count_descriptors(), before);
}

static void expect_content(int fd, const char *content)
{
    char bytes[256];
    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), (ssize_t)strlen(content));
    assert_memory_equal(bytes, content, strlen(content));
    close(fd);
}

static void test_all_ways_to_open(void **state)
{
    (void)state;
    char text[64];
    expect_content(open(BASE "/node_type", O_RDONLY), "1: CA\n");
    expect_content(open64(BASE "//node_type", O_RDONLY), "1: CA\n");
    expect_content(open64("//" BASE "/node_type", O_RDONLY), "1: CA\n");
    expect_content(openat(AT_FDCWD, BASE "/./ports/../node_type", O_RDONLY), "1: CA\n");
    expect_content(__open_2(TARGET "/node_type", O_RDONLY), "1: CA\n");
    const int directory = open(BASE, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(directory >= 0);
    assert_int_equal(fcntl(directory, F_GETFD), FD_CLOEXEC);
    expect_content(openat(directory, "ports/1/link_layer", O_RDONLY), "Ethernet\n");
    expect_content(openat64(directory, "node_type", O_RDONLY), "1: CA\n");
    expect_content(__openat_2(directory, "subsystem/nonic0/node_type", O_RDONLY), "1: CA\n");
    assert_int_equal(faccessat(directory, "node_type", R_OK, 0), 0);
    assert_int_equal(readlinkat(directory, "subsystem", text, sizeof(text)), 28);
    close(directory);
    FILE *stream = fopen(BASE "/ports/1/gid_attrs/types/0", "re");
    assert_non_null(stream);
    assert_non_null(fgets(text, sizeof(text), stream));
    assert_string_equal(text, "RoCE v2\n");
    assert_null(fgets(text, sizeof(text), stream));
    fclose(stream);
    assert_null(fopen(BASE "/fw_ver", "w"));
    assert_int_equal(errno, EACCES);
}

/* A descriptor is one of a real file that cannot be written: the kernel moves, maps and copies. */
static void test_descriptors_are_real(void **state)
{
    (void)state;
    char bytes[8];
    const int fd = open(BASE "/node_type", O_RDONLY);
    assert_int_equal(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    assert_int_equal(lseek(fd, 3, SEEK_SET), 3);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), 3);
    assert_memory_equal(bytes, "CA\n", 3);
    const char *mapped = mmap(NULL, 6, PROT_READ, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(mapped, MAP_FAILED);
    assert_memory_equal(mapped, "1: CA\n", 6);
    munmap((void *)(uintptr_t)mapped, 6);
    assert_int_equal(write(fd, "x", 1), -1);
    assert_int_equal(errno, EBADF);
    struct stat by_path, by_descriptor;
    const int copy = dup(fd);
    close(fd);
    assert_int_equal(stat(BASE "/node_type", &by_path), 0);
    assert_int_equal(fstat(copy, &by_descriptor), 0);
    assert_int_equal(by_path.st_ino, by_descriptor.st_ino);
    assert_int_equal(by_path.st_dev, by_descriptor.st_dev);
    assert_int_equal(by_descriptor.st_mode, S_IFREG | 0444);
    close(copy);
}

static void test_all_forms_of_stat(void **state)
{
    (void)state;
    struct stat plain, old;
    struct stat64 wide;
    struct statx extended;
    assert_int_equal(stat(BASE, &plain), 0);
    assert_true(S_ISDIR(plain.st_mode));
    assert_int_equal(lstat(BASE, &plain), 0);
    assert_true(S_ISLNK(plain.st_mode));
    assert_int_equal(lstat(BASE "/", &plain), 0);
    assert_true(S_ISDIR(plain.st_mode));
    assert_int_equal(stat64(BASE, &wide), 0);
    assert_int_equal(wide.st_ino, plain.st_ino);
    assert_int_equal(__xstat(1, BASE, &old), 0);
    assert_int_equal(old.st_ino, plain.st_ino);
    assert_int_equal(__lxstat(1, BASE, &old), 0);
    assert_true(S_ISLNK(old.st_mode));
    assert_int_equal(__xstat(9, BASE, &old), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(__fxstatat(1, AT_FDCWD, BASE, &old, 0), 0);
    assert_int_equal(fstatat(AT_FDCWD, BASE, &old, AT_SYMLINK_NOFOLLOW), 0);
    assert_true(S_ISLNK(old.st_mode));
    assert_int_equal(statx(AT_FDCWD, "/dev/infiniband/rdma_cm", 0, STATX_BASIC_STATS, &extended),
                     0);
    assert_true(S_ISCHR(extended.stx_mode));
    assert_int_equal(extended.stx_rdev_major, 10);
    const int fd = open(BASE, O_RDONLY);
    assert_int_equal(__fxstat(1, fd, &old), 0);
    assert_int_equal(old.st_ino, plain.st_ino);
    assert_int_equal(fstatat(fd, "", &old, AT_EMPTY_PATH), 0);
    assert_true(S_ISDIR(old.st_mode));
    assert_int_equal(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &extended), 0);
    assert_true(S_ISDIR(extended.stx_mode));
    assert_int_equal(extended.stx_ino, plain.st_ino);
    close(fd);
}

static void test_links(void **state)
{
    (void)state;
    char text[PATH_MAX];
    assert_int_equal(readlink(BASE, text, 5), 5);
    assert_memory_equal(text, "../..", 5);
    assert_int_equal(readlink(BASE "/fw_ver", text, sizeof(text)), -1);
    assert_int_equal(errno, EINVAL);
    assert_string_equal(realpath(BASE "/ports/1/..", text), TARGET "/ports");
    assert_string_equal(__realpath_chk(BASE, text, sizeof(text)), TARGET);
    char *made = realpath(CLASS "_verbs/uverbs0/device", NULL);
    assert_string_equal(made, TARGET "/device");
    free(made);
    assert_null(realpath(BASE "/nothing", text));
    assert_int_equal(errno, ENOENT);
    /* Out of our tree: to where the kernel says its own path leads. */
    glob_t found;
    assert_int_equal(glob(BASE "/device/net/*", 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    char real[64];
    snprintf(real, sizeof(real), "/sys/class/net/%s", strrchr(found.gl_pathv[0], '/') + 1);
    made = realpath(real, NULL);
    assert_string_equal(realpath(found.gl_pathv[0], text), made);
    free(made);
    globfree(&found);
}

static void expect_refused(const char *path, int flags, int error)
{
    errno = 0;
    assert_int_equal(open(path, flags, 0600), -1);
    assert_int_equal(errno, error);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    struct stat status;
    expect_refused(BASE "/none", O_RDONLY, ENOENT);
    expect_refused(BASE "/none", O_RDWR | O_CREAT, EACCES);
    expect_refused(BASE "/fw_ver", O_RDWR | O_CREAT | O_EXCL, EEXIST);
    expect_refused(BASE "/fw_ver", O_WRONLY, EACCES);
    expect_refused(BASE "/fw_ver/", O_RDONLY, ENOTDIR);
    expect_refused(BASE "/fw_ver/x", O_RDONLY, ENOTDIR);
    expect_refused(BASE "/fw_ver", O_RDONLY | O_DIRECTORY, ENOTDIR);
    expect_refused(BASE, O_RDWR, EISDIR);
    expect_refused(BASE, O_RDONLY | O_NOFOLLOW, ELOOP);
    expect_refused(BASE "/ports/2/state", O_RDONLY, ENOENT);
    expect_refused(BASE "/ports/1/gids/99", O_RDONLY, ENOENT);
    expect_refused("/dev/infiniband/uverbs0", O_RDWR, ENODEV);
    expect_refused("/dev/infiniband/uverbs7", O_RDWR, ENOENT);
    expect_refused("/sys/class/no such class/x", O_RDONLY, ENOENT);
    assert_int_equal(access(BASE "/fw_ver", W_OK), -1);
    assert_int_equal(errno, EACCES);
    assert_null(opendir(BASE "/fw_ver"));
    assert_int_equal(errno, ENOTDIR);
    /* A null pointer is the kernel's to refuse, here as ever: called past headers that promise
     * none. */
    int (*volatile ask)(const char *, int) = access;
    int (*volatile look)(const char *, struct stat *) = stat;
    assert_int_equal(ask(NULL, R_OK), -1);
    assert_int_equal(errno, EFAULT);
    assert_int_equal(look(NULL, &status), -1);
    assert_int_equal(errno, EFAULT);
}

static int only_numbers(const struct dirent *entry)
{
    return entry->d_name[0] >= '0' && entry->d_name[0] <= '9';
}

static void test_directories(void **state)
{
    (void)state;
    DIR *directory = opendir(BASE);
    assert_non_null(directory);
    char names[64][64];
    int count = 0;
    long third = 0;
    const struct dirent *entry;
    while (third = count == 2 ? telldir(directory) : third, (entry = readdir(directory)) != NULL) {
        strcpy(names[count++], entry->d_name);
    }
    assert_string_equal(names[0], ".");
    assert_true(count > 10);
    seekdir(directory, third);
    assert_string_equal(readdir(directory)->d_name, names[2]);
    rewinddir(directory);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    struct dirent room, *got;
    assert_int_equal(readdir_r(directory, &room, &got), 0);
    assert_string_equal(got->d_name, ".");
#pragma GCC diagnostic pop
    struct stat status;
    assert_int_equal(fstat(dirfd(directory), &status), 0);
    assert_true(S_ISDIR(status.st_mode));
    const int copy = dup(dirfd(directory));
    assert_int_equal(closedir(directory), 0);
    directory = fdopendir(copy);
    assert_non_null(directory);
    assert_string_equal(readdir64(directory)->d_name, ".");
    assert_int_equal(closedir(directory), 0);
    assert_int_equal(fcntl(copy, F_GETFD), -1);
    struct dirent **numbers;
    assert_int_equal(scandir(BASE "/ports", &numbers, only_numbers, alphasort), 1);
    assert_string_equal(numbers[0]->d_name, "1");
    free(numbers[0]);
    free(numbers);
}

static bool lists(const char *path, const char *name)
{
    bool found = false;
    DIR *directory = opendir(path);
    assert_non_null(directory);
    const struct dirent *entry;
    while ((entry = readdir(directory)) != NULL) {
        assert_false(found && strcmp(entry->d_name, name) == 0);
        found |= strcmp(entry->d_name, name) == 0;
    }
    closedir(directory);
    return found;
}

/* Directories of the kernel's have what they had, and ours. */
static void test_shared_directories(void **state)
{
    (void)state;
    assert_true(lists("/sys/class", "net"));
    assert_true(lists("/sys/class", "infiniband"));
    assert_true(lists("/sys/class/misc", "rdma_cm"));
    assert_true(lists("/dev", "null"));
    assert_true(lists("/dev", "infiniband"));
    assert_true(lists("/", "sys"));
}

/* Files and verbs say the same. */
static void test_files_and_verbs_agree(void **state)
{
    struct api *api = *state;
    char text[64], mine[64];
    struct ibv_device_attr attr;
    assert_int_equal(ibv_query_device(api->context, &attr), 0);
    assert_true(ibv_read_sysfs_file(BASE, "node_guid", text, sizeof(text)) > 0);
    const uint8_t *g = (const uint8_t *)&attr.node_guid;
    snprintf(mine, sizeof(mine), "%02x%02x:%02x%02x:%02x%02x:%02x%02x", g[0], g[1], g[2], g[3],
             g[4], g[5], g[6], g[7]);
    assert_string_equal(text, mine);
    assert_true(ibv_read_sysfs_file(BASE, "ports/1/gids/0", text, sizeof(text)) > 0);
    g = api->gid.raw;
    snprintf(mine, sizeof(mine), "%02x%02x:%02x%02x", g[12], g[13], g[14], g[15]);
    assert_string_equal(text + 30, mine);
    assert_true(ibv_read_sysfs_file(BASE, "ports/1/rate", text, sizeof(text)) > 0);
    const char *wire = getenv("NONIC_WIRE");
    const bool udp = wire != NULL && strcmp(wire, "udp") == 0;
    assert_string_equal(text, udp ? "100 Gb/sec (4X EDR)" : "400 Gb/sec (8X HDR)");
}

/* A transfer moves them. */
static void test_counters(void **state)
{
    struct api *api = *state;
    const uint64_t packets = api_counter("hw_counters/sent_pkts");
    const uint64_t writes = api_counter("hw_counters/rdma_writes");
    const uint64_t words = api_counter("counters/port_xmit_data");
    assert_int_equal(api_post(api->qps[0], IBV_WR_RDMA_WRITE, api_sge(api->mrs[0], 0, MEMORY_BYTES),
                              (uintptr_t)api->memory[1], api->mrs[1]->rkey),
                     0);
    api_expect(api->cqs[0], IBV_WC_SUCCESS);
    assert_true(api_counter("hw_counters/rdma_writes") > writes);
    assert_true(api_counter("hw_counters/sent_pkts") > packets);
    assert_true(api_counter("counters/port_xmit_data") > words);
    assert_true(api_counter("counters/port_xmit_packets") >= api_counter("hw_counters/sent_pkts"));
}

/* A child has a NIC of its own, with an address of its own. */
static void test_child(void **state)
{
    (void)state;
    char mine[64], childs[64] = "";
    int ends[2];
    assert_true(ibv_read_sysfs_file(BASE, "ports/1/gids/0", mine, sizeof(mine)) > 0);
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        char text[64];
        const int count = ibv_read_sysfs_file(BASE, "ports/1/gids/0", text, sizeof(text));
        _exit(count > 0 && write(ends[1], text, (size_t)count) == count ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(read(ends[0], childs, sizeof(childs) - 1) > 0);
    assert_string_not_equal(mine, childs);
    close(ends[0]);
    close(ends[1]);
}

/* -- By other ways ------------------------------------------------------------------------------*/

static void expect_type(int fd)
{
    char text[16];
    assert_true(fd >= 0);
    assert_int_equal(read(fd, text, sizeof(text)), 6);
    assert_memory_equal(text, "1: CA\n", 6);
    close(fd);
}

static void expect_cwd(const char *path)
{
    char text[PATH_MAX];
    struct stat here, there;
    char *made = getcwd(NULL, 0);
    assert_string_equal(getcwd(text, sizeof(text)), path);
    assert_string_equal(made, path);
    free(made);
    assert_null(getcwd(text, 2));
    assert_int_equal(errno, ERANGE);
    assert_int_equal(stat(".", &here), 0);
    assert_int_equal(stat(path, &there), 0);
    assert_true(here.st_ino == there.st_ino && S_ISDIR(here.st_mode));
}

/* As for real: nothing relative to it is there, and where it was nothing remains. */
static void test_working_directory(void **state)
{
    (void)state;
    assert_int_equal(chdir(CLASS), 0);
    expect_cwd(CLASS);
    expect_type(open("nonic0/node_type", O_RDONLY));
    expect_type(open("./nonic0/ports/../node_type", O_RDONLY));
    assert_int_equal(chdir("nonic0/ports"), 0);
    expect_cwd(TARGET "/ports");
    expect_type(open("../node_type", O_RDONLY));
    assert_int_equal(access("1/state", R_OK), 0);
    assert_int_equal(access("state", F_OK), -1);
    assert_int_equal(open("new", O_WRONLY | O_CREAT, 0600), -1);
    assert_int_equal(errno, EACCES);
    assert_int_equal(chdir("1/state"), -1);
    assert_int_equal(errno, ENOTDIR);
    assert_int_equal(chdir("2"), -1);
    assert_int_equal(errno, ENOENT);
    const pid_t child = fork();
    if (child == 0) {
        _exit(access("1/state", R_OK) == 0 && chdir("..") == 0 && access("node_type", R_OK) == 0
                  ? 0
                  : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    const int class = open(CLASS, O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir("/sys/class"), 0);
    expect_cwd("/sys/class");
    assert_int_equal(access("infiniband/nonic0", F_OK), 0);
    assert_int_equal(chdir("net"), 0);
    assert_int_equal(access("lo/address", R_OK), 0);
    assert_int_equal(fchdir(class), 0);
    expect_cwd(CLASS);
    close(class);
    assert_int_equal(chdir("/"), 0);
    expect_type(open("sys/class/infiniband/nonic0/node_type", O_RDONLY));
    char left[64];
    glob_t found = {0};
    snprintf(left, sizeof(left), "/dev/shm/nonic:%d.*", getpid());
    assert_int_equal(glob(left, 0, NULL, &found), GLOB_NOMATCH);
}

/* It matters where a path leads to, not how it is written. */
static void test_other_spellings(void **state)
{
    (void)state;
    char folder[] = "/tmp/nonic-XXXXXX", link[64], path[128];
    expect_type(open("//sys//class/./infiniband/nonic0//node_type", O_RDONLY));
    expect_type(open("/./sys/class/infiniband/nonic0/node_type", O_RDONLY));
    expect_type(open("/tmp/../sys/class/net/../infiniband/nonic0/node_type", O_RDONLY));
    expect_type(open("/proc/self/root/sys/class/infiniband/nonic0/node_type", O_RDONLY));
    const int root = open("/", O_RDONLY | O_DIRECTORY), tmp = open("/tmp", O_RDONLY | O_DIRECTORY);
    expect_type(openat(root, "sys/class/infiniband/nonic0/node_type", O_RDONLY));
    expect_type(openat(tmp, "../sys/class/infiniband/nonic0/node_type", O_RDONLY));
    assert_int_equal(openat(tmp, "sys/class/infiniband/nonic0/node_type", O_RDONLY), -1);
    assert_int_equal(errno, ENOENT);
    close(root);
    close(tmp);
    assert_non_null(mkdtemp(folder));
    snprintf(link, sizeof(link), "%s/link", folder);
    assert_int_equal(symlink(CLASS, link), 0);
    snprintf(path, sizeof(path), "%s/nonic0/node_type", link);
    expect_type(open(path, O_RDONLY));
    assert_true(lists(link, "nonic0"));
    char *resolved = realpath(path, NULL);
    assert_string_equal(resolved, TARGET "/node_type");
    free(resolved);
    unlink(link);
    rmdir(folder);
    assert_true(lists("/proc/self/root/sys/class", "infiniband"));
    assert_true(lists("/sys/../sys/class", "infiniband"));
    assert_false(lists("/tmp", "infiniband"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looking_makes_no_nic),
        cmocka_unit_test(test_all_ways_to_open),
        cmocka_unit_test(test_descriptors_are_real),
        cmocka_unit_test(test_all_forms_of_stat),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_shared_directories),
        cmocka_unit_test(test_working_directory),
        cmocka_unit_test(test_other_spellings),
        cmocka_unit_test_setup_teardown(test_files_and_verbs_agree, api_open, api_close),
        cmocka_unit_test_setup_teardown(test_counters, api_open_rc, api_close),
        cmocka_unit_test(test_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
