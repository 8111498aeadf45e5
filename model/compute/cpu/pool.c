#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

// How often a waiting thread looks before it parks: some tens of microseconds,
// the usual gap between two operations of a step.
enum { SPINS = 20000 };

struct ddp_pool {
  int threads;
  pthread_t *workers;
  pthread_mutex_t lock;
  pthread_cond_t wake; // a new round, or the end
  pthread_cond_t idle; // the last worker has left a round
  atomic_uint round;   // counts operations; workers wait for it to change
  atomic_int next;     // task to be taken
  atomic_int busy;     // workers inside the current round
  int n;
  ddp_task task;
  void *arg;
  int closing;
};

struct start {
  ddp_pool *pool;
  int thread;
};

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

static void take(ddp_pool *p, int thread) {
  for (;;) {
    int i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
    if (i >= p->n) return;
    p->task(p->arg, i, thread);
  }
}

// await returns when the round is no longer seen.
static void await_round(ddp_pool *p, unsigned seen) {
  for (int i = 0; i < SPINS; i++) {
    if (atomic_load_explicit(&p->round, memory_order_acquire) != seen) return;
    relax();
  }
  pthread_mutex_lock(&p->lock);
  while (atomic_load_explicit(&p->round, memory_order_acquire) == seen) pthread_cond_wait(&p->wake, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

static void *work(void *arg) {
  struct start s = *(struct start *)arg;
  free(arg);
  ddp_pool *p = s.pool;
  unsigned seen = 0;
  for (;;) {
    await_round(p, seen);
    seen++;
    if (p->closing) return NULL;
    take(p, s.thread);
    if (atomic_fetch_sub_explicit(&p->busy, 1, memory_order_acq_rel) == 1) {
      pthread_mutex_lock(&p->lock);
      pthread_cond_signal(&p->idle);
      pthread_mutex_unlock(&p->lock);
    }
  }
}

// announce begins a round that every worker takes part in.
static void announce(ddp_pool *p) {
  pthread_mutex_lock(&p->lock);
  atomic_fetch_add_explicit(&p->round, 1, memory_order_release);
  pthread_cond_broadcast(&p->wake);
  pthread_mutex_unlock(&p->lock);
}

ddp_pool *ddp_pool_new(int threads) {
  ddp_pool *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->threads = 1;
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->wake, NULL);
  pthread_cond_init(&p->idle, NULL);
  p->workers = calloc((size_t)threads, sizeof *p->workers);
  while (p->workers && p->threads < threads) {
    struct start *s = malloc(sizeof *s);
    if (!s) break;
    *s = (struct start){p, p->threads};
    if (pthread_create(&p->workers[p->threads - 1], NULL, work, s)) {
      free(s);
      break;
    }
    p->threads++;
  }
  if (p->threads < threads) {
    ddp_pool_free(p);
    return NULL;
  }
  return p;
}

int ddp_pool_threads(const ddp_pool *p) { return p->threads; }

void ddp_parallel(ddp_pool *p, int n, ddp_task task, void *arg) {
  if (p->threads == 1 || n == 1) {
    for (int i = 0; i < n; i++) task(arg, i, 0);
    return;
  }
  p->n = n, p->task = task, p->arg = arg;
  atomic_store_explicit(&p->next, 0, memory_order_relaxed);
  atomic_store_explicit(&p->busy, p->threads - 1, memory_order_relaxed);
  announce(p);
  take(p, 0);
  for (int i = 0; i < SPINS; i++) {
    if (!atomic_load_explicit(&p->busy, memory_order_acquire)) return;
    relax();
  }
  pthread_mutex_lock(&p->lock);
  while (atomic_load_explicit(&p->busy, memory_order_acquire)) pthread_cond_wait(&p->idle, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

void ddp_pool_free(ddp_pool *p) {
  p->closing = 1;
  announce(p);
  for (int i = 0; i < p->threads - 1; i++) pthread_join(p->workers[i], NULL);
  pthread_mutex_destroy(&p->lock);
  pthread_cond_destroy(&p->wake);
  pthread_cond_destroy(&p->idle);
  free(p->workers);
  free(p);
}
