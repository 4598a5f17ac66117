/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cluster/serve.h"

#include "cli/cluster/cluster.h"
#include "cli/cluster/dealt.h"
#include "cli/json.h"

/* weir predict --serve: a server of predictions in this process. */

static void on_event(void *self, const char *text) {
  (void)self;
  cli_note("[serve] %s\n", text);
}

/* |tls| is lent to the result. With certificates --insecure is the cluster's.
 */
static weir_serve_opts options_of(const cli_args *args, weir_tls_opts *tls) {
  *tls = (weir_tls_opts){.struct_size = sizeof *tls,
                         .ca = args->tls_ca,
                         .cert = args->tls_cert,
                         .key = args->tls_key};
  weir_serve_opts o = {.struct_size = sizeof o,
                       .insecure = args->insecure && args->tls_cert == NULL,
                       .tls = args->tls_cert != NULL ? tls : NULL,
                       .address = args->serve,
                       .batch = (uint32_t)args->batch_rows,
                       .queue = (uint32_t)args->queue,
                       .batch_wait_ns = args->batch_wait_ns};
  if (!args->quiet) o.on_event = on_event;
  return o;
}

static double mean_of(uint64_t sum, uint64_t count) {
  return count > 0 ? (double)sum / (double)count : 0;
}

static void print_json(const weir_serve_stats *s) {
  weir_json_writer w;
  cli_json_begin(&w);
  weir_json_key_uint(&w, "answered", s->answered);
  weir_json_key_uint(&w, "refused", s->refused);
  weir_json_key_uint(&w, "wrong", s->wrong);
  weir_json_key_uint(&w, "failed", s->failed);
  weir_json_key_uint(&w, "late", s->late);
  weir_json_key_uint(&w, "batches", s->batches);
  weir_json_key_uint(&w, "rows", s->rows);
  weir_json_key_uint(&w, "batch_rows", s->batch_rows);
  weir_json_key_uint(&w, "largest_batch", s->largest);
  weir_json_key_int(&w, "p50_ns", s->p50_ns);
  weir_json_key_int(&w, "p99_ns", s->p99_ns);
  cli_json_end(&w);
}

static void print_text(const weir_serve_stats *s) {
  cli_print(
      "requests  %llu answered, %llu refused, %llu wrong, %llu failed, "
      "%llu late\n",
      (unsigned long long)s->answered, (unsigned long long)s->refused,
      (unsigned long long)s->wrong, (unsigned long long)s->failed,
      (unsigned long long)s->late);
  cli_print("batches   %llu, %.1f rows each, at most %llu requests\n",
            (unsigned long long)s->batches, mean_of(s->rows, s->batches),
            (unsigned long long)s->largest);
  cli_print("latency   p50 %.3f ms, p99 %.3f ms\n", (double)s->p50_ns * 1e-6,
            (double)s->p99_ns * 1e-6);
}

int cli_serve(cli_job *job, const cli_args *args) {
  weir_error err = WEIR_ERROR_INIT;
  weir_predict_server *server = NULL;
  if (args->insecure && args->tls_cert != NULL && args->tasks == NULL) {
    cli_error(&err, "W0001",
              "--insecure has no effect with --tls-cert: all requests are "
              "encrypted");
    return cli_fail(&err);
  }
  weir_tls_opts tls;
  weir_serve_opts opts = options_of(args, &tls);
  cli_dealt_stop(job->dealt); /* lines of the server's own come instead */
  cli_cluster_prepare();
  weir_status s =
      weir_predict_server_create(job->session, &opts, &server, &err);
  if (s == WEIR_OK) {
    cli_signals_watch_predictor(server);
    s = weir_predict_server_run(server, &err);
    cli_signals_watch(NULL);
  }
  weir_serve_stats stats = {.struct_size = sizeof stats};
  if (s == WEIR_OK) s = weir_predict_server_stat(server, &stats, &err);
  if (s == WEIR_OK) (cli_is_json(args) ? print_json : print_text)(&stats);
  int code = s == WEIR_OK ? 0 : cli_fail(&err);
  weir_predict_server_release(server);
  if (code == 0) cli_dealt_say(job, args);
  return code;
}
