/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nldev_device - this process's device, as nldev.h tells of it.
 */
#ifndef KERNEL_NLDEV_DEVICE_H
#define KERNEL_NLDEV_DEVICE_H

#include "kernel/nldev.h"

/* Answers a request as nldev_answer does. Makes the process's NIC, and asks other programs for
 * their objects and counters, if it is about those. */
bool nldev_device_answer(const struct nldev_request *request, struct nldev_out *out);

#endif
