/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/compile/compile_gpu.h"

#include "runtime/base/size.h"
#include "runtime/exec/compile/compile_emit.h"
#include "runtime/exec/gpu/gpus.h"
#include "runtime/exec/program/instr_gpu.h"

/* A value of a GPU's part is in that GPU's memory, and goes from there to
 * another GPU of this process (gpu_peer.h). Other sends and receives, and
 * collectives, are the host's and work on staged values, which copies of the
 * part's queue fill or read; so edges between a GPU and a host, or another
 * process, are the edges that there are between hosts. */

weir_device_kind weir_compile_part_kind(const weir_compiler *c, uint32_t part) {
  if (c->partition == NULL) return c->kind; /* a body's too */
  if (part == WEIR_PLACE_NONE) return weir_device_kind_host();
  const weir_cluster *cluster = c->request->plan->placement->cluster;
  return cluster->devices[c->partition->parts[part].device].name.type;
}

/* The host is no GPU whatever its kind is called. A body is none: its inputs
 * and outputs are wherever the instruction around it has them. */
static bool is_gpu(const weir_compiler *c, uint32_t part) {
  return c->partition != NULL &&
         !weir_device_kinds[weir_compile_part_kind(c, part)]->host;
}

struct weir_exec_gpu *weir_compile_gpu(const weir_compiler *c) {
  return c->parts != NULL ? c->parts[c->part].gpu : c->gpu;
}

struct weir_device *weir_compile_device(const weir_compiler *c) {
  const weir_exec_gpu *gpu = weir_compile_gpu(c);
  return gpu != NULL ? gpu->gpu.device : NULL;
}

struct weir_tuning *weir_compile_tuning(const weir_compiler *c) {
  const weir_exec_gpu *gpu = weir_compile_gpu(c);
  return gpu != NULL ? gpu->tuning : NULL;
}

/* Whether |d| is GPU |index| of one of this process's tasks. */
static bool is_own_gpu(const weir_compiler *c, const weir_cluster_device *d,
                       int32_t index) {
  const bool *own = c->request->tasks;
  return d->name.type == WEIR_GPU && d->name.index.first == index &&
         (own == NULL || own[d->task]);
}

/* What GPU |index| may take: tasks of one process share it, and their limits
 * are one. 0: one of them has no limit. */
static size_t limit_of(const weir_compiler *c, int32_t index) {
  const weir_cluster *cluster = c->request->plan->placement->cluster;
  size_t limit = 0;
  for (uint32_t i = 0; i < cluster->device_count; i++) {
    const weir_cluster_device *d = &cluster->devices[i];
    if (!is_own_gpu(c, d, index)) continue;
    if (!d->memory_given ||
        !weir_size_add(limit, (size_t)d->memory_bytes, &limit))
      return 0;
  }
  return limit;
}

/* Whether one of this process's tasks has GPU |index| in turns. */
static bool is_in_turns(const weir_compiler *c, int32_t index) {
  const weir_cluster *cluster = c->request->plan->placement->cluster;
  for (uint32_t i = 0; i < cluster->device_count; i++) {
    const weir_cluster_device *d = &cluster->devices[i];
    if (d->in_turns && is_own_gpu(c, d, index)) return true;
  }
  return false;
}

weir_status weir_compile_gpus(weir_compiler *c, weir_error *err) {
  const weir_cluster *cluster = c->request->plan->placement->cluster;
  for (uint32_t p = 0; p < c->partition->part_count; p++) {
    const weir_cluster_device *d =
        &cluster->devices[c->partition->parts[p].device];
    if (!is_gpu(c, p) || (c->own != NULL && !c->own[p])) continue;
    int32_t index = d->name.index.first;
    weir_status s = weir_gpus_get(c->env->gpus, index, limit_of(c, index),
                                  &c->parts[p].gpu, err);
    if (s == WEIR_OK) {
      WEIR_TRY(
          weir_gpus_share(c->env->gpus, index, is_in_turns(c, index), err));
      continue;
    }
    weir_hint(err, "the plan puts nodes on %.*s", WEIR_SV(d->text));
    return s;
  }
  return WEIR_OK;
}

/* A value like |of|. */
static weir_status add_like(weir_program_builder *b, uint32_t of, bool staged,
                            bool all_run, uint32_t *out, weir_error *err) {
  const weir_pvalue v = b->values.items[of];
  const weir_value_spec spec = {.storage = WEIR_STORAGE_TEMP,
                                .bytes = v.bytes,
                                .dtype = v.dtype,
                                .layout = (weir_layout)v.layout,
                                .rank = v.rank,
                                .dims = v.dims,
                                .staged = staged,
                                .all_run = all_run};
  *out = weir_program_add_value(b, &spec);
  return *out == WEIR_NO_INDEX ? weir_fail_memory(err, 0) : WEIR_OK;
}

static weir_instr_spec copy_spec(const uint32_t *from, const uint32_t *to,
                                 const weir_instr_spec *as) {
  return (weir_instr_spec){.in = from,
                           .out = to,
                           .in_count = 1,
                           .out_count = 1,
                           .node_order = as->node_order,
                           .node = as->node,
                           .mark = as->mark,
                           .op = as->op,
                           .kernel = "copy"};
}

/* ---- Copies */

/* A copy that the host makes before or after the part's work. */
static weir_status add_host_copy(weir_program_builder *b, weir_instr_kind kind,
                                 weir_instr_when when, uint32_t from,
                                 uint32_t to, const weir_instr_spec *as,
                                 weir_error *err) {
  weir_instr_spec spec = copy_spec(&from, &to, as);
  size_t bytes = b->values.items[to].bytes;
  spec.when = (uint8_t)when;
  bool ok = weir_instr_host_copy(b, kind, bytes, &spec) == WEIR_OK &&
            weir_program_add_instr(b, &spec) != WEIR_NO_INDEX;
  return ok ? WEIR_OK : weir_fail_memory(err, bytes);
}

static weir_status add_copy(weir_program_builder *b, weir_instr_kind kind,
                            weir_gpu_way way, uint32_t from, uint32_t to,
                            const weir_instr_spec *as, weir_error *err) {
  weir_instr_spec spec = copy_spec(&from, &to, as);
  size_t bytes = b->values.items[to].bytes;
  bool ok = weir_instr_gpu_copy(b, kind, way, bytes, &spec) == WEIR_OK &&
            weir_program_add_instr(b, &spec) != WEIR_NO_INDEX;
  return ok ? WEIR_OK : weir_fail_memory(err, bytes);
}

/* ---- Feeds */

/* The instruction that brings a feed in, so far. */
static weir_instr_spec feed_spec(const weir_compiler *c, weir_value_id id) {
  const weir_node *node = &c->graph->nodes[c->graph->values[id].node];
  return (weir_instr_spec){.node_order = c->graph->values[id].node,
                           .node = node->name,
                           .mark = node->mark,
                           .op = node->op->name};
}

/* From here on |id| is |made|, which the next instruction writes. */
static void set_fed(weir_compiler *c, weir_value_id id, uint32_t made) {
  c->values[id] = made;
  if (c->made != NULL) c->made[id] = made;
  c->instrs[c->graph->values[id].node] = (uint32_t)c->builder->instrs.count;
}

static weir_status fed_from_host(weir_compiler *c, weir_value_id id,
                                 weir_error *err) {
  weir_program_builder *b = c->builder;
  uint32_t fed = c->values[id], staged, made;
  const weir_instr_spec as = feed_spec(c, id);
  WEIR_TRY(add_like(b, fed, true, true, &staged, err));
  WEIR_TRY(add_like(b, fed, false, false, &made, err));
  WEIR_TRY(
      add_host_copy(b, WEIR_INSTR_FEED, WEIR_BEFORE, fed, staged, &as, err));
  set_fed(c, id, made);
  return add_copy(b, WEIR_INSTR_FEED, WEIR_GPU_IN, staged, made, &as, err);
}

/* A feed in the memory of a GPU. In a part of that GPU it is what it is, or a
 * copy, where its address is one that kernels do not count on. From another GPU
 * it comes before all else, since no graph may have a copy between two. */
static weir_status fed_from_gpu(weir_compiler *c, weir_value_id id,
                                const weir_fed_at *at, weir_error *err) {
  weir_program_builder *b = c->builder;
  const weir_exec_gpu *own = weir_compile_gpu(c);
  bool here = own != NULL && own->index == at->gpu;
  if (here && at->whole) return WEIR_OK;
  uint32_t fed = c->values[id], made;
  weir_exec_gpu *src = NULL;
  const weir_instr_spec as = feed_spec(c, id);
  size_t bytes = b->values.items[fed].bytes;
  WEIR_TRY(weir_gpus_open(c->env->gpus, at->gpu, &src, err));
  WEIR_TRY(add_like(b, fed, false, own != NULL && !here, &made, err));
  set_fed(c, id, made);
  if (here)
    return add_copy(b, WEIR_INSTR_FEED, WEIR_GPU_WITHIN, fed, made, &as, err);
  weir_instr_spec spec = copy_spec(&fed, &made, &as);
  weir_status s =
      own != NULL ? weir_instr_gpu_peer(b, WEIR_INSTR_FEED, src, bytes, &spec)
                  : weir_instr_gpu_read(b, WEIR_INSTR_FEED, src, bytes, &spec);
  bool ok = s == WEIR_OK && weir_program_add_instr(b, &spec) != WEIR_NO_INDEX;
  return ok ? WEIR_OK : weir_fail_memory(err, bytes);
}

weir_status weir_compile_fed(weir_compiler *c, weir_value_id id,
                             weir_value_spec *spec, weir_error *err) {
  const weir_fed_at *at = c->request->fed_at;
  WEIR_TRY(weir_compile_value(c, id, spec, err));
  if (c->elsewhere) return WEIR_OK;
  if (at != NULL && at[spec->external].on_gpu)
    return fed_from_gpu(c, id, &at[spec->external], err);
  return is_gpu(c, c->part) ? fed_from_host(c, id, err) : WEIR_OK;
}

/* ---- Outputs */

weir_status weir_compile_gpu_out(weir_compiler *c, uint32_t *value,
                                 uint32_t external, weir_instr_kind kind,
                                 bool stays, const weir_instr_spec *as,
                                 weir_error *err) {
  weir_program_builder *b = c->builder;
  uint32_t out, staged, from = *value;
  WEIR_TRY(add_like(b, from, false, false, &out, err));
  weir_program_set_external(b, out, external);
  *value = out;
  if (stays) return add_copy(b, kind, WEIR_GPU_WITHIN, from, out, as, err);
  WEIR_TRY(add_like(b, from, true, true, &staged, err));
  WEIR_TRY(add_copy(b, kind, WEIR_GPU_OUT, from, staged, as, err));
  return add_host_copy(b, kind, WEIR_AFTER, staged, out, as, err);
}

bool weir_compile_is_direct(const weir_compiler *c, uint32_t from, uint32_t to,
                            uint32_t value) {
  const weir_compile_part *p = &c->parts[from];
  if (p->gpu == NULL || c->parts[to].gpu == NULL) return false;
  const weir_pvalue *items = p->builder->values.items;
  return items[value].bytes > 0 && !items[items[value].root].staged;
}

weir_status weir_compile_to_host(weir_compiler *c, uint32_t part,
                                 uint32_t *value, const weir_instr_spec *as,
                                 weir_error *err) {
  if (!is_gpu(c, part)) return WEIR_OK;
  weir_program_builder *b = c->parts[part].builder;
  uint32_t staged;
  if (b->values.items[b->values.items[*value].root].staged) return WEIR_OK;
  WEIR_TRY(add_like(b, *value, true, false, &staged, err));
  WEIR_TRY(add_copy(b, WEIR_INSTR_COPY, WEIR_GPU_OUT, *value, staged, as, err));
  *value = staged;
  return WEIR_OK;
}

weir_status weir_compile_stage(weir_compiler *c, uint32_t part, uint32_t value,
                               uint32_t *out_staged, weir_error *err) {
  *out_staged = value;
  if (!is_gpu(c, part)) return WEIR_OK;
  return add_like(c->parts[part].builder, value, true, false, out_staged, err);
}

weir_status weir_compile_from_host(weir_compiler *c, uint32_t part,
                                   uint32_t staged, uint32_t value,
                                   const weir_instr_spec *as, weir_error *err) {
  if (staged == value) return WEIR_OK;
  return add_copy(c->parts[part].builder, WEIR_INSTR_COPY, WEIR_GPU_IN, staged,
                  value, as, err);
}
