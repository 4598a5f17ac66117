/* SPDX-License-Identifier: Apache-2.0 */
#include "placement/report/dump_html.h"
#include "runtime/base/json/json.h"
#include "runtime/tools/profile/profile.h"

/* The page of a profile: profile.js draws the flame graph and the table from
 * the JSON that `--json` has. */

/* profile.css and profile.js, built in; ends with a NULL name. */
extern const weir_embedded weir_embedded_profile[];

typedef struct source {
  const weir_tools_profile *profile;
  const char *title;
  weir_error *err;
} source;

static bool write_table(const void *self, const weir_writer *out) {
  const source *s = self;
  return weir_tools_profile_write(s->profile, out->write, out->self, s->err) ==
         WEIR_OK;
}

static bool write_json(const void *self, const weir_writer *out) {
  const source *s = self;
  weir_json_writer w;
  weir_json_writer_init(&w, *out, 1);
  weir_json_object_begin(&w, false);
  weir_json_key_text(&w, "title", weir_sv_from(s->title));
  weir_json_key(&w, "profile");
  weir_tools_profile_json(s->profile, &w);
  weir_json_object_end(&w);
  return weir_json_finish(&w);
}

weir_status weir_tools_profile_page(const weir_tools_profile *profile,
                                    const char *title, weir_write_fn write,
                                    void *self, weir_error *err) {
  weir_error own = WEIR_ERROR_INIT;
  source s = {profile, title, err != NULL ? err : &own};
  const weir_page page = {.title = title,
                          .parts = weir_embedded_profile,
                          .id = "profile",
                          .self = &s,
                          .text = write_table,
                          .json = write_json};
  const weir_writer out = {self, write};
  if (weir_page_write(&page, &out)) return WEIR_OK;
  if (s.err->id[0] != '\0') return s.err->code;
  return weir_fail(err, WEIR_W5009, NULL, "the profile could not be written");
}
