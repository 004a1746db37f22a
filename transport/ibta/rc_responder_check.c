/* SPDX-License-Identifier: BSD-2-Clause
 *
 * rc_responder_check - the invariants of a responder between two calls; walks through the READs and
 * atomics that it keeps.
 */
#include "transport/ibta/rc_responder.h"

static const struct rc_resource *resource_at(const struct rc_responder *responder, uint32_t at)
{
    return &responder->resources[at & responder->resource_mask];
}

static void check_resource(const struct rc_responder *responder, const struct rc_resource *resource)
{
    CHECK(resource->begun < resource->until && resource->until <= resource->packets);
    CHECK(resource->sent >= resource->begun && resource->sent <= resource->packets);
    switch ((enum rc_resource_state)resource->state) {
    case RC_RESOURCE_DONE: CHECK(resource->answered); break;
    case RC_RESOURCE_WAITING:
        CHECK(resource->operation != ROCE_READ_REQUEST);
        CHECK(resource->sent == 0);
        break;
    case RC_RESOURCE_READY: CHECK(resource->sent < resource->until); break;
    }
    /* An atomic is one packet; a READ never goes on behind the next expected PSN. */
    CHECK(resource->packets == 1 || resource->operation == ROCE_READ_REQUEST);
    CHECK(psn_count(resource->first, responder->expected) >= resource->packets);
}

static void check_resources(const struct rc_responder *responder)
{
    uint32_t due = 0;
    const struct rc_resource *before = NULL;
    for (uint32_t at = responder->end - responder->kept; at != responder->end; at++) {
        const struct rc_resource *resource = resource_at(responder, at);
        check_resource(responder, resource);
        due += resource->state != RC_RESOURCE_DONE;
        CHECK(resource->state == RC_RESOURCE_DONE || responder->end - at <= responder->due_within);
        /* In the order of their PSNs, and none twice: find_resource relies on it. */
        CHECK(before == NULL || psn_count(before->first, resource->first) >= before->packets);
        before = resource;
    }
    CHECK(due == responder->due);
}

void rc_responder_check(const struct rc_responder *responder)
{
    CHECK(responder->kept <= responder->resource_limit);
    CHECK(responder->due_within <= responder->kept);
    CHECK(responder->pending <= RC_REPLY_NAK);
    CHECK(psn_distance(responder->moved, responder->expected) >= 0);
    CHECK((responder->msn & ~ROCE_24_BITS) == 0);
    /* A sequence NAK is about a gap that is still there. */
    CHECK(responder->pending != RC_REPLY_NAK || responder->stream == RC_STREAM_IN_GAP);
    CHECK(responder->stream != RC_STREAM_IN_GAP ||
          psn_distance(responder->expected, responder->dropped) >= 0);
    incoming_check(&responder->incoming);
    check_resources(responder);
}
