/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fake_sockets - descriptors that are numbers: what is asked of the kernel is answered from the
 *                fuzzer's input, and each descriptor is closed once.
 *
 * The calls are taken by the linker (-Wl,--wrap=...); those of descriptors that are not ours are
 * refused.
 */
#ifndef TESTS_FUZZ_FAKE_SOCKETS_H
#define TESTS_FUZZ_FAKE_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FAKE_FIRST   100000 /* No process has a descriptor of this number. */
#define FAKE_COUNT   128
#define FAKE_MESSAGE 128 /* Bytes of a message at most. */

struct fake_socket {
    bool open;
    bool watched; /* epoll_ctl: with `about`. */
    void *about;
    bool readable; /* The next call reads: */
    bool hung_up;  /* the end, */
    uint8_t message[FAKE_MESSAGE];
    size_t bytes; /* or a message, */
    uint32_t fds; /* with this number of descriptors. */
    int error;    /* or this errno. */
};

/* None is open. */
void fake_begin(void);
/* How many are. */
uint32_t fake_open_count(void);
/* -1 with EMFILE if there are too many. */
int fake_open(void);
void fake_close(int fd);
struct fake_socket *fake_socket_of(int fd); /* NULL: not ours. */
/* The descriptor of a socket that is open, the n-th modulo how many there are; -1: none. */
int fake_choose(uint32_t n);
int fake_descriptor_of(const struct fake_socket *socket);

#endif
