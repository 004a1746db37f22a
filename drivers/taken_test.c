/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    UDP port 4791 counts as taken only by a socket at any address, of IPv4 or IPv6, and the
 *         sentence names that address, and says whether the kernel's own Soft-RoCE is there.
 * Method  Texts as the kernel writes them in /proc/net/udp and udp6, in a table; the linker puts
 *         them in the place of the real files (--wrap=syscall).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "drivers/taken.h"

#define HEAD    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt\n"
#define ANY6    "00000000000000000000000000000000"
#define REMOTE  " 00000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0\n"
#define REMOTE6 " " ANY6 ":0000 07 00000000:00000000 00:00000000 00000000     0        0 1 2 0\n"

/* -- The kernel's files -------------------------------------------------------------------------*/

static struct {
    const char *udp, *udp6; /* NULL: there is no such file. */
    bool rxe;
} kernel;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

/* Returns a descriptor from which the text can be read. */
static long open_text(const char *text)
{
    if (text == NULL) {
        errno = ENOENT;
        return -1;
    }
    const int fd = memfd_create("text", MFD_CLOEXEC);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

long __wrap_syscall(long number, ...)
{
    long arguments[5];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 5; i++) {
        arguments[i] = va_arg(list, long);
    }
    va_end(list);
    const char *path = (const char *)(uintptr_t)arguments[1];
    if (number == SYS_openat) {
        assert_true(strcmp(path, "/proc/net/udp") == 0 || strcmp(path, "/proc/net/udp6") == 0);
        return open_text(strcmp(path, "/proc/net/udp") == 0 ? kernel.udp : kernel.udp6);
    }
    if (number == SYS_faccessat) {
        assert_string_equal(path, "/sys/module/rdma_rxe");
        errno = ENOENT;
        return kernel.rxe ? 0 : -1;
    }
    return __real_syscall(number, arguments[0], arguments[1], arguments[2], arguments[3],
                          arguments[4]);
}

/* -- The port -----------------------------------------------------------------------------------*/

static const struct {
    const char *udp, *udp6;
    const char *at; /* The address in the sentence; NULL: the port is not taken. */
} cases[] = {
    {NULL, NULL, NULL},
    {"", "", NULL},
    {HEAD, HEAD, NULL},
    {HEAD "  1: 00000000:12B7" REMOTE, NULL, "(0.0.0.0:4791)"},
    {HEAD "  1: 00000000:12B7" REMOTE, HEAD "  1: " ANY6 ":12B7" REMOTE6, "(0.0.0.0:4791)"},
    {HEAD, HEAD "  1: " ANY6 ":12B7" REMOTE6, "([::]:4791)"},
    {NULL, HEAD "  1: " ANY6 ":12B7" REMOTE6, "([::]:4791)"},
    /* Not taken: a single address, another port, a port that only begins alike, the port on the
     * peer's side. */
    {HEAD "  1: 0100007F:12B7" REMOTE, HEAD, NULL},
    {HEAD "  1: 00000000:12B8" REMOTE, HEAD "  1: " ANY6 ":12B8" REMOTE6, NULL},
    {HEAD "  1: 00000000:12B70" REMOTE, HEAD, NULL},
    {HEAD "  1: 0100007F:0035 00000000:12B7 01\n", HEAD, NULL},
    {HEAD, HEAD "  1: 00000000:12B7" REMOTE, NULL},
    /* The socket is behind others, and in a line that has no end. */
    {HEAD "  1: 0100007F:12B7" REMOTE "  2: 00000000:12B7", HEAD, "(0.0.0.0:4791)"},
};

static void test_who_has_the_port(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[512] = "";
        kernel.udp = cases[i].udp;
        kernel.udp6 = cases[i].udp6;
        kernel.rxe = false;
        const bool taken = taken_everywhere(text, sizeof(text));
        if (taken != (cases[i].at != NULL) ||
            (taken &&
             (strstr(text, cases[i].at) == NULL || strstr(text, "another program") == NULL))) {
            fail_msg("case %zu: %d '%s'", i, taken, text);
        }
    }
}

/* The module alone takes no port: rdma_rxe has the port once a device was made. */
static void test_the_kernels_own(void **state)
{
    (void)state;
    char text[512] = "";
    kernel.rxe = true;
    kernel.udp = HEAD;
    kernel.udp6 = HEAD;
    assert_false(taken_everywhere(text, sizeof(text)));
    kernel.udp6 = HEAD "  1: " ANY6 ":12B7" REMOTE6;
    assert_true(taken_everywhere(text, sizeof(text)));
    assert_non_null(strstr(text, "rdma_rxe"));
    assert_non_null(strstr(text, "([::]:4791)"));
    kernel.udp = HEAD "  1: 00000000:12B7" REMOTE;
    assert_true(taken_everywhere(text, sizeof(text)));
    assert_non_null(strstr(text, "(0.0.0.0:4791)"));
    assert_null(strstr(text, "another program"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_has_the_port),
        cmocka_unit_test(test_the_kernels_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
