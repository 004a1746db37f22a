/* SPDX-License-Identifier: BSD-2-Clause
 *
 * addrinfo - the newest functions of librdmacm, which no program of rdma-core's own calls.
 *
 * Goal    rdma_write_cm_event and rdma_resolve_addrinfo do what their man pages say.
 * Method  Compiled by dev/rdma-core-head with the headers and the librdmacm of the checkout.
 */
#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARGUMENT UINT64_C(0x1122334455667788)

static void require(int true, const char *what)
{
    if (!true) {
        perror(what);
        exit(1);
    }
}

static struct rdma_cm_event *next(struct rdma_event_channel *channel, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *event;
    require(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
    require(event->event == type, rdma_event_str(event->event));
    return event;
}

int main(void)
{
    struct rdma_event_channel *channel = rdma_create_event_channel();
    struct rdma_cm_id *id;
    require(channel != NULL, "rdma_create_event_channel");
    require(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0, "rdma_create_id");

    require(rdma_write_cm_event(id, RDMA_CM_EVENT_USER, -7, ARGUMENT) == 0, "rdma_write_cm_event");
    struct rdma_cm_event *event = next(channel, RDMA_CM_EVENT_USER);
    require(event->id == id && event->status == -7 && event->param.arg == ARGUMENT, "the event");
    rdma_ack_cm_event(event);

    const struct rdma_addrinfo hints = {.ai_port_space = RDMA_PS_TCP};
    struct rdma_addrinfo *found;
    require(rdma_resolve_addrinfo(id, "127.0.0.1", "7471", &hints) == 0, "rdma_resolve_addrinfo");
    rdma_ack_cm_event(next(channel, RDMA_CM_EVENT_ADDRINFO_RESOLVED));
    require(rdma_query_addrinfo(id, &found) == 0, "rdma_query_addrinfo");
    require(rdma_resolve_addr(id, NULL, found->ai_dst_addr, 2000) == 0, "rdma_resolve_addr");
    rdma_ack_cm_event(next(channel, RDMA_CM_EVENT_ADDR_RESOLVED));
    rdma_freeaddrinfo(found);

    const struct rdma_addrinfo service = {.ai_flags = RAI_SA};
    require(rdma_resolve_addrinfo(id, NULL, "storage", &service) != 0, "a service on Ethernet");
    require(rdma_destroy_id(id) == 0, "rdma_destroy_id");
    rdma_destroy_event_channel(channel);
    puts("as their man pages say");
    return 0;
}
