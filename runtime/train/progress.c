/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/progress.h"

#include "runtime/base/table.h"

const char *weir_train_end_name(weir_train_end end) {
  static const char *const names[] = {
      [WEIR_TRAIN_END_GOING] = "going",     [WEIR_TRAIN_END_STEPS] = "steps",
      [WEIR_TRAIN_END_EPOCHS] = "epochs",   [WEIR_TRAIN_END_TARGET] = "target",
      [WEIR_TRAIN_END_TIME] = "time",       [WEIR_TRAIN_END_EARLY] = "early",
      [WEIR_TRAIN_END_STOPPED] = "stopped", [WEIR_TRAIN_END_FAILED] = "failed"};
  WEIR_TABLE_OF(names, WEIR_TRAIN_END_FAILED + 1);
  return names[end];
}
