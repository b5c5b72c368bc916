/* build.c: the C compiler on every rank program, and the start of the job.
 *
 * The runtime is known here only as files: libpp.a, pp.h and pprun in the
 * folder lib/pipec beside the folder that pipec itself lies in, in the source
 * tree as after `make install`. */
#include "job.h"
#include "lower.h"
#include "output.h"
#include "escape.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *library_folder(Program *p)
{
    char *path = realpath("/proc/self/exe", NULL);
    if (!path) {
        error_plain(p, "cannot find where pipec lies: %s", strerror(errno));
        return NULL;
    }
    for (int up = 0; up < 2; up++)
        if (strrchr(path, '/'))
            *strrchr(path, '/') = 0;
    char *folder = text_format(p->arena, "%s/lib/pipec", path);
    free(path);
    if (access(text_format(p->arena, "%s/libpp.a", folder), R_OK) == 0)
        return folder;
    error_plain(p, "the runtime is not in %s", folder);
    help(p, "run `make`, or `make install`, and use the pipec that it makes");
    return NULL;
}

/* ---- build ---- */

typedef struct Words {  // of a command; one more is NULL
    char **list;
    int count;
} Words;

static void add_word(Program *p, Words *words, const char *word)
{
    words->list = array_grow(p->arena, words->list, words->count,
                             sizeof *words->list);
    words->list[words->count] = (char *)word;
    words->count += word != NULL;
}

static void split_words(Program *p, Words *words, const char *text)
{
    for (; *text; text += strspn(text, " ")) {
        size_t length = strcspn(text, " ");
        if (length)
            add_word(p, words, text_copy(p->arena, text, length));
        text += length;
    }
}

static _Noreturn void become_compiler(const Words *words, int output)
{
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(nothing, STDERR_FILENO);
    execvp(words->list[0], words->list);
    _exit(127);
}

/* What `CC --version` says: of the compiler itself, also behind a name that
 * stays. One that cannot be run says nothing, and is an error later, when there
 * is something to compile. */
static const char *compiler_version(Program *p, const char *command)
{
    Words words = {NULL, 0};
    int pipes[2];
    split_words(p, &words, command);
    add_word(p, &words, "--version");
    add_word(p, &words, NULL);
    if (pipe2(pipes, O_CLOEXEC) != 0)
        return "";
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become_compiler(&words, pipes[1]);
    close(pipes[1]);
    FILE *out = fdopen(pipes[0], "r");
    char *text = NULL;
    size_t room = 0;
    ssize_t length = out ? getdelim(&text, &room, 0, out) : 0;
    const char *version = text_copy(p->arena, length > 0 ? text : "",
                                    length > 0 ? (size_t)length : 0);
    free(text);
    if (out)
        fclose(out);
    if (pid > 0)
        waitpid(pid, NULL, 0);
    return version;
}

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
    t.header = text_format(p->arena, "%s/pp.h", library);
    t.version = compiler_version(p, t.command);
    return t;
}

static void start_compiler(Program *p, const Toolchain *t, const char *library,
                           const char *source, const char *binary)
{
    Words words = {NULL, 0};
    split_words(p, &words, t->command);
    split_words(p, &words, t->flags);
    const char *const fixed[] = {"-I", library, source,
                                 "-o", binary,  t->archive};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        add_word(p, &words, fixed[i]);
    split_words(p, &words, t->libraries);
    add_word(p, &words, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    execvp(words.list[0], words.list);
    fprintf(stderr, "pipec: error: cannot run the compiler %s: %s\n",
            shown_text(p->arena, words.list[0]), strerror(errno));
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

static bool write_starter(Program *p, const char *directory, const char *name,
                          const char *before)
{
    Output out;
    if (!open_output(p, &out, text_format(p->arena, "%s/%s", directory, name)))
        return false;
    fprintf(out.stream, "# pipec program: %d ranks\n", p->ranks);
    for (int r = 0; r < p->ranks; r++)
        if (*before)
            fprintf(out.stream, "%s%s/rank%d\n", before, directory, r);
        else
            fprintf(out.stream, "%d %s/rank%d\n", r, directory, r);
    return close_output(&out);
}

/* Both files are words with spaces between, and have no quotes that both read
 * alike: a name that would become something else there is refused. */
static bool can_be_started(Program *p, const char *directory)
{
    for (const char *c = directory; *c; c++) {
        bool strange = (unsigned char)*c < 33 || *c == 127 ||
                       strchr("\"'`\\#%$*?[]&;|<>()!", *c);
        if (!strange)
            continue;
        error_plain(p,
                    "the folder %s cannot stand in mpirun.app and srun.conf: "
                    "its name has a %s",
                    directory,
                    *c == ' ' ? "space"
                    : (unsigned char)*c < 33 || *c == 127
                        ? "control character"
                        : text_format(p->arena, "`%c`", *c));
        help(p, "choose another one: -o FOLDER");
        return false;
    }
    return true;
}

/* What mpirun and srun take to start one program per rank. */
static bool write_starters(Program *p, const char *directory)
{
    return write_starter(p, directory, "mpirun.app", "-np 1 ") &&
           write_starter(p, directory, "srun.conf", "");
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

/* Beside its place, as the linker writes it bit by bit. */
static char *partial_program(Program *p, const char *directory, int rank)
{
    return text_format(p->arena, "%s/rank%d.%ld.new", directory, rank,
                       (long)getpid());
}

static bool compile_all(Program *p, const Toolchain *t, const char *library,
                        const char *directory)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN), running = 0;
    bool fine = true;
    for (int r = 0; r < p->ranks && fine; r++) {
        char *source = text_format(p->arena, "%s/rank%d.%s", directory, r,
                                   source_suffix(p));
        for (; running >= cores; running--)
            fine &= wait_for_one(p);
        if (fine && (fine = compile_rank(p, t, library, source,
                                         partial_program(p, directory, r))))
            running++;
    }
    for (; running > 0; running--)
        fine &= wait_for_one(p);
    return fine;
}

/* Programs get their names when all are whole. */
static bool name_all(Program *p, const char *directory, bool fine)
{
    for (int r = 0; r < p->ranks; r++) {
        char *partial = partial_program(p, directory, r),
             *program = text_format(p->arena, "%s/rank%d", directory, r);
        if (fine && rename(partial, program) != 0) {
            error_plain(p, "cannot write %s: %s", program, strerror(errno));
            fine = false;
        }
        if (!fine)
            remove(partial);
    }
    return fine;
}

/* Every program carries the hash, which the ranks compare when they meet. */
static bool build(Program *p, const Job *job, const Toolchain *t,
                  const char *library)
{
    for (int r = 0; r < p->ranks; r++)
        push_field(p, &p->programs[r].job, "hash", ARG_TEXT, job->hash, 0)
            ->comment = "of all programs of the job";
    if (!clear_folder(p, job) || !emit(p, job->folder))
        return false;
    bool fine = compile_all(p, t, library, job->folder);
    return name_all(p, job->folder, fine) &&
           (p->target == TARGET_CPU || write_starters(p, job->folder)) &&
           mark_made(p, job);
}

bool make_job(Program *p, Job *job, const char *named, const char *base)
{
    const char *library = library_folder(p);
    if (!library)
        return false;
    Toolchain t = toolchain(p, library);
    if (!has_archive(p, &t))
        return false;
    if (p->target == TARGET_CUDA && !can_be_started(p, named ? named : base))
        return false;
    *job = (Job){.hash = hash_job(p, &t), .lock = -1, .run = -1};
    if (!open_job(p, job, named, base) ||
        !(is_made(p, job) || build(p, job, &t, library)) || !link_last(p, job))
        return false;
    if (!named)
        remove_old_jobs(p, job, base);
    return true;
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
    bool there = first && stat(first, &status) == 0 && access(first, R_OK) == 0;
    if (there && S_ISREG(status.st_mode))
        return true;
    error_at(p, p->set.data_at, "cannot read the data %s: %s",
             first ? first : path,
             !there                    ? strerror(errno)
             : S_ISDIR(status.st_mode) ? strerror(EISDIR)
                                       : "it is not a regular file");
    help(p, "-D data=FILE names another file");
    return false;
}

bool run(Program *p, const Job *job, char **options, int option_count)
{
    const char *library = library_folder(p);
    if (!library)
        return false;
    char **words = arena_take(p->arena,
                              sizeof *words * (size_t)(option_count + 10));
    int count = 0;
    words[count++] = text_format(p->arena, "%s/pprun", library);
    words[count++] = "--data";
    words[count++] = (char *)data_path(p);
    words[count++] = "--job";
    words[count++] = (char *)job->hash;
    for (int i = 0; i < option_count; i++)
        words[count++] = options[i];
    words[count++] = text_format(p->arena, "%d", p->ranks);
    words[count++] = text_format(p->arena, "%s/rank", job->folder);
    fcntl(job->last ? job->run : job->lock, F_SETFD,
          0);  // pprun and its ranks hold the folder
    fflush(NULL);
    execv(words[0], words);
    error_plain(p, "cannot start %s: %s", words[0], strerror(errno));
    return false;
}
