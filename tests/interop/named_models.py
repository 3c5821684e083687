#!/usr/bin/env python3
"""Ten models that many people train, as torch.export.export writes them: small ones compared with PyTorch, and those of
full size, without numbers, planned for eight devices.

    tests/interop/named_models.py --out FOLDER [--cli build/tests/bin/planloom-cli] [--only NAME ...] [--full | --small]
        [--again]

Small: one training step on one device equals PyTorch's, and the plans that data parallelism and the search make for two
and four CPU devices run and are called equal; as well with two micro-batches, or these are refused with a reason.
Full: under data-parallel on dgx-h100:8 no device computes for more than 1.1/8 of the time of a single one. Batches are
large, so that what a device does whatever its share of the batch (launches, the optimizer's step) is little.
Files are kept in FOLDER. Needs PyTorch, torchvision and transformers; not part of the test suite.
"""

import argparse
import json
import pathlib
import sys
import tempfile

import torch
import transformers
from torch import nn
from torch.nn import functional as F

import fake_ctc  # noqa: F401

from sweep import ROOT, Call, compared, in_a_child, write

DEVICES = 8
ALLOWED = 1.1


class Classified(nn.Module):
    """A model with the cross-entropy of its logits."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, labels):
        made = self.model(x)
        return F.cross_entropy(getattr(made, "logits", made), labels)


class Own(nn.Module):
    """A model of transformers with the loss that it makes itself."""

    def __init__(self, model, *names, **fixed):
        super().__init__()
        self.model, self.names, self.fixed = model, names, fixed

    def forward(self, *values):
        return self.model(**dict(zip(self.names, values)), **self.fixed).loss


class Transcribed(nn.Module):
    """A model of speech with CTC. The loss that transformers makes takes the labels that are no padding, as many as data
    say there are, which torch.export does not follow. For the shapes of CTC see fake_ctc.py."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, sound, labels):
        logarithms = self.model(sound).logits.log_softmax(-1).transpose(0, 1)
        frames = torch.full((labels.shape[0],), logarithms.shape[0], device=labels.device)
        letters = torch.full((labels.shape[0],), labels.shape[1], device=labels.device)
        return F.ctc_loss(logarithms, labels, frames, letters)


class Translation(nn.Module):
    """nn.Transformer between its tables and a head."""

    def __init__(self, vocabulary, width, **sizes):
        super().__init__()
        self.source, self.target = nn.Embedding(vocabulary, width), nn.Embedding(vocabulary, width)
        self.transformer = nn.Transformer(width, dropout=0.0, batch_first=True, **sizes)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, source, target, labels):
        mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1], device=target.device)
        made = self.transformer(self.source(source), self.target(target), tgt_mask=mask, tgt_is_causal=True)
        return F.cross_entropy(self.head(made).flatten(0, 1), labels.flatten())


class Recommender(nn.Module):
    """DLRM: bags of categories and numbers, products of all pairs, a click."""

    def __init__(self, tables, rows, width, bottom, top):
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = self.layers([13, *bottom, width])
        pairs = (tables + 1) * tables // 2
        self.top = self.layers([pairs + width, *top, 1])
        self.register_buffer("pairs", torch.tril_indices(tables + 1, tables + 1, -1, device="cpu"))

    @staticmethod
    def layers(sizes):
        made = []
        for ins, outs in zip(sizes, sizes[1:]):
            made += [nn.Linear(ins, outs), nn.ReLU()]
        return nn.Sequential(*made[:-1])

    def forward(self, numbers, categories, clicks):
        dense = self.bottom(numbers)
        bags = [table(categories[:, i]) for i, table in enumerate(self.tables)]
        x = torch.stack([dense, *bags], 1)
        products = torch.bmm(x, x.transpose(1, 2))
        mixed = torch.cat([dense, products[:, self.pairs[0], self.pairs[1]]], 1)
        return F.binary_cross_entropy_with_logits(self.top(mixed).squeeze(1), clicks)


def chosen_logarithms(logits, tokens):
    return logits[:, :-1].log_softmax(-1).gather(-1, tokens[:, 1:, None]).squeeze(-1)


class Proximal(nn.Module):
    """PPO: clipped ratios with whitened advantages, clipped values, and entropy, over the answers' tokens."""

    def __init__(self, model, width):
        super().__init__()
        self.model = model
        self.value = nn.Linear(width, 1)

    def forward(self, tokens, old, advantages, returns, old_values, mask):
        made = self.model(input_ids=tokens, output_hidden_states=True)
        new = chosen_logarithms(made.logits, tokens)
        values = self.value(made.hidden_states[-1][:, :-1]).squeeze(-1)
        count = mask.sum()
        mean = (advantages * mask).sum() / count
        variance = ((advantages - mean).square() * mask).sum() / count
        advantages = (advantages - mean) * torch.rsqrt(variance + 1e-8)
        ratio = (new - old).exp()
        policy = torch.max(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2))
        clipped = old_values + (values - old_values).clamp(-0.2, 0.2)
        value = 0.5 * torch.max((values - returns).square(), (clipped - returns).square())
        p = made.logits[:, :-1].softmax(-1)
        entropy = torch.logsumexp(made.logits[:, :-1], -1) - (p * made.logits[:, :-1]).sum(-1)
        return ((policy + 0.1 * value - 0.01 * entropy) * mask).sum() / count


class Preferred(nn.Module):
    """DPO: the chosen answers lie before the rejected ones in one batch."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, mask, reference):
        logarithms = (chosen_logarithms(self.model(input_ids=tokens).logits, tokens) * mask).sum(-1)
        chosen, rejected = logarithms.chunk(2)
        reference_chosen, reference_rejected = reference.chunk(2)
        return -F.logsigmoid(0.1 * ((chosen - rejected) - (reference_chosen - reference_rejected))).mean()


def vit(full):
    import torchvision

    size, batch = (224, 2048) if full else (32, 4)
    model = torchvision.models.vit_b_16() if full else torchvision.models.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)
    return Classified(model), (torch.randn(batch, 3, size, size), torch.randint(0, 10, (batch,)))


def clip(full):
    config = transformers.CLIPConfig() if full else transformers.CLIPConfig(
        text_config=dict(vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                         max_position_embeddings=32, bos_token_id=1, eos_token_id=2),
        vision_config=dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                           patch_size=8), projection_dim=16)
    batch, length, size = (8192, 77, 224) if full else (4, 8, 32)
    tokens = torch.randint(3, 64, (batch, length))
    return Own(transformers.CLIPModel(config), "input_ids", "pixel_values", return_loss=True), (tokens, torch.randn(batch, 3, size, size))


def transformer(full):
    batch, length, vocabulary = (4096, 128, 32000) if full else (4, 6, 64)
    sizes = {} if full else dict(nhead=4, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=48)
    texts = tuple(torch.randint(0, vocabulary, (batch, length)) for _ in range(3))
    return Translation(vocabulary, 512 if full else 32, **sizes), texts


def timesformer(full):
    config = transformers.TimesformerConfig() if full else transformers.TimesformerConfig(
        image_size=16, patch_size=8, num_frames=4, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=48)
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    config.drop_path_rate = 0
    batch, size = (256, 224) if full else (4, 16)
    frames = torch.randn(batch, config.num_frames, 3, size, size)
    return Own(transformers.TimesformerForVideoClassification(config), "pixel_values", "labels"), (frames, torch.randint(0, 2, (batch,)))


def dlrm(full):
    batch, tables, rows = (1 << 23, 26, 100000) if full else (8, 3, 20)
    model = Recommender(tables, rows, 128, [512, 256], [1024, 1024, 512, 256]) if full else Recommender(3, 20, 8, [16], [16])
    return model, (torch.randn(batch, 13), torch.randint(0, rows, (batch, tables, 4)), torch.randint(0, 2, (batch,)).float())


def llava(full):
    config = transformers.LlavaConfig() if full else transformers.LlavaConfig(
        vision_config=dict(model_type="clip_vision_model", hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                           num_attention_heads=4, image_size=16, patch_size=8),
        text_config=dict(model_type="llama", vocab_size=64, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32), image_token_index=3)
    batch, size, places = (256, 336, 576) if full else (4, 16, 4)
    token = config.image_token_id
    text = torch.cat([torch.full((batch, places), token), torch.randint(5, 64, (batch, 64 if full else 6))], 1)
    labels = torch.where(text == token, -100, text)
    return (Own(transformers.LlavaForConditionalGeneration(config), "input_ids", "pixel_values", "labels"),
            (text, torch.randn(batch, 3, size, size), labels))


def wav2vec2(full):
    off = dict(hidden_dropout=0.0, activation_dropout=0.0, attention_dropout=0.0, feat_proj_dropout=0.0, final_dropout=0.0,
               layerdrop=0.0, mask_time_prob=0.0, ctc_loss_reduction="mean")
    config = transformers.Wav2Vec2Config(**off) if full else transformers.Wav2Vec2Config(
        **off, vocab_size=16, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        conv_dim=[16] * 7, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4)
    batch, samples = (4096, 160000) if full else (4, 3200)
    return (Transcribed(transformers.Wav2Vec2ForCTC(config)),
            (torch.randn(batch, samples), torch.randint(1, 16, (batch, 20 if full else 3))))


def mamba2(full):
    config = transformers.Mamba2Config(num_hidden_layers=8) if full else transformers.Mamba2Config(
        vocab_size=64, hidden_size=32, num_hidden_layers=2, num_heads=8, head_dim=8, state_size=8, n_groups=2, chunk_size=4)
    text = torch.randint(3, 64, (512, 512) if full else (4, 8))
    return Own(transformers.Mamba2ForCausalLM(config), "input_ids", "labels"), (text, text.clone())


def gpt2(full):
    off = dict(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(**off) if full else transformers.GPT2Config(
        **off, vocab_size=64, n_positions=16, n_embd=32, n_layer=2, n_head=4, bos_token_id=1, eos_token_id=2))


def ppo(full):
    shape = (512, 512) if full else (4, 8)
    rest = [torch.randn(shape[0], shape[1] - 1) for _ in range(4)]
    mask = (torch.arange(shape[1] - 1) > 2).float().expand(shape[0], -1).clone()
    rest[0] = rest[0] * 0.1 - 4
    return Proximal(gpt2(full), 768 if full else 32), (torch.randint(3, 64, shape), *rest, mask)


def dpo(full):
    shape = (1024, 512) if full else (8, 8)
    mask = (torch.arange(shape[1] - 1) > 2).float().expand(shape[0], -1).clone()
    return Preferred(gpt2(full)), (torch.randint(3, 64, shape), mask, torch.randn(shape[0]) - 20)


MODELS = {make.__name__: make for make in (vit, clip, transformer, timesformer, dlrm, llava, wav2vec2, mamba2, ppo, dpo)}


def write_full(folder, make):
    """Exports without numbers: on the meta device nothing is computed, and the file has shapes alone."""
    with torch.device("meta"):
        module, inputs = make(True)
    module.train()
    torch.export.save(torch.export.export(module, inputs), folder / "model.pt2")
    return {"state": "exported"}


def write_small(folder, make):
    torch.manual_seed(1)
    module, inputs = make(False)
    module.train()
    return write(folder, module, inputs)


def exported(folder, make, full, again):
    """Empty where the file is there, or was made; else why it is not."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / "model.pt2").exists() and not again:
        return ""
    state = in_a_child(lambda: (write_full if full else write_small)(folder, make), 900)
    return "" if state["state"] == "exported" else f"not exported: {state['reason']}"


def small(cli, folder, scratch):
    """What does not hold of a small model."""
    model, inputs, failures = folder / "model.pt2", folder / "io.npz", []
    run = Call(cli, "run", model, "--cluster", "cpu:1", "--inputs", inputs, "--dump", scratch / "dump", "--json")
    failures.append(run.failure or compared(run.out, scratch / "dump", folder / "reference.npz"))
    for devices, gallery, micro in ((2, None, 1), (4, None, 1), (2, "data-parallel", 1), (4, "data-parallel", 1), (2, "pipeline:stages=2", 2), (2, "data-parallel", 2)):
        words = ["--gallery", gallery] if gallery else []
        plan = scratch / "plan.json"
        solved = Call(cli, "solve", model, "--cluster", f"cpu:{devices}", *words, "--micro-batches", micro, "--out", plan)
        what = f"cpu:{devices} {gallery or 'searched'}, {micro} micro-batches: "
        if solved.failure:
            failures.append(what + solved.failure)
            continue
        done = Call(cli, "verify", plan).failure or Call(cli, "run", plan, "--check", "--inputs", inputs).failure
        failures.append(done and what + done)
    return [failure for failure in failures if failure]


def full(cli, folder, scratch):
    """What does not hold of a model of full size: how long devices compute, alone and eight of them."""
    longest = {}
    for devices, gallery in ((1, "single"), (DEVICES, "data-parallel")):
        call = Call(cli, "solve", folder / "model.pt2", "--cluster", f"dgx-h100:{DEVICES}", "--gallery", gallery, "--json")
        if call.failure:
            return [f"{gallery}: {call.failure}"]
        solved = json.loads(call.out)
        longest[devices] = max(device["busy_seconds"] for device in solved["devices"])
    share = longest[DEVICES] / longest[1]
    print(f"    one device computes for {longest[1]:.4g} s, each of {DEVICES} for {longest[DEVICES]:.4g} s: {share * DEVICES:.3f}/{DEVICES}, "
          f"{solved['copied']['share']:.2%} copied")
    return [] if share <= ALLOWED / DEVICES else [f"each device computes for {share * DEVICES:.2f}/{DEVICES} of the time of one"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--cli", default=ROOT / "build/tests/bin/planloom-cli")
    parser.add_argument("--only", nargs="*", choices=list(MODELS))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--again", action="store_true", help="export again")
    parser.add_argument("--only-write", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    failed = 0
    for name in options.only or MODELS:
        for is_full in [False] * (not options.full) + [True] * (not options.small):
            folder = options.out / (name + ("-full" if is_full else ""))
            failure = exported(folder, MODELS[name], is_full, options.again)
            with tempfile.TemporaryDirectory() as scratch:
                failures = [failure] if failure else []
                if not failures and not options.only_write:
                    failures = (full if is_full else small)(options.cli, folder, pathlib.Path(scratch))
            failed += bool(failures)
            print(f"{name:12} {'full' if is_full else 'small':6} {'; '.join(failures) or 'right'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
