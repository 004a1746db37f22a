/* SPDX-License-Identifier: BSD-2-Clause
 *
 * reader - a thread that waits for events in the kernel, as programs have one, while others destroy
 * ids and close the channel.
 */
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

#include "tests/fails/command.h"

struct reader {
    int fd;
    sem_t took, go_on;
};

static void *read_events(void *argument)
{
    struct reader *reader = argument;
    for (;;) {
        struct rdma_ucm_event_resp event = {0};
        const struct rdma_ucm_get_event in = {.response = (uintptr_t)&event};
        ZERO(command(reader->fd, RDMA_USER_CM_CMD_GET_EVENT, &in, sizeof(in), sizeof(event)));
        sem_post(&reader->took);
        sem_wait(&reader->go_on);
    }
    return NULL;
}

/* The id goes with its channel. */
static bool ask(int fd, const union place *to)
{
    const uint32_t id = create_id(fd, RDMA_PS_TCP);
    const bool good = find_way(fd, id, to);
    if (good) {
        ask_to_connect(fd, id);
    }
    return good;
}

/* False: it was refused instead. */
static bool is_taken(struct reader *reader, int fd)
{
    const uint64_t end = now_ms() + PATIENCE_MS;
    struct pollfd refused = {.fd = fd, .events = POLLIN};
    while (sem_trywait(&reader->took) != 0) {
        must(now_ms() < end, "no event for the thread that waits", 0);
        if (poll(&refused, 1, 1) > 0) {
            judge_outcome("an event of the manager", 0);
            return false;
        }
    }
    return true;
}

/* The thread is busy with the first request while there is another one; then it waits again. The
 * channel is closed under it. */
static bool serve(const struct program *p, struct reader *reader, int fd)
{
    const struct timespec moment = {.tv_nsec = 10000000};
    pthread_t thread;
    uint16_t port;
    const uint32_t listener = listen_at(reader->fd, here(p, 0), &port);
    const union place to = here(p, port);
    must(pthread_create(&thread, NULL, read_events, reader) == 0, "pthread_create", errno);
    const bool good = ask(fd, &to) && is_taken(reader, fd) && ask(fd, &to);
    nanosleep(&moment, NULL);
    destroy_id(reader->fd, listener);
    sem_post(&reader->go_on);
    nanosleep(&moment, NULL);
    close(reader->fd);
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    return good;
}

bool use_reader(const struct program *p)
{
    struct reader reader = {.fd = NUMBER(open_channel())};
    const int fd = NUMBER(open_channel());
    sem_init(&reader.took, 0, 0);
    sem_init(&reader.go_on, 0, 0);
    const bool good = serve(p, &reader, fd);
    close(fd); /* With the ids. */
    return good;
}
