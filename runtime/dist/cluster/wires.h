/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_WIRES_H_
#define WEIR_DIST_CLUSTER_WIRES_H_

#include "runtime/dist/link/link.h"
#include "runtime/dist/node/node.h"
#include "runtime/dist/transports.h"

/* The wires of a process: two transports with their threads and a link over
 * them. The link and all events are the control thread's; bulk frames
 * are handed over on the bulk thread. */

typedef struct weir_wires weir_wires;

typedef struct weir_wires_calls {
  void *self;
  weir_link_events link; /* its |self| is the one to be given */
  /* Does all that is due and returns the next deadline; control thread. The
   * link does its own part before and after it. */
  int64_t (*step)(void *self, int64_t now_ns);
  /* The step is over, and the link has reported peers that failed in it;
   * control thread. */
  void (*stepped)(void *self);
  /* A bulk frame of the peer at |place| of a session, the peer's |lane|; bulk
   * thread. An error gives the peer up. */
  weir_status (*bulk)(void *self, uint32_t lane, uint32_t place,
                      const weir_net_frame *frame, weir_error *err);
} weir_wires_calls;

/* Lent for the call. */
typedef struct weir_wires_options {
  const weir_transports *transports;
  bool insecure;              /* unencrypted to other machines, too */
  const weir_net_tls *tls;    /* lent for the wires' life; NULL: none */
  const weir_link_self *self; /* this process */
  weir_link_options link;
} weir_wires_options;

/* The identity of a process of the cluster, all but its job. |owner|: any
 * address, which tells processes apart where there are no random numbers. */
void weir_wires_self(const weir_env *env, uint64_t cluster_hash,
                     const void *owner, weir_link_self *out);

/* No thread runs yet. Errors: those of the transports, W6001. */
weir_status weir_wires_create(const weir_env *env,
                              const weir_wires_options *options,
                              const weir_wires_calls *calls,
                              weir_wires **out_wires, weir_error *err);
/* Takes connections, before the start: control at |address|, bulk beside it,
 * which peers hear by Hello. |out_bound| gets that of control. Errors: W7002.
 */
weir_status weir_wires_listen(weir_wires *wires, const char *address,
                              char out_bound[WEIR_NET_ADDRESS_BYTES],
                              weir_error *err);
/* Whether frames to |address| stay on this machine: they need no checksum. */
bool weir_wires_is_here(const char *address);
/* From here on the bulk frames of |peer| are those of |place|. A peer that was
 * dialled may have its place before it is up. Control thread. */
void weir_wires_place(weir_wires *wires, const weir_peer *peer, uint32_t place);
/* Errors: W6003. */
weir_status weir_wires_start(weir_wires *wires, weir_error *err);
/* Ends the threads: from here on the caller's thread is both of them. */
void weir_wires_stop(weir_wires *wires);
/* After stop; frees link and transports. NULL-safe. */
void weir_wires_release(weir_wires *wires);

/* Has |call| made on the control thread, as weir_node_post. */
void weir_wires_post(weir_wires *wires, weir_node_call *call);

/* For the control thread, as those of node.h. */
bool weir_wires_stand_in(weir_wires *wires, weir_node_call *call,
                         weir_node_over (*over)(void *self), void *self);
void weir_wires_offer(weir_wires *wires);

/* Lent; the control thread calls the link. */
weir_link *weir_wires_link(const weir_wires *wires);
/* Lent. */
weir_transport *weir_wires_transport(const weir_wires *wires,
                                     weir_net_class cls);

#endif
