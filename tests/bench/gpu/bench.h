/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BENCH_GPU_BENCH_H_
#define TESTS_BENCH_GPU_BENCH_H_

#include "runtime/device/cuda.h"
#include "runtime/device/gemm.h"

/* What the measurements of a GPU share: one device with one queue, batches of
 * work timed by the host's clock, and the rows of the table.
 *
 * A batch is long enough that the wait at its end is small in it. Two sides
 * that are compared take turns, and each figure is the median of the turns.
 * Any failure ends the program. */

typedef struct bench_row {
  char name[32];
  double s, bare_s; /* of one run; 0: there is no bare one */
  double work;      /* of one run: flop, bytes or runs */
  const char *unit; /* of work / s / scale */
  double scale, share;
} bench_row;

enum { BENCH_ROWS = 64 };

typedef struct bench {
  weir_env env;
  weir_module_handle module;
  weir_device *device;
  weir_queue *queue;
  weir_event *event;
  const char *cuda_folder; /* NULL: the loader's places */
  bool small;
  float *random; /* |random_bytes| of host_alloc, in [-1, 1) */
  size_t random_bytes;
  double copy_rate; /* bytes a second within the device */
  bench_row rows[BENCH_ROWS];
  int row_count;
} bench;

/* Puts one run into the queue. */
typedef weir_status (*bench_fn)(void *self, weir_error *err);

void bench_open(bench *b, bool small);
void bench_close(bench *b);

/* Ends the program with the error's text unless |s| is WEIR_OK. */
void bench_ok(weir_status s, const weir_error *err);

/* A buffer of |bytes| bytes, the first of them random floats. */
weir_device_buffer bench_buffer(bench *b, size_t bytes);

/* Seconds of one run of each side, |fns[0]| and, unless NULL, |fns[1]|. */
void bench_time(bench *b, const bench_fn fns[2], void *self, double out_s[2]);

/* Adds a row and prints it. |row|'s share is set by the caller. */
void bench_add(bench *b, const bench_row *row);

void bench_print_json(const bench *b);

double bench_now_s(void);

/* The measurements. */
void bench_products(bench *b);
void bench_memory(bench *b);
void bench_bodies(bench *b);

#endif
