/* SPDX-License-Identifier: BSD-2-Clause */
#include "drivers/live/live.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/box_page.h"
#include "drivers/live/live_cm.h"
#include "drivers/live/live_explain.h"
#include "drivers/live/live_internal.h"
#include "drivers/live/live_lend.h"
#include "drivers/live/live_links.h"
#include "drivers/live/live_port.h"
#include "drivers/live/live_progress.h"
#include "drivers/live/live_wake.h"
#include "drivers/stat_server.h"
#include "drivers/system/clock.h"
#include "drivers/system/descriptor.h"
#include "drivers/system/guard.h"
#include "drivers/system/initialised.h"
#include "drivers/system/local_socket.h"
#include "drivers/system/poisoned.h"
#include "drivers/system/raced.h"
#include "drivers/system/random.h"
#include "drivers/system/sandbox.h"
#include "drivers/system/system.h"
#include "transport/srd/sender.h"
#include "world/account.h"

/* The time that the end of a program waits for our thread, which others may hold up. */
#define LEAVE_NS      2000000000u
#define LEAVE_STEP_NS 50000

/* The most response packets that one READ request asks for: a world that fetches their data in one
 * go is not busy with it for long. */
#define READ_PACKETS 512

/* Paths of a connection, if the user names no number: with this number, all paths seldom share one
 * route. */
#define PATHS_USUAL 4

static const struct nic_limits limits = {
    .qps = 1u << 17,
    .xrc_srqs = 1u << 16,
    .regions = 1u << 17,
    .sends_per_qp = 1u << 14,
    .receives_per_qp = 1u << 14,
    .receives_per_srq = 1u << 15,
    .sges = NIC_SGE_MAX,
    .inline_bytes = 1024,
    .reads_per_qp = NIC_READS_MAX,
    .reads = 1u << 23,
    .cq_entries = 1u << 20,
    .mtu = PATH_MTU_4096,
    .groups = UDP_GROUPS_MAX,
    .attachments = 1u << 14,
    .rc = {.packet_cost = UDP_PACKET_COST,
           .read_packets = READ_PACKETS,
           .read_waits_bytes = HABIT_READ_WAITS_BYTES},
    /* The transport is the user's choice (limits_of). RC bears a loss every now and then; it does
     * not bear two in a short time, or a round trip of more than a few switches. */
    .block = {.place = BLOCK_PLACE_EARLY,
              .window = BLOCK_WINDOW_MAX,
              .contexts = 4096,
              .held = 16384,
              .reads = 64,
              .peers = 1024,
              .connections = 1u << 14,
              .beyond_mtu = true,
              .auto_losses = 2,
              .auto_round_trip_ns = 1000000},
};

/* -- Opening ------------------------------------------------------------------------------------*/

static uint64_t random_seed(void)
{
    uint64_t seed;
    random_draw(&seed, sizeof(seed));
    return seed;
}

/* UDP source ports of an address that are used at a time. Switches choose among equal routes by
 * ports; there are none within a machine. */
static uint32_t paths_of(const struct live *live)
{
    const bool loopback = live->addresses.entries[0].loopback;
    return live->config.paths != 0 ? live->config.paths : loopback ? 1 : PATHS_USUAL;
}

/* A path that dies takes a port that was not in use. A single path needs a single port. */
static uint32_t ports_of(const struct live *live)
{
    return paths_of(live) == 1 ? 1 : NIC_ROUTES_MAX;
}

/* The numbers are our choice, but for the scatter-gather elements and the bytes inline, which are
 * those of the adapters that there are. Programs find their queue pairs by QPNs modulo the number
 * of queue pairs, rounded up to a power of two: so none are alike in the last 8 bits. */
static void limit_efa(struct nic_limits *mine)
{
    mine->qps = 250;
    mine->qpn_span = 256;
    mine->sends_per_qp = 4096;
    mine->receives_per_qp = 8192;
    mine->sges = 2;
    mine->inline_bytes = 32;
    mine->groups = mine->attachments = 0;
    /* A packet of SRD has up to 24 bytes more in front of its payload than one of RoCE. */
    mine->srd = (struct srd_limits){.contacts = 1u << 17,
                                    .peers = 4096,
                                    .hosts = SRD_HOSTS_MAX,
                                    .assemblies = 4096,
                                    .requests = 1u << 14,
                                    .parts = 4096,
                                    .packets = 1u << 14,
                                    .reads = 1024,
                                    .send_bytes = 8192,
                                    .paths = mine->block.paths < SRD_FLOW_PATHS ? mine->block.paths
                                                                                : SRD_FLOW_PATHS,
                                    .alone_bytes = 1u << 16,
                                    .chunk_bytes = path_mtu_bytes(mine->mtu) - SRD_CHUNK_STEP};
    mine->srd.chunk_bytes =
        mine->srd.chunk_bytes < SRD_CHUNK_LEAST ? SRD_CHUNK_LEAST : mine->srd.chunk_bytes;
}

/* On each wire, no packet is larger than the interface takes: the port has one MTU. A process that
 * shares its address has a part of the QPNs; two of them belong to nobody. */
static struct nic_limits limits_of(const struct live *live)
{
    struct nic_limits mine = limits;
    mine.mtu = live->addresses.mtu;
    if (is_odd(ODD_SMALL)) {
        mine.reads_per_qp = 1;
        mine.inline_bytes = 64;
        mine.sges = 4;
    }
    mine.lkey_bits = is_odd(ODD_KEYS) ? (uint8_t)(1 + odd_draw(ODD_KEYS, UINT8_MAX)) : 0;
    mine.block.transport =
        live->config.wire == LIVE_WIRE_SHM ? NIC_TRANSPORT_RC : live->config.transport;
    /* All interfaces together have the usual number of paths. */
    const uint32_t paths = paths_of(live), most = paths > PATHS_USUAL ? paths : PATHS_USUAL;
    mine.block.paths = paths * live->addresses.words < most ? paths * live->addresses.words : most;
    if (live->addresses.shared) {
        CHECK(live->addresses.slot < SHARE_SLOTS);
        mine.qpn_base = live->addresses.slot * SHARE_QPN_SPAN;
        mine.qpn_span = SHARE_QPN_SPAN;
        mine.qps = SHARE_QPN_SPAN - 2;
    }
    if (live->config.nic == LIVE_EFA) {
        limit_efa(&mine);
        mine.srd.paths = live->config.wire == LIVE_WIRE_SHM ? 1 : mine.srd.paths;
    }
    if (live->config.map_queues) {
        mine.key_bits = REGION_SHORT_KEY_BITS; /* Descriptors have no more. */
        mine.regions = REGION_SHORT_COUNT_MAX;
    }
    return mine;
}

/* The tables and pools are large and mostly empty: pages that nobody touches cost nothing. */
static void *map_nic(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static bool has_udp(const struct live *live)
{
    return udp_port_fd_count(&live->udp) > 0;
}

/* The pools are smaller where a process may not have enough address space (ulimit -v), or where the
 * system counts pages that nobody touches (vm.overcommit_memory = 2). */
static bool make_nic(struct live *live, char *error, size_t error_bytes)
{
    CHECK(live->nic == NULL);
    struct nic_limits mine = limits_of(live);
    size_t bytes = nic_bytes(&mine);
    while ((live->nic_memory = map_nic(bytes)) == NULL && mine.block.connections > 1) {
        mine.reads /= 2;
        mine.block.connections /= 2;
        bytes = nic_bytes(&mine);
    }
    if (live->nic_memory == NULL) {
        snprintf(error, error_bytes, "no memory for the NIC's tables (%zu bytes)", bytes);
        return false;
    }
    live->nic_memory_bytes = bytes;
    live->nic = nic_init(&mine, random_seed(), live->nic_memory);
    if (live->config.nic == LIVE_EFA && has_udp(live)) {
        udp_port_describe_routes(&live->udp, &live->addresses.entries[0].gid,
                                 srd_own_routes(live->nic));
    }
    live->is_boxed = getauxval(AT_SYSINFO_EHDR) == BOX_VDSO_ADDRESS;
    page_tell_nic(getauxval(AT_SYSINFO_EHDR),
                  &(struct box_nic){.process = getpid(),
                                    .counters = COUNTER_COUNT,
                                    .address = (uintptr_t)nic_counters(live->nic)->values,
                                    .account = (uintptr_t)account_of_nic,
                                    .nic = (uintptr_t)live->nic});
    return true;
}

/* Shared memory is enough without UDP, unless the user insists on UDP or on an address. */
static bool find_addresses(struct live *live, char *error, size_t error_bytes)
{
    if (address_find(&live->addresses, live->config.device, error, error_bytes)) {
        return true;
    }
    return errno == EADDRINUSE && live->config.device == NULL &&
           live->config.wire != LIVE_WIRE_UDP &&
           address_find_without_udp(&live->addresses, error, error_bytes);
}

static bool open_ports(struct live *live, char *error, size_t error_bytes)
{
    if (!find_addresses(live, error, error_bytes)) {
        return false;
    }
    if (is_odd(ODD_MTU) && live->addresses.mtu > PATH_MTU_1024) {
        /* The same in all processes: rdma_cm refuses a peer whose MTU is larger. */
        live->addresses.mtu = PATH_MTU_1024;
    }
    live_port_begin(live);
    if (!udp_port_open(&live->udp, &live->addresses, error, error_bytes)) {
        return false;
    }
    udp_port_use_ports(&live->udp, ports_of(live));
    if (live->config.wire == LIVE_WIRE_UDP) {
        return true;
    }
    const int slot = live->addresses.shared ? (int)live->addresses.slot : LOCAL_NO_SLOT;
    live->shm = shm_port_open(&live->addresses.entries[0].gid, slot, error, error_bytes);
    if (live->shm == NULL && errno == EADDRINUSE && !live->addresses.shared) {
        errno = EAGAIN; /* The next address that is drawn is another. */
    }
    const bool enough = live->shm != NULL || (live->config.wire == LIVE_WIRE_AUTO && has_udp(live));
    if (enough && live->shm == NULL && errno == EPERM) {
        fprintf(stderr, "nonic: %s; this program uses UDP alone\n", error);
    }
    return enough;
}

static bool open_observers(struct live *live, char *error, size_t error_bytes)
{
    if (live->config.capture != NULL) {
        live->capture = capture_open(live->config.capture, error, error_bytes);
        if (live->capture == NULL) {
            return false;
        }
    }
    if (live->config.fault != NULL) {
        live->faults = faults_open(live->config.fault, error, error_bytes);
        if (live->faults == NULL) {
            return false;
        }
    }
    live->is_watched = live->capture != NULL || live->faults != NULL || odd_wanted != 0 ||
                       poison_is_noted() || race_is_noted();
    if (live->shm != NULL && live->is_watched) {
        /* Nobody would see the bytes that a peer writes into our memory by itself. */
        shm_port_set_direct(live->shm, false);
    }
    live_begin_lending(live);
    return true;
}

static bool open_manager(struct live *live, char *error, size_t error_bytes)
{
    if (!live_cm_open(live, random_seed())) {
        snprintf(error, error_bytes, "connection manager: %s", strerror(errno));
        return false;
    }
    return sandbox_answers(live->manager.services.fd, error, error_bytes);
}

struct live *live_claim(const struct live_config *config, char *error, size_t error_bytes)
{
    CHECK(config->batch > 0 && config->paths <= NIC_ROUTES_MAX);
    struct live *live = calloc(1, sizeof(*live));
    if (live == NULL) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    live->config = *config;
    live->thread.poll_fd = live->thread.wake_fd = live->thread.stat_fd = -1;
    live->manager.services.fd = -1;
    list_init(&live->manager.parked);
    list_init(&live->manager.lookups);
    habit_init(&live->habit, config->batch);
    lock_init(&live->lock);
    memory_begin_watch();
    live_begin_links(live);
    if (!open_ports(live, error, error_bytes) || !make_nic(live, error, error_bytes) ||
        !open_observers(live, error, error_bytes) || !open_manager(live, error, error_bytes)) {
        const int reason = errno;
        live_close(live);
        errno = reason;
        return NULL;
    }
    return live;
}

static bool watch(struct live *live, int fd, uint32_t events)
{
    CHECK(fd >= 0 && live->thread.poll_fd >= 0);
    struct epoll_event event = {.events = events, .data.fd = fd};
    return system_epoll_change(live->thread.poll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool watch_all(struct live *live)
{
    /* Open ones would be lost. */
    CHECK(live->thread.poll_fd < 0 && live->thread.wake_fd < 0 && live->thread.stat_fd < 0);
    live->thread.poll_fd = descriptor_own(system_epoll_create(EPOLL_CLOEXEC));
    live->thread.wake_fd = descriptor_own(system_eventfd(EFD_CLOEXEC | EFD_NONBLOCK));
    if (live->thread.poll_fd < 0 || live->thread.wake_fd < 0 ||
        !watch(live, live->thread.wake_fd, EPOLLIN)) {
        return false;
    }
    for (uint32_t i = 0; i < udp_port_fd_count(&live->udp); i++) {
        if (!watch(live, udp_port_fd(&live->udp, i), EPOLLIN)) {
            return false;
        }
    }
    live->thread.udp_watched = true;
    if (!watch(live, live->manager.services.fd, EPOLLIN) || !live_cm_watch(live) ||
        !udp_port_watch_shared(&live->udp, live->thread.poll_fd)) {
        return false;
    }
    live->thread.stat_fd = stat_server_open();
    if (live->thread.stat_fd >= 0 && !watch(live, live->thread.stat_fd, EPOLLIN)) {
        /* Then a tool that asks is refused, and does not wait in vain. */
        descriptor_close(live->thread.stat_fd);
        live->thread.stat_fd = -1;
    }
    if (live_port_watch(live) && !watch(live, live->port.watch->fd, EPOLLIN)) {
        return false;
    }
    return live->shm == NULL || watch(live, shm_port_fd(live->shm), EPOLLIN);
}

/* Undoes watch_all, so that a program may try again. */
static void unwatch(struct live *live)
{
    CHECK(!live->thread.started); /* It sleeps on what is closed here. */
    descriptor_close(live->thread.poll_fd);
    descriptor_close(live->thread.wake_fd);
    descriptor_close(live->thread.stat_fd);
    live_port_unwatch(live);
    live->thread.poll_fd = live->thread.wake_fd = live->thread.stat_fd = -1;
    live->thread.udp_watched = false;
}

bool live_start(struct live *live, char *error, size_t error_bytes)
{
    if (live->thread.started) {
        return true;
    }
    if (!watch_all(live)) {
        const int reason = errno;
        snprintf(error, error_bytes, "no descriptors for the progress thread: %s",
                 strerror(reason));
        unwatch(live);
        errno = reason;
        return false;
    }
    if (live->config.wire == LIVE_WIRE_SHM) {
        live_explain_other_layouts(&live->explained, clock_now());
    }
    /* Our thread takes none of the program's signals, but those for faults of our copies. */
    sigset_t all, before;
    guard_install();
    sigfillset(&all);
    sigdelset(&all, SIGSEGV);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const int failed = system_start_thread(&live->thread.id, live_thread, live);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed != 0) {
        snprintf(error, error_bytes, "no progress thread: %s", strerror(failed));
        unwatch(live);
        errno = failed;
        return false;
    }
    pthread_setname_np(live->thread.id, "nonic");
    CHECK(live->thread.poll_fd >= 0 && live->thread.wake_fd >= 0);
    live->thread.started = true;
    return true;
}

/* False: the thread still runs, or waits for a lock that is never given back. The C library's own
 * join waits without a limit, or by a clock that people may set. */
static bool join(struct live *live)
{
    const struct instant end = instant_after(clock_now(), LEAVE_NS);
    live->thread.stopping = true;
    live_wake(live);
    while (pthread_tryjoin_np(live->thread.id, NULL) != 0) {
        if (instant_reached(clock_now(), end)) {
            return false;
        }
        system_sleep(LEAVE_STEP_NS);
    }
    live->thread.started = false;
    return true;
}

/* False: a thread is inside, and stays there. */
static bool leave(struct live *live)
{
    if (lock_is_held_here(&live->lock)) {
        return false;
    }
    if (live->thread.started) {
        return join(live);
    }
    if (live->nic != NULL) {
        live_finish(live);
    }
    return true;
}

void live_leave(struct live *live)
{
    (void)leave(live);
}

void live_close(struct live *live)
{
    if (!leave(live)) {
        return;
    }
    CHECK(!live->thread.started); /* It would use what goes here. */
    live_cm_close(live);
    capture_close(live->capture);
    faults_close(live->faults);
    live_forget_links(live);
    if (live->shm != NULL) {
        shm_port_close(live->shm);
    }
    udp_port_close(&live->udp);
    address_release(&live->addresses);
    unwatch(live);
    if (live->nic_memory != NULL) {
        page_forget_nic(getauxval(AT_SYSINFO_EHDR), getpid(), live->nic);
        munmap(live->nic_memory, live->nic_memory_bytes);
    }
    lock_destroy(&live->lock);
    free(live);
}

/* -- Looking ------------------------------------------------------------------------------------*/

void live_describe_ports(const struct live *live, struct live_ports *ports)
{
    *ports = (struct live_ports){
        .udp = has_udp(live),
        .segmentation = live->udp.segmenting,
        .shm = live->shm != NULL,
        .paths = paths_of(live),
        .receive_bytes = live->udp.receive_bytes,
        .window_bytes = udp_port_window_bytes(&live->udp),
    };
}

/* All that the NIC is lies in private memory, or is closed in the child. */
void live_forks(struct live *live)
{
    (void)live;
}

void live_goes_on(struct live *live)
{
    (void)live;
}

void live_forked(struct live *live)
{
    descriptors_close_all();
    address_forget(&live->addresses);
    udp_port_forget_sockets(&live->udp);
    capture_forget(live->capture);
    live->thread.poll_fd = live->thread.wake_fd = live->thread.stat_fd = -1;
    if (live->port.watch != NULL) {
        live->port.watch->fd = -1;
    }
    if (live->shm != NULL) {
        shm_port_forget(live->shm);
        live->shm = NULL;
    }
    live->listener = (struct live_listener){0};
    live->owner = (struct live_owner){0};
    live->thread.started = false;
    live->inherited = true;
    if (lock_is_held_here(&live->lock)) {
        unchecked_end(); /* lock_take began that. */
    }
    /* The thread that held the lock is not in this process. */
    lock_init(&live->lock);
}
