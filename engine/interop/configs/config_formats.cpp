#include "engine/interop/configs/config_formats.h"

#include "engine/base/nearest_name.h"
#include "engine/interop/configs/config_keys.h"
#include "engine/table/selector.h"

#include <algorithm>

namespace planloom {

namespace {

using enum KeyKind;

constexpr ConfigKey kTitanParallel[] = {
    {"data_parallel_replicate_degree", "dp_replicate", Count, "1"},
    {"data_parallel_shard_degree", "dp_shard", Count, "-1"},
    {"tensor_parallel_degree", "tensor_parallel", Count, "1"},
    {"enable_sequence_parallel", "sequence_parallel", Flag, "true"},
    {"pipeline_parallel_degree", "pipeline_parallel", Count, "1"},
    {"pipeline_parallel_schedule", "schedule_class", Text, "1F1B"},
    {"module_fqns_per_model_part", "stage_modules", Words},
    {"pipeline_parallel_first_stage_less_layers", "first_less_layers", Count, "1"},
    {"pipeline_parallel_last_stage_less_layers", "last_less_layers", Count, "1"},
    {"pipeline_parallel_layers_per_stage", "layers_per_stage", Count},
    {"num_pp_microbatches", "pipeline_micro_batches", Count, "1"},
    {"pipeline_parallel_microbatch_size", "pipeline_micro_batch", Count, "", "", true},
    {"context_parallel_degree", "context_parallel", Count, "1"},
    {"expert_parallel_degree", "expert_parallel", Count, "1"},
    {"expert_tensor_parallel_degree", "expert_tensor_parallel", Count, "", "", true},
    {"enable_async_tensor_parallel", "overlap_tensor_parallel", Flag, "", "", true},
    {"pipeline_parallel_schedule_csv", "", Beyond, "None|null|",
        "the order of blocks is in another file: planloom-cli schedule reads it"},
    {"pipeline_parallel_split_points", "", Beyond, "None|null|",
        "stages are said by module_fqns_per_model_part"},
    {"context_parallel_load_balancer", "", Beyond, "headtail",
        "causal masks are balanced by first and last parts"},
    {"fsdp_reshard_after_forward", "", Beyond, "default|always",
        "weights are gathered again in the backward pass"},
};

constexpr ConfigKey kTitanTraining[] = {
    {"num_tokens_per_microbatch_per_dp_rank", "tokens_per_micro_batch", Count},
    {"num_tokens_per_train_step", "tokens_per_step", Count, "-1"},
    {"max_context_length", "sequence", Count, "2048"},
    {"seq_len", "sequence", Count, "", "", true},
    {"local_batch_size", "local_batch", Count, "", "", true},
    {"batch_size", "local_batch", Count, "", "", true},
    {"global_batch_size", "global_batch", Count, "", "", true},
    {"mixed_precision_param", "precision", Mapped, "bfloat16", "bfloat16=bf16 float32=fp32"},
    {"enable_cpu_offload", "offload_states", Flag, "false"},
};

constexpr ConfigKey kTitanRest[] = {
    {"activation_checkpoint", "recompute", Mapped, "", "FullAC.Config=full SelectiveAC.Config=selective"},
    {"activation_checkpoint.mode", "recompute", Mapped, "", "full=full selective=selective none=none", true},
    {"activation_checkpoint.selective_ac_option", "recompute_option", Text, "", "", true},
    {"compile.enable", "compiled", Flag, "false"},
    {"training.compile", "compiled", Flag, "", "", true},
    {"compile.enable_async_tensor_parallel", "overlap_tensor_parallel", Flag, "", "", true},
    {"model_spec", "flavor_call", Words, "", "", true},
    {"model.name", "model_name", Text, "", "", true},
    {"model.flavor", "flavor", Text, "", "", true},
    {"model.converters", "converters", Words, "", "", true},
    {"hf_assets_path", "model", Text, "", "", true},
    {"model.hf_assets_path", "model", Text, "", "", true},
};

constexpr ConfigKey kDeepSpeed[] = {
    {"train_batch_size", "global_batch", Count},
    {"train_micro_batch_size_per_gpu", "micro_batch", Count},
    {"gradient_accumulation_steps", "accumulation", Count},
    {"zero_optimization.stage", "zero", Count, "0"},
    {"zero_optimization", "zero", Mapped, "", "true=1 false=0"},
    {"zero_optimization.mics_shard_size", "shard_parts", Count, "-1"},
    {"zero_optimization.offload_optimizer.device", "offload_states", Mapped, "none",
        "cpu=true nvme=true none=false"},
    {"zero_optimization.cpu_offload", "offload_states", Flag, "", "", true},
    {"bf16.enabled", "precision", Mapped, "", "true=bf16"},
    {"bfloat16.enabled", "precision", Mapped, "", "true=bf16"},
    {"fp16.enabled", "precision", Mapped, "", "true=fp16"},
    {"tensor_parallel.autotp_size", "tensor_parallel", Count, "1"},
    {"tensor_parallel.tp.tp_size", "tensor_parallel", Count, "", "", true},
    {"sequence_parallel_size", "ulysses", Count, "1"},
    {"zero_optimization.zero_hpz_partition_size", "", Beyond, "1", "weights have one set of parts"},
    {"zero_optimization.offload_param.device", "", Beyond, "none", "weights stay on their devices"},
    {"per_device_train_batch_size", "micro_batch", Count, "", "", true},
    {"model_name_or_path", "model", Text, "", "", true},
};

constexpr ConfigKey kAccelerate[] = {
    {"num_processes", "devices", Count},
    {"mixed_precision", "precision", Mapped, "no", "bf16=bf16 fp16=fp16 fp8=fp8 no=fp32"},
    {"distributed_type", "distributed_type", Text, "NO"},
    {"fsdp_config.fsdp_version", "fsdp_version", Count, "1"},
    {"fsdp_config.fsdp_sharding_strategy", "fsdp_sharding", Text},
    {"fsdp_config.fsdp_reshard_after_forward", "fsdp_sharding", Text},
    {"fsdp_config.fsdp_offload_params", "offload_states", Flag, "false"},
    {"fsdp_config.fsdp_activation_checkpointing", "recompute", Mapped, "false", "true=full false=none"},
    {"parallelism_config.parallelism_config_dp_replicate_size", "dp_replicate", Count, "1"},
    {"parallelism_config.parallelism_config_dp_shard_size", "dp_shard", Count},
    {"parallelism_config.parallelism_config_tp_size", "tensor_parallel", Count, "1"},
    {"parallelism_config.parallelism_config_cp_size", "ring_parts", Count, "1"},
    {"parallelism_config.parallelism_config_sp_size", "ulysses", Count, "1"},
    {"gradient_accumulation_steps", "accumulation", Count, "", "", true},
    {"deepspeed_config.zero_stage", "deepspeed_stage", Count},
    {"deepspeed_config.gradient_accumulation_steps", "deepspeed_accumulation", Count},
    {"deepspeed_config.offload_optimizer_device", "offload_states", Mapped, "",
        "cpu=true nvme=true none=false", true},
    {"deepspeed_config.offload_param_device", "", Beyond, "none", "weights stay on their devices"},
    {"deepspeed_config.deepspeed_config_file", "", Beyond, "", "it is another file, which is read by itself"},
    {"megatron_lm_config.megatron_lm_tp_degree", "tensor_parallel", Count, "", "", true},
    {"megatron_lm_config.megatron_lm_pp_degree", "pipeline_parallel", Count, "", "", true},
    {"megatron_lm_config.megatron_lm_num_micro_batches", "accumulation", Count, "", "", true},
    {"megatron_lm_config.megatron_lm_sequence_parallelism", "sequence_parallel", Flag, "", "", true},
    {"megatron_lm_config.megatron_lm_recompute_activations", "recompute", Mapped, "", "true=selective", true},
    {"megatron_lm_config.megatron_lm_use_distributed_optimizer", "distributed_optimizer", Flag, "", "", true},
};

constexpr ConfigKey kNanotron[] = {
    {"parallelism.dp", "data_parallel", Count, ""},
    {"parallelism.pp", "pipeline_parallel", Count, ""},
    {"parallelism.tp", "tensor_parallel", Count, ""},
    {"parallelism.expert_parallel_size", "expert_parallel", Count, "1"},
    {"parallelism.context_parallel_size", "context_parallel", Count, "1"},
    {"parallelism.pp_engine", "schedule", Mapped, "afab", "1f1b=1f1b afab=gpipe"},
    {"parallelism.tp_mode", "sequence_parallel", Mapped, "ALL_REDUCE",
        "REDUCE_SCATTER=true ALL_REDUCE=false reduce_scatter=true all_reduce=false "
        "TensorParallelLinearMode.REDUCE_SCATTER=true TensorParallelLinearMode.ALL_REDUCE=false"},
    {"parallelism.tp_linear_async_communication", "overlap_tensor_parallel", Flag, "false"},
    {"parallelism.recompute_layer", "recompute", Mapped, "false", "true=full false=none"},
    {"tokens.micro_batch_size", "micro_batch", Count},
    {"tokens.batch_accumulation_per_replica", "accumulation", Count},
    {"tokens.sequence_length", "sequence", Count},
    {"optimizer.zero_stage", "zero", Mapped, "", "0=0 1=1"},
    {"model.dtype", "precision", Mapped, "bfloat16",
        "bfloat16=bf16 float16=fp16 float32=fp32 torch.bfloat16=bf16"},
};

constexpr ConfigKey kNnScaler[] = {
    {"plan_ngpus", "plan_devices", Count},
    {"runtime_ngpus", "devices", Count},
    {"use_zero", "zero", Mapped, "false", "true=1 false=0 0=0 1=1 3=3"},
    {"zero_ngroups", "zero_groups", Count, "1"},
    {"pas_config.pipeline_nstages", "pipeline_parallel", Count, "1"},
    {"pas_config.pipeline_nmicros", "accumulation", Count},
    {"pas_config.pipeline_scheduler", "schedule", Mapped, "1f1b", "1f1b=1f1b gpipe=gpipe"},
    {"pas_config.recompute_modules", "", Beyond, "",
        "modules are named by PyTorch's classes: rows say recompute in:..."},
    {"pas_config.pipeline_pivots", "", Beyond, "",
        "stages begin at PyTorch's classes: rows say stage in:..."},
    {"pas_config.mem_constraint", "", Beyond, "-1", "a row says it: limit memory 40GiB"},
    {"pas_config.partition_constraints_path", "", Beyond, "", "it is another file: --table reads it"},
    {"pas_config.load_plan_path", "", Beyond, "", "it is another file, which is read by itself"},
};

constexpr ConfigKey kNnScalerTrain[] = {
    {"micro_batch_size", "micro_batch", Count},
    {"global_batch_size", "global_batch", Count},
    {"update_freq", "accumulation", Count},
    {"pas_policy", "policy", Text},
    {"precision", "precision", Mapped, "", "bf16=bf16 fp16=fp16 fp32=fp32"},
};

constexpr ConfigKey kBridgeRest[] = {
    {"train.micro_batch_size", "micro_batch", Count},
    {"train.global_batch_size", "global_batch", Count},
    {"dataset.sequence_length", "sequence", Count},
    {"dataset.seq_length", "sequence", Count, "", "", true},
    {"mixed_precision", "precision", Mapped, "",
        "bf16_mixed=bf16 fp16_mixed=fp16 bf16_with_fp8_mixed=fp8 bf16_with_fp8_current_scaling_mixed=fp8 "
        "bf16_with_fp8_delayed_scaling_mixed=fp8 bf16_with_fp8_subchannel_scaling_mixed=fp8 "
        "bf16_with_mxfp8_mixed=fp8 bf16-mixed=bf16 32=fp32"},
    {"trainer.precision", "precision", Mapped, "", "bf16=bf16 bf16-mixed=bf16 16=fp16 32=fp32", true},
    {"trainer.devices", "gpus_per_node", Count, "", "", true},
    {"trainer.num_nodes", "nodes", Count, "", "", true},
    {"comm_overlap.tp_comm_overlap", "overlap_tensor_parallel", Flag},
    {"dist.use_tp_pp_dp_mapping", "pipeline_inside", Flag, "false"},
    {"data.micro_batch_size", "micro_batch", Count, "", "", true},
    {"data.global_batch_size", "global_batch", Count, "", "", true},
    {"data.seq_length", "sequence", Count, "", "", true},
};

constexpr ConfigKey kVerlRest[] = {
    {"actor_rollout_ref.model.path", "model", Text},
    {"model.path", "model", Text, "", "", true},
    {"data.train_batch_size", "global_batch", Count, "", "", true},
    {"data.micro_batch_size_per_gpu", "micro_batch", Count, "", "", true},
    {"data.max_length", "sequence", Count, "", "", true},
    {"actor_rollout_ref.actor.strategy", "strategy", Text},
    {"model_engine", "strategy", Text, "", "", true},
    {"actor_rollout_ref.actor.ppo_mini_batch_size", "prompts_per_step", Count},
    {"actor_rollout_ref.rollout.n", "answers_per_prompt", Count, "1"},
    {"actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu", "micro_batch", Count},
    {"actor_rollout_ref.actor.ppo_max_token_len_per_gpu", "tokens_per_micro_batch", Count},
    {"data.max_prompt_length", "prompt_tokens", Count},
    {"data.max_response_length", "answer_tokens", Count},
    {"trainer.n_gpus_per_node", "gpus_per_node", Count},
    {"trainer.nnodes", "nodes", Count},
    {"actor_rollout_ref.actor.megatron.optimizer_offload", "offload_states", Flag, "false"},
    {"actor_rollout_ref.actor.megatron.param_offload", "offload_weights", Flag},
    {"actor_rollout_ref.actor.fsdp_config.optimizer_offload", "offload_states", Flag, "", "", true},
    {"actor_rollout_ref.actor.fsdp_config.fsdp_size", "dp_shard", Count, "", "", true},
    {"actor_rollout_ref.model.enable_gradient_checkpointing", "checkpoints_activations", Flag, "", "", true},
    {"actor_rollout_ref.actor.ulysses_sequence_parallel_size", "ulysses", Count, "1", "", true},
};

constexpr ConfigKey kNemoRlDtensor[] = {
    {"tensor_parallel_size", "tensor_parallel", Count},
    {"context_parallel_size", "context_parallel", Count},
    {"expert_parallel_size", "expert_parallel", Count},
    {"sequence_parallel", "sequence_parallel", Flag},
    {"activation_checkpointing", "checkpoints_activations", Flag},
    {"cpu_offload", "offload_states", Flag},
    {"enabled", "shards_all", Flag},
    {"custom_parallel_plan", "", Beyond, "null", "a plan in Python's code is not run"},
};

constexpr ConfigKey kNemoRlRest[] = {
    {"policy.model_name", "model", Text},
    {"policy.train_global_batch_size", "global_batch", Count},
    {"policy.train_micro_batch_size", "micro_batch", Count},
    {"policy.max_total_sequence_length", "sequence", Count},
    {"policy.precision", "precision", Mapped, "", "bfloat16=bf16 float16=fp16 float32=fp32"},
    {"policy.activation_checkpointing_enabled", "checkpoints_activations", Flag, "", "", true},
    {"policy.megatron_cfg.activation_checkpointing", "checkpoints_activations", Flag, "false"},
    {"policy.megatron_cfg.enabled", "is_megatron", Flag},
    {"policy.megatron_cfg.fp8_cfg.enabled", "precision", Mapped, "", "true=fp8"},
    {"cluster.gpus_per_node", "gpus_per_node", Count},
    {"cluster.num_nodes", "nodes", Count},
    {"defaults", "", Beyond, "", "what this file builds on is another file, which is read by itself"},
};

ConfigFormat megatronFormat()
{
    return {"megatron", "megatron", "arguments of Megatron-LM, in a launch script or a file",
        ConfigSyntax::Options,
        {{"", megatronCommandKeys()}, {"", megatronPlanKeys()}, {"", megatronSizeKeys()},
            {"", megatronBatchKeys()}, {"", megatronSharingKeys()}, {"", launcherKeys()}},
        {"eval_*", "*checkpoint*", "*ckpt*", "save*", "load*", "moe_router*", "moe_*loss*", "moe_grouped*",
            "moe_token*", "moe_permute*", "moe_flex*", "moe_*deepep*", "moe_apply*", "moe_input*", "moe_pad*",
            "moe_expert_*", "moe_per_layer*", "overlap_*", "max_position*", "make_vocab*", "distributed_*",
            "fp8_*", "fp16_*", "*_fusion", "init_method*", "*seed*", "log_*", "wandb*", "data_path",
            "data_cache*", "train_*", "position*", "transformer_impl", "manual_gc*", "inference_*", "rl_*",
            "grpo_*", "use_mcore*", "use_dist*", "ddp_*", "fsdp_double*", "megatron_fsdp_*", "num_workers",
            "vision_*", "img_*", "group_query*", "hidden_dropout", "*ffn_dropout", "attention_*", "node_rank",
            "bert*", "fsdp_*", "check_weight*", "deallocate*", "overlap_cpu*", "optimizer_offload*",
            "*_across_dp*", "embedding_*"},
        "#!/bin/bash", {{"precision", "fp32"}}};
}

ConfigFormat bridgeFormat()
{
    return {"bridge", "megatron",
        "overrides of Megatron Bridge or NeMo (model.tensor_model_parallel_size=4), or a recipe's "
        "assignments",
        ConfigSyntax::Overrides,
        {{"model.", megatronPlanKeys()}, {"model.", megatronSizeKeys()}, {"", kBridgeRest},
            {"ddp.", megatronSharingKeys()}, {"optimizer.", megatronSharingKeys(), "", true},
            {"model.", megatronBatchKeys(), "", true}, {"trainer.strategy.", megatronPlanKeys(), "", true},
            {"strategy.", megatronPlanKeys(), "", true}, {"comm_overlap.", megatronPlanKeys(), "", true},
            {"", launcherKeys()}},
        {"*fusion*", "*checkpoint*", "dataset.*", "model.moe_*", "*overlap*"}, "#!/bin/bash",
        {{"distributed_optimizer", "true"}, {"precision", "bf16"}}};
}

ConfigFormat verlFormat()
{
    return {"verl", "megatron", "overrides or YAML of verl (actor_rollout_ref.actor.megatron...)",
        ConfigSyntax::Overrides,
        {{"", kVerlRest}, {"actor_rollout_ref.actor.megatron.", megatronPlanKeys()},
            {"actor_rollout_ref.actor.megatron.override_transformer_config.", megatronPlanKeys()},
            {"engine.", megatronPlanKeys(), "", true},
            {"engine.override_transformer_config.", megatronPlanKeys(), "", true},
            {"actor_rollout_ref.actor.megatron.", megatronSharingKeys()},
            {"engine.", megatronSharingKeys(), "", true},
            {"actor_rollout_ref.actor.megatron.override_ddp_config.", megatronSharingKeys()},
            {"actor_rollout_ref.actor.optim.override_optimizer_config.", megatronSharingKeys()},
            {"", launcherKeys(), "", true}},
        {"actor_rollout_ref.rollout*", "actor_rollout_ref.ref*", "critic*", "reward*", "*val_batch*",
            "*log_prob*", "data.train_batch_size", "data.*", "trainer.*", "algorithm*", "ray_kwargs*",
            "custom_reward*", "*fusion*", "*moe_*", "*grad_offload", "*optimizer_offload_fraction",
            "*overlap_*", "*deallocate*", "*gradient_accumulation*"},
        "#!/bin/bash",
        {{"sequence_parallel", "true"}, {"distributed_optimizer", "true"}, {"precision", "bf16"}}};
}

ConfigFormat nemoRlFormat()
{
    const std::string_view megatron = "policy.megatron_cfg.enabled";
    return {"nemo-rl", "megatron", "YAML of NeMo-RL (policy.megatron_cfg, policy.dtensor_cfg)",
        ConfigSyntax::Yaml,
        {{"", kNemoRlRest}, {"policy.megatron_cfg.", megatronPlanKeys(), megatron},
            {"policy.megatron_cfg.", megatronSharingKeys(), megatron},
            {"policy.megatron_cfg.optimizer.", megatronSharingKeys(), megatron},
            {"policy.megatron_cfg.distributed_data_parallel_config.", megatronSharingKeys(), megatron},
            {"policy.megatron_cfg.model_overrides.", megatronPlanKeys(), megatron},
            {"policy.dtensor_cfg.", kNemoRlDtensor, "policy.dtensor_cfg.enabled"}},
        {"policy.generation*", "policy.*logprob*", "policy.*batching*", "policy.sequence_packing*",
            "policy.*packing*", "grpo*", "dpo*", "sft*", "data*", "env*", "*peft*", "*lora*", "*fusion*",
            "*moe_*", "checkpointing*", "loss_fn*", "logger*", "policy.draft*", "*scheduler*", "reward*",
            "distillation*", "*.overlap_*", "*mtp_*", "*optimizer_offload_fraction", "*pipeline_dtype",
            "*val_*", "async_rl*", "*deallocate*"},
        "# a config of NeMo-RL", {{"precision", "bf16"}}};
}

ConfigFormat torchtitanFormat()
{
    return {"torchtitan", "fsdp", "torchtitan's config in Python, read as literals, or TOML",
        ConfigSyntax::Python,
        {{"parallelism.", kTitanParallel}, {"training.", kTitanTraining}, {"", kTitanRest},
            {"ParallelismConfig.", kTitanParallel, "", true}, {"TrainingConfig.", kTitanTraining, "", true},
            {"experimental.", kTitanParallel, "", true}, {"training.", kTitanParallel, "", true}},
        {"parallelism.spmd_backend", "parallelism.disable_loss_parallel", "parallelism.context_parallel_*",
            "loss*", "validat*", "checkpoint*", "dataloader*", "parallelism", "lr_scheduler*", "metrics*",
            "profil*", "activation_checkpoint.*", "quantize*", "float8*", "model_spec.*"},
        "# a config of torchtitan"};
}

ConfigFormat deepspeedFormat()
{
    return {"deepspeed", "deepspeed", "DeepSpeed's JSON", ConfigSyntax::Json,
        {{"", kDeepSpeed}, {"", launcherKeys(), "", true}},
        {"optimizer*", "scheduler*", "zero_optimization.stage3_*", "zero_optimization.*bucket*",
            "zero_optimization.*pin*", "zero_optimization.offload_*.*", "*compression*", "*tensorboard*",
            "activation_checkpointing.*", "*eval*", "autotuning*", "aio*", "zero_allow*",
            "zero_optimization.round_robin*", "zero_optimization.ignore*", "data_efficiency*",
            "zero_optimization.overlap_comm", "zero_optimization.allgather_partitions",
            "zero_optimization.reduce_scatter", "zero_optimization.contiguous_gradients",
            "zero_optimization.sub_group_size", "seq_parallel_comm*", "comms*"},
        "{"};
}

ConfigFormat accelerateFormat()
{
    return {"accelerate", "fsdp", "YAML of accelerate config", ConfigSyntax::Yaml, {{"", kAccelerate}},
        {"fsdp_config.*wrap*", "fsdp_config.*prefetch*", "fsdp_config.*state*", "fsdp_config.*sync*",
            "fsdp_config.*cpu_ram*", "fsdp_config.*orig*", "fsdp_config.fsdp_transformer*",
            "deepspeed_config.zero3_*", "main_training*", "machine_rank",
            "deepspeed_config.deepspeed_multinode*", "fp8_config*"},
        "compute_environment: LOCAL_MACHINE"};
}

ConfigFormat nanotronFormat()
{
    return {"nanotron", "nanotron", "nanotron's YAML", ConfigSyntax::Yaml,
        {{"", kNanotron}, {"model.model_config.", huggingFaceSizeKeys()},
            {"model_config.", huggingFaceSizeKeys(), "", true}},
        {"checkpoints*", "data_stages*", "model.model_config.*", "model.*", "logging*", "tokens.limit*",
            "optimizer.*", "parallelism.tp_recompute_allgather", "tokens.val*", "lighteval*", "parallelism"},
        "# a config of nanotron"};
}

ConfigFormat nnscalerFormat()
{
    return {"nnscaler", "fsdp", "nnScaler's ComputeConfig, in Python or in the trainer's YAML",
        ConfigSyntax::Yaml,
        {{"compute_config.", kNnScaler}, {"", kNnScalerTrain}, {"ComputeConfig.", kNnScaler, "", true},
            {"parallel_cfg.", kNnScaler, "", true}},
        {"*constant*", "optimizer*", "dataset*", "dataloader*", "checkpoint*", "model.*", "vars*",
            "lr_scheduler*", "*bucket*"},
        "# arguments of nnScaler's trainer"};
}

} // namespace

const std::vector<ConfigFormat> &configFormats()
{
    static const std::vector<ConfigFormat> kFormats{megatronFormat(), bridgeFormat(), verlFormat(),
        nemoRlFormat(), torchtitanFormat(), deepspeedFormat(), accelerateFormat(), nanotronFormat(),
        nnscalerFormat()};
    return kFormats;
}

std::vector<std::string> configFormatNames()
{
    std::vector<std::string> names;
    for (const ConfigFormat &format : configFormats())
        names.emplace_back(format.name);
    return names;
}

Result<const ConfigFormat *> configFormatNamed(std::string_view name)
{
    std::vector<std::string_view> names;
    std::string all;
    for (const ConfigFormat &format : configFormats()) {
        if (format.name == name)
            return &format;
        names.push_back(format.name);
        all += (all.empty() ? "" : ", ") + std::string(format.name);
    }
    const std::string near = didYouMean(name, names);
    return Error{ErrorCode::NotFound, "there is no config format \"" + std::string(name.substr(0, 40)) + "\"",
        near.empty() ? "there are " + all : near, "--format"};
}

std::string_view standardOf(const ConfigFormat &format, const ConfigKey &key)
{
    for (const auto &[field, standard] : format.standards)
        if (field == key.field)
            return standard;
    return key.kind == KeyKind::Mapped ? mapped(key.words, key.standard) : key.standard;
}

std::string plainKey(std::string_view key)
{
    if (const std::size_t dashes = key.rfind("--"); dashes != std::string_view::npos)
        key.remove_prefix(dashes + 2);
    std::string plain(key);
    std::replace(plain.begin(), plain.end(), '-', '_');
    return plain;
}

std::pair<const ConfigKey *, const KeyGroup *> findKey(const ConfigFormat &format, std::string_view key)
{
    for (const KeyGroup &group : format.groups)
        if (key.starts_with(group.prefix))
            for (const ConfigKey &known : group.keys)
                if (known.key == key.substr(group.prefix.size()))
                    return {&known, &group};
    return {nullptr, nullptr};
}

bool isIrrelevant(const ConfigFormat &format, std::string_view key)
{
    // What a key that matters has in its name, in whatever framework.
    constexpr std::string_view kTelling[] = {"parallel", "pipeline", "shard", "recompute", "activation_c",
        "micro", "batch", "zero", "offload", "layers", "stage", "heads", "hidden_size", "expert", "moe",
        "fsdp", "world", "nodes", "seq_len", "ngpus", "overlap", "degree", "replica", "vocab_size",
        "lora_rank"};
    const bool tells = std::any_of(std::begin(kTelling), std::end(kTelling),
        [key](std::string_view word) { return key.find(word) != std::string_view::npos; });
    return !tells
        || std::any_of(format.irrelevant.begin(), format.irrelevant.end(),
            [key](std::string_view glob) { return globMatches(glob, key); });
}

std::string_view mapped(std::string_view words, std::string_view theirs, bool isBack)
{
    while (!words.empty()) {
        const std::string_view pair = words.substr(0, words.find(' '));
        words.remove_prefix(std::min(pair.size() + 1, words.size()));
        const std::size_t equals = pair.find('=');
        const std::string_view left = pair.substr(0, equals);
        const std::string_view right = pair.substr(equals + 1);
        if ((isBack ? right : left) == theirs)
            return isBack ? left : right;
    }
    return {};
}

} // namespace planloom
