/* SPDX-License-Identifier: BSD-2-Clause
 *
 * waits - loops by which programs wait for another thread, and loops that only look like that.
 *
 * usage: waits KIND; prints how long it waited and what it counted. The other thread sleeps 300 us,
 * then sets what is waited for.
 */
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static volatile int flag;
static atomic_int shared;
static pthread_spinlock_t spin;
static volatile uint8_t message[4096];
static volatile uint64_t in_memory;

static void *set_later(void *unused)
{
    nanosleep(&(struct timespec){0, 300000}, NULL);
    message[4095] = 7;
    atomic_store(&shared, 1);
    flag = 1;
    pthread_spin_unlock(&spin);
    return unused;
}

static int is_last_there(const volatile uint8_t *of, int bytes)
{
    return of[bytes - 1] == 7;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t plain(void)
{
    while (!flag) {
    }
    return 0;
}

static uint64_t pause_between(void)
{
    while (!flag) {
        _mm_pause();
    }
    return 0;
}

static uint64_t spinlock(void)
{
    pthread_spin_lock(&spin);
    return 0;
}

static uint64_t compare(void)
{
    int one = 1;
    while (!atomic_compare_exchange_weak(&shared, &one, 2)) {
        one = 1;
    }
    return 0;
}

static uint64_t last(void)
{
    while (!is_last_there(message, 4096)) {
    }
    return 0;
}

static uint64_t inner(void)
{
    while (!flag) {
        for (volatile int i = 0; i < 20; i++) {
        }
    }
    return 0;
}

static uint64_t toggle(void)
{
    while (!flag) {
        in_memory ^= 1;
    }
    return 0;
}

static uint64_t vectors(void)
{
    volatile double sum = 0;
    while (!flag) {
        sum = sum * 0.0 + 1.5;
    }
    return 0;
}

static uint64_t by_clock(void)
{
    uint64_t count = 0;
    while (!flag) {
        count += now_ns() != 0;
    }
    return count;
}

static uint64_t by_processor_clock(void)
{
    uint64_t count = 0;
    while (!flag) {
        count += __rdtsc() != 0;
    }
    return count;
}

static uint64_t yield(void)
{
    while (!flag) {
        sched_yield();
    }
    return 0;
}

static uint64_t bounded(void)
{
    uint64_t count = 0;
    while (!flag) {
        for (volatile int i = 0; i < 100000 && !flag; i++) {
        }
        count++;
        nanosleep(&(struct timespec){0, 50000}, NULL);
    }
    return count;
}

/* These end by themselves. */
static uint64_t longer(void)
{
    volatile uint32_t i;
    for (i = 0; i < 300000000; i++) {
    }
    return i;
}

static uint64_t ring(void)
{
    static volatile uint8_t bytes[1 << 16];
    for (uint32_t i = 0; i < 200000000; i++) {
        bytes[i & 0xffff] = (uint8_t)(i >> 16);
    }
    return bytes[5];
}

static uint64_t copy(void)
{
    static uint8_t from[1 << 20], to[1 << 20];
    for (int i = 0; i < 3000; i++) {
        const uint8_t *source = from;
        uint8_t *target = to;
        size_t bytes = sizeof(to);
        from[i] = (uint8_t)i;
        __asm__ volatile("rep movsb" : "+S"(source), "+D"(target), "+c"(bytes) : : "memory");
    }
    return to[2000];
}

static const struct {
    const char *name;
    uint64_t (*wait)(void); /* returns what it counted */
} kinds[] = {
    {"plain", plain},     {"pause", pause_between}, {"spinlock", spinlock},
    {"compare", compare}, {"last", last},           {"inner", inner},
    {"toggle", toggle},   {"vectors", vectors},     {"clock", by_clock},
    {"yield", yield},     {"bounded", bounded},     {"processor-clock", by_processor_clock},
    {"long", longer},     {"ring", ring},           {"copy", copy}};

int main(int argc, char **argv)
{
    pthread_t other;
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    pthread_spin_lock(&spin);
    pthread_create(&other, NULL, set_later, NULL);
    const uint64_t began = now_ns();
    uint64_t count = 0;
    for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, argv[1]) == 0) {
            count = kinds[i].wait();
        }
    }
    printf("waited %lu ns, counted %lu\n", (unsigned long)(now_ns() - began), (unsigned long)count);
    pthread_join(other, NULL);
    return 0;
}
