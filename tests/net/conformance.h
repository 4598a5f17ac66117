/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_CONFORMANCE_H_
#define TESTS_NET_CONFORMANCE_H_

#include "runtime/net/transport.h"
#include "tests/check.h"

/* One suite for all transports: they keep the contract of transport.h.
 *
 * A transport's test fills a weir_fixture and calls weir_conformance_run. No
 * verdict depends on time: a test that waits for an event waits for ever. */

typedef struct weir_fixture {
  const char *name;
  void *self;
  bool threads;        /* send and wake from other threads, polls that wait */
  const char *listen;  /* where to listen: at something free */
  const char *nobody;  /* an address that nobody listens at */
  const char *foreign; /* a text that is no address here */
  /* A network with memory of |alloc|; its env (the clock may be its own). */
  weir_status (*open)(struct weir_fixture *f, const weir_allocator *alloc,
                      const weir_env **out_env, weir_error *err);
  /* After its transports are released. */
  void (*close)(struct weir_fixture *f);
  /* A transport of another process each time. */
  weir_status (*create)(struct weir_fixture *f,
                        const weir_transport_handler *handler,
                        const weir_transport_options *options,
                        weir_transport **out_transport, weir_error *err);
} weir_fixture;

/* Runs all tests; returns the number of those that failed. */
int weir_conformance_run(weir_fixture *f);

#endif
