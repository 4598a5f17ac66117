/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/format/format.h"

#include <string.h>

#include "runtime/base/join.h"

static bool ends_with(const char *name, const char *ending) {
  size_t n = strlen(name), m = strlen(ending);
  return n >= m && memcmp(name + n - m, ending, m) == 0;
}

const weir_format *weir_format_of_number(int number) {
  const weir_format *f;
  for (size_t i = 0; number > 0 && (f = weir_format_at(i)) != NULL; i++)
    if (f->number == number) return f;
  return NULL;
}

const weir_format *weir_format_of_name(const char *name) {
  const weir_format *f;
  for (size_t i = 0; (f = weir_format_at(i)) != NULL; i++)
    for (int k = 0; k < WEIR_FORMAT_ENDINGS && f->endings[k] != NULL; k++)
      if (ends_with(name, f->endings[k])) return f;
  return NULL;
}

const weir_format *weir_format_of(weir_bytes bytes, const char *name) {
  const weir_format *f;
  for (size_t i = 0; (f = weir_format_at(i)) != NULL; i++)
    if (f->sniff(bytes)) return f;
  return weir_format_of_name(name);
}

bool weir_format_is_written(const weir_format *format) {
  return format->write != NULL;
}

bool weir_format_holds_several(const weir_format *format) {
  return format->open != NULL;
}

const char *weir_format_names(bool (*of)(const weir_format *format), char *text,
                              size_t size) {
  const weir_format *f;
  text[0] = '\0';
  for (size_t i = 0; (f = weir_format_at(i)) != NULL; i++)
    if (of == NULL || of(f)) weir_join_name(text, size, f->name);
  return text;
}
