/* SPDX-License-Identifier: BSD-2-Clause
 *
 * share_mail - packets from the member that read them to the member they are for.
 *
 * Two slots may share a socket, QPN 1 belongs to everybody, and a packet may be late. Whoever reads
 * what is not his connects to the owner's slot, where both sides see the other's user, and sends
 * what he has read as one letter. A member that is stopped has letters waiting up to the size of a
 * socket's buffer; more are dropped, like packets that a full receive buffer meets.
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/bytes.h"
#include "drivers/descriptor.h"
#include "drivers/local_socket.h"
#include "drivers/share.h"
#include "drivers/shortage.h"
#include "drivers/system.h"

#define LETTERS_BYTES (1 << 20)

/* -- Out ----------------------------------------------------------------------------------------*/

static struct share_courier *courier_to(struct share *share, uint32_t slot)
{
    for (uint32_t i = 0; i < SHARE_COURIERS; i++) {
        if (share->couriers[i].fd >= 0 && share->couriers[i].slot == slot) {
            return &share->couriers[i];
        }
    }
    return NULL;
}

static void dismiss(struct share_courier *courier)
{
    descriptor_close(courier->fd);
    courier->fd = -1;
}

/* A new connection takes the place of the oldest one. */
static struct share_courier *send_courier(struct share *share, uint32_t slot, enum share_fate *fate)
{
    const struct local_name name = local_name("slot/", &share->gid, (int)slot);
    pid_t pid;
    const int fd = local_dial(&name, &pid);
    if (fd < 0) {
        *fate = shortage_is(errno) ? SHARE_CROWDED : SHARE_NOBODY;
        return NULL;
    }
    const int wanted = LETTERS_BYTES;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &wanted, sizeof(wanted));
    struct share_courier *courier = &share->couriers[share->next_courier];
    share->next_courier = (share->next_courier + 1) % SHARE_COURIERS;
    dismiss(courier);
    *courier = (struct share_courier){.fd = fd, .slot = slot};
    return courier;
}

enum share_fate share_hand_on(struct share *share, uint32_t slot, const void *letter, size_t bytes)
{
    enum share_fate fate = SHARE_NOBODY;
    struct share_courier *courier = courier_to(share, slot);
    /* A connection that was kept may lead to a process that is gone: once more then. */
    for (int tries = 0; tries < 2; tries++) {
        if (courier == NULL && (courier = send_courier(share, slot, &fate)) == NULL) {
            return fate;
        }
        if (local_send(courier->fd, letter, bytes, NULL, 0)) {
            return SHARE_HANDED_ON;
        }
        if (shortage_is(errno)) {
            return SHARE_CROWDED;
        }
        dismiss(courier);
        courier = NULL;
    }
    return SHARE_NOBODY;
}

/* -- In -----------------------------------------------------------------------------------------*/

/* False: none could be let in; with no descriptor left they keep waiting. */
static bool accept_couriers(struct share *share)
{
    bool any = false;
    int fd;
    for (int i = 0; i < SHARE_COURIERS && (fd = local_accept(share->slot_listener)) >= 0; i++) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.fd = fd};
        if (epoll_ctl(share->mail, EPOLL_CTL_ADD, fd, &event) != 0) {
            descriptor_close(fd);
        }
        any = true;
    }
    return any;
}

bool share_letter_is_whole(const uint8_t *bytes, size_t count)
{
    uint64_t magic;
    if (count < sizeof(struct share_letter)) {
        return false;
    }
    memcpy(&magic, bytes, sizeof(magic));
    size_t at = sizeof(struct share_letter);
    while (at + 2 <= count) {
        at += 2u + load_be16(bytes + at);
    }
    return magic == SHARE_MAGIC_LETTER && at == count;
}

size_t share_collect(struct share *share, void *letter, size_t bytes_max)
{
    struct epoll_event event;
    while (system_epoll(share->mail, &event, 1) == 1) {
        if (event.data.fd == share->slot_listener) {
            if (!accept_couriers(share)) {
                return 0;
            }
            continue;
        }
        uint32_t fds = 0;
        const ssize_t received = local_receive(event.data.fd, letter, bytes_max, NULL, &fds);
        if (received > 0 && share_letter_is_whole(letter, (size_t)received)) {
            return (size_t)received;
        }
        if (received >= 0 || (errno != EAGAIN && errno != EINTR)) {
            descriptor_close(event.data.fd); /* Gone, or it talks nonsense. */
        }
    }
    return 0;
}
