/* SPDX-License-Identifier: BSD-2-Clause */
#include "box/loop.h"

#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include "base/box_page.h"

enum {
    FIRST_SPAN = 32, /* Brent's first distance, in steps */
    PERIODS_MAX = 4, /* A state in memory may have a longer period than the registers. */
    VECTORS_MAX = 16384,
};

enum step {
    STEP_DONE,
    STEP_IS_CALL, /* The next instruction is a call, so it was not made. */
    STEP_OTHER,   /* *status says what happened instead. */
    STEP_UNKNOWN,
};

struct stepper {
    pid_t thread;
    registers at;
    bool has_returned; /* The last step was a return. */
    int *status;
    uint64_t *steps;
};

static bool fetch(const struct stepper *s, const registers *at, struct instruction_access *access)
{
    uint8_t code[ACCESS_CODE_MAX];
    size_t bytes = sizeof(code);
    /* The instruction may end just before a page that is not there. */
    while (bytes > 0 && !tracee_read(s->thread, at->rip, code, bytes)) {
        bytes--;
    }
    *access = access_of(code, bytes, at);
    return bytes > 0;
}

/* The trap and resume flags say that we step. */
static registers plain(const registers *at)
{
    registers result = *at;
    result.eflags &= ~(unsigned long)0x10100;
    return result;
}

static int compare(const registers *one, const registers *other)
{
    const registers a = plain(one), b = plain(other);
    if (a.rip != b.rip) {
        return a.rip < b.rip ? -1 : 1;
    }
    return memcmp(&a, &b, sizeof(a));
}

static enum step step(struct stepper *s)
{
    struct instruction_access access;
    if (!fetch(s, &s->at, &access) || access.is_call) {
        return STEP_IS_CALL;
    }
    if (ptrace(PTRACE_SINGLESTEP, s->thread, NULL, NULL) != 0 ||
        !tracee_wait(s->thread, s->status)) {
        return STEP_UNKNOWN;
    }
    ++*s->steps;
    s->has_returned = access.is_return;
    if (!WIFSTOPPED(*s->status) || WSTOPSIG(*s->status) != SIGTRAP || *s->status >> 16 != 0) {
        return STEP_OTHER;
    }
    return tracee_registers(s->thread, &s->at) ? STEP_DONE : STEP_UNKNOWN;
}

/* Steps until a state comes again, and returns after how many; 0: none did. */
static int find_period(struct stepper *s, enum step *last)
{
    registers anchor = s->at;
    int since = 0, span = FIRST_SPAN;
    for (int i = 0; i < LOOP_STEPS_MAX; i++) {
        *last = step(s);
        if (*last != STEP_DONE) {
            return 0;
        }
        since++;
        if (compare(&s->at, &anchor) == 0) {
            return since;
        }
        if (since == span) {
            anchor = s->at;
            since = 0;
            span *= 2;
        }
    }
    return 0;
}

/* A word that an instruction both reads and writes, as it was before the first that does. */
struct change {
    struct loop_word word;
    int step;
};

struct round {
    registers state[LOOP_STEPS_MAX + 1];
    struct change change[LOOP_STEPS_MAX]; /* by step */
    int steps, changes;
};

static bool watch(struct loop *loop, const struct access_word *word)
{
    for (int i = 0; i < loop->words; i++) {
        if (loop->word[i].address == word->address && loop->word[i].bytes >= word->bytes) {
            return true;
        }
    }
    if (loop->words == LOOP_WORDS_MAX) {
        return false;
    }
    loop->word[loop->words++] = (struct loop_word){.address = word->address, .bytes = word->bytes};
    return true;
}

static bool keep_value(const struct stepper *s, const struct access_word *word, int step,
                       struct round *round)
{
    for (int i = 0; i < round->changes; i++) {
        const struct loop_word *kept = &round->change[i].word;
        if (kept->address == word->address && kept->bytes == word->bytes) {
            return true;
        }
    }
    if (round->changes == LOOP_STEPS_MAX) {
        return false;
    }
    struct change *change = &round->change[round->changes++];
    change->word = (struct loop_word){.address = word->address, .bytes = word->bytes};
    change->step = step;
    return tracee_read(s->thread, word->address, change->word.value, word->bytes);
}

/* Notes the words of the instruction of this step; false: a loop that waits may not have it. */
static bool note_words(const struct stepper *s, int step, struct round *round, struct loop *loop)
{
    struct instruction_access access;
    if (!fetch(s, &round->state[step], &access) || !access.known) {
        return false;
    }
    for (int i = 0; i < access.words; i++) {
        const struct access_word *word = &access.word[i];
        if (word->read && !watch(loop, word)) {
            return false;
        }
        if (word->read && word->written && !keep_value(s, word, step, round)) {
            return false;
        }
    }
    return true;
}

static bool record(struct stepper *s, struct round *round, struct loop *loop, enum step *last)
{
    round->changes = 0;
    loop->words = 0;
    round->state[0] = s->at;
    for (int i = 0; i < round->steps; i++) {
        if (!note_words(s, i, round, loop)) {
            *last = STEP_DONE;
            return false;
        }
        *last = step(s);
        if (*last != STEP_DONE) {
            return false;
        }
        round->state[i + 1] = s->at;
    }
    return compare(&round->state[0], &s->at) == 0;
}

static bool has_value(pid_t thread, const struct loop_word *word)
{
    uint8_t now[ACCESS_BYTES_MAX];
    return tracee_read(thread, word->address, now, word->bytes) &&
           memcmp(now, word->value, word->bytes) == 0;
}

static bool repeats(struct stepper *s, const struct round *round, enum step *last)
{
    const struct change *change = round->change;
    const struct change *const end = change + round->changes;
    for (int i = 0; i < round->steps; i++) {
        for (; change < end && change->step == i; change++) {
            if (!has_value(s->thread, &change->word)) {
                return false;
            }
        }
        *last = step(s);
        if (*last != STEP_DONE || compare(&s->at, &round->state[i + 1]) != 0) {
            return false;
        }
    }
    return true;
}

/* A round of `round->steps` from here is recorded, and made once more. Vector registers are
 * compared at its ends. */
static bool closed(struct stepper *s, struct round *round, struct loop *loop, enum step *last)
{
    static uint8_t vectors[2][VECTORS_MAX];
    const size_t first = tracee_vectors(s->thread, vectors[0], VECTORS_MAX);
    if (first == 0 || !record(s, round, loop, last) || !repeats(s, round, last)) {
        return false;
    }
    const size_t second = tracee_vectors(s->thread, vectors[1], VECTORS_MAX);
    return first == second && memcmp(vectors[0], vectors[1], first) == 0;
}

static void read_words(const struct stepper *s, struct loop *loop)
{
    for (int i = 0; i < loop->words; i++) {
        memset(loop->word[i].value, 0, sizeof(loop->word[i].value));
        (void)tracee_read(s->thread, loop->word[i].address, loop->word[i].value,
                          loop->word[i].bytes);
    }
}

static bool go(struct stepper *s, int steps, enum step *last)
{
    for (int i = 0; i < steps; i++) {
        *last = step(s);
        if (*last != STEP_DONE) {
            return false;
        }
    }
    return true;
}

/* The least registers may come several times in a round: then memory tells these states apart. The
 * thread stands at the beginning of the round, and goes to the least state. */
static bool go_to_state(struct stepper *s, const struct round *round, struct loop *loop, int least,
                        enum step *last)
{
    static struct loop_word kept[LOOP_WORDS_MAX];
    const size_t bytes = (size_t)loop->words * sizeof(kept[0]);
    int best = -1;
    for (int i = 0; i < round->steps; i++) {
        if (compare(&round->state[i], &round->state[least]) == 0) {
            read_words(s, loop);
            if (best < 0 || memcmp(loop->word, kept, bytes) < 0) {
                memcpy(kept, loop->word, bytes);
                best = i;
            }
        }
        if (!go(s, 1, last)) {
            return false;
        }
    }
    return go(s, best, last);
}

static bool keep_values(const struct stepper *s, const struct round *round, struct loop *loop)
{
    int kept = 0;
    for (int i = 0; i < loop->words; i++) {
        /* A hint to the processor may name a word that cannot be read. */
        if (tracee_read(s->thread, loop->word[i].address, loop->word[i].value,
                        loop->word[i].bytes)) {
            loop->word[kept++] = loop->word[i];
        }
    }
    loop->words = kept;
    loop->at = plain(&s->at);
    loop->steps = round->steps;
    return true;
}

/* To the least state of the round, which is the same wherever the proof began. */
static bool go_to_least(struct stepper *s, const struct round *round, struct loop *loop,
                        enum step *last)
{
    int least = 0;
    for (int i = 1; i < round->steps; i++) {
        if (compare(&round->state[i], &round->state[least]) < 0) {
            least = i;
        }
    }
    return go_to_state(s, round, loop, least, last) && keep_values(s, round, loop);
}
/* An inner loop that counts in memory repeats its registers sooner than the round is over. Over
 * many steps only the whole round repeats. Returns its steps; 0: none is found. */
static int find_long_period(struct stepper *s, struct round *round, enum step *last)
{
    registers *trace = round->state;
    trace[0] = s->at;
    for (int i = 1; i <= LOOP_STEPS_MAX; i++) {
        *last = step(s);
        if (*last != STEP_DONE) {
            return 0;
        }
        trace[i] = s->at;
    }
    for (int period = 1; period <= LOOP_STEPS_MAX / 3; period++) {
        int same = 0;
        while (same + period <= LOOP_STEPS_MAX &&
               compare(&trace[same], &trace[same + period]) == 0) {
            same++;
        }
        if (same + period > LOOP_STEPS_MAX) {
            return period;
        }
    }
    return 0;
}

/* Whether some number of periods is a round. */
static bool is_round(struct stepper *s, int period, struct round *round, struct loop *loop,
                     enum step *last)
{
    for (int times = 1; period > 0 && times <= PERIODS_MAX && times * period <= LOOP_STEPS_MAX;
         times++) {
        round->steps = times * period;
        if (closed(s, round, loop, last) && go_to_least(s, round, loop, last)) {
            return true;
        }
        if (*last != STEP_DONE) {
            break;
        }
    }
    return false;
}

enum loop_verdict loop_prove(pid_t thread, struct loop *loop, int *status, uint64_t *steps)
{
    static struct round round;
    struct stepper s = {.thread = thread, .status = status, .steps = steps};
    enum step last = STEP_UNKNOWN;
    if (!tracee_registers(thread, &s.at)) {
        return LOOP_UNKNOWN;
    }
    const int period = find_period(&s, &last);
    if (is_round(&s, period, &round, loop, &last)) {
        return LOOP_WAITS;
    }
    if (period > 0 && last == STEP_DONE) {
        const int longer = find_long_period(&s, &round, &last);
        if (longer > period && is_round(&s, longer, &round, loop, &last)) {
            return LOOP_WAITS;
        }
    }
    return last == STEP_OTHER ? LOOP_STOPPED : LOOP_UNKNOWN;
}

bool loop_is_over(pid_t thread, const struct loop *loop)
{
    for (int i = 0; i < loop->words; i++) {
        if (!has_value(thread, &loop->word[i])) {
            return true;
        }
    }
    return false;
}

static bool is_vdso(uint64_t address)
{
    return address >= BOX_VDSO_ADDRESS && address < BOX_VDSO_ADDRESS + BOX_VDSO_BYTES;
}

enum loop_verdict loop_step(pid_t thread, int count, int returns, const uint64_t code[2],
                            int *status, uint64_t *steps)
{
    struct stepper s = {.thread = thread, .status = status, .steps = steps};
    enum step last = STEP_DONE;
    if (!tracee_registers(thread, &s.at)) {
        return LOOP_UNKNOWN;
    }
    for (int i = 0; i < count && returns > 0 && last == STEP_DONE; i++) {
        const bool was_outside = !is_vdso(s.at.rip);
        last = step(&s);
        /* Whether a clock is read there by a call depends on the engine. */
        if (last == STEP_DONE && was_outside && is_vdso(s.at.rip)) {
            return LOOP_UNKNOWN;
        }
        const bool is_there =
            last == STEP_DONE && s.has_returned && s.at.rip >= code[0] && s.at.rip < code[1];
        returns -= is_there;
    }
    return last == STEP_DONE ? LOOP_WAITS : last == STEP_OTHER ? LOOP_STOPPED : LOOP_UNKNOWN;
}
