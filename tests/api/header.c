/* SPDX-License-Identifier: Apache-2.0
 * Compiled as C99 and as C++17. */
#include "runtime/dlpack.h"
#include "runtime/weir.h"

int weir_header_compiles(void);
int weir_header_compiles(void) {
  weir_error err = WEIR_ERROR_INIT;
  weir_feed feed = WEIR_FEED("x", NULL);
  weir_fetch fetch = WEIR_FETCH("y");
  weir_run_request request = WEIR_RUN_REQUEST(&feed, 1, &fetch, 1);
  weir_tensor_spec spec = WEIR_TENSOR_SPEC(WEIR_F32, 0, NULL, 4);
  weir_tensor_list list = WEIR_TENSOR_LIST(0, NULL, NULL);
  weir_tasks_opts tasks;
  weir_task_opts task;
  weir_serve_opts server;
  weir_run_opts opts;
  opts.struct_size = sizeof opts;
  tasks.struct_size = sizeof tasks;
  task.struct_size = sizeof task;
  server.struct_size = sizeof server;
  return (int)(err.struct_size + request.struct_size + spec.struct_size +
               list.struct_size + opts.struct_size + tasks.struct_size +
               task.struct_size + server.struct_size);
}
