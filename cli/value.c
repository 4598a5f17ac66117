/* SPDX-License-Identifier: Apache-2.0 */
/* Values of inputs: literals, files, standard input, random numbers. Random
 * ones depend on (seed, index) alone, so a run can be repeated; integers stay
 * below 8, as most are indices or labels. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/system.h"

enum { STDIN_LIMIT = 1 << 30 };

/* ---- Lists of tensors */

/* Takes |tensor| on success. */
static weir_status tensors_add(cli_tensors *t, const char *name,
                               size_t name_size, weir_tensor *tensor,
                               weir_error *err) {
  if (t->count == t->capacity) {
    size_t capacity = t->capacity * 2 + 8;
    char **names = realloc(t->names, capacity * sizeof *names);
    if (names != NULL) t->names = names;
    weir_tensor **items = realloc(t->items, capacity * sizeof *items);
    if (items != NULL) t->items = items;
    if (names == NULL || items == NULL) return cli_no_memory(err);
    t->capacity = capacity;
  }
  char *copy = strndup(name, name_size);
  if (copy == NULL) return cli_no_memory(err);
  t->names[t->count] = copy;
  t->items[t->count++] = tensor;
  return WEIR_OK;
}

weir_feed *cli_tensors_feeds(const cli_tensors *t) {
  weir_feed *feeds = calloc(t->count + 1, sizeof *feeds);
  for (size_t i = 0; feeds != NULL && i < t->count; i++)
    feeds[i] = (weir_feed)WEIR_FEED(t->names[i], t->items[i]);
  return feeds;
}

void cli_tensors_release(cli_tensors *t) {
  for (size_t i = 0; i < t->count; i++) {
    free(t->names[i]);
    weir_tensor_release(t->items[i]);
  }
  free(t->names);
  free(t->items);
  *t = (cli_tensors){0};
}

/* ---- Random */

/* A well-mixed 64-bit number of (seed, i): the finaliser of SplitMix64. */
static uint64_t mix(uint64_t seed, uint64_t i) {
  uint64_t z = (seed + 1) * 0x9e3779b97f4a7c15u + i * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Fills with numbers that depend on |seed| only. */
static void random_fill(weir_tensor *tensor, uint64_t seed) {
  weir_tensor_info info = {.struct_size = sizeof info};
  void *data = weir_tensor_mutable_data(tensor);
  if (weir_tensor_desc(tensor, &info) != WEIR_OK || data == NULL) return;
  for (int64_t i = 0; i < info.elements; i++) {
    uint64_t bits = mix(seed, (uint64_t)i);
    double unit = (double)(bits >> 11) * 0x1p-53 * 2 - 1; /* [-1, 1) */
    switch (info.dtype) {
      case WEIR_F32:
        ((float *)data)[i] = (float)unit;
        break;
      case WEIR_F64:
        ((double *)data)[i] = unit;
        break;
      case WEIR_I32:
        ((int32_t *)data)[i] = (int32_t)(bits % 8);
        break;
      case WEIR_I64:
        ((int64_t *)data)[i] = (int64_t)(bits % 8);
        break;
      case WEIR_U8:
        ((uint8_t *)data)[i] = (uint8_t)(bits & 255);
        break;
      default:
        ((uint8_t *)data)[i] = (uint8_t)(bits & 1);
    }
  }
}

/* A random tensor like |like|; unknown dimensions are 1. */
static weir_status random_like(weir_runtime *runtime, const weir_io_desc *like,
                               uint64_t seed, weir_tensor **out_tensor,
                               weir_error *err) {
  int64_t dims[WEIR_RANK_LIMIT];
  if (like == NULL || like->rank < 0)
    return cli_error(err, "W0002", "random needs an input of known rank");
  for (int32_t i = 0; i < like->rank; i++)
    dims[i] = like->dims[i] < 0 ? 1 : like->dims[i];
  WEIR_TRY(weir_tensor_create(runtime, like->dtype, like->rank, dims,
                              out_tensor, err));
  random_fill(*out_tensor, seed);
  return WEIR_OK;
}

static weir_status read_random(weir_runtime *runtime, const char *text,
                               const weir_io_desc *like,
                               weir_tensor **out_tensor, weir_error *err) {
  int64_t seed = 0;
  if (*text != '\0' &&
      (strncmp(text, ":seed=", 6) != 0 || !cli_parse_int(text + 6, &seed)))
    return cli_error(err, "W0002", "random%s, expected random:seed=N", text);
  return random_like(runtime, like, (uint64_t)seed, out_tensor, err);
}

/* ---- Files: @path#member[from:to] */

static weir_status take_rows(weir_runtime *runtime, const char *range,
                             weir_tensor **tensor, weir_error *err) {
  weir_tensor_info info = {.struct_size = sizeof info};
  weir_tensor *part = NULL;
  long long from = 0, to = 0;
  int end = 0;
  if (sscanf(range, "[%lld:%lld]%n", &from, &to, &end) != 2 ||
      range[end] != '\0' || from < 0 || to < from)
    return cli_error(err, "W0002", "\"%s\", expected rows as [0:8]", range);
  WEIR_TRY(weir_tensor_desc(*tensor, &info));
  if (info.rank == 0 || to > info.dims[0])
    return cli_error(err, "W4009", "rows %s of a tensor that has %lld", range,
                     info.rank == 0 ? 0LL : (long long)info.dims[0]);
  size_t row = info.dims[0] != 0 ? info.bytes / (size_t)info.dims[0] : 0;
  info.dims[0] = to - from;
  weir_status s = weir_tensor_from_data(
      runtime,
      &(weir_tensor_spec)WEIR_TENSOR_SPEC(info.dtype, info.rank, info.dims,
                                          row * (size_t)(to - from)),
      (const char *)weir_tensor_data(*tensor) + row * (size_t)from, &part, err);
  if (s != WEIR_OK) return s;
  weir_tensor_release(*tensor);
  *tensor = part;
  return WEIR_OK;
}

static weir_status read_file(weir_runtime *runtime, const char *root,
                             const char *text, weir_tensor **out_tensor,
                             weir_error *err) {
  char *path = strdup(text);
  if (path == NULL) return cli_no_memory(err);
  size_t size = strlen(path);
  char *range = size != 0 && path[size - 1] == ']' ? strrchr(path, '[') : NULL;
  const char *rows = range != NULL ? text + (range - path) : NULL;
  if (range != NULL) *range = '\0';
  char *member = strchr(path, '#');
  if (member != NULL) *member++ = '\0';
  weir_status s =
      weir_tensor_read_file(runtime, root, path, member, out_tensor, err);
  if (s == WEIR_OK && rows != NULL)
    s = take_rows(runtime, rows, out_tensor, err);
  free(path);
  return s;
}

/* Standard input, whose bytes tell the format. */
static weir_status read_stdin(weir_runtime *runtime, const char *member,
                              weir_tensor **out_tensor, weir_error *err) {
  size_t size = 0;
  char *data = cli_read_all(0, STDIN_LIMIT, &size);
  weir_status s;
  if (data == NULL && errno == ENOMEM)
    s = cli_no_memory(err);
  else if (data == NULL)
    s = cli_error(err, "W4001", "standard input: %s", strerror(errno));
  else if (size > STDIN_LIMIT)
    s = cli_error(err, "W4015", "standard input is longer than 1 GiB");
  else
    s = weir_tensor_read_buffer(runtime, data, size, "<stdin>", member,
                                out_tensor, err);
  free(data);
  return s;
}

weir_status cli_value_read(weir_runtime *runtime, const char *data_root,
                           const char *text, const weir_io_desc *like,
                           weir_tensor **out_tensor, weir_error *err) {
  *out_tensor = NULL;
  weir_status s;
  if (text[0] == '@')
    s = read_file(runtime, data_root, text + 1, out_tensor, err);
  else if (strcmp(text, "-") == 0)
    s = read_stdin(runtime, NULL, out_tensor, err);
  else if (strncmp(text, "-#", 2) == 0)
    s = read_stdin(runtime, text + 2, out_tensor, err);
  else if (strncmp(text, "random", 6) == 0)
    s = read_random(runtime, text + 6, like, out_tensor, err);
  else
    s = cli_literal_read(runtime, text, like, out_tensor, err);
  if (s != WEIR_OK) {
    weir_tensor_release(*out_tensor);
    *out_tensor = NULL;
  }
  return s;
}

/* ---- Inputs of a graph */

static weir_status find_input(const cli_job *job, const char *name, size_t size,
                              weir_io_desc *out, weir_error *err) {
  const char *names[64];
  char copies[64][64];
  size_t count = weir_graph_io_count(job->graph, WEIR_INPUT), known = 0;
  for (size_t i = 0; i < count; i++) {
    out->struct_size = sizeof *out;
    WEIR_TRY(weir_graph_io(job->graph, WEIR_INPUT, i, out, err));
    if (out->name_size == size && memcmp(out->name, name, size) == 0)
      return WEIR_OK;
    if (known == 64) continue;
    snprintf(copies[known], sizeof copies[0], "%.*s",
             (int)(out->name_size < 60 ? out->name_size : 60), out->name);
    names[known] = copies[known];
    known++;
  }
  char wanted[64];
  snprintf(wanted, sizeof wanted, "%.*s", (int)(size < 60 ? size : 60), name);
  char list[256] = "";
  size_t used = 0;
  for (size_t i = 0; i < known && used + 70 < sizeof list; i++)
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                             i > 0 ? ", " : "", names[i]);
  weir_status s =
      cli_error(err, "W4011", "the graph has no input %s; it has %s", wanted,
                count > 0 ? list : "none");
  int64_t nearest = weir_tools_nearest(wanted, known, names);
  if (nearest >= 0) cli_hint(err, "did you mean %s?", names[nearest]);
  return s;
}

weir_status cli_input_read(const cli_job *job, const cli_args *args,
                           const char *text, cli_tensors *tensors,
                           weir_error *err) {
  weir_io_desc like = {.struct_size = sizeof like};
  weir_tensor *tensor = NULL;
  const char *equals = strchr(text, '=');
  if (equals == NULL || equals == text)
    return cli_error(err, "W0002", "-i %.80s, expected NAME=VALUE", text);
  size_t size = (size_t)(equals - text);
  WEIR_TRY(find_input(job, text, size, &like, err));
  WEIR_TRY(cli_value_read(job->runtime, args->data_root, equals + 1, &like,
                          &tensor, err));
  weir_status s = tensors_add(tensors, text, size, tensor, err);
  if (s != WEIR_OK) weir_tensor_release(tensor);
  return s;
}

static bool is_fed(const cli_tensors *t, const weir_io_desc *io) {
  for (size_t i = 0; i < t->count; i++)
    if (strlen(t->names[i]) == io->name_size &&
        memcmp(t->names[i], io->name, io->name_size) == 0)
      return true;
  return false;
}

weir_status cli_inputs_random(const cli_job *job, bool defaults,
                              cli_tensors *tensors, weir_error *err) {
  size_t count = weir_graph_io_count(job->graph, WEIR_INPUT);
  for (size_t i = 0; i < count; i++) {
    weir_io_desc io = {.struct_size = sizeof io};
    weir_tensor *tensor = NULL;
    WEIR_TRY(weir_graph_io(job->graph, WEIR_INPUT, i, &io, err));
    if (is_fed(tensors, &io) || (io.has_default && !defaults)) continue;
    WEIR_TRY(random_like(job->runtime, &io, i, &tensor, err));
    weir_status s = tensors_add(tensors, io.name, io.name_size, tensor, err);
    if (s != WEIR_OK) {
      weir_tensor_release(tensor);
      return s;
    }
  }
  return WEIR_OK;
}
