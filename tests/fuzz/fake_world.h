/* SPDX-License-Identifier: BSD-2-Clause
 *
 * fake_world - the machine under a live NIC, made from the fuzzer's input: the process that serves
 * a port, the time, the addresses, a random number.
 *
 * The calls are taken by the linker (-Wl,--wrap=...).
 */
#ifndef TESTS_FUZZ_FAKE_WORLD_H
#define TESTS_FUZZ_FAKE_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fuzz/input.h"

#define FAKE_MS UINT64_C(1000000)

/* From now on all is answered from `input`, and it is an hour since the machine came up. */
void fake_world_begin(struct input *input);
/* The clock is the system's again, as the fuzzer needs it. */
void fake_world_end(void);
/* Answers are zeros from now on. */
void fake_world_calm(void);
void fake_world_pass(uint64_t ns);
/* Ports that were claimed and not given back, and questions that wait for an answer. */
uint32_t fake_world_claims(void);
uint32_t fake_world_questions(void);

#endif
