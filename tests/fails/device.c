/* SPDX-License-Identifier: BSD-2-Clause
 *
 * device - the device, and everything around it that is no verb.
 */
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/netlink.h>
#include <poll.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fails/program.h"
#include "tests/fails/wrap.h"

#define CLASS "/sys/class/infiniband"
#define PORT  CLASS "/nonic0/ports/1"

/* A list without our device is an answer, too: there was none to be had. */
static struct ibv_device **list_devices(void)
{
    struct ibv_device **list = POINTER(ibv_get_device_list(NULL));
    if (list[0] == NULL) {
        judge("ibv_get_device_list: no device", errno);
        ibv_free_device_list(list);
        list = ibv_get_device_list(NULL);
        must(list != NULL && list[0] != NULL, "ibv_get_device_list again", errno);
    }
    return list;
}

static struct ibv_context *open_device(void)
{
    struct ibv_device **list = list_devices();
    struct ibv_context *context = POINTER(ibv_open_device(list[0]));
    ibv_free_device_list(list);
    return context;
}

void open_program(struct program *p)
{
    struct ibv_device_attr device;
    struct ibv_device_attr_ex extended;
    struct ibv_port_attr port;
    p->context = open_device();
    ZERO(ibv_query_device(p->context, &device));
    ZERO(ibv_query_device_ex(p->context, NULL, &extended));
    ZERO(ibv_query_port(p->context, 1, &port));
    ZERO(ibv_query_gid(p->context, 1, 0, &p->gid));
    p->pd = POINTER(ibv_alloc_pd(p->context));
    p->channel = POINTER(ibv_create_comp_channel(p->context));
    p->cq = POINTER(ibv_create_cq(p->context, 512, NULL, p->channel, 0));
    p->memory =
        mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    must(p->memory != MAP_FAILED, "mmap", errno);
    p->mr = POINTER(ibv_reg_mr(p->pd, p->memory, MEMORY_BYTES, ACCESS_ALL));
}

void close_program(struct program *p)
{
    ZERO(ibv_dereg_mr(p->mr));
    munmap(p->memory, MEMORY_BYTES);
    ZERO(ibv_destroy_cq(p->cq));
    ZERO(ibv_destroy_comp_channel(p->channel));
    ZERO(ibv_dealloc_pd(p->pd));
    ZERO(ibv_close_device(p->context));
}

/* -- Files --------------------------------------------------------------------------------------*/

static char *resolve_path(const char *path)
{
    return realpath(path, NULL);
}

static int list_class(struct dirent ***entries)
{
    return scandir(CLASS "/nonic0", entries, NULL, alphasort);
}

void look_at_files(void)
{
    char text[256];
    struct stat status;
    struct dirent **entries;
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
    char *path = POINTER(resolve_path(CLASS "/nonic0/device"));
    free(path);
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

/* -- Netlink ------------------------------------------------------------------------------------*/

static ssize_t request(int fd, uint16_t command)
{
    const struct nlmsghdr ask = {.nlmsg_len = sizeof(ask),
                                 .nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, command),
                                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP};
    return send(fd, &ask, sizeof(ask), 0);
}

/* Until the end of the answer. */
static void hear_answer(int fd)
{
    bool done = false;
    while (!done) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        must(poll(&wait, 1, PATIENCE_MS) == 1, "no answer from netlink", 0);
        char bytes[16384];
        const ssize_t count = recv(fd, bytes, sizeof(bytes), 0);
        must(count > 0, "recv from netlink", errno);
        for (size_t at = 0; at + sizeof(struct nlmsghdr) <= (size_t)count && !done;) {
            struct nlmsghdr head;
            memcpy(&head, bytes + at, sizeof(head));
            done = head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR;
            at += NLMSG_ALIGN(head.nlmsg_len);
        }
    }
}

static int open_netlink(void)
{
    return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
}

void ask_netlink(void)
{
    static const uint16_t commands[] = {RDMA_NLDEV_CMD_GET, RDMA_NLDEV_CMD_RES_GET,
                                        RDMA_NLDEV_CMD_RES_QP_GET, RDMA_NLDEV_CMD_RES_MR_GET};
    for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
        /* One that the kernel made, when ours could not be had, answers otherwise. */
        const int fd = NUMBER(open_netlink());
        (void)NUMBER(request(fd, commands[i]));
        hear_answer(fd);
        close(fd);
    }
}

/* -- Counters -----------------------------------------------------------------------------------*/

static int dial_counters(const char *wish)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX}, own = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    const int bytes = snprintf(to.sun_path + 1, sizeof(to.sun_path) - 1, "nonic-stat/%d", getpid());
    const int own_bytes =
        snprintf(own.sun_path + 1, sizeof(own.sun_path) - 1, "nonic-wish/%s/%d/", wish, getpid());
    const socklen_t head = offsetof(struct sockaddr_un, sun_path) + 1;
    must(*wish == '\0' ||
             bind(fd, (struct sockaddr *)(void *)&own, head + (socklen_t)own_bytes) == 0,
         "bind", errno);
    if (connect(fd, (struct sockaddr *)(void *)&to, head + (socklen_t)bytes) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* All that the library says; how many bytes. */
static size_t hear_counters(const char *wish, char *text, size_t room)
{
    const int fd = dial_counters(wish);
    size_t used = 0;
    bool more = fd >= 0;
    while (more && used + 1 < room) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        must(poll(&wait, 1, PATIENCE_MS) == 1, "no answer about counters", 0);
        const ssize_t count = recv(fd, text + used, room - 1 - used, 0);
        more = count > 0;
        used += more ? (size_t)count : 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    text[used] = '\0';
    return used;
}

/* Who asks for the objects is not told counters instead. */
void ask_counters(void)
{
    static char text[1 << 18];
    if (hear_counters("", text, sizeof(text)) == 0) {
        must(fails_struck() > 0, "no counters", errno);
    } else {
        must(strstr(text, "sent_pkts") != NULL, "counters without packets", 0);
    }
    if (hear_counters("qp", text, sizeof(text)) == 0) {
        must(fails_struck() > 0, "no objects", errno);
    } else {
        must(strstr(text, "sent_pkts") == NULL, "counters instead of objects", 0);
    }
}

bool losses_counted(void)
{
    static char text[1 << 18];
    static const char *const names[] = {"udp_send_failed", "drop_", "direct_failed"};
    if (hear_counters("", text, sizeof(text)) == 0) {
        return false;
    }
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
        const char *value = strchr(line, ' ');
        for (size_t i = 0; i < sizeof(names) / sizeof(*names) && value != NULL; i++) {
            if (strncmp(line, names[i], strlen(names[i])) == 0 && strtoull(value, NULL, 10) > 0) {
                return true;
            }
        }
    }
    return false;
}

/* -- A child ------------------------------------------------------------------------------------*/

/* It has a NIC of its own, which it makes, and nothing of its parent's. */
static void be_child(void)
{
    struct program p = {0};
    open_program(&p);
    close_program(&p);
    fails_record();
    _exit(0);
}

void use_fork(void)
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        be_child();
    }
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child", status);
}
