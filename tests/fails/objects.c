/* SPDX-License-Identifier: BSD-2-Clause
 *
 * objects - every kind of object is made, changed and destroyed.
 */
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/fails/program.h"

/* Not in the headers of every rdma-core: FLUSH, global and persistent. */
#define ACCESS_KEPT (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | 1 << 8 | 1 << 9)

#define LARGE_BYTES ((size_t)300 << 20)
#define FILE_BYTES  8192
/* More than have memory of their own (verbs/blocks.c). */
#define MANY 40

/* Not in the headers of every rdma-core. */
struct ibv_buf;
void *ibv_alloc_buf(struct ibv_pd *pd, size_t bytes, struct ibv_buf **buffer);
void ibv_free_buf(struct ibv_buf *buffer);

/* -- Memory -------------------------------------------------------------------------------------*/

static struct ibv_mr *register_all(struct program *p, void *memory, size_t bytes, int access)
{
    return ibv_reg_mr(p->pd, memory, bytes, access);
}

/* Too large to be brought in, so that it is looked up. */
static void use_large_region(struct program *p)
{
    void *memory = mmap(NULL, LARGE_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    must(memory != MAP_FAILED, "mmap", errno);
    struct ibv_mr *mr = POINTER(register_all(p, memory, LARGE_BYTES, ACCESS_ALL));
    ZERO(ibv_dereg_mr(mr));
    munmap(memory, LARGE_BYTES);
}

static int change_rights(struct ibv_mr *mr)
{
    return ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_LOCAL_WRITE) == 0
               ? 0
               : errno;
}

static void use_file_region(struct program *p)
{
    const int fd = memfd_create("program", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0, "memfd_create", errno);
    void *memory = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(memory != MAP_FAILED, "mmap", errno);
    struct ibv_mr *mr = POINTER(register_all(p, memory, FILE_BYTES, ACCESS_ALL));
    ZERO(change_rights(mr));
    ZERO(ibv_dereg_mr(mr));
    munmap(memory, FILE_BYTES);
    close(fd);
}

/* A region of a file that stays, for FLUSHes that make it persistent, unless files are memory. */
static void use_kept_region(struct program *p)
{
    char name[] = "/var/tmp/nonic-fails-XXXXXX";
    struct statfs system;
    const int fd = mkostemp(name, O_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, FILE_BYTES) == 0 && fstatfs(fd, &system) == 0, "mkostemp", errno);
    void *memory = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(memory != MAP_FAILED, "mmap", errno);
    if (system.f_type != TMPFS_MAGIC) {
        struct ibv_mr *mr = POINTER(register_all(p, memory, FILE_BYTES, ACCESS_KEPT));
        ZERO(ibv_dereg_mr(mr));
    }
    munmap(memory, FILE_BYTES);
    close(fd);
    unlink(name);
}

static void use_regions(struct program *p)
{
    struct ibv_buf *buffer;
    struct ibv_sge sge = {.length = 4096};
    use_large_region(p);
    use_file_region(p);
    use_kept_region(p);
    struct ibv_mr *null = POINTER(ibv_alloc_null_mr(p->pd));
    ZERO(ibv_dereg_mr(null));
    struct ibv_mr *paged =
        POINTER(register_all(p, p->memory, MEMORY_BYTES, ACCESS_ALL | IBV_ACCESS_ON_DEMAND));
    sge.addr = (uintptr_t)p->memory;
    sge.lkey = paged->lkey;
    ZERO(ibv_advise_mr(p->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
    ZERO(ibv_dereg_mr(paged));
    void *memory = POINTER(ibv_alloc_buf(p->pd, 4096, &buffer));
    struct ibv_mr *mr = POINTER(register_all(p, memory, 4096, ACCESS_ALL));
    ZERO(ibv_dereg_mr(mr));
    ibv_free_buf(buffer);
    struct ibv_mw *window = POINTER(ibv_alloc_mw(p->pd, IBV_MW_TYPE_1));
    ZERO(ibv_dealloc_mw(window));
}

static void use_device_memory(struct program *p)
{
    struct ibv_alloc_dm_attr attr = {.length = 4096};
    struct ibv_dm *dm = POINTER(ibv_alloc_dm(p->context, &attr));
    struct ibv_mr *mr =
        POINTER(ibv_reg_dm_mr(p->pd, dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ZERO_BASED));
    ZERO(ibv_dereg_mr(mr));
    ZERO(ibv_free_dm(dm));
}

/* A second handle for the device, and for what is on it. */
static void use_imports(struct program *p)
{
    const int fd = dup(p->context->cmd_fd);
    must(fd >= 0, "dup", errno);
    struct ibv_context *context = POINTER(ibv_import_device(fd));
    struct ibv_pd *pd = POINTER(ibv_import_pd(context, p->pd->handle));
    struct ibv_mr *mr = POINTER(ibv_import_mr(pd, p->mr->handle));
    struct ibv_alloc_dm_attr attr = {.length = 64};
    struct ibv_dm *dm = POINTER(ibv_alloc_dm(p->context, &attr));
    struct ibv_dm *imported = POINTER(ibv_import_dm(context, dm->handle));
    ibv_unimport_dm(imported);
    ZERO(ibv_free_dm(dm));
    ibv_unimport_mr(mr);
    ibv_unimport_pd(pd);
    ZERO(ibv_close_device(context));
}

/* -- Queues -------------------------------------------------------------------------------------*/

static void use_completion_queues(struct program *p)
{
    struct ibv_cq_init_attr_ex attr = {.cqe = 16, .channel = p->channel};
    struct ibv_cq *cq = POINTER(ibv_create_cq(p->context, 16, NULL, NULL, 0));
    ZERO(ibv_resize_cq(cq, 64));
    ZERO(ibv_destroy_cq(cq));
    struct ibv_cq_ex *extended = POINTER(ibv_create_cq_ex(p->context, &attr));
    ZERO(ibv_destroy_cq(ibv_cq_ex_to_cq(extended)));
}

static void use_shared_queues(struct program *p)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_srq *srq = POINTER(ibv_create_srq(p->pd, &attr));
    attr.attr.max_wr = 300;
    ZERO(ibv_modify_srq(srq, &attr.attr, IBV_SRQ_MAX_WR));
    ZERO(ibv_destroy_srq(srq));
}

static void use_domains(struct program *p)
{
    struct ibv_td_init_attr thread = {0};
    struct ibv_td *td = POINTER(ibv_alloc_td(p->context, &thread));
    struct ibv_parent_domain_init_attr parent = {.pd = p->pd, .td = td};
    struct ibv_pd *pd = POINTER(ibv_alloc_parent_domain(p->context, &parent));
    ZERO(ibv_dealloc_pd(pd));
    ZERO(ibv_dealloc_td(td));
}

static struct ibv_qp_init_attr_ex extended_attr(struct program *p)
{
    return (struct ibv_qp_init_attr_ex){
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .cap = {.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = p->pd,
        .send_ops_flags = IBV_QP_EX_WITH_SEND};
}

static void use_queue_pairs(struct program *p)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = p->cq,
        .recv_cq = p->cq,
        .cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
        .qp_type = IBV_QPT_RC};
    struct ibv_qp *many[MANY];
    for (int i = 0; i < MANY; i++) {
        many[i] = POINTER(ibv_create_qp(p->pd, &attr));
    }
    for (int i = 0; i < MANY; i++) {
        ZERO(ibv_destroy_qp(many[i]));
    }
    struct ibv_qp_init_attr_ex more = extended_attr(p);
    struct ibv_qp *qp = POINTER(ibv_create_qp_ex(p->context, &more));
    must(ibv_qp_to_qp_ex(qp) != NULL, "ibv_qp_to_qp_ex", 0);
    ZERO(ibv_destroy_qp(qp));
}

/* A domain of the program's own, and one of a file; a target that is opened a second time; a shared
 * queue with a number. */
static void use_xrc(struct program *p)
{
    const int fd = memfd_create("domain", MFD_CLOEXEC);
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = fd,
                                        .oflags = O_CREAT};
    struct ibv_xrcd_init_attr nameless = {
        .comp_mask = domain.comp_mask, .fd = -1, .oflags = O_CREAT};
    struct ibv_xrcd *own = POINTER(ibv_open_xrcd(p->context, &nameless));
    ZERO(ibv_close_xrcd(own));
    struct ibv_xrcd *xrcd = POINTER(ibv_open_xrcd(p->context, &domain));
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd};
    struct ibv_qp *target = POINTER(ibv_create_qp_ex(p->context, &attr));
    struct ibv_qp_open_attr open = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                                 IBV_QP_OPEN_ATTR_TYPE,
                                    .qp_num = target->qp_num,
                                    .xrcd = xrcd,
                                    .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_qp *second = POINTER(ibv_open_qp(p->context, &open));
    struct ibv_srq_init_attr_ex shared = {.attr = {.max_wr = 8, .max_sge = 1},
                                          .comp_mask =
                                              IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                              IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                          .srq_type = IBV_SRQT_XRC,
                                          .pd = p->pd,
                                          .xrcd = xrcd,
                                          .cq = p->cq};
    struct ibv_srq *srq = POINTER(ibv_create_srq_ex(p->context, &shared));
    ZERO(ibv_destroy_srq(srq));
    ZERO(ibv_destroy_qp(second));
    ZERO(ibv_destroy_qp(target));
    ZERO(ibv_close_xrcd(xrcd));
    close(fd);
}

void make_objects(struct program *p)
{
    use_regions(p);
    use_device_memory(p);
    use_imports(p);
    use_completion_queues(p);
    use_shared_queues(p);
    use_domains(p);
    use_queue_pairs(p);
    use_xrc(p);
}
