/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/module_dir.h"

/* The loader of modules. The rule of where they are is in the header; here is
 * how it is kept: every path that is tried begins with '/', and the folder of
 * our own file comes from the linker (a library) or from the kernel (the
 * program), not from argv[0], which a caller may choose. */

static void *host_alloc(const weir_env *env, size_t bytes) {
  return weir_alloc(env->alloc, bytes);
}

static void host_free(const weir_env *env, void *ptr) {
  weir_free(env->alloc, ptr);
}

static weir_status host_fail(weir_error *err, const char *id,
                             const char *text) {
  const char *name;
  for (int i = 0; (name = weir_error_id_at(i)) != NULL; i++)
    if (strcmp(name, id) == 0)
      return weir_fail(err, (weir_error_id)(i + 1), NULL, "%s", text);
  return weir_fail(err, WEIR_W9001, NULL, "%s: %s", id, text);
}

static int64_t host_now_ns(const weir_env *env) {
  return env->clock->now_ns(env->clock->self);
}

/* The results of the search so far. */
typedef struct search {
  const weir_module_want *want;
  char own[PATH_MAX];  /* the file that holds this code; "": not known */
  char path[PATH_MAX]; /* the place that is looked at */
  char tried[400];     /* all folders, for the message */
} search;

/* Finds the file that holds this code. */
static void find_own(search *s) {
  static const char kHere = 0;
  Dl_info info;
  struct link_map *map = NULL;
  if (dladdr1(&kHere, &info, (void **)&map, RTLD_DL_LINKMAP) == 0) map = NULL;
  /* The linker has no name for the program itself. */
  bool program = map == NULL || map->l_name == NULL || map->l_name[0] == '\0';
  const char *name = program ? "/proc/self/exe" : map->l_name;
  if (name[0] != '/' || realpath(name, s->own) == NULL) s->own[0] = '\0';
}

/* Whether libweir_NAME.so is in |folder|/|more|. */
static bool is_there(search *s, const char *folder, const char *more) {
  size_t used = strlen(s->tried);
  /* A message may end early, a path may not. */
  int n = snprintf(s->tried + used, sizeof s->tried - used, "%s%s%s",
                   used == 0 ? "" : ", ", folder, more);
  if (n < 0) return false;
  n = snprintf(s->path, sizeof s->path, "%s%s/libweir_%s.so", folder, more,
               s->want->name);
  return n > 0 && (size_t)n < sizeof s->path && access(s->path, F_OK) == 0;
}

/* Looks at all places; leaves the first that has the file in |s->path|. */
static bool find(search *s) {
  const char *given = s->want->folder;
  if (given != NULL && given[0] == '/' && is_there(s, given, "")) return true;
  find_own(s);
  if (s->own[0] == '\0') return false;
  char folder[PATH_MAX];
  size_t size = (size_t)(strrchr(s->own, '/') - s->own);
  memcpy(folder, s->own, size);
  folder[size] = '\0';
  if (is_there(s, folder, "") || is_there(s, folder, "/..")) return true;
  if (WEIR_MODULE_DIR[0] == '/') return is_there(s, WEIR_MODULE_DIR, "");
  return is_there(s, folder, "/../" WEIR_MODULE_DIR);
}

/* Refuses a file that somebody else may have put there. */
static weir_status check_owner(const search *s, weir_error *err) {
  struct stat file, own;
  if (stat(s->path, &file) != 0 || !S_ISREG(file.st_mode))
    return weir_fail(err, s->want->error, NULL, "%s is not a plain file",
                     s->path);
  bool owner = file.st_uid == 0 || file.st_uid == geteuid() ||
               (s->own[0] != '\0' && stat(s->own, &own) == 0 &&
                file.st_uid == own.st_uid);
  if (!owner)
    return weir_fail(err, s->want->error, NULL,
                     "%s belongs to user %u: not to root, not to the user who "
                     "runs weir, not to the owner of weir",
                     s->path, (unsigned)file.st_uid);
  if ((file.st_mode & S_IWOTH) != 0)
    return weir_fail(err, s->want->error, NULL,
                     "%s can be written by everybody", s->path);
  return WEIR_OK;
}

static weir_status check_head(const search *s, const weir_module_head *head,
                              weir_error *err) {
  const weir_module_want *want = s->want;
  /* Past its version nothing of a head of another version is read. */
  if (head->version == WEIR_MODULE_VERSION &&
      head->functions_version == want->version &&
      strcmp(head->name, want->name) == 0)
    return WEIR_OK;
  if (head->version == WEIR_MODULE_VERSION &&
      strcmp(head->name, want->name) != 0)
    return weir_fail(err, want->error, NULL, "%s is the module %.32s, not %s",
                     s->path, head->name, want->name);
  uint32_t functions =
      head->version == WEIR_MODULE_VERSION ? head->functions_version : 0;
  return weir_fail(err, want->error, NULL,
                   "%s is of another weir: its version is %u.%u, this one "
                   "wants %u.%u",
                   s->path, head->version, functions, WEIR_MODULE_VERSION,
                   want->version);
}

static weir_status fail_missing(const search *s, weir_error *err) {
  weir_status status =
      weir_fail(err, s->want->error, NULL, "libweir_%s.so is in none of: %s",
                s->want->name, s->tried[0] != '\0' ? s->tried : "(no folder)");
  weir_hint(err,
            "this weir was built without %s, or the library was not copied "
            "with the rest",
            s->want->name);
  return status;
}

weir_status weir_module_open(weir_module_handle *module,
                             const weir_module_want *want, weir_error *err) {
  if (module->functions != NULL) return WEIR_OK;
  search s;
  s.want = want;
  s.own[0] = s.path[0] = s.tried[0] = '\0';
  module->absent = !find(&s);
  if (module->absent) return fail_missing(&s, err);
  if (s.own[0] == '\0') find_own(&s);
  WEIR_TRY(check_owner(&s, err));
  /* Never closed, also not when it does not fit: it may have begun threads. */
  void *library = dlopen(s.path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    const char *why = dlerror();
    return weir_fail(err, want->error, NULL, "%s cannot be loaded: %s", s.path,
                     why != NULL ? why : "unknown reason");
  }
  const weir_module_head *head = dlsym(library, "weir_module");
  if (head == NULL)
    return weir_fail(err, want->error, NULL,
                     "%s is no module of weir: it has no symbol weir_module",
                     s.path);
  WEIR_TRY(check_head(&s, head, err));
  module->host.version = WEIR_MODULE_VERSION;
  module->host.alloc = host_alloc;
  module->host.free = host_free;
  module->host.fail = host_fail;
  module->host.now_ns = host_now_ns;
  module->functions = head->functions;
  return WEIR_OK;
}
