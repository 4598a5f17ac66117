/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/kind.h"

/* An accelerator of 80 GiB behind the host's bus. */
const weir_device_kind_def weir_device_kind_gpu = {
    .name = "gpu",
    .alias = "cuda",
    .spelling = "GPU",
    .summary = "an accelerator with memory of its own",
    .model = {.memory_bytes = INT64_C(80) << 30,
              .mflops = 20000000,
              .bytes_per_us = 1500000,
              .overhead_ns = 5000},
    .way = {.latency_ns = 2000, .fs_per_byte = 100000}, /* 10 GB/s */
    .workers_only = true};
