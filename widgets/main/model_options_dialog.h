#pragma once

#include <QtWidgets/QDialog>

#include "engine/design/models/model_options.h"

class QCheckBox;
class QComboBox;
class QDialogButtonBox;
class QLabel;
class QLineEdit;

namespace planloom {

/// Asks how the model is to be trained, or whether it is planned for inference. Sizes of dimensions and the
/// loss are shown, not changed: they were chosen for a file.
class ModelOptionsDialog : public QDialog
{
    Q_OBJECT
public:
    ModelOptionsDialog(const ModelOptions &options, QWidget *parent);
    /// As the fields say. @return InvalidInput for a number that is none
    Result<ModelOptions> options() const;

Q_SIGNALS:
    void chosen(const planloom::ModelOptions &options);

private:
    void refresh();

    ModelOptions m_before;
    QCheckBox *m_training;
    QComboBox *m_optimizer;
    QLineEdit *m_learningRate;
    QLineEdit *m_weightDecay;
    QLineEdit *m_clipNorm;
    QLineEdit *m_capacity;
    QLabel *m_wrong;
    QDialogButtonBox *m_buttons;
};

} // namespace planloom
