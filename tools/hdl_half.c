/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_half.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

/* -- Words --------------------------------------------------------------------------------------*/

/* X(name, greatest value) of the words that are numbers. */
#define NUMBERS(X)                                                                                 \
    X(qpn, 0xffffff)                                                                               \
    X(psn, 0xffffff)                                                                               \
    X(address, UINT64_MAX)                                                                         \
    X(rkey, UINT32_MAX)

static bool read_number(const char *text, size_t length, uint64_t most, uint64_t *value)
{
    char copy[32], *end;
    if (length == 0 || length >= sizeof(copy) || text[0] < '0' || text[0] > '9') {
        return false;
    }
    memcpy(copy, text, length);
    copy[length] = '\0';
    *value = strtoull(copy, &end, 0);
    return *end == '\0' && *value <= most;
}

static bool read_ip(const char *text, size_t length, uint32_t *ip)
{
    uint32_t read = 0;
    for (int i = 0; i < 4; i++) {
        const char *dot = i < 3 ? memchr(text, '.', length) : text + length;
        uint64_t octet;
        if (dot == NULL || !read_number(text, (size_t)(dot - text), 255, &octet)) {
            return false;
        }
        read = read << 8 | (uint32_t)octet;
        length -= i < 3 ? (size_t)(dot - text) + 1 : length;
        text = dot + 1;
    }
    *ip = read;
    return read != 0;
}

/* One word, "name=value". */
static bool read_word(const char *word, size_t length, struct hdl_half *half)
{
    const char *equals = memchr(word, '=', length);
    if (equals == NULL) {
        return false;
    }
    const size_t name_length = (size_t)(equals - word), value_length = length - name_length - 1;
    if (name_length == 2 && memcmp(word, "ip", 2) == 0) {
        return read_ip(equals + 1, value_length, &half->ip);
    }
#define READ_NUMBER(name, most)                                                                    \
    if (name_length == strlen(#name) && memcmp(word, #name, name_length) == 0) {                   \
        uint64_t value;                                                                            \
        const bool good = read_number(equals + 1, value_length, (most), &value);                   \
        half->name = good ? (__typeof__(half->name))value : half->name;                            \
        return good;                                                                               \
    }
    NUMBERS(READ_NUMBER)
    return false;
}

bool pair_read_words(const char *text, struct hdl_half *half, char *wrong)
{
    struct hdl_half read = {.qpn = UINT32_MAX};
    text += strspn(text, " ,");
    while (*text != '\0' && *text != '\n' && *text != '\r') {
        const size_t length = strcspn(text, " ,\n\r");
        if (!read_word(text, length, &read)) {
            snprintf(wrong, PAIR_WORDS_BYTES, "'%.*s' is no ip, qpn, psn, address or rkey",
                     (int)(length < 64 ? length : 64), text);
            return false;
        }
        text += length;
        text += strspn(text, " ,");
    }
    if (read.ip == 0 || read.qpn == UINT32_MAX) {
        snprintf(wrong, PAIR_WORDS_BYTES, "ip and qpn are needed");
        return false;
    }
    *half = read;
    return true;
}

const char *pair_words(const struct hdl_half *half, char *words)
{
    snprintf(words, PAIR_WORDS_BYTES,
             "ip=%u.%u.%u.%u qpn=0x%" PRIx32 " psn=0x%" PRIx32 " address=0x%" PRIx64
             " rkey=0x%" PRIx32,
             half->ip >> 24, half->ip >> 16 & 0xff, half->ip >> 8 & 0xff, half->ip & 0xff,
             half->qpn, half->psn, half->address, half->rkey);
    return words;
}

/* -- ibv_rc_pingpong ----------------------------------------------------------------------------*/

enum {
    AT_QPN = 5,
    AT_PSN = 12,
    AT_GID = 19,
    GID_DIGITS = 32,
};
#define MAPPED "00000000000000000000ffff" /* An IPv4 address in a GID. */

static bool read_digits(const char *text, int digits, uint32_t *value)
{
    *value = 0;
    for (int i = 0; i < digits; i++) {
        const char digit = text[i];
        if (isxdigit((unsigned char)digit) == 0) {
            return false;
        }
        *value = *value << 4 | (uint32_t)(digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    return true;
}

bool pair_read_pingpong(const char message[PAIR_PINGPONG_BYTES], struct hdl_half *half)
{
    struct hdl_half read = {0};
    uint32_t lid;
    const char *gid = message + AT_GID;
    if (message[AT_QPN - 1] != ':' || message[AT_PSN - 1] != ':' || message[AT_GID - 1] != ':' ||
        gid[GID_DIGITS] != '\0' || !read_digits(message, 4, &lid) ||
        !read_digits(message + AT_QPN, 6, &read.qpn) ||
        !read_digits(message + AT_PSN, 6, &read.psn) || memcmp(gid, MAPPED, strlen(MAPPED)) != 0 ||
        !read_digits(gid + strlen(MAPPED), 8, &read.ip) || read.ip == 0) {
        return false;
    }
    *half = read;
    return true;
}

void pair_pingpong(const struct hdl_half *half, char message[PAIR_PINGPONG_BYTES])
{
    snprintf(message, PAIR_PINGPONG_BYTES, "0000:%06" PRIx32 ":%06" PRIx32 ":" MAPPED "%08" PRIx32,
             half->qpn & 0xffffff, half->psn & 0xffffff, half->ip);
}
