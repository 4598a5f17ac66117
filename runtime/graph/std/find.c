/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/graph/std/find.h"

#include "runtime/graph/std/embedded.h"

weir_sv weir_std_find(weir_sv name) {
  for (const weir_embedded *e = weir_embedded_std; e->name != NULL; e++)
    if (weir_sv_is(name, e->name))
      return (weir_sv){(const char *)e->text, e->size};
  return (weir_sv){NULL, 0};
}
