#include "engine/interop/configs/config_keys.h"

namespace planloom {

namespace {

using enum KeyKind;

constexpr ConfigKey kMegatronPlan[] = {
    {"tensor_model_parallel_size", "tensor_parallel", Count, "1"},
    {"pipeline_model_parallel_size", "pipeline_parallel", Count, "1"},
    {"virtual_pipeline_model_parallel_size", "virtual_pipeline", Count, "1"},
    {"num_virtual_stages_per_pipeline_rank", "virtual_pipeline", Count, "", "", true},
    {"num_layers_per_virtual_pipeline_stage", "layers_per_virtual_stage", Count},
    {"context_parallel_size", "context_parallel", Count, "1"},
    {"expert_model_parallel_size", "expert_parallel", Count, "1"},
    {"expert_tensor_parallel_size", "expert_tensor_parallel", Count},
    {"sequence_parallel", "sequence_parallel", Flag, "false"},
    {"pipeline_model_parallel_layout", "layout", Text},
    {"num_layers_in_first_pipeline_stage", "first_stage_layers", Count},
    {"num_layers_in_last_pipeline_stage", "last_stage_layers", Count},
    {"decoder_first_pipeline_num_layers", "first_stage_layers", Count},
    {"decoder_last_pipeline_num_layers", "last_stage_layers", Count},
    {"account_for_embedding_in_pipeline_split", "embedding_is_layer", Flag, "false"},
    {"account_for_loss_in_pipeline_split", "loss_is_layer", Flag, "false"},
    {"recompute_granularity", "recompute", Mapped, "", "full=full selective=selective"},
    {"recompute_activations", "recompute", Mapped, "", "true=selective"},
    {"recompute_method", "recompute_method", Mapped, "", "uniform=uniform block=block"},
    {"recompute_num_layers", "recompute_layers", Count},
    {"recompute_modules", "recompute_modules", Words},
    {"cpu_offloading_num_layers", "offloaded_layers", Count, "0"},
    {"tp_comm_overlap", "overlap_tensor_parallel", Flag, "false"},
    {"bf16", "precision", Mapped, "", "true=bf16"},
    {"fp16", "precision", Mapped, "", "true=fp16"},
    {"fp8", "precision", Mapped, "", "hybrid=fp8 e4m3=fp8 true=fp8"},
    {"fp8_format", "precision", Mapped, "", "hybrid=fp8 e4m3=fp8"},
    {"params_dtype", "precision", Mapped, "", "bfloat16=bf16 torch.bfloat16=bf16 float16=fp16"},
    {"dtype", "precision", Mapped, "", "bfloat16=bf16 float16=fp16"},
    {"cp_comm_type", "context_kinds", Words, "p2p"},
    {"hierarchical_context_parallel_sizes", "context_levels", Words},
    {"fine_grained_activation_offloading", "", Beyond, "false",
        "rows offload what modules make, not what they read"},
    {"offload_modules", "", Beyond, "null|", "rows offload what modules make, not what they read"},
    {"overlap_moe_expert_parallel_comm", "", Beyond, "false",
        "two micro-batches side by side are a schedule: dualpipe"},
    {"delay_wgrad_compute", "", Beyond, "false",
        "gradients of weights in a pass of their own are rows: split-backward"},
    {"moe_shared_expert_overlap", "", Beyond, "false", "no row has shared experts run beside the dispatch"},
    {"microbatch_group_size_per_vp_stage", "", Beyond, "null|1",
        "interleaved stages take micro-batches as many as ranks at a time"},
    {"fp4", "", Beyond, "null|false", "there are no kernels of four bits"},
    {"fp4_format", "", Beyond, "null|false", "there are no kernels of four bits"},
};

constexpr ConfigKey kMegatronCommand[] = {
    {"num_virtual_stages_per_pipeline_rank", "virtual_pipeline", Count, "1"},
    {"ckpt_format", "checkpoint_format", Text, "torch_dist"},
    {"use_tp_pp_dp_mapping", "pipeline_inside", Flag, "false"},
};

constexpr ConfigKey kMegatronSizes[] = {
    {"num_layers", "layers", Count},
    {"encoder_num_layers", "layers", Count, "", "", true},
    {"hidden_size", "hidden", Count},
    {"ffn_hidden_size", "ffn", Count},
    {"num_attention_heads", "heads", Count},
    {"num_query_groups", "kv_heads", Count},
    {"kv_channels", "head_dim", Count},
    {"group_query_attention", "grouped", Flag, "false"},
    {"max_position_embeddings", "positions", Count},
    {"normalization", "norm", Text, "LayerNorm"},
    {"position_embedding_type", "position_kind", Text, "learned_absolute"},
    {"seq_length", "sequence", Count},
    {"encoder_seq_length", "sequence", Count, "", "", true},
    {"vocab_size", "vocabulary", Count},
    {"padded_vocab_size", "vocabulary", Count},
    {"swiglu", "gated", Flag, "false"},
    {"quick_geglu", "gated", Mapped, "", "true=true"},
    {"gated_linear_unit", "gated", Mapped, "", "true=true"},
    {"squared_relu", "activation", Mapped, "", "true=squared_relu"},
    {"untie_embeddings_and_output_weights", "tied_embeddings", Mapped, "false", "true=false false=true"},
    {"share_embeddings_and_output_weights", "tied_embeddings", Mapped, "", "true=true false=false"},
    {"rotary_base", "rope_base", Count, "10000"},
    {"num_experts", "experts", Count},
    {"num_moe_experts", "experts", Count},
    {"moe_router_topk", "experts_per_token", Count},
    {"moe_ffn_hidden_size", "expert_ffn", Count},
    {"moe_shared_expert_intermediate_size", "shared_ffn", Count},
    {"moe_layer_freq", "moe_layers", Text},
    {"moe_router_score_function", "router_sigmoid", Mapped, "softmax", "sigmoid=true softmax=false"},
    {"moe_router_num_groups", "expert_groups", Count},
    {"moe_router_group_topk", "expert_top_groups", Count},
    {"mtp_num_layers", "mtp_layers", Count, "0"},
    {"multi_latent_attention", "latent", Flag, "false"},
    {"q_lora_rank", "q_lora", Count},
    {"kv_lora_rank", "kv_lora", Count},
    {"qk_head_dim", "qk_nope", Count},
    {"qk_pos_emb_head_dim", "qk_rope", Count},
    {"v_head_dim", "v_head", Count},
    {"qk_layernorm", "qk_norm", Mapped, "", "true=2"},
};

constexpr ConfigKey kMegatronBatch[] = {
    {"micro_batch_size", "micro_batch", Count},
    {"global_batch_size", "global_batch", Count},
    {"step_batch_size_schedule", "", Beyond, "null|", "the batch is the last one that is reached"},
    {"decoder_num_layers", "", Beyond, "", "a decoder of its own is a model file's: give it with --model"},
    {"decoder_seq_length", "", Beyond, "", "a decoder of its own is a model file's: give it with --model"},
    {"moe_layer_recompute", "", Beyond, "false", "recompute_modules moe says it"},
    {"rampup_batch_size", "", Beyond, "null|", "the batch is the last one that is reached"},
};

constexpr ConfigKey kMegatronSharing[] = {
    {"use_distributed_optimizer", "distributed_optimizer", Flag, "false"},
    {"use_megatron_fsdp", "megatron_fsdp", Flag, "false"},
    {"use_custom_fsdp", "megatron_fsdp", Flag, "", "", true},
    {"data_parallel_sharding_strategy", "fsdp_strategy", Text, "optim_grads_params"},
    {"grad_reduce_in_bf16", "reduce_in_bf16", Flag, "false"},
    {"grad_reduce_in_fp32", "reduce_in_bf16", Mapped, "", "true=false false=true"},
    {"optimizer_cpu_offload", "offload_states", Flag, "false"},
    {"num_distributed_optimizer_instances", "optimizer_instances", Count, "1"},
    {"outer_dp_sharding_strategy", "", Beyond, "no_shard", "replicas share in one group"},
};

constexpr ConfigKey kLauncher[] = {
    {"nproc_per_node", "gpus_per_node", Count},
    {"nnodes", "nodes", Count},
    {"num_processes", "devices", Count, "", "", true},
    {"num_machines", "nodes", Count, "", "", true},
    {"num_gpus", "gpus_per_node", Count, "", "", true},
    {"num_nodes", "nodes", Count, "", "", true},
    {"gpus_per_node", "gpus_per_node", Count, "", "", true},
    {"ntasks_per_node", "gpus_per_node", Count, "", "", true},
    {"nodes", "nodes", Count, "", "", true},
    {"world_size", "devices", Count, "", "", true},
};

constexpr ConfigKey kHuggingFaceSizes[] = {
    {"num_hidden_layers", "layers", Count},
    {"hidden_size", "hidden", Count},
    {"intermediate_size", "ffn", Count},
    {"num_attention_heads", "heads", Count},
    {"num_key_value_heads", "kv_heads", Count},
    {"head_dim", "head_dim", Count},
    {"vocab_size", "vocabulary", Count},
    {"tie_word_embeddings", "tied_embeddings", Flag},
    {"is_llama_config", "gated", Flag},
    {"is_qwen2_config", "gated", Flag},
    {"hidden_act", "gated", Mapped, "", "silu=true swiglu=true"},
    {"rope_theta", "rope_base", Count},
    {"num_local_experts", "experts", Count},
    {"num_experts_per_tok", "experts_per_token", Count},
    {"moe_config.num_experts", "experts", Count},
    {"moe_config.top_k", "experts_per_token", Count},
    {"moe_config.moe_intermediate_size", "expert_ffn", Count},
    {"moe_config.moe_hidden_size", "hidden", Count},
};

} // namespace

std::span<const ConfigKey> megatronPlanKeys()
{
    return kMegatronPlan;
}
std::span<const ConfigKey> megatronCommandKeys()
{
    return kMegatronCommand;
}
std::span<const ConfigKey> megatronSizeKeys()
{
    return kMegatronSizes;
}
std::span<const ConfigKey> megatronBatchKeys()
{
    return kMegatronBatch;
}
std::span<const ConfigKey> megatronSharingKeys()
{
    return kMegatronSharing;
}
std::span<const ConfigKey> launcherKeys()
{
    return kLauncher;
}
std::span<const ConfigKey> huggingFaceSizeKeys()
{
    return kHuggingFaceSizes;
}

} // namespace planloom
