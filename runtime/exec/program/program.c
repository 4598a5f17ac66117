/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/program.h"

#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/program/program_gpu.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/program/program_memory.h"
#include "runtime/exec/program/tasks.h"

/* From a builder's lists to a program.
 *
 * Values and instructions are collected in vectors and move to the arena once.
 * Then, in this order: tasks, which may reorder instructions; code and table,
 * whose operand rows follow that order, so that the hot loop reads forward;
 * memory, which is planned for that order and adds edges between tasks where
 * bytes are used twice; last the links of tasks, which need all edges. Beside
 * tasks and memory the cost is O(values + operands).
 *
 * Out of memory sticks in |no_memory|: a caller may build on and looks at the
 * result of weir_program_finish only. */

static void release_program(weir_program *p) {
  const weir_allocator *alloc = p->alloc;
  weir_program_gpu_release(p);
  weir_free(alloc, p->value_block);
  weir_free(alloc, p->instr_block);
  weir_arena_release(&p->arena);
  weir_free(alloc, p);
}

weir_status weir_program_builder_create(const weir_env *env,
                                        const weir_allocator *alloc,
                                        weir_program_builder **out_builder,
                                        weir_error *err) {
  *out_builder = NULL;
  if (alloc == NULL) alloc = env->alloc;
  weir_program_builder *b = weir_alloc_array(alloc, 1, sizeof *b);
  weir_program *p = weir_alloc_array(alloc, 1, sizeof *p);
  if (b == NULL || p == NULL) {
    weir_free(alloc, b);
    weir_free(alloc, p);
    return weir_fail_memory(err, sizeof *b + sizeof *p);
  }
  p->env = env;
  p->alloc = alloc;
  weir_arena_init(&p->arena, alloc);
  b->alloc = alloc;
  b->program = p;
  *out_builder = b;
  return WEIR_OK;
}

/* Calls release for every state and body. */
static void drop_instrs(weir_instr *instrs, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const weir_instr_spec *s = &instrs[i].spec;
    if (s->release != NULL) s->release((void *)s->state);
    for (uint32_t b = 0; b < s->body_count; b++)
      weir_program_release(s->bodies[b]);
  }
}

void weir_program_builder_release(weir_program_builder *b) {
  if (b == NULL) return;
  if (b->program != NULL) {
    if (b->instrs.items != NULL)
      drop_instrs(b->instrs.items, b->instrs.count);
    else if (b->program->instrs != NULL) /* in another order */
      drop_instrs(b->program->instrs, b->program->instr_count);
    release_program(b->program);
  }
  weir_vec_free(b->alloc, &b->values);
  weir_vec_free(b->alloc, &b->instrs);
  weir_vec_free(b->alloc, &b->fetches);
  weir_free(b->alloc, b);
}

weir_arena *weir_program_builder_arena(weir_program_builder *b) {
  return &b->program->arena;
}

uint32_t weir_program_add_value(weir_program_builder *b,
                                const weir_value_spec *spec) {
  weir_pvalue v = {.storage = spec->storage,
                   .root = (uint32_t)b->values.count,
                   .external = spec->external,
                   .data = spec->data,
                   .bytes = spec->bytes,
                   .dtype = spec->dtype,
                   .layout = (uint8_t)spec->layout,
                   .staged = spec->staged,
                   .all_run = spec->all_run,
                   .rank = spec->rank};
  if (spec->storage == WEIR_STORAGE_ALIAS && spec->alias < b->values.count)
    v.root = b->values.items[spec->alias].root;
  for (int32_t i = 0; i < spec->rank && spec->dims != NULL; i++)
    v.dims[i] = spec->dims[i];
  if (!weir_vec_push(b->alloc, &b->values, v)) b->no_memory = true;
  /* After a failed push the count is still the root's number. */
  return v.root == b->values.count ? WEIR_NO_INDEX
                                   : (uint32_t)b->values.count - 1;
}

bool weir_program_reserve(weir_program_builder *b, uint32_t values,
                          uint32_t instrs) {
  return weir_vec_reserve(b->alloc, &b->values, values) &&
         weir_vec_reserve(b->alloc, &b->instrs, instrs);
}

/* A copy of |count| numbers in the arena; NULL when there are none. */
static const uint32_t *keep(weir_program_builder *b, const uint32_t *from,
                            uint32_t count) {
  if (count == 0) return NULL;
  uint32_t *to = weir_arena_array(&b->program->arena, count, sizeof *to);
  if (to == NULL)
    b->no_memory = true;
  else
    memcpy(to, from, count * sizeof *to);
  return to;
}

/* What is true of |body| is true of the instruction that runs it. */
static void add_body(weir_program *p, weir_instr_spec *s,
                     const weir_program *body) {
  p->comm |= body->comm;
  p->channel |= body->channel;
  p->outer |= body->outer;
  for (uint32_t i = 0; i < body->instr_count; i++) {
    const weir_instr_spec *inner = &body->instrs[i].spec;
    if (inner->checks) s->checks = true;
    if (inner->draws) s->draws = true;
    if (inner->asks) s->asks = true;
  }
}

uint32_t weir_program_calls(const weir_program *p) {
  uint64_t calls = 0;
  for (uint32_t i = 0; i < p->instr_count; i++)
    calls += p->instrs[i].spec.calls > 0 ? p->instrs[i].spec.calls : 1;
  return calls < UINT32_MAX ? (uint32_t)calls : UINT32_MAX;
}

uint32_t weir_program_add_instr(weir_program_builder *b,
                                const weir_instr_spec *spec) {
  weir_instr instr = {.spec = *spec};
  weir_instr_spec *s = &instr.spec;
  s->in = keep(b, spec->in, spec->in_count);
  s->out = keep(b, spec->out, spec->out_count);
  s->after = keep(b, spec->after, spec->after_count);
  if (spec->body_count > 0) {
    const weir_program **bodies =
        weir_arena_array(&b->program->arena, spec->body_count, sizeof *bodies);
    if (bodies != NULL)
      memcpy(bodies, spec->bodies, spec->body_count * sizeof *bodies);
    s->bodies = bodies;
  }
  for (uint32_t k = 0; k < spec->body_count; k++)
    add_body(b->program, s, spec->bodies[k]);
  if (s->draws) b->program->draws = true;
  bool ok = spec->body_count == 0 || s->bodies != NULL;
  if (ok) ok = weir_vec_push(b->alloc, &b->instrs, instr);
  if (!ok) {
    instr.spec.bodies = spec->bodies;
    drop_instrs(&instr, 1);
    b->no_memory = true;
    return WEIR_NO_INDEX;
  }
  return (uint32_t)b->instrs.count - 1;
}

void weir_program_set_external(weir_program_builder *b, uint32_t value,
                               uint32_t external) {
  if (value >= b->values.count) return;
  weir_pvalue *v = &b->values.items[b->values.items[value].root];
  v->storage = WEIR_STORAGE_EXTERNAL;
  v->external = external;
}

void weir_program_add_fetch(weir_program_builder *b, uint32_t value) {
  if (!weir_vec_push(b->alloc, &b->fetches, value)) b->no_memory = true;
}

/* ---- Finish */

/* The program works on the builder's lists: a copy of them would be most of its
 * memory. They are still the builder's until all has gone well. */
static bool lend_lists(weir_program_builder *b) {
  weir_program *p = b->program;
  p->values = b->values.items;
  p->instrs = b->instrs.items;
  uint32_t *fetches =
      weir_arena_array(&p->arena, b->fetches.count, sizeof *fetches);
  if (b->no_memory || fetches == NULL) return false;
  p->value_count = (uint32_t)b->values.count;
  p->fetch_count = (uint32_t)b->fetches.count;
  p->instr_count = (uint32_t)b->instrs.count;
  if (p->fetch_count > 0)
    memcpy(fetches, b->fetches.items, p->fetch_count * sizeof *fetches);
  p->fetches = fetches;
  return true;
}

/* Then they are the program's. Instructions in another order have been copied,
 * and their old list goes with the builder. */
static void give_lists(weir_program_builder *b) {
  weir_program *p = b->program;
  p->value_block = b->values.items;
  b->values.items = NULL;
  b->values.count = b->values.capacity = 0;
  b->program = NULL;
  if (b->instrs.items == NULL) return; /* in another order, in the arena */
  p->instr_block = b->instrs.items;
  b->instrs.items = NULL;
  b->instrs.count = b->instrs.capacity = 0;
}

static void total_costs(weir_program *p) {
  for (uint32_t i = 0; i < p->instr_count; i++) {
    weir_sum_add(&p->flops, p->instrs[i].spec.flops);
    weir_sum_add(&p->bytes, p->instrs[i].spec.bytes);
    weir_sum_add(&p->cost_ns, p->instrs[i].spec.cost_ns);
    p->child_count += p->instrs[i].spec.body_count;
    p->any_time |= p->instrs[i].spec.any_time;
    for (uint32_t k = 0; k < p->instrs[i].spec.body_count; k++)
      p->any_time |= p->instrs[i].spec.bodies[k]->any_time;
  }
}

enum { LONG_NS = 200000, MOST_SPAN = 256 };

static void mark_spans(const weir_program *p, weir_code *code) {
  for (uint32_t i = p->instr_count; i-- > 0;) {
    uint32_t next = i + 1 < p->instr_count ? code[i + 1].span : 0;
    bool alone = p->instrs[i].spec.cost_ns >= LONG_NS;
    bool before_long = next > 0 && p->instrs[i + 1].spec.cost_ns >= LONG_NS;
    code[i].span = alone || before_long || next >= MOST_SPAN ? 1 : next + 1;
  }
}

bool weir_code_is_long(const weir_program *p, uint32_t instr) {
  return p->instrs[instr].spec.cost_ns >= LONG_NS;
}

/* The code, the value of each table entry, and the list of nested programs. A
 * row of operands is an instruction's inputs, then its outputs. */
static bool lay_out(weir_program *p) {
  size_t slots = 0;
  for (uint32_t i = 0; i < p->instr_count; i++)
    slots += p->instrs[i].spec.in_count + p->instrs[i].spec.out_count;
  weir_code *code = weir_arena_array(&p->arena, p->instr_count, sizeof *code);
  uint32_t *values = weir_arena_array(&p->arena, slots, sizeof *values);
  p->children =
      weir_arena_array(&p->arena, p->child_count, sizeof *p->children);
  if (code == NULL || values == NULL || p->children == NULL ||
      slots > WEIR_NO_INDEX)
    return false;
  uint32_t at = 0, child = 0;
  for (uint32_t i = 0; i < p->instr_count; i++) {
    weir_instr *instr = &p->instrs[i];
    const weir_instr_spec *s = &instr->spec;
    code[i].run = s->run;
    code[i].state = s->state;
    code[i].io = at;
    for (uint32_t k = 0; k < s->in_count; k++) values[at++] = s->in[k];
    for (uint32_t k = 0; k < s->out_count; k++) values[at++] = s->out[k];
    instr->first_child = child;
    if (s->child != NULL) *s->child = child;
    for (uint32_t k = 0; k < s->body_count; k++)
      p->children[child++] = s->bodies[k];
  }
  mark_spans(p, code);
  p->code = code;
  p->slot_values = values;
  p->slot_count = at;
  return true;
}

static uint32_t slot_external(const weir_program *p, uint32_t slot) {
  uint32_t v = p->slot_values[slot];
  if (v == WEIR_NO_INDEX) return WEIR_NO_INDEX;
  const weir_pvalue *root = &p->values[p->values[v].root];
  return root->storage == WEIR_STORAGE_EXTERNAL ? root->external
                                                : WEIR_NO_INDEX;
}

/* For each external, the table entries that hold its pointer: a run that sets
 * it writes to these only. A counting sort, O(entries). */
static bool list_externals(weir_program *p) {
  for (uint32_t v = 0; v < p->value_count; v++)
    if (p->values[v].storage == WEIR_STORAGE_EXTERNAL &&
        p->values[v].external >= p->external_count)
      p->external_count = p->values[v].external + 1;
  p->externals =
      weir_arena_array(&p->arena, p->external_count, sizeof *p->externals);
  uint32_t *slots = weir_arena_array(&p->arena, p->slot_count, sizeof *slots);
  if (p->externals == NULL || slots == NULL) return false;
  for (uint32_t i = 0; i < p->slot_count; i++) {
    uint32_t e = slot_external(p, i);
    if (e != WEIR_NO_INDEX) p->externals[e].slot_count++;
  }
  uint32_t at = 0;
  for (uint32_t e = 0; e < p->external_count; e++) {
    p->externals[e].slots = slots + at;
    at += p->externals[e].slot_count;
    p->externals[e].slot_count = 0;
  }
  for (uint32_t i = 0; i < p->slot_count; i++) {
    uint32_t e = slot_external(p, i);
    if (e == WEIR_NO_INDEX) continue;
    weir_external *x = &p->externals[e];
    slots[(x->slots - slots) + x->slot_count++] = i;
  }
  return true;
}

weir_status weir_program_finish(weir_program_builder *b,
                                const weir_program_options *options,
                                weir_program **out_program, weir_error *err) {
  weir_program *p = b->program;
  weir_task_graph graph = {.alloc = b->alloc};
  *out_program = NULL;
  if (!lend_lists(b)) return weir_fail_memory(err, 0);
  p->threads = options->threads > 0 ? options->threads : 1;
  p->gpu = options->gpu;
  p->graph = options->graph;
  total_costs(p);
  weir_status s = weir_tasks_form(p, options, &graph, err);
  /* In another order they lie in the arena: the old list is not needed. */
  if (p->instr_count > 0 && p->instrs != b->instrs.items)
    weir_vec_free(b->alloc, &b->instrs);
  if (s == WEIR_OK && !(lay_out(p) && list_externals(p)))
    s = weir_fail_memory(err, 0);
  if (s == WEIR_OK)
    s = weir_program_plan_memory(p, &graph, options->memory_limit, err);
  if (s == WEIR_OK) s = weir_tasks_link(p, &graph, err);
  if (s == WEIR_OK && p->gpu != NULL) s = weir_program_gpu_constants(p, err);
  weir_vec_free(graph.alloc, &graph.edges);
  if (s != WEIR_OK) return s;
  give_lists(b);
  *out_program = p;
  return WEIR_OK;
}

void weir_program_release(const weir_program *program) {
  if (program == NULL) return;
  weir_program *p = (weir_program *)program;
  /* States of the other parts' kernels lie in the first one's arena. */
  for (weir_program *part = p->next_part; part != NULL;) {
    weir_program *next = part->next_part;
    part->next_part = NULL;
    weir_program_release(part);
    part = next;
  }
  drop_instrs(p->instrs, p->instr_count);
  release_program(p);
}
