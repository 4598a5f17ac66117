/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_WHAT_IF_H_
#define PLACEMENT_WHAT_IF_H_

#include "placement/cluster.h"

/* What if: a change of a cluster or of a request.
 *
 *   pin NODE=DEVICE                  NODE asks for DEVICE itself
 *   add JOB                          a task more, with devices like its first
 *   add KIND:JOB                     a device more on each task of JOB
 *   remove DEVICE                    every device that the name fits
 *   memory DEVICE=BYTES              their caps; DEVICE*FACTOR: times that
 *   link network=LATENCY,BANDWIDTH   between tasks; `local`: within one
 *   link network*FACTOR              its bandwidth times FACTOR */

typedef enum weir_what_if_kind {
  WEIR_WHAT_IF_PIN,
  WEIR_WHAT_IF_ADD_TASK,
  WEIR_WHAT_IF_ADD_DEVICE,
  WEIR_WHAT_IF_REMOVE,
  WEIR_WHAT_IF_MEMORY,
  WEIR_WHAT_IF_LINK
} weir_what_if_kind;

typedef struct weir_what_if {
  weir_what_if_kind kind;
  weir_sv text;            /* all of it */
  weir_sv node, job;       /* lent by the text that was parsed */
  weir_device_name device; /* pin, remove, memory */
  weir_device_kind type;   /* add: of the device */
  bool local;              /* link: within a task */
  double factor;           /* memory, link: times the old; 0: set anew */
  int64_t memory_bytes;
  weir_place_link link;
} weir_what_if;

/* Reads one change. Errors: W3040, with the list of forms as hint. */
weir_status weir_what_if_parse(weir_sv text, weir_what_if *out,
                               weir_error *err);
/* The cluster after |change|; one that concerns nodes only copies it. Errors:
 * W3040 (no such job or device, or none would be left), W3020 (too many),
 * W6001. */
weir_status weir_cluster_change(const weir_allocator *alloc,
                                const weir_cluster *cluster,
                                const weir_what_if *change,
                                weir_cluster **out_cluster, weir_error *err);

#endif
