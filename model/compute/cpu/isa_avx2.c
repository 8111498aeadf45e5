// x86-64 with AVX2 and FMA (Haswell, Zen and later).
#if defined(__x86_64__)
#pragma GCC target("avx2,fma")
#include "kernels.h"

#define DDP_TABLE ddp_avx2
#define DDP_WIDTH 32
#define MR 6
#define NV 2

#include "isa.h"
#else
typedef int ddp_no_avx2;
#endif
