/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_KV_H_
#define WEIR_WEIR_KV_H_

#include "runtime/weir/cluster.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Keys: named tensors on servers, for programs with a training of their
 * own.
 *
 * The tasks of job ps of a cluster hold the tensors, those of job worker push
 * to them and pull from them. A server's process:
 *
 *   weir_kv_opts o = {.struct_size = sizeof o, .cluster = "c.yaml",
 *                     .job = "ps", .index = 0};
 *   s = weir_kv_server_create(runtime, &o, &server, &err);
 *   if (s == WEIR_OK) s = weir_kv_server_run(server, &err);
 *   weir_kv_server_release(server);
 *
 * A worker's, with job "worker":
 *
 *   s = weir_kv_open(runtime, &o, &kv, &err);
 *   s = weir_kv_declare(kv, "w", &key, &err);          rule: "adam(lr=0.01)"
 *   s = weir_kv_push(kv, "w", gradient, NULL, &handle, &err);
 *   s = weir_kv_wait(handle, -1, &result, &err);
 *   weir_kv_handle_release(handle);
 *   weir_kv_close(kv);
 *
 * A push counts once, whatever links do: one that was answered has been
 * applied, and one that was not is sent again when the link is back, above the
 * mark that the server keeps for each worker. Ops of one worker on one key are
 * carried out in the order of the calls. What is on the servers lives as long
 * as their processes: after a restart of one, ops on its keys fail with W7114,
 * and never see zeros.
 *
 * A tensor of more than |split_bytes| is cut along its first axis over all
 * servers; a smaller one is whole on one of them, which follows from its name.
 *
 * All functions of a handle may be called by several threads. */

typedef struct weir_kv weir_kv;
typedef struct weir_kv_server weir_kv_server;
typedef struct weir_kv_handle weir_kv_handle;

typedef struct weir_kv_opts {
  uint32_t struct_size;
  bool insecure;       /* as of weir_tasks_opts */
  const char *cluster; /* likewise; with jobs ps and worker */
  /* Of each task, in the cluster's order; NULL: the cluster's own. Workers need
   * none. */
  const char *const *addresses;
  size_t address_count;
  const char *job; /* this process's task */
  uint32_t index;
  uint64_t split_bytes;  /* the same in all processes; 0: 64 MiB */
  int64_t heartbeat_ns;  /* a silent link ends after five; 0: 1 s */
  int64_t lost_after_ns; /* a server: a worker without a link for so long is
                          * lost, and breaks barriers; 0: 10 s */
  const char *module_folder;
  const weir_tls_opts *tls; /* as of weir_tasks_opts */
  /* Gets a line of text without its end for each event, lent for the call, on
   * some thread. NULL: none is wanted. */
  void (*on_event)(void *self, const char *text);
  void *on_event_self;
} weir_kv_opts;

/* Listens. Errors: W0002 (no such task, no address, no job ps), W0004, W7002,
 * W7004, W7060, W6001, W6003. */
WEIR_API weir_status weir_kv_server_create(weir_runtime *runtime,
                                           const weir_kv_opts *opts,
                                           weir_kv_server **out_server,
                                           weir_error *err);
/* The address to dial, lent; NULL without a server. */
WEIR_API const char *weir_kv_server_address(const weir_kv_server *server);
/* Serves until weir_kv_server_stop. Once. Errors: W0004, W6003. */
WEIR_API weir_status weir_kv_server_run(weir_kv_server *server,
                                        weir_error *err);
/* Any thread, and a signal handler; also before it runs. NULL-safe. */
WEIR_API void weir_kv_server_stop(weir_kv_server *server);
WEIR_API void weir_kv_server_release(weir_kv_server *server); /* NULL-safe */

/* Dials the servers, and waits for none of them: ops wait. Errors: as
 * weir_kv_server_create. */
WEIR_API weir_status weir_kv_open(weir_runtime *runtime,
                                  const weir_kv_opts *opts, weir_kv **out_kv,
                                  weir_error *err);
/* Tells the servers that this worker leaves, and ends what has no answer with
 * W7118. Handles may be released later. NULL-safe. */
WEIR_API void weir_kv_close(weir_kv *kv);

typedef struct weir_kv_key_opts {
  uint32_t struct_size;
  weir_dtype dtype;
  int32_t rank;
  const int64_t *dims; /* each at least 1; may be NULL when |rank| is 0 */
  /* What a push does: "add"; "assign"; or an optimizer of the graph language
   * with its arguments, "sgd(lr=0.1)", "adam(lr=0.001, beta1=0.8)", whose slots
   * the server has, for keys of f32 and f64. NULL: "add". */
  const char *rule;
  /* The first values, as the first declaration that comes has them; NULL:
   * zeros. */
  const weir_tensor *first;
  int64_t timeout_ns; /* 0: 30 s; below 0: none */
} weir_kv_key_opts;

/* Makes the key |name| (1 to 255 bytes), or takes it as another process has
 * declared it. Each process declares the keys that it uses. Blocks. Errors:
 * W0004, W7112, W7113, W7114, W7116, W7117, W6001. */
WEIR_API weir_status weir_kv_declare(weir_kv *kv, const char *name,
                                     const weir_kv_key_opts *opts,
                                     weir_error *err);

typedef struct weir_kv_op_opts {
  uint32_t struct_size;
  int32_t priority; /* a higher one overtakes what waits to be sent */
  /* i64[n]: these rows of the key alone; the other tensors are [n, ...], a row
   * for each. Rows that a push names twice are summed first; of rule `assign`
   * the last counts. An optimizer changes the values and slots of these rows
   * only. NULL: the whole key. */
  const weir_tensor *ids;
  bool if_newer; /* a pull: only if the version is above |newer_than| */
  uint64_t newer_than;
} weir_kv_op_opts;

/* Begin an op on a declared key; the handle is the caller's. |opts| may be
 * NULL. The tensors are retained, and not to be changed until the op is done;
 * outputs are filled. The order of a worker's ops on one key is that of the
 * calls. Errors: W0004, W7111, W7113, W7118, W6001; later ones come with the
 * handle. */
WEIR_API weir_status weir_kv_push(weir_kv *kv, const char *name,
                                  const weir_tensor *values,
                                  const weir_kv_op_opts *opts,
                                  weir_kv_handle **out_handle, weir_error *err);
WEIR_API weir_status weir_kv_pull(weir_kv *kv, const char *name,
                                  weir_tensor *out, const weir_kv_op_opts *opts,
                                  weir_kv_handle **out_handle, weir_error *err);
/* A push, and the values just after it. */
WEIR_API weir_status weir_kv_push_pull(
    weir_kv *kv, const char *name, const weir_tensor *values, weir_tensor *out,
    const weir_kv_op_opts *opts, weir_kv_handle **out_handle, weir_error *err);

typedef struct weir_kv_group {
  uint32_t struct_size;
  const uint32_t *members; /* indices of workers, this one among them */
  size_t member_count;
} weir_kv_group;

/* Enters the barrier |name|, which is passed when each member of the group has
 * entered, once; |opts| NULL: all workers of the cluster. It counts members, so
 * nothing that is sent twice releases it, and it says nothing about pushes:
 * wait for those first. A member that is lost or leaves breaks it for all with
 * W7115. */
WEIR_API weir_status weir_kv_barrier(weir_kv *kv, const char *name,
                                     const weir_kv_group *opts,
                                     weir_kv_handle **out_handle,
                                     weir_error *err);

typedef struct weir_kv_result {
  uint32_t struct_size;
  bool newer; /* a pull: the output was filled */
  /* How many pushes the key has had; of a key on several servers the least. A
   * push whose answer was lost with a link has 0. */
  uint64_t version;
} weir_kv_result;

/* Waits until the op is done. |timeout_ns|: below 0: for ever; 0: not at all.
 * |out_result|, whose struct_size is set, may be NULL. May be called again, on
 * any thread. Errors: W7116 (it goes on), those of the op: W7111, W7113-W7115,
 * W7118, W6001. */
WEIR_API weir_status weir_kv_wait(weir_kv_handle *handle, int64_t timeout_ns,
                                  weir_kv_result *out_result, weir_error *err);
/* The op goes on. NULL-safe. */
WEIR_API void weir_kv_handle_release(weir_kv_handle *handle);

#ifdef __cplusplus
}
#endif

#endif
