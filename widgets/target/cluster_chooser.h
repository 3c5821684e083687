#pragma once

#include <QtWidgets/QComboBox>

#include <string>

namespace planloom {

/// What a design is planned for: one of the profiles, this machine, or a cluster of a file. Those of files
/// that were shown stay in the list.
class ClusterChooser : public QComboBox
{
    Q_OBJECT
public:
    explicit ClusterChooser(QWidget *parent = nullptr);

    /// The design's. Says nothing. @param json  empty for profiles
    void showCluster(const std::string &name, const std::string &json);

Q_SIGNALS:
    void chosen(const std::string &name, const std::string &json);
    void machineAsked(); ///< What it is has to be found first.
    void fileAsked();
    void measurementsAsked();

protected:
    void wheelEvent(QWheelEvent *event) override; ///< Rolling by doesn't plan anew.

private:
    int indexOf(const QString &name, const QByteArray &json) const;
    void onActivated(int index);

    int m_shown = -1;
};

} // namespace planloom
