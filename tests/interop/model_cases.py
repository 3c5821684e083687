"""Small architectures with their losses: what the scripts beside this file export and hold against PyTorch.

Of transformers' models with few layers, random weights and no dropout, and of hand-made networks; each is a function
that makes (module, inputs), the module returning its loss. Needs PyTorch and transformers.
"""

import torch
import transformers

from torch import nn
from torch.nn import functional as F

transformers.logging.set_verbosity_error()

BATCH, LENGTH, VOCABULARY = 2, 12, 97


class LanguageModel(nn.Module):
    """A language model with its loss: the next token's cross-entropy."""

    with_mask = False  # TorchScript's exporter cannot export how transformers finds that there is none

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, labels):
        more = {"attention_mask": torch.ones_like(tokens)} if self.with_mask else {}
        logits = self.model(input_ids=tokens, use_cache=False, **more).logits
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class MaskedModel(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, labels):
        logits = self.model(input_ids=tokens).logits
        return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


class SequenceModel(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, decoder_tokens, labels):
        logits = self.model(input_ids=tokens, decoder_input_ids=decoder_tokens, use_cache=False).logits
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())


class ImageModel(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, image, labels):
        result = self.model(image)
        logits = result if torch.is_tensor(result) else result.logits
        return F.cross_entropy(logits, labels)


class Block(nn.Module):
    """A residual block as torchvision writes it: batch norms, and activations in place."""

    def __init__(self, ins, outs, stride=1, norm=nn.BatchNorm2d):
        super().__init__()
        self.conv1 = nn.Conv2d(ins, outs, 3, stride, 1, bias=False)
        self.bn1 = norm(outs)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = nn.Conv2d(outs, outs, 3, 1, 1, bias=False)
        self.bn2 = norm(outs)
        self.downsample = None
        if stride != 1 or ins != outs:
            self.downsample = nn.Sequential(nn.Conv2d(ins, outs, 1, stride, bias=False), norm(outs))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)


def resnet(norm=nn.BatchNorm2d):
    return nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), norm(8), nn.ReLU(inplace=True),
                         nn.MaxPool2d(3, 2, 1), Block(8, 8, 1, norm), Block(8, 16, 2, norm),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10))


def vgg():
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(True), nn.MaxPool2d(2, 2),
                         nn.Conv2d(8, 16, 3, padding="same"), nn.ReLU(True), nn.MaxPool2d(2, 2),
                         nn.AdaptiveAvgPool2d((2, 2)), nn.Flatten(), nn.Linear(64, 32), nn.ReLU(True),
                         nn.Dropout(0.0), nn.Linear(32, 10))


class Inverted(nn.Module):
    """MobileNet's block: depth-wise convolutions, squeeze and excitation, hard activations."""

    def __init__(self, ins, wide):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(ins, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(wide, wide, 3, 1, 1, groups=wide, bias=False),
                                   nn.BatchNorm2d(wide), nn.ReLU6())
        self.squeeze = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 4, 1), nn.ReLU(),
                                     nn.Conv2d(4, wide, 1), nn.Hardsigmoid())
        self.project = nn.Sequential(nn.Conv2d(wide, ins, 1, bias=False), nn.BatchNorm2d(ins))

    def forward(self, x):
        y = self.depth(self.expand(x))
        return x + self.project(y * self.squeeze(y))


def mobilenet():
    return nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), Inverted(8, 16), Inverted(8, 24), nn.AdaptiveAvgPool2d(1),
                         nn.Flatten(), nn.Linear(8, 10))


class Dense(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.layers = nn.ModuleList(nn.Sequential(nn.BatchNorm2d(8 + 4 * i), nn.ELU(),
                                                  nn.Conv2d(8 + 4 * i, 4, 3, padding=1)) for i in range(3))
        self.head = nn.Linear(20, 10)

    def forward(self, x):
        x = self.first(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.head(F.avg_pool2d(F.leaky_relu(x), 4).mean((2, 3)))


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(3, 8, 3, padding=1)
        self.norm = nn.GroupNorm(4, 8)
        self.deep = nn.Conv2d(8, 16, 3, padding=1, padding_mode="replicate")
        self.inner = nn.InstanceNorm2d(16, affine=True)
        self.up = nn.ConvTranspose2d(16, 8, 2, 2)
        self.out = nn.Conv2d(16, 10, 1)

    def forward(self, x):
        a = F.silu(self.norm(self.down(x)))
        b = self.inner(F.gelu(self.deep(F.max_pool2d(a, 2))))
        c = self.up(b) + F.interpolate(b, scale_factor=2, mode="bilinear")[:, :8]
        return self.out(torch.cat([a, c], 1)).amax((2, 3))


class ConvNext(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 4, 4)
        self.depth = nn.Conv2d(8, 8, 7, padding=3, groups=8)
        self.norm = nn.LayerNorm(8)
        self.wide = nn.Linear(8, 32)
        self.back = nn.Linear(32, 8)
        self.scale = nn.Parameter(torch.full((8,), 0.1))
        self.head = nn.Linear(8, 10)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.depth(x).permute(0, 2, 3, 1))
        y = self.scale * self.back(F.gelu(self.wide(y), approximate="tanh"))
        return self.head((x + y.permute(0, 3, 1, 2)).flatten(2).mean(-1))


class Volume(nn.Module):
    """Three dimensions of space, as CosmoFlow and 3D U-Nets have them."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.LeakyReLU(0.1), nn.MaxPool3d(2),
                                 nn.Conv3d(4, 8, 3, stride=2, padding=1), nn.InstanceNorm3d(8), nn.ReLU(),
                                 nn.AvgPool3d(2), nn.Flatten(), nn.LazyLinear(3))

    def forward(self, x, y):
        return F.mse_loss(self.net(x), y)


class Mixer(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = nn.Unflatten(2, (8, 4))
        self.tokens = nn.Linear(8, 8)
        self.channels = nn.Linear(16, 16)
        self.head = nn.Linear(16, 1)

    def forward(self, x, y):
        x = self.patch(x)
        x = x + self.tokens(x.transpose(-1, -2)).mT
        x = x.reshape(x.shape[0], -1, 16)
        x = x + torch.tanh(self.channels(x))
        return F.binary_cross_entropy_with_logits(self.head(x).squeeze(-1).mean(1), y)


class Losses(nn.Module):
    """Losses and indices that the others do not have."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(11, 6, padding_idx=0)
        self.fc = nn.Linear(6, 6)
        self.register_buffer("place", torch.tensor([2, 0, 1]))

    def forward(self, tokens, target):
        x = self.fc(self.table(tokens))
        picked = x[:, self.place]
        rows = torch.arange(x.shape[0]).unsqueeze(1)
        last = x[rows, self.place]
        first = x.clone()
        first[:, 0] = 0.5
        first[..., 1:3] *= 2
        a = F.smooth_l1_loss(picked.mean(-1), target) + F.huber_loss(last.sum(-1), target, delta=0.3)
        b = F.l1_loss(first.std(-1).mean(1), target.sum(1)) + F.softplus(x).norm()
        c = F.nll_loss(F.log_softmax(x.detach() * 0.5 + x, -1).flatten(0, 1), tokens.flatten() % 6, ignore_index=1)
        d = torch.where(tokens > 5, x.square().sum(-1), x.abs().amax(-1)).mean() + x.flip(1).cumsum(1).roll(1, 1)[:, 0].mean()
        with torch.no_grad():
            scale = x.max()
        e = F.cross_entropy(x.transpose(1, 2), tokens % 6, label_smoothing=0.1, ignore_index=2)
        best, place = x.relu().max(-1)
        a = a + e + best.mean() + (place * best).mean() + F.kl_div(x.log_softmax(-1), (x * 2).softmax(-1))
        return a + b + c + d * scale + x.tril().mean() + torch.logsumexp(x, 1).mean()


class Encoder(nn.Module):
    """PyTorch's own transformer layers."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(16, 3)

    def forward(self, x, y):
        return F.cross_entropy(self.head(self.encoder(x)[:, 0]), y)


def language_config(cls, **more):
    values = dict(vocab_size=VOCABULARY, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
                  num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=32, head_dim=8,
                  pad_token_id=0, bos_token_id=1, eos_token_id=2)
    values.update(more)
    return cls(**{key: value for key, value in values.items() if value is not None})


def tokens(shape=(BATCH, LENGTH)):
    return torch.randint(3, VOCABULARY, shape)


def language(name, **more):
    """A decoder of transformers: NameConfig and NameForCausalLM."""

    def make():
        config = language_config(getattr(transformers, name + "Config"), **more)
        head = "LMHeadModel" if name == "GPT2" else "ForCausalLM"
        model = getattr(transformers, name + head)(config)
        if hasattr(config, "num_experts_per_tok"):
            model.set_experts_implementation("batched_mm")  # others call operators of transformers' own
        return LanguageModel(model), (tokens(), tokens())

    return make


def masked(name, **more):
    def make():
        config = language_config(getattr(transformers, name + "Config"), hidden_dropout_prob=0.0,
                                 attention_probs_dropout_prob=0.0, **more)
        return MaskedModel(getattr(transformers, name + "ForMaskedLM")(config)), (tokens(), tokens())

    return make


def sequence(name, **more):
    def make():
        config = getattr(transformers, name + "Config")(vocab_size=VOCABULARY, pad_token_id=0, **more)
        model = getattr(transformers, name + "ForConditionalGeneration")(config)
        return SequenceModel(model), (tokens(), tokens((BATCH, 7)), tokens((BATCH, 7)))

    return make


def vision(name, size=32, **more):
    def make():
        values = dict(image_size=size, patch_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                      intermediate_size=48, num_labels=10)
        values.update(more)
        config = getattr(transformers, name + "Config")(**{k: v for k, v in values.items() if v is not None})
        model = getattr(transformers, name + "ForImageClassification")(config)
        return ImageModel(model), (torch.randn(BATCH, 3, size, size), torch.randint(0, 10, (BATCH,)))

    return make


def image(make_net, size=32):
    def make():
        return ImageModel(make_net()), (torch.randn(BATCH, 3, size, size), torch.randint(0, 10, (BATCH,)))

    return make


def own(cls, *inputs):
    def make():
        return cls(), tuple(item() for item in inputs)

    return make


EXPERTS = dict(num_experts_per_tok=2, moe_intermediate_size=24)
CASES = {
    "gpt2": language("GPT2", n_embd=32, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0.0, embd_pdrop=0.0,
                     attn_pdrop=0.0),
    "gpt_neo": language("GPTNeo", num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]],
                        window_size=4, attention_dropout=0.0, embed_dropout=0.0, resid_dropout=0.0),
    "gpt_neox": language("GPTNeoX", hidden_dropout=0.0, attention_dropout=0.0),
    "gptj": language("GPTJ", n_embd=32, n_layer=2, n_head=4, n_positions=32, rotary_dim=4, resid_pdrop=0.0,
                     embd_pdrop=0.0, attn_pdrop=0.0),
    "opt": language("OPT", ffn_dim=48, word_embed_proj_dim=32, dropout=0.0),
    "bloom": language("Bloom", n_layer=2, n_head=4, hidden_dropout=0.0, attention_dropout=0.0),
    "falcon": language("Falcon", head_dim=None, hidden_dropout=0.0, attention_dropout=0.0),
    "llama": language("Llama"),
    "mistral": language("Mistral", sliding_window=6),
    "qwen2": language("Qwen2"),
    "qwen3": language("Qwen3"),
    "gemma": language("Gemma"),
    "gemma2": language("Gemma2", sliding_window=6, query_pre_attn_scalar=8),
    "gemma3": lambda: (LanguageModel(transformers.Gemma3ForCausalLM(language_config(
        transformers.Gemma3TextConfig, sliding_window=6, query_pre_attn_scalar=8))), (tokens(), tokens())),
    "phi": language("Phi", resid_pdrop=0.0, embd_pdrop=0.0, attention_dropout=0.0),
    "phi3": language("Phi3", resid_pdrop=0.0, embd_pdrop=0.0, attention_dropout=0.0),
    "stablelm": language("StableLm", attention_dropout=0.0, hidden_dropout=0.0),
    "starcoder2": language("Starcoder2", residual_dropout=0.0, embedding_dropout=0.0, attention_dropout=0.0),
    "olmo": language("Olmo"),
    "olmo2": language("Olmo2"),
    "cohere": language("Cohere"),
    "granite": language("Granite"),
    "glm": language("Glm"),
    "helium": language("Helium"),
    "smollm3": language("SmolLM3"),
    "nemotron": language("Nemotron"),
    "persimmon": language("Persimmon", attention_dropout=0.0, hidden_dropout=0.0),
    "codegen": language("CodeGen", n_embd=32, n_layer=2, n_head=4, n_positions=32, rotary_dim=4, resid_pdrop=0.0,
                        embd_pdrop=0.0, attn_pdrop=0.0),
    "biogpt": language("BioGpt", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, activation_dropout=0.0),
    "xglm": language("XGLM", d_model=32, num_layers=2, attention_heads=4, ffn_dim=48, dropout=0.0,
                     attention_dropout=0.0),
    "mixtral": language("Mixtral", num_local_experts=4, num_experts_per_tok=2),
    "qwen3_moe": language("Qwen3Moe", num_experts=4, **EXPERTS),
    "olmoe": language("Olmoe", num_experts=4, num_experts_per_tok=2),
    "mamba": language("Mamba", state_size=4, expand=2),
    "bert": masked("Bert"),
    "roberta": masked("Roberta", max_position_embeddings=40),
    "distilbert": masked("DistilBert", dim=32, hidden_dim=48, n_layers=2, n_heads=4, dropout=0.0, attention_dropout=0.0),
    "albert": masked("Albert", embedding_size=16),
    "electra": masked("Electra", embedding_size=16),
    "deberta_v2": masked("DebertaV2", relative_attention=True, position_buckets=8, pos_att_type=["p2c", "c2p"]),
    "mpnet": masked("MPNet"),
    "modernbert": masked("ModernBert", local_attention=6, embedding_dropout=0.0, mlp_dropout=0.0),
    "t5": sequence("T5", d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0),
    "mt5": sequence("MT5", d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, dropout_rate=0.0),
    "bart": sequence("Bart", d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                     decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
                     max_position_embeddings=32, dropout=0.0),
    "pegasus": sequence("Pegasus", d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
                        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48,
                        max_position_embeddings=32, dropout=0.0),
    "vit": vision("ViT"),
    "deit": vision("DeiT"),
    "beit": vision("Beit", drop_path_rate=0.0, use_relative_position_bias=True),
    "dinov2": vision("Dinov2"),
    "swin": vision("Swin", embed_dim=16, depths=[2, 2], num_heads=[2, 4], num_attention_heads=None, window_size=4, patch_size=2,
                   drop_path_rate=0.0),
    "swinv2": vision("Swinv2", embed_dim=16, depths=[2, 2], num_heads=[2, 4], num_attention_heads=None, window_size=4, patch_size=2,
                     drop_path_rate=0.0),
    "convnext_hf": vision("ConvNext", num_stages=2, depths=[1, 1], hidden_sizes=[8, 16], drop_path_rate=0.0),
    "resnet_hf": vision("ResNet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic"),
    "mobilevit": vision("MobileViT", size=64, patch_size=2, hidden_sizes=[16, 24, 32], num_attention_heads=2,
                        neck_hidden_sizes=[8, 8, 16, 16, 24, 24, 32], hidden_dropout_prob=0.0,
                        classifier_dropout_prob=0.0, aspp_out_channels=16),
    "resnet": image(resnet, 64),
    "resnet_group": image(lambda: resnet(lambda c: nn.GroupNorm(4, c)), 64),
    "vgg": image(vgg),
    "mobilenet": image(mobilenet),
    "densenet": image(Dense, 16),
    "unet": image(UNet, 16),
    "convnext": image(ConvNext),
    "volume": own(Volume, lambda: torch.randn(2, 1, 16, 16, 16), lambda: torch.randn(2, 3)),
    "mixer": own(Mixer, lambda: torch.randn(2, 4, 32), lambda: torch.rand(2)),
    "losses": own(Losses, lambda: torch.randint(0, 11, (4, 5)), lambda: torch.randn(4, 3)),
    "encoder": own(Encoder, lambda: torch.randn(2, 5, 16), lambda: torch.randint(0, 3, (2,))),
}
STOPS_GRADIENTS = {"losses"}  # core ATen has no detach and no torch.no_grad: the program has other gradients


def reference(module, inputs):
    """PyTorch's loss and gradients, by the names of parameters; those that share memory are added up."""
    module.zero_grad()
    loss = module(*inputs)
    loss.backward()
    return loss.item(), {name: p.grad.numpy() for name, p in module.named_parameters() if p.grad is not None}
