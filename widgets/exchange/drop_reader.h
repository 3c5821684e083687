#pragma once

#include <QtCore/QString>

#include <cstdint>
#include <optional>

class QMimeData;

namespace planloom {

/// What a dropped thing is good for.
enum class DropKind : std::uint8_t {
    Model, ///< An .onnx or .pt2 file.
    Session,
    Cluster, ///< A cluster file.
    Trace, ///< A rank's trace, or a folder with those of several.
    Topology, ///< What a tool says of machines (machine_cluster.h).
    Rows, ///< Text that holds rows of a constraint table, or partition constraints of autodist (.yaml).
    Config, ///< Text that may be a launch script or config of a training framework.
    Unsupported, ///< `reason` says why.
};

struct Dropped {
    DropKind kind = DropKind::Unsupported;
    QString path{}; ///< Of files.
    QString text{}; ///< Of Rows and Config.
    QString reason{}; ///< A sentence, for what can't be used.
};

/// Looks at the names and the first bytes of what is dropped; never reads large files.
Dropped readDrop(const QMimeData &data);
/// The same for a single file.
Dropped readDroppedFile(const QString &path);

} // namespace planloom
