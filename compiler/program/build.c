/* build.c: the C compiler on every rank program, and the start of the job.
 *
 * The runtime is known here only as files: libpp.a, pp.h and pprun in the
 * folder lib/pipec beside the folder that pipec itself lies in, in the source
 * tree as after `make install`. */
#include "compile.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *library_folder(Program *p)
{
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) {
        error_plain(p, "cannot find where pipec lies: %s", strerror(errno));
        return NULL;
    }
    path[length] = 0;
    for (int up = 0; up < 2; up++)
        if (strrchr(path, '/'))
            *strrchr(path, '/') = 0;
    char *folder = text_format(p->arena, "%s/lib/pipec", path);
    if (access(text_format(p->arena, "%s/libpp.a", folder), R_OK) == 0)
        return folder;
    error_plain(p, "the runtime is not in %s", folder);
    help(p, "run `make`, or `make install`, and use the pipec that it makes");
    return NULL;
}

/* ---- build ---- */

enum { MAX_WORDS = 64 };  // of a compiler's command

static bool is_newer(const char *file, const char *than)
{
    struct stat a, b;
    if (stat(file, &a) != 0 || stat(than, &b) != 0)
        return false;
    return a.st_mtim.tv_sec != b.st_mtim.tv_sec
               ? a.st_mtim.tv_sec > b.st_mtim.tv_sec
               : a.st_mtim.tv_nsec >= b.st_mtim.tv_nsec;
}

/* The compiler and what it links against; $CC and $NVCC may hold options. */
typedef struct Toolchain {
    const char *command, *flags, *archive, *libraries;
} Toolchain;

static Toolchain toolchain(Program *p, const char *library)
{
    bool cuda = p->target == TARGET_CUDA;
    const char *chosen = getenv(cuda ? "NVCC" : "CC");
    Toolchain t = {.command = chosen && *chosen ? chosen
                              : cuda            ? "nvcc"
                                                : "cc",
                   .flags = cuda ? "-std=c++20 -O1"
                                 : "-std=c11 -O1 "
                                   "-Werror=implicit-function-declaration",
                   .libraries = cuda ? "-lcublasLt -lnccl -lcuda -lm"
                                     : "-ldnnl -lgomp -lm"};
    const char *name = !cuda                        ? "libpp.a"
                       : p->set.dtype == DTYPE_BF16 ? "libpp_cuda_bf16.a"
                                                    : "libpp_cuda_f32.a";
    t.archive = text_format(p->arena, "%s/%s", library, name);
    return t;
}

static int split_words(Program *p, const char *text, char **words, int count)
{
    for (; *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        if (length && count < MAX_WORDS - 1)
            words[count++] = text_copy(p->arena, text, length);
        text += length;
    }
    return count;
}

static void start_compiler(Program *p, const Toolchain *t, const char *library,
                           const char *source, const char *binary)
{
    char *words[MAX_WORDS] = {NULL};
    int count = split_words(p, t->command, words, 0);
    count = split_words(p, t->flags, words, count);
    char *const fixed[] = {"-I", (char *)library, (char *)source,
                           "-o", (char *)binary,  (char *)t->archive};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        if (count < MAX_WORDS - 1)
            words[count++] = fixed[i];
    split_words(p, t->libraries, words, count);
    execvp(words[0], words);
    fprintf(stderr, "pipec: error: cannot run the compiler %s: %s\n", words[0],
            strerror(errno));
    _exit(127);
}

static bool wait_for_one(Program *p)
{
    int status;
    pid_t pid = wait(&status);
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (pid > 0 && !p->errors)
        error_plain(p, "the C compiler failed on a rank program");
    return false;
}

/* A program of an earlier build, with more ranks or for another target, must
 * not be taken for one of this job. */
static void remove_stale(Program *p, const char *directory)
{
    const char *other = p->target == TARGET_CUDA ? "c" : "cu";
    for (int r = 0;; r++) {
        char *binary = text_format(p->arena, "%s/rank%d", directory, r);
        bool gone = remove(text_format(p->arena, "%s.%s", binary, other)) == 0;
        if (r >= p->ranks)
            gone |= remove(text_format(p->arena, "%s.%s", binary,
                                       source_suffix(p))) == 0;
        if ((gone || r >= p->ranks) && remove(binary) == 0)
            gone = true;
        if (r >= p->ranks && !gone)
            return;
    }
}

/* What mpirun and srun take to start one program per rank. */
static bool write_starters(Program *p, const char *directory)
{
    FILE *app = fopen(text_format(p->arena, "%s/mpirun.app", directory), "w");
    FILE *multi = fopen(text_format(p->arena, "%s/srun.conf", directory), "w");
    for (int r = 0; app && multi && r < p->ranks; r++) {
        fprintf(app, "-np 1 %s/rank%d\n", directory, r);
        fprintf(multi, "%d %s/rank%d\n", r, directory, r);
    }
    bool fine = app && multi && !ferror(app) && !ferror(multi);
    if (app)
        fine &= fclose(app) == 0;
    if (multi)
        fine &= fclose(multi) == 0;
    if (!fine)
        error_plain(p, "cannot write the files for mpirun and srun into %s: %s",
                    directory, strerror(errno));
    return fine;
}

static bool has_archive(Program *p, const Toolchain *t)
{
    if (access(t->archive, R_OK) == 0)
        return true;
    error_plain(p, "the CUDA runtime %s is not there", t->archive);
    help(p, "make it where nvcc is installed: `make cuda`");
    return false;
}

/* Starts the compiler on one rank; false when it cannot be started. */
static bool compile_rank(Program *p, const Toolchain *t, const char *library,
                         const char *source, const char *binary)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        start_compiler(p, t, library, source, binary);
    if (pid < 0)
        error_plain(p, "cannot start the compiler: %s", strerror(errno));
    return pid > 0;
}

bool build(Program *p, const char *directory)
{
    const char *library = library_folder(p);
    if (!library)
        return false;
    Toolchain t = toolchain(p, library);
    long cores = sysconf(_SC_NPROCESSORS_ONLN), running = 0;
    bool fine = has_archive(p, &t);
    remove_stale(p, directory);
    for (int r = 0; r < p->ranks && fine; r++) {
        char *binary = text_format(p->arena, "%s/rank%d", directory, r);
        char *source = text_format(p->arena, "%s.%s", binary, source_suffix(p));
        if (is_newer(binary, source) && is_newer(binary, t.archive))
            continue;
        for (; running >= cores; running--)
            fine &= wait_for_one(p);
        if (fine && (fine = compile_rank(p, &t, library, source, binary)))
            running++;
    }
    for (; running > 0; running--)
        fine &= wait_for_one(p);
    return fine && (p->target == TARGET_CPU || write_starters(p, directory));
}

/* ---- run ---- */

/* A path in the file is relative to the file; one from -D is relative to where
 * the user stands. */
static const char *data_path(Program *p)
{
    const char *path = p->set.data_path, *file = p->sources[0].name,
               *slash = strrchr(file, '/');
    if (path[0] == '/' || p->set.data_at.source != 0 || !slash)
        return path;
    return text_format(p->arena, "%.*s/%s", (int)(slash - file), file, path);
}

static const char *first_match(Program *p, const char *pattern)
{
    glob_t found;
    const char *first = NULL;
    if (glob(pattern, 0, NULL, &found) == 0) {
        first = text_copy(p->arena, found.gl_pathv[0],
                          strlen(found.gl_pathv[0]));
        globfree(&found);
    }
    return first;
}

bool data_is_readable(Program *p)
{
    if (p->set.data == DATA_NONE) {
        error_plain(p, "%s names no data to train on", p->sources[0].name);
        help(p, "train { data bytes \"corpus.txt\" }");
        return false;
    }
    const char *path = data_path(p), *first = first_match(p, path);
    struct stat status;
    errno = ENOENT;
    if (first && stat(first, &status) == 0 && !S_ISDIR(status.st_mode) &&
        access(first, R_OK) == 0)
        return true;
    if (first && S_ISDIR(status.st_mode))
        errno = EISDIR;
    error_at(p, p->set.data_at, "cannot read the data %s: %s",
             first ? first : path, strerror(errno));
    help(p, "-D data=FILE names another file");
    return false;
}

bool run(Program *p, const char *directory, char **options, int option_count)
{
    const char *library = library_folder(p);
    if (!library)
        return false;
    char **words = arena_take(p->arena,
                              sizeof *words * (size_t)(option_count + 8));
    int count = 0;
    words[count++] = text_format(p->arena, "%s/pprun", library);
    words[count++] = "--data";
    words[count++] = (char *)data_path(p);
    for (int i = 0; i < option_count; i++)
        words[count++] = options[i];
    words[count++] = text_format(p->arena, "%d", p->ranks);
    words[count++] = text_format(p->arena, "%s/rank", directory);
    fflush(NULL);
    execv(words[0], words);
    error_plain(p, "cannot start %s: %s", words[0], strerror(errno));
    return false;
}
