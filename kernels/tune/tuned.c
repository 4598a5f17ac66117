/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tune/tuned.h"

#include <pthread.h>
#include <string.h>

#include "kernels/tune/choices.h"
#include "runtime/base/map.h"

struct weir_tuned {
  weir_env env;
  weir_tuned_options options;
  char machine[WEIR_TUNE_MACHINE_BYTES];
  pthread_mutex_t lock; /* of the rest */
  weir_tune_choices choices;
  char path[];
};

/* ---- The file */

/* |why|, or a warning of it; then nothing of the file is used. */
static weir_status refuse(weir_tuned *t, weir_status s, const weir_error *why,
                          weir_error *err) {
  if (t->options.strict || t->options.times) {
    weir_error_copy(err, why);
    return s;
  }
  if (t->options.warn != NULL) t->options.warn(t->options.self, why);
  return WEIR_OK;
}

static weir_status check_machine(const weir_tuned *t,
                                 const weir_tune_choices *fresh,
                                 weir_error *why) {
  const char *of = fresh->cpu.machine;
  if (of[0] == '\0' || strcmp(of, t->machine) == 0) return WEIR_OK;
  return weir_fail(why, WEIR_W6006, NULL,
                   "%.200s is of %s; here is %s: its choices of kernels are "
                   "not used",
                   t->path, of, t->machine);
}

/* The file's text into |fresh|; a file that is not there is empty. */
static weir_status read_file(const weir_tuned *t, weir_tune_choices *fresh,
                             weir_error *err) {
  const weir_fs *fs = t->env.fs;
  weir_file file = {0};
  weir_status s = fs->read(fs->self, NULL, t->path, WEIR_TUNE_FILE_BYTES, false,
                           &file, err);
  if (s != WEIR_OK) return s;
  s = weir_tune_read(t->env.alloc,
                     (weir_sv){(const char *)file.bytes.data, file.bytes.size},
                     t->path, fresh, err);
  fs->close(fs->self, &file);
  return s;
}

/* Adds to |fresh| what this process has beside it, and takes it. */
static weir_status take(weir_tuned *t, weir_tune_choices *fresh,
                        weir_error *err) {
  for (size_t i = 0; i < t->choices.cpu.list.count; i++) {
    const weir_tune_call *own = &t->choices.cpu.list.items[i];
    if (weir_tune_find_call(&fresh->cpu, own->text) == NULL)
      WEIR_TRY(weir_tune_add_call(t->env.alloc, fresh, own, err));
  }
  weir_tune_choices before = t->choices;
  t->choices = *fresh;
  *fresh = before;
  return WEIR_OK;
}

static weir_status look(weir_tuned *t, weir_error *err) {
  weir_tune_choices fresh = {.products = {0}};
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = read_file(t, &fresh, &why);
  if (s == WEIR_OK) s = check_machine(t, &fresh, &why);
  if (s == WEIR_OK)
    s = take(t, &fresh, err);
  else if (s == WEIR_NOT_FOUND)
    s = WEIR_OK; /* it will be made */
  else if (s == WEIR_RESOURCE_EXHAUSTED)
    weir_error_copy(err, &why);
  else
    s = refuse(t, s, &why, err);
  weir_tune_free(t->env.alloc, &fresh);
  return s;
}

static weir_status save(weir_tuned *t, weir_error *err) {
  const weir_fs *fs = t->env.fs;
  weir_strbuf text;
  weir_strbuf_init(&text, t->env.alloc);
  memcpy(t->choices.cpu.machine, t->machine, sizeof t->machine);
  weir_tune_write(&t->choices, &text);
  weir_status s = weir_strbuf_status(&text, err);
  weir_sv view = weir_strbuf_view(&text);
  const weir_bytes bytes = {(const uint8_t *)view.data, view.size};
  if (s == WEIR_OK) s = fs->write(fs->self, t->path, bytes, err);
  weir_strbuf_release(&text);
  return s;
}

/* ---- In use */

weir_status weir_tuned_create(const weir_env *env,
                              const weir_tuned_options *options,
                              weir_tuned **out_tuned, weir_error *err) {
  size_t path_bytes = strlen(options->path) + 1;
  size_t bytes = sizeof(weir_tuned) + path_bytes;
  weir_tuned *t = weir_alloc_array(env->alloc, bytes, 1);
  *out_tuned = NULL;
  if (t == NULL) return weir_fail_memory(err, bytes);
  memset(t, 0, sizeof *t);
  t->env = *env;
  t->options = *options;
  memcpy(t->path, options->path, path_bytes);
  weir_tune_machine(options->profile, t->machine);
  pthread_mutex_init(&t->lock, NULL);
  weir_status s = look(t, err);
  if (s == WEIR_OK)
    *out_tuned = t;
  else
    weir_tuned_release(t);
  return s;
}

void weir_tuned_release(weir_tuned *t) {
  if (t == NULL) return;
  weir_tune_free(t->env.alloc, &t->choices);
  pthread_mutex_destroy(&t->lock);
  weir_free(t->env.alloc, t);
}

bool weir_tuned_kernel(weir_tuned *t, const char *text,
                       char kernel[WEIR_TUNE_KERNEL_BYTES]) {
  pthread_mutex_lock(&t->lock);
  const weir_tune_call *found = weir_tune_find_call(&t->choices.cpu, text);
  if (found != NULL) memcpy(kernel, found->kernel, WEIR_TUNE_KERNEL_BYTES);
  pthread_mutex_unlock(&t->lock);
  return found != NULL;
}

bool weir_tuned_times(const weir_tuned *t) {
  return t->options.times;
}

static weir_status add(weir_tuned *t, const weir_tune_call *call,
                       weir_error *err) {
  WEIR_TRY(look(t, err)); /* others may have added some since */
  if (weir_tune_find_call(&t->choices.cpu, call->text) != NULL) return WEIR_OK;
  if (t->choices.cpu.list.count >= WEIR_TUNE_CALLS)
    return weir_fail(err, WEIR_W6006, NULL, "%.200s has %d calls, no more fit",
                     t->path, (int)WEIR_TUNE_CALLS);
  WEIR_TRY(weir_tune_add_call(t->env.alloc, &t->choices, call, err));
  return save(t, err);
}

weir_status weir_tuned_add(weir_tuned *t, const weir_tune_call *call,
                           weir_error *err) {
  pthread_mutex_lock(&t->lock);
  weir_status s = add(t, call, err);
  pthread_mutex_unlock(&t->lock);
  return s;
}

size_t weir_tuned_count(weir_tuned *t) {
  pthread_mutex_lock(&t->lock);
  size_t count = t->choices.cpu.list.count;
  pthread_mutex_unlock(&t->lock);
  return count;
}

/* In no order: two files that list the same calls are the same. */
uint64_t weir_tuned_hash(weir_tuned *t) {
  uint64_t sum = 0;
  if (t == NULL) return 0;
  pthread_mutex_lock(&t->lock);
  for (size_t i = 0; i < t->choices.cpu.list.count; i++) {
    const weir_tune_call *c = &t->choices.cpu.list.items[i];
    sum += weir_hash_bytes(c->kernel, strlen(c->kernel),
                           weir_hash_bytes(c->text, strlen(c->text), 1));
  }
  pthread_mutex_unlock(&t->lock);
  return sum;
}
