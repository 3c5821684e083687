#pragma once

#include <QtWidgets/QWidget>

#include "engine/runtime/training/training_run.h"

class QComboBox;
class QFormLayout;
class QLabel;
class QLineEdit;
class QSpinBox;
class QToolButton;

namespace planloom {

/// How a run trains: its data, learning rate and checkpoints, in few lines.
class TrainingForm : public QWidget
{
    Q_OBJECT
public:
    explicit TrainingForm(QWidget *parent = nullptr);

    /// As the fields say; paths absolute. What is resumed is no field, and empty.
    TrainingRun training() const;
    void setTraining(const TrainingRun &training);
    /// What is wrong with the fields; empty if nothing is.
    QString problem() const;

Q_SIGNALS:
    void changed();

private:
    void refresh();
    void choosePath(QLineEdit *edit, bool folder);

    QFormLayout *m_form;
    QComboBox *m_batches;
    QWidget *m_dataRow;
    QLineEdit *m_data;
    QToolButton *m_browseData;
    QLineEdit *m_rate;
    QComboBox *m_shape;
    QSpinBox *m_warmup;
    QLineEdit *m_checkpoints;
    QSpinBox *m_every;
    QLabel *m_problem; ///< What is wrong, below the fields.
};

} // namespace planloom
