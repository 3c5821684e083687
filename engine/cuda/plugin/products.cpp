#include "engine/cuda/plugin/products.h"
#include "engine/base/vendor_library.h"

#include <memory>

#include <cublasLt.h>
#include <dlfcn.h>

namespace planloom {

namespace {

/// The functions of cuBLASLt that are called.
struct Blas {
    decltype(&cublasLtCreate) create = nullptr;
    decltype(&cublasLtMatmulDescCreate) descCreate = nullptr;
    decltype(&cublasLtMatmulDescDestroy) descDestroy = nullptr;
    decltype(&cublasLtMatmulDescSetAttribute) descSet = nullptr;
    decltype(&cublasLtMatrixLayoutCreate) layoutCreate = nullptr;
    decltype(&cublasLtMatrixLayoutDestroy) layoutDestroy = nullptr;
    decltype(&cublasLtMatrixLayoutSetAttribute) layoutSet = nullptr;
    decltype(&cublasLtMatmulPreferenceCreate) preferenceCreate = nullptr;
    decltype(&cublasLtMatmulPreferenceDestroy) preferenceDestroy = nullptr;
    decltype(&cublasLtMatmulPreferenceSetAttribute) preferenceSet = nullptr;
    decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
    decltype(&cublasLtMatmul) matmul = nullptr;
    cublasLtHandle_t handle = nullptr;
    std::string why{}; ///< There is none of it; empty where there is.
};

template<typename Function> bool find(void *library, const char *name, Function &function)
{
    function = reinterpret_cast<Function>(::dlsym(library, name));
    return function != nullptr;
}

Blas openBlas()
{
    Blas blas;
    void *const library = openVendorLibrary(kProductNames, blas.why);
    if (library == nullptr)
        return blas;
    if (!find(library, "cublasLtCreate", blas.create)
        || !find(library, "cublasLtMatmulDescCreate", blas.descCreate)
        || !find(library, "cublasLtMatmulDescDestroy", blas.descDestroy)
        || !find(library, "cublasLtMatmulDescSetAttribute", blas.descSet)
        || !find(library, "cublasLtMatrixLayoutCreate", blas.layoutCreate)
        || !find(library, "cublasLtMatrixLayoutDestroy", blas.layoutDestroy)
        || !find(library, "cublasLtMatrixLayoutSetAttribute", blas.layoutSet)
        || !find(library, "cublasLtMatmulPreferenceCreate", blas.preferenceCreate)
        || !find(library, "cublasLtMatmulPreferenceDestroy", blas.preferenceDestroy)
        || !find(library, "cublasLtMatmulPreferenceSetAttribute", blas.preferenceSet)
        || !find(library, "cublasLtMatmulAlgoGetHeuristic", blas.heuristic)
        || !find(library, "cublasLtMatmul", blas.matmul))
        blas.why = "cuBLASLt is of a version without the functions that are needed";
    else if (const cublasStatus_t status = blas.create(&blas.handle); status != CUBLAS_STATUS_SUCCESS)
        blas.why = "cublasLtCreate failed with " + std::to_string(status);
    return blas;
}

const Blas &blas()
{
    static const Blas kBlas = openBlas();
    return kBlas;
}

/// cuBLASLt counts in columns: our row-major c = a b is its c^T = b^T a^T, so its A is our b, and its B our
/// a.
struct Plan {
    cublasLtMatmulDesc_t operation = nullptr;
    cublasLtMatrixLayout_t first = nullptr; ///< Of b.
    cublasLtMatrixLayout_t second = nullptr; ///< Of a.
    cublasLtMatrixLayout_t result = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    std::size_t workspace = 0;
    bool bias = false;
    bool accumulate = false;
    Epilogue epilogue = Epilogue::None;

    ~Plan()
    {
        if (first != nullptr)
            blas().layoutDestroy(first);
        if (second != nullptr)
            blas().layoutDestroy(second);
        if (result != nullptr)
            blas().layoutDestroy(result);
        if (operation != nullptr)
            blas().descDestroy(operation);
    }
};

/// Of the types above. The plugin is linked with none of the program's libraries.
std::uint32_t bytesOf(DataType type)
{
    return type == DataType::Float32 ? 4 : 2;
}

cudaDataType_t typeOf(DataType type)
{
    return type == DataType::BFloat16 ? CUDA_R_16BF : type == DataType::Float16 ? CUDA_R_16F : CUDA_R_32F;
}

/// A matrix of rows x columns, row-major with these strides, seen by columns: transposed, unless its own
/// columns are dense.
struct Seen {
    bool transposed = false;
    std::int64_t rows = 0; ///< As cuBLASLt stores it.
    std::int64_t columns = 0;
    std::int64_t leading = 0;
};

Seen seenOf(std::int64_t rows, std::int64_t columns, std::int64_t row, std::int64_t column)
{
    if (column == 1 && (row >= columns || rows == 1)) // memory is [columns x rows] by columns: what it wants
        return {false, columns, rows, rows == 1 ? columns : row};
    return {true, rows, columns, columns == 1 ? rows : column};
}

cublasStatus_t describe(
    cublasLtMatrixLayout_t &layout, DataType type, const Seen &seen, std::int64_t repeats, std::int64_t step)
{
    cublasStatus_t status = blas().layoutCreate(&layout, typeOf(type), static_cast<std::uint64_t>(seen.rows),
        static_cast<std::uint64_t>(seen.columns), seen.leading);
    const auto count = static_cast<std::int32_t>(repeats);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas().layoutSet(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas().layoutSet(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof step);
    return status;
}

bool usesAux(Epilogue epilogue)
{
    return epilogue == Epilogue::GeluKeeping || epilogue == Epilogue::GeluSlope;
}
bool makesSums(Epilogue epilogue)
{
    return epilogue == Epilogue::SumsOfA || epilogue == Epilogue::SumsOfB;
}

cublasLtEpilogue_t epilogueOf(const ProductShape &shape)
{
    switch (shape.epilogue) {
    case Epilogue::Relu:
        return shape.bias ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case Epilogue::Gelu:
        return shape.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Epilogue::GeluKeeping:
        return shape.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::GeluSlope:
        return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::SumsOfA: // which is its B
        return CUBLASLT_EPILOGUE_BGRADB;
    case Epilogue::SumsOfB:
        return CUBLASLT_EPILOGUE_BGRADA;
    case Epilogue::None:
        break;
    }
    return shape.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

/// What it documents: the leading dimension of aux, in elements, is a multiple of 8; sums and slopes have no
/// bias.
bool mayHaveEpilogue(const ProductShape &shape)
{
    if (shape.epilogue == Epilogue::None)
        return true;
    if (usesAux(shape.epilogue) && shape.cRow % 8 != 0)
        return false;
    return shape.repeats == 1 && !shape.accumulate
        && (!shape.bias || (!makesSums(shape.epilogue) && shape.epilogue != Epilogue::GeluSlope));
}

cublasStatus_t describe(Plan &plan, const ProductShape &shape)
{
    const bool isFloat = shape.operands == DataType::Float32;
    const cublasComputeType_t compute =
        isFloat && shape.tensorFloat32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    if (const cublasStatus_t status = blas().descCreate(&plan.operation, compute, CUDA_R_32F);
        status != CUBLAS_STATUS_SUCCESS)
        return status;
    const Seen b = seenOf(shape.k, shape.n, shape.bRow, shape.bColumn);
    const Seen a = seenOf(shape.m, shape.k, shape.aRow, shape.aColumn);
    const cublasOperation_t first = b.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = a.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = epilogueOf(shape);
    const cudaDataType_t biasType = typeOf(shape.result);
    cublasStatus_t status = blas().descSet(plan.operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof first);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas().descSet(plan.operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof second);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = blas().descSet(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    if (status == CUBLAS_STATUS_SUCCESS && usesAux(shape.epilogue))
        status = blas().descSet(
            plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, &shape.cRow, sizeof shape.cRow);
    if (status == CUBLAS_STATUS_SUCCESS && (shape.bias || makesSums(shape.epilogue)))
        status =
            blas().descSet(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &biasType, sizeof biasType);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = describe(plan.first, shape.operands, b, shape.repeats, shape.bStep);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = describe(plan.second, shape.operands, a, shape.repeats, shape.aStep);
    if (status == CUBLAS_STATUS_SUCCESS)
        status = describe(plan.result, shape.result,
            {false, shape.n, shape.m, shape.m == 1 ? shape.n : shape.cRow}, shape.repeats, shape.cStep);
    return status;
}

} // namespace

std::string whyNoProducts()
{
    return blas().why;
}

CudaStatus planProduct(const ProductShape &shape, std::size_t &workspace, CudaProduct *product)
{
    if (!blas().why.empty())
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!mayHaveEpilogue(shape))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    auto plan = std::make_unique<Plan>();
    plan->bias = shape.bias;
    plan->epilogue = shape.epilogue;
    plan->accumulate = shape.accumulate;
    if (const cublasStatus_t status = describe(*plan, shape); status != CUBLAS_STATUS_SUCCESS)
        return status;
    cublasLtMatmulPreference_t preference = nullptr;
    if (const cublasStatus_t status = blas().preferenceCreate(&preference); status != CUBLAS_STATUS_SUCCESS)
        return status;
    const std::uint64_t most = workspace;
    // What is multiplied lies anywhere in the arena: pointers are aligned as their elements are, no better.
    const std::uint32_t alignment = bytesOf(shape.operands);
    const std::uint32_t resultAlignment = bytesOf(shape.result);
    using Attribute = cublasLtMatmulPreferenceAttributes_t;
    blas().preferenceSet(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most);
    const bool aligned = shape.aStep % 16 == 0 && shape.bStep % 16 == 0 && shape.cStep % 16 == 0
        && shape.m % 16 == 0 && shape.n % 16 == 0 && shape.k % 16 == 0;
    for (const Attribute which :
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES})
        if (!aligned)
            blas().preferenceSet(preference, which, &alignment, sizeof alignment);
    for (const Attribute which :
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
        if (!aligned)
            blas().preferenceSet(preference, which, &resultAlignment, sizeof resultAlignment);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t status = blas().heuristic(blas().handle, plan->operation, plan->first, plan->second,
        plan->result, plan->result, preference, 1, &found, &count);
    blas().preferenceDestroy(preference);
    if (status != CUBLAS_STATUS_SUCCESS)
        return status;
    if (count == 0)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    plan->algorithm = found.algo;
    plan->workspace = found.workspaceSize;
    workspace = found.workspaceSize;
    *product = plan.release();
    return kCudaSuccess;
}

CudaStatus multiply(CudaProduct product, const void *a, const void *b, const void *bias, void *c, void *aux,
    void *workspace, CudaStream stream)
{
    Plan &plan = *static_cast<Plan *>(product);
    const void *const vector = makesSums(plan.epilogue) ? aux : bias;
    if (plan.bias || makesSums(plan.epilogue))
        if (const cublasStatus_t status =
                blas().descSet(plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &vector, sizeof vector);
            status != CUBLAS_STATUS_SUCCESS)
            return status;
    if (usesAux(plan.epilogue))
        if (const cublasStatus_t status =
                blas().descSet(plan.operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux, sizeof aux);
            status != CUBLAS_STATUS_SUCCESS)
            return status;
    const float alpha = 1;
    const float beta = plan.accumulate ? 1 : 0;
    return blas().matmul(blas().handle, plan.operation, &alpha, b, plan.first, a, plan.second, &beta, c,
        plan.result, c, plan.result, &plan.algorithm, workspace, plan.workspace,
        static_cast<cudaStream_t>(stream));
}

void forgetProduct(CudaProduct product)
{
    delete static_cast<Plan *>(product);
}

} // namespace planloom
