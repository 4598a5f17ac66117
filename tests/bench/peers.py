# SPDX-License-Identifier: Apache-2.0
"""The same work in ONNX Runtime and PyTorch, one process per case.

`python3 peers.py CASE [THREADS]` prints READY, then for each line "SECONDS" on standard
input runs the case that long and prints the median in nanoseconds.  It sleeps
in between, so that a driver can interleave it with weir.

`OMP_NUM_THREADS=1 python3 peers.py --processor CASE...` prints the least
processor time of each case in nanoseconds instead, which other work on the
machine moves less; a CASE is the start of a name.
"""
import sys
import time

import numpy as np

import graphs


def onnx_session(nodes, inputs, outputs, weights=()):
    import onnxruntime as ort
    from onnx import TensorProto as T, helper as h, numpy_helper
    graph = h.make_graph(
        nodes, "g",
        [h.make_tensor_value_info(k, T.FLOAT, s) for k, s in inputs],
        [h.make_tensor_value_info(k, T.FLOAT, s) for k, s in outputs],
        [numpy_helper.from_array(w, k) for k, w in weights])
    model = h.make_model(graph, ir_version=8,
                         opset_imports=[h.make_opsetid("", 17)])
    options = ort.SessionOptions()
    if THREADS:
        options.intra_op_num_threads = THREADS
    if len(nodes) > 1000:  # otherwise equal additions would be merged
        options.graph_optimization_level = (
            ort.GraphOptimizationLevel.ORT_DISABLE_ALL)
    return ort.InferenceSession(model.SerializeToString(), options,
                                providers=["CPUExecutionProvider"])


def ort_chain(n=10000):
    from onnx import helper as h
    nodes = [h.make_node("Add", ["x" if i == 0 else f"v{i-1}", "x"], [f"v{i}"])
             for i in range(n)]
    session = onnx_session(nodes, [("x", [])], [(f"v{n-1}", [])])
    feed = {"x": np.array(1, np.float32)}
    return lambda: session.run(None, feed)


def ort_wide(n=10000):
    from onnx import helper as h
    nodes = [h.make_node("Add", ["x", "x"], [f"v{i}"]) for i in range(n)]
    nodes.append(h.make_node("Sum", [f"v{i}" for i in range(n)], ["y"]))
    session = onnx_session(nodes, [("x", [])], [("y", [])])
    feed = {"x": np.array(1, np.float32)}
    return lambda: session.run(None, feed)


def bound(session, feeds, output):
    import onnxruntime as ort
    binding = session.io_binding()
    for key, array in feeds.items():
        binding.bind_ortvalue_input(key, ort.OrtValue.ortvalue_from_numpy(array))
    binding.bind_output(output)
    return lambda: session.run_with_iobinding(binding)


def ort_matmul(n):
    from onnx import helper as h
    session = onnx_session([h.make_node("MatMul", ["a", "b"], ["c"])],
                           [("a", [n, n]), ("b", [n, n])], [("c", [n, n])])
    rng = np.random.default_rng(0)
    feeds = {k: rng.random((n, n), dtype=np.float32) for k in "ab"}
    return bound(session, feeds, "c")


def ort_lenet(batch):
    from onnx import helper as h
    rng = np.random.default_rng(0)
    shapes = {"w1": (6, 1, 5, 5), "b1": (6,), "w2": (16, 6, 5, 5), "b2": (16,),
              "w3": (400, 120), "b3": (120,), "w4": (120, 84), "b4": (84,),
              "w5": (84, 10), "b5": (10,)}
    weights = [(k, (rng.random(s, dtype=np.float32) - 0.5) * 0.2)
               for k, s in shapes.items()]
    node = h.make_node
    nodes = [node("Conv", ["x", "w1", "b1"], ["c1"], pads=[2, 2, 2, 2]),
             node("Sigmoid", ["c1"], ["s1"]),
             node("AveragePool", ["s1"], ["p1"], kernel_shape=[2, 2],
                  strides=[2, 2]),
             node("Conv", ["p1", "w2", "b2"], ["c2"]),
             node("Sigmoid", ["c2"], ["s2"]),
             node("AveragePool", ["s2"], ["p2"], kernel_shape=[2, 2],
                  strides=[2, 2]),
             node("Flatten", ["p2"], ["f"])]
    for i, (src, dst) in enumerate((("f", "d1"), ("e1", "d2"), ("e2", "y"))):
        nodes.append(node("Gemm", [src, f"w{i+3}", f"b{i+3}"], [dst]))
        if dst != "y":
            nodes.append(node("Sigmoid", [dst], [f"e{i+1}"]))
    session = onnx_session(nodes, [("x", [batch, 1, 28, 28])],
                           [("y", [batch, 10])], weights)
    x = rng.random((batch, 1, 28, 28), dtype=np.float32)
    return bound(session, {"x": x}, "y")


def torch_module(make):
    import torch
    torch.manual_seed(0)
    module, x = make(torch, torch.nn)
    module.eval()

    def call():
        with torch.inference_mode():
            module(x)
    return call


def torch_lenet(batch):
    def make(torch, nn):
        return nn.Sequential(
            nn.Conv2d(1, 6, 5, padding=2), nn.Sigmoid(), nn.AvgPool2d(2),
            nn.Conv2d(6, 16, 5), nn.Sigmoid(), nn.AvgPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.Sigmoid(), nn.Linear(120, 84),
            nn.Sigmoid(), nn.Linear(84, 10)), torch.rand(batch, 1, 28, 28)
    return torch_module(make)


def torch_encoder(batch):
    def make(torch, nn):
        layer = nn.TransformerEncoderLayer(768, 12, 3072, activation="gelu",
                                           batch_first=True)
        return layer, torch.rand(batch, 128, 768)
    return torch_module(make)


def torch_matmul(n):
    import torch
    a, b, c = (torch.rand(n, n) for _ in range(3))
    return lambda: torch.mm(a, b, out=c)


def torch_attention(n, grad=False):
    import torch
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k, v, w = (torch.randn(1, 12, n, 64, requires_grad=grad and i < 3)
                  for i in range(4))

    def forward():
        with torch.inference_mode():
            attend(q, k, v)

    def both():
        torch.autograd.grad(attend(q, k, v), (q, k, v), w)

    return both if grad else forward


def torch_lenet_train(batch):
    """One step of Adam, as a PyTorch user writes it."""
    import torch
    from torch import nn
    torch.set_num_threads(THREADS or 2)
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Sigmoid(), nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5), nn.Sigmoid(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.Sigmoid(), nn.Linear(120, 84), nn.Sigmoid(),
        nn.Linear(84, 10))
    optimizer = torch.optim.Adam(module.parameters(), lr=1e-3, fused=True)
    return torch_step(module, optimizer, torch.rand(batch, 1, 28, 28))


def torch_mlp_train(batch):
    import torch
    from torch import nn
    torch.set_num_threads(THREADS or 2)
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(),
                           nn.Linear(1024, 1024), nn.ReLU(),
                           nn.Linear(1024, 10))
    optimizer = torch.optim.SGD(module.parameters(), lr=1e-2, fused=True)
    return torch_step(module, optimizer, torch.rand(batch, 784))


def torch_step(module, optimizer, x):
    import torch
    from torch import nn
    label = torch.randint(0, 10, (x.shape[0],))
    loss_of = nn.CrossEntropyLoss()

    def call():
        optimizer.zero_grad(set_to_none=True)
        loss_of(module(x), label).backward()
        optimizer.step()
    return call


def torch_lm_train():
    """A language model: two LSTMs of 650 units, gradients clipped."""
    import torch
    from torch import nn
    torch.set_num_threads(THREADS or 2)
    torch.manual_seed(0)
    embedding = nn.Embedding(10000, 650)
    layers = nn.LSTM(650, 650, 2, batch_first=True)
    dense = nn.Linear(650, 10000)
    parameters = [*embedding.parameters(), *layers.parameters(),
                  *dense.parameters()]
    optimizer = torch.optim.SGD(parameters, 1.0)
    words = torch.randint(0, 10000, (20, 35))
    following = torch.randint(0, 10000, (700,))
    loss_of = nn.CrossEntropyLoss()

    def call():
        optimizer.zero_grad(set_to_none=True)
        scores = dense(layers(embedding(words))[0]).flatten(0, 1)
        loss_of(scores, following).backward()
        nn.utils.clip_grad_norm_(parameters, 5)
        optimizer.step()
    return call


def torch_conv(shape, batch, last):
    """One convolution, its images and weights in rows or channels last."""
    import torch
    c, oc, k, stride, size = shape
    form = torch.channels_last if last else torch.contiguous_format
    x = torch.rand(batch, c, size, size).to(memory_format=form)
    w = torch.rand(oc, c, k, k).to(memory_format=form)

    def call():
        with torch.inference_mode():
            torch.nn.functional.conv2d(x, w, None, stride, k // 2)
    return call


CASES = {"ort_chain": ort_chain, "ort_wide": ort_wide}
for _n in (64, 256, 1024, 2048):
    CASES[f"ort_matmul{_n}"] = lambda n=_n: ort_matmul(n)
    CASES[f"torch_matmul{_n}"] = lambda n=_n: torch_matmul(n)
for _b in (1, 8, 64):
    CASES[f"ort_lenet{_b}"] = lambda b=_b: ort_lenet(b)
    CASES[f"torch_lenet{_b}"] = lambda b=_b: torch_lenet(b)
    CASES[f"torch_encoder{_b}"] = lambda b=_b: torch_encoder(b)


for _b in (64, 256):
    CASES[f"torch_lenet_train{_b}"] = lambda b=_b: torch_lenet_train(b)
for _b in (1, 8):
    for _s in graphs.CONVS:
        for _last, _prefix in ((False, "torch_"), (True, "torch_last_")):
            CASES[_prefix + graphs.conv_name(_s, _b)] = (
                lambda s=_s, b=_b, last=_last: torch_conv(s, b, last))
for _n in (128, 512, 1024, 4096):
    CASES[f"torch_attention{_n}"] = lambda n=_n: torch_attention(n)
    CASES[f"torch_attention_grad{_n}"] = lambda n=_n: torch_attention(n, True)
CASES["torch_mlp_train128"] = lambda: torch_mlp_train(128)
CASES["torch_lm_train"] = torch_lm_train


def torch_network(name, batch, compiled=False):
    """A network of graphs/, forward; compiled: by torch.compile."""
    import networks
    import torch
    module, x = networks.make(name, batch)
    module.eval()
    if compiled:
        module = torch.compile(module)

    def call():
        with torch.inference_mode():
            module(*x)
    return call


def ort_network(name, batch):
    """The same by way of ONNX: the file that PyTorch exports."""
    import io
    import networks
    import onnxruntime as ort
    import torch
    module, x = networks.make(name, batch)
    names = networks.INPUTS[name]
    file = io.BytesIO()
    with torch.no_grad():
        torch.onnx.export(module.eval(), x, file, dynamo=False,
                          opset_version=20, input_names=names)
    feeds = {k: v.numpy() for k, v in zip(names, x)}
    text = file.getvalue()
    del module, file
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    if THREADS:
        options.intra_op_num_threads = THREADS
    session = ort.InferenceSession(text, options,
                                   providers=["CPUExecutionProvider"])
    return bound(session, feeds, session.get_outputs()[-1].name)


def torch_network_train(name, batch):
    import networks
    import torch
    module, x = networks.make(name, batch)
    if name == "resnet50":
        parts = {True: [], False: []}
        for p in module.parameters():
            parts[p.dim() > 1].append(p)
        optimizer = torch.optim.SGD(
            [{"params": parts[True], "weight_decay": 1e-4},
             {"params": parts[False]}], lr=0.1, momentum=0.9, fused=True)
    else:
        optimizer = torch.optim.AdamW(module.parameters(), lr=2e-5,
                                      weight_decay=0.01, fused=True)
    label = torch.randint(0, 2, (batch,))
    loss_of = torch.nn.CrossEntropyLoss()

    def call():
        optimizer.zero_grad(set_to_none=True)
        y = module(*x)
        loss_of(y[-1] if isinstance(y, tuple) else y, label).backward()
        optimizer.step()
    return call


def add_networks():
    for name in ("resnet50", "mobilenet_v3", "bert_base", "gpt2_small"):
        for b in (1, 8):
            at = (name, b)
            CASES[f"ort_{name}{b}"] = lambda at=at: ort_network(*at)
            CASES[f"torch_{name}{b}"] = lambda at=at: torch_network(*at)
            CASES[f"compiled_{name}{b}"] = (
                lambda at=at: torch_network(*at, compiled=True))
            CASES[f"torch_{name}_train{b}"] = (
                lambda at=at: torch_network_train(*at))


add_networks()
THREADS = 0


def limit_threads(count):
    """Of PyTorch; ONNX Runtime is told when a session is made."""
    global THREADS
    THREADS = count
    if sys.argv[1].startswith(("torch", "compiled", "ort")):
        import torch
        torch.set_num_threads(count)


def median_ns(call, seconds):
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        if times and times[0] > 1e9 and len(times) == 2:
            break  # steps of seconds
        start = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - start)
    times.sort()
    return times[len(times) // 2]


def peak_bytes():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    return 0


def least_processor_ns(call, seconds=0.1):
    least, spent, runs = 0, 0, 0
    while spent < seconds * 1e9 or runs < 5:
        start = time.process_time_ns()
        call()
        took = time.process_time_ns() - start
        least = took if runs == 0 else min(least, took)
        spent, runs = spent + took, runs + 1
    return least


def main():
    if sys.argv[1] == "--processor":
        for name in (n for start in sys.argv[2:] for n in CASES
                     if n.startswith(start)):
            print(name, least_processor_ns(CASES[name]()), flush=True)
        return
    if len(sys.argv) > 2:
        limit_threads(int(sys.argv[2]))
    call = CASES[sys.argv[1]]()
    call()
    call()
    print("READY", flush=True)
    for line in sys.stdin:
        if line.strip() == "memory":
            print(peak_bytes(), flush=True)
        else:
            print(median_ns(call, float(line)), flush=True)


if __name__ == "__main__":
    main()
