/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/tasks.h"

#include <assert.h>
#include <string.h>

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/program/tasks_stream.h"

/* Tasks: which instructions one thread does in order.
 *
 * A costly instruction starts a task of its own. A cheap one joins the latest
 * task it depends on, if that task waits for all else it needs anyway, so that
 * it runs in the thread that made it ready; if not, it joins the newest cheap
 * task or starts one. Edges go from lower to higher task numbers always, so
 * there is no cycle. A program of little work is one task.
 *
 * Cost: the rows of |above| answer in constant time whether one task waits for
 * another; they take kMaxTasks^2 / 8 bytes, 2 MiB, and an edge takes
 * kMaxTasks / 64 steps. Hence the limit on tasks: a program that would have
 * more is cut again with a grain four times as large. */

enum { kMaxTasks = 4096, kDefaultGrainNs = 10000 };

typedef struct former {
  weir_program *p;
  weir_task_graph *graph;
  int64_t grain_ns;
  uint32_t *producer; /* per value root: its instruction + 1 */
  uint32_t *task_of;  /* per instruction */
  int64_t *cheap_ns;  /* per task: time of cheap instructions in it */
  bool *async;        /* per task */
  uint64_t *above;    /* per task a row of bits: tasks it waits for */
  uint32_t count;     /* of tasks */
  size_t row;         /* words */
  uint32_t *deps;     /* tasks the instruction depends on */
  uint32_t dep_count, dep_capacity;
} former;

static bool waits_for(const former *f, uint32_t task, uint32_t other) {
  return task == other ||
         (f->above[task * f->row + other / 64] >> (other % 64) & 1) != 0;
}

/* Looks for a duplicate among the first 16 only: more are harmless, because
 * weir_tasks_link keeps each edge once. */
static void add_dep(former *f, uint32_t instr) {
  assert(instr < f->p->instr_count);
  uint32_t task = f->task_of[instr];
  for (uint32_t i = 0; i < f->dep_count && i < 16; i++)
    if (f->deps[i] == task) return;
  if (f->dep_count < f->dep_capacity) f->deps[f->dep_count++] = task;
}

static void find_deps(former *f, uint32_t i) {
  const weir_program *p = f->p;
  const weir_instr_spec *s = &p->instrs[i].spec;
  f->dep_count = 0;
  for (uint32_t k = 0; k < s->in_count; k++) {
    if (s->in[k] == WEIR_NO_INDEX) continue;
    uint32_t made = f->producer[p->values[s->in[k]].root];
    if (made != 0) add_dep(f, made - 1);
  }
  for (uint32_t k = 0; k < s->after_count; k++)
    if (s->after[k] < i) add_dep(f, s->after[k]);
}

/* Whether an instruction with these dependencies adds no wait to |task|. */
static bool serves(const former *f, uint32_t task) {
  for (uint32_t i = 0; i < f->dep_count; i++)
    if (!waits_for(f, task, f->deps[i])) return false;
  return true;
}

/* The task a cheap instruction may join, or none. Cheap work stops joining at
 * two grains, so that tasks stay small enough to be spread over threads. */
static uint32_t host_of(const former *f) {
  uint32_t latest = WEIR_NO_INDEX;
  for (uint32_t i = 0; i < f->dep_count; i++)
    if (latest == WEIR_NO_INDEX || f->deps[i] > latest) latest = f->deps[i];
  uint32_t tries[2] = {latest, f->count > 0 ? f->count - 1 : WEIR_NO_INDEX};
  for (int t = 0; t < 2; t++)
    if (tries[t] != WEIR_NO_INDEX && !f->async[tries[t]] &&
        f->cheap_ns[tries[t]] < 2 * f->grain_ns && serves(f, tries[t]))
      return tries[t];
  return WEIR_NO_INDEX;
}

static bool depend(former *f, uint32_t task) {
  for (uint32_t i = 0; i < f->dep_count; i++) {
    uint32_t from = f->deps[i];
    if (from == task) continue;
    assert(from < task && task < f->count);
    weir_task_edge edge = {from, task};
    if (!weir_vec_push(f->graph->alloc, &f->graph->edges, edge)) return false;
    uint64_t *row = f->above + task * f->row;
    for (size_t w = 0; w < f->row; w++) row[w] |= f->above[from * f->row + w];
    row[from / 64] |= (uint64_t)1 << (from % 64);
  }
  return true;
}

/* Gives every instruction its task; false when there are too many tasks (then
 * |*too_many|) or no memory. */
static bool assign(former *f, bool *too_many) {
  weir_program *p = f->p;
  *too_many = false;
  for (uint32_t i = 0; i < p->instr_count; i++) {
    const weir_instr_spec *s = &p->instrs[i].spec;
    bool cheap = s->cost_ns < f->grain_ns && !s->async;
    find_deps(f, i);
    uint32_t task = cheap ? host_of(f) : WEIR_NO_INDEX;
    if (task == WEIR_NO_INDEX) {
      if (f->count == kMaxTasks) {
        *too_many = true;
        return false;
      }
      task = f->count++;
      f->async[task] = s->async;
    }
    if (cheap) f->cheap_ns[task] += s->cost_ns;
    f->task_of[i] = task;
    if (!depend(f, task)) return false;
    for (uint32_t k = 0; k < s->out_count; k++)
      if (s->out[k] != WEIR_NO_INDEX)
        f->producer[p->values[s->out[k]].root] = i + 1;
  }
  return true;
}

static void reset(former *f) {
  memset(f->producer, 0, f->p->value_count * sizeof *f->producer);
  memset(f->cheap_ns, 0, kMaxTasks * sizeof *f->cheap_ns);
  memset(f->above, 0, kMaxTasks * f->row * sizeof *f->above);
  f->graph->edges.count = 0;
  f->count = 0;
}

bool weir_tasks_lay(weir_program *p, const uint32_t *order,
                    const uint32_t *task_of, const bool *async,
                    uint32_t count) {
  weir_ptask *tasks = weir_arena_array(&p->arena, count, sizeof *tasks);
  weir_instr *sorted =
      weir_arena_array(&p->arena, p->instr_count, sizeof *sorted);
  uint32_t *place = weir_arena_array(&p->arena, p->instr_count, sizeof *place);
  if (tasks == NULL || sorted == NULL || place == NULL) return false;
  for (uint32_t i = 0; i < p->instr_count; i++) tasks[task_of[i]].last++;
  uint32_t first = 0;
  for (uint32_t t = 0; t < count; t++) {
    uint32_t n = tasks[t].last;
    tasks[t].first = tasks[t].last = first;
    tasks[t].async = async[t];
    first += n;
  }
  assert(first == p->instr_count);
  for (uint32_t at = 0; at < p->instr_count; at++) {
    uint32_t i = order != NULL ? order[at] : at, t = task_of[i];
    p->instrs[i].task = t;
    place[i] = tasks[t].last++;
    sorted[place[i]] = p->instrs[i];
  }
  /* What it names may have been put off behind it: then it is its own. */
  for (uint32_t i = 0; i < p->instr_count; i++) {
    uint32_t *from = &sorted[i].spec.room_from;
    if (*from != 0) *from = place[*from - 1] < i ? place[*from - 1] + 1 : 0;
  }
  p->instrs = sorted;
  p->tasks = tasks;
  p->task_count = count;
  return true;
}

static bool form_many(former *f) {
  const weir_allocator *a = f->graph->alloc;
  weir_program *p = f->p;
  f->row = kMaxTasks / 64;
  f->producer = weir_alloc_array(a, p->value_count, sizeof *f->producer);
  f->task_of = weir_alloc_array(a, p->instr_count, sizeof *f->task_of);
  f->cheap_ns = weir_alloc_array(a, kMaxTasks, sizeof *f->cheap_ns);
  f->async = weir_alloc_array(a, kMaxTasks, sizeof *f->async);
  f->above = weir_alloc_array(a, kMaxTasks * f->row, sizeof *f->above);
  f->dep_capacity = 0;
  for (uint32_t i = 0; i < p->instr_count; i++) {
    uint32_t n = p->instrs[i].spec.in_count + p->instrs[i].spec.after_count;
    if (n > f->dep_capacity) f->dep_capacity = n;
  }
  f->deps = weir_alloc_array(a, f->dep_capacity, sizeof *f->deps);
  bool ok = f->producer != NULL && f->task_of != NULL && f->cheap_ns != NULL &&
            f->async != NULL && f->above != NULL && f->deps != NULL;
  bool too_many = ok;
  while (ok && too_many) {
    reset(f);
    ok = assign(f, &too_many) || too_many;
    f->grain_ns *= 4; /* coarser, until they are few enough; this ends, since
                         async tasks alone are fewer than half of the limit */
  }
  ok = ok && weir_tasks_lay(p, NULL, f->task_of, f->async, f->count);
  weir_free(a, f->producer);
  weir_free(a, f->task_of);
  weir_free(a, f->cheap_ns);
  weir_free(a, f->async);
  weir_free(a, f->above);
  weir_free(a, f->deps);
  return ok;
}

static bool form_one(weir_program *p) {
  weir_ptask *task = weir_arena_array(&p->arena, 1, sizeof *task);
  if (task == NULL) return false;
  task->last = p->instr_count;
  p->tasks = task;
  p->task_count = p->instr_count > 0 ? 1 : 0;
  return true;
}

weir_status weir_tasks_form(weir_program *p,
                            const weir_program_options *options,
                            weir_task_graph *graph, weir_error *err) {
  p->stream = options->stream;
  p->body = options->body;
  int64_t grain_ns =
      options->grain_ns > 0 ? options->grain_ns : kDefaultGrainNs;
  p->brief = p->stream && p->cost_ns < 2 * grain_ns && !p->comm && !p->any_time;
  if (p->stream) return weir_tasks_form_stream(p, graph, err);
  former f = {.p = p, .graph = graph, .grain_ns = grain_ns};
  uint32_t async = 0;
  for (uint32_t i = 0; i < p->instr_count; i++)
    async += p->instrs[i].spec.async;
  if (async >= kMaxTasks / 2) /* each may have a cheap task beside it */
    return weir_fail(err, WEIR_W6003, NULL,
                     "%u sends, receives and collectives in one program, at "
                     "most %d",
                     async, kMaxTasks / 2 - 1);
  p->cheap = p->cost_ns < 2 * grain_ns && !p->comm;
  /* Ends of one channel in one task would wait for each other for ever. */
  bool shares = !options->one_task && !p->cheap && p->threads > 1;
  bool many = !options->body && (async > 0 || shares);
  if (many ? form_many(&f) : form_one(p)) return WEIR_OK;
  return weir_fail_memory(err, 0);
}

weir_status weir_tasks_link(weir_program *p, weir_task_graph *graph,
                            weir_error *err) {
  size_t n = graph->edges.count;
  uint32_t *next = weir_arena_array(&p->arena, n, sizeof *next);
  uint32_t *seen = weir_alloc_array(graph->alloc, p->task_count, sizeof *seen);
  if (next == NULL || seen == NULL) {
    weir_free(graph->alloc, seen);
    return weir_fail_memory(err, n * sizeof *next);
  }
  for (size_t i = 0; i < n; i++) {
    assert(graph->edges.items[i].from < p->task_count);
    assert(graph->edges.items[i].to < p->task_count);
    assert(graph->edges.items[i].from != graph->edges.items[i].to);
    p->tasks[graph->edges.items[i].from].next_count++;
  }
  uint32_t *at = next;
  for (uint32_t t = 0; t < p->task_count; t++) {
    p->tasks[t].next = at;
    at += p->tasks[t].next_count;
    p->tasks[t].next_count = 0;
  }
  for (size_t i = 0; i < n; i++) {
    weir_ptask *from = &p->tasks[graph->edges.items[i].from];
    next[(from->next - next) + from->next_count++] = graph->edges.items[i].to;
  }
  /* Each edge once. */
  for (uint32_t t = 0; t < p->task_count; t++) {
    weir_ptask *task = &p->tasks[t];
    uint32_t kept = 0, *to = next + (task->next - next);
    for (uint32_t k = 0; k < task->next_count; k++) {
      if (seen[to[k]] == t + 1) continue;
      seen[to[k]] = t + 1;
      to[kept++] = to[k];
      p->tasks[to[kept - 1]].waits++;
    }
    task->next_count = kept;
  }
  weir_free(graph->alloc, seen);
  return WEIR_OK;
}
