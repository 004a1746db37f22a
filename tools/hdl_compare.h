/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_compare - frames beside those of a capture, up to the first that differs. It is printed.
 */
#ifndef TOOLS_HDL_COMPARE_H
#define TOOLS_HDL_COMPARE_H

#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdint.h>

struct hdl_comparison {
    pcap_t *capture;  /* NULL: nothing is compared. */
    const char *name; /* How a line names the other frames: "the design's". */
    bool times;       /* Whether these count. */
    uint64_t count;   /* Frames that were compared. */
    uint64_t differs; /* The number of the first that differs; 0: none. */
};

/* A capture of frames of Ethernet. NULL: there is none, and why is printed. */
pcap_t *hdl_open_capture(const char *path);
uint64_t hdl_time_ps(const struct pcap_pkthdr *header);

/* The next frame. */
void hdl_compare(struct hdl_comparison *comparison, uint64_t at_ps, const uint8_t *bytes,
                 uint32_t count);
/* There are no more; the capture may have some. */
void hdl_compare_end(struct hdl_comparison *comparison);

#endif
