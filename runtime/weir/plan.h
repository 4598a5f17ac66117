/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_WEIR_PLAN_H_
#define WEIR_WEIR_PLAN_H_

#include "runtime/weir/graph.h"
#include "runtime/weir/types.h"

/* ---- Plans: where each node of a graph runs, when, and why.
 *
 *   weir_plan_opts opts = {.struct_size = sizeof opts};
 *   weir_plan_node node = {.struct_size = sizeof node};
 *   opts.cluster = "ps=1,worker=2";
 *   s = weir_plan_create(runtime, graph, &opts, &plan, &err);
 *   for (size_t i = 0; i < weir_plan_count(plan, WEIR_PLAN_NODES); i++)
 *     if (weir_plan_node_at(plan, i, &node, &err) == WEIR_OK)
 *       printf("%.*s on device %u\n", (int)node.name.size, node.name.data,
 *              node.device);
 *   weir_plan_release(plan);
 *
 * A plan is made by a model of the cluster, which need not be there: times are
 * the model's prediction of one step, in nanoseconds from its start. A plan is
 * immutable, retains its graph, and may be read from many threads. Its
 * texts are lent as long as it lives. Where a number is not known or a thing is
 * not there, a field is WEIR_PLAN_NONE, or -1 if it is signed.
 *
 * A node of a plan is placed as one: nodes of the graph that are fused, or one
 * node. Constants are on every device and are not listed. */

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_PLAN_NONE UINT32_MAX

/* How far a search is. */
typedef struct weir_plan_progress {
  uint32_t struct_size;
  int64_t elapsed_ns; /* since the plan was asked for */
  uint64_t asked;     /* how many times before it was reported */
  int64_t best_ns;    /* the shortest step so far; -1: there is no plan yet */
  int64_t bound_ns;   /* no plan is shorter, as far as is known */
} weir_plan_progress;

typedef enum weir_plan_answer {
  WEIR_PLAN_GO_ON = 0,
  WEIR_PLAN_ENOUGH = 1, /* end the search, take the best plan so far */
  WEIR_PLAN_CANCEL = 2  /* give up: W5005 */
} weir_plan_answer;

/* A plan as WEIR_PLAN_JSON writes it. */
typedef struct weir_plan_text {
  uint32_t struct_size;
  const char *json;
  size_t size;
  const char *name; /* for messages; NULL: "plan" */
} weir_plan_text;

typedef struct weir_plan_opts {
  uint32_t struct_size;
  /* Requests that no device meets: -1 all are dropped, 0 as their rules say, 1
   * none is (W3002). */
  int32_t strictness;
  /* "ps=1,worker=2,gpu=1,gpu_memory=8GiB", "auto" (this machine), "graph" (its
   * own), the name of a file that ends in .yaml; NULL: the graph's own if it
   * has one, else this machine. */
  const char *cluster;
  const char *objective; /* `weir place --help` lists them; NULL: the first */
  const char *placer;    /* likewise; with a seed "random:7"; with one that
                          * does not search, |moves|, |budget_ns| and
                          * |portfolio_only| are refused */
  uint64_t seed;         /* of the placer; "random:7" says its own */
  uint64_t moves;        /* of local search; 0: by the number of nodes */
  int64_t budget_ns;     /* ends the search too; 0: no */
  bool open;             /* a dimension that nothing fixes has a nominal size;
                          * else W2008 */
  bool inference;        /* the outputs, though the graph has `train` */
  bool portfolio_only;   /* no local search */
  bool in_process;       /* all tasks are of this process: a measured link
                          * joins them too */
  bool calibrate;        /* run the graph here and measure its nodes first */
  /* A cost file; with |calibrate| it is made, or gets the new measurements.
   * NULL: none, or those of |before|. */
  const char *costs;
  const char *const *pins; /* "node=device": where nodes ask to be */
  size_t pin_count;
  /* What if: changes of the cluster or of requests, in order ("remove gpu:1",
   * "add worker"), and the plan of this graph that they start from. */
  const char *const *changes;
  size_t change_count;
  const weir_plan *before;
  uint32_t microbatches; /* in flight in a pipeline; 0: 8 */
  /* Tensors that will be fed: their shapes fix the dimensions that the graph
   * leaves open. Nothing else of them is read. */
  const struct weir_feed *feeds;
  size_t feed_count;
  const weir_plan_text *given; /* a plan that joins the candidates; or NULL */
  /* Called now and then while it searches, on the calling thread. */
  weir_plan_answer (*on_progress)(void *self,
                                  const weir_plan_progress *progress);
  void *on_progress_self;
  /* Called for every warning, on the calling thread; |diag| is lent. */
  void (*on_diag)(void *self, const weir_diag *diag);
  void *on_diag_self;
  /* A kind of device, "gpu", on which every op counts as having a kernel: the
   * plan shows what such devices would bring, and cannot be run. NULL: none. */
  const char *assume_kernels;
  /* A training between graphs (`mode: async`, `sync`, `bounded`) is planned as
   * the step of one worker and the servers, a template of all workers: W3020
   * where the cluster has no job ps or worker. A trainer that is given the plan
   * has as many replicas, on threads of this process. Else, like any training,
   * as one graph over all devices. */
  bool replica;
  /* The plan is for this process to run: where its cluster has GPUs and this
   * process has none, nothing is put there, with the warning W6004, which is
   * an error when |strictness| is 1. More GPUs of a task than this process has
   * are an error always. A session's own plans are always so. */
  bool present;
} weir_plan_opts;

/* Places the nodes of a step of |graph|'s training, or of its outputs. Blocks.
 * |opts| may be NULL. Errors: W0002, W0004, W2008, W3001-W3020, W3040, W3045,
 * W3047, W4001, W5005, W5009, W6001, W6004 (|present|); with |calibrate| those
 * of running. */
WEIR_API weir_status weir_plan_create(weir_runtime *runtime,
                                      const weir_graph *graph,
                                      const weir_plan_opts *opts,
                                      weir_plan **out_plan, weir_error *err);

/* The plan of |graph| that |text| says; |opts| as it was made with. Errors:
 * W3013, W3016 (of another graph or cluster, or unsound), W4013, those of
 * weir_plan_create. */
WEIR_API weir_status weir_plan_from_json(weir_runtime *runtime,
                                         const weir_graph *graph,
                                         const weir_plan_opts *opts,
                                         const weir_plan_text *text,
                                         weir_plan **out_plan, weir_error *err);
/* One more reference to |plan|, which is returned; release drops one. */
WEIR_API weir_plan *weir_plan_retain(const weir_plan *plan);
WEIR_API void weir_plan_release(const weir_plan *plan);

/* ---- The contents of a plan, by index. */

typedef enum weir_plan_rows {
  WEIR_PLAN_NODES = 0,
  WEIR_PLAN_DEVICES = 1,
  WEIR_PLAN_COPIES = 2,
  WEIR_PLAN_PARTS = 3, /* devices that have work */
  WEIR_PLAN_EDGES = 4, /* between parts */
  WEIR_PLAN_FIGURES = 5
} weir_plan_rows;

/* How many rows there are; 0 when |plan| is NULL. Parts and edges are made when
 * they are first asked for; without memory for them there are 0. */
WEIR_API size_t weir_plan_count(const weir_plan *plan, weir_plan_rows rows);

/* Where a cost is from. */
typedef enum weir_plan_cost {
  WEIR_PLAN_COST_ESTIMATED = 0, /* from arithmetic and memory traffic */
  WEIR_PLAN_COST_MEASURED = 1,
  WEIR_PLAN_COST_GIVEN = 2 /* a `task` states its own */
} weir_plan_cost;

typedef struct weir_plan_node {
  uint32_t struct_size;
  uint32_t device;   /* where it is */
  weir_text name;    /* of the fused nodes' last */
  weir_text op;      /* of that */
  weir_text request; /* the device that it asked for: of its `@`, its rule, its
                      * pin; empty: none */
  uint32_t rule;     /* of `placement:` that asked, from 0; or NONE */
  uint32_t with;     /* the node that it has to be with; or NONE */
  uint32_t members;  /* nodes of the graph that it is made of */
  bool relaxed;      /* its request was dropped: no device meets it */
  weir_plan_cost cost_source;
  int64_t start_ns, end_ns;
  int64_t cost_ns;        /* there */
  const char *reason;     /* "eft", "only", "home": static text */
  const char *reason_why; /* the same as a sentence */
} weir_plan_node;

typedef struct weir_plan_device {
  uint32_t struct_size;
  uint32_t nodes;     /* that it has */
  weir_text name;     /* /job:worker/task:0/device:CPU:0 */
  weir_text kind;     /* "CPU", "GPU" */
  int64_t peak_bytes; /* most that it holds at once */
  int64_t cap_bytes;  /* that it can hold; -1: no limit is known */
  int64_t busy_ns;    /* of a step */
} weir_plan_device;

/* A tensor's way from one device to another, as the model sees it. */
typedef struct weir_plan_copy {
  uint32_t struct_size;
  uint32_t from, to; /* devices */
  uint32_t node;     /* that made it */
  int64_t bytes;
  int64_t start_ns, end_ns;
} weir_plan_copy;

/* The work of one device, as it is carried out. */
typedef struct weir_plan_part {
  uint32_t struct_size;
  uint32_t device, task;                      /* of the cluster */
  weir_text name;                             /* the device's */
  uint32_t nodes, inputs, outputs, variables; /* how many: weir_plan_item_at */
  uint32_t received, sent;                    /* edges */
  int64_t received_bytes, sent_bytes;         /* in each step */
} weir_plan_part;

typedef enum weir_plan_edge_class {
  WEIR_PLAN_EDGE_TENSOR = 0,
  WEIR_PLAN_EDGE_PULL = 1,    /* a variable's value, read elsewhere */
  WEIR_PLAN_EDGE_PUSH = 2,    /* into an update of a variable */
  WEIR_PLAN_EDGE_CONTROL = 3, /* says that a node has run */
  WEIR_PLAN_EDGE_COLLECTIVE = 4
} weir_plan_edge_class;

/* A value or token that goes from part to part. One copy serves all nodes that
 * read it there. */
typedef struct weir_plan_edge {
  uint32_t struct_size;
  weir_plan_edge_class edge_class;
  const char *class_name; /* "tensor", "pull": static text */
  uint32_t from, to;      /* parts */
  bool between_tasks;     /* else between devices of one task */
  bool at_start;          /* sent before the first step only */
  weir_text tensor;       /* the node that makes it */
  char type[192];         /* "f32[64, 10]"; "" of a control edge */
  int64_t bytes;
  uint32_t readers;            /* how many: weir_plan_reader_at */
  uint32_t copy;               /* its row of copies; or NONE */
  int64_t start_ns, end_ns;    /* of that copy, or -1 */
  uint32_t group, rank, ranks; /* of a collective: which, sender, how many */
} weir_plan_edge;

/* The value of a plan by one measure. */
typedef struct weir_plan_figure {
  uint32_t struct_size;
  bool wanted;         /* it is the objective of the plan */
  bool is_bytes;       /* else nanoseconds */
  const char *name;    /* "latency": static text */
  const char *summary; /* in a few words */
  int64_t value;
  int64_t bound; /* no plan has less; -1: not known */
} weir_plan_figure;

typedef struct weir_plan_summary {
  uint32_t struct_size;
  uint32_t dropped;     /* requests that no device meets */
  int64_t step_ns;      /* predicted time of a step */
  int64_t bound_ns;     /* no plan is faster, by the model */
  const char *bound_by; /* "critical path": static text */
  double gap;           /* (step - bound) / bound; 0 when the bound is 0 */
  int64_t copied_bytes; /* in a step */
  int64_t first_ns;     /* the step before local search */
  uint64_t moves;       /* that it made */
  const char *placer;   /* static text */
} weir_plan_summary;

/* Each fills its output, whose struct_size is set. Errors: W0004 (there is no
 * such row), W6001 (parts and edges, when first asked for). */
WEIR_API weir_status weir_plan_node_at(const weir_plan *plan, size_t i,
                                       weir_plan_node *out_node,
                                       weir_error *err);
WEIR_API weir_status weir_plan_device_at(const weir_plan *plan, size_t i,
                                         weir_plan_device *out_device,
                                         weir_error *err);
WEIR_API weir_status weir_plan_copy_at(const weir_plan *plan, size_t i,
                                       weir_plan_copy *out_copy,
                                       weir_error *err);
WEIR_API weir_status weir_plan_part_at(const weir_plan *plan, size_t i,
                                       weir_plan_part *out_part,
                                       weir_error *err);
WEIR_API weir_status weir_plan_edge_at(const weir_plan *plan, size_t i,
                                       weir_plan_edge *out_edge,
                                       weir_error *err);
WEIR_API weir_status weir_plan_figure_at(const weir_plan *plan, size_t i,
                                         weir_plan_figure *out_figure,
                                         weir_error *err);
WEIR_API weir_status weir_plan_summarise(const weir_plan *plan,
                                         weir_plan_summary *out_summary,
                                         weir_error *err);

typedef enum weir_plan_items {
  WEIR_PLAN_ITEM_NODES = 0, /* in the order in which the part begins them */
  WEIR_PLAN_ITEM_INPUTS = 1,
  WEIR_PLAN_ITEM_OUTPUTS = 2,
  WEIR_PLAN_ITEM_VARIABLES = 3 /* that live there */
} weir_plan_items;

/* A node of the graph in a part, or an item of the part's border. */
typedef struct weir_plan_item {
  uint32_t struct_size;
  uint32_t node; /* of the plan, that it belongs to; or NONE */
  weir_text name, op;
  int64_t bytes; /* -1: it has none */
} weir_plan_item;

/* The i-th item of |part|; the i-th node of the graph that reads |edge|. */
WEIR_API weir_status weir_plan_item_at(const weir_plan *plan, size_t part,
                                       weir_plan_items items, size_t i,
                                       weir_plan_item *out_item,
                                       weir_error *err);
WEIR_API weir_status weir_plan_reader_at(const weir_plan *plan, size_t edge,
                                         size_t i, weir_plan_item *out_item,
                                         weir_error *err);

/* The row of the node called |name| (or SCOPE/op), of the first device that
 * meets |name|. Errors: W0002, W1115. */
WEIR_API weir_status weir_plan_find_node(const weir_plan *plan,
                                         const char *name, size_t *out_i,
                                         weir_error *err);
WEIR_API weir_status weir_plan_find_device(const weir_plan *plan,
                                           const char *name, size_t *out_i,
                                           weir_error *err);

typedef enum weir_plan_chance {
  WEIR_PLAN_CHANCE_HERE = 0, /* the node is there */
  WEIR_PLAN_CHANCE_POSSIBLE = 1,
  WEIR_PLAN_CHANCE_NOT_ALLOWED = 2, /* by a request or by its group */
  WEIR_PLAN_CHANCE_NO_KERNEL = 3,
  WEIR_PLAN_CHANCE_NO_ROOM = 4
} weir_plan_chance;

/* A node on another device: why not there? */
typedef struct weir_plan_alternative {
  uint32_t struct_size;
  weir_plan_chance chance;
  const char *why; /* "chosen", "no kernel": static text */
  int64_t end_ns;  /* of the node, then; -1: it cannot be there */
  int64_t step_ns; /* of the plan, then; -1: likewise */
} weir_plan_alternative;

/* |node| and its group on |device|, all else as it is, scheduled again. Errors:
 * W0004, W6001. */
WEIR_API weir_status weir_plan_alternative_at(
    const weir_plan *plan, size_t node, size_t device,
    weir_plan_alternative *out_alternative, weir_error *err);

/* ---- Plans as text. */

typedef enum weir_plan_form {
  WEIR_PLAN_SUMMARY = 0,
  WEIR_PLAN_TABLE = 1, /* |what|: a pattern of nodes, or NULL: all */
  WEIR_PLAN_JSON = 2,  /* the same */
  WEIR_PLAN_DOT = 3,
  WEIR_PLAN_TRACE = 4,    /* Chrome's form */
  WEIR_PLAN_CRITICAL = 5, /* the chain that makes the step as long as it is */
  WEIR_PLAN_EXPLAIN = 6,  /* |what|: a node */
  WEIR_PLAN_MEMORY = 7,   /* |what|: a device */
  WEIR_PLAN_HTML = 8,     /* a page that needs no network */
  WEIR_PLAN_PARTS_TEXT = 9,
  WEIR_PLAN_PARTS_JSON = 10,
  WEIR_PLAN_PARTS_DOT = 11
} weir_plan_form;

/* Writes the plan. |what| is for the forms that say so, else NULL. Errors:
 * W0002 (no such node or device), W0004, W5009, W6001. */
WEIR_API weir_status weir_plan_write(const weir_plan *plan, weir_plan_form form,
                                     const char *what, weir_write_fn write,
                                     void *write_self, weir_error *err);
/* Checks |text|, a plan for the problem of |plan|, by every rule of the model.
 * Errors: W3013, W3016, W4013, W6001. */
WEIR_API weir_status weir_plan_verify(const weir_plan *plan,
                                      const weir_plan_text *text,
                                      weir_error *err);
/* Writes the differences from |before|, a plan for the problem of |plan|, to
 * |plan|; |out_same| (may be NULL): there are none. Errors: W3016, W4013,
 * W5009, W6001. */
WEIR_API weir_status weir_plan_diff(const weir_plan *plan,
                                    const weir_plan_text *before,
                                    bool *out_same, weir_write_fn write,
                                    void *write_self, weir_error *err);
/* The same of two plans, of the same nodes on maybe other devices. */
WEIR_API weir_status weir_plan_compare(const weir_plan *before,
                                       const weir_plan *after, bool *out_same,
                                       weir_write_fn write, void *write_self,
                                       weir_error *err);

#ifdef __cplusplus
}
#endif

#endif
