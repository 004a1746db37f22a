/* SPDX-License-Identifier: BSD-2-Clause
 *
 * The rules of the stream and of XGMII, in words.
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
    [HDL_START_LANE] = {"start-lane", "start (0xfb) is in another lane than 0 and 4",
                        "IEEE 802.3 46.3.1.4, 49.2.4.4"},
    [HDL_GAP] = {"gap", "fewer than five octets lie between two frames, terminate included",
                 "IEEE 802.3 46.2.1; twelve are sent on average"},
    [HDL_PREAMBLE] = {"preamble", "start is not followed by six octets 0x55 and 0xd5",
                      "IEEE 802.3 46.2.2"},
    [HDL_ERROR] = {"error", "there is an error (0xfe) in a frame", "IEEE 802.3 46.3.3.1"},
    [HDL_TERMINATE] = {"terminate", "a frame ends without terminate (0xfd)",
                       "IEEE 802.3 46.2.4, 46.3.3.3"},
    [HDL_RUNT] = {"runt", "a frame has fewer than 64 octets, FCS included",
                  "IEEE 802.3 3.2.8, 4A.4.2: the MAC pads it"},
    [HDL_FCS] = {"fcs", "the FCS of a frame is wrong", "IEEE 802.3 3.2.9"},
    [HDL_STRAY] = {"stray", "between frames there is neither idle, start nor an ordered set",
                   "IEEE 802.3 46.2.1, 46.3.1.2"},
};

const struct hdl_rule_text *hdl_rule_text(enum hdl_rule rule)
{
    CHECK(rule < HDL_RULES);
    return &texts[rule];
}
