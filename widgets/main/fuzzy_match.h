#pragma once

#include <QtCore/QString>

namespace planloom {

/// How well `text` answers `query`: every word of the query must be found, as a part of the text or as
/// letters of it in their order. Whole parts count more than scattered letters, beginnings of words more than
/// middles, short texts more than long ones. Both must be in lower case already.
/// @return 0 if it does not answer at all; an empty query is answered by everything
int fuzzyScore(QStringView query, QStringView text);

} // namespace planloom
