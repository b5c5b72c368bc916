/* job.c: whose programs lie in a folder, and from what they were made.
 *
 *     out/gpt/3f2a.../rank0.c rank0 ... job    two runs at once share a folder only if they are the same
 *     out/gpt/last -> 3f2a...
 *
 * The hash is of all that the programs are made from: the text of every rank,
 * the archive, its header, the compiler with its version and flags. Times of
 * files mean nothing. The file `job` holds it and is written when all programs
 * are whole; it goes before the first of them does. So whatever ends a build at
 * whatever moment, programs without it are made anew.
 *
 * In out/gpt/ the KEPT jobs that were used last are kept. An older one goes, if
 * its folder holds nothing but what pipec wrote, and nobody builds (.lock) or
 * runs (.run) what is in it.
 *
 * A folder that the user has named may hold other things: pipec touches a file
 * only if its first line says that pipec wrote it, and a program only if its
 * source is there and does. */
#include "job.h"
#include "hash.h"
#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the hash ---- */

const char *hash_job(Program *p, const Toolchain *t)
{
    static const char *const searched[] = {"CPATH", "C_INCLUDE_PATH",
                                           "LIBRARY_PATH"};
    Hash hash = HASH_START;
    const char *words[] = {t->command, t->version, t->flags, t->libraries,
                           PIPEC_VERSION};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        hash_text(&hash, words[i]);
    for (size_t i = 0; i < sizeof searched / sizeof *searched; i++)
        hash_text(&hash, getenv(searched[i]) ? getenv(searched[i]) : "");
    hash_file(&hash, t->archive);
    hash_file(&hash, t->header);
    FILE *out = hash_stream(&hash);
    for (int r = 0; out && r < p->ranks; r++)
        emit_rank(p, out, r);
    if (!out || fclose(out) != 0) {
        fputs("pipec: out of memory\n", stderr);
        exit(1);
    }
    return hash_digits(p->arena, &hash);
}

/* ---- the folder ---- */

static const char *lock_path(Program *p, const char *folder)
{
    return text_format(p->arena, "%s/.lock", folder);
}

static const char *run_path(Program *p, const char *folder)
{
    return text_format(p->arena, "%s/.run", folder);
}

static int open_lock(const char *path)
{
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
}

static bool cannot_lock(Program *p, const char *path, int why)
{
    error_plain(p, "cannot write %s: %s", path, strerror(why));
    help(p, "choose another folder: -o FOLDER");
    return false;
}

/* Held until this process ends, or what it has become: pprun, and its ranks. */
static bool lock_named(Program *p, Job *job)
{
    const char *path = lock_path(p, job->folder);
    job->lock = open_lock(path);
    if (job->lock >= 0 && flock(job->lock, LOCK_EX | LOCK_NB) == 0)
        return true;
    if (job->lock < 0 || errno != EWOULDBLOCK)
        return cannot_lock(p, path, errno);
    error_plain(p,
                "the folder %s is in use: another job is built there, or runs",
                job->folder);
    help(p, "choose another one: -o FOLDER");
    return false;
}

/* Is the file that is open still the one of that name. */
static bool is_there(int fd, const char *path)
{
    struct stat own, named;
    return fstat(fd, &own) == 0 && stat(path, &named) == 0 &&
           own.st_ino == named.st_ino && own.st_dev == named.st_dev;
}

/* The first until this process ends or becomes another, so that one at a time
 * builds; the second for as long as the programs may be started. Whoever removes
 * the folder meanwhile has the first one: then there is a new one to make. */
static bool lock_hashed(Program *p, Job *job)
{
    const char *path = lock_path(p, job->folder),
               *run = run_path(p, job->folder);
    for (;;) {
        if (!make_folders(p, job->folder))
            return false;
        job->lock = open_lock(path);
        if (job->lock < 0 && errno == ENOENT)
            continue;
        if (job->lock < 0 || flock(job->lock, LOCK_EX) != 0)
            return cannot_lock(p, path, errno);
        if (is_there(job->lock, path))
            break;
        close(job->lock);
    }
    job->run = open_lock(run);
    return (job->run >= 0 && flock(job->run, LOCK_SH) == 0) ||
           cannot_lock(p, run, errno);
}

bool open_job(Program *p, Job *job, const char *named, const char *base)
{
    job->folder = named ? named
                        : text_format(p->arena, "%s/%s", base, job->hash);
    job->last = named ? NULL : text_format(p->arena, "%s/last", base);
    if (!named)
        return lock_hashed(p, job);
    if (make_folders(p, job->folder))
        return lock_named(p, job);
    help(p, "choose another one: -o FOLDER");
    return false;
}

/* Set in one step, as two jobs may do it at once. */
bool link_last(Program *p, const Job *job)
{
    if (!job->last)
        return true;
    const char *fresh = text_format(p->arena, "%s.%ld.new", job->last,
                                    (long)getpid());
    remove(fresh);
    if (symlink(job->hash, fresh) == 0 && rename(fresh, job->last) == 0)
        return true;
    error_plain(p, "cannot set the link %s: %s", job->last, strerror(errno));
    remove(fresh);
    return false;
}

/* ---- what is there ---- */

static const char *stamp_path(Program *p, const Job *job)
{
    return text_format(p->arena, "%s/job", job->folder);
}

static const char *stamp_text(Program *p, const Job *job)
{
    return text_format(p->arena, "# pipec program: job %s, %d ranks\n",
                       job->hash, p->ranks);
}

/* The first line of a file, with its end; "" where there is none. */
static const char *first_line(Program *p, const char *path)
{
    FILE *in = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    ssize_t length = in ? getline(&line, &room, in) : 0;
    const char *first = text_copy(p->arena, length > 0 ? line : "",
                                  length > 0 ? (size_t)length : 0);
    free(line);
    if (in)
        fclose(in);
    return first;
}

static bool is_ours(Program *p, const char *path)
{
    const char *first = first_line(p, path);
    return strncmp(first, "/* pipec program", 16) == 0 ||
           strncmp(first, "# pipec program", 15) == 0;
}

static bool is_regular(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode);
}

bool is_made(Program *p, const Job *job)
{
    if (strcmp(first_line(p, stamp_path(p, job)), stamp_text(p, job)) != 0)
        return false;
    for (int r = 0; r < p->ranks; r++) {
        const char *program = text_format(p->arena, "%s/rank%d", job->folder,
                                          r);
        if (!is_regular(program) || access(program, X_OK) != 0 ||
            !is_ours(p,
                     text_format(p->arena, "%s.%s", program, source_suffix(p))))
            return false;
    }
    return true;
}

bool mark_made(Program *p, const Job *job)
{
    Output out;
    if (!open_output(p, &out, stamp_path(p, job)))
        return false;
    fputs(stamp_text(p, job), out.stream);
    return close_output(&out);
}

/* ---- what has to go ---- */

/* "rank12.c" is a source, "rank12" a program, "rank12.c.815.new" was left by a
 * build that did not end. */
typedef enum Part { PART_NONE, PART_SOURCE, PART_PROGRAM, PART_LEFT } Part;

static Part part_of(const char *name, int *rank)
{
    if (strncmp(name, "rank", 4) != 0)
        return PART_NONE;
    size_t digits = strspn(name + 4, "0123456789");
    if (digits == 0 || digits > 9)
        return PART_NONE;
    *rank = atoi(name + 4);
    const char *rest = name + 4 + digits;
    if (!*rest)
        return PART_PROGRAM;
    if (strcmp(rest, ".c") == 0 || strcmp(rest, ".cu") == 0)
        return PART_SOURCE;
    rest += strncmp(rest, ".cu", 3) == 0  ? 3
            : strncmp(rest, ".c", 2) == 0 ? 2
                                          : 0;
    digits = *rest == '.' ? strspn(rest + 1, "0123456789") : 0;
    return digits && strcmp(rest + 1 + digits, ".new") == 0 ? PART_LEFT
                                                            : PART_NONE;
}

static bool source_is_ours(Program *p, const Job *job, int rank)
{
    const char *stem = text_format(p->arena, "%s/rank%d", job->folder, rank);
    return is_ours(p, text_format(p->arena, "%s.c", stem)) ||
           is_ours(p, text_format(p->arena, "%s.cu", stem));
}

/* A file of the user's where one of this job has to go. */
static bool is_in_the_way(Program *p, const char *path)
{
    struct stat status;
    if (lstat(path, &status) != 0 || (is_regular(path) && is_ours(p, path)))
        return false;
    error_plain(p, "%s is in the way: pipec did not write it", path);
    help(p, "move it, or choose another folder: -o FOLDER");
    return true;
}

static bool rank_is_free(Program *p, const Job *job, int rank)
{
    const char *program = text_format(p->arena, "%s/rank%d", job->folder, rank);
    if (is_in_the_way(
            p, text_format(p->arena, "%s.%s", program, source_suffix(p))))
        return false;
    return source_is_ours(p, job, rank) || !is_in_the_way(p, program);
}

static bool folder_is_free(Program *p, const Job *job)
{
    static const char *const starters[] = {"mpirun.app", "srun.conf"};
    for (int r = 0; r < p->ranks; r++)
        if (!rank_is_free(p, job, r))
            return false;
    for (int i = 0; p->target == TARGET_CUDA && i < 2; i++)
        if (is_in_the_way(
                p, text_format(p->arena, "%s/%s", job->folder, starters[i])))
            return false;
    return !is_in_the_way(p, stamp_path(p, job));
}

/* All files of one part; programs go before the sources that tell whose they
 * are. */
static bool remove_parts(Program *p, const Job *job, Part part)
{
    DIR *folder = opendir(job->folder);
    bool fine = folder != NULL;
    int rank;
    for (struct dirent *entry; fine && (entry = readdir(folder));) {
        if (part_of(entry->d_name, &rank) != part)
            continue;
        const char *path = text_format(p->arena, "%s/%s", job->folder,
                                       entry->d_name);
        bool ours = part == PART_LEFT ||
                    (part == PART_PROGRAM ? source_is_ours(p, job, rank)
                                          : is_ours(p, path));
        if (ours && is_regular(path))
            fine = unlink(path) == 0;
    }
    int why = errno;
    if (folder)
        closedir(folder);
    errno = why;
    return fine;
}

static bool remove_all(Program *p, const Job *job)
{
    return remove_parts(p, job, PART_LEFT) &&
           remove_parts(p, job, PART_PROGRAM) &&
           remove_parts(p, job, PART_SOURCE);
}

bool clear_folder(Program *p, const Job *job)
{
    if (!folder_is_free(p, job))
        return false;
    if (unlink(stamp_path(p, job)) != 0 && errno != ENOENT) {
        error_plain(p, "cannot remove %s: %s", stamp_path(p, job),
                    strerror(errno));
        return false;
    }
    if (remove_all(p, job))
        return true;
    error_plain(p, "cannot clear the folder %s: %s", job->folder,
                strerror(errno));
    return false;
}

/* ---- jobs of earlier times ---- */

enum { KEPT = 10 };

typedef struct Old {
    const char *folder;
    struct timespec used;
} Old;

/* Times are of the stamp, which every use renews; of the lock where a build
 * has not come to its end. */
static bool is_job_folder(Program *p, Old *old, const char *base,
                          const char *name)
{
    struct stat status;
    old->folder = text_format(p->arena, "%s/%s", base, name);
    if (strlen(name) != 16 || strspn(name, "0123456789abcdef") != 16 ||
        lstat(old->folder, &status) != 0 || !S_ISDIR(status.st_mode) ||
        stat(lock_path(p, old->folder), &status) != 0)
        return false;
    old->used = status.st_mtim;
    if (stat(text_format(p->arena, "%s/job", old->folder), &status) == 0)
        old->used = status.st_mtim;
    return true;
}

static int newest_first(const void *left, const void *right)
{
    const Old *a = left, *b = right;
    if (a->used.tv_sec != b->used.tv_sec)
        return a->used.tv_sec < b->used.tv_sec ? 1 : -1;
    if (a->used.tv_nsec != b->used.tv_nsec)
        return a->used.tv_nsec < b->used.tv_nsec ? 1 : -1;
    return strcmp(a->folder, b->folder);
}

static bool entry_is_ours(Program *p, const Job *job, const char *name)
{
    static const char *const fixed[] = {".", "..", ".lock", ".run"};
    const char *path = text_format(p->arena, "%s/%s", job->folder, name);
    int rank;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (strcmp(name, fixed[i]) == 0)
            return true;
    if (!is_regular(path))
        return false;
    switch (part_of(name, &rank)) {
    case PART_LEFT: return true;
    case PART_PROGRAM: return source_is_ours(p, job, rank);
    default: return is_ours(p, path);
    }
}

static bool holds_ours_alone(Program *p, const Job *job)
{
    DIR *folder = opendir(job->folder);
    bool ours = folder != NULL;
    for (struct dirent *entry; ours && (entry = readdir(folder));)
        ours = entry_is_ours(p, job, entry->d_name);
    if (folder)
        closedir(folder);
    return ours;
}

/* What is left by a program that ends here is like a build that did not end. */
static void remove_job(Program *p, const Job *job)
{
    static const char *const starters[] = {"job", "mpirun.app", "srun.conf"};
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++)
        unlink(text_format(p->arena, "%s/%s", job->folder, starters[i]));
    if (!remove_all(p, job))
        return;
    unlink(run_path(p, job->folder));
    unlink(lock_path(p, job->folder));
    rmdir(job->folder);
}

static void remove_unused(Program *p, const Old *old)
{
    Job job = {.folder = old->folder};
    int lock = open(lock_path(p, old->folder), O_RDWR | O_CLOEXEC),
        run = open_lock(run_path(p, old->folder));
    if (lock >= 0 && run >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 &&
        flock(run, LOCK_EX | LOCK_NB) == 0 && holds_ours_alone(p, &job))
        remove_job(p, &job);
    if (run >= 0)
        close(run);
    if (lock >= 0)
        close(lock);
}

/* The folder that is used now is the newest: its stamp is renewed first. */
void remove_old_jobs(Program *p, const Job *job, const char *base)
{
    Old *old = NULL;
    int count = 0;
    utimensat(AT_FDCWD, stamp_path(p, job), NULL, 0);
    DIR *folder = opendir(base);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        Old one;
        if (!is_job_folder(p, &one, base, entry->d_name))
            continue;
        old = array_grow(p->arena, old, count, sizeof *old);
        old[count++] = one;
    }
    if (folder)
        closedir(folder);
    if (count > KEPT)
        qsort(old, (size_t)count, sizeof *old, newest_first);
    for (int i = KEPT; i < count; i++)
        if (strcmp(old[i].folder, job->folder) != 0)
            remove_unused(p, &old[i]);
}
