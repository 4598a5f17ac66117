/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data/data_map_block.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/diag/nearest.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/train/data/data_internal.h"

/* A map that is a block of the graph's own file: a small graph is written that
 * imports the file and calls the block, one input for each of the block's,
 * typed as the column of that name. */

typedef struct writing {
  const weir_dataset *set;
  weir_sv block;
  const weir_yaml *in, *out; /* of the block */
  weir_strbuf *text;
  weir_error *err;
} writing;

static weir_status fail(const writing *w, const char *what) {
  return weir_fail(w->err, WEIR_W4034, &w->set->spec->map_mark,
                   "block '%.*s' %s", WEIR_SV(w->block), what);
}

static weir_sv block_at(const void *self, size_t i) {
  return ((const weir_yaml *)self)->entries[i].key;
}

/* Finds the block in the graph's text, which is read again: a loaded graph has
 * no blocks any more, only the nodes of their calls. */
static weir_status find_block(writing *w, weir_arena *arena) {
  const weir_graph *g = w->set->graph;
  const weir_yaml *root = NULL, *blocks = NULL;
  const weir_yaml_entry *e = NULL;
  WEIR_TRY(
      weir_yaml_parse(g->source, "graph", NULL, arena, NULL, &root, w->err));
  if (root->kind == WEIR_YAML_MAP) blocks = weir_yaml_get(root, "blocks");
  if (blocks != NULL) e = weir_yaml_entry_of(blocks, w->block);
  if (e != NULL) {
    w->in = weir_yaml_get(e->value, "in");
    w->out = weir_yaml_get(e->value, "out");
    return WEIR_OK;
  }
  weir_status s = fail(w, "is not in the graph's file");
  weir_sv near = {NULL, 0};
  if (blocks != NULL)
    near = weir_nearest_name(w->block, blocks->count, block_at, blocks);
  if (near.size > 0) weir_hint(w->err, "did you mean '%.*s'?", WEIR_SV(near));
  return s;
}

static uint32_t count_of(const weir_yaml *y) {
  if (y == NULL) return 0;
  return y->kind == WEIR_YAML_SCALAR ? 1 : y->count;
}

static weir_sv input_name(const writing *w, uint32_t i) {
  return w->in->kind == WEIR_YAML_MAP ? w->in->entries[i].key
                                      : w->in->items[i]->text;
}

/* A result without a name takes the place of the first input. */
static weir_sv output_name(const writing *w, uint32_t i) {
  return w->out->kind == WEIR_YAML_MAP ? w->out->entries[i].key
                                       : input_name(w, 0);
}

static weir_status put_input(const writing *w, weir_sv name) {
  const weir_data_column *c = NULL;
  int first = w->set->spec->map_per_example ? 1 : 0;
  for (uint32_t i = 0; i < w->set->read_count; i++)
    if (weir_sv_equal(w->set->read_columns[i].name, name))
      c = &w->set->read_columns[i];
  if (c == NULL) return fail(w, "has an input that no column feeds");
  weir_strbuf_printf(w->text, "  %.*s: '%s[", WEIR_SV(name),
                     weir_dtype_name(c->dtype));
  for (int32_t d = first; d < c->rank; d++) {
    if (d > first) weir_strbuf_text(w->text, ", ");
    if (d == 0)
      weir_strbuf_text(w->text, "n");
    else
      weir_strbuf_printf(w->text, "%" PRId64, c->dims[d]);
  }
  weir_strbuf_text(w->text, "]'\n");
  return WEIR_OK;
}

static weir_status put_graph(const writing *w) {
  weir_sv file = w->set->graph->file;
  weir_strbuf *t = w->text;
  uint32_t in = count_of(w->in), out = count_of(w->out);
  for (size_t i = file.size; i > 0; i--)
    if (file.data[i - 1] == '/') {
      file = (weir_sv){file.data + i, file.size - i};
      break;
    }
  if (in == 0 || out == 0) return fail(w, "has no inputs or no results");
  if (out > 1 && w->out->kind != WEIR_YAML_MAP)
    return fail(w, "has several results: name them, out: {column: value}");
  if (memchr(file.data, '\'', file.size) != NULL)
    return fail(w, "is in a file whose name holds a quote");
  weir_strbuf_printf(t, "weir: 1\ndims: [n]\nimport: {g: '%.*s'}\ninputs:\n",
                     WEIR_SV(file));
  for (uint32_t i = 0; i < in; i++) WEIR_TRY(put_input(w, input_name(w, i)));
  weir_strbuf_text(t, "nodes:\n  ");
  for (uint32_t i = 0; i < out; i++)
    weir_strbuf_printf(t, "%sresult_%u", i > 0 ? ", " : "", i);
  weir_strbuf_printf(t, ": g.%.*s(", WEIR_SV(w->block));
  for (uint32_t i = 0; i < in; i++)
    weir_strbuf_printf(t, "%s%.*s", i > 0 ? ", " : "",
                       WEIR_SV(input_name(w, i)));
  weir_strbuf_text(t, ")\noutputs:\n");
  for (uint32_t i = 0; i < out; i++)
    weir_strbuf_printf(t, "  %.*s: result_%u\n", WEIR_SV(output_name(w, i)), i);
  return weir_strbuf_status(t, w->err);
}

weir_status weir_data_map_block_text(const weir_dataset *set,
                                     weir_strbuf *out_text, weir_error *err) {
  weir_arena arena;
  writing w = {
      .set = set, .block = set->spec->map_block, .text = out_text, .err = err};
  weir_arena_init(&arena, set->env->alloc);
  weir_status s = find_block(&w, &arena);
  if (s == WEIR_OK) s = put_graph(&w);
  weir_arena_release(&arena);
  return s;
}
