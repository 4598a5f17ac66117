/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_NET_PEERS_H_
#define TESTS_NET_PEERS_H_

#include "tests/net/conformance.h"

/* Two transports that write down all that happens to them. */

enum { PEER_FRAMES = 4096 };

typedef struct seen_frame {
  weir_connection c;
  uint8_t *bytes;
  size_t size;
} seen_frame;

typedef struct peer {
  weir_transport *t;
  char address[WEIR_NET_ADDRESS_BYTES]; /* when it listens */
  weir_connection c; /* the last that was dialled or came in */
  int connected, incoming, closed;
  weir_connection closed_c;
  weir_close_reason why;
  seen_frame frames[PEER_FRAMES];
  size_t count;
  bool keep; /* |kept| holds frames: no bytes are copied */
  weir_net_frame *kept[16];
  size_t kept_count;
  bool in_poll; /* callbacks come from there alone */
  bool close_on_frame;
} peer;

typedef struct net {
  weir_fixture *f;
  weir_counted_allocator counted;
  const weir_env *env;
  weir_error err;
  peer a, b; /* a dials, b listens */
} net;

/* A network with a and b; b listens. |options| may be NULL. */
net *net_open(weir_fixture *f, const weir_transport_options *options);
/* The same, with the k-th allocation failing; returns the result. The net is
 * there in any case. */
weir_status net_try(net *n, weir_fixture *f,
                    const weir_transport_options *options);
/* Releases all; nothing may be left. */
void net_close(net *n);
void net_connect(net *n);                          /* a to b, both connected */
weir_status peer_poll(net *n, peer *p, bool wait); /* with |wait|: 1 ms */
void net_turn(net *n);                             /* both polls once */
void peer_free(peer *p);                           /* releases its transport */

#define net_until(n, condition) \
  while (!(condition)) net_turn(n)

/* Bytes that depend on |seed|. */
void pattern(uint8_t *bytes, size_t size, uint32_t seed);
bool is_pattern(const uint8_t *bytes, size_t size, uint32_t seed);
/* Sends one piece that is copied. */
weir_status peer_send(net *n, peer *p, const void *bytes, size_t size);

#endif
