/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ah - address handles, and address vectors in verbs' form and in ours.
 */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "drivers/system/shortage.h"
#include "verbs/checking.h"
#include "verbs/efa.h"
#include "verbs/internal.h"
#include "verbs/strict.h"
#include "wire/inet.h"

static bool all_zero(const uint8_t *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

int av_find_lid(struct live *live, struct ibv_ah_attr *attr)
{
    struct gid gid;
    const int reason = strict_judge_address(live, attr);
    if (reason != 0) {
        return reason;
    }
    if (attr->is_global || attr->dlid == 0) {
        return 0;
    }
    CHECK(!live_is_strict(live)); /* By that rule a LID leads nowhere. */
    if (!live_gid_of_lid(live, attr->dlid, &gid)) {
        return shortage_is(errno) ? errno : 0;
    }
    attr->is_global = 1;
    attr->grh = (struct ibv_global_route){.hop_limit = 1};
    memcpy(attr->grh.dgid.raw, gid.bytes, sizeof(attr->grh.dgid.raw));
    return 0;
}

_Static_assert(LIVE_GIDS_MAX <= 0x80, "an index of the GID table fits into an address vector");

int av_from_attr(struct live *live, const struct ibv_ah_attr *attr, struct nic_av *av)
{
    /* On Ethernet every address is global: there is nothing but the GID to go by. */
    const uint8_t index = attr->grh.sgid_index;
    if (!attr->is_global || attr->port_num != 1 || index >= live_gid_count(live) ||
        live_gid_is_gone(live, index) || all_zero(attr->grh.dgid.raw, 16)) {
        return EINVAL;
    }
    *av = (struct nic_av){
        .source = live_own_address(live, index),
        .source_index = index & 0x7fu,
        .hop_limit = attr->grh.hop_limit,
        .traffic_class = attr->grh.traffic_class,
        .service_level = attr->sl,
        .flow_label = attr->grh.flow_label,
    };
    memcpy(av->destination.bytes, attr->grh.dgid.raw, sizeof(av->destination.bytes));
    return 0;
}

void av_to_attr(const struct nic_av *av, struct ibv_ah_attr *attr)
{
    *attr = (struct ibv_ah_attr){
        .is_global = 1,
        .port_num = 1,
        .sl = av->service_level,
        .grh = {.sgid_index = av->source_index,
                .hop_limit = av->hop_limit,
                .traffic_class = av->traffic_class,
                .flow_label = av->flow_label},
    };
    if (!av->destination_by_alias ||
        !inet_loopback_alias(av->destination.bytes, attr->grh.dgid.raw)) {
        memcpy(attr->grh.dgid.raw, av->destination.bytes, sizeof(attr->grh.dgid.raw));
    }
}

/* (locked) It keeps its domain, and its address vector leads somewhere. */
static void ah_check(const struct verbs_ah *ah)
{
    CHECK(ah->pd != NULL && ah->pd->users > 0);
    CHECK(ah->av.link != NULL);
    CHECK(!all_zero(ah->av.destination.bytes, sizeof(ah->av.destination.bytes)));
}

/* An EFA device has no local identifiers, and no groups. */
static int judge_efa_address(const struct ibv_ah_attr *attr)
{
    return attr->is_global && !inet_is_multicast(attr->grh.dgid.raw) ? 0 : EINVAL;
}

/* (locked) False: there are too many hosts, or there is no memory. A sender is known by its number
 * where the program has a handle to it, and each context by itself. */
static bool hold_host(struct live *live, struct ibv_context *context, struct verbs_ah *ah)
{
    uint32_t **handles = &context_of(context)->handles;
    if (*handles == NULL) {
        *handles = calloc(SRD_HOSTS_MAX, sizeof(**handles));
    }
    if (*handles == NULL ||
        srd_hold_host(live_nic(live), &ah->av.destination, &ah->host) != STATUS_OK) {
        return false;
    }
    (*handles)[ah->host]++;
    return true;
}

EXPORT struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    struct verbs_ah *ah = object_make(pd->context, sizeof(*ah));
    if (ah == NULL) {
        return NULL;
    }
    struct live *live = live_of(pd->context);
    struct ibv_ah_attr found = *attr;
    int reason = is_efa() ? judge_efa_address(attr) : av_find_lid(live, &found);
    live_lock(live);
    if (reason == 0) {
        reason = av_from_attr(live, &found, &ah->av);
    }
    if (reason == 0) {
        reason = status_errno(live_resolve_datagrams(live, &ah->av));
    }
    if (reason == 0 && is_efa() && !hold_host(live, pd->context, ah)) {
        live_release(live, &ah->av);
        reason = ENOMEM;
    }
    if (reason == 0) {
        ah->pd = pd_core(pd);
        ah->pd->users++;
        INVARIANTS(ah_check(ah));
    }
    live_unlock(live);
    if (reason != 0) {
        object_free(pd->context, ah);
        return fail(reason);
    }
    ah->ibv.context = pd->context;
    ah->ibv.pd = pd;
    return &ah->ibv;
}

/* (locked) Without a handle of that number nothing leaves any more. */
static void let_host_go(struct live *live, uint16_t host)
{
    srd_let_host_go(live_nic(live), host);
    if (!srd_host_is_held(live_nic(live), host)) {
        nic_note_time(live_nic(live), live_now(live));
        srd_flush_host(live_nic(live), host);
        live_flush(live); /* Somebody may wait for the completions. */
    }
}

EXPORT int ibv_destroy_ah(struct ibv_ah *ibv)
{
    struct live *live = live_of(ibv->context);
    if (is_checked()) {
        checking_handle_gone(&ah_of(ibv)->av);
    }
    live_lock(live);
    INVARIANTS(ah_check(ah_of(ibv)));
    CHECK(ah_of(ibv)->pd->users > 0);
    ah_of(ibv)->pd->users--;
    if (is_efa()) {
        context_of(ibv->context)->handles[ah_of(ibv)->host]--;
        let_host_go(live, ah_of(ibv)->host);
    }
    live_release(live, &ah_of(ibv)->av);
    live_unlock(live);
    object_free(ibv->context, ah_of(ibv));
    return 0;
}

/* -- From a received message --------------------------------------------------------------------*/

/* The GRH area of a UD receive holds an IPv6 header, or an IPv4 header in its last 20 bytes: what
 * the packet had. Packets between loopback addresses have IPv4 headers, by whatever GIDs their
 * sender named the two. */
static bool is_ipv4_header(const struct ibv_grh *grh)
{
    const uint8_t *bytes = (const uint8_t *)grh, *ipv4 = bytes + 20;
    if ((ipv4[0] >> 4) != 4) {
        return false;
    }
    /* In front of an IPv4 header may be anything, also the version of IPv6 (`nonic run --odd`). */
    return (bytes[0] >> 4) != 6 ||
           (ipv4[0] == 0x45 && inet_checksum(inet_sum(0, ipv4, INET_IPV4_BYTES)) == 0);
}

static void map_ipv4(union ibv_gid *gid, const uint8_t *address)
{
    memset(gid->raw, 0, 10);
    gid->raw[10] = gid->raw[11] = 0xff;
    memcpy(gid->raw + 12, address, 4);
}

static int index_of(struct live *live, const union ibv_gid *gid)
{
    for (uint32_t i = 0; i < live_gid_count(live); i++) {
        const struct gid own = live_own_gid(live, i);
        if (memcmp(own.bytes, gid->raw, sizeof(gid->raw)) == 0) {
            CHECK(i < LIVE_GIDS_MAX);
            return (int)i;
        }
    }
    return -1;
}

EXPORT int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port, struct ibv_wc *wc,
                               struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
    struct live *live = live_of(context);
    memset(attr, 0, sizeof(*attr));
    attr->port_num = port;
    if (port != 1 || !(wc->wc_flags & IBV_WC_GRH)) {
        errno = EINVAL;
        return -1;
    }
    union ibv_gid ours;
    const uint8_t *bytes = (const uint8_t *)grh;
    if (is_ipv4_header(grh)) {
        map_ipv4(&attr->grh.dgid, bytes + 32);
        map_ipv4(&ours, bytes + 36);
        attr->grh.traffic_class = bytes[21];
    } else {
        attr->grh.dgid = grh->sgid;
        ours = grh->dgid;
        const uint32_t first = ntohl(grh->version_tclass_flow);
        attr->grh.traffic_class = (first >> 20) & 0xff;
        attr->grh.flow_label = first & 0xfffff;
    }
    const int index = index_of(live, &ours);
    if (index < 0) {
        errno = EINVAL;
        return -1;
    }
    attr->is_global = 1;
    attr->grh.sgid_index = (uint8_t)index;
    attr->grh.hop_limit = 64;
    initialised(attr, sizeof(*attr));
    return 0;
}

EXPORT struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                            struct ibv_grh *grh, uint8_t port)
{
    struct ibv_ah_attr attr;
    return ibv_init_ah_from_wc(pd->context, port, wc, grh, &attr) != 0 ? NULL
                                                                       : ibv_create_ah(pd, &attr);
}

/* Ethernet addresses are the kernel's business: sockets are addressed by IP. */
EXPORT int ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
                                       uint8_t mac[6], uint16_t *vid)
{
    (void)context;
    (void)attr;
    (void)mac;
    (void)vid;
    return -EOPNOTSUPP;
}
