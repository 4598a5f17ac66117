/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of first values, read when a variable takes them: a process that
 * has no use for a variable never asks for them. */
#include "runtime/graph/load/weight.h"

#include <string.h>

#include "runtime/graph/mesh/mesh_var.h"
#include "runtime/io/array/safetensors.h"

weir_status weir_graph_weight_copy(const weir_graph_weight *w, void *dst,
                                   weir_error *err) {
  weir_tensor *t = w->tensor;
  if (w->file != NULL) WEIR_TRY(weir_safetensors_need(w->file, t, err));
  if (w->shard != NULL)
    weir_mesh_shard_copy(w->shard, t->data, dst, false);
  else if (t->bytes > 0)
    memcpy(dst, (const char *)t->data + w->from,
           w->bytes > 0 ? w->bytes : t->bytes);
  return WEIR_OK;
}
