/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/predict/model.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "runtime/base/size.h"

enum { kRows = 32, kStep = 4 }; /* of a batch; between its sizes */

/* ---- Ports */

/* Marks the nodes that the outputs depend on. Inputs of a node and those before
 * it have smaller numbers, so one pass downwards is enough. */
static void mark_needed(const weir_graph *g, bool *needed) {
  for (uint32_t k = 0; k < g->output_count; k++)
    needed[g->values[g->outputs[k].value].node] = true;
  for (uint32_t n = g->node_count; n-- > 0;) {
    const weir_node *node = &g->nodes[n];
    if (!needed[n]) continue;
    for (uint32_t i = 0; i < node->input_count; i++)
      if (node->inputs[i] != WEIR_NO_VALUE)
        needed[g->values[node->inputs[i]].node] = true;
    for (uint32_t i = 0; i < node->after_count; i++)
      needed[node->after[i]] = true;
  }
}

static weir_predict_port port_of(const weir_graph *g,
                                 const weir_graph_port *port) {
  const weir_value *v = &g->values[port->value];
  return (weir_predict_port){.name = port->name,
                             .dtype = v->dtype,
                             .shape = v->shape,
                             .value = port->value,
                             .optional = port->has_default};
}

static weir_status list_ports(weir_predict_model *m, weir_error *err) {
  const weir_graph *g = m->graph;
  bool *needed = weir_arena_array(&m->arena, g->node_count, 1);
  m->inputs =
      weir_arena_array(&m->arena, g->input_count + 1, sizeof *m->inputs);
  m->outputs =
      weir_arena_array(&m->arena, g->output_count + 1, sizeof *m->outputs);
  if (needed == NULL || m->inputs == NULL || m->outputs == NULL)
    return weir_fail_memory(err, g->node_count);
  mark_needed(g, needed);
  for (uint32_t i = 0; i < g->input_count; i++)
    if (needed[g->values[g->inputs[i].value].node])
      m->inputs[m->input_count++] = port_of(g, &g->inputs[i]);
  for (uint32_t k = 0; k < g->output_count; k++)
    m->outputs[m->output_count++] = port_of(g, &g->outputs[k]);
  return WEIR_OK;
}

/* ---- The batch */

static bool has_batch(const weir_predict_port *port, weir_dim batch) {
  return port->shape->rank >= 1 && weir_dim_equal(port->shape->dims[0], batch);
}

weir_shape weir_predict_shape(const weir_predict_port *port, int64_t rows) {
  weir_shape shape = *port->shape;
  if (shape.rank > 0) shape.dims[0] = weir_dim_of(rows);
  return shape;
}

/* Whether all but the first dimension are known; sets the size of a row. */
static bool has_plain_rows(weir_predict_port *port) {
  weir_shape one = weir_predict_shape(port, 1);
  if (!weir_shape_known(&one)) return false;
  port->row_bytes = weir_shape_bytes(&one, port->dtype);
  return port->row_bytes > 0;
}

/* Finds the inputs of the batch; false: there is none, or another one must be
 * fed, or a dimension is open. */
static bool inputs_batched(weir_predict_model *m, weir_dim batch) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < m->input_count; i++) {
    weir_predict_port *port = &m->inputs[i];
    port->batched = has_batch(port, batch);
    count += port->batched;
    if (port->batched ? !has_plain_rows(port) : !port->optional) return false;
  }
  return count > 0;
}

static bool outputs_batched(weir_predict_model *m, weir_dim batch) {
  for (uint32_t k = 0; k < m->output_count; k++) {
    m->outputs[k].batched = has_batch(&m->outputs[k], batch);
    if (!m->outputs[k].batched || !has_plain_rows(&m->outputs[k])) return false;
  }
  return true;
}

void weir_predict_model_alone(weir_predict_model *m, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  vsnprintf(m->why, sizeof m->why, fmt, args);
  va_end(args);
  m->rows = 0;
  m->size_count = 0;
}

static void set_sizes(weir_predict_model *m, bool open) {
  int64_t size = open ? 1 : m->rows;
  for (; size < m->rows && m->size_count < WEIR_PREDICT_SIZES - 1;
       size *= kStep)
    m->sizes[m->size_count++] = size;
  m->sizes[m->size_count++] = m->rows;
}

static weir_status find_batch(weir_predict_model *m, int64_t rows,
                              weir_error *err) {
  const weir_shape *shape = m->outputs[0].shape;
  weir_dim batch = shape->rank >= 1 ? shape->dims[0] : weir_dim_of(1);
  bool open = !weir_dim_known(batch);
  if (rows == 1 || (!open && batch.value < 2) ||
      (open && batch.value != 0 /* such as batch + 1 */)) {
    weir_predict_model_alone(
        m, rows == 1 ? "batches of one row are wanted"
                     : "the outputs do not begin with the size of a batch");
    return WEIR_OK;
  }
  if (!open && rows != 0 && rows != batch.value)
    return weir_fail(err, WEIR_W0002, NULL,
                     "the graph is made for batches of %" PRId64
                     " rows, %" PRId64 " are wanted",
                     batch.value, rows);
  if (!outputs_batched(m, batch) || !inputs_batched(m, batch)) {
    weir_predict_model_alone(
        m, "not all inputs and outputs are rows of one batch, of known size");
    return WEIR_OK;
  }
  m->rows = !open ? batch.value : rows != 0 ? rows : kRows;
  set_sizes(m, open);
  return WEIR_OK;
}

weir_status weir_predict_model_init(const weir_allocator *alloc,
                                    const weir_graph *graph, int64_t rows,
                                    weir_predict_model *out, weir_error *err) {
  *out = (weir_predict_model){.graph = graph};
  weir_arena_init(&out->arena, alloc);
  if (graph->output_count == 0)
    return weir_fail(err, WEIR_W4016, NULL, "the graph has no outputs");
  WEIR_TRY(list_ports(out, err));
  return find_batch(out, rows, err);
}

void weir_predict_model_release(weir_predict_model *m) {
  weir_arena_release(&m->arena);
}
