/* memory.c: how much memory is free: of the machine, and of the control groups
 * that hold this process, where a container or a queue has set a limit.
 *
 *     limit - (used - what the page cache of the group would give back)
 *
 * A container often sees its own group as the root of all: a group that is not
 * found under its name is looked for there. */
#include "memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { PATH = 4096 };

typedef struct Version {
    const char *folder;  // below the root
    const char *limit, *used;
    const char *cached[2];  // keys of memory.stat
} Version;

static const Version versions[] = {
    {"/memory",
     "memory.limit_in_bytes",
     "memory.usage_in_bytes",
     {"total_inactive_file", "total_active_file"}},
    {"", "memory.max", "memory.current", {"inactive_file", "active_file"}},
};

/* The number in a file, of the line that begins with the key if there is one;
 * NaN: there is none, as for "max". */
static double read_number(const char *folder, const char *name, const char *key)
{
    char path[PATH + 64], line[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "re");
    double number = NAN;
    size_t length = key ? strlen(key) : 0;
    while (file && isnan(number) && fgets(line, sizeof line, file))
        if (!key || (strncmp(line, key, length) == 0 && line[length] == ' '))
            if (sscanf(line + length, "%lf", &number) != 1)
                number = NAN;
    if (file)
        fclose(file);
    return number;
}

static double free_of_group(const Version *version, const char *folder)
{
    double limit = read_number(folder, version->limit, NULL),
           used = read_number(folder, version->used, NULL);
    if (isnan(limit))
        return INFINITY;
    for (int i = 0; i < 2; i++)
        used -= fmax(0, read_number(folder, "memory.stat", version->cached[i]));
    return fmax(0, limit - fmax(0, used));
}

/* Of the group and of all above it. */
static double free_of_path(const Version *version, const char *root,
                           const char *group)
{
    char folder[PATH];
    double least = INFINITY;
    if (snprintf(folder, sizeof folder, "%s%s%s", root, version->folder,
                 strcmp(group, "/") == 0 ? "" : group) >= PATH)
        return least;
    size_t top = strlen(root) + strlen(version->folder);
    for (;;) {
        least = fmin(least, free_of_group(version, folder));
        char *slash = strrchr(folder, '/');
        if (strlen(folder) <= top || !slash)
            return least;
        *slash = 0;
    }
}

/* Lines are `number:controllers:path`; version 2 names no controller. */
double pp_group_memory(const char *groups, const char *root)
{
    FILE *file = fopen(groups, "re");
    char line[PATH];
    double least = INFINITY;
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        char *names = strchr(line, ':'),
             *path = names ? strchr(names + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        if (names[1] == 0)
            least = fmin(least, free_of_path(&versions[1], root, path));
        else if (strstr(names + 1, "memory"))
            least = fmin(least, free_of_path(&versions[0], root, path));
    }
    if (file)
        fclose(file);
    return least;
}

double pp_free_memory(void)
{
    double machine = 1024 * read_number("/proc", "meminfo", "MemAvailable:"),
           group = pp_group_memory("/proc/self/cgroup", "/sys/fs/cgroup");
    return fmin(machine, group);  // one that is NaN is the other
}
