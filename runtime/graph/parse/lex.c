/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/lex.h"

#include "runtime/base/yaml/yaml_scalar.h"
#include "runtime/graph/parse/ast.h"
#include "runtime/graph/parse/operators.h"

/* Tokens of call strings. The lexer keeps no state: it is asked for the token
 * at an offset, so the parser can look ahead and come back. Errors are tokens
 * too (BAD), with the reason. */

enum { WEIR_NAME_BYTES = 256 };

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool weir_is_name(weir_sv text) {
  if (text.size == 0 || text.size > WEIR_NAME_BYTES || !is_letter(text.data[0]))
    return false;
  for (size_t i = 1; i < text.size; i++)
    if (!is_letter(text.data[i]) && !is_digit(text.data[i])) return false;
  return true;
}

static void bad(weir_token *t, uint32_t size, const char *why) {
  t->kind = WEIR_TOKEN_BAD;
  t->size = size;
  t->why = why;
}

static void lex_name(weir_sv s, weir_token *t) {
  size_t i = t->offset + 1u;
  while (i < s.size &&
         (is_letter(s.data[i]) || is_digit(s.data[i]) ||
          (s.data[i] == '.' && i + 1 < s.size && is_letter(s.data[i + 1]))))
    i++;
  t->kind = WEIR_TOKEN_NAME;
  t->size = (uint32_t)i - t->offset;
  t->text = (weir_sv){s.data + t->offset, t->size};
  if (t->size > WEIR_NAME_BYTES) bad(t, 16, "names have at most 256 bytes");
}

static bool in_number(weir_sv s, size_t i) {
  char c = s.data[i];
  if (is_letter(c) || is_digit(c)) return true;
  if (c == '.') return i + 1 >= s.size || s.data[i + 1] != '.';
  return (c == '-' || c == '+') && i > 0 &&
         (s.data[i - 1] == 'e' || s.data[i - 1] == 'E');
}

static void lex_number(weir_sv s, weir_token *t) {
  size_t i = t->offset;
  bool hex = s.size - i > 2 && s.data[i] == '0' && s.data[i + 1] == 'x';
  while (i < s.size &&
         (hex ? is_letter(s.data[i]) || is_digit(s.data[i]) : in_number(s, i)))
    i++;
  t->size = (uint32_t)i - t->offset;
  weir_sv text = {s.data + t->offset, t->size};
  t->kind = WEIR_TOKEN_INT;
  if (t->size < 19 && t->size > 0 && text.data[0] != '0') { /* the usual case */
    int64_t value = 0;
    size_t k = 0;
    while (k < text.size && is_digit(text.data[k]))
      value = value * 10 + (text.data[k++] - '0');
    t->i = value;
    if (k == text.size) return;
  }
  if (weir_text_int(text, &t->i)) return;
  t->kind = WEIR_TOKEN_FLOAT;
  bool only_digits = true;
  for (size_t k = 0; k < text.size; k++)
    only_digits = only_digits && is_digit(text.data[k]);
  if (only_digits)
    bad(t, t->size,
        text.data[0] == '0' ? "integers have no leading zero"
                            : "the integer does not fit 64 bits");
  else if (weir_text_float(text, &t->f))
    t->single = weir_text_single(text, t->f);
  else
    bad(t, t->size, "this is not a number");
}

static void lex_string(weir_sv s, weir_token *t) {
  char quote = s.data[t->offset];
  for (size_t i = t->offset + 1u; i < s.size; i++)
    if (s.data[i] == quote) {
      t->kind = WEIR_TOKEN_STRING;
      t->size = (uint32_t)i + 1 - t->offset;
      t->text = (weir_sv){s.data + t->offset + 1, t->size - 2u};
      return;
    }
  bad(t, 1, "the string has no end");
}

static void lex_dot(weir_sv s, weir_token *t) {
  if (t->offset + 1u < s.size && is_digit(s.data[t->offset + 1])) {
    lex_number(s, t);
    return;
  }
  if (t->offset + 1u < s.size &&
      (s.data[t->offset + 1] == 'i' || s.data[t->offset + 1] == 'n')) {
    weir_sv text = {s.data + t->offset,
                    s.size - t->offset < 4 ? s.size - t->offset : 4};
    if (weir_text_float(text, &t->f)) { /* .inf, .nan */
      t->kind = WEIR_TOKEN_FLOAT;
      t->single = (float)t->f;
      t->size = 4;
      return;
    }
  }
  t->kind = WEIR_TOKEN_PUNCT;
  t->punct = '.';
  t->size = 1;
}

static void lex_punct(weir_sv s, weir_token *t) {
  static const char kPunct[] = "()[],=@+-*/?:";
  char c = s.data[t->offset];
  t->kind = WEIR_TOKEN_PUNCT;
  t->punct = c;
  t->size = 1;
  if (c == '/' && t->offset + 1u < s.size && s.data[t->offset + 1] == '/') {
    t->punct = WEIR_FLOOR_DIV;
    t->size = 2;
  } else if (memchr(kPunct, c, sizeof kPunct - 1) == NULL) {
    bad(t, 1, "this character has no meaning here");
  }
}

void weir_lex(weir_sv s, uint32_t offset, weir_token *t) {
  while (offset < s.size && (s.data[offset] == ' ' || s.data[offset] == '\n'))
    offset++;
  *t = (weir_token){.kind = WEIR_TOKEN_END, .offset = offset};
  if (offset >= s.size) return;
  char c = s.data[offset];
  if (is_letter(c))
    lex_name(s, t);
  else if (is_digit(c))
    lex_number(s, t);
  else if (c == '"' || c == '\'')
    lex_string(s, t);
  else if (c == '.')
    lex_dot(s, t);
  else
    lex_punct(s, t);
}
