/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/measuring/profiling.h"

#include <stdio.h>
#include <string.h>

weir_status cli_profiling_open(const cli_job *job, const cli_args *a,
                               const weir_tools_profile_opts *opts,
                               weir_tools_profile **out, weir_error *err) {
  *out = NULL;
  if (!a->profile && a->profile_html == NULL) return WEIR_OK;
  return weir_tools_profile_create(job->runtime, opts, out, err);
}

static weir_status write_page(const weir_tools_profile *profile,
                              const cli_job *job, const cli_args *a,
                              const char *command, weir_error *err) {
  char title[512];
  FILE *file;
  snprintf(title, sizeof title, "weir %s %.400s", command, job->path);
  WEIR_TRY(cli_file_create(a->profile_html, &file, err));
  weir_status s =
      weir_tools_profile_page(profile, title, cli_file_write, file, err);
  return cli_file_close(file, a->profile_html, s, err);
}

weir_status cli_profiling_end(weir_tools_profile *profile, const cli_job *job,
                              const cli_args *a, const char *command,
                              weir_error *err) {
  if (profile == NULL) return WEIR_OK;
  WEIR_TRY(weir_tools_profile_finish(profile, err));
  if (weir_tools_profile_steps(profile) == 0)
    cli_note("weir %s: no step was run that could be profiled\n", command);
  if (a->profile_html != NULL)
    WEIR_TRY(write_page(profile, job, a, command, err));
  if (!a->profile || cli_is_json(a)) return WEIR_OK;
  return weir_tools_profile_write(profile, cli_out, NULL, err);
}

void cli_profiling_json(const weir_tools_profile *profile, const cli_args *a,
                        weir_json_writer *w) {
  if (profile == NULL || !a->profile) return;
  weir_json_key(w, "profile");
  weir_tools_profile_json(profile, w);
}

/* ---- What was measured */

/* The processor's name; where the system has none, its features. */
static void machine_name(char *text, size_t size) {
  char line[256];
  const char *name = NULL;
  FILE *file = fopen("/proc/cpuinfo", "re");
  *text = '\0';
  while (file != NULL && *text == '\0' && fgets(line, sizeof line, file)) {
    const char *at = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || at == NULL) continue;
    at += 1 + strspn(at + 1, " \t");
    snprintf(text, size, "%.*s", (int)strcspn(at, "\n"), at);
  }
  if (file != NULL) fclose(file);
  for (size_t i = 0; *text == '\0' && i < 64; i++)
    if (!weir_fact(i, &name, text, size) || strcmp(name, "cpu") != 0)
      *text = '\0';
}

static void write_list(weir_json_writer *w, const char *key,
                       const cli_list *list) {
  weir_json_key(w, key);
  weir_json_array_begin(w, true);
  for (size_t i = 0; i < list->count; i++)
    weir_json_string(w, weir_sv_from(list->items[i]));
  weir_json_array_end(w);
}

void cli_measured_json(const cli_job *job, const cli_args *a,
                       weir_json_writer *w) {
  char machine[256];
  machine_name(machine, sizeof machine);
  weir_json_key_text(w, "graph", weir_sv_from(job->path));
  write_list(w, "params", &a->params);
  write_list(w, "set", &a->overrides);
  weir_json_key_text(w, "machine", weir_sv_from(machine));
  weir_json_key_int(w, "cores", cli_cores());
  weir_json_key_text(w, "isa", weir_sv_from(a->isa != NULL ? a->isa : "best"));
}
