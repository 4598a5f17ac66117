/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_COST_FILE_H_
#define PLACEMENT_COST_FILE_H_

#include <stdatomic.h>

#include "placement/cluster.h"
#include "runtime/base/map.h"
#include "runtime/base/vec.h"
#include "runtime/base/writer.h"

/* Measured costs, and the file that keeps them.
 *
 *   weir-costs 1
 *   machine cpu Some CPU
 *   step cpu MEDIAN_NS SPREAD COUNT
 *   step cpu*4 MEDIAN_NS SPREAD COUNT
 *   link in-process FROM_BYTES LATENCY_NS FS_PER_BYTE SEND_NS SEND_FS_PER_BYTE
 *        SPREAD COUNT
 *   link cpu->gpu 0 LATENCY_NS FS_PER_BYTE SEND_NS SEND_FS_PER_BYTE SPREAD
 * COUNT unit cpu MEDIAN_NS SPREAD COUNT FLOPS BYTES KEY
 *
 * One line an entry, fields apart by one space, KEY to the end of its line;
 * lines of `#` are passed over. SPREAD is the distance of the quartiles in
 * thousandths of the median, COUNT the number of runs. `unit` is the cost of a
 * unit on a device of a kind (device/kind.h) with one thread, or with as many
 * as stand behind `*`, KEY its signature (signature.h). `step` is the time of a
 * step beside its units. `link` (on one line) holds from FROM_BYTES on; its
 * fields are those of weir_place_link; `in-process` is between two threads, and
 * `KIND->KIND` between devices of these kinds. Lines are written in order of
 * their text, so the same entries make the same file.
 *
 * Not thread-safe; a table that is not changed any more may be read by many
 * threads. */

enum {
  WEIR_COST_FILE_BYTES = 64 << 20,
  WEIR_COST_KEY_BYTES = 1000, /* of a key, at most */
  WEIR_COST_FACTS = 8,
  WEIR_COST_STEPS = 16,
  WEIR_COST_PIECES = 8 /* of a link */
};

/* How something was measured. */
typedef struct weir_cost_sample {
  int64_t median_ns;
  uint32_t spread_permille, count;
  int64_t low_ns; /* a tenth of the runs took no longer; 0: from a file */
} weir_cost_sample;

typedef struct weir_cost_entry {
  weir_sv text;     /* "cpu KEY", "cpu*4 KEY"; of the table */
  weir_sv key;      /* the end of |text| */
  int cls;          /* weir_device_kind */
  uint32_t threads; /* of the device; 0 counts as 1 */
  weir_cost_sample sample;
  int64_t flops, bytes;
} weir_cost_entry;

/* The time of a step beside its units. */
typedef struct weir_cost_step {
  int cls; /* weir_device_kind */
  uint32_t threads;
  weir_cost_sample sample;
} weir_cost_step;

/* The link of a copy of |from_bytes| or more: see weir_place_link. */
typedef struct weir_cost_piece {
  int64_t from_bytes, latency_ns, fs_per_byte, send_ns, send_fs_per_byte;
  uint32_t spread_permille, count;
} weir_cost_piece;

/* A fact about the machine: cpu, features, cores, gpu, build. */
typedef struct weir_cost_fact {
  weir_sv name, text;
} weir_cost_fact;

typedef struct weir_costs {
  atomic_int refs;
  const weir_allocator *alloc;
  weir_arena arena; /* texts */
  WEIR_VEC(weir_cost_entry *) entries;
  weir_map index; /* |text| to place in |entries| */
  weir_cost_step steps[WEIR_COST_STEPS];
  uint32_t step_count;
  weir_cost_piece pieces[WEIR_COST_PIECES];
  uint32_t piece_count;
  /* [from][to] kind of device; a |count| of 0: not measured. */
  weir_cost_piece ways[WEIR_DEVICE_KINDS][WEIR_DEVICE_KINDS];
  weir_cost_fact facts[WEIR_COST_FACTS];
  uint32_t fact_count;
} weir_costs;

/* An empty table. Errors: W6001. */
weir_status weir_costs_create(const weir_allocator *alloc,
                              weir_costs **out_costs, weir_error *err);
/* One more reference to |costs|, which is returned; release drops one. */
weir_costs *weir_costs_ref(weir_costs *costs);
void weir_costs_release(weir_costs *costs); /* NULL-safe */

/* false: |out| failed, or there is no memory for the order. */
bool weir_costs_write(const weir_costs *costs, const weir_writer *out);

/* Sets a fact, or the cost of |key| on |entry->threads| threads of kind |cls|,
 * in place of an older one. Texts are copied. Errors: W6001; facts beyond
 * WEIR_COST_FACTS are dropped. */
weir_status weir_costs_set_fact(weir_costs *costs, weir_sv name, weir_sv text,
                                weir_error *err);
weir_status weir_costs_set(weir_costs *costs, int cls, weir_sv key,
                           const weir_cost_entry *entry, weir_error *err);
/* Sets the time of a step in place of an older one; false: there are
 * WEIR_COST_STEPS others. */
bool weir_costs_set_step(weir_costs *costs, const weir_cost_step *step);
/* The time of a step on such a device; of no runs: it is not known. */
weir_cost_sample weir_costs_step(const weir_costs *costs, int cls,
                                 uint32_t threads);
/* The entry of |key| on |threads| threads of kind |cls|, or NULL. */
const weir_cost_entry *weir_costs_find(const weir_costs *costs, int cls,
                                       uint32_t threads, weir_sv key);
/* The first fact that |other| has otherwise, or NULL: measured on one machine.
 * |*theirs| gets |other|'s text, empty when it has none. */
const weir_cost_fact *weir_costs_differ(const weir_costs *costs,
                                        const weir_costs *other,
                                        weir_sv *theirs);

/* ---- Estimates for units that were not measured (cost_file_fit.h) */

/* Rates that the measured units of a kind of device with so many threads
 * reach. */
typedef struct weir_cost_fit {
  const weir_costs *costs;
  weir_device_model model;
  int cls;
  uint32_t threads;
  bool fitted; /* else |model| is as it was given */
} weir_cost_fit;

#endif
