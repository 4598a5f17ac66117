/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/gpu/gpu_graph.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/table.h"
#include "runtime/exec/program/program_internal.h"

enum { kMoves = 16 }; /* sets of addresses that came once and never again */

/* Keys are compared one after the other: there are few, of few addresses. */

/* The task's table entries that are externals of queued instructions; counts
 * them where |out| is NULL. */
static uint32_t external_slots(const weir_gpu_task *t, uint32_t *out) {
  const weir_program *p = t->task->frame->program;
  const weir_ptask *task = &p->tasks[t->task->index];
  uint32_t count = 0;
  for (uint32_t i = task->first; i < task->last; i++) {
    const weir_instr_spec *s = &p->instrs[i].spec;
    uint32_t first = p->code[i].io, n = s->in_count + s->out_count;
    for (uint32_t k = first; s->when == WEIR_QUEUED && k < first + n; k++) {
      uint32_t value = p->slot_values[k];
      if (value == WEIR_NO_INDEX ||
          p->values[p->values[value].root].storage != WEIR_STORAGE_EXTERNAL)
        continue;
      if (out != NULL) out[count] = k;
      count++;
    }
  }
  return count;
}

weir_status weir_gpu_graphs_create(weir_gpu_task *t, weir_error *err) {
  const weir_allocator *a = t->task->frame->program->env->alloc;
  uint32_t count = external_slots(t, NULL);
  t->slots = weir_alloc_array(a, (size_t)count + 1, sizeof *t->slots);
  t->graphs = weir_alloc_array(a, WEIR_GPU_GRAPHS, sizeof *t->graphs);
  t->keys = weir_alloc_array(a, WEIR_GPU_GRAPHS * ((size_t)count + 1),
                             sizeof *t->keys);
  if (t->slots == NULL || t->graphs == NULL || t->keys == NULL)
    return weir_fail_memory(err, count * sizeof *t->keys);
  t->slot_count = external_slots(t, t->slots);
  for (uint32_t g = 0; g < WEIR_GPU_GRAPHS; g++)
    t->graphs[g].key = t->keys + g * ((size_t)count + 1);
  return WEIR_OK;
}

void weir_gpu_graph_explain(weir_exec_gpu *g, weir_gpu_queued why,
                            const weir_error *err) {
  static const char *const kWords[] = {
      [WEIR_GPU_TRACED] = "a trace has the time of each node",
      [WEIR_GPU_TRAPS] = "each node's values are looked at for NaN",
      [WEIR_GPU_NO_CAPTURE] = "it keeps none",
      [WEIR_GPU_ASKS] =
          "a while, an if or a scan with a count waits for a "
          "value that decides how it goes on",
      [WEIR_GPU_LONG] = "its loops make more than 20,000 calls",
      [WEIR_GPU_REFUSED] = "it refused to keep one",
      [WEIR_GPU_MOVES] = "its variables have other addresses in each run"};
  WEIR_TABLE_OF(kWords, WEIR_GPU_QUEUED_COUNT);
  char text[600];
  unsigned bit = 1u << why;
  if (why == WEIR_GPU_REPLAYED || g->options->say == NULL ||
      (atomic_fetch_or(&g->said, bit) & bit) != 0)
    return;
  snprintf(text, sizeof text,
           "GPU %d: work is queued call by call, not as a graph: %s%s%.400s",
           (int)g->index, kWords[why], err != NULL ? ": " : "",
           err != NULL ? err->message : "");
  g->options->say(g->options->say_self, text);
}

static void forget(weir_gpu_task *t, weir_gpu_graph *g) {
  weir_device *d = t->task->frame->gpu->gpu->gpu.device;
  if (g->graph != NULL) d->vt->graph_release(d, g->graph);
  g->graph = NULL;
  g->seen = 0;
}

void weir_gpu_graphs_release(weir_gpu_task *t) {
  const weir_allocator *a = t->task->frame->program->env->alloc;
  for (uint32_t g = 0; t->graphs != NULL && g < WEIR_GPU_GRAPHS; g++)
    forget(t, &t->graphs[g]);
  weir_free(a, t->slots);
  weir_free(a, t->graphs);
  weir_free(a, t->keys);
}

static bool is_key(const weir_gpu_task *t, const weir_gpu_graph *g) {
  void *const *table = t->task->frame->table;
  for (uint32_t k = 0; k < t->slot_count; k++)
    if (g->key[k] != table[t->slots[k]]) return false;
  return g->seen > 0;
}

weir_gpu_graph *weir_gpu_graph_find(weir_gpu_task *t) {
  weir_gpu_graph *found = NULL, *oldest = &t->graphs[0];
  for (uint32_t g = 0; g < WEIR_GPU_GRAPHS && found == NULL; g++) {
    if (t->graphs[g].used < oldest->used) oldest = &t->graphs[g];
    if (is_key(t, &t->graphs[g])) found = &t->graphs[g];
  }
  if (found == NULL) {
    found = oldest;
    if (found->seen == 1 && ++t->moves >= kMoves)
      weir_gpu_graph_explain(t->task->frame->gpu->gpu, WEIR_GPU_MOVES, NULL);
    forget(t, found);
    for (uint32_t k = 0; k < t->slot_count; k++)
      found->key[k] = t->task->frame->table[t->slots[k]];
  }
  found->seen++;
  found->used = ++t->clock;
  return found;
}
