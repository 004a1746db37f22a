/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    No descriptor makes efa_decode_send or efa_decode_receive read outside it, or answer with
 *         more than a request has.
 * Method  libFuzzer gives an entry in a buffer of exactly its size.
 */
#include "tests/fuzz/input.h"
#include "wire/efa.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    struct efa_send send;
    struct efa_receive receive;
    if (count == EFA_RECEIVE_ENTRY_BYTES) {
        efa_decode_receive(bytes, &receive);
        CHECK(receive.buffer.key >> 24 == 0 && receive.buffer.bytes <= UINT16_MAX);
    }
    if (count != EFA_SEND_ENTRY_BYTES) {
        return 0;
    }
    const enum srd_status status = efa_decode_send(bytes, &send);
    CHECK(srd_status_name((uint8_t)status) != NULL);
    CHECK(send.id == (bytes[0] | bytes[1] << 8) && send.operation <= 0xf);
    if (status == SRD_STATUS_OK) {
        CHECK(send.operation <= EFA_WRITE && send.local_count <= EFA_SGES_MAX);
        CHECK(send.inline_bytes <= EFA_INLINE_BYTES_MAX);
        CHECK(send.inline_bytes == 0 || send.inline_data + send.inline_bytes <= bytes + count);
    }
    return 0;
}
