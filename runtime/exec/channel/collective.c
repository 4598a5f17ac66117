/* SPDX-License-Identifier: Apache-2.0
 *
 * The computation of collectives, once all parts are in one memory.
 *
 * Sums are made in rank order into scratch memory, then copied to every rank:
 * floating-point addition is not associative, so any other order would give
 * other bits; and dst may be src, so no rank's memory can hold the sum while
 * others are still read. Cost: ranks * count additions, on one thread. */
#include "runtime/exec/channel/collective.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "runtime/base/size.h"
#include "runtime/exec/channel/channel.h"

static bool has_parts(weir_collective_kind kind) {
  return kind == WEIR_REDUCE_SCATTER || kind == WEIR_ALL_GATHER ||
         kind == WEIR_ALL_TO_ALL;
}

static bool sums(weir_collective_kind kind) {
  return kind == WEIR_ALL_REDUCE || kind == WEIR_REDUCE_SCATTER;
}

weir_status weir_collective_check(const weir_collective *part,
                                  size_t *out_scratch_bytes, weir_error *err) {
  *out_scratch_bytes = 0;
  if (part->ranks == 0 || part->rank >= part->ranks || part->count < 0)
    return weir_fail(err, WEIR_W0004, NULL, "rank %u of %u, count %" PRId64,
                     part->rank, part->ranks, part->count);
  if (has_parts(part->kind) && part->count % part->ranks != 0)
    return weir_fail(err, WEIR_W0004, NULL,
                     "%" PRId64 " elements cannot be dealt to %u ranks",
                     part->count, part->ranks);
  bool small = part->dtype == WEIR_U8 || part->dtype == WEIR_BOOL;
  if (sums(part->kind) && small)
    return weir_fail(err, WEIR_W0004, NULL, "sums of %s are not defined",
                     weir_dtype_name(part->dtype));
  if (!weir_size_mul((size_t)part->count, weir_dtype_size(part->dtype),
                     out_scratch_bytes))
    return weir_fail(err, WEIR_W2001, NULL, "%" PRId64 " elements",
                     part->count);
  return WEIR_OK;
}

/* sum[i] += src[i]; integers wrap, hence the unsigned types. */
static void accumulate(weir_dtype dtype, void *sum, const void *src,
                       int64_t count) {
  switch (dtype) {
    case WEIR_F32:
      for (int64_t i = 0; i < count; i++)
        ((float *)sum)[i] += ((const float *)src)[i];
      break;
    case WEIR_F64:
      for (int64_t i = 0; i < count; i++)
        ((double *)sum)[i] += ((const double *)src)[i];
      break;
    case WEIR_I32:
      for (int64_t i = 0; i < count; i++)
        ((uint32_t *)sum)[i] += ((const uint32_t *)src)[i];
      break;
    case WEIR_I64:
      for (int64_t i = 0; i < count; i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)src)[i];
      break;
    default:
      break;
  }
}

static void copy(void *dst, const void *src, size_t bytes) {
  if (bytes > 0 && dst != src) memcpy(dst, src, bytes);
}

void weir_collective_compute(const weir_collective *const *parts,
                             void *scratch) {
  const weir_collective *first = parts[0];
  uint32_t n = first->ranks;
  size_t bytes = (size_t)first->count * weir_dtype_size(first->dtype);
  size_t part_bytes = bytes / n;
  assert(n > 0 && (!has_parts(first->kind) || part_bytes * n == bytes));
  if (sums(first->kind)) {
    copy(scratch, first->src, bytes);
    for (uint32_t r = 1; r < n; r++)
      accumulate(first->dtype, scratch, parts[r]->src, first->count);
  }
  for (uint32_t r = 0; r < n; r++) {
    char *dst = parts[r]->dst;
    size_t mine = r * part_bytes;
    switch (first->kind) {
      case WEIR_ALL_REDUCE:
        copy(dst, scratch, bytes);
        break;
      case WEIR_REDUCE_SCATTER:
        copy(dst, (char *)scratch + mine, part_bytes);
        break;
      case WEIR_BROADCAST:
        copy(dst, first->src, bytes);
        break;
      case WEIR_ALL_GATHER:
        for (uint32_t s = 0; s < n; s++)
          copy(dst + s * part_bytes, parts[s]->src, part_bytes);
        break;
      case WEIR_ALL_TO_ALL:
        for (uint32_t s = 0; s < n; s++)
          copy(dst + s * part_bytes, (const char *)parts[s]->src + mine,
               part_bytes);
        break;
    }
  }
}
