/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_PS_SERVER_ROWS_H_
#define WEIR_TRAIN_PS_SERVER_ROWS_H_

#include "runtime/graph/split/split.h"
#include "runtime/train/ps/server_generation.h"

/* Variables of a generation, by rows: whatever pieces it was saved in, and
 * whatever piece is wanted. */

/* The |rows| of variable |name|, or all of it, from the parts that have it;
 * their bytes are checked. Errors: W4045, W5022 (no part has it, or some of its
 * rows, or it has other rows), W6001, W6003. */
weir_status weir_ps_saved_read(const weir_ps_saved *saved, weir_sv name,
                               const weir_split_rows *rows,
                               weir_tensor **out_tensor, weir_error *err);

#endif
