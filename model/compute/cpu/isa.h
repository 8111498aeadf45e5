// The template of one instruction set: isa_*.c choose the target, define
// DDP_TABLE, DDP_WIDTH, MR and NV (vectors of a panel's width), and include this.

#include "vec.h"
#include "vecmath.h"
#include "dropout.h"

#define NR (NV * VL)

#include "kernels_pack.h"
#include "kernels_product.h"
#include "kernels_norm.h"
#include "kernels_rows.h"
#include "kernels_loss.h"
#include "kernels_tiles.h"
#include "kernels_attention.h"
#include "kernels_attention_grad.h"
#include "kernels_flat.h"

const ddp_kernels DDP_TABLE = {
    .vl = VL,
    .mr = MR,
    .nr = NR,
    .pack_a = pack_a,
    .pack_b = pack_b,
    .panel = panel,
    .column_sums = column_sums,
    .layernorm = layernorm,
    .layernorm_grad = layernorm_grad,
    .drop_rows = drop_rows,
    .embed = embed,
    .embed_grad = embed_grad,
    .attention = attention,
    .attention_grad = attention_grad,
    .attention_scratch = attention_scratch,
    .cross_entropy = cross_entropy,
    .adamw = adamw,
    .sum_squares = sum_squares,
    .add = add,
    .peak = peak,
};
