// Any CPU: 16-byte vectors, which every 64-bit machine has (SSE2, NEON).
#include "kernels.h"

#define DDP_TABLE ddp_generic
#define DDP_WIDTH 16
#define MR 4
#define NV 2

#include "isa.h"
