/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_TYPES_H_
#define WEIR_WEIR_TYPES_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/error.h"
#include "runtime/tensor/dtype.h"

/* Handles and types of all parts of the API. */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_runtime weir_runtime;
typedef struct weir_graph weir_graph;
typedef struct weir_session weir_session;
typedef struct weir_bound weir_bound;
typedef struct weir_tensor weir_tensor;
typedef struct weir_diag weir_diag;
typedef struct weir_trace weir_trace;
typedef struct weir_trainer weir_trainer;
typedef struct weir_plan weir_plan;
typedef struct weir_tasks weir_tasks;
typedef struct weir_task_server weir_task_server;
typedef struct weir_predict_server weir_predict_server;
typedef struct weir_train_part weir_train_part;

enum { WEIR_RANK_LIMIT = 8 };

/* Some bytes of text, not NUL-terminated. */
typedef struct weir_text {
  const char *data;
  size_t size;
} weir_text;

/* Takes |size| bytes of text; after it returned false it is not called again.
 */
typedef bool (*weir_write_fn)(void *self, const char *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
