/* SPDX-License-Identifier: BSD-2-Clause
 *
 * opens - opens libibverbs, or a library that is linked with it, and counts the devices.
 *
 * Usage: opens dlopen|deepbind|base|apart NAME [OPENER]. `base` and `apart` are the namespaces of
 * dlmopen. A library OPENER (opener.c) is opened in that way, and opens NAME.
 * It finds libraries beside itself (RUNPATH).
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <string.h>

static void *open_library(const char *way, const char *name)
{
    if (strcmp(way, "base") == 0 || strcmp(way, "apart") == 0) {
        return dlmopen(way[0] == 'b' ? LM_ID_BASE : LM_ID_NEWLM, name, RTLD_LAZY);
    }
    return dlopen(name, RTLD_LAZY | (strcmp(way, "deepbind") == 0 ? RTLD_DEEPBIND : 0));
}

static void *open_by(void *opener, const char *name)
{
    void *(*open)(const char *) = NULL;
    *(void **)&open = opener == NULL ? NULL : dlsym(opener, "opener_open");
    return open == NULL ? NULL : open(name);
}

int main(int argc, char **argv)
{
    void *library = argc < 3 ? NULL : open_library(argv[1], argv[argc - 1]);
    if (argc == 4) {
        library = open_by(library, argv[2]);
    }
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
