/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TOOLS_BENCH_FILE_H_
#define WEIR_TOOLS_BENCH_FILE_H_

#include "runtime/base/sv.h"
#include "runtime/base/vec.h"
#include "runtime/tools/tools.h"

/* Files that `weir bench --json` writes: an object a line, one for each number
 * of threads. Members that are not known are passed over, so that files of
 * other versions can be read. */

typedef struct weir_bench_figure {
  weir_sv name;
  double value; /* NaN: null */
} weir_bench_figure;

/* A node of a profile. */
typedef struct weir_bench_node {
  weir_sv node, within, op, kernel; /* empty: not there */
  double time_ns;
  uint32_t place; /* in the file's list */
  uint32_t turn;  /* among those of the same name, from 0 */
} weir_bench_node;

/* What was measured; texts are empty where the file lacks them. */
typedef struct weir_bench_run {
  weir_sv version, graph, machine, isa;
  weir_sv params; /* "-p batch=8 --set train.steps=1" */
  int64_t threads, inflight, cores;
  bool has_profile;
  WEIR_VEC(weir_bench_figure) figures; /* numbers, in the file's order */
  WEIR_VEC(weir_bench_node) nodes;     /* by name and turn */
} weir_bench_run;

typedef struct weir_bench_file {
  const weir_allocator *alloc;
  weir_arena arena; /* texts */
  const char *path;
  WEIR_VEC(weir_bench_run) runs;
} weir_bench_file;

/* Reads |path|. |out| is to be released also after a failure. Errors: W4001,
 * W4002, W4013, W4015, W4018 (another kind of file, a figure is missing),
 * W6001. */
weir_status weir_bench_file_read(weir_runtime *runtime, const char *path,
                                 weir_bench_file *out, weir_error *err);
void weir_bench_file_release(weir_bench_file *file);

/* Its value; NaN where it is null or missing. */
double weir_bench_figure_of(const weir_bench_run *run, weir_sv name);

/* < 0, 0, > 0: the order of |run->nodes|. */
int weir_bench_node_order(const weir_bench_node *a, const weir_bench_node *b);

#endif
