/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rules of the stream, in words.
 */
#include "base/check.h"
#include "hdl/port.h"

static const struct hdl_rule_text texts[HDL_RULES] = {
    [HDL_KEEP_PART] = {"keep-part", "tkeep is not all ones in a beat that is not the last one",
                       "IHI 0051A 2.4.2; a MAC takes whole beats"},
    [HDL_KEEP_HOLE] = {"keep-hole", "tkeep of the last beat is not contiguous from bit 0",
                       "IHI 0051A 2.4.2; a MAC takes no null bytes within a frame"},
    [HDL_KEEP_NONE] = {"keep-none", "tkeep of the last beat is 0",
                       "IHI 0051A 2.4.2; a frame ends with a byte"},
    [HDL_WITHDRAWN] = {"withdrawn", "tvalid went low before tready took the beat",
                       "IHI 0051A 2.2.1: once asserted, tvalid stays until the handshake"},
    [HDL_UNSTABLE] = {"unstable", "tdata, tkeep, tlast or tuser changed while tvalid waited",
                      "IHI 0051A 2.2.1: the information stays until the handshake"},
    [HDL_VALID_RESET] = {"valid-reset", "tvalid is high after an edge with reset",
                         "IHI 0051A 2.7.2: tvalid is low during reset"},
    [HDL_LATE] = {"late", "tvalid is low within a frame for 10,000 cycles while tready is high",
                  "IHI 0051A 2.2.1: tvalid must not wait for tready (a warning)"},
    [HDL_OVERSIZE] = {"oversize", "the frame is longer than the longest that the port takes",
                      "IEEE 802.3 3.2.7"},
    [HDL_UNKNOWN] = {"unknown", "tvalid or tready, or a bit that counts of a beat, is X or Z",
                     "IEEE 1364-2005 4.1: such a bit is neither 0 nor 1"},
};

const struct hdl_rule_text *hdl_rule_text(enum hdl_rule rule)
{
    CHECK(rule < HDL_RULES);
    return &texts[rule];
}
