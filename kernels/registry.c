/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/registry.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "kernels/kernel.h"

bool weir_no(weir_why *why, const char *fmt, ...) {
  va_list args;
  if (why == NULL) return false;
  va_start(args, fmt);
  vsnprintf(why->text, sizeof why->text, fmt, args);
  va_end(args);
  return false;
}

/* The dtype a kernel is chosen by. */
static weir_dtype call_dtype(const weir_call *call) {
  if (call->in_count > 0 && call->in[0].dtype != WEIR_DTYPE_NONE)
    return call->in[0].dtype;
  return call->out_count > 0 ? call->out[0].dtype : WEIR_DTYPE_NONE;
}

static bool is_plain(const weir_call *call) {
  for (uint32_t i = 0; i < call->in_count; i++)
    if (call->in[i].layout != WEIR_LAYOUT_PLAIN) return false;
  for (uint32_t i = 0; i < call->out_count; i++)
    if (call->out[i].layout != WEIR_LAYOUT_PLAIN) return false;
  return true;
}

static bool accepts(const weir_kernel_def *kernel, const weir_call *call,
                    weir_why *why) {
  weir_dtype dtype = call_dtype(call);
  why->text[0] = 0;
  if (dtype != WEIR_DTYPE_NONE && (kernel->types & (unsigned)dtype) == 0)
    return weir_no(why, "not for %s", weir_dtype_name(dtype));
  if (!kernel->layouts && !is_plain(call))
    return weir_no(why, "wants row-major operands");
  return kernel->accepts == NULL || kernel->accepts(call, why);
}

static void note(char *refusals, size_t capacity, const char *name,
                 const weir_why *why) {
  if (refusals == NULL || capacity == 0) return;
  size_t used = strnlen(refusals, capacity);
  if (used >= capacity) return;
  snprintf(refusals + used, capacity - used, "%s: %s; ", name, why->text);
}

const weir_kernel_def *weir_kernel_choose(const weir_registry *registry,
                                          const weir_call *call,
                                          weir_device_kind device,
                                          bool ref_only, char *refusals,
                                          size_t capacity) {
  const weir_kernel_def *last = NULL; /* ref comes last */
  for (const weir_registry *r = registry; r != NULL; r = r->next)
    for (size_t i = 0; i < r->kernel_count; i++) {
      const weir_kernel_def *kernel = r->kernels[i];
      weir_why why;
      if (kernel->device != device) continue;
      if (strcmp(kernel->op, call->op->name) != 0) continue;
      if (!accepts(kernel, call, &why)) {
        note(refusals, capacity, kernel->name, &why);
        continue;
      }
      if (!ref_only) return kernel;
      last = kernel;
    }
  return last;
}

int weir_kernel_all(const weir_registry *registry, const weir_call *call,
                    weir_device_kind device, const weir_kernel_def **list,
                    int capacity) {
  int count = 0;
  for (const weir_registry *r = registry; r != NULL; r = r->next)
    for (size_t i = 0; i < r->kernel_count && count < capacity; i++) {
      const weir_kernel_def *kernel = r->kernels[i];
      weir_why why;
      if (kernel->device == device && strcmp(kernel->op, call->op->name) == 0 &&
          (count == 0 || strncmp(kernel->name, "ref.", 4) != 0) &&
          accepts(kernel, call, &why))
        list[count++] = kernel;
    }
  return count;
}

static bool group_is_plain(const weir_group *group) {
  bool plain = group->out[0].layout == WEIR_LAYOUT_PLAIN;
  for (uint32_t i = 0; i < group->in_count; i++)
    plain = plain && group->in[i].layout == WEIR_LAYOUT_PLAIN;
  return plain;
}

bool weir_group_kernel_accepts(const weir_group_kernel_def *kernel,
                               const weir_group *group, weir_why *why) {
  why->text[0] = 0;
  if (!kernel->layouts && !group_is_plain(group))
    return weir_no(why, "wants row-major operands");
  return kernel->accepts(group, why);
}

int weir_group_kernel_all(const weir_registry *registry,
                          const weir_group *group, weir_device_kind device,
                          const weir_group_kernel_def **list, int capacity) {
  int count = 0;
  for (const weir_registry *r = registry; r != NULL; r = r->next)
    for (size_t i = 0; i < r->group_kernel_count && count < capacity; i++) {
      weir_why why;
      if (r->group_kernels[i]->device == device &&
          weir_group_kernel_accepts(r->group_kernels[i], group, &why))
        list[count++] = r->group_kernels[i];
    }
  return count;
}
