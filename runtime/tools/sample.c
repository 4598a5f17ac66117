/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/train/loop/sample.h"
#include "runtime/api/weir_internal.h"
#include "runtime/tools/tools.h"

/* Texts drawn from language models, for the command. */

weir_status weir_tools_sample(weir_session *session,
                              const weir_tools_sample_opts *opts,
                              weir_error *err) {
  weir_tools_sample_opts o;
  if (session == NULL) return weir_fail_null(err, "session");
  WEIR_TRY(weir_opts_read(&o, sizeof o, opts, sizeof o,
                          "weir_tools_sample_opts", err));
  if (o.data == NULL || o.prompt == NULL || o.write == NULL)
    return weir_fail_null(err, "weir_tools_sample_opts: data, prompt or write");
  weir_pool *pool = NULL;
  WEIR_TRY(weir_runtime_pool(session->runtime, &pool, err));
  weir_sample_options options = {.data = weir_sv_from(o.data),
                                 .dataset = {.root = o.data_root,
                                             .seed = o.seed,
                                             .getenv = o.getenv,
                                             .getenv_self = o.getenv_self,
                                             .pool = pool},
                                 .prompt = weir_sv_from(o.prompt),
                                 .count = o.count,
                                 .temperature = o.temperature,
                                 .seed = o.seed,
                                 .out = {o.self, o.write}};
  return weir_sample(&session->runtime->env, session->graph, session->exec,
                     &options, err);
}
