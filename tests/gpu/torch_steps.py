# SPDX-License-Identifier: Apache-2.0
"""Steps of PyTorch on a GPU, in microseconds, as JSON: eager, and replayed from
a CUDA graph. Matrices and convolutions of f32 without TF32, as weir's are. Each
step copies its batch from pinned memory and is waited for."""
import json
import sys
import time

try:
    import torch
except ImportError:
    sys.exit("PyTorch is not on this machine")
if not torch.cuda.is_available():
    sys.exit("PyTorch has no GPU here")
torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False
torch.manual_seed(0)
nn, F = torch.nn, torch.nn.functional
SECONDS = 1.5


def median(step):
    """Of synchronised steps."""
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2] * 1e6


def replayed(step):
    """|step| as a graph, after a warm-up on a stream of its own."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(5):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def training(model, optimizer, batch):
    """(copy of a batch, step)."""
    pixels = torch.randint(0, 256, (batch, 28, 28), dtype=torch.uint8)
    image = pixels.pin_memory()
    kinds = torch.randint(0, 10, (batch,)).pin_memory()
    x, y = image.cuda(), kinds.cuda()

    def copy():
        x.copy_(image, non_blocking=True)
        y.copy_(kinds, non_blocking=True)

    def step():
        optimizer.zero_grad(set_to_none=False)
        loss = F.cross_entropy(model(x.float().div(255).unsqueeze(1)), y)
        loss.backward()
        optimizer.step()
    return copy, step


def lenet(batch):
    m = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
        nn.Linear(84, 10)).cuda()
    return training(m, torch.optim.Adam(m.parameters(), 1e-3, capturable=True,
                                        weight_decay=1e-5), batch)


def mlp(batch, hidden):
    m = nn.Sequential(nn.Flatten(), nn.Linear(784, hidden), nn.ReLU(),
                      nn.Linear(hidden, 10)).cuda()
    return training(m, torch.optim.SGD(m.parameters(), 0.1, momentum=0.9),
                    batch)


class Block(nn.Module):
    """A block of graphs/transformer_block.weir.yaml."""

    def __init__(self, d=768, heads=12, ffn=3072):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.f1, self.f2 = nn.Linear(d, ffn), nn.Linear(ffn, d)

    def forward(self, x):
        b, t, d = x.shape
        n = self.n1(x)
        q, k, v = (m(n).view(b, t, self.heads, -1).transpose(1, 2)
                   for m in (self.q, self.k, self.v))
        a = torch.softmax(q @ k.transpose(2, 3) * 0.125, -1) @ v
        h = x + self.o(a.transpose(1, 2).reshape(b, t, d))
        return h + self.f2(F.gelu(self.f1(self.n2(h))))


def block(batch):
    m, host = Block().cuda().eval(), torch.rand(batch, 128, 768).pin_memory()
    x = host.cuda()
    out = torch.empty_like(host).pin_memory()

    def copy():
        x.copy_(host, non_blocking=True)

    def step():
        with torch.no_grad():
            y = m(x)
        if not torch.cuda.is_current_stream_capturing():
            out.copy_(y, non_blocking=True)
        return y
    return copy, step


def both(pair):
    copy, step = pair

    def eager():
        copy()
        step()
    row = {"eager_us": median(eager)}
    replay = replayed(step)

    def graph():
        copy()
        replay()
    row["graph_us"] = median(graph)
    return row


print(json.dumps({"lenet_train 256": both(lenet(256)),
                  "mlp_train 128x1024": both(mlp(128, 1024)),
                  "transformer_block 1": both(block(1)),
                  "transformer_block 8": both(block(8))}))
