/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/apply.h"

#include <inttypes.h>
#include <math.h>

static double number(const weir_operand *operand, const void *data) {
  return operand->dtype == WEIR_F64 ? *(const double *)data
                                    : (double)*(const float *)data;
}

double weir_apply_attr(const weir_call *call, const char *name) {
  const weir_attr *attr = weir_call_attr(call, name);
  return attr != NULL ? attr->f : 0;
}

weir_status weir_apply_check(const weir_call *call, double lr, int64_t step,
                             weir_error *err) {
  if (!isfinite(lr) || lr < 0)
    return weir_fail(err, WEIR_W5008, NULL,
                     "%s: the learning rate is %g, expected a finite number "
                     "of at least 0",
                     call->op->name, lr);
  if (step < 1)
    return weir_fail(err, WEIR_W5008, NULL,
                     "%s: the step is %" PRId64 ", expected 1 or more",
                     call->op->name, step);
  return WEIR_OK;
}

weir_status weir_apply_read(const weir_call *call, const weir_args *args,
                            uint32_t slots, bool has_step,
                            weir_apply_numbers *out) {
  uint32_t lr = slots + 2, scale = lr + 1 + has_step;
  *out = (weir_apply_numbers){.lr = number(&call->in[lr], args->io[lr]),
                              .scale = 1,
                              .l2 = weir_apply_attr(call, "l2"),
                              .step = 1};
  if (has_step) out->step = *(const int64_t *)args->io[lr + 1];
  WEIR_TRY(weir_apply_check(call, out->lr, out->step, args->err));
  if (scale < call->in_count && args->io[scale] != NULL)
    out->scale = number(&call->in[scale], args->io[scale]);
  return WEIR_OK;
}
