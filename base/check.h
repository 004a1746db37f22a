/* SPDX-License-Identifier: BSD-2-Clause
 *
 * check - assertions that stay on in every build, and the attributes everyone uses.
 *
 * CHECK asserts our own thoughts; what a peer or a program may choose is judged, never checked.
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

/* Prints where and what, then aborts the program. */
_Noreturn void check_failed(const char *file, int line, const char *what);

#define CHECK(condition)  ((condition) ? (void)0 : check_failed(__FILE__, __LINE__, #condition))
#define UNREACHABLE(what) check_failed(__FILE__, __LINE__, "unreachable: " what)

/* An engine's check of its own state, called where a call begins and where it ends:
 * INVARIANTS(cq_check(cq)). The call is made in builds for tests (NONIC_CHECKED: the objects that
 * tests link, and all of a sanitized build). The builds that ship compile it, but never call it. */
#ifdef NONIC_CHECKED
#define IS_CHECKED 1
#else
#define IS_CHECKED 0
#endif
#define INVARIANTS(call) (IS_CHECKED ? (void)(call) : (void)0)

#define ALWAYS_INLINE       inline __attribute__((always_inline))
#define MUST_USE            __attribute__((warn_unused_result))
#define LIKELY(condition)   __builtin_expect(!!(condition), 1)
#define UNLIKELY(condition) __builtin_expect(!!(condition), 0)
#define COUNT_OF(array)     (sizeof(array) / sizeof((array)[0]))
#define CONTAINER_OF(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#define CONTAINER_OF_CONST(pointer, type, member)                                                  \
    ((const type *)(const void *)((const char *)(pointer)-offsetof(type, member)))

#endif
