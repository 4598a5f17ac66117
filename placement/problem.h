/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACEMENT_PROBLEM_H_
#define PLACEMENT_PROBLEM_H_

#include "runtime/base/alloc.h"
#include "runtime/base/sv.h"
#include "runtime/base/vec.h"

/* The placer's view: nodes with costs, tensors between them, devices, links.
 *
 * One model serves placers, bounds, simulator, checker and dumps. A node runs
 * on one device, without interruption, once all its tensors are there; its
 * cost depends on the device's class. A tensor that is made on one device and
 * used on another is copied there once, however many nodes use it. Time is in
 * integer nanoseconds, memory in bytes, and every tie is broken by index, so
 * the same problem gives the same plan on every machine.
 *
 * A copy of B bytes keeps its sender's device busy from its start on for the
 * send's own time. At that start or later, when the link is free, it has the
 * link, if that is exclusive, for B * fs_per_byte, and arrives the link's
 * latency later: copies that follow each other share no latency. These are L, G
 * and o of LogGP (Alexandrov, Ionescu, Schauser and Scheiman, SPAA 1995).
 *
 * Nodes are numbered in topological order; tensors by producer. Immutable once
 * built; may be read from many threads. */

#define WEIR_PLACE_NONE UINT32_MAX
/* The cost of a node on a class that has no kernel for it. */
#define WEIR_PLACE_NO_KERNEL INT64_MAX

enum { WEIR_PLACE_DEVICES = 1024, WEIR_PLACE_CLASSES = 64 };

typedef struct weir_place_device {
  weir_sv name;
  uint32_t cls;
  int64_t memory_bytes; /* cap; INT64_MAX: none */
} weir_place_device;

/* A way between devices; several pairs may share one. */
typedef struct weir_place_link {
  int64_t latency_ns;
  int64_t fs_per_byte; /* 1,000,000 is 1 GB/s */
  bool exclusive;      /* one copy at a time */
  /* The device that sends runs no node meanwhile. */
  int64_t send_ns, send_fs_per_byte;
} weir_place_link;

typedef struct weir_place_problem {
  weir_arena arena;
  uint32_t node_count, tensor_count, use_count;
  uint32_t class_count, device_count, link_count;
  const weir_place_device *devices;
  const weir_place_link *links;
  const bool *no_copy_load; /* per device: copies do not occupy it (load.h) */
  const uint32_t *link_of;  /* [from * device_count + to], NONE: no way */
  const int64_t *cost;      /* [node * class_count + class], ns */
  const int64_t *resident_bytes; /* per node: stays on its device */
  /* Per node: while it runs, beside its tensors; below 0 where an output takes
   * the place of an input that ends with it. */
  const int64_t *temp_bytes;
  /* Per node: a tensor of its own that lies where its input |over_in| was, on
   * devices where both take memory and so no other node uses that; NONE. */
  const uint32_t *over_in, *over_out;
  const weir_sv *names;      /* per node, may be NULL */
  const uint32_t *out_first; /* [node]..[node + 1]: its tensors */
  const int64_t *tensor_bytes;
  const uint32_t *tensor_node; /* producer */
  /* Per tensor: the node whose resident_bytes hold it wherever that node is, of
   * the producer or of a variable that takes the value; NONE. */
  const uint32_t *tensor_keeper;
  const uint32_t *use_first; /* [tensor]..[tensor + 1] in |use_node| */
  const uint32_t *use_node;
  const uint32_t *in_first; /* [node]..[node + 1] in |in_tensor| */
  const uint32_t *in_tensor;
  /* Per node: index of a set of devices, |set_words| words each; set 0 is all
   * of them. */
  const uint32_t *allowed;
  const uint64_t *sets;
  uint32_t set_count, set_words;
  const uint32_t *group; /* per node: nodes of one group share a device; NONE */
  uint32_t group_count;
  /* Constants: bytes that lie on every device with a node that reads them, once
   * and for ever. They take no part in time: they are brought before the first
   * step. Those of node n are |read_constant| from read_first[n] to
   * read_first[n + 1], the readers of c |reader_node| from reader_first[c]. */
  uint32_t constant_count, read_count;
  bool laid_out; /* weir_place_held */
  const int64_t *constant_bytes;
  const uint32_t *constant_home; /* a node whose device has it; NONE: all do */
  const uint32_t *read_first, *read_constant;
  const uint32_t *reader_first, *reader_node;
} weir_place_problem;

/* No time of a copy is longer, so that sums of a few stay in range. */
#define WEIR_PLACE_COPY_LIMIT (INT64_MAX / 4)

/* The fs_per_byte of a rate in bytes per microsecond, at least 1. */
static inline int64_t weir_place_fs_per_byte(int64_t bytes_per_us) {
  const int64_t fs_per_us = 1000000000;
  return bytes_per_us < fs_per_us ? fs_per_us / bytes_per_us : 1;
}

static inline int64_t weir_place_bytes_ns(int64_t bytes, int64_t fs_per_byte) {
  int64_t fs;
  if (!__builtin_mul_overflow(bytes, fs_per_byte, &fs))
    return fs / 1000000 + (fs % 1000000 != 0);
  __int128 ns = ((__int128)bytes * fs_per_byte + 999999) / 1000000;
  return ns > WEIR_PLACE_COPY_LIMIT ? WEIR_PLACE_COPY_LIMIT : (int64_t)ns;
}

/* How long a copy of |bytes| has |link|. */
static inline int64_t weir_place_link_ns(const weir_place_link *link,
                                         int64_t bytes) {
  return weir_place_bytes_ns(bytes, link->fs_per_byte);
}

/* How long a copy of |bytes| takes over |link|, from its start until it is
 * there; at most the limit. */
static inline int64_t weir_place_copy_ns(const weir_place_link *link,
                                         int64_t bytes) {
  int64_t ns = weir_place_link_ns(link, bytes);
  if (link->latency_ns > WEIR_PLACE_COPY_LIMIT - ns)
    return WEIR_PLACE_COPY_LIMIT;
  return ns + link->latency_ns;
}

/* How long a copy of |bytes| keeps its sender busy, from its start; it is there
 * no sooner. */
static inline int64_t weir_place_send_ns(const weir_place_link *link,
                                         int64_t bytes) {
  if ((link->send_ns | link->send_fs_per_byte) == 0) return 0;
  int64_t ns = weir_place_bytes_ns(bytes, link->send_fs_per_byte);
  int64_t whole = weir_place_copy_ns(link, bytes);
  if (link->send_ns >= whole || ns >= whole - link->send_ns) return whole;
  return ns + link->send_ns;
}

/* Whether copies take the same times over both. */
static inline bool weir_place_links_equal(const weir_place_link *a,
                                          const weir_place_link *b) {
  return a->latency_ns == b->latency_ns && a->fs_per_byte == b->fs_per_byte &&
         a->send_ns == b->send_ns && a->send_fs_per_byte == b->send_fs_per_byte;
}

/* Whether copies over |link| take no time. */
static inline bool weir_place_link_is_free(const weir_place_link *link) {
  return link->latency_ns == 0 && link->fs_per_byte == 0;
}

/* Memory of a tensor of |bytes| that lies with others in one piece of memory:
 * each begins at a multiple of 64 there, and unlike sizes leave gaps. */
static inline int64_t weir_place_laid_out(int64_t bytes) {
  if (bytes <= 0 || bytes > INT64_MAX / 8) return bytes;
  return (bytes + bytes / 64 + 63) & ~INT64_C(63);
}

/* Whether some node's resident bytes hold |tensor|. */
static inline bool weir_place_is_kept(const weir_place_problem *p,
                                      uint32_t tensor) {
  return p->tensor_keeper[tensor] != WEIR_PLACE_NONE;
}

/* Memory that a tensor takes on a device; |bytes| are copied. */
static inline int64_t weir_place_held(const weir_place_problem *p,
                                      int64_t bytes) {
  return p->laid_out ? weir_place_laid_out(bytes) : bytes;
}

/* Memory that |tensor| takes on |device|, nodes being where |on| says: none
 * where its keeper is. */
static inline int64_t weir_place_takes(const weir_place_problem *p,
                                       const uint32_t *on, uint32_t tensor,
                                       uint32_t device) {
  uint32_t keeper = p->tensor_keeper[tensor];
  return keeper != WEIR_PLACE_NONE && on[keeper] == device
             ? 0
             : weir_place_held(p, p->tensor_bytes[tensor]);
}

/* Bytes that |node| needs while it runs, nodes being where |on| says. */
static inline int64_t weir_place_temp(const weir_place_problem *p,
                                      const uint32_t *on, uint32_t node) {
  uint32_t in = p->over_in[node], d = on[node];
  if (in == WEIR_PLACE_NONE ||
      weir_place_takes(p, on, p->over_out[node], d) == 0)
    return p->temp_bytes[node];
  return p->temp_bytes[node] - weir_place_takes(p, on, in, d);
}

static inline bool weir_place_allows(const weir_place_problem *p, uint32_t node,
                                     uint32_t device) {
  const uint64_t *set = p->sets + (size_t)p->allowed[node] * p->set_words;
  return (set[device >> 6] >> (device & 63)) & 1;
}

/* Cost on |device|; NO_KERNEL when it may not or cannot run there. */
static inline int64_t weir_place_cost(const weir_place_problem *p,
                                      uint32_t node, uint32_t device) {
  if (!weir_place_allows(p, node, device)) return WEIR_PLACE_NO_KERNEL;
  return p->cost[(size_t)node * p->class_count + p->devices[device].cls];
}

/* ---- Building. Devices and links first, then nodes in topological order. All
 * functions stick to the first failure, which _finish reports. Bytes that pass
 * 2^60 all together, on every device, are cut: sums of them stay in range. */
typedef struct weir_place_builder weir_place_builder;

/* Errors: W6001. */
weir_status weir_place_builder_create(const weir_allocator *alloc,
                                      uint32_t class_count,
                                      weir_place_builder **out_builder,
                                      weir_error *err);
void weir_place_builder_release(weir_place_builder *b); /* NULL-safe */
/* Text is copied. Returns the device's number. */
uint32_t weir_place_add_device(weir_place_builder *b,
                               const weir_place_device *device);
/* Says that copies from and to |device| do not count as its load. */
void weir_place_no_copy_load(weir_place_builder *b, uint32_t device);
uint32_t weir_place_add_link(weir_place_builder *b,
                             const weir_place_link *link);
/* Copies from device |from| to |to| go over |link|. */
void weir_place_connect(weir_place_builder *b, uint32_t from, uint32_t to,
                        uint32_t link);
/* Every pair of different devices goes over a link of its own, or all over one
 * that is not exclusive. */
void weir_place_connect_all(weir_place_builder *b, const weir_place_link *link);

typedef struct weir_place_node_spec {
  weir_sv name;        /* copied; may be empty */
  bool name_stays;     /* it lives as long as the problem: not copied */
  const int64_t *cost; /* one per class */
  int64_t resident_bytes, temp_bytes;
  uint32_t set;   /* from weir_place_add_set; 0: every device */
  uint32_t group; /* any number; NONE: free */
} weir_place_node_spec;

/* A set of allowed devices; equal ones are merged. */
uint32_t weir_place_add_set(weir_place_builder *b, const uint32_t *devices,
                            uint32_t count);
uint32_t weir_place_add_node(weir_place_builder *b,
                             const weir_place_node_spec *node);
/* A tensor of |producer|, which must be the last node added so far. */
uint32_t weir_place_add_tensor(weir_place_builder *b, uint32_t producer,
                               int64_t bytes);
/* Says that |keeper| has |tensor| in its resident bytes: the producer, a
 * variable, or the variable that it is the new value of, which may be added
 * later. */
void weir_place_keep_tensor(weir_place_builder *b, uint32_t tensor,
                            uint32_t keeper);
/* |node| uses |tensor|; it must be the last node added so far. */
void weir_place_add_use(weir_place_builder *b, uint32_t node, uint32_t tensor);
/* Says that |out|, of the last node added, lies where its input |in| was
 * wherever both take memory: no other node uses |in| there. It has as many
 * bytes. One pair a node. */
void weir_place_add_over(weir_place_builder *b, uint32_t in, uint32_t out);
/* Says that the devices lay tensors out, each in one piece of memory. */
void weir_place_lay_out(weir_place_builder *b);
/* Bytes that each device with a reader holds. |home|: a node that was added,
 * whose device has them from the beginning; NONE: every device has. */
uint32_t weir_place_add_constant(weir_place_builder *b, uint32_t home,
                                 int64_t bytes);
/* |node| reads |constant|; it must be the last node added so far. */
void weir_place_add_constant_use(weir_place_builder *b, uint32_t node,
                                 uint32_t constant);
/* The same for a tensor that |node| surely does not use yet: no look at those
 * it does. */
void weir_place_add_new_use(weir_place_builder *b, uint32_t node,
                            uint32_t tensor);
/* Errors: W3010 (a cost or size is negative, a number does not exist, uses out
 * of order), W3011 (a node that no device can run), W6001. */
weir_status weir_place_builder_finish(weir_place_builder *b,
                                      weir_place_problem **out_problem,
                                      weir_error *err);
void weir_place_problem_release(weir_place_problem *p); /* NULL-safe */

#endif
