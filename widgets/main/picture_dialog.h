#pragma once

#include <QtWidgets/QDialog>

#include "widgets/main/picture_export.h"

class QComboBox;
class QDoubleSpinBox;

namespace planloom {

/// How much of a canvas is in a picture.
enum class PicturePart : std::uint8_t {
    Whole, ///< The whole model; the whole step.
    InSight,
    Selection, ///< Around what is selected.
};

/// What of the window is to be a picture, and what kind of one.
struct PictureChoice {
    bool timeline = false; ///< Else the DAG.
    PicturePart part = PicturePart::Whole;
    PictureTheme theme = PictureTheme::Light;
    QString suffix = QStringLiteral("png"); ///< "png", "svg" or "pdf".
    double scale = 2; ///< Pixels per unit, for PNG.
};

/// Asks what to export as a picture.
class PictureDialog : public QDialog
{
    Q_OBJECT
public:
    /// @param selection  something is selected, so that it can be the picture
    PictureDialog(bool selection, QWidget *parent);
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
