/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/number.h"
#include "runtime/base/strbuf.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/graph/pass/pass_def.h"
#include "runtime/graph/pass/pass_simplify.h"
#include "runtime/tools/tools.h"

/* ---- Nodes that outputs need */

/* Which inputs are fed, one bool each. */
static weir_status mark_fed(const weir_graph *graph, size_t count,
                            const char *const *names, bool *fed,
                            weir_error *err) {
  for (size_t i = 0; i < count; i++) {
    weir_value_id value;
    WEIR_TRY(weir_find_input(graph, names[i], &value, err));
    for (uint32_t k = 0; k < graph->input_count; k++)
      fed[k] = fed[k] || graph->inputs[k].value == value;
  }
  return WEIR_OK;
}

static weir_status count_needed(const weir_graph *graph,
                                const weir_simplify_options *options,
                                size_t *out_count, weir_error *err) {
  weir_graph *simple = NULL;
  WEIR_TRY(weir_graph_simplify(graph, options, NULL, NULL, &simple, err));
  *out_count = 0;
  for (uint32_t i = 0; i < simple->node_count; i++)
    if (simple->nodes[i].op->instr != WEIR_INSTR_FEED) ++*out_count;
  weir_graph_unref(simple);
  return WEIR_OK;
}

weir_status weir_tools_needed_nodes(const weir_graph *graph, size_t count,
                                    const char *const *names, size_t fed_count,
                                    const char *const *fed_names,
                                    size_t *out_count, weir_error *err) {
  *out_count = 0;
  weir_value_id *wanted =
      weir_alloc_array(graph->alloc, count + 1, sizeof *wanted);
  bool *fed =
      weir_alloc_array(graph->alloc, graph->input_count + 1u, sizeof *fed);
  weir_simplify_options options = {
      .values = wanted, .value_count = count, .fed = fed};
  weir_status s = WEIR_OK;
  if (wanted == NULL || fed == NULL)
    s = weir_fail_memory(err, count * sizeof *wanted + graph->input_count);
  for (size_t i = 0; i < count && s == WEIR_OK; i++)
    s = weir_find_value(graph, names[i], &wanted[i], err);
  if (s == WEIR_OK) s = mark_fed(graph, fed_count, fed_names, fed, err);
  if (s == WEIR_OK) s = count_needed(graph, &options, out_count, err);
  weir_free(graph->alloc, fed);
  weir_free(graph->alloc, wanted);
  return s;
}

/* ---- One node as text: name: op(inputs, attr=value)  type @ device */

static void add_value(weir_strbuf *text, const weir_graph *graph,
                      weir_value_id id) {
  if (id == WEIR_NO_VALUE) {
    weir_strbuf_text(text, "none");
    return;
  }
  const weir_value *v = &graph->values[id];
  weir_strbuf_sv(text, graph->nodes[v->node].name);
  if (v->port != 0) weir_strbuf_printf(text, ":%u", v->port);
}

static void add_dims(weir_strbuf *text, const weir_graph *graph,
                     const weir_attr *attr) {
  weir_strbuf_text(text, "[");
  for (uint32_t i = 0; i < attr->count; i++) {
    weir_dim d = attr->dims[i];
    if (i != 0) weir_strbuf_text(text, ", ");
    if (d.symbol == 0)
      weir_strbuf_printf(text, "%" PRId64, d.value);
    else if (d.symbol < graph->symbol_count)
      weir_strbuf_text(text, graph->symbols[d.symbol]);
    if (d.symbol != 0 && d.value != 0)
      weir_strbuf_printf(text, " + %" PRId64, d.value);
  }
  weir_strbuf_text(text, "]");
}

static void add_floats(weir_strbuf *text, const weir_attr *attr) {
  char number[WEIR_NUMBER_TEXT];
  weir_strbuf_text(text, "[");
  for (uint32_t i = 0; i < attr->count; i++) {
    weir_number_format(number, attr->floats[i]);
    weir_strbuf_printf(text, "%s%s", i != 0 ? ", " : "", number);
  }
  weir_strbuf_text(text, "]");
}

static void add_tensor(weir_strbuf *text, const weir_tensor *tensor) {
  char shape[256], number[WEIR_NUMBER_TEXT];
  if (tensor->shape.rank == 0) {
    weir_number_format(number, weir_tensor_get_f64(tensor, 0));
    weir_strbuf_text(text, number);
    return;
  }
  weir_shape_print(&tensor->shape, NULL, NULL, shape, sizeof shape);
  weir_strbuf_printf(text, "<%s%s>", weir_dtype_name(tensor->dtype), shape);
}

static void add_attr(weir_strbuf *text, const weir_graph *graph,
                     const weir_attr *attr) {
  char number[WEIR_NUMBER_TEXT];
  switch (attr->kind) {
    case WEIR_ATTR_INT:
      weir_strbuf_printf(text, "%" PRId64, attr->i);
      break;
    case WEIR_ATTR_FLOAT:
      weir_number_format(number, attr->f);
      weir_strbuf_text(text, number);
      break;
    case WEIR_ATTR_BOOL:
      weir_strbuf_text(text, attr->b ? "true" : "false");
      break;
    case WEIR_ATTR_STRING:
      weir_strbuf_printf(text, "\"%.*s\"", WEIR_SV(attr->s));
      break;
    case WEIR_ATTR_DTYPE:
      weir_strbuf_text(text, weir_dtype_name(attr->dtype));
      break;
    case WEIR_ATTR_INTS:
      add_dims(text, graph, attr);
      break;
    case WEIR_ATTR_FLOATS:
      add_floats(text, attr);
      break;
    case WEIR_ATTR_TENSOR:
      add_tensor(text, attr->tensor);
      break;
    default:
      weir_strbuf_text(text, "none");
  }
}

static void add_call(weir_strbuf *text, const weir_graph *graph,
                     const weir_node *node) {
  const char *between = "";
  weir_strbuf_printf(text, "%s(", node->op->name);
  for (uint32_t i = 0; i < node->input_count; i++) {
    weir_strbuf_text(text, between);
    add_value(text, graph, node->inputs[i]);
    between = ", ";
  }
  uint32_t count = weir_op_attr_count(node->op);
  for (uint32_t i = 0; i < count; i++) {
    if (node->attrs[i].kind == WEIR_ATTR_NONE) continue;
    weir_strbuf_printf(text, "%s%s=", between, node->op->attrs[i].name);
    add_attr(text, graph, &node->attrs[i]);
    between = ", ";
  }
  weir_strbuf_text(text, ")");
}

static void add_types(weir_strbuf *text, const weir_graph *graph,
                      const weir_node *node) {
  char type[256];
  for (uint32_t i = 0; i < node->output_count; i++)
    weir_strbuf_printf(
        text, "%s%s", i != 0 ? ", " : "",
        weir_graph_type_text(graph, node->first_output + i, type, sizeof type));
}

static void add_node(weir_strbuf *text, const weir_graph *graph,
                     const weir_node *node) {
  weir_strbuf_printf(text, "%.*s: ", WEIR_SV(node->name));
  add_call(text, graph, node);
  weir_strbuf_text(text, "  # ");
  add_types(text, graph, node);
  if (node->device.size != 0)
    weir_strbuf_printf(text, " @ %.*s", WEIR_SV(node->device));
  if (node->group != WEIR_NO_GROUP)
    weir_strbuf_printf(text, " group %u", node->group);
  for (uint32_t i = 0; i < node->after_count; i++)
    weir_strbuf_printf(text, "%s%.*s", i == 0 ? " after " : ", ",
                       WEIR_SV(graph->nodes[node->after[i]].name));
  weir_strbuf_text(text, "\n");
}

/* The body's name in dumps. */
static const char *body_label(const weir_node *node, uint32_t k) {
  if (node->op->instr == WEIR_INSTR_BRANCH) return k == 0 ? "else" : "then";
  return node->body_count == 2 && k == 0 ? "cond" : "body";
}

static void add_indent(weir_strbuf *text, int depth) {
  for (int i = 0; i < depth; i++) weir_strbuf_text(text, "    ");
}

/* Bodies under their node, deeper in; they nest only so deep. */
static void add_bodies(weir_strbuf *text, const weir_node *node, int depth) {
  for (uint32_t k = 0; k < node->body_count; k++) {
    const weir_graph *body = node->bodies[k];
    add_indent(text, depth);
    weir_strbuf_printf(text, "  %s:\n", body_label(node, k));
    for (uint32_t i = 0; i < body->node_count; i++) {
      add_indent(text, depth + 1);
      add_node(text, body, &body->nodes[i]);
      add_bodies(text, &body->nodes[i], depth + 1);
    }
    add_indent(text, depth + 1);
    weir_strbuf_text(text, "-> ");
    for (uint32_t i = 0; i < body->output_count; i++) {
      if (i != 0) weir_strbuf_text(text, ", ");
      add_value(text, body, body->outputs[i].value);
    }
    weir_strbuf_text(text, "\n");
  }
}

static weir_status write_failed(weir_error *err) {
  return weir_fail(err, WEIR_W5009, NULL, "the text could not be written");
}

/* Each line of |note| as a comment. */
static void add_note(weir_strbuf *text, const weir_strbuf *note) {
  size_t from = 0;
  for (size_t i = 0; i < note->size; i++)
    if (note->data[i] == '\n') {
      weir_strbuf_printf(text, "# %.*s\n", (int)(i - from), note->data + from);
      from = i + 1;
    }
}

static weir_status write_text(const weir_graph *graph, const weir_strbuf *note,
                              weir_write_fn write, void *self,
                              weir_error *err) {
  weir_strbuf text;
  weir_strbuf_init(&text, graph->alloc);
  weir_status s = WEIR_OK;
  for (uint32_t i = 0; i < graph->node_count && s == WEIR_OK; i++) {
    weir_strbuf_clear(&text);
    add_node(&text, graph, &graph->nodes[i]);
    add_bodies(&text, &graph->nodes[i], 0);
    s = weir_strbuf_status(&text, err);
    if (s == WEIR_OK && !write(self, text.data, text.size))
      s = write_failed(err);
  }
  weir_strbuf_clear(&text);
  add_note(&text, note);
  if (s == WEIR_OK) s = weir_strbuf_status(&text, err);
  if (s == WEIR_OK && text.size > 0 && !write(self, text.data, text.size))
    s = write_failed(err);
  weir_strbuf_release(&text);
  return s;
}

/* ---- JSON */

static void json_node(weir_json_writer *w, weir_strbuf *text,
                      const weir_graph *graph, const weir_node *node);

/* [[nodes of a body], ...]; they nest only so deep. */
static void json_bodies(weir_json_writer *w, weir_strbuf *text,
                        const weir_node *node) {
  weir_json_key(w, "bodies");
  weir_json_array_begin(w, false);
  for (uint32_t k = 0; k < node->body_count; k++) {
    weir_json_array_begin(w, false);
    for (uint32_t i = 0; i < node->bodies[k]->node_count; i++)
      json_node(w, text, node->bodies[k], &node->bodies[k]->nodes[i]);
    weir_json_array_end(w);
  }
  weir_json_array_end(w);
}

static void json_node(weir_json_writer *w, weir_strbuf *text,
                      const weir_graph *graph, const weir_node *node) {
  char type[256];
  weir_json_object_begin(w, true);
  weir_json_key(w, "name");
  weir_json_string(w, node->name);
  weir_json_key(w, "op");
  weir_json_string(w, weir_sv_from(node->op->name));
  weir_strbuf_clear(text);
  add_call(text, graph, node);
  weir_json_key(w, "call");
  weir_json_string(w, (weir_sv){text->data, text->size});
  weir_json_key(w, "types");
  weir_json_array_begin(w, true);
  for (uint32_t i = 0; i < node->output_count; i++)
    weir_json_string(w, weir_sv_from(weir_graph_type_text(
                            graph, node->first_output + i, type, sizeof type)));
  weir_json_array_end(w);
  weir_json_key(w, "device");
  weir_json_string(w, node->device);
  weir_json_key(w, "group");
  if (node->group != WEIR_NO_GROUP)
    weir_json_uint(w, node->group);
  else
    weir_json_null(w);
  weir_json_key(w, "line");
  weir_json_uint(w, node->mark.line);
  if (node->body_count > 0) json_bodies(w, text, node);
  weir_json_object_end(w);
}

static weir_status write_json(const weir_graph *graph, const weir_strbuf *note,
                              weir_write_fn write, void *self,
                              weir_error *err) {
  weir_strbuf text;
  weir_json_writer w;
  weir_strbuf_init(&text, graph->alloc);
  weir_json_writer_init(&w, (weir_writer){self, write}, 2);
  weir_json_object_begin(&w, false);
  weir_json_key(&w, "nodes");
  weir_json_array_begin(&w, false);
  for (uint32_t i = 0; i < graph->node_count; i++)
    json_node(&w, &text, graph, &graph->nodes[i]);
  weir_json_array_end(&w);
  if (note->size > 0) {
    weir_json_key(&w, "note");
    weir_json_string(&w, (weir_sv){note->data, note->size});
  }
  weir_json_object_end(&w);
  weir_status s = weir_strbuf_status(&text, err);
  if (!weir_json_finish(&w) && s == WEIR_OK) s = write_failed(err);
  weir_strbuf_release(&text);
  return s;
}

size_t weir_tools_untrained(const weir_graph *graph, char *name, size_t size) {
  size_t count = 0;
  for (uint32_t i = 0; i < graph->node_count; i++) {
    weir_sv node = graph->nodes[i].name;
    bool has = strcmp(graph->nodes[i].op->name, "var") != 0;
    for (uint32_t w = 0; w < graph->weight_count && !has; w++)
      has = weir_sv_equal(graph->weights[w].name, node);
    if (has) continue;
    if (count++ == 0) snprintf(name, size, "%.*s", WEIR_SV(node));
  }
  return count;
}

bool weir_tools_session_has_found(const weir_session *session) {
  return session != NULL && weir_exec_session_has_found(session->exec);
}

size_t weir_tools_graph_node_count(const weir_graph *graph) {
  return graph->node_count;
}

weir_status weir_tools_graph_write(const weir_graph *graph, const char *pass,
                                   bool json, weir_write_fn write, void *self,
                                   weir_error *err) {
  weir_graph *shown = NULL;
  if (graph == NULL) return weir_fail_null(err, "graph");
  if (pass == NULL) pass = "load";
  WEIR_TRY(weir_pass_run(graph, pass, &shown, err));
  weir_strbuf note;
  weir_strbuf_init(&note, graph->alloc);
  weir_status s = weir_pass_note(graph, pass, &note, err);
  if (s == WEIR_OK) s = weir_strbuf_status(&note, err);
  if (s == WEIR_OK)
    s = json ? write_json(shown, &note, write, self, err)
             : write_text(shown, &note, write, self, err);
  weir_strbuf_release(&note);
  weir_graph_unref(shown);
  return s;
}
