/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_KV_RULE_H_
#define WEIR_TRAIN_KV_RULE_H_

#include "runtime/exec/session/binding.h"
#include "runtime/graph/train/train_rules.h"
#include "runtime/tensor/tensor.h"

/* What a push does to a key: `assign`, `add`, or an optimizer with arguments,
 * as sgd(lr=0.1) or adam(lr=0.01, beta1=0.8).
 *
 * An optimizer's rule is a graph of one op `apply_*`, over WEIR_KV_CHUNK
 * elements at a time, in tensors of its own: values, slots and gradients are
 * copied in, and values and slots out again. So one program serves keys of
 * every shape, whole or by rows, and its memory does not grow with them. */

enum { WEIR_KV_CHUNK = 16384 };

typedef enum weir_kv_rule_kind {
  WEIR_KV_ASSIGN,
  WEIR_KV_ADD,
  WEIR_KV_APPLY
} weir_kv_rule_kind;

typedef struct weir_kv_rule {
  struct weir_kv_rule *next; /* the store's */
  const weir_allocator *alloc;
  weir_kv_rule_kind kind;
  weir_dtype dtype;
  const char *text; /* as it was given; in memory of the rule's own */
  uint32_t slots;
  double initial[WEIR_SLOTS];
  /* WEIR_KV_APPLY: a chunk of the value, slots, gradient; the step. */
  weir_graph *graph;
  weir_exec_session *session;
  weir_binding *binding;
  weir_tensor *in[WEIR_SLOTS + 3], *out[WEIR_SLOTS + 1];
  weir_tensor *grad, *step; /* lent, of |in|; |step| may be NULL */
} weir_kv_rule;

/* Errors: W7117, W6001. */
weir_status weir_kv_rule_create(const weir_env *env, weir_pool *pool,
                                const char *text, weir_dtype dtype,
                                weir_kv_rule **out_rule, weir_error *err);
void weir_kv_rule_release(weir_kv_rule *rule); /* NULL-safe */

#endif
