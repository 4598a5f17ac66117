/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/tune/tuning.h"

#include <pthread.h>
#include <string.h>

#include "kernels/tune/choices.h"

struct weir_tuning {
  const weir_env *env;
  weir_tuning_options options;
  pthread_mutex_t lock; /* of the rest; while something is timed too */
  weir_tune_choices choices;
  bool read;           /* the file, once */
  bool off;            /* it is not to be used, nor written */
  unsigned warned;     /* a bit for each cause */
  weir_device *device; /* the last one that was asked for its names */
  weir_gemm_library here;
  char path[];
};

/* Causes of warnings. */
enum { BROKEN, OTHER, REFUSED, UNTIMED, FULL };

weir_status weir_tuning_create(const weir_env *env,
                               const weir_tuning_options *options,
                               weir_tuning **out_tuning, weir_error *err) {
  size_t path_bytes = strlen(options->path) + 1;
  size_t bytes = sizeof(weir_tuning) + path_bytes;
  weir_tuning *t = weir_alloc_array(env->alloc, bytes, 1);
  *out_tuning = t;
  if (t == NULL) return weir_fail_memory(err, bytes);
  t->env = env;
  t->options = *options;
  memcpy(t->path, options->path, path_bytes);
  pthread_mutex_init(&t->lock, NULL);
  return WEIR_OK;
}

void weir_tuning_release(weir_tuning *t) {
  if (t == NULL) return;
  weir_tune_free(t->env->alloc, &t->choices);
  pthread_mutex_destroy(&t->lock);
  weir_free(t->env->alloc, t);
}

static void warn(weir_tuning *t, int cause, const weir_error *warning) {
  if ((t->warned >> cause & 1) != 0) return;
  t->warned |= 1U << cause;
  if (t->options.warn != NULL) t->options.warn(t->options.self, warning);
}

static void warn_other(weir_tuning *t, const weir_gemm_library *of,
                       const weir_gemm_library *here) {
  weir_error w = WEIR_ERROR_INIT;
  (void)weir_fail(&w, WEIR_W6006, NULL,
                  "%.200s is of %s with %s, here is %s with %s: its choices "
                  "are not used and nothing is timed; give --tune another FILE",
                  t->path, of->device, of->library, here->device,
                  here->library);
  warn(t, OTHER, &w);
}

static bool is_same(const weir_gemm_library *a, const weir_gemm_library *b) {
  return strcmp(a->device, b->device) == 0 &&
         strcmp(a->library, b->library) == 0;
}

/* ---- The file */

/* The part for CPUs is only passed on: the file's newest. */
static weir_status keep_calls(weir_tuning *t, const weir_tune_calls *fresh,
                              weir_error *err) {
  weir_tune_calls *own = &t->choices.cpu;
  memcpy(own->machine, fresh->machine, sizeof own->machine);
  own->list.count = 0;
  for (size_t i = 0; i < fresh->list.count; i++)
    WEIR_TRY(weir_tune_add_call(t->env->alloc, &t->choices,
                                &fresh->list.items[i], err));
  return WEIR_OK;
}

/* Adds what is new in |fresh|: what this process has chosen stays. */
static weir_status merge(weir_tuning *t, const weir_tune_choices *fresh,
                         weir_error *err) {
  WEIR_TRY(keep_calls(t, &fresh->cpu, err));
  if (fresh->of.device[0] == '\0') return WEIR_OK; /* no part for GPUs */
  if (t->choices.of.device[0] == '\0') t->choices.of = fresh->of;
  if (!is_same(&t->choices.of, &fresh->of)) { /* another has replaced it */
    warn_other(t, &fresh->of, &t->choices.of);
    t->off = true;
    return WEIR_OK;
  }
  for (size_t i = 0; i < fresh->products.count; i++) {
    const weir_tune_product *p = &fresh->products.items[i];
    if (weir_tune_find(&t->choices, &p->key) == NULL)
      WEIR_TRY(weir_tune_add(t->env->alloc, &t->choices, p, err));
  }
  return WEIR_OK;
}

static weir_status take_text(weir_tuning *t, weir_sv text, weir_error *err) {
  weir_tune_choices fresh = {.products = {0}};
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = weir_tune_read(t->env->alloc, text, t->path, &fresh, &why);
  if (s == WEIR_OK) {
    s = merge(t, &fresh, err);
  } else if (s == WEIR_RESOURCE_EXHAUSTED) {
    weir_error_copy(err, &why);
  } else {
    warn(t, BROKEN, &why);
    t->off = true;
    s = WEIR_OK;
  }
  weir_tune_free(t->env->alloc, &fresh);
  return s;
}

static weir_status look(weir_tuning *t, weir_error *err) {
  const weir_fs *fs = t->env->fs;
  weir_file file = {0};
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = fs->read(fs->self, NULL, t->path, WEIR_TUNE_FILE_BYTES, false,
                           &file, &why);
  if (s == WEIR_NOT_FOUND) return WEIR_OK; /* it will be made */
  if (s != WEIR_OK) {
    weir_error_copy(err, &why);
    return s;
  }
  s = take_text(t, (weir_sv){(const char *)file.bytes.data, file.bytes.size},
                err);
  fs->close(fs->self, &file);
  return s;
}

static weir_status save(weir_tuning *t, weir_error *err) {
  const weir_fs *fs = t->env->fs;
  weir_strbuf text;
  weir_strbuf_init(&text, t->env->alloc);
  weir_tune_write(&t->choices, &text);
  weir_status s = weir_strbuf_status(&text, err);
  weir_sv view = weir_strbuf_view(&text);
  const weir_bytes bytes = {(const uint8_t *)view.data, view.size};
  if (s == WEIR_OK) s = fs->write(fs->self, t->path, bytes, err);
  weir_strbuf_release(&text);
  return s;
}

/* ---- One product */

typedef struct product {
  weir_device *device;
  weir_gemm_plan *plan;
  weir_tune_key key;
  size_t *workspace_bytes;
} product;

/* Names have no quotes in the file. */
static void clean(char *name) {
  for (char *c = name; *c != '\0'; c++)
    if (*c < ' ' || *c > '~' || *c == '\'') *c = '?';
}

static weir_status ask_names(weir_tuning *t, weir_device *device,
                             weir_error *err) {
  if (t->device == device) return WEIR_OK;
  t->device = NULL;
  WEIR_TRY(device->vt->gemm->library(device, &t->here, err));
  clean(t->here.device);
  clean(t->here.library);
  t->device = device;
  return WEIR_OK;
}

/* Takes the choice of the file, if it has one. */
static weir_status choose(weir_tuning *t, const product *p, bool *out_found,
                          weir_error *err) {
  const weir_tune_product *entry = weir_tune_find(&t->choices, &p->key);
  bool chosen;
  *out_found = entry != NULL;
  if (entry == NULL) return WEIR_OK;
  WEIR_TRY(p->device->vt->gemm->choose(p->device, p->plan, &entry->choice,
                                       &chosen, p->workspace_bytes, err));
  if (chosen) return WEIR_OK;
  weir_error w = WEIR_ERROR_INIT;
  (void)weir_fail(&w, WEIR_W6006, NULL,
                  "%.200s has an algorithm that %s does not take for its "
                  "product; the library chooses there",
                  t->path, t->here.library);
  warn(t, REFUSED, &w);
  return WEIR_OK;
}

/* No time is no failure, but of a device that is lost. */
static weir_status time_it(weir_tuning *t, const product *p, bool *out_tuned,
                           weir_gemm_choice *out, weir_error *err) {
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = p->device->vt->gemm->tune(p->device, p->plan, out_tuned, out,
                                            p->workspace_bytes, &why);
  if (s == WEIR_OK) return s;
  if (atomic_load(&p->device->lost)) {
    weir_error_copy(err, &why);
    return s;
  }
  weir_error w = WEIR_ERROR_INIT;
  (void)weir_fail(&w, WEIR_W6006, NULL,
                  "a product was not timed, the library chooses there: %.300s",
                  why.message);
  warn(t, UNTIMED, &w);
  *out_tuned = false;
  return WEIR_OK;
}

static weir_status tune(weir_tuning *t, const product *p, weir_error *err) {
  weir_tune_product found = {.key = p->key};
  bool tuned;
  if (t->choices.products.count >= WEIR_TUNE_PRODUCTS) {
    weir_error w = WEIR_ERROR_INIT;
    (void)weir_fail(&w, WEIR_W6006, NULL,
                    "%.200s has %d products, no more are timed", t->path,
                    (int)WEIR_TUNE_PRODUCTS);
    warn(t, FULL, &w);
    return WEIR_OK;
  }
  WEIR_TRY(time_it(t, p, &tuned, &found.choice, err));
  if (!tuned) return WEIR_OK;
  if (t->choices.of.device[0] == '\0') t->choices.of = t->here;
  WEIR_TRY(weir_tune_add(t->env->alloc, &t->choices, &found, err));
  return save(t, err);
}

static weir_status apply(weir_tuning *t, const product *p, weir_error *err) {
  bool found = false;
  if (!t->read) WEIR_TRY(look(t, err));
  t->read = true;
  if (t->off) return WEIR_OK;
  WEIR_TRY(ask_names(t, p->device, err));
  for (int i = 0; i < 2 && !found; i++) { /* others may have timed it since */
    if (i > 0) WEIR_TRY(look(t, err));
    if (t->off) return WEIR_OK;
    if (t->choices.of.device[0] != '\0' && !is_same(&t->choices.of, &t->here)) {
      warn_other(t, &t->choices.of, &t->here);
      return WEIR_OK;
    }
    WEIR_TRY(choose(t, p, &found, err));
  }
  return found ? WEIR_OK : tune(t, p, err);
}

weir_status weir_tuning_apply(weir_tuning *t, weir_device *device,
                              const weir_gemm_desc *desc, weir_gemm_plan *plan,
                              size_t *workspace_bytes, weir_error *err) {
  const product p = {device, plan, weir_tune_key_of(desc), workspace_bytes};
  pthread_mutex_lock(&t->lock);
  weir_status s = apply(t, &p, err);
  pthread_mutex_unlock(&t->lock);
  return s;
}
