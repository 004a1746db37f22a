/* SPDX-License-Identifier: BSD-2-Clause
 *
 * sysfs_values - the contents of the virtual files.
 */
#include "kernel/sysfs_values.h"

#include <errno.h>
#include <inttypes.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "drivers/system/shortage.h"
#include "kernel/describe.h"
#include "kernel/personality.h"
#include "kernel/process.h"
#include "nic/counters.h"

/* Always true: how values end. */
__attribute__((format(printf, 2, 3))) static bool says(char value[SYSFS_VALUE_BYTES],
                                                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int bytes = vsnprintf(value, SYSFS_VALUE_BYTES, format, arguments);
    va_end(arguments);
    CHECK(bytes > 0 && bytes < SYSFS_VALUE_BYTES);
    return true;
}

/* -- The device and its port --------------------------------------------------------------------*/

bool value_vendor_id(char value[SYSFS_VALUE_BYTES])
{
    return says(value, "0x%04x\n", personality_shown()->vendor_id);
}

bool value_part_id(char value[SYSFS_VALUE_BYTES])
{
    return says(value, "0x%04x\n", personality_shown()->vendor_part_id);
}

bool value_link_layer(char value[SYSFS_VALUE_BYTES])
{
    return says(value, "%s\n", personality_shown()->link_layer_name);
}

bool value_guid(char value[SYSFS_VALUE_BYTES])
{
    struct live *live = process_live();
    if (live == NULL) {
        return false;
    }
    const uint64_t guid = guid_describe(live);
    return says(value, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48),
                (unsigned)(guid >> 32 & 0xffff), (unsigned)(guid >> 16 & 0xffff),
                (unsigned)(guid & 0xffff));
}

static bool find_port(struct ibv_port_attr *attr)
{
    struct live *live = process_live();
    if (live == NULL) {
        return false;
    }
    port_describe(live, attr);
    return true;
}

bool value_state(char value[SYSFS_VALUE_BYTES])
{
    static const char *const names[] = {"NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"};
    struct ibv_port_attr attr;
    if (!find_port(&attr)) {
        return false;
    }
    CHECK(attr.state < COUNT_OF(names));
    return says(value, "%d: %s\n", attr.state, names[attr.state]);
}

bool value_phys_state(char value[SYSFS_VALUE_BYTES])
{
    static const char *const names[] = {"<unknown>",
                                        "Sleep",
                                        "Polling",
                                        "Disabled",
                                        "PortConfigurationTraining",
                                        "LinkUp",
                                        "LinkErrorRecovery",
                                        "Phy Test"};
    struct ibv_port_attr attr;
    return find_port(&attr) && says(value, "%d: %s\n", attr.phys_state,
                                    names[attr.phys_state < COUNT_OF(names) ? attr.phys_state : 0]);
}

bool value_rate(char value[SYSFS_VALUE_BYTES])
{
    struct ibv_port_attr attr;
    if (!find_port(&attr)) {
        return false;
    }
    const char *name;
    const unsigned lanes = port_lanes(attr.active_width);
    const unsigned tenths = lanes * port_lane_speed(attr.active_speed, &name);
    CHECK(tenths % 10 == 0 || tenths % 10 == 5); /* Which is all that the line can say. */
    return says(value, "%u%s Gb/sec (%uX%s)\n", tenths / 10, tenths % 10 != 0 ? ".5" : "", lanes,
                name);
}

#define PORT_VALUE(name, format, attribute)                                                        \
    bool value_##name(char value[SYSFS_VALUE_BYTES])                                               \
    {                                                                                              \
        struct ibv_port_attr attr;                                                                 \
        return find_port(&attr) && says(value, format "\n", attr.attribute);                       \
    }

PORT_VALUE(lid, "0x%x", lid)
PORT_VALUE(sm_lid, "0x%x", sm_lid)
PORT_VALUE(sm_sl, "%d", sm_sl)
PORT_VALUE(lid_mask_count, "%d", lmc)
PORT_VALUE(cap_mask, "0x%08x", port_cap_flags)

/* -- Locality -----------------------------------------------------------------------------------*/

bool value_local_cpulist(char value[SYSFS_VALUE_BYTES])
{
    const int count = get_nprocs_conf();
    return count == 1 ? says(value, "0\n") : says(value, "0-%d\n", count - 1);
}

/* Words of 32 processors, the highest first. */
bool value_local_cpus(char value[SYSFS_VALUE_BYTES])
{
    const int count = get_nprocs_conf();
    size_t at = 0;
    for (int word = (count - 1) / 32; word >= 0 && at + 16 < SYSFS_VALUE_BYTES; word--) {
        const int in_word = count - word * 32 < 32 ? count - word * 32 : 32;
        const uint32_t mask = in_word == 32 ? UINT32_MAX : (1u << in_word) - 1;
        at += (size_t)sprintf(value + at, at == 0 ? "%x" : ",%08x", mask);
    }
    CHECK(at + 1 < SYSFS_VALUE_BYTES);
    strcpy(value + at, "\n");
    return true;
}

/* -- GIDs ---------------------------------------------------------------------------------------*/

static uint32_t gid_entries(void)
{
    return personality_shown()->gid_entries;
}

/* False: the entry is empty; then errno is that of Linux. */
static bool gid_at(uint32_t index, struct live_gid *gid)
{
    struct live *live = process_live();
    if (live == NULL) {
        return false;
    }
    live_port_refresh(live);
    CHECK(index < personality_shown()->gid_entries);
    errno = EINVAL;
    return live_gid(live, index, gid);
}

static bool number_name(uint32_t index, char name[SYSFS_NAME_BYTES])
{
    snprintf(name, SYSFS_NAME_BYTES, "%" PRIu32, index);
    return true;
}

static bool gid_value(uint32_t index, char value[SYSFS_VALUE_BYTES])
{
    /* An empty entry is 16 zeros. */
    struct live_gid gid = {0};
    if (!gid_at(index, &gid) && errno != EINVAL) {
        return false;
    }
    const uint8_t *g = gid.gid.bytes;
    return says(value, "%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x\n",
                g[0], g[1], g[2], g[3], g[4], g[5], g[6], g[7], g[8], g[9], g[10], g[11], g[12],
                g[13], g[14], g[15]);
}

static bool gid_type(uint32_t index, char value[SYSFS_VALUE_BYTES])
{
    struct live_gid gid;
    return gid_at(index, &gid) && says(value, "%s\n", personality_shown()->gid_type_name);
}

static bool gid_netdev(uint32_t index, char value[SYSFS_VALUE_BYTES])
{
    struct live_gid gid;
    char name[IF_NAMESIZE];
    errno = 0;
    if (!personality_shown()->has_interfaces || !gid_at(index, &gid) ||
        if_indextoname(gid.interface_index, name) == NULL) {
        errno = shortage_is(errno) ? errno : EINVAL; /* As the kernel where an interface is gone. */
        return false;
    }
    return says(value, "%s\n", name);
}

const struct sysfs_table gids_table = {SYSFS_FILE, gid_entries, number_name, gid_value};
const struct sysfs_table gid_types_table = {SYSFS_FILE, gid_entries, number_name, gid_type};
const struct sysfs_table gid_netdevs_table = {SYSFS_FILE, gid_entries, number_name, gid_netdev};

/* That of the first address stands for all. */
static uint32_t netdev_count(void)
{
    return 1;
}

static bool netdev_name(uint32_t index, char name[SYSFS_NAME_BYTES])
{
    _Static_assert(SYSFS_NAME_BYTES >= IF_NAMESIZE, "names of interfaces are names of files");
    (void)index;
    struct live *live = process_live();
    const int before = errno;
    const bool named = live != NULL && if_indextoname(live_interface(live), name) != NULL;
    if (!named && !shortage_is(errno)) {
        errno = before; /* It is gone: a directory that is read ends. */
    }
    return named;
}

static bool netdev_link(uint32_t index, char value[SYSFS_VALUE_BYTES])
{
    char name[SYSFS_NAME_BYTES];
    errno = ENOENT; /* It was there when its name was looked for. */
    return netdev_name(index, name) && says(value, "/sys/class/net/%s", name);
}

const struct sysfs_table netdev_table = {SYSFS_LINK, netdev_count, netdev_name, netdev_link};

/* -- Counters -----------------------------------------------------------------------------------*/

static bool snapshot(struct nic_counters *counters)
{
    struct live *live = process_live();
    if (live == NULL) {
        return false;
    }
    live_lock(live);
    *counters = *nic_counters(live_nic(live));
    live_unlock(live);
    return true;
}

static uint32_t hw_counter_count(void)
{
    return counters_described();
}

static bool hw_counter_name(uint32_t index, char name[SYSFS_NAME_BYTES])
{
    const struct named_counter counter = counter_described(index);
    snprintf(name, SYSFS_NAME_BYTES, "%s", counter.name);
    return true;
}

static uint64_t sum_of(const struct nic_counters *counters, enum nic_counter first,
                       enum nic_counter last)
{
    uint64_t sum = 0;
    CHECK(first <= last);
    for (uint32_t i = first; i <= last; i++) {
        sum += counters->values[i];
    }
    return sum;
}

static bool hw_counter(uint32_t index, char value[SYSFS_VALUE_BYTES])
{
    struct nic_counters counters;
    const struct named_counter counter = counter_described(index);
    return snapshot(&counters) &&
           says(value, "%" PRIu64 "\n", sum_of(&counters, counter.first, counter.last));
}

const struct sysfs_table hw_counters_table = {SYSFS_FILE, hw_counter_count, hw_counter_name,
                                              hw_counter};

/* Those of IBTA's PortCounters that a NIC without a physical layer of its own can count. */
static const struct {
    const char *name;
    enum nic_counter first, last; /* Their sum. */
    uint32_t unit;                /* Octets are counted in words of four. */
} port_counters[] = {
    {"port_rcv_data", COUNTER_rcvd_bytes, COUNTER_rcvd_bytes, 4},
    {"port_rcv_errors", COUNTER_drop_short, COUNTER_drop_wrong_icrc, 1},
    {"port_rcv_packets", COUNTER_rcvd_pkts, COUNTER_rcvd_pkts, 1},
    {"port_xmit_data", COUNTER_sent_bytes, COUNTER_sent_bytes, 4},
    {"port_xmit_packets", COUNTER_sent_pkts, COUNTER_sent_pkts, 1},
};

static uint32_t port_counter_count(void)
{
    return COUNT_OF(port_counters);
}

static bool port_counter_name(uint32_t index, char name[SYSFS_NAME_BYTES])
{
    CHECK(index < COUNT_OF(port_counters));
    snprintf(name, SYSFS_NAME_BYTES, "%s", port_counters[index].name);
    return true;
}

static bool port_counter(uint32_t index, char value[SYSFS_VALUE_BYTES])
{
    struct nic_counters counters;
    if (!snapshot(&counters)) {
        return false;
    }
    CHECK(index < COUNT_OF(port_counters));
    const uint64_t sum = sum_of(&counters, port_counters[index].first, port_counters[index].last);
    return says(value, "%" PRIu64 "\n", sum / port_counters[index].unit);
}

const struct sysfs_table port_counters_table = {SYSFS_FILE, port_counter_count, port_counter_name,
                                                port_counter};
