/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "cli/table.h"

static int fail_usage(const char *what, const char *says) {
  weir_error err = WEIR_ERROR_INIT;
  if (cli_error(&err, "W0001", "weir show %s: %s", what, says) == WEIR_OK)
    return 0;
  cli_hint(
      &err,
      "weir show ops | op NAME | graph FILE | data GRAPH [SET] | tensor FILE "
      "| devices | errors");
  return cli_fail(&err);
}

static int show_ops(const cli_args *args) {
  size_t count = weir_tools_op_count();
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

static int show_op(const cli_args *args, const char *name) {
  const char *names[512];
  size_t count = weir_tools_op_count();
  int64_t found = weir_tools_op_find(name);
  if (found >= 0) {
    weir_tools_op_write((size_t)found, args->json, cli_out, NULL);
    return 0;
  }
  if (count > 512) count = 512;
  for (size_t i = 0; i < count; i++) names[i] = weir_tools_op_name(i);
  int64_t nearest = weir_tools_nearest(name, count, names);
  char hint[128] = "`weir show ops` lists them";
  if (nearest >= 0)
    snprintf(hint, sizeof hint, "did you mean %s?", names[nearest]);
  weir_error err = WEIR_ERROR_INIT;
  if (cli_error(&err, "W1102", "there is no op %s", name) == WEIR_OK) return 0;
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
  weir_tools_data what = {.struct_size = sizeof what,
                          .name = args->rest_count > 2 ? args->rest[2] : NULL,
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
  if (args->json)
    cli_print("[{\"name\": \"%s\", \"cores\": %ld, \"memory\": %lld}]\n", name,
              cores, bytes);
  else
    cli_print("%s  %ld cores, %lld MiB\n", name, cores, bytes >> 20);
  return 0;
}

static int show_errors(const cli_args *args) {
  if (args->json) cli_print("[");
  for (int i = 0; weir_error_id_at(i) != NULL; i++) {
    const char *id = weir_error_id_at(i);
    if (args->json)
      cli_print("%s{\"id\": \"%s\", \"exit\": %d, \"title\": \"%s\"}",
                i != 0 ? ",\n " : "", id, weir_error_exit_code(id),
                weir_error_title(id));
    else
      cli_print("%s  exit %-3d  %s\n", id, weir_error_exit_code(id),
                weir_error_title(id));
  }
  if (args->json) cli_print("]\n");
  return 0;
}

/* A file that says by its name what it is. */
static bool is_tensor_file(const char *path) {
  static const char *const ends[] = {".npy", ".npz", ".safetensors", "ubyte",
                                     ".gz"};
  size_t size = strlen(path);
  for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
    size_t n = strlen(ends[i]);
    if (size > n && strcmp(path + size - n, ends[i]) == 0) return true;
  }
  return strchr(path, '#') != NULL;
}

static int show_command(const cli_args *args) {
  const char *what = args->rest[0];
  const char *name = args->rest_count > 1 ? args->rest[1] : NULL;
  if (args->color != NULL) cli_color_set(args->color);
  if (name == NULL) {
    if (strcmp(what, "ops") == 0) return show_ops(args);
    if (strcmp(what, "devices") == 0) return show_devices(args);
    if (strcmp(what, "errors") == 0) return show_errors(args);
    if (is_tensor_file(what)) return show_tensor(args, what);
    if (strstr(what, ".yaml") != NULL) return show_graph(args, what);
    return fail_usage(what, "there is nothing of that name to show");
  }
  if (strcmp(what, "data") == 0) return show_data(args, name);
  if (args->rest_count > 2) return fail_usage(what, "it takes one name");
  if (strcmp(what, "op") == 0) return show_op(args, name);
  if (strcmp(what, "graph") == 0) return show_graph(args, name);
  if (strcmp(what, "tensor") == 0) return show_tensor(args, name);
  return fail_usage(what, "it takes no name");
}

static const cli_option options[] = {
    GRAPH_OPTIONS,
    CHOICE("after", 0, "load|gradients|train|mesh|simplify|fuse", after, NULL,
           "show the graph after this pass"),
    TEXT("data-root", 0, "DIR", data_root, "WEIR_DATA_ROOT",
         "open data files beneath DIR only"),
    FLAG("json", 0, json, "as JSON"),
    FLAG("full", 0, full, "print every element of large tensors"),
    COLOR,
    HELP,
    END};

const cli_command cli_command_show = {
    .name = "show",
    .synopsis =
        "ops | op NAME | graph GRAPH | data GRAPH [SET] | tensor FILE | "
        "devices | "
        "errors",
    .summary = "show ops, graphs, data sets, tensor files, devices, errors",
    .text =
        "ops lists the operations, op NAME prints one's manual; graph prints "
        "the "
        "nodes with\ntheir types, as they are after a pass; data reads the "
        "data "
        "sets and prints\ncolumns, examples, batches and first rows; tensor "
        "prints a tensor file.",
    .examples =
        "  weir show op conv2d\n"
        "  weir show graph graphs/lenet.weir.yaml --after fuse\n"
        "  weir show data graphs/lenet.weir.yaml train\n"
        "  weir show tensor x.npy\n",
    .options = options,
    .min_rest = 1,
    .max_rest = 3,
    .run = show_command,
};
