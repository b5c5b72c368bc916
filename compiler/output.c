/* output.c: the one way in which pipec writes a file.
 *
 * It is written beside its place and then renamed: a reader, or a browser that
 * reloads, never sees half of it, and a full disk or an interrupt leaves the old
 * one. The name beside it holds the process, so that two never share one. */
#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool cannot_write(const Output *out, int why)
{
    error_plain(out->p, "cannot write %s: %s", out->path, strerror(why));
    return false;
}

/* A link stays a link: what it points to is replaced. What is not there behind
 * it is written where it has to be. */
static const char *behind_links(Program *p, const char *path)
{
    char *real = realpath(path, NULL);
    const char *place = real ? text_copy(p->arena, real, strlen(real)) : path;
    free(real);
    return place;
}

bool open_output(Program *p, Output *out, const char *path)
{
    struct stat status;
    bool there = stat(path, &status) == 0,
         whole = there ? S_ISREG(status.st_mode) : lstat(path, &status) != 0;
    *out = (Output){.p = p, .path = path, .place = path};
    if (whole) {
        out->place = behind_links(p, path);
        out->partial = text_format(p->arena, "%s.%ld.new", out->place,
                                   (long)getpid());
    }
    out->stream = fopen(out->partial ? out->partial : path, "we");
    return out->stream || cannot_write(out, errno);
}

bool close_output(Output *out)
{
    errno = 0;
    bool fine = fflush(out->stream) == 0 && !ferror(out->stream);
    int why = errno ? errno : EIO;  // nothing was left to flush when it failed
    if (fclose(out->stream) != 0 && fine) {
        why = errno;
        fine = false;
    }
    if (fine && out->partial && rename(out->partial, out->place) != 0) {
        why = errno;
        fine = false;
    }
    if (fine)
        return true;
    if (out->partial)
        remove(out->partial);
    return cannot_write(out, why);
}

bool make_folders(Program *p, const char *path)
{
    char *part = text_copy(p->arena, path, strlen(path));
    for (char *c = part + 1;; c++) {
        if (*c && *c != '/')
            continue;
        char kept = *c;
        *c = 0;
        if (mkdir(part, 0777) != 0 && errno != EEXIST) {
            error_plain(p, "cannot make the folder %s: %s", part,
                        strerror(errno));
            return false;
        }
        *c = kept;
        if (!kept)
            return true;
    }
}
