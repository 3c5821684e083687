#pragma once

#include "engine/hardware/cluster.h"
#include "engine/search/solver.h"
#include "engine/table/model.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

namespace planloom {

/// What searches found, by all that they were asked: model, cluster, devices, precision and rows. One file
/// for each answer, named by a digest of the question, so that windows, programs and later sessions share
/// them.
///
/// Files are read with suspicion: what is cut off, changed, too large, of another version or says what cannot
/// be is taken away and searched again. A plan from here is completed, lowered and simulated as any other,
/// and forgotten where its step is not what was remembered (see make_plan.cpp). Thread-safe; `find` and
/// `remember` wait for the disk.
class SolvedStore
{
public:
    /// @param folder  made when something is to be kept; empty keeps answers in memory alone
    explicit SolvedStore(std::filesystem::path folder = {});

    /// O(model) once for each model, O(rows) afterwards.
    std::string keyOf(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
        PrecisionPreset precision, const ConstraintTable &rows);
    /// Without its plan; nothing if it is not known.
    std::optional<SearchResult> find(const std::string &key);
    /// Keeps the better one where there are two. What cannot be written is kept in memory.
    void remember(const std::string &key, const SearchResult &result);
    void forget(const std::string &key);

private:
    std::filesystem::path fileOf(const std::string &key) const;
    std::string digestOf(const GraphSnapshot &graph);
    void makeRoom() const;

    const std::filesystem::path m_folder;
    std::mutex m_mutex{}; ///< Of those below.
    std::map<std::string, SearchResult> m_known{};
    std::weak_ptr<const Graph> m_graph{}; ///< Whose digest is `m_digest`.
    std::string m_digest{};
};

/// The text of a file of the store, and back.
/// @return InvalidInput for what is no such text, or says what cannot be
std::string solvedText(const SearchResult &result);
Result<SearchResult> solvedOf(const std::string &text);

/// The folder in which a user's answers are kept: "planloom/solved" in $XDG_CACHE_HOME, or in ~/.cache. Empty
/// where neither is known.
std::filesystem::path userSolvedFolder();

} // namespace planloom
