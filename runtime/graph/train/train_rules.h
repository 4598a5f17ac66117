/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_GRAPH_TRAIN_RULES_H_
#define WEIR_GRAPH_TRAIN_RULES_H_

#include "runtime/graph/train/train.h"
#include "runtime/graph/train/train_read.h"

/* The part of `train` about the graph: read by train_rules.c, carried out by
 * train_graph.c and its neighbours. */

enum { WEIR_SLOTS = 4, WEIR_SCHEDULE_ARGS = 3, WEIR_SCHEDULE_PARTS = 4 };

/* A slot: a state of the variable's shape, for the input of that name. */
typedef struct weir_slot_def {
  const char *name;         /* NULL ends the list */
  const char *initial;      /* argument of the optimizer that it begins with */
  double fallback;          /* or this */
  const char *only_if_attr; /* there only if this attribute is not 0 or false */
} weir_slot_def;

/* An optimizer: an op that updates one variable. Its inputs are found by name:
 * var, grad, lr, step, scale, else slots; its attributes are the optimizer's
 * arguments. */
typedef struct weir_optimizer_def {
  const char *name;
  const char *aliases[3];
  const char *op;
  weir_slot_def slots[WEIR_SLOTS];
} weir_optimizer_def;

typedef struct weir_train_graph_build weir_train_build;

/* A schedule: a factor of the learning rate that follows from the number of
 * finished updates. */
typedef struct weir_schedule_def {
  const char *name;
  struct {
    const char *name;
    double fallback; /* NAN: must be given */
    double min, max;
  } args[WEIR_SCHEDULE_ARGS];
  /* Adds nodes; |t| is the step as f64. */
  weir_value_id (*build)(weir_train_build *b, weir_value_id t,
                         const double *args);
} weir_schedule_def;

typedef struct weir_schedule_part {
  const weir_schedule_def *def;
  double args[WEIR_SCHEDULE_ARGS];
} weir_schedule_part;

/* The last pattern of a list that fits decides. */
typedef struct weir_train_pattern {
  weir_sv text;
  weir_mark mark;
  double value;
} weir_train_pattern;

typedef struct weir_train_patterns {
  const weir_train_pattern *items;
  uint32_t count;
  bool only; /* variables that no pattern fits are left out */
} weir_train_patterns;

/* An attribute of the optimizer's op, by index. */
typedef struct weir_optimizer_arg {
  int index;
  bool is_bool;
  double value;
} weir_optimizer_arg;

struct weir_train_rules {
  const weir_optimizer_def *optimizer;
  const weir_op_def *op;
  weir_mark mark; /* of the optimizer */
  weir_optimizer_arg args[WEIR_OP_ATTRS];
  uint32_t arg_count;
  double initial; /* of slots that ask for it; NAN: not given */
  double lr;
  weir_mark lr_mark; /* line 0: not given */
  weir_schedule_part parts[WEIR_SCHEDULE_PARTS];
  uint32_t part_count;
  weir_mark schedule_mark;
  double l2; /* of `l2:` in the section; NAN: not given */
  weir_mark l2_mark;
  double clip_value, clip_norm, clip_global_norm; /* 0: none */
  weir_mark clip_mark;
  weir_train_patterns trainable, lr_scale, l2_exclude, recompute;
  double ema_decay; /* 0: none */
};

/* The value of the last pattern that fits the variable, or |fallback|. */
double weir_train_patterns_value(const weir_train_patterns *patterns,
                                 const weir_graph *graph, weir_node_id var,
                                 double fallback);
/* Whether training changes |node| (a `var`), as far as the section says. */
bool weir_train_is_trained(const weir_graph *graph,
                           const struct weir_train_rules *rules,
                           weir_node_id node);

/* Key `optimizer`: a call of the table. */
bool weir_train_read_optimizer(weir_train_reader *r, const weir_yaml_entry *e,
                               void *target);

/* Key `lr`: a number, schedules, or a map. */
bool weir_train_read_lr(weir_train_reader *r, const weir_yaml_entry *e,
                        void *target);

/* A key whose value is a schedule or a list of them. */
bool weir_train_read_schedule(weir_train_reader *r, const weir_yaml_entry *e,
                              void *target);

/* Keys `trainable`, `l2_exclude`, `recompute`: patterns of names. */
bool weir_train_read_patterns(weir_train_reader *r, const weir_yaml_entry *e,
                              void *target);

#endif
