/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/tools/weir_tools.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/gemm/onednn.h"
#include "kernels/kernel.h"
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

void weir_tools_bound_stats(const weir_bound *bound,
                            weir_tools_stats *out_stats) {
  weir_program_stats s = weir_binding_stats(bound->binding);
  *out_stats = (weir_tools_stats){.struct_size = out_stats->struct_size,
                                  .nodes = s.nodes,
                                  .instructions = s.instructions,
                                  .groups = s.groups,
                                  .flops = s.flops,
                                  .bytes = s.bytes,
                                  .arena_bytes = s.arena_bytes,
                                  .arena_bound_bytes = s.arena_bound_bytes,
                                  .constant_bytes = s.constant_bytes};
}

bool weir_tools_bound_describe(const weir_bound *bound, weir_write_fn write,
                               void *self) {
  weir_writer out = {self, write};
  return weir_binding_describe(bound->binding, &out);
}

weir_status weir_tools_bound_steps(weir_bound *bound,
                                   const weir_tools_steps *steps,
                                   weir_error *err) {
  weir_tools_steps t;
  if (bound == NULL) return weir_fail_null(err, "bound");
  if (steps == NULL) return weir_fail_null(err, "steps");
  WEIR_TRY(
      weir_opts_read(&t, sizeof t, steps, sizeof t, "weir_tools_steps", err));
  weir_overlap_options overlap = {.steps = t.steps,
                                  .inflight = t.inflight,
                                  .self = t.self,
                                  .begin = t.begin,
                                  .end = t.end};
  atomic_store_explicit(&bound->entry.cancel, false, memory_order_relaxed);
  weir_run_options options = {.cancel = &bound->entry.cancel, .step = t.first};
  return weir_binding_run_overlapped(bound->binding, &overlap, &options, err);
}

/* ---- Traces */

weir_status weir_tools_trace_create(weir_runtime *runtime, size_t max_events,
                                    weir_trace **out_trace, weir_error *err) {
  if (out_trace == NULL) return weir_fail_null(err, "out_trace");
  *out_trace = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  return weir_trace_create(&runtime->env, max_events, out_trace, err);
}

bool weir_tools_trace_write(const weir_trace *trace, weir_write_fn write,
                            void *self) {
  weir_writer out = {self, write};
  return weir_trace_write(trace, &out);
}

void weir_tools_trace_release(weir_trace *trace) {
  weir_trace_release(trace);
}

/* ---- Facts */

static void cpu_features(char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
#if defined(__x86_64__)
  const struct {
    const char *name;
    int has;
  } list[] = {{"sse4.2", __builtin_cpu_supports("sse4.2")},
              {"avx", __builtin_cpu_supports("avx")},
              {"avx2", __builtin_cpu_supports("avx2")},
              {"fma", __builtin_cpu_supports("fma")},
              {"avx512f", __builtin_cpu_supports("avx512f")},
              {"avx512bw", __builtin_cpu_supports("avx512bw")},
              {"avx512dq", __builtin_cpu_supports("avx512dq")},
              {"avx512vl", __builtin_cpu_supports("avx512vl")},
              {"avx512vnni", __builtin_cpu_supports("avx512vnni")}};
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    if (!list[i].has) continue;
    int n = snprintf(text + used, size - used, "%s%s", used != 0 ? " " : "",
                     list[i].name);
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  }
#else
  snprintf(text, size, "not x86-64: plain C loops");
#endif
}

bool weir_tools_fact(size_t i, const char **out_name, char *buffer,
                     size_t buffer_size) {
  static const char *const names[] = {"version", "compiler", "language", "ops",
                                      "onednn",  "cores",    "cpu"};
  if (i >= sizeof names / sizeof names[0]) return false;
  *out_name = names[i];
  switch (i) {
    case 0:
      snprintf(buffer, buffer_size, "%s", weir_version_text());
      break;
    case 1:
#if defined(__clang__)
      snprintf(buffer, buffer_size, "clang %s", __clang_version__);
#else
      snprintf(buffer, buffer_size, "gcc %s", __VERSION__);
#endif
      break;
    case 2:
      snprintf(buffer, buffer_size, "1");
      break;
    case 3:
      snprintf(buffer, buffer_size, "%zu", weir_tools_op_count());
      break;
    case 4:
      weir_onednn_version(buffer, buffer_size);
      break;
    case 5:
      snprintf(buffer, buffer_size, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
      break;
    default:
      cpu_features(buffer, buffer_size);
  }
  return true;
}
