/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tune/timed.h"

#include <stdio.h>
#include <string.h>

#include "kernels/tune/trial.h"

static const char kWord[] = "the quickest when timed (weir tune)";

static const char *name_of(const weir_trial_kernel *k) {
  return k->group != NULL ? k->group->name : k->kernel->name;
}

/* The place of |name| among those that accept, or -1. */
static int find(const weir_trial *trial, const char *name) {
  for (int i = 0; i < trial->count; i++)
    if (strcmp(name_of(&trial->kernels[i]), name) == 0) return i;
  return -1;
}

/* The choice among trial's kernels; -1: none was timed. */
static weir_status choose(const weir_env *env, bool may_run, const char *text,
                          weir_trial *trial, int *out, weir_error *err) {
  weir_tune_call choice = {.ns = 0};
  *out = -1;
  if (weir_tuned_kernel(env->tuned, text, choice.kernel)) {
    *out = find(trial, choice.kernel);
    return WEIR_OK;
  }
  if (!may_run || trial->count < 2 || !weir_tuned_times(env->tuned))
    return WEIR_OK;
  WEIR_TRY(weir_trial_run(env, trial, out, err));
  snprintf(choice.text, sizeof choice.text, "%s", text);
  snprintf(choice.kernel, sizeof choice.kernel, "%s",
           name_of(&trial->kernels[*out]));
  choice.ns = trial->kernels[*out].ns;
  if (choice.ns == INT64_MAX) { /* no kernel takes such values */
    *out = -1;
    return WEIR_OK;
  }
  return weir_tuned_add(env->tuned, &choice, err);
}

weir_status weir_timed_kernel(const weir_env *env,
                              const weir_registry *registry, bool may_run,
                              const weir_call *call,
                              const weir_kernel_def **kernel,
                              const char **out_word, weir_error *err) {
  const weir_kernel_def *all[WEIR_TRIAL_KERNELS];
  char text[WEIR_TUNE_CALL_BYTES];
  weir_trial trial = {.call = call};
  int at;
  *out_word = NULL;
  trial.count = weir_kernel_all(registry, call, (*kernel)->device, all,
                                WEIR_TRIAL_KERNELS);
  if (trial.count < 2) return WEIR_OK;
  for (int i = 0; i < trial.count; i++) trial.kernels[i].kernel = all[i];
  weir_tune_text_of_call(call, text);
  WEIR_TRY(choose(env, may_run, text, &trial, &at, err));
  if (at < 0) return WEIR_OK;
  *kernel = all[at];
  *out_word = kWord;
  return WEIR_OK;
}

weir_status weir_timed_group(const weir_env *env, const weir_registry *registry,
                             bool may_run, const weir_group *group,
                             const weir_group_kernel_def **kernel,
                             const char **out_word, weir_error *err) {
  const weir_group_kernel_def *all[WEIR_TRIAL_KERNELS];
  char text[WEIR_TUNE_CALL_BYTES];
  weir_trial trial = {.group = group};
  int at;
  *out_word = NULL;
  trial.count = weir_group_kernel_all(registry, group, (*kernel)->device, all,
                                      WEIR_TRIAL_KERNELS);
  if (trial.count < 2) return WEIR_OK;
  for (int i = 0; i < trial.count; i++) trial.kernels[i].group = all[i];
  weir_tune_text_of_group(group, text);
  WEIR_TRY(choose(env, may_run, text, &trial, &at, err));
  if (at < 0) return WEIR_OK;
  *kernel = all[at];
  *out_word = kWord;
  return WEIR_OK;
}
