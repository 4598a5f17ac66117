/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_H_
#define WEIR_H_

/* weir: dataflow graphs in YAML, run from C.
 *
 *   weir_error err = WEIR_ERROR_INIT;
 *   weir_runtime *runtime = NULL;
 *   weir_graph *graph = NULL;
 *   weir_session *session = NULL;
 *   weir_fetch c = WEIR_FETCH("c");
 *   weir_run_request request = WEIR_RUN_REQUEST(NULL, 0, &c, 1);
 *   weir_status s = weir_runtime_create(NULL, &runtime, &err);
 *   if (s == WEIR_OK)
 *     s = weir_graph_load_file(runtime, "tiny.weir.yaml", NULL, &graph, &err);
 *   if (s == WEIR_OK)
 *     s = weir_session_create(runtime, graph, NULL, &session, &err);
 *   if (s == WEIR_OK)
 *     s = weir_session_run(session, &request, NULL, &err);
 *   if (s == WEIR_OK) use(weir_tensor_data(c.tensor));
 *   else fprintf(stderr, "%s: %s\n", err.id, err.message);
 *   weir_tensor_release(c.tensor);
 *   weir_session_release(session);
 *   weir_graph_release(graph);
 *   weir_runtime_release(runtime);
 *
 * Ownership: *_create, *_load and *_from give you a reference, *_release
 * (NULL-safe) drops it, other functions lend. Outputs come last and are NULL
 * after a failure. Handles may be released in any order.
 *
 * Errors: a weir_status is returned; a weir_error, where one is passed (NULL is
 * allowed), says the rest. It lives in your memory; nothing is to be freed.
 *
 * Structs begin with struct_size, which you set to sizeof the struct; all else
 * may be zero. Structs grow at their end only. A program that was built with an
 * older header hands over shorter structs: fields that it does not know are
 * zero going in, and left out coming back. A struct from a newer header works
 * as long as the fields that this library does not know are zero (W0004 if
 * not). All elements of an array of structs have the struct_size of the first.
 *
 * Functions take NULL and zero: where something is needed they fail with
 * W0004, or return NULL, 0 or false; releases of NULL do nothing.
 *
 * Threads: a runtime, a graph, a session may be used from many threads at
 * once; a tensor's count too, its data is guarded by nobody. The library keeps
 * no global state, never prints, exits, reads the environment, or handles
 * signals. */

#include "runtime/weir/cluster.h"
#include "runtime/weir/graph.h"
#include "runtime/weir/kv.h"
#include "runtime/weir/op.h"
#include "runtime/weir/runtime.h"
#include "runtime/weir/serve.h"
#include "runtime/weir/session.h"
#include "runtime/weir/tensor.h"
#include "runtime/weir/train.h"
#include "runtime/weir/types.h"

#endif
