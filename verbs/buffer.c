/* SPDX-License-Identifier: BSD-2-Clause
 *
 * buffer - memory that the library allocates for a program to register, and the call that registers
 * memory of any kind.
 *
 * A device chooses where such a buffer lies; any memory of the program is as good for ours. It is
 * no dma-buf, so there is none to export, and none can be registered.
 */
#include <sys/mman.h>

#include "verbs/internal.h"
#include "verbs/newer.h"

struct ibv_buf {
    struct ibv_pd *pd;
    uint8_t *memory;
    size_t bytes;
};

EXPORT void *ibv_alloc_buf(struct ibv_pd *pd, size_t bytes, struct ibv_buf **buffer)
{
    struct ibv_buf *made = object_make(pd->context, sizeof(*made));
    if (made == NULL) {
        return NULL;
    }
    /* Pages of its own: EINVAL of none, ENOMEM of too many. */
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        const int reason = errno;
        object_free(pd->context, made);
        return fail(reason);
    }
    CHECK(bytes > 0); /* mmap refuses none. */
    *made = (struct ibv_buf){.pd = pd, .memory = memory, .bytes = bytes};
    *buffer = made;
    initialised(buffer, sizeof(*buffer));
    return memory;
}

EXPORT void ibv_free_buf(struct ibv_buf *buffer)
{
    munmap(buffer->memory, buffer->bytes);
    object_free(buffer->pd->context, buffer);
}

EXPORT int ibv_export_buf_dmabuf_fd(struct ibv_buf *buffer)
{
    (void)buffer;
    errno = ENODATA;
    return -1;
}

/* -- Registering --------------------------------------------------------------------------------*/

static bool is_inside(const struct ibv_buf *buffer, const void *memory, size_t bytes)
{
    const uintptr_t start = (uintptr_t)buffer->memory, asked = (uintptr_t)memory;
    return asked >= start && asked - start <= buffer->bytes &&
           bytes <= buffer->bytes - (asked - start);
}

/* The request's range lies in the buffer that it names. */
static bool fits_buffer(const struct ibv_pd *pd, const struct mr_init_attr_59 *attr)
{
    return (attr->comp_mask & REG_MR_ADDR) && !(attr->comp_mask & (REG_MR_FD | REG_MR_FD_OFFSET)) &&
           attr->buf->pd == pd && is_inside(attr->buf, attr->addr, attr->length);
}

EXPORT struct ibv_mr *ibv_reg_mr_ex(struct ibv_pd *pd, struct ibv_mr_init_attr *init)
{
    const struct mr_init_attr_59 *attr = (const void *)init;
    const uint64_t mask = attr->comp_mask;
    const uint64_t offered = REG_MR_IOVA | REG_MR_ADDR | REG_MR_FD | REG_MR_FD_OFFSET | REG_MR_BUF;
    if ((mask & REG_MR_BUF) && !fits_buffer(pd, attr)) {
        return fail(EINVAL);
    }
    if (mask & ~offered) {
        return fail(EOPNOTSUPP);
    }
    if (mask & REG_MR_FD) {
        if ((mask & REG_MR_ADDR) || !(mask & REG_MR_FD_OFFSET) || !(mask & REG_MR_IOVA)) {
            return fail(EINVAL);
        }
        return ibv_reg_dmabuf_mr(pd, attr->fd_offset, attr->length, attr->iova, attr->fd,
                                 attr->access);
    }
    if (!(mask & REG_MR_ADDR) || (mask & REG_MR_FD_OFFSET)) {
        return fail(EINVAL);
    }
    const uint64_t start = (mask & REG_MR_IOVA) ? attr->iova : (uintptr_t)attr->addr;
    return ibv_reg_mr_iova2(pd, attr->addr, attr->length, start, (unsigned int)attr->access);
}

EXPORT struct ibv_mr *ibv_reg_buf_mr(struct ibv_pd *pd, struct ibv_buf *buffer, void *memory,
                                     size_t bytes, int access)
{
    struct mr_init_attr_59 attr = {
        .length = bytes,
        .access = access,
        .comp_mask = REG_MR_ADDR | REG_MR_BUF,
        .addr = memory,
        .buf = buffer,
    };
    return ibv_reg_mr_ex(pd, (void *)&attr);
}
