/* SPDX-License-Identifier: Apache-2.0 */
/* weir schema: the graph file's JSON Schema, for editors. */
#include "cli/table.h"

static int schema_command(const cli_args *args) {
  (void)args;
  weir_tools_schema(cli_out, NULL); /* cli_out keeps a failure */
  return 0;
}

static const cli_option options[] = {HELP, END};

const cli_command cli_command_schema = {
    .name = "schema",
    .synopsis = "[options]",
    .summary = "a JSON Schema of the graph file, for editors",
    .text =
        "Draft 2020-12. An editor that knows it completes keys and underlines "
        "unknown ones; weir check knows the rest. With yaml-language-server "
        "begin a graph with: # yaml-language-server: $schema=weir.schema.json",
    .examples =
        "  weir schema > weir.schema.json\n"
        "  weir schema | head\n",
    .options = options,
    .min_rest = 0,
    .max_rest = 0,
    .run = schema_command,
};
