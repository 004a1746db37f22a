"""Programs with drawn loops: one that waits until another thread writes, and one that counts and ends by itself."""

PROGRAM = '''#include <immintrin.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static volatile uint64_t word[8] = {%(words)s}, scratch[8];

static void *write_later(void *unused)
{
    nanosleep(&(struct timespec){0, 300000}, NULL);
    word[%(awaited)d] = 7;
    return unused;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static __attribute__((noinline)) uint64_t mixed(uint64_t one, uint64_t other)
{
    return (one ^ other >> 7) * UINT64_C(0x9e3779b97f4a7c15);
}

static __attribute__((noinline)) void wait_for_other(void)
{
    uint64_t a, b, c;
    do {
        a = word[0], b = a + 1, c = b * 3;
%(waits)s
    } while (word[%(awaited)d] != 7%(more)s);
}

static __attribute__((noinline)) uint64_t count(void)
{
    uint64_t a = 1, b = 2, c = 3;
    for (uint32_t i = 0; i < %(rounds)d; i++) {
%(counts)s
        a += b ^ i;
    }
    return a + b + c;
}

int main(void)
{
    pthread_t other;
    pthread_create(&other, NULL, write_later, NULL);
    const uint64_t began = now_ns();
    wait_for_other();
    const uint64_t waited = now_ns() - began;
    pthread_join(other, NULL);
    printf("waited %%lu ns\\n", (unsigned long)waited);
    printf("counted %%lx\\n", (unsigned long)count());
    return 0;
}
'''


def statement(dice):
    """One that may stand in both loops: two rounds of the loop that waits leave memory as it was."""
    one, other = dice.sample('abc', 2)
    number, index = dice.randrange(1, 1 << 32), dice.randrange(8)
    return dice.choice([
        f'{one} = word[{index}] {dice.choice("+^|&*")} {other};',
        f'{one} {dice.choice("+^|&*-")}= {number}u;',
        f'{one} = {other} << {index} | {one} >> {index + 1};',
        f'if ({one} & {1 << index}) {{ {other} ^= word[{index}]; }}',
        f'if ({one} > {other}) {{ {one} = mixed({one}, {other}); }} else {{ {other}++; }}',
        f'{one} = mixed({other}, word[{index}]);',
        f'for (int j = 0; j < {index * 3}; j++) {{ {one} = {one} * 5 + word[j & 7]; }}',
        f'for (volatile int j = 0; j < {index}; j++) {{ {one} ^= (uint64_t)j; }}',
        f'scratch[{index}] = {number}u;',
        f'scratch[{index}] ^= {number}u;',
        f'{one} = (uint64_t)((double)({other} & 0xffff) * 0.75);',
        f'{one} = (uint64_t)__builtin_popcountl({other});',
        '_mm_pause();'])


def program(dice):
    awaited = dice.randrange(8)
    lines = ['\n'.join(f'        {statement(dice)}' for _ in range(dice.randrange(1, 9))) for _ in range(2)]
    words = ', '.join(str(dice.randrange(8, 1 << 30)) for _ in range(8))
    return PROGRAM % {'words': words, 'awaited': awaited, 'waits': lines[0], 'counts': lines[1],
                      'rounds': dice.randrange(20000, 400000),
                      'more': dice.choice(['', ' && word[1] != a + 77', ' || (word[2] == 0 && c == 1)'])}
