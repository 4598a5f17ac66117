/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runtime/dist/task/task_internal.h"

/* The state of a task, for those who only look at it, and for front.h. */

static Weir__V1__TaskPhase phase_of(const weir_task_session *s) {
  if (s->phase == WEIR_PHASE_FATE) return WEIR__V1__TASK_PHASE__DECIDING;
  return s->phase == WEIR_PHASE_ENDING ? WEIR__V1__TASK_PHASE__ENDING
                                       : WEIR__V1__TASK_PHASE__SERVING;
}

static void add_programs(const weir_task_session *s, weir_task_state *out) {
  for (size_t i = 0; i < WEIR_TASK_PROGRAMS; i++) {
    const weir_task_program *p = &s->programs[i];
    if (p->state != WEIR_PROGRAM_READY || out->held_count == WEIR_TASK_HELD)
      continue;
    out->held[out->held_count++] =
        (weir_task_held){p->number, p->graph_hash, p->memory_bytes};
  }
}

/* Of several sessions the one that serves counts, the first of those. */
void weir_task_describe(const weir_task *task, weir_task_state *out) {
  const weir_task_session *s = task->session;
  if (s == NULL) return;
  bool first = out->phase == WEIR__V1__TASK_PHASE__FREE ||
               (out->phase != WEIR__V1__TASK_PHASE__SERVING &&
                phase_of(s) == WEIR__V1__TASK_PHASE__SERVING);
  if (first) {
    out->phase = phase_of(s);
    out->epoch = s->epoch;
    out->tasks = s->count;
    snprintf(out->share, sizeof out->share, "%s", s->share);
  }
  if (s->driver != NULL && out->driver_count < WEIR_TURNS_TASKS)
    snprintf(out->drivers[out->driver_count++], WEIR_NET_ADDRESS_BYTES, "%s",
             s->driver->address);
  out->steps += s->steps.count;
  if (s->committed > out->committed) out->committed = s->committed;
  add_programs(s, out);
}

/* ---- For front.h */

static bool same_job(const uint8_t *a, const uint8_t *b) {
  return memcmp(a, b, WEIR_JOB_ID_BYTES) == 0;
}

bool weir_task_is_of(const weir_task *task, const uint8_t *job_id) {
  return task->session != NULL && same_job(task->session->job_id, job_id);
}

bool weir_task_has_served(const weir_task *task, const uint8_t *job_id) {
  for (size_t i = 0; i < task->fences.count; i++)
    if (same_job(task->fences.items[i].job_id, job_id)) return true;
  return false;
}

bool weir_task_knows(const weir_task *task, const uint8_t *job_id,
                     uint64_t epoch) {
  if (weir_task_is_of(task, job_id) && task->session->epoch == epoch)
    return true;
  for (size_t i = 0; i < WEIR_TASK_PASTS; i++)
    if (task->pasts[i] != NULL && task->pasts[i]->epoch == epoch &&
        same_job(task->pasts[i]->job_id, job_id))
      return true;
  return false;
}

bool weir_task_fits(const weir_task *task, const Weir__V1__Begin *begin) {
  const weir_task_session *s = task->session;
  if (begin->share[0] == '\0' || strcmp(begin->share, s->share) != 0 ||
      begin->n_tasks != s->count || begin->index != s->self)
    return false;
  for (uint32_t i = 0; i < s->count; i++)
    if (begin->tasks[i]->index != s->places[i].index ||
        strcmp(begin->tasks[i]->job, s->places[i].job) != 0)
      return false;
  return true;
}

bool weir_task_is_active(const weir_task *task) {
  return task->session != NULL && task->session->phase == WEIR_PHASE_ACTIVE;
}

const char *weir_task_driver_address(const weir_task *task) {
  const weir_task_session *s = task->session;
  return s != NULL && s->driver != NULL ? s->driver->address : "";
}
