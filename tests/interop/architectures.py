#!/usr/bin/env python3
"""Many architectures, exported in every way PyTorch has, planned and trained by Planloom and compared with PyTorch.

    tests/interop/architectures.py --environment FOLDER [--cli build/bin/planloom-cli] [--only NAME ...]
        [--forms FORM ... | --all-forms | --turn NUMBER] [--beginning WORD] [--keep FOLDER [--only-write]] [--json FILE]
        [--by-file]

Of transformers, timm, torchvision and diffusers (small configurations, random weights) and of hand-made networks, with
their losses. Forms are torch.onnx.export's default exporter with operator sets 17 to 23, with and without its optimizer,
with fixed and open batch; its TorchScript exporter; torch.export.save before and after run_decompositions. Unless
--all-forms asks for every one, each architecture is exported in four that change from one to the next.

Compared are the loss, every gradient and the losses of eight AdamW steps. A table says what is equal, what differs and
what is refused with which words. A file that holds another network than the module (its exporter's optimizer worked
parameters into others) is held against PyTorch's training of the network in the file, which onnx_in_torch.py evaluates;
--by-file does so for every ONNX file that it can read. The environment is made in FOLDER if it is not there: gigabytes and minutes; not part of
the test suite. Exit status 1 if anything is wrong.
"""

import argparse
import contextlib
import copy
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ["torch", "torchvision", "transformers", "timm", "diffusers", "onnx", "onnxscript", "onnxruntime",
            "numpy"]


def environment_of(words):
    return pathlib.Path(words[words.index("--environment") + 1]).absolute() if "--environment" in words[:-1] else None


def enter_environment():
    """Starts again inside of the environment asked for."""
    folder = environment_of(sys.argv)
    if folder is None or pathlib.Path(sys.prefix) == folder:
        return
    python = folder / "bin/python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        subprocess.run([folder / "bin/pip", "install", "-q", *PACKAGES], check=True)
    os.execv(python, [str(python), *sys.argv])


enter_environment()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import model_cases  # noqa: E402
import onnx_in_torch  # noqa: E402
from model_cases import STOPS_GRADIENTS, image, language, masked, vision  # noqa: E402
from training_comparison import SECONDS, Expected, Found, gradient_difference, loss_difference, step_difference  # noqa: E402


class Denoiser(nn.Module):
    """A diffusion model with its loss: how far its noise is from a given one."""

    def __init__(self, model, names):
        super().__init__()
        self.model = model
        self.names = names

    def forward(self, *values):
        *inputs, noise = values
        made = self.model(**dict(zip(self.names, inputs)), return_dict=False)
        return F.mse_loss(made[0], noise)


def timm_model(name, size=64, **more):
    def make_net():
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, **more)

    return image(make_net, size)


def timm_mixer(block, **layers):
    def make_net():
        from timm.models import mlp_mixer

        return mlp_mixer.MlpMixer(img_size=32, patch_size=8, num_blocks=2, embed_dim=32, num_classes=10,
                                  block_layer=getattr(mlp_mixer, block), mlp_ratio=4 if layers else (0.5, 4.0),
                                  **{key: getattr(mlp_mixer, name) for key, name in layers.items()})

    return image(make_net)


def torchvision_net(make_small, size=32):
    """@param size  such that batch normalisation sees more than one place: else it makes whole numbers of rounding"""

    def make_net():
        import torchvision

        return make_small(torchvision.models)

    return image(make_net, size)


def denoiser(name, config, shapes):
    """A model of diffusers; `shapes` of its inputs by name, integers where a pair (shape, bound)."""

    def make():
        import diffusers

        model = getattr(diffusers, name)(**config)
        inputs = [torch.randint(0, shape[1], shape[0]) if isinstance(shape[0], tuple) else torch.randn(shape)
                  for shape in shapes.values()]
        with torch.no_grad():
            made = model(**dict(zip(shapes, inputs)), return_dict=False)[0]
        return Denoiser(model, list(shapes)), (*inputs, torch.randn(made.shape))

    return make


class Decoded(nn.Module):
    """An autoencoder that is not variational: the mode of its code, decoded."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, target):
        return F.mse_loss(self.model.decode(self.model.encode(x).latent_dist.mode(), return_dict=False)[0], target)


def autoencoder():
    import diffusers

    model = diffusers.AutoencoderKL(in_channels=3, out_channels=3, down_block_types=("DownEncoderBlock2D",) * 2,
                                    up_block_types=("UpDecoderBlock2D",) * 2, block_out_channels=(8, 16),
                                    latent_channels=4, norm_num_groups=4, sample_size=16)
    return Decoded(model), (torch.randn(2, 3, 16, 16), torch.randn(2, 3, 16, 16))


TRANSFORMER = dict(num_attention_heads=2, attention_head_dim=8, num_layers=2)
UNET = dict(block_out_channels=(8, 16), layers_per_block=1, norm_num_groups=4, sample_size=16)
MORE = {
    # transformers
    "gptbigcode": language("GPTBigCode", n_embd=32, n_layer=2, n_head=4, n_positions=32, resid_pdrop=0.0,
                           embd_pdrop=0.0, attn_pdrop=0.0),
    "mpt": language("Mpt", d_model=32, n_heads=4, n_layers=2, max_seq_len=32, expansion_ratio=2),
    "exaone4": language("Exaone4", sliding_window=6),
    "ernie4_5": language("Ernie4_5"),
    "seed_oss": language("SeedOss", attention_dropout=0.0, residual_dropout=0.0),
    "arcee": language("Arcee"),
    "camembert": masked("Camembert", max_position_embeddings=40),
    "megatron_bert": masked("MegatronBert"),
    "nystromformer": masked("Nystromformer", num_landmarks=12, segment_means_seq_len=12),
    "convbert": masked("ConvBert", embedding_size=16, conv_kernel_size=3),
    "vit_msn": vision("ViTMSN"),
    "pvt": vision("PvtV2", size=64, patch_size=None, hidden_size=None, num_hidden_layers=None, intermediate_size=None,
                  hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], num_attention_heads=[1, 1, 2, 4],
                  mlp_ratios=[2, 2, 2, 2], drop_path_rate=0.0),
    "poolformer": vision("PoolFormer", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], drop_path_rate=0.0),
    "segformer": vision("Segformer", size=64, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                        num_attention_heads=[1, 1, 2, 4], drop_path_rate=0.0, classifier_dropout_prob=0.0,
                        hidden_dropout_prob=0.0),
    "mobilenet_v2_hf": vision("MobileNetV2", size=96, depth_multiplier=0.1, min_depth=4, classifier_dropout_prob=0.0),
    # timm
    "timm_vit": timm_model("vit_tiny_patch16_224", 32, img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4),
    "timm_deit3": timm_model("deit3_small_patch16_224", 32, img_size=32, patch_size=8, embed_dim=32, depth=2,
                             num_heads=4),
    "timm_beitv2": timm_model("beitv2_base_patch16_224", 32, img_size=32, patch_size=8, embed_dim=32, depth=2,
                              num_heads=4),
    "timm_eva02": timm_model("eva02_tiny_patch14_224", 28, img_size=28, patch_size=7, embed_dim=32, depth=2, num_heads=4),
    "timm_swin": timm_model("swin_tiny_patch4_window7_224", 32, img_size=32, patch_size=2, window_size=4, embed_dim=16,
                            depths=(2, 2), num_heads=(2, 4), drop_path_rate=0.0),
    "timm_swinv2": timm_model("swinv2_tiny_window8_256", 32, img_size=32, patch_size=2, window_size=4, embed_dim=16,
                              depths=(2, 2), num_heads=(2, 4), drop_path_rate=0.0),
    "timm_cait": timm_model("cait_xxs24_224", 32, img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4,
                            depth_token_only=1),
    "timm_xcit": timm_model("xcit_nano_12_p8_224", 32, img_size=32, patch_size=8, embed_dim=32, depth=2, num_heads=4),
    "timm_mixer": timm_mixer("MixerBlock"),
    "timm_gmlp": timm_mixer("SpatialGatingBlock", mlp_layer="GatedMlp"),
    "timm_resmlp": timm_mixer("ResBlock", norm_layer="Affine"),
    "timm_convnext": timm_model("convnext_atto", 32, depths=(1, 1, 1, 1), dims=(8, 16, 24, 32)),
    "timm_convnextv2": timm_model("convnextv2_atto", 32, depths=(1, 1, 1, 1), dims=(8, 16, 24, 32)),
    "timm_mobilenetv3": timm_model("mobilenetv3_small_050", 96),
    "timm_mobilenetv4": timm_model("mobilenetv4_conv_small_035", 96),
    "timm_densenet": timm_model("densenet121", 32, growth_rate=4, block_config=(2, 2)),
    "timm_hiera": timm_model("hiera_tiny_224", 64, img_size=(64, 64), embed_dim=16, stages=(1, 1, 2, 1)),
    "timm_davit": timm_model("davit_tiny", 64, depths=(1, 1, 1, 1), embed_dims=(8, 16, 24, 32), num_heads=(1, 2, 3, 4),
                             drop_path_rate=0.0),
    # torchvision
    "tv_resnet": torchvision_net(lambda tv: tv.ResNet(tv.resnet.BasicBlock, [1, 1, 1, 1], num_classes=10), 96),
    "tv_densenet": torchvision_net(lambda tv: tv.DenseNet(4, (2, 2), 8, num_classes=10), 96),
    "tv_mobilenet_v2": torchvision_net(lambda tv: tv.MobileNetV2(10, width_mult=0.25, dropout=0.0), 96),
    "tv_mobilenet_v3": torchvision_net(lambda tv: tv.mobilenet_v3_small(num_classes=10, width_mult=0.25, dropout=0.0), 96),
    "tv_shufflenet": torchvision_net(lambda tv: tv.ShuffleNetV2([1, 1, 1], [8, 16, 32, 64, 64], num_classes=10), 96),
    "tv_squeezenet": torchvision_net(lambda tv: tv.SqueezeNet("1_1", 10, dropout=0.0)),
    "tv_mnasnet": torchvision_net(lambda tv: tv.MNASNet(0.25, 10, dropout=0.0), 96),
    "tv_vit": torchvision_net(lambda tv: tv.VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10)),
    "tv_swin": torchvision_net(lambda tv: tv.SwinTransformer([2, 2], 16, [2, 2], [2, 4], [4, 4], num_classes=10,
                                                             stochastic_depth_prob=0.0)),
    "tv_swin_v2": torchvision_net(lambda tv: tv.SwinTransformer(
        [2, 2], 16, [2, 2], [2, 4], [4, 4], num_classes=10, stochastic_depth_prob=0.0,
        block=tv.swin_transformer.SwinTransformerBlockV2, downsample_layer=tv.swin_transformer.PatchMergingV2)),
    "tv_convnext": torchvision_net(lambda tv: tv.ConvNeXt(
        [tv.convnext.CNBlockConfig(8, 16, 1), tv.convnext.CNBlockConfig(16, None, 1)], 0.0, num_classes=10)),
    "tv_maxvit": torchvision_net(lambda tv: tv.MaxVit((32, 32), 8, 4, [8, 16], [1, 1], 8, stochastic_depth_prob=0.0,
                                                      num_classes=10)),
    # diffusers
    "unet2d": denoiser("UNet2DModel", dict(**UNET, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                                           up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=8),
                       {"sample": (2, 3, 16, 16), "timestep": ((2,), 1000)}),
    "unet2d_condition": denoiser(
        "UNet2DConditionModel", dict(**UNET, in_channels=4, out_channels=4, cross_attention_dim=12, attention_head_dim=4,
                                     down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                                     up_block_types=("CrossAttnUpBlock2D", "UpBlock2D")),
        {"sample": (2, 4, 16, 16), "timestep": ((2,), 1000), "encoder_hidden_states": (2, 5, 12)}),
    "unet1d": denoiser("UNet1DModel", dict(block_out_channels=(32, 32, 64), sample_size=32, in_channels=2, out_channels=2,
                                           extra_in_channels=64),
                       {"sample": (2, 2, 32), "timestep": ((2,), 1000)}),
    "dit": denoiser("DiTTransformer2DModel", dict(**TRANSFORMER, in_channels=4, sample_size=8, patch_size=2, dropout=0.0,
                                                  num_embeds_ada_norm=10, out_channels=4, norm_num_groups=4),
                    {"hidden_states": (2, 4, 8, 8), "timestep": ((2,), 1000), "class_labels": ((2,), 10)}),
    "pixart": denoiser("PixArtTransformer2DModel", dict(**TRANSFORMER, in_channels=4, sample_size=8, patch_size=2,
                                                        out_channels=4, cross_attention_dim=16, caption_channels=12,
                                                        use_additional_conditions=False, norm_num_groups=4),
                       {"hidden_states": (2, 4, 8, 8), "encoder_hidden_states": (2, 5, 12), "timestep": ((2,), 1000)}),
    "sd3": denoiser("SD3Transformer2DModel", dict(**TRANSFORMER, sample_size=8, patch_size=2, in_channels=4,
                                                  joint_attention_dim=12, caption_projection_dim=16,
                                                  pooled_projection_dim=8, out_channels=4, pos_embed_max_size=8),
                    {"hidden_states": (2, 4, 8, 8), "encoder_hidden_states": (2, 5, 12), "pooled_projections": (2, 8),
                     "timestep": ((2,), 1000)}),
    "transformer2d": denoiser("Transformer2DModel", dict(**TRANSFORMER, in_channels=8, norm_num_groups=4,
                                                         cross_attention_dim=12),
                              {"hidden_states": (2, 8, 6, 6), "encoder_hidden_states": (2, 5, 12)}),
    "autoencoder_kl": autoencoder,
}
CASES = {**model_cases.CASES, **MORE}

FORMS = ["pt2", "pt2-core", "torchscript-17", "torchscript-18"] + [
    f"dynamo-{opset}{plain}{shapes}" for opset in range(18, 24) for plain in ("", "-unoptimized")
    for shapes in ("", "-dynamic")] + ["dynamo-17"]


def usual_forms(number):
    """Four forms for the architecture with this number, so that all forms come round."""
    dynamo = [form for form in FORMS if form.startswith("dynamo")]
    return [("pt2", "pt2-core")[number % 2], ("torchscript-17", "torchscript-18")[number // 2 % 2],
            dynamo[(7 * number) % len(dynamo)], dynamo[(7 * number + 12) % len(dynamo)]]


def has_batch_norm(module):
    return any(isinstance(each, nn.modules.batchnorm._BatchNorm) for each in module.modules())


def prepared(module, form):
    """The module as the form can say it."""
    module = copy.deepcopy(module)
    module.with_mask = form.startswith("torchscript")
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point() and parameter.requires_grad:
                parameter.add_(0.02 * torch.randn_like(parameter))  # fresh biases are equal, and would be merged
    if form.startswith("dynamo"):  # writes batch normalisation in evaluation mode, whatever the module says
        for each in module.modules():
            if isinstance(each, nn.modules.batchnorm._BatchNorm):
                each.eval()
    return module


def dynamic_shapes(module, inputs):
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = tuple({0: batch} if value.dim() > 0 and value.shape[0] == inputs[0].shape[0] else None for value in inputs)
    return (shapes,) if isinstance(module, Denoiser) else shapes  # it takes a list of arguments


def with_plain_attention(module):
    """Has scores computed one by one, which PyTorch can export where it fails at its fused attention."""
    for each in module.modules():
        if hasattr(each, "fused_attn"):
            each.fused_attn = False
        if isinstance(each, model_cases.transformers.PreTrainedModel):
            each.set_attn_implementation("eager")


def export(module, inputs, form, folder):
    """@return (the file, names of its inputs, whether its batch is open)"""
    words = form.split("-")
    names = [f"input{i}" for i in range(len(inputs))]
    if words[0] == "pt2":
        exported = torch.export.export(module, inputs)
        if "core" in words:
            exported = exported.run_decompositions()
        path = folder / "model.pt2"
        torch.export.save(exported, path)
        names = [spec.arg.name for spec in exported.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
        return path, names, False
    path = folder / "model.onnx"
    if words[0] == "torchscript":
        torch.onnx.export(module, inputs, path, dynamo=False, opset_version=int(words[1]), input_names=names,
                          output_names=["loss"], training=torch.onnx.TrainingMode.TRAINING,
                          do_constant_folding=False)
        return path, names, False
    dynamic = "dynamic" in words
    program = torch.onnx.export(module, inputs, dynamo=True, opset_version=int(words[1]), input_names=names,
                                output_names=["loss"], optimize="unoptimized" not in words, verbose=False,
                                dynamic_shapes=dynamic_shapes(module, inputs) if dynamic else None)
    program.save(path)
    return path, names, dynamic


@contextlib.contextmanager
def quiet():
    """Keeps back what exporters print, graphs of what they failed at above all."""
    sys.stdout.flush()
    kept = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 1)
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
        os.close(nowhere)


def written(module, inputs, form, folder):
    """Exports the module and stores PyTorch's results beside the file; what is there already is not made again.

    @return why it was not exported; empty if it was"""
    made = folder / "made.json"
    if made.exists():
        return json.loads(made.read_text())["failure"]
    module = prepared(module, form)
    for prepare in (None, with_plain_attention):
        try:
            with quiet():
                if prepare:
                    prepare(module)
                path, names, _ = export(module, inputs, form, folder)
            failure = ""
            break
        except Exception as error:  # noqa: BLE001  what exporters throw is of every kind
            failure = (str(error).strip().splitlines() or [type(error).__name__])[0][:160]
    if not failure:
        expected = Expected.of(module, inputs)
        untrained = [name for name, each in module.named_parameters() if not each.requires_grad]
        untrained += [name for name, each in module.named_buffers() if each.is_floating_point()]
        np.savez(folder / "io.npz", **{"in." + name: value.numpy() for name, value in zip(names, inputs)})
        expected.store(folder / "pytorch.npz")
    told = {"failure": failure}
    if not failure:
        told.update(file=path.name, untrained=untrained)
    made.write_text(json.dumps(told))
    return failure


def by_onnx_runtime(path, inputs):
    """The loss that ONNX Runtime finds for a file; None if it cannot run it."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        known = {each.name for each in session.get_inputs()}
        return float(session.run(None, {name: value for name, value in inputs.items() if name in known})[0])
    except Exception:  # noqa: BLE001
        return None


def compare(cli, folder, form, by_file=False):
    """@return (verdict, words): as `compare_once`; "by hand" if an ONNX file does not say that something is frozen or a
    buffer, and all is equal once a person does; "broken" if ONNX Runtime does not take the file either; "as the file" if
    the file holds another network than the module, which Planloom trains as PyTorch does

    @param by_file  whether an equal file is also held against PyTorch's training of the network in it"""
    verdict, words = compare_once(cli, folder, form)
    told = json.loads((folder / "made.json").read_text())
    if verdict == "refused" and not form.startswith("pt2"):
        inputs = {name[3:]: value for name, value in np.load(folder / "io.npz").items()}
        if by_onnx_runtime(folder / told["file"], inputs) is None:
            return "broken", "ONNX Runtime refuses it, too; " + words
    if verdict == "wrong" and not form.startswith("pt2"):
        taken = {each["name"] for each in stored_by(cli, folder / told["file"], form, folder)
                 if each["as"] == "parameter"}
        names = [name for name in told.get("untrained", []) if name in taken]
        again = compare_once(cli, folder, form, names)[0] if names else verdict
        if again == "equal":
            return "by hand", "--constant " + " --constant ".join(names)
    if verdict in ("folded", "another loss") or by_file and verdict == "equal" and not form.startswith("pt2"):
        try:
            difference = difference_to_file(cli, folder, form)
        except onnx_in_torch.Unknown as unknown:
            return verdict, f"{words}; the file is not evaluated: {unknown}".removeprefix("; ")
        if difference:
            return "wrong", "of the network in the file: " + difference
        verdict = "equal" if verdict == "equal" else "as the file"
        words = words or "by the file, too"
    return verdict, words


def difference_to_file(cli, folder, form):
    """How Planloom's training differs from PyTorch's of the network that is in an ONNX file; empty if it does not.

    @throw onnx_in_torch.Unknown  if the evaluator does not know what the file has"""
    path = folder / json.loads((folder / "made.json").read_text())["file"]
    module = onnx_in_torch.OnnxModule(path, stored_by(cli, path, form, folder))
    given = {name[3:]: torch.from_numpy(value) for name, value in np.load(folder / "io.npz").items()}
    inputs = [given[name] for name in module.inputs]
    expected = Expected.of(module, inputs)
    expected.gradients = module.named_gradients(expected.gradients)
    expected.exact = module.named_gradients(expected.exact)
    found = Found.by(cli, path, folder)
    return (found.failure or loss_difference(found, expected) or gradient_difference(found, expected)
            or step_difference(found, expected))


def stored_by(cli, path, form, folder):
    """What Planloom takes the stored tensors of a file as."""
    batch = len(next(iter(np.load(folder / "io.npz").values())))
    sizes = ("--dim", f"batch={batch}") if "dynamic" in form else ()
    told = subprocess.run([cli, "info", path, "--json", *sizes], capture_output=True, text=True, timeout=SECONDS, check=False)
    return json.loads(told.stdout)["stored"]


def compare_once(cli, folder, form, constants=()):
    """@return (verdict, words): equal, wrong or refused; "folded" if the exporter's optimizer worked parameters into
    others, Planloom named each of them, and all others are equal; "another loss" if the file computes another one than the
    module, by ONNX Runtime, too"""
    path = folder / json.loads((folder / "made.json").read_text())["file"]
    expected = Expected.stored(folder / "pytorch.npz")
    found = Found.by(cli, path, folder, constants)
    if found.failure:
        return "refused", found.failure
    if difference := loss_difference(found, expected):
        inputs = {name[3:]: value for name, value in np.load(folder / "io.npz").items()}
        third = by_onnx_runtime(path, inputs) if path.suffix == ".onnx" else None
        if third is not None and abs(found.loss - third) <= 1e-4 * max(1.0, abs(third)):
            return "another loss", f"{found.loss:.6g} by ONNX Runtime, too; PyTorch has {expected.loss:.6g}"
        return "wrong", difference
    lost = set()
    if form.startswith("dynamo") and "unoptimized" not in form:
        for each in stored_by(cli, path, form, folder):
            lost.update(each.get("instead_of", []))
    if difference := gradient_difference(found, expected, lost):
        return "wrong", difference
    if lost:  # later losses cannot be equal
        return "folded", f"{len(lost)} of {len(expected.gradients)} parameters, such as " + sorted(lost)[0]
    difference = step_difference(found, expected)
    return ("wrong", difference) if difference else ("equal", "")


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)  # the models are small
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environment", type=pathlib.Path, help="where Python and its packages are, or will be")
    parser.add_argument("--cli", default=ROOT / "build/bin/planloom-cli")
    parser.add_argument("--only", nargs="*", help="architectures")
    parser.add_argument("--forms", nargs="*", choices=FORMS)
    parser.add_argument("--all-forms", action="store_true")
    parser.add_argument("--turn", type=int, default=0, help="another number gives architectures other forms of the usual")
    parser.add_argument("--beginning", default="", help="of the forms only those whose names begin so")
    parser.add_argument("--keep", type=pathlib.Path, help="where files stay; what is there is not made again")
    parser.add_argument("--only-write", action="store_true", help="the files and PyTorch's results, for another time")
    parser.add_argument("--json", type=pathlib.Path, help="the table as a file")
    parser.add_argument("--by-file", action="store_true",
                        help="equal ONNX files are also held against PyTorch's training of the network in them")
    options = parser.parse_args()
    rows = []

    def add(*row):
        rows.append(row)
        print("%-18s %-28s %-12s %s" % row, flush=True)
        if options.json:
            options.json.write_text(
                json.dumps([dict(zip(("model", "form", "verdict", "words"), each)) for each in rows]))

    for number, (name, make) in enumerate(CASES.items()):
        if options.only and name not in options.only:
            continue
        forms = options.forms or (FORMS if options.all_forms else usual_forms(number + options.turn))
        forms = [form for form in forms if form.startswith(options.beginning)
                 and not (form == "pt2-core" and name in STOPS_GRADIENTS)]
        module, inputs = None, ()
        for form in forms:
            with tempfile.TemporaryDirectory() as temporary:
                folder = options.keep / name / form if options.keep else pathlib.Path(temporary)
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    if module is None and not (folder / "made.json").exists():
                        torch.manual_seed(1)
                        module, inputs = make()
                        module.train()
                        with torch.no_grad():
                            module(*inputs)  # lazy layers
                except Exception as failure:  # noqa: BLE001
                    add(name, form, "not made", (str(failure).splitlines() or [""])[0][:160])
                    break
                torch.manual_seed(2)
                failure = written(module, inputs, form, folder)
                if failure:
                    add(name, form, "not exported", failure)
                elif not options.only_write:
                    add(name, form, *compare(options.cli, folder, form, options.by_file))
    return 0 if options.only_write else summed_up(rows)


def summed_up(rows):
    """Prints how many files of each kind of form are what. @return the exit status"""
    verdicts = ["equal", "as the file", "by hand", "folded", "another loss", "broken", "wrong", "refused", "not exported"]
    kinds = ["pt2", "pt2-core", "torchscript", "dynamo", "dynamo-unoptimized"]

    def kind_of(form):
        words = form.split("-")
        return "dynamo-unoptimized" if "unoptimized" in words else form if words[0] == "pt2" else words[0]

    print("%-20s" % "" + "".join("%14s" % verdict for verdict in verdicts))
    for kind in kinds:
        found = [row[2] for row in rows if kind_of(row[1]) == kind]
        if found:
            print("%-20s" % kind + "".join("%14d" % found.count(verdict) for verdict in verdicts))
    counts = {verdict: sum(row[2] == verdict for row in rows) for verdict in verdicts}
    files = sum(counts.values()) - counts["not exported"]
    models = len({row[0] for row in rows if row[2] in verdicts[:-1]})

    def share(count):
        return f"{count} ({100 * count / max(files, 1):.1f}%)"

    print(f"{files} files of {models} architectures: {share(counts['equal'])} equal PyTorch, "
          f"{share(counts['as the file'])} hold another network than the module and train as that one does in PyTorch, "
          f"{share(counts['by hand'])} do once a person says what is no parameter, "
          f"{share(counts['folded'])} more lack parameters that Planloom names, all others equal, "
          f"{counts['another loss']} more with another loss than the module, {counts['broken']} that nobody can run, "
          f"{counts['wrong']} wrong, "
          f"{counts['refused']} refused; {len(rows) - files} were not made or exported")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
