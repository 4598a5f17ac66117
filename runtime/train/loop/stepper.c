/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/stepper.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session_run.h"
#include "runtime/train/data/data_open.h"

/* A session run on batches. A binding is made for a shape, so each shape of
 * batch has a lane: a binding with tensors of its own, into which batches are
 * copied. A copy costs little beside a step, and a binding to the batch's
 * memory would have to be made for each prefetched slot. Four lanes, the least
 * recently used goes: full batches and the last one of an epoch take two. */

enum { LANES = 4 };

/* One shape of batch: its binding, its inputs, its outputs. */
typedef struct lane {
  weir_binding *binding;
  weir_exec_feed *feeds; /* of columns, then given ones; references */
  weir_exec_fetch *fetches;
  uint64_t used; /* when, for LRU */
} lane;

/* An input and the column that feeds it. */
typedef struct source {
  weir_value_id value;
  uint32_t column;
} source;

struct weir_stepper {
  const weir_allocator *alloc;
  weir_exec_session *session;
  const weir_graph *graph;
  const weir_dataset *data;
  weir_sv section;
  weir_arena arena;
  weir_value_id *fetches;
  weir_node_id *targets;
  source *sources;
  weir_exec_feed *given; /* the last is |rows|, if there is one */
  weir_value_id rows;
  weir_tensor *row_count; /* fed to it */
  weir_tensor **into;
  uint32_t fetch_count, target_count, source_count, given_count;
  lane lanes[LANES];
  lane *last;
  uint64_t clock;
};

/* ---- Columns and inputs */

static weir_status misfit(const weir_stepper *s, const weir_graph_port *input,
                          weir_dtype dtype, const weir_shape *shape,
                          weir_error *err) {
  char want[192], got[128];
  weir_graph_type_text(s->graph, input->value, want, sizeof want);
  weir_shape_print(shape, NULL, NULL, got, sizeof got);
  weir_status status = weir_fail(
      err, WEIR_W5021, &input->mark,
      "data %.*s: column %.*s is %s%s, the input is %s", WEIR_SV(s->section),
      WEIR_SV(input->name), weir_dtype_name(dtype), got, want);
  weir_error_set_node(err, input->name.data, input->name.size);
  return status;
}

static bool dims_fit(const weir_shape *want, const weir_shape *got) {
  if (want->rank == WEIR_RANK_UNKNOWN) return true;
  if (want->rank != got->rank) return false;
  for (int32_t i = 0; i < got->rank; i++)
    if (weir_dim_known(want->dims[i]) && weir_dim_known(got->dims[i]) &&
        want->dims[i].value != got->dims[i].value)
      return false;
  return true;
}

/* Checks a column before any batch is read, as far as its shape is known. */
static weir_status check_column(const weir_stepper *s,
                                const weir_graph_port *input,
                                const weir_data_column *column,
                                weir_error *err) {
  const weir_value *v = &s->graph->values[input->value];
  weir_shape shape = weir_shape_of(column->rank, column->dims);
  if (column->rank > 0 && column->dims[0] < 0)
    shape.dims[0] = (weir_dim){.symbol = 1}; /* printed as "?" */
  if (v->dtype == column->dtype && dims_fit(v->shape, &shape)) return WEIR_OK;
  return misfit(s, input, column->dtype, &shape, err);
}

static weir_status match(weir_stepper *s, weir_error *err) {
  uint32_t columns = weir_dataset_column_count(s->data);
  const weir_graph *g = s->graph;
  s->sources =
      weir_arena_array(&s->arena, g->input_count + 1u, sizeof *s->sources);
  if (s->sources == NULL) return weir_fail_memory(err, 0);
  for (uint32_t i = 0; i < g->input_count; i++) {
    const weir_graph_port *input = &g->inputs[i];
    for (uint32_t c = 0; c < columns; c++) {
      const weir_data_column *column = weir_dataset_column(s->data, c);
      if (!weir_sv_equal(column->name, input->name)) continue;
      WEIR_TRY(check_column(s, input, column, err));
      s->sources[s->source_count++] = (source){input->value, c};
    }
  }
  if (s->source_count > 0) return WEIR_OK;
  return weir_fail(err, WEIR_W5021, NULL,
                   "data %.*s: no column has the name of an input",
                   WEIR_SV(s->section));
}

static void *copy_ids(weir_arena *arena, const uint32_t *ids, uint32_t count) {
  uint32_t *copy = weir_arena_array(arena, count + 1u, sizeof *copy);
  if (copy != NULL && count > 0) memcpy(copy, ids, count * sizeof *copy);
  return copy;
}

/* Tensors of the caller, which all lanes share. */
static weir_status copy_tensors(weir_stepper *s, const weir_stepper_options *o,
                                weir_error *err) {
  s->given_count = o->given_count;
  s->given = weir_arena_array(&s->arena, o->given_count + 2u, sizeof *s->given);
  s->into =
      weir_arena_array(&s->arena, o->fetch_count + 1u, sizeof(weir_tensor *));
  if (s->given == NULL || s->into == NULL) return weir_fail_memory(err, 0);
  if (o->given_count > 0)
    memcpy(s->given, o->given, o->given_count * sizeof *s->given);
  if (o->into != NULL)
    memcpy(s->into, o->into, o->fetch_count * sizeof *s->into);
  return WEIR_OK;
}

/* The number of examples is one more tensor that all lanes share. */
static weir_status add_rows(weir_stepper *s, weir_error *err) {
  weir_shape scalar = weir_shape_of(0, NULL);
  if (s->rows == WEIR_NO_VALUE) return WEIR_OK;
  WEIR_TRY(weir_tensor_create_shaped(s->alloc, WEIR_I64, &scalar, &s->row_count,
                                     err));
  s->given[s->given_count++] = (weir_exec_feed){s->rows, s->row_count};
  return WEIR_OK;
}

weir_status weir_stepper_create(const weir_env *env,
                                const weir_stepper_options *o,
                                weir_stepper **out_stepper, weir_error *err) {
  *out_stepper = NULL;
  weir_stepper *s = weir_alloc_array(env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->alloc = env->alloc;
  weir_arena_init(&s->arena, env->alloc);
  s->session = o->session;
  s->graph = o->graph;
  s->data = o->data;
  s->section = o->section;
  s->fetch_count = o->fetch_count;
  s->target_count = o->target_count;
  s->fetches = copy_ids(&s->arena, o->fetches, o->fetch_count);
  s->targets = copy_ids(&s->arena, o->targets, o->target_count);
  weir_status status = s->fetches == NULL || s->targets == NULL
                           ? weir_fail_memory(err, 0)
                           : copy_tensors(s, o, err);
  s->rows = o->rows != NULL ? *o->rows : WEIR_NO_VALUE;
  if (status == WEIR_OK) status = add_rows(s, err);
  if (status == WEIR_OK) status = match(s, err);
  if (status == WEIR_OK)
    *out_stepper = s;
  else
    weir_stepper_release(s);
  return status;
}

/* ---- Lanes */

static uint32_t feed_count(const weir_stepper *s) {
  return s->source_count + s->given_count;
}

static void lane_release(weir_stepper *s, lane *l) {
  weir_binding_release(l->binding);
  for (uint32_t i = 0; l->feeds != NULL && i < feed_count(s); i++)
    weir_tensor_unref(l->feeds[i].tensor);
  for (uint32_t i = 0; l->fetches != NULL && i < s->fetch_count; i++)
    weir_tensor_unref(l->fetches[i].tensor);
  weir_free(s->alloc, l->feeds);
  weir_free(s->alloc, l->fetches);
  *l = (lane){0};
}

void weir_stepper_release(weir_stepper *s) {
  if (s == NULL) return;
  for (int i = 0; i < LANES; i++) lane_release(s, &s->lanes[i]);
  weir_tensor_unref(s->row_count);
  weir_arena_release(&s->arena);
  weir_free(s->alloc, s);
}

/* Inputs' names are needed only when something does not fit. */
static const weir_graph_port *input_of(const weir_stepper *s, uint32_t i) {
  const weir_graph_port *in = s->graph->inputs;
  while (in->value != s->sources[i].value) in++;
  return in;
}

static weir_status check_batch(const weir_stepper *s, const weir_batch *batch,
                               weir_error *err) {
  for (uint32_t i = 0; i < s->source_count; i++) {
    const weir_tensor *t = batch->columns[s->sources[i].column];
    const weir_value *v = &s->graph->values[s->sources[i].value];
    if (t->dtype == v->dtype && dims_fit(v->shape, &t->shape)) continue;
    const weir_graph_port *input = input_of(s, i);
    weir_status status = misfit(s, input, t->dtype, &t->shape, err);
    if (v->shape->rank == t->shape.rank && t->shape.rank > 0 &&
        weir_dim_known(v->shape->dims[0]) &&
        v->shape->dims[0].value != t->shape.dims[0].value)
      weir_hint(err,
                "the last batch of an epoch may be smaller: give the data "
                "`drop_last: true`, or the dimension a name of its own "
                "(`dims: [n]`)");
    return status;
  }
  return WEIR_OK;
}

static weir_status make_lane(weir_stepper *s, const weir_batch *batch, lane *l,
                             weir_error *err) {
  WEIR_TRY(check_batch(s, batch, err));
  l->feeds = weir_alloc_array(s->alloc, feed_count(s), sizeof *l->feeds);
  l->fetches = weir_alloc_array(s->alloc, s->fetch_count, sizeof *l->fetches);
  if (l->feeds == NULL || l->fetches == NULL) return weir_fail_memory(err, 0);
  for (uint32_t i = 0; i < s->source_count; i++) {
    const weir_tensor *t = batch->columns[s->sources[i].column];
    l->feeds[i].value = s->sources[i].value;
    WEIR_TRY(weir_tensor_create_shaped(s->alloc, t->dtype, &t->shape,
                                       &l->feeds[i].tensor, err));
  }
  for (uint32_t i = 0; i < s->given_count; i++)
    l->feeds[s->source_count + i] = (weir_exec_feed){
        s->given[i].value, weir_tensor_ref(s->given[i].tensor)};
  for (uint32_t i = 0; i < s->fetch_count; i++) {
    l->fetches[i].value = s->fetches[i];
    if (s->into[i] != NULL) l->fetches[i].tensor = weir_tensor_ref(s->into[i]);
  }
  weir_exec_request request = {.feeds = l->feeds,
                               .feed_count = feed_count(s),
                               .fetches = l->fetches,
                               .fetch_count = s->fetch_count,
                               .targets = s->targets,
                               .target_count = s->target_count};
  weir_status status = weir_exec_bind(s->session, &request, &l->binding, err);
  if (status == WEIR_NOT_FOUND || status == WEIR_FAILED_PRECONDITION)
    weir_hint(err, "data %.*s has no column of that name", WEIR_SV(s->section));
  return status;
}

static bool fits(const weir_stepper *s, const lane *l,
                 const weir_batch *batch) {
  if (l->binding == NULL) return false;
  for (uint32_t i = 0; i < s->source_count; i++)
    if (!weir_shape_equal(&l->feeds[i].tensor->shape,
                          &batch->columns[s->sources[i].column]->shape))
      return false;
  return true;
}

static weir_status find_lane(weir_stepper *s, const weir_batch *batch,
                             lane **out_lane, weir_error *err) {
  lane *oldest = &s->lanes[0];
  for (int i = 0; i < LANES; i++) {
    lane *l = &s->lanes[i];
    if (fits(s, l, batch)) {
      *out_lane = l;
      return WEIR_OK;
    }
    if (l->used < oldest->used) oldest = l;
  }
  lane_release(s, oldest);
  weir_status status = make_lane(s, batch, oldest, err);
  if (status != WEIR_OK) lane_release(s, oldest);
  *out_lane = oldest;
  return status;
}

weir_status weir_stepper_like(const weir_stepper *like, weir_stepper **out,
                              weir_error *err) {
  const weir_env env = {.alloc = like->alloc};
  uint32_t own = like->rows != WEIR_NO_VALUE ? 1 : 0;
  weir_stepper_options options = {.session = like->session,
                                  .graph = like->graph,
                                  .data = like->data,
                                  .section = like->section,
                                  .fetches = like->fetches,
                                  .fetch_count = like->fetch_count,
                                  .targets = like->targets,
                                  .target_count = like->target_count,
                                  .given = like->given,
                                  .given_count = like->given_count - own,
                                  .rows = &like->rows,
                                  .into = like->into};
  return weir_stepper_create(&env, &options, out, err);
}

weir_status weir_stepper_prepare(weir_stepper *s, const weir_batch *batch,
                                 weir_error *err) {
  lane *l;
  return find_lane(s, batch, &l, err);
}

/* ---- Runs */

weir_status weir_stepper_load(weir_stepper *s, const weir_batch *batch,
                              weir_error *err) {
  lane *l;
  s->last = NULL;
  WEIR_TRY(find_lane(s, batch, &l, err));
  l->used = ++s->clock;
  s->last = l;
  for (uint32_t i = 0; i < s->source_count; i++) {
    const weir_tensor *t = batch->columns[s->sources[i].column];
    if (t->bytes > 0) memcpy(l->feeds[i].tensor->data, t->data, t->bytes);
  }
  if (s->row_count != NULL) weir_tensor_set_i64(s->row_count, 0, batch->rows);
  return WEIR_OK;
}

weir_status weir_stepper_go(weir_stepper *s, const weir_run_options *run,
                            weir_error *err) {
  assert(s->last != NULL);
  return weir_binding_run(s->last->binding, run, err);
}

weir_status weir_stepper_run(weir_stepper *s, const weir_batch *batch,
                             const weir_run_options *run, weir_error *err) {
  WEIR_TRY(weir_stepper_load(s, batch, err));
  return weir_stepper_go(s, run, err);
}

const weir_tensor *weir_stepper_output(const weir_stepper *s, uint32_t i) {
  assert(s->last != NULL && i < s->fetch_count);
  return s->last->fetches[i].tensor;
}

/* For a run whose result is not wanted: fails it, so no variable changes. */
static weir_status refuse(void *self, weir_error *err) {
  (void)self;
  return weir_fail(err, WEIR_W5020, NULL, "no node made a NaN");
}

/* Runs the batch of the last run again, from the variables as they are, looking
 * for the first NaN or infinity; no variable changes. Always fails: W5004 names
 * the node, W5020 when none was found. */
static weir_status trap(weir_stepper *s, uint64_t step, weir_error *err) {
  weir_run_options run = {.step = step, .trap_nan = true, .accept = refuse};
  if (s->last == NULL) return refuse(NULL, err);
  weir_exec_request request = {.feeds = s->last->feeds,
                               .feed_count = feed_count(s),
                               .targets = s->targets,
                               .target_count = s->target_count,
                               .options = &run};
  if (s->target_count == 0) { /* its fetches are all it computes */
    request.fetches = s->last->fetches;
    request.fetch_count = s->fetch_count;
  }
  return weir_exec_run(s->session, &request, err);
}

weir_status weir_stepper_blame(weir_stepper *s, uint64_t run, uint64_t step,
                               weir_sv var, weir_error *err) {
  weir_error found = WEIR_ERROR_INIT;
  char text[512] = "";
  if (err != NULL) snprintf(text, sizeof text, "%s", err->message);
  weir_status trapped = trap(s, run, &found);
  bool named = trapped != WEIR_OK && strcmp(found.id, "W5004") == 0;
  weir_mark at = {found.file, found.line, found.col, found.end_line,
                  found.end_col};
  weir_status status = weir_fail(
      err, WEIR_W5020, named ? &at : NULL, "step %" PRIu64 ": %s%s%s%s", step,
      text, named ? "; the first was made by " : "", named ? found.node : "",
      named ? "" : "; no node of the step made it");
  if (named) weir_error_set_node(err, found.node, strlen(found.node));
  if (var.size > 0)
    weir_hint(err,
              "variable %.*s is not finite since an earlier step: try a "
              "smaller learning rate, or clip_norm",
              WEIR_SV(var));
  else
    weir_hint(err,
              "try a smaller learning rate; a node with log, div or exp "
              "may need a bound on its input");
  return status;
}
