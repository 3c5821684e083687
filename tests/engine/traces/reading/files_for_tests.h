#pragma once

#include "engine/traces/reading/kineto_reader.h"
#include "engine/traces/reading/trace_bytes.h"

#include <string>

namespace planloom::test {

/// What torch.profiler writes of one rank, in little: a step of two kernels on a GPU, launched by the host,
/// and an all-reduce.
inline std::string smallKineto(int rank = 0)
{
    return R"json({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H800"}],
 "distributedInfo": {"backend": "nccl", "rank": )json"
        + std::to_string(rank) + R"json(, "world_size": 2, "pg_config": [{"pg_name": "0"}]},
 "traceEvents": [
  {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#4", "pid": 9, "tid": 9, "ts": 100, "dur": 90.5, "args": {}},
  {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 101, "dur": 9, "args": {"External id": 5}},
  {"ph": "X", "cat": "python_function", "name": "a \"quoted\" {name", "pid": 9, "tid": 9, "ts": 101, "dur": 9},
  {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 103.25, "dur": 3,
   "args": {"cbid": 211, "correlation": 17}},
  {"ph": "s", "id": 17, "pid": 9, "tid": 9, "ts": 103, "cat": "ac2g", "name": "ac2g"},
  {"ph": "X", "cat": "kernel", "name": "gemm_\u00e9", "pid": 0, "tid": 7, "ts": 110.125, "dur": 20,
   "args": {"External id": 5, "device": 0, "stream": 7, "correlation": 17, "grid": [1, [2, {"x": "]"}]]}},
  {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoD", "pid": 0, "tid": 7, "ts": 131, "dur": 1, "args": {"stream": 7}},
  {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(x)", "pid": 0, "tid": 20, "ts": 140,
   "dur": 30, "args": {"stream": 20, "Collective name": "allreduce", "dtype": "BFloat16", "In msg nelems": 64,
   "Out msg nelems": 64, "Group size": 2, "Process Group Name": "0", "Process Group Description": "default_pg",
   "Process Group Ranks": "[0, 1]", "Seq": 12}},
  {"name": "process_name", "ph": "M", "ts": 1, "pid": 9, "tid": 0, "args": {"name": "python3"}}
 ], "traceName": "x.json"})json";
}

inline Result<RankTrace> readText(const std::string &text, const std::string &where = "t.json")
{
    TraceBytes bytes(sourceOf(text), where);
    return readKineto(bytes, where);
}

} // namespace planloom::test
