/* SPDX-License-Identifier: BSD-2-Clause
 *
 * lab_figure - what the files that write a figure for gnuplot share.
 *
 *     lab_figure.c       numbers (CSV), curves, gnuplot's process
 *     lab_figure_axes.c  what stands around the curves
 *
 * A figure is named by its index in its run.
 */
#ifndef TOOLS_LAB_FIGURE_H
#define TOOLS_LAB_FIGURE_H

#include "tools/lab.h"

/* The legend's name of marks at points. */
#define FIGURE_PRINTED "printed by the document"

/* Sizes in pixels: a drawing without its legend, and a line of the legend. */
enum {
    FIGURE_WIDTH = 760,
    FIGURE_HEIGHT = 440,
    FIGURE_LINE_HEIGHT = 18,
};

/* A string in gnuplot's double quotes. */
void figure_write_string(FILE *to, const char *text);
/* Title, axes, legend, levels, and the names of marks. */
void figure_write_axes(FILE *to, const struct lab_run *run, uint32_t figure);
/* How many rows and columns the legend has. */
uint32_t figure_key_rows(const struct lab_run *run, uint32_t figure, uint32_t *columns);
/* Does it have marks at points, which the legend explains? */
bool figure_has_point_marks(const struct lab_figure *axes);
/* How high on the y axis a value is: 0 to 1. */
double figure_share_of_height(const struct lab_run *run, uint32_t figure, double value);

#endif
