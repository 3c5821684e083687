#pragma once

#include "engine/base/result.h"
#include "engine/table/table.h"

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// The constraint table as text, one row a line (each kind's grammar is in engine/table/kinds):
//
//     mesh dp=2 pp=2 tp=2
//     dim batch = 64                                      # the model is opened with this size of its inputs
//     micro-batches 4                                     # "4 whole": each a whole batch of the model
//                                                         # "4 update every 2": two updates in the step
//     split all : batch over dp
//     split name:*.attn.c_attn : out0.-1 by 2 over tp
//     split all : heads over tp                           # by meaning, see dimension_classes.h
//     split set{x} : m into 3,5 then value by 2
//     replicate kind:LayerNorm : by 2 over tp
//     parts kind:Linear : n at most 4                     # all axes together; at least 2, one of 1 2 4
//     parts kind:Linear : in all at least 2               # along all dimensions together
//     alike layer:1-11 as layer:0                         # cut as those are
//     follow kind:Gelu                                    # cut as its producer is
//     coshard in:h.0.mlp : n by 4
//     slice layer:* : sequence by 4                       # one behind another through the stages
//     lanes layer:* : 2                                   # copies of a pipeline; or: over an axis
//     place layer:0-5 : pp=0                              # or: devices 0,1,1,2; or: mesh
//     spread layer:* : over pp by memory                  # consecutive runs, balanced; or by time, count
//     layout all : "Et*4|(t*4|)*6t*4L" over pp            # stages by layer (layer_layout.h), round the axis
//     together name:a with name:b                         # on the same devices; or: apart name:a from name:b
//     order name:a before name:b at +1
//     order name:a before name:b at +1 of 3               # only for name:a of micro-batch 3
//     communicate layer:2 sends after layer:2 at +1        # or gathers, reductions; or before
//     schedule 1f1b                                       # or gpipe, interleaved, zb-h1, ...
//     stage layer:0-5 : 0                                 # or: 0 of 4, where the plan has four
//     recompute layer:* per layer                         # or per operator; default: per selection
//     recompute kind:Softmax never                        # or solver: as the search finds best
//     zero0 weight:*                                      # every replica updates all of its weights
//     zero1 weight:* over dp                              # or by 4; default: all replicas
//     zero1 weight:* over dp and cp                       # one group of both axes
//     zero2 weight:* over dp                              # gradients too
//     zero3 weight:* over dp keep prefetch 2              # weights too; gathered ahead of their use
//     precision all : bf16                                # or fp32, tf32, fp16 (scale=1024), fp8
//     precision kind:Softmax : storage=fp32               # compute, storage, gradient, reduction, optimizer
//     split-backward layer:*                              # gradients of weights in a pass of their own
//     interleave forward stage 0 with backward at -2      # blocks side by side
//     weight-versions layer:0-5 : 2                       # gradients at weights of one update ago
//     in-flight 3 stage 0                                 # without a stage: of every stage
//     attention layer:0-5 : plain                         # probabilities in memory; default: fused
//     ring kind:Attention : over cp                       # keys and values go round the devices of cp
//     offload all : states                                # or activations: wait in host memory;
//                                                         # states or activations never, activations solver
//     degree tensor at most 4                             # data, pipeline, stages, sequence, expert, ...
//     degree stages one of 2 4                            # at most, at least, one of
//     limit memory 40GiB                                  # B, KiB .. TiB, KB .. TB
//     limit time 50ms                                     # ns, us, ms, s
//     limit traffic 2GiB                                  # that each device sends in a step
//     limit traffic 2GiB per link                         # that each link carries, of whatever level
//     limit traffic 8GiB on node                          # that each node sends to others; card, rack ...
//     prefer 2 split kind:Linear : k by 4                 # held if it can be; without a number: of weight 1
//     off split all : batch by 2  @gesture                # switched off, with an origin other than text
//
// A meaning (batch, sequence, heads, head-size, hidden, feed-forward, vocabulary, expert, height, width, ...)
// cuts every selected operator that has such a dimension to cut, by the model's heads, not by what they lie
// in; others are passed by. Scores are cut along the query's sequence; the key's has its identifier as name.
// A number of parts that does not divide is refused, and so is a row that finds no such dimension.
//
// `#` begins a note; lines of notes alone belong to the row below them. Identifiers called as a word of the
// language are quoted: `heads` is the meaning, `"heads"` an identifier of that name.

/// What a text holds: the rows that parse, and an error for each line that does not.
struct TableText {
    ConstraintTable table{};
    std::vector<Error> errors{}; ///< `where` is "line:LINE:COLUMN", both from 1.
};

/// Reads every line; never gives up. O(length).
TableText readTable(std::string_view text);

/// The table, or the first error.
Result<ConstraintTable> parseTable(std::string_view text);

/// One row without a line end ("off split all : m by 2"). Its note may only be one line.
Result<Row> parseRow(std::string_view line);

/// Canonical text; `parseTable(print(t))` equals `t` if notes have no carriage returns. Ends in a line end
/// unless empty.
std::string print(const ConstraintTable &table);

/// A row's line without its note and origin: what the table's cells and messages show.
std::string print(const Row &row);

/// "batch by 2 over dp": the rule alone.
std::string print(const Rule &rule);

} // namespace planloom
