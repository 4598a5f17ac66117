/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_API_TASK_LIST_H_
#define WEIR_API_TASK_LIST_H_

#include "runtime/api/weir_internal.h"
#include "runtime/dist/cluster/cluster.h"
#include "runtime/net/grpc.h"

/* The part that drivers and servers have in common: the tasks of a caller's
 * cluster, and the transports to them. */

typedef struct weir_task_list {
  weir_cluster *cluster;
  weir_arena arena;        /* of the rest */
  const char *text;        /* the caller's; NULL: the graph's, else auto */
  weir_driver_task *tasks; /* in the cluster's order; address "": none given */
  uint32_t count;
  /* Of jobs and indices. Addresses are not in it: a process may be known by
   * other ones to others, and Hello says which task answers. */
  uint64_t hash;
} weir_task_list;

/* Reads |cluster|, as weir_plan_opts.cluster says; |graph| may be NULL. Release
 * |out| also after a failure. Errors: W0002, W3020, those of reading a file,
 * W6001. */
weir_status weir_task_list_read(weir_runtime *runtime, const weir_graph *graph,
                                const char *cluster, weir_task_list *out,
                                weir_error *err);
void weir_task_list_release(weir_task_list *list);

/* Who is to be asked for a certificate, and for which. */
typedef struct weir_list_tls {
  const weir_tls_opts *given; /* the caller's; NULL: the cluster's */
  bool insecure;              /* the caller's or the cluster's */
  const char *job;            /* NULL: the driver */
  uint32_t index;
} weir_list_tls;

/* The certificates of a process of |list|, in its memory, or NULL for
 * |*out_tls|: it has none. Errors: W0002 (insecure as well), W0004, W6001. */
weir_status weir_task_list_tls(weir_task_list *list, const weir_list_tls *ask,
                               const weir_net_tls **out_tls, weir_error *err);

/* Puts the caller's |addresses| in place of the cluster's, for tasks in its
 * order; a NULL among them: that task has none. |addresses| NULL: does nothing.
 * Errors: W0002 (not one for each task), W6001. */
weir_status weir_task_list_address(weir_task_list *list,
                                   const char *const *addresses, size_t count,
                                   weir_error *err);

/* Whether |task| of a list has an address. Errors: W0002. */
weir_status weir_task_list_check(const weir_driver_task *task, weir_error *err);

/* Whether no other machine can listen in on frames to |address|. */
bool weir_task_list_is_here(const char *address);

/* Whether |cluster| has the same tasks, in the same order. */
bool weir_task_list_fits(const weir_task_list *list,
                         const weir_cluster *cluster);

/* The caller's function for changes, in the form of runtime/dist. */
typedef struct weir_state_teller {
  weir_cluster_state_fn on_state; /* NULL: nobody listens */
  void *self;
} weir_state_teller;

/* |teller| stays at its place for as long as the result is used. */
weir_states weir_state_teller_states(weir_state_teller *teller);

/* Transports by gRPC. At one place in memory for as long as any of them. */
typedef struct weir_grpc_maker {
  const weir_env *env;
  weir_module_handle module;
  weir_transports transports; /* for runtime/dist */
} weir_grpc_maker;

/* Loads the module. |log| gets lines of the transports, such as warnings, with
 * |self|; any thread. Errors: W7004. */
weir_status weir_grpc_maker_init(weir_grpc_maker *maker, const weir_env *env,
                                 const char *folder,
                                 void (*log)(void *self, const char *text),
                                 void *self, weir_error *err);

#endif
