#include "pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

// How long a waiting thread looks before it parks: more than the usual gap
// between two operations of a step, less than a time slice.
enum { SPIN_NS = 50000, LOOKS = 32 /* between two looks at the clock */ };

// The state of a pool in one word: the round, which counts operations; whether
// it may still be entered; how many workers are inside.
#define ROUND(state) ((unsigned)((state) >> 32))
#define INSIDE(state) ((state) & 0xFFFF)
#define OPEN (1ull << 16)

struct ddp_pool {
  int threads;
  pthread_t *workers;
  pthread_mutex_t lock;
  pthread_cond_t wake; // a new round, or the end
  pthread_cond_t idle; // the last worker has left a closed round
  atomic_ullong state;
  atomic_int next; // task to be taken
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

static unsigned long long look(ddp_pool *p) { return atomic_load_explicit(&p->state, memory_order_acquire); }

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static int another_round(unsigned long long state, unsigned seen) { return ROUND(state) != seen; }
static int nobody_inside(unsigned long long state, unsigned unused) { return (void)unused, !INSIDE(state); }

// await returns when the state passes: it spins, then parks on signal.
static void await(ddp_pool *p, int (*passes)(unsigned long long, unsigned), unsigned seen, pthread_cond_t *signal) {
  for (int64_t end = now() + SPIN_NS; now() < end;)
    for (int i = 0; i < LOOKS; i++) {
      if (passes(look(p), seen)) return;
      relax();
    }
  pthread_mutex_lock(&p->lock);
  while (!passes(look(p), seen)) pthread_cond_wait(signal, &p->lock);
  pthread_mutex_unlock(&p->lock);
}

// enter reports whether the round is still open, and counts the caller in.
static int enter(ddp_pool *p, unsigned round) {
  unsigned long long state = look(p);
  while (ROUND(state) == round && state & OPEN)
    if (atomic_compare_exchange_weak_explicit(&p->state, &state, state + 1, memory_order_acq_rel, memory_order_acquire)) return 1;
  return 0;
}

static void leave(ddp_pool *p) {
  unsigned long long left = atomic_fetch_sub_explicit(&p->state, 1, memory_order_acq_rel) - 1;
  if (INSIDE(left) || left & OPEN) return;
  pthread_mutex_lock(&p->lock);
  pthread_cond_signal(&p->idle);
  pthread_mutex_unlock(&p->lock);
}

static void take(ddp_pool *p, int thread) {
  for (;;) {
    int i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
    if (i >= p->n) return;
    p->task(p->arg, i, thread);
  }
}

static void *work(void *arg) {
  struct start s = *(struct start *)arg;
  free(arg);
  ddp_pool *p = s.pool;
  for (unsigned seen = 0;;) {
    await(p, another_round, seen, &p->wake);
    seen = ROUND(look(p));
    if (!enter(p, seen)) continue; // came too late: the others have done it all
    if (p->closing) return NULL;   // counted inside for good
    take(p, s.thread);
    leave(p);
  }
}

// announce opens the next round.
static void announce(ddp_pool *p) {
  pthread_mutex_lock(&p->lock);
  unsigned long long round = ROUND(look(p)) + 1u;
  atomic_store_explicit(&p->state, round << 32 | OPEN, memory_order_release);
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

void ddp_parallel(ddp_pool *p, int n, ddp_task task, void *arg) {
  if (p->threads == 1 || n == 1) {
    for (int i = 0; i < n; i++) task(arg, i, 0);
    return;
  }
  p->n = n, p->task = task, p->arg = arg;
  atomic_store_explicit(&p->next, 0, memory_order_relaxed);
  announce(p);
  take(p, 0);
  // Who has not come by now is not waited for.
  unsigned long long state = atomic_fetch_and_explicit(&p->state, ~OPEN, memory_order_acq_rel);
  if (INSIDE(state)) await(p, nobody_inside, 0, &p->idle);
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
