/* SPDX-License-Identifier: Apache-2.0 */
/* Standard Task Graph files: numbers apart by blanks, comments from `#`. Tasks
 * come in topological order, so the reader hands each to the builder at once.
 * The text is hostile until proved otherwise: each number has a limit, and a
 * task may only name earlier ones. */
#include "placement/bench/instance_stg.h"

#include <inttypes.h>
#include <stdio.h>

#include "placement/bench/instance.h"

enum { STG_TASKS = 4000000 };

/* Numbers of a text, one after another. */
typedef struct scan {
  weir_sv text;
  size_t at;
  weir_mark mark;
  weir_error *err;
} scan;

static void skip_blanks(scan *s) {
  while (s->at < s->text.size) {
    char c = s->text.data[s->at];
    if (c == '#') { /* a comment runs to the end of its line */
      while (s->at < s->text.size && s->text.data[s->at] != '\n') s->at++;
      continue;
    }
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
    s->at++;
    s->mark.col++;
    if (c == '\n') {
      s->mark.line++;
      s->mark.col = 1;
    }
  }
}

static weir_status read_number(scan *s, const char *what, int64_t limit,
                               int64_t *out) {
  skip_blanks(s);
  int64_t value = 0;
  size_t begin = s->at;
  while (s->at < s->text.size && s->text.data[s->at] >= '0' &&
         s->text.data[s->at] <= '9' && value <= limit)
    value = value * 10 + (s->text.data[s->at++] - '0');
  s->mark.col += (uint32_t)(s->at - begin);
  if (s->at == begin)
    return weir_fail(s->err, WEIR_W3015, &s->mark, "expected %s, found %s",
                     what, begin == s->text.size ? "the end" : "other text");
  if (value > limit)
    return weir_fail(s->err, WEIR_W3015, &s->mark,
                     "%s is above the limit %" PRId64, what, limit);
  *out = value;
  return WEIR_OK;
}

static weir_status read_task(scan *s, weir_place_builder *b, int64_t n) {
  int64_t id, cost, count, from;
  char name[32];
  WEIR_TRY(read_number(s, "a task's number", STG_TASKS, &id));
  if (id != n)
    return weir_fail(s->err, WEIR_W3015, &s->mark,
                     "task %" PRId64 " stands where %" PRId64 " is expected",
                     id, n);
  WEIR_TRY(read_number(s, "a cost", INT32_MAX, &cost));
  WEIR_TRY(read_number(s, "a number of predecessors", n, &count));
  snprintf(name, sizeof name, "t%" PRId64, n);
  weir_place_node_spec spec = {
      .name = weir_sv_from(name), .cost = &cost, .group = WEIR_PLACE_NONE};
  uint32_t node = weir_place_add_node(b, &spec);
  weir_place_add_tensor(b, node, 0);
  for (int64_t i = 0; i < count; i++) {
    WEIR_TRY(read_number(s, "an earlier task", n - 1, &from));
    weir_place_add_use(b, node, (uint32_t)from);
  }
  return WEIR_OK;
}

static weir_status read_all(scan *s, weir_place_builder *b) {
  int64_t count;
  WEIR_TRY(read_number(s, "the number of tasks", STG_TASKS, &count));
  for (int64_t n = 0; n < count + 2; n++) WEIR_TRY(read_task(s, b, n));
  skip_blanks(s);
  if (s->at != s->text.size)
    return weir_fail(s->err, WEIR_W3015, &s->mark,
                     "text after the last of %" PRId64 " tasks", count + 2);
  return WEIR_OK;
}

weir_status weir_instance_read_stg(const weir_allocator *alloc, weir_sv text,
                                   const char *name,
                                   const weir_instance_options *options,
                                   weir_place_problem **out_problem,
                                   weir_error *err) {
  *out_problem = NULL;
  weir_place_builder *b = NULL;
  WEIR_TRY(weir_place_builder_create(alloc, 1, &b, err));
  uint32_t processors = options->processors == 0 ? 4 : options->processors;
  for (uint32_t d = 0; d < processors; d++) {
    char text_of[64];
    snprintf(text_of, sizeof text_of, "/job:worker/task:0/device:CPU:%u", d);
    weir_place_add_device(
        b, &(weir_place_device){weir_sv_from(text_of), 0, INT64_MAX});
  }
  weir_place_connect_all(b, &(weir_place_link){0});
  scan s = {
      .text = text, .mark = {.file = name, .line = 1, .col = 1}, .err = err};
  weir_status status = read_all(&s, b);
  if (status == WEIR_OK)
    status = weir_place_builder_finish(b, out_problem, err);
  weir_place_builder_release(b);
  return status;
}
