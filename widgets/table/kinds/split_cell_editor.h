#pragma once

#include "widgets/table/cell_editors.h"

namespace planloom {

/// "batch by 2 over dp": dimension, number and mesh axis of one split.
class SplitCellEditor : public CellEditor
{
    Q_OBJECT
public:
    /// @param withAxis  false for co-shards, which run over none
    SplitCellEditor(bool withAxis, QWidget *parent);

    QString text() const override;
    void setText(const QString &text) override;
    void setChoices(const ValueChoices &choices) override;
    static bool canShow(const std::string &text);
    QComboBox *dimension() const { return m_dimension; }
    QComboBox *parts() const { return m_parts; }
    QComboBox *axis() const { return m_axis; }

private:
    void fillParts();

    QComboBox *m_dimension;
    QComboBox *m_parts;
    QComboBox *m_axis = nullptr;
    ValueChoices m_choices;
};

} // namespace planloom
