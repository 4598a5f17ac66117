/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_TRAFFIC_H_
#define WEIR_DIST_CLUSTER_TRAFFIC_H_

#include <stdatomic.h>

#include "runtime/net/transport.h"

/* Counts of the values that came to a process: edges between tasks, feeds,
 * fetches and variables. What is sent is what another process gets, so only
 * arrivals are counted. Programs and weights, which travel as blobs, are not
 * values. Any thread; zeros are a beginning. */

struct Weir__V1__Control;

typedef struct weir_traffic {
  atomic_uint_least64_t values, bytes; /* |bytes|: of values alone */
} weir_traffic;

enum { WEIR_TRAFFIC_TEXT = 64 };

/* Counts the values in a control message. Those without one cost a look. */
void weir_traffic_control(weir_traffic *t,
                          const struct Weir__V1__Control *message);
/* Counts a bulk frame: a value with its first chunk, bytes with each. */
void weir_traffic_bulk(weir_traffic *t, const weir_net_frame *frame);
void weir_traffic_clear(weir_traffic *t);
/* "3 values, 1.2 KiB"; returns |text|. */
const char *weir_traffic_print(weir_traffic *t, char text[WEIR_TRAFFIC_TEXT]);

#endif
