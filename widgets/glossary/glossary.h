#pragma once

#include <QtCore/QString>
#include <QtCore/QStringList>

#include <vector>

namespace planloom {

/// A term and what it means.
struct GlossaryEntry {
    QString term{}; ///< "Peak memory"
    QStringList alsoNamed{}; ///< Other words for it that the window uses: "peak".
    QString sentences{};
    QString paper{}; ///< Where it comes from; empty for most.
};

/// The entries of a text in the form of resources/glossary.md: "## Term", then paragraphs, of which those
/// that begin with "Also: " and "Paper: " are words for it and its source. Others before the first term are
/// passed by.
std::vector<GlossaryEntry> parseGlossary(const QString &text);

/// That of resources/glossary.md, in its order. Read once. Thread-safe.
const std::vector<GlossaryEntry> &glossary();

/// The entry of a term or of another word for it, whatever the case; null if there is none.
const GlossaryEntry *findTerm(const QString &word);

/// The entry that a label is about: of all its words, else of the most of them at its beginning or its end
/// that are a term. "peak 31 GiB / 80 GiB" is about "Peak memory", "12 free decisions" about "Free decision".
/// Of parts with a middle dot between them the first that is about a term. Null if there is none.
const GlossaryEntry *termOfLabel(const QString &label);

/// An entry as a tool tip, in rich text.
QString tipOf(const GlossaryEntry &entry);

} // namespace planloom
