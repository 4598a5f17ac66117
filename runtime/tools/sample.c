/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/sample.h"
#include "runtime/api/weir_internal.h"
#include "runtime/tools/tools.h"

/* Texts drawn from language models, for the command. */

weir_status weir_tools_sample(weir_session *session,
                              const weir_tools_sample_opts *opts,
                              weir_error *err) {
  if (session == NULL) return weir_fail_null(err, "session");
  if (opts->data == NULL || opts->prompt == NULL || opts->write == NULL)
    return weir_fail_null(err, "weir_tools_sample_opts: data, prompt or write");
  weir_pool *pool = NULL;
  WEIR_TRY(weir_runtime_pool(session->runtime, &pool, err));
  weir_sample_options options = {.data = weir_sv_from(opts->data),
                                 .dataset = {.root = opts->data_root,
                                             .seed = opts->seed,
                                             .getenv = opts->getenv,
                                             .getenv_self = opts->getenv_self,
                                             .pool = pool},
                                 .prompt = weir_sv_from(opts->prompt),
                                 .count = opts->count,
                                 .temperature = opts->temperature,
                                 .seed = opts->seed,
                                 .out = {opts->self, opts->write}};
  return weir_sample(&session->runtime->env, session->graph, session->exec,
                     &options, err);
}
