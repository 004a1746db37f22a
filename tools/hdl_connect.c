/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_connect.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "drivers/system/local_socket.h"
#include "transport/ibta/rdma_cm.h"

#define LINE_BYTES   256
#define LOOK_NS      UINT64_C(10000000)    /* A file is looked into this often. */
#define PATIENCE_NS  UINT64_C(10000000000) /* A client that says nothing is given up then. */
#define DONE_BYTES   5                     /* "done", ibv_rc_pingpong's last word. */
#define CLIENTS_WAIT 8

static bool complain(const char *what, const char *why)
{
    fprintf(stderr, "nonic: %s: %s\n", what, why);
    return false;
}

static void connect_to(struct hdl_connect *connect, const struct hdl_half *peer)
{
    connect->pair->peer = *peer;
    connect->pair->send_psn = connect->pair->local.psn;
    connect->pair->receive_psn = peer->psn;
    connect->pair->pmtu = connect->wishes.pmtu;
    connect->pair->connected = connect->pair->is_new = true;
}

/* -- Words --------------------------------------------------------------------------------------*/

static bool read_words(struct hdl_connect *connect, const char *words)
{
    char wrong[PAIR_WORDS_BYTES];
    struct hdl_half peer;
    if (!pair_read_words(words, &peer, wrong)) {
        connect->failed = true;
        return complain("--connect", wrong);
    }
    connect_to(connect, &peer);
    return true;
}

static bool looks_now(struct hdl_connect *connect, struct instant now)
{
    const bool due = instant_reached(now, instant_after(connect->looked, LOOK_NS));
    connect->looked = due ? now : connect->looked;
    return due;
}

/* The line counts when its end is there. */
static void look_into_file(struct hdl_connect *connect, struct instant now)
{
    char line[LINE_BYTES];
    if (connect->pair->connected || connect->failed || !looks_now(connect, now)) {
        return;
    }
    FILE *file = fopen(connect->wishes.words, "r");
    if (file == NULL) {
        return;
    }
    if (fgets(line, sizeof(line), file) != NULL && strchr(line, '\n') != NULL) {
        (void)read_words(connect, line);
    }
    fclose(file);
}

/* -- ibv_rc_pingpong ----------------------------------------------------------------------------*/

static bool listen_for_pingpong(struct hdl_connect *connect)
{
    static const int on = 1;
    const struct sockaddr_in self = {.sin_family = AF_INET,
                                     .sin_port = htons(connect->wishes.pingpong_port),
                                     .sin_addr.s_addr = htonl(connect->pair->local.ip)};
    connect->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return (connect->listener >= 0 &&
            setsockopt(connect->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
            bind(connect->listener, (const struct sockaddr *)(const void *)&self, sizeof(self)) ==
                0 &&
            listen(connect->listener, CLIENTS_WAIT) == 0) ||
           complain("--pingpong", strerror(errno));
}

static void leave_client(struct hdl_connect *connect)
{
    close(connect->client);
    connect->client = -1;
}

/* A new client takes the place of the connection that there was. */
static void accept_client(struct hdl_connect *connect, struct instant now)
{
    connect->client = accept4(connect->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connect->client >= 0) {
        connect->pair->connected = false;
        connect->accepted = now;
        connect->message_bytes = 0;
        connect->answered = false;
    }
}

/* The whole message has come. */
static void take_message(struct hdl_connect *connect)
{
    struct hdl_half peer;
    if (pair_read_pingpong(connect->message, &peer)) {
        connect_to(connect, &peer);
        return;
    }
    printf("--pingpong: a client says '%.*s', which has no IPv4 address (--gid-idx chooses one)\n",
           PAIR_PINGPONG_BYTES, connect->message);
    leave_client(connect);
}

static void read_message(struct hdl_connect *connect, struct instant now)
{
    const ssize_t bytes = recv(connect->client, connect->message + connect->message_bytes,
                               sizeof(connect->message) - connect->message_bytes, 0);
    if (bytes > 0) {
        connect->message_bytes += (uint32_t)bytes;
        if (connect->message_bytes == sizeof(connect->message)) {
            take_message(connect);
        }
    } else if (bytes == 0 || (errno != EAGAIN && errno != EINTR) ||
               instant_reached(now, instant_after(connect->accepted, PATIENCE_NS))) {
        leave_client(connect);
    }
}

/* The design has seen its half by now. */
static void answer(struct hdl_connect *connect)
{
    char message[PAIR_PINGPONG_BYTES];
    pair_pingpong(&connect->pair->local, message);
    connect->answered = true;
    if (send(connect->client, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message)) {
        leave_client(connect);
    }
}

static void hear_done(struct hdl_connect *connect, struct instant now)
{
    char done[DONE_BYTES];
    if (recv(connect->client, done, sizeof(done), 0) >= 0 ||
        instant_reached(now, instant_after(connect->accepted, PATIENCE_NS))) {
        leave_client(connect);
    }
}

static void pingpong_turn(struct hdl_connect *connect, struct instant now)
{
    if (connect->client < 0) {
        accept_client(connect, now);
    } else if (!connect->pair->connected) {
        read_message(connect, now);
    } else if (!connect->answered) {
        answer(connect);
    } else {
        hear_done(connect, now);
    }
}

/* -- The connection manager ---------------------------------------------------------------------*/

static bool serve_port(struct hdl_connect *connect)
{
    const struct hdl_pair *pair = connect->pair;
    const uint16_t port = connect->wishes.cm_port;
    struct service_owner self = {.slot = LOCAL_NO_SLOT};
    uint16_t chosen;
    memset(self.gid.bytes + 10, 0xff, 2);
    store_be32(self.gid.bytes + 12, pair->local.ip);
    manager_init(&connect->manager, connect->pair, port, pair->local.ip);
    if (!services_open(&connect->services, &self)) {
        return complain("--cm", strerror(errno));
    }
    int wrong = services_claim(&connect->services, RDMA_PORT_SPACE_TCP, self.gid.bytes, false, port,
                               &chosen, &connect->service);
    wrong = wrong != 0 ? wrong : services_offer(&connect->services, connect->service);
    return wrong == 0 || complain("--cm", strerror(wrong));
}

static void manager_turn(struct hdl_connect *connect, struct instant now)
{
    manager_pass_time(&connect->manager, now);
    if (looks_now(connect, now)) {
        services_serve(&connect->services);
        services_on_time(&connect->services, now);
    }
}

/* -- All ----------------------------------------------------------------------------------------*/

bool hdl_connect_open(struct hdl_connect *connect, struct hdl_pair *pair,
                      const struct hdl_connect_wishes *wishes)
{
    *connect = (struct hdl_connect){.wishes = *wishes, .pair = pair, .listener = -1, .client = -1};
    if (wishes->cm_port != 0) {
        return serve_port(connect);
    }
    if (wishes->words != NULL && strchr(wishes->words, '=') != NULL) {
        return read_words(connect, wishes->words);
    }
    return wishes->pingpong_port == 0 || listen_for_pingpong(connect);
}

static void tell(struct hdl_connect *connect)
{
    char words[PAIR_WORDS_BYTES];
    if (!connect->has_told) {
        connect->has_told = true;
        printf("queue pair: %s\n", pair_words(&connect->pair->local, words));
        fflush(stdout);
    }
    if (connect->pair->connected != connect->was_connected) {
        connect->was_connected = connect->pair->connected;
        if (connect->was_connected) {
            printf("connected: %s\n", pair_words(&connect->pair->peer, words));
        } else {
            printf("the connection has ended\n");
        }
        fflush(stdout);
    }
}

void hdl_connect_turn(struct hdl_connect *connect, struct instant now)
{
    if (connect->wishes.cm_port != 0) {
        manager_turn(connect, now);
    } else if (connect->wishes.pingpong_port != 0) {
        pingpong_turn(connect, now);
    } else if (strchr(connect->wishes.words, '=') == NULL) {
        look_into_file(connect, now);
    }
    tell(connect);
}

bool hdl_connect_takes(struct hdl_connect *connect, const struct inet_datagram *datagram,
                       struct instant now)
{
    if (connect->wishes.cm_port == 0 || !manager_is_for(datagram)) {
        return false;
    }
    manager_come(&connect->manager, datagram, now);
    return true;
}

bool hdl_connect_next(struct hdl_connect *connect, struct inet_datagram *datagram)
{
    return connect->wishes.cm_port != 0 && manager_next(&connect->manager, datagram);
}

void hdl_connect_close(struct hdl_connect *connect, struct instant now)
{
    if (connect->wishes.cm_port != 0) {
        manager_end(&connect->manager, now);
        services_release(connect->service);
        services_close(&connect->services);
    }
    if (connect->client >= 0) {
        leave_client(connect);
    }
    if (connect->listener >= 0) {
        close(connect->listener);
    }
}
