/* launch.c: pprun, which starts the ranks of a job on this machine and answers
 * for them.
 *
 *     check -> make the shared memory -> fork and exec every rank -> supervise until all have left
 *
 * It reads what the ranks report (local/control.h) every 20 ms and never
 * touches the training. Whatever goes wrong, it says which rank, at which
 * action, waiting for what, then kills all: no rank outlives it
 * (PR_SET_PDEATHSIG) and none is left as a zombie. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "local/control.h"
#include "progress.h"
#include "shown.h"

enum {
    POLL = 20,    // ms between two looks
    GRACE = 100,  // ms after a death, for the others to run into their waits
    STALL_LOOK = 500,  // ms between two looks for a stall
    STALL = 4000,      // ms without any sign of life
    GAP = 2000,        // ms between two looks: it was pprun that did not run
};

typedef struct Rank {
    pid_t pid;            // 0: has left
    int status;           // of waitpid, when it has left
    char state;           // of /proc: R runs, S sleeps, T stopped, ...
    unsigned long ticks;  // of processor time
} Rank;

typedef struct Launch {
    int ranks;
    const char *prefix;
    char **options;  // handed on to every rank
    int option_count;
    int quiet;
    const char *losses, *trace;  // files, or NULL
    const char *job;             // hash that all programs must have; NULL: one
    int fd;
    Control *control;
    Rank *rank;  // [ranks]
    Progress progress;
    int interrupts;         // acted on
    int64_t looked, alive;  // for a stall: last look, last sign of life
    uint32_t marks;         // sum of the progress counters at the last look
    unsigned long ticks;    // of processor time, all ranks
} Launch;

static volatile sig_atomic_t interrupted, suspended;

/* ---- words ---- */

static _Noreturn void die(int status, const char *format, ...)
{
    va_list arguments;
    char *message = NULL;
    va_start(arguments, format);
    if (vasprintf(&message, format, arguments) < 0)
        message = NULL;
    va_end(arguments);
    if (message)
        pp_show(message);
    fprintf(stderr, "pprun: error: %s\n", message ? message : "out of memory");
    exit(status);
}

static void print_usage(FILE *out)
{
    fputs("usage: pprun [options] N PREFIX      starts PREFIX0 .. PREFIX<N-1>\n"
          "  --losses FILE one line `step loss norm` for each step, exact\n"
          "  --trace FILE  begin and end of every action: .json or "
          ".trace\n"
          "  --job HASH    start the programs of this job alone\n" RANK_OPTIONS,
          out);
}

static void name_action(const RankRecord *record, char *text, size_t size)
{
    int step = atomic_load(&record->step);
    char number[16] = "";
    if (record->micro >= 0)
        snprintf(number, sizeof number, "%d", record->micro);
    if (step == 0)
        snprintf(text, size, "before step 1");
    else if (!record->action[0])
        snprintf(text, size, "at the start of step %d", step);
    else
        snprintf(text, size, "%s %s%s of step %d",
                 atomic_load(&record->computing) ? "in" : "after",
                 record->action, number, step);
}

static void name_wait(const RankRecord *record, char *text, size_t size)
{
    char number[16] = "";
    if (record->waiting_micro >= 0)
        snprintf(number, sizeof number, "%d", record->waiting_micro);
    switch (atomic_load(&record->waiting)) {
    case WAIT_MESSAGE:
        snprintf(text, size, "waiting for %s%s from rank %d",
                 record->waiting_for, number, record->peer);
        break;
    case WAIT_TAKEN:
        snprintf(text, size, "waiting for rank %d to take %s%s", record->peer,
                 record->waiting_for, number);
        break;
    case WAIT_MEETING:
        snprintf(text, size, "waiting for rank %d in %s", record->peer,
                 record->waiting_for);
        break;
    case WAIT_START:
        snprintf(text, size, "waiting for the others to start");
        break;
    default: snprintf(text, size, "waiting for pprun");
    }
}

static void tell_about(const Launch *launch, int rank)
{
    const RankRecord *record = &launch->control->records[rank];
    char text[4 * TEXT];
    if (atomic_load(&record->finished)) {
        fprintf(stderr, "  rank %d had finished\n", rank);
    } else if (atomic_load(&record->waiting)) {
        name_wait(record, text, sizeof text);
        fprintf(stderr, "  rank %d was %s\n", rank, text);
    } else {
        name_action(record, text, sizeof text);
        fprintf(stderr, "  rank %d was %s\n", rank, text);
    }
}

static void tell_about_others(const Launch *launch, int rank)
{
    for (int i = 0; i < launch->ranks; i++)
        if (i != rank)
            tell_about(launch, i);
}

/* ---- start ---- */

static int is_whole_number(const char *text)
{
    if (!*text)
        return 0;
    for (; *text; text++)
        if (!isdigit((unsigned char)*text))
            return 0;
    return 1;
}

/* Where the value of an option of pprun itself goes. */
static const char **own_option(Launch *launch, const char *option)
{
    return !strcmp(option, "--losses")  ? &launch->losses
           : !strcmp(option, "--trace") ? &launch->trace
           : !strcmp(option, "--job")   ? &launch->job
                                        : NULL;
}

/* N and PREFIX are the last two words, so options of the ranks need not be
 * known here. */
static void parse_arguments(Launch *launch, int argc, char **argv)
{
    launch->options = calloc((size_t)argc, sizeof *launch->options);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--help")) {
            print_usage(stdout);
            exit(0);
        }
    if (argc < 3 || !is_whole_number(argv[argc - 2]) || !launch->options) {
        print_usage(stderr);
        exit(2);
    }
    launch->ranks = atoi(argv[argc - 2]);
    launch->prefix = argv[argc - 1];
    if (launch->ranks < 1 || launch->ranks > 4096)
        die(2, "the number of ranks is %s, it must be 1 to 4096",
            argv[argc - 2]);
    for (int i = 1; i < argc - 2; i++) {
        const char **own = own_option(launch, argv[i]);
        if (own && i + 1 == argc - 2)
            die(2, "a value is missing after %s", argv[i]);
        else if (own)
            *own = argv[++i];
        else
            launch->options[launch->option_count++] = argv[i];
        if (!strcmp(argv[i], "--quiet"))
            launch->quiet = 1;
    }
    if (launch->trace && !is_trace_name(launch->trace))
        die(2, "--trace writes a file that ends in .json or .trace, not `%s`",
            launch->trace);
}

static char *program_of(const Launch *launch, int rank)
{
    char *path;
    if (asprintf(&path, "%s%s%d", strchr(launch->prefix, '/') ? "" : "./",
                 launch->prefix, rank) < 0)
        die(1, "out of memory");
    return path;
}

static void check_programs(const Launch *launch)
{
    for (int i = 0; i < launch->ranks; i++) {
        char *path = program_of(launch, i);
        if (access(path, X_OK) != 0)
            die(1, "cannot start rank %d of %d: %s: %s", i, launch->ranks, path,
                strerror(errno));
        free(path);
    }
}

static void make_control(Launch *launch)
{
    size_t bytes = control_bytes(launch->ranks);
    launch->fd = memfd_create("pipec", 0);
    if (launch->fd < 0 || ftruncate(launch->fd, (off_t)bytes) != 0)
        die(1, "cannot get shared memory: %s", strerror(errno));
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                        launch->fd, 0);
    if (memory == MAP_FAILED)
        die(1, "cannot map shared memory: %s", strerror(errno));
    launch->control = memory;
    launch->control->magic = CONTROL_MAGIC;
    launch->control->ranks = launch->ranks;
    launch->control->trace = launch->trace != NULL;
    snprintf(launch->control->job, sizeof launch->control->job, "%s",
             launch->job ? launch->job : "");
    atomic_store(&launch->control->gate, gate_of(0, UINT32_MAX));
}

static void on_signal(int number)
{
    if (number == SIGTSTP)
        suspended = 1;
    else if (number != SIGCHLD)
        interrupted = interrupted + 1;
}

/* SIGCHLD only has to end the wait for news. */
static const int caught[] = {SIGINT, SIGTERM, SIGTSTP, SIGCHLD};
enum { CAUGHT = sizeof caught / sizeof *caught };

static void handle_signals(void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    for (int i = 0; i < CAUGHT; i++)
        sigaction(caught[i], &action, NULL);
}

/* A fork has the handlers of pprun until it is another program: a signal that
 * came in between would only be noted there, and be lost. So it stays blocked,
 * and does here what it does to any program. */
static void block_signals(sigset_t *usual)
{
    sigset_t signals;
    sigemptyset(&signals);
    for (int i = 0; i < CAUGHT; i++)
        sigaddset(&signals, caught[i]);
    sigprocmask(SIG_BLOCK, &signals, usual);
}

static void take_signals(const sigset_t *usual)
{
    handle_signals(SIG_DFL);
    sigprocmask(SIG_SETMASK, usual, NULL);
}

/* Into a group of its own, so that a signal for the group of pprun reaches pprun
 * alone: also a key that was pressed before this. */
static void leave_group(void)
{
    setpgid(0, 0);
    signal(SIGINT, SIG_IGN);
    signal(SIGTSTP, SIG_IGN);
}

static _Noreturn void become_rank(const Launch *launch, int rank, pid_t parent,
                                  const sigset_t *usual)
{
    char *path = program_of(launch, rank), number[3][16];
    char **arguments = calloc((size_t)launch->option_count + 2,
                              sizeof *arguments);
    leave_group();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !arguments)
        _exit(127);
    snprintf(number[0], sizeof number[0], "%d", launch->fd);
    snprintf(number[1], sizeof number[1], "%d", rank);
    snprintf(number[2], sizeof number[2], "%d", launch->ranks);
    setenv("PP_FD", number[0], 1);
    setenv("PP_RANK", number[1], 1);
    setenv("PP_RANKS", number[2], 1);
    arguments[0] = path;
    memcpy(arguments + 1, launch->options,
           (size_t)launch->option_count * sizeof *arguments);
    take_signals(usual);
    execv(path, arguments);
    if (!atomic_exchange(&launch->control->failing, 1)) {
        snprintf(launch->control->reason, sizeof launch->control->reason,
                 "cannot start rank %d: %s: %s", rank, path, strerror(errno));
        pp_show(launch->control->reason);
        atomic_store(&launch->control->reason_is_written, 1);
    }
    _exit(127);
}

/* ---- end ---- */

static void signal_all(const Launch *launch, int number)
{
    for (int i = 0; i < launch->ranks; i++)
        if (launch->rank[i].pid > 0)
            kill(launch->rank[i].pid, number);
}

static void kill_all(Launch *launch)
{
    signal_all(launch, SIGKILL);
    for (int i = 0; i < launch->ranks; i++) {
        while (launch->rank[i].pid > 0 &&
               waitpid(launch->rank[i].pid, NULL, 0) < 0 && errno == EINTR)
            continue;
        launch->rank[i].pid = 0;
    }
}

static void start_ranks(Launch *launch)
{
    pid_t parent = getpid();
    launch->rank = calloc((size_t)launch->ranks, sizeof *launch->rank);
    if (!launch->rank)
        die(1, "out of memory");
    fflush(NULL);
    sigset_t usual;
    block_signals(&usual);
    for (int i = 0; i < launch->ranks; i++) {
        pid_t pid = fork();
        if (pid == 0)
            become_rank(launch, i, parent, &usual);
        if (pid < 0) {
            int error = errno;
            kill_all(launch);
            die(1, "cannot start rank %d: %s", i, strerror(error));
        }
        launch->rank[i].pid = pid;
    }
    sigprocmask(SIG_SETMASK, &usual, NULL);
}

/* Collects the ranks that have left. Returns one that should not have, the
 * killed first, or -1. */
static int find_dead(Launch *launch)
{
    int dead = -1;
    for (int i = 0; i < launch->ranks; i++) {
        Rank *rank = &launch->rank[i];
        if (rank->pid == 0 || waitpid(rank->pid, &rank->status, WNOHANG) <= 0)
            continue;
        rank->pid = 0;
        int good = rank->status == 0 &&
                   atomic_load(&launch->control->records[i].finished);
        if (!good && (dead < 0 || (WIFSIGNALED(rank->status) &&
                                   !WIFSIGNALED(launch->rank[dead].status))))
            dead = i;
    }
    return dead;
}

static void rest(int milliseconds)
{
    struct timespec time = {milliseconds / 1000,
                            milliseconds % 1000 * 1000000L};
    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

static void tell_death(const Launch *launch, int dead)
{
    const RankRecord *record = &launch->control->records[dead];
    int status = launch->rank[dead].status;
    char how[96], where[4 * TEXT];
    if (WIFSIGNALED(status)) {
        snprintf(how, sizeof how, "signal %d, %s", WTERMSIG(status),
                 strsignal(WTERMSIG(status)));
        char *name = strchr(how, ',') + 2;
        *name = (char)tolower((unsigned char)*name);
    } else {
        snprintf(how, sizeof how, "exit status %d", WEXITSTATUS(status));
    }
    if (atomic_load(&record->waiting))
        name_wait(record, where, sizeof where);
    else
        name_action(record, where, sizeof where);
    fprintf(stderr, "pprun: error: rank %d died (%s) %s\n", dead, how, where);
    tell_about_others(launch, dead);
}

/* A rank that fails tells why before it leaves; one that is only killed
 * cannot. */
static int end_dead(Launch *launch, int dead)
{
    const Control *control = launch->control;
    if (WIFEXITED(launch->rank[dead].status) &&
        WEXITSTATUS(launch->rank[dead].status) == 2) {
        rest(GRACE);
        kill_all(launch);
        return 2;  // rank 0 has explained the options
    }
    rest(GRACE);
    atomic_store(&launch->control->abort, 1);
    progress_read(&launch->progress, launch->control);
    progress_break(&launch->progress);
    if (atomic_load(&control->reason_is_written))
        fprintf(stderr, "pprun: error: %s\n", control->reason);
    else if (launch->rank[dead].status == 0 &&
             !atomic_load(&control->records[dead].step))
        fprintf(stderr, "pprun: rank %d left before the first step\n", dead);
    else
        tell_death(launch, dead);
    kill_all(launch);
    return 1;
}

/* ---- stall ---- */

static void read_state(Rank *rank)
{
    char path[64], text[1024];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)rank->pid);
    FILE *file = fopen(path, "re");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[length] = 0;
    const char *after = strrchr(text, ')');  // the name may hold anything
    unsigned long user, system;
    if (after &&
        sscanf(after + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
               &rank->state, &user, &system) == 3)
        rank->ticks = user + system;
}

/* Signs of life: something was done, processor time was used, a rank is ready
 * to run (R), waits for a disk (D) or is held by a debugger (t). */
static int shows_life(Launch *launch, int64_t elapsed)
{
    uint32_t marks = 0;
    unsigned long ticks = 0;
    int life = 0;
    for (int i = 0; i < launch->ranks; i++) {
        marks += atomic_load(&launch->control->records[i].progress);
        if (launch->rank[i].pid == 0)
            continue;
        read_state(&launch->rank[i]);
        ticks += launch->rank[i].ticks;
        /* A rank that waits wakes ten times a second to look round: to be
         * ready to run means nothing then. */
        int waits = atomic_load(&launch->control->records[i].waiting) !=
                    NOT_WAITING;
        life |= !waits && strchr("RDt", launch->rank[i].state) != NULL;
    }
    double used = (double)(ticks - launch->ticks) /
                  (double)sysconf(_SC_CLK_TCK) * 1e9;
    life |= marks != launch->marks || ticks < launch->ticks ||
            used > 0.1 * (double)elapsed;
    launch->marks = marks;
    launch->ticks = ticks;
    return life;
}

static int is_stalled(Launch *launch)
{
    int64_t now = now_ns(), elapsed = now - launch->looked;
    if (elapsed < STALL_LOOK * 1000000LL)
        return 0;
    if (shows_life(launch, elapsed) || elapsed > GAP * 1000000LL)
        launch->alive = now;
    launch->looked = now;
    return now - launch->alive >= STALL * 1000000LL;
}

/* The rank that holds up the others: one that is stopped, or one that is not
 * waiting for a rank. */
static int find_stalled(const Launch *launch)
{
    for (int i = 0; i < launch->ranks; i++)
        if (launch->rank[i].pid > 0 && launch->rank[i].state == 'T')
            return i;
    for (int i = 0; i < launch->ranks; i++)
        if (launch->rank[i].pid > 0 &&
            !atomic_load(&launch->control->records[i].waiting))
            return i;
    return -1;
}

static int end_stalled(Launch *launch)
{
    int stalled = find_stalled(launch);
    char where[4 * TEXT];
    progress_break(&launch->progress);
    if (stalled < 0) {
        fprintf(stderr,
                "pprun: error: all ranks wait for each other, since %d s\n",
                STALL / 1000);
    } else {
        const RankRecord *record = &launch->control->records[stalled];
        if (atomic_load(&record->waiting))
            name_wait(record, where, sizeof where);
        else
            name_action(record, where, sizeof where);
        fprintf(
            stderr,
            "pprun: error: rank %d stalled %s: %s, nothing was done for %d s\n",
            stalled, where,
            launch->rank[stalled].state == 'T' ? "it is stopped" : "it sleeps",
            STALL / 1000);
    }
    tell_about_others(launch, stalled);
    kill_all(launch);
    return 1;
}

/* ---- supervision ---- */

/* See gate_of: all ranks end the step that the fastest has begun, and none
 * begins another. */
static void ask_to_stop(Launch *launch)
{
    atomic_ullong *gate = &launch->control->gate;
    unsigned long long seen = atomic_load(gate);
    while (!atomic_compare_exchange_weak(
        gate, &seen, gate_of((uint32_t)(seen >> 32), (uint32_t)(seen >> 32))))
        continue;
    launch->progress.stop = (int)(seen >> 32);
    progress_break(&launch->progress);
    fprintf(stderr, "pprun: stopping after step %d; once more to kill\n",
            launch->progress.stop);
}

/* The terminal stops only the group of pprun; the ranks have to be told. */
static void suspend(const Launch *launch)
{
    suspended = 0;
    signal_all(launch, SIGSTOP);
    raise(SIGSTOP);
    signal_all(launch, SIGCONT);
}

static int ranks_left(const Launch *launch)
{
    int left = 0;
    for (int i = 0; i < launch->ranks; i++)
        left += launch->rank[i].pid > 0;
    return left;
}

static int supervise(Launch *launch)
{
    launch->looked = launch->alive = now_ns();
    while (ranks_left(launch) > 0) {
        uint32_t news = atomic_load(&launch->control->news.value);
        int dead = find_dead(launch);
        if (dead >= 0)
            return end_dead(launch, dead);
        progress_read(&launch->progress, launch->control);
        if (suspended)
            suspend(launch);
        if (interrupted > launch->interrupts && launch->interrupts++ == 0)
            ask_to_stop(launch);
        if (launch->interrupts > 1) {
            progress_break(&launch->progress);
            fprintf(stderr, "pprun: killed in step %d\n",
                    launch->progress.steps + 1);
            kill_all(launch);
            return 130;
        }
        if (is_stalled(launch))
            return end_stalled(launch);
        if (ranks_left(launch) > 0)
            sleep_on(&launch->control->news, news, POLL);
    }
    progress_read(&launch->progress, launch->control);
    progress_end(&launch->progress, launch->control);
    trace_write(&launch->progress, launch->control, launch->fd);
    int failed = report_close(&launch->progress.losses);
    return report_close(&launch->progress.trace) | failed;
}

int main(int argc, char **argv)
{
    static Launch launch;
    signal(SIGXFSZ, SIG_IGN);
    parse_arguments(&launch, argc, argv);
    check_programs(&launch);
    make_control(&launch);
    progress_start(&launch.progress, launch.quiet, launch.losses, launch.trace);
    handle_signals(on_signal);
    start_ranks(&launch);
    return supervise(&launch);
}
