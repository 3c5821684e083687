#include "widgets/main/fuzzy_match.h"

#include <algorithm>

namespace planloom {

namespace {

bool beginsWord(QStringView text, qsizetype at)
{
    return at == 0 || !text[at - 1].isLetterOrNumber() || (text[at].isDigit() != text[at - 1].isDigit());
}

/// 0 if the word is not in the text.
int wordScore(QStringView word, QStringView text)
{
    int best = 0;
    for (qsizetype at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
        best = std::max(best, 400 + (at == 0 ? 120 : beginsWord(text, at) ? 90 : 0));
        if (best >= 490)
            break;
    }
    if (best > 0)
        return best + (word.size() == text.size() ? 200 : 0);
    // Letters in their order, wherever possible at the beginning of a word or right behind the last one.
    int score = 0;
    qsizetype at = 0;
    qsizetype last = -2;
    for (const QChar letter : word) {
        qsizetype found = text.indexOf(letter, at);
        if (found < 0)
            return 0;
        if (found != last + 1) {
            for (qsizetype later = found; later >= 0 && later < text.size();
                 later = text.indexOf(letter, later + 1)) {
                if (beginsWord(text, later)) {
                    found = later;
                    break;
                }
            }
        }
        score += found == last + 1 ? 12 : beginsWord(text, found) ? 16 : 1;
        last = found;
        at = found + 1;
    }
    // Letters strewn anywhere are no answer.
    return score >= 6 * static_cast<int>(word.size()) ? score : 0;
}

} // namespace

int fuzzyScore(QStringView query, QStringView text)
{
    int score = 1;
    qsizetype at = 0;
    while (at < query.size()) {
        if (query[at].isSpace()) {
            ++at;
            continue;
        }
        qsizetype end = at;
        while (end < query.size() && !query[end].isSpace())
            ++end;
        const int word = wordScore(query.mid(at, end - at), text);
        if (word == 0)
            return 0;
        score += word;
        at = end;
    }
    return score + std::max(0, 60 - static_cast<int>(text.size()));
}

} // namespace planloom
