/* rendezvous.h: ranks that no pprun started find each other. */
#ifndef PP_RENDEZVOUS_H
#define PP_RENDEZVOUS_H

#include <stddef.h>

/* 1 when Open MPI, Slurm or torchrun has started this process; checks that it
 * did so with the rank and the number of ranks of the program. */
int rendezvous_is_started(int rank, int ranks);
int rendezvous_local_rank(void);        // among the processes of this machine
/* Rank 0's bytes to all, over TCP: MASTER_ADDR and MASTER_PORT, or Slurm's. */
void rendezvous_share(void *bytes, size_t count, int rank, int ranks);

#endif
