#pragma once

#include "widgets/table/cell_editors.h"

class QDoubleSpinBox;

namespace planloom {

/// "memory 80GiB", "traffic 2GiB per link": an amount with its unit.
class LimitCellEditor : public CellEditor
{
    Q_OBJECT
public:
    explicit LimitCellEditor(QWidget *parent);

    QString text() const override;
    void setText(const QString &text) override;
    static bool canShow(const std::string &text);
    QComboBox *kind() const { return m_kind; }
    QDoubleSpinBox *amount() const { return m_amount; }
    QComboBox *unit() const { return m_unit; }
    QComboBox *links() const { return m_links; } ///< What carries it; of traffic alone.

private:
    void fillUnits();

    QComboBox *m_kind;
    QDoubleSpinBox *m_amount;
    QComboBox *m_unit;
    QComboBox *m_links;
};

} // namespace planloom
