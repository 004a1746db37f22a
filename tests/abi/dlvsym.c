/* SPDX-License-Identifier: BSD-2-Clause
 *
 * dlvsym - a program that looks verbs up by name and version, as NCCL and its kin do.
 *
 * Goal    With our library preloaded, dlopen("libibverbs.so.1") is ours, and dlvsym finds old and
 * new.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"

int main(void)
{
    static const char *const wanted[][2] = {
        {"ibv_get_device_list", "IBVERBS_1.1"}, {"ibv_open_device", "IBVERBS_1.1"},
        {"ibv_create_qp", "IBVERBS_1.1"},       {"ibv_reg_mr_iova2", "IBVERBS_1.8"},
        {"ibv_query_ece", "IBVERBS_1.10"},      {"ibv_reg_dmabuf_mr", "IBVERBS_1.12"},
        {"ibv_fork_init", "IBVERBS_1.1"},       {"ibv_wc_status_str", "IBVERBS_1.1"},
        {"ibv_reg_mr_ex", "IBVERBS_1.15"},      {"ibv_query_port_speed", "IBVERBS_1.16"},
        {"ibv_alloc_buf", "IBVERBS_1.17"},      {"ibv_create_comp_cntr", "IBVERBS_1.18"},
    };
    void *library = dlopen("libibverbs.so.1", RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        if (dlvsym(library, wanted[i][0], wanted[i][1]) == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 1;
        }
    }
    const char *(*opcode_text)(enum ibv_wr_opcode);
    static const char *const nodes[] = {"IBVERBS_PRIVATE_34", "IBVERBS_PRIVATE_57",
                                        "IBVERBS_PRIVATE_59", "IBVERBS_PRIVATE_64",
                                        "IBVERBS_PRIVATE_65"};
    for (size_t i = 0; i < COUNT_OF(nodes); i++) {
        *(void **)&opcode_text = dlvsym(library, "ibv_wr_opcode_str", nodes[i]);
        if (opcode_text == NULL || strcmp(opcode_text(IBV_WR_RDMA_READ), "rdma-read") != 0) {
            fprintf(stderr, "ibv_wr_opcode_str of %s\n", nodes[i]);
            return 1;
        }
    }
    struct ibv_device **(*list)(int *);
    const char *(*name)(struct ibv_device *);
    *(void **)&list = dlvsym(library, "ibv_get_device_list", "IBVERBS_1.1");
    *(void **)&name = dlvsym(library, "ibv_get_device_name", "IBVERBS_1.1");
    int count = 0;
    struct ibv_device **devices = list(&count);
    if (count != 1) {
        fprintf(stderr, "%d devices\n", count);
        return 1;
    }
    printf("%s\n", name(devices[0]));
    return 0;
}
