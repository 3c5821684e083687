#pragma once

#include <QtCore/QObject>

#include "engine/base/ids.h"

#include <vector>

namespace planloom {

/// The operators that are selected and the one under the pointer, shared by all views of a window.
///
/// Views write user actions here and draw what they find here; a change reports once, to everyone.
class SelectionModel : public QObject
{
    Q_OBJECT
public:
    explicit SelectionModel(QObject *parent = nullptr);

    /// Selected operators, ascending, each once.
    const std::vector<OperatorId> &selected() const { return m_selected; }
    bool contains(OperatorId id) const;
    OperatorId hovered() const { return m_hovered; }

    /// Replaces the selection; order and repetitions do not matter, invalid ids are dropped.
    void select(std::vector<OperatorId> operators);
    /// Adds those that are not selected, removes them all if every one is (Ctrl+click).
    void toggle(const std::vector<OperatorId> &operators);
    void add(const std::vector<OperatorId> &operators);
    void clear();
    void setHovered(OperatorId id);

Q_SIGNALS:
    void selectionChanged();
    void hoveredChanged();

private:
    std::vector<OperatorId> m_selected;
    OperatorId m_hovered;
};

} // namespace planloom
