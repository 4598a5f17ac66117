/* SPDX-License-Identifier: Apache-2.0 */
/* Variables that tasks read from a checkpoint.
 *
 * Each task gets the rows of the variables that its session has a value of, as
 * a set would bring them to it (cluster_vars.c). A variable counts as loaded
 * when all its tasks have read it; the others are left to the caller. */
#include "runtime/dist/cluster/cluster_load.h"

#include <string.h>

#include "runtime/base/diag/diag.h"
#include "runtime/dist/cluster/cluster_ask.h"
#include "runtime/dist/cluster/cluster_turn.h"
#include "runtime/dist/cluster/cluster_vars.h"

typedef struct loading {
  weir_dist_session *session;
  const weir_remote_row *rows;
  uint32_t count;
  Weir__V1__CheckpointFolder folder;
  char **files; /* each name once */
  uint32_t file_count;
  uint32_t *file_of; /* per row */
  weir_dist_ask *asks;
  uint32_t ask_count;
  weir_arena arena;
} loading;

/* Rows of one file mostly stand together. */
static weir_status find_files(loading *l, weir_error *err) {
  l->files = weir_arena_array(&l->arena, l->count + 1u, sizeof *l->files);
  l->file_of = weir_arena_array(&l->arena, l->count + 1u, sizeof(uint32_t));
  if (l->files == NULL || l->file_of == NULL)
    return weir_fail_memory(err, l->count * sizeof *l->files);
  for (uint32_t i = 0; i < l->count; i++) {
    uint32_t f = l->file_count;
    while (f > 0 && strcmp(l->files[f - 1], l->rows[i].file) != 0) f--;
    if (f == 0) {
      l->files[l->file_count++] = (char *)(uintptr_t)l->rows[i].file;
      f = l->file_count;
    }
    l->file_of[i] = f - 1;
  }
  return WEIR_OK;
}

static weir_status rows_at(loading *l, uint32_t place,
                           Weir__V1__CheckpointRead *body, weir_error *err) {
  Weir__V1__CheckpointRow *rows =
      weir_arena_array(&l->arena, l->count + 1u, sizeof *rows);
  body->rows = weir_arena_array(&l->arena, l->count + 1u, sizeof *body->rows);
  if (rows == NULL || body->rows == NULL)
    return weir_fail_memory(err, l->count * sizeof *rows);
  for (uint32_t i = 0; i < l->count; i++) {
    const weir_dist_variable *v =
        weir_dist_variable_of(l->session, l->rows[i].node);
    if (v == NULL)
      return weir_fail(err, WEIR_W0004, NULL, "node %u is no variable",
                       l->rows[i].node);
    if (!weir_dist_goes_to(v, place)) continue;
    Weir__V1__CheckpointRow *row = &rows[body->n_rows];
    *row = (Weir__V1__CheckpointRow)WEIR__V1__CHECKPOINT_ROW__INIT;
    row->node = l->rows[i].node;
    row->file = l->file_of[i];
    row->offset = l->rows[i].offset;
    row->crc32c = l->rows[i].crc;
    body->rows[body->n_rows++] = row;
  }
  return WEIR_OK;
}

static weir_status make_asks(loading *l, weir_error *err) {
  uint32_t tasks = l->session->dist->options.task_count;
  Weir__V1__CheckpointRead *bodies =
      weir_arena_array(&l->arena, tasks, sizeof *bodies);
  l->asks = weir_arena_array(&l->arena, tasks, sizeof *l->asks);
  if (bodies == NULL || l->asks == NULL)
    return weir_fail_memory(err, tasks * sizeof *bodies);
  for (uint32_t t = 0; t < tasks; t++) {
    Weir__V1__CheckpointRead *body = &bodies[l->ask_count];
    *body = (Weir__V1__CheckpointRead)WEIR__V1__CHECKPOINT_READ__INIT;
    WEIR_TRY(rows_at(l, t, body, err));
    if (body->n_rows == 0) continue;
    body->program = l->session->program;
    body->folder = &l->folder;
    body->files = l->files;
    body->n_files = l->file_count;
    weir_dist_ask *a = &l->asks[l->ask_count++];
    *a = (weir_dist_ask){.place = t, .number = &body->request};
    a->message = (Weir__V1__Control)WEIR__V1__CONTROL__INIT;
    a->message.body_case = WEIR__V1__CONTROL__BODY_CHECKPOINT_READ;
    a->message.checkpoint_read = body;
    a->warnings = weir_arena_array(&l->arena, WEIR_DIST_ASK_WARNINGS,
                                   sizeof *a->warnings);
    if (a->warnings == NULL) return weir_fail_memory(err, 1);
  }
  return WEIR_OK;
}

/* Marks what was loaded, and what is left. */
static void take_answers(const loading *l, bool *left) {
  for (uint32_t i = 0; i < l->count; i++) left[i] = false;
  for (uint32_t k = 0; k < l->ask_count; k++)
    for (uint32_t i = 0; l->asks[k].apart && i < l->count; i++)
      left[i] |= weir_dist_goes_to(
          weir_dist_variable_of(l->session, l->rows[i].node), l->asks[k].place);
  for (uint32_t i = 0; i < l->count; i++) {
    weir_dist_variable *v = weir_dist_variable_of(l->session, l->rows[i].node);
    if (left[i]) continue;
    v->set = true;
    for (uint32_t t = 0; t < l->session->dist->options.task_count; t++)
      v->has[t] = weir_dist_goes_to(v, t);
  }
}

/* A variable that several tasks have is warned of once. */
static void warn(const loading *l, const weir_diag_sink *sink) {
  for (uint32_t k = 0; sink != NULL && k < l->ask_count; k++)
    for (size_t i = 0; i < l->asks[k].warning_count; i++) {
      bool said = false;
      const weir_error *w = &l->asks[k].warnings[i];
      for (uint32_t j = 0; j < k; j++)
        for (size_t n = 0; n < l->asks[j].warning_count; n++)
          said |= strcmp(l->asks[j].warnings[n].message, w->message) == 0;
      if (!said) weir_diag_warn(sink, w);
    }
}

/* In a turn, with |preparing|. */
static weir_status load_now(loading *l, bool *out_left, weir_error *err) {
  weir_dist_session *s = l->session;
  weir_dist_gate_enter(&s->dist->gate, true);
  pthread_mutex_lock(&s->moment);
  weir_status status = find_files(l, err);
  if (status == WEIR_OK) status = make_asks(l, err);
  if (status == WEIR_OK)
    status = weir_dist_ask_all(s->dist, l->asks, l->ask_count, err);
  if (status == WEIR_OK) take_answers(l, out_left);
  pthread_mutex_unlock(&s->moment);
  weir_dist_gate_leave(&s->dist->gate, true);
  return status;
}

static weir_status load(loading *l, bool *out_left, const weir_diag_sink *sink,
                        weir_error *err) {
  weir_dist_session *s = l->session;
  weir_driver_turn turn = {0};
  pthread_mutex_lock(&s->preparing);
  weir_status status = weir_dist_turn_enter(s, true, NULL, &turn, err);
  if (status == WEIR_OK) {
    status = weir_dist_turn_check_alone(s, &turn, err);
    if (status == WEIR_OK) status = load_now(l, out_left, err);
    weir_dist_turn_leave(s, false);
  }
  pthread_mutex_unlock(&s->preparing);
  if (status == WEIR_OK) warn(l, sink);
  return status;
}

weir_status weir_dist_load(weir_remote *remote,
                           const struct weir_checkpoint_common *place,
                           const weir_remote_row *rows, uint32_t count,
                           bool *out_left, const struct weir_diag_sink *sink,
                           weir_error *err) {
  loading l = {
      .session = (weir_dist_session *)remote, .rows = rows, .count = count};
  for (uint32_t i = 0; i < count; i++) out_left[i] = true;
  if (!weir_dist_can_tell(place, &l.folder)) return WEIR_OK;
  weir_arena_init(&l.arena, l.session->dist->env->alloc);
  weir_status s = load(&l, out_left, sink, err);
  weir_arena_release(&l.arena);
  return s;
}
