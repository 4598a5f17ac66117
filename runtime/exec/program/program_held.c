/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/program_held.h"

#include <stdlib.h>

#include "runtime/exec/program/program_internal.h"

/* Sums over what instructions read and write. A constant is known by its
 * address, so that views and bodies that read the same bytes count them once;
 * an external by its number, with the bytes of its largest value. Planned
 * values are in the arena, whose size is the plan's.
 * Cost: O(operands log operands), bodies included. */

typedef struct constant {
  const void *data;
  size_t bytes;
} constant;

typedef struct counter {
  const weir_allocator *alloc;
  WEIR_VEC(constant) constants;
  size_t *external; /* per external of the part */
  weir_program_memory *out;
  bool failed;
} counter;

size_t weir_instr_kept(const weir_instr_spec *spec) {
  size_t bytes = spec->kept_bytes;
  for (uint32_t k = 0; k < spec->body_count; k++)
    for (uint32_t i = 0; i < spec->bodies[k]->instr_count; i++)
      bytes += weir_instr_kept(&spec->bodies[k]->instrs[i].spec);
  return bytes;
}

static void note_most(counter *c, weir_sv node, size_t bytes) {
  if (bytes <= c->out->most_bytes) return;
  c->out->most = node;
  c->out->most_bytes = bytes;
}

/* |outer|: the node that holds a body; its own name otherwise. */
static void count_value(counter *c, const weir_program *p, uint32_t value,
                        const weir_sv *outer, weir_sv node) {
  if (value == WEIR_NO_INDEX) return;
  const weir_pvalue *root = &p->values[p->values[value].root];
  if (root->storage == WEIR_STORAGE_CONST) {
    constant one = {root->data, root->bytes};
    if (!weir_vec_push(c->alloc, &c->constants, one)) c->failed = true;
  } else if (root->storage == WEIR_STORAGE_EXTERNAL && outer == NULL) {
    if (c->external[root->external] < root->bytes)
      c->external[root->external] = root->bytes;
  }
  note_most(c, outer != NULL ? *outer : node, root->bytes);
}

static void count_program(counter *c, const weir_program *p,
                          const weir_sv *outer) {
  for (uint32_t i = 0; i < p->instr_count; i++) {
    const weir_instr_spec *s = &p->instrs[i].spec;
    weir_sv node = outer != NULL ? *outer : s->node;
    for (uint32_t k = 0; k < s->in_count; k++)
      count_value(c, p, s->in[k], outer, node);
    for (uint32_t k = 0; k < s->out_count; k++)
      count_value(c, p, s->out[k], outer, node);
    note_most(c, node, p->instrs[i].scratch_total);
    note_most(c, node, s->kept_bytes);
    c->out->kept_bytes += s->kept_bytes;
    for (uint32_t k = 0; k < s->body_count; k++)
      count_program(c, s->bodies[k], &node);
  }
}

static int by_address(const void *a, const void *b) {
  const constant *x = a, *y = b;
  uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
  if (p != q) return p < q ? -1 : 1;
  return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

/* Of equal addresses the largest comes first. */
static size_t sum_constants(counter *c) {
  size_t sum = 0;
  if (c->constants.count > 0)
    qsort(c->constants.items, c->constants.count, sizeof *c->constants.items,
          by_address);
  for (size_t i = 0; i < c->constants.count; i++)
    if (i == 0 || c->constants.items[i].data != c->constants.items[i - 1].data)
      sum += c->constants.items[i].bytes;
  return sum;
}

weir_status weir_program_held(const weir_program *part,
                              weir_program_memory *out, weir_error *err) {
  const weir_allocator *a = part->alloc;
  counter c = {.alloc = a, .out = out};
  *out = (weir_program_memory){.arena_bytes = part->memory_bytes};
  c.external =
      weir_alloc_array(a, (size_t)part->external_count + 1, sizeof *c.external);
  if (c.external != NULL) {
    count_program(&c, part, NULL);
    out->constant_bytes = sum_constants(&c);
    for (uint32_t e = 0; e < part->external_count; e++)
      out->external_bytes += c.external[e];
  }
  bool ok = c.external != NULL && !c.failed;
  weir_vec_free(a, &c.constants);
  weir_free(a, c.external);
  return ok ? WEIR_OK
            : weir_fail_memory(err, part->external_count * sizeof *c.external);
}
