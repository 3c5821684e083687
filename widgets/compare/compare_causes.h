#pragma once

#include <QtWidgets/QWidget>

#include "widgets/compare/compare_result.h"

#include <vector>

class QLabel;
class QTableWidget;

namespace planloom {

/// Why two plans differ: for each reason the rows of A and of B that make it, how many operators they change
/// and how, and what that does to the time of their kernels. Choosing a reason chooses its operators.
class CompareCauses : public QWidget
{
    Q_OBJECT
public:
    explicit CompareCauses(QWidget *parent = nullptr);

    void setResult(const CompareSnapshot &result);
    int count() const;
    QTableWidget *list() const { return m_list; }

Q_SIGNALS:
    /// Operators of b's graph.
    void operatorsChosen(std::vector<planloom::OperatorId> operators);

private:
    enum Column { RowsA, RowsB, What, Kernels, ColumnCount };

    CompareSnapshot m_result;
    QLabel *m_words = nullptr;
    QTableWidget *m_list = nullptr;
};

} // namespace planloom
