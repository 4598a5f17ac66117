/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "kernels/cpu/onednn/onednn.h"
#include "kernels/kernel.h"
#include "runtime/base/quantity.h"
#include "runtime/device/cuda.h"
#include "runtime/weir.h"

/* Facts about the build and the machine. */

static void cpu_features(char *text, size_t size) {
  size_t used = 0;
  text[0] = '\0';
#if defined(__x86_64__)
  const struct {
    const char *name;
    int has;
  } list[] = {{"sse4.2", __builtin_cpu_supports("sse4.2")},
              {"avx", __builtin_cpu_supports("avx")},
              {"avx2", __builtin_cpu_supports("avx2")},
              {"fma", __builtin_cpu_supports("fma")},
              {"avx512f", __builtin_cpu_supports("avx512f")},
              {"avx512bw", __builtin_cpu_supports("avx512bw")},
              {"avx512dq", __builtin_cpu_supports("avx512dq")},
              {"avx512vl", __builtin_cpu_supports("avx512vl")},
              {"avx512vnni", __builtin_cpu_supports("avx512vnni")}};
  for (size_t i = 0; i < sizeof list / sizeof list[0]; i++) {
    if (!list[i].has) continue;
    int n = snprintf(text + used, size - used, "%s%s", used != 0 ? " " : "",
                     list[i].name);
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  }
#else
  snprintf(text, size, "not x86-64: plain C loops");
#endif
}

static void list_gpus(const weir_cuda_found *found, char *text, size_t size) {
  const int32_t d = found->driver, r = found->runtime;
  int n = snprintf(text, size, "driver %d.%d, runtime %d.%d, %u GPU%s",
                   d / 1000, d % 1000 / 10, r / 1000, r % 1000 / 10,
                   found->gpu_count, found->gpu_count == 1 ? "" : "s");
  size_t used = n > 0 ? (size_t)n : size;
  for (uint32_t i = 0; i < found->gpu_count && used < size; i++) {
    char memory[WEIR_QUANTITY_TEXT];
    n = snprintf(
        text + used, size - used, "%s %s %s", i == 0 ? ":" : ",",
        found->gpus[i].name,
        weir_quantity_print_bytes((int64_t)found->gpus[i].total_bytes, memory));
    used += n > 0 ? (size_t)n : size;
  }
}

/* The GPUs, or the reason why there are none, in one sentence. */
static void cuda_gpus(char *text, size_t size) {
  weir_module_handle module = {0};
  weir_cuda_found found;
  weir_error err = WEIR_ERROR_INIT;
  if (weir_device_cuda_find(&module, NULL, &found, &err) == WEIR_OK)
    list_gpus(&found, text, size);
  else
    snprintf(text, size, "%s", module.absent ? "not built" : err.message);
}

/* "340 for CPU, 120 for GPU" */
static void count_kernels(char *text, size_t size) {
  size_t used = 0, counts[WEIR_DEVICE_KINDS] = {0};
  for (size_t i = 0; i < weir_builtin_kernel_count; i++)
    counts[weir_builtin_kernels[i]->device]++;
  for (int k = 0; k < WEIR_DEVICE_KINDS && used < size; k++) {
    int n =
        snprintf(text + used, size - used, "%s%zu for %s", k == 0 ? "" : ", ",
                 counts[k], weir_device_kinds[k]->spelling);
    used += n > 0 ? (size_t)n : size;
  }
}

bool weir_fact(size_t i, const char **out_name, char *buffer,
               size_t buffer_size) {
  static const char *const names[] = {"version", "compiler", "language",
                                      "ops",     "kernels",  "onednn",
                                      "cores",   "cpu",      "cuda"};
  if (i >= sizeof names / sizeof names[0] || out_name == NULL || buffer == NULL)
    return false;
  *out_name = names[i];
  switch (i) {
    case 0:
      snprintf(buffer, buffer_size, "%s", weir_version_text());
      break;
    case 1:
#if defined(__clang__)
      snprintf(buffer, buffer_size, "clang %s", __clang_version__);
#else
      snprintf(buffer, buffer_size, "gcc %s", __VERSION__);
#endif
      break;
    case 2:
      snprintf(buffer, buffer_size, "1");
      break;
    case 3:
      snprintf(buffer, buffer_size, "%zu",
               weir_registry_op_count(weir_builtin_registry()));
      break;
    case 4:
      count_kernels(buffer, buffer_size);
      break;
    case 5:
      weir_onednn_version(buffer, buffer_size);
      break;
    case 6:
      snprintf(buffer, buffer_size, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
      break;
    case 7:
      cpu_features(buffer, buffer_size);
      break;
    default:
      cuda_gpus(buffer, buffer_size);
  }
  return true;
}
