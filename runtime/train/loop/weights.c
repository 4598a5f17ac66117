/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/weights.h"

#include <stdio.h>
#include <string.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/exec/session/remote.h"
#include "runtime/exec/session/session_snapshot.h"
#include "runtime/exec/session/session_vars.h"
#include "runtime/io/array/safetensors.h"
#include "runtime/io/checkpoint/checkpoint_common.h"
#include "runtime/io/checkpoint/checkpoint_load.h"

/* Variables of a session from tensors by name. All misfits are collected, so
 * that one message shows whether the graph is another one or a shape is wrong.
 * Names are searched one by one, O(variables * tensors): once for a run. */

/* ---- Variables */

/* Collects variables that do not fit, for one message. */
typedef struct misfits {
  char text[400];
  size_t used;
  uint32_t count;
} misfits;

static void add_misfit(misfits *m, const weir_graph *g, weir_node_id id,
                       const weir_tensor *got) {
  char want[192], dims[128] = "", there[160] = "not there";
  const weir_node *node = &g->nodes[id];
  if (got != NULL) {
    weir_shape_print(&got->shape, NULL, NULL, dims, sizeof dims);
    snprintf(there, sizeof there, "there %s%s", weir_dtype_name(got->dtype),
             dims);
  }
  int n = snprintf(
      m->text + m->used, sizeof m->text - m->used, "%s%.*s is %s, %s",
      m->count > 0 ? "; " : "", WEIR_SV(node->name),
      weir_graph_type_text(g, node->first_output, want, sizeof want), there);
  m->count++;
  if (n > 0 && (size_t)n < sizeof m->text - m->used)
    m->used += (size_t)n;
  else
    m->text[m->used] = '\0';
}

static bool same_type(const weir_graph *g, weir_node_id id,
                      const weir_tensor *t) {
  const weir_value *v = &g->values[g->nodes[id].first_output];
  return t->dtype == v->dtype && weir_shape_equal(&t->shape, v->shape);
}

static weir_status fail_misfits(const misfits *m, const char *from,
                                weir_error *err) {
  if (m->count == 0) return WEIR_OK;
  return weir_fail(err, WEIR_W5022, NULL, "%s: %u variable%s not fit: %s", from,
                   m->count, m->count == 1 ? " does" : "s do", m->text);
}

static bool holds(const weir_graph *g, weir_node_id id) {
  return g->nodes[id].op->instr == WEIR_INSTR_VAR_READ;
}

bool *weir_own_states(const weir_graph *graph, const weir_allocator *alloc) {
  bool *own = weir_alloc_array(alloc, graph->node_count, sizeof *own);
  for (weir_node_id id = 0; own != NULL && id < graph->node_count; id++) {
    if (graph->nodes[id].op->instr != WEIR_INSTR_VAR_COMMIT) continue;
    weir_node_id var = graph->values[graph->nodes[id].inputs[0]].node;
    own[var] = strcmp(graph->nodes[var].op->name, "state") == 0;
  }
  return own;
}

/* |skip| (may be NULL): by node, those that keep their values. */
static weir_status set_all(const weir_checkpoint *c, const weir_graph *g,
                           weir_exec_session *session, const char *dir,
                           const bool *skip, weir_error *err) {
  misfits bad = {.used = 0};
  for (weir_node_id id = 0; id < g->node_count; id++) {
    if (!holds(g, id) || (skip != NULL && skip[id])) continue;
    size_t at = weir_checkpoint_find(c, g->nodes[id].name);
    weir_tensor *t = at != SIZE_MAX ? weir_checkpoint_tensor(c, at) : NULL;
    weir_status s = WEIR_OK;
    if (t == NULL || !same_type(g, id, t))
      add_misfit(&bad, g, id, t);
    else if (bad.count == 0)
      s = weir_exec_variable_set(session, id, t, err);
    weir_tensor_unref(t);
    WEIR_TRY(s);
  }
  return fail_misfits(&bad, dir, err);
}

weir_status weir_checkpoint_to_session(const weir_checkpoint *c,
                                       const weir_graph *g,
                                       weir_exec_session *session,
                                       const char *dir, bool carry,
                                       weir_error *err) {
  if (carry) return set_all(c, g, session, dir, NULL, err);
  bool *skip = weir_own_states(g, g->alloc);
  if (skip == NULL) return weir_fail_memory(err, g->node_count);
  weir_status s = set_all(c, g, session, dir, skip, err);
  weir_free(g->alloc, skip);
  return s;
}

/* ---- Variables that have owners */

/* The variables of a graph, and where a bare checkpoint has them. */
typedef struct owned {
  const weir_checkpoint *c;
  const weir_graph *g;
  weir_exec_session *session;
  const weir_diag_sink *sink;
  weir_arena arena;
  weir_remote_row *rows;
  size_t *at; /* of each row, in the checkpoint */
  bool *left; /* no owner has read it */
  uint32_t count;
} owned;

/* All but those of |skip|. */
static weir_status list_rows(owned *o, const char *dir, const bool *skip,
                             weir_error *err) {
  misfits bad = {.used = 0};
  uint32_t most = o->g->node_count;
  o->rows = weir_arena_array(&o->arena, most + 1u, sizeof *o->rows);
  o->at = weir_arena_array(&o->arena, most + 1u, sizeof *o->at);
  o->left = weir_arena_array(&o->arena, most + 1u, sizeof *o->left);
  if (o->rows == NULL || o->at == NULL || o->left == NULL)
    return weir_fail_memory(err, most * sizeof *o->rows);
  for (weir_node_id id = 0; id < most; id++) {
    if (!holds(o->g, id) || (skip != NULL && skip[id])) continue;
    size_t at = weir_checkpoint_find(o->c, o->g->nodes[id].name);
    bool there = at != SIZE_MAX;
    weir_tensor type = {.dtype = WEIR_DTYPE_NONE};
    if (there) type.dtype = weir_checkpoint_dtype(o->c, at);
    if (there) type.shape = *weir_checkpoint_shape(o->c, at);
    if (!there || !same_type(o->g, id, &type)) {
      add_misfit(&bad, o->g, id, there ? &type : NULL);
      continue;
    }
    weir_checkpoint_span span;
    weir_checkpoint_span_of(o->c, at, &span);
    o->at[o->count] = at;
    o->rows[o->count++] =
        (weir_remote_row){id, span.file, span.offset, span.crc};
  }
  return fail_misfits(&bad, dir, err);
}

/* Reads row |i| here and sends it. */
static weir_status send_row(const owned *o, uint32_t i, weir_error *err) {
  weir_error odd = WEIR_ERROR_INIT;
  weir_tensor *t = NULL;
  WEIR_TRY(weir_checkpoint_read(o->c, o->at[i], &t, err));
  if (o->sink != NULL &&
      weir_checkpoint_odd_values(t, weir_checkpoint_name(o->c, o->at[i]),
                                 weir_checkpoint_path_of(o->c), &odd))
    weir_diag_warn(o->sink, &odd);
  weir_status s = weir_exec_variable_set(o->session, o->rows[i].node, t, err);
  weir_tensor_unref(t);
  return s;
}

static weir_status load_rows(const owned *o, weir_error *err) {
  char path[WEIR_CHECKPOINT_COMMON_BYTES];
  weir_checkpoint_common place;
  for (uint32_t i = 0; i < o->count; i++) o->left[i] = true;
  if (weir_checkpoint_place_of(o->c, path, sizeof path, &place))
    WEIR_TRY(weir_exec_variables_load(o->session, &place, o->rows, o->count,
                                      o->left, o->sink, err));
  for (uint32_t i = 0; i < o->count; i++)
    if (o->left[i]) WEIR_TRY(send_row(o, i, err));
  return WEIR_OK;
}

weir_status weir_checkpoint_to_owners(
    const weir_checkpoint *c, const weir_graph *g, weir_exec_session *session,
    const char *dir, bool carry, const weir_diag_sink *sink, weir_error *err) {
  owned o = {.c = c, .g = g, .session = session, .sink = sink};
  bool *skip = carry ? NULL : weir_own_states(g, g->alloc);
  if (!carry && skip == NULL) return weir_fail_memory(err, g->node_count);
  weir_arena_init(&o.arena, g->alloc);
  weir_status s = list_rows(&o, dir, skip, err);
  if (s == WEIR_OK) s = load_rows(&o, err);
  weir_arena_release(&o.arena);
  weir_free(g->alloc, skip);
  return s;
}

/* ---- Weights from a file */

typedef struct weights {
  weir_safetensors *file;
  const char *path;
  const char *const *map;
  size_t map_count;
} weights;

static size_t find_tensor(const weights *w, weir_sv name) {
  for (size_t i = 0; i < weir_safetensors_count(w->file); i++)
    if (weir_sv_equal(weir_safetensors_name(w->file, i), name)) return i;
  return SIZE_MAX;
}

/* Both sides of each mapping must exist. */
static weir_status check_map(const weights *w, const weir_graph *g,
                             weir_error *err) {
  for (size_t i = 0; i < w->map_count; i++) {
    const char *text = w->map[i], *equals = strchr(text, '=');
    if (equals == NULL || equals == text || equals[1] == '\0')
      return weir_fail(err, WEIR_W5024, NULL, "--map %s, expected OLD=NEW",
                       text);
    weir_sv old = {text, (size_t)(equals - text)};
    if (find_tensor(w, old) == SIZE_MAX) {
      weir_status s =
          weir_fail(err, WEIR_W5024, NULL, "--map %s: %s has no tensor %.*s",
                    text, w->path, WEIR_SV(old));
      weir_sv near = weir_nearest_name(old, weir_safetensors_count(w->file),
                                       weir_safetensors_name, w->file);
      if (near.size > 0) weir_hint(err, "did you mean %.*s?", WEIR_SV(near));
      return s;
    }
    weir_node_id id = weir_graph_find_node(g, weir_sv_from(equals + 1));
    if (id == UINT32_MAX || !holds(g, id))
      return weir_fail(err, WEIR_W5024, NULL,
                       "--map %s: the graph has no variable %s", text,
                       equals + 1);
  }
  return WEIR_OK;
}

/* The tensor for variable |name|: a mapped one, or that of its name. */
static size_t source_of(const weights *w, weir_sv name) {
  for (size_t i = 0; i < w->map_count; i++) {
    const char *equals = strchr(w->map[i], '=');
    if (weir_sv_is(name, equals + 1))
      return find_tensor(w, (weir_sv){w->map[i], (size_t)(equals - w->map[i])});
  }
  return find_tensor(w, name);
}

static weir_status set_from(const weights *w, const weir_graph *g,
                            weir_exec_session *session, size_t *count,
                            weir_error *err) {
  misfits bad = {.used = 0};
  for (weir_node_id id = 0; id < g->node_count; id++) {
    if (!holds(g, id)) continue;
    size_t at = source_of(w, g->nodes[id].name);
    if (at == SIZE_MAX) continue;
    weir_tensor *t = NULL;
    WEIR_TRY(weir_safetensors_get(w->file, at, &t, err));
    weir_status s = WEIR_OK;
    if (!same_type(g, id, t))
      add_misfit(&bad, g, id, t);
    else
      s = weir_exec_variable_set(session, id, t, err);
    weir_tensor_unref(t);
    WEIR_TRY(s);
    (*count)++;
  }
  return fail_misfits(&bad, w->path, err);
}

weir_status weir_weights_to_session(const weir_env *env,
                                    const weir_weights_file *file,
                                    const weir_graph *graph,
                                    weir_exec_session *session,
                                    size_t *out_count, weir_error *err) {
  const char *path = file->path;
  weights w = {.path = path, .map = file->map, .map_count = file->map_count};
  *out_count = 0;
  WEIR_TRY(weir_safetensors_open(env, NULL, path, SIZE_MAX, &w.file, err));
  weir_status s = check_map(&w, graph, err);
  if (s == WEIR_OK) s = set_from(&w, graph, session, out_count, err);
  weir_safetensors_release(w.file);
  if (s == WEIR_OK && *out_count == 0)
    s = weir_fail(err, WEIR_W5022, NULL,
                  "%s: no tensor has the name of a variable", path);
  return s;
}
