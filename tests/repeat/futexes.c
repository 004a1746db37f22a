/* SPDX-License-Identifier: BSD-2-Clause
 *
 * futexes - threads that wait for words, and what is done with the words, drawn from a seed. The
 * output is the same wherever futex(2) is answered: by Linux, or by the box.
 *
 * Usage: futexes SEED
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    WORDS = 3,
    WAITERS = 8,
    OPERATIONS = 40
};

/* Waits begin at the first ones. The second ones are for those that are moved, from one word each:
 * Linux does not always put them behind those that wait there. */
static _Atomic uint32_t word[2 * WORDS];

static struct waiter {
    pthread_t thread;
    uint32_t *word;
    uint32_t bits;
    bool with_bits;
    int result;
    _Atomic bool is_over;
} waiters[WAITERS];

static uint32_t drawn(uint32_t below)
{
    return (uint32_t)rand() % below;
}

static uint32_t *word_of(uint32_t index)
{
    return (uint32_t *)&word[index];
}

/* Long enough for all others to do what they can. */
static void give_time(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 8000000}, NULL);
}

static int futex(uint32_t *at, int operation, uint32_t value, uint64_t other, uint32_t *second,
                 uint32_t third)
{
    const long result = syscall(SYS_futex, at, operation, value, other, second, third);
    return result < 0 ? -errno : (int)result;
}

static void *wait_for_word(void *argument)
{
    struct waiter *waiter = argument;
    waiter->result =
        waiter->with_bits
            ? futex(waiter->word, FUTEX_WAIT_BITSET_PRIVATE, *waiter->word, 0, NULL, waiter->bits)
            : futex(waiter->word, FUTEX_WAIT_PRIVATE, *waiter->word, 0, NULL, 0);
    waiter->is_over = true;
    return NULL;
}

static void begin(struct waiter *waiter)
{
    *waiter =
        (struct waiter){.word = word_of(drawn(WORDS)), .bits = 1 + drawn(7), .with_bits = drawn(2)};
    if (pthread_create(&waiter->thread, NULL, wait_for_word, waiter) != 0) {
        exit(2);
    }
    give_time();
}

/* Waits that end by themselves, and arguments that nobody takes. */
static int refused(void)
{
    uint32_t *at = word_of(drawn(WORDS));
    struct timespec soon = {.tv_nsec = drawn(2) ? 1000000 : 1000000000};
    const uint64_t until = (uint64_t)(uintptr_t)&soon;
    switch (drawn(7)) {
    case 0: return futex(at, FUTEX_WAIT_PRIVATE, *at + 1, 0, NULL, 0);
    case 1: return futex(at, FUTEX_WAIT_BITSET_PRIVATE, *at, until, NULL, 0);
    case 2: return futex(at, FUTEX_WAKE_BITSET_PRIVATE, 1, 0, NULL, 0);
    case 3: return futex(at, FUTEX_WAIT_PRIVATE, *at, until, NULL, 0);
    case 4: return futex((uint32_t *)((char *)at + 1), FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
    case 5: return futex((uint32_t *)((char *)at + 2), FUTEX_WAKE_PRIVATE, 1, 0, NULL, 0);
    default: return futex(NULL, FUTEX_WAIT_PRIVATE, 0, 0, NULL, 0);
    }
}

/* FUTEX_WAKE_OP's operation, comparison and their operands. Bit 30 is never set: FUTEX_OWNER_DIED,
 * with which the box wakes a thread when another one ends. */
static uint32_t drawn_change(void)
{
    return drawn(5) << 28 | drawn(2) << 31 | drawn(6) << 24 | drawn(16) << 12 | drawn(8);
}

static int done(void)
{
    const uint32_t index = drawn(2 * WORDS), count = drawn(4), more = drawn(4), kind = drawn(6);
    uint32_t *at = word_of(index), *any = word_of(drawn(2 * WORDS));
    uint32_t *to = index < WORDS && drawn(4) > 0 ? word_of(index + WORDS) : at;
    printf("%u of word %u (%u, %u): ", kind, index, count, more);
    switch (kind) {
    case 0: return futex(at, FUTEX_WAKE_PRIVATE, count, 0, NULL, 0);
    case 1: return futex(at, FUTEX_WAKE_BITSET_PRIVATE, count, 0, NULL, 1 + drawn(7));
    case 2: return futex(at, FUTEX_REQUEUE_PRIVATE, count, more, to, 0);
    case 3:
        return futex(at, FUTEX_CMP_REQUEUE_PRIVATE, count, drawn(2) ? INT32_MAX : more, to,
                     *at + drawn(2));
    case 4: return futex(at, FUTEX_WAKE_OP_PRIVATE, count, more, any, drawn_change());
    default: return refused();
    }
}

int main(int argc, char **argv)
{
    srand(argc > 1 ? (unsigned)atoi(argv[1]) : 1);
    for (int i = 0; i < WAITERS; i++) {
        begin(&waiters[i]);
    }
    for (int i = 0; i < OPERATIONS; i++) {
        printf("%d:", done());
        give_time();
        for (int j = 0; j < WAITERS; j++) {
            const bool is_over = waiters[j].is_over;
            printf(is_over ? " %d" : " .", waiters[j].result);
            if (is_over && drawn(4) == 0) {
                pthread_join(waiters[j].thread, NULL);
                begin(&waiters[j]);
            }
        }
        for (int j = 0; j < 2 * WORDS; j++) {
            printf(" %x", word[j]);
        }
        putchar('\n');
    }
    fflush(stdout);
    _exit(0);
}
