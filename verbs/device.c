/* SPDX-License-Identifier: BSD-2-Clause
 *
 * device - the list of devices, and what a device can do.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernel/describe.h"
#include "kernel/personality.h"
#include "verbs/internal.h"
#include "verbs/newer.h"

/* Provider libraries look behind the public struct for their own tables: there is nothing of theirs
 * there, but memory there must be. */
static struct {
    struct ibv_device ibv;
    uint8_t behind[4096];
} device = {
    .ibv = {.dev_name = "uverbs0", .dev_path = "/sys/class/infiniband_verbs/uverbs0"},
};

/* There is one device, of the process's personality. */
static void name_device(void)
{
    struct ibv_device *ibv = &device.ibv;
    ibv->node_type = personality_shown()->node_type;
    ibv->transport_type = personality_shown()->transport_type;
    snprintf(ibv->name, sizeof(ibv->name), "%s", personality_shown()->device_name);
    snprintf(ibv->ibdev_path, sizeof(ibv->ibdev_path), "%s", personality_shown()->device_folder);
}

bool device_is_ours(const struct ibv_context *context)
{
    return context->device == &device.ibv;
}

EXPORT struct ibv_device **ibv_get_device_list(int *count)
{
    if (count != NULL) {
        *count = 0;
    }
    struct ibv_device **list = calloc(2, sizeof(*list));
    if (list == NULL) {
        return fail(ENOMEM);
    }
    const bool here = process_live() != NULL;
    if (!here && errno != ENODEV) {
        const int reason = errno;
        free(list);
        return fail(reason);
    }
    if (here) {
        static pthread_once_t named = PTHREAD_ONCE_INIT;
        pthread_once(&named, name_device);
        list[0] = &device.ibv;
    }
    if (count != NULL) {
        *count = here ? 1 : 0;
        initialised(count, sizeof(*count));
    }
    return list;
}

EXPORT void ibv_free_device_list(struct ibv_device **list)
{
    free(list);
}

EXPORT const char *ibv_get_device_name(struct ibv_device *ibv)
{
    return ibv->name;
}

EXPORT __be64 ibv_get_device_guid(struct ibv_device *ibv)
{
    (void)ibv;
    struct live *live = process_live();
    return live == NULL ? 0 : __builtin_bswap64(guid_describe(live));
}

EXPORT int ibv_get_device_index(struct ibv_device *ibv)
{
    (void)ibv;
    return 0;
}

/* -- Capabilities -------------------------------------------------------------------------------*/

EXPORT int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
    device_describe(live_of(context), attr);
    initialised(attr, sizeof(*attr));
    return 0;
}

/* On-demand paging, device memory, clocks, FLUSH. */
static void add_roce_extensions(struct ibv_device_attr_ex *full)
{
    full->odp_caps.general_caps = IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT;
    full->odp_caps.per_transport_caps.rc_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV |
                                                    IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
                                                    IBV_ODP_SUPPORT_ATOMIC;
    full->odp_caps.per_transport_caps.uc_odp_caps =
        IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV | IBV_ODP_SUPPORT_WRITE;
    full->odp_caps.per_transport_caps.ud_odp_caps = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
    full->odp_caps.per_transport_caps.rc_odp_caps |= IBV_ODP_SUPPORT_SRQ_RECV | ODP_SUPPORT_FLUSH;
    full->xrc_odp_caps = full->odp_caps.per_transport_caps.rc_odp_caps;
    full->odp_caps.per_transport_caps.rc_odp_caps |= ODP_SUPPORT_ATOMIC_WRITE;
    full->max_dm_size = DM_BYTES_MAX;
    full->completion_timestamp_mask = UINT64_MAX;
    full->hca_core_clock = 1000000; /* kHz: timestamps count nanoseconds. */
    full->device_cap_flags_ex =
        full->orig_attr.device_cap_flags | DEVICE_FLUSH_GLOBAL | DEVICE_FLUSH_PERSISTENT;
}

int device_query_ex(struct ibv_context *context, const struct ibv_query_device_ex_input *input,
                    struct ibv_device_attr_ex *attr, size_t attr_bytes)
{
    if (input != NULL && input->comp_mask != 0) {
        return EINVAL;
    }
    if (attr_bytes < sizeof(attr->orig_attr)) {
        return EINVAL;
    }
    struct ibv_device_attr_ex full = {0};
    device_describe(live_of(context), &full.orig_attr);
    full.phys_port_cnt_ex = 1;
    if (!is_efa()) {
        add_roce_extensions(&full);
    }
    memset(attr, 0, attr_bytes);
    memcpy(attr, &full, attr_bytes < sizeof(full) ? attr_bytes : sizeof(full));
    initialised(attr, attr_bytes);
    return 0;
}

/* -- Ports --------------------------------------------------------------------------------------*/

int port_query(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attr,
               size_t attr_bytes)
{
    if (port != 1) {
        return EINVAL;
    }
    struct port_attr_49 full = {0};
    port_describe(live_of(context), &full.attr);
    full.active_speed_ex = full.attr.active_speed;
    memset(attr, 0, attr_bytes);
    memcpy(attr, &full, attr_bytes < sizeof(full) ? attr_bytes : sizeof(full));
    initialised(attr, attr_bytes);
    return 0;
}

#undef ibv_query_port
/* The exported symbol is of programs whose struct ended before `port_cap_flags2`. */
EXPORT int ibv_query_port(struct ibv_context *context, uint8_t port,
                          struct _compat_ibv_port_attr *attr)
{
    return port_query(context, port, (struct ibv_port_attr *)(void *)attr,
                      offsetof(struct ibv_port_attr, port_cap_flags2));
}

EXPORT int ibv_query_port_speed(struct ibv_context *context, uint32_t port, uint64_t *speed)
{
    if (port != 1) {
        return EINVAL;
    }
    struct ibv_port_attr attr;
    port_describe(live_of(context), &attr);
    const char *name;
    *speed = (uint64_t)port_lanes(attr.active_width) * port_lane_speed(attr.active_speed, &name);
    CHECK(*speed != 0); /* port_lane_speed knows each speed that our port has. */
    initialised(speed, sizeof(*speed));
    return 0;
}

EXPORT int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey)
{
    (void)context;
    if (port != 1 || index != 0) {
        errno = EINVAL;
        return -1;
    }
    *pkey = 0xffff;
    initialised(pkey, sizeof(*pkey));
    return 0;
}

EXPORT int ibv_get_pkey_index(struct ibv_context *context, uint8_t port, __be16 pkey)
{
    (void)context;
    if (port != 1 || pkey != 0xffff) {
        errno = EINVAL;
        return -1;
    }
    return 0;
}

/* -- GIDs ---------------------------------------------------------------------------------------*/

static bool in_gid_table(uint32_t port, uint32_t index)
{
    return port == 1 && index < personality_shown()->gid_entries;
}

/* False: not in the table, or an empty entry. */
static bool find_gid(struct ibv_context *context, uint32_t port, uint32_t index,
                     struct live_gid *found)
{
    struct live *live = live_of(context);
    live_port_refresh(live);
    return in_gid_table(port, index) && live_gid(live, index, found);
}

EXPORT int ibv_query_gid(struct ibv_context *context, uint8_t port, int index, union ibv_gid *gid)
{
    if (index < 0 || !in_gid_table(port, (uint32_t)index)) {
        errno = EINVAL;
        return -1;
    }
    struct live_gid found;
    *gid = (union ibv_gid){0};
    if (find_gid(context, port, (uint32_t)index, &found)) {
        memcpy(gid->raw, found.gid.bytes, sizeof(gid->raw));
    }
    initialised(gid, sizeof(*gid));
    return 0;
}

static void fill_entry(const struct live_gid *found, uint32_t index, struct ibv_gid_entry *entry,
                       size_t entry_bytes)
{
    CHECK(entry_bytes >= sizeof(*entry) && index < personality_shown()->gid_entries);
    memset(entry, 0, entry_bytes);
    *entry = (struct ibv_gid_entry){
        .gid_index = index,
        .port_num = 1,
        .gid_type = personality_shown()->gid_type,
        .ndev_ifindex = personality_shown()->has_interfaces ? found->interface_index : 0};
    memcpy(entry->gid.raw, found->gid.bytes, sizeof(entry->gid.raw));
    initialised(entry, entry_bytes);
}

EXPORT int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                             struct ibv_gid_entry *entry, uint32_t flags, size_t entry_bytes)
{
    if (flags != 0 || entry_bytes < sizeof(*entry)) {
        return flags != 0 ? EOPNOTSUPP : EINVAL;
    }
    struct live_gid found;
    if (!find_gid(context, port, index, &found)) {
        return in_gid_table(port, index) ? ENODATA : EINVAL;
    }
    fill_entry(&found, index, entry, entry_bytes);
    return 0;
}

EXPORT ssize_t _ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries,
                                    size_t max_entries, uint32_t flags, size_t entry_bytes)
{
    struct live *live = live_of(context);
    struct live_gid found;
    size_t count = 0;
    if (flags != 0) {
        return -EOPNOTSUPP;
    }
    if (entry_bytes < sizeof(*entries)) {
        return -EINVAL;
    }
    live_port_refresh(live);
    for (uint32_t i = 0; i < live_gid_count(live); i++) {
        if (!live_gid(live, i, &found)) {
            continue;
        }
        if (count == max_entries) {
            return -EINVAL;
        }
        uint8_t *at = (uint8_t *)entries + count++ * entry_bytes;
        fill_entry(&found, i, (struct ibv_gid_entry *)(void *)at, entry_bytes);
    }
    return (ssize_t)count;
}

/* Sysfs numbering: 0 is RoCE v1, 1 is RoCE v2. */
int gid_query_type(struct ibv_context *context, uint8_t port, unsigned int index,
                   unsigned int *type)
{
    if (!in_gid_table(port, index)) {
        errno = EINVAL;
        return -1;
    }
    /* A GID of the first kind is the answer for an empty entry, as in sysfs. */
    struct live_gid found;
    *type = find_gid(context, port, index, &found) &&
            personality_shown()->gid_type == IBV_GID_TYPE_ROCE_V2;
    initialised(type, sizeof(*type));
    return 0;
}
