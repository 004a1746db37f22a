/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/lant/shm_access.h"

enum lant_shm_access_verdict lant_shm_access_judge(const struct lant_shm_access *access)
{
    const uint32_t bytes = access->bytes;
    if (bytes != 1 && bytes != 2 && bytes != 4 &&
        (bytes == 0 || bytes % 8 != 0 || bytes > LANT_SHM_ACCESS_MAX)) {
        return LANT_SHM_ACCESS_BYTES_WRONG;
    }
    if (access->lock && bytes > 8) {
        return LANT_SHM_ACCESS_LOCK_LONG;
    }
    if (access->atomic != LANT_NO_ATOMIC &&
        (access->atomic > LANT_COMPARE_SWAP || bytes != 8 || access->store || access->lock)) {
        return LANT_SHM_ACCESS_ATOMIC_WRONG;
    }
    if (access->address % (bytes < 8 ? bytes : 8) != 0 ||
        /* Beyond the last byte of a node is none of the next one's. */
        lant_global_address(access->address) > LANT_ADDRESSES - bytes) {
        return LANT_SHM_ACCESS_UNALIGNED;
    }
    return LANT_SHM_ACCESS_GOOD;
}

/* Bytes of the access in one beat. */
static uint32_t beat_bytes(const struct lant_shm_access *access)
{
    return access->bytes < 8 ? access->bytes : 8;
}

struct lant_shm_request lant_shm_access_beat(const struct lant_shm_access *access, uint32_t beat,
                                             const uint8_t *bytes)
{
    const uint32_t count = beat_bytes(access);
    CHECK(lant_shm_access_judge(access) == LANT_SHM_ACCESS_GOOD);
    CHECK(beat < lant_shm_access_beats(access) && (bytes != NULL) == access->store);
    struct lant_shm_request request = {
        .address = access->address + 8 * (uint64_t)beat,
        .timeout = access->timeout,
        .token = access->token,
        .beat = (uint16_t)beat,
        .size = (uint8_t)__builtin_ctz(count),
        .bus_id = access->bus_id,
        .protection = access->protection,
        .store = access->store,
        .lock = access->lock,
        .accelerator = access->accelerator,
        .atomic = access->atomic,
        .compare = access->compare,
        .data = access->atomic != LANT_NO_ATOMIC ? access->operand : 0,
    };
    const uint32_t lane = (uint32_t)(request.address & 7);
    request.strobe = (uint8_t)(((1u << count) - 1u) << lane);
    for (uint32_t i = 0; i < count && access->store; i++) {
        request.data |= (uint64_t)bytes[8 * beat + i] << 8 * (lane + i);
    }
    return request;
}

struct lant_shm_gather lant_shm_gather_begin(const struct lant_shm_access *access)
{
    const uint16_t beats = (uint16_t)lant_shm_access_beats(access);
    return (struct lant_shm_gather){.unanswered = beats, .unfinished = beats};
}

static bool is_success(uint8_t response)
{
    return response == LANT_OKAY || response == LANT_EXOKAY;
}

void lant_shm_gather_add(struct lant_shm_gather *gather, const struct lant_shm_access *access,
                         const struct lant_shm_done *done, uint8_t *bytes)
{
    const uint32_t lane = (uint32_t)(done->address & 7);
    CHECK(done->token == access->token && done->beat < lant_shm_access_beats(access));
    CHECK((bytes != NULL) == !access->store);
    if (lant_shm_done_on_bus(done)) {
        CHECK(gather->unanswered > 0);
        gather->unanswered--;
        gather->response = is_success(gather->response) ? done->response : gather->response;
        gather->fake |= done->fake;
        for (uint32_t i = 0; i < beat_bytes(access) && !access->store; i++) {
            bytes[8u * done->beat + i] = (uint8_t)(done->data >> 8 * (lane + i));
        }
    }
    if (lant_shm_done_final(done)) {
        CHECK(gather->unfinished > 0);
        gather->unfinished--;
        gather->denied |= done->kind == LANT_SHM_DENIED;
    }
}
