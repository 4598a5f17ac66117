/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/kind.h"

#include <stdio.h>

#include "runtime/base/table.h"

#define WEIR_DEVICE_KIND(number, name) \
  extern const weir_device_kind_def weir_device_kind_##name;
#include "runtime/device/kinds.def"
#undef WEIR_DEVICE_KIND

const weir_device_kind_def *const weir_device_kinds[] = {
#define WEIR_DEVICE_KIND(number, name) [number] = &weir_device_kind_##name,
#include "runtime/device/kinds.def"
#undef WEIR_DEVICE_KIND
};
WEIR_TABLE_OF(weir_device_kinds, WEIR_DEVICE_KINDS);

weir_device_kind weir_device_kind_find(weir_sv name) {
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    if (weir_sv_is(name, weir_device_kinds[k]->name))
      return (weir_device_kind)k;
  return WEIR_DEVICE_ANY;
}

weir_device_kind weir_device_kind_host(void) {
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++)
    if (weir_device_kinds[k]->host) return (weir_device_kind)k;
  return WEIR_DEVICE_ANY;
}

char *weir_device_kind_names(char *text, size_t capacity) {
  size_t n = 0;
  text[0] = '\0';
  for (int k = 0; k < WEIR_DEVICE_KINDS && n < capacity; k++) {
    int more = snprintf(text + n, capacity - n, "%s%s",
                        weir_sv_before((size_t)k, WEIR_DEVICE_KINDS),
                        weir_device_kinds[k]->name);
    n += more > 0 ? (size_t)more : 0;
  }
  return text;
}

int64_t weir_device_work_ns(const weir_device_model *model, int64_t flops,
                            int64_t bytes) {
  double compute = (double)flops * 1e3 / (double)model->mflops;
  double memory = (double)bytes * 1e3 / (double)model->bytes_per_us;
  double ns = compute > memory ? compute : memory;
  return ns >= 4e18 ? INT64_C(4000000000000000000) : ns < 0 ? 0 : (int64_t)ns;
}
