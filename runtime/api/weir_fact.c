/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "kernels/cpu/gemm/onednn.h"
#include "kernels/kernel.h"
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

bool weir_fact(size_t i, const char **out_name, char *buffer,
               size_t buffer_size) {
  static const char *const names[] = {"version", "compiler", "language", "ops",
                                      "onednn",  "cores",    "cpu"};
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
      weir_onednn_version(buffer, buffer_size);
      break;
    case 5:
      snprintf(buffer, buffer_size, "%ld", sysconf(_SC_NPROCESSORS_ONLN));
      break;
    default:
      cpu_features(buffer, buffer_size);
  }
  return true;
}
