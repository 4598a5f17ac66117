/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/data/data_show.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/base/utf8.h"
#include "runtime/train/batch/data_iter.h"
#include "runtime/train/data/data_internal.h"
#include "runtime/train/data/data_open.h"
#include "runtime/train/data/data_vocabulary.h"

enum {
  kClasses = 256, /* values 0 to 255 are counted */
  kShownRows = 3,
  kShownValues = 8, /* of a row */
  kMostExamples = 1000000
};

/* One pass over an epoch, with a few numbers kept for each column; both forms
 * of the answer are printed from them. */

/* The facts of a column that the pass finds. */
typedef struct column_facts {
  bool counts; /* a single small integer in each example */
  int64_t classes[kClasses];
  double least, most, sum;
  int64_t values;
} column_facts;

typedef struct survey {
  weir_dataset *set;
  column_facts *facts;
  double *first; /* kShownRows * kShownValues for each column */
  int64_t examples, shown;
  bool all; /* of the epoch */
} survey;

/* ---- The pass */

static void look_at(const weir_tensor *t, int64_t rows, column_facts *f) {
  int64_t n = t->shape.dims[0].value > 0
                  ? weir_shape_elements(&t->shape) / t->shape.dims[0].value
                  : 0;
  for (int64_t i = 0; i < n * rows; i++) {
    double v = weir_tensor_get_f64(t, i);
    if (f->values == 0 || v < f->least) f->least = v;
    if (f->values == 0 || v > f->most) f->most = v;
    f->sum += v;
    f->values++;
    if (!f->counts) continue;
    if (v >= 0 && v < kClasses)
      f->classes[(int)v]++;
    else
      f->counts = false;
  }
}

static void keep_first(survey *s, const weir_batch *b) {
  for (int64_t r = 0; r < b->rows && s->shown < kShownRows; r++, s->shown++)
    for (uint32_t c = 0; c < s->set->column_count; c++) {
      const weir_tensor *t = b->columns[c];
      int64_t n = weir_shape_elements(&t->shape) / t->shape.dims[0].value;
      double *to = s->first + (c * kShownRows + s->shown) * kShownValues;
      for (int64_t i = 0; i < n && i < kShownValues; i++)
        to[i] = weir_tensor_get_f64(t, r * n + i);
    }
}

static weir_status read_epoch(survey *s, weir_data_iter *it, weir_error *err) {
  for (;;) {
    weir_batch b;
    WEIR_TRY(weir_data_iter_next(it, &b, err));
    s->all = b.end_of_epoch;
    if (b.end_of_epoch || s->examples >= kMostExamples) return WEIR_OK;
    keep_first(s, &b);
    for (uint32_t c = 0; c < s->set->column_count; c++)
      look_at(b.columns[c], b.rows, &s->facts[c]);
    s->examples += b.rows;
  }
}

static void survey_release(survey *s) {
  weir_free(s->set->env->alloc, s->facts);
  weir_free(s->set->env->alloc, s->first);
}

static weir_status survey_init(survey *s, weir_dataset *set, weir_error *err) {
  const weir_allocator *alloc = set->env->alloc;
  uint32_t n = set->column_count;
  weir_data_iter *it = NULL;
  *s = (survey){.set = set};
  s->facts = weir_alloc_array(alloc, n, sizeof *s->facts);
  s->first =
      weir_alloc_array(alloc, n, kShownRows * kShownValues * sizeof *s->first);
  if (s->facts == NULL || s->first == NULL)
    return weir_fail_memory(err, n * sizeof *s->facts);
  for (uint32_t c = 0; c < n; c++)
    s->facts[c].counts = set->columns[c].rank == 1 &&
                         !weir_dtype_is_float(set->columns[c].dtype);
  WEIR_TRY(weir_data_iter_create(set, &it, err));
  weir_status status = read_epoch(s, it, err);
  weir_data_iter_release(it);
  return status;
}

static int64_t elements_of(const weir_data_column *c) {
  int64_t n = 1;
  for (int32_t d = 1; d < c->rank; d++) n *= c->dims[d];
  return n;
}

/* ---- Text */

static void put_head(const survey *s, weir_strbuf *out) {
  const weir_dataset *set = s->set;
  int64_t batches = weir_dataset_batches(set);
  weir_strbuf_printf(out, "%.*s  %s, ", WEIR_SV(set->spec->name),
                     set->spec->source->form.name);
  if (batches < 0)
    weir_strbuf_printf(out, "%" PRId64 " examples again and again, batches of",
                       set->round);
  else
    weir_strbuf_printf(out, "%" PRId64 " examples, %" PRId64 " batches of",
                       weir_dataset_examples(set), batches);
  weir_strbuf_printf(out, " %" PRId64 "\n", set->batch);
  int64_t tail = batches < 0 ? 0 : set->epoch % set->batch;
  if (tail > 0)
    weir_strbuf_printf(out, "  the last batch has %" PRId64 " examples%s\n",
                       tail, set->pad ? ", filled up" : "");
  int64_t left = batches < 0 ? 0 : set->round * set->repeat - set->epoch;
  if (left > 0)
    weir_strbuf_printf(out,
                       "  %" PRId64
                       " examples of each epoch are left "
                       "out, too few for a batch\n",
                       left);
  if (!set->order.shuffle) return;
  weir_strbuf_printf(out, "  shuffled with seed %" PRIu64, set->order.seed);
  if (set->order.buffer < set->round)
    weir_strbuf_printf(out, " through a buffer of %" PRId64 "\n",
                       set->order.buffer);
  else
    weir_strbuf_text(out, ", all orders\n");
}

static void put_files(const weir_dataset *set, weir_strbuf *out) {
  const weir_data_spec *spec = set->spec;
  for (uint32_t i = 0; i < spec->file_count; i++) {
    const weir_yaml *y = spec->files[i].paths;
    bool list = y->kind == WEIR_YAML_LIST;
    for (uint32_t k = 0; k < (list ? y->count : 1); k++) {
      weir_sv path = list ? y->items[k]->text : y->text;
      weir_strbuf_printf(out, "  file   %s/%.*s\n", set->root, WEIR_SV(path));
    }
  }
}

static void put_classes(const column_facts *f, weir_strbuf *out) {
  weir_strbuf_text(out, "         values");
  for (int k = 0, shown = 0; k < kClasses; k++) {
    if (f->classes[k] == 0) continue;
    if (++shown > 20) {
      weir_strbuf_text(out, " ...");
      break;
    }
    weir_strbuf_printf(out, "  %d: %" PRId64, k, f->classes[k]);
  }
  weir_strbuf_text(out, "\n");
}

/* The entry of a vocabulary, so that it keeps to its line. */
static void put_word(const weir_vocabulary *v, double index, weir_strbuf *out) {
  bool known = index >= 0 && index < weir_vocabulary_count(v);
  weir_sv t =
      known ? weir_vocabulary_text(v, (int32_t)index) : WEIR_SV_LIT("?");
  weir_strbuf_text(out, " ");
  while (t.size > 0) {
    uint32_t point = 0;
    size_t n = weir_utf8_decode(t, &point);
    if (n == 0) return; /* vocabularies hold UTF-8 only */
    if (point == '\n')
      weir_strbuf_text(out, "\\n");
    else if (weir_utf8_unsafe(point))
      weir_strbuf_printf(out, "\\u%04x", point);
    else
      weir_strbuf_append(out, t.data, n);
    t = (weir_sv){t.data + n, t.size - n};
  }
}

static void put_row(const double *row, int64_t n, const weir_vocabulary *v,
                    weir_strbuf *out) {
  for (int64_t i = 0; i < n && i < kShownValues; i++)
    if (v != NULL)
      put_word(v, row[i], out);
    else
      weir_strbuf_printf(out, " %.6g", row[i]);
  weir_strbuf_text(out, n > kShownValues ? " ...\n" : "\n");
}

static void put_column(const survey *s, uint32_t c, weir_strbuf *out) {
  const weir_data_column *column = &s->set->columns[c];
  const column_facts *f = &s->facts[c];
  weir_strbuf_printf(out, "  %-6.*s %s[", WEIR_SV(column->name),
                     weir_dtype_name(column->dtype));
  for (int32_t d = 0; d < column->rank; d++)
    if (column->dims[d] < 0)
      weir_strbuf_text(out, "*");
    else
      weir_strbuf_printf(out, "%s%" PRId64, d > 0 ? ", " : "", column->dims[d]);
  weir_strbuf_text(out, "]");
  if (f->values > 0)
    weir_strbuf_printf(out, "  %.6g to %.6g, mean %.6g", f->least, f->most,
                       f->sum / (double)f->values);
  const weir_vocabulary *v = weir_dataset_vocabulary(s->set, column->name);
  if (v != NULL)
    weir_strbuf_printf(out, ", vocabulary of %d", weir_vocabulary_count(v));
  weir_strbuf_text(out, "\n");
  if (f->counts && f->values > 0) put_classes(f, out);
  int64_t n = elements_of(column);
  for (int64_t r = 0; r < s->shown; r++) {
    const double *row = s->first + (c * kShownRows + r) * kShownValues;
    weir_strbuf_text(out, r == 0 ? "         first " : "               ");
    put_row(row, n, v, out);
  }
}

weir_status weir_dataset_show(weir_dataset *set, weir_strbuf *out,
                              weir_error *err) {
  survey s;
  weir_status status = survey_init(&s, set, err);
  if (status == WEIR_OK) {
    put_head(&s, out);
    put_files(set, out);
    if (!s.all)
      weir_strbuf_printf(out, "  of the first %" PRId64 " examples:\n",
                         s.examples);
    for (uint32_t c = 0; c < set->column_count; c++) put_column(&s, c, out);
    status = weir_strbuf_status(out, err);
  }
  survey_release(&s);
  return status;
}

/* ---- JSON */

static void json_column(const survey *s, uint32_t c, weir_json_writer *w) {
  const weir_data_column *column = &s->set->columns[c];
  const column_facts *f = &s->facts[c];
  weir_json_object_begin(w, true);
  weir_json_key(w, "name");
  weir_json_string(w, column->name);
  weir_json_key(w, "dtype");
  weir_json_string(w, weir_sv_from(weir_dtype_name(column->dtype)));
  weir_json_key(w, "shape");
  weir_json_array_begin(w, true);
  for (int32_t d = 0; d < column->rank; d++) weir_json_int(w, column->dims[d]);
  weir_json_array_end(w);
  if (f->values > 0) {
    weir_json_key(w, "min");
    weir_json_double(w, f->least);
    weir_json_key(w, "max");
    weir_json_double(w, f->most);
    weir_json_key(w, "mean");
    weir_json_double(w, f->sum / (double)f->values);
  }
  const weir_vocabulary *v = weir_dataset_vocabulary(s->set, column->name);
  if (v != NULL) {
    weir_json_key(w, "vocabulary");
    weir_json_int(w, weir_vocabulary_count(v));
  }
  if (f->counts) {
    weir_json_key(w, "counts");
    weir_json_array_begin(w, true);
    int last = kClasses;
    while (last > 0 && f->classes[last - 1] == 0) last--;
    for (int k = 0; k < last; k++) weir_json_int(w, f->classes[k]);
    weir_json_array_end(w);
  }
  weir_json_key(w, "first");
  weir_json_array_begin(w, true);
  int64_t n = elements_of(column);
  for (int64_t r = 0; r < s->shown; r++) {
    const double *row = s->first + (c * kShownRows + r) * kShownValues;
    weir_json_array_begin(w, true);
    for (int64_t i = 0; i < n && i < kShownValues; i++)
      weir_json_double(w, row[i]);
    weir_json_array_end(w);
  }
  weir_json_array_end(w);
  weir_json_object_end(w);
}

static void json_files(const weir_data_spec *spec, weir_json_writer *w) {
  weir_json_array_begin(w, true);
  for (uint32_t i = 0; i < spec->file_count; i++) {
    const weir_yaml *y = spec->files[i].paths;
    bool list = y->kind == WEIR_YAML_LIST;
    for (uint32_t k = 0; k < (list ? y->count : 1); k++)
      weir_json_string(w, list ? y->items[k]->text : y->text);
  }
  weir_json_array_end(w);
}

static void json_set(const survey *s, weir_json_writer *w) {
  const weir_dataset *set = s->set;
  weir_json_object_begin(w, false);
  weir_json_key(w, "name");
  weir_json_string(w, set->spec->name);
  weir_json_key(w, "source");
  weir_json_string(w, weir_sv_from(set->spec->source->form.name));
  weir_json_key(w, "root");
  weir_json_string(w, weir_sv_from(set->root));
  weir_json_key(w, "files");
  json_files(set->spec, w);
  weir_json_key(w, "examples");
  weir_json_int(w, weir_dataset_examples(set));
  weir_json_key(w, "batches");
  weir_json_int(w, weir_dataset_batches(set));
  weir_json_key(w, "batch");
  weir_json_int(w, set->batch);
  weir_json_key(w, "shuffled");
  weir_json_bool(w, set->order.shuffle);
  weir_json_key(w, "seen");
  weir_json_int(w, s->examples);
  weir_json_key(w, "columns");
  weir_json_array_begin(w, false);
  for (uint32_t c = 0; c < set->column_count; c++) json_column(s, c, w);
  weir_json_array_end(w);
  weir_json_object_end(w);
}

weir_status weir_dataset_show_json(weir_dataset *set, weir_json_writer *w,
                                   weir_error *err) {
  survey s;
  weir_status status = survey_init(&s, set, err);
  if (status == WEIR_OK) json_set(&s, w);
  survey_release(&s);
  return status;
}
