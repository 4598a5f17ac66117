/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_DIST_DRIVER_DRIVER_H_
#define WEIR_DIST_DRIVER_DRIVER_H_

#include "runtime/dist/link/link.h"

/* Drivers: one session over all tasks, from Begin to End.
 *
 *   create -> started -> register -> registered -> run -> stepped ... -> end
 *
 * Calls do not wait; each that is accepted ends with one callback, in the order
 * in which things happen. Callbacks come from the entries of this header only,
 * never from inside a call of their receiver, and may call anything but the
 * entries.
 *
 * A step of a program that assigns variables is committed on all tasks or on
 * none: when every part is prepared the driver decides, and stepped() says so;
 * with |hold| the caller decides (weir_driver_decide).
 * Such steps run one after the other; steps of other programs run beside each
 * other. The tasks confirm a commit with what they send next, so no step waits
 * for it; until then it is decided but not kept: tasks that lose the driver
 * before they hear of it abort the step. An error that ends the session names
 * the last step that is kept, and says so if one after it was decided.
 *
 * The session fails as a whole: a task that is lost, a step that is not done by
 * its deadline, or a broken protocol ends it. Everything under way then ends
 * with that error, which names the task; the remaining tasks are told and are
 * free again; over() is the last callback. Committed steps stay committed.
 *
 * Several drivers may have their sessions over the same tasks at the same time,
 * with the same variables (|share|). Then nothing that reads or writes
 * variables is called but in a turn:
 *
 *   turn -> turned -> run, variables_start, ask, register ... -> turn_end
 *
 * A turn is asked for at the home of the share's variables, which gives them in
 * the order in which they were asked for: one that writes is alone, those that
 * read may have theirs together. It is over once everything in it has ended and
 * all tasks have confirmed what was committed; the driver waits for that.
 *
 * Values are not the driver's: small feeds and fetches pass through it, larger
 * ones, variables and blobs go by a rendezvous that the caller owns, with the
 * peers and messages that place() and value() report. */

struct Weir__V1__CheckpointReply;
struct Weir__V1__Control;
struct Weir__V1__Register;

typedef struct weir_driver weir_driver;

typedef struct weir_driver_task {
  const char *job;
  uint32_t index;
  const char *address; /* of control */
} weir_driver_task;

typedef struct weir_driver_options {
  uint64_t epoch;   /* above that of each earlier session of the job */
  uint64_t profile; /* of kernels, of this process; 0: it does not count */
  const weir_driver_task *tasks; /* lent for create */
  uint32_t task_count;
  int64_t start_ns;    /* until all tasks have begun; 0: 30 s */
  int64_t register_ns; /* for a program; 0: 300 s */
  int64_t step_ns;     /* for a step; 0: 30 s, or 20 times the mean if longer */
  int64_t hang_ns;     /* for answers about a hang; 0: 2 s */
  const char *share;   /* lent for create; NULL or "": the tasks are its own */
  /* A bug that the simulator must find; 0: none. */
  uint32_t plant;
} weir_driver_options;

/* A program that all its tasks have. */
typedef struct weir_driver_program {
  uint32_t program;
  bool writes;           /* some part assigns variables */
  uint64_t memory_bytes; /* the sum over tasks */
} weir_driver_program;

/* A small value; |place|: the task that needs it, or made it. */
typedef struct weir_driver_value {
  uint32_t place, id;
  const void *data;
  size_t size;
} weir_driver_value;

/* How a step ended. Lent for the call of stepped(). */
typedef struct weir_driver_result {
  uint64_t step;
  bool committed;
  bool held; /* prepared everywhere: weir_driver_decide is awaited */
  const weir_driver_value *fetches; /* the small ones */
  size_t fetch_count;
} weir_driver_result;

/* A turn that has come. */
typedef struct weir_driver_turn {
  uint64_t number;
  bool fresh;       /* nobody has made the variables yet */
  uint32_t drivers; /* of the share, this one too */
} weir_driver_turn;

/* |err| NULL: it went well. */
typedef struct weir_driver_calls {
  void *self;
  void (*started)(void *self, const weir_error *err);
  void (*registered)(void *self, const weir_driver_program *program,
                     const weir_error *err);
  /* |err|: the failure that comes first in the order of nodes. */
  void (*stepped)(void *self, const weir_driver_result *result,
                  const weir_error *err);
  void (*variables)(void *self, uint64_t request, const weir_error *err);
  void (*over)(void *self, const weir_error *err);
  /* The connections of |place| are |peer|'s; NULL: it is lost. */
  void (*place)(void *self, uint32_t place, weir_peer *peer);
  /* A message of the rendezvous: Values, Ready, Cut. An error gives the
   * task up. */
  weir_status (*value)(void *self, uint32_t place,
                       const struct Weir__V1__Control *message,
                       weir_error *err);
  /* |place| wants the blob of that name (WEIR_BLOB_NAME_BYTES), as slot (BLOB,
   * number, 0). */
  weir_status (*blob)(void *self, uint32_t place, const uint8_t *name,
                      uint32_t number, weir_error *err);
  /* The values of |step| are no longer wanted. */
  void (*drop)(void *self, uint64_t step, const weir_error *why);
  /* A request of weir_driver_ask has ended; |reply|, lent, is what the task
   * says; NULL: the session has ended with |err|. NULL: nobody asks. */
  void (*replied)(void *self, uint64_t request,
                  const struct Weir__V1__CheckpointReply *reply,
                  const weir_error *err);
  /* The turn is here, or the session has ended with |err|. NULL: nobody asks.
   */
  void (*turned)(void *self, const weir_driver_turn *turn,
                 const weir_error *err);
} weir_driver_calls;

/* Begins to dial all tasks. |link| is lent; its events must be passed on. */
weir_status weir_driver_create(const weir_allocator *alloc, weir_link *link,
                               int64_t now_ns,
                               const weir_driver_options *options,
                               const weir_driver_calls *calls,
                               weir_driver **out_driver, weir_error *err);
/* Drops the peers without a word. NULL-safe. */
void weir_driver_release(weir_driver *driver);

/* Events of the link. */
void weir_driver_up(weir_driver *driver, int64_t now_ns, weir_peer *peer);
void weir_driver_message(weir_driver *driver, int64_t now_ns, weir_peer *peer,
                         const struct Weir__V1__Control *message);
void weir_driver_lost(weir_driver *driver, int64_t now_ns, weir_peer *peer,
                      const weir_error *why);
/* Does all that is due; returns when something is next, or INT64_MAX. */
int64_t weir_driver_tick(weir_driver *driver, int64_t now_ns);

/* Makes |request| a program on |places|, those with work; registered() follows.
 * The number of the program is set in |request| and given in |out_program|. At
 * most 16 at once. Errors: W7011 (not started, too many), W6001. */
weir_status weir_driver_register(weir_driver *driver, int64_t now_ns,
                                 struct Weir__V1__Register *request,
                                 const uint32_t *places, size_t count,
                                 uint32_t *out_program, weir_error *err);
/* Forgets a program without steps under way. Errors: W7011. */
weir_status weir_driver_unregister(weir_driver *driver, uint32_t program,
                                   weir_error *err);

/* A step to be run. All is copied. */
typedef struct weir_driver_step {
  uint32_t program;
  uint64_t random_step;
  const weir_driver_value *feeds; /* the small ones; a row for each task */
  size_t feed_count;
  bool hold; /* if it assigns: the caller decides */
} weir_driver_step;

/* Queues a step; stepped() follows. |out_step| names its slots. Errors: W7011,
 * W6001. */
weir_status weir_driver_run(weir_driver *driver, int64_t now_ns,
                            const weir_driver_step *step, uint64_t *out_step,
                            weir_error *err);

/* Commits or aborts a step that is held. The decision is final when this
 * returns; a session that has failed before gives its error. An abort drops no
 * values here. Errors: W7011, the session's. */
weir_status weir_driver_decide(weir_driver *driver, int64_t now_ns,
                               uint64_t step, bool commit, weir_error *err);
/* Gives up a step: it fails with |why| at the next tick, and the session goes
 * on. One that is held, or has ended, is left as it is. */
void weir_driver_cancel(weir_driver *driver, uint64_t step,
                        const weir_error *why);

/* Gets or sets variables of the task at |place|, whose values go as slots
 * (VARIABLE, node, request); variables() follows. No step is under way when
 * they are set. Errors: W7011, W6001. */
typedef struct weir_driver_variables {
  bool set;
  uint32_t place;
  uint32_t program; /* any of their bundle */
  const uint32_t *nodes;
  size_t count;
} weir_driver_variables;
weir_status weir_driver_variables_start(weir_driver *driver, int64_t now_ns,
                                        const weir_driver_variables *want,
                                        uint64_t *out_request, weir_error *err);

/* Sends |message|, one about checkpoints, to the task at |place|; replied()
 * follows, however long it takes: the task works on a disk. The number of the
 * request is given in |out_request|, which points into |message|. Errors:
 * W7011, W6001. */
weir_status weir_driver_ask(weir_driver *driver, int64_t now_ns, uint32_t place,
                            struct Weir__V1__Control *message,
                            uint64_t *out_request, weir_error *err);
/* Sends one that is not answered. */
void weir_driver_tell(weir_driver *driver, uint32_t place,
                      struct Weir__V1__Control *message);

/* Asks the task at |home| for the turn; turned() follows, however long it
 * takes. One at a time; it may be asked for while the last one ends. Errors:
 * W7011. */
weir_status weir_driver_turn_ask(weir_driver *driver, int64_t now_ns,
                                 uint32_t home, bool writes,
                                 uint64_t *out_number, weir_error *err);
/* Gives it back: nothing that was begun in it is under way. |made|: the
 * variables are there now, on all tasks. Also a turn that has not come. */
void weir_driver_turn_end(weir_driver *driver, int64_t now_ns, bool made);

/* Ends the session; over() follows at the next tick, or once a turn that was
 * given back has ended. |stop|: the tasks' processes end too. The tasks close
 * the connections then: go on with tick() and the link's events until
 * weir_driver_parted, or some may not hear of it.
 */
void weir_driver_end(weir_driver *driver, bool stop);
/* Whether the session is over and no connection is left. A task that does not
 * close is dropped 5 s after the end. */
bool weir_driver_parted(const weir_driver *driver);

/* The kernel profile that all tasks were told. 0 before they were. */
uint64_t weir_driver_profile(const weir_driver *driver);

/* Steps that are queued or run. */
size_t weir_driver_steps(const weir_driver *driver);
/* The last step that was decided to be committed, and the last one that all
 * its tasks have confirmed: with each before it, it is on every task. */
uint64_t weir_driver_committed(const weir_driver *driver);
uint64_t weir_driver_kept(const weir_driver *driver);

#endif
