/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_WEIR_OPTS_H_
#define WEIR_API_WEIR_OPTS_H_

#include <stddef.h>

#include "runtime/weir.h"

/* Structs of callers that were built with another header than ours.
 *
 * A public struct grows at its end only. WEIR_PUBLIC_STRUCTS freezes the first
 * size of each by its last field in version 0.1; these rows never change, and a
 * new struct gets a row. Ours is at least as long; a caller's may have any
 * length from the frozen one on. A field that is added must begin at or after
 * the frozen sizeof, never in the padding at its end, which an old caller may
 * leave uninitialised. */

/* X(type, last field in 0.1) */
#define WEIR_PUBLIC_STRUCTS(X)           \
  X(weir_allocator_hook, free)           \
  X(weir_runtime_opts, on_log_self)      \
  X(weir_param, text)                    \
  X(weir_load_opts, max_depth)           \
  X(weir_io_desc, type)                  \
  X(weir_tensor_spec, bytes)             \
  X(weir_tensor_list, tensors)           \
  X(weir_tensor_info, bytes)             \
  X(weir_session_opts, on_plan_self)     \
  X(weir_feed, tensor)                   \
  X(weir_fetch, error)                   \
  X(weir_run_request, target_count)      \
  X(weir_run_opts, trace)                \
  X(weir_train_opts, on_diag_self)       \
  X(weir_train_callbacks, warning)       \
  X(weir_train_progress, eval_ns)        \
  X(weir_train_report, value_count)      \
  X(weir_train_followed, skipped)        \
  X(weir_run_stats, constant_bytes)      \
  X(weir_prediction, labels)             \
  X(weir_predict_opts, getenv_self)      \
  X(weir_variable_desc, type)            \
  X(weir_plan_progress, asked)           \
  X(weir_plan_text, name)                \
  X(weir_plan_opts, on_diag_self)        \
  X(weir_plan_node, reason_why)          \
  X(weir_plan_device, busy_ns)           \
  X(weir_plan_copy, end_ns)              \
  X(weir_plan_part, sent_bytes)          \
  X(weir_plan_edge, ranks)               \
  X(weir_plan_figure, bound)             \
  X(weir_plan_summary, placer)           \
  X(weir_plan_item, bytes)               \
  X(weir_plan_alternative, step_ns)      \
  X(weir_tls_opts, key)                  \
  X(weir_tasks_opts, module_folder)      \
  X(weir_task_opts, on_event_self)       \
  X(weir_tasks_worker, again)            \
  X(weir_cluster_state, text)            \
  X(weir_op_port, name)                  \
  X(weir_op_attr_spec, fallback)         \
  X(weir_op_value, data)                 \
  X(weir_op_attr, floats)                \
  X(weir_op_use, inner)                  \
  X(weir_op_cost, bytes)                 \
  X(weir_op_spec, self)                  \
  X(weir_train_part_opts, on_event_self) \
  X(weir_serve_opts, module_folder)      \
  X(weir_serve_stats, p99_ns)            \
  X(weir_kv_opts, on_event_self)         \
  X(weir_kv_key_opts, timeout_ns)        \
  X(weir_kv_op_opts, newer_than)         \
  X(weir_kv_group, member_count)         \
  X(weir_kv_result, version)

enum {
#define WEIR_SIZE_0_ROW(type, last) \
  type##_size_0 = offsetof(type, last) + sizeof(((type *)0)->last),
  WEIR_PUBLIC_STRUCTS(WEIR_SIZE_0_ROW)
#undef WEIR_SIZE_0_ROW
};

/* Copies the caller's struct |src| (NULL: all zero) to |dst| of |size| bytes.
 * It may be longer than ours if the rest is zero, and as short as |size_0|:
 * then the rest is zero here. Errors: W0004, naming |what|. */
weir_status weir_opts_read(void *dst, size_t size, const void *src,
                           size_t size_0, const char *what, weir_error *err);
/* The same, by the type's name. */
#define WEIR_OPTS_READ(type, dst, src, err) \
  weir_opts_read((dst), sizeof(type), (src), type##_size_0, #type, (err))

/* Fills the caller's struct |dst|, whose struct_size is set, from |src| of
 * |size| bytes: as much as it has room for, the rest of it becomes zero.
 * Errors: W0004, naming |what|. */
weir_status weir_opts_write(void *dst, const void *src, size_t size,
                            size_t size_0, const char *what, weir_error *err);
#define WEIR_OPTS_WRITE(type, dst, src, err) \
  weir_opts_write((dst), (src), sizeof(type), type##_size_0, #type, (err))

/* The i-th of an array of structs whose first says how long each is. */
static inline const void *weir_opts_at(const void *array, size_t i) {
  return (const char *)array + i * *(const uint32_t *)array;
}

/* W0004 "|what| is NULL". */
weir_status weir_fail_null(weir_error *err, const char *what);

#endif
