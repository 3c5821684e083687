#pragma once

#include <QtCore/QFutureWatcher>
#include <QtWidgets/QWidget>

#include "engine/analyse/communication.h"
#include "widgets/compare/compare_result.h"

#include <memory>
#include <stop_token>

class QComboBox;
class QLabel;

namespace planloom {

class MatrixView;

/// Who sends what to whom in two plans: the matrices of A, of B, and what B has more or less (ux.md,
/// section 4.6, point 6). Worked out on a worker, once it is looked at.
class CommunicationCompare : public QWidget
{
    Q_OBJECT
public:
    explicit CommunicationCompare(QWidget *parent = nullptr);
    ~CommunicationCompare() override;

    void setResult(CompareSnapshot result);
    bool isSettled() const { return !m_busy && !m_outdated; }
    MatrixView *matrixOfA() const { return m_a; }
    MatrixView *matrixOfB() const { return m_b; }
    MatrixView *difference() const { return m_difference; }

protected:
    void showEvent(QShowEvent *event) override;

private:
    struct Matrices {
        std::shared_ptr<const CommunicationMatrix> a{};
        std::shared_ptr<const CommunicationMatrix> b{};
    };
    void workOut();
    void refresh();

    CompareSnapshot m_result;
    bool m_outdated = false; ///< While hidden.
    bool m_busy = false; ///< Until what is worked out is shown.
    Matrices m_matrices;
    QFutureWatcher<Matrices> m_watcher{this};
    std::stop_source m_stop;
    QComboBox *m_kinds;
    QComboBox *m_measure;
    QLabel *m_sum;
    MatrixView *m_a;
    MatrixView *m_b;
    MatrixView *m_difference;
};

} // namespace planloom
