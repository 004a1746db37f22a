/* SPDX-License-Identifier: BSD-2-Clause
 *
 * crc32c - see crc32c.h.
 *
 * Packets are short, so the processor's own instruction is as good as anything: eight bytes in the
 * time of three cycles, without preparation. The library serves processors that lack it. Where they
 * have wide registers, the library's way is faster from 256 bytes on; but its caller has to release
 * them (wire/forth.c), and to copy words whose highest byte comes first, which takes as long.
 */
#include "wire/crc32c.h"

#include <isa-l/crc.h>
#include <stdbool.h>
#include <string.h>

/* In here `crc` is complemented, as the code's register is. */

static uint32_t by_library(uint32_t crc, const uint8_t *bytes, size_t count)
{
    return crc32_iscsi((uint8_t *)(uintptr_t)bytes, (int)count, crc);
}

static uint32_t words_by_library(uint32_t crc, const uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const uint64_t turned = __builtin_bswap64(words[i]);
        crc = by_library(crc, (const uint8_t *)&turned, sizeof(turned));
    }
    return crc;
}

#if defined(__x86_64__) && !defined(CRC32C_BY_LIBRARY) /* A test builds it like that. */
#define INSTRUCTION __attribute__((target("sse4.2")))

static bool has_instruction(void)
{
    return __builtin_cpu_supports("sse4.2");
}

INSTRUCTION static uint32_t by_instruction(uint32_t crc, const uint8_t *bytes, size_t count)
{
    uint64_t wide = crc;
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t eight;
        memcpy(&eight, bytes, sizeof(eight));
        wide = __builtin_ia32_crc32di(wide, eight);
    }
    crc = (uint32_t)wide;
    for (size_t i = 0; i < count; i++) {
        crc = __builtin_ia32_crc32qi(crc, bytes[i]);
    }
    return crc;
}

INSTRUCTION static uint32_t words_by_instruction(uint32_t crc, const uint64_t *words, size_t count)
{
    uint64_t wide = crc;
    for (size_t i = 0; i < count; i++) {
        wide = __builtin_ia32_crc32di(wide, __builtin_bswap64(words[i]));
    }
    return (uint32_t)wide;
}
#else
#define by_instruction       by_library
#define words_by_instruction words_by_library

static bool has_instruction(void)
{
    return false;
}
#endif

uint32_t crc32c(uint32_t crc, const void *bytes, size_t count)
{
    return ~(has_instruction() ? by_instruction(~crc, bytes, count)
                               : by_library(~crc, bytes, count));
}

uint32_t crc32c_words(uint32_t crc, const uint64_t *words, size_t count)
{
    return ~(has_instruction() ? words_by_instruction(~crc, words, count)
                               : words_by_library(~crc, words, count));
}
