/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_text - an object as a line of text, between processes that may be of different builds.
 *
 * "object" and a word for each value in its order: hexadecimal digits, or "-" for one that there is
 * not. Values that a later build adds stand at the end, and are passed over by an earlier one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "kernel/nldev.h"

#define WORD "object"

size_t nldev_print(const struct nldev_resource *resource, char *text, size_t bytes)
{
    CHECK(resource->present >> NLDEV_VALUES == 0);
    size_t used = (size_t)snprintf(text, bytes, WORD);
    for (uint32_t i = 0; i < NLDEV_VALUES && used < bytes; i++) {
        used += (size_t)(resource->present >> i & 1
                             ? snprintf(text + used, bytes - used, " %" PRIx64, resource->values[i])
                             : snprintf(text + used, bytes - used, " -"));
    }
    used += used < bytes ? (size_t)snprintf(text + used, bytes - used, "\n") : 1;
    return used < bytes ? used : 0;
}

/* Up to 16 digits. NULL: there are none, or more. */
static const char *read_hex(const char *text, uint64_t *value)
{
    static const char digits[] = "0123456789abcdef";
    size_t count = 0;
    *value = 0;
    for (const char *digit; *text != '\0' && (digit = strchr(digits, *text)) != NULL; text++) {
        *value = *value << 4 | (uint64_t)(digit - digits);
        count++;
    }
    return count > 0 && count <= 16 ? text : NULL;
}

bool nldev_parse(const char *line, struct nldev_resource *resource)
{
    *resource = (struct nldev_resource){0};
    if (strncmp(line, WORD, sizeof(WORD) - 1) != 0) {
        return false;
    }
    const char *at = line + sizeof(WORD) - 1;
    for (enum nldev_value i = 0; i < NLDEV_VALUES && *at == ' '; i++) {
        uint64_t value;
        at++;
        if (*at == '-') {
            at++;
            continue;
        }
        at = read_hex(at, &value);
        if (at == NULL) {
            return false;
        }
        nldev_set(resource, i, value);
    }
    INVARIANTS(CHECK(resource->present >> NLDEV_VALUES == 0));
    return (*at == '\0' || *at == ' ') && (resource->present & 1u << NLDEV_NUMBER);
}
