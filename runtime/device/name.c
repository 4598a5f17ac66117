/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/device/name.h"

#include <ctype.h>
#include <stdio.h>

/* A name is parsed from left to right without a table of forms: parts in any
 * order, each once. A word that is no key (job, task, replica, device) is taken
 * for a kind of device, so short forms such as `gpu:0` need no rule. */

/* The place in the text while parsing. */
typedef struct cursor {
  weir_sv text;
  size_t at;
  weir_error *err;
} cursor;

static weir_status bad(cursor *c, const char *expected) {
  return weir_fail(c->err, WEIR_W1115, NULL,
                   "device '%.*s': expected %s at offset %zu", WEIR_SV(c->text),
                   expected, c->at);
}

static bool at_end(const cursor *c) {
  return c->at >= c->text.size;
}

static char peek(const cursor *c) {
  return at_end(c) ? '\0' : c->text.data[c->at];
}

static bool take(cursor *c, char wanted) {
  if (peek(c) != wanted) return false;
  c->at++;
  return true;
}

static weir_sv take_word(cursor *c) {
  size_t start = c->at;
  while (!at_end(c) && (isalnum((unsigned char)peek(c)) || peek(c) == '_'))
    c->at++;
  return (weir_sv){c->text.data + start, c->at - start};
}

static bool word_is(weir_sv word, const char *lower) {
  size_t i = 0;
  for (; i < word.size && lower[i] != '\0'; i++)
    if (tolower((unsigned char)word.data[i]) != lower[i]) return false;
  return i == word.size && lower[i] == '\0';
}

static bool take_number(cursor *c, int32_t *out) {
  int64_t value = 0;
  size_t start = c->at;
  while (isdigit((unsigned char)peek(c)) && value <= INT32_MAX) {
    value = value * 10 + (peek(c) - '0');
    c->at++;
  }
  if (c->at == start || value > INT32_MAX) return false;
  *out = (int32_t)value;
  return true;
}

/* An index: 3, *, or [0-3]. */
static weir_status take_index(cursor *c, weir_index_range *out) {
  *out = (weir_index_range){-1, -1};
  if (take(c, '*')) return WEIR_OK;
  if (!take(c, '[')) {
    if (!take_number(c, &out->first)) return bad(c, "an index");
    out->last = out->first;
    return WEIR_OK;
  }
  if (!take_number(c, &out->first) || !take(c, '-') ||
      !take_number(c, &out->last) || !take(c, ']') || out->last < out->first)
    return bad(c, "a range [first-last]");
  return WEIR_OK;
}

static weir_device_kind type_of(weir_sv word) {
  for (int k = 0; k < WEIR_DEVICE_KINDS; k++) {
    const weir_device_kind_def *kind = weir_device_kinds[k];
    if (word_is(word, kind->name) ||
        (kind->alias != NULL && word_is(word, kind->alias)))
      return (weir_device_kind)k;
  }
  return WEIR_DEVICE_ANY;
}

static weir_status bad_type(cursor *c) {
  char names[128], expected[160];
  snprintf(expected, sizeof expected, "job, task, device, %s",
           weir_device_kind_names(names, sizeof names));
  return bad(c, expected);
}

/* After `device:` or in place of a key: TYPE, TYPE:index, or *. */
static weir_status take_type(cursor *c, weir_sv word, weir_device_name *name) {
  name->type = type_of(word);
  if (name->type == WEIR_DEVICE_ANY) return bad_type(c);
  return take(c, ':') ? take_index(c, &name->index) : WEIR_OK;
}

static weir_status take_job(cursor *c, weir_device_name *name) {
  if (take(c, '*')) return WEIR_OK;
  weir_sv job = take_word(c);
  if (job.size == 0 || job.size >= sizeof name->job)
    return bad(c, "the name of a job");
  memcpy(name->job, job.data, job.size);
  name->job[job.size] = '\0';
  return WEIR_OK;
}

/* Which parts were seen, to refuse a second one. */
enum { kJob = 1, kTask = 2, kDevice = 4, kReplica = 8 };

static weir_status take_part(cursor *c, weir_device_name *name, int *seen) {
  weir_sv key = take_word(c);
  bool colon = peek(c) == ':';
  int part = word_is(key, "job")       ? kJob
             : word_is(key, "task")    ? kTask
             : word_is(key, "replica") ? kReplica
                                       : kDevice;
  if (*seen & part) return bad(c, "each part once");
  *seen |= part;
  if (part != kDevice && !colon) return bad(c, "':'");
  if (part == kDevice && !word_is(key, "device"))
    return take_type(c, key, name);
  if (!take(c, ':')) return bad(c, "':'");
  if (part == kJob) return take_job(c, name);
  if (part == kTask) return take_index(c, &name->task);
  if (part == kReplica) return take_index(c, &(weir_index_range){0, 0});
  if (take(c, '*')) return WEIR_OK;
  return take_type(c, take_word(c), name);
}

weir_device_name weir_device_name_any(void) {
  weir_device_name name = {
      .job = "", .task = {-1, -1}, .type = WEIR_DEVICE_ANY, .index = {-1, -1}};
  return name;
}

weir_status weir_device_name_parse(weir_sv text, weir_device_name *out_name,
                                   size_t *bad_offset, weir_error *err) {
  cursor c = {text, 0, err};
  int seen = 0;
  weir_status s = WEIR_OK;
  *out_name = weir_device_name_any();
  if (text.size == 0) s = bad(&c, "a device");
  (void)take(&c, '/');
  while (s == WEIR_OK) {
    s = take_part(&c, out_name, &seen);
    if (s != WEIR_OK || at_end(&c)) break;
    if (!take(&c, '/')) s = bad(&c, "'/'");
  }
  if (bad_offset != NULL) *bad_offset = c.at;
  return s;
}

static bool is_any(weir_index_range r) {
  return r.first < 0;
}

weir_device_name weir_device_name_merge(const weir_device_name *name,
                                        const weir_device_name *defaults) {
  weir_device_name out = *name;
  bool same_job = name->job[0] == '\0' || strcmp(name->job, defaults->job) == 0;
  bool same_type =
      name->type == WEIR_DEVICE_ANY || name->type == defaults->type;
  if (name->job[0] == '\0') memcpy(out.job, defaults->job, sizeof out.job);
  if (same_job && is_any(out.task)) out.task = defaults->task;
  if (name->type == WEIR_DEVICE_ANY) out.type = defaults->type;
  if (same_type && is_any(out.index)) out.index = defaults->index;
  return out;
}

static bool range_matches(weir_index_range partial, weir_index_range full) {
  return is_any(partial) || (!is_any(full) && partial.first <= full.first &&
                             full.last <= partial.last);
}

bool weir_device_name_matches(const weir_device_name *partial,
                              const weir_device_name *full) {
  if (partial->job[0] != '\0' && strcmp(partial->job, full->job) != 0)
    return false;
  if (partial->type != WEIR_DEVICE_ANY && partial->type != full->type)
    return false;
  return range_matches(partial->task, full->task) &&
         range_matches(partial->index, full->index);
}

bool weir_device_name_is_full(const weir_device_name *name) {
  return name->job[0] != '\0' && name->type != WEIR_DEVICE_ANY &&
         !is_any(name->task) && name->task.first == name->task.last &&
         !is_any(name->index) && name->index.first == name->index.last;
}

static size_t append(char *text, size_t capacity, size_t n, const char *part,
                     const char *value) {
  if (n >= capacity) return n;
  int more = snprintf(text + n, capacity - n, "%s%s", part, value);
  return n + (size_t)(more > 0 ? more : 0);
}

static size_t append_range(char *text, size_t capacity, size_t n,
                           const char *part, weir_index_range r) {
  char value[32] = "*";
  if (!is_any(r) && r.first == r.last)
    snprintf(value, sizeof value, "%d", (int)r.first);
  else if (!is_any(r))
    snprintf(value, sizeof value, "[%d-%d]", (int)r.first, (int)r.last);
  return append(text, capacity, n, part, value);
}

char *weir_device_name_print(const weir_device_name *name, char *text,
                             size_t capacity) {
  size_t n = 0;
  if (capacity > 0) text[0] = '\0';
  if (name->job[0] != '\0') n = append(text, capacity, n, "/job:", name->job);
  if (!is_any(name->task))
    n = append_range(text, capacity, n, "/task:", name->task);
  if (name->type != WEIR_DEVICE_ANY) {
    n = append(text, capacity, n,
               "/device:", weir_device_kinds[name->type]->spelling);
    if (!is_any(name->index))
      n = append_range(text, capacity, n, ":", name->index);
  }
  return text;
}
