/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/parse/operators.h"

#include <stddef.h>

/* The operators that exist, and those that people try. */

typedef struct operator_row {
  char op;
  int strength;
  const char *name;
} operator_row;

static const operator_row kOperators[] = {
    {'+', 1, "add"}, {'-', 1, "sub"},           {'*', 2, "mul"},
    {'/', 2, "div"}, {WEIR_FLOOR_DIV, 2, NULL},
};

static const operator_row *find(char op) {
  for (size_t i = 0; i < sizeof kOperators / sizeof kOperators[0]; i++)
    if (kOperators[i].op == op) return &kOperators[i];
  return NULL;
}

int weir_operator_strength(char op) {
  const operator_row *row = find(op);
  return row != NULL ? row->strength : 0;
}

const char *weir_operator_name(char op) {
  const operator_row *row = find(op);
  return row != NULL ? row->name : NULL;
}

/* Longer ones first. */
static const struct {
  const char *text, *hint;
} kForeign[] = {
    {"**", "a power is written pow(x, 2), or square(x)"},
    {"==", "a comparison is written equal(x, y)"},
    {"!=", "a comparison is written not_equal(x, y)"},
    {">=", "a comparison is written greater_equal(x, y)"},
    {"<=", "a comparison is written less_equal(x, y)"},
    {">", "a comparison is written greater(x, y)"},
    {"<", "a comparison is written less(x, y)"},
    {"&", "written logical_and(p, q)"},
    {"|", "written logical_or(p, q)"},
    {"!", "written logical_not(p)"},
    {"^", "a power is written pow(x, 2), or square(x)"},
    {"@",
     "`@` asks for a device and stands behind the whole call; a matrix "
     "product is written matmul(x, y)"},
};

const char *weir_operator_hint(weir_sv text, size_t at) {
  for (size_t i = 0; i < sizeof kForeign / sizeof kForeign[0]; i++) {
    weir_sv want = weir_sv_from(kForeign[i].text);
    for (size_t back = 0; back < want.size && back <= at; back++) {
      size_t from = at - back;
      if (from + want.size <= text.size &&
          memcmp(text.data + from, want.data, want.size) == 0)
        return kForeign[i].hint;
    }
  }
  return NULL;
}
