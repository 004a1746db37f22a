/* SPDX-License-Identifier: BSD-2-Clause
 *
 * Goal    The libraries that tests link look at their invariants: a broken one ends the program at
 *         the next call, not when its consequences show.
 * Method  A child process breaks one field that a caller may see, makes one call and must abort.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nic/completion_queue.h"
#include "nic/receive_queue.h"
#include "nic/timer_wheel.h"
#include "transport/ibta/rc_responder.h"

static void break_responder(void)
{
    struct rc_responder responder;
    struct rc_resource resources[2];
    rc_responder_init(&responder, psn_of(7), 256, 2, resources);
    responder.due = 1; /* Though nothing is. */
    rc_responder_report_gap(&responder, psn_of(8));
}

static void break_receive_queue(void)
{
    _Alignas(64) uint8_t memory[4096];
    struct receive_queue queue;
    receive_queue_init(&queue, 2, 1, memory);
    queue.head = 1; /* One was taken that was never posted. */
    assert_int_equal(receive_queue_post(&queue, 1, NULL, 0), STATUS_OK);
}

static void break_completion_queue(void)
{
    struct completion ring[2], completion;
    struct cq cq;
    cq_init(&cq, 2, ring);
    cq.head = 1;
    (void)cq_poll(&cq, &completion, 1);
}

static void break_timer_wheel(void)
{
    static struct timer_wheel wheel;
    struct timer_link links[2];
    struct timer_node node = {0};
    timer_wheel_init(&wheel, links, 2);
    wheel.occupied[3] = 1; /* Its level knows nothing of it. */
    timer_wheel_set(&wheel, 0, &node, (struct instant){4096});
}

static void break_list(void)
{
    struct list head, other, node;
    list_init(&head);
    list_init(&other);
    list_append(&head, &node);
    list_append(&other, &node); /* It still is on the first one. */
    list_remove(&head);
}

static void expect_abort(void (*broken)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        broken();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

static void test_broken_invariants(void **state)
{
    (void)state;
    expect_abort(break_responder);
    expect_abort(break_receive_queue);
    expect_abort(break_completion_queue);
    expect_abort(break_timer_wheel);
    expect_abort(break_list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_invariants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
