/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "kernels/cpu/onednn/onednn.h"
#include "kernels/kernel.h"
#include "runtime/base/machine/machine.h"
#include "runtime/base/quantity.h"
#include "runtime/device/cuda.h"
#include "runtime/weir.h"

/* Facts about the build and the machine. */

static void cpu_features(const weir_machine *m, char *text, size_t size) {
  size_t used = 0;
  snprintf(text, size, "of no set that weir has kernels for");
  for (unsigned i = 0; i < WEIR_MACHINE_SET_COUNT; i++) {
    if (!weir_machine_has(m, (weir_machine_set)i)) continue;
    int n = snprintf(text + used, size - used, "%s%s", used != 0 ? " " : "",
                     weir_machine_set_text(i));
    if (n < 0 || (size_t)n >= size - used) return;
    used += (size_t)n;
  }
}

/* "L1 32K, L2 512K, L3 8192K for 2 threads" */
static void list_caches(const weir_machine *m, char *text, size_t size) {
  size_t used = 0;
  snprintf(text, size, "not known");
  for (int i = 0; i < WEIR_MACHINE_CACHES && used < size; i++) {
    const weir_cache *c = &m->caches[i];
    if (c->bytes == 0) continue;
    int n = snprintf(text + used, size - used, "%sL%d %lldK",
                     used != 0 ? ", " : "", i + 1, (long long)(c->bytes >> 10));
    used += n > 0 ? (size_t)n : size;
    if (c->threads <= 1 || used >= size) continue;
    n = snprintf(text + used, size - used, " for %d threads", c->threads);
    used += n > 0 ? (size_t)n : size;
  }
}

/* Fills |text| with the fact called |name|, if it is one of the machine's. */
static void machine_fact(const char *name, char *text, size_t size) {
  weir_machine m;
  weir_machine_read(&m);
  if (strcmp(name, "cores") == 0)
    snprintf(text, size, "%d", m.cores);
  else if (strcmp(name, "threads") == 0)
    snprintf(text, size, "%d", m.threads);
  else if (strcmp(name, "processor") == 0)
    snprintf(text, size, "%s", m.name);
  else if (strcmp(name, "caches") == 0)
    list_caches(&m, text, size);
  else
    cpu_features(&m, text, size);
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
  static const char *const names[] = {
      "version", "compiler", "language",  "ops", "kernels", "onednn",
      "cores",   "threads",  "processor", "cpu", "caches",  "cuda"};
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
    case 7:
    case 8:
    case 9:
    case 10:
      machine_fact(*out_name, buffer, buffer_size);
      break;
    default:
      cuda_gpus(buffer, buffer_size);
  }
  return true;
}
