/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_emit.h"

#include <assert.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/compile/compile_internal.h"
#include "runtime/exec/compile/compile_layout.h"
#include "runtime/exec/compile/compile_share.h"

/* From a chosen kernel to an instruction, or to its result.
 *
 * Folding: a kernel whose inputs are all frozen (their bytes are known) runs
 * now, once, and its outputs are frozen in turn, so whole constant subgraphs
 * vanish in one walk. The bytes are those that the run would give: the kernel
 * is the same. It is serial: folded work is small or was paid for by inputs of
 * its size. */

weir_status weir_compile_value(weir_compiler *c, weir_value_id id,
                               weir_value_spec *spec, weir_error *err) {
  const weir_value *v = &c->graph->values[id];
  int64_t dims[WEIR_MAX_RANK] = {0};
  if (!weir_shape_known(v->shape)) {
    const weir_node *node = &c->graph->nodes[v->node];
    char type[128];
    weir_status s = weir_fail(
        err, WEIR_W2008, &node->mark, "%s is not known before the run",
        weir_graph_type_text(c->graph, id, type, sizeof type));
    weir_error_set_node(err, node->name.data, node->name.size);
    return s;
  }
  for (int32_t d = 0; d < v->shape->rank; d++)
    dims[d] = v->shape->dims[d].value;
  spec->dtype = v->dtype;
  spec->bytes = weir_compile_bytes(c, id);
  spec->layout = (weir_layout)c->layouts[id];
  spec->rank = v->shape->rank;
  spec->dims = dims;
  c->values[id] = weir_program_add_value(c->builder, spec);
  if (c->values[id] == WEIR_NO_INDEX) return weir_fail_memory(err, 0);
  if (c->home[id] != WEIR_NO_INDEX) return WEIR_OK;
  c->home[id] = c->part;
  if (c->made != NULL) c->made[id] = c->values[id];
  return WEIR_OK;
}

/* The estimated time of one call. */
static int64_t call_cost(const weir_compiler *c, const weir_call *call,
                         weir_cost *cost) {
  *cost = (weir_cost){0, 0, 0};
  if (call->op->cost != NULL) {
    call->op->cost(call, cost);
  } else {
    for (uint32_t i = 0; i < call->in_count + call->out_count; i++)
      cost->bytes +=
          call->in[i].elements * (int64_t)weir_dtype_size(call->in[i].dtype);
  }
  /* 5 ns: the executor's own overhead, on every device. */
  return 5 + cost->hold_ns +
         weir_device_work_ns(&weir_device_kinds[c->kind]->model, cost->flops,
                             cost->bytes);
}

typedef struct emit_cost {
  int64_t ns, flops, bytes, hold_ns;
} emit_cost;

static emit_cost total_cost(const weir_compiler *c, const weir_emit *e) {
  emit_cost total = {0};
  for (uint32_t i = 0; i < e->call_count; i++) {
    weir_cost cost;
    weir_sum_add(&total.ns, call_cost(c, &e->calls[i], &cost));
    weir_sum_add(&total.flops, cost.flops);
    weir_sum_add(&total.bytes, cost.bytes);
    weir_sum_add(&total.hold_ns, cost.hold_ns);
  }
  return total;
}

const uint64_t weir_compile_no_bytes[8];

/* ---- Folding */

static size_t out_bytes(const weir_compiler *c, const weir_emit *e) {
  size_t total = 0;
  for (uint32_t i = 0; i < e->out_count; i++)
    if (e->out[i] != WEIR_NO_VALUE)
      total += weir_scratch_align(weir_compile_bytes(c, e->out[i]));
  return total;
}

/* Whether the outputs can be computed now: inputs are constants, no op differs
 * from run to run, and the outputs are not much larger than the inputs. Without
 * the last bound, a scalar that is broadcast to a gigabyte would be stored in
 * the program; as an instruction its memory is shared with other values. All
 * of them together have a bound too: a short file can ask for any number. */
enum { MOST_FOLDED_BYTES = 1 << 28 };

static bool can_fold(const weir_compiler *c, const weir_emit *e,
                     const emit_cost *cost) {
  size_t in_bytes = 0;
  if (cost->hold_ns > 0 || e->call_count == 0) return false;
  for (uint32_t i = 0; i < e->call_count; i++)
    if (e->calls[i].op->flags & (WEIR_OP_RANDOM | WEIR_OP_EFFECT)) return false;
  for (uint32_t i = 0; i < e->in_count; i++) {
    if (e->in[i] == WEIR_NO_VALUE) continue;
    if (!c->frozen[e->in[i]]) return false;
    const weir_value *v = &c->graph->values[e->in[i]];
    in_bytes += weir_shape_bytes(v->shape, v->dtype);
  }
  size_t bytes = out_bytes(c, e), done = c->builder->program->constant_bytes;
  if (done > MOST_FOLDED_BYTES || bytes > MOST_FOLDED_BYTES - done)
    return false;
  return bytes <= ((size_t)1 << 20) + 4 * in_bytes;
}

static void no_hold(void *self, int64_t ns, bool spin) {
  (void)self;
  (void)ns;
  (void)spin;
}

static bool is_over(void *self) {
  const weir_compiler *c = self;
  return weir_alloc_over(c->env->alloc);
}

/* All blocks, unless the time is over: the bytes are then used by nobody. */
static void timed_for(void *self, int64_t blocks, weir_block_fn fn, void *arg) {
  for (int64_t b = 0; b < blocks && !is_over(self); b++) fn(arg, b, 0);
}

static weir_status report_run(const weir_args *args) {
  const weir_error *why = args->state;
  weir_error_copy(args->err, why);
  return why->code;
}

/* In a GPU's part the host's kernel is no instruction: one that fails in its
 * words stands there. */
static weir_status report(weir_compiler *c, weir_emit *e, const weir_error *why,
                          weir_error *err) {
  weir_error *kept = weir_arena_array(c->arena, 1, sizeof *kept);
  if (kept == NULL) return weir_fail_memory(err, sizeof *kept);
  *kept = *why;
  if (e->release != NULL) e->release(e->prepared.state);
  e->release = NULL;
  e->prepared = (weir_prepared){.state = kept};
  e->run = report_run;
  e->fault = NULL;
  return WEIR_OK;
}

/* Computes the outputs into the arena. |*folded| is false when the kernel
 * failed on the data: then it becomes an instruction, and runs report the
 * failure of this node only. */
static weir_status fold(weir_compiler *c, weir_emit *e, bool *folded,
                        weir_error *err) {
  weir_run_ctx ctx = {.self = c,
                      .parallel_for = timed_for,
                      .workers = 1,
                      .hold = no_hold,
                      .over = is_over};
  weir_error ignored = WEIR_ERROR_INIT;
  uint32_t n = e->in_count + e->out_count;
  size_t scratch_bytes = weir_scratch_align(e->prepared.scratch_bytes) +
                         weir_scratch_align(e->prepared.worker_scratch_bytes);
  void **io = weir_arena_array(c->arena, n, sizeof *io);
  char *data = weir_arena_alloc(c->arena, out_bytes(c, e) + 64);
  void *scratch = weir_alloc_aligned(c->env->alloc, scratch_bytes, 64);
  *folded = false;
  if (io == NULL || data == NULL || scratch == NULL) {
    weir_free(c->env->alloc, scratch);
    return weir_fail_memory(err, out_bytes(c, e) + scratch_bytes);
  }
  data += (64 - (uintptr_t)data % 64) % 64; /* kernels may load aligned */
  const weir_pvalue *values = c->builder->values.items;
  for (uint32_t i = 0; i < e->in_count; i++)
    if (e->in[i] != WEIR_NO_VALUE)
      io[i] = (void *)values[values[c->values[e->in[i]]].root].data;
  for (uint32_t i = 0; i < e->out_count; i++) {
    if (e->out[i] == WEIR_NO_VALUE) continue;
    assert((uintptr_t)data % 64 == 0);
    io[e->in_count + i] = data;
    data += weir_scratch_align(weir_compile_bytes(c, e->out[i]));
  }
  weir_args args = {io, e->prepared.state, scratch, &ctx, &ignored};
  ignored.code = e->run(&args);
  *folded = ignored.code == WEIR_OK;
  weir_free(c->env->alloc, scratch);
  WEIR_TRY(weir_alloc_check(c->env->alloc, err));
  if (!*folded && !weir_device_kinds[c->kind]->host)
    return report(c, e, &ignored, err);
  for (uint32_t i = 0; *folded && i < e->out_count; i++) {
    if (e->out[i] == WEIR_NO_VALUE) continue;
    weir_value_spec spec = {.storage = WEIR_STORAGE_CONST,
                            .data = io[e->in_count + i]};
    WEIR_TRY(weir_compile_value(c, e->out[i], &spec, err));
    c->frozen[e->out[i]] = true;
    c->builder->program->constant_bytes += weir_scratch_align(spec.bytes);
  }
  return WEIR_OK;
}

/* ---- Instructions */

enum { FEW_OPERANDS = 24 };

/* The program's values and instructions that an instruction names: inputs,
 * outputs, predecessors. The builder copies them. */
typedef struct operand_row {
  uint32_t few[FEW_OPERANDS];
  uint32_t *in, *out, *after, after_count;
} operand_row;

static void program_values(const weir_compiler *c, const weir_value_id *ids,
                           uint32_t count, uint32_t *values) {
  for (uint32_t i = 0; i < count; i++)
    values[i] = ids[i] == WEIR_NO_VALUE ? WEIR_NO_INDEX : c->values[ids[i]];
}

static bool fill_row(weir_compiler *c, const weir_emit *e, operand_row *row) {
  const weir_node *node = e->node;
  size_t count = (size_t)e->in_count + e->out_count + node->after_count;
  row->in = count <= FEW_OPERANDS
                ? row->few
                : weir_arena_array(c->arena, count, sizeof *row->in);
  if (row->in == NULL) return false;
  row->out = row->in + e->in_count;
  row->after = row->out + e->out_count;
  row->after_count = 0;
  program_values(c, e->in, e->in_count, row->in);
  program_values(c, e->out, e->out_count, row->out);
  /* A predecessor that left no instruction, a constant, has ended already. */
  for (uint32_t i = 0; i < node->after_count; i++)
    if (c->instrs[node->after[i]] != WEIR_NO_INDEX)
      row->after[row->after_count++] = c->instrs[node->after[i]];
  return true;
}

static bool draws(const weir_emit *e) {
  for (uint32_t i = 0; i < e->call_count; i++)
    if ((e->calls[i].op->flags & WEIR_OP_RANDOM) != 0) return true;
  return false;
}

static weir_status add_instr(weir_compiler *c, weir_emit *e,
                             const emit_cost *cost, weir_error *err) {
  const weir_node *node = e->node;
  weir_status s = WEIR_OK;
  operand_row row;
  for (uint32_t i = 0; s == WEIR_OK && i < e->out_count; i++) {
    weir_value_spec spec = {.storage = WEIR_STORAGE_TEMP};
    if (e->out[i] == WEIR_NO_VALUE) continue;
    s = weir_compile_value(c, e->out[i], &spec, err);
  }
  if (s == WEIR_OK && !fill_row(c, e, &row)) s = weir_fail_memory(err, 0);
  if (s != WEIR_OK || c->elsewhere) {
    if (e->release != NULL) e->release(e->prepared.state);
    if (s == WEIR_OK) c->instrs[e->node_id] = 0;
    return s;
  }
  weir_instr_spec spec = {
      .kind = WEIR_INSTR_KERNEL,
      .in = row.in,
      .out = row.out,
      .in_count = e->in_count,
      .out_count = e->out_count,
      .after = row.after,
      .after_count = row.after_count,
      .run = e->run,
      .state = e->prepared.state,
      .release = e->release,
      .scratch_bytes = e->prepared.scratch_bytes,
      .worker_scratch_bytes = e->prepared.worker_scratch_bytes,
      .kept_bytes = e->prepared.kept_bytes,
      .in_place = e->in_place,
      .over_inputs = e->over_inputs,
      .cost_ns = cost->ns,
      .any_time = (node->op->flags & WEIR_OP_FOREIGN) != 0,
      .draws = draws(e),
      .flops = cost->flops,
      .bytes = cost->bytes,
      .node_order = e->node_id,
      .node = node->name,
      .mark = node->mark,
      .op = e->call_count > 1 ? "group" : node->op->name,
      .checks = e->fault != NULL && !e->prepared.unchecked,
      .fault = e->fault,
      .kernel = e->kernel,
      .algorithm = e->prepared.algorithm,
      .reason = e->reason};
  c->instrs[e->node_id] = weir_program_add_instr(c->builder, &spec);
  if (c->instrs[e->node_id] == WEIR_NO_INDEX) return weir_fail_memory(err, 0);
  return WEIR_OK;
}

/* The outputs as constants whose bytes nobody will look at. */
static weir_status pretend_to_fold(weir_compiler *c, const weir_emit *e,
                                   weir_error *err) {
  for (uint32_t i = 0; i < e->out_count; i++) {
    if (e->out[i] == WEIR_NO_VALUE) continue;
    weir_value_spec spec = {.storage = WEIR_STORAGE_CONST,
                            .data = weir_compile_no_bytes};
    WEIR_TRY(weir_compile_value(c, e->out[i], &spec, err));
    c->frozen[e->out[i]] = true;
    if (!c->sizes_only) /* the bound on all of them holds everywhere */
      c->builder->program->constant_bytes += weir_scratch_align(spec.bytes);
  }
  return WEIR_OK;
}

bool weir_compile_folds(const weir_compiler *c, const weir_emit *e) {
  emit_cost cost = total_cost(c, e);
  return can_fold(c, e, &cost);
}

bool weir_compile_prepares(const weir_compiler *c, const weir_emit *e) {
  if (!c->elsewhere) return true;
  emit_cost cost = total_cost(c, e);
  return weir_compile_needs_bytes(c, e) && can_fold(c, e, &cost);
}

weir_status weir_compile_emit(weir_compiler *c, weir_emit *e, weir_error *err) {
  emit_cost cost = total_cost(c, e);
  bool folded = false;
  if (can_fold(c, e, &cost)) {
    weir_status s = WEIR_OK;
    folded = c->sizes_only || !weir_compile_needs_bytes(c, e);
    if (folded)
      s = pretend_to_fold(c, e, err);
    else
      s = fold(c, e, &folded, err);
    if (folded || s != WEIR_OK) {
      if (e->release != NULL) e->release(e->prepared.state);
      return s;
    }
  }
  return add_instr(c, e, &cost, err);
}
