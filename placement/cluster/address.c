/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/cluster/address.h"

#include "placement/cluster.h"
#include "runtime/base/yaml/yaml_scalar.h"

/* Addresses in a cluster's section, each compared with those before it: at most
 * 512 tasks of 16 jobs. */

static weir_status bad(weir_error *err, const weir_mark *at, const char *what,
                       weir_sv text) {
  return weir_fail(err, WEIR_W3020, at, "cluster: %s: %.*s", what,
                   WEIR_SV(text));
}

/* Of a socket's path: 108 bytes with a NUL, and a task's second socket has
 * ".bulk" behind it. */
enum { PATH_BYTES = 102 };

/* An absolute path: tasks start in folders of their own. */
static bool is_path(weir_sv text) {
  for (size_t i = 0; i < text.size; i++)
    if ((unsigned char)text.data[i] < ' ' || text.data[i] == 127) return false;
  return text.size > 1 && text.size <= PATH_BYTES && text.data[0] == '/';
}

/* unix:/PATH, or HOST:PORT with an IPv6 host in brackets. */
static bool is_address(weir_sv text) {
  if (weir_sv_starts_with(text, "unix:"))
    return is_path((weir_sv){text.data + 5, text.size - 5});
  size_t colon = text.size;
  int64_t port;
  while (colon > 0 && text.data[colon - 1] != ':') colon--;
  if (colon < 2) return false;
  weir_sv host = {text.data, colon - 1};
  weir_sv number = {text.data + colon, text.size - colon};
  bool bracketed = host.data[0] == '[' && host.data[host.size - 1] == ']';
  for (size_t i = 0; i < host.size; i++) {
    char ch = host.data[i];
    if (ch <= ' ' || ch == '/' || (ch == ':' && !bracketed)) return false;
  }
  return number.size > 0 && number.data[0] >= '0' && number.data[0] <= '9' &&
         weir_text_int(number, &port) && port >= 1 && port <= 65535;
}

/* The list of a job's tasks, or NULL. */
static const weir_yaml *list_of(const weir_yaml *value) {
  if (value->kind == WEIR_YAML_MAP) value = weir_yaml_get(value, "addresses");
  return value != NULL && value->kind == WEIR_YAML_LIST ? value : NULL;
}

/* The address in an item of such a list, or NULL. */
static const weir_yaml *address_in(const weir_yaml *item) {
  return item->kind == WEIR_YAML_MAP ? weir_yaml_get(item, "address") : item;
}

/* Whether an earlier task of a section has |address|, which is item |item| of
 * entry |entry|. */
static const weir_yaml *find_address(const weir_yaml *section, uint32_t entry,
                                     uint32_t item, weir_sv address) {
  for (uint32_t i = 0; i <= entry; i++) {
    const weir_yaml *list = list_of(section->entries[i].value);
    if (list == NULL) continue;
    for (uint32_t k = 0; k < (i == entry ? item : list->count); k++) {
      const weir_yaml *a = address_in(list->items[k]);
      if (a != NULL && a->kind == WEIR_YAML_SCALAR &&
          weir_sv_equal(a->text, address))
        return a;
    }
  }
  return NULL;
}

weir_status weir_cluster_check_addresses(const weir_yaml *section,
                                         uint32_t entry, weir_error *err) {
  const weir_yaml *list = list_of(section->entries[entry].value);
  if (list == NULL) return WEIR_OK;
  if (list->count > WEIR_CLUSTER_TASKS) return WEIR_OK; /* refused later */
  for (uint32_t i = 0; i < list->count; i++) {
    const weir_yaml *a = address_in(list->items[i]);
    if (a == NULL) continue;
    if (a->kind != WEIR_YAML_SCALAR || !is_address(a->text)) {
      weir_status s =
          bad(err, &a->mark, "not an address",
              a->kind == WEIR_YAML_SCALAR ? a->text : WEIR_SV_LIT("a list"));
      weir_hint(err,
                "HOST:PORT, the port from 1 to 65535, or unix:/PATH, a path of "
                "at most %d bytes from the root",
                PATH_BYTES);
      return s;
    }
    const weir_yaml *before = find_address(section, entry, i, a->text);
    if (before == NULL) continue;
    weir_status s = bad(err, &a->mark, "an address given twice", a->text);
    weir_hint(err, "line %u has it too; a task has an address of its own",
              before->mark.line);
    return s;
  }
  return WEIR_OK;
}
