/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/words.h"

#include <stdarg.h>

#include "runtime/net/grpc/tls/tls.h"

/* gRPC's texts differ between versions: a known part of one is told in our own
 * words, anything else is passed on. No decision hangs on a text. */

typedef struct saying {
  const char *grpc, *ours;
} saying;

static const saying kConnect[] = {
    {"Connection refused", "Connection refused: nobody listens there"},
    {"No such file or directory", "no such socket: nobody listens there"},
    {"Domain name not found", "the name is not known"},
    {"C-ares status is not ARES_SUCCESS", "the name is not known"},
    {"DNS resolution failed", "the name is not known"},
    {"Network is unreachable", "Network is unreachable"},
    {"No route to host", "No route to host"},
    {"Permission denied", "Permission denied"},
    {"Socket closed",
     "somebody listens there and closed the connection: a task with `tls`, "
     "whose log says so, or no task"},
    {"Connection reset",
     "somebody listens there and cut the connection: a task with `tls`, whose "
     "log says so, or no task"},
    {NULL, NULL}};

static const saying kDropped[] = {
    {"keepalive", "no sign of life for 6 s"},
    {"ping timeout", "no sign of life for 6 s"},
    {"Connection timed out", "no sign of life for 6 s"},
    {"Socket closed", "the connection was cut"},
    {"Connection reset", "the connection was cut"},
    {"Broken pipe", "the connection was cut"},
    {NULL, NULL}};

static const saying kListen[] = {
    {"Address already in use", "another process listens there"},
    {"Cannot assign requested address", "it belongs to another machine"},
    {"Permission denied", "this user may not listen there"},
    {"No such file or directory", "its folder is not there"},
    {"Domain name not found", "the name is not known"},
    {"Name or service not known", "the name is not known"},
    {NULL, NULL}};

static const char *find(const saying *list, const char *text) {
  for (; list->grpc != NULL; list++)
    if (strstr(text, list->grpc) != NULL) return list->ours;
  return NULL;
}

/* Copies |text| without its control characters. */
static void put(char out[WEIR_GRPC_WORDS], const char *text) {
  size_t n = 0;
  for (; text[n] != '\0' && n + 1 < WEIR_GRPC_WORDS; n++)
    out[n] = (unsigned char)text[n] < ' ' || text[n] == 127 ? ' ' : text[n];
  out[n] = '\0';
}

/* Whether certificates are to blame, by what became of the peer's. */
static bool of_certificates(const weir_grpc_link *link, const char *text,
                            weir_close_reason *out_why,
                            char out[WEIR_GRPC_WORDS]) {
  char fault[WEIR_GRPC_FAULT_TEXT];
  bool seen;
  weir_grpc_fault is = weir_grpc_verdict_read(link->verdict, &seen, fault);
  if (is != WEIR_GRPC_SOUND) {
    snprintf(out, WEIR_GRPC_WORDS, "its certificate %.220s", fault);
    *out_why =
        is == WEIR_GRPC_EXPIRED ? WEIR_CLOSED_EXPIRED : WEIR_CLOSED_FOREIGN;
    return true;
  }
  if (seen) {
    put(out,
        "it closed the connection when it had seen our certificate: its log "
        "says why");
    *out_why = WEIR_CLOSED_NOT_TRUSTED;
    return true;
  }
  if (strstr(text, "Socket closed") != NULL ||
      strstr(text, "Connection reset") != NULL) {
    put(out, "it closed the connection before it showed a certificate");
    *out_why = WEIR_CLOSED_UNREACHABLE;
    return true;
  }
  if (strstr(text, "FD shutdown") != NULL) { /* by gRPC, whoever closed it */
    put(out, "the connection ended before it showed a certificate");
    *out_why = WEIR_CLOSED_UNREACHABLE;
    return true;
  }
  if (strstr(text, "handshake failed") == NULL) return false;
  put(out,
      "it does not speak TLS, as our cluster does: `tls` is not in its "
      "cluster");
  *out_why = WEIR_CLOSED_NO_TLS;
  return true;
}

static weir_close_reason before_it_was_open(const weir_grpc_link *link,
                                            const char *text,
                                            char out[WEIR_GRPC_WORDS]) {
  double seconds = (double)link->transport->base.options.connect_ns * 1e-9;
  bool foreign = link->timed_out && link->foreign;
  bool late = link->timed_out || strstr(text, "handshaker shutdown") != NULL;
  if (late && !foreign) {
    snprintf(out, WEIR_GRPC_WORDS, "no answer within %g s", seconds);
    return WEIR_CLOSED_UNREACHABLE;
  }
  if (foreign || link->code == GRPC_STATUS_UNIMPLEMENTED) {
    snprintf(out, WEIR_GRPC_WORDS, "no task of weir takes %s frames there",
             link->transport->base.options.cls == WEIR_NET_BULK ? "bulk"
                                                                : "control");
    return WEIR_CLOSED_REFUSED;
  }
  weir_close_reason why;
  if (link->verdict != NULL && of_certificates(link, text, &why, out))
    return why;
  const char *ours = find(kConnect, text);
  put(out, ours != NULL ? ours : text);
  return link->code == GRPC_STATUS_UNAVAILABLE ? WEIR_CLOSED_UNREACHABLE
                                               : WEIR_CLOSED_REFUSED;
}

weir_close_reason weir_grpc_words_of_end(const weir_grpc_link *link, bool open,
                                         char out[WEIR_GRPC_WORDS]) {
  out[0] = '\0';
  if (link->broken) {
    put(out, "there was no memory for a frame of it");
    return WEIR_CLOSED_RESET;
  }
  if (link->incoming) {
    if (!link->cancelled) return WEIR_CLOSED_BY_PEER;
    put(out, "the connection was cut");
    return WEIR_CLOSED_RESET;
  }
  if (open && link->code == GRPC_STATUS_OK) return WEIR_CLOSED_BY_PEER;
  char text[1024];
  size_t n = GRPC_SLICE_LENGTH(link->details);
  if (n >= sizeof text) n = sizeof text - 1;
  memcpy(text, GRPC_SLICE_START_PTR(link->details), n);
  text[n] = '\0';
  if (!open) return before_it_was_open(link, text, out);
  const char *ours = find(kDropped, text);
  put(out, ours != NULL ? ours : text);
  return link->code == GRPC_STATUS_RESOURCE_EXHAUSTED ? WEIR_CLOSED_REFUSED
                                                      : WEIR_CLOSED_RESET;
}

void weir_grpc_words_of_listen(const weir_grpc_address *address,
                               const char *log, char out[WEIR_GRPC_WORDS]) {
  const char *ours = find(kListen, log);
  const char *cause = strstr(log, "os_error:\"");
  if (ours != NULL) {
    put(out, ours);
  } else if (cause != NULL) {
    put(out, cause + strlen("os_error:\""));
    out[strcspn(out, "\"")] = '\0';
  } else if (address->path[0] == '\0' && address->host[0] > '9' &&
             address->host[0] != '[') {
    put(out, "the name is not known");
  } else {
    put(out, "gRPC cannot listen there");
  }
}

weir_status weir_grpc_host_fail(const weir_module_host *host, weir_error *err,
                                const char *id, const char *fmt, ...) {
  char text[sizeof err->message];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return host->fail(err, id, text);
}

weir_status weir_grpc_fail(const weir_grpc *t, weir_error *err, const char *id,
                           const char *fmt, ...) {
  char text[sizeof err->message];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return t->host->fail(err, id, text);
}

weir_status weir_grpc_fail_memory(const weir_grpc *t, weir_error *err,
                                  size_t bytes) {
  return weir_grpc_fail(t, err, "W6001", "out of memory: %zu bytes wanted",
                        bytes);
}

weir_status weir_grpc_check_address(const weir_grpc *t, weir_sv text,
                                    weir_grpc_address *out, weir_error *err) {
  const char *why = weir_grpc_address_read(text, out);
  if (why != NULL)
    return weir_grpc_fail(t, err, "W7002", "%.*s: %s", WEIR_SV(text), why);
  if (out->local || t->base.options.insecure || t->base.options.tls != NULL)
    return WEIR_OK;
  return weir_grpc_fail(t, err, "W7002",
                        "%s is not on this machine's loopback, and frames are "
                        "not encrypted: the cluster needs `tls`, or "
                        "`insecure: true` to permit it",
                        out->text);
}
