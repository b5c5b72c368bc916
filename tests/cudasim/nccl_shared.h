/* nccl_shared.h: one communicator of NCCL, in memory that its ranks share. */
#ifndef CUDASIM_NCCL_SHARED_H
#define CUDASIM_NCCL_SHARED_H

#include "nccl.h"
#include "sim.h"

namespace sim
{

enum { RANKS_MOST = 64, PART = 64 << 10 };  // bytes that are moved at once

enum TransferKind { SEND, RECV, ALL_REDUCE, BROADCAST };

struct What {  // both ends, or all ranks, must say the same
    int kind;
    int type, op, root;
    uint64_t count;
};

/* From one rank to another. The k-th send meets the k-th receive. */
struct Channel {
    std::atomic<uint64_t> sends, receives;  // begun
    std::atomic<uint64_t> received;         // ended
    std::atomic<uint64_t> written, taken;   // parts, of all messages
    What sent[2], wanted[2];                // [number & 1]
    char part[PART];
};

struct Slot {  // of one rank, for collectives
    std::atomic<uint64_t> begun;
    std::atomic<uint64_t> written, taken;  // parts, of all collectives
    What what[2];                          // [number & 1]
    char part[PART];
};

struct Shared {
    std::atomic<uint32_t> bell;  // rings at each change: everybody looks again
    std::atomic<int> arrived;
    int ranks;                // 0: nobody has come yet
    int process[RANKS_MOST];  // 0: not here yet
    alignas(64) char rest[];  // Channel [ranks][ranks], then Slot [ranks]
};

struct Transfer {  // one call of the user
    What what;
    const char *from;
    char *to;
    int peer;
    uint64_t parts = 0;  // that this end has moved
    uint64_t parts_written = 0;
    uint64_t number = 0;  // on its channel
    bool begun = false, done = false;
};

struct Communicator {
    Shared *shared = nullptr;
    size_t bytes = 0;
    int rank = 0, ranks = 0, device = 0;
    std::string file;
    std::atomic<bool> aborted = false;
    uint64_t sends[RANKS_MOST] = {}, receives[RANKS_MOST] = {};  // ended, by peer
    uint64_t sent_parts[RANKS_MOST] = {}, received_parts[RANKS_MOST] = {};
    uint64_t collectives = 0, collective_parts = 0;  // ended
    std::shared_ptr<Chain> chain = std::make_shared<Chain>();
    ~Communicator();
};

std::string new_meeting_place();  // a file's path, "" if there can be none
ncclResult_t join(Communicator *c, const char *path, int rank, int ranks);
void await_ranks(Communicator *c);                                     // all have joined
void run_transfers(Communicator *c, std::vector<Transfer> transfers);  // until all are done
size_t size_of_type(int type);                                         // 0: not simulated
std::string describe(const Communicator *c, const Transfer *t);

}  // namespace sim

#endif
