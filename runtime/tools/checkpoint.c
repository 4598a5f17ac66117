/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "runtime/api/weir_internal.h"
#include "runtime/base/json/json.h"
#include "runtime/base/number.h"
#include "runtime/base/quantity.h"
#include "runtime/base/strbuf.h"
#include "runtime/io/checkpoint/checkpoint_internal.h"
#include "runtime/io/checkpoint/checkpoint_load.h"
#include "runtime/io/checkpoint/checkpoint_manifest.h"
#include "runtime/io/checkpoint/checkpoint_open.h"
#include "runtime/tools/tools.h"

/* ---- Text */

/* "2026-01-31 23:59:59 UTC"; "" when it is not known. */
static const char *time_text(int64_t time_ns, char text[40]) {
  struct tm parts;
  time_t seconds = (time_t)(time_ns / 1000000000);
  if (time_ns == 0 || gmtime_r(&seconds, &parts) == NULL ||
      strftime(text, 40, "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
    text[0] = '\0';
  return text;
}

static void type_text(const weir_manifest_tensor *t, char text[256]) {
  int n = snprintf(text, 256, "%s", weir_dtype_name(t->dtype));
  weir_shape_print(&t->shape, NULL, NULL, text + n, 256 - (size_t)n);
}

/* Names come from files and could steer a terminal: control characters are
 * shown as '?'. */
static void put_safe(weir_strbuf *out, weir_sv text) {
  for (size_t i = 0; i < text.size; i++) {
    unsigned char c = (unsigned char)text.data[i];
    char shown = c < 0x20 || c == 0x7f ? '?' : text.data[i];
    weir_strbuf_append(out, &shown, 1);
  }
}

static uint64_t data_bytes(const weir_manifest *m) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < m->tensors.count; i++)
    bytes += m->tensors.items[i].bytes;
  return bytes;
}

static uint64_t file_bytes(const weir_manifest *m) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < m->shards.count; i++)
    bytes += m->shards.items[i].bytes;
  return bytes;
}

static weir_status give(weir_strbuf *text, weir_write_fn write, void *self,
                        weir_error *err) {
  WEIR_TRY(weir_strbuf_status(text, err));
  weir_sv all = weir_strbuf_view(text);
  if (write(self, all.data, all.size)) return WEIR_OK;
  return weir_fail(err, WEIR_W5009, NULL, "the output cannot be written");
}

/* ---- One checkpoint */

static int widest_type(const weir_manifest *m) {
  char text[256];
  size_t width = 0;
  for (size_t i = 0; i < m->tensors.count; i++) {
    type_text(&m->tensors.items[i], text);
    if (strlen(text) > width) width = strlen(text);
  }
  return (int)width;
}

static void show_text(const weir_checkpoint *c, weir_strbuf *out) {
  const weir_manifest *m = weir_checkpoint_manifest(c);
  const weir_checkpoint_info *info = &m->info;
  char text[256], number[WEIR_NUMBER_TEXT];
  number[weir_number_format(number, info->epoch)] = '\0';
  weir_strbuf_printf(out, "%s\n  step %" PRIu64 ", epoch %s",
                     weir_checkpoint_path_of(c), info->step, number);
  if (time_text(info->time_ns, text)[0] != '\0')
    weir_strbuf_printf(out, ", saved %s", text);
  weir_strbuf_text(out, "\n  run ");
  put_safe(out, info->run_id.size > 0 ? info->run_id : WEIR_SV_LIT("-"));
  weir_strbuf_printf(out, ", seed %" PRIu64 ", graph %016" PRIx64 "\n",
                     info->seed, info->graph_hash);
  weir_strbuf_printf(out, "  %zu shard%s, %s\n", m->shards.count,
                     m->shards.count == 1 ? "" : "s",
                     weir_quantity_print_bytes((int64_t)file_bytes(m), text));
  int width = widest_type(m);
  for (size_t i = 0; i < m->tensors.count; i++) {
    const weir_manifest_tensor *t = &m->tensors.items[i];
    type_text(t, text);
    weir_strbuf_printf(out, "  %-8s  %-*s %12" PRIu64 "  %08" PRIx32 "  ",
                       weir_checkpoint_role_name(t->role), width, text,
                       t->bytes, t->crc);
    put_safe(out, t->name);
    weir_strbuf_text(out, "\n");
  }
  weir_strbuf_printf(out, "  %zu tensor%s, %s\n", m->tensors.count,
                     m->tensors.count == 1 ? "" : "s",
                     weir_quantity_print_bytes((int64_t)data_bytes(m), text));
}

static void put_json_text(weir_strbuf *out, const char *text) {
  weir_json_writer w;
  weir_json_writer_init(&w, weir_strbuf_writer(out), 0);
  weir_json_string(&w, weir_sv_from(text));
  (void)weir_json_finish(&w); /* |out| keeps a failure */
}

/* The manifest is JSON already. */
static weir_status show_json(const weir_checkpoint *c, weir_strbuf *out,
                             weir_error *err) {
  weir_strbuf_text(out, "{\"path\": ");
  put_json_text(out, weir_checkpoint_path_of(c));
  weir_strbuf_text(out, ", \"manifest\":\n");
  WEIR_TRY(weir_manifest_write(weir_checkpoint_manifest(c), out, err));
  weir_strbuf_text(out, "}\n");
  return weir_strbuf_status(out, err);
}

/* weir.h's callback as a sink of the library. */
typedef struct teller {
  void (*on_diag)(void *self, const weir_diag *diag);
  void *self;
} teller;

static void tell(void *self, const weir_diag *diag) {
  const teller *t = self;
  if (t->on_diag != NULL) t->on_diag(t->self, diag);
}

weir_status weir_tools_checkpoint_show(weir_runtime *runtime,
                                       const weir_tools_checkpoint *what,
                                       bool json, weir_write_fn write,
                                       void *self, weir_error *err) {
  weir_checkpoint *c = NULL;
  weir_strbuf text;
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (what->path == NULL) return weir_fail_null(err, "path");
  teller t = {what->on_diag, what->on_diag_self};
  weir_diag_sink sink = {&t, tell};
  weir_strbuf_init(&text, runtime->env.alloc);
  weir_status s = weir_checkpoint_open(&runtime->env, what->path, what->step,
                                       &sink, &c, err);
  if (s == WEIR_OK && json) s = show_json(c, &text, err);
  if (s == WEIR_OK && !json) show_text(c, &text);
  if (s == WEIR_OK) s = give(&text, write, self, err);
  weir_strbuf_release(&text);
  weir_checkpoint_release(c);
  return s;
}

/* ---- All of a folder */

typedef struct verifier {
  weir_strbuf text;
  bool json;
  size_t sound, damaged;
  weir_error first; /* of the newest damaged one */
} verifier;

static bool verify_one(void *self, const weir_checkpoint_found *found) {
  verifier *v = self;
  char size[32];
  bool sound = found->checkpoint != NULL;
  if (!sound && v->damaged++ == 0) v->first = *found->err;
  v->sound += sound;
  if (v->json) {
    weir_json_writer w;
    weir_json_writer_init(&w, weir_strbuf_writer(&v->text), 0);
    weir_json_object_begin(&w, true);
    weir_json_key(&w, "manifest");
    weir_json_string(&w, weir_sv_from(found->name));
    weir_json_key(&w, "step");
    weir_json_uint(&w, found->step);
    weir_json_key(&w, "sound");
    weir_json_bool(&w, sound);
    if (!sound) {
      weir_json_key(&w, "id");
      weir_json_string(&w, weir_sv_from(found->err->id));
      weir_json_key(&w, "message");
      weir_json_string(&w, weir_sv_from(found->err->message));
    }
    weir_json_object_end(&w);
    return weir_json_finish(&w);
  }
  if (!sound) {
    weir_strbuf_printf(&v->text, "%-24s  DAMAGED  %s\n", found->name,
                       found->err->message);
    return !v->text.failed;
  }
  const weir_manifest *m = weir_checkpoint_manifest(found->checkpoint);
  weir_strbuf_printf(&v->text, "%-24s  sound    %zu tensors, %s\n", found->name,
                     m->tensors.count,
                     weir_quantity_print_bytes((int64_t)file_bytes(m), size));
  return !v->text.failed;
}

weir_status weir_tools_checkpoint_verify(weir_runtime *runtime,
                                         const char *path, bool json,
                                         weir_write_fn write, void *self,
                                         weir_error *err) {
  if (runtime == NULL) return weir_fail_null(err, "runtime");
  if (path == NULL) return weir_fail_null(err, "path");
  verifier v = {.json = json, .first = WEIR_ERROR_INIT};
  weir_strbuf_init(&v.text, runtime->env.alloc);
  weir_status s =
      weir_checkpoint_each(&runtime->env, path, &v, verify_one, err);
  if (s == WEIR_OK) s = give(&v.text, write, self, err);
  weir_strbuf_release(&v.text);
  if (s != WEIR_OK) return s;
  if (v.sound + v.damaged == 0)
    return weir_fail(err, WEIR_W4040, NULL,
                     "there is no checkpoint in '%.200s'", path);
  if (v.damaged == 0) return WEIR_OK;
  weir_error_copy(err, &v.first);
  return v.first.code;
}
