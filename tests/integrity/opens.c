/* SPDX-License-Identifier: BSD-2-Clause
 *
 * opens - opens libibverbs, or a library that is linked with it, and counts the devices.
 *
 * Usage: opens dlopen|deepbind|inside|base|apart NAME. `base` and `apart` are the namespaces of
 * dlmopen; `inside`, a library that is opened with RTLD_DEEPBIND opens it.
 * It finds libraries beside itself (RUNPATH).
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static void *open_library(const char *way, const char *name)
{
    if (strcmp(way, "base") == 0 || strcmp(way, "apart") == 0) {
        return dlmopen(way[0] == 'b' ? LM_ID_BASE : LM_ID_NEWLM, name, RTLD_NOW);
    }
    if (strcmp(way, "inside") == 0) {
        void *opener = dlopen("opener.so", RTLD_NOW | RTLD_DEEPBIND), *(*open)(const char *) = NULL;
        *(void **)&open = opener == NULL ? NULL : dlsym(opener, "opener_open");
        return open == NULL ? NULL : open(name);
    }
    return dlopen(name, RTLD_NOW | (strcmp(way, "deepbind") == 0 ? RTLD_DEEPBIND : 0));
}

int main(int argc, char **argv)
{
    void *library = argc == 3 ? open_library(argv[1], argv[2]) : NULL;
    struct ibv_device **(*list)(int *) = NULL;
    if (library != NULL) {
        *(void **)&list = dlvsym(library, "ibv_get_device_list", "IBVERBS_1.1");
    }
    Dl_info from;
    int count = 0;
    if (list == NULL || list(&count) == NULL || dladdr(*(void **)&list, &from) == 0) {
        printf("opens: %s\n", library == NULL ? dlerror() : "no list of devices");
        return 1;
    }
    printf("%d devices, from %s\n", count, from.dli_fname);
    return count == 1 ? 0 : 1;
}
