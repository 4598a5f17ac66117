/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/graph/load/load.h"
#include "runtime/train/data/data_source.h"

/* One load: the caller's options in the loader's form. */
typedef struct load_call {
  const weir_runtime *runtime;
  weir_load_opts opts;
  weir_param_value *params, *overrides;
  weir_diag_sink sink;
  weir_load_options options;
} load_call;

static void report(void *self, const weir_diag *diag) {
  const load_call *call = self;
  /* What is found where memory is refused for lack of time is no fault of the
   * graph. */
  if (!weir_diag_is_warning(diag) && weir_alloc_over(call->runtime->env.alloc))
    return;
  if (call->opts.on_diag != NULL)
    call->opts.on_diag(call->opts.on_diag_self, diag);
  else if (weir_diag_is_warning(diag))
    weir_log_diag(call->runtime, diag);
}

static weir_status read_params(const weir_allocator *alloc,
                               const weir_param *from, size_t count,
                               weir_param_value **out, weir_error *err) {
  if (count == 0) return WEIR_OK;
  if (from == NULL) return weir_fail_null(err, "params or overrides");
  *out = weir_alloc_array(alloc, count, sizeof **out);
  if (*out == NULL) return weir_fail_memory(err, count * sizeof **out);
  for (size_t i = 0; i < count; i++) {
    weir_param p;
    WEIR_TRY(WEIR_OPTS_READ(weir_param, &p, weir_opts_at(from, i), err));
    if (p.name == NULL || p.text == NULL)
      return weir_fail_null(err, "weir_param: name or text");
    (*out)[i] = (weir_param_value){weir_sv_from(p.name), weir_sv_from(p.text)};
  }
  return WEIR_OK;
}

static void load_call_release(const weir_runtime *runtime, load_call *call) {
  weir_free(runtime->env.alloc, call->params);
  weir_free(runtime->env.alloc, call->overrides);
}

static weir_status load_call_init(weir_runtime *runtime, load_call *call,
                                  const weir_load_opts *opts, weir_error *err) {
  const weir_allocator *alloc = runtime->env.alloc;
  memset(call, 0, sizeof *call);
  call->runtime = runtime;
  WEIR_TRY(WEIR_OPTS_READ(weir_load_opts, &call->opts, opts, err));
  const weir_load_opts *o = &call->opts;
  WEIR_TRY(read_params(alloc, o->params, o->param_count, &call->params, err));
  WEIR_TRY(read_params(alloc, o->overrides, o->override_count, &call->overrides,
                       err));
  call->sink = (weir_diag_sink){call, report};
  call->options = (weir_load_options){
      .registry = weir_runtime_registry(runtime),
      .params = call->params,
      .param_count = o->param_count,
      .overrides = call->overrides,
      .override_count = o->override_count,
      .sink =
          o->on_diag != NULL || runtime->on_log != NULL ? &call->sink : NULL,
      .limits = {.bytes = o->max_bytes, .depth = o->max_depth},
      .max_nodes = o->max_nodes,
      .max_errors = o->max_errors,
      .seed = o->seed,
      .labels = o->labels,
      .getenv = o->getenv,
      .getenv_self = o->getenv_self,
      .keep_sources = o->keep_files,
      .data_form = weir_source_form};
  return WEIR_OK;
}

static weir_status check_load(weir_runtime *runtime, const void *what,
                              const char *what_name, weir_graph **out_graph,
                              weir_error *err) {
  if (out_graph == NULL) return weir_fail_null(err, "out_graph");
  *out_graph = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (what == NULL) return weir_fail_null(err, what_name);
  return WEIR_OK;
}

static void log_loaded(const weir_runtime *runtime, const weir_graph *graph) {
  weir_log(runtime, WEIR_LOG_INFO, "a graph of %u nodes is loaded",
           graph->node_count);
}

static const char loading[] = "loading the graph";

static weir_status settle(const weir_allocator *alloc, weir_status s,
                          weir_error *err) {
  if (s != WEIR_OK && weir_alloc_over(alloc))
    return weir_fail_refused(alloc, loading, err);
  return weir_settle(alloc, loading, s, err);
}

/* A graph has memory of its own, which it keeps after its runtime: its limit
 * is for all that is made of the graph's text. |*out_heap| NULL: no limit. */
static weir_status graph_env(const weir_runtime *runtime, weir_env *out_env,
                             weir_heap **out_heap, weir_error *err) {
  weir_heap_opts opts = {.limit_bytes = runtime->build_limit};
  *out_heap = NULL;
  *out_env = runtime->env;
  if (runtime->build_limit == 0) return WEIR_OK;
  *out_heap = weir_heap_create(runtime->env.alloc, &opts);
  if (*out_heap == NULL) return weir_fail_memory(err, sizeof opts);
  out_env->alloc = weir_heap_allocator(*out_heap);
  return WEIR_OK;
}

weir_status weir_graph_load_file(weir_runtime *runtime, const char *path,
                                 const weir_load_opts *opts,
                                 weir_graph **out_graph, weir_error *err) {
  WEIR_TRY(check_load(runtime, path, "path", out_graph, err));
  weir_env env;
  weir_heap *heap = NULL;
  load_call call;
  weir_status s = load_call_init(runtime, &call, opts, err);
  if (s == WEIR_OK) s = graph_env(runtime, &env, &heap, err);
  if (s == WEIR_OK) {
    s = weir_graph_load(&env, path, &call.options, out_graph, err);
    s = settle(env.alloc, s, err);
  }
  if (s == WEIR_OK) log_loaded(runtime, *out_graph);
  weir_heap_release(heap);
  load_call_release(runtime, &call);
  return settle(runtime->env.alloc, s, err);
}

weir_status weir_graph_load_buffer(weir_runtime *runtime, const char *yaml,
                                   size_t size, const char *name,
                                   const weir_load_opts *opts,
                                   weir_graph **out_graph, weir_error *err) {
  WEIR_TRY(check_load(runtime, yaml, "yaml", out_graph, err));
  weir_env env;
  weir_heap *heap = NULL;
  load_call call;
  weir_status s = load_call_init(runtime, &call, opts, err);
  if (s == WEIR_OK) s = graph_env(runtime, &env, &heap, err);
  if (s == WEIR_OK) {
    s = weir_graph_load_text(&env, (weir_sv){yaml, size},
                             name != NULL ? name : "<buffer>", &call.options,
                             out_graph, err);
    s = settle(env.alloc, s, err);
  }
  if (s == WEIR_OK) log_loaded(runtime, *out_graph);
  weir_heap_release(heap);
  load_call_release(runtime, &call);
  return settle(runtime->env.alloc, s, err);
}

void weir_graph_release(weir_graph *graph) {
  weir_graph_unref(graph);
}

size_t weir_graph_io_count(const weir_graph *graph, weir_dir dir) {
  if (graph == NULL) return 0;
  return dir == WEIR_INPUT ? graph->input_count : graph->output_count;
}

static void describe(const weir_graph *graph, const weir_graph_port *port,
                     weir_io_desc *out) {
  const weir_value *value = &graph->values[port->value];
  out->dtype = value->dtype;
  out->rank = value->shape->rank;
  out->has_default = port->has_default;
  out->name = port->name.data;
  out->name_size = port->name.size;
  for (int32_t i = 0; i < value->shape->rank; i++) {
    weir_dim d = value->shape->dims[i];
    out->dims[i] = weir_dim_known(d) ? d.value : -1;
  }
  weir_graph_type_text(graph, port->value, out->type, sizeof out->type);
}

weir_status weir_graph_io(const weir_graph *graph, weir_dir dir, size_t i,
                          weir_io_desc *out_desc, weir_error *err) {
  weir_io_desc desc = {.struct_size = sizeof desc};
  if (graph == NULL) return weir_fail_null(err, "graph");
  if (i >= weir_graph_io_count(graph, dir))
    return weir_fail(err, WEIR_W0004, NULL, "there are %zu of them, not %zu",
                     weir_graph_io_count(graph, dir), i + 1);
  describe(graph, dir == WEIR_INPUT ? &graph->inputs[i] : &graph->outputs[i],
           &desc);
  return WEIR_OPTS_WRITE(weir_io_desc, out_desc, &desc, err);
}

size_t weir_graph_label_count(const weir_graph *graph) {
  return graph == NULL ? 0 : graph->label_count;
}

const char *weir_graph_label_at(const weir_graph *graph, size_t i) {
  return i < weir_graph_label_count(graph) ? graph->labels[i].data : NULL;
}
