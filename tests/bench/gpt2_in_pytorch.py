"""Times a training step of GPT-2 in PyTorch, eager and compiled, bf16: argument LAYERS,HIDDEN,HEADS,SEQUENCE,BATCH,VOCABULARY.

Prints "eager MS" and "compiled MS"; on_gpu.sh puts them beside a plan's.
"""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

class Block(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h, self.a, self.b = h, nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.out, self.up, self.down = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
    def forward(self, x):
        n, s, d = x.shape
        q, k, v = (t.view(n, s, self.h, -1).transpose(1, 2) for t in self.qkv(self.a(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(n, s, d)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.b(x)), approximate="tanh"))

class Gpt(nn.Module):
    def __init__(self, layers, d, h, s, vocab):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocab, d), nn.Embedding(s, d)
        self.blocks, self.norm, self.head = nn.Sequential(*(Block(d, h) for _ in range(layers))), nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)
    def forward(self, x, y):
        h = self.tokens(x) + self.places(torch.arange(x.shape[1], device=x.device))
        return F.cross_entropy(self.head(self.norm(self.blocks(h))).flatten(0, 1), y.flatten())

layers, width, heads, sequence, batch, vocabulary = (int(size) for size in sys.argv[1].split(","))
for compiled in (False, True):
    torch.manual_seed(0)
    model = Gpt(layers, width, heads, sequence, vocabulary).cuda()
    step_model = torch.compile(model) if compiled else model
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    x, y = torch.randint(vocabulary, (2, batch, sequence), device="cuda")
    times = []
    for _ in range(10):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        with torch.autocast("cuda", torch.bfloat16):
            loss = step_model(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    print("compiled" if compiled else "eager", f"{min(times) * 1e3:.3f}", flush=True)
    del model, step_model, optimizer
