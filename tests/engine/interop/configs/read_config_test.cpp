#include "engine/interop/configs/imported_design.h"
#include "engine/interop/configs/read_config.h"
#include "engine/table/table_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

namespace planloom {
namespace {

ImportedConfig readAs(const std::string &text, const ConfigOptions &options = {})
{
    auto read = readConfig(text, options);
    EXPECT_TRUE(read) << describe(read.error());
    return read ? *std::move(read) : ImportedConfig{.format = &configFormats().front()};
}

/// "tensor_parallel=2 pipeline_parallel=4 ...": what `names` are in a config.
std::string valuesOf(const ImportedConfig &imported, std::initializer_list<const char *> names)
{
    std::string values;
    for (const char *name : names) {
        const ConfigEntry *const entry = imported.config.find(name);
        values += (values.empty() ? "" : " ") + (entry == nullptr ? std::string("-") : wordOf(entry->value));
    }
    return values;
}

/// What is not said is one.
std::string degreesOf(const ImportedConfig &imported)
{
    std::string values;
    for (const char *name : {"devices", "data_parallel", "tensor_parallel", "pipeline_parallel",
             "context_parallel", "expert_parallel"})
        values += (values.empty() ? "" : " ") + std::to_string(imported.config.count(name));
    return values;
}

const char *const kScript = R"(#!/bin/bash
GPUS_PER_NODE=8
NODES=2
DISTRIBUTED=(--nproc_per_node $GPUS_PER_NODE --nnodes $NODES)
MODEL=(
    --num-layers 8 --hidden-size 256 --num-attention-heads 8
    --group-query-attention --num-query-groups 4
    --ffn-hidden-size 512 --swiglu --untie-embeddings-and-output-weights
    --seq-length 64 --max-position-embeddings 64 --vocab-size 512
)
TP=2
torchrun ${DISTRIBUTED[@]} pretrain_gpt.py ${MODEL[@]} \
    --tensor-model-parallel-size $TP --pipeline-model-parallel-size 2 \
    --num-layers-per-virtual-pipeline-stage 2 --sequence-parallel --use-distributed-optimizer \
    --micro-batch-size 1 --global-batch-size 16 --bf16 --lr 1e-4 \
    --recompute-granularity selective --recompute-modules core_attn mlp --frobnicate-parallel 3
)";

TEST(ReadConfig, AScriptOfMegatronIsADesignWithTheLineOfEveryRow)
{
    const ImportedConfig read = readAs(kScript);
    EXPECT_EQ(read.format->name, "megatron");
    EXPECT_EQ(degreesOf(read), "16 4 2 2 1 1");
    EXPECT_EQ(valuesOf(read, {"virtual_pipeline", "zero", "micro_batches", "precision", "sequence_parallel"}),
        "2 1 4 bf16 true");
    EXPECT_TRUE(read.errors.empty()) << describe(read.errors.front());
    ASSERT_EQ(read.unknown.size(), 1U);
    EXPECT_EQ(read.unknown.front().key, "--frobnicate-parallel");
    EXPECT_EQ(read.unknown.front().line, 16);
    const auto design = designOf(read);
    ASSERT_TRUE(design) << describe(design.error());
    std::set<std::string> rows;
    for (const ImportedRow &row : design->rows) {
        rows.insert(print(row.row) + " @" + std::to_string(row.line));
    }
    for (const char *row : {"mesh pp=2 dp=4 tp=2 @13", "micro-batches 4 @15",
             "layout all : \"Et*2|t*2|t*2|t*2L\" over pp @13", "zero1 weight:* over dp @14",
             "precision all : bf16 @15", "split name:norm : sequence over tp @14"})
        EXPECT_TRUE(rows.contains(row)) << row;
    EXPECT_EQ(design->request.target.cluster, "dgx-h100:16+megatron");
    PlanRequest request = design->request;
    request.upTo = PlanGrade::Timed;
    const auto planned = planOf(request);
    ASSERT_TRUE(planned) << describe(planned.error());
    EXPECT_GT((*planned)->summary.stepSeconds, 0);
}

TEST(ReadConfig, ContradictionsAreErrorsInTheWordsOfTheFramework)
{
    const std::string sizes =
        "--num-layers 6 --hidden-size 96 --num-attention-heads 6 --seq-length 60 --vocab-size 64 ";
    const auto errorsOf = [&](const std::string &rest) {
        std::string all;
        for (const Error &error : readAs("torchrun --nproc_per_node 8 train.py " + sizes + rest).errors)
            all += error.message + "\n";
        return all;
    };
    EXPECT_EQ(errorsOf("--tensor-model-parallel-size 2 --global-batch-size 8"), "");
    EXPECT_NE(errorsOf("--tensor-model-parallel-size 3").find("world_size (8) is not divisible by 3"),
        std::string::npos);
    EXPECT_NE(
        errorsOf("--pipeline-model-parallel-size 4 --global-batch-size 8").find("--num-layers 6, 4 stages"),
        std::string::npos);
    EXPECT_NE(errorsOf("--tensor-model-parallel-size 4 --global-batch-size 8")
                  .find("attention heads must be a multiple"),
        std::string::npos);
    EXPECT_NE(errorsOf("--global-batch-size 12 --micro-batch-size 1")
                  .find("global batch size (12) is not divisible by micro batch size (1) times data parallel "
                        "size (8)"),
        std::string::npos);
    EXPECT_NE(errorsOf("--context-parallel-size 8 --global-batch-size 8")
                  .find("multiple of 2 * context-parallel-size"),
        std::string::npos);
    EXPECT_NE(errorsOf("--tensor-model-parallel-size many")
                  .find("expected a number for --tensor-model-parallel-size, found \"many\""),
        std::string::npos);
    EXPECT_NE(errorsOf("--tensor-model-parallel-size -4").find("whole number from 1 on"), std::string::npos);
}

TEST(ReadConfig, StagesOfMegatronMayBeUneven)
{
    const auto layoutOf = [](const std::string &rest) {
        return readAs("train.py --num-layers 10 --hidden-size 64 --num-attention-heads 4 "
                      "--pipeline-model-parallel-size 4 "
            + rest)
            .config.text("layout");
    };
    EXPECT_EQ(layoutOf("--decoder-first-pipeline-num-layers 1 --decoder-last-pipeline-num-layers 3"),
        "Et*1|t*3|t*3|t*3L");
    EXPECT_EQ(layoutOf("--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"),
        "Et*2|t*3|t*3|t*2L");
    EXPECT_EQ(layoutOf("--pipeline-model-parallel-layout 'E|t*5|t*5|L'"), "E|t*5|t*5|L");
}

TEST(ReadConfig, OverridesOfBridgeAndVerlSayTheSame)
{
    const ImportedConfig bridge =
        readAs("python recipe.py model.tensor_model_parallel_size=4 model.pipeline_model_parallel_size=2 "
               "train.global_batch_size=32 "
               "train.micro_batch_size=2 model.sequence_parallel=true model.num_layers=4 "
               "model.hidden_size=64 comm_overlap.tp_comm_overlap=true",
            {.devices = 16});
    EXPECT_EQ(bridge.format->name, "bridge");
    EXPECT_EQ(degreesOf(bridge), "16 2 4 2 1 1");
    EXPECT_EQ(valuesOf(bridge, {"micro_batches", "overlap_tensor_parallel"}), "8 true");
    const ImportedConfig verl =
        readAs("ACTOR=(\n  actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4\n"
               "  actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=2\n"
               "  actor_rollout_ref.actor.ppo_mini_batch_size=8\n  actor_rollout_ref.rollout.n=4\n"
               "  actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2\n)\n"
               "python3 -m verl.trainer.main_ppo ${ACTOR[@]} trainer.n_gpus_per_node=8 trainer.nnodes=2 "
               "actor_rollout_ref.model.path=$HOME/models/Llama-3.1-8B data.max_prompt_length=512 "
               "data.max_response_length=512");
    EXPECT_EQ(verl.format->name, "verl");
    EXPECT_EQ(degreesOf(verl), "16 2 4 2 1 1");
    EXPECT_EQ(valuesOf(verl, {"sequence", "global_batch", "micro_batches", "zero", "model"}),
        "1024 32 8 1 Llama-3.1-8B");
}

TEST(ReadConfig, ARecipesAssignmentsAreRead)
{
    const ImportedConfig read =
        readAs("from megatron.bridge import x\n\ndef recipe():\n    cfg = base()\n"
               "    cfg.model.tensor_model_parallel_size = 2 * 2\n    cfg.model.sequence_parallel = True\n"
               "    cfg.train.global_batch_size = 64\n    return cfg\n");
    EXPECT_EQ(read.format->name, "bridge");
    EXPECT_EQ(valuesOf(read, {"tensor_parallel", "sequence_parallel", "global_batch"}), "4 true 64");
    EXPECT_EQ(read.config.find("tensor_parallel")->line, 5);
}

const char *const kNemoRl = R"(policy:
  model_name: meta-llama/Llama-3.1-8B-Instruct
  train_global_batch_size: 64
  train_micro_batch_size: &micro 1
  logprob_batch_size: *micro
  max_total_sequence_length: 4096
  precision: bfloat16
  dtensor_cfg: {enabled: false, tensor_parallel_size: 8}
  megatron_cfg:
    enabled: true
    activation_checkpointing: false
    recompute_granularity: full
    tensor_model_parallel_size: 2
    pipeline_model_parallel_size: 2
    optimizer:
      use_distributed_optimizer: true
cluster:
  gpus_per_node: 8
  num_nodes: 2
)";

TEST(ReadConfig, NemoRlCountsThePartThatIsEnabled)
{
    const ImportedConfig read = readAs(kNemoRl);
    EXPECT_EQ(read.format->name, "nemo-rl");
    EXPECT_EQ(degreesOf(read), "16 4 2 2 1 1");
    EXPECT_EQ(valuesOf(read, {"recompute", "zero", "framework", "micro_batches"}), "- 1 megatron 16");
    std::string other = kNemoRl;
    other.replace(other.find("enabled: false"), 14, "enabled: true");
    other.replace(other.find("    enabled: true\n"), 18, "    enabled: false\n");
    const ImportedConfig dtensor = readAs(other);
    EXPECT_EQ(degreesOf(dtensor), "16 2 8 1 1 1");
    EXPECT_EQ(valuesOf(dtensor, {"zero", "framework"}), "3 fsdp");
}

const char *const kTitan = R"(from torchtitan.trainer import Trainer

def small() -> Trainer.Config:
    return Trainer.Config(
        hf_assets_path="./assets/hf/Llama-3.1-8B",
        model_spec=model_registry("8B"),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=1 * 8192,  # one sample
            max_context_length=8192,
        ),
        parallelism=ParallelismConfig(tensor_parallel_degree=2, pipeline_parallel_degree=2, num_pp_microbatches=4),
        activation_checkpoint=FullAC.Config(),
    )

def large():
    config = small()
    config.parallelism.tensor_parallel_degree = 8
    config.parallelism.pipeline_parallel_schedule = "Interleaved1F1B"
    return config
)";

TEST(ReadConfig, TorchtitansPythonIsReadAsLiterals)
{
    const auto neither = readConfig(kTitan);
    ASSERT_FALSE(neither);
    EXPECT_EQ(neither.error().advice, "name one of small, large");
    const ImportedConfig small = readAs(kTitan, {.function = "small", .devices = 16});
    EXPECT_EQ(small.format->name, "torchtitan");
    EXPECT_EQ(degreesOf(small), "16 4 2 2 1 1");
    EXPECT_EQ(valuesOf(small, {"sequence", "micro_batch", "micro_batches", "recompute", "zero", "layout"}),
        "8192 1 4 full 3 Et*16|t*16L");
    const ImportedConfig large = readAs(kTitan, {.function = "large", .devices = 16});
    EXPECT_EQ(valuesOf(large, {"tensor_parallel", "layout"}), "8 Et*8|t*9|t*8|t*7L");
}

TEST(ReadConfig, TorchtitansTomlOfBeforeIsRead)
{
    const ImportedConfig read = readAs(
        "[model]\nname = \"llama3\"\nflavor = \"70B\"\n[training]\nlocal_batch_size = 8\nseq_len = 8192\n"
        "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n"
        "tensor_parallel_degree = 8\n[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = "
        "\"2\"\n");
    EXPECT_EQ(read.format->name, "torchtitan");
    EXPECT_EQ(degreesOf(read), "64 8 8 1 1 1");
    EXPECT_EQ(valuesOf(read, {"model", "shard_parts", "zero", "recompute_every", "micro_batches"}),
        "llama3-70B 4 3 2 1");
}

TEST(ReadConfig, DeepSpeedAndAccelerateSayWhatReplicasShare)
{
    const ImportedConfig deepspeed = readAs(R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 2, "bf16": {"enabled": true},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}, "reduce_bucket_size": 5e8}})",
        {.devices = 8});
    EXPECT_EQ(deepspeed.format->name, "deepspeed");
    EXPECT_EQ(valuesOf(deepspeed, {"devices", "zero", "offload_states", "micro_batches", "precision"}),
        "8 2 true 2 bf16");
    EXPECT_TRUE(deepspeed.errors.empty());
    const ImportedConfig wrong = readAs(
        R"({"train_batch_size": 48, "train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 2})",
        {.devices = 8});
    ASSERT_EQ(wrong.errors.size(), 1U);
    EXPECT_EQ(wrong.errors.front().message,
        "train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size: 48 != 2 * 2 "
        "* 8");
    const ImportedConfig accelerate =
        readAs("distributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 8\nfsdp_config:\n"
               "  fsdp_sharding_strategy: SHARD_GRAD_OP\n  fsdp_activation_checkpointing: true\n");
    EXPECT_EQ(accelerate.format->name, "accelerate");
    EXPECT_EQ(valuesOf(accelerate, {"devices", "zero", "recompute", "framework"}), "8 2 full fsdp");
    const ImportedConfig hybrid =
        readAs("distributed_type: FSDP\nnum_processes: 16\nparallelism_config:\n"
               "  parallelism_config_dp_replicate_size: 2\n  parallelism_config_dp_shard_size: 4\n"
               "  parallelism_config_tp_size: 2\n");
    EXPECT_EQ(degreesOf(hybrid), "16 8 2 1 1 1");
    EXPECT_EQ(valuesOf(hybrid, {"zero", "shard_parts"}), "3 4");
}

TEST(ReadConfig, NanotronAndNnScalerAreRead)
{
    const ImportedConfig nanotron =
        readAs("parallelism:\n  dp: 2\n  tp: 2\n  pp: 2\n  pp_engine: 1f1b\n  tp_mode: REDUCE_SCATTER\n"
               "tokens:\n  micro_batch_size: 2\n  batch_accumulation_per_replica: 4\n  sequence_length: 64\n"
               "optimizer:\n  zero_stage: 1\nmodel:\n  dtype: bfloat16\n  model_config:\n"
               "    is_llama_config: true\n    num_hidden_layers: 4\n    hidden_size: 64\n    "
               "intermediate_size: 128\n"
               "    num_attention_heads: 4\n    vocab_size: 256\n");
    EXPECT_EQ(nanotron.format->name, "nanotron");
    EXPECT_EQ(degreesOf(nanotron), "8 2 2 2 1 1");
    EXPECT_EQ(valuesOf(nanotron, {"global_batch", "micro_batches", "zero", "sequence_parallel", "schedule"}),
        "16 4 1 true 1f1b");
    EXPECT_TRUE(designOf(nanotron));
    const ImportedConfig nnscaler =
        readAs("model = parallelize(model, compute_config=ComputeConfig(plan_ngpus=4, runtime_ngpus=8,\n"
               "    use_zero=True, pas_config={'pipeline_nstages': 2, 'pipeline_nmicros': 8}))\n",
            {.fileName = "train.py"});
    EXPECT_EQ(nnscaler.format->name, "nnscaler");
    EXPECT_EQ(valuesOf(nnscaler, {"devices", "tensor_parallel", "pipeline_parallel", "zero"}), "8 2 2 1");
}

TEST(ReadConfig, EveryKeyOfAFileIsAccountedFor)
{
    const ImportedConfig read = readAs(kScript);
    std::multiset<std::string> keys;
    for (const auto *list : {&read.understood, &read.irrelevant, &read.unknown})
        for (const KeyRemark &remark : *list)
            keys.insert(remark.key);
    for (const char *key : {"--nproc_per_node", "--nnodes", "--num-layers", "--swiglu", "--lr", "--bf16",
             "--frobnicate-parallel", "--max-position-embeddings", "--recompute-modules"})
        EXPECT_EQ(keys.count(key), 1U) << key;
}

TEST(ReadConfig, EveryFieldOfATableIsOneThatRulesKnow)
{
    for (const ConfigFormat &format : configFormats())
        for (const KeyGroup &group : format.groups)
            for (const ConfigKey &key : group.keys) {
                SCOPED_TRACE(std::string(format.name) + ": " + std::string(key.key));
                EXPECT_EQ(key.field.empty(), key.kind == KeyKind::Beyond);
                EXPECT_TRUE(key.kind != KeyKind::Mapped || !key.words.empty());
                EXPECT_EQ(
                    findKey(format, std::string(group.prefix) + std::string(key.key)).first != nullptr, true);
            }
}

TEST(ReadConfig, HostileFilesAreRefusedWithTheirPlace)
{
    std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
    for (char c = 'b'; c < 'k'; ++c) {
        const std::string last(1, static_cast<char>(c - 1));
        bomb += std::string(1, c) + ": &" + c + " {p: *" + last + ", q: *" + last + ", r: *" + last + ", s: *"
            + last + ", t: *" + last + ", u: *" + last + "}\n";
    }
    const auto grown = readConfig(bomb, {.fileName = "x.yaml"});
    ASSERT_FALSE(grown);
    EXPECT_EQ(grown.error().code, ErrorCode::ResourceLimit);
    EXPECT_FALSE(readConfig(std::string(20000, '['), {.fileName = "x.json"}));
    EXPECT_FALSE(readConfig("a: &a\n  b: *a\n", {.fileName = "x.yaml"}));
    EXPECT_FALSE(readConfig(std::string(20000, '{'), {.fileName = "x.py"}));
    EXPECT_FALSE(readConfig(std::string((1 << 20) + 1, ' ')));
    const auto broken = readConfig("parallelism:\n  dp: [1\n  tp: 2", {.fileName = "x.yaml"});
    ASSERT_FALSE(broken);
    EXPECT_TRUE(broken.error().where.starts_with("line:")) << broken.error().where;
    for (const char *text : {"", "#", "{}", "a: b", "[[[", "---", "\"", "x = (", "def f(", "f(a=f(b=", "--",
             "a.b=", "= =", "[a]\n= 1"})
        for (const char *name : {"x.sh", "x.yaml", "x.json", "x.py", "x.toml", ""}) {
            SCOPED_TRACE(std::string(name) + " " + text);
            EXPECT_FALSE(readConfig(text, {.fileName = name}));
        }
    const ImportedConfig huge =
        readAs("train.py --num-layers 1e300 --tensor-model-parallel-size 1e14 --hidden-size nan "
               "--pipeline-model-parallel-size 999999999 --global-batch-size 1e15");
    EXPECT_FALSE(huge.errors.empty());
    EXPECT_FALSE(designOf(huge));
}

} // namespace
} // namespace planloom
