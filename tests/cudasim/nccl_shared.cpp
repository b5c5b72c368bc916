/* nccl_shared.cpp: how the transfers of a communicator make progress.
 *
 * Every end looks at counters in shared memory and does what can be done now:
 * begin, move a part, end. When nothing can be done it sleeps until the bell
 * rings. A send writes nothing before its receive has begun: a rendezvous, like
 * NCCL's, whatever the size.
 *
 *     sender      begins ......... part -> [ ] ...... part -> [ ] ... ends
 *     receiver            begins         [ ] -> part      [ ] -> part, ends
 *
 * Transfers of one call progress together; those to one peer, and collectives,
 * in the order of their issue.
 */
#include "nccl_shared.h"
#include "cuda_bf16.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sim
{

/* ---- the bell ---- */

static void ring(Shared *s)
{
    s->bell++;
    syscall(SYS_futex, &s->bell, FUTEX_WAKE, 1 << 20, NULL, NULL, 0);
}

static void sleep_until_it_rings(Shared *s, uint32_t seen)
{
    timespec limit = {0, 20000000};
    syscall(SYS_futex, &s->bell, FUTEX_WAIT, seen, &limit, NULL, 0);
}

static Channel *channel(const Communicator *c, int from, int to)
{
    return (Channel *)c->shared->rest + from * c->ranks + to;
}

static Slot *slot(const Communicator *c, int rank)
{
    return (Slot *)((Channel *)c->shared->rest + c->ranks * c->ranks) + rank;
}

/* ---- words ---- */

static const char *const type_names[] = {"int8",   "uint8",   "int32", "uint32", "int64",
                                         "uint64", "float16", "float", "double", "bf16"};

size_t size_of_type(int type)
{
    static const unsigned char size[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};
    return type >= 0 && type < (int)sizeof size ? size[type] : 0;
}

static std::string describe(const What *what)
{
    return std::to_string(what->count) + " " + type_names[what->type];
}

std::string describe(const Communicator *c, const Transfer *t)
{
    std::string peer = "rank " + std::to_string(t->peer), what = describe(&t->what);
    switch (t->what.kind) {
    case SEND: return "send of " + what + " to " + peer;
    case RECV: return "receive of " + what + " from " + peer;
    case ALL_REDUCE: return "all-reduce of " + what + " by " + std::to_string(c->ranks) + " ranks";
    }
    return "broadcast of " + what + " from rank " + std::to_string(t->what.root);
}

static std::string process_of(const Communicator *c, int rank)
{
    int process = c->shared->process[rank];
    bool gone = process && kill(process, 0) && errno == ESRCH;
    return "rank " + std::to_string(rank) + " (process " + std::to_string(process) +
           (gone ? ", which is gone)" : ")");
}

static std::string reason(const Communicator *c, const Transfer *t)
{
    if (!t->begun)
        return "not begun, an earlier one to the same peer is not done";
    if (t->what.kind == SEND)
        return channel(c, c->rank, t->peer)->receives > t->number
                   ? "being received"
                   : "no receive yet at " + process_of(c, t->peer);
    if (t->what.kind == RECV)
        return channel(c, t->peer, c->rank)->sends > t->number
                   ? "being sent"
                   : "no send yet at " + process_of(c, t->peer);
    for (int rank = 0; rank < c->ranks; rank++)
        if (slot(c, rank)->begun <= t->number)
            return "not called yet by " + process_of(c, rank);
    return "moving";
}

static void say_what_is_open(const Communicator *c, const std::vector<Transfer> &transfers)
{
    std::string text = "rank " + std::to_string(c->rank) + " of " + std::to_string(c->ranks);
    for (const Transfer &t : transfers)
        if (!t.done && text.size() < 180)
            text += ", " + describe(c, &t) + ": " + reason(c, &t);
    doing("%s", text.c_str());
}

[[noreturn]] static void mismatch(const Communicator *c, const Transfer *t, const What *other,
                                  int rank)
{
    die("nccl: mismatch: rank %d calls %s, rank %d %s %s", c->rank, describe(c, t).c_str(), rank,
        t->what.kind == SEND   ? "receives"
        : t->what.kind == RECV ? "sends"
                               : "calls it with",
        describe(other).c_str());
}

/* ---- point to point ---- */

static uint64_t parts_of(const What *what)
{
    return (what->count * size_of_type(what->type) + PART - 1) / PART;
}

static size_t part_bytes(const What *what, uint64_t part)
{
    uint64_t left = what->count * size_of_type(what->type) - part * PART;
    return left < PART ? left : (size_t)PART;
}

static bool agree(const What *a, const What *b)
{
    return a->count == b->count && a->type == b->type;
}

static bool step_send(Communicator *c, Transfer *t)
{
    Channel *ch = channel(c, c->rank, t->peer);
    if (!t->begun) {
        t->number = c->sends[t->peer];
        ch->sent[t->number & 1] = t->what;
        ch->sends = t->number + 1;
        return t->begun = true;
    }
    if (ch->receives <= t->number)
        return false;
    if (!agree(&ch->wanted[t->number & 1], &t->what))
        mismatch(c, t, &ch->wanted[t->number & 1], t->peer);
    uint64_t before = c->sent_parts[t->peer];
    if (t->parts < parts_of(&t->what)) {
        if (ch->taken != before + t->parts)
            return false;
        memcpy(ch->part, t->from + t->parts * PART, part_bytes(&t->what, t->parts));
        t->parts++;
        ch->written = before + t->parts;
        return true;
    }
    if (ch->received <= t->number)
        return false;
    c->sends[t->peer]++;
    c->sent_parts[t->peer] += t->parts;
    return t->done = true;
}

static bool step_receive(Communicator *c, Transfer *t)
{
    Channel *ch = channel(c, t->peer, c->rank);
    if (!t->begun) {
        t->number = c->receives[t->peer];
        ch->wanted[t->number & 1] = t->what;
        ch->receives = t->number + 1;
        return t->begun = true;
    }
    if (ch->sends <= t->number)
        return false;
    if (!agree(&ch->sent[t->number & 1], &t->what))
        mismatch(c, t, &ch->sent[t->number & 1], t->peer);
    uint64_t before = c->received_parts[t->peer];
    if (t->parts < parts_of(&t->what)) {
        if (ch->written <= before + t->parts)
            return false;
        memcpy(t->to + t->parts * PART, ch->part, part_bytes(&t->what, t->parts));
        t->parts++;
        ch->taken = before + t->parts;
        return true;
    }
    ch->received = t->number + 1;
    c->receives[t->peer]++;
    c->received_parts[t->peer] += t->parts;
    return t->done = true;
}

/* ---- collectives ---- */

template <class T> static T combined(T a, T b, int op)
{
    if (op == ncclMax)
        return a < b ? b : a;
    if (op == ncclMin)
        return b < a ? b : a;
    return T(a + b);
}

/* In the order of ranks, so that all get the same bits. */
template <class T>
static void reduce(const Communicator *c, const What *what, char *to, size_t bytes)
{
    for (size_t i = 0; i < bytes / sizeof(T); i++) {
        T sum = ((const T *)slot(c, 0)->part)[i];
        for (int rank = 1; rank < c->ranks; rank++)
            sum = combined(sum, ((const T *)slot(c, rank)->part)[i], what->op);
        ((T *)to)[i] = sum;
    }
}

static void reduce_part(const Communicator *c, const What *what, char *to, size_t bytes)
{
    if (what->kind == BROADCAST)
        memcpy(to, slot(c, what->root)->part, bytes);
    else if (what->type == ncclFloat32)
        reduce<float>(c, what, to, bytes);
    else if (what->type == ncclFloat64)
        reduce<double>(c, what, to, bytes);
    else if (what->type == ncclBfloat16)
        reduce<__nv_bfloat16>(c, what, to, bytes);
    else if (what->type == ncclInt32)
        reduce<int32_t>(c, what, to, bytes);
    else
        reduce<int64_t>(c, what, to, bytes);
}

template <class F> static bool everywhere(const Communicator *c, F reached)
{
    for (int rank = 0; rank < c->ranks; rank++)
        if (!reached(slot(c, rank)))
            return false;
    return true;
}

static void compare_calls(const Communicator *c, const Transfer *t)
{
    for (int rank = 0; rank < c->ranks; rank++) {
        const What *other = &slot(c, rank)->what[t->number & 1];
        if (!agree(other, &t->what) || other->kind != t->what.kind || other->op != t->what.op ||
            other->root != t->what.root)
            mismatch(c, t, other, rank);
    }
}

static bool step_collective(Communicator *c, Transfer *t)
{
    Slot *own = slot(c, c->rank);
    if (!t->begun) {
        t->number = c->collectives;
        own->what[t->number & 1] = t->what;
        own->begun = t->number + 1;
        return t->begun = true;
    }
    if (!everywhere(c, [t](Slot *s) { return s->begun > t->number; }))
        return false;
    compare_calls(c, t);
    if (t->parts == parts_of(&t->what)) {
        c->collectives++;
        c->collective_parts += t->parts;
        return t->done = true;
    }
    uint64_t now = c->collective_parts + t->parts;
    size_t at = t->parts * PART, bytes = part_bytes(&t->what, t->parts);
    if (t->parts_written == t->parts) {
        if (!everywhere(c, [now](Slot *s) { return s->taken >= now; }))
            return false;
        if (t->what.kind == ALL_REDUCE || t->what.root == c->rank)
            memcpy(own->part, t->from + at, bytes);
        t->parts_written++;
        own->written = now + 1;
        return true;
    }
    if (!everywhere(c, [now](Slot *s) { return s->written > now; }))
        return false;
    reduce_part(c, &t->what, t->to + at, bytes);
    t->parts++;
    own->taken = now + 1;
    return true;
}

/* ---- progress ---- */

static bool is_collective(const Transfer *t)
{
    return t->what.kind == ALL_REDUCE || t->what.kind == BROADCAST;
}

/* Is an earlier one in the same order not done? */
static bool behind(const std::vector<Transfer> &transfers, size_t i)
{
    const Transfer *t = &transfers[i];
    for (size_t j = 0; j < i; j++) {
        const Transfer *earlier = &transfers[j];
        bool same = is_collective(t)
                        ? is_collective(earlier)
                        : earlier->what.kind == t->what.kind && earlier->peer == t->peer;
        if (same && !earlier->done)
            return true;
    }
    return false;
}

static bool step(Communicator *c, Transfer *t)
{
    bool moved = t->what.kind == SEND   ? step_send(c, t)
                 : t->what.kind == RECV ? step_receive(c, t)
                                        : step_collective(c, t);
    if (moved)
        ring(c->shared);
    return moved;
}

void run_transfers(Communicator *c, std::vector<Transfer> transfers)
{
    for (int idle = 0; !c->aborted;) {
        uint32_t seen = c->shared->bell;
        bool moved = false, left = false;
        for (size_t i = 0; i < transfers.size(); i++) {
            if (transfers[i].done || behind(transfers, i))
                continue;
            while (step(c, &transfers[i]))
                if (moved = true; transfers[i].done)
                    break;
            left = left || !transfers[i].done;
        }
        if (!left && !moved)
            return;
        if (moved)
            continue;
        if (idle++ % 8 == 0)
            say_what_is_open(c, transfers);
        sleep_until_it_rings(c->shared, seen);
    }
}

/* ---- meeting ---- */

static const char prefix[] = "cudasim-";
static std::mutex file_mutex;
static std::vector<std::pair<int, std::string>> files;  // of whom, not unlinked yet

static void forget_files()
{
    if (!file_mutex.try_lock())
        return;
    for (auto &[process, file] : files)
        if (process == getpid())
            unlink(file.c_str());
    file_mutex.unlock();
}

/* What dead processes left. */
static void sweep()
{
    DIR *dir = opendir("/dev/shm");
    while (dirent *entry = dir ? readdir(dir) : nullptr) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1))
            continue;
        int process = atoi(entry->d_name + sizeof prefix - 1);
        if (process > 0 && kill(process, 0) && errno == ESRCH)
            unlink(("/dev/shm/" + std::string(entry->d_name)).c_str());
    }
    if (dir)
        closedir(dir);
}

std::string new_meeting_place()
{
    static int made;
    std::lock_guard lock(file_mutex);
    if (!made) {
        sweep();
        clean_up = forget_files;
        atexit(forget_files);
    }
    char path[96];
    snprintf(path, sizeof path, "/dev/shm/%s%d-%d-%lx", prefix, getpid(), made++,
             (unsigned long)(now() * 1e6));
    int fd = ::open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    if (fd < 0)
        return "";
    close(fd);
    files.push_back({getpid(), path});
    return path;
}

static size_t shared_bytes(int ranks)
{
    size_t n = (size_t)ranks;
    return sizeof(Shared) + n * n * sizeof(Channel) + n * sizeof(Slot);
}

/* The first one makes room. */
static bool map_shared(Communicator *c, int ranks)
{
    int fd = ::open(c->file.c_str(), O_RDWR);
    if (fd < 0)
        return false;
    flock(fd, LOCK_EX);
    if (lseek(fd, 0, SEEK_END) == 0 && ftruncate(fd, (off_t)shared_bytes(ranks))) {
        close(fd);
        return false;
    }
    c->bytes = (size_t)lseek(fd, 0, SEEK_END);
    void *map = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    c->shared = map == MAP_FAILED ? nullptr : (Shared *)map;
    if (c->shared && !c->shared->ranks)
        c->shared->ranks = ranks;
    flock(fd, LOCK_UN);  // closing would not: the mapping keeps the file open
    close(fd);
    return c->shared != nullptr;
}

ncclResult_t join(Communicator *c, const char *path, int rank, int ranks)
{
    c->file = path;
    c->rank = rank;
    c->ranks = ranks;
    c->device = current_device;
    if (!map_shared(c, ranks)) {
        fprintf(stderr, "cudasim: nccl: rank %d: no meeting place %s\n", rank, path);
        return ncclSystemError;
    }
    Shared *s = c->shared;
    if (s->ranks != ranks || s->process[rank]) {
        fprintf(stderr, "cudasim: nccl: rank %d of %d joins a communicator of %d ranks%s\n", rank,
                ranks, s->ranks, s->process[rank] ? ", where this rank is already" : "");
        return ncclInvalidUsage;
    }
    s->process[rank] = getpid();
    if (++s->arrived == ranks)
        unlink(path);
    ring(s);
    return ncclSuccess;
}

void await_ranks(Communicator *c)
{
    start_watchdog();
    HostWait wait("ncclCommInitRank of rank " + std::to_string(c->rank));
    for (;;) {
        uint32_t seen = c->shared->bell;
        if (c->shared->arrived == c->ranks)
            break;
        std::string text = "ncclCommInitRank of rank " + std::to_string(c->rank) + " of " +
                           std::to_string(c->ranks) + " waits for";
        for (int rank = 0; rank < c->ranks; rank++)
            if (!c->shared->process[rank])
                text += " rank " + std::to_string(rank);
        wait.say(text);
        sleep_until_it_rings(c->shared, seen);
    }
    finished++;  // a sign of life for the watchdog
}

Communicator::~Communicator()
{
    if (shared)
        munmap(shared, bytes);
}

}  // namespace sim
