/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_outputs.h"

#include <assert.h>

#include "runtime/exec/compile/compile_gpu.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_parts.h"
#include "runtime/exec/program/instr_control.h"

/* The outputs of a program: fetches, and variables' new values.
 *
 * A planned value becomes the external itself, so that its kernel writes into
 * the caller's tensor or the variable's next buffer. A copy is made only where
 * that cannot be: of constants, of inputs, and of a value that is an output
 * already. */

/* Whether outputs are written by the instructions that make them: those of a
 * GPU's part are copied from there, but for a body's, which lie there too. */
static bool are_direct(const weir_compiler *c) {
  return c->partition == NULL || weir_device_kinds[c->kind]->host;
}

/* Whether |value|'s memory can be that of an output itself. A view of a larger
 * value cannot: its root would be written past the output's end. */
static bool may_be_external(const weir_compiler *c, uint32_t value) {
  const weir_pvalue *items = c->builder->values.items;
  const weir_pvalue *root = &items[items[value].root];
  return root->storage == WEIR_STORAGE_TEMP &&
         root->bytes == items[value].bytes;
}

/* An output on its way to external |external|. |stays|: in the memory of the
 * part's device, whatever that is. */
typedef struct output {
  weir_value_id id;
  uint32_t external;
  weir_instr_kind kind;
  bool stays;
} output;

/* Copies |*value| to the external. A GPU's copy may fail where its input did
 * not: |*value| is then the copy. */
static weir_status copy_out(weir_compiler *c, uint32_t *value, output o,
                            weir_error *err) {
  const weir_pvalue v = c->builder->values.items[*value];
  const weir_node *node = &c->graph->nodes[c->graph->values[o.id].node];
  weir_value_spec to = {.storage = WEIR_STORAGE_EXTERNAL,
                        .external = o.external,
                        .bytes = v.bytes,
                        .dtype = v.dtype,
                        .rank = v.rank,
                        .dims = v.dims};
  weir_instr_spec spec = {.node_order = c->graph->values[o.id].node,
                          .node = node->name,
                          .mark = node->mark,
                          .op = node->op->name,
                          .kernel = "copy"};
  if (!weir_device_kinds[c->kind]->host)
    return weir_compile_gpu_out(c, value, o.external, o.kind, o.stays, &spec,
                                err);
  uint32_t out = weir_program_add_value(c->builder, &to);
  spec.in = value;
  spec.out = &out;
  spec.in_count = spec.out_count = 1;
  WEIR_TRY(weir_instr_copy(c->builder, o.kind, v.bytes, &spec));
  if (weir_program_add_instr(c->builder, &spec) == WEIR_NO_INDEX)
    return weir_fail_memory(err, 0);
  return WEIR_OK;
}

/* Fetch |k| is |value| of the part being written. */
static void add_fetch(weir_compiler *c, uint32_t value) {
  weir_program_add_fetch(c->builder, value);
  for (uint32_t p = 0; c->partition != NULL && p < c->partition->part_count;
       p++)
    if (p != c->part)
      weir_program_add_fetch(c->parts[p].builder, WEIR_NO_INDEX);
}

/* Gives |*value| the output's memory, or copies it there. */
static weir_status put_out(weir_compiler *c, uint32_t *value, output o,
                           weir_error *err) {
  if (!o.stays || !may_be_external(c, *value))
    return copy_out(c, value, o, err);
  weir_program_set_external(c->builder, *value, o.external);
  return WEIR_OK;
}

static weir_status put_fetch(weir_compiler *c, uint32_t k, weir_error *err) {
  const weir_compile_request *r = c->request;
  uint32_t value = c->values[c->fetches[k]];
  const output o = {c->fetches[k], r->feed_count + k, WEIR_INSTR_FETCH,
                    are_direct(c) || (r->stays != NULL && r->stays[k])};
  if (c->elsewhere)
    value = WEIR_NO_INDEX;
  else
    WEIR_TRY(put_out(c, &value, o, err));
  add_fetch(c, value);
  return WEIR_OK;
}

weir_status weir_compile_outputs(weir_compiler *c, weir_error *err) {
  for (uint32_t k = 0; k < c->request->fetch_count; k++) {
    if (c->partition != NULL) weir_compile_enter(c, c->home[c->fetches[k]]);
    assert(c->tasks == NULL || weir_task_of_part(c->tasks, c->part) ==
                                   weir_task_of_value(c->tasks, c->fetches[k]));
    WEIR_TRY(put_fetch(c, k, err));
  }
  for (weir_node_id id = 0; id < c->graph->node_count; id++) {
    const weir_node *node = &c->graph->nodes[id];
    if (node->op->instr != WEIR_INSTR_VAR_COMMIT || !c->needed[id]) continue;
    if (c->partition != NULL) weir_compile_enter(c, c->partition->part_of[id]);
    if (c->elsewhere) continue;
    weir_node_id owner = c->graph->values[node->inputs[0]].node;
    weir_var_use *use = &c->vars[c->var_of[owner] - 1];
    const output o = {node->first_output, use->write, WEIR_INSTR_VAR_COMMIT,
                      true};
    WEIR_TRY(put_out(c, &use->commit, o, err));
  }
  return WEIR_OK;
}
