/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/weir_internal.h"
#include "runtime/exec/run/trace.h"
#include "runtime/exec/session/binding.h"

/* Figures and traces of runs. */

weir_status weir_bound_stats(const weir_bound *bound, weir_run_stats *out_stats,
                             weir_error *err) {
  if (bound == NULL) return weir_fail_null(err, "bound");
  weir_program_stats p = weir_binding_stats(bound->binding);
  weir_run_stats stats = {.nodes = p.nodes,
                          .instructions = p.instructions,
                          .groups = p.groups,
                          .flops = p.flops,
                          .bytes = p.bytes,
                          .arena_bytes = p.arena_bytes,
                          .arena_bound_bytes = p.arena_bound_bytes,
                          .constant_bytes = p.constant_bytes};
  return WEIR_OPTS_WRITE(weir_run_stats, out_stats, &stats, err);
}

weir_status weir_trace_create(weir_runtime *runtime, size_t max_events,
                              weir_trace **out_trace, weir_error *err) {
  if (out_trace == NULL) return weir_fail_null(err, "out_trace");
  *out_trace = NULL;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  return weir_exec_trace_create(&runtime->env, max_events, out_trace, err);
}

bool weir_trace_write(const weir_trace *trace, weir_write_fn write,
                      void *write_self) {
  weir_writer out = {write_self, write};
  if (trace == NULL || write == NULL) return false;
  return weir_exec_trace_write(trace, &out);
}

void weir_trace_release(weir_trace *trace) {
  weir_exec_trace_release(trace);
}
