/* SPDX-License-Identifier: BSD-2-Clause
 *
 * cm_device - the rdma_cm character device, as the stock librdmacm opens, writes and polls it.
 */
#ifndef KERNEL_CM_DEVICE_H
#define KERNEL_CM_DEVICE_H

#include <stdbool.h>
#include <sys/types.h>

/* A descriptor that is readable while events wait, or -1 with errno. */
int cm_device_open(int flags);

/* Cheap: asked of every descriptor that is written to or closed. */
bool cm_device_is(int fd);

/* One command (rdma/rdma_user_cm.h): all its bytes, or -1 with errno. */
ssize_t cm_device_write(int fd, const void *bytes, size_t count);

/* Before the descriptor is closed: its ids go, their peers are told. In a child of fork only its
 * name goes. */
void cm_device_close(int fd);
/* In a child of fork: it was its parent's, and the child has not closed its copy. */
bool cm_device_was(int fd);

/* In a child of fork: the threads that were in here do not exist. */
void cm_device_in_child(void);

/* The program ends: likewise for all of them. Called by the NIC's thread. */
void cm_device_leave(void);

#endif
