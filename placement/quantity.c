/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/quantity.h"

#include <string.h>

#include "runtime/base/yaml/yaml_scalar.h"

typedef struct unit {
  const char *name;
  double factor;
} unit;

static const unit byte_units[] = {{"B", 1},
                                  {"kB", 1e3},
                                  {"KB", 1e3},
                                  {"MB", 1e6},
                                  {"GB", 1e9},
                                  {"TB", 1e12},
                                  {"KiB", 1024},
                                  {"MiB", 1048576},
                                  {"GiB", 1073741824.0},
                                  {"TiB", 1099511627776.0},
                                  {"", 1},
                                  {NULL, 0}};
static const unit time_units[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const unit bit_units[] = {
    {"bit", 1}, {"kbit", 1e3}, {"Mbit", 1e6}, {"Gbit", 1e9}, {NULL, 0}};

/* A number of at least 0, then a unit. */
static bool parse(weir_sv text, const unit *units, double *out) {
  size_t digits = 0;
  while (digits < text.size && strchr("0123456789.eE+-", text.data[digits]))
    digits++;
  /* "1e3": the e belongs to the number only before a digit. */
  while (digits > 0 && strchr("eE+-", text.data[digits - 1])) digits--;
  double number;
  if (digits == 0 || !weir_text_float((weir_sv){text.data, digits}, &number))
    return false;
  weir_sv rest = {text.data + digits, text.size - digits};
  while (rest.size > 0 && rest.data[0] == ' ') rest.data++, rest.size--;
  for (; units->name != NULL; units++)
    if (weir_sv_is(rest, units->name)) {
      *out = number * units->factor;
      return number >= 0 && *out < 9e18;
    }
  return false;
}

bool weir_quantity_bytes(weir_sv text, int64_t *out_bytes) {
  double value;
  if (!parse(text, byte_units, &value)) return false;
  *out_bytes = (int64_t)value;
  return true;
}

bool weir_quantity_time(weir_sv text, int64_t *out_ns) {
  double value;
  if (!parse(text, time_units, &value)) return false;
  *out_ns = (int64_t)value;
  return true;
}

bool weir_quantity_rate(weir_sv text, int64_t *out_bytes_per_us) {
  double value;
  if (text.size < 3 || memcmp(text.data + text.size - 2, "/s", 2) != 0)
    return false;
  text.size -= 2;
  if (!parse(text, byte_units, &value)) {
    if (!parse(text, bit_units, &value)) return false;
    value /= 8;
  }
  *out_bytes_per_us = (int64_t)(value / 1e6);
  return *out_bytes_per_us > 0;
}
