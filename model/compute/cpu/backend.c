#include "backend.h"

#include <stdlib.h>
#include <sys/mman.h>

// Values from which on an allocation asks for huge pages: 2 MiB.
enum { HUGE_LEN = 1 << 19 };

float *ddp_alloc(int64_t n) {
  if (n <= 0) n = 1;
  void *p = mmap(NULL, (size_t)n * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  if (n >= HUGE_LEN) madvise(p, (size_t)n * 4, MADV_HUGEPAGE); // only a wish
  return p;
}

void ddp_free(float *p, int64_t n) {
  if (p) munmap(p, (size_t)(n > 0 ? n : 1) * 4);
}

ddp_backend *ddp_open(const ddp_kernels *k, int threads) {
  ddp_backend *b = calloc(1, sizeof *b);
  if (!b) return NULL;
  b->k = k, b->threads = threads;
  b->pool = ddp_pool_new(threads);
  if (b->pool) return b;
  ddp_close(b);
  return NULL;
}

void ddp_close(ddp_backend *b) {
  if (b->pool) ddp_pool_free(b->pool);
  ddp_free(b->shared, b->shared_len);
  ddp_free(b->own, b->own_len * b->threads);
  free(b);
}

// grow replaces p by at least want zeroed values; on failure p stays.
static int grow(float **p, int64_t have, int64_t want) {
  if (want <= have) return 0;
  float *larger = ddp_alloc(want);
  if (!larger) return -1;
  ddp_free(*p, have);
  *p = larger;
  return 0;
}

int ddp_scratch(ddp_backend *b, int64_t shared, int64_t own) {
  if (grow(&b->shared, b->shared_len, shared)) return -1;
  if (shared > b->shared_len) b->shared_len = shared;
  own = ddp_up(own, 16) * 16; // a cache line is one thread's
  if (grow(&b->own, b->own_len * b->threads, own * b->threads)) return -1;
  if (own > b->own_len) b->own_len = own;
  return 0;
}
