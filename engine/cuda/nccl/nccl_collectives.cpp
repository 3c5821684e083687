#include "engine/cuda/nccl/nccl_collectives.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

namespace {

std::size_t sizeOfBuffer(const CollectiveBuffer &buffer)
{
    return static_cast<std::size_t>(elementCount(buffer.shape) * sizeOf(buffer.type));
}

struct Reduction {
    NcclType type{};
    NcclReduction reduction{};
};

/// What NCCL does for a reduction; nothing if it has none that keeps what it means.
std::optional<Reduction> reductionOf(DataType type, Combination combination)
{
    std::optional<NcclType> known;
    switch (type) {
    case DataType::Float32:
        known = NcclType::Float32;
        break;
    case DataType::Float16:
        known = NcclType::Float16;
        break;
    case DataType::BFloat16:
        known = NcclType::BFloat16;
        break;
    case DataType::Float64:
        known = NcclType::Float64;
        break;
    case DataType::Int64:
        known = NcclType::Int64;
        break;
    case DataType::Int32:
        known = NcclType::Int32;
        break;
    case DataType::Int8:
        known = NcclType::Int8;
        break;
    case DataType::UInt8:
        known = NcclType::UInt8;
        break;
    default:
        break;
    }
    if (!known)
        return std::nullopt;
    if (combination == Combination::Sum)
        return Reduction{*known, NcclReduction::Sum};
    if (combination == Combination::Max && !isFloating(type))
        return Reduction{*known, NcclReduction::Max};
    return std::nullopt;
}

bool isEven(const std::vector<std::int64_t> &extents)
{
    return std::all_of(
        extents.begin(), extents.end(), [&](std::int64_t extent) { return extent == extents.front(); });
}

/// A tensor cut along one dimension, each piece dense and all one after another: in its own memory where they
/// lie so anyway, else in scratch memory.
class Pieces
{
public:
    static Result<Pieces> of(CudaQueue &queue, const CollectiveBuffer &whole, std::int32_t dimension,
        const std::vector<std::int64_t> &extents)
    {
        Pieces pieces;
        pieces.m_whole = &whole;
        pieces.m_dimension = static_cast<std::size_t>(dimension);
        pieces.m_extents = &extents;
        std::int64_t outer = 1;
        for (std::size_t i = 0; i < pieces.m_dimension; ++i)
            outer *= whole.shape[i];
        pieces.m_inPlace = outer == 1;
        pieces.m_begin = whole.data;
        if (!pieces.m_inPlace) {
            TRY(pieces.m_begin, queue.scratch().take(sizeOfBuffer(whole)));
        }
        Shape shape = whole.shape;
        std::byte *at = pieces.m_begin;
        for (const std::int64_t extent : extents) {
            shape[pieces.m_dimension] = extent;
            const auto bytes = static_cast<std::size_t>(elementCount(shape) * sizeOf(whole.type));
            pieces.m_pieces.emplace_back(at, bytes);
            at += bytes;
        }
        return pieces;
    }

    std::byte *begin() const { return m_begin; }
    const std::vector<std::pair<std::byte *, std::size_t>> &pieces() const { return m_pieces; }

    /// From the tensor to the pieces,
    void pack(CudaQueue &queue) const { move(queue, true); }
    /// and back.
    void unpack(CudaQueue &queue) const { move(queue, false); }

private:
    void move(CudaQueue &queue, bool pack) const
    {
        if (m_inPlace)
            return;
        const IndexMask whole = wholeMask(m_whole->shape);
        const std::int64_t size = sizeOf(m_whole->type);
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < m_pieces.size(); ++k) {
            IndexMask piece = whole;
            piece.ranges[m_dimension] = {offset, offset + (*m_extents)[k]};
            offset += (*m_extents)[k];
            if (pack)
                queue.copyBox(m_whole->data, whole, m_pieces[k].first, piece, piece, size);
            else
                queue.copyBox(m_pieces[k].first, piece, m_whole->data, whole, piece, size);
        }
    }

    const CollectiveBuffer *m_whole = nullptr;
    std::size_t m_dimension = 0;
    const std::vector<std::int64_t> *m_extents = nullptr;
    bool m_inPlace = false;
    std::byte *m_begin = nullptr;
    std::vector<std::pair<std::byte *, std::size_t>> m_pieces{};
};

class Launch
{
public:
    Launch(const NcclMember &member, const CollectiveCall &call, const NcclPieces &pieces, CudaQueue &queue)
        : m_member(member)
        , m_nccl(member.nccl)
        , m_call(call)
        , m_pieces(pieces)
        , m_queue(queue)
    {
    }

    Result<void> run()
    {
        m_queue.scratch().begin();
        if (m_member.ranks == 1) {
            if (m_call.out.data != nullptr && m_call.out.data != m_call.in.data)
                m_queue.copy(m_call.out.data, m_call.in.data, sizeOfBuffer(m_call.in));
            return m_queue.outcome();
        }
        switch (m_call.kind) {
        case InstructionKind::AllReduce:
            return allReduce();
        case InstructionKind::AllGather:
            return allGather();
        case InstructionKind::ReduceScatter:
            return reduceScatter();
        case InstructionKind::AllToAll:
            return allToAll();
        case InstructionKind::Broadcast:
            return broadcast();
        default: // Shift; others do not fit
            return shift();
        }
    }

private:
    using PieceList = std::vector<std::pair<std::byte *, std::size_t>>;

    std::size_t ranks() const { return static_cast<std::size_t>(m_member.ranks); }
    std::size_t rank() const { return static_cast<std::size_t>(m_member.rank); }

    Result<void> allReduce()
    {
        const auto count = static_cast<std::size_t>(elementCount(m_call.in.shape));
        if (const auto reduction = reductionOf(m_call.in.type, m_call.combination))
            return m_member.through("ncclAllReduce",
                m_nccl->allReduce(m_call.in.data, m_call.out.data, count, reduction->type,
                    reduction->reduction, m_member.comm, m_queue.stream()));
        const std::size_t bytes = sizeOfBuffer(m_call.in);
        TRY(std::byte *const all, m_queue.scratch().take(ranks() * bytes));
        TRY_VOID(gatherBytes(all, bytes));
        PieceList parts;
        for (std::size_t k = 0; k < ranks(); ++k)
            parts.emplace_back(all + k * bytes, bytes);
        return combine(parts, count);
    }

    Result<void> allGather()
    {
        TRY(const auto out, Pieces::of(m_queue, m_call.out, m_call.dimension, m_pieces.cut));
        if (isEven(m_pieces.cut)) {
            TRY_VOID(gatherBytes(out.begin(), sizeOfBuffer(m_call.in)));
        } else {
            TRY_VOID(exchange(PieceList(ranks(), {m_call.in.data, sizeOfBuffer(m_call.in)}), out.pieces()));
        }
        out.unpack(m_queue);
        return m_queue.outcome();
    }

    Result<void> reduceScatter()
    {
        TRY(const auto in, Pieces::of(m_queue, m_call.in, m_call.dimension, m_pieces.cut));
        in.pack(m_queue);
        TRY_VOID(m_queue.outcome());
        const auto count = static_cast<std::size_t>(elementCount(m_call.out.shape));
        const auto reduction = reductionOf(m_call.in.type, m_call.combination);
        if (reduction && isEven(m_pieces.cut))
            return m_member.through("ncclReduceScatter",
                m_nccl->reduceScatter(in.begin(), m_call.out.data, count, reduction->type,
                    reduction->reduction, m_member.comm, m_queue.stream()));
        const std::size_t bytes = sizeOfBuffer(m_call.out);
        TRY(std::byte *const all, m_queue.scratch().take(ranks() * bytes));
        PieceList parts;
        for (std::size_t k = 0; k < ranks(); ++k)
            parts.emplace_back(all + k * bytes, bytes);
        TRY_VOID(exchange(in.pieces(), parts));
        return combine(parts, count);
    }

    Result<void> allToAll()
    {
        TRY(const auto in, Pieces::of(m_queue, m_call.in, m_call.dimension, m_pieces.cut));
        TRY(const auto out, Pieces::of(m_queue, m_call.out, m_call.gatherDimension, m_pieces.joined));
        in.pack(m_queue);
        TRY_VOID(m_queue.outcome());
        TRY_VOID(exchange(in.pieces(), out.pieces()));
        out.unpack(m_queue);
        return m_queue.outcome();
    }

    Result<void> broadcast()
    {
        const CollectiveBuffer &own = m_member.rank == 0 ? m_call.in : m_call.out;
        std::byte *const to = m_call.out.data == nullptr ? own.data : m_call.out.data;
        return m_member.through("ncclBroadcast",
            m_nccl->broadcast(
                own.data, to, sizeOfBuffer(own), NcclType::Int8, 0, m_member.comm, m_queue.stream()));
    }

    Result<void> shift()
    {
        PieceList to(ranks());
        PieceList from(ranks());
        to[(rank() + 1) % ranks()] = {m_call.in.data, sizeOfBuffer(m_call.in)};
        from[(rank() + ranks() - 1) % ranks()] = {m_call.out.data, sizeOfBuffer(m_call.out)};
        return exchange(to, from);
    }

    Result<void> gatherBytes(std::byte *all, std::size_t bytes)
    {
        return m_member.through("ncclAllGather",
            m_nccl->allGather(m_call.in.data, all, bytes, NcclType::Int8, m_member.comm, m_queue.stream()));
    }

    /// Piece k of `to` to member k, and what that one has for this to piece k of `from`, all at once.
    Result<void> exchange(const PieceList &to, const PieceList &from)
    {
        m_queue.copy(from[rank()].first, to[rank()].first, to[rank()].second);
        TRY_VOID(m_queue.outcome());
        NcclStatus status = m_nccl->groupStart();
        const auto put = [&](NcclStatus next) {
            if (status == kNcclSuccess && next != kNcclInProgress)
                status = next;
        };
        for (std::size_t k = 0; k < ranks(); ++k) {
            const auto peer = static_cast<std::int32_t>(k);
            if (k != rank() && to[k].second > 0)
                put(m_nccl->send(
                    to[k].first, to[k].second, NcclType::Int8, peer, m_member.comm, m_queue.stream()));
            if (k != rank() && from[k].second > 0)
                put(m_nccl->receive(
                    from[k].first, from[k].second, NcclType::Int8, peer, m_member.comm, m_queue.stream()));
        }
        // Ended in any case: what comes after it would belong to it.
        const NcclStatus ended = m_nccl->groupEnd();
        return m_member.through("ncclSend and ncclRecv", status == kNcclSuccess ? ended : status);
    }

    Result<void> combine(const PieceList &parts, std::size_t count)
    {
        std::vector<const std::byte *> from;
        for (const auto &[data, bytes] : parts)
            from.push_back(data);
        if (!m_queue.combine(m_call.out.data, from, count, m_call.in.type, m_call.combination))
            return Error{ErrorCode::NotSupported,
                std::string{"values of type "} + nameOf(m_call.in.type) + " cannot be combined by "
                    + nameOf(m_call.combination),
                {}, {}};
        return m_queue.outcome();
    }

    const NcclMember &m_member;
    NcclFunctions *m_nccl;
    const CollectiveCall &m_call;
    const NcclPieces &m_pieces;
    CudaQueue &m_queue;
};

} // namespace

Result<void> launchCollective(
    const NcclMember &member, const CollectiveCall &call, const NcclPieces &pieces, CudaQueue &queue)
{
    return Launch{member, call, pieces, queue}.run();
}

} // namespace planloom
