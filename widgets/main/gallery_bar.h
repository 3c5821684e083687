#pragma once

#include <QtWidgets/QWidget>

#include <string>

class QComboBox;

namespace planloom {

/// One line to choose a gallery plan and edit its parameters: "3d:dp=2,tp=2,pp=2,schedule=1f1b".
///
/// Choosing an entry applies it with parameters that suit the number of devices; Return applies what is typed.
class GalleryBar : public QWidget
{
    Q_OBJECT
public:
    explicit GalleryBar(QWidget *parent = nullptr);

    void setDeviceCount(int devices);
    void setSpec(const QString &spec);
    QString spec() const;
    QComboBox *combo() const { return m_combo; }

Q_SIGNALS:
    void chosen(QString spec);

private:
    void fill();

    QComboBox *m_combo;
    int m_devices = 1;
};

/// Parameters that suit `devices` for the gallery plan `name`: "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4".
std::string gallerySpecFor(const std::string &name, int devices);

} // namespace planloom
