/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/summary.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/json/json.h"
#include "runtime/io/record/event_file.h"

/* One row goes to up to four files: events for TensorBoard, of training and of
 * evaluations, CSV, JSON lines.
 * Lines are appended whole, by one write each, so a reader that follows a file
 * sees no half line but at its end. */

enum { NAMES_TRIED = 1000 };

/* A text file that grows. */
typedef struct text_file {
  const char *name; /* NULL: none */
  void *file;
} text_file;

struct weir_summary {
  const weir_env *env;
  weir_arena arena;
  int64_t wall_ns; /* minus the clock's, when it began */
  void *folder;
  text_file csv, jsonl;
  weir_event_file *events, *eval_events; /* eval_events: once there is one */
  const char *root, *dir, *eval_folder;  /* as in the options */
  int64_t time_ns;
  const char *const *names;
  uint32_t name_count, eval_from;
  weir_strbuf line;
  float *numbers; /* of a histogram that is not f32 */
  size_t number_room;
};

static int64_t now_ns(const weir_summary *s) {
  return s->env->clock->now_ns(s->env->clock->self) + s->wall_ns;
}

/* ---- Text files */

/* Makes |f->name|, or with a number before its ending when that is taken: a
 * run that goes on leaves the files of the first alone. */
static weir_status open_text(weir_summary *s, text_file *f, weir_error *err) {
  const weir_fs *fs = s->env->fs;
  const char *dot = strrchr(f->name, '.');
  int stem = dot != NULL ? (int)(dot - f->name) : (int)strlen(f->name);
  for (int i = 0; i < NAMES_TRIED && f->file == NULL; i++) {
    char name[512];
    if (i == 0)
      snprintf(name, sizeof name, "%s", f->name);
    else
      snprintf(name, sizeof name, "%.*s.%d%s", stem, f->name, i,
               dot != NULL ? dot : "");
    WEIR_TRY(fs->folders->create(fs->self, s->folder, name, &f->file, err));
  }
  if (f->file != NULL) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL, "%s exists, and %d more of it",
                   f->name, (int)NAMES_TRIED);
}

static weir_status append_line(weir_summary *s, text_file *f, weir_error *err) {
  const weir_fs *fs = s->env->fs;
  weir_sv text = weir_strbuf_view(&s->line);
  WEIR_TRY(weir_strbuf_status(&s->line, err));
  weir_bytes bytes = {(const uint8_t *)text.data, text.size};
  return fs->folders->append(fs->self, f->file, bytes, err);
}

static weir_status write_header(weir_summary *s, weir_error *err) {
  weir_strbuf_clear(&s->line);
  weir_strbuf_text(&s->line, "step,time");
  for (uint32_t i = 0; i < s->name_count; i++)
    weir_strbuf_printf(&s->line, ",%s", s->names[i]);
  weir_strbuf_text(&s->line, "\n");
  return append_line(s, &s->csv, err);
}

static weir_status open_texts(weir_summary *s, const weir_summary_options *o,
                              weir_error *err) {
  const weir_fs *fs = s->env->fs;
  s->csv.name = o->csv;
  s->jsonl.name = o->jsonl;
  if (o->csv == NULL && o->jsonl == NULL) return WEIR_OK;
  if (fs == NULL || fs->folders == NULL)
    return weir_fail(err, WEIR_W5009, NULL, "%s: there are no folders here",
                     o->dir);
  WEIR_TRY(fs->folders->open(fs->self, o->root, o->dir, true, &s->folder, err));
  if (o->csv != NULL) {
    WEIR_TRY(open_text(s, &s->csv, err));
    WEIR_TRY(write_header(s, err));
  }
  return o->jsonl != NULL ? open_text(s, &s->jsonl, err) : WEIR_OK;
}

/* Seconds since 1970. */
static double seconds(const weir_summary *s) {
  return (double)now_ns(s) / 1e9;
}

static weir_status csv_row(weir_summary *s, uint64_t step, const double *values,
                           weir_error *err) {
  weir_strbuf_clear(&s->line);
  weir_strbuf_printf(&s->line, "%llu,%.3f", (unsigned long long)step,
                     seconds(s));
  for (uint32_t i = 0; i < s->name_count; i++)
    if (isnan(values[i]))
      weir_strbuf_text(&s->line, ",");
    else
      weir_strbuf_printf(&s->line, ",%.9g", values[i]);
  weir_strbuf_text(&s->line, "\n");
  return append_line(s, &s->csv, err);
}

static weir_status json_row(weir_summary *s, uint64_t step,
                            const double *values, weir_error *err) {
  weir_json_writer w;
  weir_strbuf_clear(&s->line);
  weir_json_writer_init(&w, weir_strbuf_writer(&s->line), 0);
  weir_json_object_begin(&w, true);
  weir_json_key(&w, "step");
  weir_json_uint(&w, step);
  weir_json_key(&w, "time");
  weir_json_double(&w, seconds(s));
  for (uint32_t i = 0; i < s->name_count; i++) {
    if (isnan(values[i])) continue;
    weir_json_key(&w, s->names[i]);
    weir_json_double(&w, values[i]);
  }
  weir_json_object_end(&w);
  weir_json_finish(&w);
  return append_line(s, &s->jsonl, err);
}

/* ---- The graph */

static weir_sv input_text(weir_summary *s, const weir_graph *g,
                          weir_value_id id) {
  const weir_value *v = &g->values[id];
  weir_sv name = g->nodes[v->node].name;
  if (v->port == 0) return name;
  weir_strbuf_clear(&s->line);
  weir_strbuf_printf(&s->line, "%.*s:%u", WEIR_SV(name), v->port);
  weir_sv text = weir_strbuf_view(&s->line);
  return (weir_sv){weir_arena_string(&s->arena, text.data, text.size),
                   text.size};
}

static weir_status write_graph(weir_summary *s, const weir_graph *g,
                               weir_error *err) {
  weir_event_node *nodes =
      weir_arena_array(&s->arena, g->node_count + 1u, sizeof *nodes);
  if (nodes == NULL) return weir_fail_memory(err, 0);
  for (uint32_t i = 0; i < g->node_count; i++) {
    const weir_node *node = &g->nodes[i];
    weir_sv *in =
        weir_arena_array(&s->arena, node->input_count + 1u, sizeof *in);
    if (in == NULL) return weir_fail_memory(err, 0);
    uint32_t n = 0;
    for (uint32_t k = 0; k < node->input_count; k++)
      if (node->inputs[k] != WEIR_NO_VALUE) {
        in[n] = input_text(s, g, node->inputs[k]);
        if (in[n++].data == NULL) return weir_fail_memory(err, 0);
      }
    nodes[i] = (weir_event_node){.name = node->name,
                                 .op = weir_sv_from(node->op->name),
                                 .device = node->device,
                                 .inputs = in,
                                 .input_count = n};
  }
  return weir_event_file_graph(s->events, now_ns(s), nodes, g->node_count, err);
}

/* ---- The doors */

static weir_status open_events(weir_summary *s, const char *folder,
                               weir_event_file **out, weir_error *err) {
  weir_strbuf_clear(&s->line);
  weir_strbuf_printf(&s->line, "%s/%s", s->dir, folder);
  weir_sv text = weir_strbuf_view(&s->line);
  WEIR_TRY(weir_strbuf_status(&s->line, err));
  const char *path = weir_arena_string(&s->arena, text.data, text.size);
  if (path == NULL) return weir_fail_memory(err, text.size);
  return weir_event_file_create(s->env, s->root, path, s->time_ns, "weir", out,
                                err);
}

static weir_status fill(weir_summary *s, const weir_summary_options *o,
                        weir_error *err) {
  char **names = weir_arena_array(&s->arena, o->name_count + 1u, sizeof *names);
  if (names == NULL) return weir_fail_memory(err, 0);
  for (uint32_t i = 0; i < o->name_count; i++) {
    names[i] = weir_arena_string(&s->arena, o->names[i], strlen(o->names[i]));
    if (names[i] == NULL) return weir_fail_memory(err, 0);
  }
  s->names = (const char *const *)names;
  s->name_count = o->name_count;
  s->eval_from = o->eval_from;
  s->time_ns = o->time_ns;
  s->dir = weir_arena_string(&s->arena, o->dir, strlen(o->dir));
  if (s->dir == NULL) return weir_fail_memory(err, 0);
  s->eval_folder = weir_arena_string(
      &s->arena, o->eval_folder != NULL ? o->eval_folder : "eval",
      o->eval_folder != NULL ? strlen(o->eval_folder) : 4);
  if (s->eval_folder == NULL) return weir_fail_memory(err, 0);
  if (o->root != NULL) {
    s->root = weir_arena_string(&s->arena, o->root, strlen(o->root));
    if (s->root == NULL) return weir_fail_memory(err, 0);
  }
  WEIR_TRY(open_texts(s, o, err));
  if (s->eval_from == 0) return WEIR_OK;
  WEIR_TRY(open_events(s, "train", &s->events, err));
  if (o->graph != NULL) WEIR_TRY(write_graph(s, o->graph, err));
  return weir_event_file_flush(s->events, err);
}

weir_status weir_summary_create(const weir_env *env,
                                const weir_summary_options *options,
                                weir_summary **out_summary, weir_error *err) {
  *out_summary = NULL;
  weir_summary *s = weir_alloc_array(env->alloc, 1, sizeof *s);
  if (s == NULL) return weir_fail_memory(err, sizeof *s);
  s->env = env;
  s->wall_ns = options->time_ns - options->clock_ns;
  weir_arena_init(&s->arena, env->alloc);
  weir_strbuf_init(&s->line, env->alloc);
  weir_status status = fill(s, options, err);
  if (status == WEIR_OK)
    *out_summary = s;
  else
    weir_summary_release(s);
  return status;
}

static void end_text(weir_summary *s, text_file *f) {
  const weir_fs *fs = s->env->fs;
  if (f->file != NULL) (void)fs->folders->end(fs->self, f->file, NULL);
}

void weir_summary_release(weir_summary *s) {
  if (s == NULL) return;
  weir_event_file_close(s->events);
  weir_event_file_close(s->eval_events);
  end_text(s, &s->csv);
  end_text(s, &s->jsonl);
  if (s->folder != NULL)
    s->env->fs->folders->close(s->env->fs->self, s->folder);
  weir_free(s->env->alloc, s->numbers);
  weir_strbuf_release(&s->line);
  weir_arena_release(&s->arena);
  weir_free(s->env->alloc, s);
}

weir_status weir_summary_row(weir_summary *s, uint64_t step,
                             const double *values, weir_error *err) {
  for (uint32_t i = 0; i < s->name_count; i++) {
    if (isnan(values[i])) continue;
    bool eval = i >= s->eval_from;
    if (eval && s->eval_events == NULL)
      WEIR_TRY(open_events(s, s->eval_folder, &s->eval_events, err));
    weir_sv tag = weir_sv_from(s->names[i] + (eval ? strlen("eval/") : 0));
    WEIR_TRY(weir_event_file_scalar(eval ? s->eval_events : s->events,
                                    now_ns(s), (int64_t)step, tag,
                                    (float)values[i], err));
  }
  if (s->csv.file != NULL) WEIR_TRY(csv_row(s, step, values, err));
  return s->jsonl.file != NULL ? json_row(s, step, values, err) : WEIR_OK;
}

weir_status weir_summary_histogram(weir_summary *s, uint64_t step, weir_sv tag,
                                   const weir_tensor *tensor, weir_error *err) {
  int64_t count = weir_shape_elements(&tensor->shape);
  const float *data = tensor->data;
  if (tensor->dtype != WEIR_F32) {
    if (s->number_room < (size_t)count) {
      weir_free(s->env->alloc, s->numbers);
      s->number_room = 0;
      s->numbers =
          weir_alloc_array(s->env->alloc, (size_t)count, sizeof *s->numbers);
      if (s->numbers == NULL) return weir_fail_memory(err, (size_t)count);
      s->number_room = (size_t)count;
    }
    for (int64_t i = 0; i < count; i++)
      s->numbers[i] = (float)weir_tensor_get_f64(tensor, i);
    data = s->numbers;
  }
  return weir_event_file_histogram(s->events, now_ns(s), (int64_t)step, tag,
                                   data, count, err);
}

weir_status weir_summary_flush(weir_summary *s, weir_error *err) {
  if (s->eval_events != NULL)
    WEIR_TRY(weir_event_file_flush(s->eval_events, err));
  return s->events != NULL ? weir_event_file_flush(s->events, err) : WEIR_OK;
}
