/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tune/choices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runtime/base/number.h"
#include "runtime/base/table.h"
#include "runtime/base/yaml/yaml.h"

enum { kVersion = 1 };

static const char *const kTypes[] = {[WEIR_GEMM_F32] = "f32",
                                     [WEIR_GEMM_F32_TF32] = "tf32",
                                     [WEIR_GEMM_F64] = "f64",
                                     [WEIR_GEMM_BF16] = "bf16",
                                     [WEIR_GEMM_F16] = "f16"};
WEIR_TABLE_OF(kTypes, WEIR_GEMM_TYPE_COUNT);

static const char *const kEpilogues[] = {
    [WEIR_GEMM_NONE] = "none",
    [WEIR_GEMM_BIAS] = "bias",
    [WEIR_GEMM_RELU] = "relu",
    [WEIR_GEMM_RELU_BIAS] = "relu_bias",
    [WEIR_GEMM_GELU_TANH] = "gelu_tanh",
    [WEIR_GEMM_GELU_TANH_BIAS] = "gelu_tanh_bias"};
WEIR_TABLE_OF(kEpilogues, WEIR_GEMM_EPILOGUE_COUNT);

#define NAME_ROW(name) #name,
static const char *const kKeys[] = {WEIR_TUNE_KEY_LIST(NAME_ROW)};
WEIR_TABLE_OF(kKeys, WEIR_TUNE_KEYS);
static const char *const kNumbers[] = {WEIR_GEMM_NUMBER_LIST(NAME_ROW)};
WEIR_TABLE_OF(kNumbers, WEIR_GEMM_NUMBERS);
#undef NAME_ROW

/* The words of key |i|, or NULL: it is a number. */
static const char *const *words_of(int i, int *out_count) {
  *out_count =
      i == WEIR_TUNE_KEY_type ? WEIR_GEMM_TYPE_COUNT : WEIR_GEMM_EPILOGUE_COUNT;
  if (i == WEIR_TUNE_KEY_type) return kTypes;
  return i == WEIR_TUNE_KEY_epilogue ? kEpilogues : NULL;
}

weir_tune_key weir_tune_key_of(const weir_gemm_desc *d) {
  const int64_t batched = d->batch > 1, adds = d->beta != 0;
  return (weir_tune_key){
      {[WEIR_TUNE_KEY_type] = d->type,
       [WEIR_TUNE_KEY_epilogue] = d->epilogue,
       [WEIR_TUNE_KEY_m] = d->m,
       [WEIR_TUNE_KEY_n] = d->n,
       [WEIR_TUNE_KEY_k] = d->k,
       [WEIR_TUNE_KEY_batch] = d->batch,
       [WEIR_TUNE_KEY_a_transposed] = d->a_transposed,
       [WEIR_TUNE_KEY_b_transposed] = d->b_transposed,
       [WEIR_TUNE_KEY_a_ld] = d->a.ld,
       [WEIR_TUNE_KEY_a_stride] = d->a.stride * batched,
       [WEIR_TUNE_KEY_b_ld] = d->b.ld,
       [WEIR_TUNE_KEY_b_stride] = d->b.stride * batched,
       [WEIR_TUNE_KEY_c_ld] = d->c.ld * adds,
       [WEIR_TUNE_KEY_c_stride] = d->c.stride * adds * batched,
       [WEIR_TUNE_KEY_d_ld] = d->d.ld,
       [WEIR_TUNE_KEY_d_stride] = d->d.stride * batched,
       [WEIR_TUNE_KEY_adds_c] = adds,
       [WEIR_TUNE_KEY_align] = d->align_bytes}};
}

const weir_tune_product *weir_tune_find(const weir_tune_choices *choices,
                                        const weir_tune_key *key) {
  for (size_t i = 0; i < choices->products.count; i++)
    if (memcmp(&choices->products.items[i].key, key, sizeof *key) == 0)
      return &choices->products.items[i];
  return NULL;
}

weir_status weir_tune_add(const weir_allocator *alloc,
                          weir_tune_choices *choices,
                          const weir_tune_product *product, weir_error *err) {
  return weir_vec_push(alloc, &choices->products, *product)
             ? WEIR_OK
             : weir_fail_memory(err, sizeof *product);
}

weir_status weir_tune_add_call(const weir_allocator *alloc,
                               weir_tune_choices *choices,
                               const weir_tune_call *call, weir_error *err) {
  return weir_vec_push(alloc, &choices->cpu.list, *call)
             ? WEIR_OK
             : weir_fail_memory(err, sizeof *call);
}

void weir_tune_free(const weir_allocator *alloc, weir_tune_choices *choices) {
  weir_vec_free(alloc, &choices->products);
  weir_vec_free(alloc, &choices->cpu.list);
  choices->cpu.machine[0] = '\0';
  choices->of = (weir_gemm_library){{0}, {0}};
}

/* ---- Writing */

static void write_product(const weir_tune_product *p, weir_strbuf *out) {
  const char *before = "    - {";
  for (int i = 0; i < WEIR_TUNE_KEYS; i++) {
    int count;
    const char *const *words = words_of(i, &count);
    if (words != NULL)
      weir_strbuf_printf(out, "%s%s: %s", before, kKeys[i],
                         words[p->key.numbers[i]]);
    else
      weir_strbuf_printf(out, "%s%s: %" PRId64, before, kKeys[i],
                         p->key.numbers[i]);
    before = ", ";
  }
  for (int i = 0; i < WEIR_GEMM_NUMBERS; i++)
    weir_strbuf_printf(out, ", %s: %" PRId64, kNumbers[i],
                       p->choice.numbers[i]);
  weir_strbuf_text(out, "}\n");
}

/* A name within quotes, which it does not have itself. */
static void write_name(const char *key, const char *name, weir_strbuf *out) {
  weir_strbuf_printf(out, "  %s: '%s'\n", key, name);
}

static void write_gpu(const weir_tune_choices *choices, weir_strbuf *out) {
  weir_strbuf_text(out, "gpu:\n");
  write_name("name", choices->of.device, out);
  write_name("library", choices->of.library, out);
  weir_strbuf_text(
      out, choices->products.count > 0 ? "  products:\n" : "  products: []\n");
  for (size_t i = 0; i < choices->products.count; i++)
    write_product(&choices->products.items[i], out);
}

void weir_tune_write(const weir_tune_choices *choices, weir_strbuf *out) {
  bool cpu = choices->cpu.machine[0] != '\0';
  weir_strbuf_printf(out,
                     "# Choices that weir timed (weir tune, --tune).\n"
                     "tuned: %d\n",
                     kVersion);
  if (cpu) weir_tune_write_calls(&choices->cpu, out);
  if (!cpu || choices->of.device[0] != '\0') write_gpu(choices, out);
}

/* ---- Reading */

typedef struct reader {
  const weir_allocator *alloc;
  weir_tune_choices *out;
  weir_error *err;
} reader;

static weir_status bad(const reader *r, const weir_mark *at,
                       const char *expected) {
  weir_status s =
      weir_fail(r->err, WEIR_W6006, at, "expected %.200s", expected);
  weir_hint(r->err,
            "weir tune and --tune FILE write such a file, where there is none "
            "of that name");
  return s;
}

/* The value of |key|, which must be there; NULL: it failed. */
static const weir_yaml *value_of(const reader *r, const weir_yaml *map,
                                 const char *key) {
  const weir_yaml *value = weir_yaml_get(map, key);
  char what[64];
  snprintf(what, sizeof what, "a key %s", key);
  if (value == NULL) (void)bad(r, &map->mark, what);
  return value;
}

/* Refuses keys of |map| that are not one of |keys| or of |more|. */
static weir_status check_keys(const reader *r, const weir_yaml *map,
                              const char *const *keys, int count,
                              const char *const *more, int more_count) {
  for (uint32_t e = 0; e < map->count; e++) {
    bool known = false;
    for (int i = 0; i < count; i++)
      known = known || weir_sv_is(map->entries[e].key, keys[i]);
    for (int i = 0; i < more_count; i++)
      known = known || weir_sv_is(map->entries[e].key, more[i]);
    if (!known)
      return bad(r, &map->entries[e].key_mark, "a key of such a file");
  }
  return WEIR_OK;
}

static weir_status read_int(const reader *r, const weir_yaml *map,
                            const char *key, int64_t *out) {
  const weir_yaml *value = value_of(r, map, key);
  if (value == NULL) return WEIR_FAILED_PRECONDITION;
  if (value->kind == WEIR_YAML_SCALAR && value->plain &&
      weir_number_parse_int(value->text, out) && *out >= 0)
    return WEIR_OK;
  return bad(r, &value->mark, "an integer from 0 on");
}

static weir_status read_word(const reader *r, const weir_yaml *map, int key,
                             int64_t *out) {
  int count;
  const char *const *words = words_of(key, &count);
  const weir_yaml *value = value_of(r, map, kKeys[key]);
  if (value == NULL) return WEIR_FAILED_PRECONDITION;
  for (*out = 0; *out < count; ++*out)
    if (value->kind == WEIR_YAML_SCALAR && weir_sv_is(value->text, words[*out]))
      return WEIR_OK;
  return bad(r, &value->mark,
             key == WEIR_TUNE_KEY_type
                 ? "f32, tf32, f64, bf16 or f16"
                 : "none, bias, relu, relu_bias, gelu_tanh or gelu_tanh_bias");
}

static weir_status read_product(const reader *r, const weir_yaml *map) {
  weir_tune_product p;
  int words;
  if (map->kind != WEIR_YAML_MAP) return bad(r, &map->mark, "a map of keys");
  WEIR_TRY(
      check_keys(r, map, kKeys, WEIR_TUNE_KEYS, kNumbers, WEIR_GEMM_NUMBERS));
  for (int i = 0; i < WEIR_TUNE_KEYS; i++) {
    int64_t *to = &p.key.numbers[i];
    WEIR_TRY(words_of(i, &words) != NULL ? read_word(r, map, i, to)
                                         : read_int(r, map, kKeys[i], to));
  }
  for (int i = 0; i < WEIR_GEMM_NUMBERS; i++)
    WEIR_TRY(read_int(r, map, kNumbers[i], &p.choice.numbers[i]));
  if (weir_tune_find(r->out, &p.key) != NULL)
    return bad(r, &map->mark, "each product once");
  return weir_tune_add(r->alloc, r->out, &p, r->err);
}

static weir_status read_text(const reader *r, const weir_yaml *map,
                             const char *key, size_t capacity, char *out) {
  const weir_yaml *value = value_of(r, map, key);
  char what[48];
  if (value == NULL) return WEIR_FAILED_PRECONDITION;
  snprintf(what, sizeof what, "a name of 1 to %zu bytes", capacity - 1);
  if (value->kind != WEIR_YAML_SCALAR || value->text.size == 0 ||
      value->text.size >= capacity)
    return bad(r, &value->mark, what);
  memcpy(out, value->text.data, value->text.size);
  out[value->text.size] = '\0';
  return WEIR_OK;
}

static weir_status read_name(const reader *r, const weir_yaml *map,
                             const char *key, char *out) {
  return read_text(r, map, key, WEIR_GEMM_NAME_BYTES, out);
}

static weir_status read_call(const reader *r, const weir_yaml *map) {
  static const char *const kParts[] = {"call", "kernel", "ns"};
  weir_tune_call c;
  if (map->kind != WEIR_YAML_MAP) return bad(r, &map->mark, "a map of keys");
  WEIR_TRY(check_keys(r, map, kParts, WEIR_TABLE_COUNT(kParts), NULL, 0));
  WEIR_TRY(read_text(r, map, "call", sizeof c.text, c.text));
  WEIR_TRY(read_text(r, map, "kernel", sizeof c.kernel, c.kernel));
  WEIR_TRY(read_int(r, map, "ns", &c.ns));
  if (weir_tune_find_call(&r->out->cpu, c.text) != NULL)
    return bad(r, &map->mark, "each call once");
  return weir_tune_add_call(r->alloc, r->out, &c, r->err);
}

static weir_status read_cpu(const reader *r, const weir_yaml *map) {
  static const char *const kParts[] = {"machine", "calls"};
  weir_tune_calls *cpu = &r->out->cpu;
  if (map->kind != WEIR_YAML_MAP) return bad(r, &map->mark, "a map of keys");
  WEIR_TRY(check_keys(r, map, kParts, WEIR_TABLE_COUNT(kParts), NULL, 0));
  WEIR_TRY(read_text(r, map, "machine", sizeof cpu->machine, cpu->machine));
  const weir_yaml *list = value_of(r, map, "calls");
  if (list == NULL) return WEIR_FAILED_PRECONDITION;
  if (list->kind != WEIR_YAML_LIST || list->count > WEIR_TUNE_CALLS)
    return bad(r, &list->mark, "a list of at most 4096 calls");
  for (uint32_t i = 0; i < list->count; i++)
    WEIR_TRY(read_call(r, list->items[i]));
  return WEIR_OK;
}

static weir_status read_gpu(const reader *r, const weir_yaml *map) {
  static const char *const kParts[] = {"name", "library", "products"};
  if (map->kind != WEIR_YAML_MAP) return bad(r, &map->mark, "a map of keys");
  WEIR_TRY(check_keys(r, map, kParts, WEIR_TABLE_COUNT(kParts), NULL, 0));
  WEIR_TRY(read_name(r, map, "name", r->out->of.device));
  WEIR_TRY(read_name(r, map, "library", r->out->of.library));
  const weir_yaml *list = value_of(r, map, "products");
  if (list == NULL) return WEIR_FAILED_PRECONDITION;
  if (list->kind != WEIR_YAML_LIST || list->count > WEIR_TUNE_PRODUCTS)
    return bad(r, &list->mark, "a list of at most 4096 products");
  for (uint32_t i = 0; i < list->count; i++)
    WEIR_TRY(read_product(r, list->items[i]));
  return WEIR_OK;
}

static weir_status read_root(const reader *r, const char *name,
                             const weir_yaml *root) {
  static const char *const kParts[] = {"tuned", "cpu", "gpu"};
  const weir_mark start = {.file = name, .line = 1, .col = 1};
  int64_t version;
  if (root == NULL || root->kind != WEIR_YAML_MAP)
    return bad(r, root == NULL ? &start : &root->mark, "tuned: 1");
  WEIR_TRY(read_int(r, root, "tuned", &version));
  if (version != kVersion)
    return bad(r, &weir_yaml_get(root, "tuned")->mark, "version 1");
  WEIR_TRY(check_keys(r, root, kParts, WEIR_TABLE_COUNT(kParts), NULL, 0));
  const weir_yaml *cpu = weir_yaml_get(root, "cpu");
  const weir_yaml *gpu = weir_yaml_get(root, "gpu");
  if (cpu == NULL && gpu == NULL)
    return bad(r, &root->mark, "a key cpu or a key gpu");
  if (cpu != NULL) WEIR_TRY(read_cpu(r, cpu));
  return gpu != NULL ? read_gpu(r, gpu) : WEIR_OK;
}

weir_status weir_tune_read(const weir_allocator *alloc, weir_sv text,
                           const char *name, weir_tune_choices *out,
                           weir_error *err) {
  const reader r = {alloc, out, err};
  weir_arena arena;
  const weir_yaml *root = NULL;
  weir_arena_init(&arena, alloc);
  weir_status s = weir_yaml_parse(text, name, NULL, &arena, NULL, &root, err);
  if (s == WEIR_OK) s = read_root(&r, name, root);
  weir_arena_release(&arena);
  return s;
}
