/* SPDX-License-Identifier: Apache-2.0 */
/* A grid stands for many cases: each combination of its axes' values, put in
 * where `$axis` stands. The last axis goes round first. */
#include <stdio.h>
#include <string.h>

#include "tests/ops/case.h"

bool op_grid_begin(const weir_yaml *yaml, op_grid *grid) {
  *grid = (op_grid){.yaml = yaml};
  if (yaml->kind != WEIR_YAML_MAP) return false;
  grid->axes = weir_yaml_get(yaml, "grid");
  if (grid->axes == NULL || grid->axes->kind != WEIR_YAML_MAP ||
      grid->axes->count > GRID_AXES)
    return false;
  for (uint32_t i = 0; i < grid->axes->count; i++) {
    const weir_yaml *values = grid->axes->entries[i].value;
    if (values->kind != WEIR_YAML_LIST || values->count == 0) return false;
  }
  return true;
}

bool op_grid_next(op_grid *grid) {
  for (uint32_t i = grid->axes->count; i-- > 0;) {
    if (++grid->at[i] < grid->axes->entries[i].value->count) return true;
    grid->at[i] = 0;
  }
  return false;
}

/* The value that stands for |y|, which is |y| itself unless it is `$axis`. */
static const weir_yaml *put_in(const op_grid *grid, const weir_yaml *y) {
  if (y->kind != WEIR_YAML_SCALAR || y->text.size < 2 || y->text.data[0] != '$')
    return y;
  weir_sv name = {y->text.data + 1, y->text.size - 1};
  for (uint32_t i = 0; i < grid->axes->count; i++) {
    const weir_yaml_entry *axis = &grid->axes->entries[i];
    if (axis->key.size == name.size &&
        memcmp(axis->key.data, name.data, name.size) == 0)
      return axis->value->items[grid->at[i]];
  }
  return y;
}

/* A copy of |y| with the values put in. Cases are a few levels deep. */
static const weir_yaml *copy(const op_grid *grid, const weir_yaml *from,
                             weir_arena *arena) {
  const weir_yaml *y = put_in(grid, from);
  weir_yaml *out = weir_arena_alloc(arena, sizeof *out);
  if (out == NULL || y->kind == WEIR_YAML_SCALAR) return y;
  *out = *y;
  if (y->kind == WEIR_YAML_LIST) {
    const weir_yaml **items =
        weir_arena_array(arena, y->count + 1, sizeof *items);
    for (uint32_t i = 0; items != NULL && i < y->count; i++)
      items[i] = copy(grid, y->items[i], arena);
    out->items = items;
    return items != NULL ? out : NULL;
  }
  weir_yaml_entry *entries =
      weir_arena_array(arena, y->count + 1, sizeof *entries);
  out->count = 0;
  for (uint32_t i = 0; entries != NULL && i < y->count; i++) {
    if (y == grid->yaml && weir_sv_is(y->entries[i].key, "grid")) continue;
    entries[out->count] = y->entries[i];
    entries[out->count++].value = copy(grid, y->entries[i].value, arena);
  }
  out->entries = entries;
  return entries != NULL ? out : NULL;
}

const weir_yaml *op_grid_case(const op_grid *grid, weir_arena *arena) {
  return copy(grid, grid->yaml, arena);
}

/* Appends |y| as flow text; what does not fit is cut. */
static void print(const weir_yaml *y, char *text, size_t capacity) {
  size_t used = strlen(text);
  if (y->kind == WEIR_YAML_SCALAR) {
    snprintf(text + used, capacity - used, "%.*s", WEIR_SV(y->text));
    return;
  }
  if (y->kind == WEIR_YAML_MAP) {
    snprintf(text + used, capacity - used, "{..}");
    return;
  }
  snprintf(text + used, capacity - used, "[");
  for (uint32_t i = 0; i < y->count; i++) {
    if (i > 0) strncat(text, " ", capacity - strlen(text) - 1);
    print(y->items[i], text, capacity);
  }
  strncat(text, "]", capacity - strlen(text) - 1);
}

void op_grid_print(const op_grid *grid, char *text, size_t capacity) {
  text[0] = 0;
  for (uint32_t i = 0; i < grid->axes->count; i++) {
    const weir_yaml_entry *axis = &grid->axes->entries[i];
    size_t used = strlen(text);
    snprintf(text + used, capacity - used, "%s%.*s=", i > 0 ? " " : "",
             WEIR_SV(axis->key));
    print(axis->value->items[grid->at[i]], text, capacity);
  }
}
