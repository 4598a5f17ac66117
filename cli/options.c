/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/system.h"
#include "runtime/base/quantity.h"

/* ---- Values */

bool cli_parse_int(const char *text, int64_t *out) {
  char *end = NULL;
  const char *digits = *text == '-' ? text + 1 : text;
  if (*digits < '0' || *digits > '9') return false;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno != 0 || *end != '\0') return false;
  *out = value;
  return true;
}

int cli_cores(void) {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return CPU_COUNT(&set);
}

bool cli_parse_time(const char *text, int64_t *out_ns) {
  return weir_quantity_seconds(weir_sv_from(text), out_ns);
}

bool cli_parse_size(const char *text, uint64_t *out) {
  int64_t bytes;
  if (!weir_quantity_bytes(weir_sv_from(text), &bytes)) return false;
  *out = (uint64_t)bytes;
  return true;
}

static bool is_choice(const char *choices, const char *text) {
  size_t size = strlen(text);
  for (const char *c = choices; *c != '\0';) {
    size_t n = strcspn(c, "|");
    if (n == size && memcmp(c, text, n) == 0) return true;
    c += n + (c[n] == '|');
  }
  return false;
}

static bool is_row(const cli_option *o, const char *text) {
  weir_tools_row row;
  for (size_t i = 0; o->row(i, &row); i++)
    if (strcmp(row.name, text) == 0) return true;
  return false;
}

/* "a|b|c" of the option's rows, in |text|. */
static const char *row_names(const cli_option *o, char *text, size_t size) {
  weir_tools_row row;
  size_t n = 0;
  text[0] = '\0';
  for (size_t i = 0; o->row(i, &row) && n < size; i++)
    n += (size_t)snprintf(text + n, size - n, "%s%s", i == 0 ? "" : "|",
                          row.name);
  return text;
}

static weir_status add_item(cli_list *list, const char *text, weir_error *err) {
  const char **items = realloc(list->items, (list->count + 1) * sizeof *items);
  if (items == NULL) return cli_no_memory(err);
  list->items = items;
  list->items[list->count++] = text;
  return WEIR_OK;
}

static weir_status bad_value(const cli_option *o, const char *text,
                             const char *shown, weir_error *err) {
  if (o->kind == CLI_INT && o->max != INT64_MAX)
    return cli_error(err, "W0002",
                     "%s is \"%s\", expected an integer from %lld to %lld",
                     shown, text, (long long)o->min, (long long)o->max);
  static const char *const wants[] = {
      [CLI_FLAG] = "nothing",
      [CLI_TEXT] = "a text",
      [CLI_LIST] = "a text",
      [CLI_INT] = "an integer of 0 or more",
      [CLI_FLOAT] = "a number of 0 or more",
      [CLI_TIME] = "a time such as 30s or 200ms",
      [CLI_CHOICE] = "one of a list"};
  CLI_TABLE_OF(wants, CLI_KIND_COUNT);
  char names[256];
  if (o->kind == CLI_CHOICE)
    return cli_error(
        err, "W0002", "%s is \"%s\", expected one of %s", shown, text,
        o->row == NULL ? o->arg : row_names(o, names, sizeof names));
  return cli_error(err, "W0002", "%s is \"%s\", expected %s", shown, text,
                   wants[o->kind]);
}

weir_status cli_option_set(const cli_option *option, const char *text,
                           cli_args *args, const char *shown, weir_error *err) {
  void *field = (char *)args + option->offset;
  char *end = NULL;
  bool ok = true;
  switch (option->kind) {
    case CLI_FLAG:
      *(bool *)field = true;
      break;
    case CLI_LIST:
      return add_item(field, text, err);
    case CLI_INT:
      ok = cli_parse_int(text, field) && *(int64_t *)field >= option->min &&
           *(int64_t *)field <= option->max;
      break;
    case CLI_FLOAT:
      *(double *)field = strtod(text, &end);
      ok = end != text && *end == '\0' && *(double *)field >= 0;
      break;
    case CLI_TIME:
      ok = cli_parse_time(text, field);
      break;
    case CLI_CHOICE:
      ok = option->row == NULL ? is_choice(option->arg, text)
                               : is_row(option, text);
      *(const char **)field = text;
      break;
    case CLI_TEXT:
      *(const char **)field = text;
      break;
    case CLI_KIND_COUNT:
      break;
  }
  return ok ? WEIR_OK : bad_value(option, text, shown, err);
}

/* ---- The line */

static const cli_option *find_long(const cli_command *c, const char *name,
                                   size_t size) {
  for (const cli_option *o = c->options; o->name != NULL; o++)
    if (strlen(o->name) == size && memcmp(o->name, name, size) == 0) return o;
  return NULL;
}

static const cli_option *find_letter(const cli_command *c, char letter) {
  for (const cli_option *o = c->options; o->name != NULL; o++)
    if (o->letter == letter) return o;
  return NULL;
}

/* A command that takes the option, or NULL. */
static const char *taker(const char *name) {
  for (size_t i = 0; cli_commands[i] != NULL; i++)
    if (find_long(cli_commands[i], name, strlen(name)) != NULL)
      return cli_commands[i]->name;
  return NULL;
}

static weir_status unknown(const cli_command *c, const char *text, size_t size,
                           weir_error *err) {
  const char *names[64];
  char name[64];
  size_t count = 0;
  for (const cli_option *o = c->options; o->name != NULL && count < 64; o++)
    names[count++] = o->name;
  snprintf(name, sizeof name, "%.*s", (int)(size < 60 ? size : 60), text);
  weir_status s =
      cli_error(err, "W0001", "weir %s has no option --%s", c->name, name);
  int64_t nearest = weir_tools_nearest(name, count, names);
  const char *other = taker(name);
  if (other != NULL)
    cli_hint(err, "weir %s takes it", other);
  else if (nearest >= 0)
    cli_hint(err, "did you mean --%s?", names[nearest]);
  else
    cli_hint(err, "`weir %s --help` lists the options", c->name);
  return s;
}

/* One line being read; |i| is the next argument. */
typedef struct line {
  const cli_command *command;
  int argc, i;
  char **argv;
  cli_args *args;
} line;

static weir_status set(line *l, const cli_option *o, const char *value,
                       const char *shown, weir_error *err) {
  if (o->kind != CLI_FLAG && value == NULL) {
    if (l->i >= l->argc)
      return cli_error(err, "W0001", "%s takes a value: %s", shown, o->arg);
    value = l->argv[l->i++];
  }
  if (o->kind == CLI_FLAG && value != NULL)
    return cli_error(err, "W0001", "%s takes no value", shown);
  assert(o - l->command->options < CLI_OPTIONS);
  l->args->from[o - l->command->options] = CLI_ARG;
  if (o->offset == offsetof(cli_args, format)) /* the last one counts */
    l->args->json = strcmp(value, "json") == 0;
  return cli_option_set(o, value, l->args, shown, err);
}

static weir_status read_long(line *l, const char *text, weir_error *err) {
  char shown[64];
  size_t size = strcspn(text, "=");
  const cli_option *o = find_long(l->command, text, size);
  if (o == NULL) return unknown(l->command, text, size, err);
  snprintf(shown, sizeof shown, "--%s", o->name);
  return set(l, o, text[size] == '=' ? text + size + 1 : NULL, shown, err);
}

/* -q, -qv, -i value, -ivalue */
static weir_status read_letters(line *l, const char *text, weir_error *err) {
  for (; *text != '\0'; text++) {
    char shown[] = {'-', *text, '\0'};
    const cli_option *o = find_letter(l->command, *text);
    if (o == NULL)
      return cli_error(err, "W0001", "weir %s has no option %s",
                       l->command->name, shown);
    bool flag = o->kind == CLI_FLAG;
    if (o->offset == offsetof(cli_args, help)) l->args->brief = true;
    WEIR_TRY(set(l, o, flag || text[1] == '\0' ? NULL : text + 1, shown, err));
    if (!flag) break;
  }
  return WEIR_OK;
}

/* ---- Options that have no effect */

bool cli_option_is_given(const cli_command *c, const cli_args *args,
                         const char *name) {
  const cli_option *o = find_long(c, name, strlen(name));
  return o != NULL && args->from[o - c->options] == CLI_ARG;
}

/* Whether one of |names|, "a|b", is given. */
static bool any_given(const cli_command *c, const cli_args *args,
                      const char *names) {
  for (const cli_option *o = c->options; o->name != NULL; o++)
    if (is_choice(names, o->name) && args->from[o - c->options] == CLI_ARG)
      return true;
  return false;
}

/* The name of a subject; a path, as in `weir show x.npy`, has one of these. */
static bool is_word(const char *text) {
  return strpbrk(text, "./#") == NULL;
}

/* A list of options is written with "or" between them. */
static weir_status no_effect(const cli_effect *e, weir_error *err) {
  char others[128];
  size_t n = 0;
  for (const char *at = e->with; *at != '\0' && n < sizeof others - 8;) {
    size_t size = strcspn(at, "|");
    n += (size_t)snprintf(others + n, sizeof others - n, "%s--%.*s",
                          at == e->with ? "" : " or ", (int)size, at);
    at += size + (at[size] == '|');
  }
  return cli_error(err, "W0001", "--%s has no effect without %s", e->option,
                   others);
}

static weir_status check_effects(const cli_command *c, const cli_args *args,
                                 weir_error *err) {
  const char *word = args->rest_count > 0 ? args->rest[0] : "";
  for (const cli_effect *e = c->effects; e != NULL && e->option != NULL; e++) {
    if (!cli_option_is_given(c, args, e->option)) continue;
    if (e->of != NULL && is_word(word) && !is_choice(e->of, word))
      return cli_error(err, "W0001",
                       "--%s has no effect on weir %s %s; it is for %s",
                       e->option, c->name, word, e->of);
    if (e->with != NULL && !any_given(c, args, e->with))
      return no_effect(e, err);
    if (e->without != NULL && cli_option_is_given(c, args, e->without)) {
      weir_status s =
          cli_error(err, "W0001", "--%s and --%s cannot both be given",
                    e->option, e->without);
      cli_hint(err, "%s", e->why);
      return s;
    }
  }
  return WEIR_OK;
}

static weir_status check_rest(const cli_command *c, const cli_args *args,
                              weir_error *err) {
  if (args->help) return WEIR_OK;
  if (args->rest_count < c->min_rest)
    return cli_error(err, "W0001", "usage: weir %s %s", c->name, c->synopsis);
  if (args->rest_count > c->max_rest)
    return cli_error(err, "W0001", "weir %s: %s is one argument too many",
                     c->name, args->rest[c->max_rest]);
  return check_effects(c, args, err);
}

static void set_defaults(cli_args *args) {
  *args = (cli_args){.temperature = 1,
                     .batch_wait_ns = 1000000,
                     .rtol = 1e-5,
                     .atol = 1e-8,
                     .runs = 0,
                     .warmup = 10,
                     .inflight = 1,
                     .at_step = -1,
                     .restarts = -1,
                     .time_ns = 1000000000};
}

weir_status cli_options_read(const cli_command *command, int argc, char **argv,
                             cli_args *args, weir_error *err) {
  line l = {command, argc, 0, argv, args};
  bool options = true;
  set_defaults(args);
  args->words = argv;
  args->word_count = (size_t)argc;
  args->rest = malloc(((size_t)argc + 1) * sizeof *args->rest);
  if (args->rest == NULL) return cli_no_memory(err);
  while (l.i < argc) {
    const char *text = argv[l.i++];
    if (options && strcmp(text, "--") == 0)
      options = false;
    else if (options && strncmp(text, "--", 2) == 0)
      WEIR_TRY(read_long(&l, text + 2, err));
    else if (options && text[0] == '-' && text[1] != '\0')
      WEIR_TRY(read_letters(&l, text + 1, err));
    else
      args->rest[args->rest_count++] = text;
  }
  return check_rest(command, args, err);
}

bool cli_is_json(const cli_args *args) {
  return args->json ||
         (args->format != NULL && strcmp(args->format, "json") == 0);
}

void cli_args_release(cli_args *args) {
  weir_tools_tf_config_release(args->tf);
  free(args->dmlc);
  cli_list *lists[] = {&args->inputs, &args->outputs,   &args->expects,
                       &args->params, &args->overrides, &args->targets,
                       &args->dumps,  &args->limits,    &args->maps,
                       &args->what_if};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
    free(lists[i]->items);
  free(args->rest);
}
