/* SPDX-License-Identifier: BSD-2-Clause
 *
 * hdl_vhdl - GHDL makes Verilog of entities of VHDL, for designs whose top module is Verilog.
 */
#ifndef TOOLS_HDL_VHDL_H
#define TOOLS_HDL_VHDL_H

#include <limits.h>
#include <stdbool.h>

/* Its name ends with .vhd or .vhdl. */
bool hdl_vhdl_is(const char *file);

/* A translated entity. */
struct hdl_vhdl {
    char folder[PATH_MAX];     /* OUT.ghdl: GHDL's library and the translation. */
    char module[2 * PATH_MAX]; /* The file of Verilog. */
};

/* Analyses the files of VHDL among `files`, in their order, and translates `entity`; NULL: that by
 * the name of the last one. `out` is the design. False: GHDL or nonic has said why. */
bool hdl_vhdl_translate(struct hdl_vhdl *vhdl, char **files, const char *entity, const char *out);

#endif
