/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data/data_map.h"

#include <string.h>

#include "runtime/exec/session/binding.h"
#include "runtime/exec/session/session.h"
#include "runtime/graph/load/load.h"
#include "runtime/graph/pass/pass_specialize.h"
#include "runtime/train/data/data_files.h"
#include "runtime/train/data/data_internal.h"
#include "runtime/train/data/data_map_block.h"

/* `map`: a graph between the columns read and the columns fed.
 *
 * Shapes must follow from the columns before the first batch, since a batch's
 * memory is allocated once. A map of batches is bound to each slot's tensors
 * and copies nothing; a map of examples is bound to one row, which is copied in
 * and out. A pool of its own has one thread: batches are made ahead on a thread
 * already, beside training. */

struct weir_data_map {
  const weir_env *env;
  weir_graph *graph;
  weir_pool *own_pool; /* when none was given */
  weir_exec_session *session;
  bool per_example;
  /* Input k of the graph takes read column in_column[k]; output k becomes
   * column out_column[k]. Others pass by: pass[c] is the read column that is
   * column c, or UINT32_MAX. In the data set's arena. */
  uint32_t in_count, out_count;
  weir_value_id *in_value, *out_value;
  uint32_t *in_column, *out_column, *pass;
};

void weir_data_map_release(weir_data_map *m) {
  if (m == NULL) return;
  weir_exec_session_release(m->session);
  weir_pool_release(m->own_pool);
  weir_graph_unref(m->graph);
  weir_free(m->env->alloc, m);
}

bool weir_data_map_per_example(const weir_data_map *m) {
  return m->per_example;
}

uint32_t weir_data_map_pass(const weir_data_map *m, uint32_t column) {
  return m->pass[column];
}

/* ---- Opening */

typedef struct opening {
  weir_data_map *map;
  weir_dataset *set;
  weir_graph *typed; /* the graph for a full batch or one example */
  weir_error *err;
} opening;

static const weir_mark *place(const opening *o) {
  return &o->set->spec->map_mark;
}

/* Under a name beside the graph's file, which it imports. */
static weir_status load_block(opening *o, const weir_load_options *options) {
  const weir_dataset *set = o->set;
  weir_strbuf text;
  const char *name = NULL;
  WEIR_TRY(weir_data_beside_graph(set->graph, WEIR_SV_LIT("(map)"),
                                  &o->set->arena, &name, o->err));
  weir_strbuf_init(&text, set->env->alloc);
  weir_status s = weir_data_map_block_text(set, &text, o->err);
  if (s == WEIR_OK)
    s = weir_graph_load_text(set->env, weir_strbuf_view(&text), name, options,
                             &o->map->graph, o->err);
  weir_strbuf_release(&text);
  return s;
}

static weir_status load(opening *o) {
  const weir_dataset *set = o->set;
  const char *path = NULL;
  weir_load_options options = {.registry = set->graph->registry,
                               .seed = set->order.seed,
                               .data_form = weir_source_form};
  if (set->spec->map_block.size > 0) return load_block(o, &options);
  WEIR_TRY(weir_data_beside_graph(set->graph, set->spec->map_graph,
                                  &o->set->arena, &path, o->err));
  return weir_graph_load(set->env, path, &options, &o->map->graph, o->err);
}

static weir_status make_lists(opening *o) {
  weir_data_map *m = o->map;
  weir_arena *arena = &o->set->arena;
  uint32_t in = m->graph->input_count, out = m->graph->output_count;
  uint32_t most = o->set->read_count + out;
  m->in_value = weir_arena_array(arena, in, sizeof *m->in_value);
  m->in_column = weir_arena_array(arena, in, sizeof *m->in_column);
  m->out_value = weir_arena_array(arena, out, sizeof *m->out_value);
  m->out_column = weir_arena_array(arena, out, sizeof *m->out_column);
  m->pass = weir_arena_array(arena, most, sizeof *m->pass);
  if (m->in_value == NULL || m->in_column == NULL || m->out_value == NULL ||
      m->out_column == NULL || m->pass == NULL)
    return weir_fail_memory(o->err, most * sizeof *m->pass);
  return WEIR_OK;
}

/* The shape of a column, of a batch or of one example. */
static weir_shape shape_of(const weir_data_map *m, const weir_data_column *c) {
  int from = m->per_example ? 1 : 0;
  return weir_shape_of(c->rank - from, c->dims + from);
}

static weir_status match_inputs(opening *o, weir_shape *shapes) {
  weir_data_map *m = o->map;
  const weir_graph *g = m->graph;
  for (uint32_t i = 0; i < g->input_count; i++) {
    const weir_graph_port *input = &g->inputs[i];
    const weir_value *value = &g->values[input->value];
    uint32_t c = 0;
    shapes[i] = (weir_shape){.rank = WEIR_RANK_UNKNOWN};
    while (c < o->set->read_count &&
           !weir_sv_equal(o->set->read_columns[c].name, input->name))
      c++;
    if (c == o->set->read_count && input->has_default) continue;
    if (c == o->set->read_count)
      return weir_fail(o->err, WEIR_W4034, place(o),
                       "no column feeds the map's input '%.*s'",
                       WEIR_SV(input->name));
    if (value->dtype != o->set->read_columns[c].dtype)
      return weir_fail(o->err, WEIR_W4034, place(o),
                       "column '%.*s' is %s, the map's input %s",
                       WEIR_SV(input->name),
                       weir_dtype_name(o->set->read_columns[c].dtype),
                       weir_dtype_name(value->dtype));
    shapes[i] = shape_of(m, &o->set->read_columns[c]);
    m->in_value[m->in_count] = input->value;
    m->in_column[m->in_count++] = c;
  }
  return WEIR_OK;
}

static weir_status specialize(opening *o) {
  const weir_allocator *alloc = o->set->env->alloc;
  uint32_t n = o->map->graph->input_count;
  weir_shape *shapes = weir_alloc_array(alloc, n, sizeof *shapes);
  if (shapes == NULL) return weir_fail_memory(o->err, n * sizeof *shapes);
  weir_status s = match_inputs(o, shapes);
  if (s == WEIR_OK)
    s = weir_graph_specialize(o->map->graph, shapes, &o->typed, o->err);
  weir_free(alloc, shapes);
  return s;
}

/* Type of output |port|, whose shape must follow from the columns'. */
static weir_status output_column(opening *o, const weir_graph_port *port,
                                 weir_data_column *out) {
  const weir_value *value = &o->typed->values[port->value];
  int first = o->map->per_example ? 1 : 0;
  const weir_shape *shape = value->shape;
  if (shape->rank == WEIR_RANK_UNKNOWN || !weir_shape_known(shape))
    return weir_fail(o->err, WEIR_W4034, place(o),
                     "the shape of the map's output '%.*s' is not known "
                     "beforehand",
                     WEIR_SV(port->name));
  if (shape->rank + first > WEIR_MAX_RANK ||
      (first == 0 &&
       (shape->rank == 0 || shape->dims[0].value != o->set->batch)))
    return weir_fail(o->err, WEIR_W4034, place(o),
                     "the map's output '%.*s' has not one row for each example",
                     WEIR_SV(port->name));
  *out = (weir_data_column){
      .name = port->name, .dtype = value->dtype, .rank = shape->rank + first};
  out->dims[0] = o->set->batch;
  for (int d = 1 - first; d < shape->rank; d++)
    out->dims[d + first] = shape->dims[d].value;
  return WEIR_OK;
}

static weir_status make_columns(opening *o) {
  weir_data_map *m = o->map;
  weir_dataset *set = o->set;
  uint32_t n = 0;
  weir_data_column *columns = weir_arena_array(
      &set->arena, set->read_count + o->typed->output_count, sizeof *columns);
  if (columns == NULL) return weir_fail_memory(o->err, sizeof *columns);
  for (uint32_t i = 0; i < o->typed->output_count; i++) {
    const weir_graph_port *port = &o->typed->outputs[i];
    WEIR_TRY(output_column(o, port, &columns[n]));
    m->out_value[m->out_count] = m->graph->outputs[i].value;
    m->out_column[m->out_count++] = n;
    m->pass[n++] = UINT32_MAX;
  }
  for (uint32_t c = 0; c < set->read_count; c++) {
    bool used = false;
    for (uint32_t i = 0; i < m->in_count; i++)
      used = used || m->in_column[i] == c;
    for (uint32_t k = 0; k < o->typed->output_count; k++)
      used = used || weir_sv_equal(columns[k].name, set->read_columns[c].name);
    if (used) continue;
    columns[n] = set->read_columns[c];
    m->pass[n++] = c;
  }
  set->columns = columns;
  set->column_count = n;
  return WEIR_OK;
}

static weir_status make_session(opening *o, weir_pool *pool) {
  weir_data_map *m = o->map;
  weir_pool_options one = {.threads = 1};
  weir_session_options options = {.seed = o->set->order.seed};
  if (pool == NULL) {
    WEIR_TRY(weir_pool_create(m->env, &one, &m->own_pool, o->err));
    pool = m->own_pool;
  }
  return weir_exec_session_create(m->env, pool, m->graph, &options, &m->session,
                                  o->err);
}

weir_status weir_data_map_open(weir_dataset *set, weir_pool *pool,
                               weir_error *err) {
  if (set->spec->map_graph.size + set->spec->map_block.size == 0)
    return WEIR_OK;
  weir_data_map *m = weir_alloc_array(set->env->alloc, 1, sizeof *m);
  if (m == NULL) return weir_fail_memory(err, sizeof *m);
  set->map = m;
  m->env = set->env;
  m->per_example = set->spec->map_per_example;
  opening o = {.map = m, .set = set, .err = err};
  weir_status s = load(&o);
  if (s == WEIR_OK) s = make_lists(&o);
  if (s == WEIR_OK) s = specialize(&o);
  if (s == WEIR_OK) s = make_columns(&o);
  if (s == WEIR_OK) s = make_session(&o, pool);
  weir_graph_unref(o.typed);
  return s;
}

/* ---- Running */

weir_status weir_data_map_bind(const weir_data_map *m, weir_tensor *const *read,
                               weir_tensor *const *out,
                               weir_binding **out_binding, weir_error *err) {
  const weir_allocator *alloc = m->env->alloc;
  weir_exec_feed *feeds = weir_alloc_array(alloc, m->in_count, sizeof *feeds);
  weir_exec_fetch *fetches =
      weir_alloc_array(alloc, m->out_count, sizeof *fetches);
  weir_exec_request request = {.feeds = feeds,
                               .feed_count = m->in_count,
                               .fetches = fetches,
                               .fetch_count = m->out_count};
  weir_status s = WEIR_OK;
  *out_binding = NULL;
  if (feeds == NULL || fetches == NULL)
    s = weir_fail_memory(err, m->out_count * sizeof *fetches);
  for (uint32_t i = 0; s == WEIR_OK && i < m->in_count; i++)
    feeds[i] = (weir_exec_feed){m->in_value[i], read[m->in_column[i]]};
  for (uint32_t i = 0; s == WEIR_OK && i < m->out_count; i++)
    fetches[i] = (weir_exec_fetch){.value = m->out_value[i],
                                   .tensor = out[m->out_column[i]]};
  if (s == WEIR_OK) s = weir_exec_bind(m->session, &request, out_binding, err);
  weir_free(alloc, fetches);
  weir_free(alloc, feeds);
  return s;
}

static size_t row_bytes(const weir_tensor *t) {
  int64_t rows = t->shape.dims[0].value;
  return rows > 0 ? t->bytes / (size_t)rows : 0;
}

static weir_tensor *row_tensor(const weir_dataset *set,
                               const weir_data_column *c, weir_error *err) {
  weir_tensor *t = NULL;
  weir_shape shape = weir_shape_of(c->rank - 1, c->dims + 1);
  (void)weir_tensor_create_shaped(set->env->alloc, c->dtype, &shape, &t, err);
  return t;
}

weir_status weir_map_rows_init(weir_map_rows *r, const weir_dataset *set,
                               weir_error *err) {
  const weir_allocator *alloc = set->env->alloc;
  r->set = set;
  r->in = weir_alloc_array(alloc, set->read_count, sizeof *r->in);
  r->out = weir_alloc_array(alloc, set->column_count, sizeof *r->out);
  if (r->in == NULL || r->out == NULL)
    return weir_fail_memory(err, set->column_count * sizeof *r->out);
  for (uint32_t c = 0; c < set->read_count; c++)
    if ((r->in[c] = row_tensor(set, &set->read_columns[c], err)) == NULL)
      return WEIR_RESOURCE_EXHAUSTED;
  for (uint32_t c = 0; c < set->column_count; c++)
    if ((r->out[c] = row_tensor(set, &set->columns[c], err)) == NULL)
      return WEIR_RESOURCE_EXHAUSTED;
  return weir_data_map_bind(set->map, r->in, r->out, &r->binding, err);
}

void weir_map_rows_release(weir_map_rows *r) {
  if (r->set == NULL) return;
  weir_binding_release(r->binding);
  for (uint32_t c = 0; r->in != NULL && c < r->set->read_count; c++)
    weir_tensor_unref(r->in[c]);
  for (uint32_t c = 0; r->out != NULL && c < r->set->column_count; c++)
    weir_tensor_unref(r->out[c]);
  weir_free(r->set->env->alloc, r->in);
  weir_free(r->set->env->alloc, r->out);
  *r = (weir_map_rows){0};
}

weir_status weir_map_rows_run(weir_map_rows *r, weir_tensor *const *read,
                              weir_tensor *const *out, int64_t rows,
                              uint64_t step, weir_error *err) {
  const weir_data_map *m = r->set->map;
  for (int64_t row = 0; row < rows; row++) {
    weir_run_options options = {.step = step + (uint64_t)row};
    for (uint32_t i = 0; i < m->in_count; i++) {
      weir_tensor *to = r->in[m->in_column[i]];
      const weir_tensor *from = read[m->in_column[i]];
      memcpy(to->data, (uint8_t *)from->data + row_bytes(from) * (size_t)row,
             row_bytes(from));
    }
    WEIR_TRY(weir_binding_run(r->binding, &options, err));
    for (uint32_t i = 0; i < m->out_count; i++) {
      weir_tensor *to = out[m->out_column[i]];
      const weir_tensor *from = r->out[m->out_column[i]];
      memcpy((uint8_t *)to->data + row_bytes(to) * (size_t)row, from->data,
             row_bytes(to));
    }
  }
  return WEIR_OK;
}
