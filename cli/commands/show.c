/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/table.h"
#include "cli/train.h"
#include "runtime/base/quantity.h"

static int fail_usage(const char *what, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  if (cli_error(&err, "W0001", "weir show %s: %s", what, says) == WEIR_OK)
    return 0;
  cli_hint(
      &err,
      "weir show ops | op NAME | blocks | graph FILE | data GRAPH [SET] | "
      "tensor FILE "
      "| devices | errors | passes | sources | formats | placers | objectives");
  return cli_fail(&err);
}

static int show_ops(const cli_args *args) {
  size_t count = weir_tools_op_count();
  if (args->devices) {
    (void)weir_tools_op_devices(args->json, cli_out, NULL);
    return 0;
  }
  if (args->json) cli_print("[");
  for (size_t i = 0; i < count; i++) {
    if (!args->json) {
      cli_print("%-20s %s\n", weir_tools_op_name(i), weir_tools_op_summary(i));
      continue;
    }
    if (i != 0) cli_print(",");
    weir_tools_op_write(i, true, cli_out, NULL);
  }
  if (args->json) cli_print("]\n");
  return 0;
}

/* Blocks of the library, which are called like ops. */
static int show_blocks(const cli_args *args) {
  char name[64], summary[160];
  weir_json_writer w;
  if (args->json) cli_json_list_begin(&w);
  for (size_t i = 0;
       weir_tools_block(i, name, sizeof name, summary, sizeof summary); i++) {
    if (!args->json) {
      cli_print("%-20s %s\n", name, summary);
      continue;
    }
    weir_json_object_begin(&w, true);
    weir_json_key_text(&w, "name", weir_sv_from(name));
    weir_json_key_text(&w, "summary", weir_sv_from(summary));
    weir_json_object_end(&w);
  }
  if (args->json) cli_json_list_end(&w);
  return 0;
}

static int show_op(const cli_args *args, const char *name) {
  const char *names[512];
  char blocks[32][64], summary[160];
  size_t count = weir_tools_op_count();
  int64_t found = weir_tools_op_find(name);
  if (found >= 0) {
    weir_tools_op_write((size_t)found, args->json, cli_out, NULL);
    return 0;
  }
  if (weir_tools_block_write(name, args->json, cli_out, NULL)) return 0;
  if (count > 480) count = 480;
  for (size_t i = 0; i < count; i++) names[i] = weir_tools_op_name(i);
  for (size_t i = 0; i < 32; i++) {
    if (!weir_tools_block(i, blocks[i], sizeof blocks[i], summary,
                          sizeof summary))
      break;
    names[count++] = blocks[i];
  }
  int64_t nearest = weir_tools_nearest(name, count, names);
  char hint[128] = "`weir show ops` lists them";
  if (nearest >= 0)
    snprintf(hint, sizeof hint, "did you mean %s?", names[nearest]);
  weir_error err = WEIR_ERROR_INIT;
  if (cli_error(&err, "W1102", "unknown op %s", name) == WEIR_OK) return 0;
  cli_hint(&err, "%s", hint);
  return cli_fail(&err);
}

static int show_graph(const cli_args *args, const char *path) {
  weir_error err = WEIR_ERROR_INIT;
  cli_job job;
  int code = cli_job_open(&job, args, 1);
  if (code == 0) code = cli_job_load(&job, args, path);
  if (code == 0 && weir_tools_graph_write(job.graph, args->after, args->json,
                                          cli_out, NULL, &err) != WEIR_OK)
    code = cli_fail(&err);
  cli_job_close(&job);
  return code;
}

static int show_data(const cli_args *args, const char *path) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tools_data what = {.name = args->rest_count > 2 ? args->rest[2] : NULL,
                          .data_root = args->data_root,
                          .seed = (uint64_t)args->seed};
  cli_job job;
  int code = cli_job_open(&job, args, 1);
  if (code == 0) code = cli_job_load(&job, args, path);
  if (code == 0 &&
      weir_tools_data_show(job.runtime, job.graph, &what, args->json, cli_out,
                           NULL, &err) != WEIR_OK)
    code = cli_fail(&err);
  cli_job_close(&job);
  return code;
}

static int show_tensor(const cli_args *args, const char *path) {
  weir_error err = WEIR_ERROR_INIT;
  weir_tensor *tensor = NULL;
  char text[4096];
  cli_job job;
  int code = cli_job_open(&job, args, 1);
  if (code != 0) return code;
  bool is_stdin = strcmp(path, "-") == 0;
  snprintf(text, sizeof text, "%s%s", is_stdin ? "" : "@", path);
  if (cli_value_read(job.runtime, NULL, text, NULL, &tensor, &err) != WEIR_OK) {
    code = cli_fail(&err);
  } else if (args->json) {
    const weir_tensor *t = tensor;
    weir_tools_outputs_json(1, &path, &t, cli_out, NULL);
  } else {
    weir_tools_tensor_print(path, tensor, args->full, cli_out, NULL);
  }
  weir_tensor_release(tensor);
  cli_job_close(&job);
  return code;
}

static int show_devices(const cli_args *args) {
  long cores = sysconf(_SC_NPROCESSORS_ONLN);
  long long bytes = (long long)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  const char *name = "/job:localhost/task:0/device:CPU:0";
  if (!args->json) {
    char memory[WEIR_QUANTITY_TEXT];
    cli_print("%s  %ld cores, %s\n", name, cores,
              weir_quantity_print_bytes(bytes, memory));
    return 0;
  }
  weir_json_writer w;
  cli_json_list_begin(&w);
  weir_json_object_begin(&w, true);
  weir_json_key_text(&w, "name", weir_sv_from(name));
  weir_json_key_int(&w, "cores", cores);
  weir_json_key_int(&w, "memory", bytes);
  weir_json_object_end(&w);
  cli_json_list_end(&w);
  return 0;
}

static void list_errors(weir_json_writer *w) {
  cli_json_list_begin(w);
  for (int i = 0; weir_error_id_at(i) != NULL; i++) {
    const char *id = weir_error_id_at(i);
    weir_json_object_begin(w, true);
    weir_json_key_text(w, "id", weir_sv_from(id));
    weir_json_key_int(w, "exit", weir_error_exit_code(id));
    weir_json_key_text(w, "title", weir_sv_from(weir_error_title(id)));
    weir_json_object_end(w);
  }
  cli_json_list_end(w);
}

static int show_errors(const cli_args *args) {
  weir_json_writer w;
  if (args->json) {
    list_errors(&w);
    return 0;
  }
  for (int i = 0; weir_error_id_at(i) != NULL; i++) {
    const char *id = weir_error_id_at(i);
    cli_print("%s  exit %-3d  %s\n", id, weir_error_exit_code(id),
              weir_error_title(id));
  }
  return 0;
}

/* ---- Subjects */

static int show_rows(const cli_args *args,
                     bool (*row_at)(size_t i, weir_tools_row *out_row)) {
  weir_tools_row row;
  weir_json_writer w;
  if (args->json) cli_json_list_begin(&w);
  for (size_t i = 0; row_at(i, &row); i++) {
    if (!args->json) {
      cli_print("%-12s %s\n", row.name, row.summary);
      continue;
    }
    weir_json_object_begin(&w, true);
    weir_json_key_text(&w, "name", weir_sv_from(row.name));
    weir_json_key_text(&w, "summary", weir_sv_from(row.summary));
    weir_json_object_end(&w);
  }
  if (args->json) cli_json_list_end(&w);
  return 0;
}

/* A subject of `weir show`: one that is named, a list as |all| prints it, or a
 * list of the library. */
static const struct subject {
  const char *name;
  int (*one)(const cli_args *args, const char *name);
  int (*all)(const cli_args *args);
  bool (*row)(size_t i, weir_tools_row *out_row);
  size_t most; /* words after the subject */
} kSubjects[] = {
    {.name = "ops", .all = show_ops},
    {.name = "op", .one = show_op, .most = 1},
    {.name = "blocks", .all = show_blocks},
    {.name = "graph", .one = show_graph, .most = 1},
    {.name = "data", .one = show_data, .most = 2},
    {.name = "tensor", .one = show_tensor, .most = 1},
    {.name = "devices", .all = show_devices},
    {.name = "errors", .all = show_errors},
    {.name = "passes", .row = weir_tools_pass},
    {.name = "sources", .row = weir_tools_source},
    {.name = "formats", .row = weir_tools_format},
    {.name = "placers", .row = weir_tools_placer},
    {.name = "objectives", .row = weir_tools_objective},
};

/* A file is known by its ending: `weir show x.npy`. */
static int show_file(const cli_args *args, const char *path) {
  if (weir_tools_tensor_file(path)) return show_tensor(args, path);
  if (strstr(path, ".yaml") != NULL) return show_graph(args, path);
  return fail_usage(path, "expected a known subject");
}

static int show_command(const cli_args *args) {
  const char *what = args->rest[0];
  size_t words = args->rest_count - 1;
  if (args->color != NULL) cli_color_set(args->color);
  for (size_t i = 0; i < sizeof kSubjects / sizeof kSubjects[0]; i++) {
    const struct subject *s = &kSubjects[i];
    if (strcmp(what, s->name) != 0) continue;
    if (words > s->most)
      return fail_usage(
          what, s->most == 0 ? "it takes no name" : "it takes one name");
    if (words == 0 && s->one != NULL) return fail_usage(what, "which one?");
    if (s->one != NULL) return s->one(args, args->rest[1]);
    return s->all != NULL ? s->all(args) : show_rows(args, s->row);
  }
  return words == 0 ? show_file(args, what)
                    : fail_usage(what, "expected a known subject");
}

static const cli_option options[] = {
    GRAPH_OPTIONS,
    NAMED("after", "PASS", after, weir_tools_pass,
          "show the graph after this pass"),
    FLAG("devices", 0, devices,
         "of ops: the kinds of devices that have kernels for each"),
    DATA_ROOT,
    JSON,
    FULL,
    COLOR,
    HELP,
    END};

static const cli_effect effects[] = {
    {.option = "after", .of = "graph"},
    {.option = "devices", .of = "ops"},
    {.option = "data-root", .of = "data"},
    {.option = "full", .of = "tensor"},
    {.option = "param", .of = "graph|data"},
    {.option = "seed", .of = "graph|data"},
    {.option = "limit", .of = "graph|data|tensor"},
    {.option = NULL},
};

const cli_command cli_command_show = {
    .name = "show",
    .synopsis =
        "ops | op NAME | blocks | graph GRAPH | data GRAPH [SET] | tensor FILE "
        "| "
        "devices | errors | passes | sources | formats | placers | objectives",
    .summary = "show ops, graphs, data sets, tensor files and lists",
    .text =
        "ops lists the operations, blocks the layers of std/nn, op NAME prints "
        "the manual of\none; graph prints the nodes with their types, as they "
        "are after a pass; data reads\nthe data sets and prints columns, "
        "examples, batches and first rows; tensor prints a\ntensor file; "
        "passes, sources, formats, placers and objectives list the values of"
        "\noptions and keys. ops --devices shows the kernels of each op: on "
        "CPUs, on GPUs.",
    .examples =
        "  weir show op conv2d\n"
        "  weir show ops --devices\n"
        "  weir show op nn.conv\n"
        "  weir show graph graphs/lenet.weir.yaml --after fuse\n"
        "  weir show data graphs/lenet.weir.yaml train\n"
        "  weir show tensor x.npy\n",
    .options = options,
    .effects = effects,
    .min_rest = 1,
    .max_rest = 3,
    .run = show_command,
};
