#pragma once

#include <QtCore/QPointer>
#include <QtCore/QString>
#include <QtWidgets/QWidget>

#include "widgets/common/selection_model.h"
#include "widgets/design/gesture_host.h"

#include <vector>

class QAction;
class QLabel;
class QToolButton;

namespace planloom {

/// The annotation of the selected operator as chips: a button for each dimension that opens the numbers it
/// can be split by. Going over a number shows its ghost, choosing one writes the row. What may not be split
/// says why.
class ChipBar : public QWidget
{
    Q_OBJECT
public:
    ChipBar(GestureHost *host, SelectionModel *selection, QWidget *parent = nullptr);

    const std::vector<QToolButton *> &buttons() const { return m_buttons; }

private:
    void refresh();
    void clear();
    QToolButton *addButton(const QString &text, const QString &name);
    SplitGesture gestureFor(
        SplitKind kind, std::int32_t dimension, std::int32_t parts, const std::string &axis) const;
    void addChoice(QToolButton *button, const QString &text, const SplitGesture &gesture);

    void showGhost();

    GestureHost *m_host;
    SelectionModel *m_selection;
    std::vector<OperatorId> m_operators; ///< Forward ones that are selected.
    QLabel *m_hint;
    QWidget *m_flow;
    std::vector<QToolButton *> m_buttons;
    QPointer<QAction> m_hovered; ///< Whose ghost is being asked for.
    QString m_hoveredText; ///< Without what the ghost says.
};

} // namespace planloom
