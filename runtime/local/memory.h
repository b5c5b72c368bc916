/* memory.h: how much memory the ranks of this machine may still take. */
#ifndef PP_MEMORY_H
#define PP_MEMORY_H

/* Bytes; infinite where nothing is known. */
double pp_free_memory(void);

/* The part that a control group leaves, version 1 or 2, of this process and of
 * all groups above its own: `groups` is /proc/self/cgroup, `root` is
 * /sys/fs/cgroup. */
double pp_group_memory(const char *groups, const char *root);

#endif
