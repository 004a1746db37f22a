/* SPDX-License-Identifier: BSD-2-Clause
 *
 * last_words - one side of a connection that says its last word and calls exit() at once, or the
 * other side, which has to hear that word.
 *
 * Usage: last_words server|client disconnect|exit|reject|hear PORT
 *
 * disconnect: exit() right after rdma_disconnect. exit: without it, and without rdma_destroy_id.
 * reject: exit() right after rdma_reject. hear: waits for the word, and says which one it was.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdbool.h>

#include "tests/hostile/victim.h"

#define PORT_SPACE_TCP 0x106
#define RESOLVE_MS     10000

/* Debian's librdmacm, without its headers. */
enum event_type {
    ADDRESS_RESOLVED = 0,
    ROUTE_RESOLVED = 2,
    CONNECT_REQUEST = 4,
    CONNECT_RESPONSE = 5,
    REJECTED = 8,
    ESTABLISHED = 9,
    DISCONNECTED = 10,
};

struct event {
    void *id, *listening;
    enum event_type type;
    int status;
};

struct parameters {
    const void *private_data;
    uint8_t private_data_bytes, responder_resources, initiator_depth, flow_control;
    uint8_t retries, rnr_retries, srq;
    uint32_t qpn;
};

static struct {
    void *library, *channel;
} cm;

static void *find(const char *name)
{
    void *symbol = dlsym(cm.library, name);
    EXPECT(symbol != NULL);
    return symbol;
}

/* Calls a function of the library that takes an id and up to two words, and returns 0. */
static void call(const char *name, void *id, uintptr_t a, uintptr_t b)
{
    int (*function)(void *, uintptr_t, uintptr_t);
    *(void **)&function = find(name);
    EXPECT(function(id, a, b) == 0);
}

static void *create_id(void)
{
    int (*create)(void *, void **, void *, int);
    *(void **)&create = find("rdma_create_id");
    void *id;
    EXPECT(create(cm.channel, &id, NULL, PORT_SPACE_TCP) == 0);
    return id;
}

/* It is acknowledged already; the id of a request is its own. */
static struct event next_event(void)
{
    struct event *event, seen;
    call("rdma_get_cm_event", cm.channel, (uintptr_t)&event, 0);
    seen = *event;
    call("rdma_ack_cm_event", event, 0, 0);
    return seen;
}

static void expect(enum event_type type)
{
    const struct event seen = next_event();
    if (seen.type != type) {
        fprintf(stderr, "event %d, status %d, not event %d\n", seen.type, seen.status, type);
        _exit(1);
    }
}

/* No queue pair is made: the connection manager carries a number, no more. */
static const struct parameters parameters = {.retries = 7, .rnr_retries = 7, .qpn = 77};

static struct sockaddr_in address_of(const char *text, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    EXPECT(inet_pton(AF_INET, text, &address.sin_addr) == 1);
    return address;
}

/* The last act of the other side, whether it came before or after the RTU. */
static int hear(void)
{
    for (;;) {
        const struct event seen = next_event();
        if (seen.type == DISCONNECTED || seen.type == REJECTED) {
            printf("heard: %s\n", seen.type == REJECTED ? "rejected" : "disconnected");
            return 0;
        }
        if (seen.type != ESTABLISHED) {
            fprintf(stderr, "event %d, status %d\n", seen.type, seen.status);
            return 1;
        }
    }
}

static int end(void *id, const char *how)
{
    if (strcmp(how, "hear") == 0) {
        return hear();
    }
    if (strcmp(how, "disconnect") == 0) {
        call("rdma_disconnect", id, 0, 0);
    }
    return 0;
}

static int serve(const char *how, int port)
{
    void *listening = create_id();
    struct sockaddr_in any = address_of("0.0.0.0", port);
    call("rdma_bind_addr", listening, (uintptr_t)&any, 0);
    call("rdma_listen", listening, 1, 0);
    const struct event request = next_event();
    EXPECT(request.type == CONNECT_REQUEST);
    if (strcmp(how, "reject") == 0) {
        call("rdma_reject", request.id, 0, 0);
        return 0;
    }
    call("rdma_accept", request.id, (uintptr_t)&parameters, 0);
    if (strcmp(how, "hear") != 0) {
        expect(ESTABLISHED);
    }
    return end(request.id, how);
}

static int ask(const char *how, int port)
{
    void *id = create_id();
    struct sockaddr_in to = address_of("127.0.0.1", port);
    int (*resolve)(void *, void *, void *, int);
    *(void **)&resolve = find("rdma_resolve_addr");
    EXPECT(resolve(id, NULL, &to, RESOLVE_MS) == 0);
    expect(ADDRESS_RESOLVED);
    call("rdma_resolve_route", id, RESOLVE_MS, 0);
    expect(ROUTE_RESOLVED);
    call("rdma_connect", id, (uintptr_t)&parameters, 0);
    const struct event answer = next_event();
    if (answer.type == REJECTED && strcmp(how, "hear") == 0) {
        printf("heard: rejected\n");
        return 0;
    }
    EXPECT(answer.type == CONNECT_RESPONSE);
    call("rdma_establish", id, 0, 0);
    return end(id, how);
}

int main(int argc, char **argv)
{
    EXPECT(argc == 4);
    cm.library = dlopen("librdmacm.so.1", RTLD_NOW);
    EXPECT(cm.library != NULL);
    void *(*create_channel)(void);
    *(void **)&create_channel = find("rdma_create_event_channel");
    cm.channel = create_channel();
    EXPECT(cm.channel != NULL);
    const int port = atoi(argv[3]);
    /* From main: so ends exit(), and nothing was destroyed. */
    exit(strcmp(argv[1], "server") == 0 ? serve(argv[2], port) : ask(argv[2], port));
}
