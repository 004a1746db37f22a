/* SPDX-License-Identifier: BSD-2-Clause */
#include "verbs/frames.h"

#include <pthread.h>
#include <unwind.h>

/* The bytes of a thread's stack. */
struct stack {
    uint64_t low, high;
};

static const struct stack *own_stack(void)
{
    static _Thread_local struct stack stack;
    static _Thread_local bool known;
    pthread_attr_t attributes;
    void *start;
    size_t bytes;
    if (!known && pthread_getattr_np(pthread_self(), &attributes) == 0) {
        known = true;
        if (pthread_attr_getstack(&attributes, &start, &bytes) == 0) {
            stack = (struct stack){.low = (uintptr_t)start, .high = (uintptr_t)start + bytes};
        }
        pthread_attr_destroy(&attributes);
    }
    return &stack;
}

static bool is_on(const struct stack *stack, uint64_t address)
{
    return address >= stack->low && address < stack->high;
}

/* A program may run functions on stacks of its own: there is nothing to be said then. */
static bool runs_on(const struct stack *stack)
{
    return is_on(stack, (uintptr_t)__builtin_frame_address(0));
}

/* A walk from the innermost call outwards, to the first that begins above `beyond`. */
struct walk {
    uint64_t beyond;
    uint64_t inner; /* The function of the call before, which ends where this one begins. */
    struct checker_frame frame;
};

/* The unwinder says where the frame begins, as seen from the one before. */
static _Unwind_Reason_Code look_at(struct _Unwind_Context *context, void *state)
{
    struct walk *walk = state;
    const uint64_t begin = _Unwind_GetCFA(context);
    if (begin > walk->beyond) {
        walk->frame = (struct checker_frame){.address = begin, .function = walk->inner};
        return _URC_END_OF_STACK;
    }
    walk->inner = _Unwind_GetRegionStart(context);
    return _URC_NO_REASON;
}

bool frame_find(const struct segment *segment, struct checker_frame *frame)
{
    const struct stack *stack = own_stack();
    struct walk walk = {.beyond = segment->address};
    if (segment->bytes == 0 || !is_on(stack, segment->address) || !runs_on(stack)) {
        return false;
    }
    _Unwind_Backtrace(look_at, &walk);
    *frame = walk.frame;
    frame->stack = walk.frame.address == 0 ? 0 : stack->low;
    return frame->stack != 0;
}

bool frame_may_be_live(const struct checker_frame *frame)
{
    struct walk walk = {.beyond = frame->address - 1};
    const struct stack *stack = own_stack();
    if (frame->stack != stack->low || !runs_on(stack)) {
        return true;
    }
    _Unwind_Backtrace(look_at, &walk);
    return walk.frame.address == frame->address && walk.frame.function == frame->function;
}
