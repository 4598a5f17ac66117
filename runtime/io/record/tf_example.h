/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_IO_TF_EXAMPLE_H_
#define WEIR_IO_TF_EXAMPLE_H_

#include "runtime/io/record/tfrecord.h"

/* Reads tf.Example messages. */

/* Finds the |count| features called |names| in |example|, all of a message.
 * Checks the whole message. Errors: W4029. */
weir_status weir_example_read(weir_bytes example, const char *file,
                              const weir_sv *names, size_t count,
                              weir_feature *out_features, weir_error *err);

/* A reader of the feature's values, at the first. */
weir_feature_values weir_feature_begin(const weir_feature *feature);

/* The next value of a feature of that kind; false at the end. */
bool weir_feature_next_bytes(weir_feature_values *values,
                             weir_bytes *out_value);

/* The next value of a feature of that kind; false at the end. */
bool weir_feature_next_float(weir_feature_values *values, float *out_value);

/* The next value of a feature of that kind; false at the end. */
bool weir_feature_next_int(weir_feature_values *values, int64_t *out_value);

#endif
