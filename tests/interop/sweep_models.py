"""Every model of the installed transformers with its loss, small: what sweep.py exports.

The models are those of the registry's mappings (language models, classifiers of pictures, speech, several kinds of data at
once, time series ...), each class once, with a configuration of small_configurations.py. Inputs are made by the names that
a class's forward function has; labels where it makes its own loss, else a mean squared error of its first output is one.
"""

import inspect

import torch
import transformers
from torch import nn
from torch.nn import functional as F
from transformers.models.auto import modeling_auto

from small_configurations import VOCABULARY, small_configuration

transformers.logging.set_verbosity_error()

BATCH, LENGTH, SHORT = 4, 12, 8
# The mappings in the order in which they are gone through: a class that stands in several is taken from the first.
TASKS = {
    "causal": "CAUSAL_LM", "masked": "MASKED_LM", "image": "IMAGE_CLASSIFICATION", "seq2seq": "SEQ_TO_SEQ_CAUSAL_LM",
    "zeroshot": "ZERO_SHOT_IMAGE_CLASSIFICATION", "ctc": "CTC", "audio": "AUDIO_CLASSIFICATION",
    "speech": "SPEECH_SEQ_2_SEQ", "segmentation": "SEMANTIC_SEGMENTATION", "depth": "DEPTH_ESTIMATION",
    "video": "VIDEO_CLASSIFICATION", "forecast": "TIME_SERIES_PREDICTION", "imagetext": "IMAGE_TEXT_TO_TEXT",
    "multimodal": "MULTIMODAL_LM", "maskedimage": "MASKED_IMAGE_MODELING", "universal": "UNIVERSAL_SEGMENTATION",
    "detection": "OBJECT_DETECTION", "sequence": "SEQUENCE_CLASSIFICATION", "tokens": "TOKEN_CLASSIFICATION",
    "question": "QUESTION_ANSWERING", "superres": "IMAGE_TO_IMAGE", "vqa": "VISUAL_QUESTION_ANSWERING",
    "backbone": "BACKBONE",
}
TEXT_TASKS = {"causal", "masked", "seq2seq", "sequence", "tokens", "question"}


def catalogue():
    """(name, class, kind of model) of every model, tasks interleaved: the first hundred are of all kinds."""
    seen, rows = set(), []
    for place, (task, mapping) in enumerate(TASKS.items()):
        members = getattr(modeling_auto, f"MODEL_FOR_{mapping}_MAPPING_NAMES")
        for index, (kind, names) in enumerate(members.items()):
            name = names if isinstance(names, str) else names[0]
            if name not in seen:
                seen.add(name)
                rows.append(((index + 1) / len(members), place, f"{task}-{kind}", name, kind))
    return [(name, model, kind) for _, _, name, model, kind in sorted(rows)]


class WithLoss(nn.Module):
    """A model and its own loss, else the mean squared error of its first output against a given one."""

    def __init__(self, model, names, fixed):
        super().__init__()
        self.model = model
        self.names = names
        self.fixed = fixed

    def forward(self, *values):
        named = dict(zip(self.names, values))
        target = named.pop("target", None)
        made = self.model(**named, **self.fixed)
        if target is None:
            return made.loss
        return F.mse_loss(first_output(made), target)


def first_output(made):
    """The first floating-point tensor of an output."""
    for value in (made.values() if hasattr(made, "values") else made):
        if torch.is_tensor(value) and value.is_floating_point() and value.dim() > 0:
            return value
        if isinstance(value, (list, tuple)) and value and torch.is_tensor(value[0]):
            return value[-1]
    raise ValueError("the model has no output of floating-point numbers")


def tokens(length=LENGTH, first=24):
    """Texts without special tokens: the first 24 numbers are left to those."""
    return torch.randint(first, VOCABULARY, (BATCH, length))


def attribute(config, *names, default=None):
    """The first of the fields that the configuration or one of those in it has."""
    places = [config] + [value for value in vars(config).values() if hasattr(value, "model_type")]
    for name in names:
        for place in places:
            value = getattr(place, name, None)
            if value is not None:
                return value
    return default


def pair(size):
    return tuple(size)[-2:] if isinstance(size, (list, tuple)) else (size, size)


def picture(config, task, model):
    vision = getattr(config, "vision_config", None) or config
    channels = attribute(vision, "num_channels", "in_channels", "in_chans", default=3)
    height, width = pair(attribute(vision, "image_size", "img_size", default=64))
    if task == "video":
        frames = attribute(vision, "num_frames", "frames_per_clip", default=8)
        return torch.randn(BATCH, frames, channels if isinstance(channels, int) else 3, height, width)
    return torch.randn(BATCH, channels if isinstance(channels, int) else 3, height, width)


def sound(config, name):
    if name == "input_values" and attribute(config, "spectrogram_length", "num_mel_bins") and not attribute(config, "conv_stride"):
        return torch.randn(BATCH, attribute(config, "max_length", default=32), attribute(config, "num_mel_bins", default=16))
    if name == "input_values":
        return torch.randn(BATCH, 1600)
    bins = attribute(config, "num_mel_bins", "feature_projection_input_dim", "feature_size", "input_feat_per_channel", "input_dim", default=16)
    if hasattr(config, "max_source_positions"):
        if "Whisper" in type(config).__name__ or "Moonshine" in type(config).__name__:
            return torch.randn(BATCH, bins, 2 * config.max_source_positions)
    return torch.randn(BATCH, 32, bins)


def labels(task, config, made, wanted):
    """The labels that a class makes its loss of, by what it is for."""
    classes = getattr(config, "num_labels", 2)
    if task in ("causal", "masked", "imagetext", "multimodal"):
        return made["input_ids"]
    if task in ("seq2seq", "speech"):
        return tokens(SHORT) if "decoder_input_ids" in wanted else made.get("input_ids")
    if task in ("image", "audio", "video", "sequence"):
        return torch.randint(0, classes, (BATCH,))
    if task == "tokens":
        return torch.randint(0, classes, made["input_ids"].shape)
    if task == "ctc":
        return torch.randint(1, min(VOCABULARY, attribute(config, "vocab_size", default=32)), (BATCH, 2))
    if task == "segmentation":
        return torch.randint(0, classes, (BATCH, *made["pixel_values"].shape[-2:]))
    return None


def inputs_of(model, config, task):
    """(inputs by name, keywords that are fixed) for a model's forward function."""
    wanted = inspect.signature(type(model).forward).parameters
    made, fixed = {}, {}
    if "input_ids" in wanted:
        made["input_ids"] = tokens()
        if task == "sequence" and isinstance(getattr(config, "eos_token_id", None), int):
            made["input_ids"][:, -1] = config.eos_token_id
    for name in ("pixel_values", "pixel_values_videos"):
        if name in wanted and (name == "pixel_values" or "pixel_values" not in wanted):
            made[name] = picture(config, task, model)
    if "input_values" in wanted or "input_features" in wanted:
        if task in ("ctc", "audio", "speech"):
            name = "input_values" if "input_values" in wanted else "input_features"
            made[name] = sound(config, name)
            made.pop("input_ids", None)
    if "bbox" in wanted and "input_ids" in made:
        corner = torch.randint(0, 30, (BATCH, LENGTH, 2))
        made["bbox"] = torch.cat([corner, corner + torch.randint(1, 30, (BATCH, LENGTH, 2))], -1)
    if "past_values" in wanted:
        made.update(series(config, wanted))
    elif "past_values" not in wanted and "return_loss" in wanted and task in ("zeroshot", "imagetext"):
        fixed["return_loss"] = True
    if task == "maskedimage" and "bool_masked_pos" in wanted:
        count = (made["pixel_values"].shape[-1] // pair(attribute(config, "patch_size"))[0]) ** 2
        made["bool_masked_pos"] = torch.arange(count).remainder(2).bool().expand(BATCH, count).clone()
    if task == "question" and "start_positions" in wanted:
        made["start_positions"] = torch.randint(0, LENGTH, (BATCH,))
        made["end_positions"] = torch.randint(0, LENGTH, (BATCH,))
    elif "labels" in wanted:
        own = labels(task, config, made, wanted)
        if own is not None:
            made["labels"] = own
    return made, fixed


def series(config, wanted):
    past = attribute(config, "context_length", default=32)
    lags = max(getattr(config, "lags_sequence", None) or [0])
    ahead = attribute(config, "prediction_length", default=8)
    channels = attribute(config, "num_input_channels", "input_size", default=1)
    many = (channels,) if channels > 1 or not lags else ()
    made = {"past_values": torch.randn(BATCH, past + lags, *many)}
    if "past_time_features" in wanted and lags:
        features = getattr(config, "num_time_features", 0) or 0
        made["past_time_features"] = torch.randn(BATCH, past + lags, max(features, 1))
        made["past_observed_mask"] = torch.ones(BATCH, past + lags, *many)
        made["future_time_features"] = torch.randn(BATCH, ahead, max(features, 1))
    if "future_values" in wanted:
        made["future_values"] = torch.randn(BATCH, ahead, *many)
    if "target_values" in wanted:
        made["target_values"] = torch.randint(0, getattr(config, "num_targets", 2), (BATCH,))
    return made


def with_pictures(model, config, made):
    """Puts as many tokens of the picture into the text as the vision part makes of a picture."""
    token = next((getattr(config, name) for name in ("image_token_id", "image_token_index") if getattr(config, name, None) is not None), None)
    if token is None or "pixel_values" not in made:
        return
    extract = getattr(model, "get_image_features", None) or getattr(model.model, "get_image_features")
    with torch.no_grad():
        features = extract(pixel_values=made["pixel_values"])
    features = getattr(features, "pooler_output", features)
    if isinstance(features, (list, tuple)):
        features = torch.cat(list(features))
    count = features.numel() // features.shape[-1] // BATCH
    text = made["input_ids"]
    made["input_ids"] = torch.cat([text[:, :1], torch.full((BATCH, count), token), text[:, 1:]], 1)
    made["labels"] = torch.where(made["input_ids"] == token, -100, made["input_ids"])


def make(name, model_class, kind):
    """(module, inputs): the model in training, with its loss, and what goes in."""
    task = name.split("-")[0]
    config = small_configuration(transformers.CONFIG_MAPPING[kind])
    model = getattr(transformers, model_class)(config)
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):  # some heads have their own default, whatever the configuration says
            module.p = 0.0
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():  # what begins as zeros has ties among its choices, and gradients that are 0
                parameter.add_(0.05 * torch.randn_like(parameter))
    made, fixed = inputs_of(model, config, task)
    if task in ("imagetext", "multimodal"):
        with_pictures(model, config, made)
    with torch.no_grad():
        out = model(**made, **fixed)
        if getattr(out, "loss", None) is None:
            made["target"] = torch.randn_like(first_output(out))
    return WithLoss(model, list(made), fixed), tuple(made.values())
