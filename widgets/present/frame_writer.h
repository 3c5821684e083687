#pragma once

#include <QtCore/QRect>
#include <QtCore/QString>
#include <QtGui/QFont>
#include <QtGui/QImage>

#include "engine/base/result.h"
#include "widgets/common/palette.h"
#include "widgets/timeline/timeline_picture.h"

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

class DagStill;

/// One scene of an animation, as its frames are painted from.
struct SceneShot {
    QString caption{};
    QImage timeline{}; ///< Null where it is not seen.
    QRect timelineAt{}; ///< In the frame.
    TimelinePicture picture{}; ///< Of the timeline: where times are in it.
    std::shared_ptr<const DagStill> graph{}; ///< Null where it is not seen.
    QRect graphAt{};
    std::optional<double> begin{}; ///< Nanoseconds: where the playhead is at first; nothing without one,
    double end = 0; ///< and at last.
    double seconds = 0;
};

/// How an animation is written.
struct AnimationFormat {
    QString path{}; ///< .gif or .webm
    QString ffmpeg{}; ///< The program.
    QSize size{};
    Palette palette{};
    QFont font{};
};

/// Where `ffmpeg` is. @return NotFound, with what to do about it
Result<QString> findFfmpeg();

/// Paints the frames and has them packed: the file is there whole or not at all. For workers: it takes its
/// time.
/// @param done  percent of the frames, from 0; may be looked at meanwhile
/// @return Cancelled, Io; then there is no file, or the one that was
Result<void> writeAnimation(const std::vector<SceneShot> &shots, const AnimationFormat &format,
    std::atomic<int> &done, const std::stop_token &stop);

} // namespace planloom
