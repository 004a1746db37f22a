/* SPDX-License-Identifier: BSD-2-Clause
 *
 * mirror - a port that is used as any other, while its beats pass in another process.
 *
 * Purpose    Frames and pauses that are pushed into the mirror are taken out of it, for the port
 *            there; the mirror shows what happened at that one, when it is told.
 * Time       The mirror is told what happened up to now, and is as far as that.
 * Errors     What the other process says is judged: false, and nothing has changed.
 */
#ifndef HDL_MIRROR_H
#define HDL_MIRROR_H

#include "hdl/port.h"

const struct hdl_port_config *hdl_mirror_config(const struct hdl_port *port);

/* The next frame, or the next pause, for the port there. The data stay until it was received. */
bool hdl_mirror_next_frame(struct hdl_port *port, struct hdl_frame *frame);
bool hdl_mirror_next_pause(struct hdl_port *port, struct hdl_pause *pause);

/* The port there had a frame of the design; a violation; these counters since its beginning. */
bool hdl_mirror_on_frame(struct hdl_port *port, const struct hdl_frame *frame);
void hdl_mirror_on_violation(struct hdl_port *port, const struct hdl_violation *violation);
bool hdl_mirror_on_counters(struct hdl_port *port, const struct hdl_counters *counters);

#endif
