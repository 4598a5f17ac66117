/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TRAIN_ENDED_H_
#define WEIR_TRAIN_ENDED_H_

#include "runtime/base/json/json.h"
#include "runtime/base/sv.h"
#include "runtime/train/progress.h"

/* What a checkpoint tells those that follow a training: whether it has ended
 * with it, and which of the training's checkpoints it is. Two keys of the
 * manifest's `extra`; older versions pass them over. */

typedef struct weir_train_ended {
  weir_train_end end; /* GOING: it goes on, or nobody knows */
  uint64_t saves;     /* this is so manieth; 0: not known */
} weir_train_ended;

/* Whether a training with that end has done what it was to do. One that was
 * stopped or has failed may be taken up again. */
bool weir_train_is_over(weir_train_end end);

/* Writes the keys into the object that |w| is in. */
void weir_train_ended_write(weir_json_writer *w, const weir_train_ended *ended);

/* Reads them from |extra|, a JSON object, or empty. What is not there, or no
 * value of these keys, is not known. Errors: W6001. */
weir_status weir_train_ended_read(weir_sv extra, weir_train_ended *out_ended,
                                  weir_error *err);

#endif
