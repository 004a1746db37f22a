/* SPDX-License-Identifier: BSD-2-Clause
 *
 * virtual_file - nodes of sysfs.h as a program sees them: descriptors, status, directories.
 *
 * Purpose    Answers libc's calls about paths for the virtual files.
 * Inputs     Nodes that sysfs_find found.
 * Outputs    Results as libc has them: -1 or NULL with errno.
 * Ownership  Descriptors and streams are the caller's to close. A descriptor is a memfd that is
 *            named after its path, so nothing has to be remembered: any process that has it may
 *            duplicate, inherit or close it. The working directory can be a virtual one: then the
 *            kernel's is a directory of that name that was removed as soon as it was entered. So
 *            children inherit it, also over exec, and it ends with the last process that works in
 *            it.
 * Threads    Any.
 * Time       Files are as old as the directory they lie in.
 * Limits     To enter a virtual directory takes a place where directories can be made (/dev/shm,
 *            /tmp or /var/tmp).
 * Source     open(2), stat(2), readdir(3); Linux fs/kernfs for what is refused.
 */
#ifndef KERNEL_VIRTUAL_FILE_H
#define KERNEL_VIRTUAL_FILE_H

#include <dirent.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "kernel/sysfs.h"

int virtual_open(const struct sysfs_node *node, int flags);
int virtual_access(const struct sysfs_node *node, int mode);
int virtual_status(const struct sysfs_node *node, struct stat *status);
ssize_t virtual_readlink(const struct sysfs_node *node, char *buffer, size_t bytes);

/* False while this process made no descriptor, so that nobody has to look for one. */
bool virtual_descriptors_made(void);

/* `status` is the kernel's of a descriptor. If that is one of virtual_open's, it becomes that of
 * the virtual file. Costs nothing where none was opened. */
void virtual_descriptor_status(int fd, struct stat *status);
/* The directory that virtual_open opened as `fd`: false for all other descriptors. */
bool virtual_descriptor_path(int fd, char path[SYSFS_PATH_BYTES]);

/* -- The working directory --------------------------------------------------------------------- */

/* 0 or -1, as chdir. */
int virtual_enter(const struct sysfs_node *node);
/* False: neither this process nor the one that it became was ever in a virtual directory. */
bool virtual_cwd_possible(void);
/* The virtual directory that is the working directory; false: it is none. */
bool virtual_cwd(char path[SYSFS_PATH_BYTES]);

/* -- Directories ------------------------------------------------------------------------------- */

struct virtual_directory;

/* `kernel`, which may be NULL, is a stream of the kernel's directory of this path; `fd` is -1 or
 * virtual_open's descriptor. Both are the directory's from now on. */
struct virtual_directory *virtual_directory_open(const struct sysfs_node *node, DIR *kernel,
                                                 int fd);
int virtual_directory_close(struct virtual_directory *directory);
/* NULL at the end, or with errno. Valid until the next call. */
struct dirent *virtual_directory_read(struct virtual_directory *directory);
long virtual_directory_tell(const struct virtual_directory *directory);
void virtual_directory_rewind(struct virtual_directory *directory);
void virtual_directory_seek(struct virtual_directory *directory, long position);
int virtual_directory_descriptor(struct virtual_directory *directory);
/* Is this stream one of ours? */
bool virtual_directory_is(DIR *stream);

#endif
