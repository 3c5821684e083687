#pragma once

#include <QtWidgets/QAbstractButton>

#include <cstdint>

namespace planloom {

/// The state of the plan in a rounded label; a click leads to the problems.
class StatusPill : public QAbstractButton
{
    Q_OBJECT
public:
    enum class Mood : std::uint8_t { Quiet, Busy, Good, Proven, Wrong, Paused };

    explicit StatusPill(QWidget *parent = nullptr);
    void setState(Mood mood, const QString &text);
    Mood mood() const { return m_mood; }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override { return sizeHint(); }

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    int margin() const;
    int mark() const;
    void paintMark(QPainter &painter, const QRectF &box, const QColor &colour) const;

    Mood m_mood = Mood::Quiet;
};

} // namespace planloom
