#pragma once

#include "engine/base/result.h"
#include "engine/design/models/target.h"
#include "sessions/history.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace planloom {

/// A cluster as its file describes it.
struct ClusterFile {
    std::string name{}; ///< Of the file, without folder and ending.
    std::string json{}; ///< All it holds.
    std::int32_t deviceCount = 0; ///< 0 if it leaves that open.
};

/// Reads and checks a file. Waits for the disk.
/// @return as clusterFileText and clusterFromJson; `where` begins with the path
Result<ClusterFile> readClusterFile(const std::string &path);

/// The named values that say what cluster a design is for: "cluster", its name, and for one that is no
/// profile "cluster-json", all that its file held, so that a session can be opened where that file is not
/// (ux.md, F58).
///
/// @param nameOrPath  of a profile, or a path, each perhaps with a framework behind it (framework.h); a file
/// that is no cluster is passed on by its path, and the engine says why
/// @param json  what is known of the file already; empty reads it
std::map<std::string, std::string> clusterValues(const std::string &nameOrPath, const std::string &json);

/// A cluster that a session of old names by its path, with what the file held beside the design.
struct StoredCluster {
    std::string path{};
    std::string json{};
};

/// What a design with `values` is for; where they don't say, `otherwise`.
TargetChoice targetOf(const std::map<std::string, std::string> &values, const StoredCluster &stored,
    const TargetChoice &otherwise);

/// What has a design with `values` be for `wanted`: a cluster as `clusterValues` names it, and "devices".
std::vector<ValueChange> targetChanges(
    const std::map<std::string, std::string> &values, const std::map<std::string, std::string> &wanted);

} // namespace planloom
