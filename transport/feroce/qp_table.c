/* SPDX-License-Identifier: BSD-2-Clause */
#include "transport/feroce/qp_table.h"

#include <string.h>

#include "base/bytes.h"

void feroce_table_init(struct feroce_table *table, uint32_t qps, bool latches)
{
    CHECK(qps >= 1 && qps <= FEROCE_QPS_MAX && (qps & (qps - 1)) == 0);
    *table = (struct feroce_table){.qps = qps, .free_count = qps, .latches = latches};
    for (uint32_t i = 0; i < qps; i++) {
        table->free[i] = (uint8_t)i;
        table->contexts[i].local_qpn = FEROCE_FIRST_QPN + i;
    }
}

uint32_t feroce_table_find(const struct feroce_table *table, uint32_t qpn)
{
    const uint32_t index = qpn - FEROCE_FIRST_QPN;
    return index < table->qps ? index : FEROCE_QPS_MAX;
}

bool feroce_table_take(struct feroce_table *table, uint32_t *index)
{
    if (table->free_count == 0) {
        return false;
    }
    *index = table->free[table->first_free];
    table->first_free = (table->first_free + 1) % table->qps;
    table->free_count--;
    return true;
}

void feroce_table_return(struct feroce_table *table, uint32_t index)
{
    CHECK(table->free_count < table->qps);
    table->free[(table->first_free + table->free_count) % table->qps] = (uint8_t)index;
    table->free_count++;
}

bool feroce_table_open(struct feroce_table *table, uint32_t index, const struct feroce_side *remote)
{
    struct feroce_context *context = &table->contexts[index];
    CHECK(context->state == FEROCE_RESET);
    *context = (struct feroce_context){.state = table->latched ? FEROCE_INIT : FEROCE_RTS,
                                       .remote = *remote,
                                       .local_qpn = FEROCE_FIRST_QPN + index};
    return !table->latched;
}

bool feroce_table_modify(struct feroce_table *table, uint32_t index)
{
    struct feroce_context *context = &table->contexts[index];
    if (context->state != FEROCE_INIT || table->latched) {
        table->latched = table->latches;
        return false;
    }
    context->state = FEROCE_RTS;
    return true;
}

bool feroce_table_close(struct feroce_table *table, uint32_t index)
{
    struct feroce_context *context = &table->contexts[index];
    table->latched = false;
    if (context->state == FEROCE_RESET) {
        return false;
    }
    context->state = FEROCE_RESET;
    return true;
}

void feroce_table_fail(struct feroce_table *table, uint32_t index, uint8_t syndrome)
{
    struct feroce_context *context = &table->contexts[index];
    CHECK(context->state == FEROCE_RTS || context->state == FEROCE_ERROR);
    context->state = FEROCE_ERROR;
    context->syndrome = syndrome;
    if (context->first_syndrome == 0 && syndrome != FEROCE_SYNDROME_LIMIT) {
        context->first_syndrome = syndrome;
    }
}

static uint8_t *store_24(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value >> 16);
    store_be16(to + 1, (uint16_t)value);
    return to + 3;
}

void feroce_context_encode(const struct feroce_context *context, uint8_t out[FEROCE_CONTEXT_BYTES])
{
    memset(out, 0, FEROCE_CONTEXT_BYTES);
    out[0] = (uint8_t)context->state;
    store_be32(out + 1, context->remote.ip);
    uint8_t *at = store_24(out + 5, context->remote.qpn);
    at = store_24(at, context->local_qpn);
    at = store_24(at, context->remote.psn);
    at = store_24(at, context->local_psn.value);
    store_be64(at, context->remote.address);
    store_be32(at + 8, context->remote.rkey);
    at[12] = context->syndrome;
}
