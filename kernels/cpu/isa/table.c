/* SPDX-License-Identifier: Apache-2.0 */
/* The table of tables of one instruction set: this file, too, is compiled once
 * for each of them, and choose.c picks among the results. */
#include "kernels/cpu/attention/block.h"
#include "kernels/cpu/conv/blocked/tile.h"
#include "kernels/cpu/isa/apply.h"
#include "kernels/cpu/isa/cells.h"
#include "kernels/cpu/isa/columns.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/isa/conv_grad.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/loss.h"
#include "kernels/cpu/isa/random.h"
#include "kernels/cpu/isa/vec.h"
#include "kernels/cpu/peak/peak.h"

#define TEXT2(x) #x
#define TEXT(x) TEXT2(x)

extern const weir_tile_entry ISA(tiles_f32)[], ISA(tiles_other)[];
extern const weir_conv_table ISA(conv);
extern const weir_conv_grad_table ISA(conv_grad);
extern const weir_pool_grad_table ISA(pool_grad);
extern const weir_rows ISA(rows);
extern const weir_cell_table ISA(cells);
extern const weir_random_table ISA(random);
extern const weir_gemm_table ISA(gemm_f32), ISA(gemm_f64);
extern const weir_apply_table ISA(apply);
extern const weir_loss_table ISA(loss);
extern const weir_column_table ISA(columns);
extern const weir_peak_table ISA(peak);
extern const weir_attention_table ISA(attention);
extern const weir_conv_tile_table ISA(conv_tiles);
extern const weir_isa ISA(isa);

const weir_isa ISA(isa) = {.name = TEXT(WEIR_ISA_NAME),
                           .lanes = LANES,
                           .f32 = ISA(tiles_f32),
                           .other = ISA(tiles_other),
                           .rows = &ISA(rows),
                           .conv = &ISA(conv),
                           .conv_grad = &ISA(conv_grad),
                           .pool_grad = &ISA(pool_grad),
                           .cells = &ISA(cells),
                           .random = &ISA(random),
                           .gemm_f32 = &ISA(gemm_f32),
                           .gemm_f64 = &ISA(gemm_f64),
                           .apply = &ISA(apply),
                           .loss = &ISA(loss),
                           .columns = &ISA(columns),
                           .peak = &ISA(peak),
                           .attention = &ISA(attention),
                           .conv_tiles = &ISA(conv_tiles)};
