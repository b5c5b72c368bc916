/* rendezvous.c: rank, world and the address of rank 0 from the variables of
 * Open MPI, Slurm or torchrun; and the one exchange that has to come before
 * NCCL can talk: rank 0 hands its id to everybody over TCP. */
#include "rendezvous.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../fail.h"

enum { PATIENCE = 60, DEFAULT_PORT = 29500 };  // seconds

typedef struct Starter {
    const char *name, *rank, *ranks, *local;  // of variables
} Starter;

static const Starter starters[] = {
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
};

static const Starter *find_starter(void)
{
    for (size_t i = 0; i < sizeof starters / sizeof *starters; i++)
        if (getenv(starters[i].rank) && getenv(starters[i].ranks))
            return &starters[i];
    return NULL;
}

int rendezvous_is_started(int rank, int ranks)
{
    const Starter *starter = find_starter();
    if (!starter)
        return 0;
    int own = atoi(getenv(starter->rank)), all = atoi(getenv(starter->ranks));
    if (own != rank || all != ranks)
        pp_fail("%s started this as rank %d of %d, but the program is rank %d "
                "of %d",
                starter->name, own, all, rank, ranks);
    return 1;
}

int rendezvous_local_rank(void)
{
    const Starter *starter = find_starter();
    const char *local = starter ? getenv(starter->local) : NULL;
    return local ? atoi(local) : 0;
}

static const char *master(void)
{
    const char *address = getenv("MASTER_ADDR");
    if (!address)
        address = getenv("SLURM_LAUNCH_NODE_IPADDR");
    if (!address)
        pp_fail("MASTER_ADDR is not set: name the machine of rank 0");
    return address;
}

static struct addrinfo *find_address(int passive)
{
    char port[16];
    const char *given = getenv("MASTER_PORT");
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM,
                             .ai_flags = passive ? AI_PASSIVE : 0},
                    *found;
    snprintf(port, sizeof port, "%d", given ? atoi(given) : DEFAULT_PORT);
    int status = getaddrinfo(passive ? NULL : master(), port, &hints, &found);
    if (status != 0)
        pp_fail("the machine of rank 0, %s, is not found: %s",
                passive ? "this one" : master(), gai_strerror(status));
    return found;
}

static void send_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t sent = send(fd, bytes, count, MSG_NOSIGNAL);
        if (sent <= 0)
            pp_fail("a rank left while the job was starting: %s",
                    strerror(errno));
        bytes += sent;
        count -= (size_t)sent;
    }
}

static void serve(const char *bytes, size_t count, int others)
{
    struct addrinfo *at = find_address(1);
    int listener = socket(at->ai_family, at->ai_socktype, at->ai_protocol);
    int yes = 1;
    struct timeval limit = {PATIENCE, 0};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    setsockopt(listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (listener < 0 || bind(listener, at->ai_addr, at->ai_addrlen) != 0 ||
        listen(listener, others) != 0)
        pp_fail("rank 0 cannot listen on MASTER_PORT: %s", strerror(errno));
    for (int i = 0; i < others; i++) {
        int fd = accept(listener, NULL, NULL);
        if (fd < 0)
            pp_fail("%d of %d ranks did not come within %d s", others - i,
                    others, PATIENCE);
        send_all(fd, bytes, count);
        close(fd);
    }
    close(listener);
    freeaddrinfo(at);
}

static int reach_master(void)
{
    struct addrinfo *at = find_address(0);
    for (int tries = 0; tries < 10 * PATIENCE; tries++) {
        for (struct addrinfo *a = at; a; a = a->ai_next) {
            int fd = socket(a->ai_family, a->ai_socktype, a->ai_protocol);
            if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
                freeaddrinfo(at);
                return fd;
            }
            if (fd >= 0)
                close(fd);
        }
        nanosleep(&(struct timespec){0, 100000000}, NULL);
    }
    pp_fail("rank 0 at %s was not reached within %d s", master(), PATIENCE);
}

void rendezvous_share(void *bytes, size_t count, int rank, int ranks)
{
    if (rank == 0) {
        serve(bytes, count, ranks - 1);
        return;
    }
    int fd = reach_master();
    for (size_t got = 0; got < count;) {
        ssize_t n = recv(fd, (char *)bytes + got, count - got, 0);
        if (n <= 0)
            pp_fail("rank 0 left while the job was starting");
        got += (size_t)n;
    }
    close(fd);
}
