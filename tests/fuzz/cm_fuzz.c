/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No bytes make cm_decode or cm_addresses_decode read outside them, and what they answer
 *         comes back from its encoding.
 * Method  libFuzzer gives the bytes in a buffer of exactly their size. A good message is encoded
 *         and decoded again: the same message; encoded again: the same bytes.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cm.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

static void check_addresses(const uint8_t *bytes)
{
    uint8_t exact[CM_ADDRESSES_BYTES], once[CM_ADDRESSES_BYTES], twice[CM_ADDRESSES_BYTES];
    struct cm_addresses addresses, again;

    memcpy(exact, bytes, sizeof(exact));
    if (!cm_addresses_decode(exact, &addresses)) {
        return;
    }
    cm_addresses_encode(&addresses, once);
    CHECK(cm_addresses_decode(once, &again));
    CHECK(again.ipv6 == addresses.ipv6 && again.source_port == addresses.source_port);
    CHECK(memcmp(again.source, addresses.source, 16) == 0);
    CHECK(memcmp(again.destination, addresses.destination, 16) == 0);
    cm_addresses_encode(&again, twice);
    CHECK(memcmp(twice, once, sizeof(once)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct cm_message message, again;
    uint8_t once[CM_MAD_BYTES], twice[CM_MAD_BYTES];

    const enum cm_verdict verdict = cm_decode(bytes, count, &message);
    CHECK(cm_verdict_name(verdict) != NULL);
    if (verdict != CM_GOOD) {
        return 0;
    }
    const size_t private_bytes = cm_private_bytes(message.attribute);
    const uint8_t *private_data = bytes + count - private_bytes;
    CHECK(memcmp(message.private_data, private_data, private_bytes) == 0);

    cm_encode(&message, once);
    CHECK(cm_decode(once, CM_MAD_BYTES, &again) == CM_GOOD);
    CHECK(memcmp(&again, &message, sizeof(message)) == 0);
    cm_encode(&again, twice);
    CHECK(memcmp(twice, once, CM_MAD_BYTES) == 0);
    check_addresses(message.private_data);
    return 0;
}
