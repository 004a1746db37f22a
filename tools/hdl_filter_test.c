/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    Each construct that Verilator 5.006 refuses is changed, nothing else is, lines keep their
 *         numbers, and its errors get their remedies (FER-155).
 * Method  Golden texts; then every begin of all of them, which must not be read beyond its end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "tools/hdl_filter.h"

#define WARNED(line)                                                                               \
    "f.v:" line ": warning: 'static' in a function is made 'automatic': the variable begins "      \
    "anew with each call\n"

static const struct {
    const char *in, *out, *told; /* out NULL: as in. */
} texts[] = {
    /* Directives. */
    {"`resetall `timescale 1ns / 1ps `default_nettype none\nmodule m;\n",
     "`resetall `timescale 1ns / 1ps\n`line 1 \"f.v\" 0\n`default_nettype none\nmodule m;\n", ""},
    {"\n\n`timescale 10 ns/100ps module m; endmodule\n",
     "\n\n`timescale 10 ns/100ps\n`line 3 \"f.v\" 0\nmodule m; endmodule\n", ""},
    {"`timescale 1ns/1ps /* a */ `resetall\n",
     "`timescale 1ns/1ps\n`line 1 \"f.v\" 0\n/* a */ `resetall\n", ""},
    {"`timescale 1ns\n  /\n1ps\nmodule m;\n", "`timescale 1ns   / 1ps\n\n\nmodule m;\n", ""},
    {"`timescale 1ns/1ps\n", NULL, ""},
    {"`timescale 1ns/1ps  \r\n", NULL, ""},
    {"`timescale 1ns/1ps // `resetall\n", NULL, ""},
    {"`define T `timescale 1ns/1ps `resetall\n`T\n", NULL, ""},
    {"`define T a \\\n`timescale 1ns/1ps `resetall\n", NULL, ""},
    {"// `timescale 1ns/1ps `resetall\n", NULL, ""},
    {"/* `timescale 1ns/1ps `resetall\n */ x = \"`timescale 1ns/1ps \\\" `resetall\";\n", NULL, ""},
    {"`timescale `UNIT/`UNIT\n", NULL, ""},
    /* Functions. */
    {"function automatic int f(int a);\n static int x = 0;\n return x;\nendfunction\n",
     "function automatic int f(int a);\n automatic int x = 0;\n return x;\nendfunction\n",
     WARNED("2")},
    {"task t;\n begin : b\n  static reg y; static bit z;\n end\nendtask\nstatic int g;\n",
     "task t;\n begin : b\n  automatic reg y; automatic bit z;\n end\nendtask\nstatic int g;\n",
     WARNED("3") WARNED("3")},
    {"function static int f; int x; endfunction initial begin static int y; end\n", NULL, ""},
    {"class c; static int n; static function int f(); return n; endfunction endclass\n", NULL, ""},
    {"import \"DPI-C\" function int f(int a);\nclass c; static int n; endclass\n", NULL, ""},
    {"class c; extern function int f(); static int n; pure virtual task t; static int o; "
     "endclass\n",
     NULL, ""},
    {"covergroup g with function sample(int a); endgroup\nclass c; static int n; endclass\n", NULL,
     ""},
    {"import p::*; function f; static int x; endfunction\n",
     "import p::*; function f; automatic int x; endfunction\n", WARNED("1")},
    {"function f; // static\n \"static\"; \\static = x_static; staticx; /* static\n*/ "
     "endfunction\n",
     NULL, ""},
    {"function f; const real k = 1.0; const ref int r; endfunction const int g = 1;\n",
     "function f;       real k = 1.0; const ref int r; endfunction const int g = 1;\n", ""},
};

static char *filtered(const char *in, size_t bytes, char **told)
{
    char *out;
    size_t out_bytes, told_bytes;
    FILE *to = open_memstream(&out, &out_bytes), *tell = open_memstream(told, &told_bytes);
    assert_true(to != NULL && tell != NULL);
    hdl_filter("f.v", in, bytes, to, tell);
    fclose(to);
    fclose(tell);
    return out;
}

static void test_golden_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        char *told, *out = filtered(texts[i].in, strlen(texts[i].in), &told);
        assert_string_equal(out, texts[i].out != NULL ? texts[i].out : texts[i].in);
        assert_string_equal(told, texts[i].told);
        free(out);
        free(told);
    }
}

/* Each is alone in memory of its size, so that sanitizers see a byte too many. */
static void test_cut_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        for (size_t bytes = 0; bytes < strlen(texts[i].in); bytes++) {
            char *cut = malloc(bytes + 1), *told;
            assert_non_null(cut);
            memcpy(cut + 1, texts[i].in, bytes);
            free(filtered(cut + 1, bytes, &told));
            free(told);
            free(cut);
        }
    }
}

static void test_remedies(void **state)
{
    (void)state;
    static const struct {
        const char *message, *told; /* The begin and the end of the line, parted by '*'. */
    } cases[] = {
        {"%Error-UNSUPPORTED: a/b.sv:12:96: Unsupported: 'static' function/task variables\n",
         "nonic: a/b.sv:12: *; --filter makes them automatic\n"},
        {"%Error: t.sv:1:11: `timescale timeprecision syntax error: '1ps `resetall'\n",
         "nonic: t.sv:1: *; --filter ends the line there\n"},
        {"%Error: Internal Error: s.sv:6:43: ../V3Simulate.h:312: No value found for node.\n",
         "nonic: s.sv:6: *; --filter leaves const out\n"},
        {"%Error: s.sv:3:16: Assigning to const variable: 'k'\n",
         "nonic: s.sv:3: *; --filter leaves const out\n"},
        {"%Error: Verilator internal fault, sorry. Suggest trying --debug --gdbbt\n",
         "nonic: constant functions*; assign the elements one by one\n"},
        {"%Error: s.sv:5:39: Assignment pattern missed initializing elements: 2\n",
         "nonic: s.sv:5: *; make the array packed\n"},
        {"%Error: s.sv:7:2: syntax error, unexpected static\n", ""},
        {"%Warning-WIDTH: s.sv:7:2: No value found for node\n", ""},
        {"make: *** [x] Error 1\n", ""},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *told;
        size_t bytes;
        FILE *file = open_memstream(&told, &bytes);
        assert_non_null(file);
        hdl_remedy(cases[i].message, file);
        fclose(file);
        const char *star = strchr(cases[i].told, '*');
        const size_t first = star != NULL ? (size_t)(star - cases[i].told) : 0;
        const size_t last = star != NULL ? strlen(star + 1) : 0;
        assert_true(bytes >= first + last && (star != NULL || bytes == 0));
        assert_memory_equal(told, cases[i].told, first);
        assert_memory_equal(told + bytes - last, star != NULL ? star + 1 : "", last);
        free(told);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden_texts),
        cmocka_unit_test(test_cut_texts),
        cmocka_unit_test(test_remedies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
