/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/program_memory.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "placement/memory/memory_reuse.h"
#include "runtime/base/size.h"
#include "runtime/exec/program/instr_comm.h"
#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/program/program_parallel.h"

/* Lifetimes of a program's planned values, in its static order; from them come
 * offsets, and edges between tasks for memory used twice.
 *
 * A buffer lives from the instruction that writes it to the last that reads it
 * or an alias of it; a received one from the instruction that runs when it may
 * come (room_from), as else it would have to wait for the end of that. Scratch
 * lives for one instruction. Work on several threads does not keep to the
 * static order, so each reuse becomes an edge: all tasks that use the earlier
 * buffer end before the later one is written.
 *
 * Those edges cost parallelism. So a second plan, with lifetimes stretched
 * until reuse asks for no new edge (program_parallel.h), is taken where it
 * needs little more memory. A device does one instruction at a time, so that
 * there the first plan loses nothing.
 *
 * A rank of a collective ends when all of its ranks have begun. Those of one
 * program stand close together, and what one of them reads or writes lives
 * until the last: else another rank, or what comes before it, might wait for
 * that memory, and so for itself. The ranks of other programs stand at the same
 * place of one common order (compile_parts.c), and memory waits for earlier
 * places only.
 *
 * A GPU's part has two memories, its own and that of staged values: the same
 * lifetimes are planned twice, each time with the buffers of the other memory
 * empty.
 *
 * Invariant: edges go from lower to higher tasks, because tasks are numbered in
 * the static order and the earlier buffer is dead before the later one begins.
 * Cost: O(operands) and the planner's; the stretched plan adds tasks^2 bits. */

enum { kStretchTasks = 8192 }; /* its tables grow with their square */

typedef struct planner {
  weir_program *p;
  weir_task_graph *graph;
  weir_lifetime *lives;
  uint32_t count;
  uint32_t *value_life;   /* per value: its buffer, or none */
  uint32_t *scratch_life; /* per instruction */
  uint32_t *met_last;     /* per instruction: the last rank of its collective */
  bool *staged;           /* per buffer */
  uint32_t *writer;       /* per buffer: the instruction that begins it */
  uint32_t *uses;         /* per buffer, a list of instructions that use it: */
  uint32_t *use_next;     /* index of the next use in the list */
  uint32_t *use_instr;
  uint32_t use_count;
  bool failed;
} planner;

static bool needs_memory(const weir_program *p, uint32_t value) {
  return value != WEIR_NO_INDEX &&
         p->values[p->values[value].root].storage == WEIR_STORAGE_TEMP;
}

static void add_use(planner *pl, uint32_t life, uint32_t instr) {
  assert(life < pl->count && instr < pl->p->instr_count);
  pl->use_instr[pl->use_count] = instr;
  pl->use_next[pl->use_count] = pl->uses[life];
  pl->uses[life] = pl->use_count++;
}

/* A buffer that |at| writes; its memory is its own from |from| on. */
static uint32_t new_life(planner *pl, size_t bytes, uint32_t from,
                         uint32_t at) {
  uint32_t life = pl->count++;
  assert(from <= at);
  pl->lives[life] = (weir_lifetime){bytes, from, at, WEIR_MEMORY_NO_BUFFER};
  pl->writer[life] = at;
  pl->uses[life] = WEIR_NO_INDEX;
  return life;
}

/* Whether |instr| may write its output over its first input. The bytes must be
 * equal, and no other input may lie there under another name: the kernel would
 * read it after writing. The planner checks that the input dies here. */
static bool can_be_in_place(const planner *pl, const weir_instr_spec *s) {
  const weir_program *p = pl->p;
  if (!s->in_place || s->in_count == 0 || s->out_count == 0) return false;
  uint32_t x = s->in[0], y = s->out[0];
  if (!needs_memory(p, x) || !needs_memory(p, y)) return false;
  uint32_t root = p->values[x].root;
  if (p->values[root].bytes != p->values[y].bytes) return false;
  for (uint32_t i = 1; i < s->in_count; i++)
    if (s->in[i] != WEIR_NO_INDEX && s->in[i] != x &&
        p->values[s->in[i]].root == root)
      return false;
  return true;
}

static void live_until(planner *pl, uint32_t life, uint32_t i) {
  if (pl->lives[life].last < i) pl->lives[life].last = i;
}

static void collect_operands(planner *pl, uint32_t i) {
  weir_program *p = pl->p;
  const weir_instr_spec *s = &p->instrs[i].spec;
  for (uint32_t k = 0; k < s->in_count; k++) {
    if (!needs_memory(p, s->in[k])) continue;
    uint32_t life = pl->value_life[p->values[s->in[k]].root];
    if (life == WEIR_NO_INDEX) continue;
    live_until(pl, life, pl->met_last[i]);
    add_use(pl, life, i);
  }
  for (uint32_t k = 0; k < s->out_count; k++) {
    if (!needs_memory(p, s->out[k])) continue;
    uint32_t root = p->values[s->out[k]].root;
    if (pl->value_life[root] == WEIR_NO_INDEX)
      pl->value_life[root] =
          new_life(pl, p->values[root].bytes,
                   s->room_from != 0 ? s->room_from - 1 : i, i);
    uint32_t life = pl->value_life[root];
    pl->staged[life] = p->values[root].staged;
    if (p->values[root].all_run) {
      pl->lives[life].first = 0;
      pl->lives[life].last = p->instr_count - 1;
    }
    live_until(pl, life, pl->met_last[i]);
    add_use(pl, life, i);
    if (k == 0 && can_be_in_place(pl, s))
      pl->lives[life].in_place_of = pl->value_life[p->values[s->in[0]].root];
  }
}

/* Own scratch, a piece for each thread, then the memory of nested programs, in
 * the order in which frame.c hands it out. */
static bool scratch_bytes(const weir_program *p, weir_instr *instr) {
  size_t own, worker, total;
  const weir_instr_spec *s = &instr->spec;
  size_t align = p->gpu != NULL ? WEIR_GPU_ALIGN : 64;
  if (!weir_size_align(s->scratch_bytes, align, &own) ||
      !weir_size_align(s->worker_scratch_bytes, 64, &worker) ||
      !weir_size_mul(worker, (size_t)p->threads, &total) ||
      !weir_size_add(own, total, &total))
    return false;
  for (uint32_t k = 0; k < s->body_count; k++)
    if (!weir_size_add(total, s->bodies[k]->memory_bytes, &total) ||
        !weir_size_align(total, align, &total))
      return false;
  instr->scratch_total = total;
  return true;
}

/* A rank of a collective: where it stands. */
typedef struct met {
  uint32_t group, instr;
} met;

static int by_group(const void *a, const void *b) {
  const met *x = a, *y = b;
  if (x->group != y->group) return x->group < y->group ? -1 : 1;
  return (x->instr > y->instr) - (x->instr < y->instr);
}

/* Fills |met_last|: of other instructions, themselves. */
static bool find_met(planner *pl) {
  const weir_program *p = pl->p;
  const weir_allocator *a = p->alloc;
  met *all = weir_alloc_array(a, (size_t)p->instr_count + 1, sizeof *all);
  uint32_t count = 0;
  if (all == NULL) return false;
  for (uint32_t i = 0; i < p->instr_count; i++) {
    uint32_t group = weir_instr_comm_group(&p->instrs[i].spec);
    pl->met_last[i] = i;
    if (group != WEIR_NO_INDEX) all[count++] = (met){group, i};
  }
  qsort(all, count, sizeof *all, by_group);
  for (uint32_t k = count; k-- > 1;)
    if (all[k - 1].group == all[k].group)
      pl->met_last[all[k - 1].instr] = pl->met_last[all[k].instr];
  weir_free(a, all);
  return true;
}

static weir_status collect(planner *pl, weir_error *err) {
  weir_program *p = pl->p;
  if (!find_met(pl)) return weir_fail_memory(err, p->instr_count * sizeof(met));
  for (uint32_t i = 0; i < p->instr_count; i++) {
    if (!scratch_bytes(p, &p->instrs[i]))
      return weir_fail(err, WEIR_W2001, NULL, "scratch memory overflows");
    collect_operands(pl, i);
    pl->scratch_life[i] = WEIR_NO_INDEX;
    if (p->instrs[i].scratch_total == 0) continue;
    pl->scratch_life[i] = new_life(pl, p->instrs[i].scratch_total, i, i);
    add_use(pl, pl->scratch_life[i], i);
  }
  return WEIR_OK;
}

/* All uses of |earlier| come before the first of |later|. */
static void add_reuse(void *self, uint32_t earlier, uint32_t later) {
  planner *pl = self;
  const weir_program *p = pl->p;
  uint32_t to = p->instrs[pl->writer[later]].task;
  uint32_t before = WEIR_NO_INDEX;
  for (uint32_t u = pl->uses[earlier]; u != WEIR_NO_INDEX;
       u = pl->use_next[u]) {
    uint32_t from = p->instrs[pl->use_instr[u]].task;
    if (from == to || from == before) continue;
    assert(from < to); /* else tasks might wait in a circle */
    before = from;
    weir_task_edge edge = {from, to};
    if (!weir_vec_push(pl->graph->alloc, &pl->graph->edges, edge))
      pl->failed = true;
  }
}

static void store(planner *pl, const weir_memory_plan *plan) {
  weir_program *p = pl->p;
  for (uint32_t v = 0; v < p->value_count; v++) {
    uint32_t life = pl->value_life[p->values[v].root];
    assert(life == WEIR_NO_INDEX || p->values[v].staged ||
           plan->offsets[life] <= plan->peak_bytes);
    if (life != WEIR_NO_INDEX) p->values[v].offset = plan->offsets[life];
  }
  weir_code *code = (weir_code *)p->code;
  for (uint32_t i = 0; i < p->instr_count; i++)
    if (pl->scratch_life[i] != WEIR_NO_INDEX)
      code[i].scratch = plan->offsets[pl->scratch_life[i]];
  p->memory_bytes = plan->peak_bytes;
  p->bound_bytes = plan->bound_bytes;
}

/* Plans the buffers that are |staged|, or the others, into |made|, and adds
 * their reuses. */
static weir_status plan_side(planner *pl, bool staged, weir_lifetime *lives,
                             weir_memory_plan *made, weir_error *err) {
  weir_program *p = pl->p;
  for (uint32_t i = 0; i < pl->count; i++) {
    lives[i] = pl->lives[i];
    if (pl->staged[i] != staged) lives[i].bytes = 0;
  }
  weir_lifetimes side = {lives, pl->count};
  WEIR_TRY(weir_memory_plan_make(side, WEIR_GPU_ALIGN, &p->arena, p->alloc,
                                 made, err));
  return weir_memory_plan_reuses(side, made, p->alloc, add_reuse, pl, err);
}

/* Both memories of a GPU's part; |offsets| of |made| are those of either. */
static weir_status plan_gpu(planner *pl, weir_memory_plan *made,
                            weir_error *err) {
  weir_program *p = pl->p;
  weir_memory_plan staged;
  weir_lifetime *lives = weir_alloc_array(p->alloc, pl->count, sizeof *lives);
  if (lives == NULL) return weir_fail_memory(err, pl->count * sizeof *lives);
  weir_status s = plan_side(pl, true, lives, &staged, err);
  if (s == WEIR_OK) s = plan_side(pl, false, lives, made, err);
  for (uint32_t i = 0; s == WEIR_OK && i < pl->count; i++)
    if (pl->staged[i]) made->offsets[i] = staged.offsets[i];
  if (s == WEIR_OK) p->staged_bytes = staged.peak_bytes;
  weir_free(p->alloc, lives);
  return s;
}

/* Lets buffers live until all later tasks wait for their users. One that is
 * written over in place stays as it is: its successor lives on instead. */
static weir_status stretch(planner *pl, weir_lifetime *lives, weir_error *err) {
  const weir_program *p = pl->p;
  uint32_t *until = NULL;
  WEIR_TRY(weir_tasks_free_until(p, pl->graph, &until, err));
  memcpy(lives, pl->lives, pl->count * sizeof *lives);
  for (uint32_t i = 0; i < pl->count; i++)
    for (uint32_t u = pl->uses[i]; u != WEIR_NO_INDEX; u = pl->use_next[u]) {
      uint32_t task = until[p->instrs[pl->use_instr[u]].task];
      uint32_t last = p->tasks[task].last - 1;
      if (task != p->instrs[pl->use_instr[u]].task && last > lives[i].last)
        lives[i].last = last;
    }
  for (uint32_t i = 0; i < pl->count; i++) {
    uint32_t of = pl->lives[i].in_place_of;
    if (of != WEIR_MEMORY_NO_BUFFER && pl->lives[of].last == pl->lives[i].first)
      lives[of].last = pl->lives[of].last;
  }
  weir_free(pl->graph->alloc, until);
  return WEIR_OK;
}

/* Memory that tasks which need not wait are worth: 16 MiB or half as much
 * again, within the limit. */
static bool worth_it(size_t stretched, size_t exact, size_t limit) {
  const size_t little = (size_t)16 << 20;
  if (limit > 0 && stretched > limit) return false;
  return stretched <= exact + (exact > little ? exact / 2 : little);
}

/* Plans |pl->lives|, or the stretched ones if that is not much more. */
static weir_status choose(planner *pl, size_t limit, weir_memory_plan *made,
                          weir_error *err) {
  weir_program *p = pl->p;
  const weir_allocator *a = p->alloc;
  weir_memory_plan wide;
  WEIR_TRY(weir_memory_plan_make((weir_lifetimes){pl->lives, pl->count}, 64,
                                 &p->arena, a, made, err));
  if (p->task_count <= 1 || p->task_count > kStretchTasks) return WEIR_OK;
  if (p->stream) return WEIR_OK; /* one at a time anyway */
  weir_lifetime *lives = weir_alloc_array(a, pl->count, sizeof *lives);
  if (lives == NULL) return weir_fail_memory(err, pl->count * sizeof *lives);
  weir_status s = stretch(pl, lives, err);
  if (s == WEIR_OK)
    s = weir_memory_plan_make((weir_lifetimes){lives, pl->count}, 64, &p->arena,
                              a, &wide, err);
  if (s == WEIR_OK && worth_it(wide.peak_bytes, made->peak_bytes, limit)) {
    assert(wide.bound_bytes >= made->bound_bytes); /* lives only grew */
    wide.bound_bytes = made->bound_bytes;
    *made = wide;
    memcpy(pl->lives, lives, pl->count * sizeof *lives);
  }
  weir_free(a, lives);
  return s;
}

static weir_status plan(planner *pl, size_t limit, weir_error *err) {
  weir_program *p = pl->p;
  weir_memory_plan made;
  WEIR_TRY(collect(pl, err));
  WEIR_TRY(p->gpu != NULL ? plan_gpu(pl, &made, err)
                          : choose(pl, limit, &made, err));
  if (limit > 0 && made.peak_bytes > limit)
    return weir_fail(err, WEIR_W6002, NULL,
                     "a run needs %zu bytes, the limit is %zu", made.peak_bytes,
                     limit);
  store(pl, &made);
  if (p->task_count <= 1) return WEIR_OK;
  if (p->gpu == NULL)
    WEIR_TRY(weir_memory_plan_reuses((weir_lifetimes){pl->lives, pl->count},
                                     &made, p->alloc, add_reuse, pl, err));
  /* The planner leaves out buffers made in place, whose other readers must come
   * first too. Empty buffers share nothing, though offsets may be equal. */
  for (uint32_t i = 0; i < pl->count; i++) {
    uint32_t of = pl->lives[i].in_place_of;
    if (of != WEIR_MEMORY_NO_BUFFER && pl->lives[i].bytes > 0 &&
        made.offsets[of] == made.offsets[i])
      add_reuse(pl, of, i);
  }
  return pl->failed ? weir_fail_memory(err, 0) : WEIR_OK;
}

weir_status weir_program_plan_memory(weir_program *p, weir_task_graph *graph,
                                     size_t limit, weir_error *err) {
  const weir_allocator *a = p->alloc;
  planner pl = {.p = p, .graph = graph};
  /* At most a buffer for each value and each instruction's scratch. */
  size_t lives = 0, uses = 0;
  bool sized = weir_size_add(p->value_count, p->instr_count, &lives) &&
               weir_size_add(p->slot_count, p->instr_count, &uses);
  if (!sized) return weir_fail_memory(err, SIZE_MAX);
  pl.lives = weir_alloc_array(a, lives, sizeof *pl.lives);
  pl.met_last = weir_alloc_array(a, p->instr_count, sizeof *pl.met_last);
  pl.staged = weir_alloc_array(a, lives, sizeof *pl.staged);
  pl.writer = weir_alloc_array(a, lives, sizeof *pl.writer);
  pl.uses = weir_alloc_array(a, lives, sizeof *pl.uses);
  pl.value_life = weir_alloc_array(a, p->value_count, sizeof *pl.value_life);
  pl.scratch_life =
      weir_alloc_array(a, p->instr_count, sizeof *pl.scratch_life);
  pl.use_next = weir_alloc_array(a, uses, sizeof *pl.use_next);
  pl.use_instr = weir_alloc_array(a, uses, sizeof *pl.use_instr);
  weir_status s = WEIR_OK;
  if (pl.met_last == NULL || pl.lives == NULL || pl.writer == NULL ||
      pl.staged == NULL || pl.uses == NULL || pl.value_life == NULL ||
      pl.scratch_life == NULL || pl.use_next == NULL || pl.use_instr == NULL)
    s = weir_fail_memory(err, lives * sizeof *pl.lives);
  for (uint32_t v = 0; s == WEIR_OK && v < p->value_count; v++)
    pl.value_life[v] = WEIR_NO_INDEX;
  if (s == WEIR_OK) s = plan(&pl, limit, err);
  weir_free(a, pl.lives);
  weir_free(a, pl.met_last);
  weir_free(a, pl.staged);
  weir_free(a, pl.writer);
  weir_free(a, pl.uses);
  weir_free(a, pl.value_life);
  weir_free(a, pl.scratch_life);
  weir_free(a, pl.use_next);
  weir_free(a, pl.use_instr);
  return s;
}
