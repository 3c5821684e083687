"""Small configurations of transformers' models, made from the classes' own defaults by what their fields are called.

Layers, heads, widths, vocabularies, images and experts become few and small, dropout becomes 0; whatever else a class has
by default (caches, attention, activations, kinds of layers) stays as it is. EXCEPTIONS has what a class demands besides.
"""

import copy
import inspect
import re

VOCABULARY, WIDTH, HEADS, HEAD, LAYERS, IMAGE, PATCH, EXPERTS = 64, 32, 4, 8, 2, 32, 8, 4
# The first pattern that a field's whole name matches says what a whole number in it becomes.
NUMBERS = [
    (r"type_vocab_size|num_labels|num_channels|in_channels|out_channels|num_codebooks|pretraining_tp", None),
    (r".*vocab_size(_.*)?|.*vocab|num_embeddings|.*codebook_size|n_codes|num_quantizers_.*", VOCABULARY),
    (r".*first_k_dense.*|first_.*_layers?|.*pretrain.*layers|num_nextn.*|num_mtp_.*|mtp_.*", None),
    (r"moe_layer_start_index|.*layer_index.*|.*_layer_id.*|.*feature_layer.*|.*_interval|.*_freq|.*_period|.*_offset", None),
    (r"mamba_n_groups|n_groups|num_groups|.*num_conv_pos_embedding_groups|n_group|topk_group|.*expert_groups?", None),
    (r"num_key_value_heads|.*kv_heads|num_key_heads|.*num_key_heads|.*key_value_heads|.*num_kv_heads", HEADS // 2),
    (r".*heads|.*n_head|num_attention_head", HEADS),
    (r"(num|n)_.*(experts|experts_size)|moe_num_experts|num_experts|.*n_routed_experts", EXPERTS),
    (r"n_shared_experts|num_shared_experts|.*zero_expert_num", 1),
    (r".*(experts_per_tok|top_?k|experts_top_k|num_selected_experts|topk)|.*experts_per_token", 2),
    (r".*(num_.*layers|n_layers?|_layers|num_layers|depth|num_.*blocks|n_blocks|num_stages_.*)|layers", LAYERS),
    (r".*(qk_nope|qk_rope|v|qk|attention|attn|global|swa|rope)_head_(dim|size)|.*head_dim|.*_head_size|d_kv|.*head_width", HEAD),
    (r".*lora_rank|.*lora_dim|.*low_rank_dim|.*rank_dim", 16),
    (r"rotary_dim|partial_rotary_dim|rotary_embedding_dim", 4),
    (r".*moe_intermediate_size|.*expert_.*size|expert_ffn_hidden_size|.*shared_.*intermediate_size", 24),
    (r".*(intermediate_size|ffn_dim|ffn_size|d_ff|n_inner|ffn_hidden_size|mlp_dim|mlp_hidden_.*|dim_feedforward|"
     r"feedforward_dim|inner_dim|ff_dim|fc_dim|intermediate_dim|intermediate_channels|feedforward_size|pw_hidden.*)", 48),
    (r"mamba_d_state|state_size|ssm_state_size|.*d_state", 8),
    (r".*time_step_rank|.*dt_rank", 4),
    (r"mamba_d_conv|conv_kernel(_size)?|.*d_conv|.*expand|num_conv.*|.*kernel_size|.*stride", None),
    (r"encoder_stride|.*(?<!temporal_)patch_size", PATCH),
    (r".*(image_size|img_size|input_image_size|frame_size)", IMAGE),
    (r".*max_.*positions?(_embeddings)?|n_positions|n_ctx|max_seq_len.*|.*max_position_embeddings", 64),
    (r".*(sliding_window|attention_window|window_size|block_size|chunk_size|window|local_attention)", 4),
    (r"num_mel_bins|num_mel_.*|n_mels", 16),
    (r"num_queries|num_query_tokens|query_num|num_latents|.*num_.*queries|num_image_tokens|perceiver_.*latents", 8),
    (r".*(hidden_size|d_model|n_embd|embed_dim|embedding_size|embedding_dim|hidden_dim|_dim|_dims|^dim|d_embed|d_latents|"
     r"hidden_units|hidden_channels|_channels|channels_.*|num_filters|n_filters|width|_size_hidden|out_hidden_size)|dim|"
     r"num_channels_.*|.*_hidden_size_.*|.*_embed_dim_.*", WIDTH),
]
LISTS = [
    (r"depths|.*_depths|layers_per_.*|num_layers|num_blocks|.*stage_num_blocks|.*num_.*blocks|depth|.*_layers", lambda n: [1] * n),
    (r".*heads", lambda n: [1, 2, 4, 4, 4][:n]),
    (r"conv_dim|tdnn_dim", lambda n: [16] * n),
    (r".*(hidden_sizes|embed_dims?|hidden_dims|widths|dims|encoder_hidden_size|stage_dims|dim)|neck_hidden_sizes",
     lambda n: ([8, 16, 32, 32, 32, 32, 32, 32])[:n]),
    (r".*(image_size|img_size)", lambda n: [IMAGE] * n),
    (r".*(window_size)", lambda n: [4] * n),
]
DROPS = re.compile(r".*(drop|layerdrop|masking|mask_time_prob|mask_feature_prob).*")
TOKEN = re.compile(r".*(token_id|token_index|_token|start_id|end_id|_idx|pad_id|_id)$")
NO_GROUPS = {"num_key_value_heads": HEADS}
SWIN = {"embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "patch_size": 4}
EXCEPTIONS = {
    "bamba": {"attn_layer_indices": [1]},
    "beit": {"num_hidden_layers": 4, "out_indices": [1, 2, 3, 4]},
    "bit": {"num_groups": 4},
    "cpmant": {"dim_ff": 48},
    "ctrl": {"dff": 48},
    "cvt": {"embed_dim": [8, 16, 32], "num_heads": [1, 2, 4], "depth": [1, 1, 2], "cls_token": [False, False, True]},
    "donut-swin": SWIN,
    "dots3_note_text": NO_GROUPS,
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.1},
    "esm": {"vocab_size": VOCABULARY, "mask_token_id": 3, "position_embedding_type": "rotary"},
    "esmc": NO_GROUPS,
    "focalnet": {"embed_dim": 8, "depths": [1, 1], "hidden_sizes": [8, 16], "focal_levels": [2, 2], "focal_windows": [3, 3], "patch_size": 4},
    "funnel": {"block_sizes": [1, 1], "d_inner": 48},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "hiera": {"embed_dim": 8, "depths": [1, 1, 1, 1], "image_size": [64, 64]},
    "hunyuan_v1_dense": {"head_dim": HEAD},
    "hunyuan_v1_moe": {"head_dim": HEAD},
    "llama4_text": {"intermediate_size_mlp": 48},
    "mamba2": {"num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4},
    "ministral": {"head_dim": HEAD},
    "mobilenet_v1": {"depth_multiplier": 0.1, "min_depth": 4},
    "mobilenet_v2": {"depth_multiplier": 0.1, "min_depth": 4},
    "mobilevitv2": {"width_multiplier": 0.25},
    "nemotron": {"head_dim": HEAD},
    "perceiver": {"d_model": 16, "num_latents": 8},
    "pp_lcnet": {"scale": 0.25},
    "reformer": {"is_decoder": True, "axial_pos_shape": [4, 4], "axial_pos_embds_dim": [16, 16]},
    "swin": SWIN,
    "swinv2": SWIN,
    "xlnet": {"d_inner": 48},
}


class Ids:
    """Numbers of special tokens: 0 is padding, 1 and 2 begin and end a text, the others follow from 3 on."""

    fixed = {"pad": 0, "bos": 1, "eos": 2, "decoder_start": 1, "cls": 1, "sep": 2}

    def __init__(self):
        self.given = {}

    def of(self, name):
        for word, number in self.fixed.items():
            if name.startswith(word):
                return number
        return self.given.setdefault(name, 3 + len(self.given))


def number_for(name, value):
    for pattern, small in NUMBERS:
        if re.fullmatch(pattern, name):
            return value if small is None else min(value, small) if value > 0 else value
    return value


def list_for(name, values):
    for pattern, small in LISTS:
        if re.fullmatch(pattern, name):
            shorter = small(len(values))
            return type(values)(shorter) if len(shorter) == len(values) else values
    return values


def shrink_value(name, value, ids, layers):
    """@param layers  how many layers the configuration is to have"""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if DROPS.fullmatch(name) and isinstance(value, (int, float)):
        return type(value)(0)
    if TOKEN.fullmatch(name):
        if isinstance(value, int) and value >= 0:
            return ids.of(name)
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], int):
            return ids.of(name)
    if isinstance(value, int):
        small = number_for(name, value)
        return layers if small == LAYERS and value > LAYERS and re.fullmatch(
            r"num_hidden_layers|n_layers?|num_layers|num_decoder_layers|decoder_layers", name) else small
    if isinstance(value, (list, tuple)) and value and all(type(v) is int for v in value):
        return list_for(name, value)
    return value


def kinds_of_layers(values):
    """One of each kind of layer, in the order of their first; at least LAYERS."""
    kinds = list(dict.fromkeys(values))
    return (kinds * LAYERS)[:max(LAYERS, len(kinds))]


def fields_of(cls):
    names = set()
    for base in cls.__mro__:
        names |= set(getattr(base, "__annotations__", {}))
        if "__init__" in base.__dict__:
            names |= set(inspect.signature(base.__init__).parameters)
    return names - {"self", "kwargs", "args"}


SKIPPED = {"id2label", "label2id", "model_type", "architectures", "transformers_version", "dtype", "torch_dtype",
           "sub_configs", "keys_to_ignore_at_inference"}


def small_fields(config, ids=None):
    """What to give the class of `config`, a configuration with its defaults, to have it small."""
    ids = ids or Ids()
    cls, fields = type(config), fields_of(type(config))
    stored_as = {stored: given for given, stored in getattr(cls, "attribute_map", {}).items() if given in fields}
    by_layer = {k: v for k, v in vars(config).items() if isinstance(v, list) and len(v) >= LAYERS and
                re.fullmatch(r".*(layer_types|layers_block_type|layers_pattern)", k) and all(isinstance(x, str) for x in v)}
    layers = max([LAYERS, *(len(kinds_of_layers(v)) for v in by_layer.values())])
    made = {}
    for name, value in vars(config).items():
        own = name if name in fields else stored_as.get(name)
        if name.startswith("_") or name in SKIPPED or own is None:
            continue
        if name in by_layer:
            made[own] = (kinds_of_layers(value) * layers)[:layers]
        elif hasattr(value, "to_dict") and hasattr(value, "model_type"):
            made[own] = type(value)(**small_fields(value, ids))
        else:
            small = shrink_value(own, copy.copy(value), ids, layers)
            if small != value:
                made[own] = small
    if getattr(config, "kv_lora_rank", None):  # latent attention expands keys to all heads
        made.update({name: HEADS for name in ("num_key_value_heads",) if name in fields})
    made.update(EXCEPTIONS.get(getattr(cls, "model_type", ""), {}))
    return made


def drop_nothing(config):
    """Sets all dropout to 0, wherever a configuration keeps it."""
    for name, value in list(vars(config).items()):
        if hasattr(value, "model_type"):
            drop_nothing(value)
        elif DROPS.fullmatch(name) and type(value) in (int, float):
            setattr(config, name, type(value)(0))


def small_configuration(cls):
    """A small configuration of the class `cls`."""
    config = cls(**small_fields(cls()))
    drop_nothing(config)
    if getattr(config, "pad_token_id", 0) is None:
        config.pad_token_id = 0
    return config
