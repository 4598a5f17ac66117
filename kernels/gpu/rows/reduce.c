/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a reduction. Dimensions are seen as kept and joined ones in turn.
 * When the last one is joined, an output's elements lie together and threads
 * take neighbours: 1 to 32 or 256 threads an output, by their number. When it
 * is kept, neighbours are columns. A GPU wants some thousand blocks, so few
 * outputs of many elements are cut into slices, whose results lie in scratch
 * and are joined by a launch of their own. All this follows from the shape. */
#include "kernels/gpu/rows/reduce.h"

#include <assert.h>

enum {
  SOME = 4096, /* elements that a warp joins, or fewer threads */
  FEW = 1024,  /* the same, where outputs are few */
  LEAST = 16,  /* elements of a thread: four reads under way at once */
  LEAST_FEW = 4,
  LEAST_SLICE = 4096, /* elements of a slice, of a column 64 */
  LEAST_COLUMN = 64,
  WANTED_BLOCKS = 1024,
  MOST_SLICES = 1024 /* joined by one block, or one column's threads */
};

void weir_gpu_reduced_add(weir_gpu_reduced *r, int64_t dim, bool joined) {
  if (dim == 1) return;
  if (r->rank > 0 && r->joined[r->rank - 1] == joined) {
    r->dims[r->rank - 1] *= dim;
    return;
  }
  assert(r->rank < WEIR_WALK_RANK);
  r->dims[r->rank] = dim;
  r->joined[r->rank++] = joined;
}

static int64_t parts_of(int64_t n, int64_t part) {
  return n / part + (n % part != 0);
}

/* How many slices |total| elements of each of |blocks| blocks are cut into. */
static int64_t slices_of(int64_t total, int64_t blocks, int64_t least,
                         int64_t most) {
  int64_t slices = parts_of(WANTED_BLOCKS, blocks);
  if (slices > most) slices = most;
  if (slices > total / least) slices = total / least;
  return slices > 1 ? slices : 1;
}

/* Dimensions of one kind with x's strides, walked by index. */
typedef struct part {
  int32_t rank;
  int64_t dims[WEIR_WALK_RANK], strides[WEIR_WALK_RANK], elements;
} part;

static void part_add(part *p, int64_t dim, int64_t stride) {
  p->dims[p->rank] = dim;
  p->strides[p->rank++] = stride;
  p->elements *= dim;
}

/* |columns|: the last dimension, when that is kept, is in neither part. */
static void split(const weir_gpu_reduced *r, int64_t *columns, part *kept,
                  part *joined) {
  int64_t strides[WEIR_WALK_RANK], stride = 1;
  bool by_columns = r->rank > 0 && !r->joined[r->rank - 1];
  int32_t rank = by_columns ? r->rank - 1 : r->rank;
  *kept = *joined = (part){.elements = 1};
  *columns = by_columns ? r->dims[rank] : 0;
  for (int32_t d = r->rank - 1; d >= 0; d--) {
    strides[d] = stride;
    stride *= r->dims[d];
  }
  for (int32_t d = 0; d < rank; d++)
    part_add(r->joined[d] ? joined : kept, r->dims[d], strides[d]);
}

/* Threads that join |each| elements. Where warps are too few to hide the time
 * of a read, more threads have one read each. */
static int32_t row_lanes(int64_t each, int64_t jobs) {
  bool few = jobs < WANTED_BLOCKS * (WEIR_BODY_THREADS / 32);
  int32_t lanes = each <= (few ? FEW : SOME) ? 1 : WEIR_BODY_THREADS;
  while (lanes < 32 && (few ? LEAST_FEW : LEAST) * lanes < each) lanes *= 2;
  return lanes;
}

static weir_gpu_body body_of(weir_dtype dtype, bool columns) {
  switch (dtype) {
    case WEIR_F64:
      return columns ? WEIR_GPU_reduce_columns_f64 : WEIR_GPU_reduce_rows_f64;
    case WEIR_I32:
      return columns ? WEIR_GPU_reduce_columns_i32 : WEIR_GPU_reduce_rows_i32;
    case WEIR_I64:
      return columns ? WEIR_GPU_reduce_columns_i64 : WEIR_GPU_reduce_rows_i64;
    case WEIR_U8:
      return columns ? WEIR_GPU_reduce_columns_u8 : WEIR_GPU_reduce_rows_u8;
    default:
      return columns ? WEIR_GPU_reduce_columns_f32 : WEIR_GPU_reduce_rows_f32;
  }
}

/* A dimension of the walk over jobs: its length and the step of each place. */
static void job_add(weir_reduce_args *a, int64_t *dims, int32_t *rank,
                    int64_t dim, const int64_t *steps) {
  for (int k = 0; k < 4; k++) a->job_strides[k][*rank] = steps[k];
  dims[(*rank)++] = dim;
}

/* The walk of [kept][slices] jobs, and their threads. */
static void plan_rows(const part *kept, const part *joined, int64_t slices,
                      weir_reduce_args *a, uint32_t *blocks) {
  int64_t dims[WEIR_WALK_RANK], step = slices;
  int32_t rank = 0;
  for (int32_t d = 0; d < kept->rank; d++) step *= kept->dims[d];
  for (int32_t d = 0; d < kept->rank; d++) {
    step /= kept->dims[d];
    job_add(a, dims, &rank, kept->dims[d],
            (int64_t[]){kept->strides[d], 0, step, 0});
  }
  if (slices > 1)
    job_add(a, dims, &rank, slices, (int64_t[]){0, a->slice, 1, 0});
  weir_gpu_walk(rank, dims, &a->job);
  a->jobs = kept->elements * slices;
  int64_t each = a->slice < joined->elements ? a->slice : joined->elements;
  a->lanes = row_lanes(each, a->jobs);
  *blocks = weir_gpu_blocks(a->jobs * a->lanes);
}

/* The walk of [slices][kept][tiles] jobs. */
static void plan_columns(const part *kept, int64_t columns, int64_t slices,
                         weir_reduce_args *a, uint32_t *blocks) {
  int64_t dims[WEIR_WALK_RANK], step = kept->elements * columns;
  int64_t lanes = a->lanes, tiles = parts_of(columns, lanes);
  int32_t rank = 0;
  if (slices > 1)
    job_add(a, dims, &rank, slices, (int64_t[]){0, a->slice, step, 0});
  for (int32_t d = 0; d < kept->rank; d++) {
    step /= kept->dims[d];
    job_add(a, dims, &rank, kept->dims[d],
            (int64_t[]){kept->strides[d], 0, step, 0});
  }
  job_add(a, dims, &rank, tiles, (int64_t[]){lanes, 0, lanes, lanes});
  weir_gpu_walk(rank, dims, &a->job);
  a->columns = columns;
  a->jobs = kept->elements * slices * tiles;
  *blocks = weir_gpu_blocks(a->jobs * WEIR_BODY_THREADS);
}

/* Columns that a block reads at once: all, up to a warp's lanes. */
static int32_t lanes_of(int64_t columns) {
  int32_t lanes = 1;
  while (lanes < 32 && lanes < columns) lanes *= 2;
  return lanes;
}

/* Cuts |total| elements into slices of one length; all but the last full. */
static int64_t cut(weir_reduce_args *a, int64_t total, int64_t slices) {
  a->total = total;
  a->slice = total > 0 ? parts_of(total, slices) : 1;
  return total > 0 ? parts_of(total, a->slice) : 1;
}

/* One launch, of |most| slices at most; their number. */
static int64_t plan_launch(const weir_gpu_reduced *r, weir_reduce_args *a,
                           int64_t most, int64_t *columns, int64_t *outputs,
                           uint32_t *blocks) {
  part kept, joined;
  split(r, columns, &kept, &joined);
  weir_gpu_walk(joined.rank, joined.dims, &a->reduced);
  for (int32_t d = 0; d < joined.rank; d++)
    a->reduced_strides[0][d] = joined.strides[d];
  if (*columns == 0) {
    int64_t slices =
        cut(a, joined.elements,
            slices_of(joined.elements, kept.elements, LEAST_SLICE, most));
    plan_rows(&kept, &joined, slices, a, blocks);
    *outputs = kept.elements;
    return slices;
  }
  a->lanes = lanes_of(*columns);
  int64_t jobs = kept.elements * parts_of(*columns, a->lanes);
  int64_t least = LEAST_COLUMN * (32 / a->lanes);
  int64_t slices =
      cut(a, joined.elements, slices_of(joined.elements, jobs, least, most));
  plan_columns(&kept, *columns, slices, a, blocks);
  *outputs = kept.elements * *columns;
  return slices;
}

void weir_gpu_reduce_plan(const weir_gpu_reduced *r, weir_dtype dtype,
                          weir_reduce_op op, bool mean, weir_gpu_reduce *out) {
  weir_reduce_args *a = out->args;
  int64_t columns, outputs, unused_columns, unused;
  *out = (weir_gpu_reduce){.args = {{.op = (int32_t)op}, {.op = (int32_t)op}}};
  int64_t slices =
      plan_launch(r, &a[0], MOST_SLICES, &columns, &outputs, &out->blocks[0]);
  out->body[0] = out->body[1] = body_of(dtype, columns > 0);
  if (mean) a[slices > 1].divisor = a[0].total;
  if (slices == 1) return;
  out->scratch_bytes =
      (size_t)slices * (size_t)outputs * weir_dtype_size(dtype);
  weir_gpu_reduced parts = {0};
  if (columns > 0) weir_gpu_reduced_add(&parts, slices, true);
  weir_gpu_reduced_add(&parts, outputs, false);
  if (columns == 0) weir_gpu_reduced_add(&parts, slices, true);
  plan_launch(&parts, &a[1], 1, &unused_columns, &unused, &out->blocks[1]);
}

weir_status weir_gpu_reduce_run(const weir_args *args,
                                const weir_gpu_reduce *plan, void *y,
                                const void *x, void *scratch) {
  weir_reduce_args a = plan->args[0];
  bool twice = plan->blocks[1] > 0;
  a.x = x;
  a.y = twice ? scratch : y;
  WEIR_TRY(weir_gpu_launch(args, plan->body[0], plan->blocks[0], &a, sizeof a));
  a = plan->args[1];
  a.x = scratch;
  a.y = y;
  return weir_gpu_launch(args, plan->body[1], plan->blocks[1], &a, sizeof a);
}
