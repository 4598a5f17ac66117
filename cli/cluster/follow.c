/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster/follow.h"

#include "cli/json.h"
#include "cli/system.h"
#include "cli/term/log.h"
#include "cli/train.h"

/* ---- The last line */

static void json_end(const weir_train_followed *f) {
  weir_json_writer w;
  cli_json_begin(&w);
  weir_json_key_text(&w, "event", weir_sv_from("end"));
  weir_json_key_text(&w, "reason", weir_sv_from(weir_train_end_name(f->end)));
  weir_json_key_uint(&w, "step", f->step);
  weir_json_key_uint(&w, "evaluations", f->evaluations);
  weir_json_key_uint(&w, "skipped", f->skipped);
  cli_json_end(&w);
}

static void log_end(const weir_train_followed *f) {
  cli_log_begin("info", "end");
  cli_log_text("reason", weir_train_end_name(f->end));
  cli_log_uint("step", f->step);
  cli_log_uint("evaluations", f->evaluations);
  cli_log_uint("skipped", f->skipped);
  cli_log_end();
}

static void say_end(cli_train_view *view, const weir_train_followed *f) {
  cli_train_view_clear(view);
  if (view->json)
    json_end(f);
  else if (view->bar)
    cli_note("%s: step %llu, %llu checkpoints evaluated, %llu skipped\n",
             cli_train_end_why(f->end), (unsigned long long)f->step,
             (unsigned long long)f->evaluations,
             (unsigned long long)f->skipped);
  else if (!view->quiet)
    log_end(f);
}

/* ---- The work */

int cli_follow(cli_job *job, const cli_args *args,
               const weir_session_opts *session) {
  weir_error err = WEIR_ERROR_INIT;
  weir_trainer *trainer = NULL;
  cli_train_view view;
  cli_train_view_init(&view, args);
  weir_train_callbacks calls = cli_train_view_calls(&view);
  weir_train_opts opts = {.struct_size = sizeof opts,
                          .seed = (uint64_t)args->seed,
                          .steps = (uint64_t)args->steps,
                          .epochs = (uint64_t)args->epochs,
                          .eval_only = true,
                          .follow = true,
                          .follow_after = (uint64_t)args->after_step,
                          .data_root = args->data_root,
                          .checkpoint = args->checkpoint,
                          .events = args->events,
                          .out = args->run_folder,
                          .time_ns = cli_wall_ns(),
                          .session = session,
                          .callbacks = &calls,
                          .getenv = cli_look_up_env};
  weir_train_followed followed = {.struct_size = sizeof followed};
  weir_status s =
      weir_trainer_create(job->runtime, job->graph, &opts, &trainer, &err);
  if (s == WEIR_OK) {
    view.trainer = trainer;
    cli_signals_watch_trainer(trainer);
    s = weir_trainer_follow(trainer, args->data, &followed, &err);
    cli_signals_watch(NULL);
  }
  if (s == WEIR_OK) say_end(&view, &followed);
  cli_train_view_clear(&view);
  int code = s == WEIR_OK ? 0 : cli_fail(&err);
  weir_trainer_release(trainer);
  return code != 0 ? code : cli_signal_code(0);
}
