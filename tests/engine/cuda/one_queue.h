#pragma once

#include "engine/cuda/backend/cuda_products.h"
#include "engine/kernels/kernel_call.h"

#include "tests/engine/cuda/fake_cuda.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace planloom {

/// One queue of the fake that runs calls whose buffers are the test's own.
class OneQueue
{
public:
    explicit OneQueue(bool products = true)
        : m_shared(m_cuda, 2)
        , m_products(m_cuda)
    {
        m_cuda.hasProducts = products;
        (void)m_cuda.createStream(&m_stream, false);
        m_shared.warning = [this](const std::string &text) {
            const std::size_t begin = text.find("type ") + 5;
            ++onHost[text.substr(begin, text.find(", such as") - begin)];
        };
    }

    Result<void> run(const KernelCall &given, const KernelRounding *rounding = nullptr)
    {
        m_shared.saidOnHost.clear();
        CudaTaskState task(m_shared);
        CudaScratch scratch(m_shared.device);
        CudaQueue queue(m_shared, m_products, scratch, m_stream, task);
        ++calls;
        const auto put = queue.kernel(given, rounding);
        while (m_cuda.advance(100)) { }
        TRY_VOID(put);
        TRY_VOID(queue.outcome());
        return task.outcome();
    }
    FakeCuda &cuda() { return m_cuda; }

    int calls = 0;
    std::map<std::string, int> onHost{}; ///< By what the run is told: "Conv (backward)".

private:
    FakeCuda m_cuda{};
    CudaShared m_shared;
    CudaProducts m_products;
    CudaStream m_stream = nullptr;
};

/// How far two values of a tensor are apart: relative to the larger of them and the tensor's size.
inline double distance(const std::vector<double> &a, const std::vector<double> &b)
{
    double squares = 0;
    double apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i])
            continue;
        squares += a[i] * a[i];
        apart += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return apart == 0 ? 0 : std::sqrt(apart / std::max(squares, 1e-6));
}

} // namespace planloom
