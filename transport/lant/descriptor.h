/* SPDX-License-Identifier: BSD-2-Clause
 *
 * descriptor - a work descriptor of the DMA engine, and the three writes by which one is submitted.
 *
 * Purpose    Converts the 32 bytes of a descriptor into its fields and back; judges a program's
 *            request.
 * Inputs     Bytes in memory, or writes of a program to the push slave of its queue.
 * Outputs    Fields and a verdict, or bytes.
 * Ownership  Values only; a submission belongs to the owner of its queue.
 * Limits     1 to 2^26 - 1 bytes: 26 bits cannot say the 64 MB of the thesis.
 * Source     Lant 3.3.4.2, 5.2.3 and Table 5.2. Bits 29 to 26 of `control`, which are reserved
 *            there, are our choice.
 */
#ifndef TRANSPORT_LANT_DESCRIPTOR_H
#define TRANSPORT_LANT_DESCRIPTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/lant.h"

#define LANT_DESCRIPTOR_BYTES 32u
#define LANT_TRANSFER_MAX     ((1u << 26) - 1)
#define LANT_BASE_ALIGNMENT   8u /* Both bases'; the length is any. */

/* Where the fields stand. */
#define LANT_DESCRIPTOR_NEXT        0x00u
#define LANT_DESCRIPTOR_SOURCE      0x08u
#define LANT_DESCRIPTOR_DESTINATION 0x10u
#define LANT_DESCRIPTOR_CONTROL     0x18u
#define LANT_DESCRIPTOR_STATUS      0x1cu

/* Bits of `status`. */
#define LANT_STATUS_COMPLETE       (UINT32_C(1) << 31) /* All data has been pushed, no more. */
#define LANT_STATUS_DECODE_ERROR   (UINT32_C(1) << 30) /* Nothing stands at the address. */
#define LANT_STATUS_SLAVE_ERROR    (UINT32_C(1) << 29) /* The target refused the data. */
#define LANT_STATUS_INTERNAL_ERROR (UINT32_C(1) << 28) /* No answer, or none but NACKs. */
#define LANT_STATUS_ERRORS                                                                         \
    (LANT_STATUS_DECODE_ERROR | LANT_STATUS_SLAVE_ERROR | LANT_STATUS_INTERNAL_ERROR)

struct lant_descriptor {
    uint64_t next; /* The following descriptor's address. */
    uint64_t source;
    uint64_t destination; /* Global. */
    uint32_t bytes;
    uint32_t status;
    uint8_t priority; /* 0 to 3. */
    bool keyhole;     /* All data go to one address, with sequence numbers. */
    bool no_register;
};

/* The fate of a program's request. */
enum lant_submit {
    LANT_SUBMIT_COMMITTED,
    LANT_SUBMIT_PART, /* A write was taken; the control write is still to come. */
    LANT_SUBMIT_NO_BYTES,
    LANT_SUBMIT_RESERVED,  /* A reserved bit is set. */
    LANT_SUBMIT_UNALIGNED, /* A base is no multiple of 8. */
    LANT_SUBMIT_RANGE,     /* Too long, or past the end of the node's or of our addresses. */
    LANT_SUBMIT_ORDER,     /* Not source, destination, control: all three must come again. */
    LANT_SUBMIT_PLACE,     /* No register of ours, or one that programs do not write. */
    LANT_SUBMIT_FULL,      /* The queue is; nothing is kept. */
    LANT_SUBMIT_COUNT,
};

/* `control` holds no reserved bits; the descriptor is otherwise of any worth. */
uint32_t lant_descriptor_control(const struct lant_descriptor *descriptor);
void lant_descriptor_encode(const struct lant_descriptor *descriptor,
                            uint8_t bytes[LANT_DESCRIPTOR_BYTES]);
/* LANT_SUBMIT_COMMITTED: it may be queued. With any verdict the fields are filled in. */
MUST_USE enum lant_submit lant_descriptor_decode(const uint8_t bytes[LANT_DESCRIPTOR_BYTES],
                                                 struct lant_descriptor *descriptor);
MUST_USE enum lant_submit lant_descriptor_judge(const struct lant_descriptor *descriptor);

/* The words of a descriptor that have been written; zeroed memory: none. */
struct lant_submission {
    uint64_t source, destination;
    bool has_source, has_destination;
};

/* A program writes `value` to the place `at` of its queue's push slave. With COMMITTED the
 * submission is in `descriptor`, which is good, and the next one may begin. Every refusal forgets
 * the earlier writes. */
MUST_USE enum lant_submit lant_submission_write(struct lant_submission *submission, uint32_t at,
                                                uint64_t value, struct lant_descriptor *descriptor);

#endif
