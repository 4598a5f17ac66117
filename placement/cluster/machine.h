/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CLUSTER_MACHINE_H_
#define PLACEMENT_CLUSTER_MACHINE_H_

#include "runtime/base/status.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/device/kind.h"

/* The machine of a task, as a cluster's section describes it: how many devices
 * of each kind it has, and the figures of each. */

enum { WEIR_MACHINE_THREADS = 256 }; /* of one device, at most */

/* Devices of one kind in one machine. */
typedef struct weir_machine_part {
  uint32_t count;
  uint32_t threads;  /* of one device; 1 where the kind is no host's */
  bool rate_given;   /* model.mflops is the device's; else one thread's */
  bool memory_given; /* else model.memory_bytes is the kind's */
  bool in_turns;     /* `share: queue`: processes use a device in turns */
  weir_device_model model;
} weir_machine_part;

typedef struct weir_machine {
  weir_machine_part parts[WEIR_DEVICE_KINDS];
} weir_machine;

/* What each kind's row says. */
weir_machine weir_machine_default(void);

/* The figures of one device with all its threads. */
weir_device_model weir_machine_model(const weir_machine_part *part);

/* Reads `memory`, `gflops`, `bandwidth`, `overhead`, `threads`, `share` and,
 * where |counts|, `count` of map |y| over those of |part|. Errors: W3020 with a
 * place. */
weir_status weir_machine_read_part(const weir_yaml *y, weir_device_kind kind,
                                   bool counts, weir_machine_part *part,
                                   weir_error *err);

/* Reads key |e| of a job or a task over |machine|: `cpu: 2` or
 * `cpu: {count: 2, gflops: 300}`. |*out_known|: it is the name of a kind.
 * Errors: W3020 with a place. */
weir_status weir_machine_read_key(const weir_yaml_entry *e,
                                  weir_machine *machine, bool *out_known,
                                  weir_error *err);

/* Sets the memory of each device of |part|: "16GiB". Errors: W3020 at |at| (may
 * be NULL). */
weir_status weir_machine_set_memory(weir_machine_part *part, weir_sv text,
                                    const weir_mark *at, weir_error *err);

/* Sets how processes share each device of |part|, of |kind|: "queue" or
 * "memory". Errors: W3020 at |at| (may be NULL). */
weir_status weir_machine_set_share(weir_machine_part *part,
                                   weir_device_kind kind, weir_sv text,
                                   const weir_mark *at, weir_error *err);

/* Sets the threads of each device of the host's kinds. Errors: W3020 at |at|
 * (may be NULL). */
weir_status weir_machine_set_threads(weir_machine *machine, int64_t threads,
                                     const weir_mark *at, weir_error *err);

#endif
