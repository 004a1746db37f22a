/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The two sides of ucx_endpoints, each in a process of its own: all that knows UCX is here.
 */
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include "bench/ucx_endpoints.h"

#define WORDS         8
#define SLOT_BYTES    (WORDS * sizeof(uint64_t))
#define LATENCIES_MAX 4096
/* Posts between two polls: no more than the number of completions that one poll of UCX's queues
 * takes. */
#define POSTS_A_POLL 16

#define fail(...) (set_error(__VA_ARGS__), _exit(1))

static void must(ucs_status_t status, const char *what)
{
    if (status != UCS_OK) {
        fail("%s: %s", what, ucs_status_string(status));
    }
}

static void *must_have(void *memory, const char *what)
{
    if (memory == NULL || memory == MAP_FAILED) {
        fail("%s: %s", what, strerror(errno));
    }
    return memory;
}

static void write_all(int fd, const void *from, size_t bytes)
{
    for (const char *p = from; bytes > 0;) {
        const ssize_t count = write(fd, p, bytes);
        if (count <= 0) {
            fail("write to the other process: %s", strerror(errno));
        }
        p += count;
        bytes -= (size_t)count;
    }
}

static void read_all(int fd, void *to, size_t bytes)
{
    for (char *p = to; bytes > 0;) {
        const ssize_t count = read(fd, p, bytes);
        if (count <= 0) {
            fail("read from the other process: %s", count == 0 ? "it is gone" : strerror(errno));
        }
        p += count;
        bytes -= (size_t)count;
    }
}

static uint64_t count_lines(const char *path)
{
    FILE *file = must_have(fopen(path, "r"), path);
    uint64_t lines = 0;
    for (int c; (c = getc(file)) != EOF;) {
        lines += c == '\n';
    }
    fclose(file);
    return lines;
}

static uint64_t sum_kilobytes(const char *path, const char *name)
{
    FILE *file = must_have(fopen(path, "r"), path);
    uint64_t bytes = 0;
    char line[256];
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            bytes += strtoull(line + strlen(name), NULL, 10) * 1024;
        }
    }
    fclose(file);
    return bytes;
}

static struct usage usage_now(void)
{
    struct usage usage = {.bytes = sum_kilobytes("/proc/self/smaps_rollup", "Pss:"),
                          .resident = sum_kilobytes("/proc/self/smaps_rollup", "Rss:"),
                          .tables = sum_kilobytes("/proc/self/status", "VmPTE:"),
                          .mappings = count_lines("/proc/self/maps")};
    DIR *directory = must_have(opendir("/proc/self/fd"), "/proc/self/fd");
    while (readdir(directory) != NULL) {
        usage.files++;
    }
    closedir(directory);
    return usage;
}

static void fill(uint64_t *words, uint64_t endpoint, uint64_t sequence)
{
    for (uint64_t i = 0; i < WORDS; i++) {
        words[i] = (endpoint << 40 ^ sequence) * 0x9e3779b97f4a7c15u + i;
    }
}

static void open_worker(ucp_context_h *context, ucp_worker_h *worker)
{
    const ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                                 .features = UCP_FEATURE_RMA};
    const ucp_worker_params_t worker_params = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                               .thread_mode = UCS_THREAD_MODE_SINGLE};
    ucp_config_t *config;
    must(ucp_config_read(NULL, NULL, &config), "ucp_config_read");
    must(ucp_init(&params, config, context), "ucp_init");
    ucp_config_release(config);
    must(ucp_worker_create(*context, &worker_params, worker), "ucp_worker_create");
}

/* -- A peer: memory, and a worker that is polled ------------------------------------------------*/

/* Where the endpoint's slot is among its peer's. */
static size_t slot_of(uint32_t endpoint)
{
    return endpoint / options.peers * SLOT_BYTES;
}

static uint32_t slots_of_peer(uint32_t qps, uint32_t peer)
{
    return qps / options.peers + (peer < qps % options.peers);
}

struct hello {
    uint64_t address_bytes, key_bytes, memory;
};

static void *map_memory(ucp_context_h context, size_t bytes, ucp_mem_h *handle)
{
    ucp_mem_map_params_t params = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                                 UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                   .length = bytes,
                                   .flags = UCP_MEM_MAP_ALLOCATE};
    if (!options.allocated) {
        params.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS | UCP_MEM_MAP_PARAM_FIELD_LENGTH;
        params.address = must_have(aligned_alloc(4096, (bytes + 4095) & ~4095ul), "slots");
    }
    must(ucp_mem_map(context, &params, handle), "ucp_mem_map");
    ucp_mem_attr_t attributes = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    must(ucp_mem_query(*handle, &attributes), "ucp_mem_query");
    return attributes.address;
}

_Noreturn void run_peer(int fd, uint32_t peer, uint32_t qps)
{
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_mem_h handle;
    ucp_address_t *address;
    void *key;
    open_worker(&context, &worker);
    const uint32_t slots = slots_of_peer(qps, peer);
    uint64_t *memory = map_memory(context, slots * SLOT_BYTES, &handle);
    for (uint32_t i = 0; i < slots; i++) {
        fill(memory + i * WORDS, i * options.peers + peer, 0);
    }
    struct hello hello = {.memory = (uintptr_t)memory};
    must(ucp_worker_get_address(worker, &address, &hello.address_bytes), "ucp_worker_get_address");
    must(ucp_rkey_pack(context, handle, &key, &hello.key_bytes), "ucp_rkey_pack");
    write_all(fd, &hello, sizeof(hello));
    write_all(fd, address, hello.address_bytes);
    write_all(fd, key, hello.key_bytes);
    for (uint32_t i = 0;; i++) {
        if (ucp_worker_progress(worker) == 0) {
            sched_yield();
        }
        char what;
        if (i % 256 != 0 || recv(fd, &what, 1, MSG_DONTWAIT) != 1) {
            continue;
        }
        if (what == 'u') {
            const struct usage usage = usage_now();
            write_all(fd, &usage, sizeof(usage));
        } else {
            write_all(fd, memory, slots * SLOT_BYTES);
        }
    }
}

/* -- The initiator ------------------------------------------------------------------------------*/

struct operation {
    uint64_t words[WORDS];
    struct operation *next;
    uint32_t endpoint, pending;
};

struct endpoint {
    ucp_ep_h handle;
    ucp_rkey_h key;
    uint64_t last;
};

static struct initiator {
    ucp_context_h context;
    ucp_worker_h worker;
    struct hello peers[PEERS_MAX];
    ucp_address_t *addresses[PEERS_MAX];
    void *keys[PEERS_MAX];
    int sockets[PEERS_MAX];
    struct endpoint *endpoints;
    struct operation *operations, *unused;
    uint32_t qps, next;
    uint64_t sequence;
} self;

static void progress(void)
{
    if (ucp_worker_progress(self.worker) == 0) {
        sched_yield();
    }
}

static _Noreturn void fail_data(uint32_t endpoint)
{
    outcome->wrong_data = true;
    fail("endpoint %u: not the data that was written last", endpoint);
}

static void release(struct operation *operation)
{
    if (--operation->pending > 0) {
        return;
    }
    if (options.read) {
        uint64_t expected[WORDS];
        fill(expected, operation->endpoint, 0);
        if (memcmp(expected, operation->words, SLOT_BYTES) != 0) {
            fail_data(operation->endpoint);
        }
    }
    operation->next = self.unused;
    self.unused = operation;
}

static void on_complete(void *request, ucs_status_t status, void *user)
{
    if (status != UCS_OK) {
        fail("endpoint %u of %u: operation: %s", ((struct operation *)user)->endpoint,
             outcome->connected, ucs_status_string(status));
    }
    ucp_request_free(request);
    release(user);
}

/* UCX returns NULL for an operation that is done already: then there is no callback. */
static void account(struct operation *operation, ucs_status_ptr_t request)
{
    if (UCS_PTR_IS_ERR(request)) {
        fail("endpoint %u: %s", operation->endpoint, ucs_status_string(UCS_PTR_STATUS(request)));
    }
    operation->pending += request != NULL;
}

static void post(uint32_t index, bool flush)
{
    struct operation *operation = self.unused;
    struct endpoint *endpoint = &self.endpoints[index];
    const ucp_request_param_t param = {.op_attr_mask =
                                           UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb.send = on_complete,
                                       .user_data = operation};
    const uint64_t remote = self.peers[index % options.peers].memory + slot_of(index);
    self.unused = operation->next;
    operation->endpoint = index;
    operation->pending = 1;
    if (options.read) {
        memset(operation->words, 0, SLOT_BYTES);
        account(operation, ucp_get_nbx(endpoint->handle, operation->words, SLOT_BYTES, remote,
                                       endpoint->key, &param));
    } else {
        endpoint->last = ++self.sequence;
        fill(operation->words, index, endpoint->last);
        account(operation, ucp_put_nbx(endpoint->handle, operation->words, SLOT_BYTES, remote,
                                       endpoint->key, &param));
        if (flush) {
            account(operation, ucp_ep_flush_nbx(endpoint->handle, &param));
        }
    }
    release(operation);
}

static void on_flushed(void *request, ucs_status_t status, void *user)
{
    must(status, "ucp_worker_flush_nbx");
    ucp_request_free(request);
    *(bool *)user = true;
}

/* Waits until all that was posted is done at the peers as well. */
static void flush_all(void)
{
    bool done = false;
    const ucp_request_param_t param = {.op_attr_mask =
                                           UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA,
                                       .cb.send = on_flushed,
                                       .user_data = &done};
    const ucs_status_ptr_t request = ucp_worker_flush_nbx(self.worker, &param);
    if (UCS_PTR_IS_ERR(request)) {
        must(UCS_PTR_STATUS(request), "ucp_worker_flush_nbx");
    }
    while (request != NULL && !done) {
        progress();
    }
    for (uint32_t i = 0; i < options.depth; i++) {
        while (self.operations[i].pending > 0) {
            progress();
        }
    }
}

static void connect_endpoint(uint32_t index)
{
    struct endpoint *endpoint = &self.endpoints[index];
    const uint32_t peer = index % options.peers;
    const ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                                    .address = self.addresses[peer]};
    errno = 0;
    ucs_status_t status = ucp_ep_create(self.worker, &params, &endpoint->handle);
    if (status == UCS_OK) {
        status = ucp_ep_rkey_unpack(endpoint->handle, self.keys[peer], &endpoint->key);
    }
    if (status != UCS_OK) {
        fail("endpoint %u: %s (%s)", index, ucs_status_string(status), strerror(errno));
    }
}

/* Runs operations round robin until `end`, finishes them, and returns how many there were. */
static uint64_t run_until(double end)
{
    uint64_t count = 0;
    do {
        for (int i = 0; i < POSTS_A_POLL; i++) {
            if (self.unused == NULL) {
                progress();
                continue;
            }
            post(self.next, options.acknowledged);
            self.next = self.next + 1 == self.qps ? 0 : self.next + 1;
            count++;
        }
        /* An operation that is done at once on this side is still answered by the other one. */
        ucp_worker_progress(self.worker);
    } while (now() < end);
    flush_all();
    return count;
}

static int compare_handles(const void *a, const void *b)
{
    const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b;
    return (x > y) - (x < y);
}

/* UCX is asked for the same address again and again: nothing forbids it to share connections. */
static void check_distinct(void)
{
    uintptr_t *handles = must_have(calloc(self.qps, sizeof(handles[0])), "handles");
    for (uint32_t i = 0; i < self.qps; i++) {
        handles[i] = (uintptr_t)self.endpoints[i].handle;
    }
    qsort(handles, self.qps, sizeof(handles[0]), compare_handles);
    for (uint32_t i = 1; i < self.qps; i++) {
        if (handles[i] == handles[i - 1]) {
            fail("ucp_ep_create returned the same endpoint twice");
        }
    }
    free(handles);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double measure_latency_us(void)
{
    static double taken[LATENCIES_MAX];
    const double end = now() + options.seconds;
    size_t count = 0;
    for (double begun = now(); count < LATENCIES_MAX && begun < end; count++) {
        struct operation *operation = self.unused;
        post(self.next, true);
        while (operation->pending > 0) {
            progress();
        }
        self.next = self.next + 1 == self.qps ? 0 : self.next + 1;
        const double done = now();
        taken[count] = done - begun;
        begun = done;
    }
    qsort(taken, count, sizeof(taken[0]), compare_doubles);
    return taken[count / 2] * 1e6;
}

/* This process and the peers together. */
static struct usage usage_of_all(void)
{
    struct usage sum = usage_now();
    for (uint32_t i = 0; i < options.peers; i++) {
        struct usage usage;
        write_all(self.sockets[i], "u", 1);
        read_all(self.sockets[i], &usage, sizeof(usage));
        sum.bytes += usage.bytes;
        sum.resident += usage.resident;
        sum.tables += usage.tables;
        sum.files += usage.files;
        sum.mappings += usage.mappings;
    }
    return sum;
}

/* UCX promises no order among an endpoint's puts; over one lane, as here, they do not overtake. */
static void check_data(void)
{
    for (uint32_t peer = 0; peer < options.peers; peer++) {
        const uint32_t slots = slots_of_peer(self.qps, peer);
        uint64_t *memory = must_have(malloc(slots * SLOT_BYTES), "slots"), expected[WORDS];
        write_all(self.sockets[peer], "d", 1);
        read_all(self.sockets[peer], memory, slots * SLOT_BYTES);
        for (uint32_t i = 0; i < slots; i++) {
            const uint32_t endpoint = i * options.peers + peer;
            fill(expected, endpoint, self.endpoints[endpoint].last);
            if (memcmp(expected, memory + i * WORDS, SLOT_BYTES) != 0) {
                fail_data(endpoint);
            }
        }
        free(memory);
    }
}

static void open_initiator(uint32_t qps)
{
    open_worker(&self.context, &self.worker);
    for (uint32_t i = 0; i < options.peers; i++) {
        struct hello *peer = &self.peers[i];
        read_all(self.sockets[i], peer, sizeof(*peer));
        self.addresses[i] = must_have(malloc(peer->address_bytes), "address");
        self.keys[i] = must_have(malloc(peer->key_bytes), "key");
        read_all(self.sockets[i], self.addresses[i], peer->address_bytes);
        read_all(self.sockets[i], self.keys[i], peer->key_bytes);
    }
    self.qps = qps;
    self.endpoints = must_have(calloc(qps, sizeof(self.endpoints[0])), "endpoints");
    /* The program's own table is touched before anything is counted: it is not UCX's memory. */
    memset(self.endpoints, 0xff, qps * sizeof(self.endpoints[0]));
    memset(self.endpoints, 0, qps * sizeof(self.endpoints[0]));
    self.operations = must_have(calloc(options.depth, sizeof(struct operation)), "operations");
    for (uint32_t i = options.depth; i-- > 0;) {
        self.operations[i].next = self.unused;
        self.unused = &self.operations[i];
    }
}

_Noreturn void run_initiator(const int *peers, uint32_t qps, int doorbell)
{
    memcpy(self.sockets, peers, sizeof(self.sockets));
    open_initiator(qps);
    outcome->before = usage_of_all();
    const double begun = now();
    for (uint32_t i = 0; i < qps; i++) {
        connect_endpoint(i);
        while (self.unused == NULL) {
            progress();
        }
        post(i, false);
        ucp_worker_progress(self.worker);
        outcome->connected = i + 1;
    }
    flush_all();
    outcome->setup_s = now() - begun;
    outcome->after = usage_of_all();
    check_distinct();
    outcome->set_up = true;
    write_all(doorbell, "s", 1);
    run_until(now() + options.seconds / 4);
    const double started = now();
    const uint64_t count = run_until(started + options.seconds);
    outcome->rate = (double)count / (now() - started);
    outcome->latency_us = measure_latency_us();
    flush_all();
    check_data();
    outcome->finished = true;
    _exit(0);
}
