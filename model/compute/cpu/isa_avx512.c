// x86-64 with AVX-512 F, BW, DQ and VL (Skylake server, Zen 4 and later).
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512")
#include "kernels.h"

#define DDP_TABLE ddp_avx512
#define DDP_WIDTH 64
#define MR 8
#define NV 3

#include "isa.h"
#else
typedef int ddp_no_avx512;
#endif
