/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_RUN_STORE_H_
#define WEIR_DIST_RUN_STORE_H_

#include "runtime/dist/engine.h"
#include "runtime/exec/store/var_store.h"
#include "runtime/net/wire.h"

/* The variables of shares: one store for each name in a process. It is there as
 * long as some session of the share is. */

/* What engines of one process have in common. Errors: W6001. */
typedef struct weir_run_stores weir_run_stores;
weir_status weir_run_stores_create(const weir_allocator *alloc,
                                   weir_run_stores **out_stores,
                                   weir_error *err);
void weir_run_stores_release(weir_run_stores *stores); /* NULL-safe */

typedef struct run_store {
  struct run_store *next;
  weir_run_stores *stores;
  uint32_t users;
  char name[WEIR_WIRE_SHARE_BYTES];
  weir_var_store *vars;
  bool made;     /* some session has registered a bundle */
  uint32_t home; /* of the variables: a place, whose task gives the turn */
} run_store;

/* One more user. Errors: W6001. */
weir_status run_store_get(weir_run_stores *stores, const char *name,
                          run_store **out_store, weir_error *err);
void run_store_put(run_store *store); /* NULL-safe */

/* Notes the home, or compares it. Errors: W7086. */
weir_status run_store_check_home(run_store *store,
                                 const weir_engine_session *session,
                                 uint32_t home, weir_error *err);

#endif
