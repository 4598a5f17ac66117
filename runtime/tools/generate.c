/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "placement/bench/generate.h"
#include "runtime/api/weir_internal.h"
#include "runtime/base/strbuf.h"
#include "runtime/base/vec.h"
#include "runtime/tools/tools.h"

/* A graph file of `task` nodes, written as the generator makes them. */
typedef struct graph_sink {
  const weir_allocator *alloc;
  weir_arena names;
  weir_strbuf line;
  WEIR_VEC(const char *) name; /* per task */
  WEIR_VEC(bool) used;         /* by a later one */
  weir_write_fn write;
  void *self;
  bool failed; /* writing did */
} graph_sink;

static bool flush(graph_sink *s) {
  weir_sv text = weir_strbuf_view(&s->line);
  s->failed = s->failed || !s->write(s->self, text.data, text.size);
  weir_strbuf_clear(&s->line);
  return !s->failed;
}

static bool write_task(void *self, const weir_task *t) {
  graph_sink *s = self;
  const char *name = weir_arena_string(&s->names, t->name, strlen(t->name));
  if (name == NULL || !weir_vec_push(s->alloc, &s->name, name) ||
      !weir_vec_push(s->alloc, &s->used, false))
    return false;
  weir_strbuf_printf(&s->line, "  %s: task(", name);
  for (uint32_t i = 0; i < t->input_count; i++) {
    s->used.items[t->inputs[i]] = true;
    weir_strbuf_printf(&s->line, "%s, ", s->name.items[t->inputs[i]]);
  }
  weir_strbuf_printf(&s->line, "cost_ns=%" PRId64 ", out_bytes=%" PRId64 ")\n",
                     t->cost_ns, t->out_bytes);
  return !s->line.failed && flush(s);
}

static bool write_outputs(graph_sink *s) {
  weir_strbuf_text(&s->line, "outputs:\n");
  for (size_t i = 0; i < s->name.count; i++)
    if (!s->used.items[i])
      weir_strbuf_printf(&s->line, "  - %s\n", s->name.items[i]);
  return !s->line.failed && flush(s);
}

weir_status weir_tools_generate(weir_runtime *runtime,
                                const weir_tools_generate_opts *opts,
                                weir_write_fn write, void *self,
                                weir_error *err) {
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  const weir_allocator *a = runtime->env.alloc;
  graph_sink s = {.alloc = a, .write = write, .self = self};
  weir_generated made = {0};
  weir_generate_options options = {opts->nodes, opts->seed, opts->processors,
                                   100};
  weir_task_sink sink = {&s, write_task};
  weir_arena_init(&s.names, a);
  weir_strbuf_init(&s.line, a);
  weir_strbuf_printf(&s.line, "weir: 1\nnodes:\n");
  weir_status status =
      weir_generate(a, weir_sv_from(opts->kind), &options, &sink, &made, err);
  if (status == WEIR_OK && !write_outputs(&s))
    status = weir_fail_memory(err, s.line.size);
  if (s.failed)
    status = weir_fail(err, WEIR_W5009, NULL, "the graph could not be written");
  weir_vec_free(a, &s.name);
  weir_vec_free(a, &s.used);
  weir_strbuf_release(&s.line);
  weir_arena_release(&s.names);
  return status;
}
