/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/dist/ps/ps.h"

#include "runtime/base/table.h"

/* Names of messages and failpoints, and the bounds of a configuration. */

static const char *const kKinds[WEIR_PS_KIND_COUNT] = {
    [WEIR_PS_CLAIM] = "CLAIM",
    [WEIR_PS_GRANTED] = "GRANTED",
    [WEIR_PS_RECORD] = "RECORD",
    [WEIR_PS_RECORDED] = "RECORDED",
    [WEIR_PS_COMMITTED] = "COMMITTED",
    [WEIR_PS_GENERATION] = "GENERATION",
    [WEIR_PS_SAVE] = "SAVE",
    [WEIR_PS_TAKEN] = "TAKEN",
    [WEIR_PS_SAVED] = "SAVED",
    [WEIR_PS_EPOCH] = "EPOCH",
    [WEIR_PS_STATE] = "STATE",
    [WEIR_PS_REFUSED] = "REFUSED",
    [WEIR_PS_RESTORE] = "RESTORE",
    [WEIR_PS_RESTORED] = "RESTORED",
    [WEIR_PS_FENCE] = "FENCE",
    [WEIR_PS_FENCED] = "FENCED",
    [WEIR_PS_JOIN] = "JOIN",
    [WEIR_PS_WELCOME] = "WELCOME",
    [WEIR_PS_WANT] = "WANT",
    [WEIR_PS_LEASE] = "LEASE",
    [WEIR_PS_PROGRESS] = "PROGRESS",
    [WEIR_PS_LEAVE] = "LEAVE",
    [WEIR_PS_GONE] = "GONE",
    [WEIR_PS_BYE] = "BYE",
    [WEIR_PS_FAILED] = "FAILED",
    [WEIR_PS_OVER] = "OVER",
    [WEIR_PS_PULL] = "PULL",
    [WEIR_PS_PULLED] = "PULLED",
    [WEIR_PS_PUSH] = "PUSH",
    [WEIR_PS_PUSHED] = "PUSHED",
    [WEIR_PS_ASK] = "ASK",
    [WEIR_PS_MARK] = "MARK",
    [WEIR_PS_REST] = "REST",
    [WEIR_PS_SPARE] = "SPARE",
    [WEIR_PS_TAKE] = "TAKE",
    [WEIR_PS_READY] = "READY",
    [WEIR_PS_COMMIT] = "COMMIT",
    [WEIR_PS_NORM] = "NORM",
    [WEIR_PS_FETCH] = "FETCH",
    [WEIR_PS_FETCHED] = "FETCHED",
    [WEIR_PS_REPORT] = "REPORT",
    [WEIR_PS_KV] = "KV"};

WEIR_TABLE_OF(kKinds, WEIR_PS_KIND_COUNT);

const char *weir_ps_kind_name(weir_ps_kind kind) {
  return kind < WEIR_PS_KIND_COUNT ? kKinds[kind] : "?";
}

static const char *const kFailpoints[WEIR_PS_FP_COUNT] = {
#define WEIR_PS_FAILPOINT(id, name) [WEIR_PS_FP_##id] = name,
#include "runtime/dist/ps/failpoints.def"
#undef WEIR_PS_FAILPOINT
};

WEIR_TABLE_OF(kFailpoints, WEIR_PS_FP_COUNT);

const char *weir_ps_failpoint_name(weir_ps_failpoint fp) {
  size_t at = fp;
  return at < WEIR_PS_FP_COUNT ? kFailpoints[at] : "?";
}

static weir_status bad(weir_error *err, const char *name, uint64_t value,
                       const char *want) {
  return weir_fail(err, WEIR_W7090, NULL, "%s is %llu, want %s", name,
                   (unsigned long long)value, want);
}

weir_status weir_ps_config_check(const weir_ps_config *c, weir_error *err) {
  if (c->mode >= WEIR_PS_MODE_COUNT)
    return bad(err, "mode", c->mode, "async, sync or bounded");
  if (c->servers == 0 || c->servers > WEIR_PS_SERVERS)
    return bad(err, "servers", c->servers, "1 to 64");
  if (c->workers == 0 || c->workers > WEIR_PS_WORKERS)
    return bad(err, "workers", c->workers, "1 to 1024");
  bool sync = c->mode == WEIR_PS_SYNC, async = c->mode == WEIR_PS_ASYNC;
  if (c->aggregate == 0 || c->aggregate > WEIR_PS_AGGREGATE ||
      (!sync && c->aggregate != 1))
    return bad(err, "aggregate", c->aggregate,
               sync ? "1 to 4096" : "1 outside sync mode");
  if (c->backup >= WEIR_PS_WORKERS || (!sync && c->backup != 0))
    return bad(err, "backup", c->backup,
               sync ? "fewer than 1024" : "0 outside sync mode");
  if (c->mode != WEIR_PS_BOUNDED && c->staleness != 0)
    return bad(err, "staleness", c->staleness, "0 outside bounded mode");
  if ((!async || !c->limited) && c->max_staleness != 0)
    return bad(err, "max_staleness", c->max_staleness,
               "a limit, in async mode alone");
  if (!async && c->limited)
    return bad(err, "limited", 1, "none outside async mode");
  if (c->shares > WEIR_PS_EQUAL || (sync && c->shares != WEIR_PS_BY_LOAD))
    return bad(err, "shares", c->shares, "by load, or equal outside sync mode");
  if (c->window > 64 || (c->window > 1 && (!async || c->limited)))
    return bad(err, "window", c->window,
               "1 to 64 in async mode without max_staleness, else 1");
  if (!sync && c->norm) return bad(err, "norm", 1, "none outside sync mode");
  return WEIR_OK;
}
