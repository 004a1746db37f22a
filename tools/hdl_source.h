/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_source - the frames of a capture, at their times.
 *
 * Time       The first frame is due at HDL_SOURCE_FIRST_PS, behind the reset, and the others as far
 *            behind it as in the capture; one that is earlier than the one before it comes with it.
 * Outputs    give, with a frame whose data are there until it returns. A frame that is cut in the
 *            capture is bad.
 */
#ifndef TOOLS_HDL_SOURCE_H
#define TOOLS_HDL_SOURCE_H

#include <pcap/pcap.h>

#include "hdl/port.h"
#include "sim/kernel.h"

#define HDL_SOURCE_FIRST_PS UINT64_C(1000000)

struct hdl_source {
    struct sim *sim;
    void (*give)(struct hdl_source *source, struct hdl_frame *frame);
    uint64_t ahead_ps; /* Frames are given this long before their times. */
    struct sim_event next;
    pcap_t *in;
    uint64_t begin_ps; /* The capture's time of the first frame. */
    struct pcap_pkthdr *header;
    const uint8_t *data;
    bool over;       /* No frame is left. */
    bool unreadable; /* The capture ends within a packet. */
    uint64_t cut;    /* Frames that the capture has not whole. */
};

/* Without a path there are no frames. False: there is no such capture, and why is printed. */
bool hdl_source_open(struct hdl_source *source, const char *path);
/* The first frame is on its way. sim, give and ahead_ps are set. */
void hdl_source_begin(struct hdl_source *source);
/* Tells of frames that were cut, and of a capture that is broken; false: it is. */
bool hdl_source_end(const struct hdl_source *source);

#endif
