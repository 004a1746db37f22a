/* SPDX-License-Identifier: BSD-2-Clause */
#include "lab/forth/driver.h"

#define SWITCHED_QWORDS 62u

void forth_driver_open(struct forth_driver *driver, bool switched)
{
    *driver = (struct forth_driver){.packet_qwords = switched ? SWITCHED_QWORDS : FORTH_WORDS_MAX};
}

void forth_driver_send(struct forth_driver *driver, struct forth_driver_write write)
{
    CHECK(driver->count < FORTH_DRIVER_WRITES);
    driver->queue[(driver->head + driver->count++) % FORTH_DRIVER_WRITES] = write;
}

bool forth_driver_next(struct forth_driver *driver, struct forth_request *request)
{
    if (driver->count == 0) {
        return false;
    }
    struct forth_driver_write *write = &driver->queue[driver->head];
    const uint32_t most = driver->packet_qwords;
    const uint32_t qwords = write->qwords < most ? write->qwords : most;
    const bool last = qwords == write->qwords;
    *request = (struct forth_request){
        .source = write->source,
        .destination = write->destination,
        .words = (uint16_t)qwords,
        .node = write->to,
        .start = true,
        .flags = {.remote_notification = write->notify && last,
                  .remote_interrupt = write->interrupt && last},
    };
    write->source += 8 * qwords;
    write->destination += 8 * qwords;
    write->qwords -= qwords;
    if (last) {
        driver->head = (driver->head + 1) % FORTH_DRIVER_WRITES;
        driver->count--;
    }
    return true;
}
