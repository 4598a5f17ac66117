/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_PREDICT_RUNNER_H_
#define WEIR_DIST_PREDICT_RUNNER_H_

#include "runtime/dist/predict/service_internal.h"

/* A thread that carries out batches. */

/* Makes all that it needs to run without asking for memory but for answers.
 * Release |runner| also after a failure. Errors: those of weir_exec_bind. */
weir_status weir_predict_runner_init(weir_predict_service *s,
                                     weir_predict_runner *runner,
                                     weir_error *err);
void weir_predict_runner_release(weir_predict_runner *runner);
/* The thread of a runner; |self| is it. */
void *weir_predict_runner_main(void *self);

#endif
