/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_WEIGHTS_H_
#define WEIR_TRAIN_WEIGHTS_H_

#include "runtime/exec/session/session.h"
#include "runtime/io/checkpoint/checkpoint.h"

/* Variables of sessions from checkpoints and from files. */

/* Variables from a checkpoint into |session|: all of |graph|'s that hold
 * anything. |dir| is for messages. Errors: W5022, naming each. */
/* |carry|: states that the graph itself assigns too; else they begin anew. */
weir_status weir_checkpoint_to_session(const weir_checkpoint *checkpoint,
                                       const weir_graph *graph,
                                       weir_exec_session *session,
                                       const char *dir, bool carry,
                                       weir_error *err);
/* The same for a session whose variables have owners
 * (weir_exec_session_has_owners) and a bare checkpoint: those that see the
 * folder read their own variables, the others are read here and sent. Warnings
 * of values that are not finite go to |sink|. Errors besides: W4045. */
weir_status weir_checkpoint_to_owners(const weir_checkpoint *checkpoint,
                                      const weir_graph *graph,
                                      weir_exec_session *session,
                                      const char *dir, bool carry,
                                      const weir_diag_sink *sink,
                                      weir_error *err);
/* A safetensors file and renames of its tensors, "theirs=ours". */
typedef struct weir_weights_file {
  const char *path;
  const char *const *map;
  size_t map_count;
} weir_weights_file;

/* The same from |file|; variables it does not have keep their values.
 * |*out_count|: how many were set. Errors: W5022, W5024, the file's. */
weir_status weir_weights_to_session(const weir_env *env,
                                    const weir_weights_file *file,
                                    const weir_graph *graph,
                                    weir_exec_session *session,
                                    size_t *out_count, weir_error *err);

/* By node of |graph|: states that its own `assign`s change, such as a recurrent
 * layer's; to be freed. NULL when out of memory. */
bool *weir_own_states(const weir_graph *graph, const weir_allocator *alloc);

#endif
