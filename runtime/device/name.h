/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DEVICE_NAME_H_
#define WEIR_DEVICE_NAME_H_

#include "runtime/base/status.h"
#include "runtime/base/sv.h"
#include "runtime/device/kind.h"

/* Device names, in TensorFlow's spelling.
 *
 * A full name is /job:worker/task:0/device:GPU:0. Any part may be left out;
 * such a partial name is a constraint that several devices meet. An index may
 * be `*` (same as left out) or, in placement rules, a range `[0-3]`. Short
 * forms are accepted: `gpu:0`, `/gpu:0`, `/device:GPU:0`, `/cpu`. `/replica:0`
 * of old graphs is read and ignored. Printing gives the canonical form. */

enum { WEIR_DEVICE_JOB_BYTES = 64 };

/* An index, a range of them, or any: first <= last; any is {-1, -1}. */
typedef struct weir_index_range {
  int32_t first, last;
} weir_index_range;

typedef struct weir_device_name {
  char job[WEIR_DEVICE_JOB_BYTES]; /* "" any */
  weir_index_range task;
  weir_device_kind type;
  weir_index_range index;
} weir_device_name;

/* A name that every device meets. */
weir_device_name weir_device_name_any(void);

/* Parses |text|. On failure |*bad_offset| (may be NULL) is where reading
 * stopped. Errors: W1115, with the part that was expected. */
weir_status weir_device_name_parse(weir_sv text, weir_device_name *out_name,
                                   size_t *bad_offset, weir_error *err);

/* Fills the open parts of |name| from |defaults|: TensorFlow's merge. A job
 * that differs drops the task of |defaults|, a type that differs its index. */
weir_device_name weir_device_name_merge(const weir_device_name *name,
                                        const weir_device_name *defaults);

/* Whether device |full| meets constraint |partial|. */
bool weir_device_name_matches(const weir_device_name *partial,
                              const weir_device_name *full);

/* True when job, task, type and index are all single values. */
bool weir_device_name_is_full(const weir_device_name *name);

/* Writes the canonical form, "" for any; at most |capacity| bytes, always
 * terminated; 128 are enough. Returns |text|. */
char *weir_device_name_print(const weir_device_name *name, char *text,
                             size_t capacity);

#endif
