# SPDX-License-Identifier: Apache-2.0
"""The networks of graphs/ in PyTorch, written as their users write them.

Each layer is known by the path that weir gives it (`b2/a/w` belongs to the
layer `b2/a`), so that a module's values can be given to weir: networks.values.
"""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


class Net(nn.Module):
    """A module whose layers have weir's paths."""

    def __init__(self):
        super().__init__()
        self.layers = {}

    def layer(self, path, module):
        self.layers[path] = module
        self.add_module(path.replace(".", "_"), module)
        return module


class ConvBn(nn.Module):
    def __init__(self, net, path, c, filters, kernel, stride=1, groups=1,
                 pad=None, epsilon=1e-5, act=None):
        super().__init__()
        self.conv = nn.Conv2d(c, filters, kernel, stride,
                              kernel // 2 if pad is None else pad,
                              groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(filters, eps=epsilon, momentum=0.1)
        self.act = act() if act else nn.Identity()
        net.layer(path, self)

    def forward(self, x):
        return self.act(self.norm(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, net, path, c, units, stride=1, project=False):
        super().__init__()
        relu = nn.ReLU
        self.a = ConvBn(net, f"{path}/a", c, units, 1, act=relu)
        self.b = ConvBn(net, f"{path}/b", units, units, 3, stride, act=relu)
        self.c = ConvBn(net, f"{path}/c", units, 4 * units, 1)
        self.past = (ConvBn(net, f"{path}/past", c, 4 * units, 1, stride)
                     if project else nn.Identity())

    def forward(self, x):
        return F.relu(self.c(self.b(self.a(x))) + self.past(x))


class ResNet50(Net):
    def __init__(self, width=64, depth=(3, 4, 6, 3), classes=1000):
        super().__init__()
        self.stem = ConvBn(self, "stem", 3, width, 7, 2, act=nn.ReLU)
        self.pool = nn.MaxPool2d(3, 2, 1)
        c, blocks = width, []
        for k, (name, count) in enumerate(zip("abcd", depth)):
            units = width << k
            for i in range(count):
                blocks.append(Bottleneck(
                    self, f"{name}[{i}]", c, units,
                    2 if i == 0 and k > 0 else 1, project=i == 0))
                c = 4 * units
        self.blocks = nn.Sequential(*blocks)
        self.logits = self.layer("logits", nn.Linear(c, classes))

    def forward(self, x):
        x = self.blocks(self.pool(self.stem(x)))
        return self.logits(x.mean((2, 3)))


class Inverted(nn.Module):
    def __init__(self, net, path, c, expand, filters, kernel, squeeze, stride,
                 act):
        super().__init__()
        self.add = stride == 1 and c == filters
        if self.add:  # an operand of `x + nn.inverted(x)`
            path += "/inverted_se" if squeeze else "/inverted"
        more = {"epsilon": 1e-3}
        self.a = ConvBn(net, f"{path}/a", c, expand, 1, act=act, **more)
        self.b = ConvBn(net, f"{path}/b", expand, expand, kernel, stride,
                        groups=expand, act=act, **more)
        self.down = self.up = None
        if squeeze:
            self.down = net.layer(f"{path}/s/a", nn.Conv2d(expand, squeeze, 1))
            self.up = net.layer(f"{path}/s/s", nn.Conv2d(squeeze, expand, 1))
        self.c = ConvBn(net, f"{path}/c", expand, filters, 1, **more)

    def forward(self, x):
        y = self.b(self.a(x))
        if self.down is not None:
            s = F.relu(self.down(F.adaptive_avg_pool2d(y, 1)))
            y = y * F.hardsigmoid(self.up(s))
        y = self.c(y)
        return x + y if self.add else y


class First(nn.Module):
    """MobileNetV3's first block, which does not expand."""

    def __init__(self, net):
        super().__init__()
        self.deep = ConvBn(net, "deep", 16, 16, 3, groups=16, epsilon=1e-3,
                           act=nn.ReLU)
        self.b1 = ConvBn(net, "b1/conv_bn", 16, 16, 1, epsilon=1e-3)

    def forward(self, x):
        return x + self.b1(self.deep(x))


class MobileNetV3(Net):
    # expand, filters, kernel, squeeze, stride, hard_swish
    ROWS = [(64, 24, 3, 0, 2, 0), (72, 24, 3, 0, 1, 0), (72, 40, 5, 24, 2, 0),
            (120, 40, 5, 32, 1, 0), (120, 40, 5, 32, 1, 0),
            (240, 80, 3, 0, 2, 1), (200, 80, 3, 0, 1, 1),
            (184, 80, 3, 0, 1, 1), (184, 80, 3, 0, 1, 1),
            (480, 112, 3, 120, 1, 1), (672, 112, 3, 168, 1, 1),
            (672, 160, 5, 168, 2, 1), (960, 160, 5, 240, 1, 1),
            (960, 160, 5, 240, 1, 1)]

    def __init__(self, classes=1000):
        super().__init__()
        swish = nn.Hardswish
        self.stem = ConvBn(self, "stem", 3, 16, 3, 2, epsilon=1e-3, act=swish)
        self.first = First(self)
        blocks, c = [], 16
        for i, (expand, filters, kernel, squeeze, stride, hard) in enumerate(
                self.ROWS):
            blocks.append(Inverted(self, f"b{i + 2}", c, expand, filters,
                                   kernel, squeeze, stride,
                                   swish if hard else nn.ReLU))
            c = filters
        self.blocks = nn.Sequential(*blocks)
        self.last = ConvBn(self, "last", c, 960, 1, epsilon=1e-3, act=swish)
        self.h = self.layer("h", nn.Linear(960, 1280))
        self.logits = self.layer("logits", nn.Linear(1280, classes))
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        x = self.last(self.blocks(self.first(self.stem(x)))).mean((2, 3))
        return self.logits(self.drop(F.hardswish(self.h(x))))


class Attention(nn.Module):
    def __init__(self, net, path, d, heads, inner="dense"):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (
            net.layer(f"{path}/{n}/{inner}", nn.Linear(d, d)) for n in "qkv")
        self.y = net.layer(f"{path}/y", nn.Linear(d, d))

    def forward(self, x, mask):
        n, t, d = x.shape

        def parts(y):
            return y.view(n, t, self.heads, d // self.heads).transpose(1, 2)
        y = F.scaled_dot_product_attention(
            parts(self.q(x)), parts(self.k(x)), parts(self.v(x)), mask)
        return self.y(y.transpose(1, 2).reshape(n, t, d))


class Encoder(nn.Module):
    def __init__(self, net, path, d, heads, ffn):
        super().__init__()
        self.a = Attention(net, f"{path}/a", d, heads)
        self.h = net.layer(f"{path}/h", nn.LayerNorm(d, eps=1e-12))
        self.f = net.layer(f"{path}/f", nn.Linear(d, ffn))
        self.g = net.layer(f"{path}/g", nn.Linear(ffn, d))
        self.y = net.layer(f"{path}/y", nn.LayerNorm(d, eps=1e-12))
        self.drop = nn.Dropout(0.1)

    def forward(self, x, mask):
        h = self.h(x + self.drop(self.a(x, mask)))
        return self.y(h + self.drop(self.g(F.gelu(self.f(h)))))


class BertBase(Net):
    def __init__(self, layers=12, d=768, heads=12, ffn=3072, vocab=30522,
                 places=512, classes=2):
        super().__init__()
        self.words = self.layer("words", nn.Embedding(vocab, d))
        self.kind = self.layer("kind", nn.Embedding(2, d))
        self.places = self.layer("placed", nn.Embedding(places, d))
        self.norm = self.layer("h[0]/layer_norm", nn.LayerNorm(d, eps=1e-12))
        self.stack = nn.ModuleList(
            Encoder(self, f"h[{i + 1}]", d, heads, ffn) for i in range(layers))
        self.pooled = self.layer("pooled", nn.Linear(d, d))
        self.logits = self.layer("logits", nn.Linear(d, classes))
        self.drop = nn.Dropout(0.1)

    def forward(self, text, mask, segment):
        x = (self.words(text) + self.kind(segment) +
             self.places.weight[:text.shape[1]])
        x = self.drop(self.norm(x))
        hidden = ((mask - 1) * 1e9)[:, None, None, :]
        for layer in self.stack:
            x = layer(x, hidden)
        first = torch.tanh(self.pooled(x[:, 0]))
        return x, self.logits(self.drop(first))


class Decoder(nn.Module):
    def __init__(self, net, path, d, heads, ffn):
        super().__init__()
        self.n1 = net.layer(f"{path}/a/layer_norm", nn.LayerNorm(d))
        self.a = Attention(net, f"{path}/a", d, heads)
        self.n2 = net.layer(f"{path}/f/layer_norm", nn.LayerNorm(d))
        self.f = net.layer(f"{path}/f/dense", nn.Linear(d, ffn))
        self.g = net.layer(f"{path}/g", nn.Linear(ffn, d))
        self.drop = nn.Dropout(0.1)

    def forward(self, x, mask):
        x = x + self.drop(self.a(self.n1(x), mask))
        f = F.gelu(self.f(self.n2(x)), approximate="tanh")
        return x + self.drop(self.g(f))


class Gpt2Small(Net):
    def __init__(self, layers=12, d=768, heads=12, ffn=3072, vocab=50257,
                 places=1024):
        super().__init__()
        self.table = self.layer("table", nn.Embedding(vocab, d))
        self.places = self.layer("h[0]/positions", nn.Embedding(places, d))
        self.stack = nn.ModuleList(
            Decoder(self, f"h[{i + 1}]", d, heads, ffn) for i in range(layers))
        self.norm = self.layer("logits/layer_norm", nn.LayerNorm(d))
        self.drop = nn.Dropout(0.1)

    def forward(self, text):
        t = text.shape[1]
        x = self.drop(self.table(text) + self.places.weight[:t])
        mask = torch.full((t, t), -1e9).triu(1)
        for layer in self.stack:
            x = layer(x, mask)
        return F.linear(self.norm(x), self.table.weight)


def image(batch, size=224):
    return (torch.rand(batch, 3, size, size),)


def words(batch, tokens=128, vocab=30522):
    return torch.randint(0, vocab, (batch, tokens))


NETWORKS = {
    "resnet50": (ResNet50, image),
    "mobilenet_v3": (MobileNetV3, image),
    "bert_base": (BertBase, lambda b: (
        words(b), torch.ones(b, 128),
        torch.zeros(b, 128, dtype=torch.int64))),
    "gpt2_small": (Gpt2Small, lambda b: (words(b),)),
}
INPUTS = {"resnet50": ["image"], "mobilenet_v3": ["image"],
          "bert_base": ["text", "mask", "segment"], "gpt2_small": ["text"]}


def make(name, batch):
    """A module with seeded weights, and inputs for it."""
    torch.manual_seed(0)
    kind, inputs = NETWORKS[name]
    return kind(), inputs(batch)


def parts_of(module):
    """A layer's parameters by the end of weir's name for them."""
    if isinstance(module, ConvBn):
        return {"w": module.conv.weight, "norm/scale": module.norm.weight,
                "norm/bias": module.norm.bias,
                "norm/mean": module.norm.running_mean,
                "norm/var": module.norm.running_var}
    if isinstance(module, nn.LayerNorm):
        return {"scale": module.weight, "bias": module.bias}
    if isinstance(module, nn.Embedding):
        return {"w": module.weight}
    return {"w": module.weight, "b": module.bias}


def vary(net):
    """Statistics and shares that differ, so that each of them counts."""
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.uniform_(-0.2, 0.2)
                module.running_var.uniform_(0.5, 2)
            if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
                module.weight.uniform_(0.5, 1.5)
                module.bias.uniform_(-0.2, 0.2)


def values(net):
    """The module's parameters by weir's names, as arrays."""
    found = {}
    for path, module in net.layers.items():
        for end, parameter in parts_of(module).items():
            value = parameter.detach()
            if isinstance(module, nn.Linear) and end == "w":
                value = value.T
            name = path if path == "table" else f"{path}/{end}"
            found[name] = np.ascontiguousarray(value.numpy())
    return found
