/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_EXEC_REMOTE_H_
#define WEIR_EXEC_REMOTE_H_

#include "runtime/exec/compile/compile_cut.h"
#include "runtime/exec/session/request.h"
#include "runtime/tensor/tensor.h"

/* Remotes: sessions whose programs run in other processes.
 *
 * A session with a remote keeps the part that faces its callers: names and
 * checks, defaults of inputs, meshes, the cache of programs, bindings, outputs.
 * Its placed programs are carried out by the remote, and its variables live
 * there. So training loops, data sets' predictions and the public API need not
 * know where a program runs.
 *
 *   remote->vt->prepare(remote, request, &program, err)    once a program
 *   remote->vt->run(remote, program, step, err)            each run
 *   remote->vt->decide(remote, program, commit, err)       if it assigns
 *   remote->vt->forget(remote, program)
 *
 * Ids are those of |graph|, the session's own: meshes are lowered, and it is
 * the graph that every process makes of the same files.
 *
 * All calls block, on any thread, several at once; runs of programs that assign
 * come one at a time, each followed by its decide. The remote outlives the
 * session. Implementation: runtime/dist. */

struct weir_checkpoint_common;
struct weir_checkpoint_owners;
struct weir_diag_sink;

typedef struct weir_remote weir_remote;
typedef struct weir_remote_program weir_remote_program;

typedef struct weir_remote_request {
  const weir_graph *graph; /* the session's own */
  const weir_value_id *feeds;
  const weir_shape *feed_shapes; /* no dimension is open */
  const weir_value_id *fetches;
  const weir_node_id *targets;
  uint32_t feed_count, fetch_count, target_count;
  bool no_fusion;
  const weir_cut *cut;   /* of |graph| for this request; lent for the call */
  const weir_plan *plan; /* of |cut|; retained if it is kept */
} weir_remote_request;

/* How a fetch ended. */
typedef struct weir_remote_outcome {
  weir_status status;
  weir_error error; /* unless |status| is WEIR_OK */
} weir_remote_outcome;

/* One run. Values lie row-major, of the shapes that the program was prepared
 * for. */
typedef struct weir_remote_step {
  const void *const *feeds;
  void *const *fetches;            /* written where the outcome is WEIR_OK */
  weir_remote_outcome *outcomes;   /* per fetch */
  const weir_run_options *options; /* deadline, cancel, step, trap_nan */
} weir_remote_step;

/* Where the value of a variable stands in a folder of checkpoints. */
typedef struct weir_remote_row {
  weir_node_id node;
  const char *file;
  uint64_t offset;
  uint32_t crc; /* CRC32C of its bytes */
} weir_remote_row;

typedef struct weir_remote_vtable {
  /* Makes |request| known where it runs. |*out_writes|: it assigns variables.
   * Errors: the compiler's, W70xx. */
  weir_status (*prepare)(weir_remote *remote,
                         const weir_remote_request *request,
                         weir_remote_program **out_program, bool *out_writes,
                         weir_error *err);
  void (*forget)(weir_remote *remote, weir_remote_program *program);
  /* Runs it once. A failure is of the whole run (a lost task, the deadline) or
   * the first failed node's; outcomes say more of fetches, and all are set. A
   * run that failed has changed no variable and is not decided on. */
  weir_status (*run)(weir_remote *remote, weir_remote_program *program,
                     const weir_remote_step *step, weir_error *err);
  /* After a run of a program that writes has succeeded: its new values become
   * current everywhere, or are dropped. */
  weir_status (*decide)(weir_remote *remote, weir_remote_program *program,
                        bool commit, weir_error *err);
  /* Reads or writes |count| variables, |nodes| of |graph|; |data| row-major.
   * All are of the same moment. */
  weir_status (*get)(weir_remote *remote, const weir_node_id *nodes,
                     void *const *data, uint32_t count, weir_error *err);
  weir_status (*set)(weir_remote *remote, const weir_node_id *nodes,
                     const void *const *data, uint32_t count, weir_error *err);
  /* Holds the values that |count| variables have now where they are, all of the
   * same moment, for a store to save them: entry i of the save is |nodes[i]|.
   * Returns when that moment is over; steps may follow. */
  weir_status (*hold)(weir_remote *remote, const weir_node_id *nodes,
                      uint32_t count,
                      struct weir_checkpoint_owners **out_owners,
                      weir_error *err);
  /* Has variables read and set where they live, by those processes that see
   * the folder of |place|. |out_left|, of |count|: those rows whose process
   * does not. Warnings go to |sink| (may be NULL). After a failure the
   * variables hold any of their values. Errors: W4045 (the bytes are others),
   * those of files. */
  weir_status (*load)(weir_remote *remote,
                      const struct weir_checkpoint_common *place,
                      const weir_remote_row *rows, uint32_t count,
                      bool *out_left, const struct weir_diag_sink *sink,
                      weir_error *err);
  /* How many runs of a program that only reads it is best to have under way at
   * once. NULL: one. */
  uint32_t (*width)(weir_remote *remote);
} weir_remote_vtable;

/* Every remote starts with this. */
struct weir_remote {
  const weir_remote_vtable *vt;
  /* Another driver has made the variables: they have values, and not first
   * ones. */
  bool found;
};

#endif
