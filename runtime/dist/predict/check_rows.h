/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_CHECK_ROWS_H_
#define WEIR_DIST_PREDICT_CHECK_ROWS_H_

#include "runtime/dist/predict/slots.h"

/* Whether the rows of a batch depend on each other. */

/* Runs batches of random rows and compares: a row must give the same bits at
 * another place, beside other rows, and in a batch of another size. Sizes for
 * which it does not are taken out of |model|; if the largest fails, the model
 * runs each request by itself from now on. |slots| are of that model, and are
 * to be made again when its sizes have changed. Errors: of the runs, for lack
 * of memory or of a peer; other failures are a reason to run alone. */
weir_status weir_predict_check_rows(weir_predict_slots *slots,
                                    weir_predict_model *model, weir_error *err);

#endif
