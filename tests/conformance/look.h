/* SPDX-License-Identifier: BSD-2-Clause
 *
 * look - programs that look at every byte that they are told, for MemorySanitizer to judge.
 *
 * Goal       No byte that the library or the NIC wrote counts as uninitialised, and no call of the
 *            library is accused.
 * Method     Each answer goes to memory that is uninitialised, and then there is a branch on each
 *            of its bytes. Before each call the stack below the program, and memory that was freed,
 *            are full of uninitialised bytes, which the library will use.
 */
#ifndef TESTS_CONFORMANCE_LOOK_H
#define TESTS_CONFORMANCE_LOOK_H

#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned set; /* Bytes that are not zero. */

static void look(const void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        if (((const volatile uint8_t *)memory)[i] != 0) {
            set++;
        }
    }
}

static void ignore(uint64_t one, uint64_t two, uint64_t three, uint64_t four, uint64_t five)
{
    (void)one, (void)two, (void)three, (void)four, (void)five;
}

/* Dirties the memory that the next call will find on its stack and in its allocations. Dirties also
 * the registers in which functions of ours would find their arguments. */
__attribute__((noinline)) static void soil(void)
{
    uint8_t stack[1 << 16];
    __asm__ volatile("" : : "r"(stack) : "memory");
    for (size_t bytes = 16; bytes <= 1 << 16; bytes *= 2) {
        void *volatile memory = malloc(bytes);
        free(memory);
    }
    uint64_t *words = malloc(5 * sizeof(*words));
    void (*volatile call)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t) = ignore;
    call(words[0], words[1], words[2], words[3], words[4]);
    free(words);
}

/* A call that has to succeed, with the number of its line. */
#define DO(call)                                                                                   \
    do {                                                                                           \
        soil();                                                                                    \
        if (!(call)) {                                                                             \
            fprintf(stderr, "line %d: %s\n", __LINE__, #call);                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)
#define LOOK(thing) look(&(thing), sizeof(thing))

static struct ibv_context *context;

static void open_device(void)
{
    int count;
    struct ibv_device **devices;
    DO((devices = ibv_get_device_list(&count)) != NULL);
    LOOK(count);
    DO((context = ibv_open_device(devices[0])) != NULL);
    ibv_free_device_list(devices);
}

#endif
