/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_KIND_H_
#define WEIR_DEVICE_KIND_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runtime/base/sv.h"

/* Kinds of devices: CPU, GPU.
 *
 * A kind is one const struct in a file of runtime/device/kinds/ and a line of
 * kinds.def. Names of devices, clusters, costs and their files, placement and
 * the choice of kernels read the row; none of them knows a kind by name. A plan
 * can be made for devices that are not there, so a row needs no driver.
 *
 * To add one: copy kinds/null.c, add a line to kinds.def and the file to
 * meson.build. Kernels are registered for the kind's number. */

typedef enum weir_device_kind {
  WEIR_DEVICE_ANY = -1, /* of a name that leaves it open */
#define WEIR_DEVICE_KIND(number, name) number,
#include "runtime/device/kinds.def"
#undef WEIR_DEVICE_KIND
  WEIR_DEVICE_KINDS /* so many there are */
} weir_device_kind;

/* The speed and memory of one device. The only cost model: the placer reads it,
 * the compiler too. */
typedef struct weir_device_model {
  int64_t memory_bytes; /* INT64_MAX: no cap */
  int64_t mflops;       /* million floating point operations a second */
  int64_t bytes_per_us; /* to and from its memory */
  int64_t overhead_ns;  /* per node: to launch it */
} weir_device_model;

/* Copies to or from a device within its task. */
typedef struct weir_device_way {
  int64_t latency_ns, fs_per_byte;
} weir_device_way;

typedef struct weir_device_kind_def {
  const char *name;     /* in clusters and cost files: cpu */
  const char *alias;    /* read in names of devices as well; may be NULL */
  const char *spelling; /* in full names: /device:CPU:0 */
  const char *summary;
  weir_device_model model; /* where neither cluster nor measurement says */
  weir_device_way way;
  uint32_t per_task; /* devices of a task where the cluster gives no number */
  bool workers_only; /* tasks of `worker`, or of the only job, have them */
  bool every_op;     /* the reference kernels run on it */
  bool host;         /* this process's threads run its kernels */
} weir_device_kind_def;

enum { WEIR_DEVICE_KIND_BYTES = 16 }; /* of a name or a spelling, at most */

extern const weir_device_kind_def *const weir_device_kinds[WEIR_DEVICE_KINDS];

/* The kind called |name| in clusters and cost files; ANY: none is. */
weir_device_kind weir_device_kind_find(weir_sv name);

/* The kind that this process's threads are: the first |host| of the list. */
weir_device_kind weir_device_kind_host(void);

/* Writes the names, "cpu or gpu", for a message; at most |capacity| bytes,
 * always terminated. Returns |text|. */
char *weir_device_kind_names(char *text, size_t capacity);

/* Time of the work alone, without |overhead_ns|, by the roofline: the slower of
 * arithmetic and memory. Saturates at 4e18. Source: Williams, Waterman and
 * Patterson, CACM 52 (2009) 65-76. */
int64_t weir_device_work_ns(const weir_device_model *model, int64_t flops,
                            int64_t bytes);

#endif
