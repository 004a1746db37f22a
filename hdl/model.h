/* SPDX-License-Identifier: BSD-2-Clause
 *
 * model - a compiled design as a shared object: what it offers, and what it asks of who loads it.
 *
 * Purpose    `nonic hdl build` makes such an object of Verilog; whoever loads it gives the time,
 *            edge by edge, and has the ports (hdl/port.h).
 * Ownership  Between open and close a model may use the host. Several models in one process know
 *            nothing of one another.
 * Errors     open returns NULL if the host refused a port; the host knows why.
 *
 * C and C++ include this file.
 */
#ifndef HDL_MODEL_H
#define HDL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HDL_ABI           8
#define HDL_CLOCKS_MAX    2                 /* clk, and clk2 if the design has it. */
#define HDL_PORTS_MAX     16                /* Numbers of a design's ports are below it. */
#define HDL_SCOPE_BYTES   512               /* A name in the design, with the zero behind it. */
#define HDL_PERIOD_FS_MIN 2000              /* A clock has edges at whole ps. */
#define HDL_MODEL_ENTRY   "nonic_hdl_model" /* The one symbol that a model exports. */

struct hdl_port;
struct hdl_in;
struct hdl_out;
struct hdl_pair;
struct hdl_model;

struct hdl_host {
    void *owner;
    /* A nonic_axis of the design, or a nonic_xgmii; NULL: refused. Its signals are in `scope` of a
     * trace, with a dot between two levels; a name that is longer is "". */
    struct hdl_port *(*attach)(void *owner, uint32_t number, uint32_t width_bits, bool xgmii,
                               const char *scope);
    /* hdl_port_edge. */
    void (*edge)(struct hdl_port *port, uint64_t now_ps, const struct hdl_in *in,
                 struct hdl_out *out);
    /* A nonic_qp of the design, which writes and reads it at each edge; NULL: refused. May be NULL,
     * for a host that connects none. */
    struct hdl_pair *(*attach_pair)(void *owner, uint32_t number);
    /* The run cannot go on. */
    void (*fail)(void *owner, const char *why);
    uint64_t period_fs[HDL_CLOCKS_MAX];
    /* Frames and pauses are pushed at least this long before their time; 0: at their time. */
    uint64_t lookahead_ps;
};

struct hdl_model_ops {
    uint32_t abi;
    uint32_t in_bytes, out_bytes; /* The sizes of struct hdl_in and hdl_out in the model. */
    const char *name;             /* The top module. */
    uint32_t clocks;              /* 1, or 2 if it has clk2. */
    /* The seed gives the registers that have no reset their first values. Reset is asserted. */
    struct hdl_model *(*open)(const struct hdl_model_ops *ops, const struct hdl_host *host,
                              uint64_t seed);
    void (*reset)(struct hdl_model *model, bool asserted);
    /* A rising edge at now_ps of one clock, or of both at once; bit i of `clocks` is clock i. Each
     * falls half its period later. */
    void (*step)(struct hdl_model *model, uint64_t now_ps, uint32_t clocks);
    /* Writes all signals as FST, of steps from one time on and up to another one. False: it cannot
     * write the file. Before the first step. */
    bool (*trace)(struct hdl_model *model, const char *path, uint64_t from_ps, uint64_t to_ps);
    bool (*finished)(const struct hdl_model *model); /* $finish. */
    void (*close)(struct hdl_model *model);
};

typedef const struct hdl_model_ops *(*hdl_model_entry)(void);

#ifdef __cplusplus
}
#endif

#endif
