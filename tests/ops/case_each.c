/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "tests/ops/case.h"

enum { TEXT = 512 };

typedef struct each {
  const weir_op_def *op;
  op_case_fn fn;
  void *arg;
} each;

static void run_one(const each *e, const weir_yaml *yaml, uint32_t index,
                    const op_grid *grid, weir_arena *arena) {
  op_case c;
  char why[TEXT] = "";
  bool read = op_case_read(e->op, yaml, index, arena, &c, why, sizeof why);
  e->fn(e->arg, &c, grid, read ? NULL : why);
  op_case_release(&c);
}

static void run_grid(const each *e, op_grid *grid, uint32_t index) {
  do {
    weir_arena arena;
    weir_arena_init(&arena, weir_allocator_system());
    const weir_yaml *yaml = op_grid_case(grid, &arena);
    if (yaml != NULL) run_one(e, yaml, index, grid, &arena);
    weir_arena_release(&arena);
  } while (op_grid_next(grid));
}

static void run_all(const each *e, const weir_yaml *root, weir_arena *arena) {
  for (uint32_t i = 0; i < root->count; i++) {
    op_grid grid;
    if (!op_grid_begin(root->items[i], &grid))
      run_one(e, root->items[i], i, NULL, arena);
    else
      run_grid(e, &grid, i);
  }
}

/* The file's text; NULL if it cannot be read. */
static char *read_file(const char *path, size_t *out_size) {
  FILE *file = fopen(path, "rb");
  char *text = NULL;
  if (file == NULL) return NULL;
  if (fseek(file, 0, SEEK_END) == 0) {
    long size = ftell(file);
    rewind(file);
    if (size >= 0) text = malloc((size_t)size + 1);
    if (text != NULL) *out_size = fread(text, 1, (size_t)size, file);
  }
  fclose(file);
  return text;
}

bool op_case_each(const weir_op_def *op, const char *path, op_case_fn fn,
                  void *arg, char *why, size_t capacity) {
  const each e = {op, fn, arg};
  weir_arena arena;
  weir_error err = WEIR_ERROR_INIT;
  const weir_yaml *root = NULL;
  size_t size = 0;
  char *text = read_file(path, &size);
  if (text == NULL) return snprintf(why, capacity, "no file %s", path), false;
  weir_arena_init(&arena, weir_allocator_system());
  weir_status status = weir_yaml_parse((weir_sv){text, size}, path, NULL,
                                       &arena, NULL, &root, &err);
  bool read = status == WEIR_OK && root != NULL && root->kind == WEIR_YAML_LIST;
  if (read)
    run_all(&e, root, &arena);
  else
    snprintf(why, capacity, "%s:%u: %s", path, err.line, err.message);
  free(text);
  weir_arena_release(&arena);
  return read;
}
