/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_internal - declarations that the nldev*.c files share.
 */
#ifndef KERNEL_NLDEV_INTERNAL_H
#define KERNEL_NLDEV_INTERNAL_H

#include <linux/netlink.h>

#include "kernel/nldev.h"

/* The headers' own macros of these are signed. */
#define MESSAGE_HEADER   sizeof(struct nlmsghdr)
#define ATTRIBUTE_HEADER sizeof(struct nlattr)

/* Messages and attributes are padded to this. */
static inline size_t nldev_padded(size_t bytes)
{
    return (bytes + 3) & ~(size_t)3;
}

enum nldev_answers {
    NLDEV_ANSWERS_NOT, /* Refused. */
    NLDEV_ANSWERS_DEVICE,
    NLDEV_ANSWERS_PORT,
    NLDEV_ANSWERS_SYSTEM,
    NLDEV_ANSWERS_CHARDEV,
    NLDEV_ANSWERS_TOTALS,
    NLDEV_ANSWERS_OBJECTS,
    NLDEV_ANSWERS_COUNTERS,
    NLDEV_ANSWERS_COUNTER_NAMES,
};

struct nldev_command {
    enum nldev_answers answers;
    bool dumps;           /* May be asked about all there are. */
    enum nldev_kind kind; /* OBJECTS. */
};

/* nldev_request.c */
const struct nldev_command *nldev_command_of(const struct nldev_request *request);
bool nldev_is_control(const struct nldev_request *request);

/* nldev_rows.c: the attribute by which one of the kind is asked for. */
uint16_t nldev_number_attribute(enum nldev_kind kind);
/* One message for one object. */
void nldev_put_object(struct nldev_out *out, const struct nldev_request *request,
                      enum nldev_kind kind, const struct nldev_resource *resource);

/* nldev.c: attributes. An attribute that does not fit makes the message `full`. */
void nldev_put(struct nldev_out *out, uint16_t type, const void *value, size_t bytes);
void nldev_put_u8(struct nldev_out *out, uint16_t type, uint8_t value);
void nldev_put_u32(struct nldev_out *out, uint16_t type, uint32_t value);
void nldev_put_u64(struct nldev_out *out, uint16_t type, uint64_t value);
/* Attributes that are put between these two calls lie in one attribute. */
size_t nldev_begin_nest(struct nldev_out *out, uint16_t type);
void nldev_end_nest(struct nldev_out *out, size_t nest);

#endif
