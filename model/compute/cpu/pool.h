// A pool of threads that share out the tasks of one operation at a time.
#ifndef DDP_POOL_H
#define DDP_POOL_H

typedef struct ddp_pool ddp_pool;

// ddp_task computes task i of n; thread is the number of the thread that runs
// it, 0 to threads-1, for scratch memory.
typedef void (*ddp_task)(void *arg, int i, int thread);

// ddp_pool_new starts threads-1 threads; the caller is the remaining one.
// NULL when a thread cannot be started.
ddp_pool *ddp_pool_new(int threads);

// ddp_parallel runs task 0 to n-1 and returns when all have finished. Which
// thread runs which task is not determined, so tasks must not depend on it.
void ddp_parallel(ddp_pool *p, int n, ddp_task task, void *arg);

// ddp_pool_free ends the threads and waits for them.
void ddp_pool_free(ddp_pool *p);

#endif
