/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/hdl_source.h"

#include <inttypes.h>
#include <stdio.h>

#include "tools/hdl_compare.h"

static void schedule_next(struct hdl_source *source)
{
    const uint64_t now_ps = source->sim->now_ps;
    const int found = pcap_next_ex(source->in, &source->header, &source->data);
    if (found != 1) {
        source->over = true;
        source->unreadable = found == PCAP_ERROR;
        return;
    }
    const uint64_t at_ps = hdl_time_ps(source->header);
    source->begin_ps = source->begin_ps == UINT64_MAX ? at_ps : source->begin_ps;
    const uint64_t due_ps =
        HDL_SOURCE_FIRST_PS + (at_ps > source->begin_ps ? at_ps - source->begin_ps : 0);
    const uint64_t given_ps = due_ps - source->ahead_ps;
    sim_schedule(source->sim, &source->next, given_ps > now_ps ? given_ps : now_ps);
}

static void on_next(struct sim *sim, struct sim_event *event)
{
    struct hdl_source *source = CONTAINER_OF(event, struct hdl_source, next);
    struct hdl_frame frame = {.at_ps = sim->now_ps + source->ahead_ps,
                              .data = source->data,
                              .bytes = source->header->caplen,
                              .bad = source->header->caplen < source->header->len};
    source->cut += frame.bad;
    source->give(source, &frame);
    schedule_next(source);
}

bool hdl_source_open(struct hdl_source *source, const char *path)
{
    source->begin_ps = UINT64_MAX;
    source->over = path == NULL;
    source->in = path != NULL ? hdl_open_capture(path) : NULL;
    return source->over || source->in != NULL;
}

void hdl_source_begin(struct hdl_source *source)
{
    CHECK(source->ahead_ps <= HDL_SOURCE_FIRST_PS);
    sim_event_init(&source->next, on_next);
    if (!source->over) {
        schedule_next(source);
    }
}

bool hdl_source_end(const struct hdl_source *source)
{
    if (source->cut > 0) {
        printf("%" PRIu64 " frames are cut in the capture: they came with tuser, as bad ones\n",
               source->cut);
    }
    if (source->unreadable) {
        fprintf(stderr, "nonic: the capture is broken: %s\n", pcap_geterr(source->in));
    }
    return !source->unreadable;
}
