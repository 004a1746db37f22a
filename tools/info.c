/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic info - the devices and ways that a program would get now, and why.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "drivers/live/live.h"
#include "drivers/taken.h"
#include "tools/nonic.h"

static void print_help(void)
{
    printf("usage: nonic info [--json] [--nic roce|efa] [--wire auto|udp|shm]\n"
           "                  [--device IFACE|ADDR[,...]] [--paths N]\n\n"
           "Shows the device and the limits a program run with these options will see, and why.\n");
}

/* The first word of a file; -1 if there is none. */
static long number_in(const char *path)
{
    FILE *file = fopen(path, "re");
    long value = -1;
    if (file != NULL) {
        if (fscanf(file, "%ld", &value) != 1) {
            value = -1;
        }
        fclose(file);
    }
    return value;
}

/* Yama lets only a parent reach into a process unless it is switched off. */
static const char *direct_text(void)
{
    const long scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
    return scope > 0 ? "not possible: kernel.yama.ptrace_scope is not 0; all goes through the ring"
                     : "possible: a peer's WRITE or READ needs no work of the program it is for";
}

/* Memory that peers map (docs/decisions/0061); drivers/system/backing.c asks the same. */
static const char *mapping_text(void)
{
    struct stat descriptors;
    if (stat("/proc/self/fd", &descriptors) != 0 || descriptors.st_size == 0) {
        return "shared memory (MAP_SHARED) alone: nobody can tell whether others write into "
               "private "
               "memory (before Linux 6.2)";
    }
    return "shared memory (MAP_SHARED), and private memory of programs with one thread";
}

/* Empty: the entry's address is gone. */
static void gid_text(const struct live *live, uint32_t index, char *text, size_t bytes)
{
    struct live_gid gid;
    text[0] = '\0';
    if (live_gid(live, index, &gid)) {
        inet_ntop(AF_INET6, gid.gid.bytes, text, (socklen_t)bytes);
    }
}

/* A remark on an entry beside its GID. */
static const char *gid_remark(const struct live *live, uint32_t index)
{
    struct live_gid gid;
    return live_gid(live, index, &gid) && !gid_equal(&gid.gid, &gid.address)
               ? " (the same address, for programs that want an IPv6 one)"
               : "";
}

static const char *port_text(const struct live *live)
{
    switch (live_port_state(live)) {
    case LIVE_PORT_ACTIVE: return "active";
    case LIVE_PORT_POLLING: return "down: the interface has no carrier";
    case LIVE_PORT_DISABLED: break;
    }
    return "down: the interface is switched off";
}

static const char *device_name(void)
{
    return live_personality() == LIVE_EFA ? LIVE_DEVICE_EFA : LIVE_DEVICE_ROCE;
}

static json_t *describe(struct live *live)
{
    const struct nic_limits *limits = nic_limits(live_nic(live));
    json_t *gids = json_array();
    for (uint32_t i = 0; i < live_gid_count(live); i++) {
        char text[INET6_ADDRSTRLEN];
        gid_text(live, i, text, sizeof(text));
        json_array_append_new(gids, json_string(text));
    }
    struct live_ports ports;
    live_describe_ports(live, &ports);
    return json_pack(
        "{s:s, s:s, s:s, s:o, s:i, s:{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}, "
        "s:{s:b, s:b, s:i, s:i, "
        "s:i}, s:{s:b, s:s}}",
        "device", device_name(), "address", live_device_text(live), "port", port_text(live), "gids",
        gids, "mtu", (int)path_mtu_bytes(live_active_mtu(live)), "limits", "queue_pairs",
        (int)limits->qps, "regions", (int)limits->regions, "sends", (int)limits->sends_per_qp,
        "receives", (int)limits->receives_per_qp, "sges", (int)limits->sges, "inline_bytes",
        (int)limits->inline_bytes, "reads", (int)limits->reads_per_qp, "completions",
        (int)limits->cq_entries, "udp", "open", ports.udp, "segmentation", ports.segmentation,
        "receive_buffer", (int)ports.receive_bytes, "window", (int)ports.window_bytes, "paths",
        (int)ports.paths, "shm", "open", ports.shm, "direct_writes", direct_text());
}

static void print_udp(const struct live_ports *ports)
{
    if (!ports->udp) {
        char text[256];
        printf("UDP         none: %s\n"
               "            shared memory alone: no other machines or users, no multicast\n",
               taken_everywhere(text, sizeof(text)) ? text : "the port was taken a moment ago");
        return;
    }
    printf("UDP         port 4791, %s; receive buffer %u KB, so %u KB in flight to a peer\n",
           ports->segmentation ? "many packets a system call (UDP_SEGMENT, UDP_GRO)"
                               : "one packet a message (the kernel has no UDP_SEGMENT)",
           ports->receive_bytes >> 10, ports->window_bytes >> 10);
    if (ports->paths > 1) {
        printf("            blocks leave by %u source ports of each address at a time\n",
               ports->paths);
    }
    const long most = number_in("/proc/sys/net/core/rmem_max");
    if (most >= 0 && most < (4 << 20)) {
        printf("            more with: sysctl -w net.core.rmem_max=8388608\n");
    }
}

static void print_limits(const struct nic_limits *limits)
{
    if (live_personality() == LIVE_EFA) {
        printf("limits      %u queue pairs, %u regions, %u sends and %u receives a queue pair,\n"
               "            %u SGEs (1 for RDMA), %u bytes inline\n",
               limits->qps, limits->regions, limits->sends_per_qp, limits->receives_per_qp,
               limits->sges, limits->inline_bytes);
        return;
    }
    printf("limits      %u queue pairs, %u regions and windows, %u sends and %u receives a queue\n"
           "            pair, %u SGEs, %u bytes inline, %u READs or atomics outstanding\n",
           limits->qps, limits->regions, limits->sends_per_qp, limits->receives_per_qp,
           limits->sges, limits->inline_bytes, limits->reads_per_qp);
}

static void print_text(struct live *live)
{
    struct live_ports ports;
    live_describe_ports(live, &ports);
    printf("device      %s, port 1, %s\n"
           "address     %s\n"
           "port        %s\n",
           device_name(),
           live_personality() == LIVE_EFA ? "an Elastic Fabric Adapter (EFA)" : "RoCE v2",
           live_device_text(live), port_text(live));
    for (uint32_t i = 0; i < live_gid_count(live); i++) {
        char text[INET6_ADDRSTRLEN];
        gid_text(live, i, text, sizeof(text));
        printf("GID %-2u      %s%s\n", i, text, gid_remark(live, i));
    }
    printf("MTU         %u\n", path_mtu_bytes(live_active_mtu(live)));
    print_limits(nic_limits(live_nic(live)));
    print_udp(&ports);
    printf("shared mem  %s\n", ports.shm ? "to nonic programs of this machine and user"
                                         : "off (--wire udp), or not to be had");
    if (ports.shm && live_personality() != LIVE_EFA) { /* SRD goes by packets alone. */
        printf("            direct access %s\n", direct_text());
        printf("            mapped when that pays: %s\n", mapping_text());
    }
}

int command_info(int argc, char **argv)
{
    static const struct option options[] = {{"json", no_argument, NULL, 'j'},
                                            {"nic", required_argument, NULL, 'n'},
                                            {"wire", required_argument, NULL, 'w'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"paths", required_argument, NULL, 'p'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    bool json = false;
    int option;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'j': json = true; break;
        case 'n': setenv("NONIC_NIC", optarg, 1); break;
        case 'w': setenv("NONIC_WIRE", optarg, 1); break;
        case 'd': setenv("NONIC_DEVICE", optarg, 1); break;
        case 'p': setenv("NONIC_PATHS", optarg, 1); break;
        case 'h': print_help(); return 0;
        default:
            fprintf(stderr, "nonic: valid options of 'info' are --json, --nic, --wire, --device, "
                            "--paths, --help\n");
            return EXIT_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "nonic: 'info' takes options only, not '%s'\n", argv[optind]);
        return EXIT_USAGE;
    }
    unsetenv("NONIC_STATS");
    unsetenv("NONIC_CAPTURE");
    char error[600];
    struct live *live = live_claim_from_environment(error, sizeof(error));
    if (live == NULL) {
        fprintf(stderr, "nonic: a program would see no device: %s\n", error);
        return 1;
    }
    live_port_refresh(live);
    if (json) {
        json_t *object = describe(live);
        json_dumpf(object, stdout, JSON_INDENT(2));
        printf("\n");
        json_decref(object);
    } else {
        print_text(live);
    }
    live_close(live);
    return 0;
}
