/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/rpc/services.h"

#include "runtime/base/bytes/proto.h"
#include "runtime/base/utf8.h"

/* Numbers of fields as in ../proto/grpc. Requests are small, so a limit on the
 * whole bounds each text. */

enum {
  kRequestBytes = 4096,
  kFileByName = 3,
  kFileOfSymbol = 4,
  kExtension = 5,
  kExtensions = 6,
  kServices = 7
};

static weir_status unreadable(weir_error *err, const char *of) {
  return weir_fail(err, WEIR_W7075, NULL, "a request of %s cannot be read", of);
}

static weir_sv text_of(const weir_proto_field *f) {
  return (weir_sv){(const char *)f->sub.data, f->sub.size};
}

/* ---- Health */

static const weir_rpc_symbol *find_symbol(weir_sv name) {
  for (const weir_rpc_symbol *s = weir_rpc_symbols; s->name != NULL; s++)
    if (weir_sv_is(name, s->name)) return s;
  return NULL;
}

/* |out_name| is lent; "" is the server as a whole. */
static weir_status read_name(weir_bytes request, weir_sv *out_name,
                             bool *out_known, weir_error *err) {
  weir_reader r = weir_reader_of(request.data, request.size);
  weir_proto_field f;
  *out_name = (weir_sv){"", 0};
  if (request.size > kRequestBytes) return unreadable(err, "health");
  while (weir_proto_next(&r, &f))
    if (f.number == 1 && f.wire == WEIR_PROTO_BYTES) *out_name = text_of(&f);
  if (r.failed || !weir_utf8_valid(*out_name, NULL))
    return unreadable(err, "health");
  const weir_rpc_symbol *symbol = find_symbol(*out_name);
  *out_known = out_name->size == 0 || (symbol != NULL && symbol->service);
  return WEIR_OK;
}

weir_status weir_rpc_health(weir_bytes request, bool serving,
                            weir_strbuf *answer, weir_error *err) {
  weir_sv name;
  bool known;
  WEIR_TRY(read_name(request, &name, &known, err));
  if (!known)
    return weir_fail(err, WEIR_W7076, NULL, "there is no service %.*s",
                     (int)(name.size < 100 ? name.size : 100), name.data);
  return weir_rpc_health_tell(serving ? WEIR_RPC_SERVING : WEIR_RPC_NOT_SERVING,
                              answer, err);
}

weir_status weir_rpc_health_known(weir_bytes request, bool *out_known,
                                  weir_error *err) {
  weir_sv name;
  *out_known = false;
  return read_name(request, &name, out_known, err);
}

weir_status weir_rpc_health_tell(weir_rpc_health_state state,
                                 weir_strbuf *answer, weir_error *err) {
  weir_proto_put_int(answer, 1, (int64_t)state);
  return weir_strbuf_status(answer, err);
}

/* ---- Reflection */

/* The one thing that is wanted; |number| 0: nothing. */
typedef struct wanted {
  uint32_t number;
  weir_sv text;
} wanted;

static bool read_wanted(weir_bytes request, wanted *out) {
  weir_reader r = weir_reader_of(request.data, request.size);
  weir_proto_field f;
  *out = (wanted){0, {"", 0}};
  if (request.size > kRequestBytes) return false;
  while (weir_proto_next(&r, &f))
    if (f.number >= kFileByName && f.number <= kServices &&
        f.wire == WEIR_PROTO_BYTES)
      *out = (wanted){f.number, text_of(&f)};
  return !r.failed;
}

/* Puts |part|, which it releases, as field |number|. */
static void put_part(weir_strbuf *answer, uint32_t number, weir_strbuf *part) {
  answer->failed |= part->failed;
  weir_proto_put_bytes(answer, number, weir_strbuf_view(part));
  weir_strbuf_release(part);
}

static void put_failure(weir_strbuf *answer, weir_status status,
                        const char *text) {
  weir_strbuf part;
  weir_strbuf_init(&part, answer->alloc);
  weir_proto_put_int(&part, 1, (int64_t)status);
  weir_proto_put_bytes(&part, 2, weir_sv_from(text));
  put_part(answer, 7, &part);
}

static void put_file(weir_strbuf *answer, const weir_rpc_file *file) {
  weir_strbuf part;
  weir_strbuf_init(&part, answer->alloc);
  weir_proto_put_bytes(&part, 1,
                       (weir_sv){(const char *)file->data, file->size});
  put_part(answer, 4, &part);
}

static void put_services(weir_strbuf *answer) {
  weir_strbuf part, service;
  weir_strbuf_init(&part, answer->alloc);
  for (const weir_rpc_symbol *s = weir_rpc_symbols; s->name != NULL; s++) {
    if (!s->service) continue;
    weir_strbuf_init(&service, answer->alloc);
    weir_proto_put_bytes(&service, 1, weir_sv_from(s->name));
    put_part(&part, 1, &service);
  }
  put_part(answer, 6, &part);
}

static void put_file_by_name(weir_strbuf *answer, weir_sv name) {
  for (const weir_rpc_file *f = weir_rpc_files; f->name != NULL; f++)
    if (weir_sv_is(name, f->name)) {
      put_file(answer, f);
      return;
    }
  put_failure(answer, WEIR_NOT_FOUND, "there is no file of that name");
}

weir_status weir_rpc_reflect(weir_bytes request, weir_strbuf *answer,
                             weir_error *err) {
  wanted w;
  if (!read_wanted(request, &w)) return unreadable(err, "reflection");
  weir_proto_put_bytes(answer, 2,
                       (weir_sv){(const char *)request.data, request.size});
  const weir_rpc_symbol *symbol =
      w.number == kFileOfSymbol ? find_symbol(w.text) : NULL;
  if (w.number == kServices)
    put_services(answer);
  else if (w.number == kFileByName)
    put_file_by_name(answer, w.text);
  else if (symbol != NULL)
    put_file(answer, &weir_rpc_files[symbol->file]);
  else if (w.number == kFileOfSymbol)
    put_failure(answer, WEIR_NOT_FOUND, "there is no symbol of that name");
  else if (w.number == kExtension || w.number == kExtensions)
    put_failure(answer, WEIR_NOT_FOUND, "no message here has extensions");
  else
    put_failure(answer, WEIR_INVALID_ARGUMENT, "nothing is asked for");
  return weir_strbuf_status(answer, err);
}
