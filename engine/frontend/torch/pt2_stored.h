#pragma once

#include "engine/base/byte_source.h"
#include "engine/base/result.h"
#include "engine/frontend/torch/pt2_archive.h"
#include "engine/frontend/writer/stored_tensor.h"

#include <string>

namespace planloom {

/// How the values of parameters, buffers and constants are had from an archive.
class Pt2Values
{
public:
    /// An archive: its bytes, and its path for what is read later; empty where it is in memory, and all is
    /// read.
    struct Place {
        const ByteSource *source = nullptr;
        std::string path{};
    };
    /// @param beside  the archive with what was left out of the first, if there is one
    Pt2Values(Place archive, Place beside)
        : m_archive(std::move(archive))
        , m_beside(std::move(beside))
    {
    }

    /// The tensor `name` as the importer takes it: where its values lie, or the values themselves where they
    /// are small, in memory, or lie in another order than row by row.
    /// @param type     as the program declares it
    /// @param isSmall  values of up to 1 MiB are read at once
    /// @return InvalidInput if the storage does not hold it
    Result<StoredTensor> stored(
        const std::string &name, const TensorType &type, const Pt2Storage &storage, bool isSmall) const;

private:
    Place m_archive;
    Place m_beside;
};

} // namespace planloom
