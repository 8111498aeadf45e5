// Hammers a pool of threads, for the sanitizers to watch: many short operations,
// pools that are opened and closed at once, and threads that cannot be started.
// Linked with --wrap=pthread_create. Argument: threads.
#include "pool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

// Threads that may still be started; beyond, the system has no more.
static int startable = 1 << 20;

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *attr, void *(*run)(void *), void *arg) {
  return startable-- > 0 ? __real_pthread_create(t, attr, run, arg) : EAGAIN;
}

enum { TASKS = 1000 };

// Plain counters: the pool alone orders what touches them.
typedef struct {
  int threads, runs[TASKS];
  long of_thread[64];
} counts;

static void fail(const char *what, int got, int want) {
  fprintf(stderr, "%s: %d, want %d\n", what, got, want);
  exit(1);
}

static void count(void *arg, int i, int thread) {
  counts *c = arg;
  if (thread < 0 || thread >= c->threads) fail("number of a thread", thread, c->threads - 1);
  c->runs[i]++;
  c->of_thread[thread]++;
}

// operation wants every task run once, and all of them finished.
static void operation(ddp_pool *p, counts *c, int n) {
  ddp_parallel(p, n, count, c);
  long all = 0;
  for (int i = 0; i < n; i++) {
    if (c->runs[i] != 1) fail("runs of a task", c->runs[i], 1);
    c->runs[i] = 0;
  }
  for (int i = 0; i < c->threads; i++) all += c->of_thread[i], c->of_thread[i] = 0;
  if (all != n) fail("tasks", (int)all, n);
}

static ddp_pool *started(int threads) {
  ddp_pool *p = ddp_pool_new(threads);
  if (!p) fail("threads of a new pool", 0, threads);
  return p;
}

int main(int argc, char **argv) {
  counts c = {.threads = argc > 1 ? atoi(argv[1]) : 3};
  ddp_pool *p = started(c.threads);
  for (int n = 0; n <= TASKS; n++) operation(p, &c, n);
  for (int round = 0; round < 20000; round++) operation(p, &c, round % 7);
  ddp_pool_free(p);
  for (int round = 0; round < 200; round++) {
    p = started(c.threads);
    if (round % 2) operation(p, &c, round);
    ddp_pool_free(p);
  }
  for (int some = 0; some < c.threads - 1; some++) {
    startable = some;
    if (ddp_pool_new(c.threads)) fail("threads of a pool that cannot have them", some, c.threads - 1);
  }
  return 0;
}
