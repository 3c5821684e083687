#pragma once

#include <QtWidgets/QFrame>

#include "widgets/timeline/timeline_panel_text.h"

class QLabel;
class QToolButton;
class QTreeWidget;

namespace planloom {

/// A table beside the timeline's lanes: the figures of a box, or why a device is idle. Escape or its button
/// closes it.
class TimelinePanel : public QFrame
{
    Q_OBJECT
public:
    explicit TimelinePanel(QWidget *timeline);

    void open(PanelTable table);
    const PanelTable &table() const { return m_table; }
    /// How much of a timeline of this width it takes: as its columns need, never more than half.
    int widthBeside(int timeline) const;

Q_SIGNALS:
    /// A line about a span was chosen.
    void spanChosen(std::int64_t row);
    void copyWanted();
    void closed();

protected:
    void keyPressEvent(QKeyEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    void fitColumns();

    PanelTable m_table;
    QLabel *m_title;
    QTreeWidget *m_tree;
    QToolButton *m_copy;
    QToolButton *m_close;
};

} // namespace planloom
