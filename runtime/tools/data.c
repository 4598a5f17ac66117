/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_internal.h"
#include "runtime/tools/tools.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/data/data_show.h"

static weir_status show_set(weir_runtime *runtime, const weir_graph *graph,
                            const weir_tools_data *t, weir_sv name,
                            weir_strbuf *out, weir_json_writer *json,
                            weir_error *err) {
  weir_dataset *set = NULL;
  weir_dataset_options options = {.root = t->data_root, .seed = t->seed};
  weir_status s =
      weir_dataset_open(&runtime->env, graph, name, &options, &set, err);
  if (s == WEIR_OK)
    s = json != NULL ? weir_dataset_show_json(set, json, err)
                     : weir_dataset_show(set, out, err);
  weir_dataset_release(set);
  return s;
}

static bool is_set(const weir_yaml_entry *e) {
  return !weir_sv_is(e->key, "root") && !weir_sv_starts_with(e->key, "x-");
}

static weir_status show_all(weir_runtime *runtime, const weir_graph *graph,
                            const weir_tools_data *t, weir_strbuf *out,
                            weir_json_writer *json, weir_error *err) {
  weir_mark at = {.file = "graph"};
  if (t->name != NULL)
    return show_set(runtime, graph, t, weir_sv_from(t->name), out, json, err);
  if (graph->data == NULL)
    return weir_fail(err, WEIR_W4023, &at, "the graph has no `data` section");
  for (uint32_t i = 0; i < graph->data->count; i++)
    if (is_set(&graph->data->entries[i]))
      WEIR_TRY(show_set(runtime, graph, t, graph->data->entries[i].key, out,
                        json, err));
  return WEIR_OK;
}

weir_status weir_tools_data_show(weir_runtime *runtime, const weir_graph *graph,
                                 const weir_tools_data *opts, bool json,
                                 weir_write_fn write, void *self,
                                 weir_error *err) {
  weir_strbuf text;
  weir_json_writer w;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (graph == NULL) return weir_fail_null(err, "graph");
  weir_strbuf_init(&text, runtime->env.alloc);
  weir_json_writer_init(&w, weir_strbuf_writer(&text), 2);
  if (json) weir_json_array_begin(&w, false);
  weir_status s = show_all(runtime, graph, opts, &text, json ? &w : NULL, err);
  if (json) weir_json_array_end(&w);
  if (json && s == WEIR_OK) (void)weir_json_finish(&w);
  if (s == WEIR_OK) s = weir_strbuf_status(&text, err);
  if (s == WEIR_OK && text.size > 0 && !write(self, text.data, text.size))
    s = weir_fail(err, WEIR_W5009, NULL, "writing failed");
  weir_strbuf_release(&text);
  return s;
}
