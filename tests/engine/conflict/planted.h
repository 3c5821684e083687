#pragma once

#include <string>

namespace planloom {

/// 197 rows on a GPT of 96 layers that hold together, and three that do not with them: their numbers come
/// last.
inline std::string plantedTable(const std::string &planted)
{
    std::string text = "mesh dp=2 tp=4\nmicro-batches 2\nsplit all : batch over dp\n";
    for (int layer = 0; layer < 96; ++layer) {
        const std::string h = "h." + std::to_string(layer);
        text += "split name:" + h + ".mlp.c_fc : out0.-1 over tp\n";
        text += "recompute in:" + h + "\n";
    }
    text += "schedule 1f1b\nzero1 all over dp\n";
    return text + planted;
}

constexpr const char *kBigGpt = "zoo:gpt?layers=96&hidden=1024&heads=16&seq=128&vocab=8192&batch=32&fused=0";

/// Three rows of which any two hold together.
constexpr const char *kPlantedOrders = "order name:h.40.attn.q_attn before name:h.40.attn.k_attn\n"
                                       "order name:h.40.attn.k_attn before name:h.40.attn.v_attn\n"
                                       "order name:h.40.attn.v_attn before name:h.40.attn.q_attn\n";

/// Two rows that cut the batch further than micro-batches, the mesh and the cut of all leave of it.
constexpr const char *kPlantedSplits = "split name:h.60.attn.c_proj : batch over tp\n"
                                       "coshard name:h.60.attn.c_proj : batch by 4\n";

} // namespace planloom
