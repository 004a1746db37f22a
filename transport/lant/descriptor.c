/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/descriptor.h"

/* `control`. */
#define BYTES_MASK       LANT_TRANSFER_MAX
#define PRIORITY_AT      26
#define KEYHOLE          (UINT32_C(1) << 28)
#define NO_REGISTER      (UINT32_C(1) << 29)
#define CONTROL_RESERVED (UINT32_C(3) << 30)
#define STATUS_RESERVED  ((UINT32_C(1) << 28) - 1)
#define PRIORITY_MAX     3u

static void put(uint8_t *bytes, uint32_t count, uint64_t value)
{
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = (uint8_t)(value >> 8 * i);
    }
}

static uint64_t get(const uint8_t *bytes, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t i = 0; i < count; i++) {
        value |= (uint64_t)bytes[i] << 8 * i;
    }
    return value;
}

uint32_t lant_descriptor_control(const struct lant_descriptor *descriptor)
{
    CHECK(descriptor->bytes <= BYTES_MASK && descriptor->priority <= PRIORITY_MAX);
    return descriptor->bytes | (uint32_t)descriptor->priority << PRIORITY_AT |
           (descriptor->keyhole ? KEYHOLE : 0) | (descriptor->no_register ? NO_REGISTER : 0);
}

static void take_control(struct lant_descriptor *descriptor, uint32_t control)
{
    descriptor->bytes = control & BYTES_MASK;
    descriptor->priority = (uint8_t)(control >> PRIORITY_AT & PRIORITY_MAX);
    descriptor->keyhole = (control & KEYHOLE) != 0;
    descriptor->no_register = (control & NO_REGISTER) != 0;
}

void lant_descriptor_encode(const struct lant_descriptor *descriptor,
                            uint8_t bytes[LANT_DESCRIPTOR_BYTES])
{
    CHECK((descriptor->status & STATUS_RESERVED) == 0);
    put(bytes + LANT_DESCRIPTOR_NEXT, 8, descriptor->next);
    put(bytes + LANT_DESCRIPTOR_SOURCE, 8, descriptor->source);
    put(bytes + LANT_DESCRIPTOR_DESTINATION, 8, descriptor->destination);
    put(bytes + LANT_DESCRIPTOR_CONTROL, 4, lant_descriptor_control(descriptor));
    put(bytes + LANT_DESCRIPTOR_STATUS, 4, descriptor->status);
}

enum lant_submit lant_descriptor_decode(const uint8_t bytes[LANT_DESCRIPTOR_BYTES],
                                        struct lant_descriptor *descriptor)
{
    const uint32_t control = (uint32_t)get(bytes + LANT_DESCRIPTOR_CONTROL, 4);
    const uint32_t status = (uint32_t)get(bytes + LANT_DESCRIPTOR_STATUS, 4);
    *descriptor = (struct lant_descriptor){
        .next = get(bytes + LANT_DESCRIPTOR_NEXT, 8),
        .source = get(bytes + LANT_DESCRIPTOR_SOURCE, 8),
        .destination = get(bytes + LANT_DESCRIPTOR_DESTINATION, 8),
        .status = status & ~STATUS_RESERVED,
    };
    take_control(descriptor, control);
    if ((control & CONTROL_RESERVED) != 0 || (status & STATUS_RESERVED) != 0) {
        return LANT_SUBMIT_RESERVED;
    }
    return lant_descriptor_judge(descriptor);
}

enum lant_submit lant_descriptor_judge(const struct lant_descriptor *descriptor)
{
    if (descriptor->priority > PRIORITY_MAX) {
        return LANT_SUBMIT_RESERVED;
    }
    if (descriptor->bytes == 0) {
        return LANT_SUBMIT_NO_BYTES;
    }
    if (((descriptor->source | descriptor->destination) & (LANT_BASE_ALIGNMENT - 1)) != 0) {
        return LANT_SUBMIT_UNALIGNED;
    }
    /* A packet's address has 42 bits: past the last one it would wrap to the node's first. All data
     * of a keyhole go to the 8 bytes at the destination. */
    const uint32_t reach = descriptor->keyhole ? LANT_BASE_ALIGNMENT : descriptor->bytes;
    if (descriptor->bytes > LANT_TRANSFER_MAX ||
        reach > LANT_ADDRESSES - lant_global_address(descriptor->destination) ||
        descriptor->bytes - 1 > UINT64_MAX - descriptor->source) {
        return LANT_SUBMIT_RANGE;
    }
    return LANT_SUBMIT_COMMITTED;
}

static enum lant_submit commit(const struct lant_submission *written, uint64_t control,
                               struct lant_descriptor *descriptor)
{
    if (!written->has_source || !written->has_destination) {
        return LANT_SUBMIT_ORDER;
    }
    /* A 64-bit store also writes the status beside it; a program has no bits there. */
    if (control >> 32 != 0 || (control & CONTROL_RESERVED) != 0) {
        return LANT_SUBMIT_RESERVED;
    }
    *descriptor =
        (struct lant_descriptor){.source = written->source, .destination = written->destination};
    take_control(descriptor, (uint32_t)control);
    return lant_descriptor_judge(descriptor);
}

enum lant_submit lant_submission_write(struct lant_submission *submission, uint32_t at,
                                       uint64_t value, struct lant_descriptor *descriptor)
{
    const struct lant_submission written = *submission;
    *submission = (struct lant_submission){0};
    switch (at) {
    case LANT_DESCRIPTOR_SOURCE:
        /* A program that begins anew has given up the unfinished submission. */
        *submission = (struct lant_submission){.source = value, .has_source = true};
        return LANT_SUBMIT_PART;
    case LANT_DESCRIPTOR_DESTINATION:
        if (!written.has_source || written.has_destination) {
            return LANT_SUBMIT_ORDER;
        }
        *submission = written;
        submission->destination = value;
        submission->has_destination = true;
        return LANT_SUBMIT_PART;
    case LANT_DESCRIPTOR_CONTROL: return commit(&written, value, descriptor);
    default: return LANT_SUBMIT_PLACE;
    }
}
