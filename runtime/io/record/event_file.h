/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_EVENT_FILE_H_
#define WEIR_IO_EVENT_FILE_H_

#include "runtime/base/env.h"
#include "runtime/base/sv.h"

/* TensorBoard event files: TFRecord framing (masked CRC32C) around Event
 * messages in protobuf wire form, encoded here. One thread at a time. */

typedef struct weir_event_file weir_event_file;

/* Makes DIR/events.out.tfevents.TIME.NAME and writes the version record. |root|
 * and |dir| as for weir_fs_folders.open. |name| has no '/'; a name that is
 * taken gets a number at its end. |env| must outlive the file. After a write
 * that failed nothing more is written, and each call gives that failure.
 * Errors: W4002, W5009, W6001, W6005. */
weir_status weir_event_file_create(const weir_env *env, const char *root,
                                   const char *dir, int64_t time_ns,
                                   const char *name, weir_event_file **out_file,
                                   weir_error *err);
weir_status weir_event_file_scalar(weir_event_file *file, int64_t time_ns,
                                   int64_t step, weir_sv tag, float value,
                                   weir_error *err);
/* TensorFlow's default buckets; NaNs are counted nowhere. */
weir_status weir_event_file_histogram(weir_event_file *file, int64_t time_ns,
                                      int64_t step, weir_sv tag,
                                      const float *data, int64_t count,
                                      weir_error *err);
/* A node of the graph that is shown; see _graph. */
typedef struct weir_event_node {
  weir_sv name, op, device;
  const weir_sv *inputs; /* "name" or "name:1"; "^name" for control */
  uint32_t input_count;
} weir_event_node;
weir_status weir_event_file_graph(weir_event_file *file, int64_t time_ns,
                                  const weir_event_node *nodes, size_t count,
                                  weir_error *err);
weir_status weir_event_file_flush(weir_event_file *file, weir_error *err);
/* Flushes and closes. NULL-safe. */
void weir_event_file_close(weir_event_file *file);

#endif
