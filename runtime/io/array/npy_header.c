/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/array/npy_header.h"

#include <string.h>

#include "runtime/io/array/npy.h"
#include "runtime/io/checkpoint/convert.h"

/* A Python dict of three known keys, read without a Python: strings without
 * escapes, True and False, tuples of integers. */

typedef struct parser {
  weir_sv text;
  size_t at, offset;
  const char *file;
  weir_error *err;
  unsigned seen; /* bit i: kKeys[i] */
  weir_npy_header *header;
} parser;

static const char *const kKeys[] = {"descr", "fortran_order", "shape"};
enum { kDescr, kFortranOrder, kShape, kKeyCount };

static weir_status bad(const parser *p, const char *what) {
  weir_mark at = {.file = p->file};
  return weir_fail(p->err, WEIR_W4003, &at,
                   "header: %s, at byte %zu of the file", what,
                   p->offset + p->at);
}

/* The next byte, or -1 at the end. */
static int peek(const parser *p) {
  return p->at < p->text.size ? (unsigned char)p->text.data[p->at] : -1;
}

static void skip_blanks(parser *p) {
  while (peek(p) == ' ' || peek(p) == '\t' || peek(p) == '\n') p->at++;
}

/* Passes over blanks and then |c|, if it is there. */
static bool take(parser *p, char c) {
  skip_blanks(p);
  if (peek(p) != c) return false;
  p->at++;
  return true;
}

static bool take_word(parser *p, const char *word) {
  weir_sv rest = {p->text.data + p->at, p->text.size - p->at};
  if (!weir_sv_starts_with(rest, word)) return false;
  p->at += strlen(word);
  return true;
}

/* 'text' or "text", without escapes. */
static bool take_string(parser *p, weir_sv *out_text) {
  skip_blanks(p);
  int quote = peek(p);
  if (quote != '\'' && quote != '"') return false;
  size_t start = ++p->at;
  while (peek(p) != quote) {
    if (peek(p) < 0x20 || peek(p) == '\\') return false;
    p->at++;
  }
  *out_text = (weir_sv){p->text.data + start, p->at - start};
  p->at++;
  return true;
}

/* --- values --- */

static const struct {
  const char *descr;
  weir_dtype dtype;
} kTypes[] = {{"f4", WEIR_F32}, {"f8", WEIR_F64}, {"i4", WEIR_I32},
              {"i8", WEIR_I64}, {"u1", WEIR_U8},  {"b1", WEIR_BOOL}};

static weir_status read_descr(parser *p) {
  weir_sv text;
  skip_blanks(p);
  if (peek(p) == '[')
    return bad(p, "a structured dtype; numbers are read only");
  if (!take_string(p, &text)) return bad(p, "descr is not a string");
  weir_sv name = text;
  char order = text.size > 0 ? text.data[0] : '\0';
  if (order != '\0' && strchr("<>=|", order) != NULL)
    name = (weir_sv){text.data + 1, text.size - 1};
  for (size_t i = 0; i < sizeof kTypes / sizeof kTypes[0]; i++)
    if (weir_sv_is(name, kTypes[i].descr)) p->header->dtype = kTypes[i].dtype;
  bool is_byte = weir_dtype_size(p->header->dtype) == 1;
  bool no_order = order == '|' && !is_byte;
  p->header->big_endian = order == '>';
  if (p->header->dtype != WEIR_DTYPE_NONE && !no_order) return WEIR_OK;
  weir_mark at = {.file = p->file};
  weir_status s =
      weir_fail(p->err, WEIR_W4003, &at,
                "elements of dtype '%.*s' are not read", WEIR_SV(text));
  weir_hint(p->err,
            "f4, f8, i4, i8, u1 and b1 are; in NumPy, "
            "array.astype('f4') converts");
  return s;
}

static weir_status read_order(parser *p) {
  skip_blanks(p);
  p->header->fortran_order = take_word(p, "True");
  if (p->header->fortran_order || take_word(p, "False")) return WEIR_OK;
  return bad(p, "fortran_order is neither True nor False");
}

static bool is_digit(int c) {
  return c >= '0' && c <= '9';
}

static weir_status read_dim(parser *p, int64_t *out_dim) {
  int64_t v = 0;
  skip_blanks(p);
  if (!is_digit(peek(p))) return bad(p, "a dimension is not a number from 0");
  for (; is_digit(peek(p)); p->at++)
    if (__builtin_mul_overflow(v, 10, &v) ||
        __builtin_add_overflow(v, peek(p) - '0', &v))
      return bad(p, "a dimension does not fit 63 bits");
  if (peek(p) == 'L') p->at++; /* as Python 2 wrote it */
  *out_dim = v;
  return WEIR_OK;
}

static weir_status read_shape(parser *p) {
  int64_t dims[WEIR_MAX_RANK];
  int rank = 0;
  bool comma = true; /* one may follow: (2, 3) (4,) () */
  if (!take(p, '(')) return bad(p, "shape is not a tuple");
  while (!take(p, ')')) {
    if (!comma) return bad(p, "a comma is missing in shape");
    if (rank == WEIR_MAX_RANK) return bad(p, "more than 8 dimensions");
    WEIR_TRY(read_dim(p, &dims[rank++]));
    comma = take(p, ',');
  }
  if (rank == 1 && !comma) return bad(p, "shape is a number, not a tuple");
  p->header->shape = weir_shape_of(rank, dims);
  return WEIR_OK;
}

/* --- the dict --- */

static weir_status read_item(parser *p) {
  weir_sv key;
  if (!take_string(p, &key)) return bad(p, "a key is missing");
  int which = 0;
  while (which < kKeyCount && !weir_sv_is(key, kKeys[which])) which++;
  if (which == kKeyCount) return bad(p, "an unknown key");
  if (p->seen & 1u << which) return bad(p, "a key occurs twice");
  p->seen |= 1u << which;
  if (!take(p, ':')) return bad(p, "a colon is missing");
  if (which == kDescr) return read_descr(p);
  return which == kFortranOrder ? read_order(p) : read_shape(p);
}

weir_status weir_npy_header_parse(weir_sv text, size_t offset, const char *file,
                                  weir_npy_header *out_header,
                                  weir_error *err) {
  parser p = {.text = text,
              .offset = offset,
              .file = file,
              .err = err,
              .header = out_header};
  bool comma = true;
  *out_header = (weir_npy_header){0};
  if (!take(&p, '{')) return bad(&p, "it is not a dict");
  while (!take(&p, '}')) {
    if (!comma) return bad(&p, "a comma is missing");
    WEIR_TRY(read_item(&p));
    comma = take(&p, ',');
  }
  skip_blanks(&p);
  if (p.at < p.text.size) return bad(&p, "text follows the dict");
  if (p.seen != (1u << kKeyCount) - 1)
    return bad(&p, "descr, fortran_order or shape is missing");
  return weir_io_check_shape(&out_header->shape, out_header->dtype, WEIR_W4003,
                             file, err);
}
