/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The first process binds its first socket alone: this is the claim on address and port, which the
 * kernel gives to one process only. Then it opens the port to further sockets of the user, binds
 * those, and tells the kernel by which bits to choose among them. A process that comes later gets
 * all descriptors from any member that is awake. So a socket's position never changes as long as
 * there is a member, and the kernel closes the sockets with the last one.
 */
#include "drivers/share.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "drivers/system/clock.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/lines.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/random.h"
#include "drivers/system/system.h"
#include "drivers/system/user.h"
#include "drivers/taken.h"
#include "wire/roce.h"

/* "CSHARE2": the version of all that members share: the sockets and how one is chosen, the slots,
 * the handovers, and which messages belong to which slot. A change of any of that changes the
 * number, so that builds which would misunderstand one another never share an address. */
#define MAGIC_DESCRIPTORS 0x32455241485343u
#define FD_COUNT          (SHARE_SOCKETS + 2)
_Static_assert(FD_COUNT <= LOCAL_FDS_MAX, "the descriptors go with one message");

/* A member that was woken for us may have been stopped since: ask again after this long. */
#define ANSWER_MS 100
/* After this time all members are taken for stopped. A process that ends closes its sockets one
 * after the other. */
#define JOIN_MS  5000
#define TAKEN_MS 2000
#define PAUSE_US 2000
/* Processes that are let in, in one turn. */
#define NEWCOMERS_MAX 32
/* The most looks at the list of sockets, while it changes. */
#define LOOKS_MAX 8

/* -- The first one ------------------------------------------------------------------------------*/

static void set_option(int fd, int level, int name, int value)
{
    (void)setsockopt(fd, level, name, &value, sizeof(value));
}

static int bind_one(const struct sockaddr *address, socklen_t bytes, bool alone)
{
    const int fd = descriptor_own(system_socket(address->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (fd < 0) {
        return -1;
    }
    if (address->sa_family == AF_INET6) {
        set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    }
    if (!alone) {
        set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (system_bind(fd, address, bytes) != 0) {
        descriptor_close(fd);
        return -1;
    }
    set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    return fd;
}

/* The slot of the destination QPN chooses the socket. Packets for QPN 0 and 1, and for QPN 0xffffff
 * of multicast, and packets that are too short go to the common one. */
static bool attach_selector(int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, ROCE_BTH_BYTES, 0, 7),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ROCE_24_BITS),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1, 0, 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_24_BITS, 3, 0),
        BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 16),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, SHARE_SOCKETS - 1),
        BPF_STMT(BPF_RET | BPF_A, 0),
        BPF_STMT(BPF_RET | BPF_K, SHARE_SOCKETS),
    };
    const struct sock_fprog program = {.len = COUNT_OF(code), .filter = code};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) == 0;
}

/* How /proc/net/udp and udp6 write an address and port. */
static void kernel_text(const struct sockaddr *address, char *text, size_t text_bytes)
{
    uint32_t words[4];
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        memcpy(words, &v4->sin_addr, 4);
        snprintf(text, text_bytes, "%08X:%04X", words[0], ntohs(v4->sin_port));
    } else {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
        memcpy(words, &v6->sin6_addr, 16);
        snprintf(text, text_bytes, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3],
                 ntohs(v6->sin6_port));
    }
}

static bool is_ours(const struct share *share, uint64_t inode)
{
    for (uint32_t i = 0; i <= SHARE_SOCKETS; i++) {
        struct stat status;
        if (system_status(share->sockets[i], &status) == 0 && status.st_ino == inode) {
            return true;
        }
    }
    return false;
}

/* How many lines of the list are ours; `*others` becomes true at one that is not. */
static uint32_t look_at_list(const struct share *share, const struct sockaddr *address,
                             struct lines *list, bool *others)
{
    char text[64], local[64], line[512];
    unsigned long inode;
    uint32_t ours = 0;
    kernel_text(address, text, sizeof(text));
    while (lines_next(list, line, sizeof(line))) {
        /* Number, addresses, state, queues, timer, retransmissions, user, timeout. */
        if (sscanf(line, "%*s %63s %*s %*s %*s %*s %*s %*s %*s %lu", local, &inode) == 2 &&
            strcmp(local, text) == 0) {
            const bool own = is_ours(share, inode);
            ours += own;
            *others = *others || !own;
        }
    }
    return ours;
}

/* The kernel writes its list page by page, and finds the place to go on by counting sockets: when
 * any socket of the machine comes or goes meanwhile, a line is missing or is there twice. So lines
 * are not counted, but the owner of each socket is looked up. A list that does not have each socket
 * of ours once may have missed another one, too. */
bool share_is_disturbed(const struct share *share, const struct sockaddr *address)
{
    const char *name = address->sa_family == AF_INET ? "/proc/net/udp" : "/proc/net/udp6";
    bool others = false;
    for (int looks = 0; looks < LOOKS_MAX && !others; looks++) {
        struct lines list;
        lines_open(&list, AT_FDCWD, name);
        if (list.error != 0) {
            return false; /* There is no list to look at. */
        }
        const uint32_t ours = look_at_list(share, address, &list, &others);
        (void)lines_close(&list);
        if (ours == SHARE_SOCKETS + 1) {
            break;
        }
    }
    return others;
}

enum outcome {
    OUTCOME_JOINED,
    OUTCOME_NOBODY,    /* Nobody shares the address (yet). */
    OUTCOME_SILENT,    /* There are members, but none answered. */
    OUTCOME_TAKEN,     /* The port is bound, and nobody gives it away. */
    OUTCOME_FOREIGN,   /* Another user's nonic has the address. */
    OUTCOME_VERSION,   /* Another version of nonic has the address. */
    OUTCOME_DISTURBED, /* Sockets of the same user are among ours. */
    OUTCOME_FEW,       /* Fewer descriptors came than are needed. */
    OUTCOME_FAILED,    /* errno says why. */
};

static enum outcome bind_all(struct share *share, const struct sockaddr *address, socklen_t bytes)
{
    CHECK(share->listener < 0);
    for (uint32_t i = 0; i <= SHARE_SOCKETS; i++) {
        CHECK(share->sockets[i] < 0); /* An open one would be lost. */
        share->sockets[i] = bind_one(address, bytes, i == 0);
        if (share->sockets[i] < 0) {
            return errno == EADDRINUSE ? OUTCOME_TAKEN
                   : errno == EMFILE   ? OUTCOME_FEW
                                       : OUTCOME_FAILED;
        }
    }
    if (!attach_selector(share->sockets[0])) {
        return OUTCOME_FAILED;
    }
    return share_is_disturbed(share, address) ? OUTCOME_DISTURBED : OUTCOME_JOINED;
}

static enum outcome create(struct share *share, const struct sockaddr *address, socklen_t bytes)
{
    enum outcome outcome = bind_all(share, address, bytes);
    if (outcome == OUTCOME_JOINED) {
        const struct local_name name = local_name("share/", &share->gid, LOCAL_NO_SLOT);
        share->listener = local_listen(&name, 1024);
        if (share->listener < 0) {
            /* The last member of an earlier share is just going, and its name goes last. */
            outcome = errno == EADDRINUSE ? OUTCOME_TAKEN : OUTCOME_FAILED;
        }
    }
    if (outcome != OUTCOME_JOINED) {
        const int reason = errno;
        share_leave(share);
        errno = reason;
    }
    return outcome;
}

/* -- The others ---------------------------------------------------------------------------------*/

static enum outcome take_descriptors(struct share *share, int member)
{
    struct pollfd answer = {.fd = member, .events = POLLIN};
    if (poll(&answer, 1, ANSWER_MS) <= 0) {
        return OUTCOME_SILENT;
    }
    uint64_t magic = 0;
    int fds[FD_COUNT];
    uint32_t count = FD_COUNT;
    const ssize_t received = local_receive(member, &magic, sizeof(magic), fds, &count);
    if (received < 0 && errno == EPERM) {
        return OUTCOME_FOREIGN;
    }
    if (received == (ssize_t)sizeof(magic) && magic == MAGIC_DESCRIPTORS && count == FD_COUNT) {
        CHECK(share->listener < 0);
        share->listener = fds[0];
        memcpy(share->sockets, fds + 1, sizeof(share->sockets));
        return OUTCOME_JOINED;
    }
    for (uint32_t i = 0; i < count; i++) {
        descriptor_close(fds[i]);
    }
    /* The kernel gives as many descriptors as we may have; no message at all: the last member
     * went. */
    return received <= 0                ? OUTCOME_NOBODY
           : magic != MAGIC_DESCRIPTORS ? OUTCOME_VERSION
                                        : OUTCOME_FEW;
}

static enum outcome ask_member(struct share *share)
{
    const struct local_name name = local_name("share/", &share->gid, LOCAL_NO_SLOT);
    pid_t pid;
    const int member = local_dial(&name, &pid);
    if (member < 0) {
        return errno == ECONNREFUSED ? OUTCOME_NOBODY
               : errno == EPERM      ? OUTCOME_FOREIGN
               : errno == EAGAIN     ? OUTCOME_SILENT /* Its queue of callers is full. */
               : errno == EMFILE     ? OUTCOME_FEW
                                     : OUTCOME_FAILED;
    }
    const enum outcome outcome = take_descriptors(share, member);
    descriptor_close(member);
    return outcome;
}

void share_admit(const struct share *share)
{
    int fds[FD_COUNT];
    CHECK(share->listener >= 0);
    fds[0] = share->listener;
    memcpy(fds + 1, share->sockets, sizeof(share->sockets));
    int newcomer;
    for (int i = 0; i < NEWCOMERS_MAX && (newcomer = local_accept(share->listener)) >= 0; i++) {
        const uint64_t magic = MAGIC_DESCRIPTORS;
        /* A newcomer that does not wait any more comes again. */
        (void)!local_send(newcomer, &magic, sizeof(magic), fds, FD_COUNT);
        descriptor_close(newcomer);
    }
}

static void explain(enum outcome outcome, const char *text, char *error, size_t error_bytes)
{
    switch (outcome) {
    case OUTCOME_JOINED: return;
    case OUTCOME_SILENT:
        snprintf(error, error_bytes,
                 "the nonic programs that share %s do not answer: all of them are stopped", text);
        return;
    case OUTCOME_NOBODY:
    case OUTCOME_TAKEN:
        if (taken_everywhere(error, error_bytes)) {
            return;
        }
        snprintf(error, error_bytes,
                 "UDP port %d of %s is taken by a program that does not share it (nonic with "
                 "another user, or not a nonic)",
                 ROCE_UDP_PORT, text);
        return;
    case OUTCOME_FOREIGN:
        snprintf(error, error_bytes, "%s is shared by nonic programs of another user%s", text,
                 user_is_named(geteuid()) ? ""
                                          : ", or of one that this user namespace cannot name");
        return;
    case OUTCOME_VERSION:
        snprintf(
            error, error_bytes,
            "%s is shared by nonic programs of another version than this one: end them, or use "
            "another address",
            text);
        return;
    case OUTCOME_DISTURBED:
        snprintf(error, error_bytes,
                 "another program of this user has UDP port %d of %s open too (SO_REUSEPORT)",
                 ROCE_UDP_PORT, text);
        return;
    case OUTCOME_FEW:
        snprintf(error, error_bytes,
                 "sharing %s takes %d file descriptors, more than this process may have left "
                 "(ulimit -n)",
                 text, FD_COUNT + 4);
        return;
    case OUTCOME_FAILED:
        snprintf(error, error_bytes, "UDP port %d of %s: %s", ROCE_UDP_PORT, text, strerror(errno));
        return;
    }
    UNREACHABLE("an outcome outside its enum");
}

/* Is another try worth while? Another process may just be creating the share, or leaving it. */
static bool passes(enum outcome outcome, struct instant began)
{
    const uint64_t waited_ms = (clock_now().ns - began.ns) / 1000000;
    return (outcome == OUTCOME_SILENT && waited_ms < JOIN_MS) ||
           ((outcome == OUTCOME_TAKEN || outcome == OUTCOME_NOBODY) && waited_ms < TAKEN_MS);
}

static void clear(struct share *share, const struct gid *gid)
{
    memset(share, 0, sizeof(*share));
    share->gid = *gid;
    share->listener = share->slot_listener = share->mail = -1;
    for (uint32_t i = 0; i <= SHARE_SOCKETS; i++) {
        share->sockets[i] = -1;
    }
    for (uint32_t i = 0; i < SHARE_CONNECTIONS; i++) {
        share->connections[i].fd = -1;
    }
}

bool share_join(struct share *share, const struct sockaddr *address, socklen_t bytes,
                const struct gid *gid, const char *text, char *error, size_t error_bytes)
{
    const struct instant began = clock_now();
    clear(share, gid);
    for (;;) {
        enum outcome outcome = ask_member(share);
        if (outcome == OUTCOME_NOBODY) {
            outcome = create(share, address, bytes);
        }
        if (outcome == OUTCOME_JOINED) {
            return true;
        }
        if (!passes(outcome, began)) {
            const int reason = errno;
            explain(outcome, text, error, error_bytes);
            errno = outcome == OUTCOME_FEW      ? EMFILE
                    : outcome == OUTCOME_FAILED ? reason
                                                : EADDRINUSE;
            return false;
        }
        usleep(PAUSE_US);
    }
}

void share_leave(struct share *share)
{
    /* The name goes first, because a process that finds it expects to be admitted. */
    descriptor_close(share->listener);
    descriptor_close(share->slot_listener);
    descriptor_close(share->mail);
    for (uint32_t i = 0; i < SHARE_CONNECTIONS; i++) {
        descriptor_close(share->connections[i].fd);
    }
    for (uint32_t i = 0; i <= SHARE_SOCKETS; i++) {
        descriptor_close(share->sockets[i]);
    }
    share_forget(share);
}

void share_forget(struct share *share)
{
    const struct gid gid = share->gid;
    clear(share, &gid);
}

static bool anyone_at(const struct local_name *name)
{
    pid_t pid;
    const int fd = local_dial(name, &pid);
    const bool exists = fd >= 0 || errno != ECONNREFUSED;
    descriptor_close(fd);
    return exists;
}

bool share_exists(const struct gid *gid)
{
    const struct local_name name = local_name("share/", gid, LOCAL_NO_SLOT);
    return anyone_at(&name);
}

bool share_has_slot(const struct gid *gid, uint32_t slot)
{
    CHECK(slot < SHARE_SLOTS);
    const struct local_name name = local_name("slot/", gid, (int)slot);
    return anyone_at(&name);
}

bool share_has_unread(const struct share *share, uint32_t slot)
{
    int bytes = 0;
    INVARIANTS(CHECK(slot < SHARE_SLOTS));
    return ioctl(share->sockets[slot % SHARE_SOCKETS], FIONREAD, &bytes) == 0 && bytes > 0;
}

/* Connections lead to other members, each to another one. */
void share_check(const struct share *share)
{
    CHECK(share->slot < SHARE_SLOTS && share->next_connection < SHARE_CONNECTIONS);
    for (uint32_t i = 0; i < SHARE_CONNECTIONS; i++) {
        const struct share_connection *one = &share->connections[i];
        CHECK(one->fd < 0 || one->slot < SHARE_SLOTS);
        for (uint32_t k = 0; k < i && one->fd >= 0; k++) {
            CHECK(share->connections[k].fd < 0 || share->connections[k].slot != one->slot);
        }
    }
}

int share_own_socket(const struct share *share)
{
    return share->sockets[share->slot % SHARE_SOCKETS];
}

int share_common_socket(const struct share *share)
{
    return share->sockets[SHARE_SOCKETS];
}

/* -- Slots --------------------------------------------------------------------------------------*/

static void give_up_slots(struct share *const *shares, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        descriptor_close(shares[i]->slot_listener);
        shares[i]->slot_listener = -1;
    }
}

/* A process claims a slot by its name, which goes with the process, however that ends. */
static bool claim(struct share *const *shares, uint32_t count, uint32_t slot)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct local_name name = local_name("slot/", &shares[i]->gid, (int)slot);
        CHECK(shares[i]->slot_listener < 0); /* An open one would be lost. */
        shares[i]->slot = slot;
        shares[i]->slot_listener = local_listen(&name, SHARE_SLOTS);
        if (shares[i]->slot_listener < 0) {
            const int reason = errno;
            give_up_slots(shares, i);
            errno = reason;
            return false;
        }
    }
    return true;
}

static bool open_mail(struct share *share)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = share->slot_listener};
    CHECK(share->slot_listener >= 0);
    CHECK(share->mail < 0);
    share->mail = descriptor_own(system_epoll_create(EPOLL_CLOEXEC));
    return share->mail >= 0 &&
           system_epoll_change(share->mail, EPOLL_CTL_ADD, share->slot_listener, &event) == 0;
}

/* Names have no permissions, so any user can bind the names of slots. */
static bool held_by_strangers(const struct share *share)
{
    for (uint32_t slot = 0; slot < SHARE_SLOTS; slot++) {
        const struct local_name name = local_name("slot/", &share->gid, (int)slot);
        pid_t pid;
        const int fd = local_dial(&name, &pid);
        if (fd < 0 && errno == EPERM) {
            return true;
        }
        descriptor_close(fd);
    }
    return false;
}

/* Why no slot is free. */
static const char *no_room(struct share *const *shares, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (held_by_strangers(shares[i])) {
            return "another user's program holds the names of free slots";
        }
    }
    return "there are 256 processes";
}

bool share_claim_slot(struct share *const *shares, uint32_t count, char *error, size_t error_bytes)
{
    CHECK(count > 0); /* Without an address, every slot is free. */
    uint32_t drawn;
    random_draw(&drawn, sizeof(drawn));
    bool claimed = false;
    /* Begins at a random slot, so that a slot that was just given back is seldom the next one
     * taken; but two slots share a socket only when all sockets have a reader. */
    for (uint32_t i = 0; i < SHARE_SLOTS && !claimed; i++) {
        const uint32_t band = i / SHARE_SOCKETS * SHARE_SOCKETS;
        claimed = claim(shares, count, band + (drawn + i) % SHARE_SOCKETS);
        if (!claimed && errno != EADDRINUSE) {
            break;
        }
    }
    for (uint32_t i = 0; i < count && claimed; i++) {
        CHECK(shares[i]->slot == shares[0]->slot); /* A queue pair has one number. */
        claimed = open_mail(shares[i]);
    }
    if (!claimed) {
        snprintf(error, error_bytes, "no room among those who share the address: %s",
                 errno == EADDRINUSE ? no_room(shares, count) : strerror(errno));
    }
    return claimed;
}
