/* SPDX-License-Identifier: Apache-2.0 */
/* The list of placers, and their forms in options. All loops walk the list that
 * the build makes, so a new placer needs no line here. */
#include "placement/solve/placer.h"

#include <stdio.h>
#include <string.h>

/* Made from the list in placement/meson.build. */
extern const weir_placer *const weir_placers[];
extern const size_t weir_placer_count;

const weir_placer *weir_placer_at(size_t i) {
  return i < weir_placer_count ? weir_placers[i] : NULL;
}

const weir_placer *weir_placer_find(const char *name) {
  for (size_t i = 0; i < weir_placer_count; i++)
    if (strcmp(weir_placers[i]->name, name) == 0) return weir_placers[i];
  return NULL;
}

/* Decimal digits, few enough for 64 bits. */
static bool read_seed(weir_sv digits, uint64_t *out) {
  enum { MOST_DIGITS = 18 };
  *out = 0;
  for (size_t i = 0; i < digits.size; i++) {
    if (digits.data[i] < '0' || digits.data[i] > '9') return false;
    *out = *out * 10 + (uint64_t)(digits.data[i] - '0');
  }
  return digits.size > 0 && digits.size <= MOST_DIGITS;
}

bool weir_placer_parse(weir_sv text, const weir_placer **out,
                       uint64_t *out_seed) {
  const char *colon = text.size == 0 ? NULL : memchr(text.data, ':', text.size);
  weir_sv name = {text.data,
                  colon == NULL ? text.size : (size_t)(colon - text.data)};
  *out_seed = 0;
  for (size_t i = 0; i < weir_placer_count; i++) {
    if (!weir_sv_is(name, weir_placers[i]->name)) continue;
    *out = weir_placers[i];
    return colon == NULL ||
           (weir_placers[i]->args != NULL &&
            read_seed((weir_sv){colon + 1, text.size - name.size - 1},
                      out_seed));
  }
  return false;
}

char *weir_placer_forms(char *text, size_t capacity) {
  size_t n = 0;
  text[0] = '\0';
  for (size_t i = 0; i < weir_placer_count && n < capacity; i++) {
    const weir_placer *p = weir_placers[i];
    int more =
        snprintf(text + n, capacity - n, "%s%s%s%s%s",
                 weir_sv_before(i, weir_placer_count), p->name,
                 p->args == NULL ? "" : "[:", p->args == NULL ? "" : p->args,
                 p->args == NULL ? "" : "]");
    n += more > 0 ? (size_t)more : 0;
  }
  return text;
}

weir_status weir_place_solve(const weir_allocator *alloc,
                             const weir_place_problem *problem,
                             const weir_place_options *options,
                             weir_place_result *out, weir_error *err) {
  static const weir_place_options plain = {0};
  if (options == NULL) options = &plain;
  const weir_placer *placer =
      options->placer == NULL ? weir_placers[0] : options->placer;
  *out = (weir_place_result){0};
  return placer->solve(alloc, problem, options, out, err);
}
