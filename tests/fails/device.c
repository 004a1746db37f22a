/* SPDX-License-Identifier: BSD-2-Clause
 *
 * device - the device, what `nonic stat` is told of it, and a child's own.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/fails/program.h"
#include "tests/fails/wrap.h"

/* A list without our device is an answer, too: there was none to be had. */
static struct ibv_device **list_devices(void)
{
    struct ibv_device **list;
    while ((list = POINTER(ibv_get_device_list(NULL)))[0] == NULL) {
        judge("ibv_get_device_list: no device", errno);
        ibv_free_device_list(list);
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

/* Reads all counters of the library; returns the bytes. */
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

/* A program that asks for the objects is not told counters instead. */
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

/* It has a NIC of its own, which it makes, and nothing of its parent's; or one at an address that
 * is not its parent's, so that to the other it is a stranger. */
static void be_child(void)
{
    struct program p = {0};
    const char *own = getenv("FAILS_STRANGER");
    if (own != NULL) {
        setenv("NONIC_DEVICE", own, 1);
    }
    open_program(&p);
    if (own != NULL) {
        call_other(&p);
    }
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
