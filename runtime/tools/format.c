/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as rows of text and as JSON, and their comparison.
 *
 * Text goes through a small buffer to |write|, element by element: a tensor of
 * any size is printed with constant memory, and a failed write ends it. Nothing
 * recurses on rank; an odometer counts through the dimensions. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/number.h"
#include "runtime/tools/tools.h"

/* ---- One element */

static size_t element_text(const weir_tensor *t, int64_t i,
                           char text[WEIR_NUMBER_TEXT]) {
  switch (t->dtype) {
    case WEIR_F32:
      return weir_number_format_float(text, ((const float *)t->data)[i]);
    case WEIR_F64:
      return weir_number_format(text, ((const double *)t->data)[i]);
    case WEIR_BOOL:
      return (size_t)snprintf(text, WEIR_NUMBER_TEXT, "%s",
                              ((const uint8_t *)t->data)[i] ? "true" : "false");
    default:
      return (size_t)snprintf(text, WEIR_NUMBER_TEXT, "%" PRId64,
                              weir_tensor_get_i64(t, i));
  }
}

/* ---- Rows. Long dimensions show their first and last three. */

enum { EDGE = 3, FULL_ELEMENTS = 1000, INDENT = 2 };

typedef struct row_printer {
  const weir_tensor *t;
  weir_write_fn write;
  void *self;
  bool ok, cut; /* |cut|: leave out the middle of long dimensions */
  int width;    /* of an element */
  char buffer[512];
  size_t used;
} row_printer;

static void flush(row_printer *p) {
  if (p->ok && p->used != 0) p->ok = p->write(p->self, p->buffer, p->used);
  p->used = 0;
}

static void put(row_printer *p, const char *text, size_t size) {
  if (p->used + size > sizeof p->buffer) flush(p);
  if (size > sizeof p->buffer) {
    p->ok = p->ok && p->write(p->self, text, size);
    return;
  }
  memcpy(p->buffer + p->used, text, size);
  p->used += size;
}

static void put_spaces(row_printer *p, int count) {
  for (int i = 0; i < count; i++) put(p, " ", 1);
}

static bool is_left_out(const row_printer *p, int64_t i, int64_t dim) {
  return p->cut && dim > 2 * EDGE && i >= EDGE && i < dim - EDGE;
}

/* The next index that is shown; |*gap| when some were left out. */
static int64_t next_index(const row_printer *p, int64_t i, int64_t dim,
                          bool *gap) {
  i++;
  *gap = is_left_out(p, i, dim);
  return *gap ? dim - EDGE : i;
}

static void put_element(row_printer *p, int64_t i) {
  char text[WEIR_NUMBER_TEXT];
  size_t size = element_text(p->t, i, text);
  put_spaces(p, p->width - (int)size);
  put(p, text, size);
}

static void put_row(row_printer *p, int64_t offset, int64_t dim) {
  put(p, "[", 1);
  bool gap = false;
  for (int64_t i = 0; i < dim; i = next_index(p, i, dim, &gap)) {
    if (i > 0) put(p, ", ", 2);
    if (gap) put(p, "..., ", 5);
    put_element(p, offset + i);
  }
  put(p, "]", 1);
}

static void put_break(row_printer *p, int closed, int depth, bool gap) {
  put(p, ",", 1);
  /* A blank line between matrices, as many as brackets that closed. */
  for (int i = 0; i < closed; i++) put(p, "\n", 1);
  put_spaces(p, INDENT + depth);
  if (gap) {
    put(p, "...,\n", 5);
    put_spaces(p, INDENT + depth);
  }
}

/* All rows: an odometer over every dimension but the last. */
static void put_rows(row_printer *p) {
  const weir_shape *s = &p->t->shape;
  int last = s->rank - 1;
  int64_t at[WEIR_MAX_RANK] = {0}, step[WEIR_MAX_RANK] = {0};
  step[last] = 1;
  for (int i = last - 1; i >= 0; i--)
    step[i] = step[i + 1] * s->dims[i + 1].value;
  put_spaces(p, INDENT);
  for (int i = 0; i < last; i++) put(p, "[", 1);
  for (int d = last; d >= 0;) {
    int64_t offset = 0;
    for (int i = 0; i < last; i++) offset += at[i] * step[i];
    put_row(p, offset, s->dims[last].value);
    bool gap = false;
    for (d = last - 1; d >= 0; d--) {
      at[d] = next_index(p, at[d], s->dims[d].value, &gap);
      if (at[d] < s->dims[d].value) break;
      at[d] = 0;
      put(p, "]", 1);
    }
    if (d < 0) break;
    put_break(p, last - d, d + 1, gap);
    for (int i = d + 1; i < last; i++) put(p, "[", 1);
  }
}

/* Sets p->width to the widest element shown of the first few thousand. */
static void measure(row_printer *p, int64_t elements) {
  char text[WEIR_NUMBER_TEXT];
  for (int64_t i = 0; i < elements && i < 4096; i++) {
    int size = (int)element_text(p->t, i, text);
    if (size > p->width) p->width = size;
  }
}

bool weir_tools_tensor_print(const char *name, const weir_tensor *tensor,
                             bool full, weir_write_fn write, void *self) {
  int64_t elements = weir_shape_elements(&tensor->shape);
  row_printer p = {.t = tensor, .write = write, .self = self, .ok = true};
  p.cut = !full && elements > FULL_ELEMENTS;
  char shape[256];
  weir_shape_print(&tensor->shape, NULL, NULL, shape, sizeof shape);
  const char *dtype = weir_dtype_name(tensor->dtype);
  put(&p, name, strlen(name));
  put(&p, "  ", 2);
  put(&p, dtype, strlen(dtype));
  put(&p, shape, strlen(shape));
  put(&p, "\n", 1);
  if (tensor->shape.rank == 0) {
    put_spaces(&p, INDENT);
    put_element(&p, 0);
    put(&p, "\n", 1);
  } else if (elements != 0) {
    measure(&p, elements);
    put_rows(&p);
    put(&p, "\n", 1);
  }
  flush(&p);
  return p.ok;
}

/* ---- JSON */

static void json_element(weir_json_writer *w, const weir_tensor *t, int64_t i) {
  switch (t->dtype) {
    case WEIR_F32:
      weir_json_float(w, ((const float *)t->data)[i]);
      break;
    case WEIR_F64:
      weir_json_double(w, ((const double *)t->data)[i]);
      break;
    case WEIR_BOOL:
      weir_json_bool(w, ((const uint8_t *)t->data)[i] != 0);
      break;
    default:
      weir_json_int(w, weir_tensor_get_i64(t, i));
  }
}

/* The elements, nested as the shape is. Opens a bracket where an index begins
 * anew, and closes it where it ends. */
static void json_data(weir_json_writer *w, const weir_tensor *t) {
  const weir_shape *s = &t->shape;
  int64_t at[WEIR_MAX_RANK] = {0};
  int64_t elements = weir_shape_elements(s);
  for (int i = 0; i < s->rank; i++) {
    weir_json_array_begin(w, true);
    if (s->dims[i].value == 0) break;
  }
  for (int64_t n = 0; n < elements; n++) {
    json_element(w, t, n);
    int d = s->rank - 1;
    for (; d >= 0; d--) {
      if (++at[d] < s->dims[d].value) break;
      at[d] = 0;
      weir_json_array_end(w);
    }
    if (n + 1 == elements) break;
    for (d++; d < s->rank; d++) weir_json_array_begin(w, true);
  }
}

/* Closes the brackets that json_data opened for a tensor without elements: it
 * has the outer dimensions' first rows only, so that a shape of 10^9 x 0 stays
 * small. */
static void json_close_empty(weir_json_writer *w, const weir_shape *s) {
  if (s->rank == 0 || weir_shape_elements(s) != 0) return;
  for (int i = 0; i < s->rank; i++) {
    weir_json_array_end(w);
    if (s->dims[i].value == 0) break;
  }
}

bool weir_tools_outputs_json(size_t count, const char *const *names,
                             const weir_tensor *const *tensors,
                             weir_write_fn write, void *self) {
  weir_json_writer w;
  weir_json_writer_init(&w, (weir_writer){self, write}, 2);
  weir_json_object_begin(&w, false);
  weir_json_key(&w, "outputs");
  weir_json_object_begin(&w, false);
  for (size_t i = 0; i < count; i++) {
    const weir_tensor *t = tensors[i];
    weir_json_key_sv(&w, weir_sv_from(names[i]));
    weir_json_object_begin(&w, false);
    weir_json_key(&w, "dtype");
    weir_json_string(&w, weir_sv_from(weir_dtype_name(t->dtype)));
    weir_json_key(&w, "shape");
    weir_json_array_begin(&w, true);
    for (int d = 0; d < t->shape.rank; d++)
      weir_json_int(&w, t->shape.dims[d].value);
    weir_json_array_end(&w);
    weir_json_key(&w, "data");
    json_data(&w, t);
    json_close_empty(&w, &t->shape);
    weir_json_object_end(&w);
  }
  weir_json_object_end(&w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

/* ---- Comparison */

/* Two NaN are equal. i64 is compared as integers, as a double holds 53 bits
 * only; the differences that are reported are doubles all the same. */
void weir_tools_tensor_compare(const weir_tensor *a, const weir_tensor *b,
                               double rtol, double atol,
                               weir_tools_compare *out) {
  *out = (weir_tools_compare){.first = -1};
  out->same_type =
      a->dtype == b->dtype && weir_shape_equal(&a->shape, &b->shape);
  if (!out->same_type) return;
  int64_t elements = weir_shape_elements(&a->shape);
  bool exact = a->dtype == WEIR_I64;
  for (int64_t i = 0; i < elements; i++) {
    double x = weir_tensor_get_f64(a, i), y = weir_tensor_get_f64(b, i);
    bool same = x == y || (isnan(x) && isnan(y));
    if (exact) same = weir_tensor_get_i64(a, i) == weir_tensor_get_i64(b, i);
    if (same) continue;
    double diff = fabs(x - y);
    double rel = diff / fabs(y);
    if (!(diff <= out->max_abs)) out->max_abs = diff;
    if (!(rel <= out->max_rel)) out->max_rel = rel;
    bool close = isfinite(diff) && isfinite(y) && diff <= atol + rtol * fabs(y);
    if (close && (!exact || atol + rtol > 0)) continue;
    if (out->differing++ == 0) {
      out->first = i;
      out->first_a = x;
      out->first_b = y;
    }
  }
}
