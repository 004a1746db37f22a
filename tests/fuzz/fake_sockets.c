/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/fake_sockets.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

static struct fake_socket sockets[FAKE_COUNT];

void fake_begin(void)
{
    memset(sockets, 0, sizeof(sockets));
}

uint32_t fake_open_count(void)
{
    uint32_t count = 0;
    for (int i = 0; i < FAKE_COUNT; i++) {
        count += sockets[i].open;
    }
    return count;
}

int fake_open(void)
{
    for (int i = 0; i < FAKE_COUNT; i++) {
        if (!sockets[i].open) {
            sockets[i] = (struct fake_socket){.open = true};
            return FAKE_FIRST + i;
        }
    }
    errno = EMFILE;
    return -1;
}

struct fake_socket *fake_socket_of(int fd)
{
    return fd >= FAKE_FIRST && fd < FAKE_FIRST + FAKE_COUNT ? &sockets[fd - FAKE_FIRST] : NULL;
}

int fake_descriptor_of(const struct fake_socket *socket)
{
    return FAKE_FIRST + (int)(socket - sockets);
}

void fake_close(int fd)
{
    struct fake_socket *socket = fake_socket_of(fd);
    if (fd >= 0) {
        CHECK(socket != NULL && socket->open);
        *socket = (struct fake_socket){.open = false};
    }
}

int fake_choose(uint32_t n)
{
    const uint32_t count = fake_open_count();
    uint32_t left = count == 0 ? 0 : n % count;
    for (int i = 0; i < FAKE_COUNT; i++) {
        if (sockets[i].open && left-- == 0) {
            return FAKE_FIRST + i;
        }
    }
    return -1;
}
