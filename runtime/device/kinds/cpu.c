/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/kind.h"

/* A core or a few of a present server: AVX2 or better, one memory channel. */
const weir_device_kind_def weir_device_kind_cpu = {
    .name = "cpu",
    .spelling = "CPU",
    .summary = "cores of the host",
    .model = {.memory_bytes = INT64_MAX,
              .mflops = 100000,
              .bytes_per_us = 10000,
              .overhead_ns = 500},
    .way = {.latency_ns = 2000, .fs_per_byte = 100000}, /* 10 GB/s */
    .per_task = 1,
    .every_op = true,
    .host = true};
