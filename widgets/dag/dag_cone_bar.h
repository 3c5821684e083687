#pragma once

#include <QtWidgets/QFrame>

class QLabel;
class QSlider;

namespace planloom {

/// A small bar on the canvas: how many steps of the data flow a cone reaches.
class DagConeBar : public QFrame
{
    Q_OBJECT
public:
    explicit DagConeBar(QWidget *canvas);

    /// Shows it for a cone of at most `depth` steps (at least 1), all of them chosen.
    void open(bool forwards, int depth);
    void setCount(qsizetype operators);
    int depth() const; ///< From 1.
    bool isWhole() const;
    /// As moving the slider.
    void step(int by);
    void place();

Q_SIGNALS:
    void depthChanged(int depth);
    void closed();

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    void describe();

    QLabel *m_what;
    QSlider *m_depth;
    QLabel *m_text;
    bool m_forwards = true;
    qsizetype m_operators = 0;
};

} // namespace planloom
