/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tools/tools.h"

#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"
#include "kernels/profile.h"
#include "runtime/api/weir_internal.h"
#include "runtime/base/diag/nearest.h"
#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/binding.h"

/* ---- Ops */

size_t weir_tools_op_count(void) {
  return weir_registry_op_count(weir_builtin_registry());
}

const char *weir_tools_op_name(size_t i) {
  return weir_registry_op_at(weir_builtin_registry(), i)->name;
}

const char *weir_tools_op_summary(size_t i) {
  return weir_registry_op_at(weir_builtin_registry(), i)->summary;
}

int64_t weir_tools_op_find(const char *name) {
  const weir_registry *registry = weir_builtin_registry();
  const weir_op_def *op = weir_registry_find_op(registry, weir_sv_from(name));
  size_t count = weir_registry_op_count(registry);
  for (size_t i = 0; op != NULL && i < count; i++)
    if (weir_registry_op_at(registry, i) == op) return (int64_t)i;
  return -1;
}

static weir_sv text_at(const void *self, size_t i) {
  return weir_sv_from(((const char *const *)self)[i]);
}

int64_t weir_tools_nearest(const char *name, size_t count,
                           const char *const *names) {
  weir_sv found = weir_nearest_name(weir_sv_from(name), count, text_at, names);
  for (size_t i = 0; found.size != 0 && i < count; i++)
    if (weir_sv_is(found, names[i])) return (int64_t)i;
  return -1;
}

/* ---- Compiled programs */

bool weir_tools_bound_describe(const weir_bound *bound, weir_write_fn write,
                               void *self) {
  weir_writer out = {self, write};
  char text[WEIR_PROFILE_TEXT + 16], profile[WEIR_PROFILE_TEXT];
  int n = snprintf(
      text, sizeof text, "# for %s\n",
      weir_profile_text(bound->session->runtime->env.profile, profile));
  return write(self, text, (size_t)n) &&
         weir_binding_describe(bound->binding, &out);
}

weir_status weir_tools_bound_steps(weir_bound *bound,
                                   const weir_tools_steps *steps,
                                   weir_error *err) {
  if (bound == NULL) return weir_fail_null(err, "bound");
  if (steps == NULL) return weir_fail_null(err, "steps");
  weir_overlap_options overlap = {.steps = steps->steps,
                                  .inflight = steps->inflight,
                                  .self = steps->self,
                                  .begin = steps->begin,
                                  .end = steps->end};
  atomic_store_explicit(&bound->entry.cancel, false, memory_order_relaxed);
  weir_run_options options = {.cancel = &bound->entry.cancel,
                              .step = steps->first};
  return weir_binding_run_overlapped(bound->binding, &overlap, &options, err);
}
