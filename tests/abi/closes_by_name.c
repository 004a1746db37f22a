/* SPDX-License-Identifier: BSD-2-Clause
 *
 * closes_by_name - a program that looks for close_range and closefrom when it runs, because the C
 * library it runs on may not have them.
 *
 * Goal    With our library preloaded it finds ours in front of any C library. Without one behind
 * them, close_range answers as a kernel without that call, and closefrom closes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static int fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

int main(void)
{
    int (*const range)(unsigned, unsigned, int) =
        (int (*)(unsigned, unsigned, int))(uintptr_t)dlsym(RTLD_DEFAULT, "close_range");
    void (*const from)(int) = (void (*)(int))(uintptr_t)dlsym(RTLD_DEFAULT, "closefrom");
    const int first = open("/dev/null", O_RDONLY), second = dup(first);
    if (range == NULL || from == NULL || second < 0) {
        return fail("close_range or closefrom is not found, or /dev/null is not opened");
    }
    const int result = range((unsigned)first, (unsigned)first, 0);
    const int reason = errno;
    if (result == 0 ? fcntl(first, F_GETFD) >= 0 : reason != ENOSYS) {
        return fail("close_range closed nothing, or failed without ENOSYS");
    }
    from(first);
    if (fcntl(first, F_GETFD) >= 0 || fcntl(second, F_GETFD) >= 0) {
        return fail("closefrom left a descriptor");
    }
    return 0;
}
