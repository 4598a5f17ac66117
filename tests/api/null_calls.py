# SPDX-License-Identifier: Apache-2.0
"""Writes null_calls.inc: calls of every exported function with all arguments
NULL and zero, and with each pointer NULL in turn while the others are valid.

  null_calls.py SOURCE_ROOT > null_calls.inc

A function of weir.map without a prototype in weir.h, or with a parameter that
has no row in VALUES, stops the build: give it a row.
"""
import pathlib
import re
import sys

import headers

# By type, or by "type name" where the name says more: a valid argument.
VALUES = {
    "weir_runtime *": "fix.runtime", "weir_graph *": "fix.graph",
    "weir_session *": "fix.session", "weir_bound *": "fix.bound",
    "weir_tensor *": "fix.tensor", "weir_trainer *": "fix.trainer",
    "weir_diag *": "fix.diag", "weir_plan *": "fix.plan",
    "weir_trace *": "fix.trace", "weir_plan_opts *": "&fix.plan_opts",
    "weir_plan_text *": "&fix.plan_text",
    "weir_predict_opts *": "&fix.predict_opts",
    "weir_tasks *": "NULL", "weir_task_server *": "NULL",
    "weir_op_spec *": "&fix.op_spec",
    "weir_predict_server *": "NULL", "weir_train_part *": "NULL",
    "weir_kv *": "NULL", "weir_kv_server *": "NULL", "weir_kv_handle *": "NULL",
    "weir_kv_opts *": "&fix.kv_opts", "weir_kv_key_opts *": "&fix.kv_key_opts",
    "weir_kv_op_opts *": "&fix.kv_op_opts",
    "weir_kv_group *": "&fix.kv_group",
    "weir_train_part_opts *": "&fix.train_part_opts",
    "weir_serve_opts *": "&fix.predict_server_opts",
    "weir_tasks_opts *": "&fix.tasks_opts", "weir_task_opts *": "&fix.task_opts",
    "weir_plan_rows": "WEIR_PLAN_NODES",
    "weir_plan_items": "WEIR_PLAN_ITEM_NODES",
    "weir_plan_form": "WEIR_PLAN_SUMMARY",
    "char * what": "NULL", "char * buffer": "fix.buffer",
    "size_t buffer_size": "sizeof fix.buffer",
    "weir_error *": "&err",
    "weir_error * error": "&fix.error",
    "struct DLManagedTensorVersioned *": "managed",
    "char *": "fix.path", "char * name": '"v"', "char * id": '"W0004"',
    "char * yaml": "kText", "size_t size": "sizeof kText - 1",
    "char * data": '"train"', "char * member": "NULL", "char * root": "NULL",
    "char * dir": "fix.dir",
    "char *const *": "fix.names", "size_t": "0",
    "void *": "fix.bytes", "void * self": "NULL",
    "weir_write_fn": "take", "void * write_self": "NULL",
    "void (*)(void *self, void *data)": "NULL",
    "size_t (*)(void *self, const char *file, const char **out_text)":
        "no_source",
    "void * source_self": "NULL",
    "weir_run_request *": "&fix.request", "weir_run_opts *": "&fix.run_opts",
    "weir_tensor_spec *": "&fix.spec", "weir_tensor_list *": "&fix.list",
    "weir_load_opts *": "&fix.load_opts",
    "weir_runtime_opts *": "&fix.runtime_opts",
    "weir_session_opts *": "&fix.session_opts",
    "weir_train_opts *": "&fix.train_opts",
    "int64_t *": "fix.dims", "int32_t rank": "1",
    "weir_dtype": "WEIR_F32", "weir_dir": "WEIR_INPUT",
    "weir_diag_form": "WEIR_DIAG_FORM_GCC", "weir_file_format":
    "WEIR_FILE_NPY", "weir_status": "WEIR_OK", "weir_train_end":
    "WEIR_TRAIN_END_GOING", "bool": "false", "int": "0", "int64_t": "-1",
    "uint32_t": "0", "uint64_t": "0", "int32_t": "0", "double": "0",
}
VALUES_OF = {("weir_dtype_from_name", "size"): "3",
             ("weir_plan_find_device", "name"): '"cpu"'}
# Outputs: a local of the type; handles are released after the call.
OUTPUTS = {
    "weir_runtime **": "weir_runtime_release", "weir_graph **":
    "weir_graph_release", "weir_session **": "weir_session_release",
    "weir_bound **": "weir_bound_release", "weir_tensor **":
    "weir_tensor_release", "weir_trainer **": "weir_trainer_release",
    "struct DLManagedTensorVersioned **": "drop_managed",
    "int64_t * out_step": None, "size_t * out_count": None,
    "weir_train_end *": None, "weir_io_desc *": None,
    "weir_tensor_info *": None, "weir_train_report *": None,
    "weir_train_progress *": None, "weir_variable_desc *": None,
    "weir_run_stats *": None, "weir_plan_node *": None,
    "weir_train_followed *": None,
    "weir_plan_device *": None, "weir_plan_copy *": None,
    "weir_plan_part *": None, "weir_plan_edge *": None,
    "weir_plan_figure *": None, "weir_plan_summary *": None,
    "weir_plan_item *": None, "weir_plan_alternative *": None,
    "weir_plan **": "weir_plan_release", "weir_trace **": "weir_trace_release",
    "weir_tasks_worker *": None, "weir_tasks **": "weir_tasks_release",
    "weir_task_server **": "weir_task_server_release",
    "weir_predict_server **": "weir_predict_server_release",
    "weir_train_part **": "weir_train_part_release",
    "weir_serve_stats *": None, "weir_kv_result *": None,
    "weir_kv **": "weir_kv_close", "weir_kv_server **": "weir_kv_server_release",
    "weir_kv_handle **": "weir_kv_handle_release",
    "size_t * out_i": None, "bool * out_same": None, "char ** out_name": None,
}
# May be NULL, as the headers say.
OPTIONAL = {"err", "opts", "self", "write_self", "source_self", "source",
            "member", "root", "out_step", "out_count", "out_end", "release",
            "out_same", "what", "out_result"}
OPTIONAL_OF = {
    "weir_graph_load_buffer": {"name"}, "weir_tensor_read_buffer": {"name"},
    "weir_trainer_eval": {"data"}, "weir_session_load_weights": {"map"},
    "weir_dtype_from_name": set(), "weir_tasks_open": {"graph"},
}


def value(kind, name, function):
    bare = kind.replace("const ", "", 1) if kind.startswith("const ") else kind
    if (function, name) in VALUES_OF:
        return VALUES_OF[function, name]
    for key in (f"{bare} {name}", bare):
        if key in OUTPUTS:
            return key
        if key in VALUES:
            return VALUES[key]
    sys.exit(f"{function}: no row in VALUES for '{kind} {name}'")


def is_pointer(kind):
    return "*" in kind or kind == "weir_write_fn"


def call(result, name, parameters, null, out):
    """One call as a C function; |null|: index of the NULL, or None: all."""
    fit = [value(k, p, name) for k, p in parameters]
    what = "all" if null is None else parameters[null][1]
    out.append(f"static void {name}_{what}(void) {{")
    out.append(f'  begin("{name}", "{what}");')
    has_err = any(k == "weir_error *" and i != null
                  for i, (k, _) in enumerate(parameters))
    if has_err:
        out.append("  weir_error err = WEIR_ERROR_INIT;")
    if null is not None and "managed" in fit and fit[null] != "managed":
        out.append("  struct DLManagedTensorVersioned *managed = a_managed();")
    arguments = []
    for i, (kind, p) in enumerate(parameters):
        is_out = fit[i] in OUTPUTS
        if is_out and null is not None and i != null:
            local = kind[:-1].strip()
            sized = OUTPUTS[fit[i]] is None and fit[i].startswith("weir_") \
                and not fit[i].startswith("weir_train_end")
            first = "{.struct_size = sizeof " + p + "}" if sized else \
                "NULL" if local.endswith("*") else "0"
            out.append(f"  {local} {p} = {first};")
        if null is None:
            zero = "NULL" if is_pointer(kind) else f"({kind})0"
            arguments.append("&err" if kind == "weir_error *" else zero)
        elif i == null:
            arguments.append("NULL")
        else:
            arguments.append(f"&{p}" if is_out else fit[i])
    text = f"{name}({', '.join(arguments)})"
    error = "&err" if has_err else "NULL"
    needed = null is None or what not in (
        OPTIONAL | OPTIONAL_OF.get(name, set()))
    needed = "true" if needed else "false"
    if result == "void":
        out.append(f"  {text};")
    elif result == "weir_status":
        out.append(f"  weir_status s = {text};")
        out.append(f"  check_status(s, {error}, {needed});")
        if null is not None and "managed" in fit and fit[null] != "managed":
            out.append("  if (s != WEIR_OK) drop_managed(managed);")
    elif result.endswith("*") and "char" not in result:
        out.append(f"  check_neutral({text} == NULL, {needed});")
    elif result == "bool":
        out.append(f"  check_neutral(!{text}, {needed});")
    elif result == "size_t" and parameters and is_pointer(parameters[0][0]):
        out.append(f"  check_neutral({text} == 0, {needed});")
    else:
        out.append(f"  (void){text};")
    if null is not None:
        for i, (kind, p) in enumerate(parameters):
            if fit[i] in OUTPUTS and OUTPUTS[fit[i]] and i != null:
                out.append(f"  {OUTPUTS[fit[i]]}({p});")
    out.append("}\n")
    return f"{name}_{what}"


def main(root):
    listed = set(re.findall(r"\b(weir_\w+);",
                            headers.read(root, "runtime/weir.map")))
    known = headers.prototypes(root)
    if listed != {n for _, n, _ in known}:
        sys.exit("weir.map and weir.h differ: " + " ".join(
            sorted(listed ^ {n for _, n, _ in known})))
    out, cases, in_diag = [], [], []
    for result, name, parameters in known:
        mine = in_diag if any("weir_diag *" in k for k, _ in parameters) \
            else cases
        mine.append(call(result, name, parameters, None, out))
        for i, (kind, p) in enumerate(parameters):
            if is_pointer(kind) and value(kind, p, name) != "NULL":
                mine.append(call(result, name, parameters, i, out))
    print("/* Made by null_calls.py. */\n")
    print("\n".join(out))
    for label, list_ in (("cases", cases), ("diag_cases", in_diag)):
        print(f"static void (*const {label}[])(void) = {{")
        print(",\n".join(f"    {c}" for c in list_) + "};")
    print(f"enum {{ FUNCTION_COUNT = {len(known)} }};")


main(pathlib.Path(sys.argv[1]))
