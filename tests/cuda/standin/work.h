/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_CUDA_STANDIN_WORK_H_
#define TESTS_CUDA_STANDIN_WORK_H_

#include "tests/cuda/standin/standin_internal.h"

/* Works and streams, for the files that put works into streams. The caller of
 * all functions has begun a call (standin_begin). */

/* A recorded event, for as long as the event or a work names it. */
typedef struct standin_point {
  struct CUstream_st *stream;
  unsigned uses;
  bool done;
  int64_t at_ns; /* of the stream's clock, when it happened */
} standin_point;

typedef struct standin_work {
  struct standin_work *next;
  enum { COPY, RUN, RECORD, WAIT, TASK } kind;
  void *dst;
  const void *src;
  void *kept; /* the bytes of |src|, read at once; NULL: read when it is done */
  size_t bytes;
  int dst_device, src_device; /* -1: the host */
  standin_point *point;
  standin_launch *launch;
  standin_task task;
  struct CUgraphExec_st *exec; /* that it was replayed from; NULL: none */
} standin_work;

typedef struct standin_works {
  standin_work *first, **end;
} standin_works;

/* What is kept of a stream that captures. */
typedef struct standin_capture {
  uint64_t id; /* from 1, each has its own */
  pthread_t thread;
  bool broken; /* by a call that CUDA does not allow */
  standin_works works;
} standin_capture;

struct CUstream_st {
  struct CUstream_st *next;
  standin_works works;
  int device;
  int64_t clock_ns;         /* the time that its works so far took */
  standin_capture *capture; /* NULL: works are queued */
};

extern struct CUstream_st *standin_streams;

bool standin_is_stream(const struct CUstream_st *stream);

/* Whether |stream| takes works of |device|, for its queue or its capture. */
cudaError_t standin_admit(const struct CUstream_st *stream, int device);

/* Appends |w|; after a failure what it owns is the caller's. */
cudaError_t standin_put_work(struct CUstream_st *stream, standin_work w);

void standin_works_init(standin_works *works);
void standin_works_append(standin_works *works, standin_work *w);
/* Takes the first one out and releases it. */
void standin_works_drop_first(standin_works *works);

/* Breaks |stream|'s capture, if there is one that is whole; returns |e|. */
cudaError_t standin_break(struct CUstream_st *stream, cudaError_t e);
/* The same of the capture |id|, whose stream may be gone. */
cudaError_t standin_break_id(uint64_t id, cudaError_t e);
/* Ends the capture of |stream| and drops what it kept. */
void standin_capture_drop(struct CUstream_st *stream);

#endif
