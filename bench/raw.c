/* SPDX-License-Identifier: BSD-2-Clause
 *
 * raw - the machine's own speed, without any protocol: the limits with which nonic is compared.
 *
 * Usage: raw MODE. Two processes run, pinned to processors 0 and 1, for a second. Prints a number:
 *   memcpy         GB/s: a copy in, a copy out, through a ring
 *   memcpy-mapped  GB/s: one copy of 1 MB into memory that both have mapped
 *   vm-write       microseconds of a process_vm_writev of 8 bytes
 *   udp-segmented  GB/s: segmented calls, whose receiver looks at nothing
 *   udp-placed     the same; the receiver copies what came to where it belongs, which only the
 *                  bytes themselves tell
 *   udp-unsummed   GB/s: one packet a call, without a UDP checksum
 *   udp-single     datagrams per second, one a call
 *   udp-pingpong   microseconds of one way; both poll
 *   udp-blocking   microseconds there and back; the server sleeps until a datagram comes
 *   udp-aside      microseconds of one way; both spin on their memory, and a thread beside each, on
 *                  the same processor, sleeps until a datagram comes, and puts it there
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PIECE    (1u << 12)
#define PIECES   256u
#define MESSAGE  (1u << 20)
#define SEGMENT  4096
#define SEGMENTS 15
#define PACKET   (12 + 4096 + 4) /* BTH, payload, ICRC. */
#define SECONDS  1.0

struct shared {
    _Alignas(128) _Atomic uint64_t filled;
    _Alignas(128) _Atomic uint64_t emptied;
    _Alignas(128) _Atomic uint64_t received;
    _Atomic int stop;
    _Alignas(4096) uint8_t ring[PIECES][PIECE];
};

static struct shared *shared;
static uint8_t *memory;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void pin(int processor)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* -- A copy in, a copy out, through a ring ------------------------------------------------------*/

static void memcpy_consumer(void)
{
    for (uint64_t i = 0; !shared->stop; i++) {
        while (atomic_load_explicit(&shared->filled, memory_order_acquire) <= i) {
            if (shared->stop) {
                return;
            }
        }
        memcpy(memory + i * PIECE % MESSAGE, shared->ring[i % PIECES], PIECE);
        atomic_store_explicit(&shared->emptied, i + 1, memory_order_release);
    }
}

static double memcpy_producer(void)
{
    const double began = now();
    uint64_t i = 0;
    while (now() - began < SECONDS) {
        for (int k = 0; k < 256; k++, i++) {
            while (i - atomic_load_explicit(&shared->emptied, memory_order_acquire) >= PIECES) {
            }
            memcpy(shared->ring[i % PIECES], memory + i * PIECE % MESSAGE, PIECE);
            atomic_store_explicit(&shared->filled, i + 1, memory_order_release);
        }
    }
    return (double)(i * PIECE) / (now() - began) / 1e9;
}

/* -- One copy into memory that both have mapped -------------------------------------------------*/

static double memcpy_mapped(void)
{
    const double began = now();
    uint64_t count = 0;
    while (now() - began < SECONDS) {
        for (int k = 0; k < 16; k++, count++) {
            memcpy(shared->ring, memory, MESSAGE);
            atomic_store_explicit(&shared->filled, count, memory_order_release);
        }
    }
    return (double)(count * MESSAGE) / (now() - began) / 1e9;
}

/* -- process_vm_writev of 8 bytes ---------------------------------------------------------------*/

static void spin(void)
{
    while (!shared->stop) {
    }
}

static double vm_write(pid_t peer)
{
    struct iovec local = {memory, 8}, remote = {memory, 8};
    const double began = now();
    uint64_t count = 0;
    while (now() - began < SECONDS) {
        for (int k = 0; k < 100; k++, count++) {
            if (process_vm_writev(peer, &local, 1, &remote, 1, 0) != 8) {
                perror("process_vm_writev");
                exit(1);
            }
        }
    }
    return (now() - began) / (double)count * 1e6;
}

/* -- UDP ----------------------------------------------------------------------------------------*/

static int sockets[2];
static struct sockaddr_in addresses[2];

static void open_sockets(void)
{
    for (int i = 0; i < 2; i++) {
        sockets[i] = socket(AF_INET, SOCK_DGRAM, 0);
        const int big = 8 << 20, one = 1;
        setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof(big));
        setsockopt(sockets[i], SOL_SOCKET, SO_RCVBUF, &big, sizeof(big));
        setsockopt(sockets[i], IPPROTO_UDP, UDP_GRO, &one, sizeof(one));
        addresses[i].sin_family = AF_INET;
        addresses[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t bytes = sizeof(addresses[i]);
        if (bind(sockets[i], (struct sockaddr *)&addresses[i], sizeof(addresses[i])) != 0 ||
            getsockname(sockets[i], (struct sockaddr *)&addresses[i], &bytes) != 0) {
            perror("bind");
            exit(1);
        }
    }
}

static void udp_consumer(bool places)
{
    uint8_t *place = memory + MESSAGE / 2;
    for (size_t at = 0; !shared->stop;) {
        const ssize_t count = recv(sockets[1], memory, 65536, MSG_DONTWAIT);
        if (count > 0) {
            if (places) {
                memcpy(place + at, memory, (size_t)count);
                at = (at + 65536) % (MESSAGE / 2);
            }
            atomic_fetch_add_explicit(&shared->received, (uint64_t)count, memory_order_relaxed);
        }
    }
}

/* Sends calls of `bytes` in segments of `segment`; only bytes that arrive count. */
static double udp_producer(size_t bytes, int segment)
{
    if (segment != 0) {
        setsockopt(sockets[0], IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof(segment));
    }
    const double began = now();
    uint64_t sent = 0;
    while (now() - began < SECONDS) {
        /* Like any sensible sender, has no more in flight than a receive buffer holds. */
        while (sent - atomic_load_explicit(&shared->received, memory_order_relaxed) > (1u << 18) &&
               now() - began < SECONDS) {
        }
        if (sendto(sockets[0], memory, bytes, 0, (struct sockaddr *)&addresses[1],
                   sizeof(addresses[1])) > 0) {
            sent += bytes;
        }
    }
    return (double)atomic_load(&shared->received) / (now() - began);
}

static void wait_datagram(int fd)
{
    while (recv(fd, memory, 64, MSG_DONTWAIT) < 0 && !shared->stop) {
    }
}

static void udp_echo(bool blocks)
{
    while (!shared->stop) {
        if (blocks) {
            (void)!recv(sockets[1], memory, 64, 0);
        } else {
            wait_datagram(sockets[1]);
        }
        sendto(sockets[1], memory, 24, 0, (struct sockaddr *)&addresses[0], sizeof(addresses[0]));
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Microseconds of one way, by the median of groups of round trips: one in which the processor was
 * taken away does not count. */
static double median_way(void (*round_trip)(void))
{
    enum {
        GROUPS = 10000,
        EACH = 20
    };
    static double times[GROUPS];
    size_t groups = 0;
    for (const double began = now(); groups < GROUPS && now() - began < SECONDS; groups++) {
        const double start = now();
        for (int i = 0; i < EACH; i++) {
            round_trip();
        }
        times[groups] = (now() - start) / EACH / 2 * 1e6;
    }
    qsort(times, groups, sizeof(times[0]), compare);
    return times[groups / 2];
}

static void udp_there_and_back(void)
{
    sendto(sockets[0], memory, 24, 0, (struct sockaddr *)&addresses[1], sizeof(addresses[1]));
    wait_datagram(sockets[0]);
}

static _Atomic uint64_t aside; /* The thread of this process puts what comes here. */

static void *udp_taker(void *socket)
{
    uint64_t number;
    while (recv(*(int *)socket, &number, sizeof(number), 0) == sizeof(number)) {
        atomic_store(&aside, number);
    }
    return NULL;
}

static void aside_start(int end)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, udp_taker, &sockets[end]) != 0) {
        perror("pthread_create");
        exit(1);
    }
}

static void aside_send(int end, uint64_t number)
{
    sendto(sockets[end], &number, sizeof(number), 0, (struct sockaddr *)&addresses[1 - end],
           sizeof(addresses[1 - end]));
}

static void aside_wait(uint64_t number)
{
    while (atomic_load(&aside) != number && !shared->stop) {
    }
}

static void aside_there_and_back(void)
{
    static uint64_t number;
    aside_send(0, ++number);
    aside_wait(number);
}

static void aside_echo(void)
{
    for (uint64_t number = 1; !shared->stop; number++) {
        aside_wait(number);
        aside_send(1, number);
    }
}

/* -----------------------------------------------------------------------------------------------*/

int main(int argc, char **argv)
{
    const char *mode = argc == 2 ? argv[1] : "";
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memory = mmap(NULL, MESSAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, MESSAGE);
    open_sockets();
    const pid_t child = fork();
    pin(child == 0);
    if (child == 0) {
        if (strcmp(mode, "memcpy") == 0) {
            memcpy_consumer();
        } else if (strcmp(mode, "udp-pingpong") == 0 || strcmp(mode, "udp-blocking") == 0) {
            udp_echo(strcmp(mode, "udp-blocking") == 0);
        } else if (strcmp(mode, "udp-aside") == 0) {
            aside_start(1);
            aside_echo();
        } else if (strncmp(mode, "udp", 3) == 0) {
            udp_consumer(strcmp(mode, "udp-placed") == 0);
        } else {
            spin();
        }
        return 0;
    }
    double result = -1;
    if (strcmp(mode, "memcpy") == 0) {
        result = memcpy_producer();
    } else if (strcmp(mode, "memcpy-mapped") == 0) {
        result = memcpy_mapped();
    } else if (strcmp(mode, "vm-write") == 0) {
        result = vm_write(child);
    } else if (strcmp(mode, "udp-segmented") == 0 || strcmp(mode, "udp-placed") == 0) {
        result = udp_producer(SEGMENTS * SEGMENT, SEGMENT) / 1e9;
    } else if (strcmp(mode, "udp-unsummed") == 0) {
        const int one = 1;
        setsockopt(sockets[0], SOL_SOCKET, SO_NO_CHECK, &one, sizeof(one));
        result = udp_producer(PACKET, 0) / 1e9;
    } else if (strcmp(mode, "udp-single") == 0) {
        result = udp_producer(24, 0) / 24;
    } else if (strcmp(mode, "udp-pingpong") == 0) {
        result = median_way(udp_there_and_back);
    } else if (strcmp(mode, "udp-blocking") == 0) {
        result = 2 * median_way(udp_there_and_back);
    } else if (strcmp(mode, "udp-aside") == 0) {
        aside_start(0);
        result = median_way(aside_there_and_back);
    }
    shared->stop = 1;
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    if (result < 0) {
        fprintf(stderr,
                "usage: raw memcpy|memcpy-mapped|vm-write|udp-segmented|udp-placed|udp-unsummed|"
                "udp-single|udp-pingpong|udp-blocking|udp-aside\n");
        return 2;
    }
    printf("%.3f\n", result);
    return 0;
}
