/* SPDX-License-Identifier: BSD-2-Clause
 *
 * dpi - the functions that nonic_axis.sv, nonic_qp.sv and nonic_xgmii.sv call.
 */
#ifndef HDL_DPI_H
#define HDL_DPI_H

#include "hdl/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The ports of a model share this. */
struct hdl_attached {
    const struct hdl_host *host;
    uint64_t now_ps; /* The time of the edge that is being evaluated. */
    bool refused;
};

/* The ports that say so while a model is opened belong to it. NULL: none does any more. */
void hdl_attach_to(struct hdl_attached *attached);

#ifdef __cplusplus
}
#endif

#endif
