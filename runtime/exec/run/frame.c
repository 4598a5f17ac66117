/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/run/frame.h"

#include <assert.h>
#include <string.h>

#include "runtime/exec/gpu/gpu_frame.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/run/stream.h"

/* The table holds a pointer for each operand of each instruction, in code
 * order, so an instruction's operands are one row that its kernel gets as it
 * is. Pointers to planned memory and constants are written here, once; a run
 * writes those of externals only. A frame takes the program's planned bytes and
 * a pointer for each operand.
 *
 * Frames of nested programs are made here too, down to kMaxDepth: a loop's turn
 * then allocates nothing. Their memory is part of their instruction's scratch,
 * so it is shared with values that are not alive then. */

enum { kMaxDepth = 16 };

static void fill_table(weir_frame *f) {
  const weir_program *p = f->program;
  for (uint32_t i = 0; i < p->slot_count; i++) {
    if (p->slot_values[i] == WEIR_NO_INDEX) continue;
    const weir_pvalue *v = &p->values[p->slot_values[i]];
    const weir_pvalue *root = &p->values[v->root];
    if (root->storage == WEIR_STORAGE_CONST)
      f->table[i] = p->gpu == NULL ? (void *)root->data
                                   : (char *)p->constants.handle + root->offset;
    else if (root->storage == WEIR_STORAGE_TEMP)
      f->table[i] = (root->staged ? f->gpu->staged : f->memory) + root->offset;
  }
}

static bool make_parts(weir_frame *f, bool root) {
  const weir_program *p = f->program;
  const weir_allocator *a = p->env->alloc;
  f->table = weir_alloc_array(a, p->slot_count, sizeof *f->table);
  f->children = weir_alloc_array(a, p->child_count, sizeof *f->children);
  if (f->table == NULL || f->children == NULL) return false;
  if (!root) return true;
  f->tasks = weir_alloc_array(a, p->task_count, sizeof *f->tasks);
  f->poison = weir_alloc_array(a, p->value_count, sizeof *f->poison);
  f->failures = weir_alloc_array(a, WEIR_FRAME_FAILURES, sizeof *f->failures);
  f->failure_orders =
      weir_alloc_array(a, WEIR_FRAME_FAILURES, sizeof *f->failure_orders);
  return f->tasks != NULL && f->poison != NULL && f->failures != NULL &&
         f->failure_orders != NULL;
}

static weir_status make(const weir_program *p, char *memory, int depth,
                        weir_frame **out_frame, weir_error *err);

/* Nested frames live in their instruction's scratch memory, after its own. */
static weir_status make_children(weir_frame *f, int depth, weir_error *err) {
  const weir_program *p = f->program;
  if (p->child_count > 0 && depth == kMaxDepth)
    return weir_fail(err, WEIR_W9001, NULL, "programs nested deeper than %d",
                     (int)kMaxDepth);
  for (uint32_t i = 0; i < p->instr_count; i++) {
    const weir_instr *instr = &p->instrs[i];
    size_t at = p->code[i].scratch + instr->scratch_total;
    for (uint32_t k = instr->spec.body_count; k-- > 0;) {
      const weir_program *body = instr->spec.bodies[k];
      at -= weir_program_scratch_align(p, body->memory_bytes);
      assert(at >= p->code[i].scratch);
      WEIR_TRY(make(body, f->memory + at, depth + 1,
                    &f->children[instr->first_child + k], err));
    }
  }
  return WEIR_OK;
}

/* |depth| 0: a frame that is no body's, with memory of its own. On failure
 * |*out_frame| is as far as it came, to be released. */
static weir_status make(const weir_program *p, char *memory, int depth,
                        weir_frame **out_frame, weir_error *err) {
  const weir_allocator *a = p->env->alloc;
  weir_frame *f = weir_alloc_array(a, 1, sizeof *f);
  *out_frame = f;
  if (f == NULL) return weir_fail_memory(err, sizeof *f);
  f->program = p;
  f->head = f;
  pthread_mutex_init(&f->failure_lock, NULL);
  bool root = depth == 0;
  if (!make_parts(f, root)) return weir_fail_memory(err, 0);
  f->memory = memory;
  for (uint32_t t = 0; root && t < p->task_count; t++) {
    f->tasks[t].frame = f;
    f->tasks[t].index = t;
  }
  if (root && p->gpu != NULL) {
    WEIR_TRY(weir_gpu_frame_create(f, err));
  } else if (root) {
    f->memory = weir_alloc_aligned(a, p->memory_bytes, 64);
    if (f->memory == NULL) return weir_fail_memory(err, p->memory_bytes);
    f->owns_memory = true;
  }
  fill_table(f);
  return make_children(f, depth, err);
}

/* Numbers the instructions of |f| and of the frames in it; the next number. */
static uint32_t number_all(weir_frame *f, uint32_t next) {
  f->number = next;
  next += f->program->instr_count;
  for (uint32_t i = 0; i < f->program->child_count; i++)
    next = number_all(f->children[i], next);
  return next;
}

/* The child of |f| that |number| is in, or in a child of. */
static uint32_t child_with(const weir_frame *f, uint32_t number) {
  uint32_t i = f->program->child_count - 1;
  while (i > 0 && f->children[i]->number > number) i--;
  return i;
}

static bool is_own(const weir_frame *f, uint32_t number) {
  return number - f->number < f->program->instr_count;
}

const weir_frame *weir_frame_numbered(const weir_frame *f, uint32_t number,
                                      uint32_t *out_instr, uint32_t *out_own) {
  const weir_program *p = f->program;
  *out_own = number;
  if (!is_own(f, number)) {
    uint32_t child = child_with(f, number), own = p->instr_count - 1;
    while (p->instrs[own].spec.body_count == 0 ||
           p->instrs[own].first_child > child)
      own--;
    *out_own = own;
  }
  while (!is_own(f, number)) f = f->children[child_with(f, number)];
  *out_instr = number - f->number;
  return f;
}

/* Once, so that a run does not look at each part. */
static void note_comm(weir_frame *head) {
  for (const weir_program *p = head->program; p != NULL; p = p->next_part) {
    head->comm |= p->comm;
    head->comm_channel |= p->channel;
    head->comm_outer |= p->outer;
  }
}

weir_status weir_frame_create(const weir_program *program,
                              weir_frame **out_frame, weir_error *err) {
  weir_status s = make(program, NULL, 0, out_frame, err);
  weir_frame *head = *out_frame, *last = head;
  if (head != NULL) note_comm(head);
  for (const weir_program *p = program->next_part; s == WEIR_OK && p != NULL;
       p = p->next_part) {
    s = make(p, NULL, 0, &last->next_part, err);
    last = last->next_part;
    if (last != NULL) last->head = head;
  }
  for (weir_frame *f = head; s == WEIR_OK && f != NULL; f = f->next_part)
    number_all(f, 0);
  if (s == WEIR_OK) return s;
  weir_frame_release(*out_frame);
  *out_frame = NULL;
  return s;
}

void weir_frame_release(weir_frame *f) {
  if (f == NULL) return;
  const weir_program *p = f->program;
  const weir_allocator *a = p->env->alloc;
  for (uint32_t i = 0; f->children != NULL && i < p->child_count; i++)
    weir_frame_release(f->children[i]);
  for (weir_frame *part = f->next_part; part != NULL;) {
    weir_frame *next = part->next_part;
    part->next_part = NULL;
    weir_frame_release(part);
    part = next;
  }
  weir_channel_release(f->channel);
  weir_gpu_frame_release(f);
  if (f->owns_memory) weir_free(a, f->memory);
  weir_free(a, f->table);
  weir_free(a, f->children);
  weir_free(a, f->tasks);
  weir_free(a, f->poison);
  weir_free(a, f->failures);
  weir_free(a, f->failure_orders);
  pthread_mutex_destroy(&f->failure_lock);
  weir_free(a, f);
}

void weir_frame_share(weir_frame *f, weir_stream *streams) {
  for (; f != NULL; f = f->next_part) f->stream = &streams[f->program->part];
}

void weir_frame_set_channel(weir_frame *f, weir_channel *outer) {
  f->head->outer = outer;
}

void *weir_frame_external(const weir_frame *f, uint32_t external) {
  if (external >= f->program->external_count) return NULL;
  const weir_external *x = &f->program->externals[external];
  return x->slot_count > 0 ? f->table[x->slots[0]] : NULL;
}

void weir_frame_set_external(weir_frame *f, uint32_t external, void *data) {
  for (; f != NULL; f = f->next_part) {
    if (external >= f->program->external_count) continue;
    const weir_external *x = &f->program->externals[external];
    for (uint32_t i = 0; i < x->slot_count; i++) f->table[x->slots[i]] = data;
  }
}
