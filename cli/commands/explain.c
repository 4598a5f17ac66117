/* SPDX-License-Identifier: Apache-2.0 */
/* weir explain: the meaning of an error, with a wrong and a right example. */
#include <string.h>

#include "cli/examples.h"
#include "cli/json.h"
#include "cli/table.h"
#include "cli/term/text.h"

static const cli_example *example_of(const char *id) {
  const cli_example *e = cli_examples;
  while (e->id != NULL && strcmp(e->id, id) != 0) e++;
  return e->id != NULL ? e : NULL;
}

static void print_json(const char *id, const cli_example *example) {
  weir_json_writer w;
  cli_json_begin(&w);
  weir_json_key_text(&w, "id", weir_sv_from(id));
  weir_json_key_text(&w, "title", weir_sv_from(weir_error_title(id)));
  weir_json_key_int(&w, "exit", weir_error_exit_code(id));
  weir_json_key_text(&w, "text", weir_sv_from(weir_error_explain(id)));
  if (example != NULL) {
    weir_json_key_text(&w, "wrong", weir_sv_from(example->wrong));
    weir_json_key_text(&w, "right", weir_sv_from(example->right));
  }
  cli_json_end(&w);
}

static int explain_command(const cli_args *args) {
  const char *id = args->rest[0];
  const char *title = weir_error_title(id);
  if (title == NULL) {
    weir_error err = WEIR_ERROR_INIT;
    weir_status s = cli_error(&err, "W0001", "unknown error id %s", id);
    cli_hint(&err, "`weir show errors` lists them");
    return s == WEIR_OK ? 0 : cli_fail(&err);
  }
  const cli_example *example = example_of(id);
  if (args->json) {
    print_json(id, example);
    return 0;
  }
  cli_print("%s: %s (exit code %d)\n\n", id, title, weir_error_exit_code(id));
  cli_wrap(0, 0, weir_error_explain(id));
  if (example == NULL) return 0;
  cli_print("\nWrong\n");
  cli_indent("  ", example->wrong);
  cli_print("\nRight\n");
  cli_indent("  ", example->right);
  return 0;
}

static const cli_option options[] = {JSON, COLOR, HELP, END};

const cli_command cli_command_explain = {
    .name = "explain",
    .synopsis = "ID",
    .summary = "the meaning of an error id, a wrong and a right example",
    .text =
        "Lines of an example that begin with $ are commands; other lines are a "
        "graph, graph.weir.yaml, for weir check where there is no command.",
    .examples = "  weir explain W2012\n  weir explain W0003 --json\n",
    .options = options,
    .min_rest = 1,
    .max_rest = 1,
    .run = explain_command,
};
