/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/net/grpc/tls/check.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include "runtime/net/grpc/words.h"

/* One check of chains, X509_verify_cert with the flags that gRPC sets, for our
 * own certificates and for those of peers that we dial. */

enum { NAMES = 256 };

/* A key with a passphrase is refused: nobody is there to type it. */
static int no_passphrase(char *buffer, int size, int writes, void *self) {
  (void)buffer, (void)size, (void)writes, (void)self;
  return -1;
}

static X509 *next_certificate(BIO *bio) {
  return PEM_read_bio_X509(bio, NULL, no_passphrase, NULL);
}

/* The rest of |bio| in |list|; false: out of memory. */
static bool read_rest(BIO *bio, STACK_OF(X509) * list) {
  X509 *it;
  while ((it = next_certificate(bio)) != NULL)
    if (sk_X509_push(list, it) <= 0) {
      X509_free(it);
      return false;
    }
  return true;
}

static size_t add_authorities(X509_STORE *store, const char *ca) {
  size_t count = 0;
  BIO *bio = BIO_new_mem_buf(ca, -1);
  X509 *it;
  while (bio != NULL && (it = next_certificate(bio)) != NULL) {
    count += X509_STORE_add_cert(store, it) == 1;
    X509_free(it);
  }
  BIO_free(bio);
  return count;
}

/* "expired on Nov 23 11:25:28 2027 GMT" */
static void put_time(const char *what, const ASN1_TIME *at,
                     char out[WEIR_GRPC_FAULT_TEXT]) {
  char text[64] = "?";
  BIO *bio = BIO_new(BIO_s_mem());
  if (bio != NULL && ASN1_TIME_print(bio, at) == 1) {
    int n = BIO_read(bio, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
  }
  BIO_free(bio);
  snprintf(out, WEIR_GRPC_FAULT_TEXT, "%s %s", what, text);
}

static weir_grpc_fault fault_of(X509_STORE_CTX *ctx,
                                char out[WEIR_GRPC_FAULT_TEXT]) {
  int code = X509_STORE_CTX_get_error(ctx);
  X509 *at = X509_STORE_CTX_get_current_cert(ctx);
  switch (code) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
      if (at == NULL) break;
      put_time("has expired on", X509_get0_notAfter(at), out);
      return WEIR_GRPC_EXPIRED;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      if (at == NULL) break;
      put_time("is not valid before", X509_get0_notBefore(at), out);
      return WEIR_GRPC_EXPIRED;
    case X509_V_ERR_INVALID_PURPOSE:
      snprintf(out, WEIR_GRPC_FAULT_TEXT,
               "is not for this side of a connection: serverAuth and "
               "clientAuth are expected");
      return WEIR_GRPC_UNFIT;
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      snprintf(out, WEIR_GRPC_FAULT_TEXT,
               "is signed by another authority than those of our `ca`");
      return WEIR_GRPC_FOREIGN;
    default:
      break;
  }
  snprintf(out, WEIR_GRPC_FAULT_TEXT, "is refused: %s",
           X509_verify_cert_error_string(code));
  return WEIR_GRPC_FOREIGN;
}

/* The parts of a check. */
typedef struct chain {
  BIO *bio;
  X509 *leaf;
  STACK_OF(X509) * rest;
  X509_STORE *store;
  X509_STORE_CTX *ctx;
} chain;

static weir_grpc_fault verify(chain *c, const char *ca, bool listens,
                              char out[WEIR_GRPC_FAULT_TEXT]) {
  snprintf(out, WEIR_GRPC_FAULT_TEXT, "cannot be read as PEM");
  if (c->bio == NULL || (c->leaf = next_certificate(c->bio)) == NULL)
    return WEIR_GRPC_NO_PEM;
  snprintf(out, WEIR_GRPC_FAULT_TEXT, "cannot be checked: out of memory");
  c->rest = sk_X509_new_null();
  c->store = X509_STORE_new();
  c->ctx = X509_STORE_CTX_new();
  if (c->rest == NULL || c->store == NULL || c->ctx == NULL ||
      !read_rest(c->bio, c->rest))
    return WEIR_GRPC_FOREIGN;
  add_authorities(c->store, ca);
  if (X509_STORE_CTX_init(c->ctx, c->store, c->leaf, c->rest) != 1 ||
      X509_STORE_CTX_set_purpose(c->ctx, listens
                                             ? X509_PURPOSE_SSL_SERVER
                                             : X509_PURPOSE_SSL_CLIENT) != 1)
    return WEIR_GRPC_FOREIGN;
  X509_STORE_CTX_set_flags(
      c->ctx, X509_V_FLAG_PARTIAL_CHAIN | X509_V_FLAG_TRUSTED_FIRST);
  if (X509_verify_cert(c->ctx) != 1) return fault_of(c->ctx, out);
  out[0] = '\0';
  return WEIR_GRPC_SOUND;
}

weir_grpc_fault weir_grpc_check_chain(const char *ca, const char *text,
                                      bool listens,
                                      char out[WEIR_GRPC_FAULT_TEXT]) {
  chain c = {.bio = BIO_new_mem_buf(text, -1)};
  weir_grpc_fault fault = verify(&c, ca, listens, out);
  X509_STORE_CTX_free(c.ctx);
  X509_STORE_free(c.store);
  sk_X509_pop_free(c.rest, X509_free);
  X509_free(c.leaf);
  BIO_free(c.bio);
  ERR_clear_error();
  return fault;
}

/* ---- Our own */

/* Whether |leaf| has the name |want|; |names| gets those of weir that it has.
 */
static bool has_name(X509 *leaf, const char *want, char names[NAMES]) {
  bool found = false;
  size_t used = 0;
  GENERAL_NAMES *all = X509_get_ext_d2i(leaf, NID_subject_alt_name, NULL, NULL);
  names[0] = '\0';
  for (int i = 0; i < sk_GENERAL_NAME_num(all); i++) {
    const GENERAL_NAME *it = sk_GENERAL_NAME_value(all, i);
    if (it->type != GEN_URI) continue;
    const ASN1_IA5STRING *uri = it->d.uniformResourceIdentifier;
    weir_sv name = {(const char *)ASN1_STRING_get0_data(uri),
                    (size_t)ASN1_STRING_length(uri)};
    if (!weir_sv_starts_with(name, "weir://")) continue;
    found |= weir_sv_equal(name, weir_sv_from(want));
    if (name.size + 2 < NAMES - used)
      used += (size_t)snprintf(names + used, NAMES - used, "%s%.*s",
                               used > 0 ? " " : "", WEIR_SV(name));
  }
  GENERAL_NAMES_free(all);
  return found;
}

static weir_status check_pair(const weir_grpc_owner *o, X509 *leaf,
                              EVP_PKEY *key, weir_error *err) {
  const weir_net_tls *tls = o->files;
  char names[NAMES];
  if (leaf == NULL)
    return weir_grpc_host_fail(o->host, err, "W7060",
                               "tls: %.300s holds no certificate in PEM form",
                               tls->cert);
  if (key == NULL)
    return weir_grpc_host_fail(o->host, err, "W7060",
                               "tls: %.300s holds no private key in PEM form "
                               "without a passphrase",
                               tls->key);
  if (X509_check_private_key(leaf, key) != 1)
    return weir_grpc_host_fail(
        o->host, err, "W7060",
        "tls: the key %.200s does not fit the certificate "
        "%.200s",
        tls->key, tls->cert);
  if (tls->name != NULL && !has_name(leaf, tls->name, names))
    return weir_grpc_host_fail(
        o->host, err, "W7060",
        "tls: the certificate %.200s is of %s, this process is %s", tls->cert,
        names[0] != '\0' ? names : "no task", tls->name);
  return WEIR_OK;
}

static bool holds_authority(const char *ca) {
  BIO *bio = BIO_new_mem_buf(ca, -1);
  X509 *it = bio != NULL ? next_certificate(bio) : NULL;
  X509_free(it);
  BIO_free(bio);
  return it != NULL;
}

/* Of a certificate for anybody's clients, who know its authority: we may not.
 */
static weir_grpc_fault check_server(const char *text,
                                    char out[WEIR_GRPC_FAULT_TEXT]) {
  weir_grpc_fault fault = WEIR_GRPC_SOUND;
  BIO *bio = BIO_new_mem_buf(text, -1);
  X509 *leaf = bio != NULL ? next_certificate(bio) : NULL;
  out[0] = '\0';
  if (leaf == NULL) {
    snprintf(out, WEIR_GRPC_FAULT_TEXT, "cannot be read as PEM");
    fault = WEIR_GRPC_NO_PEM;
  } else if (X509_cmp_current_time(X509_get0_notAfter(leaf)) <= 0) {
    put_time("has expired on", X509_get0_notAfter(leaf), out);
    fault = WEIR_GRPC_EXPIRED;
  } else if (X509_cmp_current_time(X509_get0_notBefore(leaf)) > 0) {
    put_time("is not valid before", X509_get0_notBefore(leaf), out);
    fault = WEIR_GRPC_EXPIRED;
  } else if (X509_check_purpose(leaf, X509_PURPOSE_SSL_SERVER, 0) != 1) {
    snprintf(out, WEIR_GRPC_FAULT_TEXT,
             "is not for servers: the use serverAuth is expected");
    fault = WEIR_GRPC_UNFIT;
  }
  X509_free(leaf);
  BIO_free(bio);
  ERR_clear_error();
  return fault;
}

static weir_grpc_fault check_chain(const weir_grpc_owner *o,
                                   const weir_grpc_pems *pems, bool listens,
                                   char out[WEIR_GRPC_FAULT_TEXT]) {
  const char *cert = pems->text[WEIR_GRPC_CERT];
  return o->files->name == NULL
             ? check_server(cert, out)
             : weir_grpc_check_chain(pems->text[WEIR_GRPC_CA], cert, listens,
                                     out);
}

weir_status weir_grpc_check_own(const weir_grpc_owner *o,
                                const weir_grpc_pems *pems, bool listens,
                                weir_error *err) {
  const weir_net_tls *tls = o->files;
  if (tls->ca != NULL && !holds_authority(pems->text[WEIR_GRPC_CA])) {
    ERR_clear_error();
    return weir_grpc_host_fail(o->host, err, "W7060",
                               "tls: %.300s holds no certificate in PEM form",
                               tls->ca);
  }
  BIO *cert = BIO_new_mem_buf(pems->text[WEIR_GRPC_CERT], -1);
  BIO *bio = BIO_new_mem_buf(pems->text[WEIR_GRPC_KEY], -1);
  X509 *leaf = cert != NULL ? next_certificate(cert) : NULL;
  EVP_PKEY *key = bio != NULL
                      ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL)
                      : NULL;
  weir_status s = check_pair(o, leaf, key, err);
  EVP_PKEY_free(key);
  X509_free(leaf);
  BIO_free(bio);
  BIO_free(cert);
  ERR_clear_error();
  char why[WEIR_GRPC_FAULT_TEXT];
  if (s == WEIR_OK && check_chain(o, pems, listens, why) != WEIR_GRPC_SOUND)
    s = weir_grpc_host_fail(o->host, err, "W7060",
                            "tls: the certificate %.200s %s", tls->cert, why);
  return s;
}
