/* SPDX-License-Identifier: BSD-2-Clause
 *
 * exits - a thread ends its process while the first one waits for the end of other threads.
 *
 * Linux ends all of them at once, in any order.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 4

static void *sleep_on(void *context)
{
    (void)context;
    pause();
    return NULL;
}

static void *leave(void *context)
{
    (void)context;
    usleep(1000);
    exit(3);
}

int main(void)
{
    pthread_t sleepers[THREADS], leaver;
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&sleepers[i], NULL, sleep_on, NULL) != 0) {
            return 1;
        }
    }
    if (pthread_create(&leaver, NULL, leave, NULL) != 0) {
        return 1;
    }
    return pthread_join(sleepers[0], NULL);
}
