/* SPDX-License-Identifier: BSD-2-Clause
 *
 * answers - an ordinary program that asks all that verbs can be asked, but for messages.
 *
 * Method     look.h. Usage: answers
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <infiniband/sa.h>
#include <limits.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_cm.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/conformance/look.h"

static struct ibv_pd *pd;

/* -- The device ---------------------------------------------------------------------------------*/

static void ask_device(void)
{
    struct ibv_device *device = context->device;
    const char *name;
    DO((name = ibv_get_device_name(device)) != NULL && printf("%s\n", name) > 0);
    const __be64 guid = ibv_get_device_guid(device);
    LOOK(guid);
    look(device, sizeof(*device));
    LOOK(context->num_comp_vectors);
    LOOK(context->async_fd);
    struct ibv_device_attr attr;
    struct ibv_device_attr_ex extended;
    struct ibv_values_ex values;
    DO(ibv_query_device(context, &attr) == 0);
    LOOK(attr);
    DO(ibv_query_device_ex(context, NULL, &extended) == 0);
    LOOK(extended);
    values.comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
    DO(ibv_query_rt_values_ex(context, &values) == 0);
    LOOK(values.raw_clock);
}

static void ask_port(void)
{
    struct ibv_port_attr port;
    __be16 pkey;
    struct ibv_gid_entry entry, table[16];
    DO(ibv_query_port(context, 1, &port) == 0);
    LOOK(port);
    DO(ibv_query_pkey(context, 1, 0, &pkey) == 0);
    LOOK(pkey);
    union ibv_gid gid, *last = malloc(sizeof(*last));
    DO(ibv_query_gid(context, 1, 15, last) == 0);
    look(last, sizeof(*last));
    free(last);
    DO(ibv_query_gid(context, 1, 0, &gid) == 0);
    LOOK(gid);
    DO(ibv_query_gid_ex(context, 1, 0, &entry, 0) == 0);
    LOOK(entry);
    ssize_t entries;
    DO((entries = ibv_query_gid_table(context, table, 16, 0)) > 0);
    look(table, (size_t)entries * sizeof(table[0]));
}

/* Calls that the header may not know. */
static void ask_newer(void)
{
    int (*ask_speed)(struct ibv_context *, uint32_t, uint64_t *);
    int (*ask_type)(struct ibv_context *, uint8_t, unsigned int, unsigned int *);
    void *(*allocate_buffer)(struct ibv_pd *, size_t, void **);
    void (*free_buffer)(void *);
    *(void **)&ask_speed = dlsym(RTLD_DEFAULT, "ibv_query_port_speed");
    *(void **)&ask_type = dlsym(RTLD_DEFAULT, "ibv_query_gid_type");
    *(void **)&allocate_buffer = dlsym(RTLD_DEFAULT, "ibv_alloc_buf");
    *(void **)&free_buffer = dlsym(RTLD_DEFAULT, "ibv_free_buf");
    uint64_t speed;
    unsigned int type;
    void *buffer, *memory;
    DO(ask_speed(context, 1, &speed) == 0);
    LOOK(speed);
    DO(ask_type(context, 1, 0, &type) == 0);
    LOOK(type);
    DO((memory = allocate_buffer(pd, 4096, &buffer)) != NULL);
    look(memory, 4096);
    LOOK(buffer);
    free_buffer(buffer);
}

/* -- Files, by libc's calls --------------------------------------------------------------*/

/* Virtual files, by libc's calls. */
static void ask_paths(void)
{
    const char *const port = "/sys/class/infiniband/nonic0/ports/1";
    char path[PATH_MAX], before[PATH_MAX];
    struct stat status;
    struct statx more;
    DO(getcwd(before, sizeof(before)) != NULL);
    DO(realpath(port, path) != NULL);
    look(path, strlen(path));
    DO(access(port, R_OK) == 0 && stat(port, &status) == 0);
    LOOK(status);
    DO(statx(AT_FDCWD, port, 0, STATX_BASIC_STATS, &more) == 0);
    int fd;
    DO((fd = open(port, O_RDONLY | O_DIRECTORY)) >= 0);
    DO(fstat(fd, &status) == 0);
    LOOK(status);
    DO(statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &more) == 0);
    DO(fchdir(fd) == 0 && getcwd(path, sizeof(path)) != NULL);
    look(path, strlen(path));
    DO(chdir("..") == 0 && chdir(before) == 0);
    close(fd);
}

int ibv_read_sysfs_file(const char *directory, const char *name, char *value, size_t bytes);

static void ask_files(void)
{
    DIR *directory;
    const struct dirent *entry;
    char path[300], line[256];
    DO((directory = opendir("/sys/class/infiniband/nonic0/ports/1")) != NULL);
    while ((entry = readdir(directory)) != NULL) {
        soil();
        snprintf(path, sizeof(path), "/sys/class/infiniband/nonic0/ports/1/%s", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fgets(line, sizeof(line), file) != NULL) {
            look(line, strlen(line));
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(directory);
    int count;
    char *value = malloc(4096); /* The file has no end of a line. */
    DO((count = ibv_read_sysfs_file("/proc/self", "cmdline", value, 4096)) > 0);
    look(value, (size_t)count + 1);
    free(value);
}

/* -- Questions of librdmacm ---------------------------------------------------------------------*/

/* As librdmacm does, and netlink. */
static void ask_connection_manager(void)
{
    struct rdma_ucm_create_id_resp answer;
    struct {
        struct rdma_ucm_cmd_hdr header;
        struct rdma_ucm_create_id body;
    } command = {{RDMA_USER_CM_CMD_CREATE_ID, sizeof(command.body), sizeof(answer)},
                 {.response = (uintptr_t)&answer, .ps = RDMA_PS_TCP}};
    int fd, netlink;
    DO((fd = open("/dev/infiniband/rdma_cm", O_RDWR)) >= 0);
    DO(write(fd, &command, sizeof(command)) == sizeof(command));
    LOOK(answer);
    DO(close(fd) == 0);
    DO((netlink = socket(AF_NETLINK, SOCK_RAW, 20 /* NETLINK_RDMA */)) >= 0);
    DO(close(netlink) == 0);
}

/* The kernel's structs, as librdmacm has them translated. */
void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *to, struct ib_uverbs_ah_attr *from);
void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *to, struct ib_uverbs_qp_attr *from);
void ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *to, struct ib_user_path_rec *from);
void ibv_copy_path_rec_to_kern(struct ib_user_path_rec *to, struct ibv_sa_path_rec *from);

static void translate(void)
{
    struct ib_uverbs_qp_attr kernels = {0};
    struct ib_user_path_rec kernels_path = {0};
    struct ibv_qp_attr attr;
    struct ibv_ah_attr vector;
    struct ibv_sa_path_rec path;
    soil();
    ibv_copy_qp_attr_from_kern(&attr, &kernels);
    LOOK(attr);
    ibv_copy_ah_attr_from_kern(&vector, &kernels.ah_attr);
    LOOK(vector);
    ibv_copy_path_rec_from_kern(&path, &kernels_path);
    LOOK(path);
    struct ib_user_path_rec *back = malloc(sizeof(*back));
    ibv_copy_path_rec_to_kern(back, &path);
    look(back, sizeof(*back));
    free(back);
}

/* -- Objects ------------------------------------------------------------------------------------*/

static void ask_qp(struct ibv_qp *qp)
{
    struct ibv_qp_attr attr;
    struct ibv_qp_init_attr init;
    DO(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0);
    LOOK(attr);
    LOOK(init);
    LOOK(qp->qp_num);
    LOOK(qp->state);
}

/* A parent domain's allocator, which the library calls. */
static void *allocate(struct ibv_pd *domain, void *domain_context, size_t bytes, size_t alignment,
                      uint64_t kind)
{
    LOOK(domain);
    LOOK(domain_context);
    LOOK(kind);
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void give_back(struct ibv_pd *domain, void *domain_context, void *memory, uint64_t kind)
{
    LOOK(domain);
    LOOK(domain_context);
    LOOK(memory);
    LOOK(kind);
    free(memory);
}

static void lend_memory(struct ibv_cq *cq)
{
    struct ibv_parent_domain_init_attr attr = {.pd = pd,
                                               .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
                                               .alloc = allocate,
                                               .free = give_back};
    struct ibv_qp_init_attr init = {
        .send_cq = cq, .recv_cq = cq, .cap = {1, 1, 1, 1, 0}, .qp_type = IBV_QPT_RC};
    struct ibv_pd *parent;
    struct ibv_qp *qp;
    DO((parent = ibv_alloc_parent_domain(context, &attr)) != NULL);
    DO((qp = ibv_create_qp(parent, &init)) != NULL);
    ask_qp(qp);
    DO(ibv_destroy_qp(qp) == 0);
    DO(ibv_dealloc_pd(parent) == 0);
}

static void share_queue(struct ibv_cq *cq)
{
    struct ibv_xrcd_init_attr domain = {
        .comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .fd = -1};
    struct ibv_srq_init_attr_ex init = {.attr = {.max_wr = 1, .max_sge = 1},
                                        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                                                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
                                        .srq_type = IBV_SRQT_XRC,
                                        .pd = pd,
                                        .cq = cq};
    struct ibv_srq *srq;
    uint32_t number;
    DO((init.xrcd = ibv_open_xrcd(context, &domain)) != NULL);
    DO((srq = ibv_create_srq_ex(context, &init)) != NULL);
    DO(ibv_get_srq_num(srq, &number) == 0);
    LOOK(number);
    /* A program need not give these capacities: it is told them. */
    struct ibv_qp_init_attr_ex *receiver = malloc(sizeof(*receiver));
    struct ibv_qp *qp;
    receiver->qp_type = IBV_QPT_XRC_RECV;
    receiver->comp_mask = IBV_QP_INIT_ATTR_XRCD;
    receiver->xrcd = init.xrcd;
    DO((qp = ibv_create_qp_ex(context, receiver)) != NULL);
    LOOK(receiver->cap);
    free(receiver);
    DO(ibv_destroy_qp(qp) == 0);
    DO(ibv_destroy_srq(srq) == 0 && ibv_close_xrcd(init.xrcd) == 0);
}

int main(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 8, .max_sge = 1}};
    struct ibv_srq_attr attr;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    open_device();
    DO((pd = ibv_alloc_pd(context)) != NULL);
    DO((cq = ibv_create_cq(context, 64, NULL, NULL, 0)) != NULL);
    ask_device();
    ask_port();
    ask_newer();
    ask_paths();
    ask_files();
    ask_connection_manager();
    translate();
    DO((srq = ibv_create_srq(pd, &init)) != NULL);
    DO(ibv_query_srq(srq, &attr) == 0);
    LOOK(attr);
    lend_memory(cq);
    share_queue(cq);
    DO(ibv_destroy_srq(srq) == 0 && ibv_destroy_cq(cq) == 0);
    DO(ibv_dealloc_pd(pd) == 0 && ibv_close_device(context) == 0);
    return printf("answers: %u bytes were not zero\n", set) < 0;
}
