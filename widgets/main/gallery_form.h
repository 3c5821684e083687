#pragma once

#include <QtWidgets/QWidget>

#include "engine/gallery/gallery.h"

#include <map>
#include <string>

class QFormLayout;
class QLabel;

namespace planloom {

/// The parameters of one gallery entry: its picture, and a field for each, with its limits and what it is if
/// nothing is said. What the engine decides stands in the fields in grey.
class GalleryForm : public QWidget
{
    Q_OBJECT
public:
    explicit GalleryForm(QWidget *parent = nullptr);

    /// Shows an entry with the values of `spec`. Null shows nothing.
    void setEntry(const GalleryEntry *entry, const std::string &spec);
    /// What the entry and the devices decide of what was not said.
    void setDecided(const std::vector<GalleryValue> &values);
    /// "3d:dp=2,tp=2": the entry's name, and what was said.
    std::string spec() const;
    QWidget *field(const std::string &parameter) const; ///< Null if there is none.

Q_SIGNALS:
    void edited();

private:
    QWidget *makeField(const GalleryParameter &parameter, const std::string &said);
    std::string valueOf(const GalleryParameter &parameter) const; ///< Empty if nothing is said.

    GalleryEntry m_entry{};
    QLabel *m_picture;
    QFormLayout *m_layout;
    std::map<std::string, QWidget *> m_fields{};
};

} // namespace planloom
