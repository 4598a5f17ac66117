/* SPDX-License-Identifier: Apache-2.0 */
#include "ops/nn/einsum_equation.h"

static bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The number of |letter|, or -1. */
static int find(const weir_einsum *e, char letter) {
  for (int i = 0; i < e->index_count; i++)
    if (e->letters[i] == letter) return i;
  return -1;
}

uint32_t weir_einsum_indices(const weir_einsum *e, int part) {
  uint32_t set = 0;
  for (int d = 0; d < e->rank[part]; d++) set |= 1u << e->index[part][d];
  return set;
}

static const char *add_letter(weir_einsum *e, int part, char letter) {
  int index = find(e, letter);
  if (index < 0 && part == 2) return "an index that no operand has";
  if (e->rank[part] == WEIR_MAX_RANK) return "more than 8 indices";
  if (index >= 0 && weir_einsum_indices(e, part) & 1u << index)
    return part == 2 ? "an index twice in the result"
                     : "an index twice in one operand";
  if (index < 0) {
    index = e->index_count++;
    e->letters[index] = letter;
  }
  e->index[part][e->rank[part]++] = (uint8_t)index;
  return NULL;
}

const char *weir_einsum_parse(weir_sv equation, weir_einsum *out) {
  int part = 0;
  *out = (weir_einsum){.operand_count = 1};
  for (size_t i = 0; i < equation.size; i++) {
    char c = equation.data[i];
    const char *why = NULL;
    out->error_at = i > UINT32_MAX - 1 ? UINT32_MAX - 1 : (uint32_t)i;
    if (c == ' ') continue;
    if (is_letter(c)) {
      why = add_letter(out, part, c);
    } else if (c == ',' && part == 0) {
      part = 1;
      out->operand_count = 2;
    } else if (c == ',') {
      why = part == 1 ? "a third operand" : "a comma in the result";
    } else if (c == '-' && part < 2 && i + 1 < equation.size &&
               equation.data[i + 1] == '>') {
      part = 2;
      i++;
    } else {
      why = "neither a letter nor , nor ->";
    }
    if (why != NULL) return why;
  }
  out->error_at = (uint32_t)(equation.size < UINT32_MAX ? equation.size : 0);
  return part == 2 ? NULL : "no ->";
}
