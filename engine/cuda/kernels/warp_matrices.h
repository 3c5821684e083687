#pragma once

#include "engine/cuda/kernels/device_code.h"

// Products of small matrices on tensor cores: the instructions of a warp that hold a matrix in the registers
// of its lanes (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions"). On the host all lanes take
// part in turn, and `placeInA`, `placeInB` and `placeInC` are what says which lane holds which element.

#if defined(__CUDACC__)
// Arrays whose places are known at compile time are registers; others would be memory.
#define PLANLOOM_UNROLL _Pragma("unroll")
#define PLANLOOM_ROLLED _Pragma("unroll 1")
#else
#define PLANLOOM_UNROLL
#define PLANLOOM_ROLLED
#endif

namespace planloom {

constexpr int kLanes = 32; ///< Of a warp.

/// An element's place in a matrix.
struct MatrixPlace {
    int row = 0;
    int column = 0;
    friend auto operator<=>(const MatrixPlace &, const MatrixPlace &) = default;
};

// c [16 8] += a [16 16] b [16 8]: elements of a lane, in pairs of 16 bits by register (c: a float each).
constexpr int kElementsOfA = 8;
constexpr int kElementsOfB = 4;
constexpr int kElementsOfC = 4;
PLANLOOM_INLINE constexpr MatrixPlace placeInA(int lane, int i)
{
    return {lane / 4 + ((i & 2) != 0 ? 8 : 0), lane % 4 * 2 + (i & 1) + ((i & 4) != 0 ? 8 : 0)};
}
PLANLOOM_INLINE constexpr MatrixPlace placeInB(int lane, int i)
{
    return {lane % 4 * 2 + (i & 1) + ((i & 2) != 0 ? 8 : 0), lane / 4};
}
PLANLOOM_INLINE constexpr MatrixPlace placeInC(int lane, int i)
{
    return {lane / 4 + ((i & 2) != 0 ? 8 : 0), lane % 4 * 2 + (i & 1)};
}

/// Registers of one lane.
template<typename T, int N> struct Registers {
    T values[N];
    PLANLOOM_INLINE T &operator[](int i) { return values[i]; }
    PLANLOOM_INLINE const T &operator[](int i) const { return values[i]; }
};

/// What each lane has of its own: on the device a register of this one, on the host those of all.
template<typename T> struct PerLane {
#if defined(__CUDA_ARCH__)
    T own;
    PLANLOOM_INLINE T &operator[](int)
    {
        return own;
    }
    PLANLOOM_INLINE const T &operator[](int) const
    {
        return own;
    }
#else
    T each[kLanes];
    PLANLOOM_INLINE T &operator[](int lane)
    {
        return each[lane];
    }
    PLANLOOM_INLINE const T &operator[](int lane) const
    {
        return each[lane];
    }
#endif
};

/// Floats of accumulators, or packed operands, of a warp.
template<int N> using WarpFloats = PerLane<Registers<float, N>>;
template<int N> using WarpPairs = PerLane<Registers<std::uint32_t, N>>;

/// The lanes that this code runs for: `for (const int lane : Lanes{})`.
struct Lanes {
    struct Iterator {
        int lane = 0;
        PLANLOOM_INLINE int operator*() const { return lane; }
        PLANLOOM_INLINE Iterator &operator++()
        {
            ++lane;
            return *this;
        }
        PLANLOOM_INLINE bool operator!=(const Iterator &other) const { return lane != other.lane; }
    };
#if defined(__CUDA_ARCH__)
    PLANLOOM_INLINE Iterator begin() const
    {
        return {static_cast<int>(threadIdx.x) % kLanes};
    }
    PLANLOOM_INLINE Iterator end() const
    {
        return {static_cast<int>(threadIdx.x) % kLanes + 1};
    }
#else
    PLANLOOM_INLINE Iterator begin() const
    {
        return {0};
    }
    PLANLOOM_INLINE Iterator end() const
    {
        return {kLanes};
    }
#endif
};

/// Operands of BFloat16: tensor cores from 80 on.
struct BFloat16Operands {
    static constexpr DataType kType = DataType::BFloat16;
    static constexpr int kArchitecture = 80;

    PLANLOOM_INLINE static float value(std::uint32_t bits) { return bitsAs<float>(bits << 16); }
    /// Two rounded floats, the first in the lower half.
    PLANLOOM_INLINE static std::uint32_t pair(float low, float high)
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        std::uint32_t packed;
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
        return packed;
#else
        return keptBits(bitsAs<std::uint32_t>(low), 16) >> 16 | keptBits(bitsAs<std::uint32_t>(high), 16);
#endif
    }
#if defined(__CUDA_ARCH__)
    PLANLOOM_INLINE static void multiplyAdd(
        float *c, const std::uint32_t *a, std::uint32_t first, std::uint32_t second)
    {
#if __CUDA_ARCH__ >= 800
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(first), "r"(second));
#else
        (void)c, (void)a, (void)first, (void)second;
        __trap(); // never launched: `kArchitecture`
#endif
    }
#endif
};

/// Operands of Float16: tensor cores from 75 on.
struct Float16Operands {
    static constexpr DataType kType = DataType::Float16;
    static constexpr int kArchitecture = 75;

    PLANLOOM_INLINE static float value(std::uint32_t bits)
    {
        return floatOfHalf(static_cast<std::uint16_t>(bits));
    }
    PLANLOOM_INLINE static std::uint32_t pair(float low, float high)
    {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
        std::uint32_t packed;
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
        return packed;
#elif defined(__CUDA_ARCH__)
        std::uint32_t packed;
        asm("{.reg .f16 low, high;\n\t"
            "cvt.rn.f16.f32 low, %1;\n\t"
            "cvt.rn.f16.f32 high, %2;\n\t"
            "mov.b32 %0, {low, high};}"
            : "=r"(packed)
            : "f"(low), "f"(high));
        return packed;
#else
        return static_cast<std::uint32_t>(halfOfFloat(high)) << 16 | halfOfFloat(low);
#endif
    }
#if defined(__CUDA_ARCH__)
    PLANLOOM_INLINE static void multiplyAdd(
        float *c, const std::uint32_t *a, std::uint32_t first, std::uint32_t second)
    {
#if __CUDA_ARCH__ >= 800
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(first), "r"(second));
#else
        // The left and right halves of `a` are matrices of m16n8k8 as they are, so are those of `b`.
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[0]), "r"(a[1]), "r"(first));
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[2]), "r"(a[3]), "r"(second));
#endif
    }
#endif
};

/// From which on code has tensor cores for operands of `type`: BFloat16 or Float16.
constexpr std::int32_t matrixArchitecture(DataType type)
{
    return type == DataType::BFloat16 ? BFloat16Operands::kArchitecture : Float16Operands::kArchitecture;
}

/// c [16 8], the four floats of `c` from `cAt` on, += a b: `a` [16 16] is the four registers from `aAt` on,
/// `b` [16 8] the two from `bAt` on.
template<typename Operands, int C, int A, int B>
PLANLOOM_INLINE void multiplyAdd(
    WarpFloats<C> &c, int cAt, const WarpPairs<A> &a, int aAt, const WarpPairs<B> &b, int bAt)
{
#if defined(__CUDA_ARCH__)
    Operands::multiplyAdd(&c.own[cAt], &a.own[aAt], b.own[bAt], b.own[bAt + 1]);
#else
    float left[16][16];
    float right[16][8];
    for (const int lane : Lanes{}) {
        for (int i = 0; i < kElementsOfA; ++i) {
            const MatrixPlace place = placeInA(lane, i);
            left[place.row][place.column] = Operands::value(a[lane][aAt + i / 2] >> i % 2 * 16 & 0xffffu);
        }
        for (int i = 0; i < kElementsOfB; ++i) {
            const MatrixPlace place = placeInB(lane, i);
            right[place.row][place.column] = Operands::value(b[lane][bAt + i / 2] >> i % 2 * 16 & 0xffffu);
        }
    }
    for (const int lane : Lanes{})
        for (int i = 0; i < kElementsOfC; ++i) {
            const MatrixPlace place = placeInC(lane, i);
            for (int k = 0; k < 16; ++k)
                c[lane][cAt + i] += left[place.row][k] * right[k][place.column];
        }
#endif
}

/// Four matrices [8 8], each to be a register of all lanes: row r of matrix i is the 8 elements that lane
/// 8 i + r names, 16 bytes in the memory of the block. Transposed, or as they are.
template<bool kTransposed>
PLANLOOM_INLINE void loadMatrices(WarpPairs<4> &to, const PerLane<const std::uint16_t *> &rows)
{
#if defined(__CUDA_ARCH__)
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(rows.own));
    if (kTransposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to.own[0]), "=r"(to.own[1]), "=r"(to.own[2]), "=r"(to.own[3])
                     : "r"(address)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                     : "=r"(to.own[0]), "=r"(to.own[1]), "=r"(to.own[2]), "=r"(to.own[3])
                     : "r"(address)
                     : "memory");
#else
    for (const int lane : Lanes{})
        for (int i = 0; i < 4; ++i) {
            const int across = lane / 4;
            const int along = lane % 4 * 2;
            const std::uint32_t low = kTransposed ? rows[8 * i + along][across] : rows[8 * i + across][along];
            const std::uint32_t high =
                kTransposed ? rows[8 * i + along + 1][across] : rows[8 * i + across][along + 1];
            to[lane][i] = low | high << 16;
        }
#endif
}

/// Rows of 16-bit elements in the memory of a block. Their chunks of 16 bytes are swapped such that eight
/// lanes which read the same chunk of eight rows meet in no bank.
template<int kWidth> struct SharedRows {
    static_assert(kWidth % 32 == 0);
    static constexpr int kChunks = kWidth / 8; ///< Of a row.

    std::uint16_t *elements = nullptr;

    PLANLOOM_INLINE std::uint16_t *chunk(int row, int chunk) const
    {
        const int swapped = chunk ^ (kWidth % 64 == 0 ? row & 7 : row >> 1 & 3);
        return elements + row * kWidth + swapped * 8;
    }

    /// a [16 16]: what stands from `row` and `column` on.
    PLANLOOM_INLINE void loadA(WarpPairs<4> &a, int row, int column) const
    {
        PerLane<const std::uint16_t *> from;
        for (const int lane : Lanes{})
            from[lane] = chunk(row + lane / 8 % 2 * 8 + lane % 8, column / 8 + lane / 16);
        loadMatrices<false>(a, from);
    }
    /// Two matrices b [16 8] whose columns are these rows from `row` on, and those from `row` + 8 on.
    PLANLOOM_INLINE void loadColumns(WarpPairs<4> &b, int row, int column) const
    {
        PerLane<const std::uint16_t *> from;
        for (const int lane : Lanes{})
            from[lane] = chunk(row + lane / 16 * 8 + lane % 8, column / 8 + lane / 8 % 2);
        loadMatrices<false>(b, from);
    }
    /// Two matrices b [16 8]: what stands from `row` and `column` on, and from `column` + 8 on.
    PLANLOOM_INLINE void loadRows(WarpPairs<4> &b, int row, int column) const
    {
        PerLane<const std::uint16_t *> from;
        for (const int lane : Lanes{})
            from[lane] = chunk(row + lane / 8 % 2 * 8 + lane % 8, column / 8 + lane / 16);
        loadMatrices<true>(b, from);
    }
};

/// Two matrices c [16 8] beside each other, eight floats from `cAt` on, become one a [16 16]: their lanes
/// hold the same elements.
template<typename Operands, int C, int A>
PLANLOOM_INLINE void packAsA(const WarpFloats<C> &c, int cAt, WarpPairs<A> &a, int aAt)
{
    for (const int lane : Lanes{}) {
        PLANLOOM_UNROLL
        for (int i = 0; i < 4; ++i)
            a[lane][aAt + i] = Operands::pair(c[lane][cAt + 2 * i], c[lane][cAt + 2 * i + 1]);
    }
}

/// Joins what the four lanes have that hold one row of a matrix c; all four get it. In a fixed order.
template<int N, typename Join> PLANLOOM_INLINE void joinRows(WarpFloats<N> &values, Join join)
{
    PLANLOOM_UNROLL
    for (int distance = 1; distance < 4; distance *= 2) {
        WarpFloats<N> other;
        PLANLOOM_UNROLL
        for (int i = 0; i < N; ++i) {
#if defined(__CUDA_ARCH__)
            other.own[i] = __shfl_xor_sync(0xffffffffu, values.own[i], distance);
#else
            for (const int lane : Lanes{})
                other[lane][i] = values[lane ^ distance][i];
#endif
        }
        for (const int lane : Lanes{}) {
            PLANLOOM_UNROLL
            for (int i = 0; i < N; ++i)
                values[lane][i] = join(values[lane][i], other[lane][i]);
        }
    }
}

/// 2^x, to about two units in the last place.
PLANLOOM_INLINE float fastPowerOfTwo(float x)
{
#if defined(__CUDA_ARCH__)
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(x));
    return power;
#else
    return exp2f(x);
#endif
}

/// a / b, likewise.
PLANLOOM_INLINE float fastQuotient(float a, float b)
{
#if defined(__CUDA_ARCH__)
    return __fdividef(a, b);
#else
    return a / b;
#endif
}

} // namespace planloom
