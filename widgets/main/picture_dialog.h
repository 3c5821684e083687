#pragma once

#include <QtWidgets/QDialog>

#include "widgets/main/picture_export.h"

class QComboBox;
class QDoubleSpinBox;

namespace planloom {

/// What of the window is to be a picture, and what kind of one.
struct PictureChoice {
    bool timeline = false; ///< Else the DAG.
    bool whole = true; ///< All of the model, or what is in sight (DAG only).
    PictureTheme theme = PictureTheme::Light;
    QString suffix = QStringLiteral("png"); ///< "png", "svg" or "pdf".
    double scale = 2; ///< Pixels per unit, for PNG.
};

/// Asks what to export as a picture.
class PictureDialog : public QDialog
{
    Q_OBJECT
public:
    explicit PictureDialog(QWidget *parent);
    PictureChoice choice() const;
    void setChoice(const PictureChoice &choice);

Q_SIGNALS:
    void chosen(const planloom::PictureChoice &choice);

private:
    QComboBox *m_what;
    QComboBox *m_part;
    QComboBox *m_theme;
    QComboBox *m_format;
    QDoubleSpinBox *m_scale;
};

} // namespace planloom
