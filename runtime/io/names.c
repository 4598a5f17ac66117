/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/io/names.h"

#include "runtime/base/map.h"
#include "runtime/base/utf8.h"

enum { kShown = 200 }; /* bytes of a name in a message */

static weir_status check(const weir_names *names, size_t i, weir_map *seen,
                         weir_error *err) {
  uint32_t other = WEIR_MAP_NONE;
  weir_sv name = names->name_at(names->self, i);
  int shown = (int)(name.size < kShown ? name.size : kShown);
  if (!names->is_sound(name))
    return weir_fail(err, WEIR_W5009, NULL, "'%.*s' cannot be the name of %s",
                     shown, name.data, names->one);
  if (!weir_map_put(seen, name, (uint32_t)i, &other))
    return weir_fail_memory(err, names->count);
  if (other == WEIR_MAP_NONE) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL, "two %s are called '%.*s'",
                   names->several, shown, name.data);
}

weir_status weir_names_check(const weir_allocator *alloc,
                             const weir_names *names, weir_error *err) {
  weir_map seen;
  weir_status s = WEIR_OK;
  weir_map_init(&seen, alloc);
  for (size_t i = 0; s == WEIR_OK && i < names->count; i++)
    s = check(names, i, &seen, err);
  weir_map_release(&seen);
  return s;
}

weir_sv weir_names_at(const void *self, size_t i) {
  return ((const weir_sv *)self)[i];
}

bool weir_names_is_sound(weir_sv name) {
  return weir_utf8_valid(name, NULL) && !weir_sv_is(name, "__metadata__");
}
