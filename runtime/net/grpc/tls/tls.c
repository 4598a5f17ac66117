/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/tls/tls.h"

#include <grpc/support/string_util.h>

#include "runtime/net/grpc/words.h"

/* Files are read when a connection begins. When they have changed and are sound
 * they take the place of those before; when they are not, as while somebody
 * copies them, those before stay and the log gets one warning. Connections that
 * are up are not touched.
 *
 * `lock` guards the files: gRPC's threads ask for them. */

struct weir_grpc_tls {
  weir_grpc_owner owner;
  pthread_mutex_t lock;
  weir_grpc_pems now;                          /* sound when it was read */
  unsigned serial;                             /* of |now|, from 1 */
  char told[sizeof((weir_error *)0)->message]; /* the last warning; "" */
};

static void warn(weir_grpc_tls *tls, const char *why) {
  char text[640];
  const weir_module_host *host = tls->owner.host;
  if (host->log == NULL || strcmp(tls->told, why) == 0) return;
  snprintf(tls->told, sizeof tls->told, "%s", why);
  snprintf(text, sizeof text,
           "warning: %s; new connections use the files that were read before",
           why);
  host->log(host->log_self, text);
}

/* Takes new files if they are sound. With the lock held. */
static void look_again(weir_grpc_tls *tls) {
  weir_grpc_pems fresh;
  weir_error why = WEIR_ERROR_INIT;
  weir_status s = weir_grpc_pems_read(&tls->owner, &fresh, &why);
  bool same = s == WEIR_OK && weir_grpc_pems_equal(&fresh, &tls->now);
  if (s == WEIR_OK && !same)
    s = weir_grpc_check_own(&tls->owner, &fresh, false, &why);
  if (s != WEIR_OK) {
    warn(tls, why.message);
  } else {
    tls->told[0] = '\0';
    if (!same) {
      weir_grpc_pems old = tls->now;
      tls->now = fresh;
      fresh = old;
      tls->serial++;
    }
  }
  weir_grpc_pems_release(&tls->owner, &fresh);
}

weir_status weir_grpc_tls_create(const weir_grpc_owner *owner,
                                 weir_grpc_tls **out_tls, weir_error *err) {
  weir_grpc_tls *tls = owner->host->alloc(owner->env, sizeof *tls);
  *out_tls = NULL;
  if (tls == NULL)
    return weir_grpc_host_fail(owner->host, err, "W6001",
                               "out of memory: %zu bytes wanted", sizeof *tls);
  memset(tls, 0, sizeof *tls);
  tls->owner = *owner;
  pthread_mutex_init(&tls->lock, NULL);
  tls->serial = 1;
  weir_status s = weir_grpc_pems_read(owner, &tls->now, err);
  if (s == WEIR_OK) s = weir_grpc_check_own(owner, &tls->now, false, err);
  if (s == WEIR_OK)
    *out_tls = tls;
  else
    weir_grpc_tls_release(tls);
  return s;
}

void weir_grpc_tls_release(weir_grpc_tls *tls) {
  if (tls == NULL) return;
  weir_grpc_owner owner = tls->owner;
  weir_grpc_pems_release(&owner, &tls->now);
  pthread_mutex_destroy(&tls->lock);
  owner.host->free(owner.env, tls);
}

/* ---- Dialling */

/* gRPC may call its verifier after the transport has gone, so this is of gRPC's
 * own memory. */
struct weir_grpc_verdict {
  atomic_uint refs;
  atomic_int fault;                /* weir_grpc_fault; -1: nothing was seen */
  char text[WEIR_GRPC_FAULT_TEXT]; /* written before |fault| */
  char *ca;
  grpc_tls_certificate_verifier_external verifier;
};

void weir_grpc_verdict_release(weir_grpc_verdict *v) {
  if (v == NULL || atomic_fetch_sub(&v->refs, 1) != 1) return;
  gpr_free(v->ca);
  gpr_free(v);
}

weir_grpc_fault weir_grpc_verdict_read(const weir_grpc_verdict *v,
                                       bool *out_seen,
                                       char out[WEIR_GRPC_FAULT_TEXT]) {
  int fault =
      v == NULL ? -1 : atomic_load_explicit(&v->fault, memory_order_acquire);
  *out_seen = fault >= 0;
  out[0] = '\0';
  if (fault <= WEIR_GRPC_SOUND) return WEIR_GRPC_SOUND;
  memcpy(out, v->text, sizeof v->text);
  return (weir_grpc_fault)fault;
}

/* The certificate of the side that we dialled. Decides at once. */
static int verify(void *self, grpc_tls_custom_verification_check_request *r,
                  grpc_tls_on_custom_verification_check_done_cb done, void *arg,
                  grpc_status_code *status, char **text) {
  weir_grpc_verdict *v = self;
  (void)done, (void)arg;
  const char *chain = r->peer_info.peer_cert_full_chain;
  if (chain == NULL || chain[0] == '\0') chain = r->peer_info.peer_cert;
  weir_grpc_fault fault =
      weir_grpc_check_chain(v->ca, chain != NULL ? chain : "", true, v->text);
  atomic_store_explicit(&v->fault, (int)fault, memory_order_release);
  *status =
      fault == WEIR_GRPC_SOUND ? GRPC_STATUS_OK : GRPC_STATUS_UNAUTHENTICATED;
  if (fault != WEIR_GRPC_SOUND) *text = gpr_strdup(v->text);
  return 1;
}

static void cancel(void *self, grpc_tls_custom_verification_check_request *r) {
  (void)self, (void)r;
}

static void destruct(void *self) {
  weir_grpc_verdict_release(self);
}

static weir_grpc_verdict *make_verdict(const char *ca) {
  weir_grpc_verdict *v = gpr_zalloc(sizeof *v);
  atomic_init(&v->refs, 2); /* the caller, and the verifier */
  atomic_init(&v->fault, -1);
  v->ca = gpr_strdup(ca);
  v->verifier = (grpc_tls_certificate_verifier_external){
      .user_data = v, .verify = verify, .cancel = cancel, .destruct = destruct};
  return v;
}

/* gRPC does not check the chain itself: its verifier does, which is ours. */
static grpc_channel_credentials *make_channel(const weir_grpc_pems *pems,
                                              weir_grpc_verdict *v) {
  grpc_tls_identity_pairs *pairs = grpc_tls_identity_pairs_create();
  grpc_tls_identity_pairs_add_pair(pairs, pems->text[WEIR_GRPC_KEY],
                                   pems->text[WEIR_GRPC_CERT]);
  grpc_tls_certificate_provider *provider =
      grpc_tls_certificate_provider_static_data_create(pems->text[WEIR_GRPC_CA],
                                                       pairs);
  grpc_tls_certificate_verifier *verifier =
      grpc_tls_certificate_verifier_external_create(&v->verifier);
  grpc_tls_credentials_options *o = grpc_tls_credentials_options_create();
  grpc_tls_credentials_options_set_certificate_provider(o, provider);
  grpc_tls_credentials_options_watch_root_certs(o);
  grpc_tls_credentials_options_watch_identity_key_cert_pairs(o);
  grpc_tls_credentials_options_set_certificate_verifier(o, verifier);
  grpc_tls_credentials_options_set_verify_server_cert(o, 0);
  grpc_tls_credentials_options_set_check_call_host(o, 0);
  grpc_channel_credentials *made = grpc_tls_credentials_create(o);
  grpc_tls_certificate_verifier_release(verifier);
  grpc_tls_certificate_provider_release(provider);
  return made;
}

weir_status weir_grpc_tls_dial(weir_grpc_tls *tls,
                               grpc_channel_credentials **out,
                               weir_grpc_verdict **out_verdict,
                               weir_error *err) {
  *out = NULL;
  *out_verdict = NULL;
  pthread_mutex_lock(&tls->lock);
  look_again(tls);
  weir_status s = weir_grpc_check_own(&tls->owner, &tls->now, false, err);
  if (s == WEIR_OK) {
    *out_verdict = make_verdict(tls->now.text[WEIR_GRPC_CA]);
    *out = make_channel(&tls->now, *out_verdict);
  }
  pthread_mutex_unlock(&tls->lock);
  return s;
}

/* ---- Listening */

/* The present files, for a connection that has come in. */
static grpc_ssl_certificate_config_reload_status fetch(
    void *self, grpc_ssl_server_certificate_config **out) {
  weir_grpc_tls_seen *seen = self;
  weir_grpc_tls *tls = seen->tls;
  pthread_mutex_lock(&tls->lock);
  look_again(tls);
  bool fresh = seen->serial != tls->serial;
  if (fresh) {
    grpc_ssl_pem_key_cert_pair pair = {tls->now.text[WEIR_GRPC_KEY],
                                       tls->now.text[WEIR_GRPC_CERT]};
    /* gRPC 1.51 aborts without roots, also where nobody is asked for a
     * certificate. */
    const char *roots = tls->now.text[WEIR_GRPC_CA];
    if (roots == NULL) roots = tls->now.text[WEIR_GRPC_CERT];
    *out = grpc_ssl_server_certificate_config_create(roots, &pair, 1);
    seen->serial = tls->serial;
  }
  pthread_mutex_unlock(&tls->lock);
  return fresh ? GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW
               : GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
}

weir_status weir_grpc_tls_listen(weir_grpc_tls *tls, weir_grpc_tls_seen *seen,
                                 grpc_server_credentials **out,
                                 weir_error *err) {
  pthread_mutex_lock(&tls->lock);
  weir_status s = weir_grpc_check_own(&tls->owner, &tls->now, true, err);
  pthread_mutex_unlock(&tls->lock);
  *out = NULL;
  if (s != WEIR_OK) return s;
  *seen = (weir_grpc_tls_seen){.tls = tls};
  *out = grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(
          tls->owner.files->ca != NULL
              ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
              : GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE,
          fetch, seen));
  return WEIR_OK;
}

/* ---- Names */

static bool is_plain(const char *name, size_t size) {
  for (size_t i = 0; i < size; i++) {
    char c = name[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
          (c >= '0' && c <= '9') || strchr("_-./:", c) != NULL) ||
        c == '\0')
      return false;
  }
  return true;
}

void weir_grpc_tls_names(grpc_call *call, char out[WEIR_NET_NAMES_BYTES]) {
  size_t used = 0;
  out[0] = '\0';
  grpc_auth_context *context = grpc_call_auth_context(call);
  if (context == NULL) return;
  grpc_auth_property_iterator it = grpc_auth_context_find_properties_by_name(
      context, GRPC_PEER_URI_PROPERTY_NAME);
  const grpc_auth_property *p;
  while ((p = grpc_auth_property_iterator_next(&it)) != NULL) {
    weir_sv name = {p->value, p->value_length};
    if (!weir_sv_starts_with(name, "weir://") ||
        !is_plain(name.data, name.size) ||
        name.size + 2 > WEIR_NET_NAMES_BYTES - used)
      continue;
    used += (size_t)snprintf(out + used, WEIR_NET_NAMES_BYTES - used, "%.*s ",
                             WEIR_SV(name));
  }
  grpc_auth_context_release(context);
}
