/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/tasks_stream.h"

#include <assert.h>
#include <string.h>

#include "runtime/exec/program/program_internal.h"
#include "runtime/exec/program/tasks.h"

/* Tasks of a device: a stream.
 *
 * Instructions run one after the other in the order given, as they do in the
 * plan. Sends, receives and collectives are tasks beside the stream: a send
 * begins when its maker has ended, a receive when its memory is free, wherever
 * they stand: their places say only how long memory is theirs. So the stream is
 * cut into tasks, each waiting for the one before, behind a value that is sent
 * and where a received one is read for the first time.
 *
 * A GPU reads what is received by a copy into its memory. That copy is put off
 * to its first reader: where it stands, behind the receive, the stream would
 * wait for other ranks of a collective, which may be this stream's next work.
 *
 * Invariant: edges go from lower to higher tasks, the stream's own tasks are a
 * chain, and tasks keep the order of the instructions: ends of copies rely on
 * it (compile_parts.c). Cost: O(instructions + operands). */

typedef struct streamer {
  weir_program *p;
  weir_task_graph *graph;
  uint32_t *producer;    /* per value root: its instruction + 1 */
  uint32_t *order;       /* instructions as they stand */
  bool *sent;            /* per instruction: a send waits for it */
  bool *put_off;         /* per instruction: a copy that nothing has read yet */
  uint32_t *task_of;     /* per instruction */
  bool *async, *awaited; /* per task */
  uint32_t count;        /* of tasks */
  uint32_t current;      /* the stream's newest task */
  bool closed;
} streamer;

/* The instruction that |s| waits for by operand or `after` |k|; + 1. */
static uint32_t dep_of(const streamer *f, const weir_instr_spec *s,
                       uint32_t k) {
  if (k >= s->in_count) return s->after[k - s->in_count] + 1;
  if (s->in[k] == WEIR_NO_INDEX) return 0;
  return f->producer[f->p->values[s->in[k]].root];
}

static void note_producer(streamer *f, uint32_t i) {
  const weir_instr_spec *s = &f->p->instrs[i].spec;
  for (uint32_t k = 0; k < s->out_count; k++)
    if (s->out[k] != WEIR_NO_INDEX)
      f->producer[f->p->values[s->out[k]].root] = i + 1;
}

static void find_sends(streamer *f) {
  const weir_program *p = f->p;
  for (uint32_t i = 0; i < p->instr_count; i++) {
    const weir_instr_spec *s = &p->instrs[i].spec;
    note_producer(f, i);
    for (uint32_t k = 0; s->async && k < s->in_count + s->after_count; k++)
      if (dep_of(f, s, k) != 0) f->sent[dep_of(f, s, k) - 1] = true;
  }
}

/* Whether |s| copies what an async instruction has received. */
static bool is_copy_in(const streamer *f, const weir_instr_spec *s) {
  if (s->kind != WEIR_INSTR_COPY || s->async || s->in_count != 1) return false;
  uint32_t made = dep_of(f, s, 0);
  return made != 0 && f->p->instrs[made - 1].spec.async;
}

/* Fills |order|. A copy that nothing reads comes last. */
static void find_order(streamer *f) {
  const weir_program *p = f->p;
  uint32_t at = 0;
  for (uint32_t i = 0; i < p->instr_count; i++) {
    const weir_instr_spec *s = &p->instrs[i].spec;
    f->put_off[i] = is_copy_in(f, s);
    for (uint32_t k = 0; k < s->in_count + s->after_count; k++) {
      uint32_t made = dep_of(f, s, k);
      if (made == 0 || !f->put_off[made - 1]) continue;
      f->put_off[made - 1] = false;
      f->order[at++] = made - 1;
    }
    if (!f->put_off[i]) f->order[at++] = i;
  }
  for (uint32_t i = 0; i < p->instr_count; i++)
    if (f->put_off[i]) f->order[at++] = i;
  assert(at == p->instr_count);
}

static bool add_edge(streamer *f, uint32_t from, uint32_t to) {
  assert(from < to && to < f->count);
  weir_task_edge edge = {from, to};
  return weir_vec_push(f->graph->alloc, &f->graph->edges, edge);
}

/* A send, receive or collective is a task. It waits for the stream's task that
 * makes its value, which is closed behind it: more work would delay the send.
 */
static bool assign_async(streamer *f, const weir_instr_spec *s,
                         uint32_t *task) {
  *task = f->count++;
  f->async[*task] = true;
  for (uint32_t k = 0; k < s->in_count + s->after_count; k++) {
    uint32_t made = dep_of(f, s, k);
    if (made == 0) continue;
    uint32_t from = f->task_of[made - 1];
    if (!add_edge(f, from, *task)) return false;
  }
  return true;
}

/* Other instructions join the current task, unless it is closed or they read
 * something received that the stream has not waited for: then the tasks so far
 * must not wait for it too. */
static bool assign_stream(streamer *f, const weir_instr_spec *s,
                          uint32_t *task) {
  uint32_t deps = s->in_count + s->after_count;
  bool fresh = f->current == WEIR_NO_INDEX || f->closed;
  for (uint32_t k = 0; k < deps && !fresh; k++) {
    uint32_t made = dep_of(f, s, k);
    uint32_t from = made != 0 ? f->task_of[made - 1] : WEIR_NO_INDEX;
    fresh = made != 0 && f->async[from] && !f->awaited[from];
  }
  if (fresh) {
    uint32_t before = f->current;
    f->current = f->count++;
    f->closed = false;
    if (before != WEIR_NO_INDEX && !add_edge(f, before, f->current))
      return false;
  }
  for (uint32_t k = 0; k < deps; k++) {
    uint32_t made = dep_of(f, s, k);
    if (made == 0) continue;
    uint32_t from = f->task_of[made - 1];
    if (!f->async[from] || f->awaited[from]) continue;
    f->awaited[from] = true;
    if (!add_edge(f, from, f->current)) return false;
  }
  *task = f->current;
  return true;
}

/* |awaited| is one flag for the whole stream: if one of its tasks waits for an
 * async task, all later ones do, through the chain. */
static bool assign(streamer *f) {
  const weir_program *p = f->p;
  f->current = WEIR_NO_INDEX;
  for (uint32_t at = 0; at < p->instr_count; at++) {
    uint32_t i = f->order[at];
    const weir_instr_spec *s = &p->instrs[i].spec;
    if (!(s->async ? assign_async(f, s, &f->task_of[i])
                   : assign_stream(f, s, &f->task_of[i])))
      return false;
    if (f->sent[i] || s->async) f->closed = true;
  }
  return true;
}

weir_status weir_tasks_form_stream(weir_program *p, weir_task_graph *graph,
                                   weir_error *err) {
  const weir_allocator *a = graph->alloc;
  size_t n = (size_t)p->instr_count + 1;
  streamer f = {.p = p, .graph = graph};
  f.producer =
      weir_alloc_array(a, (size_t)p->value_count + 1, sizeof *f.producer);
  f.order = weir_alloc_array(a, n, sizeof *f.order);
  f.sent = weir_alloc_array(a, n, sizeof *f.sent);
  f.put_off = weir_alloc_array(a, n, sizeof *f.put_off);
  f.task_of = weir_alloc_array(a, n, sizeof *f.task_of);
  f.async = weir_alloc_array(a, n, sizeof *f.async);
  f.awaited = weir_alloc_array(a, n, sizeof *f.awaited);
  bool ok = f.producer != NULL && f.order != NULL && f.sent != NULL &&
            f.put_off != NULL && f.task_of != NULL && f.async != NULL &&
            f.awaited != NULL;
  if (ok) {
    find_sends(&f);
    find_order(&f);
    ok = assign(&f) && weir_tasks_lay(p, f.order, f.task_of, f.async, f.count);
  }
  weir_free(a, f.producer);
  weir_free(a, f.order);
  weir_free(a, f.sent);
  weir_free(a, f.put_off);
  weir_free(a, f.task_of);
  weir_free(a, f.async);
  weir_free(a, f.awaited);
  return ok ? WEIR_OK : weir_fail_memory(err, n * sizeof *f.order);
}
