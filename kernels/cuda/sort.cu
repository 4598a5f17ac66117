/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that sort keys and add the rows of equal ones. A row of a gradient is
 * the sum of all slices whose index names it: sorted by index, they are a run,
 * which one thread a column adds in order. So no two threads add to one
 * element, and the sum's order is that of the indices.
 *
 * A pass of the sort counts each block's keys by digit, turns the counts, digit
 * by digit and block by block, into places, and puts the keys there. A key's
 * place among its block's is the number of equal digits before it: keys keep
 * their order. Cost: a pass for 8 bits of the largest key. */
#include "kernels/cuda/index.h"

WEIR_BODY(sort_begin, weir_sort_begin_args) {
  const weir_indices &x = args.indices;
  for (int64_t i = weir_body_first(); i < x.n; i += weir_body_step()) {
    int64_t k = x.type == WEIR_INDEX_I32 ? ((const int32_t *)x.data)[i]
                                         : ((const int64_t *)x.data)[i];
    if (k < 0) k += args.rows;
    bool inside = k >= 0 && k < args.rows;
    args.keys[i] = (uint32_t)(inside ? k : args.rows);
    args.places[i] = (uint32_t)i;
  }
}

static __device__ __forceinline__ uint32_t digit_of(uint32_t key,
                                                    int32_t shift) {
  return key >> shift & (WEIR_SORT_DIGITS - 1);
}

/* Counts are whole numbers: the order in which they grow leaves no trace. */
WEIR_BODY(sort_count, weir_sort_args) {
  __shared__ uint32_t counts[WEIR_SORT_DIGITS];
  int64_t begin = (int64_t)blockIdx.x * WEIR_SORT_CHUNK;
  int64_t end =
      begin + WEIR_SORT_CHUNK < args.n ? begin + WEIR_SORT_CHUNK : args.n;
  counts[threadIdx.x] = 0;
  __syncthreads();
  for (int64_t i = begin + threadIdx.x; i < end; i += WEIR_BODY_THREADS)
    atomicAdd(&counts[digit_of(args.from_keys[i], args.shift)], 1u);
  __syncthreads();
  args.counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x] =
      counts[threadIdx.x];
}

/* A thread sums a stretch; then all add the stretches before theirs. */
WEIR_BODY(sort_sum, weir_sort_args) {
  __shared__ uint32_t sums[WEIR_BODY_THREADS];
  int64_t each = (args.n + WEIR_BODY_THREADS - 1) / WEIR_BODY_THREADS;
  int64_t begin = threadIdx.x * each, end = begin + each;
  if (end > args.n) end = args.n;
  uint32_t sum = 0;
  for (int64_t i = begin; i < end; i++) sum += args.counts[i];
  sums[threadIdx.x] = sum;
  __syncthreads();
  sum = 0;
  for (unsigned t = 0; t < threadIdx.x; t++) sum += sums[t];
  for (int64_t i = begin; i < end; i++) {
    uint32_t here = args.counts[i];
    args.counts[i] = sum;
    sum += here;
  }
}

/* How many of the round's |digits| before thread |threadIdx.x|'s equal it, and
 * whether one behind it does. */
static __device__ __forceinline__ uint32_t rank_of(const uint16_t *digits,
                                                   bool *last) {
  uint32_t own = digits[threadIdx.x], before = 0, behind = 0;
  for (unsigned t = 0; t < WEIR_BODY_THREADS; t++) {
    bool same = digits[t] == own;
    before += same && t < threadIdx.x;
    behind += same && t > threadIdx.x;
  }
  *last = behind == 0;
  return before;
}

/* Rounds of 256 keys. A thread without a key has a digit that no key has. */
WEIR_BODY(sort_put, weir_sort_args) {
  __shared__ uint32_t next[WEIR_SORT_DIGITS];
  __shared__ uint16_t digits[WEIR_BODY_THREADS];
  int64_t begin = (int64_t)blockIdx.x * WEIR_SORT_CHUNK;
  next[threadIdx.x] =
      args.counts[(int64_t)threadIdx.x * gridDim.x + blockIdx.x];
  for (int64_t r = begin; r < begin + WEIR_SORT_CHUNK && r < args.n;
       r += WEIR_BODY_THREADS) {
    int64_t i = r + threadIdx.x;
    bool here = i < args.n, last;
    uint32_t key = here ? args.from_keys[i] : 0;
    uint32_t digit = digit_of(key, args.shift);
    digits[threadIdx.x] = (uint16_t)(here ? digit : (uint32_t)WEIR_SORT_DIGITS);
    __syncthreads();
    uint32_t rank = rank_of(digits, &last), to = next[digit] + rank;
    __syncthreads();
    if (!here) continue;
    args.to_keys[to] = key;
    args.to_places[to] = args.from_places[i];
    if (last) next[digit] = to + 1;
  }
}

/* The thread of a run's first key adds the whole run. */
template <class V>
static __device__ __forceinline__ void sum_runs(
    const weir_sum_runs_args &args) {
  int64_t count = args.walk.dims[1], inner = args.walk.dims[2];
  for (int64_t i = weir_body_first(); i < args.n; i += weir_body_step()) {
    int64_t outer = i, column = weir_walk_take(args.walk, 2, &outer);
    int64_t s = weir_walk_take(args.walk, 1, &outer);
    uint32_t key = args.keys[s];
    if (key >= args.rows || (s > 0 && args.keys[s - 1] == key)) continue;
    const V *x = (const V *)args.x + outer * count * inner + column;
    V sum = 0;
    for (; s < count && args.keys[s] == key; s++)
      sum += x[args.places[s] * inner];
    ((V *)args.y)[(outer * args.rows + key) * inner + column] = sum;
  }
}

WEIR_BODY(sum_runs_f32, weir_sum_runs_args) {
  sum_runs<float>(args);
}

WEIR_BODY(sum_runs_f64, weir_sum_runs_args) {
  sum_runs<double>(args);
}
