#include "engine/runtime/communication/staged_call.h"

#include <cstddef>
#include <cstring>

namespace planloom {

namespace {

std::size_t stagedBytes(const CollectiveBuffer &buffer)
{
    return static_cast<std::size_t>(elementCount(buffer.shape) * sizeOf(buffer.type));
}

} // namespace

bool StagedCall::stage(const CollectiveCall &call, const SharedMemory &memory, Parcels &parcels)
{
    m_call = call;
    CollectiveBuffer &in = m_call.in;
    CollectiveBuffer &out = m_call.out;
    const bool inPlace = in.data == out.data;
    const auto replace = [&](CollectiveBuffer &buffer, CollectiveBuffer &original) {
        if (buffer.data == nullptr || memory.holds(buffer.data))
            return true;
        original = buffer;
        buffer.data = parcels.pack(stagedBytes(buffer));
        return buffer.data != nullptr;
    };
    if (!replace(in, m_source))
        return false;
    if (m_source.data != nullptr)
        std::memcpy(in.data, m_source.data, stagedBytes(in));
    if (inPlace && m_source.data != nullptr) {
        m_target = out;
        out.data = in.data;
        return true;
    }
    return replace(out, m_target);
}

void StagedCall::unstage(bool copyBack)
{
    const std::byte *const in = m_call.in.data;
    const std::byte *const out = m_call.out.data;
    if (m_target.data != nullptr && copyBack)
        std::memcpy(m_target.data, out, stagedBytes(m_target));
    if (m_source.data != nullptr)
        Parcels::release(in);
    if (m_target.data != nullptr && out != in)
        Parcels::release(out);
}

} // namespace planloom
