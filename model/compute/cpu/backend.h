// What the files of the operations share.
#ifndef DDP_BACKEND_H
#define DDP_BACKEND_H

#include "ops.h"

struct ddp_backend {
  const ddp_kernels *k;
  ddp_pool *pool;
  int threads;
  float *shared; // scratch of all threads: the packed b of a product, partial sums
  int64_t shared_len;
  float *own; // scratch of each thread: own + thread * own_len
  int64_t own_len;
};

// ddp_scratch sees to it that shared and each thread's own scratch are large
// enough. They only grow, so that a step allocates nothing after the first.
int ddp_scratch(ddp_backend *b, int64_t shared, int64_t own);

static inline int64_t ddp_min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t ddp_up(int64_t n, int64_t to) { return (n + to - 1) / to; }

#endif
