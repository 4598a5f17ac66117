/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/ps/rows/server_rows.h"

#include <string.h>

#include "runtime/io/checkpoint/checkpoint_load.h"

/* A piece is saved as NAME[FIRST:END]; no name of a node has brackets. Wanted
 * rows are gathered from the first to the last: the piece that has the next one
 * is read, its rows are taken, and so on, so pieces may lie in any order, and
 * each of them is read once. Cost: pieces x variables, once for each restart.
 */

/* A saved piece. */
typedef struct saved_piece {
  const weir_checkpoint *part;
  size_t place; /* in it */
  int64_t first, end;
} saved_piece;

/* Digits at the start of |text|, which |*text| is then behind. */
static bool take_number(weir_sv *text, int64_t *out) {
  int64_t value = 0;
  size_t n = 0;
  for (; n < text->size; n++) {
    int digit = text->data[n] - '0';
    if (digit < 0 || digit > 9) break;
    if (value > (INT64_MAX - digit) / 10) return false;
    value = value * 10 + digit;
  }
  *out = value;
  *text = (weir_sv){text->data + n, text->size - n};
  return n > 0;
}

static bool take_char(weir_sv *text, char c) {
  if (text->size == 0 || text->data[0] != c) return false;
  *text = (weir_sv){text->data + 1, text->size - 1};
  return true;
}

/* Whether |text| is |name| with rows, which are then |out|'s. */
static bool is_piece(weir_sv text, weir_sv name, saved_piece *out) {
  if (text.size < name.size || memcmp(text.data, name.data, name.size) != 0)
    return false;
  weir_sv rest = {text.data + name.size, text.size - name.size};
  return take_char(&rest, '[') && take_number(&rest, &out->first) &&
         take_char(&rest, ':') && take_number(&rest, &out->end) &&
         take_char(&rest, ']') && rest.size == 0 && out->first < out->end;
}

/* The piece of |name| that has |row|. */
static bool find_piece(const weir_ps_saved *saved, weir_sv name, int64_t row,
                       saved_piece *out) {
  for (uint32_t k = 0; k < saved->count; k++) {
    out->part = weir_ps_saved_part_of(saved, k);
    for (size_t i = 0; i < weir_checkpoint_count(out->part); i++) {
      out->place = i;
      if (is_piece(weir_checkpoint_name(out->part, i), name, out) &&
          out->first <= row && row < out->end)
        return true;
    }
  }
  return false;
}

/* The variable in one piece: rows 0 to all. */
static bool find_whole(const weir_ps_saved *saved, weir_sv name,
                       saved_piece *out) {
  for (uint32_t k = 0; k < saved->count; k++) {
    out->part = weir_ps_saved_part_of(saved, k);
    out->place = weir_checkpoint_find(out->part, name);
    if (out->place == SIZE_MAX) continue;
    const weir_shape *shape = weir_checkpoint_shape(out->part, out->place);
    out->first = 0;
    out->end = shape->rank > 0 ? shape->dims[0].value : 0;
    return true;
  }
  return false;
}

static weir_status missing(const weir_ps_saved *saved, const char *what,
                           weir_sv name, weir_error *err) {
  return weir_fail(err, WEIR_W5022, NULL,
                   "'%.300s' and the other parts of the generation have %s "
                   "variable %.*s",
                   weir_checkpoint_path_of(weir_ps_saved_part_of(saved, 0)),
                   what, WEIR_SV(name));
}

/* Rows on their way into |out|, whose row 0 is row |first|. */
typedef struct gathering {
  const weir_ps_saved *saved;
  weir_sv name;
  int64_t first;
  weir_tensor *out;
} gathering;

/* Copies rows |from| to |to| of |piece| to their places. */
static weir_status copy_rows(const gathering *g, const saved_piece *piece,
                             int64_t from, int64_t to, weir_error *err) {
  weir_tensor *t = NULL, *out = g->out;
  WEIR_TRY(weir_checkpoint_read(piece->part, piece->place, &t, err));
  size_t row = out->bytes / (size_t)out->shape.dims[0].value;
  bool fits = t->dtype == out->dtype && t->shape.rank == out->shape.rank &&
              t->bytes == (size_t)(piece->end - piece->first) * row;
  if (fits)
    memcpy((char *)out->data + (size_t)(from - g->first) * row,
           (const char *)t->data + (size_t)(from - piece->first) * row,
           (size_t)(to - from) * row);
  weir_tensor_unref(t);
  return fits ? WEIR_OK
              : missing(g->saved, "rows of another type of", g->name, err);
}

/* Fills |g->out|; |piece| is looked at first. */
static weir_status gather(const gathering *g, saved_piece piece,
                          weir_error *err) {
  int64_t end = g->first + g->out->shape.dims[0].value;
  for (int64_t at = g->first; at < end;) {
    bool here = piece.first <= at && at < piece.end;
    if (!here && !find_piece(g->saved, g->name, at, &piece))
      return missing(g->saved, "not all rows of", g->name, err);
    int64_t to = piece.end < end ? piece.end : end;
    WEIR_TRY(copy_rows(g, &piece, at, to, err));
    at = to;
  }
  return WEIR_OK;
}

/* How many rows all pieces have together. */
static int64_t rows_of(const weir_ps_saved *saved, weir_sv name) {
  saved_piece piece;
  int64_t all = 0;
  while (find_piece(saved, name, all, &piece)) all = piece.end;
  return all;
}

weir_status weir_ps_saved_read(const weir_ps_saved *saved, weir_sv name,
                               const weir_split_rows *rows,
                               weir_tensor **out_tensor, weir_error *err) {
  saved_piece piece;
  bool whole = find_whole(saved, name, &piece);
  *out_tensor = NULL;
  if (whole && rows->all == 0)
    return weir_checkpoint_read(piece.part, piece.place, out_tensor, err);
  if (!whole && !find_piece(saved, name, 0, &piece))
    return missing(saved, "no", name, err);
  int64_t all = whole ? piece.end : rows_of(saved, name);
  if (rows->all > 0 && rows->all != all)
    return missing(saved, "another number of rows of", name, err);
  weir_shape shape = *weir_checkpoint_shape(piece.part, piece.place);
  if (shape.rank < 1) return missing(saved, "no rows of", name, err);
  shape.dims[0].value = rows->all > 0 ? rows->count : all;
  weir_tensor *t = NULL;
  WEIR_TRY(weir_tensor_create_shaped(
      saved->env->alloc, weir_checkpoint_dtype(piece.part, piece.place), &shape,
      &t, err));
  gathering g = {saved, name, rows->first, t};
  weir_status s = gather(&g, piece, err);
  if (s == WEIR_OK)
    *out_tensor = t;
  else
    weir_tensor_unref(t);
  return s;
}
