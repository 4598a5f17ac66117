/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/exec/program/program_parallel.h"

#include <assert.h>

#include "runtime/exec/program/program_internal.h"

/* Lifetimes for work that runs side by side.
 *
 * Reusing memory between tasks that do not wait for each other makes them wait.
 * So a buffer may live on until every later task waits for all tasks that use
 * it: then its reuse asks for nothing new.
 *
 * The tasks that a task waits for are the union of its predecessors' sets, one
 * pass over tasks in order, since edges go upwards. Sets are rows of bits:
 * tasks^2 / 8 bytes, edges * tasks / 64 steps. */

typedef struct reach {
  uint64_t *above; /* per task a row of bits: the tasks it waits for */
  size_t row;
  uint32_t *order, *first; /* edges by their upper end */
  uint32_t *until;         /* per task: the last one that need not wait */
} reach;

/* A counting sort by the upper end; |first| is one place ahead while it counts.
 */
static void sort_edges(const weir_program *p, const weir_task_graph *graph,
                       reach *r) {
  size_t n = graph->edges.count;
  for (size_t i = 0; i < n; i++) r->first[graph->edges.items[i].to + 1]++;
  for (uint32_t t = 0; t < p->task_count; t++) r->first[t + 1] += r->first[t];
  for (size_t i = n; i-- > 0;) {
    uint32_t to = graph->edges.items[i].to;
    r->order[--r->first[to + 1]] = graph->edges.items[i].from;
  }
  /* Each entry now stands at its own start, one place too high. */
  for (uint32_t t = 0; t < p->task_count; t++) r->first[t] = r->first[t + 1];
  r->first[p->task_count] = (uint32_t)n;
}

static void close_over(const weir_program *p, reach *r) {
  for (uint32_t t = 0; t < p->task_count; t++) {
    uint64_t *row = r->above + t * r->row;
    for (uint32_t e = r->first[t]; e < r->first[t + 1]; e++) {
      uint32_t from = r->order[e];
      assert(from < t); /* so its row is complete */
      const uint64_t *other = r->above + from * r->row;
      for (size_t w = 0; w < r->row; w++) row[w] |= other[w];
      row[from / 64] |= (uint64_t)1 << (from % 64);
    }
  }
  for (uint32_t t = 0; t < p->task_count; t++) {
    uint32_t u = p->task_count - 1;
    while (u > t && (r->above[u * r->row + t / 64] >> (t % 64) & 1) != 0) u--;
    r->until[t] = u;
  }
}

weir_status weir_tasks_free_until(const weir_program *p,
                                  const weir_task_graph *graph,
                                  uint32_t **out_until, weir_error *err) {
  const weir_allocator *a = graph->alloc;
  reach r = {.row = (p->task_count + 63) / 64};
  *out_until = NULL;
  r.above = weir_alloc_array(a, p->task_count * r.row, sizeof *r.above);
  r.order = weir_alloc_array(a, graph->edges.count, sizeof *r.order);
  r.first = weir_alloc_array(a, (size_t)p->task_count + 2, sizeof *r.first);
  r.until = weir_alloc_array(a, p->task_count, sizeof *r.until);
  bool ok =
      r.above != NULL && r.order != NULL && r.first != NULL && r.until != NULL;
  if (ok) {
    sort_edges(p, graph, &r);
    close_over(p, &r);
    *out_until = r.until;
  } else {
    weir_free(a, r.until);
  }
  weir_free(a, r.above);
  weir_free(a, r.order);
  weir_free(a, r.first);
  return ok ? WEIR_OK : weir_fail_memory(err, p->task_count * r.row);
}
