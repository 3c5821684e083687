#include "widgets/present/frame_writer.h"

#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtCore/QProcess>
#include <QtCore/QStandardPaths>
#include <QtGui/QPainter>

#include "widgets/dag/dag_decor.h"
#include "widgets/dag/dag_still.h"
#include "widgets/timeline/timeline_overlay_painter.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr int kFramesOfGif = 8; ///< A second.
constexpr int kFramesOfVideo = 20;
constexpr int kWaitMilliseconds = 20'000; ///< That ffmpeg may take for one frame.

QStringList wordsFor(const AnimationFormat &format, int frames, const QString &part)
{
    QStringList words{QStringLiteral("-v"), QStringLiteral("error"), QStringLiteral("-y"),
        QStringLiteral("-f"), QStringLiteral("rawvideo"), QStringLiteral("-pix_fmt"), QStringLiteral("rgb24"),
        QStringLiteral("-s"), QStringLiteral("%1x%2").arg(format.size.width()).arg(format.size.height()),
        QStringLiteral("-r"), QString::number(frames), QStringLiteral("-i"), QStringLiteral("-")};
    if (format.path.endsWith(QLatin1String(".gif"), Qt::CaseInsensitive))
        // Colours of each frame: those of all would need all frames in memory.
        words << QStringLiteral("-vf")
              << QStringLiteral(
                     "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1:dither=none")
              << QStringLiteral("-f") << QStringLiteral("gif");
    else
        words << QStringLiteral("-c:v") << QStringLiteral("libvpx-vp9") << QStringLiteral("-crf")
              << QStringLiteral("32") << QStringLiteral("-b:v") << QStringLiteral("0")
              << QStringLiteral("-cpu-used") << QStringLiteral("5") << QStringLiteral("-pix_fmt")
              << QStringLiteral("yuv420p") << QStringLiteral("-f") << QStringLiteral("webm");
    return words << part;
}

/// A scene without its playhead.
QImage groundOf(const SceneShot &shot, const AnimationFormat &format)
{
    QImage ground(format.size, QImage::Format_RGB888);
    ground.fill(format.palette.canvas);
    QPainter painter(&ground);
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    QFont font = format.font;
    font.setPixelSize(26);
    font.setBold(true);
    painter.setFont(font);
    painter.setPen(format.palette.text);
    painter.drawText(QRect(18, 0, format.size.width() - 36, 48), Qt::AlignVCenter | Qt::AlignLeft,
        QFontMetrics(font).elidedText(shot.caption, Qt::ElideRight, format.size.width() - 36));
    if (!shot.timeline.isNull())
        painter.drawImage(shot.timelineAt.topLeft(), shot.timeline);
    if (shot.graph && !shot.graph->isEmpty()) {
        painter.setClipRect(shot.graphAt);
        painter.setFont(format.font);
        shot.graph->paint(painter, shot.graphAt);
    }
    return ground;
}

/// The same at a moment of the step.
QImage frameAt(const QImage &ground, const SceneShot &shot, const Palette &palette, double time)
{
    QImage frame = ground;
    TimelinePicture picture = shot.picture;
    picture.marked = time;
    QPainter painter(&frame);
    painter.translate(shot.timelineAt.topLeft());
    const QRect canvas = picture.canvas();
    painter.setClipRect(canvas);
    paintToCome(painter, palette, picture);
    painter.fillRect(
        QRectF(canvas.left() + picture.axis.xOf(time) - 1, canvas.top(), 2, canvas.height()), palette.text);
    return frame;
}

/// Takes frames, and makes a file of them.
class Packer
{
public:
    Packer(const AnimationFormat &format, int frames, QString part)
        : m_part(std::move(part))
    {
        m_process.start(format.ffmpeg, wordsFor(format, frames, m_part));
    }
    ~Packer()
    {
        if (m_process.state() != QProcess::NotRunning) {
            m_process.kill();
            m_process.waitForFinished();
        }
        QFile::remove(m_part); // unless it has got its name
    }
    bool take(const QImage &frame)
    {
        const auto wide = static_cast<qsizetype>(frame.width()) * 3;
        for (int y = 0; y < frame.height(); ++y)
            m_process.write(reinterpret_cast<const char *>(frame.constScanLine(y)), wide);
        while (m_process.bytesToWrite() > 0)
            if (!m_process.waitForBytesWritten(kWaitMilliseconds))
                return false;
        return true;
    }
    bool finish()
    {
        m_process.closeWriteChannel();
        return m_process.waitForFinished(-1) && m_process.exitStatus() == QProcess::NormalExit
            && m_process.exitCode() == 0;
    }
    QString complaint()
    {
        m_process.waitForFinished(1000);
        const QString said = QString::fromUtf8(m_process.readAllStandardError()).trimmed();
        return said.isEmpty() ? m_process.errorString() : said.section(QLatin1Char('\n'), -1);
    }

private:
    QString m_part;
    QProcess m_process{};
};

Error notWritten(const QString &path, const QString &why)
{
    return {ErrorCode::Io,
        "the animation \"" + QFileInfo(path).fileName().toStdString()
            + "\" could not be written: " + why.left(300).toStdString(),
        "choose a folder you may write to, or the other format", path.toStdString()};
}

Error animationGivenUp(const QString &path)
{
    return {ErrorCode::Cancelled, "the animation was given up", {}, path.toStdString()};
}

} // namespace

Result<QString> findFfmpeg()
{
    const QString found = QStandardPaths::findExecutable(QStringLiteral("ffmpeg"));
    if (found.isEmpty())
        return Error{ErrorCode::NotFound, "there is no program ffmpeg, which packs animations",
            "install it (on Debian: apt install ffmpeg), or export the talk as a web page, which needs "
            "nothing",
            {}};
    return found;
}

Result<void> writeAnimation(const std::vector<SceneShot> &shots, const AnimationFormat &format,
    std::atomic<int> &done, const std::stop_token &stop)
{
    const bool isGif = format.path.endsWith(QLatin1String(".gif"), Qt::CaseInsensitive);
    const int rate = isGif ? kFramesOfGif : kFramesOfVideo;
    const QString part = format.path + QStringLiteral(".part");
    const auto framesOf = [rate](const SceneShot &shot) {
        return std::max(1, static_cast<int>(std::lround(shot.seconds * rate)));
    };
    int all = 0;
    for (const SceneShot &shot : shots)
        all += framesOf(shot);
    Packer packer(format, rate, part);
    int written = 0;
    for (const SceneShot &shot : shots) {
        const QImage ground = groundOf(shot, format);
        const int frames = framesOf(shot);
        for (int i = 0; i < frames; ++i) {
            if (stop.stop_requested())
                return animationGivenUp(format.path);
            const double share = frames > 1 ? static_cast<double>(i) / (frames - 1) : 0;
            const bool plays = shot.begin && !shot.timeline.isNull();
            if (!packer.take(plays ? frameAt(
                                 ground, shot, format.palette, *shot.begin + share * (shot.end - *shot.begin))
                                   : ground))
                return notWritten(format.path, packer.complaint());
            done = 100 * ++written / all;
        }
    }
    if (stop.stop_requested())
        return animationGivenUp(format.path); // before there was a frame
    if (!packer.finish())
        return notWritten(format.path, packer.complaint());
    QFile::remove(format.path);
    if (!QFile::rename(part, format.path))
        return notWritten(format.path, QStringLiteral("it could not be given its name"));
    return {};
}

} // namespace planloom
