/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_CLUSTER_CLUSTER_INTERNAL_H_
#define WEIR_DIST_CLUSTER_CLUSTER_INTERNAL_H_

#include <pthread.h>

#include "runtime/base/vec.h"
#include "runtime/dist/bundle/bundle.h"
#include "runtime/dist/cluster/blobs.h"
#include "runtime/dist/cluster/cluster.h"
#include "runtime/dist/cluster/gate.h"
#include "runtime/dist/cluster/wires.h"
#include "runtime/dist/link/out.h"
#include "runtime/exec/session/remote.h"
#include "runtime/graph/mesh/mesh_lower.h"

/* Shared by the files of the cluster.
 *
 * A call of a user is a weir_dist_op on his stack. It is posted to the control
 * thread, which starts it with the driver and puts it into the list of those
 * under way; the driver's callbacks find it there by its number. The thread
 * that brings the last piece marks it as done, under the lock, and touches it
 * no more.
 */

typedef enum weir_dist_kind {
  WEIR_DIST_PLAIN,     /* over when it was made on the control thread */
  WEIR_DIST_PROGRAM,   /* |number|: of the program */
  WEIR_DIST_RUN,       /* of the step */
  WEIR_DIST_TURN,      /* of the turn */
  WEIR_DIST_VARIABLES, /* one for each request, see cluster_vars.c */
  WEIR_DIST_ASK        /* likewise, see cluster_checkpoint.c */
} weir_dist_kind;

typedef struct weir_dist_op {
  weir_node_call call;
  weir_dist *dist;
  struct weir_dist_op *next; /* of those under way */
  weir_dist_kind kind;
  uint64_t number;
  /* Control thread: begins. WEIR_OK: it is under way, if |kind| says so. */
  weir_status (*start)(struct weir_dist_op *op, weir_error *err);
  bool listed, done;
  bool soon; /* it began a moment after the last one had ended */
  weir_status status;
  weir_error error;
} weir_dist_op;

/* A value that goes or comes for an op. */
typedef struct weir_dist_move {
  weir_channel_done done;
  struct weir_dist_op *op;
  uint32_t index;
} weir_dist_move;

/* The turn of this process among the drivers of a share (cluster_turn.h). */
typedef struct weir_dist_turn {
  enum {
    WEIR_DIST_TURN_NONE,
    WEIR_DIST_TURN_ASKED, /* or on its way back */
    WEIR_DIST_TURN_HERE
  } state;
  bool writes;
  uint32_t home, inside, joined; /* |joined|: since it came */
  uint64_t tickets, serving;     /* of calls; the one that may enter */
  weir_driver_turn told;
} weir_dist_turn;

/* Register.flags */
enum { WEIR_DIST_NO_FUSION = 1 };

struct weir_dist {
  const weir_env *env;
  weir_dist_options options;
  weir_wires *wires;
  weir_driver *driver;
  weir_link_out *out;
  struct weir_exchange *values; /* of dist/channel: the rendezvous */
  weir_peer **peers;            /* by place; control thread */
  uint64_t profile;
  weir_traffic traffic;
  weir_dist_blobs blobs;
  weir_dist_gate gate;
  bool shared; /* other drivers use the variables, too */
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Under the lock: */
  weir_dist_op *ops; /* under way */
  weir_dist_turn turn;
  uint64_t last_step, session_count;
  int64_t ended_ns;           /* the last run or decision */
  bool started, over, parted; /* parted: over, and without connections */
  weir_error error;           /* why it is over */
  /* Control thread: why the end was asked for; id "": it was not. */
  weir_error ending;
};

/* A variable of the session's own graph. */
typedef struct weir_dist_variable {
  weir_node_id node;
  size_t bytes;
  uint32_t home; /* a place */
  bool assigned; /* some node assigns it */
  bool set;      /* it was set from outside; the gate's exclusive side */
  bool *needed;  /* per place: some program is compiled with its value */
  bool *has;     /* per place: has the value that was set last */
} weir_dist_variable;

typedef struct weir_dist_session {
  weir_remote base;
  weir_dist *dist;
  const weir_graph *given;
  weir_mesh_graph *mesh;
  const weir_graph *graph; /* of all ids */
  weir_arena arena;
  uint8_t bundle[WEIR_BLOB_NAME_BYTES];
  const weir_placing *placing; /* lent */
  weir_strbuf bytes;           /* the bundle */
  WEIR_VEC(weir_dist_blob *) blobs;
  weir_dist_variable *variables;
  uint32_t variable_count;
  pthread_mutex_t preparing; /* one program at a time */
  pthread_mutex_t moment;    /* all variables are of one moment under it */
  uint32_t program;          /* the empty one, on all tasks */
  uint32_t home;             /* the lowest one of variables, a place */
} weir_dist_session;

struct weir_remote_program {
  weir_arena arena;
  uint32_t number;
  bool writes;
  uint32_t feed_count, fetch_count;
  struct weir_dist_row {
    uint32_t place; /* UINT32_MAX: nobody wants it */
    size_t bytes;
  } * feeds, *fetches;
  uint64_t held; /* the step to be decided; 0: none */
};

/* Has |op| made and waits for its end; op->status is returned. The caller fills
 * kind and start. */
weir_status weir_dist_call(weir_dist *dist, weir_dist_op *op, weir_error *err);
/* Begins it; wait then, under the lock, and call end. */
void weir_dist_begin(weir_dist *dist, weir_dist_op *op);
/* Begins it, and if the last call ended a moment ago it is the control thread
 * on this one until |over|. */
void weir_dist_begin_soon(weir_dist *dist, weir_dist_op *op,
                          weir_node_over (*over)(void *op));
/* It has ended, and its caller may be back in a moment. */
void weir_dist_ended(weir_dist *dist, const weir_dist_op *op);
/* What |over| says: whether others wait too. Under the lock. */
weir_node_over weir_dist_over(const weir_dist_op *op, bool over);
void weir_dist_leave(weir_dist *dist, weir_dist_op *op);
/* The op under way of that number; NULL. Under the lock. */
weir_dist_op *weir_dist_find(weir_dist *dist, weir_dist_kind kind,
                             uint64_t number);
/* |op| is over. Under the lock. */
void weir_dist_done(weir_dist_op *op, weir_status status,
                    const weir_error *err);
/* A value to or from |place| failed with |err|. If all that is known is that a
 * frame could not be sent, the session ends, and |err| says why. */
weir_status weir_dist_blame(weir_dist *dist, uint32_t place, weir_error *err);
/* Ends the whole session with |why|. Control thread. */
void weir_dist_give_up(weir_dist *dist, const weir_error *why);
/* |err|, or, when the session is given up, why. Control thread. */
const weir_error *weir_dist_cause(const weir_dist *dist, const weir_error *err);
int64_t weir_dist_now(const weir_dist *dist);

#endif
