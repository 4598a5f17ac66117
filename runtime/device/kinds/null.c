/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/kind.h"

/* The kind to copy: a device that does nothing and takes no time for it. It is
 * in no list: the tests build it. */
const weir_device_kind_def weir_device_kind_null = {
    .name = "null",
    .spelling = "NULL",
    .summary = "a device without work",
    .model = {.memory_bytes = INT64_MAX,
              .mflops = INT64_MAX,
              .bytes_per_us = INT64_MAX,
              .overhead_ns = 0},
    .way = {.latency_ns = 0, .fs_per_byte = 0}};
