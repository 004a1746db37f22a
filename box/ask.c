/* SPDX-License-Identifier: BSD-2-Clause
 *
 * ask - what a NIC knows about its queue pairs and memory, told by itself: a thread of its process
 * runs the function that the NIC named (base/box_page.h). The run is over then.
 */
#include "box/internal.h"

enum {
    RED_ZONE = 128,     /* below the stack, which a function uses without saying so */
    ROOM_MAX = 1 << 14, /* of a text, on the thread's stack */
};

static const struct thread *stopped_thread(const struct box *box, pid_t process)
{
    for (int i = 0; i < box->threads; i++) {
        const struct thread *thread = box->thread[i];
        if (thread->process->pid == process && thread->state != THREAD_GONE &&
            thread->state != THREAD_ASLEEP) {
            return thread;
        }
    }
    return NULL;
}

void ask_nic(const struct box *box, const struct box_nic *nic, uint64_t address, char *into,
             size_t bytes)
{
    const struct thread *thread = stopped_thread(box, nic->process);
    registers at;
    uint64_t said = 0;
    into[0] = '\0';
    CHECK(bytes > 0 && bytes <= ROOM_MAX);
    if (thread == NULL || nic->account == 0 || !tracee_registers(thread->id, &at)) {
        return;
    }
    const uint64_t room = at.rsp - RED_ZONE - ROOM_MAX;
    const uint64_t arguments[4] = {nic->nic, address, room, bytes};
    if (!tracee_run(thread->id, nic->account, arguments, room, &said) || said >= bytes ||
        !tracee_read(thread->id, room, into, said)) {
        said = 0;
    }
    into[said] = '\0';
}
