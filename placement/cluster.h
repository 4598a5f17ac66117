/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_CLUSTER_H_
#define PLACEMENT_CLUSTER_H_

#include "placement/cluster/tls.h"
#include "placement/problem.h"
#include "runtime/base/yaml/yaml.h"
#include "runtime/device/name.h"

/* Clusters: jobs, tasks, devices, and the links between them. A plan may be
 * made for a cluster that does not exist.
 *
 *   cluster:
 *     ps: 1                               # tasks
 *     worker: ["host-a:2222", "host-b:2222"]
 *     gpu: 1                              # per task: a kind (device/kind.h),
 *                                         # of worker or of the only job;
 *                                         # cpu: 1 is the default
 *     threads: 4                          # of each CPU device; 1 is the
 * default devices:                            # figures of a kind of device
 *       cpu: {memory: 32GiB, gflops: 150, bandwidth: 20GB/s, overhead: 1us}
 *       gpu: {memory: 80GiB, share: queue}  # processes use it in turns
 *     network: {latency: 50us, bandwidth: 1.2GB/s}   # between tasks; also
 *                              # send_overhead: 2us, send_bandwidth: 8GB/s
 *     local: {latency: 2us, bandwidth: 10GB/s}       # between devices of one
 *     tls: certs               # certificates; cluster/tls.h has the forms
 *     insecure: true           # or frames may go unencrypted to other machines
 *
 * Machines that differ: a job may be a map of what holds for its tasks, and an
 * item of its list one of what holds for that task:
 *
 *     ps: {tasks: 2, cpu: {memory: 256GiB}}
 *     worker:
 *       - {address: "host-a:2222", cpu: {threads: 8}, gpu: {count: 4}}
 *       - {address: "host-b:2222", cpu: {gflops: 300, memory: 8GiB}}
 *
 * The short form "ps=1,worker=2,gpu=1,threads=4" has the section's numbers, and
 * "gpu_memory=8GiB" the memory of each device of a kind, "gpu_share=queue" how
 * processes share it; "auto" is one worker with this machine's CPU;
 * weir_place_request.machine adds its GPUs. */

typedef struct weir_cluster_task {
  weir_sv job;
  uint32_t index;  /* within its job */
  weir_sv address; /* empty: not given */
  uint32_t first_device, device_count;
} weir_cluster_task;

typedef struct weir_cluster_device {
  weir_device_name name; /* full */
  weir_sv text;          /* /job:worker/task:0/device:GPU:0 */
  uint32_t task;
  uint32_t cls;         /* in |classes| */
  int64_t memory_bytes; /* cap; INT64_MAX: none */
  bool memory_given;    /* by the cluster; else the cap is the kind's */
  bool in_turns;        /* processes use it in turns: `share: queue` */
} weir_cluster_device;

/* Devices of one kind that cost the same: classes of a problem. */
typedef struct weir_cluster_class {
  weir_device_kind kind;
  uint32_t count;          /* of the cluster's devices */
  uint32_t threads;        /* of one device */
  weir_device_model model; /* of one device, all its threads together; where
                              nothing is measured */
} weir_cluster_class;

typedef struct weir_cluster {
  weir_arena arena;
  const weir_cluster_task *tasks;
  const weir_cluster_device *devices; /* by task, then by kind */
  uint32_t task_count, device_count;
  uint32_t kind_count[WEIR_DEVICE_KINDS]; /* devices of each kind */
  /* The first ones are the kinds as the section describes them. */
  weir_cluster_class classes[WEIR_PLACE_CLASSES];
  uint32_t class_count;
  bool insecure;           /* frames between tasks need not be encrypted */
  weir_cluster_tls tls;    /* certificates; empty: none */
  weir_place_link network; /* between tasks */
  /* Within a task, to or from a device of the kind; between two of them the
   * slower holds. */
  weir_place_link local[WEIR_DEVICE_KINDS];
  /* [from][to] kind: measured, in place of that, where |known|; within a task,
   * and between tasks of |one_process|. */
  weir_place_link way[WEIR_DEVICE_KINDS][WEIR_DEVICE_KINDS];
  bool known[WEIR_DEVICE_KINDS][WEIR_DEVICE_KINDS], one_process;
} weir_cluster;

enum { WEIR_CLUSTER_TASKS = 512 };

/* Errors: W3020 (exit code 2) with a place, W6001. */
weir_status weir_cluster_from_yaml(const weir_allocator *alloc,
                                   const weir_yaml *section,
                                   weir_cluster **out_cluster, weir_error *err);
/* "ps=1,worker=2,gpu=1"; "auto". The same errors. */
weir_status weir_cluster_from_text(const weir_allocator *alloc, weir_sv text,
                                   weir_cluster **out_cluster, weir_error *err);
void weir_cluster_release(weir_cluster *cluster); /* NULL-safe */

/* Gives all kinds |link| within a task. */
void weir_cluster_set_local(weir_cluster *cluster, const weir_place_link *link);
/* Devices and links for a problem of |cluster->class_count| classes. */
void weir_cluster_add_to(const weir_cluster *cluster, weir_place_builder *b);

#endif
