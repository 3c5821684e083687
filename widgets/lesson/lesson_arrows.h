#pragma once

#include <QtCore/QTimer>
#include <QtWidgets/QWidget>

#include <functional>
#include <optional>
#include <vector>

namespace planloom {

/// Sentences with arrows at places of a window, which they follow while it is scrolled, zoomed and laid out
/// anew. Lies over the window and takes neither mouse nor keyboard.
class LessonArrows : public QWidget
{
    Q_OBJECT
public:
    /// Something to point at.
    struct Target {
        QString words{};
        /// Where it is now, in the window's coordinates; nothing while it is out of sight.
        std::function<std::optional<QRect>()> place{};
    };

    explicit LessonArrows(QWidget *window);

    void setTargets(std::vector<Target> targets);
    /// The sentence's box of each target that is in sight, in the window's coordinates.
    const std::vector<QRect> &boxes() const { return m_boxes; }
    /// Looks where the targets are now; the timer does so all the time.
    void follow();

protected:
    void paintEvent(QPaintEvent *event) override;
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    QRect boxFor(const QString &words, const QRect &target, const std::vector<QRect> &taken) const;
    QRegion coveredRegion() const;
    void takePlaces();

    std::vector<Target> m_targets;
    std::vector<std::optional<QRect>> m_places;
    std::vector<QRect> m_boxes; ///< Of `m_places` with a place.
    QTimer m_timer;
};

} // namespace planloom
